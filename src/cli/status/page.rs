//! The page `nod status` shows of a daemon's report. Pure.

use serde_json::Value;
use std::fmt::Write as _;

use crate::bus::conf::has_holes;
use crate::cli::wording::Words;
use crate::clock;
use crate::feishu::said::platform_zh;
use crate::text::{Lang, Text, columns, spaced};
use crate::wording::need::Need;
use crate::wording::{ago, span};

/// Where the second column starts.
const COLUMN: usize = 12;
const DAY: i64 = 24 * 3_600;

pub(super) fn of(report: &Value, lang: Lang) -> String {
    let words = Words(lang);
    let page = StatusPage { report, words };
    let (up, pid) = (page.time(&report["up_ms"]), &report["pid"]);
    let version = text(&report["version"]);
    let mut out = words.made(
        format!("nod {version}，进程 {pid}，已运行 {up}\n"),
        format!("nod {version}, process {pid}, up {up}\n"),
    );
    let rows = [
        (words.pick("连接", "connection"), page.connection()),
        (words.pick("总线", "bus"), page.bus()),
        (words.pick("事件", "events"), page.events()),
        (words.pick("等待中", "pending"), page.pending()),
        (words.pick("会话", "sessions"), page.sessions()),
        ("Codex", page.codex()),
        (words.pick("延迟", "latency"), page.latency()),
        (words.pick("存储", "store"), page.store()),
    ];
    for (label, lines) in rows {
        let mut label = label;
        for line in lines {
            let room = COLUMN.saturating_sub(columns(label));
            let _ = writeln!(out, "{label}{}{line}", " ".repeat(room));
            label = "";
        }
    }
    for warning in page.warnings() {
        let _ = writeln!(out, "{warning}");
    }
    for need in needs(report) {
        let _ = writeln!(out, "{}", need.get(lang));
    }
    out
}

struct StatusPage<'a> {
    report: &'a Value,
    words: Words,
}

