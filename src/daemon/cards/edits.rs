//! Carries out the edits that make cards true, however long Feishu is away.

mod later;
mod one_by_one;

pub(crate) use later::Later;
pub(crate) use one_by_one::OneByOne;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::cards::ending;
use crate::daemon::cards::courier::Cards;
use crate::daemon::cards::courier::{self, CardText};
use crate::daemon::cards::nameless;
use crate::daemon::cards::under_way::OVER_AFTER;
use crate::feishu::connection::LinkView;
use crate::feishu::error::ApiError;
use crate::feishu::link::Phase;
use crate::ids::MessageId;
use crate::store::{LeftEdit, Store, StoreError};
use crate::wording::need::Need;

/// Some may hang for as long as a call may take, and the others must not wait
/// for them.
const EDITS_AT_ONCE: usize = 32;
const MAX_WAITING_EDITS: usize = 2_048;
const MAX_SHOWN: usize = 4_096;
/// An edit before the one that is kept may not come after it.
const SOON: Duration = Duration::from_secs(1);
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(60);
/// A week at [`RETRY_MOST`]; Feishu edits no message older than fourteen days.
const MAX_TRIES: u32 = 10_000;
/// A connection that dies is noticed within twenty seconds even if nobody
/// waits, and a tap that was lost with it is over three seconds later: after
/// this an edit stays.
const STAYS_AFTER: Duration = Duration::from_secs(25);
/// Half of the slots stay free for new edits.
const REPEATS_AT_ONCE: usize = EDITS_AT_ONCE / 2;
/// Made so often, each time after whatever may have taken it back was over, an
/// edit stays: where connections and daemons die every few seconds there is no
/// better time to wait for, and the others need theirs.
const ENOUGH: u32 = 3;

/// One card that must be changed.
#[derive(Debug, Clone)]
pub(crate) struct Edit {
    pub(crate) message: MessageId,
    pub(crate) card: CardText,
    pub(crate) version: Option<i64>,
    pub(crate) not_before: Instant,
    pub(crate) tries: u32,
    /// How often Feishu took it before.
    pub(crate) made: u32,
    pub(crate) hiccups: u32,
    /// Of the input no more than the title is left on it.
    pub(crate) bare: bool,
    /// Made at once or not at all, before the one that is kept.
    pub(crate) soon: bool,
}

impl Edit {
    /// By name, and taken so many times more; `None` if it is not on disk.
    fn left(self, more: u32) -> Option<LeftEdit> {
        Some(LeftEdit {
            message: self.message,
            version: self.version?,
            made: self.made + more,
        })
    }
}

/// The queue's far end, for [`run`].
pub(crate) struct Edits(pub(crate) mpsc::Receiver<Edit>);

/// An edit that Feishu took, and may take back: a tap that never reached nod
/// shows the card as it was before the tap once its three seconds are over.
struct Shown {
    /// As it is now.
    edit: LeftEdit,
    /// Feishu took it some time between these.
    began: Instant,
    at: Instant,
}

/// What becomes of an edit that was made.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// A tap that was lost may take it back.
    Again,
    Keep,
    StrikeOff,
}

impl Shown {
    fn next(&self, losses_over: Instant) -> Next {
        if self.edit.made >= ENOUGH {
            Next::StrikeOff
        } else if self.began < losses_over {
            Next::Again
        } else {
            Next::Keep
        }
    }
}

