//! Codex, judged: whether nod follows its sessions, and what keeps a person
//! from being asked. Pure.

use serde_json::Value;

use super::finding::{Finding, Probe};
use super::machine::Program;

/// The first version whose daemon can be followed.
const HAS_A_DAEMON: [u32; 3] = [0, 166, 0];

pub(super) struct CodexReport {
    pub(super) program: Program,
    pub(super) homes: Vec<CodexHome>,
    /// Processes of this user's that were started with `--no-daemon`.
    pub(super) without_daemon: Vec<u32>,
}

/// One home that is followed by the settings.
pub(super) struct CodexHome {
    pub(super) path: String,
    /// As it may be shown.
    pub(super) shown: String,
    pub(super) exists: bool,
    /// Codex keeps no socket there.
    pub(super) is_temporary: bool,
}

/// `report` is the running daemon's.
pub(super) fn check(codex: &CodexReport, report: Option<&Value>) -> Vec<Finding> {
    let used = codex.program != Program::Absent || codex.homes.iter().any(|home| home.exists);
    if !used {
        return Vec::new();
    }
    if codex.homes.is_empty() {
        return vec![Probe("codex").ok(
            "不跟随 Codex（`NOD_CODEX=off`）",
            "Codex is not followed (`NOD_CODEX=off`)",
        )];
    }
    let mut findings = Vec::new();
    if let Program::Version(version) = &codex.program
        && super::machine::parsed(version).is_some_and(|version| version < HAS_A_DAEMON)
    {
        findings.push(
            Probe("codex")
                .warning(
                    format!("Codex {version}：0.166 起才有可供跟随的后台服务"),
                    format!("Codex {version}: it has a daemon to follow only since 0.166"),
                )
                .fix("`codex update`", "`codex update`"),
        );
    }
    if !codex.without_daemon.is_empty() {
        let pids: Vec<_> = codex.without_daemon.iter().map(u32::to_string).collect();
        let pids = pids.join(", ");
        findings.push(
            Probe("codex").warning(
                format!("`codex --no-daemon` 在运行（进程 {pids}）：nod 看不到它的请求"),
                format!(
                    "`codex --no-daemon` is running (process {pids}): nod does not see what it asks"
                ),
            )
            .fix(
                "不带 `--no-daemon` 重新启动它",
                "start it again without `--no-daemon`",
            ),
        );
    }
    for home in &codex.homes {
        let homes = report.and_then(|report| report["codex"].as_array());
        let told = homes.and_then(|homes| homes.iter().find(|one| one["home"] == *home.path));
        findings.extend(followed(home, told));
    }
    findings
}

fn followed(home: &CodexHome, told: Option<&Value>) -> Vec<Finding> {
    let shown = &home.shown;
    let Some(told) = told else {
        // Without nod's daemon nobody follows; that is told already.
        return Vec::new();
    };
    match told["state"].as_str() {
        Some("attached") => {
            let agent = told["agent"].as_str().unwrap_or_default();
            let mut findings = vec![Probe("codex").ok(
                format!("正在跟随 `{shown}` 的 Codex（{agent}）"),
                format!("Codex is followed in `{shown}` ({agent})"),
            )];
            findings.extend(unasked(shown, told));
            findings
        }
        Some("refused") => {
            let cause = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
            vec![
                Probe("codex").problem(format!("`{shown}` 的 Codex 无法跟随：{}", cause("cause_zh")),
                    format!("Codex in `{shown}` is not followed: {}", cause("cause")),
                )
                .fix(
                    "更新 Codex 与 nod；socket 不归本人时先弄清它从何而来",
                    "update Codex and nod; if the socket is not yours, find out whose it is first",
                ),
            ]
        }
        _ if home.is_temporary => vec![
            Probe("codex").warning(
                format!("`{shown}` 在临时目录下：Codex 不会在那里建立 socket"),
                format!("`{shown}` is beneath a temporary directory: Codex keeps no socket there"),
            )
            .fix("把 `CODEX_HOME` 移到别处", "move `CODEX_HOME` elsewhere"),
        ],
        _ => vec![Probe("codex").ok(format!(
                "`{shown}` 没有 Codex 的 socket：它没有运行；直接运行 `codex` 后 nod 会自动跟随"
            ),
            format!(
                "no socket of Codex's in `{shown}`: it does not run; nod follows as soon as plain `codex` does"
            ),
        )],
    }
}

