//! The cards that wait, handed to the gateway that takes this machine's pass
//! back: once that is done only the gateway can make them true.

use serde_json::json;

use super::Member;
use crate::bus::errand::LeftCard;
use crate::daemon::cards::courier::{self, Cards};
use crate::wording::team as words;

/// As many cards as fit one message of the bus.
const MOST: usize = 32;
const MAX_BYTES: usize = 700 * 1024;

pub(crate) async fn open_cards(waiting: &Cards, member: &Member) -> Vec<u8> {
    let why = words::closed(&member.name);
    let (mut cards, mut bytes) = (Vec::new(), 0);
    for (message, card) in courier::closed_waiting(waiting, MOST, &why).await {
        let (Some(ticket), card) = (member.tickets.of(&message).await, card.to_string()) else {
            continue;
        };
        bytes += 2 * card.len();
        if bytes > MAX_BYTES {
            break;
        }
        cards.push(LeftCard {
            message: message.to_string(),
            ticket,
            card,
        });
    }
    json!({"cards": cards}).to_string().into_bytes()
}
