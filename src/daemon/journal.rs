//! What the daemon writes down about requests: pending ones whole, so that a
//! restart can go on with them; ended ones without their input, for good.

use serde_json::{Value, json};
use std::sync::Arc;
use tracing::{debug, warn};

use super::courier::Drawn;
use super::parts::Parts;
use crate::approvals::request::{Digest, Ending, Millis, Reach, Request};
use crate::approvals::token::TokenHash;
use crate::approvals::{Settled, record};
use crate::ids::{EventId, MessageId, RequestId};
use crate::rules::Rule;
use crate::store::{Entry, Pending, Settlement, StoreError, Subject};

/// Keeps a new request. A store that cannot write does not stop a decision;
/// only a restart would lose the request.
pub(super) async fn keep(parts: &Parts, request: &Request, token: TokenHash) {
    let pending = Pending {
        id: request.id.clone(),
        token_hash: Some(token.to_bytes()),
        subject: subject(request),
        card: None,
        asked_at: request.asked_at,
        deadline: request.deadline,
        request: record::request_json(request).to_string(),
    };
    if let Err(why) = parts.store.run(move |db| db.save_pending(&pending)).await {
        warn!("a request was not kept, a restart would lose it: {why}");
    }
}

/// The edit that makes a card true, kept together with the ending it shows.
pub(super) struct CardEdit {
    pub(super) message: MessageId,
    pub(super) card: Drawn,
}

/// Writes an ending down, and the edit of its card with it, in one go. Returns
/// the edit's version; `Err` when the store knows that the request had ended.
pub(super) async fn settle(
    parts: &Parts,
    settled: &Settled,
    event: Option<EventId>,
    edit: Option<&CardEdit>,
) -> Result<Option<i64>, StoreError> {
    let settlement = settlement(settled, event);
    let edit = edit.map(|edit| (edit.message.clone(), Arc::clone(&edit.card)));
    let at = settled.at;
    let written = parts.store.run(move |db| {
        db.atomically(|db| {
            db.settle(&settlement)?;
            edit.map(|(message, card)| db.put_edit(&message, &card, at))
                .transpose()
        })
    });
    match written.await {
        Err(StoreError::AlreadySettled) => Err(StoreError::AlreadySettled),
        Err(why) => {
            warn!("an ending was not written down: {why}");
            Ok(None)
        }
        Ok(version) => Ok(version),
    }
}

fn settlement(settled: &Settled, event: Option<EventId>) -> Settlement {
    let request = &settled.request;
    let (operator, rule, source) = match &settled.ending {
        Ending::Allowed { by, reach } => (Some(by), rules_text(reach), by.source()),
        Ending::Denied { by, .. } | Ending::Answered { by, .. } => (Some(by), None, by.source()),
        Ending::Terminal { .. } => (None, None, "terminal"),
        Ending::TimedOut => (None, None, "clock"),
        Ending::HookGone | Ending::Orphaned => (None, None, "hook"),
        Ending::Undeliverable { .. } | Ending::Dropped { .. } => (None, None, "nod"),
    };
    Settlement {
        id: request.id.clone(),
        subject: subject(request),
        card: None,
        asked_at: request.asked_at,
        at: settled.at,
        kind: record::kind(&settled.ending).to_owned(),
        ending: record::ending_json(&settled.ending).to_string(),
        operator: operator.map(|by| by.id.clone()),
        event,
        rule,
        source: source.to_owned(),
        detail: request.origin.pid.map(|pid| json!({"pid": pid})),
    }
}

fn subject(request: &Request) -> Subject {
    Subject {
        tool: request.tool.clone(),
        project: request.origin.project.to_string_lossy().into_owned(),
        machine: request.origin.machine.clone(),
        session: request.origin.session.clone(),
        digest: request.digest.hex(),
    }
}

fn rules_text(reach: &Reach) -> Option<String> {
    let rules = match reach {
        Reach::Once => return None,
        Reach::Session(rules) | Reach::Always { rules, .. } => rules,
    };
    let texts: Vec<_> = rules.iter().map(Rule::render).collect();
    Some(texts.join(", "))
}

/// An ending the store remembers and the desk no longer does.
pub(super) struct Remembered {
    pub(super) ending: Ending,
    pub(super) at: Millis,
    pub(super) asked_at: Millis,
    pub(super) digest: Digest,
    pub(super) token: Option<TokenHash>,
}

