//! `nod status`: asks the running daemon how it is.

use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;

use super::{Failure, Outcome, output};
use crate::config::{HookConfig, Sources};
use crate::hook::client;
use crate::hook::wire::Order;
use crate::wording::{Lang, span};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The whole report as JSON
    #[arg(long)]
    json: bool,
}

const ANSWER_WITHIN: Duration = Duration::from_secs(2);

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let sources = Sources::for_person();
    let config = HookConfig::load(&sources).map_err(|why| Failure::new(78, why))?;
    let report = order(&config, Order::Status)?;
    if arguments.json {
        output::json(&report);
    } else {
        output::text(&describe(&report, sources.lang()));
    }
    match report["connection"]["state"].as_str() {
        Some("degraded") => Err(Failure {
            code: 3,
            why: "not connected, and only you can change it".to_owned(),
            hint: None,
        }),
        _ => Ok(()),
    }
}

/// Hands the running daemon an order; its report is how it is afterwards.
pub(super) fn order(config: &HookConfig, order: Order) -> Result<Value, Failure> {
    let socket = &config.sockets.own;
    client::order(socket, order, ANSWER_WITHIN).map_err(|why| Failure {
        code: 1,
        why: format!("no daemon answers on `{}`: {why}", socket.display()),
        hint: Some("start it with `nod daemon`".to_owned()),
    })
}

fn describe(report: &Value, lang: Lang) -> String {
    let pick = |zh: &'static str, en: &'static str| match lang {
        Lang::Zh => zh,
        Lang::En => en,
    };
    let time = |value: &Value| {
        let ms = value.as_i64().unwrap_or_default();
        span(ms).get(lang).to_owned()
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let connection = &report["connection"];
    let platform = text(&report["platform"]);
    let mut state = match connection["state"].as_str() {
        Some("connected") => {
            let up = time(&connection["up_ms"]);
            match lang {
                Lang::Zh => format!("已连接{platform}，持续 {up}"),
                Lang::En => format!("connected to {platform} for {up}"),
            }
        }
        Some("connecting") => pick("正在连接", "connecting").to_owned(),
        Some("waiting") => {
            let retry = time(&connection["retry_in_ms"]);
            match lang {
                Lang::Zh => format!("未连接，{retry}后重试"),
                Lang::En => format!("not connected, next try in {retry}"),
            }
        }
        _ => pick("未连接，需要处理", "not connected, needs your attention").to_owned(),
    };
    if let Some(cause) = connection["cause"].as_str() {
        let _ = write!(state, "\n            {cause}");
    }
    let events = match &connection["last_event_ms_ago"] {
        Value::Null => pick("尚无", "none yet").to_owned(),
        at => {
            let (count, at) = (&connection["events"], time(at));
            match lang {
                Lang::Zh => format!("{count}，最近 {at}前"),
                Lang::En => format!("{count}, the last {at} ago"),
            }
        }
    };
    let store = if report["store"]["ok"] == true {
        pick("正常", "ok").to_owned()
    } else {
        text(&report["store"]["cause"])
    };
    let mut out = String::new();
    let up = time(&report["up_ms"]);
    let (version, pid) = (text(&report["version"]), &report["pid"]);
    let _ = writeln!(
        out,
        "nod {version}, pid {pid}, {} {up}",
        pick("已运行", "up")
    );
    for (label, value) in [
        (pick("连接", "connection"), state),
        (pick("事件", "events"), events),
        (pick("等待中", "pending"), report["pending"].to_string()),
        (pick("存储", "store"), store),
    ] {
        let width = label
            .chars()
            .map(|c| if c.is_ascii() { 1 } else { 2 })
            .sum::<usize>();
        let _ = writeln!(
            out,
            "{label}{} {value}",
            " ".repeat(11_usize.saturating_sub(width))
        );
    }
    if report["locked"] == true {
        let _ = writeln!(
            out,
            "{}",
            pick(
                "远程批准已锁定：用 nod unlock 解锁",
                "remote approval is locked: `nod unlock` opens it"
            )
        );
    }
    if report["owner_set"] == false {
        let _ = writeln!(
            out,
            "{}",
            pick(
                "尚未设置决定人：请设置 FEISHU_OWNER_ID",
                "nobody is set to decide: set FEISHU_OWNER_ID"
            )
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_state_is_told_in_both_languages() {
        let report = |connection: Value| {
            json!({
                "version": "0.1.0", "pid": 7, "up_ms": 61_000, "platform": "Feishu",
                "connection": connection, "pending": 2, "owner_set": true,
                "store": {"ok": true},
            })
        };
        let up = report(json!({
            "state": "connected", "up_ms": 5_000, "events": 3, "last_event_ms_ago": 1_500,
        }));
        assert_eq!(
            describe(&up, Lang::En),
            "nod 0.1.0, pid 7, up 1 min 1 s\n\
             connection  connected to Feishu for 5 s\n\
             events      3, the last 1 s ago\n\
             pending     2\n\
             store       ok\n"
        );
        let mut locked = up.clone();
        locked["locked"] = json!(true);
        assert!(describe(&locked, Lang::En).ends_with("`nod unlock` opens it\n"));
        let down = report(json!({
            "state": "degraded", "cause": "the app secret is wrong", "last_event_ms_ago": null,
        }));
        assert_eq!(
            describe(&down, Lang::Zh),
            "nod 0.1.0, pid 7, 已运行 1 分 1 秒\n\
             连接        未连接，需要处理\n            the app secret is wrong\n\
             事件        尚无\n\
             等待中      2\n\
             存储        正常\n"
        );
    }
}
