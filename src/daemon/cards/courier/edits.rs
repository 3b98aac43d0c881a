//! Makes one edit at Feishu, in a way that this Feishu takes.

use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, warn};

use super::Cards;
use super::needs::{is_a_hiccup, is_layout, laid_out_text, needed, plain};
use crate::cards::ending;
use crate::daemon::cards::book::{CardText, Patch, PatchOf, Patched};
use crate::feishu::error::ApiError;
use crate::feishu::messages::Messages;
use crate::ids::MessageId;
use crate::wording::need::Need;

const HICCUP: Duration = Duration::from_secs(1);

pub(super) async fn make(cards: &Cards, patch: Patch) {
    let patched = match cards.courier.messages() {
        Some(messages) => Box::pin(made(cards, messages, &patch)).await,
        None => Patched::Refused,
    };
    (cards.courier).tell(|book, now| book.patched(&patch.message, patched, now));
}

async fn made(cards: &Cards, messages: &Messages, patch: &Patch) -> Patched {
    let message = &patch.message;
    let (mut card, version) = match &patch.edit {
        PatchOf::Soon(card) | PatchOf::Unkept(card) => (Arc::clone(card), None),
        PatchOf::Kept(version, Some(card)) => (Arc::clone(card), Some(*version)),
        PatchOf::Kept(version, None) => match kept(cards, message, *version).await {
            Ok(Some(card)) => (card, Some(*version)),
            // A newer one has taken its place.
            Ok(None) => return Patched::Refused,
            Err(passing) => return passing,
        },
    };
    let (mut hiccups, mut is_bare) = (0, false);
    loop {
        let shown = laid_out_text(cards, &card);
        let Err(why) = messages.patch(message, Arc::clone(&shown)).await else {
            cards.proof.took(&cards.journal.store, &shown);
            return Patched::Taken;
        };
        if may_pass(&why) {
            debug!("a card is corrected later: {why}");
            return Patched::Passing(why.retry_after());
        }
        if is_a_hiccup(&why) && hiccups == 0 {
            hiccups += 1;
            tokio::time::sleep(HICCUP).await;
        } else if is_layout(&why)
            && let Some(plain) = plainer(cards, &card)
        {
            card = plain;
            needed(cards, Need::Plain, &why).await;
        } else if matches!(why, ApiError::Content { .. })
            && let Some(barer) = barer(cards, message, version, is_bare, &card).await
        {
            debug!("a card is corrected without its content: {why}");
            (card, is_bare) = (barer, true);
        } else {
            warn!("a card could not be corrected: {why}");
            return Patched::Refused;
        }
    }
}

/// What the disk has of the card, where of the input only its title stands, and
/// then not even that; `None` if all was tried.
async fn barer(
    cards: &Cards,
    message: &MessageId,
    version: Option<i64>,
    is_bare: bool,
    card: &CardText,
) -> Option<CardText> {
    if !is_bare {
        let kept = kept(cards, message, version?).await.ok()??;
        if kept != *card {
            return Some(kept);
        }
    }
    let tree = serde_json::from_str(card).ok()?;
    let untitled: CardText = ending::untitled(&tree)?.to_string().into();
    (untitled != *card).then_some(untitled)
}

/// What the disk has of this edit.
async fn kept(
    cards: &Cards,
    message: &MessageId,
    version: i64,
) -> Result<Option<CardText>, Patched> {
    let (of, store) = (message.clone(), &cards.journal.store);
    let card = store.run(move |db| db.edit(&of, version)).await;
    let card = card.inspect_err(|why| debug!("a card is corrected later: {why}"));
    card.map(|card| card.map(CardText::from))
        .map_err(|_| Patched::Passing(None))
}

/// The card in the plainest layout, unless it is already.
fn plainer(cards: &Cards, card: &CardText) -> Option<CardText> {
    let tree = serde_json::from_str(card).ok()?;
    let plain: CardText = plain(cards, &tree).to_string().into();
    (plain != *card).then_some(plain)
}

/// A card must become true however long Feishu does not let us in.
pub(super) fn may_pass(why: &ApiError) -> bool {
    let shut_out = matches!(
        why,
        ApiError::StaleToken(_) | ApiError::BadCredentials(_) | ApiError::Setup { .. }
    );
    shut_out || why.is_retryable()
}

#[cfg(test)]
mod tests;
