//! The long connection in process against the simulator: it comes back from
//! every loss, answers every push once, and says goodbye.

use futures::future::join_all;
use nod::for_tests::feishu::link::{Phase, PushAnswer};
use nod::for_tests::simulator::{Armed, Fault, Flaw, FragmentOrder, Fragments, Options, Simulator};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};

use super::support::{
    Client, LIMIT, SHOWN, click_is_answered, dialer, faster_than, foreign_click, next_connection,
    no_violations, within,
};

async fn start() -> Simulator {
    start_with(|_| {}).await
}

async fn start_with(change: impl FnOnce(&mut Options)) -> Simulator {
    let mut options = Options::default();
    change(&mut options);
    Simulator::start(options).await.unwrap()
}

#[tokio::test]
async fn the_first_message_is_a_ping_within_a_second() {
    faster_than(Duration::from_secs(1), || async {
        let simulator = start().await;
        let _client = Client::answering(&simulator);
        next_connection(&simulator, 0).await;
        let history = simulator.history(0);
        let of = |kind| {
            let mut kinds = history.iter().filter(|entry| entry.connection.is_some());
            kinds.find(|entry| entry.kind == kind).unwrap()
        };
        let (up, ping) = (of("connection_up"), of("ping_in"));
        assert_eq!(ping.seq, up.seq + 1, "{history:?}");
        no_violations(&simulator);
        Duration::from_millis(ping.at - up.at)
    })
    .await;
}

#[tokio::test]
async fn empty_pongs_start_no_storm_of_pings() {
    let simulator = start().await;
    for payload in ["{}", "", "no json"] {
        let payload = payload.to_owned();
        simulator
            .set_fault(Armed::once(Fault::Pong { payload }))
            .unwrap();
        let client = Client::answering(&simulator);
        next_connection(&simulator, 0).await;
        for n in 0..40 {
            click_is_answered(&simulator, &format!("e{n}")).await;
        }
        assert_eq!(simulator.connections()[0].app_pings, 1);
        client.stopped().await;
        assert!(simulator.wait_connections(0, LIMIT).await);
    }
    no_violations(&simulator);
}

#[tokio::test]
async fn every_loss_is_made_good_within_two_seconds() {
    let close = |code| Fault::Close {
        code,
        reason: String::new(),
    };
    let losses = [
        close(1000),
        close(1001),
        close(1006),
        close(1009),
        close(1011),
        Fault::Drop,
        Fault::Reset,
    ];
    join_all(losses.map(|fault| async move {
        faster_than(Duration::from_secs(2), || async {
            let simulator = start().await;
            let client = Client::answering(&simulator);
            let first = next_connection(&simulator, 0).await;
            let lost = Instant::now();
            simulator.set_fault(Armed::once(fault.clone())).unwrap();
            next_connection(&simulator, first.id).await;
            click_is_answered(&simulator, "after").await;
            assert_eq!(client.connects(), 2, "{fault:?}");
            let discoveries = simulator.history(0);
            let discoveries = discoveries.iter().filter(|e| e.kind == "discovery").count();
            assert_eq!(discoveries, 2, "every connect asks anew");
            lost.elapsed()
        })
        .await;
    }))
    .await;
}

#[tokio::test]
async fn a_hundred_drops_leave_one_socket_for_each_client() {
    const CLIENTS: usize = 25;
    let simulator = start_with(|options| options.client_config.reconnect_interval = 1).await;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| Client::answering(&simulator))
        .collect();
    let mut last = 0;
    for drop in 0..=4 {
        let ready = |simulator: &Simulator| {
            let all = simulator.connections();
            let fresh = all.iter().all(|one| one.id > last && one.app_pings == 1);
            (fresh && all.len() == CLIENTS).then(|| all.iter().map(|one| one.id).max())
        };
        let reached = simulator.wait_for(LIMIT, ready).await;
        last = reached
            .flatten()
            .unwrap_or_else(|| panic!("not all are back after drop {drop}"));
        if drop < 4 {
            simulator.set_fault(Armed::once(Fault::Drop)).unwrap();
        }
    }
    for client in &clients {
        assert_eq!(client.connects(), 5);
        assert!(matches!(client.view.borrow().phase, Phase::Up { .. }));
    }
    assert_eq!(simulator.connections().len(), CLIENTS);
    join_all(clients.into_iter().map(Client::stopped)).await;
    assert!(simulator.wait_connections(0, LIMIT).await);
    no_violations(&simulator);
}

