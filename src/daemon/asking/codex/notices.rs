//! What the owner is told of Codex without being asked: that a long turn is
//! over, that there is a plan, and that something waits which only the terminal
//! can answer.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agents::codex::act::TurnOver;
use crate::agents::codex::ask::NAMES;
use crate::approvals::request::Agent;
use crate::cards::notice::{self, Why};
use crate::clock::{Millis, millis};
use crate::daemon::asking::dialogs;
use crate::daemon::asking::hook_events;
use crate::daemon::parts::Parts;
use crate::ids::SessionId;
use crate::rules::Leaves;
use crate::sessions::questions::Ask;
use crate::store::About;

/// A plan waits for a person, however short the turn was.
pub(super) fn turn_over(parts: &Arc<Parts>, over: TurnOver) {
    let long = parts.config.stop_notice_after.map(millis);
    if let Some(plan) = over.plan {
        let Some(session) = named(&over.thread) else {
            return;
        };
        // The terminal may have decided before its plan was read.
        let went_on = parts.codex.is_busy(&over.thread);
        let project = over.cwd;
        let about = About { session, project };
        return dialogs::planned(parts, about, plan, over.took, went_on);
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
    tell(parts, why, &over.thread, over.cwd.into(), took, over.last);
}

/// The thread does something else now, or nobody has it open: what its
/// terminal asked about a plan is over.
pub(super) fn went_on(parts: &Parts, thread: &str) {
    if let Some(session) = named(thread) {
        parts.dialogs.over(&session);
    }
}

/// The name of a thread among all agents' sessions.
fn named(thread: &str) -> Option<SessionId> {
    SessionId::parse(&format!("{NAMES}{thread}")).ok()
}

/// The thread of such a name.
pub(crate) fn thread(session: &SessionId) -> Option<SessionId> {
    SessionId::parse(session.as_str().strip_prefix(NAMES)?).ok()
}

pub(super) fn terminal_only(parts: &Arc<Parts>, thread: &str, cwd: Option<String>, known: bool) {
    let why = if known { Why::Terminal } else { Why::Unknown };
    tell(
        parts,
        why,
        thread,
        cwd.unwrap_or_default().into(),
        None,
        None,
    );
}

/// Where only a custom bot speaks, a question can't be answered from Feishu.
pub(super) fn no_answers(parts: &Arc<Parts>, thread: &str, project: PathBuf, asked: &Ask) {
    let texts = asked
        .questions
        .iter()
        .map(|question| question.text.as_str());
    let texts = texts.collect::<Vec<_>>().join("\n");
    tell(parts, Why::NoAnswers, thread, project, None, Some(texts));
}

fn tell(
    parts: &Arc<Parts>,
    why: Why,
    thread: &str,
    project: PathBuf,
    took: Option<Millis>,
    message: Option<String>,
) {
    let Ok(session) = SessionId::parse(thread) else {
        return;
    };
    let parts = Arc::clone(parts);
    tokio::spawn(async move {
        let card = notice::notice(
            &notice::Notice {
                why,
                agent: &Agent::Codex(Leaves::default()),
                machine: &parts.machine.name,
                project: &project,
                session: Some(&session),
                took,
                message: message.as_deref(),
            },
            parts.config.lang,
        );
        let uuid = format!("codex-{session}-{}", parts.now());
        if let Some(session) = named(session.as_str()) {
            let project = project.to_string_lossy().into_owned();
            hook_events::send(&parts, card, uuid, About { session, project }).await;
        }
    });
}
