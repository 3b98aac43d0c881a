//! A tap that steers sessions: the stop of a task, a choice on a menu.

use std::sync::Arc;

use super::{ButtonTap, Ruling, TapMeaning, is_stale, turned_away};
use crate::approvals::outcome::{Deed, Outcome, Refusal};
use crate::daemon::parts::Parts;
use crate::daemon::talking::drafts;
use crate::feishu::event::Click;

/// A button that steers sessions, which is the owner's alone.
pub(super) async fn steered(parts: &Arc<Parts>, click: &Click, tap: &ButtonTap) -> Ruling {
    if parts.people.owner(&click.by).is_none() {
        return turned_away(parts, click, None, Refusal::NotTheOwner).await;
    }
    if tap.proof.is_none() {
        return Refusal::Invalid.into();
    }
    if is_stale(parts, click) {
        return Refusal::Stale.into();
    }
    match tap.wanted {
        TapMeaning::Pick(number) => {
            drafts::picked(parts, click, tap.request.as_str(), number).await
        }
        TapMeaning::Stop(session) => stop(parts, session).into(),
        TapMeaning::Permission(_) | TapMeaning::Answer(_) | TapMeaning::Gathered(_) => {
            Refusal::Invalid.into()
        }
    }
}

fn stop(parts: &Parts, session: i64) -> Outcome {
    match parts.sessions.find(session) {
        None => Refusal::Expired.into(),
        Some(_) if parts.sessions.stop_task(session) => Deed::Stopping.into(),
        Some(_) => Refusal::NothingRuns.into(),
    }
}
