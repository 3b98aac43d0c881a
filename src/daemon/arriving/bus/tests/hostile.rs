//! A bus that forges, alters, repeats and hands over what is another's.

use super::*;
use crate::daemon::cards::courier;

#[tokio::test]
async fn what_no_gateway_of_this_team_signed_does_nothing() {
    let rig = Rig::new().await;
    let (_waiting, card) = rig.waits().await;
    let tap = rig.hears(ToMachine::Tap);
    let push = rig.tap(OWNER, Action::Allow, &card);
    let by = |key: &KeyPair| letter::sign(key, &tap, &rig.head(1_000), &push);
    let good = by(&rig.keys.push);
    let altered = String::from_utf8(rig.signed(&tap, 1_000, &rig.tap(OWNER, Action::Deny, &card)));
    let altered = altered.unwrap().replace("deny", "allow").into_bytes();
    let moved = rig.signed(&rig.hears(ToMachine::Take), 1_000, &push);
    let mut longer_lived = String::from_utf8(rig.signed(&tap, -9_000, &push)).unwrap();
    let late = rig.head(-9_000).until / 10_000;
    longer_lived = longer_lived.replace(&late.to_string(), &(late + 1).to_string());
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("a push without a letter", push.clone()),
        ("another team's gateway", by(&pair(KeyKind::Push, 9))),
        ("the machine itself", by(&pair(KeyKind::User, 1))),
        ("the key for passes", by(&rig.keys.machines)),
        ("altered", altered),
        ("signed for another subject", moved),
        ("a later end", longer_lived.into_bytes()),
        ("cut", good[..good.len() - 1].to_vec()),
        ("longer", [good.as_slice(), b" "].concat()),
    ] {
        assert_eq!(rig.said(&tap, bytes).await, None, "{what}");
        assert_eq!(rig.pending(), 1, "{what}");
    }
    assert_eq!(rig.ticket_of(card.as_str()).await, None);
    assert!(rig.said(&tap, good).await.is_some(), "the true one counts");
}

#[tokio::test]
async fn a_head_that_is_no_pushs_or_too_large_does_nothing() {
    let rig = Rig::new().await;
    let subject = rig.hears(ToMachine::There);
    let answer = AnswerHead {
        re: "once".to_owned(),
        pass: None,
    };
    let large = PushHead {
        once: "x".repeat(5_000),
        ..rig.head(1_000)
    };
    let sign = |head: Value| letter::sign(&rig.keys.push, &subject, &head, b"{}");
    for head in [
        json!(answer),
        json!(large),
        json!({"until": "soon", "once": "x"}),
        json!({}),
    ] {
        assert_eq!(rig.said(&subject, sign(head.clone())).await, None, "{head}");
    }
    assert!(rig.asked(&subject, 1_000, b"{}").await.is_some());
}

#[tokio::test]
async fn a_tap_that_the_bus_repeats_decides_once_and_is_answered_alike() {
    let rig = Rig::new().await;
    let (waiting, card) = rig.waits().await;
    let subject = rig.hears(ToMachine::Tap);
    let letter = rig.signed(&subject, 1_000, &rig.tap(OWNER, Action::Deny, &card));
    let hook = hook(waiting);
    let first = rig.said(&subject, letter.clone()).await.unwrap();
    assert!(!hook.await);
    let again = rig.said(&subject, letter).await.unwrap();
    assert_eq!(first, again);
    let decided = rig.bench.audit().await;
    let decided = decided.iter().filter(|kind| *kind == "settled").count();
    assert_eq!(decided, 1);
}

#[tokio::test]
async fn an_old_tap_that_the_bus_repeats_is_not_called_late_where_it_counted() {
    let rig = Rig::new().await;
    let (waiting, card) = rig.waits().await;
    let subject = rig.hears(ToMachine::Tap);
    let push = rig.tap(OWNER, Action::Deny, &card);
    let hook = hook(waiting);
    assert!(rig.asked(&subject, 1_000, &push).await.is_some());
    assert!(!hook.await);
    assert_eq!(rig.asked(&subject, -SLACK - 1, &push).await, None);
    assert!(rig.bench.said().is_empty(), "it counted");
    // The run before this one answered it.
    let before = MessageId::parse("om_before").unwrap();
    let event = EventId::parse("tap-om_before").unwrap();
    journal::answered(&rig.bench.cards.journal, Some(&event), b"{}".to_vec());
    let push = rig.tap(OWNER, Action::Deny, &before);
    assert_eq!(rig.asked(&subject, -SLACK - 1, &push).await, None);
    assert!(rig.bench.said().is_empty(), "it counted before the restart");
}

