//! What the owner is told of Codex without being asked: that a long turn is
//! over, that there is a plan, and that something waits which only the terminal
//! can answer.

use std::path::PathBuf;
use std::sync::Arc;

use super::Codex;
use crate::agents::codex::act::TurnOver;
use crate::agents::codex::ask::named;
use crate::approvals::request::AskingAgent;
use crate::cards::notice::Why;
use crate::clock::{Millis, millis};
use crate::daemon::asking::dialogs;
use crate::daemon::cards::notices;
use crate::ids::SessionId;
use crate::rules::Leaves;
use crate::sessions::questions::Ask;
use crate::store::About;

/// A plan waits for a person, however short the turn was.
pub(super) fn turn_over(codex: &Arc<Codex>, over: TurnOver) {
    let long = codex.terminals.cards.config.stop_notice_after.map(millis);
    if let Some(plan) = over.plan {
        let Some(session) = named(&over.thread) else {
            return;
        };
        // The terminal may have decided before its plan was read.
        let went_on = codex.links.is_busy(&over.thread);
        let project = over.cwd;
        let about = About { session, project };
        return dialogs::planned(&codex.dialogs, about, plan, over.took, went_on);
    }
    if long.is_none_or(|long| over.took < long) {
        return;
    }
    let why = if over.failed {
        Why::Failed
    } else {
        Why::Finished
    };
    let took = Some(over.took);
    tell(codex, why, &over.thread, over.cwd.into(), took, over.last);
}

/// The thread does something else now, or nobody has it open: what its
/// terminal asked about a plan is over.
pub(super) fn went_on(codex: &Codex, thread: &str) {
    if let Some(session) = named(thread) {
        codex.dialogs.over(&session);
    }
}

pub(super) fn terminal_only(codex: &Arc<Codex>, thread: &str, cwd: Option<String>, known: bool) {
    let why = if known { Why::Terminal } else { Why::Unknown };
    let project = cwd.unwrap_or_default().into();
    tell(codex, why, thread, project, None, None);
}

/// Where only a custom bot speaks, a question can't be answered from Feishu.
pub(super) fn no_answers(codex: &Arc<Codex>, thread: &str, project: PathBuf, asked: &Ask) {
    let texts: Vec<_> = asked.questions.iter().map(|it| &*it.text).collect();
    let texts = texts.join("\n");
    tell(codex, Why::NoAnswers, thread, project, None, Some(texts));
}

fn tell(
    codex: &Arc<Codex>,
    why: Why,
    thread: &str,
    project: PathBuf,
    took: Option<Millis>,
    message: Option<String>,
) {
    let Ok(session) = SessionId::parse(thread) else {
        return;
    };
    let codex = Arc::clone(codex);
    tokio::spawn(async move {
        let (cards, agent) = (
            &codex.terminals.cards,
            AskingAgent::Codex(Leaves::default()),
        );
        let (of, message) = (Some(&session), message.as_deref());
        let card = notices::drawn(cards, why, &agent, &project, of, took, message);
        let uuid = format!("codex-{session}-{}", cards.now());
        if let Some(session) = named(session.as_str()) {
            let project = project.to_string_lossy().into_owned();
            notices::send(cards, card, uuid, About { session, project }).await;
        }
    });
}

#[cfg(test)]
mod tests;
