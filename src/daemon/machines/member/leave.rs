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
    let mut cards = Vec::new();
    for (message, card) in courier::closed_waiting(waiting, MOST, &why).await {
        if let Some(ticket) = member.tickets.of(&message).await {
            cards.push(LeftCard {
                message: message.to_string(),
                ticket,
                card: card.to_string(),
            });
        }
    }
    let cards: Vec<_> = fitting(cards).collect();
    json!({"cards": cards}).to_string().into_bytes()
}

/// The first of these that fit, with every letter of a card escaped.
fn fitting(cards: Vec<LeftCard>) -> impl Iterator<Item = LeftCard> {
    let mut bytes = 0;
    cards.into_iter().take_while(move |left| {
        bytes += 2 * left.card.len();
        bytes <= MAX_BYTES
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::desk::Waiting;
    use crate::approvals::outcome::sample;
    use crate::daemon::cards::bench::Bench;
    use crate::daemon::machines::bench::MemberBench;
    use crate::ids::{MessageId, RequestId};

    async fn waits(bench: &Bench, n: usize, command: &str) -> (Waiting, MessageId) {
        let mut asked = sample::request("Bash", json!({"command": command}));
        asked.id = RequestId::parse(&format!("r{n}")).unwrap();
        let (waiting, _, message) = bench.shows(asked).await;
        (waiting, message)
    }

    async fn left(bench: &Bench, member: &Member) -> Vec<LeftCard> {
        let bytes = open_cards(&bench.cards, member).await;
        let told: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        serde_json::from_value(told["cards"].clone()).unwrap()
    }

    #[tokio::test]
    async fn a_card_that_waits_is_left_closed_and_with_its_ticket() {
        let (bench, machine) = (Bench::new().await, MemberBench::new());
        let (_waiting, message) = waits(&bench, 1, "npm test").await;
        machine.member.tickets.keep(&message, "a ticket");
        let cards = left(&bench, &machine.member).await;
        let [card] = cards.as_slice() else {
            panic!("{cards:?}");
        };
        assert_eq!(
            (card.message.as_str(), card.ticket.as_str()),
            (message.as_str(), "a ticket")
        );
        assert!(card.card.contains("npm test"));
        assert!(card.card.contains(&*words::closed("laptop").en));
        assert!(!card.card.contains("\"seal\""), "nothing is left to tap");
    }

    #[tokio::test]
    async fn a_card_without_a_ticket_and_one_that_is_over_are_not_left() {
        let (bench, machine) = (Bench::new().await, MemberBench::new());
        let (_waiting, _) = waits(&bench, 1, "ls").await;
        let (over, message) = waits(&bench, 2, "pwd").await;
        machine.member.tickets.keep(&message, "a ticket");
        assert_eq!(left(&bench, &machine.member).await.len(), 1);
        drop(over);
        assert_eq!(bench.cards.desk.pending(), 1);
        assert_eq!(left(&bench, &machine.member).await, []);
    }

    #[tokio::test]
    async fn of_many_cards_the_soonest_are_left() {
        let (bench, machine) = (Bench::new().await, MemberBench::new());
        let mut kept = Vec::new();
        for n in 0..MOST + 2 {
            let (waiting, message) = waits(&bench, n, "ls").await;
            machine.member.tickets.keep(&message, "a ticket");
            kept.push((waiting, message.to_string()));
        }
        let cards = left(&bench, &machine.member).await.into_iter();
        let cards: Vec<_> = cards.map(|card| card.message).collect();
        let soonest = kept.iter().take(MOST).map(|(_, message)| message.clone());
        assert_eq!(cards, soonest.collect::<Vec<_>>());
    }

    #[test]
    fn however_large_the_cards_are_they_fit_one_letter() {
        let large = |n: usize| LeftCard {
            message: format!("om_{n}"),
            ticket: "a ticket".to_owned(),
            card: "\"".repeat(30_000),
        };
        let left: Vec<_> = fitting((0..MOST).map(large).collect()).collect();
        assert_eq!(left.len(), MAX_BYTES / 60_000);
        assert_eq!(left[0], large(0), "the soonest first");
        let bytes = json!({"cards": left}).to_string().len();
        assert!(bytes < 1024 * 1024 - 8 * 1024, "{bytes}");
    }
}
