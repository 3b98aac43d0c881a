//! Sends the card of each request: after the terminal's head start, as soon as
//! there is a connection, and over and over while Feishu is away.

use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, warn};

use super::line::Line;
use super::linked;
use super::sending::send_any;
use super::{CardTarget, Cards, Place, queue_edit, show_running};
use crate::approvals::request::Request;
use crate::daemon::cards::nameless;
use crate::feishu::messages::{Receiver, SentMessage};
use crate::ids::RequestId;
use crate::sessions::questions::script;
use crate::sessions::route;
use crate::store::CardPlace;
use crate::text::Lang;

/// Sends a request's card after the terminal's head start, unless the request
/// has ended by then.
pub(crate) async fn send_card(cards: Arc<Cards>, request: Arc<Request>) {
    let delay = cards.config.notify_delay;
    if !delay.is_zero() {
        if !hold(&cards, &request.id) {
            return;
        }
        // The input is not held for a request that ends meanwhile.
        let id = request.id.clone();
        drop(request);
        tokio::time::sleep(delay).await;
        if cards.courier.is_held(&id)
            && let Some(request) = cards.desk.find(&id)
        {
            send_now(cards, request).await;
        }
        return;
    }
    send_now(cards, request).await;
}

/// Notes that a card is not on its way yet; false when its request has ended.
fn hold(cards: &Cards, id: &RequestId) -> bool {
    cards.courier.lock().put(id, Place::Held);
    let waits = cards.desk.find(id).is_some();
    if !waits {
        cards.courier.lock().remove(id);
    }
    waits
}

/// Sends a request's card. What Feishu will not carry goes back to the
/// terminal.
pub(crate) async fn send_now(cards: Arc<Cards>, request: Arc<Request>) {
    if let Some(webhook) = cards.courier.webhook() {
        cards.courier.lock().put(&request.id, Place::Unsent);
        if cards.desk.find(&request.id).is_none() {
            cards.courier.lock().remove(&request.id);
            return;
        }
        linked::send(&cards, webhook, &request).await;
        return;
    }
    let Some(receiver) = receiver_for(&cards, &request) else {
        cards.desk.undeliverable(&request.id, None);
        return;
    };
    send_to(cards, request, CardTarget::Receiver(receiver)).await;
}

fn receiver_for(cards: &Cards, request: &Request) -> Option<Receiver> {
    match request.question().and_then(|it| it.to.clone()) {
        Some(script::Addressee::Chat(chat)) => Some(Receiver::Chat(chat)),
        Some(script::Addressee::User(user)) => Some(Receiver::User(user)),
        None => cards.courier.receiver().cloned(),
    }
}

/// Sends the card of a request that the last run may have sent already. The
/// card of one that has ended by now is left to [`crate::daemon::cards::nameless::run`].
pub(crate) async fn resend(cards: Arc<Cards>, request: Arc<Request>) {
    let receiver = receiver_for(&cards, &request);
    let (Some(receiver), Some(_)) = (receiver, cards.courier.messages()) else {
        return send_now(cards, request).await;
    };
    if cards.desk.find(&request.id).is_some() {
        post(&cards, &request, &CardTarget::Receiver(receiver), true).await;
    }
}

/// Sends a request's card as soon as there is a connection.
pub(crate) async fn send_to(cards: Arc<Cards>, request: Arc<Request>, target: CardTarget) {
    if !hold(&cards, &request.id) {
        return;
    }
    if let CardTarget::Thread { place, .. } = &target {
        let mut book = cards.courier.lock();
        book.stands.insert(request.id.clone(), place.clone());
    }
    post(&cards, &request, &target, false).await;
}

/// Sends a card, over and over while Feishu is away: the same key never makes a
/// second one. One that may be there without our knowing how it is called keeps
/// its place, so that its ending is shown when it is found.
async fn post(cards: &Cards, request: &Request, target: &CardTarget, sent_before: bool) {
    let Some(messages) = cards.courier.messages() else {
        return;
    };
    let mut line = Line::of(cards, request);
    let mut in_doubt = sent_before;
    let why = loop {
        if let Err(why) = line.up().await {
            break why;
        }
        if !cards.courier.lock().set_out(&request.id) {
            return;
        }
        let sent = tokio::select! {
            sent = send_any(cards, messages, target, request) => sent,
            // What was under way may hang for long in a line that is gone.
            () = line.renewed() => {
                in_doubt = true;
                continue;
            }
        };
        match sent {
            Ok(sent) => return arrived(cards, &request.id, sent).await,
            Err(why) => {
                in_doubt |= why.is_in_doubt();
                if !why.is_retryable() || !line.rest(why.retry_after()).await {
                    break why.text();
                }
                debug!("a card is sent again: {why}");
                if !in_doubt {
                    cards.courier.lock().call_back(&request.id);
                }
            }
        }
    };
    warn!(
        "a card could not be sent, the terminal decides: {}",
        why.get(Lang::En)
    );
    if !in_doubt {
        cards.courier.lock().remove(&request.id);
    }
    let why = why.get(cards.config.lang).to_owned();
    cards.desk.undeliverable(&request.id, Some(why));
}

/// Finds out which message carries the card of a request that has ended: the
/// same key never makes a second one. The edit that waits for it goes out.
pub(crate) async fn recall(cards: &Cards, request: &Request, target: &CardTarget) {
    let Some(messages) = cards.courier.messages() else {
        return;
    };
    match send_any(cards, messages, target, request).await {
        Ok(sent) => arrived(cards, &request.id, sent).await,
        Err(why) => {
            warn!("a card of the last run cannot be found: {why}");
            cards.courier.lock().remove(&request.id);
        }
    }
}

/// Feishu has named the message that carries this request's card.
async fn arrived(cards: &Cards, id: &RequestId, sent: SentMessage) {
    let place = Place::Sent(sent.message_id.clone());
    let ended = {
        let mut book = cards.courier.lock();
        let whole = book.whole.get(id).cloned();
        let before = book.remove(id);
        if let (Some(whole), Some(_)) = (whole, &before) {
            book.whole.insert(id.clone(), whole);
        }
        match before {
            // Stays until its edit is queued: it may be put right until then.
            Some(ended @ Place::Ended(_)) => {
                book.put(id, ended);
                true
            }
            Some(Place::Held | Place::Unsent | Place::Sent(_)) => {
                book.put(id, place);
                if let Some(chat) = sent.chat_id.clone() {
                    let thread = sent.thread.clone();
                    book.stands
                        .insert(id.clone(), route::ChatPlace { chat, thread });
                }
                false
            }
            // Ended and fully dealt with by a click that named its message.
            None => false,
        }
    };
    cards.courier.named.notify_waiters();
    if let Some(chat) = sent.chat_id {
        let (id, card) = (
            id.clone(),
            CardPlace {
                message: sent.message_id.clone(),
                chat,
            },
        );
        if let Err(why) = cards
            .journal
            .store
            .run(move |db| db.card_sent(&id, &card))
            .await
        {
            debug!("where a card is was not kept: {why}");
        }
    }
    show_running(cards, id).await;
    if ended {
        let mut queued = None;
        loop {
            let face = cards.courier.lock().last_face(id, queued.as_ref());
            let Some(face) = face else { break };
            let message = sent.message_id.clone();
            queue_edit(cards, message, face.clone(), Duration::ZERO).await;
            queued = Some(face);
        }
        nameless::named(cards, id).await;
    }
}