/// Carries out edits until stopped: several at once, each again and again
/// while Feishu is away, and once more when a connection was lost meanwhile.
/// What is left at the end is on disk, for the next daemon.
pub(crate) async fn run(
    cards: Arc<Cards>,
    mut queue: Edits,
    mut later: Later,
    stop: CancellationToken,
) {
    let mut link = cards.link.clone();
    let mut last = Line::of(&link.borrow_and_update());
    let (mut new, mut repeats) = (JoinSet::new(), JoinSet::new());
    let mut shown = VecDeque::<Shown>::new();
    let slots = Arc::new(Semaphore::new(EDITS_AT_ONCE));
    let over_at = || cards.courier.under_way.losses_over_at();
    loop {
        let stays = shown.front().map(|shown| shown.at + STAYS_AFTER);
        let due = later.due(Instant::now());
        let done: Option<Shown> = tokio::select! {
            () = stop.cancelled() => break,
            Some(done) = new.join_next(), if !new.is_empty() => done.ok().flatten(),
            Some(done) = repeats.join_next(), if !repeats.is_empty() => done.ok().flatten(),
            edit = queue.0.recv(), if new.len() < MAX_WAITING_EDITS => {
                let Some(edit) = edit else { break };
                new.spawn(carry_out(Arc::clone(&cards), edit, Arc::clone(&slots)));
                None
            }
            () = at(due), if repeats.len() < REPEATS_AT_ONCE => {
                if let Some(edit) = later.next(Instant::now()) {
                    repeats.spawn(repeat(Arc::clone(&cards), edit, Arc::clone(&slots)));
                }
                None
            }
            () = at(stays) => {
                if let Some(oldest) = shown.pop_front() {
                    strike_off(&cards.journal.store, &oldest.edit);
                }
                None
            }
            Ok(()) = link.changed() => {
                if let Some(since) = last.lost(&link.borrow_and_update()) {
                    cards.courier.under_way.line_lost();
                    let sure = shown.partition_point(|shown| shown.at + OVER_AFTER < since);
                    for unsure in shown.split_off(sure) {
                        later.put(unsure.edit, over_at());
                    }
                }
                None
            }
        };
        let Some(done) = done else { continue };
        note_made(&cards.journal.store, &done.edit);
        match done.next(over_at()) {
            Next::Again => later.put(done.edit, over_at().max(done.at + OVER_AFTER)),
            Next::StrikeOff => strike_off(&cards.journal.store, &done.edit),
            Next::Keep => shown.push_back(done),
        }
        if shown.len() > MAX_SHOWN
            && let Some(oldest) = shown.pop_front()
        {
            strike_off(&cards.journal.store, &oldest.edit);
        }
    }
}

