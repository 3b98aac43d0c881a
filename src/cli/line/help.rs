//! The command line in the reader's language: what every command, argument and
//! value is called, and the page `--help` shows of it. Pure.

use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;
use std::fmt::Write as _;

use crate::cli::wording::{Words, help};
use crate::text::{Lang, columns};

/// The whole command line, built, with every text in this language.
pub(in crate::cli) fn told(mut nod: Command, words: Words) -> Command {
    nod.build();
    let nod = match words.0 {
        Lang::Zh => in_chinese(nod, "nod"),
        Lang::En => in_english(nod),
    };
    with_pages(nod, "nod", words)
}

/// `nod help --help` as `nod help help`: clap takes whatever stands behind `help`
/// for a command's name.
pub(in crate::cli) fn asked(line: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let line: Vec<OsString> = line.collect();
    if line.get(1).is_none_or(|verb| verb != "help") {
        return line;
    }
    let is_flag = |word: &OsString| word == "--help" || word == "-h";
    let mut names: Vec<OsString> = line.iter().filter(|word| !is_flag(word)).cloned().collect();
    if names.len() == 2 && names.len() < line.len() {
        names.push("help".into());
    }
    names
}

/// Only what clap itself would say is put in nod's own words.
fn in_english(command: Command) -> Command {
    command
        .mut_args(|arg| match arg.get_id().as_str() {
            "help" => described(arg, "Show this help"),
            "version" => described(arg, "Show the version"),
            _ => arg,
        })
        .mut_subcommands(|sub| match sub.get_name() {
            "help" => sub.about("Show the help of a command"),
            _ => in_english(sub),
        })
}

fn in_chinese(command: Command, name: &str) -> Command {
    let about = |command: Command, name: &str| match help::about(name, "") {
        Some(about) => command.about(about),
        None => command,
    };
    let command = about(command, name);
    let command = match help::about(name, ", after") {
        Some(after) if command.get_after_help().is_some() => command.after_help(after),
        _ => command,
    };
    command
        .mut_args(|arg| {
            let told = help::about(name, &place(&arg));
            let values = value_names(&arg);
            let values = values.iter().map(|value| help::value(value));
            let arg = match values.collect::<Option<Vec<_>>>() {
                Some(values) if !values.is_empty() => arg.value_names(values),
                _ => arg,
            };
            match told {
                Some(told) => described(arg, told),
                None => arg,
            }
        })
        .mut_subcommands(|sub| {
            if sub.get_name() == "help" {
                return about(sub, "nod help");
            }
            let name = format!("{name} {}", sub.get_name());
            in_chinese(sub, &name)
        })
}

fn described(arg: Arg, text: &'static str) -> Arg {
    arg.help(text).long_help(text)
}

/// Where an argument stands in the table: ` --flag` or ` <name>`.
fn place(arg: &Arg) -> String {
    match arg.get_long() {
        Some(flag) => format!(" --{flag}"),
        None => format!(" <{}>", arg.get_id()),
    }
}

fn value_names(arg: &Arg) -> Vec<String> {
    if !arg.get_action().takes_values() {
        return Vec::new();
    }
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().map(ToString::to_string).collect()
}

/// Gives every command its own page and line of use, in place of clap's.
fn with_pages(command: Command, name: &str, words: Words) -> Command {
    let command = command.mut_subcommands(|sub| {
        if sub.get_name() == "help" {
            let usage = format!("{name} help [{}]…", words.command_here());
            let page = head(&sub, &usage, words);
            return sub.override_usage(usage).override_help(page);
        }
        let name = format!("{name} {}", sub.get_name());
        with_pages(sub, &name, words)
    });
    let usage = usage(&command, name, words);
    let page = match name {
        "nod" => first_page(&command, &usage, words),
        _ => page(&command, &usage, name, words),
    };
    command.override_usage(usage).override_help(page)
}

fn usage(command: &Command, name: &str, words: Words) -> String {
    let mut usage = name.to_owned();
    let is_own = |arg: &&Arg| !matches!(arg.get_id().as_str(), "help" | "version");
    let mut flags = command.get_opts().chain(flags(command));
    if flags.any(|arg| is_own(&arg)) {
        usage.push_str(words.options_here());
    }
    for arg in command.get_positionals() {
        let named = shown(arg);
        usage.push(' ');
        usage.push_str(&if arg.is_required_set() {
            named
        } else {
            named.replace('<', "[").replace('>', "]")
        });
    }
    if command.has_subcommands() {
        let word = words.command_here();
        let _ = if command.is_subcommand_required_set() {
            write!(usage, " <{word}>")
        } else {
            write!(usage, " [{word}]")
        };
    }
    usage
}

fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let takes_none = |arg: &&Arg| !arg.is_positional() && !arg.get_action().takes_values();
    command.get_arguments().filter(takes_none)
}

