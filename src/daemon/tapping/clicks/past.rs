//! A tap that comes after the end, and the truth it is told.

use super::{Ruling, Tap, true_face};
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
pub(super) async fn past(parts: &Parts, click: &Click, tap: &Tap, now: Millis) -> Ruling {
    if !tap.sealed {
        return match parts.desk.past(&tap.request) {
            Some(past) => over(past.ending, now - past.at).into(),
            None => Refusal::Unknown.into(),
        };
    }
    Box::pin(remembered(parts, click, tap, now)).await
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

async fn remembered(parts: &Parts, click: &Click, tap: &Tap, now: Millis) -> Ruling {
    if let Some(answer) = journal::answer(&parts.journal, click.head.event_id.as_ref()).await {
        return Ruling::kept(led_to(parts, &tap.request).await, answer);
    }
    if let Some(past) = parts.desk.past(&tap.request) {
        let why = over(past.ending, now - past.at);
        return true_face(parts, click, &tap.request, why);
    }
    match journal::remembered(&parts.journal, &tap.request).await {
        Some(it) => {
            let why = over(it.ending, now - it.at);
            true_face(parts, click, &tap.request, why)
        }
        None => Refusal::Unknown.into(),
    }
}