/// What the last daemon left to do, and the faces its cards should have.
pub(crate) async fn left_by_the_last(cards: &Cards) -> Later {
    let mut later = Later::default();
    let kept = cards.journal.store.run(|db| {
        let faces = db.first_edits(courier::MAX_FACES)?;
        Ok((db.edits()?, faces))
    });
    match kept.await {
        Ok((left, faces)) => {
            cards.courier.restore_faces(faces);
            let over_at = cards.courier.under_way.losses_over_at();
            let left = left.into_iter();
            left.filter(|edit| !nameless::is_stand_in(&edit.message))
                .for_each(|edit| later.put(edit, over_at));
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
    fn of(view: &LinkView) -> Self {
        Self {
            connects: view.counts.connects,
            up: matches!(view.phase, Phase::Up { .. }),
        }
    }

    /// Since when taps may have been lost with a connection; `None` when none
    /// was lost.
    fn lost(&mut self, view: &LinkView) -> Option<Instant> {
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
async fn repeat(cards: Arc<Cards>, left: LeftEdit, slots: Arc<Semaphore>) -> Option<Shown> {
    let card = loop {
        let (message, version) = (left.message.clone(), left.version);
        match cards
            .journal
            .store
            .run(move |db| db.edit(&message, version))
            .await
        {
            Ok(card) => break card?,
            Err(StoreError::Closed) => return None,
            Err(why) => debug!("a card is corrected later: {why}"),
        }
        tokio::time::sleep(RETRY_FIRST).await;
    };
    let tapped = cards.courier.under_way.over_at(&left.message);
    // What people saw of it, while that is known; the disk has less.
    let shown = cards.courier.face(&left.message);
    let edit = Edit {
        card: shown.unwrap_or_else(|| card.into()),
        not_before: tapped.unwrap_or_else(Instant::now),
        message: left.message,
        version: Some(left.version),
        tries: 0,
        made: left.made,
        hiccups: 0,
        bare: false,
        soon: false,
    };
    carry_out(cards, edit, slots).await
}

/// Makes an edit, however long that takes.
async fn carry_out(cards: Arc<Cards>, mut edit: Edit, slots: Arc<Semaphore>) -> Option<Shown> {
    loop {
        wait_for_turn(&cards, &edit).await;
        let messages = cards.courier.messages()?;
        let slot = slots.acquire().await;
        let turn = cards.courier.patching.turn(&edit.message).await;
        let is_late = edit.soon && edit.not_before.elapsed() > SOON;
        if is_late || is_outdated(&cards.journal.store, &edit).await {
            return None;
        }
        let began = Instant::now();
        // Thousands may wait up to here.
        let card = courier::laid_out_text(&cards, &edit.card);
        let patched = Box::pin(messages.patch(&edit.message, Arc::clone(&card))).await;
        drop((turn, slot));
        match patched {
            Ok(()) => {
                cards.proof.took(&cards.journal.store, &card);
                return Some(Shown {
                    edit: edit.left(1)?,
                    began,
                    at: Instant::now(),
                });
            }
            // The one that is kept comes in its time.
            Err(why) if edit.soon && may_pass(&why) => {
                debug!("a card is shown later: {why}");
                return None;
            }
            Err(why) if may_pass(&why) && edit.tries < MAX_TRIES => {
                edit.tries += 1;
                let grown = RETRY_FIRST * 2_u32.saturating_pow(edit.tries.min(6));
                let wait = why.retry_after().unwrap_or(grown).min(RETRY_MOST);
                debug!("a card is corrected later: {why}");
                edit.not_before = Instant::now() + wait;
            }
            Err(why) if courier::is_a_hiccup(&why) && edit.hiccups == 0 => {
                edit.hiccups += 1;
                edit.not_before = Instant::now() + RETRY_FIRST;
            }
            Err(why) if courier::is_layout(&why) && is_plainer(&cards, &mut edit) => {
                Box::pin(courier::needed(&cards, Need::Plain, &why)).await;
            }
            Err(why @ ApiError::Content { .. }) if is_barer(&cards, &mut edit).await => {
                debug!("a card is corrected without its content: {why}");
            }
            Err(why) => {
                warn!("a card could not be corrected: {why}");
                strike_off(&cards.journal.store, &edit.left(0)?);
                return None;
            }
        }
    }
}

/// Lays the card out in the plainest way; false if it is already.
fn is_plainer(cards: &Cards, edit: &mut Edit) -> bool {
    let Ok(card) = serde_json::from_str(&edit.card) else {
        return false;
    };
    let plain: CardText = courier::plain(cards, &card).to_string().into();
    let is_new = plain != edit.card;
    edit.card = plain;
    is_new
}

/// Shows what the disk has of the card, where of the input only its title
/// stands, and then not even that; false if all was tried.
async fn is_barer(cards: &Cards, edit: &mut Edit) -> bool {
    if !edit.bare && is_kept(cards, edit).await {
        return true;
    }
    if !edit.bare {
        return false;
    }
    let card = serde_json::from_str(&edit.card).ok();
    let Some(untitled) = card.and_then(|card| ending::untitled(&card)) else {
        return false;
    };
    let untitled: CardText = untitled.to_string().into();
    let is_new = untitled != edit.card;
    edit.card = untitled;
    is_new
}

async fn is_kept(cards: &Cards, edit: &mut Edit) -> bool {
    let Some(version) = edit.version else {
        return false;
    };
    let message = edit.message.clone();
    let kept = cards
        .journal
        .store
        .run(move |db| db.edit(&message, version))
        .await;
    let Ok(Some(kept)) = kept else {
        return false;
    };
    edit.bare = true;
    let is_new = *kept != *edit.card;
    edit.card = kept.into();
    is_new
}

/// Until it is time, or, for one that failed, until Feishu is back.
async fn wait_for_turn(cards: &Cards, edit: &Edit) {
    let mut link = cards.link.clone();
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
pub(crate) fn may_pass(why: &ApiError) -> bool {
    let shut_out = matches!(
        why,
        ApiError::StaleToken(_) | ApiError::BadCredentials(_) | ApiError::Setup { .. }
    );
    shut_out || why.is_retryable()
}

fn note_made(store: &Store, edit: &LeftEdit) {
    let (message, version) = (edit.message.clone(), edit.version);
    store.later("that a card was corrected", move |db| {
        db.edit_made(&message, version)
    });
}

fn strike_off(store: &Store, edit: &LeftEdit) {
    let (message, version) = (edit.message.clone(), edit.version);
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
    use crate::ids::MessageId;

    fn view(connects: u64, up: bool, heard: Option<Instant>) -> LinkView {
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
            (early, early, 1, Next::Again),
            // The answer came late; Feishu took the edit at any time before.
            (early, late, 1, Next::Again),
            (early, late, ENOUGH - 1, Next::Again),
            (early, late, ENOUGH, Next::StrikeOff),
            (over, late, 1, Next::Keep),
            (over, late, ENOUGH - 1, Next::Keep),
            (over, late, ENOUGH, Next::StrikeOff),
        ] {
            let edit = LeftEdit {
                message: MessageId::parse("om_1").unwrap(),
                version: 1,
                made,
            };
            let shown = Shown { edit, began, at };
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
