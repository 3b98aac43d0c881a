//! Carries cards to Feishu and keeps them true: sends one for each request,
//! and edits it when the request ends, however long Feishu is away.

mod endings;
mod sending;

pub(super) use self::endings::{close, decided_card, ended_card, run_endings, take_down};
use self::sending::send_any;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc};
use tracing::{debug, warn};

use super::edits::{Edit, Edits};
use super::links;
use super::nameless;
use super::parts::Parts;
use super::under_way::{OVER_AFTER, UnderWay};
use crate::approvals::request::Request;
use crate::approvals::{Settled, desk};
use crate::feishu::messages::{Content, Messages, Receiver, Sent};
use crate::feishu::webhook::Webhook;
use crate::ids::{MessageId, RequestId};
use crate::sessions::questions::script::{self, Wishes};
use crate::sessions::route;
use crate::store::{Card, CardEdit};

/// When an edit may follow a tap.
pub(super) const AFTER_REPLY: Duration = OVER_AFTER;
/// How long a reply waits for its card to be named.
const NAMED_WITHIN: Duration = Duration::from_secs(5);
const MAX_QUEUED: usize = 16_384;
/// Ended requests whose cards can be drawn again, for an undo or a late tap.
const MAX_DECIDED: usize = 256;
pub(super) const MAX_FACES: u16 = 256;

pub(super) struct Courier {
    way: Way,
    book: Mutex<Book>,
    edits: mpsc::Sender<Edit>,
    named: Notify,
    sends: Semaphore,
    pub(super) under_way: UnderWay,
}

/// How cards leave.
pub(super) enum Way {
    /// As the app's bot, to whoever is set to decide.
    App {
        messages: Messages,
        receiver: Option<Receiver>,
    },
    /// As a group's custom bot, which can only speak.
    Webhook(Webhook),
}

/// Where a card is to stand.
pub(super) enum Target {
    Receiver(Receiver),
    /// With a session's other messages.
    Thread {
        anchor: MessageId,
        place: route::Place,
    },
}

/// A card as Feishu takes it: as text, because as a tree it weighs five times
/// as much, and shared by all who still need it.
pub(super) type Drawn = Arc<str>;

/// Where each pending request's card is.
#[derive(Default)]
struct Book {
    places: HashMap<RequestId, Place>,
    requests: HashMap<MessageId, RequestId>,
    /// The chats and threads the cards stand in.
    stands: HashMap<RequestId, route::Place>,
    decided: VecDeque<(Settled, desk::Delivery)>,
    faces: VecDeque<(MessageId, Drawn)>,
}

enum Place {
    /// Waits for the terminal's head start to pass.
    Held,
    /// On its way to Feishu.
    Unsent,
    Sent(MessageId),
    /// The request ended while its card was on the way: edit it on arrival.
    Ended(Drawn),
}

impl Courier {
    pub(super) fn new(way: Way) -> (Self, Edits) {
        let (edits, queue) = mpsc::channel(MAX_QUEUED);
        let courier = Self {
            way,
            book: Mutex::default(),
            edits,
            named: Notify::new(),
            sends: Semaphore::new(sending::AT_ONCE),
            under_way: UnderWay::default(),
        };
        (courier, Edits(queue))
    }

    /// The app's own way, which alone can edit and reply.
    pub(super) fn messages(&self) -> Option<&Messages> {
        match &self.way {
            Way::App { messages, .. } => Some(messages),
            Way::Webhook(_) => None,
        }
    }

    pub(super) fn receiver(&self) -> Option<&Receiver> {
        match &self.way {
            Way::App { receiver, .. } => receiver.as_ref(),
            Way::Webhook(_) => None,
        }
    }

    pub(super) fn webhook(&self) -> Option<&Webhook> {
        match &self.way {
            Way::App { .. } => None,
            Way::Webhook(webhook) => Some(webhook),
        }
    }

    /// Whether a card would have anywhere to go.
    pub(super) fn has_receiver(&self) -> bool {
        self.receiver().is_some() || self.webhook().is_some()
    }

    /// A card that can never be edited needs no place.
    pub(super) fn forget(&self, id: &RequestId) {
        self.lock().remove(id);
    }

    /// Puts back what was sent before a restart.
    pub(super) fn restore(&self, id: &RequestId, card: Option<&Card>) {
        let place = card.map_or(Place::Unsent, |card| Place::Sent(card.message.clone()));
        let mut book = self.lock();
        book.put(id, place);
        if let Some(card) = card {
            let stands = route::Place {
                chat: card.chat.clone(),
                thread: None,
            };
            book.stands.insert(id.clone(), stands);
        }
    }

    /// Where this request's card stands, once that is known.
    pub(super) fn place_of(&self, id: &RequestId) -> Option<route::Place> {
        self.lock().stands.get(id).cloned()
    }

    /// The message that carries this request's card, once Feishu named it.
    pub(super) fn message_of(&self, id: &RequestId) -> Option<MessageId> {
        match self.lock().places.get(id) {
            Some(Place::Sent(message)) => Some(message.clone()),
            Some(Place::Held | Place::Unsent | Place::Ended(_)) | None => None,
        }
    }