/// What answers in a person's place.
fn unasked(shown: &str, told: &Value) -> Option<Finding> {
    let file = format!("{shown}/config.toml");
    match (told["reviewer"].as_str(), told["policy"].as_str()) {
        (Some(reviewer), _) if reviewer != "user" => Some(
            Probe("codex-asks").warning(
                format!("Codex 的请求由自动审查（`{reviewer}`）回答，不会问你"),
                format!(
                    "an automatic reviewer (`{reviewer}`) answers what Codex asks, and you are not asked"
                ),
            )
            .fix(
                format!("在 `{file}` 中把 `approvals_reviewer` 设为 `user`"),
                format!("set `approvals_reviewer` to `user` in `{file}`"),
            ),
        ),
        (_, Some("never")) => Some(
            Probe("codex-asks").warning(
                "Codex 从不询问（`approval_policy` 为 `never`）",
                "Codex never asks (`approval_policy` is `never`)",
            )
            .fix(
                format!("在 `{file}` 中把 `approval_policy` 设为 `on-request`"),
                format!("set `approval_policy` to `on-request` in `{file}`"),
            ),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use serde_json::json;

    fn codex(program: Program) -> CodexReport {
        CodexReport {
            program,
            homes: vec![CodexHome {
                path: "/h/.codex".to_owned(),
                shown: "~/.codex".to_owned(),
                exists: true,
                is_temporary: false,
            }],
            without_daemon: Vec::new(),
        }
    }

    fn said(codex: &CodexReport, told: &Value) -> Vec<(Level, String)> {
        let mut told = told.clone();
        told["home"] = json!("/h/.codex");
        let report = json!({"codex": [told]});
        let found = check(codex, Some(&report)).into_iter();
        found
            .map(|one| (one.level, one.text.en.to_string()))
            .collect()
    }

    #[test]
    fn each_way_of_not_being_asked_is_named() {
        let new = codex(Program::Version("0.166.0".to_owned()));
        for (told, level, words) in [
            (
                json!({"state": "attached", "reviewer": "user"}),
                Level::Ok,
                "is followed",
            ),
            (
                json!({"state": "attached", "reviewer": "auto_review"}),
                Level::Warning,
                "`auto_review`",
            ),
            (
                json!({"state": "attached", "policy": "never"}),
                Level::Warning,
                "never asks",
            ),
            (
                json!({"state": "refused", "cause": "it is old"}),
                Level::Problem,
                "it is old",
            ),
            (json!({"state": "away"}), Level::Ok, "no socket of Codex's"),
        ] {
            let said = said(&new, &told);
            let last = said.last().unwrap();
            assert_eq!(last.0, level, "{last:?}");
            assert!(last.1.contains(words), "{last:?}");
        }
        let mut bare = codex(Program::Version("0.166.0".to_owned()));
        bare.without_daemon = vec![7];
        bare.homes[0].is_temporary = true;
        let said = said(&bare, &json!({"state": "away"}));
        assert!(
            said[0].1.contains("--no-daemon") && said[0].1.contains("process 7"),
            "{said:?}"
        );
        assert!(said[1].1.contains("temporary"), "{said:?}");
    }

    #[test]
    fn nothing_is_said_to_whoever_has_no_codex() {
        let mut none = codex(Program::Absent);
        none.homes[0].exists = false;
        assert!(check(&none, None).is_empty());
        let old = codex(Program::Version("0.99.0".to_owned()));
        assert!(
            said(&old, &json!({"state": "away"}))[0]
                .1
                .contains("only since 0.166")
        );
        let mut off = codex(Program::Silent);
        off.homes.clear();
        assert!(check(&off, None)[0].text.en.contains("NOD_CODEX=off"));
    }
}
