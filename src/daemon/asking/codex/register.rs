//! A request of Codex's comes to the desk: found again after a restart, or
//! registered, written down and sent as a card.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::asks::AnswerKind;
use super::{Codex, notices};
use crate::agents::codex::ask::CodexAsk;
use crate::approvals::desk::Waiting;
use crate::approvals::request::{AskingAgent, Caller, Digest, Facts, Origin, RealPath};
use crate::clock::millis;
use crate::daemon::asking::flood;
use crate::daemon::cards::courier::Cards;
use crate::daemon::known::{journal, machine};
use crate::feishu::link::Phase;
use crate::ids::{RequestId, SessionId};

/// Finds the request again, or registers it and sends its card; then waits for
/// the desk.
pub(super) async fn put_to_a_person(
    codex: &Arc<Codex>,
    id: RequestId,
    session: SessionId,
    ask: CodexAsk,
    gone: &CancellationToken,
) -> AnswerKind {
    let cards = &codex.terminals.cards;
    let waiting = if let Some(waiting) = cards.desk.take_back(&id) {
        Some(waiting)
    } else {
        if let Some(before) = journal::remembered(&cards.journal, &id).await {
            return AnswerKind::Before {
                ending: before.ending,
                digest: before.digest,
            };
        }
        tokio::select! {
            () = gone.cancelled() => None,
            waiting = register(codex, id.clone(), session, ask) => waiting,
        }
    };
    let Some(mut waiting) = waiting else {
        return AnswerKind::Nothing;
    };
    if gone.is_cancelled() {
        cards.desk.answered_there(&id);
    }
    let handover = waiting.answered().await;
    handover.map_or(AnswerKind::Nothing, AnswerKind::Now)
}

async fn register(
    codex: &Arc<Codex>,
    id: RequestId,
    session: SessionId,
    ask: CodexAsk,
) -> Option<Waiting> {
    let cards = &codex.terminals.cards;
    if !cards.courier.has_receiver() {
        return None;
    }
    let project = ask.cwd.clone()?;
    let branch = machine::look(project.clone()).await.ok()?.branch;
    connected(cards).await;
    let ask = named(ask).await;
    let (now, is_question) = (cards.now(), ask.is_question());
    let request = Facts {
        id,
        digest: Digest::of(&ask.input),
        tool: ask.tool,
        input: ask.input,
        real: RealPath::Unasked,
        origin: Origin {
            machine: cards.buttons.machine.name.clone(),
            user: cards.buttons.machine.user.clone(),
            branch,
            cwd: project.clone(),
            project,
            session: Some(session),
            agent: ask.agent,
            pid: None,
            hosted: false,
            caller: Caller {
                agent: AskingAgent::Codex(ask.leaves),
                ..Caller::default()
            },
        },
        asked_at: now,
        deadline: now.saturating_add(millis(cards.config.request_timeout)),
    }
    .read();
    match request.question() {
        Some(posed) if cards.courier.webhook().is_some() => {
            let project = request.origin.project.clone();
            notices::no_answers(codex, &ask.thread, project, &posed.ask);
            return None;
        }
        None if is_question => return None,
        Some(_) | None => {}
    }
    if flood::refuses(cards, &request) {
        return None;
    }
    let id = request.id.clone();
    let waiting = cards.desk.register(request);
    let waiting = waiting
        .inspect_err(|why| warn!(request = %id, "Codex' request was not taken: {why}"))
        .ok()?;
    let request = cards.desk.find(&id)?;
    if let Some(token) = waiting.token() {
        journal::keep(&cards.journal, &request, token.hash()).await;
    }
    info!(request = %id, tool = %request.tool, agent = "codex", "a request waits");
    flood::deliver(cards, &request);
    Some(waiting)
}

/// The terminal can answer meanwhile, so there is no hurry.
async fn connected(cards: &Cards) {
    if cards.courier.webhook().is_none() {
        let mut link = cards.link.clone();
        // Its sender ends with the daemon.
        let _ = link
            .wait_for(|view| matches!(view.phase, Phase::Up { .. }))
            .await;
    }
}

/// What the person is asked about: Codex's own words, and where they lead.
pub(super) async fn named(mut ask: CodexAsk) -> CodexAsk {
    if let Some(project) = &ask.cwd {
        name_real_places(&mut ask.input, project).await;
    }
    ask
}

/// Says where each file of a patch, and each place of a permission, really is,
/// if links lead elsewhere.
pub(crate) async fn name_real_places(input: &mut Value, project: &Path) {
    for list in ["/changes", "/permissions/write", "/permissions/read"] {
        let Some(places) = input.pointer_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        for place in places {
            let named = json!({"file_path": place["path"]});
            let real = machine::real_path("Write", &named, project, project).await;
            let real = match &real {
                RealPath::Known { path, .. } => path.to_string_lossy(),
                RealPath::Unasked | RealPath::Unknown => "?".into(),
            };
            if place["path"] != *real {
                place["real_path"] = json!(real);
            }
        }
    }
}

#[cfg(test)]
mod tests;
