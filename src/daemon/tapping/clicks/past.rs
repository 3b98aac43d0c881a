//! A tap that comes after the end, and the truth it is told.

use super::{ButtonTap, Ruling, true_face};
use crate::approvals::outcome::{Refusal, Upshot};
use crate::approvals::request::Ending;
use crate::clock::Millis;
use crate::daemon::known::journal;
use crate::daemon::parts::Parts;
use crate::feishu::event::Click;
use crate::ids::RequestId;

/// A tap on a card whose request is over. One that nod made learns the truth,
/// also after a restart, and gets the true card; a button nod did not make
/// learns only how it ended, while the desk still knows.
pub(super) async fn past(parts: &Parts, click: &Click, tap: &ButtonTap) -> Ruling {
    match tap.proof {
        Some(_) => Box::pin(remembered(parts, click, &tap.request)).await,
        None => match parts.desk.past(&tap.request) {
            Some(past) => over(past.ending, parts.now() - past.at).into(),
            None => Refusal::Unknown.into(),
        },
    }
}

fn over(ending: Ending, ago: Millis) -> Refusal {
    Refusal::Over { ending, ago }
}

/// What the tap that ended this request led to, as far as that is known.
async fn led_to(parts: &Parts, id: &RequestId) -> Upshot {
    if let Some(known) = parts.courier.decided(id) {
        return Upshot::of(&known.settled.ending, known.delivery);
    }
    let kept = journal::remembered(&parts.journal, id).await;
    kept.map_or(Upshot::Nothing, |it| Upshot::recorded(&it.ending))
}

/// The truth about a request that is over.
pub(super) async fn remembered(parts: &Parts, click: &Click, id: &RequestId) -> Ruling {
    if let Some(answer) = journal::answer(&parts.journal, click.head.event_id.as_ref()).await {
        return Ruling::kept(led_to(parts, id).await, answer);
    }
    if let Some(past) = parts.desk.past(id) {
        let why = over(past.ending, parts.now() - past.at);
        return true_face(parts, click, id, why);
    }
    match journal::remembered(&parts.journal, id).await {
        Some(it) => {
            let why = over(it.ending, parts.now() - it.at);
            true_face(parts, click, id, why)
        }
        None => Refusal::Unknown.into(),
    }
}
