//! `nod completions`: what a shell offers after `nod`, made from the command
//! line itself, for bash, zsh and fish. Pure but for printing.

use clap::Command;
use clap_complete::aot::{Shell, generate};

use crate::cli::{CommandResult, output};

#[derive(clap::Args)]
pub(in crate::cli) struct CompletionsArguments {
    /// Which shell it is for
    shell: CompletedShell,
}

/// Those nod is tested with.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CompletedShell {
    Bash,
    Zsh,
    Fish,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every command has one outcome type"
)]
pub(in crate::cli) fn run(arguments: &CompletionsArguments, nod: &Command) -> CommandResult {
    let shell = match arguments.shell {
        CompletedShell::Bash => Shell::Bash,
        CompletedShell::Zsh => Shell::Zsh,
        CompletedShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut visible(nod), "nod", &mut script);
    output::text(&String::from_utf8_lossy(&script));
    Ok(())
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