fn head(command: &Command, usage: &str, words: Words) -> String {
    let usage_heading = words.usage_heading();
    format!("{}\n\n{usage_heading}{usage}\n", about(command))
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    about.unwrap_or_default()
}

/// What `nod` alone shows: the commands by what they are for, one screen.
fn first_page(nod: &Command, usage: &str, words: Words) -> String {
    let mut out = head(nod, usage, words);
    out.push('\n');
    let room = help::GROUPS.iter().flat_map(|group| group.rows);
    let room = room.map(|row| columns(&row.join(", "))).max();
    let room = room.unwrap_or_default() + 2;
    for group in help::GROUPS {
        let _ = writeln!(out, "{}", words.pick(group.zh, group.en));
        for row in group.rows {
            let told = nod.find_subcommand(row[0]).map(about).unwrap_or_default();
            let names = row.join(", ");
            let gap = " ".repeat(room - columns(&names));
            let _ = writeln!(out, "  {names}{gap}{told}");
        }
    }
    let _ = writeln!(out, "{}", words.other_commands(help::OTHERS));
    let _ = writeln!(out, "{}", words.options_of_all());
    let _ = writeln!(out, "{}", words.first_example());
    out
}

fn page(command: &Command, usage: &str, name: &str, words: Words) -> String {
    let mut out = head(command, usage, words);
    let commands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let commands = commands.map(|sub| (sub.get_name().to_owned(), vec![about(sub)]));
    section(&mut out, words.commands_heading(), commands.collect());
    let rows = |positional: bool| {
        let args = command.get_arguments();
        let args = args.filter(move |arg| arg.is_positional() == positional && !arg.is_hide_set());
        args.map(|arg| (shown(arg), lines(arg, name, words)))
            .collect()
    };
    section(&mut out, words.arguments_heading(), rows(true));
    section(&mut out, words.options_heading(), rows(false));
    if let Some(after) = command.get_after_help() {
        let _ = writeln!(out, "\n{after}");
    }
    let examples = help::examples(name, words.0);
    if !examples.is_empty() {
        let _ = writeln!(out, "\n{}", words.examples_heading());
        for example in examples {
            let _ = writeln!(out, "  {example}");
        }
    }
    out
}

/// `-f, --flag <VALUE>`, or `<VALUE>` alone.
pub(in crate::cli) fn shown(arg: &Arg) -> String {
    let values = value_names(arg);
    let values = values.iter().map(|value| format!("<{value}>"));
    let mut values = values.collect::<Vec<_>>().join(" ");
    if matches!(arg.get_action(), ArgAction::Append) || arg.get_num_args().is_some_and(many) {
        values.push('…');
    }
    let Some(long) = arg.get_long() else {
        return values;
    };
    let short = match arg.get_short() {
        Some(short) => format!("-{short}, "),
        None => "    ".to_owned(),
    };
    format!("{short}--{long} {values}").trim_end().to_owned()
}

fn many(range: clap::builder::ValueRange) -> bool {
    range.max_values() > 1
}

/// What an argument does, what it is without being given, and what each of its
/// values means.
pub(in crate::cli) fn lines(arg: &Arg, command: &str, words: Words) -> Vec<String> {
    let mut first = arg.get_help().map(ToString::to_string).unwrap_or_default();
    if !arg.get_action().takes_values() {
        return vec![first];
    }
    if arg.is_hide_possible_values_set() {
        return vec![first];
    }
    let known = arg.get_possible_values();
    let (told, bare): (Vec<_>, Vec<_>) = known.iter().partition(|value| value.get_help().is_some());
    if !bare.is_empty() {
        let names: Vec<&str> = bare.iter().map(|value| value.get_name()).collect();
        first.push_str(&words.one_of(&names));
    }
    let default = arg.get_default_values().first();
    if let Some(default) = default.and_then(|value| value.to_str()) {
        first.push_str(&words.unless_given(default));
    }
    let mut lines = vec![first];
    lines.extend(told.iter().map(|value| {
        let place = format!("{}={}", place(arg), value.get_name());
        let zh = help::about(command, &place).filter(|_| words.0 == Lang::Zh);
        let en = value.get_help().map(ToString::to_string);
        let means = zh.map_or(en.unwrap_or_default(), str::to_owned);
        words.value_means(value.get_name(), &means)
    }));
    lines
}

/// A heading and two columns under it; nothing for no rows.
fn section(out: &mut String, heading: &str, rows: Vec<(String, Vec<String>)>) {
    if rows.is_empty() {
        return;
    }
    let widest = rows.iter().map(|(name, _)| columns(name)).max();
    let room = widest.unwrap_or_default() + 2;
    let _ = writeln!(out, "\n{heading}");
    for (name, lines) in rows {
        let mut name = name.as_str();
        for line in lines {
            let gap = " ".repeat(room - columns(name));
            let _ = writeln!(out, "  {name}{gap}{line}");
            name = "";
        }
    }
}

#[cfg(test)]
mod tests;
