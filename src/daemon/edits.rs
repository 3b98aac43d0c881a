//! Carries out the edits that make cards true, however long Feishu is away.

mod later;

pub(super) use later::Made;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use self::later::{Later, PutOff};
use super::courier::{Edit, Edits};
use super::nameless;
use super::parts::Parts;
use super::under_way::OVER_AFTER;
use crate::feishu::connection::View;
use crate::feishu::error::ApiError;
use crate::feishu::link::Phase;
use crate::ids::MessageId;
use crate::store::Store;

/// Some may hang for as long as a call may take, and the others must not wait
/// for them.
const EDITS_AT_ONCE: usize = 32;
const MAX_WAITING_EDITS: usize = 2_048;
const MAX_SHOWN: usize = 4_096;
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(60);
/// Cards older than this can no longer be edited.
const MAX_TRIES: u32 = 10_000;
/// A connection that dies is noticed within six seconds, and a tap that was
/// lost with it is over three seconds later: after this an edit stays.
const STAYS_AFTER: Duration = Duration::from_secs(10);
/// So many of those put off at a time, so that a new one finds its turn soon.
const REPEATS_AT_ONCE: usize = 32;

/// An edit that Feishu took, and may take back: a tap that never reached nod
/// shows the card as it was before the tap once its three seconds are over.
struct Shown {
    message: MessageId,
    version: i64,
    /// Feishu took it some time between these.
    began: Instant,
    at: Instant,
    /// Before that.
    made: Made,
}

/// What becomes of an edit that was made.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// A tap that was lost may take it back.
    Again,
    Keep,
    /// It was made sure of after a crash, when no tap lost with it could be
    /// under way; a daemon that crashes again and again must get through.
    StrikeOff,
}

impl Shown {
    fn next(&self, losses_over: Instant) -> Next {
        if self.began < losses_over {
            Next::Again
        } else if self.made == Made::ByTheLast {
            Next::StrikeOff
        } else {
            Next::Keep
        }
    }

    fn put_off(self) -> PutOff {
        PutOff {
            message: self.message,
            version: self.version,
            made: self.made.max(Made::ByThis),
        }
    }
}

/// Carries out edits until stopped: several at once, each again and again
/// while Feishu is away, and once more when a connection was lost meanwhile.
/// What is left at the end is on disk, for the next daemon.
pub(super) async fn run(parts: Arc<Parts>, mut queue: Edits, stop: CancellationToken) {
    let (mut new, mut repeats) = (JoinSet::new(), JoinSet::new());
    let mut shown = VecDeque::<Shown>::new();
    let mut later = left_by_the_last(&parts).await;
    let slots = Arc::new(Semaphore::new(EDITS_AT_ONCE));
    let mut link = parts.link.clone();
    let mut last = Line::of(&link.borrow_and_update());
    loop {
        let stays = shown.front().map(|shown| shown.at + STAYS_AFTER);
        let losses_over = parts.courier.under_way.losses_over_at();
        let due = later.due(Instant::now(), losses_over);
        let done: Option<Shown> = tokio::select! {
            () = stop.cancelled() => break,
            Some(done) = new.join_next(), if !new.is_empty() => done.ok().flatten(),
            Some(done) = repeats.join_next(), if !repeats.is_empty() => done.ok().flatten(),
            edit = queue.0.recv(), if new.len() < MAX_WAITING_EDITS => {
                let Some(edit) = edit else { break };
                new.spawn(carry_out(Arc::clone(&parts), edit, Arc::clone(&slots)));
                None
            }
            () = at(due), if repeats.len() < REPEATS_AT_ONCE => {
                if let Some(one) = later.next(Instant::now(), losses_over) {
                    repeats.spawn(repeat(Arc::clone(&parts), one, Arc::clone(&slots)));
                }
                None
            }
            () = at(stays) => {
                if let Some(oldest) = shown.pop_front() {
                    strike_off(&parts.store, &oldest.message, oldest.version);
                }
                None
            }
            Ok(()) = link.changed() => {
                if let Some(since) = last.lost(&link.borrow_and_update()) {
                    parts.courier.under_way.line_lost();
                    let sure = shown.partition_point(|shown| shown.at + OVER_AFTER < since);
                    shown.split_off(sure).into_iter().for_each(|one| later.put(one.put_off()));
                }
                None
            }
        };
        let Some(done) = done else { continue };
        if done.made == Made::NotYet {
            note_made(&parts.store, &done);
        }
        match done.next(parts.courier.under_way.losses_over_at()) {
            Next::Again => later.put(done.put_off()),
            Next::StrikeOff => strike_off(&parts.store, &done.message, done.version),
            Next::Keep => shown.push_back(done),
        }
        if shown.len() > MAX_SHOWN
            && let Some(oldest) = shown.pop_front()
        {
            strike_off(&parts.store, &oldest.message, oldest.version);
        }
    }
}

