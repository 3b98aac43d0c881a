//! The command line: arguments to typed commands, results to exit codes.
//! `hook` is told apart before anything else is set up, because Claude Code
//! waits for it and takes an exit code of 2 for a meaning of its own.

mod announce;
mod ask;
mod audit;
mod daemon;
mod demo;
mod doctor;
mod gateway;
mod guard;
mod hook;
mod join;
mod line;
mod lock;
mod logs;
mod output;
mod quit;
mod rules;
mod service;
mod settings;
mod setup;
mod simulator;
mod status;
mod update;
mod wording;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::line::{completions, help, man, usage};
use self::output::panics;
use self::quit::Quit;
use self::wording::Words;
use crate::config::{self, Problems, SettingProblem, Sources};
use crate::hook::wire::DaemonOrder;
use crate::text::{Text, system};

#[derive(Parser)]
#[command(
    name = "nod",
    version = crate::version::LONG,
    about = "Approve, answer and steer a coding agent from Feishu"
)]
struct Cli {
    /// Read settings from this file too, for this run; nothing of it is saved
    #[arg(long, global = true, value_name = "FILE")]
    env_file: Option<PathBuf>,
    #[command(subcommand)]
    command: NodCommand,
}

#[derive(Subcommand)]
enum NodCommand {
    /// Set everything up, from the Feishu app to the first tap
    Setup(Box<setup::SetupArguments>),
    /// Keep the daemon running: systemd user unit or launchd agent
    Service(service::ServiceArguments),
    /// See nod work: a local Feishu with a web page, no account needed
    Demo(demo::DemoArguments),
    /// Check every link up to a tap, and name what is missing
    Doctor(doctor::DoctorArguments),
    /// Run the daemon, in the foreground or with `--background`
    Daemon(daemon::DaemonArguments),
    /// Show whether the daemon runs, is connected, and what waits
    Status(status::StatusArguments),
    /// Answer one hook event of Claude Code on stdin
    Hook(hook::HookArguments),
    /// Ask a person in Feishu and print the answer
    Ask(ask::AskArguments),
    /// Show what was decided, when, by whom and after how long
    Audit(audit::AuditArguments),
    /// Follow what the daemon does: decisions, connection, warnings
    Logs(logs::LogsArguments),
    /// Show the always-allow rules taps have left, and undo them
    Rules(rules::RulesArguments),
    /// Let nobody allow from Feishu until `nod unlock`; denying works
    Lock,
    /// Let people allow from Feishu again
    Unlock,
    /// Run a team's gateway, the one place that knows the app's secret
    Gateway(gateway::GatewayArguments),
    /// Make this machine a member of a team, with the line a gateway gave
    Join(join::JoinArguments),
    /// Run a local Feishu for tests and demonstrations
    Simulator(simulator::SimulatorArguments),
    /// Print what a shell needs to complete nod's commands
    Completions(completions::CompletionsArguments),
    /// Print the manual page, for `man -l -`
    Man,
    /// Tell the group of a request that found no daemon
    #[command(hide = true)]
    Announce(announce::AnnounceArguments),
    /// End a process group once the daemon that started it is gone
    #[command(hide = true)]
    Guard(guard::GuardArguments),
    /// Show every setting and where its value comes from, or set one
    Settings(settings::SettingsArguments),
    /// Say whether there is a newer nod, and the command that gets it
    Update,
}

/// A command that failed: what to say and how it quits.
struct Failure {
    quit: Quit,
    why: Text,
    hint: Option<String>,
}

type CommandResult = Result<(), Failure>;

impl Failure {
    fn new(why: impl std::fmt::Display) -> Self {
        Self::quits(Quit::Failed, why)
    }

    /// The same, where the language is not at hand.
    const fn told(why: Text) -> Self {
        Self {
            quit: Quit::Failed,
            why,
            hint: None,
        }
    }

