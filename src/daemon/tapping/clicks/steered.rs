//! A tap that steers sessions: the stop of a task, a choice on a menu.

use std::sync::Arc;

use super::{ButtonTap, Ruling, TapMeaning, Taps, is_stale, turned_away};
use crate::approvals::outcome::{Deed, Outcome, Refusal};
use crate::daemon::talking::picks;
use crate::feishu::event::Click;

/// A button that steers sessions, which is the owner's alone.
pub(super) async fn steered(taps: &Arc<Taps>, click: &Click, tap: &ButtonTap) -> Ruling {
    if taps.people.owner(&click.by).is_none() {
        return turned_away(taps, click, None, Refusal::NotTheOwner).await;
    }
    if tap.proof.is_none() {
        return Refusal::Invalid.into();
    }
    if is_stale(taps, click) {
        return Refusal::Stale.into();
    }
    match tap.wanted {
        TapMeaning::Pick(number) => {
            picks::picked(&taps.chat, click, tap.request.as_str(), number).await
        }
        TapMeaning::Stop(session) => stop(taps, session).into(),
        TapMeaning::Permission(_) | TapMeaning::Answer(_) | TapMeaning::Gathered(_) => {
            Refusal::Invalid.into()
        }
    }
}

fn stop(taps: &Taps, session: i64) -> Outcome {
    match taps.chat.sessions.find(session) {
        None => Refusal::Expired.into(),
        Some(_) if taps.chat.sessions.stop_task(session) => Deed::Stopping.into(),
        Some(_) => Refusal::NothingRuns.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::bench::{APPROVER, DaemonBench, OWNER, STRANGER, taps};
    use crate::daemon::tapping::clicks::judge;
    use crate::ids::MessageId;
    use serde_json::Value;

    async fn tapped(bench: &DaemonBench, by: &str, value: &Value) -> Outcome {
        let card = MessageId::parse("om_task").unwrap();
        judge(&bench.taps, &taps(by, value, &card)).await.outcome
    }

    #[tokio::test]
    async fn only_the_owner_stops_a_task_and_others_are_written_down() {
        let bench = DaemonBench::new().await;
        let number = bench.rests("c1", None).await;
        let stop = bench.cards.buttons.stop(number);
        for who in [STRANGER, APPROVER] {
            let told = tapped(&bench, who, &stop).await;
            assert_eq!(told, Refusal::NotTheOwner.into());
        }
        assert_eq!(bench.audit().await.len(), 2);
        let told = tapped(&bench, OWNER, &stop).await;
        assert_eq!(told, Refusal::NothingRuns.into());
        let unknown = bench.cards.buttons.stop(number + 1);
        let told = tapped(&bench, OWNER, &unknown).await;
        assert_eq!(told, Refusal::Expired.into());
    }

    #[tokio::test]
    async fn a_button_that_nod_did_not_make_steers_nothing() {
        let bench = DaemonBench::new().await;
        let number = bench.rests("c1", None).await;
        for value in [
            bench.cards.buttons.stop(number),
            bench.cards.buttons.pick("d1", 0),
        ] {
            let mut forged = value;
            forged["machine_name"] = "other".into();
            let told = tapped(&bench, OWNER, &forged).await;
            assert_eq!(told, Refusal::Invalid.into(), "{forged}");
        }
    }

    #[tokio::test]
    async fn a_tap_that_took_too_long_steers_nothing() {
        let bench = DaemonBench::new().await;
        let number = bench.rests("c1", None).await;
        let card = MessageId::parse("om_task").unwrap();
        let stop = bench.cards.buttons.stop(number);
        let mut click = taps(OWNER, &stop, &card);
        let now = bench.taps.gate.their_clock.now();
        for created in [now, now - 10 * 60_000] {
            click.head.created_ms = Some(created);
            let told = judge(&bench.taps, &click).await.outcome;
            let late = created < now;
            assert_eq!(told == Refusal::Stale.into(), late, "{told:?}");
        }
    }
}
