//! A chat message's way to a machine of the person who wrote it: all of them
//! are asked whose it is, one of them takes it, and only then does Feishu hear
//! that it arrived.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde::Deserialize;
use serde_json::json;
use tracing::{info, warn};

use super::Gateway;
use super::orders::{self, GatewayOrder};
use super::taps::{ANSWER_WITHIN, PushedTap, push};
use crate::bus::letter::{self, AnswerHead, Letter};
use crate::bus::line::BusAnswer;
use crate::bus::pass::Seconds;
use crate::bus::subjects::{MachinePlace, Owner, ToMachine, of_owner};
use crate::clock::Millis;
use crate::feishu::api::exchange::ApiCall;
use crate::feishu::event::Message;
use crate::feishu::link::PushAnswer;
use crate::gateway::whose::{MessageClaim, Recipients, asks_to_lock, choose};
use crate::text::Text;
use crate::text::escape::{Shape, visible};
use crate::wording::{task as words, team as said};

/// How long machines have to say whether a message is theirs.
const WHOSE_WITHIN: Duration = Duration::from_millis(300);
const SAY_WITHIN: Duration = Duration::from_secs(5);
const COUNTS_FOR: Millis = 2_000;
/// More machines of one person than this are not asked.
const MAX_MACHINES: usize = 64;
/// A machine that was not heard for so long is not missed: it is off, or was
/// given away.
const MISSED_FOR: Seconds = 24 * 3_600;
/// As many answers as the bus lets a machine give are waited out.
const ANSWERS_EACH: usize = 64;

pub(super) async fn written(
    gateway: &Arc<Gateway>,
    message: &Message,
    payload: &[u8],
) -> PushAnswer {
    let app = message.head.app_id.as_ref();
    let ours = app.is_none_or(|app| *app == gateway.app_id);
    let owner = message.by.id().as_ref().and_then(Owner::of);
    let Some(owner) = owner.filter(|_| ours && message.from_user) else {
        return PushAnswer::Done;
    };
    if let (Some(id), Some(chat)) = (&message.id, &message.chat) {
        let now = gateway.clock.now();
        gateway.shares().stands(id.as_str(), chat.as_str(), now);
    }
    if let Some(order) = GatewayOrder::of(message) {
        return orders::obey(gateway, &owner, message, order).await;
    }
    let Some(said) = whose(gateway, &owner, payload).await else {
        return PushAnswer::Again;
    };
    if asks_to_lock(message) {
        let there = said.into_iter().map(|(_, place)| place).collect();
        return lock_all(gateway, &owner, message, there, payload).await;
    }
    match choose(&said) {
        Recipients::Nobody => nobody(gateway, message).await,
        Recipients::Unclear => say(gateway, message, &words::WHICH_MACHINE).await,
        Recipients::One(place) => match take(gateway, message, &place, payload).await {
            PushedTap::Answered(_) => PushAnswer::Done,
            PushedTap::Nobody | PushedTap::NotSent | PushedTap::Unknown => PushAnswer::Again,
        },
    }
}

/// What a machine says of a message.
#[derive(Deserialize)]
struct ClaimReply {
    claim: String,
}

/// What each machine of `owner` says; `None` where nobody could be asked.
async fn whose(
    gateway: &Gateway,
    owner: &Owner,
    payload: &[u8],
) -> Option<Vec<(MessageClaim, MachinePlace)>> {
    let subject = of_owner(owner);
    let head = gateway.head(COUNTS_FOR);
    let letter = letter::sign(&gateway.keys.push, &subject, &head, payload);
    let most = MAX_MACHINES * ANSWERS_EACH;
    let mut asking = gateway.line.put(&subject, letter, most).await?;
    let mut said: Vec<(MessageClaim, MachinePlace)> = Vec::new();
    let collecting = async {
        while said.len() < MAX_MACHINES {
            let bytes = match asking.next(WHOSE_WITHIN).await {
                BusAnswer::Answer(bytes) => bytes,
                // A machine can say that in the server's name.
                BusAnswer::Nobody => continue,
                BusAnswer::Down | BusAnswer::Unknown => return,
            };
            let read = || {
                let letter = Letter::read(&bytes)?;
                let answer: AnswerHead = letter.claims()?;
                let pass = gateway.pass(&answer.pass?)?;
                let its_own = pass.place.owner == *owner && answer.re == head.once;
                let body = its_own.then(|| letter.open(&pass.key, &subject))??;
                let ClaimReply { claim } = serde_json::from_slice(body).ok()?;
                // A machine of another version is there, whatever it says.
                let claim = MessageClaim::parse(&claim).unwrap_or(MessageClaim::None);
                Some((claim, pass.place))
            };
            match read() {
                // A machine speaks once, so that it talks no other down.
                Some((_, place)) if said.iter().any(|(_, known)| *known == place) => {}
                Some(one) => said.push(one),
                None => warn!(%owner, "an answer was not a machine's own"),
            }
        }
    };
    // Whoever is slower is not heard.
    let _ = tokio::time::timeout(WHOSE_WITHIN, collecting).await;
    Some(said)
}