    fn quits(quit: Quit, why: impl std::fmt::Display) -> Self {
        let why = why.to_string();
        Self {
            quit,
            ..Self::told(Text::made(why.clone(), why))
        }
    }

    /// Settings that cannot be used.
    fn settings(words: Words, sources: &Sources, problems: &Problems) -> Self {
        let why = words.problems(problems, Some(sources));
        Self::quits(Quit::BadSettings, why).hinted(words.settings_hint())
    }

    /// The same, with what to do about it instead of any such word before.
    fn hinted(self, hint: impl Into<String>) -> Self {
        let hint = Some(hint.into());
        Self { hint, ..self }
    }
}

pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().map(PathBuf::from);
    if program.is_some_and(|program| program.ends_with(demo::stand_in::NAME)) {
        demo::stand_in::run();
        return ExitCode::SUCCESS;
    }
    // Until the settings are read.
    panics::tell_in(Words(config::of_terminal()));
    let mut arguments = arguments.peekable();
    if arguments.next().is_some_and(|verb| verb == "hook")
        && !arguments
            .peek()
            .is_some_and(|flag| flag == "--help" || flag == "-h")
    {
        // Whatever happens, Claude Code's own dialog decides.
        panics::guarded(|| {
            hook::run(hook::HookArguments::parse(arguments));
            ExitCode::SUCCESS
        });
        return ExitCode::SUCCESS;
    }
    panics::guarded(command)
}

fn command() -> ExitCode {
    let sources = Sources::for_person();
    output::dress(&sources);
    let words = Words(sources.lang());
    panics::tell_in(words);
    // It stays for long: the command line's weight shall not stay with it.
    let mut line = std::env::args_os().skip(1);
    if line.next().is_some_and(|verb| verb == "daemon") && line.next().is_none() {
        tell_of_a_file_here(&sources, words);
        return ended(daemon::run(&sources), words);
    }
    let mut nod = help::told(Cli::command(), words);
    let parsed = nod
        .try_get_matches_from_mut(help::asked(std::env::args_os()))
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let reads_settings = parsed
        .as_ref()
        .is_ok_and(|cli| cli.command.reads_settings());
    if !reads_settings && sources.knows_lang().is_err() {
        output::hint(words, words.unknown_language());
    }
    match parsed {
        Ok(cli) => ended(cli.run(&nod, sources, words), words),
        Err(error) => not_run(&nod, &error, words),
    }
}

/// Says that a `.env` which looks like nod's is not read: a repository's must
/// choose nothing, and a person may wonder.
fn tell_of_a_file_here(sources: &Sources, words: Words) {
    if sources.leaves_a_file_here() {
        output::problem(words.env_file_not_read());
    }
}

fn ended(outcome: CommandResult, words: Words) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::problem(failure.why.get(words.0));
            if let Some(hint) = failure.hint {
                output::hint(words, &hint);
            }
            failure.quit.into()
        }
    }
}

/// Help that was asked for, or a command line that is wrong.
fn not_run(nod: &clap::Command, error: &clap::Error, words: Words) -> ExitCode {
    if !error.use_stderr() {
        output::say(&error.to_string());
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        output::tell(&error.to_string());
    } else {
        let wrong = usage::wrong(nod, error, words);
        output::problem(&wrong.why);
        output::hint(words, &wrong.hint);
    }
    Quit::WrongLine.into()
}

impl Cli {
    fn run(self, nod: &clap::Command, sources: Sources, words: Words) -> CommandResult {
        if !self.command.is_for_nod() {
            return self.command.run(nod, &sources, words);
        }
        let sources = match &self.env_file {
            None => sources,
            Some(file) => {
                let unread = |why| {
                    let why = Problems(vec![SettingProblem::BrokenFile(why)]);
                    Failure::quits(Quit::BadSettings, words.problems(&why, None))
                };
                let sources = sources.with_file(file).map_err(unread)?;
                output::problem(&words.env_file_read(file));
                sources
            }
        };
        tell_of_a_file_here(&sources, words);
        self.command.run(nod, &sources, words)
    }
}

