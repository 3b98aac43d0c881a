use clap::{Arg, Command, CommandFactory as _};
use std::collections::BTreeSet;

use super::*;
use crate::cli::Cli;

fn built() -> Command {
    let mut nod = Cli::command();
    nod.build();
    nod
}

/// Every command by its whole name, but clap's own copy of them under `help`.
fn walk(command: &Command, name: &str, seen: &mut dyn FnMut(&Command, &str)) {
    seen(command, name);
    for sub in command.get_subcommands() {
        if sub.get_name() != "help" {
            walk(sub, &format!("{name} {}", sub.get_name()), seen);
        }
    }
}

fn has_han(text: &str) -> bool {
    text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
}

#[test]
fn every_command_argument_and_value_is_described_in_both_languages() {
    let mut missing = BTreeSet::new();
    walk(&built(), "nod", &mut |command, name| {
        if command.get_about().is_none() || help::about(name, "").is_none() {
            missing.insert(name.to_owned());
        }
        if command.get_after_help().is_some() && help::about(name, ", after").is_none() {
            missing.insert(format!("{name}, after"));
        }
        assert!(command.get_long_about().is_none(), "{name} has one text");
        for arg in command.get_arguments() {
            let place = place(arg);
            if arg.get_help().is_none() || help::about(name, &place).is_none() {
                missing.insert(format!("{name}{place}"));
            }
            for value in value_names(arg) {
                if help::value(&value).is_none() {
                    missing.insert(format!("{name}{place} {value}"));
                }
            }
            for value in arg.get_possible_values() {
                let place = format!("{place}={}", value.get_name());
                if value.get_help().is_some() && help::about(name, &place).is_none() {
                    missing.insert(format!("{name}{place}"));
                }
            }
        }
    });
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_table_describes_nothing_that_does_not_exist() {
    let mut known = BTreeSet::from(["nod help".to_owned()]);
    let mut values = BTreeSet::from(["COMMAND".to_owned()]);
    walk(&built(), "nod", &mut |command, name| {
        known.insert(name.to_owned());
        known.insert(format!("{name}, after"));
        for arg in command.get_arguments() {
            let place = place(arg);
            for value in arg.get_possible_values() {
                known.insert(format!("{name}{place}={}", value.get_name()));
            }
            values.extend(value_names(arg));
            known.insert(format!("{name}{place}"));
        }
    });
    let stale: Vec<_> = help::places().filter(|at| !known.contains(*at)).collect();
    assert!(stale.is_empty(), "{stale:?}");
    let stale: Vec<_> = help::values().filter(|at| !values.contains(*at)).collect();
    assert!(stale.is_empty(), "{stale:?}");
}

#[test]
fn each_page_is_in_one_language() {
    let page = |command: &Command| {
        let page = command.clone().render_help().to_string();
        assert!(!page.contains("[OPTIONS]") || !has_han(&page), "{page}");
        page
    };
    walk(
        &told(Cli::command(), Words(Lang::En)),
        "nod",
        &mut |command, _| {
            let page = page(command);
            assert!(!has_han(&page), "{page}");
        },
    );
    walk(
        &told(Cli::command(), Words(Lang::Zh)),
        "nod",
        &mut |command, _| {
            for line in page(command).lines().filter(|line| !line.is_empty()) {
                assert!(has_han(line), "{line}");
            }
        },
    );
}

#[test]
fn the_first_page_is_one_screen_and_names_every_command_once() {
    for lang in [Lang::Zh, Lang::En] {
        let mut nod = told(Cli::command(), Words(lang));
        let page = nod.render_help().to_string();
        // One row is the shell's next prompt.
        assert!(page.lines().count() < 24, "{page}");
        for line in page.lines() {
            assert!(columns(line) <= 80, "{} {line}", columns(line));
        }
        let rows = help::GROUPS.iter().flat_map(|group| group.rows);
        let mut grouped: Vec<&str> = rows.flat_map(|row| row.iter().copied()).collect();
        grouped.extend(help::OTHERS);
        grouped.sort_unstable();
        let visible = nod.get_subcommands().filter(|sub| !sub.is_hide_set());
        let mut known: Vec<&str> = visible.map(Command::get_name).collect();
        known.sort_unstable();
        assert_eq!(grouped, known);
    }
}

#[test]
fn columns_line_up_whatever_the_script() {
    let nod = Command::new("nod")
        .about("a")
        .disable_help_flag(true)
        .arg(Arg::new("s").long("s").value_name("秒").help("one"))
        .arg(
            Arg::new("longer")
                .long("longer")
                .help("two")
                .action(ArgAction::SetTrue),
        );
    let page = page(&nod, "nod", "nod", Words(Lang::En));
    assert!(
        page.ends_with("      --s <秒>  one\n      --longer  two\n"),
        "{page}"
    );
}