    /// The pending request whose card this message is.
    pub(super) fn request_of(&self, message: &MessageId) -> Option<RequestId> {
        self.lock().requests.get(message).cloned()
    }

    /// As [`Self::request_of`], while a card is on its way: a quick person
    /// replies before Feishu's answer has told us what the card is called.
    pub(super) async fn request_soon(&self, message: &MessageId) -> Option<RequestId> {
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
    pub(super) fn adopt(&self, id: &RequestId, message: &MessageId) {
        let mut book = self.lock();
        if matches!(book.places.get(id), Some(Place::Unsent)) {
            book.put(id, Place::Sent(message.clone()));
        }
    }

    /// A request that ended lately, for a card that must be drawn once more.
    pub(super) fn decided(&self, id: &RequestId) -> Option<(Settled, desk::Delivery)> {
        let book = self.lock();
        let mut newest_first = book.decided.iter().rev();
        newest_first.find(|(s, _)| s.request.id == *id).cloned()
    }

    /// What a message was last changed to, lately.
    pub(super) fn face(&self, message: &MessageId) -> Option<Drawn> {
        let book = self.lock();
        let mut newest_first = book.faces.iter().rev();
        let (_, card) = newest_first.find(|(of, _)| of == message)?;
        Some(card.clone())
    }

    /// Goes on with what the last daemon left, the first of which counts most.
    pub(super) fn restore_faces(&self, first: Vec<CardEdit>) {
        let mut book = self.lock();
        for edit in first.into_iter().rev() {
            book.remember(edit.message, edit.card.into());
        }
    }

    /// Shows another face than was meant, once a card on its way arrives.
    pub(super) fn redraw(&self, id: &RequestId, card: &Drawn) {
        if let Some(Place::Ended(shown)) = self.lock().places.get_mut(id) {
            *shown = Arc::clone(card);
        }
    }

    /// Remembers how a request ended, in place of what was known before.
    pub(super) fn decide(&self, settled: Settled, delivery: desk::Delivery) {
        let mut book = self.lock();
        book.decided.push_back((settled, delivery));
        if book.decided.len() > MAX_DECIDED {
            book.decided.pop_front();
        }
    }

    /// Changes a card whose message is known.
    pub(super) fn edit(
        &self,
        message: MessageId,
        card: Drawn,
        version: Option<i64>,
        wait: Duration,
    ) {
        if nameless::is_stand_in(&message) {
            return;
        }
        self.lock().remember(message.clone(), card.clone());
        let soonest = tokio::time::Instant::now() + wait;
        let tapped = self.under_way.over_at(&message);
        let edit = Edit {
            not_before: tapped.map_or(soonest, |over| over.max(soonest)),
            message,
            card,
            version,
            tries: 0,
            made: 0,
        };
        if self.edits.try_send(edit).is_err() {
            warn!("too many cards wait to be corrected; one is left to the next start");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn remember(&mut self, message: MessageId, card: Drawn) {
        self.faces.push_back((message, card));
        if self.faces.len() > usize::from(MAX_FACES) {
            self.faces.pop_front();
        }
    }

    fn any_unsent(&self) -> bool {
        self.places
            .values()
            .any(|place| matches!(place, Place::Unsent))
    }

    fn put(&mut self, id: &RequestId, place: Place) {
        if let Place::Sent(message) = &place {
            self.requests.insert(message.clone(), id.clone());
        }
        self.places.insert(id.clone(), place);
    }

    fn remove(&mut self, id: &RequestId) -> Option<Place> {
        self.stands.remove(id);
        let place = self.places.remove(id);
        if let Some(Place::Sent(message)) = &place {
            self.requests.remove(message);
        }
        place
    }
}

/// Sends a request's card after the terminal's head start, unless the request
/// has ended by then.
pub(super) async fn send_card(parts: Arc<Parts>, request: Arc<Request>) {
    let delay = parts.config.notify_delay;
    if !delay.is_zero() {
        parts.courier.lock().put(&request.id, Place::Held);
        if parts.desk.find(&request.id).is_none() {
            parts.courier.lock().remove(&request.id);
            return;
        }
        tokio::time::sleep(delay).await;
        if !parts.courier.lock().places.contains_key(&request.id) {
            return;
        }
    }
    send_now(parts, request).await;
}

/// Sends a request's card. What Feishu will not carry goes back to the
/// terminal.
pub(super) async fn send_now(parts: Arc<Parts>, request: Arc<Request>) {
    parts.courier.lock().put(&request.id, Place::Unsent);
    if parts.desk.find(&request.id).is_none() {
        parts.courier.lock().remove(&request.id);
        return;
    }
    if let Some(webhook) = parts.courier.webhook() {
        links::send(&parts, webhook, &request).await;
        return;
    }
    let Some(receiver) = receiver_for(&parts, &request) else {
        parts.desk.undeliverable(&request.id, None);
        return;
    };
    send_to(parts, request, Target::Receiver(receiver)).await;
}

fn receiver_for(parts: &Parts, request: &Request) -> Option<Receiver> {
    match Wishes::of(&request.tool, &request.input).to {
        Some(script::Receiver::Chat(chat)) => Some(Receiver::Chat(chat)),
        Some(script::Receiver::User(user)) => Some(Receiver::User(user)),
        None => parts.courier.receiver().cloned(),
    }
}

/// Sends the card of a request that the last run may have sent already. The
/// card of one that has ended by now is left to [`nameless::run`].
pub(super) async fn resend(parts: Arc<Parts>, request: Arc<Request>) {
    let receiver = receiver_for(&parts, &request);
    let (Some(receiver), Some(_)) = (receiver, parts.courier.messages()) else {
        return send_now(parts, request).await;
    };
    if parts.desk.find(&request.id).is_some() {
        post(&parts, &request, &Target::Receiver(receiver), true).await;
    }
}

/// Sends a request's card at once.
pub(super) async fn send_to(parts: Arc<Parts>, request: Arc<Request>, target: Target) {
    {
        let mut book = parts.courier.lock();
        book.put(&request.id, Place::Unsent);
        if let Target::Thread { place, .. } = &target {
            book.stands.insert(request.id.clone(), place.clone());
        }
    }
    if parts.desk.find(&request.id).is_none() {
        parts.courier.lock().remove(&request.id);
        return;
    }
    post(&parts, &request, &target, false).await;
}

/// Sends a card. One that may be there without our knowing how it is called
/// keeps its place, so that its ending is shown when it is found.
async fn post(parts: &Parts, request: &Request, target: &Target, sent_before: bool) {
    let Some(messages) = parts.courier.messages() else {
        return;
    };
    match send_any(parts, messages, target, request).await {
        Ok(sent) => arrived(parts, &request.id, sent).await,
        Err(why) => {
            warn!("a card could not be sent, the terminal decides: {why}");
            if !sent_before && !why.is_in_doubt() {
                parts.courier.lock().remove(&request.id);
            }
            let why = why.text().get(parts.config.lang).to_owned();
            parts.desk.undeliverable(&request.id, Some(why));
        }
    }
}

/// Finds out which message carries the card of a request that has ended: the
/// same key never makes a second one. The edit that waits for it goes out.
pub(super) async fn recall(parts: &Parts, request: &Request, target: &Target) {
    let Some(messages) = parts.courier.messages() else {
        return;
    };
    match send_any(parts, messages, target, request).await {
        Ok(sent) => arrived(parts, &request.id, sent).await,
        Err(why) => {
            warn!("a card of the last run cannot be found: {why}");
            parts.courier.lock().remove(&request.id);
        }
    }
}

async fn arrived(parts: &Parts, id: &RequestId, sent: Sent) {
    let place = Place::Sent(sent.message_id.clone());
    let ended = {
        let mut book = parts.courier.lock();
        match book.remove(id) {
            Some(Place::Ended(card)) => Some(card),
            Some(Place::Held | Place::Unsent | Place::Sent(_)) => {
                book.put(id, place);
                if let Some(chat) = sent.chat_id.clone() {
                    let thread = sent.thread.clone();
                    book.stands
                        .insert(id.clone(), route::Place { chat, thread });
                }
                None
            }
            // Ended and fully dealt with by a click that named its message.
            None => None,
        }
    };
    parts.courier.named.notify_waiters();
    if let Some(chat) = sent.chat_id {
        let (id, card) = (
            id.clone(),
            Card {
                message: sent.message_id.clone(),
                chat,
            },
        );
        if let Err(why) = parts.store.run(move |db| db.card_sent(&id, &card)).await {
            debug!("where a card is was not kept: {why}");
        }
    }
    if let Some(card) = ended {
        queue_edit(parts, sent.message_id, card, Duration::ZERO).await;
        nameless::named(parts, id).await;
    }
}

/// Keeps the edit on disk, then queues it: a restart loses no correction.
pub(super) async fn queue_edit(parts: &Parts, message: MessageId, card: Drawn, wait: Duration) {
    let (id, text, now) = (message.clone(), Arc::clone(&card), parts.now());
    let kept = parts
        .store
        .run(move |db| db.put_edit(&id, &text, now))
        .await;
    parts.courier.edit(message, card, kept.ok(), wait);
}

/// A plain card or text for the owner that nobody answers.
pub(super) async fn tell(parts: &Parts, content: Content, uuid: &str) {
    if let Some(webhook) = parts.courier.webhook() {
        if let Err(why) = webhook.say(&content, || parts.now() / 1_000).await {
            warn!("a notice could not be sent: {why}");
        }
        return;
    }
    let (Some(messages), Some(receiver)) = (parts.courier.messages(), parts.courier.receiver())
    else {
        return;
    };
    if let Err(why) = messages.send(receiver, &content, uuid).await {
        warn!("a notice could not be sent: {why}");
    }
}
