//! `nod completions`: what a shell offers after `nod`, made from the command
//! line itself, for bash, zsh and fish. Pure but for printing.

use clap::Command;
use std::fmt::Write as _;

use crate::cli::{CommandResult, output};

#[derive(clap::Args)]
pub(in crate::cli) struct CompletionsArguments {
    /// Which shell it is for
    shell: Shell,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every command has one outcome type"
)]
pub(in crate::cli) fn run(arguments: &CompletionsArguments, nod: &Command) -> CommandResult {
    let places = places(nod);
    output::text(&match arguments.shell {
        Shell::Bash => bash(&places),
        Shell::Zsh => zsh(&places),
        Shell::Fish => fish(&places),
    });
    Ok(())
}

/// A command by its whole name, such as `nod service install`, and what can
/// follow it: words or `--flags`, each with its description.
struct CompletedCommand {
    name: String,
    offers: Vec<(String, String)>,
}

fn places(nod: &Command) -> Vec<CompletedCommand> {
    let mut places = Vec::new();
    let mut open = vec![("nod".to_owned(), nod)];
    while let Some((name, command)) = open.pop() {
        let shown = || command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let about = |text: Option<&clap::builder::StyledStr>| {
            text.map(ToString::to_string).unwrap_or_default()
        };
        let words = shown().map(|sub| (sub.get_name().to_owned(), about(sub.get_about())));
        let flags = command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
            .filter_map(|argument| {
                Some((
                    format!("--{}", argument.get_long()?),
                    about(argument.get_help()),
                ))
            });
        let values = command
            .get_positionals()
            .flat_map(clap::Arg::get_possible_values)
            .map(|value| (value.get_name().to_owned(), String::new()));
        let offers = words.chain(values).chain(flags).collect();
        for sub in shown().filter(|sub| sub.get_name() != "help") {
            open.push((format!("{name} {}", sub.get_name()), sub));
        }
        places.push(CompletedCommand { name, offers });
    }
    places.reverse();
    places
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The commands below `nod`, as alternatives of a `case`.
fn deeper(places: &[CompletedCommand], between: &str) -> String {
    let names = places.iter().map(|place| place.name.as_str());
    let names: Vec<String> = names.filter(|name| *name != "nod").map(quoted).collect();
    names.join(between)
}

fn bash(places: &[CompletedCommand]) -> String {
    let mut out = format!(
        "_nod() {{\n    local cur=${{COMP_WORDS[COMP_CWORD]}} at=nod offers= word\n    \
         for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n        \
         case \"$at $word\" in\n            {}) at=\"$at $word\" ;;\n        esac\n    done\n    \
         case \"$at\" in\n",
        deeper(places, " | ")
    );
    for place in places {
        let words: Vec<&str> = place.offers.iter().map(|(word, _)| word.as_str()).collect();
        let _ = writeln!(
            out,
            "        {}) offers={} ;;",
            quoted(&place.name),
            quoted(&words.join(" "))
        );
    }
    out + "    esac\n    COMPREPLY=($(compgen -W \"$offers\" -- \"$cur\"))\n}\n\
           complete -o default -F _nod nod\n"
}

fn zsh(places: &[CompletedCommand]) -> String {
    let mut out = format!(
        "#compdef nod\n\n_nod() {{\n    local at=nod word\n    local -a offers\n    \
         for word in \"${{(@)words[2,CURRENT-1]}}\"; do\n        \
         case \"$at $word\" in\n            ({}) at=\"$at $word\" ;;\n        esac\n    done\n    \
         case \"$at\" in\n",
        deeper(places, " | ")
    );
    for place in places {
        let offers = place.offers.iter();
        let offers: Vec<String> = offers
            .map(|(word, about)| quoted(&format!("{word}:{about}")))
            .collect();
        let _ = writeln!(
            out,
            "        ({}) offers=({}) ;;",
            quoted(&place.name),
            offers.join(" ")
        );
    }
    out + "    esac\n    _describe nod offers\n    _files\n}\n\ncompdef _nod nod\n"
}

fn fish(places: &[CompletedCommand]) -> String {
    let mut out = format!(
        "function __nod_at\n    set -l at nod\n    for word in (commandline -opc)[2..]\n        \
         switch \"$at $word\"\n            case {}\n                set at \"$at $word\"\n        \
         end\n    end\n    test \"$at\" = \"$argv\"\nend\n\n",
        deeper(places, " ")
    );
    for place in places {
        for (word, about) in &place.offers {
            let word = match word.strip_prefix("--") {
                Some(flag) => format!("-l {flag}"),
                None => format!("-f -a {word}"),
            };
            let _ = writeln!(
                out,
                "complete -c nod -n '__nod_at {}' {word} -d {}",
                place.name,
                quoted(about)
            );
        }
    }
    out
}