#[tokio::test]
async fn a_tap_that_a_bus_kept_for_long_is_told_to_nobody() {
    let rig = Rig::new().await;
    let (_waiting, card) = rig.waits().await;
    let subject = rig.hears(ToMachine::Tap);
    let push = rig.tap(OWNER, Action::Allow, &card);
    let asked = rig.asked(&subject, -TELL_UNTIL - 1, &push).await;
    assert_eq!(asked, None);
    assert_eq!((rig.pending(), rig.bench.said().len()), (1, 0));
}

#[tokio::test]
async fn a_push_counts_for_nothing_but_the_verb_it_was_brought_with() {
    let rig = Rig::new().await;
    let (_waiting, card) = rig.waits().await;
    let tap = rig.tap(OWNER, Action::Allow, &card);
    let lock = written(OWNER, "/lock");
    let place = &rig.member.place;
    for (subject, push) in [
        (place.hears(ToMachine::Take), tap.as_slice()),
        (of_owner(&place.owner), tap.as_slice()),
        (place.hears(ToMachine::Tap), lock.as_slice()),
        (place.hears(ToMachine::Tap), b"nonsense".as_slice()),
        (place.hears(ToMachine::Take), b"{}".as_slice()),
    ] {
        let asked = rig.asked(&subject, 1_000, push).await;
        assert_eq!(asked, None, "{subject}");
    }
    assert_eq!((rig.pending(), rig.bench.kept().await), (1, 0));
    assert!(!rig.bench.cards.lock.is_closed());
}

#[tokio::test]
async fn a_letter_to_another_machine_that_a_bus_hands_over_here_does_nothing() {
    let rig = Rig::new().await;
    let other = membership(&rig.keys, "ou_other", 2, NOWHERE);
    let sibling = membership(&rig.keys, OWNER, 3, NOWHERE);
    let push = written(OWNER, "/new shop tidy up");
    for subject in [
        of_owner(&other.place().owner),
        other.place().hears(ToMachine::Take),
        other.place().hears(ToMachine::There),
        sibling.place().hears(ToMachine::Take),
        sibling.place().hears(ToMachine::Leave),
        rig.member.place.says(FromMachine::Hello),
        format!("{}.x", rig.hears(ToMachine::Take)),
    ] {
        let said = rig.asked(&subject, 1_000, &push).await;
        assert_eq!(said, None, "{subject}");
    }
    assert_eq!(rig.ticket_of("om_written").await, None, "a foreign ticket");
    let own = of_owner(&rig.member.place.owner);
    assert!(rig.asked(&own, 1_000, &push).await.is_some());
}

/// A card that Feishu has while this machine does not know its name; that comes
/// with the answer.
async fn nameless(rig: &Rig) -> (Waiting, tokio::sync::oneshot::Sender<()>) {
    let bench = &rig.bench.bench;
    let answer = bench.holds();
    let asked = sample::request("Bash", json!({"command": "rm -r build"}));
    let (waiting, request) = bench.asks(asked);
    courier::send_now(&bench.cards, &request);
    bench.call(0).await;
    (waiting, answer)
}

#[tokio::test]
async fn a_lifted_button_decides_nothing_while_a_bus_withholds_the_name_of_its_card() {
    let rig = Rig::new().await;
    let bench = &rig.bench.bench;
    bench.stop_time();
    let (waiting, answer) = nameless(&rig).await;
    let subject = rig.hears(ToMachine::Tap);
    // Another machine's card, with this one's sealed value on its button.
    let harmless = MessageId::parse("om_harmless").unwrap();
    let lifted = rig.tap(OWNER, Action::Allow, &harmless);
    let two_seconds = Duration::from_secs(2);
    let tapped = rig.asked(&subject, 9_000, &lifted);
    let told = bench.meanwhile(two_seconds, tapped).await.unwrap();
    assert_eq!(toast(&told), "Nothing was decided: tap again");
    assert_eq!(rig.pending(), 1);
    answer.send(()).unwrap();
    let card = bench
        .named(&crate::ids::RequestId::parse("r1").unwrap())
        .await;
    assert_ne!(card, harmless);
    let again = String::from_utf8(lifted).unwrap();
    let again = again.replace("tap-om_harmless", "another-event");
    let told = rig.asked(&subject, 9_000, again.as_bytes()).await.unwrap();
    assert_eq!(toast(&told), "Invalid callback");
    let hook = hook(waiting);
    let push = rig.tap(OWNER, Action::Deny, &card);
    let told = rig.asked(&subject, 9_000, &push).await.unwrap();
    assert_eq!(toast(&told), "Denied", "its own card decides");
    assert!(!hook.await);
}

