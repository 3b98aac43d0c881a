//! Keeps each gathering card true: sent once, edited when its list changes, and
//! told to be over when the list is empty. Over a restart too.

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::approvals::request::Request;
use crate::cards::gathered::{self, GatheredCard, Tally};
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::known::buttons::{DENY_ALL, OPEN};
use crate::daemon::known::gathered::{Group, MAX_GROUPS};
use crate::daemon::known::journal;
use crate::feishu::messages::Content;
use crate::ids::{MessageId, RequestId, SessionId};

/// What comes within this is shown by one edit.
const TOGETHER: Duration = Duration::from_millis(300);
/// When a card that could not be sent, or is not due, is looked at again.
const AGAIN: Duration = Duration::from_secs(1);
/// The row of `meta` that says what is gathered.
const KEY: &str = "gathered";

pub(crate) async fn run(cards: Arc<Cards>, stop: CancellationToken) {
    let mut all_shown = true;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = cards.flood.stirred.notified() => {}
            () = tokio::time::sleep(AGAIN), if !all_shown => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(TOGETHER) => {}
        }
        all_shown = show_all(&cards).await;
    }
}

/// Whether nothing is left to be shown.
async fn show_all(cards: &Cards) -> bool {
    let (now, mut all_shown) = (cards.now(), true);
    let changed: Vec<Group> = {
        let mut book = cards.flood.lock();
        // Nobody saw it, so there is nothing to tell.
        let unseen = |group: &Group| group.message.is_none() && group.waiting.is_empty();
        book.groups.retain(|group| !unseen(group));
        let mut due = Vec::new();
        for group in book.groups.iter_mut().filter(|group| group.changed) {
            if group.not_before > now {
                all_shown = false;
                continue;
            }
            group.changed = false;
            due.push(group.clone());
        }
        due
    };
    if changed.is_empty() {
        return all_shown;
    }
    keep(cards).await;
    for group in changed {
        if !show(cards, &group).await {
            all_shown = false;
        }
    }
    keep(cards).await;
    all_shown
}

async fn show(cards: &Cards, group: &Group) -> bool {
    let card = draw(cards, group);
    let Some(message) = group.message.clone() else {
        let sent = courier::tell(cards, Content::Card(card), group.id.as_str()).await;
        let mut book = cards.flood.lock();
        if let Some(known) = book.groups.iter_mut().find(|known| known.id == group.id) {
            known.changed |= sent.is_none();
            known.message.clone_from(&sent);
        }
        return sent.is_some();
    };
    courier::queue_edit(cards, message, (&card).into(), Duration::ZERO).await;
    // Over, unless something was added while this was drawn.
    let mut book = cards.flood.lock();
    let is_over = |known: &Group| known.id == group.id && known.waiting.is_empty();
    book.groups.retain(|known| !is_over(known) || known.changed);
    true
}

/// The card as it should be.
pub(super) fn draw(cards: &Cards, group: &Group) -> Value {
    let requests: Vec<Arc<Request>> = group
        .waiting
        .iter()
        .filter_map(|id| cards.desk.find(id))
        .collect();
    let open = |id: &RequestId| cards.buttons.gathered(OPEN, id);
    let deny_all = cards.buttons.gathered(DENY_ALL, &group.id);
    let waiting = cards.desk.waiting_of(group.session.as_ref());
    let gathered = GatheredCard {
        requests: &requests,
        own_cards: waiting.saturating_sub(requests.len()),
        place: &group.place,
        tally: group.tally,
        open: &open,
        deny_all: &deny_all,
    };
    gathered::gathered(&gathered, cards.config.lang)
}

async fn keep(cards: &Cards) {
    let all: Vec<Value> = cards.flood.lock().groups.iter().map(written).collect();
    let text = Value::Array(all).to_string();
    let store = &cards.journal.store;
    if let Err(why) = store.run(move |db| db.set_meta(KEY, &text)).await {
        debug!("what is gathered on a card was not kept: {why}");
    }
}

fn written(group: &Group) -> Value {
    let waiting: Vec<&str> = group.waiting.iter().map(RequestId::as_str).collect();
    json!({
        "id": group.id.as_str(),
        "session": group.session.as_ref().map(SessionId::as_str),
        "place": group.place,
        "message": group.message.as_ref().map(MessageId::as_str),
        "waiting": waiting,
        "gathered": group.tally.gathered,
        "opened": group.tally.opened,
        "denied": group.tally.denied,
    })
}

fn read(kept: &Value) -> Option<Group> {
    let text = |field: &str| kept[field].as_str();
    let count = |field: &str| kept[field].as_u64().and_then(|n| usize::try_from(n).ok());
    let waiting = kept["waiting"].as_array()?;
    let waiting = waiting.iter().filter_map(Value::as_str);
    Some(Group {
        id: RequestId::parse(text("id")?).ok()?,
        session: text("session").and_then(|session| SessionId::parse(session).ok()),
        place: text("place")?.to_owned(),
        message: text("message").and_then(|message| MessageId::parse(message).ok()),
        waiting: waiting.filter_map(|id| RequestId::parse(id).ok()).collect(),
        tally: Tally {
            gathered: count("gathered")?,
            opened: count("opened")?,
            denied: count("denied")?,
        },
        changed: true,
        not_before: 0,
    })
}

/// Takes over what the last run had gathered; returns those of `unsent` that
/// need a card of their own.
pub(crate) async fn restore(cards: &Cards, mut unsent: Vec<Arc<Request>>) -> Vec<Arc<Request>> {
    let otherwise = "what was gathered on a card is not known";
    let kept = journal::run(&cards.journal, otherwise, |db| db.meta(KEY)).await;
    let kept = kept.flatten().unwrap_or_default();
    let kept: Vec<Value> = serde_json::from_str(&kept).unwrap_or_default();
    let mut groups: Vec<Group> = kept.iter().filter_map(read).take(MAX_GROUPS).collect();
    for group in &mut groups {
        group
            .waiting
            .retain(|id| unsent.iter().any(|request| request.id == *id));
        unsent.retain(|request| {
            let is_gathered = group.waiting.contains(&request.id);
            if is_gathered {
                cards.courier.forget(&request.id);
            }
            !is_gathered
        });
    }
    if !groups.is_empty() {
        cards.flood.lock().groups = groups;
        cards.flood.stirred.notify_one();
    }
    unsent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_reads_back_and_anything_else_is_left() {
        let group = Group {
            id: RequestId::parse("more-1").unwrap(),
            session: SessionId::parse("s1").ok(),
            place: "shop · laptop".to_owned(),
            message: MessageId::parse("om_1").ok(),
            waiting: vec![RequestId::parse("r1").unwrap()],
            tally: Tally {
                gathered: 3,
                opened: 1,
                denied: 1,
            },
            changed: true,
            not_before: 0,
        };
        assert_eq!(read(&written(&group)), Some(group.clone()));
        let nameless = Group {
            session: None,
            message: None,
            ..group
        };
        assert_eq!(read(&written(&nameless)), Some(nameless));
        for other in [json!({}), json!([]), json!({"id": "a b", "waiting": []})] {
            assert_eq!(read(&other), None, "{other}");
        }
    }
}
