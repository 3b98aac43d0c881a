//! A command line that cannot be carried out, told in the reader's language
//! and nod's own form. Pure.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Arg, Command};

use super::help;
use crate::cli::wording::Words;
use crate::config;

/// What other programs call it, and what a slip of the fingers would not lead to.
const CALLED_ELSEWHERE: [(&str, Option<&str>); 6] = [
    ("start", Some("nod daemon")),
    ("init", Some("nod setup")),
    ("config", Some("nod settings")),
    ("version", Some("nod --version")),
    ("uninstall", Some("nod setup --uninstall")),
    ("login", None),
];

/// What is wrong, and what would be right.
pub(in crate::cli) struct WrongUsage {
    pub(in crate::cli) why: String,
    pub(in crate::cli) hint: String,
}

pub(in crate::cli) fn wrong(nod: &Command, error: &Error, words: Words) -> WrongUsage {
    let named = text(error, ContextKind::InvalidArg);
    let arg = find(nod, &named).map_or_else(|| named.clone(), shown);
    let value = text(error, ContextKind::InvalidValue);
    let why = match error.kind() {
        ErrorKind::UnknownArgument => words.unknown_argument(&arg),
        ErrorKind::InvalidSubcommand => {
            words.unknown_command(&text(error, ContextKind::InvalidSubcommand))
        }
        ErrorKind::InvalidValue if value.is_empty() => words.value_missing(&arg),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => words.value_wrong(&arg, &value),
        ErrorKind::NoEquals => words.value_missing(&arg),
        ErrorKind::TooManyValues => words.value_too_many(&arg, &value),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => words.values_too_few(&arg),
        ErrorKind::ArgumentConflict => {
            words.not_together(&arg, &text(error, ContextKind::PriorArg))
        }
        ErrorKind::MissingRequiredArgument => words.argument_missing(&arg),
        ErrorKind::MissingSubcommand => words.command_missing().to_owned(),
        ErrorKind::InvalidUtf8 => words.not_text().to_owned(),
        _ => words.not_understood().to_owned(),
    };
    let accepted = match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::TooFewValues => {
            accepted(nod, &named, words)
        }
        _ => None,
    };
    let nearest = find(nod, &named).and_then(|arg| nearest(arg, &value));
    let accepted = match nearest {
        Some(nearest) => Some(words.did_you_mean(&nearest)),
        None => accepted,
    };
    let meant = match error.kind() {
        ErrorKind::InvalidSubcommand if is_stop(error) => Some(words.stop_hint().to_owned()),
        _ => meant(nod, error).map(|meant| words.did_you_mean(&meant)),
    };
    let hint = accepted
        .or(meant)
        .unwrap_or_else(|| match usage(error, words) {
            Some(usage) => words.used_so(&usage),
            None => words.help_hint().to_owned(),
        });
    WrongUsage { why, hint }
}

/// What the error says about one thing, without what could move the cursor.
fn text(error: &Error, kind: ContextKind) -> String {
    let text = match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(" "),
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        _ => String::new(),
    };
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

fn usage(error: &Error, words: Words) -> Option<String> {
    let usage = text(error, ContextKind::Usage);
    let usage = usage.trim_start_matches("Usage:").trim();
    (!usage.is_empty()).then(|| words.and_help(usage))
}

/// nod has no command that stops the daemon, and none that is near does.
fn is_stop(error: &Error) -> bool {
    text(error, ContextKind::InvalidSubcommand) == "stop"
}

