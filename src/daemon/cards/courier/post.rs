//! Sends the card of each request: after the terminal's head start, as soon as
//! there is a connection, and over and over while Feishu is away.

use std::sync::Arc;
use tracing::{debug, warn};

use super::line::Line;
use super::sending::send_any;
use super::{Place, Target, arrived};
use crate::approvals::request::Request;
use crate::daemon::parts::Parts;
use crate::daemon::tapping::pages;
use crate::feishu::messages::Receiver;
use crate::ids::RequestId;
use crate::sessions::questions::script::{self, Wishes};
use crate::text::Lang;

/// Sends a request's card after the terminal's head start, unless the request
/// has ended by then.
pub(crate) async fn send_card(parts: Arc<Parts>, request: Arc<Request>) {
    let delay = parts.config.notify_delay;
    if !delay.is_zero() {
        if !hold(&parts, &request.id) {
            return;
        }
        // The input is not held for a request that ends meanwhile.
        let id = request.id.clone();
        drop(request);
        tokio::time::sleep(delay).await;
        if parts.courier.is_held(&id)
            && let Some(request) = parts.desk.find(&id)
        {
            send_now(parts, request).await;
        }
        return;
    }
    send_now(parts, request).await;
}

/// Notes that a card is not on its way yet; false when its request has ended.
fn hold(parts: &Parts, id: &RequestId) -> bool {
    parts.courier.lock().put(id, Place::Held);
    let waits = parts.desk.find(id).is_some();
    if !waits {
        parts.courier.lock().remove(id);
    }
    waits
}

/// Sends a request's card. What Feishu will not carry goes back to the
/// terminal.
pub(crate) async fn send_now(parts: Arc<Parts>, request: Arc<Request>) {
    if let Some(webhook) = parts.courier.webhook() {
        parts.courier.lock().put(&request.id, Place::Unsent);
        if parts.desk.find(&request.id).is_none() {
            parts.courier.lock().remove(&request.id);
            return;
        }
        pages::send(&parts, webhook, &request).await;
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
/// card of one that has ended by now is left to [`crate::daemon::cards::nameless::run`].
pub(crate) async fn resend(parts: Arc<Parts>, request: Arc<Request>) {
    let receiver = receiver_for(&parts, &request);
    let (Some(receiver), Some(_)) = (receiver, parts.courier.messages()) else {
        return send_now(parts, request).await;
    };
    if parts.desk.find(&request.id).is_some() {
        post(&parts, &request, &Target::Receiver(receiver), true).await;
    }
}

/// Sends a request's card as soon as there is a connection.
pub(crate) async fn send_to(parts: Arc<Parts>, request: Arc<Request>, target: Target) {
    if !hold(&parts, &request.id) {
        return;
    }
    if let Target::Thread { place, .. } = &target {
        let mut book = parts.courier.lock();
        book.stands.insert(request.id.clone(), place.clone());
    }
    post(&parts, &request, &target, false).await;
}

/// Sends a card, over and over while Feishu is away: the same key never makes a
/// second one. One that may be there without our knowing how it is called keeps
/// its place, so that its ending is shown when it is found.
async fn post(parts: &Parts, request: &Request, target: &Target, sent_before: bool) {
    let Some(messages) = parts.courier.messages() else {
        return;
    };
    let mut line = Line::of(parts, request);
    let mut in_doubt = sent_before;
    let why = loop {
        if let Err(why) = line.up().await {
            break why;
        }
        if !parts.courier.lock().set_out(&request.id) {
            return;
        }
        let sent = tokio::select! {
            sent = send_any(parts, messages, target, request) => sent,
            // What was under way may hang for long in a line that is gone.
            () = line.renewed() => {
                in_doubt = true;
                continue;
            }
        };
        match sent {
            Ok(sent) => return arrived(parts, &request.id, sent).await,
            Err(why) => {
                in_doubt |= why.is_in_doubt();
                if !why.is_retryable() || !line.rest(why.retry_after()).await {
                    break why.text();
                }
                debug!("a card is sent again: {why}");
                if !in_doubt {
                    parts.courier.lock().call_back(&request.id);
                }
            }
        }
    };
    warn!(
        "a card could not be sent, the terminal decides: {}",
        why.get(Lang::En)
    );
    if !in_doubt {
        parts.courier.lock().remove(&request.id);
    }
    let why = why.get(parts.config.lang).to_owned();
    parts.desk.undeliverable(&request.id, Some(why));
}

/// Finds out which message carries the card of a request that has ended: the
/// same key never makes a second one. The edit that waits for it goes out.
pub(crate) async fn recall(parts: &Parts, request: &Request, target: &Target) {
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
