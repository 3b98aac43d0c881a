//! What a request's end without an answer means where the agent's own status
//! file tells: a "no" in the terminal, or a call that nobody there can allow.

use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

use super::locate;
use crate::approvals::Settled;
use crate::approvals::request::{Ending, Request};
use crate::claude::status::{Activity, StatusReading};

/// After a "no" the file says so within this.
const TOLD_WITHIN: Duration = Duration::from_millis(250);
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// The same ending, told more exactly.
pub(crate) async fn explained(mut settled: Settled) -> Settled {
    match settled.ending {
        Ending::HookGone if was_denied(&settled.request).await => {
            let allowed = Some(false);
            settled.ending = Ending::Terminal { allowed };
        }
        Ending::TimedOut if is_unattended(&settled.request).await => {
            let mut request = Request::clone(&settled.request);
            request.origin.caller.unattended = true;
            settled.request = Arc::new(request);
        }
        _ => {}
    }
    settled
}

/// A "no" ends the hook and then the turn. A hook that was killed leaves the
/// dialog open, another hook's answer leaves the turn going on, and a session
/// that ended tells nothing.
async fn was_denied(request: &Arc<Request>) -> bool {
    if request.origin.caller.agent_id.is_some() {
        return false;
    }
    let give_up = Instant::now() + TOLD_WITHIN;
    while let Some(reading) = look(request).await {
        if !reading.in_terminal() {
            return false;
        }
        if reading.state() == Activity::Idle && reading.changed_since(request.asked_at) {
            return true;
        }
        if Instant::now() > give_up {
            return false;
        }
        sleep(LOOK_EVERY).await;
    }
    false
}

/// In print mode no dialog follows: what nobody allowed is refused.
async fn is_unattended(request: &Arc<Request>) -> bool {
    let reading = look(request).await;
    reading.is_some_and(|reading| !reading.in_terminal())
}

async fn look(request: &Request) -> Option<StatusReading> {
    let origin = &request.origin;
    let dir = origin.caller.status_dir.clone()?;
    let session = origin.session.as_ref()?.as_str().to_owned();
    let process = origin.caller.process;
    let found = tokio::task::spawn_blocking(move || locate(&dir, &session, process)).await;
    Some(found.ok()??.1)
}

#[cfg(test)]
mod tests;
