//! A tap that comes after the end, and the truth it is told.

use super::{Shown, Tap, true_face};
use crate::approvals::outcome::Outcome;
use crate::clock::Millis;
use crate::daemon::deciding::decision::late;
use crate::daemon::known::journal;
use crate::daemon::parts::Parts;
use crate::feishu::event::Click;
use crate::ids::RequestId;
use crate::wording::Toast;

/// A tap on a card whose request is over. One that nod made learns the truth,
/// also after a restart, and gets the true card; a button nod did not make
/// learns only how it ended, while the desk still knows.
pub(super) async fn past(parts: &Parts, click: &Click, tap: &Tap, now: Millis) -> Shown {
    if !tap.sealed {
        return match parts.desk.past(&tap.request) {
            Some(past) => late(&past.ending, now - past.at).into(),
            None => Toast::Unknown.into(),
        };
    }
    Box::pin(remembered(parts, click, tap, now)).await
}

/// What the tap that ended this request led to, as far as that is known.
async fn led_to(parts: &Parts, id: &RequestId) -> Outcome {
    if let Some(known) = parts.courier.decided(id) {
        return Outcome::of(&known.settled.ending, known.delivery);
    }
    let kept = journal::remembered(parts, id).await;
    kept.map_or(Outcome::Nothing, |it| Outcome::recorded(&it.ending))
}

async fn remembered(parts: &Parts, click: &Click, tap: &Tap, now: Millis) -> Shown {
    if let Some(answer) = journal::answer(parts, click.head.event_id.as_ref()).await {
        return Shown::Again(led_to(parts, &tap.request).await, answer);
    }
    if let Some(past) = parts.desk.past(&tap.request) {
        let toast = late(&past.ending, now - past.at);
        return true_face(parts, click, &tap.request, toast);
    }
    match journal::remembered(parts, &tap.request).await {
        Some(it) => {
            let toast = late(&it.ending, now - it.at);
            true_face(parts, click, &tap.request, toast)
        }
        None => Toast::Unknown.into(),
    }
}