pub(super) async fn remembered(parts: &Parts, id: &RequestId) -> Option<Remembered> {
    let id = id.clone();
    let row = parts.store.run(move |db| db.settled(&id)).await.ok()??;
    let value: Value = serde_json::from_str(&row.ending).ok()?;
    Some(Remembered {
        ending: record::read_ending(&value)?,
        at: row.settled_at,
        asked_at: row.asked_at,
        digest: Digest::parse_hex(&row.subject.digest)?,
        token: row.token_hash.map(TokenHash::from_bytes),
    })
}

/// What was pending when the last daemon stopped.
pub(super) async fn pending(parts: &Parts) -> Vec<(Pending, Request)> {
    let rows = match parts.store.run(crate::store::Db::pending_all).await {
        Ok(rows) => rows,
        Err(why) => {
            warn!("what was pending before cannot be read: {why}");
            return Vec::new();
        }
    };
    let (mut pending, mut moved) = (Vec::new(), Vec::new());
    for row in rows {
        let value: Option<Value> = serde_json::from_str(&row.request).ok();
        let Some(mut request) = value.as_ref().and_then(record::read_request) else {
            continue;
        };
        if request.not_in_the_future(parts.now()) {
            moved.push(request.clone());
        }
        pending.push((row, request));
    }
    if !moved.is_empty() {
        keep_new_times(parts, moved).await;
    }
    pending
}

/// Or each start would wait for them anew.
async fn keep_new_times(parts: &Parts, moved: Vec<Request>) {
    let kept = parts.store.run(move |db| {
        moved.iter().try_for_each(|request| {
            let text = record::request_json(request).to_string();
            db.move_pending(&request.id, request.asked_at, request.deadline, &text)
        })
    });
    if let Err(why) = kept.await {
        debug!("the new deadlines of requests were not kept: {why}");
    }
}

/// Keeps what was answered to a tap that had an effect. The effect itself was
/// written down before, so the person need not wait for this.
pub(super) fn answered(parts: &Parts, event: Option<&EventId>, answer: &[u8]) {
    let Some(event) = event.cloned() else { return };
    let (answer, now) = (answer.to_vec(), parts.now());
    parts.store.later("an answer", move |db| {
        db.remember_answer(&event, &answer, now)
    });
}

/// What was answered to this event before, also before a restart.
pub(super) async fn answer(parts: &Parts, event: Option<&EventId>) -> Option<Vec<u8>> {
    let event = event?.clone();
    let kept = parts.store.run(move |db| db.answer(&event)).await;
    kept.ok().flatten()
}

/// A tap worth the audit that ended no request.
pub(super) async fn refused(
    parts: &Parts,
    kind: &str,
    request: Option<&RequestId>,
    by: Option<&str>,
    event: Option<&EventId>,
) {
    let entry = Entry {
        operator: by.map(str::to_owned),
        event: event.map(ToString::to_string),
        request: request.map(ToString::to_string),
        ..bare(parts, kind, "feishu")
    };
    append(parts, entry).await;
}

/// Something a person did to nod itself: an id of Feishu's, or `None` for a
/// command on this machine.
pub(super) async fn noted(parts: &Parts, kind: &str, by: Option<&str>) {
    let source = by.map_or("terminal", |_| "feishu");
    let entry = Entry {
        operator: by.map(str::to_owned),
        ..bare(parts, kind, source)
    };
    append(parts, entry).await;
}

fn bare(parts: &Parts, kind: &str, source: &str) -> Entry {
    Entry {
        at: parts.now(),
        kind: kind.to_owned(),
        operator: None,
        event: None,
        request: None,
        session: None,
        tool: None,
        digest: None,
        decision: None,
        rule: None,
        source: Some(source.to_owned()),
        detail: None,
    }
}

async fn append(parts: &Parts, entry: Entry) {
    if let Err(why) = parts.store.run(move |db| db.append_audit(&entry)).await {
        debug!("an audit line was not written: {why}");
    }
}

/// How often this very call was denied before.
pub(super) async fn denied_before(parts: &Parts, request: &Request) -> u32 {
    let digest = request.digest.hex();
    let denied = parts
        .store
        .run(move |db| db.times_ended(&digest, "deny"))
        .await
        .unwrap_or(0);
    u32::try_from(denied).unwrap_or(u32::MAX)
}
