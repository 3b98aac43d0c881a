//! What gateways bring to a team's machine over the bus: taps and messages. What
//! they bring is signed and has an end; whatever comes later, as everything does
//! that waited while the machine slept, is dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prost::bytes::Bytes;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::bus::letter::{self, AnswerHead, Letter, PushHead};
use crate::bus::line::{self, BusHeard};
use crate::bus::subjects::{BEACON, GATEWAY_INBOX, ToMachine, of_owner};
use crate::clock::Millis;
use crate::daemon::arriving::{dispatch, inbox};
use crate::daemon::known::journal;
use crate::daemon::machines::member::{Member, gateways, leave};
use crate::daemon::talking::chat::claim::claim;
use crate::daemon::tapping::clicks::Taps;
use crate::feishu::connection::LinkView;
use crate::feishu::event::{self, Push};
use crate::feishu::link::PushAnswer;
use crate::feishu::messages::Content;
use crate::feishu::outbound::Outbound;
use crate::ids::{EventId, MessageId};
use crate::wording::team as words;

/// Two gateways' clocks may differ by the second that Feishu's dates are exact
/// to. A tap that its gateway has just given up is still worth deciding: its
/// card tells.
const SLACK: Millis = 1_500;
const TELL_WITHIN: Duration = Duration::from_secs(20);
/// Whoever tapped longer ago than this waits for no word any more.
const TELL_UNTIL: Millis = 5 * 60_000;

/// Holds the line until `stop`.
pub(crate) async fn run(
    taps: Arc<Taps>,
    member: Arc<Member>,
    outbound: Outbound,
    view: watch::Sender<LinkView>,
    stop: CancellationToken,
) {
    let place = &member.place;
    let own = ToMachine::ALL.map(|what| place.hears(what));
    let shared = [of_owner(&place.owner), BEACON.to_owned()];
    let membership = line::BusUser {
        url: member.url.clone(),
        key: Arc::clone(&member.key),
        pass: member.pass.subscribe(),
        hears: own.into_iter().chain(shared).collect(),
        turns: line::LineTurns::none(),
    };
    let (heard, clock) = (Arc::clone(&member), taps.cards.journal.clock);
    let hearing = line::run(
        member.line.clone(),
        membership,
        outbound,
        clock,
        move |message| hear(Arc::clone(&taps), Arc::clone(&heard), message),
        stop.clone(),
    );
    let watching = gateways::watch(&member, &view, &stop);
    tokio::join!(hearing, watching);
}

async fn hear(taps: Arc<Taps>, member: Arc<Member>, message: BusHeard) {
    let Some((reply, letter)) = answered(&taps, &member, message).await else {
        return;
    };
    if !member.line.tell(&reply, letter).await {
        debug!("an answer did not go out");
    }
}

/// Does what a gateway brings, and gives the answer with where it goes.
async fn answered(
    taps: &Arc<Taps>,
    member: &Member,
    message: BusHeard,
) -> Option<(String, Vec<u8>)> {
    let letter = Letter::read(&message.body)?;
    let Some(body) = member.by_gateway(&letter, &message.subject) else {
        warn!("refused what no gateway of this team signed");
        return None;
    };
    let head = letter.claims::<PushHead>()?;
    if message.subject == BEACON {
        let now = member.their_clock.now();
        member.gateways.beacon(&head, body, now);
        return None;
    }
    // A broker may hand over here what is for another machine.
    let mut to_machine = ToMachine::ALL.into_iter();
    let what = to_machine.find(|what| message.subject == member.place.hears(*what));
    if what.is_none() && message.subject != of_owner(&member.place.owner) {
        warn!("refused what was for another machine");
        return None;
    }
    let body = message.body.slice_ref(body);
    if is_late(member, &head) {
        warn!("dropped what came after its time");
        if what == Some(ToMachine::Tap) {
            tell_of_late(taps, member, body, head).await;
        }
        return None;
    }
    let answer = match what {
        Some(ToMachine::There) => Some(member.here()),
        Some(ToMachine::Leave) => Some(leave::open_cards(&taps.cards, member).await),
        Some(ToMachine::Tap | ToMachine::Take) | None => {
            let push = event::parse(&body);
            if let (Some(ticket), Some(message)) = (&head.ticket, message_of(&push)) {
                member.tickets.keep(message, ticket);
            }
            match what {
                Some(ToMachine::Tap) => tapped(taps, push, body).await,
                Some(ToMachine::Take) => taken(taps, push, &body).await,
                _ => whose(taps, push).await,
            }
        }
    };
    let answer = answer?;
    let reply = message.reply.filter(|to| to.starts_with(GATEWAY_INBOX))?;
    let head = AnswerHead {
        re: head.once,
        pass: Some(member.pass()),
    };
    let letter = letter::sign(&member.key, &message.subject, &head, &answer);
    Some((reply, letter))
}

