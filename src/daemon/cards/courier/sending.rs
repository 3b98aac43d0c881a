//! Draws a request's card and sends it, a few at a time.

use serde_json::Value;
use std::sync::Arc;
use tracing::warn;

use super::before::send_whole;
use super::needs::{SMALL, is_a_hiccup, is_layout, is_too_long, laid_out, needed, plain};
use super::{CardTarget, Cards};
use crate::approvals::request::{Posed, Request};
use crate::cards::whole::{Before, WentOut};
use crate::cards::{Drawn, locked, permission, plainest, question, size};
use crate::daemon::known::{journal, offers};
use crate::feishu::error::ApiError;
use crate::feishu::messages::{Content, Messages, Receiver, SendTurn, SentMessage};
use crate::ids::{ChatId, MessageId, RequestId};
use crate::rules::Offer;
use crate::wording::need::Need;

/// Each holds a drawn card and a call to Feishu; the rest wait for little.
pub(super) const AT_ONCE: usize = 16;
/// More cards than a lock has to correct at once.
const MOST_REDRAWN: usize = 256;

/// What Feishu knows the sending of a request's card by.
pub(super) fn uuid(id: &RequestId) -> String {
    format!("perm-{id}")
}

/// Sends a request's card, or one that Feishu takes no offence at. Thousands may
/// wait for their turn: a card is drawn, and the call made, when it has come.
pub(super) async fn send_any(
    cards: &Cards,
    messages: &Messages,
    target: &CardTarget,
    request: &Request,
) -> Result<SentMessage, ApiError> {
    let turn = match target {
        CardTarget::Receiver(receiver) => Some(messages.turn(receiver).await?),
        CardTarget::Thread { .. } => None,
    };
    let _place = cards.courier.sends.acquire().await;
    Box::pin(draw_and_send(cards, messages, target, turn, request)).await
}

async fn draw_and_send(
    cards: &Cards,
    messages: &Messages,
    target: &CardTarget,
    mut turn: Option<SendTurn<'_>>,
    request: &Request,
) -> Result<SentMessage, ApiError> {
    let ladder = Ladder {
        cards,
        messages,
        target,
        request,
        denied: journal::denied_before(&cards.journal, request).await,
        offer: offers::of(request).await,
    };
    let card = ladder.drawn(cards.courier.needs.room(), &mut turn).await;
    let uuid = uuid(&request.id);
    let content = Content::Card(laid_out(cards, &card));
    let sent = match turn {
        Some(turn) => messages.send_in_turn(turn, &content, &uuid).await,
        None => send(messages, target, content.clone(), &uuid).await,
    };
    match sent {
        Err(why) => ladder.after(why, card, content).await,
        sent => sent,
    }
}

/// What is tried, by the cause of a refusal, before the terminal decides.
struct Ladder<'a> {
    cards: &'a Cards,
    messages: &'a Messages,
    target: &'a CardTarget,
    request: &'a Request,
    denied: u32,
    offer: Offer,
}

