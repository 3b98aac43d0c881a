//! Sends the card of each request: after the terminal's head start, as soon as
//! there is a connection, and over and over while Feishu is away.

use serde_json::Value;
use std::time::Duration;
use tracing::{debug, warn};

use super::edits::may_pass;
use super::needs::laid_out;
use super::sending::{send as send_to_target, send_any, uuid};
use super::{CardTarget, Cards, Post, linked, now};
use crate::approvals::request::Request;
use crate::clock::Millis;
use crate::daemon::cards::book::{Face, Found, Sending, Unsent};
use crate::feishu::messages::{Content, Receiver, SentMessage};
use crate::ids::{MessageId, RequestId};
use crate::sessions::questions::script;
use crate::sessions::route;
use crate::store::CardPlace;
use crate::text::Text;

/// The hook is told why no card came, before its time is over.
const BEFORE_END: Millis = 500;
const ENDED: Text = Text::new("请求已结束", "the request has ended");

/// Sends a request's card after the terminal's head start, unless the request
/// has ended by then.
pub(crate) fn send_card(cards: &Cards, request: &Request) {
    send_in(cards, request, cards.config.notify_delay);
}

/// Sends a request's card. What Feishu will not carry goes back to the
/// terminal.
pub(crate) fn send_now(cards: &Cards, request: &Request) {
    send_in(cards, request, Duration::ZERO);
}

fn send_in(cards: &Cards, request: &Request, delay: Duration) {
    let target = receiver_for(cards, request).map(CardTarget::Receiver);
    if target.is_none() && cards.courier.webhook().is_none() {
        cards.desk.undeliverable(&request.id, None);
        return;
    }
    ask(cards, request, target, delay, false);
}

fn receiver_for(cards: &Cards, request: &Request) -> Option<Receiver> {
    match request.question().and_then(|it| it.to.clone()) {
        Some(script::Addressee::Chat(chat)) => Some(Receiver::Chat(chat)),
        Some(script::Addressee::User(user)) => Some(Receiver::User(user)),
        None => cards.courier.receiver().cloned(),
    }
}

/// Puts back what was sent before a restart, or may have been.
pub(crate) fn take_over(cards: &Cards, request: &Request, card: Option<&CardPlace>) {
    let stands = card.map(|card| route::ChatPlace {
        chat: card.chat.clone(),
        thread: None,
    });
    let to = request.question().and_then(|it| it.to.as_ref());
    let target = to.and_then(|_| receiver_for(cards, request));
    let post = Post {
        target: target.map(CardTarget::Receiver),
        stands,
        whole: None,
    };
    let age = u64::try_from(cards.now() - request.asked_at).unwrap_or_default();
    let (message, age) = (card.map(|card| &card.message), Duration::from_millis(age));
    (cards.courier).tell(|book, now| book.restore(&request.id, message, age, post, now));
}

/// Sends the card of a request that the last run may have sent already. The
/// card of one that has ended by now is looked for instead.
pub(crate) fn resend(cards: &Cards, request: &Request) {
    let receiver = receiver_for(cards, request);
    let (Some(receiver), Some(_)) = (receiver, cards.courier.messages()) else {
        cards.courier.forget(&request.id);
        return send_now(cards, request);
    };
    // One whose time ran out meanwhile is ended by the desk.
    if request.deadline > cards.now() && cards.desk.find(&request.id).is_some() {
        let target = CardTarget::Receiver(receiver);
        ask(cards, request, Some(target), Duration::ZERO, true);
    }
}

/// Sends a request's card as soon as there is a connection.
pub(crate) fn send_to(cards: &Cards, request: &Request, target: CardTarget) {
    ask(cards, request, Some(target), Duration::ZERO, false);
}

fn ask(
    cards: &Cards,
    request: &Request,
    target: Option<CardTarget>,
    delay: Duration,
    sent_before: bool,
) {
    let id = &request.id;
    let left = (request.deadline - BEFORE_END - cards.now()).max(0);
    let now = now();
    let sending = Sending {
        not_before: now + delay,
        latest: now + Duration::from_millis(left.unsigned_abs()),
        needs_line: cards.courier.messages().is_some(),
        // A script's card may be with somebody else, of whom only the request
        // tells, and the disk forgets that at the end.
        is_findable: request.question().is_none_or(|it| it.to.is_none()),
        sent_before,
    };
    let stands = match &target {
        Some(CardTarget::Thread { place, .. }) => Some(place.clone()),
        Some(CardTarget::Receiver(_)) | None => None,
    };
    let post = Post {
        target,
        stands,
        whole: None,
    };
    (cards.courier).tell(|book, now| book.ask(id, sending, post, now));
    // It may have ended before the book knew of it.
    if !sent_before && cards.desk.find(id).is_none() {
        (cards.courier).tell(|book, _| {
            if book.face_to_come(id).is_none() {
                book.forget(id);
            }
        });
    }
}

