//! A team's machine, judged: its pass, its bus, its gateways. Pure.

use serde_json::Value;

use super::feishu::clock;
use super::finding::{Finding, Level, Probe};
use crate::bus::conf::has_holes;
use crate::cli::status::page::{owner, quick, time_there};
use crate::wording::span;

/// What is known of a machine that has a pass.
pub(super) struct MemberReport {
    pub(super) owner: String,
    pub(super) url: String,
    /// Until when the pass counts, and what time it is here, in seconds.
    pub(super) until: i64,
    pub(super) now: i64,
    /// What the daemon says of itself, if it runs.
    pub(super) report: Option<Value>,
}

const DAY: i64 = 24 * 3_600;
/// A pass that gateways did not renew by now may not be renewed.
const WORRY: i64 = 7 * DAY;

pub(super) fn check(member: &MemberReport) -> Vec<Finding> {
    let mut findings = vec![pass(member)];
    findings.push(Probe("app_secret").ok(
        "应用密钥不在本机",
        "the app's secret is not on this machine",
    ));
    if let Some(report) = &member.report {
        findings.push(bus(member, report));
        let there = time_there(&report["bus"]);
        findings.extend(there.map(|there| clock(there - member.now)));
        let server = report["bus"]["server"].as_str();
        findings.extend(server.filter(|version| has_holes(version)).map(old_server));
    }
    findings
}

fn pass(member: &MemberReport) -> Finding {
    let report = member.report.as_ref();
    // This machine's own clock may be wrong.
    let there = report.and_then(|report| time_there(&report["bus"]));
    let left = member.until - there.unwrap_or(member.now);
    let known = report.and_then(|report| owner(&report["bus"]));
    let (owner, days) = (known.unwrap_or_else(|| member.owner.clone()), left / DAY);
    if left <= 0 {
        return Probe("pass").problem(
            "本机的通行证已过期：向机器人私聊发送 `/join`，并运行它回复的命令",
            "this machine's pass is over: write `/join` to the bot in private and run what it answers",
        );
    }
    let is_refused = |report: &Value| report["bus"]["pass_refused"] == true;
    if report.is_some_and(is_refused) {
        return Probe("pass").problem(
            "总线不再接受本机的通行证：本机可能已被移除；向机器人私聊发送 `/join`，并运行它回复的命令",
            "the bus takes this machine's pass no more, it may have been forgotten: write `/join` to the bot in private and run what it answers",
        );
    }
    let level = if left < WORRY {
        Level::Warning
    } else {
        Level::Ok
    };
    Probe("pass").found(
        level,
        format!("通行证：所有者 {owner}，还有 {days} 天，会自动更新"),
        format!("the pass is of {owner}, counts for {days} more days and renews itself"),
    )
}

fn bus(member: &MemberReport, report: &Value) -> Finding {
    let url = &member.url;
    let connection = &report["connection"];
    if connection["state"] == "connected" {
        let count = |field: &str| report["bus"][field].as_u64().unwrap_or_default();
        let (all, feishu) = (count("gateways"), count("gateways_up"));
        let up = span(connection["up_ms"].as_i64().unwrap_or_default());
        let took = quick(&report["bus"]["answers_us"]);
        return Probe("bus").ok(
            format!(
                "总线 {url} 已连接 {}，网关应答 {took}；网关 {all} 个，其中 {feishu} 个已连接飞书",
                up.zh
            ),
            format!(
                "the bus {url} is connected for {}, a gateway answers in {took}; gateways: {all}, connected to Feishu: {feishu}",
                up.en
            ),
        );
    }
    let cause = |field: &str| connection[field].as_str().unwrap_or_default().to_owned();
    Probe("bus").problem(
        format!("总线 {url} 不可用：{}", cause("cause_zh")),
        format!("the bus {url} is of no use now: {}", cause("cause")),
    )
}

