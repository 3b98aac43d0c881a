//! Calls of the other machines of this app, and of foreign callback services, at
//! the HTTP door: ours that came to them are decided here, by our own approvers.

use std::sync::Arc;

use crate::approvals::outcome::{Outcome, Refusal};
use crate::approvals::request::Operator;
use crate::cards::Action;
use crate::daemon::arriving::inbox;
use crate::daemon::talking::chat::claim::{MessageClaim, claim};
use crate::daemon::tapping::clicks::{self, Door, Taps};
use crate::daemon::tapping::pages;
use crate::daemon::telling::metrics;
use crate::daemon::telling::status::{self, Standing};
use crate::feishu::event::{self, Message};
use crate::gateway::call::{CallAnswer, PeerCall, QUERY, TAKE, WHOSE};
use crate::gateway::server::{Inside, Pages};
use crate::ids::RequestId;

/// What the HTTP door leads to.
pub(crate) fn inside(taps: &Arc<Taps>, standing: Arc<Standing>) -> Inside {
    let (calls, plain) = (Arc::clone(taps), Arc::clone(taps));
    let clock = taps.gate.their_clock.clone();
    let pages = taps.cards.courier.links().is_some().then(|| {
        let (shows, presses) = (Arc::clone(taps), Arc::clone(taps));
        Pages {
            show: Box::new(move |visit| Box::pin(pages::show(Arc::clone(&shows), visit))),
            press: Box::new(move |press| Box::pin(pages::press(Arc::clone(&presses), press))),
        }
    });
    Inside {
        machine: taps.cards.buttons.machine.id.clone(),
        decide: Box::new(move |call| {
            let taps = Arc::clone(&calls);
            Box::pin(async move { receive(&taps, call).await })
        }),
        decide_plain: Box::new(move |call| {
            let taps = Arc::clone(&plain);
            Box::pin(async move { plainly(&taps, &call).await })
        }),
        pages,
        metrics: Box::new(move || metrics::text(&status::report(&standing))),
        now: Box::new(move || clock.now()),
    }
}

/// Decides what another machine of ours asks for.
async fn receive(taps: &Arc<Taps>, call: PeerCall) -> CallAnswer {
    match call.action.as_str() {
        QUERY => became(taps, &call.request).await,
        WHOSE => whose(taps, &call).await,
        TAKE => take(taps, &call).await,
        _ => clicks::judge_forwarded(taps, &call.click.unwrap_or_default()).await,
    }
}

/// Decides what a callback service on this machine asks for, which the owner
/// let speak without a seal.
async fn plainly(taps: &Taps, call: &PeerCall) -> CallAnswer {
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
    clicks::decide(taps, &call.request, action, by, Door::Service)
        .await
        .told()
}

async fn became(taps: &Taps, id: &RequestId) -> CallAnswer {
    match clicks::became(taps, id).await {
        None => CallAnswer::of(&Outcome::Waiting, None),
        Some(ruling) => ruling.told(),
    }
}

/// Another machine asks whether a message is for this one.
async fn whose(taps: &Taps, call: &PeerCall) -> CallAnswer {
    let claim = match read(taps, call) {
        Some((message, _)) => claim(&taps.chat, &message).await,
        None => MessageClaim::None,
    };
    CallAnswer {
        machine: Some(taps.cards.buttons.machine.id.clone()),
        ..CallAnswer::bare(claim != MessageClaim::None, claim.as_str())
    }
}

/// Another machine brings a message that is for this one.
async fn take(taps: &Taps, call: &PeerCall) -> CallAnswer {
    let Some((message, push)) = read(taps, call) else {
        return CallAnswer::bare(false, "no message");
    };
    inbox::receive_from_peer(&taps.chat, message, push).await;
    CallAnswer::bare(true, "taken")
}

fn read<'a>(taps: &Taps, call: &'a PeerCall) -> Option<(Message, &'a [u8])> {
    let push = call.push.as_ref()?.as_bytes();
    let message = event::parse(push).message_to(&taps.app_id)?;
    Some((message, push))
}

#[cfg(test)]
mod tests;
