//! Carries cards to Feishu and keeps them true: sends one for each request,
//! and edits it when the request ends, however long Feishu is away.

mod before;
mod book;
mod endings;
mod line;
mod linked;
mod needs;
mod post;
mod running;
mod sending;

use self::book::{Book, Place};
pub(crate) use self::endings::{
    Decided, EndingEdit, Face, close, close_asking, decided_card, ended_face, retold, take_down,
};
use self::needs::Needs;
pub(crate) use self::needs::{
    is_a_hiccup, is_layout, laid_out, laid_out_text, needed, plain, report as needs,
};
pub(crate) use self::post::{recall, resend, send_card, send_now, send_to};
pub(crate) use self::running::show_running;
#[cfg(feature = "team")]
pub(crate) use self::sending::closed_waiting;
pub(crate) use self::sending::{To, redraw_waiting, redrawn, say};

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tracing::{debug, warn};

use crate::approvals::Settled;
use crate::approvals::desk::{self, Desk};
use crate::cards::whole::Before;
use crate::clock::Millis;
use crate::config::Config;
use crate::daemon::cards::edits::{Edit, Edits, OneByOne};
use crate::daemon::cards::nameless;
use crate::daemon::cards::under_way::{OVER_AFTER, UnderWay};
use crate::daemon::known::buttons::Buttons;
use crate::daemon::known::gathered::Flood;
use crate::daemon::known::journal::Journal;
use crate::daemon::known::links::PageLinks;
use crate::daemon::known::lock::Lock;
use crate::daemon::known::proof::CardProof;
use crate::feishu::connection::LinkView;
use crate::feishu::custom_bot::CustomBot;
use crate::feishu::messages::{Content, Messages, Receiver};
use crate::ids::{MessageId, RequestId};
use crate::sessions::route;
use crate::store::{CardEdit as KeptEdit, CardPlace};
use crate::text::Lang;

/// When an edit may follow a tap.
pub(crate) const AFTER_REPLY: Duration = OVER_AFTER;
/// By then the answer to a tap has reached Feishu, or is late.
const ANSWERED_BY: Duration = Duration::from_millis(300);
/// How long a reply waits for its card to be named.
const NAMED_WITHIN: Duration = Duration::from_secs(5);
/// How long a tap waits for the card it was made on to be named: less than
/// Feishu waits for the answer.
const ASKED_WITHIN: Duration = Duration::from_millis(1_500);
/// More than a card has buttons that ask.
const MAX_ASKING: usize = 16;
const MAX_QUEUED: usize = 16_384;
/// Ended requests whose cards can be drawn again, for an undo or a late tap.
const MAX_DECIDED: usize = 256;
pub(crate) const MAX_FACES: u16 = 256;

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
    book: Mutex<Book>,
    edits: mpsc::Sender<Edit>,
    named: Notify,
    sends: Semaphore,
    pub(crate) under_way: UnderWay,
    pub(crate) patching: OneByOne,
    needs: Needs,
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
pub(crate) enum CardTarget {
    Receiver(Receiver),
    /// With a session's other messages.
    Thread {
        anchor: MessageId,
        place: route::ChatPlace,
    },
}

/// A card as Feishu takes it: as text, because as a tree it weighs five times
/// as much, and shared by all who still need it.
pub(crate) type CardText = Arc<str>;

