//! How many requests of one session get a card of their own. What comes while
//! that many wait unanswered is gathered on one card: a person who gets a card
//! every few seconds stops reading them, and silence would be worse.

mod show;
mod taps;

pub(crate) use self::show::{restore, run};
pub(crate) use self::taps::{FloodTap, tapped};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::approvals::request::{AskingAgent, Request};
use crate::cards::gathered;
use crate::cards::notice::{self, Why};
use crate::clock::Millis;
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::known::gathered::Key;
use crate::feishu::messages::Content;
use crate::ids::SessionId;

/// Whether a new request must be left to the terminal: as many wait as a person
/// can be asked, and there is no place to gather more.
pub(crate) fn refuses(cards: &Arc<Cards>, session: &Key, project: &Path) -> bool {
    if cards.desk.waiting_of(session.as_ref()) < most(cards) {
        return false;
    }
    if cards.courier.webhook().is_none() && cards.flood.has_room(session) {
        return false;
    }
    if cards.flood.is_news(session, cards.now()) {
        let (session, project) = (session.clone(), project.to_path_buf());
        tokio::spawn(tell(Arc::clone(cards), session, project));
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
    let delay = Millis::try_from(cards.config.notify_delay.as_millis()).unwrap_or(Millis::MAX);
    let place = gathered::place_of(request, cards.config.lang);
    let not_before = cards.now().saturating_add(delay);
    cards.flood.gather(request, place, not_before)
}

fn most(cards: &Cards) -> usize {
    usize::try_from(cards.config.cards_at_once).unwrap_or(usize::MAX)
}

/// Tells the owner that a session's further requests go to the terminal.
async fn tell(cards: Arc<Cards>, session: Option<SessionId>, project: PathBuf) {
    let card = notice::notice(
        &notice::NoticeCard {
            why: Why::Flood,
            agent: &AskingAgent::ClaudeCode,
            machine: &cards.buttons.machine.name,
            project: &project,
            session: session.as_ref(),
            took: None,
            message: None,
        },
        cards.config.lang,
    );
    let uuid = format!("flood-{}", cards.now());
    courier::tell(&cards, Content::Card(card), &uuid).await;
}
