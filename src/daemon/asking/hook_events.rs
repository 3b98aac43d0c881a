//! The other hook events: what the terminal settled is withdrawn, and the end
//! of a long turn is told to the owner once.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tracing::{debug, warn};

use crate::approvals::Withdrawal;
use crate::approvals::request::{Agent, Digest};
use crate::cards::notice::{self, Why};
use crate::claude::permission::{Event, HookInput, ToolCall};
use crate::clock::millis;
use crate::daemon::asking::dialogs;
use crate::daemon::cards::courier;
use crate::daemon::parts::Parts;
use crate::daemon::terminals::watching;
use crate::feishu::messages::Content;
use crate::hook::server::Peer;
use crate::hook::wire::Notice;
use crate::ids::{MessageId, SessionId};
use crate::store::About;

/// Takes one event and answers at once; sending goes on behind. Only what was
/// told and turns out untrue is put right first: a crash must not keep it so.
pub(crate) async fn take(parts: Arc<Parts>, notice: Notice, peer: Peer) -> Value {
    let parts = &parts;
    let input = match HookInput::parse(&notice.raw_input) {
        Ok(input) => input,
        Err(why) => return json!({"success": false, "message": why.to_string()}),
    };
    let Some(session) = input.common.session.clone() else {
        return json!({"success": true, "withdrawn": 0});
    };
    let (common, now) = (input.common, parts.now());
    let mailbox = notice.mailbox.as_ref();
    parts.mailboxes.told(&notice.project, &common, mailbox, now);
    let withdraw = |withdrawal| {
        let age = peer.since.elapsed();
        parts.desk.withdraw(&session, &withdrawal, age)
    };
    let agent = common.agent_id;
    let is_idling = matches!(&input.event, Event::Notification { .. });
    if !is_idling {
        parts.turns.stirs(&session, now);
        parts.dialogs.over(&session);
    }
    let withdrawn = match &input.event {
        Event::PostToolUse(call) | Event::PostToolUseFailure(call) => {
            let digest = Digest::of(&call.input);
            parts.terminals.call_ended(&session, &digest, now);
            withdraw(ran(call, digest, agent))
        }
        Event::Stop { .. } | Event::StopFailure { .. } | Event::SubagentStop => {
            withdraw(Withdrawal::Turn { agent })
        }
        Event::UserPromptSubmit { prompt } => {
            let prompt = prompt.as_deref().unwrap_or_default();
            let asked = parts.mailboxes.reads(&session, prompt, now);
            parts.turns.reads(&session, common.prompt_id, asked, now);
            withdraw(Withdrawal::Turn { agent })
        }
        Event::SessionEnd { .. } => {
            parts.turns.ended(&session);
            parts.mailboxes.ended(&session);
            withdraw(Withdrawal::Session)
        }
        Event::PermissionRequest(_)
        | Event::SessionStart { .. }
        | Event::Notification { .. }
        | Event::Other { .. } => 0,
    };
    for correction in parts.desk.take_corrections() {
        watching::correct(parts, correction).await;
    }
    if withdrawn > 0 {
        debug!(withdrawn, "answered in the terminal");
    }
    tell(parts, &session, &notice, input.event);
    json!({"success": true, "withdrawn": withdrawn})
}

fn ran(call: &ToolCall, digest: Digest, agent: Option<String>) -> Withdrawal {
    Withdrawal::Tool {
        tool: call.tool.clone(),
        digest,
        agent,
        took: call.took_ms,
    }
}

fn tell(parts: &Arc<Parts>, session: &SessionId, from: &Notice, event: Event) {
    let about = About {
        session: session.clone(),
        project: from.project.to_string_lossy().into_owned(),
    };
    let (why, last) = match event {
        Event::Stop { last_message } | Event::StopFailure { last_message } => {
            (Why::Finished, last_message)
        }
        Event::Notification { kind, message } if kind.as_deref() == Some("idle_prompt") => {
            (Why::Idle, message)
        }
        Event::Notification { kind, message } if is_dialog(kind.as_deref()) => {
            return dialogs::told(parts, about, message);
        }
        _ => return,
    };
    let long = parts.config.stop_notice_after.map(millis);
    let Some(took) = parts.turns.tell(session, long) else {
        return;
    };
    let card = notice::notice(
        &notice::Notice {
            why,
            agent: &Agent::ClaudeCode,
            machine: &parts.machine.name,
            project: &from.project,
            session: Some(session),
            took: Some(took),
            message: last.as_deref(),
        },
        parts.config.lang,
    );
    let uuid = format!("turn-{session}-{}", parts.now());
    let parts = Arc::clone(parts);
    tokio::spawn(async move { send(&parts, card, uuid, about).await });
}

/// A person is asked something in the terminal.
fn is_dialog(kind: Option<&str>) -> bool {
    matches!(kind, Some("permission_prompt" | "elicitation_dialog"))
}

/// Sends a card that a reply can be given to.
pub(crate) async fn send(
    parts: &Parts,
    card: Value,
    uuid: String,
    about: About,
) -> Option<MessageId> {
    parts.courier.telling();
    let sent = courier::tell(parts, Content::Card(card), &uuid).await;
    if let Some(message) = sent.clone() {
        let now = parts.now();
        let kept = parts
            .store
            .run(move |db| db.notice_sent(&message, &about, now));
        if let Err(why) = kept.await {
            warn!("whose a notice is was not kept: {why}");
        }
    }
    parts.courier.told();
    sent
}

/// Tells the owner that a session's further requests go to the terminal.
pub(crate) async fn flood(parts: Arc<Parts>, session: Option<SessionId>, project: PathBuf) {
    let card = notice::notice(
        &notice::Notice {
            why: Why::Flood,
            agent: &Agent::ClaudeCode,
            machine: &parts.machine.name,
            project: &project,
            session: session.as_ref(),
            took: None,
            message: None,
        },
        parts.config.lang,
    );
    let uuid = format!("flood-{}", parts.now());
    courier::tell(&parts, Content::Card(card), &uuid).await;
}