impl StatusPage<'_> {
    fn time(&self, value: &Value) -> String {
        span(value.as_i64().unwrap_or_default())
            .get(self.words.0)
            .to_owned()
    }

    fn connection(&self) -> Vec<String> {
        let connection = &self.report["connection"];
        let platform = text(&self.report["platform"]);
        let mut lines = vec![match connection["state"].as_str() {
            Some("connected") => {
                let up = self.time(&connection["up_ms"]);
                self.words.made(
                    spaced(&format!("已连接{}，持续 {up}", platform_zh(platform))),
                    format!("connected to {platform} for {up}"),
                )
            }
            Some("webhook") => self.words.made(
                "自定义机器人模式，无长连接",
                "custom bot, no long connection",
            ),
            Some("connecting") => self.words.made("正在连接", "connecting"),
            Some("waiting") => {
                let retry = self.time(&connection["retry_in_ms"]);
                self.words.made(
                    format!("未连接，{retry}后重试"),
                    format!("not connected, next try in {retry}"),
                )
            }
            _ => self
                .words
                .made("未连接，需要处理", "not connected, needs your attention"),
        }];
        let cause = &connection[self.words.pick("cause_zh", "cause")];
        lines.extend(cause.as_str().map(str::to_owned));
        lines
    }

    /// Nothing on a machine that is no team's.
    fn bus(&self) -> Vec<String> {
        let bus = &self.report["bus"];
        let Some(url) = bus["url"].as_str() else {
            return Vec::new();
        };
        let count = |field: &str| bus[field].as_u64().unwrap_or_default();
        let (all, up) = (count("gateways"), count("gateways_up"));
        let now = time_there(bus).unwrap_or_else(|| clock::wall_ms() / 1_000);
        let left = bus["pass_until"].as_i64().unwrap_or_default() - now;
        let owner = owner(bus).unwrap_or_else(|| plain(&bus["owner"]));
        let days = left.max(0) / DAY;
        let mut lines = vec![
            match bus["server"].as_str() {
                Some(server) => {
                    let (zh, en) = match &bus["answers_us"] {
                        Value::Null => (String::new(), String::new()),
                        took => {
                            let took = quick(took);
                            (
                                format!("，网关应答 {took}"),
                                format!(", a gateway answers in {took}"),
                            )
                        }
                    };
                    self.words.made(
                        format!("{url}，nats-server {server}{zh}"),
                        format!("{url}, nats-server {server}{en}"),
                    )
                }
                None => self
                    .words
                    .made(format!("{url}，未连接"), format!("{url}, not connected")),
            },
            if bus["pass_refused"] == true {
                self.words.made(
                    format!("通行证：{owner}，总线不再接受：向机器人私聊发送 `/join`，并运行它回复的命令"),
                    format!("the bus takes the pass of {owner} no more: write `/join` to the bot in private and run what it answers"),
                )
            } else {
                self.words.made(
                    format!("通行证：{owner}，还有 {days} 天，会自动更新"),
                    format!(
                        "the pass is of {owner}, counts for {days} more days and renews itself"
                    ),
                )
            },
        ];
        // What was heard of gateways before the bus was lost may no longer be so.
        if bus["server"].is_string() {
            let gateways = self.words.made(
                format!("网关 {all} 个，其中 {up} 个已连接飞书"),
                format!("gateways: {all}, connected to Feishu: {up}"),
            );
            lines.insert(1, gateways);
        }
        if let Some(server) = bus["server"].as_str().filter(|server| has_holes(server)) {
            lines.push(self.words.made(
                format!("nats-server {server} 有已知漏洞：请换用 2.11.15、2.12.6 或更新的版本"),
                format!("nats-server {server} has known holes: use 2.11.15, 2.12.6 or newer"),
            ));
        }
        lines
    }

    /// Nothing on a team's machine: the gateways get them.
    fn events(&self) -> Vec<String> {
        if self.report["bus"]["url"].is_string() {
            return Vec::new();
        }
        let connection = &self.report["connection"];
        vec![match &connection["last_event_ms_ago"] {
            Value::Null => self.words.made("尚无", "none yet"),
            at => {
                let count = &connection["events"];
                let at = ago(at.as_i64().unwrap_or_default());
                let at = at.get(self.words.0);
                self.words.made(
                    format!("{count} 个，最近一个：{at}"),
                    format!("{count}, the last {at}"),
                )
            }
        }]
    }

    fn pending(&self) -> Vec<String> {
        let pending = self.report["pending"].as_u64().unwrap_or_default();
        let listed = self.report["waiting"].as_array();
        let listed = listed.map(Vec::as_slice).unwrap_or_default();
        let mut lines = vec![pending.to_string()];
        lines.extend(listed.iter().map(|one| {
            // An older daemon names the tool alone.
            let named = [&one["what"], &one["tool"]];
            let named = named.into_iter().find(|name| name.is_string());
            let what = plain(named.unwrap_or(&Value::Null));
            let project = plain(&one["project"]);
            if one["state"] == "runs" {
                let ran = self.time(&one["runs_ms"]);
                return self.words.made(
                    format!("{what} · {project}，已运行 {ran}"),
                    format!("{what} · {project}, runs for {ran}"),
                );
            }
            let (age, left) = (self.time(&one["age_ms"]), self.time(&one["left_ms"]));
            self.words.made(
                format!("{what} · {project}，已等 {age}，还剩 {left}"),
                format!("{what} · {project}, waits {age}, {left} left"),
            )
        }));
        let more = pending.saturating_sub(listed.len() as u64);
        if more > 0 && !listed.is_empty() {
            lines.push(
                self.words
                    .made(format!("另有 {more} 个"), format!("and {more} more")),
            );
        }
        lines
    }

    /// Nothing where the daemon says nothing of sessions.
    fn sessions(&self) -> Vec<String> {
        let Some(sessions) = self.report["sessions"].as_array() else {
            return Vec::new();
        };
        let mut lines = vec![sessions.len().to_string()];
        lines.extend(sessions.iter().map(|one| {
            let (number, project) = (&one["number"], plain(&one["project"]));
            let state = match text(&one["state"]) {
                "idle" => self.words.pick("空闲", "idle"),
                "executing" => self.words.pick("执行中", "working"),
                "waiting_input" => self.words.pick("等待回答", "waits for an answer"),
                "waiting_confirm" => self.words.pick("等待批准", "waits for approval"),
                _ => self.words.pick("正在停止", "stopping"),
            };
            let age = self.time(&one["age_ms"]);
            self.words.made(
                format!("#{number} {project}，{state}，已 {age}"),
                format!("#{number} {project}, {state}, for {age}"),
            )
        }));
        lines
    }

    /// Nothing for a home where no Codex runs: most people have none.
    fn codex(&self) -> Vec<String> {
        let homes = self.report["codex"].as_array();
        let line = |one: &Value| {
            let home = plain(&one["home"]);
            match text(&one["state"]) {
                "attached" => {
                    let agent = plain(&one["agent"]);
                    Some(self.words.made(
                        format!("{home}，已跟随（{agent}）"),
                        format!("{home}, followed ({agent})"),
                    ))
                }
                "refused" => {
                    let cause = plain(&one[self.words.pick("cause_zh", "cause")]);
                    Some(self.words.made(
                        format!("{home}，未跟随：{cause}"),
                        format!("{home}, not followed: {cause}"),
                    ))
                }
                _ => None,
            }
        };
        homes.into_iter().flatten().filter_map(line).collect()
    }

    fn latency(&self) -> Vec<String> {
        let line = |zh: &str, en: &str, of: &Value| {
            let count = of["count"].as_u64().filter(|count| *count > 0)?;
            let [p50, p99] = ["p50_us", "p99_us"].map(|field| quick(&of[field]));
            Some(self.words.made(
                format!("{zh} p50 {p50}，p99 {p99}（{count} 次）"),
                format!("{en} p50 {p50}, p99 {p99} ({count})"),
            ))
        };
        let latency = &self.report["latency"];
        let lines = [
            line("点击→答复", "tap → reply", &latency["tap_to_reply"]),
            line("点击→hook", "tap → hook", &latency["tap_to_hook"]),
        ];
        lines.into_iter().flatten().collect()
    }

    fn store(&self) -> Vec<String> {
        let store = &self.report["store"];
        vec![if store["ok"] == true {
            self.words.made("正常", "ok")
        } else {
            plain(&store[self.words.pick("cause_zh", "cause")])
        }]
    }

    fn warnings(&self) -> Vec<&'static str> {
        let mut warnings = Vec::new();
        if self.report["lock_unsure"] == true {
            warnings.push(self.words.pick(
                "数据库丢失，不知道之前是否已锁定，因此已锁定：用 `nod unlock` 解锁",
                "locked, because the database was lost and nobody knows whether it was: `nod unlock` opens it",
            ));
        } else if self.report["locked"] == true {
            warnings.push(self.words.pick(
                "远程批准已锁定：用 `nod unlock` 解锁",
                "remote approval is locked: `nod unlock` opens it",
            ));
        }
        if self.report["owner_set"] == false {
            warnings.push(self.words.pick(
                "没有设置谁来决定：请设置 `FEISHU_OWNER_ID`",
                "nobody is set to decide: set `FEISHU_OWNER_ID`",
            ));
        }
        warnings
    }
}

