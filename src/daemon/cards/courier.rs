//! Carries cards to Feishu and keeps them true: the shell around the book,
//! which tells it what happens and carries out what it asks for.

mod before;
mod carry;
mod edits;
mod endings;
mod linked;
mod needs;
mod post;
mod running;
mod sending;

pub(crate) use self::carry::{restore, run};
pub(crate) use self::endings::{close, close_asking, decided_card, ended_face, retold, take_down};
use self::needs::Needs;
pub(crate) use self::needs::{
    is_a_hiccup, is_layout, laid_out, laid_out_text, needed, plain, report as needs,
};
pub(crate) use self::post::{resend, seek, send_card, send_now, send_to, take_over};
pub(crate) use self::running::show_running;
#[cfg(feature = "team")]
pub(crate) use self::sending::closed_waiting;
pub(crate) use self::sending::{To, redraw_waiting, redrawn, say};

use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore, watch};
use tracing::warn;

use crate::approvals::Settled;
use crate::approvals::desk::{self, Desk};
use crate::cards::whole::{Before, WentOut};
use crate::clock::Millis;
use crate::config::Config;
use crate::daemon::cards::book::{CardBook, CardEffect, LineState, LineView, OVER_AFTER};
pub(crate) use crate::daemon::cards::book::{CardText, Decided, Face};
use crate::daemon::known::buttons::Buttons;
use crate::daemon::known::gathered::Flood;
use crate::daemon::known::journal::Journal;
use crate::daemon::known::links::PageLinks;
use crate::daemon::known::lock::Lock;
use crate::daemon::known::proof::CardProof;
use crate::daemon::known::reach::not_connected;
use crate::feishu::connection::LinkView;
use crate::feishu::custom_bot::CustomBot;
use crate::feishu::link::Phase;
use crate::feishu::messages::{Content, Messages, Receiver};
use crate::ids::{CardKey, MessageId, RequestId};
use crate::sessions::route;
use crate::text::Lang;

impl From<&Value> for Face {
    /// Of a card without any tool input, or of another machine's.
    fn from(card: &Value) -> Self {
        CardText::from(card.to_string()).into()
    }
}

/// When an edit may follow a tap.
pub(crate) const AFTER_REPLY: Duration = OVER_AFTER;
/// How long a reply waits for its card to be named.
const NAMED_WITHIN: Duration = Duration::from_secs(5);
/// How long a tap waits for the card it was made on to be named: less than
/// Feishu waits for the answer.
pub(crate) const ASKED_WITHIN: Duration = Duration::from_millis(1_500);

/// What cards are drawn from, and what sends and keeps them.
pub(crate) struct Cards {
    pub(crate) config: Arc<Config>,
    pub(crate) journal: Journal,
    pub(crate) desk: Arc<Desk>,
    pub(crate) lock: Lock,
    pub(crate) buttons: Buttons,
    pub(crate) courier: Courier,
    pub(crate) proof: CardProof,
    pub(crate) flood: Flood,
    pub(crate) link: watch::Receiver<LinkView>,
}

impl Cards {
    pub(crate) fn now(&self) -> Millis {
        self.journal.now()
    }
}

pub(crate) struct Courier {
    way: Way,
    book: Mutex<CardBook<Post>>,
    /// The book was told something.
    stirred: Notify,
    named: Notify,
    sends: Semaphore,
    needs: Needs,
}

/// What the book keeps of a request's card for whoever sends it.
#[derive(Default)]
struct Post {
    target: Option<CardTarget>,
    /// The chat and thread it stands in.
    stands: Option<route::ChatPlace>,
    /// What of a request that does not fit its card went out before.
    whole: Option<Before>,
}

/// How cards leave.
pub(crate) enum Way {
    /// As the app's bot, to whoever is set to decide.
    App {
        messages: Messages,
        receiver: Option<Receiver>,
    },
    /// As a group's custom bot, which can only speak; its buttons are links.
    Webhook(Box<CustomBot>, Option<PageLinks>),
}

/// Where a card is to stand.
#[derive(Debug, Clone)]
pub(crate) enum CardTarget {
    Receiver(Receiver),
    /// With a session's other messages.
    Thread {
        anchor: MessageId,
        place: route::ChatPlace,
    },
}

impl Courier {
    pub(crate) fn new(way: Way, view: &LinkView, lang: Lang) -> Self {
        Self {
            way,
            book: Mutex::new(CardBook::new(seen(view), lang, now())),
            stirred: Notify::new(),
            named: Notify::new(),
            sends: Semaphore::new(sending::AT_ONCE),
            needs: Needs::default(),
        }
    }

    /// The app's own way, which alone can edit and reply.
    pub(crate) fn messages(&self) -> Option<&Messages> {
        match &self.way {
            Way::App { messages, .. } => Some(messages),
            Way::Webhook(..) => None,
        }
    }

