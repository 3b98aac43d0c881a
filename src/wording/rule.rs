//! What a rule covers, as a sentence: no less than Claude Code will let pass.

use crate::approvals::request::Origin;
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
        Until::SessionEnd => Text::made(
            format!("本次会话内，Claude 可直接{zh}"),
            format!("Until this session ends Claude may {en}"),
        ),
    }
}
