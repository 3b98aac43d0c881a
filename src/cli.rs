//! The command line: arguments to typed commands, results to exit codes.
//! `hook` is told apart before anything else is set up, because Claude Code
//! waits for it and takes an exit code of 2 for a meaning of its own.

mod output;
mod settings;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "nod",
    version,
    about = "Approve, answer and steer a coding agent from Feishu"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the settings nod knows, for its own documents
    #[command(hide = true)]
    Settings(settings::Arguments),
}

/// A command that failed: what to say and the exit code that tells it apart.
struct Failure {
    code: u8,
    why: String,
    hint: Option<String>,
}

type Outcome = Result<(), Failure>;

pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(why) => {
            let code = u8::try_from(why.exit_code()).unwrap_or(1);
            if why.use_stderr() {
                output::problem(&why.to_string());
            } else {
                output::text(&why.to_string());
            }
            return ExitCode::from(code);
        }
    };
    let outcome = match cli.command {
        Command::Settings(arguments) => settings::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::problem(&failure.why);
            if let Some(hint) = failure.hint {
                output::hint(&hint);
            }
            ExitCode::from(failure.code)
        }
    }
}
