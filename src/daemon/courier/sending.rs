//! Draws a request's card and sends it, a few at a time.

use super::Target;
use crate::approvals::request::Request;
use crate::cards::{permission, question};
use crate::daemon::parts::Parts;
use crate::daemon::{journal, nameless};
use crate::feishu::error::ApiError;
use crate::feishu::messages::{Content, Messages, Sent, Turn};
use crate::rules;
use crate::sessions::questions;

/// Each holds a drawn card and a call to Feishu; the rest wait for little.
pub(super) const AT_ONCE: usize = 16;

/// Sends a request's card, or a minimal one if Feishu takes offence at its
/// content. Thousands may wait for their turn: a card is drawn, and the call
/// made, when it has come.
pub(super) async fn send_any(
    parts: &Parts,
    messages: &Messages,
    target: &Target,
    request: &Request,
) -> Result<Sent, ApiError> {
    let turn = match target {
        Target::Receiver(receiver) => Some(messages.turn(receiver).await?),
        Target::Thread { .. } => None,
    };
    let _place = parts.courier.sends.acquire().await;
    Box::pin(draw_and_send(parts, messages, target, turn, request)).await
}

async fn draw_and_send(
    parts: &Parts,
    messages: &Messages,
    target: &Target,
    turn: Option<Turn<'_>>,
    request: &Request,
) -> Result<Sent, ApiError> {
    let denied = journal::denied_before(parts, request).await;
    let card = if let Some((ask, _)) = questions::of(&request.tool, &request.input) {
        let values = |tap| parts.answer_button(&request.id, Some(tap));
        let submit = parts.answer_button(&request.id, None);
        question::pending(request, &ask, &values, &submit, parts.config.lang)
    } else {
        let offer = rules::offer(request);
        let values = |action| parts.button(&request.id, action);
        permission::pending_again(request, &offer, denied, &values, parts.config.lang)
    };
    let uuid = nameless::uuid(&request.id);
    let card = Content::Card(card);
    let sent = match turn {
        Some(turn) => messages.send_in_turn(turn, &card, &uuid).await,
        None => send(messages, target, card, &uuid).await,
    };
    let Err(ApiError::Content { .. }) = sent else {
        return sent;
    };
    let card = permission::minimal(
        request,
        &|action| parts.button(&request.id, action),
        parts.config.lang,
    );
    let uuid = format!("bare-{}", request.id);
    send(messages, target, Content::Card(card), &uuid).await
}

async fn send(
    messages: &Messages,
    target: &Target,
    content: Content,
    uuid: &str,
) -> Result<Sent, ApiError> {
    match target {
        Target::Receiver(receiver) => messages.send(receiver, &content, uuid).await,
        Target::Thread { anchor, place } => {
            let in_thread = place.thread.is_some();
            messages
                .reply(anchor, Some(&place.chat), &content, in_thread, uuid)
                .await
        }
    }
}
