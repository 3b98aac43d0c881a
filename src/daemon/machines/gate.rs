//! The way to the other machines of this app: clicks of theirs that came here go
//! to them.

use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

use crate::approvals::outcome::{Outcome, Refusal};
use crate::config::Config;
use crate::daemon::cards::courier::{self, AFTER_REPLY, Cards};
use crate::daemon::deciding::ruling::Ruling;
use crate::feishu::clock::TheirClock;
use crate::feishu::event::Click;
use crate::feishu::outbound::{Outbound, OutboundError};
use crate::feishu::secret::Secret;
use crate::gateway::call::{PeerCall, QUERY};
use crate::gateway::forward::{ANSWER_WITHIN, Forwarder, Posted};
use crate::gateway::route::CallbackUrl;
use crate::gateway::seal::{SealPurpose, Sealed, Sealer};
use crate::gateway::server::DoorTerms;
use crate::ids::{MachineId, RequestId};

/// How an outcome nobody told is asked after.
static ASK_AGAIN: [Duration; 6] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
];

/// What this machine needs to be one of many.
pub(crate) struct Gate {
    pub(crate) cards: Arc<Cards>,
    pub(crate) terms: DoorTerms,
    pub(crate) their_clock: TheirClock,
    forwarder: Forwarder,
}

impl Gate {
    pub(crate) fn new(
        cards: Arc<Cards>,
        outbound: &Outbound,
        terms: DoorTerms,
        their_clock: TheirClock,
    ) -> Result<Self, OutboundError> {
        let callback = &cards.config.callback;
        let (peers, tokens) = (&callback.peers, &callback.peer_tokens);
        Ok(Self {
            forwarder: Forwarder::new(outbound, peers, tokens, terms.sealer.clone())?,
            terms,
            their_clock,
            cards,
        })
    }

    /// Says something sealed to another machine.
    pub(crate) async fn post(&self, to: &CallbackUrl, call: &PeerCall) -> Posted {
        let now = || self.their_clock.now();
        self.forwarder.post(to, call, now, ANSWER_WITHIN).await
    }
}

/// Who may call this machine: whoever shares the secret.
pub(crate) fn terms(config: &Config, app_secret: Option<&Secret>) -> DoorTerms {
    let callback = &config.callback;
    let secret = callback.secret.as_ref().or(app_secret);
    DoorTerms {
        url: callback.url.clone(),
        sealer: secret.map(|secret| Sealer::new(secret, SealPurpose::Call)),
        allow_unsealed: callback.allow_unsealed,
    }
}

/// Takes a click to the machine its request lives on.
pub(crate) async fn forward(
    gate: &Arc<Gate>,
    click: &Click,
    request: &RequestId,
    to: CallbackUrl,
    proof: Option<Sealed>,
) -> Ruling {
    let text = |field: &str| click.value.get(field).and_then(|value| value.as_str());
    let call = PeerCall {
        to: text("machine").and_then(|id| MachineId::parse(id).ok()),
        action: text("action").unwrap_or_default().to_owned(),
        request: request.clone(),
        project_dir: text("project_dir").unwrap_or_default().to_owned(),
        click: Some(click.clone()),
        push: None,
    };
    let posted = if proof.is_some() {
        gate.post(&to, &call).await
    } else {
        let now = || gate.their_clock.now();
        let posted = gate.forwarder.post_plain(&to, &call, now, ANSWER_WITHIN);
        posted.await
    };
    match posted {
        Posted::Answered(answer) => {
            info!(%request, %to, "a click was taken to its machine");
            let (outcome, card) = answer.outcome();
            Ruling::with(outcome, card.as_ref().map(Into::into))
        }
        Posted::Refused(why) => {
            warn!(%request, %to, ?why, "a machine took no call of ours");
            Refusal::NotTaken(why).into()
        }
        Posted::Unreachable => {
            warn!(%request, %to, "a machine could not be reached");
            Refusal::Unreachable.into()
        }
        Posted::Status(status) => {
            warn!(%request, %to, status, "a machine took no call of ours");
            Refusal::PeerStatus(status).into()
        }
        Posted::Unknown(why) => {
            warn!(%request, %to, ?why, "a machine did not say what became of a click");
            if proof.is_none() {
                return Outcome::ServiceUnclear(why).into();
            }
            tokio::spawn(find_out(Arc::clone(gate), call, to, &ASK_AGAIN));
            Outcome::Unclear.into()
        }
    }
}

/// Asks what became of a click until its machine says so, and makes the card
/// show it. A click that never arrived leaves the card as it is: waiting.
async fn find_out(gate: Arc<Gate>, mut call: PeerCall, to: CallbackUrl, again: &[Duration]) {
    let message = call.click.take().and_then(|click| click.message);
    QUERY.clone_into(&mut call.action);
    for pause in again {
        tokio::time::sleep(*pause).await;
        if let Posted::Answered(answer) = gate.post(&to, &call).await {
            let (_, card) = answer.outcome();
            if let (Some(message), Some(card)) = (message, card) {
                courier::queue_edit(&gate.cards, message, (&card).into(), AFTER_REPLY).await;
            }
            return;
        }
    }
    warn!(request = %call.request, %to, "what became of a click is left to its machine");
}

#[cfg(test)]
mod tests;
