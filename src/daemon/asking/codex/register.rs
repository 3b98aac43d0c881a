//! A request of Codex's comes to the desk: found again after a restart, or
//! registered, written down and sent as a card.

use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::asks::AnswerKind;
use super::{Codex, notices};
use crate::agents::codex::ask::{CodexAsk, PATCH};
use crate::approvals::desk::Waiting;
use crate::approvals::request::{AskingAgent, Caller, Digest, Facts, Origin, RealPath};
use crate::clock::millis;
use crate::daemon::asking::flood;
use crate::daemon::cards::courier::Cards;
use crate::daemon::known::{journal, machine};
use crate::feishu::link::Phase;
use crate::ids::{RequestId, SessionId};
use crate::sessions::questions;

/// Finds the request again, or registers it and sends its card; then waits for
/// the desk.
pub(super) async fn put_to_a_person(
    codex: &Arc<Codex>,
    id: RequestId,
    session: SessionId,
    ask: CodexAsk,
    gone: &CancellationToken,
) -> AnswerKind {
    let waiting = if let Some(waiting) = codex.terminals.cards.desk.take_back(&id) {
        Some(waiting)
    } else {
        if let Some(before) = journal::remembered(&codex.terminals.cards.journal, &id).await {
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
        codex.terminals.cards.desk.answered_there(&id);
    }
    waiting
        .answered()
        .await
        .map_or(AnswerKind::Nothing, |handover| {
            AnswerKind::Now(Box::new(handover))
        })
}

async fn register(
    codex: &Arc<Codex>,
    id: RequestId,
    session: SessionId,
    ask: CodexAsk,
) -> Option<Waiting> {
    if !codex.terminals.cards.courier.has_receiver() {
        return None;
    }
    let project = ask.cwd.clone()?;
    let branch = machine::look(project.clone()).await.ok()?.branch;
    connected(&codex.terminals.cards).await;
    match questions::of(&ask.tool, &ask.input) {
        Some((asked, _)) if codex.terminals.cards.courier.webhook().is_some() => {
            notices::no_answers(codex, &ask.thread, project, &asked);
            return None;
        }
        None if ask.is_question() => return None,
        Some(_) | None => {}
    }
    let now = codex.terminals.cards.now();
    let of_session = Some(session.clone());
    let agent = AskingAgent::Codex(ask.leaves.clone());
    if flood::refuses(&codex.terminals.cards, &of_session, &project, agent) {
        return None;
    }
    let ask = named(ask).await;
    let timeout = millis(codex.terminals.cards.config.request_timeout);
    let request = Facts {
        id: id.clone(),
        digest: Digest::of(&ask.input),
        tool: ask.tool,
        input: ask.input,
        real: RealPath::Unasked,
        origin: Origin {
            machine: codex.terminals.cards.buttons.machine.name.clone(),
            user: codex.terminals.cards.buttons.machine.user.clone(),
            branch,
            cwd: project.clone(),
            project,
            session: Some(session),
            agent: None,
            pid: None,
            hosted: false,
            caller: Caller {
                agent: AskingAgent::Codex(ask.leaves),
                ..Caller::default()
            },
        },
        asked_at: now,
        deadline: now.saturating_add(timeout),
    }
    .read();
    let waiting = match codex.terminals.cards.desk.register(request) {
        Ok(waiting) => waiting,
        Err(why) => {
            warn!(request = %id, "Codex' request was not taken: {why}");
            return None;
        }
    };
    let request = codex.terminals.cards.desk.find(&id)?;
    if let Some(token) = waiting.token() {
        journal::keep(&codex.terminals.cards.journal, &request, token.hash()).await;
    }
    info!(request = %id, tool = %request.tool, agent = "codex", "a request waits");
    flood::deliver(&codex.terminals.cards, &request);
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
    if ask.tool == PATCH
        && let Some(project) = &ask.cwd
    {
        name_real_places(&mut ask.input, project).await;
    }
    ask
}

/// Says where each file of a patch really is, if links lead elsewhere.
pub(crate) async fn name_real_places(input: &mut serde_json::Value, project: &Path) {
    let Some(changes) = input["changes"].as_array_mut() else {
        return;
    };
    for change in changes {
        let named = serde_json::json!({"file_path": change["path"]});
        let real = machine::real_path("Write", &named, project, project).await;
        let real = match &real {
            RealPath::Known { path, .. } => path.to_string_lossy(),
            RealPath::Unasked | RealPath::Unknown => "?".into(),
        };
        if change["path"] != *real {
            change["real_path"] = serde_json::json!(real);
        }
    }
}

#[cfg(test)]
mod tests;
