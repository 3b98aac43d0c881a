//! The command line: arguments to typed commands, results to exit codes.
//! `hook` is told apart before anything else is set up, because Claude Code
//! waits for it and takes an exit code of 2 for a meaning of its own.

mod announce;
mod ask;
mod audit;
mod completions;
mod daemon;
mod demo;
mod doctor;
mod help;
mod hook;
mod lock;
mod man;
mod output;
mod panics;
mod qr;
mod rules;
mod service;
mod settings;
mod setup;
mod simulator;
mod status;
mod usage;
mod wording;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::wording::Words;
use crate::config::{Problems, Sources};
use crate::hook::wire::Order;
use crate::wording::{Lang, Text, system};

/// What sysexits.h calls a configuration error.
const BAD_SETTINGS: u8 = 78;
/// What shells and clap return for a command line that is wrong.
const WRONG_LINE: u8 = 2;

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
    /// Set everything up, from the Feishu app to the first tap
    Setup(Box<setup::Arguments>),
    /// Keep the daemon running: systemd user unit or launchd agent
    Service(service::Arguments),
    /// See nod work: a local Feishu with a web page, no account needed
    Demo(demo::Arguments),
    /// Check every link from Claude Code to a tap, and name what is missing
    Doctor(doctor::Arguments),
    /// Run the daemon in the foreground
    Daemon,
    /// Show whether the daemon runs, is connected, and what waits
    Status(status::Arguments),
    /// Answer one hook event of Claude Code on stdin
    Hook,
    /// Ask a person in Feishu and print the answer
    Ask(ask::Arguments),
    /// Show who decided what, when and from where
    Audit(audit::Arguments),
    /// Show the always-allow rules taps have left, and undo them
    Rules(rules::Arguments),
    /// Let nobody allow anything from Feishu until `nod unlock`; denying works
    Lock,
    /// Let people allow from Feishu again
    Unlock,
    /// Run a local Feishu for tests and demonstrations
    Simulator(simulator::Arguments),
    /// Print what a shell needs to complete nod's commands
    Completions(completions::Arguments),
    /// Print the manual page, for `man -l -`
    Man,
    /// Tell the group of a request that found no daemon
    #[command(hide = true)]
    Announce,
    /// List every setting, its default and what it accepts
    Settings(settings::Arguments),
}

/// A command that failed: what to say and the exit code that tells it apart.
struct Failure {
    code: u8,
    why: Text,
    hint: Option<String>,
}

type Outcome = Result<(), Failure>;

impl Failure {
    fn new(code: u8, why: impl std::fmt::Display) -> Self {
        let why = why.to_string();
        Self::told(code, Text::made(why.clone(), why))
    }

    /// The same, where the language is not at hand.
    const fn told(code: u8, why: Text) -> Self {
        Self {
            code,
            why,
            hint: None,
        }
    }

    /// Settings that cannot be used.
    fn settings(words: Words, sources: &Sources, problems: &Problems) -> Self {
        Self {
            hint: Some(words.settings_hint().to_owned()),
            ..Self::new(BAD_SETTINGS, words.problems(problems, Some(sources)))
        }
    }
}

pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().map(PathBuf::from);
    if program.is_some_and(|program| program.ends_with(demo::stand_in::NAME)) {
        demo::stand_in::run();
        return ExitCode::SUCCESS;
    }
    // `hook` says nothing before its time, so this is the default's language
    // until the settings are read.
    panics::tell_in(Words(Lang::default()));
    if arguments.next().is_some_and(|verb| verb == "hook")
        && !arguments
            .next()
            .is_some_and(|flag| flag == "--help" || flag == "-h")
    {
        // Whatever happens, Claude Code's own dialog decides.
        panics::guarded(|| {
            hook::run();
            ExitCode::SUCCESS
        });
        return ExitCode::SUCCESS;
    }
    panics::guarded(command)
}

fn command() -> ExitCode {
    let sources = Sources::for_person();
    let words = Words(sources.lang());
    panics::tell_in(words);
    // It stays for long: the command line's weight shall not stay with it.
    let mut line = std::env::args_os().skip(1);
    if line.next().is_some_and(|verb| verb == "daemon") && line.next().is_none() {
        return ended(daemon::run(), words);
    }
    let mut nod = help::told(Cli::command(), words);
    let parsed = nod
        .try_get_matches_from_mut(std::env::args_os())
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let reads_settings = parsed
        .as_ref()
        .is_ok_and(|cli| cli.command.reads_settings());
    if !reads_settings && sources.knows_lang().is_err() {
        output::hint(words, words.unknown_language());
    }
    match parsed {
        Ok(cli) => ended(cli.command.run(&nod, words), words),
        Err(error) => not_run(&nod, &error, words),
    }
}

fn ended(outcome: Outcome, words: Words) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::problem(failure.why.get(words.0));
            if let Some(hint) = failure.hint {
                output::hint(words, &hint);
            }
            ExitCode::from(failure.code)
        }
    }
}

/// Help that was asked for, or a command line that is wrong.
fn not_run(nod: &clap::Command, error: &clap::Error, words: Words) -> ExitCode {
    if !error.use_stderr() {
        output::text(&error.to_string());
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        output::usage(&error.to_string());
    } else {
        let wrong = usage::wrong(nod, error, words);
        output::problem(&wrong.why);
        output::hint(words, &wrong.hint);
    }
    ExitCode::from(WRONG_LINE)
}

impl Command {
    /// Whether every setting is looked at, so that a wrong one is told.
    const fn reads_settings(&self) -> bool {
        match self {
            Self::Setup(arguments) => arguments.reads_settings(),
            Self::Service(arguments) => arguments.reads_settings(),
            Self::Doctor(_) | Self::Daemon | Self::Announce => true,
            _ => false,
        }
    }

    fn run(self, nod: &clap::Command, words: Words) -> Outcome {
        match self {
            Self::Setup(arguments) => setup::run(&arguments),
            Self::Service(arguments) => service::run(&arguments),
            Self::Demo(arguments) => demo::run(&arguments),
            Self::Doctor(arguments) => doctor::run(&arguments),
            Self::Daemon => daemon::run(),
            Self::Status(arguments) => status::run(&arguments),
            Self::Hook => {
                hook::run();
                Ok(())
            }
            Self::Ask(arguments) => ask::run(&arguments),
            Self::Announce => announce::run(),
            Self::Audit(arguments) => audit::run(&arguments),
            Self::Rules(arguments) => rules::run(&arguments),
            Self::Lock => lock::run(Order::Lock),
            Self::Unlock => lock::run(Order::Unlock),
            Self::Simulator(arguments) => simulator::run(&arguments),
            Self::Completions(arguments) => completions::run(&arguments, nod),
            Self::Man => man::run(nod, words),
            Self::Settings(arguments) => settings::run(&arguments),
        }
    }
}

fn runtime(workers: usize) -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .map_err(|why| Failure::told(1, system::cannot_start(&why)))
}

/// SIGTERM and SIGINT, heard from the moment this exists.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn listen() -> Result<Self, Failure> {
        let listen =
            |kind| signal(kind).map_err(|why| Failure::told(1, system::cannot_start(&why)));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Returns when the person or the service manager asks to stop.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The first such signal, for commands that stop at one.
async fn stop_signal() {
    match StopSignals::listen() {
        Ok(mut signals) => signals.next().await,
        Err(_) => std::future::pending().await,
    }
}
