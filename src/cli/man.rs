//! `nod man`: the manual page, made from the command line and the table of
//! settings. Pure but for printing.

use clap::{Arg, Command};
use std::fmt::Write as _;

use super::wording::Words;
use super::{Outcome, help, output};
use crate::config::SETTINGS;
use crate::wording::Text;

#[expect(
    clippy::unnecessary_wraps,
    reason = "every command has one outcome type"
)]
pub(super) fn run(nod: &Command, words: Words) -> Outcome {
    output::text(&page(nod, words));
    Ok(())
}

static FILES: [(&str, Text); 4] = [
    (
        "~/.config/nod/.env",
        Text::new(
            "设置；环境变量和当前目录的 .env 优先于它。",
            "Settings; the environment and a .env in the working directory win over it.",
        ),
    ),
    (
        "~/.local/state/nod/nod.db",
        Text::new(
            "请求、决定、审计记录，以及点击“始终允许”留下的规则。",
            "Requests, decisions, the audit, rules that taps have left.",
        ),
    ),
    (
        "$XDG_RUNTIME_DIR/nod/nod.sock",
        Text::new(
            "hook 与守护进程通信的套接字；没有运行时目录时在状态目录中。",
            "Where hooks reach the daemon; in the state directory where there is no runtime directory.",
        ),
    ),
    (
        "~/.claude/settings.json",
        Text::new(
            "Claude Code 的用户设置，nod setup 把 hook 写在这里。",
            "Claude Code's user settings, where nod setup puts its hooks.",
        ),
    ),
];

static EXITS: [(&str, Text); 7] = [
    (
        "0",
        Text::new(
            "成功；对 nod ask：已回答，或选“是”。",
            "Done; for nod ask, answered or confirmed.",
        ),
    ),
    (
        "1",
        Text::new(
            "失败；对 nod ask：不回答，或选“否”；对 nod doctor：发现问题。",
            "Failed; for nod ask, declined; for nod doctor, a problem was found.",
        ),
    ),
    (
        "2",
        Text::new("命令行有误。", "The command line was wrong."),
    ),
    (
        "3",
        Text::new(
            "对 nod status：连接需要人来处理；对 nod ask：无人及时回答；对 nod service status：守护进程没有运行。",
            "For nod status, only a person can bring the connection back; for nod ask, nobody answered in time; for nod service status, it does not run.",
        ),
    ),
    (
        "4",
        Text::new(
            "对 nod ask：无法提问；对 nod setup：全部设置好了，但还没有证明点击能到达。",
            "For nod ask, nobody can be asked; for nod setup, everything is in place and no tap has proven it.",
        ),
    ),
    (
        "70",
        Text::new(
            "nod 自身出错，请反馈。",
            "A fault in nod itself; please report it.",
        ),
    ),
    (
        "75, 78",
        Text::new(
            "另一个守护进程在运行；设置不可用。",
            "Another daemon runs; the settings cannot be used.",
        ),
    ),
];

fn page(nod: &Command, words: Words) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut out = format!(
        ".TH NOD 1 \"\" \"nod {version}\" \"{}\"\n",
        words.man_kind()
    );
    let about = nod.get_about().map(ToString::to_string).unwrap_or_default();
    let [name, synopsis, commands_of, environment, files, exits] = words.man_headings();
    let _ = writeln!(out, ".SH {name}\nnod \\- {}", escaped(&about));
    let (command, options) = (words.man_command(), words.man_options());
    let _ = writeln!(
        out,
        ".SH {synopsis}\n.B nod\n.I {command}\n[\\fI{options}\\fR]\n.SH {commands_of}"
    );
    commands(&mut out, "nod", nod, words);
    let _ = writeln!(out, ".SH {environment}\n{}", words.man_settings());
    for setting in SETTINGS {
        item(&mut out, setting.name, &words.setting(setting));
    }
    for (heading, items) in [(files, &FILES[..]), (exits, &EXITS[..])] {
        let _ = writeln!(out, ".SH {heading}");
        for (name, text) in items {
            item(&mut out, name, text.get(words.0));
        }
    }
    out
}

fn commands(out: &mut String, name: &str, command: &Command, words: Words) {
    for sub in command.get_subcommands() {
        if sub.is_hide_set() || sub.get_name() == "help" {
            continue;
        }
        let name = format!("{name} {}", sub.get_name());
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        let about = words.sentence(&about);
        let _ = writeln!(out, ".SS {}\n{}", escaped(&name), escaped(&about));
        for argument in sub
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
        {
            let help = help::lines(argument, &name, words);
            let (first, values) = help.split_first().expect("every argument has a line");
            item(out, &usage(argument), first);
            for value in values {
                let _ = writeln!(out, ".br\n{}", escaped(value));
            }
        }
        if let Some(after) = sub.get_after_help() {
            let _ = writeln!(out, ".PP\n{}", escaped(&after.to_string()));
        }
        commands(out, &name, sub, words);
    }
}

/// `-f, --flag VALUE`, or the name of what stands without a flag.
fn usage(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let flags: Vec<String> = short.into_iter().chain(long).collect();
    let takes = argument.get_action().takes_values();
    let values = argument.get_value_names().unwrap_or_default();
    let values: Vec<&str> = values.iter().map(clap::builder::Str::as_str).collect();
    let values = if takes {
        values.join(" ")
    } else {
        String::new()
    };
    format!("{} {values}", flags.join(", ")).trim().to_owned()
}

fn item(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, ".TP\n.B {}\n{}", escaped(name), escaped(text));
}

/// Nothing in the text may be taken for a request to the typesetter.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = text.lines().map(|line| {
        if line.starts_with(['.', '\'']) {
            format!("\\&{line}")
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_taken_for_a_request() {
        assert_eq!(
            escaped(".env\n'x'\na\\b --c"),
            "\\&.env\n\\&'x'\na\\eb \\-\\-c"
        );
    }
}