impl Ladder<'_> {
    /// The request's card in so many bytes. What it does not hold goes out
    /// before it.
    async fn drawn(&self, room: usize, turn: &mut Option<SendTurn<'_>>) -> Value {
        let (cards, request) = (self.cards, self.request);
        let draw = |before: &Before| draw(cards, request, &self.offer, self.denied, before, room);
        let mut drawn = draw(&Before::Nothing);
        if drawn.elided && cards.desk.find(&request.id).is_some() {
            let before = send_whole(cards, self.messages, self.target, turn, request).await;
            if before != Before::Nothing {
                drawn = draw(&before);
            }
            if let Some(post) = cards.courier.lock().post_mut(&request.id) {
                post.whole = Some(before);
            }
        }
        // What ended meanwhile is never shown as waiting.
        let ended = cards.courier.lock().face_to_come(&request.id).cloned();
        let ended = ended.and_then(|face| serde_json::from_str(&face.shown).ok());
        ended.unwrap_or_else(|| waiting_face(cards, drawn.card))
    }

    /// A layout Feishu refuses is given up for the plainest, with the same
    /// words; a card that is too large, for a smaller one; content it refuses,
    /// for a card that holds nothing of it.
    async fn after(
        &self,
        mut why: ApiError,
        mut card: Value,
        sent: Content,
    ) -> Result<SentMessage, ApiError> {
        let cards = self.cards;
        if is_a_hiccup(&why) {
            match self.send(sent).await {
                Err(once_more) => why = once_more,
                sent => return sent,
            }
        }
        let (mut is_plain, mut room) = (cards.courier.needs.is_plain(), None);
        let mut needs = Vec::new();
        loop {
            if is_layout(&why) && !is_plain {
                is_plain = true;
                needs.push((Need::Plain, why));
            } else if is_too_long(&why)
                && let Some(smaller) = self.smaller(&card).await
            {
                room = Some(size(&card) - 1);
                card = smaller;
                needs.push((Need::Smaller, why));
            } else {
                break;
            }
            let shown = if is_plain {
                plain(cards, &card)
            } else {
                card.clone()
            };
            match self.send(Content::Card(shown)).await {
                Err(refused) => why = refused,
                sent => {
                    if let Some(room) = room {
                        cards.courier.needs.takes_only(room);
                    }
                    for (need, why) in &needs {
                        needed(cards, *need, why).await;
                    }
                    return sent;
                }
            }
        }
        let ApiError::Content { .. } = why else {
            return Err(why);
        };
        let sent = self.bare().await;
        if sent.is_ok() {
            needed(cards, Need::Withheld, &why).await;
        }
        sent
    }

    /// The card with less of the text on it, if there is such a one.
    async fn smaller(&self, card: &Value) -> Option<Value> {
        let refused = size(card);
        let room = (refused > SMALL).then(|| refused - 1)?;
        let smaller = self.drawn(room, &mut None).await;
        (size(&smaller) < refused).then_some(smaller)
    }

    /// A card that holds nothing of the request.
    async fn bare(&self) -> Result<SentMessage, ApiError> {
        let (cards, lang) = (self.cards, self.cards.config.lang);
        let values = |action| cards.buttons.choice(&self.request.id, action, false);
        let bare = laid_out(cards, &permission::minimal(self.request, &values, lang));
        match self.send(Content::Card(bare.clone())).await {
            Err(why) if is_layout(&why) => self.send(Content::Card(plain(cards, &bare))).await,
            sent => sent,
        }
    }

    /// All rungs have one key, of which a refusal takes nothing: a daemon that
    /// died before it knew the message's name gets it by whichever rung its
    /// next run comes to, and never a second card.
    async fn send(&self, content: Content) -> Result<SentMessage, ApiError> {
        let uuid = uuid(&self.request.id);
        send(self.messages, self.target, content, &uuid).await
    }
}

/// Where a card that waits for no decision goes.
#[derive(Clone, Copy)]
pub(crate) enum To<'a> {
    Receiver(&'a Receiver),
    Reply {
        anchor: &'a MessageId,
        chat: &'a ChatId,
        in_thread: bool,
    },
}

impl To<'_> {
    /// Each rung has a key of its own: Feishu makes one message of a key.
    async fn send(
        self,
        messages: &Messages,
        content: Content,
        (uuid, rung): (&str, &str),
    ) -> Result<SentMessage, ApiError> {
        let uuid = format!("{uuid}{rung}");
        match self {
            Self::Receiver(receiver) => messages.send(receiver, &content, &uuid).await,
            Self::Reply {
                anchor,
                chat,
                in_thread,
            } => {
                messages
                    .reply(anchor, Some(chat), &content, in_thread, &uuid)
                    .await
            }
        }
    }
}

/// Sends a card that waits for no decision, or at last its words.
pub(crate) async fn say(
    cards: &Cards,
    messages: &Messages,
    to: To<'_>,
    card: &Value,
    uuid: &str,
) -> Result<SentMessage, ApiError> {
    let go = |content, rung| to.send(messages, content, (uuid, rung));
    let content = Content::Card(laid_out(cards, card));
    let mut sent = go(content.clone(), "").await;
    if sent.as_ref().is_err_and(is_a_hiccup) {
        sent = go(content, "again").await;
    }
    if let Err(why) = &sent
        && is_layout(why)
        && !cards.courier.needs.is_plain()
    {
        let plainly = go(Content::Card(plain(cards, card)), "plain").await;
        if plainly.is_ok() {
            needed(cards, Need::Plain, why).await;
        }
        sent = plainly;
    }
    if let Err(why @ ApiError::Content { .. }) = &sent {
        warn!("a card is said as text: {why}");
        let text = plainest::text(card, cards.config.lang);
        return go(Content::Text(text), "text").await;
    }
    sent
}

