//! What a rule covers, as a sentence: no less than Claude Code will let pass.

use crate::approvals::request::Origin;
use crate::rules::codex::{GrantUntil, Granted, WantedGrant};
use crate::rules::{Covers, Rule};
use crate::text::Text;
use crate::text::escape::short;

/// More rules than any ending has that was ever written down.
pub const MAX_RULES: usize = 8;

/// How long a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// It is taken back.
    Undone,
    SessionEnd,
    TurnEnd,
}

/// One sentence for each rule.
pub fn sentences(rules: &[Rule], origin: &Origin, until: Until) -> impl Iterator<Item = Text> {
    // In a subdirectory or a worktree the rule holds in the whole repository.
    let place = origin.caller.rules_in.as_ref().unwrap_or(&origin.project);
    let place = place.file_name().unwrap_or(place.as_os_str());
    let project = short(&place.to_string_lossy(), 32);
    rules.iter().take(MAX_RULES).map(move |rule| {
        let shown = Rule {
            tool: short(&rule.tool, 200),
            content: rule.content.as_ref().map(|content| short(content, 2_200)),
        };
        sentence(shown.covers(), &project, until)
    })
}

/// "From now on Claude may run exactly `npm test`, in shop".
pub fn sentence(covers: Covers<'_>, project: &str, until: Until) -> Text {
    let (zh, en) = match covers {
        Covers::Prefix(words) => {
            return Text::made(
                format!(
                    "今后 Codex 可在任何项目中直接运行以 `{words}` 开头的任何命令，且不受沙箱限制"
                ),
                format!(
                    "From now on Codex may run anything that begins with `{words}`, in any project and outside its sandbox"
                ),
            );
        }
        Covers::Same => {
            return Text::new(
                "本次会话内，同样的操作 Codex 不再询问",
                "Until this session ends Codex does not ask for the same again",
            );
        }
        Covers::LaterChange(path) => {
            return Text::made(
                format!("本次会话内，对 `{path}` 的任何后续修改，Codex 都不再询问，内容不限"),
                format!(
                    "Codex does not ask about any later change of `{path}` in this session, whatever it is"
                ),
            );
        }
        Covers::Granted(granted) => {
            return permits(&whose(until), &[granted]);
        }
        Covers::Command(command) => (
            format!("在 {project} 中运行 `{command}`，仅此一条命令"),
            format!("run exactly `{command}`, in {project}"),
        ),
        Covers::Beginning(words) => (
            format!("在 {project} 中运行以 `{words}` 开头的任何命令"),
            format!("run anything that begins with `{words}`, in {project}"),
        ),
        Covers::Change(path) => (
            format!("修改文件 `{path}`，仅此一个文件，内容不限"),
            format!("change the file `{path}` in any way, and no other"),
        ),
        Covers::Read(path) => (
            format!("读取文件 `{path}`，仅此一个文件"),
            format!("read the file `{path}`, and no other"),
        ),
        Covers::Host(host) => (
            format!("在 {project} 中访问 {host} 的任何网址"),
            format!("fetch any address on {host}, in {project}"),
        ),
        Covers::AnySearch => (
            format!("在 {project} 中搜索网络，搜索内容不限"),
            format!("search the web for anything, in {project}"),
        ),
        Covers::Tool(tool) => (
            format!("在 {project} 中使用 {tool}，该工具的任何参数均可"),
            format!("use {tool} with any input of this tool, in {project}"),
        ),
        Covers::Pattern => (
            format!("在 {project} 中执行符合以下规则的任何操作"),
            format!("do anything that matches the rule below, in {project}"),
        ),
    };
    match until {
        Until::Undone => Text::made(
            format!("今后 Claude 可直接{zh}"),
            format!("From now on Claude may {en}"),
        ),
        Until::SessionEnd | Until::TurnEnd => Text::made(
            format!("本次会话内，Claude 可直接{zh}"),
            format!("Until this session ends Claude may {en}"),
        ),
    }
}

/// Which commands a permission of Codex's is for, and until when.
fn whose(until: Until) -> Text {
    match until {
        Until::TurnEnd => Text::new(
            "本轮剩余时间内，所有命令都",
            "For the rest of this turn every command",
        ),
        Until::SessionEnd | Until::Undone => Text::new(
            "本次会话内，所有命令都",
            "Until this session ends every command",
        ),
    }
}

/// "For the rest of this turn every command may write under / and use the
/// network".
pub fn grant(grant: &WantedGrant<'_>) -> Text {
    let places = grant.places.iter().map(|place| {
        if place.written {
            Granted::Write(place.path)
        } else {
            Granted::Read(place.path)
        }
    });
    let all: Vec<_> = places
        .chain(grant.network.then_some(Granted::Network))
        .collect();
    let whose = match grant.until {
        GrantUntil::CallEnd => Text::new("这条命令", "This command"),
        GrantUntil::TurnEnd => whose(Until::TurnEnd),
    };
    permits(&whose, &all)
}

fn permits(whose: &Text, granted: &[Granted<'_>]) -> Text {
    let said = granted.iter().map(|granted| match granted {
        Granted::Write(path) => {
            let path = short(path, 300);
            (
                format!("写入 {path} 之下的文件"),
                format!("write under {path}"),
            )
        }
        Granted::Read(path) => {
            let path = short(path, 300);
            (
                format!("读取 {path} 之下的文件"),
                format!("read under {path}"),
            )
        }
        Granted::Network => ("使用网络".to_owned(), "use the network".to_owned()),
    });
    let (zh, en): (Vec<_>, Vec<_>) = said.unzip();
    let en = match &en[..] {
        [many @ .., last] if !many.is_empty() => format!("{} and {last}", many.join(", ")),
        one => one.concat(),
    };
    Text::made(
        format!("{}可以{}", whose.zh, zh.join("、")),
        format!("{} may {en}", whose.en),
    )
}
