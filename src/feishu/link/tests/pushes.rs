//! What a push is answered with: once, in time, and with its own frame.

use super::*;
use crate::feishu::link::parked::ANSWER_WITHIN;

#[test]
fn a_reply_echoes_the_frame_and_appends_the_time() {
    let mut bench = Bench::up();
    let frame = push("card", "m", "1", "0", b"{}");
    let (ticket, payload) = delivered(&bench.receive(&frame));
    assert_eq!(&payload[..], b"{}");
    bench.now.mono += millis(12);
    assert!(
        bench
            .link
            .answer(ticket, &PushAnswer::Show(b"{\"a\":1}".to_vec()), bench.now)
    );
    let reply = sent(&bench.steps()).remove(0);
    assert_eq!(
        (reply.seq_id, reply.log_id, reply.service, reply.method),
        (7, 42, SERVICE, frame::DATA)
    );
    assert_eq!(reply.log_id_new.as_deref(), Some("new"));
    let mut expected = frame.headers.clone();
    expected.push(Header::new("biz_rt", "12"));
    assert_eq!(reply.headers, expected);
    assert_eq!(
        payload_text(&reply),
        r#"{"code":200,"data":"eyJhIjoxfQ=="}"#
    );
}

#[test]
fn every_push_is_answered_once() {
    let mut bench = Bench::up();
    let (ticket, _) = delivered(&bench.receive(&push("event", "m", "1", "0", b"{}")));
    assert!(bench.link.answer(ticket, &PushAnswer::Done, bench.now));
    assert!(!bench.link.answer(ticket, &PushAnswer::Done, bench.now));
    let frames = sent(&bench.steps());
    assert_eq!(frames.len(), 1);
    assert_eq!(payload_text(&frames[0]), r#"{"code":200}"#);
    let (ticket, _) = delivered(&bench.receive(&push("event", "n", "1", "0", b"{}")));
    assert!(bench.link.answer(ticket, &PushAnswer::Again, bench.now));
    assert_eq!(payload_text(&sent(&bench.steps())[0]), r#"{"code":500}"#);
}

#[test]
fn a_slow_handler_is_answered_for_in_time_and_its_own_answer_is_dropped() {
    let mut bench = Bench::up();
    let (ticket, _) = delivered(&bench.receive(&push("event", "m", "1", "0", b"{}")));
    let seen = bench.pass(secs(3));
    let (at, _) = seen
        .iter()
        .find(|(_, step)| matches!(step, LinkStep::Send(_)))
        .unwrap();
    assert_eq!(*at, ANSWER_WITHIN);
    let steps: Vec<_> = seen.into_iter().map(|(_, step)| step).collect();
    let frames = sent(&steps);
    assert_eq!(frames.len(), 1);
    assert_eq!(
        payload_text(&frames[0]),
        r#"{"code":200,"data":"bGF0ZQ=="}"#
    );
    assert!(!bench.link.answer(ticket, &PushAnswer::Done, bench.now));
    assert_eq!(bench.steps(), []);
}

#[test]
fn an_unknown_type_is_acknowledged_and_headers_may_be_missing() {
    let mut bench = Bench::up();
    let steps = bench.receive(&push("foo", "m", "1", "0", b"{}"));
    assert_eq!(payload_text(&sent(&steps)[0]), r#"{"code":200}"#);
    let mut bare = push("event", "m", "1", "0", b"x");
    bare.headers.retain(|h| h.key == "type");
    let (_, payload) = delivered(&bench.receive(&bare));
    assert_eq!(&payload[..], b"x");
}

#[test]
fn split_pushes_are_answered_once_with_the_last_parts_headers() {
    for order in [[0, 1], [1, 0]] {
        let mut bench = Bench::up();
        let parts: [&[u8]; 2] = [b"{\"k\":\"\xe4", b"\xb8\xad\"}"];
        let frames: Vec<_> = parts
            .iter()
            .zip(["0", "1"])
            .map(|(part, seq)| push("event", "m2", "2", seq, part))
            .collect();
        assert_eq!(bench.receive(&frames[order[0]]), []);
        let (ticket, payload) = delivered(&bench.receive(&frames[order[1]]));
        assert_eq!(&payload[..], "{\"k\":\"中\"}".as_bytes());
        assert_eq!(bench.receive(&frames[0]), [], "a part that comes again");
        bench.link.answer(ticket, &PushAnswer::Done, bench.now);
        let reply = sent(&bench.steps()).remove(0);
        assert_eq!(reply.header("seq"), frames[order[1]].header("seq"));
    }
}

#[test]
fn impossible_parts_are_dropped_without_a_reply() {
    let mut bench = Bench::up();
    for (sum, seq) in [
        ("0", "0"),
        ("2", "2"),
        ("1000000000", "1"),
        ("x", "0"),
        ("2", "-1"),
        ("1", "5"),
    ] {
        let steps = bench.receive(&push("event", "m", sum, seq, b"{}"));
        assert!(
            matches!(steps[..], [LinkStep::Note(Note::BadChunk(_))]),
            "{sum}/{seq}: {steps:?}"
        );
    }
    let seen = bench.pass(secs(5));
    assert!(!seen.iter().any(|(_, s)| matches!(s, LinkStep::Send(_))));
}

#[test]
fn garbage_is_dropped_and_the_connection_stays_up() {
    let mut bench = Bench::up();
    let full = Frame::ping(SERVICE).to_bytes();
    let mut garbage: Vec<Bytes> = (1..full.len()).map(|n| full.slice(..n)).collect();
    garbage.extend([
        Bytes::new(),
        Bytes::from_static(b"\xff\xff"),
        Bytes::from_static(b"{}"),
    ]);
    for bytes in garbage {
        bench
            .link
            .received(Incoming::Binary(bytes.clone()), bench.now);
        let steps = bench.steps();
        assert!(
            steps.iter().all(|s| matches!(s, LinkStep::Note(_))),
            "{bytes:?}: {steps:?}"
        );
    }
    assert!(matches!(bench.link.phase(), Phase::Up { .. }));
}

#[test]
fn too_many_unanswered_pushes_are_sent_back() {
    let mut bench = Bench::up();
    for i in 0..1_024 {
        delivered(&bench.receive(&push("event", &format!("m{i}"), "1", "0", b"{}")));
    }
    let steps = bench.receive(&push("event", "one more", "1", "0", b"{}"));
    assert_eq!(payload_text(&sent(&steps)[0]), r#"{"code":500}"#);
    assert_eq!(bench.link.unanswered(), 1_024);
}

#[test]
fn an_answer_given_while_offline_goes_out_on_the_next_connection_if_still_in_time() {
    for (outage, expected) in [(secs(1), 1), (secs(4), 0)] {
        let mut bench = Bench::up();
        let (ticket, _) = delivered(&bench.receive(&push("event", "m", "1", "0", b"{}")));
        bench.link.lost(Text::new("closed", "closed"), bench.now);
        assert!(bench.link.answer(ticket, &PushAnswer::Done, bench.now));
        assert_eq!(bench.steps(), []);
        bench.pass(outage);
        bench.dialed();
        let replies = sent(&bench.steps())
            .into_iter()
            .filter(|frame| frame.method == frame::DATA)
            .count();
        assert_eq!(replies, expected);
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic_and_never_reply(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bench = Bench::up();
        bench.link.received(Incoming::Binary(bytes.into()), bench.now);
        for step in bench.steps() {
            prop_assert!(matches!(step, LinkStep::Note(_) | LinkStep::Deliver(_)), "{:?}", step);
        }
    }

    #[test]
    fn whatever_happens_each_push_gets_at_most_one_reply(
        actions in prop::collection::vec((0_u8..6, 0_usize..20), 1..120),
    ) {
        let mut bench = Bench::up();
        let mut open = Vec::new();
        let mut replies = std::collections::HashMap::new();
        let mut pushed = 0;
        for (action, n) in actions {
            let mut steps = Vec::new();
            match action {
                0 => {
                    pushed += 1;
                    steps = bench.receive(&push("event", &format!("m{pushed}"), "1", "0", b"{}"));
                }
                1 if !open.is_empty() => {
                    let ticket = open[n % open.len()];
                    bench.link.answer(ticket, &PushAnswer::Done, bench.now);
                }
                2 => steps = bench.pass(millis(200) * u32::try_from(n).unwrap()).into_iter().map(|(_, s)| s).collect(),
                3 => bench.link.lost(Text::new("closed", "closed"), bench.now),
                4 => bench.now.wall += secs(1) * u32::try_from(n).unwrap(),
                _ => {
                    if !matches!(bench.link.phase(), Phase::Up { .. }) {
                        bench.dialed();
                    }
                }
            }
            steps.extend(bench.steps());
            for step in &steps {
                if let LinkStep::Deliver(delivery) = step {
                    open.push(delivery.ticket);
                }
            }
            for frame in sent(&steps) {
                if frame.method == frame::DATA {
                    let id = frame.header("message_id").unwrap().to_owned();
                    *replies.entry(id).or_insert(0) += 1;
                }
            }
        }
        prop_assert!(replies.values().all(|&n| n == 1), "{:?}", replies);
    }
}
