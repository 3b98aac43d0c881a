//! `nod hook`: what Claude Code starts. Reads the hook's JSON, asks the
//! daemon, prints one JSON object or nothing, and always exits 0: whatever is
//! uncertain is left to Claude Code's own dialog.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::wording::Words;
use super::{output, panics};
use crate::approvals::request::Digest;
use crate::claude::permission::{Answer, Ask, Common, Event, HookInput};
use crate::config::{HookConfig, SendMode, Sources};
use crate::hook::client::{self, Patience, Question, Unanswered};
use crate::hook::wire::MAX_REQUEST;
use crate::hook::wire::answer::{ANSWERED_IN_TERMINAL, DENIED, Decision};
use crate::ids::RequestId;

/// The other events cost Claude Code at most this much.
const NOTIFY_WITHIN: Duration = Duration::from_millis(200);

pub(super) fn run() {
    let sources = Sources::for_hook();
    if sources.is_own_session() {
        return;
    }
    if let Err(why) = serve(&sources) {
        output::problem(&why);
    }
}

fn serve(sources: &Sources) -> Result<(), String> {
    let words = Words(sources.lang());
    panics::tell_in(words);
    let config = HookConfig::load(sources).map_err(|why| words.problems(&why, Some(sources)))?;
    let raw = output::read_stdin(MAX_REQUEST).map_err(|why| words.no_input(&why))?;
    let input = HookInput::parse(&raw).map_err(|why| words.bad_hook(&why))?;
    let project = project(sources, &input.common);
    match input.event {
        Event::PermissionRequest(ask) => {
            permission(&config, raw, project, input.common, &ask, words)
        }
        _ => client::notify(&config.sockets.own, &project, &raw, NOTIFY_WITHIN)
            .map(drop)
            .map_err(|why| words.unanswered(&why)),
    }
}

fn permission(
    config: &HookConfig,
    raw_input: Vec<u8>,
    project: PathBuf,
    common: Common,
    ask: &Ask,
    words: Words,
) -> Result<(), String> {
    let question = Question {
        id: fresh_id(),
        project,
        raw_input,
        digest: Digest::of(&ask.input),
        branch: None,
        cwd: common.cwd,
        agent: common.agent_type,
        pid: Some(std::process::id()),
    };
    let patience = Patience::for_timeout(config.request_timeout);
    let stdout = output::stdout_fd();
    let decision = client::ask(
        &config.sockets.own,
        &question,
        &patience,
        Some(stdout.as_fd()),
    );
    let answer = match decision {
        Ok(Decision::Allow(extras)) => Answer::Allow {
            input: extras.updated_input,
            updates: match extras.updated_permissions {
                Some(Value::Array(updates)) => updates,
                Some(update) => vec![update],
                None => Vec::new(),
            },
        },
        Ok(Decision::Deny { message, interrupt }) => {
            let message = Some(if message == DENIED {
                words.denied_from_feishu().to_owned()
            } else {
                message
            });
            if interrupt {
                Answer::DenyAndInterrupt { message }
            } else {
                Answer::Deny { message }
            }
        }
        Ok(Decision::Terminal { error, .. }) if error == ANSWERED_IN_TERMINAL => return Ok(()),
        Ok(Decision::Terminal {
            error,
            message,
            why,
        }) => return Err(words.terminal(&error, &message, why.as_deref())),
        Err(Unanswered::ListenerGone) => return Ok(()),
        Err(why) => {
            let unreachable = matches!(why, Unanswered::Unreachable(_));
            if unreachable && config.send_mode == SendMode::Webhook {
                announce(&question.raw_input);
            }
            return Err(words.unanswered(&why));
        }
    };
    output::text(&answer.to_stdout());
    Ok(())
}

/// Leaves a process behind that tells the group; the hook itself makes no
/// network call and waits for nothing.
fn announce(raw_input: &[u8]) {
    let Ok(nod) = std::env::current_exe() else {
        return;
    };
    let left = Command::new(nod)
        .arg("announce")
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
