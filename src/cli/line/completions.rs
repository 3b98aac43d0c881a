//! `nod completions`: what a shell offers after `nod`, made from the command
//! line itself, for bash, zsh and fish. Pure but for printing.

use clap::Command;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap_complete::aot::{Shell, generate};

use crate::cli::output;

#[derive(clap::Args)]
pub(in crate::cli) struct CompletionsArguments {
    /// Which shell it is for
    #[arg(value_parser = PossibleValuesParser::new(TESTED).try_map(|name| name.parse::<Shell>()))]
    shell: Shell,
}

/// Those nod is tested with.
const TESTED: [&str; 3] = ["bash", "zsh", "fish"];

pub(in crate::cli) fn run(arguments: &CompletionsArguments, nod: &Command) {
    let mut script = Vec::new();
    generate(arguments.shell, &mut visible(nod), "nod", &mut script);
    output::text(&String::from_utf8_lossy(&script));
}

/// A command without what help does not show: the scripts would offer it.
fn visible(command: &Command) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let version = command.get_version().unwrap_or_default().to_owned();
    let arguments = command.get_arguments().filter(|it| !it.is_hide_set());
    let below = command.get_subcommands().filter(|it| !it.is_hide_set());
    Command::new(command.get_name().to_owned())
        .about(about)
        .version(version)
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .disable_version_flag(true)
        .groups(command.get_groups().cloned())
        .args(arguments.cloned())
        .subcommands(below.map(visible))
}
