//! Cards that ask for nothing, and whose session each speaks of.

use serde_json::Value;
use std::path::Path;

use crate::approvals::request::AskingAgent;
use crate::cards::notice::{self, Why};
use crate::clock::Millis;
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::known::journal;
use crate::feishu::messages::Content;
use crate::ids::{MessageId, SessionId};
use crate::store::{About, Db};

/// What the owner is told of a session on this machine.
pub(crate) fn drawn(
    cards: &Cards,
    why: Why,
    agent: &AskingAgent,
    project: &Path,
    session: Option<&SessionId>,
    took: Option<Millis>,
    message: Option<&str>,
) -> Value {
    let card = notice::NoticeCard {
        why,
        agent,
        machine: &cards.buttons.machine.name,
        project,
        session,
        took,
        message,
    };
    notice::notice(&card, cards.config.lang)
}

/// Sends a card that a reply can be given to.
pub(crate) async fn send(
    cards: &Cards,
    card: Value,
    uuid: String,
    about: About,
) -> Option<MessageId> {
    cards.courier.telling();
    let sent = courier::tell(cards, Content::Card(card), &uuid).await;
    if let Some(message) = sent.clone() {
        let now = cards.now();
        let keep = move |db: &Db| db.notice_sent(&message, &about, now);
        journal::run(&cards.journal, "whose a notice is was not kept", keep).await;
    }
    cards.courier.told();
    sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::cards::bench::Bench;
    use crate::ids::SessionId;
    use serde_json::json;

    #[tokio::test]
    async fn a_reply_to_a_notice_finds_its_session() {
        let bench = Bench::new().await;
        let about = About {
            session: SessionId::parse("s1").unwrap(),
            project: "/p/shop".to_owned(),
        };
        let card = json!({"schema": "2.0"});
        let sent = send(&bench.cards, card, "turn-1".to_owned(), about.clone()).await;
        let (path, body) = bench.calls().remove(0);
        assert!(path.ends_with("im/v1/messages"), "{path}");
        assert_eq!(body["uuid"], "turn-1");
        let message = sent.unwrap();
        let kept = bench.cards.journal.store.run(move |db| db.notice(&message));
        assert_eq!(kept.await.unwrap(), Some(about));
    }
}