/// The command or argument that was probably meant, as it is typed.
fn meant(nod: &Command, error: &Error) -> Option<String> {
    let usage = text(error, ContextKind::Usage);
    let words = usage.trim_start_matches("Usage:").split_whitespace();
    let path = words.take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
    let path: Vec<&str> = path.collect();
    let below = path.iter().skip(1);
    let command = below.fold(nod, |at, name| at.find_subcommand(name).unwrap_or(at));
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = text(error, ContextKind::InvalidSubcommand);
            let elsewhere = CALLED_ELSEWHERE.iter().find(|(called, _)| *called == name);
            if let Some((_, meant)) = elsewhere.filter(|_| path.len() < 2) {
                return meant.map(str::to_owned);
            }
            let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
            let meant = config::meant(&name, visible.map(Command::get_name))?;
            Some([&path[..], &[meant]].concat().join(" "))
        }
        ErrorKind::UnknownArgument => {
            let name = text(error, ContextKind::InvalidArg);
            let flags = command.get_arguments().filter_map(Arg::get_long);
            let meant = config::meant(name.strip_prefix("--")?, flags)?;
            Some(format!("--{meant}"))
        }
        _ => None,
    }
}

/// The value that was probably meant, where there are too many to list them.
fn nearest(arg: &Arg, value: &str) -> Option<String> {
    let known = arg.get_possible_values();
    let names = || known.iter().map(clap::builder::PossibleValue::get_name);
    let mut in_other_letters = names().filter(|name| name.eq_ignore_ascii_case(value));
    let found = in_other_letters.next();
    let found = found.or_else(|| config::meant(value, names()))?;
    arg.is_hide_possible_values_set().then(|| found.to_owned())
}

/// The help of the argument clap names, which says what it takes.
fn accepted(nod: &Command, named: &str, words: Words) -> Option<String> {
    let arg = find(nod, named)?;
    let lines = help::lines(arg, "nod", words);
    let mut first = lines.into_iter().next()?;
    let known = arg.get_possible_values();
    let told = known.iter().filter(|value| value.get_help().is_some());
    let told: Vec<&str> = told.map(clap::builder::PossibleValue::get_name).collect();
    if !told.is_empty() {
        first.push_str(&words.one_of(&told));
    }
    Some(words.takes(&shown(arg), &first))
}

/// An argument as its help shows it, without the short flag.
fn shown(arg: &Arg) -> String {
    let shown = help::shown(arg);
    match shown.find("--") {
        Some(long) => shown[long..].to_owned(),
        None => shown,
    }
}

