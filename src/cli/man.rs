//! `nod man`: the manual page, made from the command line and the table of
//! settings. Pure but for printing.

use clap::{Arg, Command};
use std::fmt::Write as _;

use super::{Outcome, output};
use crate::config::SETTINGS;

#[expect(
    clippy::unnecessary_wraps,
    reason = "every command has one outcome type"
)]
pub(super) fn run(mut nod: Command) -> Outcome {
    nod.build();
    output::text(&page(&nod));
    Ok(())
}

const FILES: [(&str, &str); 4] = [
    (
        "~/.config/nod/.env",
        "Settings; the environment and a .env in the working directory win over it.",
    ),
    (
        "~/.local/state/nod/nod.db",
        "Requests, decisions, the audit, rules that taps have left.",
    ),
    (
        "$XDG_RUNTIME_DIR/nod/nod.sock",
        "Where hooks reach the daemon; in the state directory where there is no runtime directory.",
    ),
    (
        "~/.claude/settings.json",
        "Claude Code's user settings, where nod setup puts its hooks.",
    ),
];

const EXITS: [(&str, &str); 6] = [
    ("0", "Done; for nod ask, answered or confirmed."),
    (
        "1",
        "Failed; for nod ask, declined; for nod doctor, a problem was found.",
    ),
    ("2", "The command line was wrong."),
    (
        "3",
        "For nod status, only a person can bring the connection back; for nod ask, nobody answered in time; for nod service status, it does not run.",
    ),
    (
        "4",
        "For nod ask, nobody can be asked; for nod setup, everything is in place and no tap has proven it.",
    ),
    (
        "75, 78",
        "Another daemon runs; the settings cannot be used.",
    ),
];

fn page(nod: &Command) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut out = format!(".TH NOD 1 \"\" \"nod {version}\" \"User Commands\"\n");
    let about = nod.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(out, ".SH NAME\nnod \\- {}", escaped(&about));
    let _ = writeln!(
        out,
        ".SH SYNOPSIS\n.B nod\n.I command\n[\\fIoptions\\fR]\n.SH COMMANDS"
    );
    commands(&mut out, "nod", nod);
    out.push_str(".SH ENVIRONMENT\nEvery setting may also stand in a settings file, see FILES.\n");
    for setting in SETTINGS {
        let text = format!("{}. Accepts {}.", setting.about, setting.accepts);
        item(&mut out, setting.name, &text);
    }
    for (heading, items) in [("FILES", &FILES[..]), ("EXIT STATUS", &EXITS[..])] {
        let _ = writeln!(out, ".SH {heading}");
        for (name, text) in items {
            item(&mut out, name, text);
        }
    }
    out
}

fn commands(out: &mut String, name: &str, command: &Command) {
    for sub in command.get_subcommands() {
        if sub.is_hide_set() || sub.get_name() == "help" {
            continue;
        }
        let name = format!("{name} {}", sub.get_name());
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(out, ".SS {}\n{}.", escaped(&name), escaped(&about));
        for argument in sub
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
        {
            let help = argument.get_help().map(ToString::to_string);
            item(out, &usage(argument), &help.unwrap_or_default());
        }
        if let Some(after) = sub.get_after_help() {
            let _ = writeln!(out, ".PP\n{}", escaped(&after.to_string()));
        }
        commands(out, &name, sub);
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