/// Brings a lock to all machines of the owner's at once, those that are there
/// and those that were ever heard of: none keeps it from the others. Feishu
/// repeats what one that is there did not take; each takes it once. Of those
/// that did not, the ones that may be in use are named.
async fn lock_all(
    gateway: &Arc<Gateway>,
    owner: &Owner,
    message: &Message,
    there: Vec<MachinePlace>,
    payload: &[u8],
) -> PushAnswer {
    let known = gateway.roster().of(owner);
    let mut all: Vec<(MachinePlace, String)> = Vec::new();
    for place in there.iter().chain(known.iter().map(|(place, _)| place)) {
        if all.iter().all(|(other, _)| other != place) {
            let known = known.iter().find(|(one, _)| one == place);
            let name = known.map_or(place.machine.as_str(), |(_, known)| &known.name);
            all.push((place.clone(), visible(name, Shape::Name)));
        }
    }
    if all.is_empty() {
        return nobody(gateway, message).await;
    }
    let taking = all
        .iter()
        .map(|(place, _)| take(gateway, message, place, payload));
    let taken = join_all(taking).await;
    let since = gateway.seconds() - MISSED_FOR;
    let is_missed = |place: &MachinePlace| {
        let known = known.iter().find(|(one, _)| one == place);
        there.contains(place) || known.is_none_or(|(_, known)| known.seen >= since)
    };
    let (mut open, mut locked, mut again) = (Vec::new(), false, false);
    for ((place, name), taken) in all.into_iter().zip(taken) {
        let is_open = match taken {
            PushedTap::Answered(_) => {
                locked = true;
                false
            }
            PushedTap::Nobody => {
                again |= there.contains(&place);
                is_missed(&place)
            }
            PushedTap::NotSent | PushedTap::Unknown => {
                again = true;
                true
            }
        };
        if is_open {
            open.push(name);
        }
    }
    if open.is_empty() && !locked {
        return nobody(gateway, message).await;
    }
    if !open.is_empty() {
        // Feishu's answer does not wait for it.
        let (gateway, message) = (Arc::clone(gateway), message.clone());
        let text = words::not_locked(&open.join(", "));
        tokio::spawn(async move { say(&gateway, &message, &text).await });
    }
    if again {
        PushAnswer::Again
    } else {
        PushAnswer::Done
    }
}

/// Brings a message to one machine.
async fn take(
    gateway: &Gateway,
    message: &Message,
    place: &MachinePlace,
    payload: &[u8],
) -> PushedTap {
    let id = message.id.as_ref();
    let taken = push(gateway, place, ToMachine::Take, id, payload, ANSWER_WITHIN).await;
    match taken {
        PushedTap::Answered(_) => info!(%place, "a message was taken to its machine"),
        PushedTap::Nobody | PushedTap::NotSent | PushedTap::Unknown => {
            warn!(%place, "a machine did not take its message");
        }
    }
    taken
}

/// No machine of the writer's is there; in a group nobody wants to know.
async fn nobody(gateway: &Gateway, message: &Message) -> PushAnswer {
    if message.in_private {
        say(gateway, message, &said::NO_MACHINE).await
    } else {
        PushAnswer::Done
    }
}

/// Says something under a message, once however often it is repeated.
async fn say(gateway: &Gateway, message: &Message, text: &Text) -> PushAnswer {
    let Some(id) = &message.id else {
        return PushAnswer::Done;
    };
    let path = ApiCall::of_message(id, &["reply"]);
    let content = json!({"text": text.get(gateway.lang)}).to_string();
    let body = json!({"msg_type": "text", "content": content, "uuid": format!("gw-{id}")});
    let call = ApiCall::post(&path, body);
    let sent = gateway.api.reply(&call, SAY_WITHIN, 0);
    if let Err(why) = sent.await.and_then(|reply| reply.envelope()) {
        warn!("a person was not told what became of a message: {why}");
    }
    PushAnswer::Done
}