#[tokio::test]
async fn a_peer_that_answers_no_ping_is_given_up() {
    let simulator = start().await;
    let client = Client::answering(&simulator);
    let first = next_connection(&simulator, 0).await;
    let silent = Armed::always(Fault::SwallowPongs).on(first.id);
    simulator.set_fault(silent).unwrap();
    client.hot.send_replace(true);
    let asked = Instant::now();
    next_connection(&simulator, first.id).await;
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(12), "{took:?}");
    let history = simulator.history(0);
    let mine = history
        .iter()
        .filter(|entry| entry.connection == Some(first.id));
    let pings: Vec<_> = mine
        .map(|entry| entry.kind)
        .filter(|kind| kind.contains("ping"))
        .collect();
    assert_eq!(
        pings,
        ["ping_in", "websocket_ping", "ping_in"],
        "it is asked twice before it counts as dead, in each kind of ping"
    );
    click_is_answered(&simulator, "after").await;
}

/// A dead line that Feishu takes for alive swallows the taps handed to it.
#[tokio::test]
async fn a_line_that_fell_silent_is_reset_as_soon_as_another_one_stands() {
    let simulator = start().await;
    let client = Client::answering(&simulator);
    let first = next_connection(&simulator, 0).await;
    let ghost = Fault::HalfOpen { ghost: true };
    simulator.set_fault(Armed::once(ghost)).unwrap();
    client.hot.send_replace(true);
    next_connection(&simulator, first.id).await;
    assert!(simulator.wait_connections(1, LIMIT).await, "two are left");
    for n in 0..10 {
        click_is_answered(&simulator, &format!("e{n}")).await;
    }
}

#[tokio::test]
async fn junk_costs_nothing_and_a_monster_only_a_reconnect() {
    let simulator = start().await;
    let client = Client::answering(&simulator);
    let first = next_connection(&simulator, 0).await;
    let garbage = |hex: &str| Fault::Garbage {
        hex: hex.to_owned(),
    };
    let junk = [
        garbage(""),
        garbage("ffff"),
        garbage("0800100018f6818010"),
        garbage("18f68180102a0c0a0474797065120470696e67"),
        Fault::TextMessage {
            text: "hello".to_owned(),
        },
    ];
    let counted = u64::try_from(junk.len()).unwrap();
    let ignored = [
        Fault::ControlFrame {
            r#type: "ping".to_owned(),
        },
        Fault::Method { method: 2 },
    ];
    for fault in junk.into_iter().chain(ignored) {
        simulator.set_fault(Armed::once(fault)).unwrap();
    }
    click_is_answered(&simulator, "after junk").await;
    assert_eq!(simulator.connections()[0].id, first.id);
    assert_eq!(client.view.borrow().counts.dropped, counted);
    assert_eq!(simulator.replies(), 1);
    let monster = Fault::OversizedFrame { bytes: 5 << 20 };
    simulator.set_fault(Armed::once(monster)).unwrap();
    next_connection(&simulator, first.id).await;
    click_is_answered(&simulator, "after the monster").await;
    assert_eq!(client.connects(), 2);
    no_violations(&simulator);
}

#[tokio::test]
async fn blocked_handlers_are_answered_for_and_never_twice() {
    const BURST: usize = 200;
    let simulator = start_with(|options| options.answer_limit = LIMIT).await;
    let gate = Arc::new(Semaphore::new(0));
    let (done, mut finished) = mpsc::unbounded_channel();
    let held = Arc::clone(&gate);
    let _client = Client::start(dialer(&simulator), move |_| {
        let (held, done) = (Arc::clone(&held), done.clone());
        async move {
            let _pass = held.acquire().await;
            let _ = done.send(());
            PushAnswer::Show(SHOWN.to_vec())
        }
    });
    next_connection(&simulator, 0).await;
    let clicks = (0..BURST).map(|n| simulator.push_click_raw(foreign_click(&format!("e{n}"))));
    for (pushed, outcome) in join_all(clicks).await {
        assert_eq!(pushed.code, Some(200));
        assert_eq!(outcome.toast.unwrap().content, "overdue");
        let took = Duration::from_micros(pushed.latency_us.unwrap());
        assert!(took >= Duration::from_millis(2_400), "{took:?}");
        assert!(took < Duration::from_secs(6), "{took:?}");
    }
    gate.add_permits(BURST);
    for _ in 0..BURST {
        within("a handler's end", finished.recv()).await.unwrap();
    }
    click_is_answered(&simulator, "after").await;
    assert_eq!(simulator.replies(), u64::try_from(BURST).unwrap() + 1);
    no_violations(&simulator);
}

#[tokio::test]
async fn a_panicking_handler_is_answered_for_once() {
    let simulator = start().await;
    let _client = Client::start(dialer(&simulator), |delivery| async move {
        let fine = delivery.payload.windows(4).any(|four| four == b"fine");
        assert!(fine, "a handler breaks, as this test wants");
        PushAnswer::Show(SHOWN.to_vec())
    });
    next_connection(&simulator, 0).await;
    let (pushed, outcome) = simulator.push_click_raw(foreign_click("broken")).await;
    assert_eq!(pushed.code, Some(200));
    assert_eq!(outcome.toast.unwrap().content, "failed");
    click_is_answered(&simulator, "fine").await;
    assert_eq!(simulator.replies(), 2);
    no_violations(&simulator);
}

