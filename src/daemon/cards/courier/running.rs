//! The card of a call that was allowed in the terminal and runs.

use super::Cards;
use crate::approvals::request::Request;
use crate::cards::{Action, ending};
use crate::clock::Millis;

/// Makes the card of a call that runs say so, once it is known which it is.
pub(crate) fn show_running(cards: &Cards, request: &Request, since: Millis) {
    let stop = cards.buttons.choice(&request.id, Action::Interrupt, false);
    let card = ending::running(request, since, Some(&stop), cards.config.lang);
    cards.courier.show(&request.id, &card);
}

#[cfg(test)]
mod tests;
