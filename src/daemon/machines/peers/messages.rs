//! Chat messages among the machines of one app: Feishu hands each to one of
//! them by chance, so the one that gets it asks the listed others whose it is.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tracing::{info, warn};

use crate::approvals::outcome::{NotTaken, Refusal};
use crate::daemon::cards::courier;
use crate::daemon::parts::Parts;
use crate::daemon::talking::chat;
use crate::daemon::talking::chat::claim::{MessageClaim, claim, is_anchored};
use crate::daemon::talking::inbox;
use crate::feishu::event::{self, Message, Push};
use crate::feishu::messages::Content;
use crate::gateway::call::{CallAnswer, PeerCall, TAKE, WHOSE};
use crate::gateway::forward::{ANSWER_WITHIN, Posted};
use crate::gateway::route::CallbackUrl;
use crate::ids::{MachineId, RequestId};
use crate::text::Text;
use crate::wording::outcome::in_chat;
use crate::wording::task as words;

/// A message is handed over again after these: the other side takes it once.
const HAND_OVER_AGAIN: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(10),
];

/// Sees to it that a message comes to the machine it is for. True when that
/// is this one.
pub(crate) async fn is_for_us(parts: &Arc<Parts>, message: &Message, push: &[u8]) -> bool {
    let own_url = parts.config.callback.url.as_ref();
    let peers = parts.config.callback.peers.iter();
    let peers: Vec<_> = peers.filter(|peer| Some(*peer) != own_url).collect();
    let Some(letter) = PeerLetter::of(message, push) else {
        return true;
    };
    if peers.is_empty() || parts.gate.terms.sealer.is_none() {
        return true;
    }
    if chat::asks_to_lock(message) {
        letter.lock_all(parts, message, &peers).await;
        return true;
    }
    let own = claim(parts, message).await;
    if own == MessageClaim::Surely && is_anchored(message) {
        return true;
    }
    let heard = join_all(peers.iter().map(|peer| letter.ask(parts, peer))).await;
    let asked: Vec<_> = heard
        .iter()
        .map(|heard| heard.as_ref().map(|(claim, _)| *claim))
        .collect();
    let strongest = asked.iter().flatten().copied().chain([own]).max();
    let strongest = strongest.unwrap_or(MessageClaim::None);
    if strongest == MessageClaim::None {
        let lost = is_anchored(message) && asked.contains(&None);
        if lost && chat::may_be_told(parts, message).await {
            chat::say(parts, message, &words::MACHINE_UNREACHABLE).await;
        }
        return !lost;
    }
    let theirs = peers.iter().zip(heard);
    let theirs: Vec<_> = theirs
        .filter_map(|(peer, heard)| Some((*peer, heard?)))
        .filter(|(_, (claim, _))| *claim == strongest)
        .map(|(peer, (_, machine))| (peer, machine))
        .collect();
    match (own == strongest, theirs.as_slice()) {
        (true, []) => return true,
        (false, [(peer, machine)]) => {
            if let Err(why) = letter.hand_over(parts, peer, machine.clone()).await {
                chat::say(parts, message, &why).await;
            }
        }
        _ => chat::say(parts, message, &words::WHICH_MACHINE).await,
    }
    false
}

/// A message on its way between machines.
struct PeerLetter {
    id: RequestId,
    push: String,
}

impl PeerLetter {
    fn of(message: &Message, push: &[u8]) -> Option<Self> {
        Some(Self {
            id: RequestId::parse(message.id.as_ref()?.as_str()).ok()?,
            push: String::from_utf8(push.to_vec()).ok()?,
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

    async fn post(&self, parts: &Parts, to: &CallbackUrl, call: PeerCall) -> Posted {
        let now = || parts.their_clock.now();
        let forwarder = &parts.gate.forwarder;
        forwarder.post(to, &call, now, ANSWER_WITHIN).await
    }

    /// Whoever may lock one machine means all; each judges that for itself.
    async fn lock_all(&self, parts: &Parts, message: &Message, peers: &[&CallbackUrl]) {
        let told = peers.iter().map(|peer| self.hand_over(parts, peer, None));
        let told = join_all(told).await;
        let open = peers.iter().zip(told).filter(|(_, told)| told.is_err());
        let open: Vec<_> = open.map(|(peer, _)| peer.as_str()).collect();
        if open.is_empty() || parts.people.approver(&message.by).is_none() {
            return;
        }
        let text = words::not_locked(&open.join(", "));
        let content = Content::Text(text.get(parts.config.lang).to_owned());
        courier::tell(parts, content, &format!("open-{}", self.id)).await;
    }

    /// What the machine says and which it is; `None` if it does not say.
    async fn ask(
        &self,
        parts: &Parts,
        peer: &CallbackUrl,
    ) -> Option<(MessageClaim, Option<MachineId>)> {
        match self.post(parts, peer, self.call(WHOSE, None)).await {
            Posted::Answered(answer) => {
                Some((MessageClaim::parse(&answer.message)?, answer.machine))
            }
            Posted::Refused(_) | Posted::Unreachable | Posted::Unknown => None,
        }
    }

    /// Brings the message to one machine and no other: what is sealed for it
    /// is of no use anywhere else. A machine not known yet is asked its name.
    async fn hand_over(
        &self,
        parts: &Parts,
        to: &CallbackUrl,
        mut machine: Option<MachineId>,
    ) -> Result<(), Text> {
        let mut again = HAND_OVER_AGAIN.into_iter();
        loop {
            if machine.is_none() {
                match self.ask(parts, to).await {
                    Some((_, None)) => {
                        return Err(in_chat(&Refusal::NotTaken(NotTaken::Version).into()));
                    }
                    Some((_, known)) => machine = known,
                    None => {}
                }
            }
            if machine.is_some() {
                match self.post(parts, to, self.call(TAKE, machine.clone())).await {
                    Posted::Answered(answer) if answer.upshot.is_success() => {
                        info!(message = %self.id, %to, "a message was taken to its machine");
                        return Ok(());
                    }
                    Posted::Refused(why) => return Err(in_chat(&Refusal::NotTaken(why).into())),
                    Posted::Answered(_) | Posted::Unreachable | Posted::Unknown => {}
                }
            }
            let Some(pause) = again.next() else {
                warn!(message = %self.id, %to, "a machine did not take its message");
                return Err(words::MACHINE_UNREACHABLE);
            };
            tokio::time::sleep(pause).await;
        }
    }
}

/// Another machine asks whether a message is for this one.
pub(super) async fn whose(parts: &Parts, call: &PeerCall) -> CallAnswer {
    let claim = match read(parts, call) {
        Some((message, _)) => claim(parts, &message).await,
        None => MessageClaim::None,
    };
    CallAnswer {
        machine: Some(parts.buttons.machine.id.clone()),
        ..CallAnswer::bare(claim != MessageClaim::None, claim.as_str())
    }
}

/// Another machine brings a message that is for this one.
pub(super) async fn take(parts: &Arc<Parts>, call: &PeerCall) -> CallAnswer {
    let Some((message, push)) = read(parts, call) else {
        return CallAnswer::bare(false, "no message");
    };
    inbox::receive_from_peer(parts, message, push).await;
    CallAnswer::bare(true, "taken")
}

fn read<'a>(parts: &Parts, call: &'a PeerCall) -> Option<(Message, &'a [u8])> {
    let push = call.push.as_ref()?.as_bytes();
    match event::parse(push) {
        Push::Message(message) if parts.is_of_our_app(&message.head) => Some((*message, push)),
        Push::Message(_) | Push::Click(_) | Push::Other { .. } | Push::Unreadable { .. } => None,
    }
}
