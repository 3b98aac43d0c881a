//! `nod man`: the manual page, made from the command line and the table of
//! settings. Pure but for printing.

use crate::cli::Quit;
use clap::{Arg, Command};
use std::fmt::Write as _;

use super::help;
use crate::cli::output;
use crate::cli::wording::Words;
use crate::config::SETTINGS;
use crate::text::Text;

pub(in crate::cli) fn run(nod: &Command, words: Words) {
    output::text(&page(nod, words));
}

static FILES: [(&str, Text); 4] = [
    (
        "~/.config/nod/.env",
        Text::new(
            "设置；环境变量和 --env-file 指明的文件优先于它。",
            "Settings; the environment and a file that --env-file names win over it.",
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

fn page(nod: &Command, words: Words) -> String {
    let version = crate::version::NUMBER;
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
    let _ = writeln!(out, ".SH {files}");
    for (name, text) in &FILES {
        item(&mut out, name, text.get(words.0));
    }
    let _ = writeln!(out, ".SH {exits}");
    for of_one_code in Quit::ALL.chunk_by(|one, next| one.code() == next.code()) {
        let code = of_one_code[0].code().to_string();
        let meanings = of_one_code.iter().map(|quit| quit.meaning());
        let meanings: Vec<String> = meanings.map(|text| text.get(words.0).to_owned()).collect();
        item(&mut out, &code, &meanings.join(words.pick("", " ")));
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
