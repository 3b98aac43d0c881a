//! Carries out what the book asks for, and tells it what came of it. What is
//! left at the end is on disk, for the next daemon.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{Cards, edits, post, seen};
use crate::clock::until;
use crate::daemon::cards::book::{CardBook, CardEffect, CardText, Keep, KeepOf, Left, MAX_FACES};
use crate::daemon::known::journal;
use crate::ids::{CardKey, RequestId};
use crate::store::Db;
use crate::text::Lang;

/// Runs the book until stopped.
pub(crate) async fn run(cards: Arc<Cards>, stop: CancellationToken) {
    let courier = &cards.courier;
    let mut link = cards.link.clone();
    let mut work = CardWork::default();
    loop {
        while let Some(effect) = courier.step() {
            work.begin(&cards, effect);
        }
        let next = courier.next_tick();
        tokio::select! {
            () = stop.cancelled() => return,
            () = courier.stirred.notified() => {}
            () = until(next.map(Into::into)) => courier.tell(CardBook::tick),
            Some(done) = work.tasks.join_next(), if !work.tasks.is_empty() => work.done(done),
            Ok(()) = link.changed() => {
                let view = seen(&link.borrow_and_update());
                courier.tell(|book, now| book.line(view, now));
            }
        }
    }
}

/// What is under way; a sending is known by its request.
#[derive(Default)]
struct CardWork {
    tasks: JoinSet<Option<RequestId>>,
    sending: HashMap<RequestId, AbortHandle>,
}

impl CardWork {
    fn begin(&mut self, cards: &Arc<Cards>, effect: CardEffect) {
        let (shared, store) = (Arc::clone(cards), &cards.journal.store);
        match effect {
            CardEffect::Send(id) => {
                let of = id.clone();
                let task = self.tasks.spawn(async move {
                    post::send(&shared, &of).await;
                    Some(of)
                });
                if let Some(hanging) = self.sending.insert(id, task) {
                    hanging.abort();
                }
            }
            CardEffect::GiveUp(id, why) => {
                let told = why.get(Lang::En);
                warn!("a card could not be sent, the terminal decides: {told}");
                let why = why.get(cards.config.lang).to_owned();
                cards.desk.undeliverable(&id, Some(why));
            }
            CardEffect::Look(id, face) => {
                self.other(async move { post::look(&shared, &id, &face).await });
            }
            CardEffect::Keep(one) => self.other(async move { keep(&shared, one).await }),
            CardEffect::Patch(patch) => {
                self.other(async move { edits::make(&shared, patch).await });
            }
            CardEffect::Made(message, version) => {
                let made = move |db: &Db| db.edit_made(&message, version);
                store.later("that a card was corrected", made);
            }
            CardEffect::StrikeOff(key, version) => {
                store.later("that an edit is done", move |db| {
                    db.edit_done(&key, version)
                });
            }
        }
    }

    fn other(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(async move {
            work.await;
            None
        });
    }

    fn done(&mut self, done: Result<Option<RequestId>, tokio::task::JoinError>) {
        match done {
            Ok(Some(id)) => {
                // Another may have taken its place.
                if self.sending.get(&id).is_some_and(AbortHandle::is_finished) {
                    self.sending.remove(&id);
                }
            }
            Ok(None) => {}
            Err(why) => {
                if let Ok(panicked) = why.try_into_panic() {
                    std::panic::resume_unwind(panicked);
                }
            }
        }
    }
}

async fn keep(cards: &Cards, keep: Keep) {
    let (id, key) = (keep.request.clone(), CardKey::Message(keep.message.clone()));
    let (of, text, now) = (keep.of, Arc::clone(&keep.face.kept), cards.now());
    let kept = cards.journal.store.run(move |db| match of {
        KeepOf::Waiting => db.put_edit_of_waiting(&id, &key, &text, now),
        KeepOf::Ended { .. } => db.put_edit(&key, &text, now).map(Some),
    });
    let version = kept.await.ok().flatten();
    (cards.courier).tell(|book, now| book.kept(&keep, version, now));
}

/// Goes on with what the last daemon left.
pub(crate) async fn restore(cards: &Cards) {
    let kept = |db: &Db| {
        let faces = db.first_edits(MAX_FACES)?;
        Ok((db.edits()?, faces, db.nameless_edits()?))
    };
    let otherwise = "cards left uncorrected cannot be found";
    let Some((left, faces, nameless)) = journal::run(&cards.journal, otherwise, kept).await else {
        return;
    };
    debug!(
        edits = left.len(),
        nameless = nameless.len(),
        "left by the last run"
    );
    (cards.courier).tell(|book, now| {
        // The first counts most.
        for edit in faces.into_iter().rev() {
            if let CardKey::Message(message) = edit.key {
                book.restore_face(message, edit.version, edit.card.into());
            }
        }
        for edit in left {
            if let CardKey::Message(message) = edit.key {
                let left = Left {
                    message,
                    version: edit.version,
                    made: edit.made,
                };
                book.restore_edit(left, now);
            }
        }
        for edit in nameless {
            if let CardKey::Sending(id) = edit.key {
                let age = u64::try_from(cards.now() - edit.at).unwrap_or_default();
                let (face, age) = (CardText::from(edit.card).into(), Duration::from_millis(age));
                book.restore_nameless(&id, face, age, now);
            }
        }
    });
}

#[cfg(test)]
mod tests;
