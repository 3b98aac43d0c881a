//! The webhook mode: a card whose buttons open pages of this machine, and
//! what happens on them. Opening a page changes nothing; a press counts once.

use rand::random;
use std::sync::Arc;
use tracing::info;

use crate::approvals::outcome::{Outcome, Refusal};
use crate::approvals::request::Operator;
use crate::daemon::known::offers;
use crate::daemon::tapping::clicks::{self, Door, Taps};
use crate::gateway::pages::{self, Slip};
use crate::gateway::server::{PagePress, Visit, WebPage};

/// A link was opened: the request in full, or what became of it.
pub(crate) async fn show(taps: Arc<Taps>, visit: Visit) -> WebPage {
    let lang = taps.cards.config.lang;
    let links = taps.cards.courier.links();
    let known = links.and_then(|links| {
        let (request, _) = links.open(&visit.id, visit.action, &visit.token)?;
        Some((links, request))
    });
    let Some((links, id)) = known else {
        return ended(&taps, 404, &Refusal::Unknown.into());
    };
    let Some(request) = taps.cards.desk.find(&id) else {
        let ruling = clicks::became(&taps, &id).await;
        let ruling = ruling.unwrap_or(Refusal::Reconnecting.into());
        return ended(&taps, 200, &ruling.outcome);
    };
    let ticket = links
        .tickets
        .issue(&id, visit.action, random(), taps.cards.now());
    let slip = Slip {
        action: visit.action,
        token: &visit.token,
        ticket: &ticket,
    };
    WebPage {
        status: 200,
        html: pages::ask(&request, &offers::of(&request).await, &slip, lang),
    }
}

/// The button on a page was pressed.
pub(crate) async fn press(taps: Arc<Taps>, press: PagePress) -> WebPage {
    let links = taps.cards.courier.links();
    let known = links.and_then(|links| {
        let (request, proof) = links.open(&press.id, press.action, &press.token)?;
        Some((links, request, proof))
    });
    let Some((links, id, proof)) = known else {
        return ended(&taps, 404, &Refusal::Unknown.into());
    };
    let now = taps.cards.now();
    if !links.tickets.redeem(&press.ticket, &id, press.action, now) {
        // A page shown before: what it was for may be done already.
        let ruling = clicks::became(&taps, &id).await;
        let ruling = ruling.unwrap_or(Refusal::Stale.into());
        return ended(&taps, 200, &ruling.outcome);
    }
    info!(request = %id, action = press.action.as_str(), "a page's button was pressed");
    let by = Operator::unnamed(Operator::LINK);
    let door = Door::Page(proof, press.reason);
    let ruling = clicks::decide(&taps, &id, press.action, by, door).await;
    ended(&taps, 200, &ruling.outcome)
}