/// One try.
pub(super) async fn send(cards: &Cards, id: &RequestId) {
    let gone = Unsent {
        in_doubt: false,
        passes: true,
        retry_after: None,
        why: ENDED,
    };
    let Some(request) = cards.desk.find(id) else {
        return cards.courier.tell(|book, now| book.unsent(id, &gone, now));
    };
    if let Some(webhook) = cards.courier.webhook() {
        return linked::send(cards, webhook, &request).await;
    }
    let target = target_of(cards, id);
    let (Some(messages), Some(target)) = (cards.courier.messages(), target) else {
        return cards.courier.tell(|book, now| book.unsent(id, &gone, now));
    };
    match send_any(cards, messages, &target, &request).await {
        Ok(sent) => {
            let message = place(cards, id, &sent);
            (cards.courier).tell(|book, now| book.sent(id, &message, now));
            cards.courier.named.notify_waiters();
            note_place(cards, id, sent).await;
        }
        Err(why) => {
            debug!("a card was not sent: {why}");
            let unsent = Unsent {
                in_doubt: why.is_in_doubt(),
                passes: why.is_retryable(),
                retry_after: why.retry_after(),
                why: why.text(),
            };
            (cards.courier).tell(|book, now| book.unsent(id, &unsent, now));
        }
    }
}

fn target_of(cards: &Cards, id: &RequestId) -> Option<CardTarget> {
    cards.courier.lock().post(id)?.target.clone()
}

/// The card of this request, which has ended, may stand there without a name.
pub(crate) fn seek(cards: &Cards, id: &RequestId, target: CardTarget) {
    (cards.courier).tell(|book, now| {
        if let Some(post) = book.post_mut(id) {
            post.target = Some(target);
        }
        book.seek(id, now);
    });
}

/// Learns which message carries the card of a request that has ended. Where the
/// first sending never arrived, this one does, with the ending on it.
pub(super) async fn look(cards: &Cards, id: &RequestId, face: &Face) {
    let receiver = || cards.courier.receiver().cloned().map(CardTarget::Receiver);
    let target = target_of(cards, id).or_else(receiver);
    let card = serde_json::from_str::<Value>(&face.shown).ok();
    let (Some(messages), Some(target), Some(card)) = (cards.courier.messages(), target, card)
    else {
        return (cards.courier).tell(|book, now| book.found(id, Found::Never, now));
    };
    let content = Content::Card(laid_out(cards, &card));
    let found = match send_to_target(messages, &target, content, &uuid(id)).await {
        Ok(sent) => {
            let message = place(cards, id, &sent);
            note_place(cards, id, sent).await;
            Found::Named(message)
        }
        Err(why) if may_pass(&why) => {
            debug!("a card is looked for again later: {why}");
            Found::Later
        }
        Err(why) => {
            warn!("a card stays as it is: {why}");
            Found::Never
        }
    };
    (cards.courier).tell(|book, now| book.found(id, found, now));
    cards.courier.named.notify_waiters();
}

/// Remembers the chat a card stands in; the message it is.
fn place(cards: &Cards, id: &RequestId, sent: &SentMessage) -> MessageId {
    if let Some(chat) = sent.chat_id.clone()
        && let Some(post) = cards.courier.lock().post_mut(id)
    {
        let thread = sent.thread.clone();
        post.stands = Some(route::ChatPlace { chat, thread });
    }
    sent.message_id.clone()
}

async fn note_place(cards: &Cards, id: &RequestId, sent: SentMessage) {
    let Some(chat) = sent.chat_id else { return };
    let card = CardPlace {
        message: sent.message_id,
        chat,
    };
    let (id, store) = (id.clone(), &cards.journal.store);
    if let Err(why) = store.run(move |db| db.card_sent(&id, &card)).await {
        debug!("where a card is was not kept: {why}");
    }
}

#[cfg(test)]
mod tests;