impl Courier {
    pub(crate) fn new(way: Way) -> (Self, Edits) {
        let (edits, queue) = mpsc::channel(MAX_QUEUED);
        let courier = Self {
            way,
            book: Mutex::default(),
            edits,
            named: Notify::new(),
            sends: Semaphore::new(sending::AT_ONCE),
            under_way: UnderWay::default(),
            patching: OneByOne::default(),
            needs: Needs::default(),
        };
        (courier, Edits(queue))
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

    /// A card that can never be edited needs no place.
    pub(crate) fn forget(&self, id: &RequestId) {
        self.lock().remove(id);
    }

    /// Puts back what was sent before a restart.
    pub(crate) fn restore(&self, id: &RequestId, card: Option<&CardPlace>) {
        let place = card.map_or(Place::Unsent, |card| Place::Sent(card.message.clone()));
        let mut book = self.lock();
        book.put(id, place);
        if let Some(card) = card {
            let stands = route::ChatPlace {
                chat: card.chat.clone(),
                thread: None,
            };
            book.stands.insert(id.clone(), stands);
        }
    }

    /// Where this request's card stands, once that is known.
    pub(crate) fn place_of(&self, id: &RequestId) -> Option<route::ChatPlace> {
        self.lock().stands.get(id).cloned()
    }

    /// The message that carries this request's card, once Feishu named it.
    pub(crate) fn message_of(&self, id: &RequestId) -> Option<MessageId> {
        match self.lock().places.get(id) {
            Some(Place::Sent(message)) => Some(message.clone()),
            Some(Place::Held | Place::Unsent | Place::Ended(_)) | None => None,
        }
    }

    /// Whether this message asks once more about this request, also while such
    /// a card is on its way: a quick person taps before Feishu has named it.
    pub(crate) async fn asks_about(&self, id: &RequestId, message: &MessageId) -> bool {
        let wait = async {
            loop {
                let mut named = std::pin::pin!(self.named.notified());
                named.as_mut().enable();
                {
                    let book = self.lock();
                    let asks = book.asking.get(id);
                    if asks.is_some_and(|all| all.contains(message)) {
                        return true;
                    }
                    if book.unasked == 0 {
                        return false;
                    }
                }
                named.await;
            }
        };
        let asks = tokio::time::timeout(ASKED_WITHIN, wait).await;
        asks.unwrap_or(false)
    }

    /// A card that asks sets out; its name is told by [`Self::asked`].
    pub(crate) fn asking(&self) {
        self.lock().unasked += 1;
    }

    pub(crate) fn asked(&self) {
        let mut book = self.lock();
        book.unasked = book.unasked.saturating_sub(1);
        drop(book);
        self.named.notify_waiters();
    }

    /// A notice sets out; that it is known whose it is, is told by [`Self::told`].
    pub(crate) fn telling(&self) {
        self.lock().untold += 1;
    }

    pub(crate) fn told(&self) {
        let mut book = self.lock();
        book.untold = book.untold.saturating_sub(1);
        drop(book);
        self.named.notify_waiters();
    }

    /// Notes a card that asks; false when its request needs it no more.
    pub(crate) fn asked_by(&self, id: &RequestId, message: &MessageId) -> bool {
        let mut book = self.lock();
        if !matches!(book.places.get(id), Some(Place::Sent(_))) {
            return false;
        }
        let all = book.asking.entry(id.clone()).or_default();
        if !all.contains(message) && all.len() < MAX_ASKING {
            all.push(message.clone());
        }
        true
    }

    pub(crate) fn take_asking(&self, id: &RequestId) -> Vec<MessageId> {
        self.lock().asking.remove(id).unwrap_or_default()
    }

    /// Whether a request that does not fit its card went out whole before it.
    /// `None`: it fits, or an earlier run sent it and the button's seal tells.
    pub(crate) fn sent_whole(&self, id: &RequestId) -> Option<bool> {
        self.lock().whole.get(id).map(Before::is_sent)
    }

    /// What a request that ended while its card was on the way is to show.
    fn ended_meanwhile(&self, id: &RequestId) -> Option<CardText> {
        match self.lock().places.get(id) {
            Some(Place::Ended(face)) => Some(Arc::clone(&face.shown)),
            Some(Place::Held | Place::Unsent | Place::Sent(_)) | None => None,
        }
    }

    /// Whether the card is not on its way yet.
    pub(crate) fn is_held(&self, id: &RequestId) -> bool {
        matches!(self.lock().places.get(id), Some(Place::Held))
    }

    /// The pending request whose card this message is, once no card or notice is
    /// on its way: a quick person taps or replies before Feishu's answer has told
    /// us what the card is called.
    pub(crate) async fn request_soon(&self, message: &MessageId) -> Option<RequestId> {
        let wait = async {
            loop {
                let mut named = std::pin::pin!(self.named.notified());
                named.as_mut().enable();
                {
                    let book = self.lock();
                    if let Some(request) = book.requests.get(message) {
                        return Some(request.clone());
                    }
                    if !book.any_unsent() {
                        return None;
                    }
                }
                named.await;
            }
        };
        tokio::time::timeout(NAMED_WITHIN, wait)
            .await
            .ok()
            .flatten()
    }

    /// A click named its message before Feishu's answer to the send did.
    pub(crate) fn adopt(&self, id: &RequestId, message: &MessageId) {
        let mut book = self.lock();
        if matches!(book.places.get(id), Some(Place::Unsent)) {
            book.put(id, Place::Sent(message.clone()));
        }
    }

    /// A request that ended lately, for a card that must be drawn once more.
    pub(crate) fn decided(&self, id: &RequestId) -> Option<Decided> {
        let book = self.lock();
        let mut newest_first = book.decided.iter().rev();
        newest_first
            .find(|it| it.settled.request.id == *id)
            .cloned()
    }

    /// What the card of this request will show, once Feishu has named it.
    pub(crate) fn face_to_come(&self, id: &RequestId) -> Option<CardText> {
        match self.lock().places.get(id) {
            Some(Place::Ended(face)) => Some(Arc::clone(&face.shown)),
            _ => None,
        }
    }

    /// What a message was last changed to, lately.
    pub(crate) fn face(&self, message: &MessageId) -> Option<CardText> {
        let book = self.lock();
        let mut newest_first = book.faces.iter().rev();
        let (_, _, card) = newest_first.find(|(of, _, _)| of == message)?;
        Some(card.clone())
    }

    /// Goes on with what the last daemon left, the first of which counts most.
    pub(crate) fn restore_faces(&self, first: Vec<KeptEdit>) {
        let mut book = self.lock();
        for edit in first.into_iter().rev() {
            book.remember(edit.message, None, edit.card.into());
        }
    }

    /// Shows another face than was meant, once a card on its way arrives.
    pub(crate) fn redraw(&self, id: &RequestId, face: &Face) {
        if let Some(Place::Ended(meant)) = self.lock().places.get_mut(id) {
            *meant = face.clone();
        }
    }

    /// Remembers how a request ended; the newest counts. Large input is let go:
    /// a late tap sees the card as it was last drawn.
    pub(crate) fn remember_ending(&self, settled: Settled, delivery: desk::Delivery, lang: Lang) {
        let mut decided = Decided::of(settled, delivery, lang);
        let mut book = self.lock();
        let id = &decided.settled.request.id;
        let before = book.decided.iter().rev();
        let mut before = before.filter(|known| known.settled.request.id == *id);
        decided.message = before.next().and_then(|known| known.message.clone());
        book.decided.push_back(decided);
        if book.decided.len() > MAX_DECIDED {
            book.decided.pop_front();
        }
    }

    /// Changes a card whose message is known.
    pub(crate) fn edit(
        &self,
        message: MessageId,
        card: CardText,
        version: Option<i64>,
        wait: Duration,
    ) {
        if nameless::is_stand_in(&message) {
            return;
        }
        self.lock().remember(message.clone(), version, card.clone());
        let soonest = tokio::time::Instant::now() + wait;
        let tapped = self.under_way.over_at(&message);
        let edit = Edit {
            not_before: tapped.map_or(soonest, |over| over.max(soonest)),
            message,
            card,
            version,
            tries: 0,
            made: 0,
            hiccups: 0,
            bare: false,
            soon: false,
        };
        if self.edits.try_send(edit).is_err() {
            warn!("too many cards wait to be corrected; one is left to the next start");
        }
    }

    /// Shows a card as soon as the answer to a tap on it is with Feishu. Only
    /// a first try: what must become true is edited later as well.
    pub(crate) fn edit_soon(&self, message: MessageId, card: CardText) {
        let edit = Edit {
            not_before: tokio::time::Instant::now() + ANSWERED_BY,
            message,
            card,
            version: None,
            tries: 0,
            made: 0,
            hiccups: 0,
            bare: false,
            soon: true,
        };
        if self.edits.try_send(edit).is_err() {
            debug!("a card is shown later: too many wait");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the edit on disk, then queues it: a restart loses no correction.
pub(crate) async fn queue_edit(cards: &Cards, message: MessageId, face: Face, wait: Duration) {
    let (id, text, now) = (message.clone(), face.kept, cards.now());
    let kept = cards
        .journal
        .store
        .run(move |db| db.put_edit(&id, &text, now))
        .await;
    cards.courier.edit(message, face.shown, kept.ok(), wait);
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
