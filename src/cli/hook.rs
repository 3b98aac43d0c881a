//! `nod hook`: what Claude Code starts. Reads the hook's JSON, asks the
//! daemon, prints one JSON object or nothing, and always exits 0: whatever is
//! uncertain is left to Claude Code's own dialog. A repository's settings choose
//! its environment, so nod's own file is found by the path that the set-up wrote
//! into the hook's line, and all else stands there.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::output;
use super::output::panics;
use super::wording::Words;
use crate::approvals::request::Digest;
use crate::claude::hooks_file::{HookCommand, Hooks, HooksError};
use crate::claude::permission::{Common, HookEvent, HookInput, PermissionAnswer, PermissionAsk};
use crate::config::{self, AccountFile, Config, HookConfig, SendMode, Sources};
use crate::hook::client::{self, HookRequest, NoDecision, Patience};
use crate::hook::connect;
use crate::hook::wire::answer::Decision;
use crate::hook::wire::error_word::ErrorWord;
use crate::hook::wire::{HookNotice, MAX_REQUEST};
use crate::ids::RequestId;
use crate::version::BUILD;

/// The other events cost Claude Code at most this much.
const NOTIFY_WITHIN: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub(super) struct HookArguments {
    /// nod's own settings file, an absolute path; `nod setup` writes it here
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the daemon listens, if that file and the usual places don't tell
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl HookArguments {
    /// What stands behind `hook`, read by hand because Claude Code waits.
    pub(super) fn parse(line: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut read = Self {
            config: None,
            socket: None,
        };
        let mut line = line;
        while let Some(flag) = line.next() {
            let value = line.next().map(PathBuf::from);
            let value = value.filter(|path| path.is_absolute())?;
            match flag.to_str()? {
                "--config" => read.config = Some(value),
                "--socket" => read.socket = Some(value),
                _ => return None,
            }
        }
        Some(read)
    }

    fn is_absolute(&self) -> bool {
        let mut paths = [&self.config, &self.socket].into_iter().flatten();
        paths.all(|path| path.is_absolute())
    }
}

/// `None` are arguments that nod did not write: nobody is asked by them.
pub(super) fn run(arguments: Option<HookArguments>) {
    let unknown = Words(config::of_terminal());
    let Some(arguments) = arguments.filter(HookArguments::is_absolute) else {
        output::problem(unknown.bad_hook_line());
        return;
    };
    let Some(file) = arguments.config.clone().or_else(of_account) else {
        output::problem(unknown.no_hook_file());
        return;
    };
    let sources = Sources::for_hook(&file);
    if sources.is_own_session() {
        return;
    }
    if let Err(why) = serve(&sources, &file, arguments.socket.as_deref()) {
        output::problem(&why);
    }
}

/// nod's own file where the line of an older set-up names none: in the home that
/// the account has. `HOME` hides it, so this program starts again without.
fn of_account() -> Option<PathBuf> {
    match config::account() {
        AccountFile::File(file) => Some(file),
        AccountFile::Hidden => {
            let nod = std::env::current_exe().ok()?;
            // It comes back only if it could not.
            let _ = Command::new(nod)
                .args(std::env::args_os().skip(1))
                .env_remove("HOME")
                .exec();
            None
        }
        AccountFile::Unknown => None,
    }
}

/// What shall stand in Claude Code's settings: this program, nod's own file, and
/// the socket where a hook would not find it by that file.
pub(super) fn wanted(
    program: &Path,
    file: &Path,
    config: &Config,
    request_timeout: Duration,
) -> Result<Hooks, HooksError> {
    let known = HookConfig::load(&Sources::for_hook(file), None);
    let socket = &config.sockets.own;
    let is_found = known.is_ok_and(|known| known.sockets.contains(socket));
    let line = HookCommand {
        program,
        file,
        socket: Some(socket.as_path()).filter(|_| !is_found),
    };
    Hooks::new(&line, request_timeout)
}

fn serve(sources: &Sources, file: &Path, recorded: Option<&Path>) -> Result<(), String> {
    let words = Words(sources.lang());
    panics::tell_in(words);
    let config =
        HookConfig::load(sources, recorded).map_err(|why| words.problems(&why, Some(sources)))?;
    let way = DaemonWay {
        socket: living(&config.sockets),
        file,
        config,
        to_claude: Words(sources.lang_of_feishu()),
    };
    let raw = output::read_stdin(MAX_REQUEST).map_err(|why| words.no_input(&why))?;
    let input = HookInput::parse(&raw).map_err(|why| words.bad_hook(&why))?;
    let notice = HookNotice {
        project: project(sources, &input.common),
        raw_input: raw,
        mailbox: sources.mailbox(),
        process: sources.claude_process(),
    };
    if let HookEvent::PermissionRequest(ask) = input.event {
        return permission(&way, notice, input.common, &ask, words);
    }
    let told = client::notify(&way.socket, notice, NOTIFY_WITHIN);
    told.map_err(|why| words.unanswered(&why))
}

/// The way to the user's own daemon.
struct DaemonWay<'a> {
    config: HookConfig,
    socket: PathBuf,
    file: &'a Path,
    /// What the model reads is said as in Feishu, not as at this terminal.
    to_claude: Words,
}

