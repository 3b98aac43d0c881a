//! A chat message's way to a machine of the person who wrote it: all of them
//! are asked whose it is, one of them takes it, and only then does Feishu hear
//! that it arrived.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tracing::{info, warn};

use super::Gateway;
use super::orders::{self, GatewayOrder};
use super::taps::{PushedTap, push};
use crate::bus::letter::{self, AnswerHead, Letter, PushHead};
use crate::bus::subjects::{MachinePlace, Owner, ToMachine, of_owner};
use crate::clock::Millis;
use crate::feishu::api::exchange::ApiCall;
use crate::feishu::event::Message;
use crate::feishu::link::PushAnswer;
use crate::gateway::whose::{MessageClaim, Recipients, asks_to_lock, choose};
use crate::text::Text;
use crate::wording::{task as words, team as said};

/// How long machines have to say whether a message is theirs.
const WHOSE_WITHIN: Duration = Duration::from_millis(300);
const SAY_WITHIN: Duration = Duration::from_secs(5);
const COUNTS_FOR: Millis = 2_000;
/// More machines of one person than this are not asked.
const MAX_MACHINES: usize = 64;

pub(super) async fn written(gateway: &Gateway, message: &Message, payload: &[u8]) -> PushAnswer {
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
    if asks_to_lock(message) && !said.is_empty() {
        let all: Vec<String> = said.into_iter().map(|(_, machine)| machine).collect();
        return take(gateway, message, &all, payload).await;
    }
    match choose(&said) {
        Recipients::Nobody if !message.in_private => PushAnswer::Done,
        Recipients::Nobody => say(gateway, message, &said::NO_MACHINE).await,
        Recipients::Unclear => say(gateway, message, &words::WHICH_MACHINE).await,
        Recipients::One(machine) => take(gateway, message, &[machine], payload).await,
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
) -> Option<Vec<(MessageClaim, String)>> {
    let subject = of_owner(owner);
    let head = PushHead {
        until: gateway.their_clock.now() + COUNTS_FOR,
        once: format!("{:032x}", rand::random::<u128>()),
        ticket: None,
    };
    let letter = letter::sign(&gateway.keys.push, &subject, &head, payload);
    let all = gateway
        .line
        .ask_all(&subject, letter, WHOSE_WITHIN, MAX_MACHINES);
    let mut said: Vec<(MessageClaim, String)> = Vec::new();
    for bytes in all.await? {
        let read = || {
            let letter = Letter::read(&bytes)?;
            let answer: AnswerHead = letter.claims()?;
            let pass = gateway.pass(&answer.pass?)?;
            let its_own = pass.place.owner == *owner && answer.re == head.once;
            let body = its_own.then(|| letter.open(&pass.key, &subject))??;
            let ClaimReply { claim } = serde_json::from_slice(body).ok()?;
            Some((MessageClaim::parse(&claim)?, pass.place.machine.to_string()))
        };
        match read() {
            // A machine speaks once.
            Some((_, machine)) if said.iter().any(|(_, known)| *known == machine) => {}
            Some(one) => said.push(one),
            None => warn!(%owner, "an answer was not a machine's own"),
        }
    }
    Some(said)
}

/// Brings a message to these machines. Feishu repeats what one of them did not
/// take; each takes it once.
async fn take(
    gateway: &Gateway,
    message: &Message,
    machines: &[String],
    payload: &[u8],
) -> PushAnswer {
    let owner = message.by.id();
    let owner = owner.as_ref().map(crate::ids::UserId::as_str);
    for machine in machines {
        let Some(place) = MachinePlace::parse(owner.unwrap_or_default(), machine) else {
            continue;
        };
        match push(
            gateway,
            &place,
            ToMachine::Take,
            message.id.as_ref(),
            payload,
        )
        .await
        {
            PushedTap::Answered(_) => info!(%place, "a message was taken to its machine"),
            PushedTap::Nobody | PushedTap::NotSent | PushedTap::Unknown => {
                warn!(%place, "a machine did not take its message");
                return PushAnswer::Again;
            }
        }
    }
    PushAnswer::Done
}

/// Says something under a message, once however often it is repeated.
async fn say(gateway: &Gateway, message: &Message, text: &Text) -> PushAnswer {
    let Some(id) = &message.id else {
        return PushAnswer::Done;
    };
    let path = ["open-apis", "im", "v1", "messages", id.as_str(), "reply"];
    let content = json!({"text": text.get(gateway.lang)}).to_string();
    let body = json!({"msg_type": "text", "content": content, "uuid": format!("gw-{id}")});
    let call = ApiCall::post(&path, body);
    let sent = gateway.api.reply(&call, SAY_WITHIN, 0);
    match sent.await.and_then(|reply| reply.envelope()) {
        Ok(_) => PushAnswer::Done,
        Err(why) => {
            warn!("a person was not told that no machine is there: {why}");
            PushAnswer::Done
        }
    }
}
