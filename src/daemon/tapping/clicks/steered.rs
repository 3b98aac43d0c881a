//! A tap that steers sessions: the stop of a task, a choice on a menu.

use std::sync::Arc;

use super::{Shown, Tap, Wanted, is_stale};
use crate::daemon::known::journal;
use crate::daemon::parts::Parts;
use crate::daemon::talking::drafts;
use crate::feishu::event::Click;
use crate::wording::Toast;

/// A button that steers sessions, which is the owner's alone.
pub(super) async fn steered(parts: &Arc<Parts>, click: &Click, tap: &Tap) -> Shown {
    if parts.owner(&click.by).is_none() {
        let who = click.by.id().map(|id| id.to_string());
        let event = click.head.event_id.as_ref();
        journal::turned_away(parts, "not_the_owner", None, who.as_deref(), event).await;
        return Toast::NotTheOwner.into();
    }
    if !tap.sealed {
        return Toast::Invalid.into();
    }
    if is_stale(parts, click) {
        return Toast::Stale.into();
    }
    match tap.wanted {
        Wanted::Pick(number) => drafts::picked(parts, click, tap.request.as_str(), number).await,
        Wanted::Stop(session) => stop(parts, session).into(),
        Wanted::Permission(_) | Wanted::Answer(_) | Wanted::Gathered(_) => Toast::Invalid.into(),
    }
}

fn stop(parts: &Parts, session: i64) -> Toast {
    match parts.sessions.find(session) {
        None => Toast::Expired,
        Some(_) if parts.sessions.stop_task(session) => Toast::Stopping,
        Some(_) => Toast::NothingRuns,
    }
}
