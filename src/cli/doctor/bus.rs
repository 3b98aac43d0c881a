//! A team's machine, judged: its pass, its bus, its gateways. Pure.

use serde_json::Value;

use super::finding::{Finding, Level, Probe};
use crate::bus::conf::has_holes;

/// What is known of a machine that has a pass.
pub(super) struct MemberReport {
    pub(super) owner: String,
    pub(super) url: String,
    /// Seconds until the pass is over.
    pub(super) left: i64,
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
        let server = report["bus"]["server"].as_str();
        findings.extend(server.filter(|version| has_holes(version)).map(old_server));
    }
    findings
}

fn pass(member: &MemberReport) -> Finding {
    let (owner, days) = (&member.owner, member.left / DAY);
    if member.left <= 0 {
        return Probe("pass").problem(
            "本机的通行证已过期：向机器人私聊发送 `/join`，并运行它回复的命令",
            "this machine's pass is over: write `/join` to the bot in private and run what it answers",
        );
    }
    let is_refused = |report: &Value| report["bus"]["pass_refused"] == true;
    if member.report.as_ref().is_some_and(is_refused) {
        return Probe("pass").problem(
            "总线不再接受本机的通行证：本机可能已被移除；向机器人私聊发送 `/join`，并运行它回复的命令",
            "the bus takes this machine's pass no more, it may have been forgotten: write `/join` to the bot in private and run what it answers",
        );
    }
    let level = if member.left < WORRY {
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
        return Probe("bus").ok(
            format!("总线 {url} 已连接；网关 {all} 个，其中 {feishu} 个已连接飞书"),
            format!("the bus {url} is connected; gateways: {all}, connected to Feishu: {feishu}"),
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

    #[test]
    fn a_pass_that_is_over_and_a_bus_that_is_gone_are_problems() {
        let member = |left, state: &str| MemberReport {
            owner: "ou_a".to_owned(),
            url: "wss://bus.example".to_owned(),
            left,
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
            left: 20 * DAY,
            report: Some(json!({"bus": {"pass_refused": true}})),
        });
        assert_eq!(found.level, Problem);
        assert!(found.text.en.contains("/join"), "{}", found.text.en);
    }
}
