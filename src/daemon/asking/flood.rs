//! How many requests of one session get a card of their own. What comes while
//! that many wait unanswered is gathered on one card: a person who gets a card
//! every few seconds stops reading them, and silence would be worse.

mod show;
mod taps;

pub(crate) use self::show::{restore, run};
pub(crate) use self::taps::{FloodTap, tapped};

use std::sync::Arc;

use crate::approvals::request::{Origin, Request};
use crate::cards::notice::Why;
use crate::cards::place;
use crate::clock::millis;
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::cards::notices;
use crate::feishu::messages::Content;

/// Whether a new request must be left to the terminal: as many wait as a person
/// can be asked, and there is no place to gather more.
pub(crate) fn refuses(cards: &Arc<Cards>, request: &Request) -> bool {
    let session = &request.origin.session;
    if cards.desk.waiting_of(session.as_ref()) < most(cards) {
        return false;
    }
    if cards.courier.webhook().is_none() && cards.flood.has_room(session) {
        return false;
    }
    if cards.flood.is_news(session, cards.now()) {
        tokio::spawn(tell(Arc::clone(cards), request.origin.clone()));
    }
    true
}

/// Sends a registered request's card, or puts it with the others.
pub(crate) fn deliver(cards: &Cards, request: &Request) {
    let session = request.origin.session.as_ref();
    let crowded = cards.desk.waiting_of(session) > most(cards);
    if crowded && cards.courier.webhook().is_none() && gather(cards, request) {
        return;
    }
    courier::send_card(cards, request);
}

fn gather(cards: &Cards, request: &Request) -> bool {
    let delay = millis(cards.config.notify_delay);
    let place = place(request, cards.config.lang);
    let not_before = cards.now().saturating_add(delay);
    cards.flood.gather(request, place, not_before)
}

fn most(cards: &Cards) -> usize {
    usize::try_from(cards.config.cards_at_once).unwrap_or(usize::MAX)
}

/// Tells the owner that a session's further requests go to the terminal.
async fn tell(cards: Arc<Cards>, from: Origin) {
    let (agent, session) = (&from.caller.agent, from.session.as_ref());
    let card = notices::drawn(
        &cards,
        Why::Flood,
        agent,
        &from.project,
        session,
        None,
        None,
    );
    let uuid = format!("flood-{}", cards.now());
    courier::tell(&cards, Content::Card(card), &uuid).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::desk::Waiting;
    use crate::approvals::outcome::sample;
    use crate::approvals::request::AskingAgent;
    use crate::daemon::bench::{DaemonBench, WEBHOOK};
    use crate::daemon::known::gathered::Key;
    use crate::ids::{RequestId, SessionId};
    use crate::rules::Leaves;
    use serde_json::json;

    const FEW: (&str, &str) = ("NOD_CARDS_AT_ONCE", "1");

    fn session() -> Key {
        SessionId::parse("s1").ok()
    }

    fn asks(bench: &DaemonBench, id: &str) -> (Waiting, Arc<Request>) {
        let mut request = sample::request("Bash", json!({"command": "ls"}));
        request.id = RequestId::parse(id).unwrap();
        request.origin.session = session();
        bench.bench.asks(request)
    }

    fn refused(bench: &DaemonBench, session: &Key, agent: AskingAgent) -> bool {
        let mut request = sample::request("Bash", json!({"command": "ls"}));
        request.origin.project = bench.shop();
        request.origin.session = session.clone();
        request.origin.caller.agent = agent;
        refuses(&bench.cards, &request)
    }

    #[tokio::test]
    async fn what_is_beyond_the_cards_at_once_is_gathered_and_not_sent() {
        let bench = DaemonBench::with(&[FEW]).await;
        let all = ["r1", "r2", "r3"].map(|id| {
            assert!(!refused(&bench, &session(), AskingAgent::ClaudeCode));
            let (waiting, request) = asks(&bench, id);
            deliver(&bench.cards, &request);
            waiting
        });
        let gathered = bench.cards.flood.lock().groups[0].waiting.clone();
        assert_eq!(gathered.len(), 2);
        bench.until(|bench| bench.sent().len() == 1).await;
        assert_eq!(bench.cards.flood.lock().groups.len(), 1);
        drop(all);
    }

    #[tokio::test]
    async fn without_room_the_terminal_answers_and_the_owner_is_told_once_for_which_agent() {
        for (agent, name) in [
            (AskingAgent::ClaudeCode, "claude --resume"),
            (AskingAgent::Codex(Leaves::default()), "codex resume"),
        ] {
            let bench = DaemonBench::with(&[FEW]).await;
            let (_waiting, request) = asks(&bench, "r0");
            for _ in 0..crate::daemon::known::gathered::MAX_GATHERED {
                assert!(gather(&bench.cards, &request));
            }
            for _ in 0..3 {
                assert!(refused(&bench, &session(), agent.clone()));
            }
            assert!(!refused(&bench, &None, agent), "another session's");
            bench.until(|bench| !bench.sent().is_empty()).await;
            let [card] = &bench.sent()[..] else {
                panic!("told once");
            };
            assert!(card.to_string().contains(name), "{card}");
        }
    }

    #[tokio::test]
    async fn a_custom_bot_has_no_card_that_gathers() {
        let mut settings = WEBHOOK.to_vec();
        settings.push(FEW);
        let bench = DaemonBench::with(&settings).await;
        let (_waiting, _) = asks(&bench, "r1");
        assert!(refused(&bench, &session(), AskingAgent::ClaudeCode));
    }
}