/// The first that answers: a daemon that was killed leaves its socket behind.
fn living(sockets: &[PathBuf]) -> PathBuf {
    let there: Vec<&PathBuf> = sockets.iter().filter(|path| path.exists()).collect();
    let found = match there[..] {
        [] => sockets.first(),
        [one] => Some(one),
        [first, ..] => {
            let answers = |path: &&PathBuf| connect::dial(path).is_ok();
            Some(there.iter().copied().find(answers).unwrap_or(first))
        }
    };
    found.cloned().unwrap_or_default()
}

fn permission(
    way: &DaemonWay<'_>,
    told: HookNotice,
    common: Common,
    ask: &PermissionAsk,
    words: Words,
) -> Result<(), String> {
    let question = HookRequest {
        id: fresh_id(),
        project: told.project,
        raw_input: told.raw_input,
        digest: Digest::of(&ask.input),
        cwd: common.cwd,
        agent: common.agent_type,
        pid: Some(std::process::id()),
        process: told.process,
        mailbox: told.mailbox,
    };
    let patience = Patience::for_timeout(way.config.request_timeout);
    let stdout = output::stdout();
    let listener = Some(stdout.as_fd());
    let decision = client::ask_of(&way.socket, &question, &patience, listener, |daemon| {
        if daemon != BUILD {
            output::hint(words, &words.other_build(daemon, BUILD));
        }
    });
    let answer = match decision {
        Ok(Decision::Allow(extras)) => PermissionAnswer::Allow {
            input: extras.updated_input,
            updates: match extras.updated_permissions {
                Some(Value::Array(updates)) => updates,
                Some(update) => vec![update],
                None => Vec::new(),
            },
        },
        Ok(Decision::Deny { reason, interrupt }) => {
            let message = reason.or_else(|| Some(way.to_claude.denied_from_feishu().to_owned()));
            if interrupt {
                PermissionAnswer::DenyAndInterrupt { message }
            } else {
                PermissionAnswer::Deny { message }
            }
        }
        Ok(Decision::Terminal {
            error: ErrorWord::AnsweredInTerminal,
            ..
        })
        | Err(NoDecision::ListenerGone) => return Ok(()),
        Ok(Decision::Terminal {
            error,
            message,
            why,
        }) => return Err(words.terminal(error, &message, why.as_deref())),
        Err(why) => {
            let unreachable = matches!(why, NoDecision::Unreachable(_));
            if unreachable && way.config.send_mode == SendMode::Webhook {
                announce(way.file, &question.raw_input);
            }
            return Err(words.unanswered(&why));
        }
    };
    output::text(&answer.to_stdout());
    Ok(())
}

/// Leaves a process behind that tells the group; the hook itself makes no
/// network call and waits for nothing. No variable goes with it: some choose
/// whom a program trusts.
fn announce(file: &Path, raw_input: &[u8]) {
    let Ok(nod) = std::env::current_exe() else {
        return;
    };
    let left = Command::new(nod)
        .arg("announce")
        .arg("--config")
        .arg(file)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let stdin = left.ok().and_then(|child| child.stdin);
    if let Some(mut stdin) = stdin {
        // A notice that cannot be sent changes nothing: the terminal decides.
        let _ = stdin.write_all(raw_input);
    }
}

/// Claude Code's start directory; the working directory follows `cd` inside
/// the session and is only the second choice.
fn project(sources: &Sources, common: &Common) -> PathBuf {
    sources
        .claude_project()
        .or_else(|| common.cwd.clone())
        .unwrap_or_default()
}

/// Thirty-two characters nobody can guess.
pub(super) fn fresh_id() -> RequestId {
    let id = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 24]>());
    RequestId::parse(&id).expect("base64 is printable ASCII")
}