fn split(count: usize, order: FragmentOrder, flaw: Option<Flaw>) -> Fault {
    Fault::Fragments(Fragments { count, order, flaw })
}

#[tokio::test]
async fn split_pushes_arrive_once_whole_or_not_at_all() {
    let patient = start().await;
    let hasty = start_with(|options| options.answer_limit = Duration::from_millis(50)).await;
    let receiving = |simulator: &Simulator| {
        let (sender, receiver) = mpsc::unbounded_channel();
        let client = Client::start(dialer(simulator), move |delivery| {
            let _ = sender.send(String::from_utf8(delivery.payload.to_vec()).unwrap());
            async { PushAnswer::Show(SHOWN.to_vec()) }
        });
        (client, receiver)
    };
    let (_kept, mut whole) = receiving(&patient);
    next_connection(&patient, 0).await;
    let mut replies = 0;
    for fault in [
        split(3, FragmentOrder::InOrder, None),
        split(3, FragmentOrder::Reversed, None),
        split(40, FragmentOrder::Shuffled, None),
        split(3, FragmentOrder::Reversed, Some(Flaw::DuplicateBefore)),
        split(3, FragmentOrder::InOrder, Some(Flaw::DuplicateAfter)),
        split(3, FragmentOrder::Reversed, Some(Flaw::EmptyPart)),
    ] {
        patient.set_fault(Armed::once(fault.clone())).unwrap();
        let body = foreign_click("中文，表情🙂，正好切在字里");
        let (pushed, _) = patient.push_click_raw(body.clone()).await;
        assert_eq!(pushed.code, Some(200), "{fault:?}");
        assert_eq!(whole.recv().await.unwrap(), body, "{fault:?}");
        replies += 1;
    }
    click_is_answered(&patient, "last").await;
    assert!(whole.recv().await.unwrap().contains("last"));
    assert!(whole.try_recv().is_err(), "nothing is handed out twice");
    assert_eq!(patient.replies(), replies + 1);
    no_violations(&patient);

    let (client, mut whole) = receiving(&hasty);
    let first = next_connection(&hasty, 0).await;
    for flaw in [
        Flaw::Missing,
        Flaw::HugeSum,
        Flaw::SeqBeyondSum,
        Flaw::NotNumeric,
        Flaw::ChangingSum,
    ] {
        hasty
            .set_fault(Armed::once(split(3, FragmentOrder::InOrder, Some(flaw))))
            .unwrap();
        let (pushed, _) = hasty.push_click_raw(foreign_click("flawed")).await;
        assert_eq!(pushed.code, None, "{flaw:?}");
        hasty.push_click_raw(foreign_click("sound")).await;
        let came = within("the sound push", whole.recv()).await.unwrap();
        assert!(came.contains("sound"), "{flaw:?}: {came}");
    }
    assert_eq!(hasty.connections()[0].id, first.id);
    assert_eq!(client.connects(), 1);
}

#[tokio::test]
async fn an_event_right_behind_the_handshake_is_never_lost() {
    let simulator = start().await;
    for round in 0..30 {
        let payload = json!({"round": round});
        let fault = Fault::EventBehindHandshake {
            payload: Some(payload.clone()),
        };
        simulator.set_fault(Armed::once(fault)).unwrap();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let client = Client::start(dialer(&simulator), move |delivery| {
            let _ = sender.send(delivery.payload);
            async { PushAnswer::Done }
        });
        let came = within("the first event", receiver.recv()).await.unwrap();
        assert_eq!(&came[..], payload.to_string().as_bytes());
        let answered = simulator.wait_for(LIMIT, |s| (s.replies() > round).then_some(()));
        assert!(answered.await.is_some(), "round {round}");
        client.stopped().await;
    }
    no_violations(&simulator);
}

#[tokio::test]
async fn stopping_lets_a_running_handler_answer_and_says_goodbye() {
    let simulator = start().await;
    let (entered, mut inside) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let client = Client::start(dialer(&simulator), move |_| {
        let (entered, held) = (entered.clone(), Arc::clone(&held));
        async move {
            let _ = entered.send(());
            let _pass = held.acquire().await;
            PushAnswer::Show(SHOWN.to_vec())
        }
    });
    next_connection(&simulator, 0).await;
    let stopping = async {
        within("the handler", inside.recv()).await.unwrap();
        client.stop.cancel();
        gate.add_permits(1);
        client.stopped().await;
    };
    let ((pushed, _), ()) = tokio::join!(simulator.push_click_raw(foreign_click("e")), stopping);
    assert_eq!(pushed.code, Some(200));
    assert!(simulator.wait_connections(0, LIMIT).await);
    let down = simulator.history(0);
    let down = down
        .iter()
        .find(|entry| entry.kind == "connection_down")
        .unwrap();
    let why = down.detail["why"].as_str().unwrap();
    assert!(why.starts_with("closed by the client with 1000"), "{why}");
    no_violations(&simulator);
}
