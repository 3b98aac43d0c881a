//! The other hook events: what the terminal settled is withdrawn, and the end
//! of a long turn is told to the owner once.

use futures::future::join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use tracing::debug;

use crate::approvals::Withdrawal;
use crate::approvals::request::{AskingAgent, Digest};
use crate::cards::notice::Why;
use crate::claude::permission::{HookEvent, HookInput};
use crate::clock::millis;
use crate::daemon::asking::dialogs::{self, Dialogs};
use crate::daemon::cards::notices;
use crate::daemon::known::journal;
use crate::daemon::known::turns::Turns;
use crate::daemon::terminals::watching::{self, Terminals};
use crate::hook::server::HookPeer;
use crate::hook::wire::HookNotice;
use crate::ids::SessionId;
use crate::store::About;

/// Who hears of an event.
pub(crate) struct HookEvents {
    pub(crate) terminals: Arc<Terminals>,
    pub(crate) dialogs: Arc<Dialogs>,
    pub(crate) turns: Turns,
}

/// Takes one event and answers at once; sending goes on behind. Only what it
/// ended is on disk first, and what was told and turns out untrue is put right:
/// after a crash nothing that ran may wait for a tap, or be told as denied.
pub(crate) async fn take(events: Arc<HookEvents>, notice: HookNotice, peer: HookPeer) -> Value {
    let events = &events;
    let input = match HookInput::parse(&notice.raw_input) {
        Ok(input) => input,
        Err(why) => return json!({"success": false, "message": why.to_string()}),
    };
    let Some(session) = input.common.session.clone() else {
        return json!({"success": true, "withdrawn": 0});
    };
    let (common, now) = (input.common, events.dialogs.cards.now());
    let (mailboxes, desk) = (&events.dialogs.mailboxes, &events.dialogs.cards.desk);
    mailboxes.told(&notice.project, &common, notice.mailbox.as_ref(), now);
    let withdraw = |told| desk.withdraw(&session, &told, peer.since.elapsed());
    let agent = common.agent_id;
    let is_idling = matches!(&input.event, HookEvent::Notification { .. });
    if !is_idling {
        events.turns.stirs(&session, now);
        events.dialogs.over(&session);
    }
    let withdrawn = match &input.event {
        HookEvent::PostToolUse(call) | HookEvent::PostToolUseFailure(call) => {
            let digest = Digest::of(&call.input);
            events.terminals.call_ended(&session, &digest, now);
            withdraw(Withdrawal::Tool {
                tool: call.tool.clone(),
                digest,
                agent,
                took: call.took_ms,
            })
        }
        HookEvent::Stop { .. } | HookEvent::StopFailure { .. } | HookEvent::SubagentStop => {
            withdraw(Withdrawal::Turn { agent })
        }
        HookEvent::UserPromptSubmit { prompt } => {
            let prompt = prompt.as_deref().unwrap_or_default();
            let asked = mailboxes.reads(&session, prompt, now);
            events.turns.reads(&session, common.prompt_id, asked, now);
            withdraw(Withdrawal::Turn { agent })
        }
        HookEvent::SessionEnd { .. } => {
            events.turns.ended(&session);
            mailboxes.ended(&session);
            withdraw(Withdrawal::Session)
        }
        HookEvent::PermissionRequest(_)
        | HookEvent::SessionStart { .. }
        | HookEvent::Notification { .. }
        | HookEvent::Other { .. } => Vec::new(),
    };
    // A disk that takes nothing is waited for once, not once for each.
    let journal = &events.dialogs.cards.journal;
    let written = withdrawn.iter().map(|id| journal::written(journal, id));
    join_all(written).await;
    for correction in desk.take_corrections() {
        watching::correct(&events.terminals, correction).await;
    }
    let withdrawn = withdrawn.len();
    if withdrawn > 0 {
        debug!(withdrawn, "answered in the terminal");
    }
    tell(events, &session, &notice, input.event);
    json!({"success": true, "withdrawn": withdrawn})
}

fn tell(events: &Arc<HookEvents>, session: &SessionId, from: &HookNotice, event: HookEvent) {
    let about = About {
        session: session.clone(),
        project: from.project.to_string_lossy().into_owned(),
    };
    let (why, last) = match event {
        HookEvent::Stop { last_message } => (Why::Finished, last_message),
        HookEvent::StopFailure { last_message } => (Why::Failed, last_message),
        HookEvent::Notification { kind, message } if kind.as_deref() == Some("idle_prompt") => {
            (Why::Idle, message)
        }
        HookEvent::Notification { kind, message } if is_dialog(kind.as_deref()) => {
            return dialogs::told(&events.dialogs, about, message);
        }
        _ => return,
    };
    let long = events.dialogs.cards.config.stop_notice_after.map(millis);
    let Some(took) = events.turns.tell(session, long) else {
        return;
    };
    let (cards, agent) = (&events.dialogs.cards, &AskingAgent::ClaudeCode);
    let (project, session) = (&from.project, Some(session));
    let (took, last) = (Some(took), last.as_deref());
    let card = notices::drawn(cards, why, agent, project, session, took, last);
    let uuid = format!("turn-{}-{}", about.session, cards.now());
    let events = Arc::clone(events);
    tokio::spawn(async move { notices::send(&events.dialogs.cards, card, uuid, about).await });
}

/// A person is asked something in the terminal.
fn is_dialog(kind: Option<&str>) -> bool {
    matches!(kind, Some("permission_prompt" | "elicitation_dialog"))
}

#[cfg(test)]
mod tests;