fn find<'a>(command: &'a Command, named: &str) -> Option<&'a Arg> {
    let mut args = command.get_arguments();
    let below = || command.get_subcommands().find_map(|sub| find(sub, named));
    args.find(|arg| arg.to_string() == named).or_else(below)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;
    use crate::text::Lang;

    fn refused(line: &str, lang: Lang) -> (String, String) {
        let words = Words(lang);
        let mut nod = help::told(Cli::command(), words);
        let error = nod
            .try_get_matches_from_mut(line.split(' '))
            .expect_err("the line is wrong");
        let wrong = wrong(&nod, &error, words);
        (wrong.why, wrong.hint)
    }

    #[test]
    fn each_mistake_is_told_in_both_languages_with_what_would_be_right() {
        for (line, en, zh) in [
            (
                "nod frob",
                (
                    "no such command: `frob`",
                    "usage: nod [OPTIONS] <COMMAND>; `--help` tells more",
                ),
                (
                    "没有 `frob` 这个命令",
                    "写法是 nod [选项] <命令>；加 `--help` 查看说明",
                ),
            ),
            (
                "nod status --foo",
                (
                    "no such argument: `--foo`",
                    "usage: nod status [OPTIONS]; `--help` tells more",
                ),
                (
                    "没有 `--foo` 这个参数",
                    "写法是 nod status [选项]；加 `--help` 查看说明",
                ),
            ),
            (
                "nod completions ksh",
                (
                    "`<SHELL>` cannot be `ksh`",
                    "`<SHELL>`: Which shell it is for (`bash`, `zsh` or `fish`)",
                ),
                (
                    "`<shell>` 不能是 `ksh`",
                    "`<shell>`：为哪个 shell 输出（`bash`、`zsh` 或 `fish`）",
                ),
            ),
            (
                "nod ask --timeout 0 confirm q",
                (
                    "`--timeout <SECONDS>` cannot be `0`",
                    "`--timeout <SECONDS>`: How many seconds to wait, 1 to 604800; `PERMISSION_REQUEST_TIMEOUT` unless given",
                ),
                (
                    "`--timeout <秒>` 不能是 `0`",
                    "`--timeout <秒>`：等待的秒数，1 到 604800；默认为 `PERMISSION_REQUEST_TIMEOUT`",
                ),
            ),
            (
                "nod audit --last",
                (
                    "`--last <COUNT>` needs a value",
                    "`--last <COUNT>`: How many of the newest lines (50 unless given)",
                ),
                (
                    "`--last <数量>` 后面缺少值",
                    "`--last <数量>`：显示最近多少条（默认 50）",
                ),
            ),
            (
                "nod status --json --watch",
                (
                    "`--json` cannot be used together with `--watch`",
                    "usage: nod status [OPTIONS]; `--help` tells more",
                ),
                (
                    "`--json` 不能与 `--watch` 同时使用",
                    "写法是 nod status [选项]；加 `--help` 查看说明",
                ),
            ),
            (
                "nod rules undo",
                (
                    "`<NUMBER>` is missing",
                    "usage: nod rules undo [OPTIONS] <NUMBER>; `--help` tells more",
                ),
                (
                    "缺少 `<编号>`",
                    "写法是 nod rules undo [选项] <编号>；加 `--help` 查看说明",
                ),
            ),
            (
                "nod ask choice q a",
                (
                    "`<OPTION>…` needs more values",
                    "`<OPTION>…`: What can be chosen, 2 to 50",
                ),
                ("`<选项>…` 的数量不够", "`<选项>…`：选项，2 到 50 个"),
            ),
        ] {
            for (lang, (why, hint)) in [(Lang::En, en), (Lang::Zh, zh)] {
                let told = refused(line, lang);
                assert_eq!(told, (why.to_owned(), hint.to_owned()), "{line}");
            }
        }
    }

    #[test]
    fn a_slip_is_answered_with_what_was_meant() {
        for (line, en, zh) in [
            (
                "nod stauts",
                "did you mean `nod status`?",
                "是不是想写 `nod status`？",
            ),
            (
                "nod stop",
                "`nod status` shows the daemon's process: `kill` it; a service ends with `nod service uninstall`",
                "`nod status` 显示守护进程的进程号，用 `kill` 结束它；后台服务用 `nod service uninstall`",
            ),
            (
                "nod start",
                "did you mean `nod daemon`?",
                "是不是想写 `nod daemon`？",
            ),
            (
                "nod version",
                "did you mean `nod --version`?",
                "是不是想写 `nod --version`？",
            ),
            (
                "nod login",
                "usage: nod [OPTIONS] <COMMAND>; `--help` tells more",
                "写法是 nod [选项] <命令>；加 `--help` 查看说明",
            ),
            (
                "nod service instal",
                "did you mean `nod service install`?",
                "是不是想写 `nod service install`？",
            ),
            (
                "nod settings set nod_lang en",
                "did you mean `NOD_LANG`?",
                "是不是想写 `NOD_LANG`？",
            ),
            (
                "nod settings set NOD_LNAG en",
                "did you mean `NOD_LANG`?",
                "是不是想写 `NOD_LANG`？",
            ),
            (
                "nod settings set FEISHU_OWNR x",
                "did you mean `FEISHU_OWNER_ID`?",
                "是不是想写 `FEISHU_OWNER_ID`？",
            ),
            (
                "nod settings set NOD_TOOL 9",
                "did you mean `NOD_TOOL_TIMEOUT`?",
                "是不是想写 `NOD_TOOL_TIMEOUT`？",
            ),
            (
                "nod settings set OWNER_ID x",
                "did you mean `FEISHU_OWNER_ID`?",
                "是不是想写 `FEISHU_OWNER_ID`？",
            ),
            (
                "nod audit --lsat 3",
                "did you mean `--last`?",
                "是不是想写 `--last`？",
            ),
        ] {
            assert_eq!(refused(line, Lang::En).1, en);
            assert_eq!(refused(line, Lang::Zh).1, zh);
        }
    }
}
