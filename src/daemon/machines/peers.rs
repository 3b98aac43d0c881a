//! The other machines of this app: clicks of theirs that came here go to
//! them, and ours that came to them are decided here, by our own approvers.
//! Chat messages have their own room.

pub(crate) mod messages;

use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

use crate::approvals::outcome::{Outcome, Refusal};
use crate::approvals::request::Operator;
use crate::cards::Action;
use crate::config::Config;
use crate::daemon::cards::courier::{self, AFTER_REPLY};
use crate::daemon::deciding::ruling::Ruling;
use crate::daemon::parts::Parts;
use crate::daemon::tapping::clicks::{self, Door};
use crate::daemon::tapping::pages;
use crate::daemon::telling::metrics;
use crate::daemon::telling::status;
use crate::feishu::event::{Click, EventHead};
use crate::feishu::outbound::{Outbound, OutboundError};
use crate::feishu::secret::Secret;
use crate::gateway::call::{self, CallAnswer, PeerCall, QUERY, TAKE, WHOSE};
use crate::gateway::forward::{ANSWER_WITHIN, Forwarder, Posted};
use crate::gateway::route::CallbackUrl;
use crate::gateway::seal::{SealPurpose, Sealed, Sealer};
use crate::gateway::server::{DoorTerms, Inside, Pages};
use crate::ids::{MachineId, RequestId};

/// How an outcome nobody told is asked after.
const ASK_AGAIN: [Duration; 6] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
];

/// What this machine needs to be one of many.
pub(crate) struct Gate {
    pub(crate) terms: DoorTerms,
    forwarder: Forwarder,
}

impl Gate {
    pub(crate) fn new(
        config: &Config,
        outbound: &Outbound,
        terms: DoorTerms,
    ) -> Result<Self, OutboundError> {
        let peers = &config.callback.peers;
        Ok(Self {
            forwarder: Forwarder::new(outbound, peers, terms.sealer.clone())?,
            terms,
        })
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

/// What the HTTP door leads to.
pub(crate) fn inside(parts: &Arc<Parts>) -> Inside {
    let (calls, plain, clock, figures) = (
        Arc::clone(parts),
        Arc::clone(parts),
        parts.their_clock.clone(),
        Arc::clone(parts),
    );
    let pages = parts.courier.links().is_some().then(|| {
        let (shows, presses) = (Arc::clone(parts), Arc::clone(parts));
        Pages {
            show: Box::new(move |visit| Box::pin(pages::show(Arc::clone(&shows), visit))),
            press: Box::new(move |press| Box::pin(pages::press(Arc::clone(&presses), press))),
        }
    });
    Inside {
        machine: parts.buttons.machine.id.clone(),
        decide: Box::new(move |call| {
            let parts = Arc::clone(&calls);
            Box::pin(async move { receive(&parts, call).await })
        }),
        decide_plain: Box::new(move |call| {
            let parts = Arc::clone(&plain);
            Box::pin(async move { plainly(&parts, &call).await })
        }),
        pages,
        metrics: Box::new(move || metrics::text(&status::report(&figures.standing))),
        now: Box::new(move || clock.now()),
    }
}

/// Takes a click to the machine its request lives on.
pub(crate) async fn forward(
    parts: &Arc<Parts>,
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
        click: Some(call::ForwardedClick {
            by: click.by.clone(),
            event: click.head.event_id.clone(),
            message: click.message.clone(),
            value: click.value.clone(),
            name: click.name.clone(),
            form: click.form.clone(),
        }),
        push: None,
    };
    let (forwarder, now) = (&parts.gate.forwarder, || parts.their_clock.now());
    let posted = match proof {
        Some(_) => forwarder.post(&to, &call, now, ANSWER_WITHIN).await,
        None => forwarder.post_plain(&to, &call, now, ANSWER_WITHIN).await,
    };
    match posted {
        Posted::Answered(answer) => {
            info!(%request, %to, "a click was taken to its machine");
            let (outcome, card) = answer.outcome();
            let card = card.map(|card| courier::CardText::from(card.to_string()));
            Ruling::with(outcome, card.map(Into::into))
        }
        Posted::Refused(why) => {
            warn!(%request, %to, ?why, "a machine took no call of ours");
            Refusal::NotTaken(why).into()
        }
        Posted::Unreachable => {
            warn!(%request, %to, "a machine could not be reached");
            Refusal::Unreachable.into()
        }
        Posted::Unknown => {
            warn!(%request, %to, "a machine did not say what became of a click");
            if proof.is_some() {
                tokio::spawn(find_out(Arc::clone(parts), call, to));
            }
            Outcome::Unclear.into()
        }
    }
}

/// Asks what became of a click until its machine says so, and makes the card
/// show it. A click that never arrived leaves the card as it is: waiting.
async fn find_out(parts: Arc<Parts>, mut call: PeerCall, to: CallbackUrl) {
    let message = call.click.take().and_then(|click| click.message);
    QUERY.clone_into(&mut call.action);
    for pause in ASK_AGAIN {
        tokio::time::sleep(pause).await;
        let asked = parts
            .gate
            .forwarder
            .post(&to, &call, || parts.their_clock.now(), ANSWER_WITHIN)
            .await;
        if let Posted::Answered(answer) = asked {
            let (_, card) = answer.outcome();
            if let (Some(message), Some(card)) = (message, card) {
                let card: courier::CardText = card.to_string().into();
                courier::queue_edit(&parts, message, card.into(), AFTER_REPLY).await;
            }
            return;
        }
    }
    warn!(request = %call.request, %to, "what became of a click is left to its machine");
}

/// Decides what another machine of ours asks for.
async fn receive(parts: &Arc<Parts>, call: PeerCall) -> CallAnswer {
    match call.action.as_str() {
        QUERY => became(parts, &call.request).await,
        WHOSE => messages::whose(parts, &call).await,
        TAKE => messages::take(parts, &call).await,
        _ => clicks::judge_forwarded(parts, &brought(call)).await,
    }
}

/// The click in a call, as if Feishu had brought it here.
fn brought(call: PeerCall) -> Click {
    let click = call.click.unwrap_or_default();
    Click {
        head: EventHead {
            event_id: click.event,
            ..EventHead::default()
        },
        by: click.by,
        value: click.value,
        name: click.name,
        form: click.form,
        message: click.message,
        chat: None,
        host: None,
        delivery_type: None,
    }
}

/// Decides what a callback service on this machine asks for, which the owner
/// let speak without a seal.
async fn plainly(parts: &Parts, call: &PeerCall) -> CallAnswer {
    let action = Action::parse(&call.action);
    let known = [
        Action::Allow,
        Action::Always,
        Action::Deny,
        Action::Interrupt,
    ];
    let Some(action) = action.filter(|action| known.contains(action)) else {
        return CallAnswer::of(&Refusal::Invalid.into(), None);
    };
    let by = Operator::unnamed(Operator::CALLBACK);
    clicks::decide(parts, &call.request, action, by, Door::Service)
        .await
        .told()
}

async fn became(parts: &Parts, id: &RequestId) -> CallAnswer {
    match clicks::became(parts, id).await {
        None => CallAnswer::of(&Outcome::Waiting, None),
        Some(ruling) => ruling.told(),
    }
}
