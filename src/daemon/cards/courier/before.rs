//! Sends an input that does not fit its card whole, before the card: as a few
//! messages, or as a file. Only what Feishu confirmed counts as sent.

use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use tracing::{info, warn};

use super::sending::send;
use super::{CardTarget, Cards};
use crate::approvals::request::Request;
use crate::cards::whole::{self, Before};
use crate::feishu::error::ApiError;
use crate::feishu::messages::{Content, Messages, SendTurn};
use crate::hex;

/// Sends it, or says that nothing may be allowed because nothing whole is
/// there. Ends early with the request.
pub(super) async fn send_whole(
    cards: &Cards,
    messages: &Messages,
    target: &CardTarget,
    turn: &mut Option<SendTurn<'_>>,
    request: &Request,
) -> Before {
    let lang = cards.config.lang;
    let Some(text) = whole::text(request, lang) else {
        info!(request = %request.id, "an input is too long to be sent whole");
        return Before::Nothing;
    };
    let mut way = SendBefore {
        cards,
        messages,
        target,
        turn,
        request,
        digest: hex::encode(&Sha256::digest(text.as_bytes())),
    };
    let sent = match whole::cards(request, &text, whole::FEW, lang) {
        Some(cards) => way.as_messages(cards).await,
        None => match way.as_file(&text).await {
            Err(why) if cards.desk.find(&request.id).is_some() => {
                warn!("a file could not be sent: {why}");
                match whole::cards(request, &text, whole::MANY, lang) {
                    Some(cards) => way.as_messages(cards).await,
                    None => Err(why),
                }
            }
            sent => sent,
        },
    };
    match sent {
        Ok(before) => before,
        Err(why) => {
            warn!(request = %request.id, "an input could not be sent whole: {why}");
            Before::Nothing
        }
    }
}

struct SendBefore<'a, 'b> {
    cards: &'a Cards,
    messages: &'a Messages,
    target: &'a CardTarget,
    turn: &'a mut Option<SendTurn<'b>>,
    request: &'a Request,
    /// Of the whole text. Part of each key, so that a text that was sent
    /// before a restart is found again, and never taken for another.
    digest: String,
}

impl SendBefore<'_, '_> {
    async fn as_messages(&mut self, cards: Vec<serde_json::Value>) -> Result<Before, ApiError> {
        let count = cards.len();
        for (i, card) in cards.into_iter().enumerate() {
            // Nobody needs the rest of what has ended.
            if self.cards.desk.find(&self.request.id).is_none() {
                return Ok(Before::Nothing);
            }
            self.say(Content::Card(card), &format!("{i}")).await?;
        }
        Ok(Before::Messages(count))
    }

    async fn as_file(&mut self, text: &str) -> Result<Before, ApiError> {
        let name = format!("nod-{}.txt", &self.digest[..8]);
        let bytes: Arc<[u8]> = text.as_bytes().into();
        let key = self.messages.upload(&name, bytes).await?;
        if self.cards.desk.find(&self.request.id).is_none() {
            return Ok(Before::Nothing);
        }
        self.say(Content::File(key), "file").await?;
        Ok(Before::File {
            name,
            bytes: text.len(),
            digest: self.digest.clone(),
        })
    }

    async fn say(&mut self, content: Content, part: &str) -> Result<(), ApiError> {
        let uuid = format!("whole-{part}-{}-{}", self.digest, self.request.id);
        match self.turn.take() {
            Some(turn) => self.messages.send_in_turn(turn, &content, &uuid).await,
            None => send(self.messages, self.target, content, &uuid).await,
        }
        .map(drop)
    }
}

#[cfg(test)]
mod tests;