async fn left_by_the_last(parts: &Parts) -> Later {
    let mut later = Later::default();
    match parts.store.run(crate::store::Db::edits).await {
        Ok(left) => {
            parts.courier.restore_faces(&left);
            let left = left.into_iter();
            left.filter(|edit| !nameless::is_stand_in(&edit.message))
                .for_each(|edit| later.put(edit.into()));
        }
        Err(why) => warn!("cards left uncorrected cannot be found: {why}"),
    }
    later
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// The connection as it was seen last.
struct Line {
    connects: u64,
    up: bool,
}

impl Line {
    fn of(view: &View) -> Self {
        Self {
            connects: view.counts.connects,
            up: matches!(view.phase, Phase::Up { .. }),
        }
    }

    /// Since when taps may have been lost with a connection; `None` when none
    /// was lost.
    fn lost(&mut self, view: &View) -> Option<Instant> {
        let before = std::mem::replace(self, Self::of(view));
        let lines = self.connects - before.connects;
        let lost = u64::from(before.up) + lines - u64::from(self.up);
        let heard = view.counts.lost_heard.map(Instant::from_std);
        match lost {
            0 => None,
            1 => heard,
            // Each was heard at some time of its own.
            _ => Some(heard? - STAYS_AFTER),
        }
    }
}

/// Makes an edit that was put off, unless a newer one has taken its place.
async fn repeat(parts: Arc<Parts>, edit: PutOff, slots: Arc<Semaphore>) -> Option<Shown> {
    let (message, version) = (edit.message.clone(), edit.version);
    let kept = parts.store.run(move |db| db.edit(&message, version)).await;
    let tapped = parts.courier.under_way.over_at(&edit.message);
    let edit = Edit {
        card: kept.ok()??.into(),
        not_before: tapped.unwrap_or_else(Instant::now),
        message: edit.message,
        version: Some(edit.version),
        tries: 0,
        made: edit.made,
    };
    carry_out(parts, edit, slots).await
}

/// Makes an edit, however long that takes.
async fn carry_out(parts: Arc<Parts>, mut edit: Edit, slots: Arc<Semaphore>) -> Option<Shown> {
    loop {
        wait_for_turn(&parts, &edit).await;
        if edit.tries > 0 && is_outdated(&parts.store, &edit).await {
            return None;
        }
        let messages = parts.courier.messages()?;
        let slot = slots.acquire().await;
        let began = Instant::now();
        // Thousands may wait up to here.
        let patched = Box::pin(messages.patch(&edit.message, Arc::clone(&edit.card))).await;
        drop(slot);
        match patched {
            Ok(()) => {
                return Some(Shown {
                    message: edit.message,
                    version: edit.version?,
                    began,
                    at: Instant::now(),
                    made: edit.made,
                });
            }
            Err(why) if may_pass(&why) && edit.tries < MAX_TRIES => {
                edit.tries += 1;
                let grown = RETRY_FIRST * 2_u32.saturating_pow(edit.tries.min(6));
                let wait = why.retry_after().unwrap_or(grown).min(RETRY_MOST);
                debug!("a card is corrected later: {why}");
                edit.not_before = Instant::now() + wait;
            }
            Err(why) => {
                warn!("a card could not be corrected: {why}");
                strike_off(&parts.store, &edit.message, edit.version?);
                return None;
            }
        }
    }
}

/// Until it is time, or, for one that failed, until Feishu is back.
async fn wait_for_turn(parts: &Parts, edit: &Edit) {
    let mut link = parts.link.clone();
    let connects = link.borrow().counts.connects;
    let back = async {
        let up = link.wait_for(|view| view.counts.connects > connects);
        if edit.tries == 0 || up.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = tokio::time::sleep_until(edit.not_before) => {}
        () = back => {}
    }
}

/// A card must become true however long Feishu does not let us in.
pub(super) fn may_pass(why: &ApiError) -> bool {
    let shut_out = matches!(
        why,
        ApiError::StaleToken(_) | ApiError::BadCredentials(_) | ApiError::Setup { .. }
    );
    shut_out || why.is_retryable()
}

fn note_made(store: &Store, shown: &Shown) {
    let (message, version) = (shown.message.clone(), shown.version);
    store.later("that a card was corrected", move |db| {
        db.edit_made(&message, version)
    });
}

fn strike_off(store: &Store, message: &MessageId, version: i64) {
    let message = message.clone();
    store.later("that an edit is done", move |db| {
        db.edit_done(&message, version)
    });
}

/// Whether a newer edit has taken its place while it could not be made.
async fn is_outdated(store: &Store, edit: &Edit) -> bool {
    let Some(version) = edit.version else {
        return false;
    };
    let message = edit.message.clone();
    let kept = store.run(move |db| db.edit(&message, version)).await;
    matches!(kept, Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feishu::connection;

    fn view(connects: u64, up: bool, heard: Option<Instant>) -> View {
        let mut view = connection::first_view();
        view.counts.connects = connects;
        view.counts.lost_heard = heard.map(Instant::into_std);
        if up {
            let since = Instant::now().into_std();
            view.phase = Phase::Up { since };
        }
        view
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_begun_while_a_lost_tap_may_be_under_way_is_made_again() {
        let over = Instant::now() + Duration::from_secs(60);
        let (early, late) = (over - Duration::from_secs(1), over + OVER_AFTER);
        for (began, at, made, next) in [
            (early, early, Made::NotYet, Next::Again),
            // The answer came late; Feishu took the edit at any time before.
            (early, late, Made::NotYet, Next::Again),
            (early, late, Made::ByTheLast, Next::Again),
            (over, late, Made::NotYet, Next::Keep),
            (over, late, Made::ByThis, Next::Keep),
            (over, late, Made::ByTheLast, Next::StrikeOff),
        ] {
            let shown = Shown {
                message: MessageId::parse("om_1").unwrap(),
                version: 1,
                began,
                at,
                made,
            };
            assert_eq!(shown.next(over), next);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_loss_of_a_connection_is_seen_once_with_what_it_may_have_lost() {
        let heard = Instant::now() + Duration::from_secs(60);
        let mut line = Line::of(&view(0, false, None));
        assert_eq!(line.lost(&view(1, true, None)), None, "the first connect");
        assert_eq!(line.lost(&view(1, false, Some(heard))), Some(heard));
        assert_eq!(line.lost(&view(1, false, Some(heard))), None, "redialing");
        assert_eq!(line.lost(&view(2, true, Some(heard))), None, "back");
        // Lost and back between two looks.
        assert_eq!(line.lost(&view(3, true, Some(heard))), Some(heard));
        let longest_ago = Some(heard - STAYS_AFTER);
        assert_eq!(line.lost(&view(5, true, Some(heard))), longest_ago);
        assert_eq!(line.lost(&view(6, false, Some(heard))), longest_ago);
    }
}
