//! `nod doctor --click`: a card to the owner, a tap, and how long it took;
//! through the running daemon as any script's question goes, or over a
//! connection of its own where none runs.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::ask;
use super::super::setup::{self, TapError};
use super::super::wording::Words;
use super::finding::{Finding, Level, Probe, Took};
use super::gather::Gathered;
use super::machine::SocketState;
use crate::hook::client::{self, NoDecision, Patience};
use crate::hook::wire::DaemonOrder;
use crate::hook::wire::answer::Decision;
use crate::hook::wire::error_word::ErrorWord;
use crate::sessions::questions::script::{self, ScriptWishes};
use crate::sessions::questions::{Question, QuestionKind};
use crate::text::{Lang, Text};

const CHECK: &str = "click";
/// The daemon notes a tap a moment after its hook has the answer.
const NOTED_WITHIN: Duration = Duration::from_secs(2);
const STATUS_WITHIN: Duration = Duration::from_secs(2);

enum ProbeTap {
    Came(Took),
    /// Nobody tapped, or the tap did not get here.
    Silence,
    /// No card could be sent.
    Failed(Text),
}

/// `sent` is called once a card is on its way.
pub(super) async fn prove(
    gathered: &Gathered,
    findings: &[Finding],
    words: Words,
    limit: Duration,
    sent: impl FnOnce(),
) -> Finding {
    let tap = match (&gathered.machine.socket, &gathered.socket) {
        (SocketState::Answers(_), Some(socket)) => {
            sent();
            let (socket, here) = (socket.clone(), gathered.here.clone());
            let asked =
                tokio::task::spawn_blocking(move || by_daemon(&socket, &here, words, limit));
            asked.await.unwrap_or(ProbeTap::Silence)
        }
        _ => alone(gathered, words, limit, sent).await,
    };
    match tap {
        ProbeTap::Came(took) => came(took),
        ProbeTap::Silence => silence(findings),
        ProbeTap::Failed(why) => Probe(CHECK).problem(
            format!("没能发出测试卡片：{}", why.zh),
            format!("no test card could be sent: {}", why.en),
        ),
    }
}

fn by_daemon(socket: &Path, here: &Path, words: Words, limit: Duration) -> ProbeTap {
    let question = Question {
        header: None,
        text: words.doctor_question().to_owned(),
        kind: QuestionKind::Confirm,
    };
    let mut input = script::input(&question);
    ScriptWishes {
        timeout: Some(limit),
        to: None,
    }
    .write(&mut input);
    let question = ask::request(here.to_owned(), &input);
    let before = taps(socket);
    match client::ask(socket, &question, &Patience::for_timeout(limit), None) {
        Ok(Decision::Allow(_) | Decision::Deny { .. }) => measured(socket, before.as_ref()),
        Ok(Decision::Terminal {
            error: ErrorWord::ServerTimeout,
            ..
        })
        | Err(NoDecision::OutOfTime) => ProbeTap::Silence,
        Ok(Decision::Terminal {
            error,
            message,
            why,
        }) => {
            let said = |lang| Words(lang).terminal(error, &message, why.as_deref());
            ProbeTap::Failed(Text::made(said(Lang::Zh), said(Lang::En)))
        }
        Err(why) => ProbeTap::Failed(Text::made(
            Words(Lang::Zh).unanswered(&why),
            Words(Lang::En).unanswered(&why),
        )),
    }
}

/// What the daemon says of taps so far.
fn taps(socket: &Path) -> Option<Value> {
    let report = client::order(socket, DaemonOrder::Status, STATUS_WITHIN).ok()?;
    Some(report["latency"].clone())
}

