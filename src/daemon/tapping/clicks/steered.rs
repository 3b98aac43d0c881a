//! A tap that steers sessions: the stop of a task, a choice on a menu.

use std::sync::Arc;

use super::{ButtonTap, Ruling, TapMeaning, Taps, is_stale, turned_away};
use crate::approvals::outcome::{Deed, Outcome, Refusal};
use crate::daemon::talking::picks;
use crate::feishu::event::Click;

/// A button that steers sessions, which is the owner's alone.
pub(super) async fn steered(taps: &Arc<Taps>, click: &Click, tap: &ButtonTap) -> Ruling {
    if taps.people.owner(&click.by).is_none() {
        return turned_away(taps, click, None, Refusal::NotTheOwner).await;
    }
    if tap.proof.is_none() {
        return Refusal::Invalid.into();
    }
    if is_stale(taps, click) {
        return Refusal::Stale.into();
    }
    match tap.wanted {
        TapMeaning::Pick(number) => {
            picks::picked(&taps.chat, click, tap.request.as_str(), number).await
        }
        TapMeaning::Stop(session) => stop(taps, session).into(),
        TapMeaning::Permission(_) | TapMeaning::Answer(_) | TapMeaning::Gathered(_) => {
            Refusal::Invalid.into()
        }
    }
}

fn stop(taps: &Taps, session: i64) -> Outcome {
    match taps.chat.sessions.find(session) {
        None => Refusal::Expired.into(),
        Some(_) if taps.chat.sessions.stop_task(session) => Deed::Stopping.into(),
        Some(_) => Refusal::NothingRuns.into(),
    }
}
