//! The other hook events: what the terminal settled is withdrawn, and the end
//! of a long turn is told to the owner once.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tracing::debug;

use super::courier;
use super::parts::Parts;
use crate::approvals::Withdrawal;
use crate::approvals::request::{Digest, Millis};
use crate::cards::notice::{self, Why};
use crate::claude::permission::{Event, HookInput, ToolCall};
use crate::feishu::messages::Content;
use crate::hook::wire::Notice;
use crate::ids::SessionId;

/// Takes one event and answers at once; sending goes on behind.
pub(super) fn take(parts: &Arc<Parts>, notice: &Notice) -> Value {
    let input = match HookInput::parse(&notice.raw_input) {
        Ok(input) => input,
        Err(why) => return json!({"success": false, "message": why.to_string()}),
    };
    let Some(session) = input.common.session else {
        return json!({"success": true, "withdrawn": 0});
    };
    let withdrawn = match &input.event {
        Event::PostToolUse(call) | Event::PostToolUseFailure(call) => {
            parts.desk.withdraw(&session, &ran(call))
        }
        Event::Stop { .. } | Event::StopFailure { .. } => {
            parts.desk.withdraw(&session, &Withdrawal::Turn)
        }
        Event::UserPromptSubmit => {
            parts.turns.began(&session, parts.now());
            parts.desk.withdraw(&session, &Withdrawal::Turn)
        }
        Event::SessionEnd { .. } => {
            parts.turns.ended(&session);
            parts.desk.withdraw(&session, &Withdrawal::Session)
        }
        Event::PermissionRequest(_)
        | Event::SessionStart { .. }
        | Event::Notification { .. }
        | Event::Other { .. } => 0,
    };
    if withdrawn > 0 {
        debug!(withdrawn, "answered in the terminal");
    }
    tell(parts, &session, notice, input.event);
    json!({"success": true, "withdrawn": withdrawn})
}

fn ran(call: &ToolCall) -> Withdrawal {
    Withdrawal::Tool {
        tool: call.tool.clone(),
        digest: Digest::of(&call.input),
        allowed: true,
    }
}

fn tell(parts: &Arc<Parts>, session: &SessionId, from: &Notice, event: Event) {
    let (why, last) = match event {
        Event::Stop { last_message } | Event::StopFailure { last_message } => {
            (Why::Finished, last_message)
        }
        Event::Notification { kind, message } if kind.as_deref() == Some("idle_prompt") => {
            (Why::Idle, message)
        }
        _ => return,
    };
    let Some(long) = parts.config.stop_notice_after else {
        return;
    };
    let long = Millis::try_from(long.as_millis()).unwrap_or(Millis::MAX);
    let now = parts.now();
    let Some(took) = parts.turns.tell(session, long, now) else {
        return;
    };
    let card = notice::notice(
        &notice::Notice {
            why,
            machine: &parts.machine.name,
            project: &from.project,
            session: Some(session),
            took: Some(took),
            message: last.as_deref(),
        },
        parts.config.lang,
    );
    let uuid = format!("turn-{session}-{now}");
    let parts = Arc::clone(parts);
    tokio::spawn(async move { courier::tell(&parts, Content::Card(card), &uuid).await });
}

/// Tells the owner that a session's further requests go to the terminal.
pub(super) async fn flood(parts: Arc<Parts>, session: Option<SessionId>, project: PathBuf) {
    let card = notice::notice(
        &notice::Notice {
            why: Why::Flood,
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
