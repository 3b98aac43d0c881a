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
use crate::daemon::notices;
use crate::daemon::parts::Parts;
use crate::ids::SessionId;
use crate::rules::Leaves;
use crate::store::About;

/// A plan waits for a person, however short the turn was.
pub(super) fn turn_over(parts: &Arc<Parts>, over: TurnOver) {
    let long = parts.config.stop_notice_after.map(millis);
    let (why, message) = match over.plan {
        Some(plan) => (Why::Planned, Some(plan)),
        None if long.is_none_or(|long| over.took < long) => return,
        None if over.failed => (Why::Failed, over.last),
        None => (Why::Finished, over.last),
    };
    let took = Some(over.took);
    tell(parts, why, &over.thread, over.cwd.into(), took, message);
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
        if let Ok(session) = SessionId::parse(&format!("{NAMES}{session}")) {
            let project = project.to_string_lossy().into_owned();
            notices::send(&parts, card, uuid, About { session, project }).await;
        }
    });
}