/// What cards needed in this run, with the code and log id to ask Feishu about.
pub(in crate::cli) fn needs(report: &Value) -> impl Iterator<Item = Text> {
    let all = report["needs"].as_array().into_iter().flatten();
    all.filter_map(|known| {
        let need = Need::parse(text(&known["need"]))?.told();
        let (code, log_id) = (&known["code"], plain(&known["log_id"]));
        Some(Text::made(
            format!("{}（代码 {code}，log_id {log_id}）", need.zh),
            format!("{} (code {code}, log id {log_id})", need.en),
        ))
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What an agent named, without what could move the cursor.
fn plain(value: &Value) -> String {
    text(value)
        .chars()
        .filter(|c| !c.is_control())
        .take(80)
        .collect()
}

/// What time it is at Feishu, in seconds, by what a team's machine says of its
/// bus; its own clock may be wrong.
pub(in crate::cli) fn time_there(bus: &Value) -> Option<i64> {
    bus["time"].as_i64().map(|millis| millis / 1_000)
}

/// What the owner of a team's machine is called, if that is known.
pub(in crate::cli) fn owner(bus: &Value) -> Option<String> {
    bus["owner_name"]
        .is_string()
        .then(|| plain(&bus["owner_name"]))
}

/// A short time as people read it.
pub(in crate::cli) fn quick(micros: &Value) -> String {
    match micros.as_u64().unwrap_or_default() {
        us @ ..1_000 => format!("{us} µs"),
        us => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(connection: &Value) -> Value {
        json!({
            "version": "0.1.0", "pid": 7, "up_ms": 61_000, "platform": "Feishu",
            "connection": connection, "pending": 2, "owner_set": true,
            "store": {"ok": true},
        })
    }

    #[test]
    fn each_state_is_told_in_both_languages() {
        let up = report(&json!({
            "state": "connected", "up_ms": 5_000, "events": 3, "last_event_ms_ago": 1_500,
        }));
        assert_eq!(
            of(&up, Lang::En),
            "nod 0.1.0, process 7, up 1 min 1 s\n\
             connection  connected to Feishu for 5 s\n\
             events      3, the last 1 s ago\n\
             pending     2\n\
             store       ok\n"
        );
        let mut codex = up.clone();
        codex["codex"] = json!([
            {"home": "/a", "state": "attached", "agent": "codex/0.166.0"},
            {"home": "/b", "state": "refused", "cause": "it is another's", "cause_zh": "不归本人"},
            {"home": "/c", "state": "away", "cause": "there is no socket"},
        ]);
        let page = of(&codex, Lang::En);
        assert!(
            page.contains(
                "Codex       /a, followed (codex/0.166.0)\n            /b, not followed: it is another's\nstore"
            ),
            "{page}"
        );
        assert!(of(&codex, Lang::Zh).contains("/b，未跟随：不归本人"));
        let mut locked = up.clone();
        locked["locked"] = json!(true);
        assert!(of(&locked, Lang::En).ends_with("`nod unlock` opens it\n"));
        let mut plain = up.clone();
        plain["needs"] = json!([
            {"need": "plain", "code": 230_099, "log_id": "0217"},
            {"need": "something newer", "code": 1},
        ]);
        assert!(
            of(&plain, Lang::En)
                .ends_with("plainest one until a restart (code 230099, log id 0217)\n")
        );
        locked["lock_unsure"] = json!(true);
        assert!(of(&locked, Lang::En).contains("nobody knows"));
        let down = report(&json!({
            "state": "degraded", "last_event_ms_ago": null,
            "cause": "the app secret is wrong", "cause_zh": "密钥不对",
        }));
        assert_eq!(
            of(&down, Lang::Zh),
            "nod 0.1.0，进程 7，已运行 1 分 1 秒\n\
             连接        未连接，需要处理\n            密钥不对\n\
             事件        尚无\n\
             等待中      2\n\
             存储        正常\n"
        );
    }

    #[test]
    fn a_member_is_told_of_its_bus_and_a_pass_that_is_refused_is_not_praised() {
        let mut member = report(&json!({"state": "connected", "up_ms": 5_000}));
        member["bus"] = json!({
            "url": "wss://bus.example", "server": "2.12.6", "answers_us": 812, "gateways": 2,
            "gateways_up": 1, "owner": "ou_a", "pass_until": clock::wall_ms() / 1_000 + 9 * DAY + 60,
        });
        let page = of(&member, Lang::En);
        for line in [
            "wss://bus.example, nats-server 2.12.6, a gateway answers in 812 µs\n",
            "gateways: 2, connected to Feishu: 1\n",
            "the pass is of ou_a, counts for 9 more days and renews itself\n",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
        assert!(!page.contains("holes"), "{page}");
        // The machine's own clock may be wrong, and its owner has a name.
        member["bus"]["time"] = json!(clock::wall_ms() - 3_600_000);
        member["bus"]["owner_name"] = json!("王小明");
        let named = of(&member, Lang::Zh);
        assert!(named.contains("通行证：王小明，还有 9 天"), "{named}");
        assert!(!page.contains("events"), "the gateways get them: {page}");
        member["bus"]["server"] = json!("2.9.10");
        assert!(of(&member, Lang::Zh).contains("nats-server 2.9.10 有已知漏洞"));
        member["bus"]["server"] = Value::Null;
        member["bus"]["pass_refused"] = json!(true);
        for (lang, needed) in [(Lang::En, "no more: write `/join`"), (Lang::Zh, "不再接受")] {
            let page = of(&member, lang);
            assert!(page.contains(needed), "{page}");
            assert!(!page.contains("renews itself") && !page.contains("会自动更新"));
            assert!(
                !page.contains("gateways: ") && !page.contains("网关"),
                "{page}"
            );
        }
    }

    #[test]
    fn what_waits_is_listed_with_its_age_and_nothing_can_move_the_cursor() {
        let mut all = report(&json!({"state": "connecting", "last_event_ms_ago": null}));
        all["pending"] = json!(3);
        all["waiting"] = json!([
            {"tool": "Bash", "project": "shop\u{1b}[2J", "age_ms": 61_000, "left_ms": 9_000},
            {"tool": "Bash", "what": "npm test", "state": "runs", "project": "shop",
                "age_ms": 61_000, "left_ms": 9_000, "runs_ms": 5_000},
        ]);
        all["sessions"] = json!([
            {"number": 3, "project": "shop", "state": "executing", "age_ms": 5_000},
        ]);
        all["latency"] = json!({
            "tap_to_reply": {"count": 4, "p50_us": 180, "p99_us": 2_340},
            "tap_to_hook": {"count": 0},
        });
        assert_eq!(
            of(&all, Lang::En),
            "nod 0.1.0, process 7, up 1 min 1 s\n\
             connection  connecting\n\
             events      none yet\n\
             pending     3\n\
             \x20           Bash · shop[2J, waits 1 min 1 s, 9 s left\n\
             \x20           npm test · shop, runs for 5 s\n\
             \x20           and 1 more\n\
             sessions    1\n\
             \x20           #3 shop, working, for 5 s\n\
             latency     tap → reply p50 180 µs, p99 2.3 ms (4)\n\
             store       ok\n"
        );
        let zh = of(&all, Lang::Zh);
        assert!(
            zh.contains("            Bash · shop[2J，已等 1 分 1 秒，还剩 9 秒\n"),
            "{zh}"
        );
        assert!(
            zh.contains("延迟        点击→答复 p50 180 µs，p99 2.3 ms（4 次）\n"),
            "{zh}"
        );
    }
}
