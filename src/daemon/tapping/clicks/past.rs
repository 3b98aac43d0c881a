//! A tap that comes after the end, and the truth it is told.

use super::{ButtonTap, Ruling, Taps, true_face};
use crate::approvals::outcome::{Refusal, Upshot};
use crate::approvals::request::Ending;
use crate::clock::Millis;
use crate::daemon::known::journal;
use crate::feishu::event::Click;
use crate::ids::RequestId;

/// A tap on a card whose request is over. One that nod made learns the truth,
/// also after a restart, and gets the true card; a button nod did not make
/// learns only how it ended, while the desk still knows.
pub(super) async fn past(taps: &Taps, click: &Click, tap: &ButtonTap) -> Ruling {
    match tap.proof {
        Some(_) => Box::pin(remembered(taps, click, &tap.request)).await,
        None => match taps.cards.desk.past(&tap.request) {
            Some(past) => over(past.ending, taps.cards.now() - past.at).into(),
            None => Refusal::Unknown.into(),
        },
    }
}

fn over(ending: Ending, ago: Millis) -> Refusal {
    Refusal::Over { ending, ago }
}

/// What the tap that ended this request led to, as far as that is known.
async fn led_to(taps: &Taps, id: &RequestId) -> Upshot {
    if let Some(known) = taps.cards.courier.decided(id) {
        return Upshot::of(&known.settled.ending, known.delivery);
    }
    let kept = journal::remembered(&taps.cards.journal, id).await;
    kept.map_or(Upshot::Nothing, |it| Upshot::recorded(&it.ending))
}

/// The truth about a request that is over.
pub(super) async fn remembered(taps: &Taps, click: &Click, id: &RequestId) -> Ruling {
    if let Some(answer) = journal::answer(&taps.cards.journal, click.head.event_id.as_ref()).await {
        return Ruling::kept(led_to(taps, id).await, answer);
    }
    if let Some(past) = taps.cards.desk.past(id) {
        let why = over(past.ending, taps.cards.now() - past.at);
        return true_face(taps, click, id, why);
    }
    match journal::remembered(&taps.cards.journal, id).await {
        Some(it) => {
            let why = over(it.ending, taps.cards.now() - it.at);
            true_face(taps, click, id, why)
        }
        None => Refusal::Unknown.into(),
    }
}
