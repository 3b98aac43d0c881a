//! The other hook events: what the terminal settled is withdrawn, and the end
//! of a long turn is told to the owner once, when no Stop hook of somebody
//! else has sent Claude back to work.

use futures::future::join_all;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::debug;

use crate::approvals::request::{AskingAgent, Digest};
use crate::approvals::{ToldCall, Withdrawal};
use crate::cards::notice::Why;
use crate::claude::permission::{Common, HookEvent, HookInput, ToolCall};
use crate::claude::status::{self, Activity};
use crate::clock::millis;
use crate::daemon::asking::dialogs::{self, Dialogs};
use crate::daemon::cards::notices;
use crate::daemon::known::journal;
use crate::daemon::known::turns::{SinceStop, Turns};
use crate::daemon::terminals::watching::{self, Terminals};
use crate::hook::server::HookPeer;
use crate::hook::wire::HookNotice;
use crate::ids::SessionId;
use crate::store::About;
use crate::talk::CallFate;

/// How long a Stop hook may take where nobody says otherwise.
const STOP_HOOKS_END: Duration = Duration::from_secs(600);
/// How long a session without a status is taken to be at work after it stopped.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(200);

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
    let (agent, process) = (common.agent_id.clone(), notice.process);
    let is_idling = matches!(&input.event, HookEvent::Notification { .. });
    if !is_idling {
        if !matches!(&input.event, HookEvent::SessionEnd { .. }) {
            events.turns.stirs(&session, now);
        }
        events.dialogs.over(&session);
    }
    if ends_something(&input.event) {
        // What became of each call says more than that the turn is over.
        watching::caught_up(&events.terminals, &session).await;
    }
    let withdrawn = match &input.event {
        HookEvent::PostToolUse(call) | HookEvent::PostToolUseFailure(call) => {
            let digest = Digest::of(&call.input);
            events.terminals.call_ended(&session, &digest, now);
            let told = ToldCall::new(&session, agent.as_ref(), &call.tool, digest);
            let fate = fate(events, &told, &common, call).await;
            if fate.is_none() && call.looks_refused {
                return json!({"success": true, "withdrawn": 0});
            }
            withdraw(Withdrawal::Tool {
                tool: call.tool.clone(),
                digest,
                agent,
                call: call.id.clone(),
                took: call.took_ms,
                fate,
            })
        }
        HookEvent::Stop { .. } | HookEvent::StopFailure { .. } | HookEvent::SubagentStop => {
            withdraw(Withdrawal::Turn { agent, process })
        }
        HookEvent::UserPromptSubmit { prompt } => {
            let prompt = prompt.as_deref().unwrap_or_default();
            let asked = mailboxes.reads(&session, prompt, now);
            events.turns.reads(&session, common.prompt_id, asked, now);
            withdraw(Withdrawal::Turn { agent, process })
        }
        HookEvent::SessionEnd { reason } => {
            events.turns.ended(&session);
            mailboxes.ended(&session);
            let cleared = reason.as_deref() == Some("clear");
            withdraw(Withdrawal::Session { process, cleared })
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
    let status_dir = common.transcript.as_deref().and_then(status::dir);
    tell(events, &session, &notice, input.event, status_dir);
    json!({"success": true, "withdrawn": withdrawn})
}

/// What the agent wrote down of this call, which it does a moment after its
/// event. Waited for only where something that was asked depends on it.
async fn fate(
    events: &HookEvents,
    told: &ToldCall,
    common: &Common,
    call: &ToolCall,
) -> Option<CallFate> {
    let desk = &events.dialogs.cards.desk;
    let (name, file) = (call.id.as_deref()?, watching::transcript_of(common)?);
    if !desk.concerns(told, Some(name)) {
        return None;
    }
    watching::fate_of(file, name.to_owned()).await
}

fn tell(
    events: &Arc<HookEvents>,
    session: &SessionId,
    from: &HookNotice,
    event: HookEvent,
    status_dir: Option<PathBuf>,
) {
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
    if why == Why::Finished {
        let (events, about) = (Arc::clone(events), about);
        let Some(stop) = events.turns.stopped(session) else {
            return;
        };
        tokio::spawn(async move {
            if was_the_end(&events.turns, &about.session, stop, status_dir).await {
                let session = about.session.clone();
                told_end(&events, about, why, last.as_deref());
                if events.turns.since_stop(&session, stop) == SinceStop::SessionOver {
                    events.turns.forget(&session);
                }
            }
        });
    } else {
        told_end(events, about, why, last.as_deref());
    }
}

/// Waits until it is known whether the turn that stopped is over: a Stop hook
/// of somebody else's may send Claude back to work, and Claude Code waits for
/// all of them. Its status is `idle` only after that.
async fn was_the_end(
    turns: &Turns,
    session: &SessionId,
    stop: u64,
    status_dir: Option<PathBuf>,
) -> bool {
    let began = Instant::now();
    let mut was_seen = false;
    while began.elapsed() < STOP_HOOKS_END {
        tokio::time::sleep(LOOK_EVERY).await;
        match turns.since_stop(session, stop) {
            SinceStop::WentOn => return false,
            SinceStop::SessionOver => return true,
            SinceStop::Nothing => {}
        }
        let (dir, name) = (status_dir.clone(), session.as_str().to_owned());
        let look = move || watching::locate(&dir?, &name, None);
        let looked = tokio::task::spawn_blocking(look).await.ok().flatten();
        let state = looked.map(|(_, reading)| reading.state());
        match state {
            Some(Activity::Idle) => return true,
            Some(Activity::Busy | Activity::Waiting) => was_seen = true,
            // Gone with its process, or never there.
            None if was_seen => return true,
            Some(Activity::Other) | None if began.elapsed() >= UNKNOWN_FOR => return true,
            Some(Activity::Other) | None => {}
        }
    }
    false
}

fn told_end(events: &Arc<HookEvents>, about: About, why: Why, last: Option<&str>) {
    let long = events.dialogs.cards.config.stop_notice_after.map(millis);
    let Some(took) = events.turns.tell(&about.session, long) else {
        return;
    };
    let (cards, agent) = (&events.dialogs.cards, &AskingAgent::ClaudeCode);
    let (project, session) = (PathBuf::from(&about.project), Some(&about.session));
    let card = notices::drawn(cards, why, agent, &project, session, Some(took), last);
    let uuid = format!("turn-{}-{}", about.session, cards.now());
    let events = Arc::clone(events);
    tokio::spawn(async move { notices::send(&events.dialogs.cards, card, uuid, about).await });
}

/// The end of a turn or of a session.
fn ends_something(event: &HookEvent) -> bool {
    matches!(
        event,
        HookEvent::Stop { .. }
            | HookEvent::StopFailure { .. }
            | HookEvent::SubagentStop
            | HookEvent::UserPromptSubmit { .. }
            | HookEvent::SessionEnd { .. }
    )
}

/// A person is asked something in the terminal.
fn is_dialog(kind: Option<&str>) -> bool {
    matches!(kind, Some("permission_prompt" | "elicitation_dialog"))
}

#[cfg(test)]
mod tests;
