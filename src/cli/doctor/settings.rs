//! What the settings give, judged. Pure.

use super::super::wording::Words;
use super::finding::{Finding, Probe};
use crate::config::{BadLine, SendMode, SettingProblem, UnreadFile};
use crate::text::{Lang, Text};

/// What the set-up asks for.
const APP: [&str; 2] = ["FEISHU_APP_ID", "FEISHU_APP_SECRET"];

/// What the settings give.
pub(super) struct Settings {
    pub(super) wrong: Vec<WrongSetting>,
    pub(super) unknown: Vec<UnknownSetting>,
    /// Where the app's id and its secret stand, if apart.
    pub(super) apart: Option<(Text, Text)>,
    pub(super) mode: SendMode,
    pub(super) has_owner: bool,
    pub(super) has_chat: bool,
    /// They are a gateway's, which decides nothing and has no daemon.
    pub(super) is_gateway: bool,
}

impl Settings {
    /// Whether nothing is wrong but that the app is not set.
    pub(super) fn lacks_only_the_app(&self) -> bool {
        let is_missing = |one: &WrongSetting| matches!(&one.problem, SettingProblem::Missing { name, .. } if APP.contains(name));
        !self.is_gateway && !self.wrong.is_empty() && self.wrong.iter().all(is_missing)
    }

    /// The settings that have no value and need one.
    pub(super) fn missing(&self) -> impl Iterator<Item = &'static str> {
        self.wrong.iter().filter_map(|one| match &one.problem {
            SettingProblem::Missing { name, .. } => Some(*name),
            _ => None,
        })
    }

    /// Whether every settings file could be read.
    fn is_whole(&self) -> bool {
        let is_broken = |one: &WrongSetting| matches!(one.problem, SettingProblem::BrokenFile(_));
        !self.wrong.iter().any(is_broken)
    }
}

pub(super) struct WrongSetting {
    pub(super) problem: SettingProblem,
    /// Where it is set, as it may be shown.
    pub(super) place: Option<Text>,
}

/// A name that is set and is no setting.
pub(super) struct UnknownSetting {
    pub(super) name: String,
    pub(super) nearest: Option<&'static str>,
    pub(super) place: Text,
}

pub(super) fn check(settings: &Settings) -> Vec<Finding> {
    let mut findings: Vec<Finding> = settings.wrong.iter().map(setting).collect();
    if findings.is_empty() {
        findings.push(Probe("settings").ok("设置可用", "the settings can be used"));
    }
    findings.extend(settings.unknown.iter().map(unknown));
    findings.extend(settings.apart.iter().map(apart));
    // In webhook mode whoever holds a link decides; an unreadable file may name
    // the owner.
    let needs_nobody = settings.mode == SendMode::Webhook || settings.is_gateway;
    if needs_nobody || settings.has_owner || !settings.is_whole() {
        return findings;
    }
    findings.push(if settings.has_chat {
        Probe("owner").warning(
            "没有设置 `FEISHU_OWNER_ID`：卡片会发到群里，但没有所有者可以决定",
            "`FEISHU_OWNER_ID` is not set: cards go to the group, and there is no owner to decide",
        )
    } else {
        Probe("owner")
            .problem(
                "没有设置谁来决定，请求只会留在终端",
                "nobody is set to decide: requests stay in the terminal",
            )
            .fix(
                "运行 `nod setup`，或设置 `FEISHU_OWNER_ID`",
                "run `nod setup`, or set `FEISHU_OWNER_ID`",
            )
    });
    findings
}

fn setting(wrong: &WrongSetting) -> Finding {
    let said = |words: Words| words.problem(&wrong.problem);
    let finding = Probe("settings").problem(said(Words(Lang::Zh)), said(Words(Lang::En)));
    match (&wrong.problem, &wrong.place) {
        (SettingProblem::BrokenFile(file), Some(Text { zh, en })) => match &file.why {
            UnreadFile::Line(BadLine { number, .. }) => finding.fix(
                format!("在{zh}改正第 {number} 行"),
                format!("correct line {number} of {en}"),
            ),
            UnreadFile::TooLarge | UnreadFile::System(_) => finding,
        },
        (_, Some(Text { zh, en })) => {
            finding.fix(format!("在{zh}改正"), format!("correct it in {en}"))
        }
        (SettingProblem::Missing { name, .. }, None) if !APP.contains(name) => finding.fix(
            format!("`nod settings set {name}`"),
            format!("`nod settings set {name}`"),
        ),
        (SettingProblem::Missing { .. }, None) => {
            finding.fix("运行 `nod setup`", "run `nod setup`")
        }
        _ => finding,
    }
}

fn unknown(unknown: &UnknownSetting) -> Finding {
    let (name, Text { zh, en }) = (&unknown.name, &unknown.place);
    let finding = Probe("unknown-setting").warning(
        format!("nod 没有名为 `{name}` 的设置，它不起作用"),
        format!("nod has no setting `{name}`: it is ignored"),
    );
    match unknown.nearest {
        Some(meant) => finding.fix(
            format!("若指 `{meant}`，在{zh}改名"),
            format!("if `{meant}` is meant, rename it in {en}"),
        ),
        None => finding.fix(
            format!("在{zh}删除它；所有设置见 `nod settings`"),
            format!("take it out of {en}; `nod settings` lists every one"),
        ),
    }
}

fn apart((id, secret): &(Text, Text)) -> Finding {
    Probe("mixed-app").warning(format!(
            "`FEISHU_APP_ID` 在{}，`FEISHU_APP_SECRET` 却在{}：可能不属于同一个应用",
            id.zh, secret.zh
        ),
        format!(
            "`FEISHU_APP_ID` is from {} and `FEISHU_APP_SECRET` from {}: they may be of two apps",
            id.en, secret.en
        ),
    )
    .fix("把两者放在同一处", "put both into one place")
}
