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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::desk::Delivery;
    use crate::approvals::outcome::{Outcome, sample};
    use crate::approvals::request::Reach;
    use crate::cards::Action;
    use crate::daemon::bench::{DaemonBench, OWNER, taps};
    use crate::daemon::tapping::clicks::{TapMeaning, answer};
    use crate::gateway::seal::Sealed;
    use crate::ids::MessageId;
    use serde_json::{Value, json};

    fn id() -> RequestId {
        RequestId::parse("r1").unwrap()
    }

    fn tap(proof: Option<Sealed>) -> ButtonTap {
        ButtonTap {
            request: id(),
            wanted: TapMeaning::Permission(Action::Allow),
            proof,
            whole: false,
        }
    }

    /// A card that was allowed by a tap, and the answer to that tap.
    async fn allowed(bench: &DaemonBench) -> (Click, Vec<u8>) {
        let asked = sample::request("Bash", json!({"command": "npm test"}));
        let (mut waiting, request, card) = bench.bench.shows(asked).await;
        let value = bench
            .cards
            .buttons
            .choice(&request.id, Action::Allow, false);
        let click = taps(OWNER, &value, &card);
        let hook = tokio::spawn(async move {
            let mut handed = waiting.answered().await.unwrap();
            handed.report(Delivery::Confirmed);
        });
        let answered = answer(&bench.taps, click.clone()).await;
        hook.await.unwrap();
        (click, answered)
    }

    fn other_tap(click: &Click) -> Click {
        let message = MessageId::parse("om_x").unwrap();
        let mut other = taps(OWNER, &Value::Null, &message);
        other.message.clone_from(&click.message);
        other
    }

    #[tokio::test]
    async fn a_tap_on_a_card_that_is_over_learns_the_truth_and_gets_the_true_card() {
        let bench = DaemonBench::new().await;
        let (click, _) = allowed(&bench).await;
        let late = other_tap(&click);
        let ruling = past(&bench.taps, &late, &tap(Some(Sealed::by_our_card(&id())))).await;
        match &ruling.outcome {
            Outcome::Refused(Refusal::Over { ending, .. }) => {
                assert!(matches!(
                    ending,
                    Ending::Allowed {
                        reach: Reach::Once,
                        ..
                    }
                ));
            }
            other => panic!("{other:?}"),
        }
        let card = ruling.told().seen.unwrap().card.unwrap();
        assert!(card.to_string().contains("npm test"), "{card}");
    }

    #[tokio::test]
    async fn a_button_that_nod_did_not_make_gets_no_card_and_after_a_while_nothing() {
        let bench = DaemonBench::new().await;
        let (click, _) = allowed(&bench).await;
        let late = other_tap(&click);
        let ruling = past(&bench.taps, &late, &tap(None)).await;
        assert!(matches!(
            ruling.outcome,
            Outcome::Refused(Refusal::Over { .. })
        ));
        assert_eq!(ruling.told().seen.unwrap().card, None);
        let mut unknown = tap(None);
        unknown.request = RequestId::parse("r2").unwrap();
        let ruling = past(&bench.taps, &late, &unknown).await;
        assert_eq!(ruling.outcome, Refusal::Unknown.into());
    }

    #[tokio::test]
    async fn the_very_tap_that_comes_again_gets_the_very_answer() {
        let bench = DaemonBench::new().await;
        let (click, answered) = allowed(&bench).await;
        let ruling = remembered(&bench.taps, &click, &id()).await;
        match &ruling.outcome {
            Outcome::Relayed { upshot, .. } => assert_eq!(*upshot, Upshot::Allowed),
            other => panic!("{other:?}"),
        }
        assert_eq!(ruling.reply(&bench.cards, &click), answered);
        let nobody = RequestId::parse("r2").unwrap();
        let unknown = remembered(&bench.taps, &other_tap(&click), &nobody).await;
        assert_eq!(unknown.outcome, Refusal::Unknown.into());
    }
}