#[tokio::test]
async fn a_quick_tap_on_the_card_itself_decides_once_its_name_is_there() {
    let rig = Rig::new().await;
    let bench = &rig.bench.bench;
    bench.stop_time();
    let (waiting, answer) = nameless(&rig).await;
    let subject = rig.hears(ToMachine::Tap);
    let card = MessageId::parse("om_1").unwrap();
    let push = rig.tap(OWNER, Action::Allow, &card);
    let hook = hook(waiting);
    let mut tapped = std::pin::pin!(rig.asked(&subject, 9_000, &push));
    assert!(futures::poll!(&mut tapped).is_pending());
    bench.settled().await;
    assert_eq!(rig.pending(), 1, "the name is not there yet");
    answer.send(()).unwrap();
    let told = bench.meanwhile(Duration::ZERO, tapped).await.unwrap();
    assert_eq!(toast(&told), "Allowed once");
    assert!(hook.await);
}

#[tokio::test]
async fn a_gateways_word_makes_nobody_an_approver_and_no_button_ours() {
    let rig = Rig::new().await;
    let (waiting, card) = rig.waits().await;
    let subject = rig.hears(ToMachine::Tap);
    let bare = json!({"action": "allow", "request_id": "r1"});
    let sealed = |secret: &str, purpose| {
        let sealer = Sealer::new(&Secret::new(secret), purpose);
        tap_push(OWNER, &sealer.seal(bare.clone()), card.as_str())
    };
    let mut altered: Value = rig.bench.cards.buttons.choice(
        &crate::ids::RequestId::parse("r1").unwrap(),
        Action::Deny,
        false,
    );
    altered["action"] = json!("allow");
    let other_card = MessageId::parse("om_other").unwrap();
    for (what, push) in [
        ("a stranger", rig.tap(STRANGER, Action::Allow, &card)),
        ("no seal", tap_push(OWNER, &bare, card.as_str())),
        ("altered", tap_push(OWNER, &altered, card.as_str())),
        ("a call's seal", sealed("a secret", SealPurpose::Call)),
        ("a ticket's seal", sealed("a secret", SealPurpose::Ticket)),
        ("another machine's", sealed("another", SealPurpose::Button)),
        ("another card", rig.tap(OWNER, Action::Allow, &other_card)),
    ] {
        // Each is an event of its own.
        let event = format!("\"event_id\":\"{what}");
        let push = String::from_utf8(push).unwrap();
        let push = push.replace("\"event_id\":\"tap", &event.replace([' ', '\''], "-"));
        let answer = rig.asked(&subject, 1_000, push.as_bytes()).await.unwrap();
        assert_ne!(toast(&answer), "Allowed once", "{what}");
        assert_eq!(rig.pending(), 1, "{what}");
    }
    let push = rig.tap(OWNER, Action::Allow, &card);
    let hook = hook(waiting);
    let answer = rig.asked(&subject, 1_000, &push).await.unwrap();
    assert_eq!(toast(&answer), "Allowed once", "the true one counts");
    assert!(hook.await);
}

#[tokio::test]
async fn an_answer_goes_to_gateways_and_nowhere_else() {
    let rig = Rig::new().await;
    let subject = rig.hears(ToMachine::There);
    for reply in [
        None,
        Some("_IN.ou_owner.x"),
        Some("nod1.g.ou_owner.x.call"),
        Some(""),
    ] {
        let heard = BusHeard {
            subject: subject.clone(),
            reply: reply.map(str::to_owned),
            body: rig.signed(&subject, 1_000, b"{}").into(),
        };
        let said = answered(&rig.bench.taps, &rig.member, heard).await;
        assert_eq!(said, None, "{reply:?}");
    }
}