fn measured(socket: &Path, before: Option<&Value>) -> ProbeTap {
    let count = |of: &Value, kind: &str| of[kind]["count"].as_u64();
    let until = Instant::now() + NOTED_WITHIN;
    let mut took = Took::default();
    while let (Some(before), Some(now)) = (before, taps(socket)) {
        let noted = |kind| count(&now, kind) > count(before, kind);
        if noted("tap_to_reply") {
            took.reply_us = now["tap_to_reply"]["last_us"].as_u64().unwrap_or_default();
            took.hook_us = now["tap_to_hook"]["last_us"]
                .as_u64()
                .filter(|_| noted("tap_to_hook"));
            break;
        }
        if Instant::now() > until {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    ProbeTap::Came(took)
}

async fn alone(
    gathered: &Gathered,
    words: Words,
    limit: Duration,
    sent: impl FnOnce(),
) -> ProbeTap {
    let app = gathered.config.as_ref().and_then(|config| {
        let (_, owner) = (config.app().ok()?, config.owner.as_ref()?);
        Some((config, owner))
    });
    let Some((config, owner)) = app else {
        return ProbeTap::Failed(Text::new(
            "没有应用凭证或所有者，请先运行 `nod setup`",
            "there are no credentials or there is no owner; run `nod setup` first",
        ));
    };
    match setup::prove_tap(config, owner, words, limit, sent).await {
        Ok(took) => ProbeTap::Came(Took {
            reply_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            hook_us: None,
        }),
        Err(TapError::Silence) => ProbeTap::Silence,
        Err(error) => ProbeTap::Failed(error.text()),
    }
}

fn came(took: Took) -> Finding {
    let ms = |us: u64| format!("{}.{:03} ms", us / 1_000, us % 1_000);
    let reply = ms(took.reply_us);
    let (zh, en) = match took.hook_us.map(ms) {
        Some(hook) => (
            format!("点击已到达：{hook} 后决定已送达，{reply} 后答复飞书"),
            format!(
                "the tap arrived: the decision was delivered after {hook}, Feishu answered after {reply}"
            ),
        ),
        None => (
            format!("点击已到达，{reply} 后答复飞书"),
            format!("the tap arrived and Feishu was answered after {reply}"),
        ),
    };
    Finding {
        took: Some(took),
        ..Probe(CHECK).ok(zh, en)
    }
}

/// The step that is most likely missing: what the other checks found, else
/// what each code of Feishu's means.
fn silence(findings: &[Finding]) -> Finding {
    let finding = Probe(CHECK).problem("没有收到点击", "no tap arrived");
    let suspects = ["callbacks", "version", "bot", "connections", "connection"];
    let known = suspects.iter().find_map(|check| {
        let is_it = |one: &&Finding| one.check == *check && one.level == Level::Problem;
        findings.iter().find(is_it)
    });
    if let Some(known) = known {
        return Finding {
            fix: [vec![known.text.clone()], known.fix.clone()].concat(),
            ..finding
        };
    }
    finding
        .fix(
            "飞书提示 200340：回调配置这一页没有选长连接，或没有添加 卡片回传交互，或没有发布版本",
            "Feishu showed 200340: the Callback Configuration tab is not on long connection, or the card action callback was not added, or no version was published",
        )
        .fix(
            "飞书提示 200341：nod 没有在 3 秒内答复，请看 `nod status`",
            "Feishu showed 200341: nod did not answer within 3 s, see `nod status`",
        )
        .fix(
            "什么提示都没有：是否真的点了按钮？机器人是否在你的可用范围内？",
            "nothing was shown: was the button tapped, and are you within the app's availability?",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_names_the_step_another_check_found() {
        let found = [
            Probe("version").ok("", ""),
            Probe("callbacks")
                .problem("缺", "not subscribed")
                .fix("做", "do this"),
        ];
        let silent = silence(&found);
        let steps: Vec<_> = silent.fix.iter().map(|step| step.get(Lang::En)).collect();
        assert_eq!(steps, ["not subscribed", "do this"]);
        let unknown = silence(&[]);
        assert!(unknown.fix[0].en.contains("200340"));
    }

    #[test]
    fn a_tap_is_told_in_milliseconds() {
        let told = |hook_us| {
            came(Took {
                reply_us: 1_234,
                hook_us,
            })
            .text
        };
        assert!(
            told(Some(56)).en.contains("0.056 ms"),
            "{}",
            told(Some(56)).en
        );
        assert!(told(None).en.ends_with("1.234 ms"), "{}", told(None).en);
    }
}