    pub(crate) fn receiver(&self) -> Option<&Receiver> {
        match &self.way {
            Way::App { receiver, .. } => receiver.as_ref(),
            Way::Webhook(..) => None,
        }
    }

    pub(crate) fn webhook(&self) -> Option<&CustomBot> {
        match &self.way {
            Way::App { .. } => None,
            Way::Webhook(webhook, _) => Some(webhook),
        }
    }

    /// The links on the cards of a custom bot.
    pub(crate) fn links(&self) -> Option<&PageLinks> {
        match &self.way {
            Way::App { .. } | Way::Webhook(_, None) => None,
            Way::Webhook(_, Some(links)) => Some(links),
        }
    }

    /// Whether a card would have anywhere to go.
    pub(crate) fn has_receiver(&self) -> bool {
        self.receiver().is_some() || self.webhook().is_some()
    }

    /// Tells the book something; what it asks for is carried out by [`run`].
    fn tell<T>(&self, what: impl FnOnce(&mut CardBook<Post>, Instant) -> T) -> T {
        let told = what(&mut self.lock(), now());
        self.stirred.notify_one();
        told
    }

    fn step(&self) -> Option<CardEffect> {
        self.lock().step()
    }

    fn next_tick(&self) -> Option<Instant> {
        self.lock().next_tick()
    }

    /// A card that will never be edited needs no place.
    pub(crate) fn forget(&self, id: &RequestId) {
        self.tell(|book, _| book.forget(id));
    }

    /// Where this request's card stands, once that is known.
    pub(crate) fn place_of(&self, id: &RequestId) -> Option<route::ChatPlace> {
        self.lock().post(id)?.stands.clone()
    }

    /// The message that carries this request's card, once Feishu named it.
    pub(crate) fn message_of(&self, id: &RequestId) -> Option<MessageId> {
        self.lock().message_of(id).cloned()
    }

    /// Whether this message asks once more about this request, also while such
    /// a card is on its way: a quick person taps before Feishu has named it.
    pub(crate) async fn asks_about(&self, id: &RequestId, message: &MessageId) -> bool {
        let known = self.once_named(|book| book.asks_about(id, message));
        let known = tokio::time::timeout(ASKED_WITHIN, known).await;
        known.unwrap_or(false)
    }

    /// Whether this message is the request's card, or asks once more about it.
    /// `None`: Feishu did not name the card in time.
    pub(crate) async fn is_card_of(&self, id: &RequestId, message: &MessageId) -> Option<bool> {
        let known = self.once_named(|book| match book.message_of(id)? {
            known if known == message => Some(true),
            _ => book.asks_about(id, message),
        });
        tokio::time::timeout(ASKED_WITHIN, known).await.ok()
    }

    /// The pending request whose card this message is, once no card or notice is
    /// on its way: a quick person taps or replies before Feishu's answer has told
    /// us what the card is called.
    pub(crate) async fn request_soon(&self, message: &MessageId) -> Option<RequestId> {
        let known = self.once_named(|book| match book.request_of(message) {
            Some(request) => Some(Some(request.clone())),
            None => (!book.any_unnamed()).then_some(None),
        });
        let known = tokio::time::timeout(NAMED_WITHIN, known).await;
        known.ok().flatten()
    }

    /// Asks the book again with each name that it learns, until it knows.
    async fn once_named<T>(&self, ask: impl Fn(&CardBook<Post>) -> Option<T>) -> T {
        loop {
            let mut named = std::pin::pin!(self.named.notified());
            named.as_mut().enable();
            if let Some(known) = ask(&self.lock()) {
                return known;
            }
            named.await;
        }
    }

    /// A card that asks sets out; its name is told by [`Self::asked`].
    pub(crate) fn asking(&self) {
        self.tell(|book, _| book.asking());
    }

    pub(crate) fn asked(&self) {
        self.tell(|book, _| book.asked());
        self.named.notify_waiters();
    }

    /// A notice sets out; that it is known whose it is, is told by [`Self::told`].
    pub(crate) fn telling(&self) {
        self.tell(|book, _| book.telling());
    }

    pub(crate) fn told(&self) {
        self.tell(|book, _| book.told());
        self.named.notify_waiters();
    }

    /// Notes a card that asks; false when its request needs it no more.
    pub(crate) fn asked_by(&self, id: &RequestId, message: &MessageId) -> bool {
        self.tell(|book, _| book.asked_by(id, message))
    }

    pub(crate) fn take_asking(&self, id: &RequestId) -> Vec<MessageId> {
        self.tell(|book, _| book.take_asking(id))
    }

    /// Whether a request that does not fit its card went out before it. Unknown
    /// where it fits, and where an earlier run sent it and the button's seal
    /// tells.
    pub(crate) fn went_out(&self, id: &RequestId) -> WentOut {
        let book = self.lock();
        match book.post(id).and_then(|post| post.whole.as_ref()) {
            Some(Before::Nothing) => WentOut::NotWhole,
            before => before.map_or(WentOut::Unknown, Before::went_out),
        }
    }