/// Whether it counts for nothing any more; before anybody has told the time,
/// nobody can say that it does.
fn is_late(member: &Member, head: &PushHead) -> bool {
    !member.knows_time.load(Ordering::Relaxed)
        || member.their_clock.now() > head.until.saturating_add(SLACK)
}

/// The message that a push tells of.
fn message_of(push: &Push) -> Option<&MessageId> {
    match push {
        Push::Click(click) => click.message.as_ref(),
        Push::Message(message) => message.id.as_ref(),
        Push::Other { .. } | Push::Unreadable { .. } => None,
    }
}

async fn tapped(taps: &Arc<Taps>, push: Push, payload: Bytes) -> Option<Vec<u8>> {
    if !matches!(push, Push::Click(_)) {
        return None;
    }
    match dispatch::answer_read(Arc::clone(taps), push, payload).await {
        PushAnswer::Show(shown) => Some(shown),
        PushAnswer::Done | PushAnswer::Again => None,
    }
}

async fn taken(taps: &Arc<Taps>, push: Push, payload: &[u8]) -> Option<Vec<u8>> {
    let message = push.message_to(&taps.app_id)?;
    inbox::receive_from_peer(&taps.chat, message, payload).await;
    Some(b"{}".to_vec())
}

async fn whose(taps: &Arc<Taps>, push: Push) -> Option<Vec<u8>> {
    let message = push.message_to(&taps.app_id)?;
    let claim = claim(&taps.chat, &message).await;
    Some(json!({"claim": claim.as_str()}).to_string().into_bytes())
}

/// Whoever tapped was told that it is being checked: the card must not keep
/// them waiting. A bus may repeat a tap that counted, and nobody waits then.
async fn tell_of_late(taps: &Taps, member: &Member, push: Bytes, head: PushHead) {
    let known = member.knows_time.load(Ordering::Relaxed);
    let waits = member.their_clock.now() <= head.until.saturating_add(TELL_UNTIL);
    let Push::Click(click) = event::parse(&push) else {
        return;
    };
    let (Some(message), true) = (click.message, known && waits) else {
        return;
    };
    if was_answered(taps, click.head.event_id.as_ref()).await {
        return;
    }
    if let Some(ticket) = head.ticket {
        member.tickets.keep(&message, &ticket);
    }
    let Some(messages) = taps.cards.courier.messages() else {
        return;
    };
    let content = Content::Text(
        words::TAPPED_TOO_LATE
            .get(taps.cards.config.lang)
            .to_owned(),
    );
    let uuid = format!("late-{message}");
    let told = messages.reply(&message, None, &content, false, &uuid);
    match tokio::time::timeout(TELL_WITHIN, told).await {
        Ok(Ok(_)) => info!("a person was told that a tap came too late"),
        Ok(Err(why)) => warn!("a person was not told that a tap came too late: {why}"),
        Err(_) => warn!("a person was not told that a tap came too late: no answer in time"),
    }
}

async fn was_answered(taps: &Taps, event: Option<&EventId>) -> bool {
    event.is_some_and(|event| taps.recent.knows(event, taps.cards.now()))
        || journal::answer(&taps.cards.journal, event).await.is_some()
}

#[cfg(test)]
mod tests;