/// What a request's own card holds, for the question about one of its buttons.
pub(crate) async fn redrawn(cards: &Cards, request: &Request, went_out: WentOut) -> Value {
    let offer = offers::of(request).await;
    let before = match went_out {
        WentOut::Whole => Before::Messages(1),
        WentOut::NotWhole | WentOut::Unknown => Before::Nothing,
    };
    let room = cards.courier.needs.room();
    draw(cards, request, &offer, 0, &before, room).card
}

fn draw(
    cards: &Cards,
    request: &Request,
    offer: &Offer,
    denied: u32,
    before: &Before,
    room: usize,
) -> Drawn {
    let (id, lang) = (&request.id, cards.config.lang);
    let whole = before.went_out() == WentOut::Whole;
    if let Some(Posed { ask, .. }) = request.question() {
        let values = |tap| cards.buttons.answer(id, Some(tap), whole);
        let submit = cards.buttons.answer(id, None, whole);
        return question::pending(request, ask, before, &values, &submit, room, lang);
    }
    let values = |action| cards.buttons.choice(id, action, whole);
    permission::pending(request, offer, denied, before, &values, room, lang)
}

/// While nod is locked no card shows a way to allow.
fn waiting_face(cards: &Cards, card: Value) -> Value {
    if cards.lock.is_closed() {
        locked::locked(card, cards.config.lang)
    } else {
        card
    }
}

/// Makes the cards that wait true after a lock, or the end of one.
pub(crate) async fn redraw_waiting(cards: Arc<Cards>) {
    for request in cards.desk.soonest(MOST_REDRAWN) {
        if let Some((_, card)) = drawn_anew(&cards, &request).await {
            let card = laid_out(&cards, &waiting_face(&cards, card));
            cards.courier.show(&request.id, &card);
        }
    }
}

/// The cards that wait, soonest first, as they look once no tap counts.
#[cfg(feature = "team")]
pub(crate) async fn closed_waiting(
    cards: &Cards,
    most: usize,
    why: &crate::text::Text,
) -> Vec<(MessageId, Value)> {
    let mut all = Vec::new();
    for request in cards.desk.soonest(most) {
        if let Some((message, card)) = drawn_anew(cards, &request).await {
            let card = locked::closed(card, why, cards.config.lang);
            all.push((message, laid_out(cards, &card)));
        }
    }
    all
}

/// A waiting request's card, where it is and as it would be drawn now.
async fn drawn_anew(cards: &Cards, request: &Request) -> Option<(MessageId, Value)> {
    let id = &request.id;
    let message = cards.courier.message_of(id)?;
    if cards.desk.running_since(id).is_some() {
        return None;
    }
    let before = (cards.courier.lock().post(id)).and_then(|post| post.whole.clone());
    let denied = journal::denied_before(&cards.journal, request).await;
    let offer = offers::of(request).await;
    let told = before.clone().unwrap_or(Before::Nothing);
    let room = cards.courier.needs.room();
    let drawn = draw(cards, request, &offer, denied, &told, room);
    // What an earlier run sent before the card is known by its seal alone.
    let is_whole = !drawn.elided || before.is_some();
    is_whole.then_some((message, drawn.card))
}

pub(super) async fn send(
    messages: &Messages,
    target: &CardTarget,
    content: Content,
    uuid: &str,
) -> Result<SentMessage, ApiError> {
    match target {
        CardTarget::Receiver(receiver) => messages.send(receiver, &content, uuid).await,
        CardTarget::Thread { anchor, place } => {
            let in_thread = place.thread.is_some();
            messages
                .reply(anchor, Some(&place.chat), &content, in_thread, uuid)
                .await
        }
    }
}

#[cfg(test)]
mod tests;