    /// Whether the card is not on its way yet.
    pub(crate) fn is_held(&self, id: &RequestId) -> bool {
        self.lock().is_held(id)
    }

    /// A tap on this message was heard.
    pub(crate) fn tapped(&self, message: &MessageId) {
        self.tell(|book, now| book.tapped(message, now));
    }

    /// A tap that names this message is on this request's card.
    pub(crate) fn tapped_on(&self, id: &RequestId, named: &MessageId) {
        self.tell(|book, now| book.tapped_on(id, named, now));
    }

    /// A click named its message before Feishu's answer to the send did; false
    /// when that is another's.
    pub(crate) fn adopt(&self, id: &RequestId, message: &MessageId) -> bool {
        self.tell(|book, _| book.adopt(id, message))
    }

    /// What a request's card is to show while the request waits.
    pub(crate) fn show(&self, id: &RequestId, card: &Value) {
        self.tell(|book, _| book.show(id, card.into()));
    }

    /// A request that ended lately, for a card that must be drawn once more.
    pub(crate) fn decided(&self, id: &RequestId) -> Option<Decided> {
        self.lock().decided(id).cloned()
    }

    /// What the edit of a card whose request ended lately is kept by.
    pub(crate) fn ending_key(&self, id: &RequestId) -> Option<CardKey> {
        self.lock().ending_key(id)
    }

    /// What a message was last changed to, lately.
    pub(crate) fn face(&self, message: &MessageId) -> Option<CardText> {
        self.lock().face(message).cloned()
    }

    /// Shows another face than was meant, once a card on its way arrives.
    pub(crate) fn redraw(&self, id: &RequestId, face: &Face) {
        self.tell(|book, _| book.redraw(id, face));
    }

    /// Remembers how a request ended; the newest counts.
    pub(crate) fn remember_ending(&self, settled: Settled, delivery: desk::Delivery) {
        self.tell(|book, _| book.remember_ending(settled, delivery));
    }

    /// The edit of a card is on disk as this version.
    pub(crate) fn recorded(
        &self,
        key: &CardKey,
        card: CardText,
        version: Option<i64>,
        wait: Duration,
    ) {
        if !self.tell(|book, now| book.recorded(key, card, version, wait, now)) {
            warn!("too many cards wait to be corrected; one is left to the next start");
        }
    }

    /// Shows a card as soon as the answer to a tap on it is with Feishu. Only
    /// a first try: what must become true is edited later as well.
    pub(crate) fn edit_soon(&self, message: MessageId, card: CardText) {
        self.tell(|book, now| book.edit_soon(message, card, now));
    }

    fn lock(&self) -> MutexGuard<'_, CardBook<Post>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The connection as a card sees it: one that no tap could come back from is
/// not sent.
fn seen(view: &LinkView) -> LineView {
    let state = match (not_connected(&view.phase), &view.phase) {
        (None, _) => LineState::Up,
        (Some(why), Phase::Degraded { .. }) => LineState::ShutOut(why),
        (Some(why), _) => LineState::Away(why),
    };
    LineView {
        state,
        connects: view.counts.connects,
        lost_heard: view.counts.lost_heard,
    }
}

/// Keeps the edit on disk, then queues it: a restart loses no correction.
pub(crate) async fn queue_edit(cards: &Cards, message: MessageId, face: Face, wait: Duration) {
    queue_ending(cards, CardKey::Message(message), face, wait).await;
}

/// As [`queue_edit`], of a card that may have no name yet.
pub(crate) async fn queue_ending(cards: &Cards, key: CardKey, face: Face, wait: Duration) {
    let key = match key {
        CardKey::Message(_) => key,
        CardKey::Sending(ref id) => cards.courier.ending_key(id).unwrap_or(key),
    };
    let (of, text, now) = (key.clone(), face.kept, cards.now());
    let store = &cards.journal.store;
    let version = store.run(move |db| db.put_edit(&of, &text, now)).await.ok();
    cards.courier.recorded(&key, face.shown, version, wait);
}

/// A plain card or text for the owner that nobody answers; the message it is.
pub(crate) async fn tell(cards: &Cards, content: Content, uuid: &str) -> Option<MessageId> {
    if let Some(webhook) = cards.courier.webhook() {
        if let Err(why) = webhook.say(&content, || cards.now() / 1_000).await {
            warn!("a notice could not be sent: {why}");
        }
        return None;
    }
    let (messages, receiver) = (cards.courier.messages()?, cards.courier.receiver()?);
    let sent = match &content {
        Content::Card(card) => {
            let to = To::Receiver(receiver);
            Box::pin(say(cards, messages, to, card, uuid)).await
        }
        Content::Text(_) | Content::File(_) => messages.send(receiver, &content, uuid).await,
    };
    match sent {
        Ok(sent) => Some(sent.message_id),
        Err(why) => {
            warn!("a notice could not be sent: {why}");
            None
        }
    }
}

#[cfg(test)]
mod tests;
