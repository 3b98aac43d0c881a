use super::*;
use crate::approvals::desk::Waiting;
use crate::approvals::outcome::{Outcome, sample};
use crate::approvals::request::Ending;
use crate::daemon::bench::{DaemonBench, OWNER, taps};
use crate::ids::MessageId;
use serde_json::{Value, json};

/// Two requests on one list; the list's id.
fn gathered(bench: &DaemonBench) -> (Vec<Waiting>, RequestId) {
    let all = ["r1", "r2"].map(|id| {
        let mut request = sample::request("Bash", json!({"command": "ls"}));
        request.id = RequestId::parse(id).unwrap();
        let (waiting, request) = bench.bench.asks(request);
        assert!(bench.cards.flood.gather(&request, "shop".to_owned(), 0));
        waiting
    });
    let list = bench.cards.flood.lock().groups[0].id.clone();
    (all.into(), list)
}

fn tap(bench: &DaemonBench, id: &RequestId, tap: FloodTap, on: &str) -> Outcome {
    let click = taps(OWNER, &Value::Null, &MessageId::parse(on).unwrap());
    let (decider, proof) = (&bench.taps.decider, Sealed::by_our_card(id));
    tapped(decider, &click, id, tap, sample::by(), proof).outcome
}

#[tokio::test]
async fn a_request_of_the_list_gets_a_card_of_its_own_and_is_not_decided() {
    let bench = DaemonBench::new().await;
    let (_waiting, _) = gathered(&bench);
    let r1 = RequestId::parse("r1").unwrap();
    let opened = tap(&bench, &r1, FloodTap::Open, "om_list");
    assert_eq!(opened, Deed::Opened.into());
    bench
        .until(|bench| bench.cards.courier.message_of(&r1).is_some())
        .await;
    assert_eq!(bench.cards.flood.lock().groups[0].waiting.len(), 1);
    assert_eq!(bench.cards.desk.pending(), 2);
    let again = tap(&bench, &r1, FloodTap::Open, "om_list");
    assert_eq!(again, Deed::Opened.into(), "it has its card");
    let gone = RequestId::parse("r9").unwrap();
    let gone = tap(&bench, &gone, FloodTap::Open, "om_list");
    assert_eq!(gone, Refusal::Expired.into());
}

#[tokio::test]
async fn all_of_the_list_are_denied_and_nothing_else() {
    let bench = DaemonBench::new().await;
    let (waiting, list) = gathered(&bench);
    let mut other = sample::request("Bash", json!({"command": "ls"}));
    other.id = RequestId::parse("r3").unwrap();
    let (_other, _) = bench.bench.asks(other);
    let told = tap(&bench, &list, FloodTap::DenyAll, "om_list");
    assert_eq!(told, Deed::DenyingAll(2).into());
    for mut waiting in waiting {
        let ending = waiting.answered().await.unwrap().answer.ending;
        assert!(matches!(ending, Ending::Denied { .. }), "{ending:?}");
    }
    assert_eq!(bench.cards.desk.pending(), 1);
}

#[tokio::test]
async fn a_button_lifted_onto_another_card_does_nothing() {
    let bench = DaemonBench::new().await;
    let (_waiting, list) = gathered(&bench);
    let r1 = RequestId::parse("r1").unwrap();
    tap(&bench, &r1, FloodTap::Open, "om_list");
    for (id, wanted) in [
        (&list, FloodTap::DenyAll),
        (&RequestId::parse("r2").unwrap(), FloodTap::Open),
    ] {
        let told = tap(&bench, id, wanted, "om_elsewhere");
        assert_eq!(told, Refusal::Invalid.into());
    }
    assert_eq!(bench.cards.desk.pending(), 2);
    let no_list = tap(&bench, &r1, FloodTap::DenyAll, "om_list");
    assert_eq!(no_list, Refusal::Expired.into());
}
