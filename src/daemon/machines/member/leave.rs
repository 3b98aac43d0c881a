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

    async fn left(bench: &Bench, member: &Member) -> (Vec<LeftCard>, usize) {
        let bytes = open_cards(&bench.cards, member).await;
        let told: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let cards = serde_json::from_value(told["cards"].clone()).unwrap();
        (cards, bytes.len())
    }

    #[tokio::test]
    async fn a_card_that_waits_is_left_closed_and_with_its_ticket() {
        let (bench, machine) = (Bench::new().await, MemberBench::new());
        let (_waiting, message) = waits(&bench, 1, "npm test").await;
        machine.member.tickets.keep(&message, "a ticket");
        let (cards, _) = left(&bench, &machine.member).await;
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
        assert_eq!(left(&bench, &machine.member).await.0.len(), 1);
        drop(over);
        let id = RequestId::parse("r2").unwrap();
        while bench.cards.desk.find(&id).is_some() {
            tokio::task::yield_now().await;
        }
        assert_eq!(left(&bench, &machine.member).await.0, []);
    }

    #[tokio::test]
    async fn however_much_waits_it_fits_one_letter() {
        let (bench, machine) = (Bench::new().await, MemberBench::new());
        let long = "echo \"\\a\" ".repeat(1_500);
        let mut kept = Vec::new();
        for n in 0..MOST + 2 {
            let (waiting, message) = waits(&bench, n, &long).await;
            machine.member.tickets.keep(&message, "a ticket");
            kept.push(waiting);
        }
        let (cards, bytes) = left(&bench, &machine.member).await;
        assert!((10..=MOST).contains(&cards.len()), "{}", cards.len());
        assert!(bytes <= MAX_BYTES, "{bytes}");
    }
}
