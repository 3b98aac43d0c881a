//! The card of a call that was allowed in the terminal and runs.

use std::time::Duration;

use super::{CardText, Cards, queue_edit};
use crate::cards::{Action, ending};
use crate::ids::RequestId;

/// Makes the card of a call that runs say so, once it is known which it is.
pub(crate) async fn show_running(cards: &Cards, id: &RequestId) {
    let (Some(request), Some(since)) = (cards.desk.find(id), cards.desk.running_since(id)) else {
        return;
    };
    let Some(message) = cards.courier.message_of(id) else {
        return;
    };
    let stop = cards.buttons.choice(id, Action::Interrupt, false);
    let card = ending::running(&request, since, Some(&stop), cards.config.lang);
    queue_edit(
        cards,
        message,
        CardText::from(card.to_string()).into(),
        Duration::ZERO,
    )
    .await;
}
