//! Chat messages among the machines of one app: Feishu hands each to one of
//! them by chance, so the one that gets it asks the listed others whose it is.

use std::time::Duration;

use futures::future::join_all;
use tracing::{info, warn};

use crate::approvals::outcome::{NotTaken, Refusal};
use crate::daemon::cards::courier;
use crate::daemon::machines::gate::Gate;
use crate::daemon::talking::chat::claim::{MessageClaim, claim, is_anchored};
use crate::daemon::talking::chat::{self, Chat};
use crate::feishu::event::Message;
use crate::feishu::messages::Content;
use crate::gateway::call::{PeerCall, TAKE, WHOSE};
use crate::gateway::forward::Posted;
use crate::gateway::route::CallbackUrl;
use crate::ids::{MachineId, RequestId};
use crate::text::Text;
use crate::wording::outcome::in_chat;
use crate::wording::task as words;

/// A message is handed over again after these: the other side takes it once.
static HAND_OVER_AGAIN: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(10),
];

/// Sees to it that a message comes to the machine it is for. True when that
/// is this one.
pub(crate) async fn is_for_us(chat: &Chat, gate: &Gate, message: &Message, push: &[u8]) -> bool {
    let own_url = gate.cards.config.callback.url.as_ref();
    let peers = gate.cards.config.callback.peers.iter();
    let peers: Vec<_> = peers.filter(|peer| Some(*peer) != own_url).collect();
    let Some(letter) = PeerLetter::of(message, push) else {
        return true;
    };
    if peers.is_empty() || gate.terms.sealer.is_none() {
        return true;
    }
    if chat::asks_to_lock(message) {
        letter.lock_all(chat, gate, message, &peers).await;
        return true;
    }
    let own = claim(chat, message).await;
    if own == MessageClaim::Surely && is_anchored(message) {
        return true;
    }
    let heard = join_all(peers.iter().map(|peer| letter.ask(gate, peer))).await;
    let asked: Vec<_> = heard
        .iter()
        .map(|heard| heard.as_ref().map(|(claim, _)| *claim))
        .collect();
    match falls_to(own, &asked, is_anchored(message)) {
        FallsTo::Us => return true,
        FallsTo::Peer(n) => {
            let machine = heard.into_iter().nth(n).flatten();
            let machine = machine.and_then(|(_, machine)| machine);
            if let Err(why) = letter.hand_over(gate, peers[n], machine).await {
                chat::say(chat, message, &why).await;
            }
        }
        FallsTo::Several => chat::say(chat, message, &words::WHICH_MACHINE).await,
        FallsTo::Lost => {
            if chat::may_be_told(chat, message).await {
                chat::say(chat, message, &words::MACHINE_UNREACHABLE).await;
            }
        }
    }
    false
}

/// Whose a message is, by what the machines say.
#[derive(Debug, PartialEq, Eq)]
enum FallsTo {
    Us,
    /// The peer of this number.
    Peer(usize),
    /// Several are equally sure; only the person knows.
    Several,
    /// It hangs on a message of a machine that says nothing.
    Lost,
}

fn falls_to(own: MessageClaim, peers: &[Option<MessageClaim>], anchored: bool) -> FallsTo {
    let strongest = peers.iter().flatten().fold(own, |most, one| most.max(*one));
    if strongest == MessageClaim::None {
        let lost = anchored && peers.contains(&None);
        return if lost { FallsTo::Lost } else { FallsTo::Us };
    }
    let theirs = peers.iter().enumerate();
    let mut theirs = theirs.filter(|(_, one)| **one == Some(strongest));
    match (own == strongest, theirs.next(), theirs.next()) {
        (true, None, _) => FallsTo::Us,
        (false, Some((n, _)), None) => FallsTo::Peer(n),
        _ => FallsTo::Several,
    }
}

/// A message on its way between machines.
struct PeerLetter {
    id: RequestId,
    push: String,
    /// The pauses before it is handed over once more.
    again: &'static [Duration],
}

impl PeerLetter {
    fn of(message: &Message, push: &[u8]) -> Option<Self> {
        Some(Self {
            id: RequestId::parse(message.id.as_ref()?.as_str()).ok()?,
            push: String::from_utf8(push.to_vec()).ok()?,
            again: &HAND_OVER_AGAIN,
        })
    }

    fn call(&self, action: &str, to: Option<MachineId>) -> PeerCall {
        PeerCall {
            to,
            action: action.to_owned(),
            request: self.id.clone(),
            project_dir: String::new(),
            click: None,
            push: Some(self.push.clone()),
        }
    }

    /// Whoever may lock one machine means all; each judges that for itself.
    async fn lock_all(&self, chat: &Chat, gate: &Gate, message: &Message, peers: &[&CallbackUrl]) {
        let told = peers.iter().map(|peer| self.hand_over(gate, peer, None));
        let told = join_all(told).await;
        let open = peers.iter().zip(told).filter(|(_, told)| told.is_err());
        let open: Vec<_> = open.map(|(peer, _)| peer.as_str()).collect();
        if open.is_empty() || chat.people.approver(&message.by).is_none() {
            return;
        }
        let text = words::not_locked(&open.join(", "));
        let content = Content::Text(text.get(chat.cards.config.lang).to_owned());
        courier::tell(&chat.cards, content, &format!("open-{}", self.id)).await;
    }

    /// What the machine says and which it is; `None` if it does not say.
    async fn ask(
        &self,
        gate: &Gate,
        peer: &CallbackUrl,
    ) -> Option<(MessageClaim, Option<MachineId>)> {
        match gate.post(peer, &self.call(WHOSE, None)).await {
            Posted::Answered(answer) => {
                Some((MessageClaim::parse(&answer.message)?, answer.machine))
            }
            Posted::Refused(_) | Posted::Status(_) | Posted::Unreachable | Posted::Unknown(_) => {
                None
            }
        }
    }

    /// Brings the message to one machine and no other: what is sealed for it
    /// is of no use anywhere else. A machine not known yet is asked its name.
    async fn hand_over(
        &self,
        gate: &Gate,
        to: &CallbackUrl,
        mut machine: Option<MachineId>,
    ) -> Result<(), Text> {
        let mut again = self.again.iter();
        loop {
            if machine.is_none() {
                match self.ask(gate, to).await {
                    Some((_, None)) => {
                        return Err(in_chat(&Refusal::NotTaken(NotTaken::Version).into()));
                    }
                    Some((_, known)) => machine = known,
                    None => {}
                }
            }
            if machine.is_some() {
                match gate.post(to, &self.call(TAKE, machine.clone())).await {
                    Posted::Answered(answer) if answer.upshot.is_success() => {
                        info!(message = %self.id, %to, "a message was taken to its machine");
                        return Ok(());
                    }
                    Posted::Refused(why) => return Err(in_chat(&Refusal::NotTaken(why).into())),
                    Posted::Answered(_)
                    | Posted::Status(_)
                    | Posted::Unreachable
                    | Posted::Unknown(_) => {}
                }
            }
            let Some(pause) = again.next() else {
                warn!(message = %self.id, %to, "a machine did not take its message");
                return Err(words::MACHINE_UNREACHABLE);
            };
            tokio::time::sleep(*pause).await;
        }
    }
}

#[cfg(test)]
mod tests;
