//! Carries out the edits that make cards true, however long Feishu is away.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::courier::{AFTER_REPLY, Edit, Edits};
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
/// Edits that a start finds are made in their order, which is that of need.
const APART: Duration = Duration::from_millis(1);

/// An edit that Feishu took, and may take back: a tap that never reached nod
/// puts its card back when it runs out of time.
struct Shown {
    message: MessageId,
    version: i64,
    /// Feishu took it some time between these.
    began: Instant,
    at: Instant,
    /// By the daemon before this one, too.
    made_before: bool,
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
        } else if self.made_before {
            Next::StrikeOff
        } else {
            Next::Keep
        }
    }
}

/// Queues what the last daemon left. Cards that it never corrected come first:
/// those it did correct are only made sure of.
pub(super) async fn restore(parts: &Parts) {
    let left = match parts.store.run(crate::store::Db::edits).await {
        Ok(left) => left,
        Err(why) => return warn!("cards left uncorrected cannot be found: {why}"),
    };
    let mut wait = AFTER_REPLY;
    for edit in left {
        parts.courier.edit_after_all(edit, wait);
        wait += APART;
    }
}

/// Carries out edits until stopped: several at once, each again and again
/// while Feishu is away, and once more when a connection was lost meanwhile.
/// What is left at the end is on disk, for the next daemon.
pub(super) async fn run(parts: Arc<Parts>, mut queue: Edits, stop: CancellationToken) {
    let mut running = JoinSet::<Option<Shown>>::new();
    let mut shown = VecDeque::<Shown>::new();
    let slots = Arc::new(Semaphore::new(EDITS_AT_ONCE));
    let mut link = parts.link.clone();
    let mut last = Line::of(&link.borrow_and_update());
    loop {
        let oldest = shown.front().map(|shown| shown.at + STAYS_AFTER);
        tokio::select! {
            () = stop.cancelled() => break,
            Some(done) = running.join_next(), if !running.is_empty() => {
                let Ok(Some(done)) = done else { continue };
                match done.next(parts.courier.under_way.losses_over_at()) {
                    Next::Again => {
                        running.spawn(again(Arc::clone(&parts), done, Arc::clone(&slots)));
                    }
                    Next::StrikeOff => strike_off(&parts.store, &done.message, done.version),
                    Next::Keep => {
                        note_made(&parts.store, &done);
                        shown.push_back(done);
                    }
                }
                if shown.len() > MAX_SHOWN && let Some(oldest) = shown.pop_front() {
                    strike_off(&parts.store, &oldest.message, oldest.version);
                }
            }
            edit = queue.0.recv(), if running.len() < MAX_WAITING_EDITS => {
                let Some(edit) = edit else { break };
                running.spawn(carry_out(Arc::clone(&parts), edit, Arc::clone(&slots)));
            }
            () = at(oldest) => {
                if let Some(oldest) = shown.pop_front() {
                    strike_off(&parts.store, &oldest.message, oldest.version);
                }
            }
            Ok(()) = link.changed() => {
                let Some(since) = last.lost(&link.borrow_and_update()) else { continue };
                parts.courier.under_way.line_lost();
                let sure = shown.partition_point(|shown| shown.at + OVER_AFTER < since);
                for shown in shown.split_off(sure) {
                    running.spawn(again(Arc::clone(&parts), shown, Arc::clone(&slots)));
                }
            }
        }
    }
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

/// Makes an edit once more when no lost tap can take it back any longer,
/// unless a newer one has taken its place by then.
async fn again(parts: Arc<Parts>, shown: Shown, slots: Arc<Semaphore>) -> Option<Shown> {
    tokio::time::sleep_until(parts.courier.under_way.losses_over_at()).await;
    let (message, version) = (shown.message.clone(), shown.version);
    let kept = parts.store.run(move |db| db.edit(&message, version)).await;
    let edit = Edit {
        card: kept.ok()??.into(),
        not_before: Instant::now(),
        message: shown.message,
        version: Some(shown.version),
        tries: 0,
        made_before: shown.made_before,
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
                    made_before: edit.made_before,
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
        for (began, at, made_before, next) in [
            (early, early, false, Next::Again),
            // The answer came late; Feishu took the edit at any time before.
            (early, late, false, Next::Again),
            (early, late, true, Next::Again),
            (over, late, false, Next::Keep),
            (over, late, true, Next::StrikeOff),
        ] {
            let shown = Shown {
                message: MessageId::parse("om_1").unwrap(),
                version: 1,
                began,
                at,
                made_before,
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