fn old_server(version: &str) -> Finding {
    Probe("bus_server").warning(
        format!("nats-server {version} 有已知漏洞：请换用 2.11.15、2.12.6 或更新的版本"),
        format!("nats-server {version} has known holes: use 2.11.15, 2.12.6 or newer"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::Level::{Ok, Problem, Warning};
    use serde_json::json;

    const NOW: i64 = 1_800_000_000;

    fn connected(until: i64, bus: &Value) -> Vec<Finding> {
        check(&MemberReport {
            owner: "ou_a".to_owned(),
            url: "wss://bus.example".to_owned(),
            until,
            now: NOW,
            report: Some(json!({
                "connection": {"state": "connected", "up_ms": 3 * 3_600_000},
                "bus": bus,
            })),
        })
    }

    #[test]
    fn the_bus_is_told_with_how_quick_it_is_and_since_when_and_the_owner_by_name() {
        let found = connected(
            NOW + 9 * DAY,
            &json!({
                "server": "2.12.6", "gateways": 2, "gateways_up": 1,
                "answers_us": 812, "owner_name": "王小明",
            }),
        );
        let [pass, _, bus] = &found[..] else {
            panic!("{} findings", found.len());
        };
        for (text, needed) in [
            (
                &bus.text.en,
                "is connected for 3 h 0 min, a gateway answers in 812 µs;",
            ),
            (&bus.text.zh, "已连接 3 小时 0 分，网关应答 812 µs；"),
            (
                &pass.text.en,
                "the pass is of 王小明, counts for 9 more days",
            ),
            (&pass.text.zh, "所有者 王小明，还有 9 天"),
        ] {
            assert!(text.contains(needed), "{needed}: {text}");
        }
        let found = connected(NOW + 9 * DAY, &json!({"server": "2.12.6"}));
        assert!(found[0].text.en.contains("of ou_a,"), "no name is known");
    }

    #[test]
    fn a_wrong_clock_here_ends_no_pass_and_is_told() {
        for (off, level, en) in [
            (3_600, Ok, "this machine's clock is 3600 s ahead"),
            (-3_600, Ok, "this machine's clock is 3600 s behind"),
        ] {
            // The true time, by which the pass counts for eight days.
            let there = NOW - off;
            let bus = json!({"server": "2.12.6", "time": there * 1_000});
            let found = connected(there + 8 * DAY, &bus);
            assert_eq!(found[0].level, level);
            let days = &found[0].text.en;
            assert!(days.contains("8 more days"), "{days}");
            let clock = found.iter().find(|one| one.check == "clock").unwrap();
            assert_eq!(clock.level, Warning);
            assert!(clock.text.en.contains(en), "{}", clock.text.en);
        }
    }

    #[test]
    fn a_pass_that_is_over_and_a_bus_that_is_gone_are_problems() {
        let member = |left, state: &str| MemberReport {
            owner: "ou_a".to_owned(),
            url: "wss://bus.example".to_owned(),
            until: NOW + left,
            now: NOW,
            report: Some(json!({
                "connection": {"state": state, "cause": "gone", "cause_zh": "断开"},
                "bus": {"server": "2.9.10"},
            })),
        };
        let levels = |left, state| {
            let found = check(&member(left, state));
            found.into_iter().map(|one| one.level).collect::<Vec<_>>()
        };
        assert_eq!(levels(20 * DAY, "connected"), [Ok, Ok, Ok, Warning]);
        assert_eq!(levels(DAY, "waiting"), [Warning, Ok, Problem, Warning]);
        assert_eq!(levels(0, "connected"), [Problem, Ok, Ok, Warning]);
    }

    #[test]
    fn a_pass_that_the_bus_refuses_is_not_praised() {
        let found = pass(&MemberReport {
            owner: "ou_a".to_owned(),
            url: "wss://bus.example".to_owned(),
            until: NOW + 20 * DAY,
            now: NOW,
            report: Some(json!({"bus": {"pass_refused": true}})),
        });
        assert_eq!(found.level, Problem);
        assert!(found.text.en.contains("/join"), "{}", found.text.en);
    }
}