impl NodCommand {
    /// Whether it looks at nod's settings for more than the language.
    const fn is_for_nod(&self) -> bool {
        !matches!(
            self,
            Self::Hook(_)
                | Self::Announce(_)
                | Self::Guard(_)
                | Self::Demo(_)
                | Self::Simulator(_)
                | Self::Completions(_)
                | Self::Man
        ) && !matches!(self, Self::Settings(arguments) if !arguments.is_for_nod())
    }

    /// Whether every setting is looked at, so that a wrong one is told.
    const fn reads_settings(&self) -> bool {
        match self {
            Self::Setup(arguments) => arguments.reads_settings(),
            Self::Service(arguments) => arguments.reads_settings(),
            Self::Doctor(_) | Self::Daemon(_) | Self::Gateway(_) | Self::Announce(_) => true,
            _ => false,
        }
    }

    fn run(self, nod: &clap::Command, sources: &Sources, words: Words) -> CommandResult {
        match self {
            Self::Setup(arguments) => setup::run(&arguments, sources),
            Self::Service(arguments) => service::run(&arguments, sources),
            Self::Demo(arguments) => demo::run(&arguments, sources),
            Self::Doctor(arguments) => doctor::run(&arguments, sources),
            Self::Daemon(arguments) => daemon::started(&arguments, sources),
            Self::Status(arguments) => status::run(&arguments, sources),
            Self::Hook(arguments) => {
                hook::run(Some(arguments));
                Ok(())
            }
            Self::Ask(arguments) => ask::run(&arguments, sources),
            Self::Announce(arguments) => announce::run(&arguments),
            Self::Guard(arguments) => {
                guard::run(&arguments);
                Ok(())
            }
            Self::Audit(arguments) => audit::run(&arguments, sources),
            Self::Logs(arguments) => logs::run(&arguments, sources),
            Self::Rules(arguments) => rules::run(&arguments, sources),
            Self::Lock => lock::run(DaemonOrder::Lock, sources),
            Self::Unlock => lock::run(DaemonOrder::Unlock, sources),
            Self::Gateway(arguments) => gateway::run(&arguments, sources),
            Self::Join(arguments) => join::run(&arguments, sources),
            Self::Simulator(arguments) => simulator::run(&arguments),
            Self::Completions(arguments) => {
                completions::run(&arguments, nod);
                Ok(())
            }
            Self::Man => {
                man::run(nod, words);
                Ok(())
            }
            Self::Settings(arguments) => settings::run(&arguments, sources),
            Self::Update => update::run(),
        }
    }
}

fn runtime(workers: usize) -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .map_err(|why| Failure::told(system::cannot_start(&why)))
}

/// SIGTERM, SIGINT and SIGHUP, heard from the moment this exists.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    /// `None` under `nohup`, where a hang-up is to change nothing.
    hangup: Option<Signal>,
}

impl StopSignals {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|why| Failure::told(system::cannot_start(&why)));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: if hangup_is_ignored() {
                None
            } else {
                Some(listen(SignalKind::hangup())?)
            },
        })
    }

    /// Returns when the person or the service manager asks to stop.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = hung_up(self.hangup.as_mut()) => {}
        }
    }
}

async fn hung_up(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether this process was started with SIGHUP ignored, as `nohup` does. Where
/// the system does not tell, a process without a terminal to write to counts
/// as one.
fn hangup_is_ignored() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status");
    let mask = status.ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    });
    match mask {
        Some(mask) => mask & HANGUP != 0,
        None => !output::is_terminal(),
    }
}

/// The first such signal, for commands that stop at one.
async fn stop_signal() {
    match StopSignals::listen() {
        Ok(mut signals) => signals.next().await,
        Err(_) => std::future::pending().await,
    }
}