fn ended(taps: &Taps, status: u16, outcome: &Outcome) -> WebPage {
    WebPage {
        status,
        html: pages::outcome(outcome, taps.cards.config.lang),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::desk::{Delivery, Waiting};
    use crate::approvals::outcome::sample;
    use crate::approvals::request::Ending;
    use crate::cards::Action;
    use crate::daemon::bench::{DaemonBench, WEBHOOK};
    use crate::daemon::cards::locking;
    use serde_json::json;

    async fn asked() -> (DaemonBench, Waiting) {
        let bench = DaemonBench::with(&WEBHOOK).await;
        let asked = sample::request("Bash", json!({"command": "npm test"}));
        let (waiting, _) = bench.bench.asks(asked);
        (bench, waiting)
    }

    /// The proof in the link of the card.
    fn token(bench: &DaemonBench, action: Action) -> String {
        let id = crate::ids::RequestId::parse("r1").unwrap();
        let link = bench.cards.courier.links().unwrap().link(&id, action);
        link.rsplit_once("t=").unwrap().1.to_owned()
    }

    async fn visit(bench: &DaemonBench, action: Action, token: &str) -> WebPage {
        let visit = Visit {
            action,
            id: "r1".to_owned(),
            token: token.to_owned(),
        };
        show(Arc::clone(&bench.taps), visit).await
    }

    fn ticket(page: &WebPage) -> String {
        let (_, rest) = page.html.split_once(r#"name="ticket" value=""#).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }

    async fn pressed(bench: &DaemonBench, action: Action, token: &str, ticket: &str) -> WebPage {
        let pressed = PagePress {
            action,
            id: "r1".to_owned(),
            token: token.to_owned(),
            ticket: ticket.to_owned(),
            reason: Some("not now".to_owned()),
        };
        press(Arc::clone(&bench.taps), pressed).await
    }

    fn hears(mut waiting: Waiting) -> tokio::task::JoinHandle<Ending> {
        tokio::spawn(async move {
            let mut handed = waiting.answered().await.unwrap();
            handed.report(Delivery::Confirmed);
            handed.answer.ending
        })
    }

    #[tokio::test]
    async fn opening_a_page_shows_the_call_and_decides_nothing() {
        let (bench, _waiting) = asked().await;
        for action in [Action::Allow, Action::Deny] {
            let page = visit(&bench, action, &token(&bench, action)).await;
            assert_eq!(page.status, 200);
            assert!(page.html.contains("npm test"));
        }
        assert_eq!(bench.cards.desk.pending(), 1);
    }

    #[tokio::test]
    async fn a_link_opens_nothing_but_what_it_was_made_for() {
        let (bench, _waiting) = asked().await;
        let deny = token(&bench, Action::Deny);
        for forged in [deny.as_str(), "", "AAAAAAAAAAAAAAAAAAAAAA"] {
            let page = visit(&bench, Action::Allow, forged).await;
            assert_eq!(page.status, 404);
            assert!(!page.html.contains("npm test"));
            let page = pressed(&bench, Action::Allow, forged, "").await;
            assert_eq!(page.status, 404);
        }
        assert_eq!(bench.cards.desk.pending(), 1);
    }

    #[tokio::test]
    async fn a_press_counts_once_and_only_with_the_ticket_of_its_page() {
        let (bench, waiting) = asked().await;
        let allow = token(&bench, Action::Allow);
        let page = visit(&bench, Action::Deny, &token(&bench, Action::Deny)).await;
        for wrong in ["", &ticket(&page)] {
            pressed(&bench, Action::Allow, &allow, wrong).await;
            assert_eq!(bench.cards.desk.pending(), 1, "the ticket is another's");
        }
        let ticket = ticket(&visit(&bench, Action::Allow, &allow).await);
        let hook = hears(waiting);
        let first = pressed(&bench, Action::Allow, &allow, &ticket).await;
        let again = pressed(&bench, Action::Allow, &allow, &ticket).await;
        assert!(matches!(hook.await.unwrap(), Ending::Allowed { .. }));
        assert_ne!(first.html, again.html, "the second learns that it is over");
        let late = visit(&bench, Action::Allow, &allow).await;
        assert!(!late.html.contains("name=\"ticket\""), "nothing to press");
    }

    #[tokio::test]
    async fn a_denial_takes_its_reason_along_and_passes_a_lock() {
        let (bench, waiting) = asked().await;
        locking::set(&bench.cards, true, None).await;
        let allow = token(&bench, Action::Allow);
        let slip = ticket(&visit(&bench, Action::Allow, &allow).await);
        pressed(&bench, Action::Allow, &allow, &slip).await;
        assert_eq!(bench.cards.desk.pending(), 1, "locked");
        let deny = token(&bench, Action::Deny);
        let slip = ticket(&visit(&bench, Action::Deny, &deny).await);
        let hook = hears(waiting);
        pressed(&bench, Action::Deny, &deny, &slip).await;
        match hook.await.unwrap() {
            Ending::Denied { by, reason, .. } => {
                assert_eq!(by, Operator::unnamed(Operator::LINK));
                assert_eq!(reason.as_deref(), Some("not now"));
            }
            other => panic!("{other:?}"),
        }
    }
}
