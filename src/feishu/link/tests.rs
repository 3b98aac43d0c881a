use super::*;
use crate::feishu::frame::Header;
use crate::wording::Lang;
use proptest::prelude::*;

const SERVICE: i32 = 33_554_678;

/// A link with a clock that only the test moves.
struct Bench {
    link: Link,
    now: Now,
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

impl Bench {
    fn new() -> Self {
        let now = Now {
            mono: Instant::now(),
            wall: SystemTime::UNIX_EPOCH + secs(1_800_000_000),
        };
        Self {
            link: Link::new(now, 7, b"late".to_vec()),
            now,
        }
    }

    fn up() -> Self {
        let mut bench = Self::new();
        assert_eq!(bench.steps(), [Step::Dial]);
        bench.dialed();
        assert_eq!(bench.steps(), [ping()]);
        bench
    }

    fn dialed(&mut self) {
        self.link
            .dialed(SERVICE, ServerSettings::default(), self.now);
    }

    fn steps(&mut self) -> Vec<Step> {
        std::iter::from_fn(|| self.link.step()).collect()
    }

    /// Lets time pass in the ticks the link asks for; returns each step with
    /// the time since the start of this call.
    fn pass(&mut self, span: Duration) -> Vec<(Duration, Step)> {
        let start = self.now.mono;
        let mut seen = Vec::new();
        while self.now.mono < start + span {
            let due = self.link.next_tick().min(start + span);
            let jump = due.saturating_duration_since(self.now.mono);
            self.now.mono += jump;
            self.now.wall += jump;
            self.link.tick(self.now);
            let at = self.now.mono - start;
            seen.extend(self.steps().into_iter().map(|step| (at, step)));
        }
        seen
    }

    fn receive(&mut self, frame: &Frame) -> Vec<Step> {
        self.link
            .received(Incoming::Binary(frame.to_bytes()), self.now);
        self.steps()
    }

    /// Hears something every second, as a busy peer would have it.
    fn pass_alive(&mut self, span: Duration) -> Vec<(Duration, Step)> {
        let mut seen = Vec::new();
        for second in 0..span.as_secs() {
            self.link.received(Incoming::Pong, self.now);
            seen.extend(
                self.pass(secs(1))
                    .into_iter()
                    .map(|(at, step)| (secs(second) + at, step)),
            );
        }
        seen
    }
}

fn ping() -> Step {
    Step::Send(Frame::ping(SERVICE).to_bytes())
}

fn pong(payload: &str) -> Frame {
    Frame {
        service: SERVICE,
        headers: vec![Header::new("type", "pong")],
        payload: (!payload.is_empty()).then(|| Bytes::copy_from_slice(payload.as_bytes())),
        ..Frame::default()
    }
}

fn push(kind: &str, id: &str, sum: &str, seq: &str, payload: &[u8]) -> Frame {
    Frame {
        seq_id: 7,
        log_id: 42,
        service: SERVICE,
        method: frame::DATA,
        headers: vec![
            Header::new("type", kind),
            Header::new("message_id", id),
            Header::new("sum", sum),
            Header::new("seq", seq),
            Header::new("trace_id", "t"),
            Header::new("instance_id", "i"),
        ],
        payload: Some(Bytes::copy_from_slice(payload)),
        log_id_new: Some("new".to_owned()),
        ..Frame::default()
    }
}

fn delivered(steps: &[Step]) -> (Ticket, Bytes) {
    match steps {
        [Step::Deliver(delivery)] => (delivery.ticket, delivery.payload.clone()),
        other => panic!("expected one delivery, got {other:?}"),
    }
}

fn sent(steps: &[Step]) -> Vec<Frame> {
    steps
        .iter()
        .filter_map(|step| match step {
            Step::Send(bytes) => Some(Frame::parse(bytes.clone()).unwrap()),
            _ => None,
        })
        .collect()
}

fn payload_text(frame: &Frame) -> String {
    String::from_utf8(frame.payload().to_vec()).unwrap()
}

#[test]
fn pings_follow_the_servers_interval_and_its_changes() {
    let mut bench = Bench::up();
    let pings = |seen: Vec<(Duration, Step)>| -> Vec<u64> {
        seen.into_iter()
            .filter(|(_, step)| *step == ping())
            .map(|(at, _)| at.as_secs())
            .collect()
    };
    assert_eq!(pings(bench.pass_alive(secs(250))), [120, 240]);
    bench.receive(&pong(r#"{"PingInterval":10}"#));
    assert_eq!(pings(bench.pass_alive(secs(25))), [1, 11, 21]);
}

#[test]
fn a_pong_without_usable_settings_changes_nothing() {
    for payload in ["", "{}", "not json", "[]", r#"{"PingInterval":0}"#] {
        let mut bench = Bench::up();
        bench.receive(&pong(payload));
        let pings = bench
            .pass_alive(secs(125))
            .into_iter()
            .filter(|(_, step)| *step == ping())
            .count();
        assert_eq!(pings, 1, "{payload}");
    }
}

#[test]
fn a_silent_peer_is_dead_within_twenty_seconds_idle_and_six_hot() {
    for (hot, limit) in [(false, 20), (true, 6)] {
        let mut bench = Bench::up();
        bench.link.set_hot(hot, bench.now);
        let seen = bench.pass(secs(60));
        let hang_up = seen
            .iter()
            .find(|(_, step)| *step == Step::HangUp)
            .expect("the peer must be given up");
        assert_eq!(hang_up.0, secs(limit), "hot: {hot}");
        let probes = seen
            .iter()
            .take_while(|(_, step)| *step != Step::HangUp)
            .filter(|(_, step)| *step == Step::Ping)
            .count();
        assert_eq!(probes, 2, "it is asked twice first");
        assert!(seen.iter().any(|(_, step)| *step == Step::Dial));
    }
}

#[test]
fn one_lost_probe_does_not_cost_the_connection() {
    let mut bench = Bench::up();
    let seen = bench.pass(secs(14));
    assert_eq!(seen, [(secs(10), Step::Ping)]);
    bench.link.received(Incoming::Pong, bench.now);
    assert_eq!(bench.pass(secs(9)), []);
    assert!(matches!(bench.link.phase(), Phase::Up { .. }));
}

#[test]
fn any_inbound_frame_is_life() {
    let frames: [Incoming; 6] = [
        Incoming::Pong,
        Incoming::Ping,
        Incoming::Text,
        Incoming::Binary(Bytes::from_static(b"\xff\xff")),
        Incoming::Binary(pong("{}").to_bytes()),
        Incoming::Binary(
            Frame {
                method: 2,
                ..Frame::default()
            }
            .to_bytes(),
        ),
    ];
    for frame in frames {
        let mut bench = Bench::up();
        for _ in 0..10 {
            bench.pass(secs(14));
            bench.link.received(frame.clone(), bench.now);
        }
        assert!(
            matches!(bench.link.phase(), Phase::Up { .. }),
            "{frame:?} was not taken for life"
        );
    }
}

#[test]
fn a_server_ping_is_not_answered() {
    let mut bench = Bench::up();
    let server_ping = Frame::ping(SERVICE);
    assert_eq!(bench.receive(&server_ping), []);
}

#[test]
fn after_sleep_the_peer_is_asked_at_once_and_given_up_in_four_seconds() {
    let mut bench = Bench::up();
    bench.pass_alive(secs(3));
    bench.now.wall += secs(600);
    let seen = bench.pass(secs(8));
    let at = |wanted: Step| {
        seen.iter()
            .find(|(_, step)| *step == wanted)
            .map(|(at, _)| *at)
    };
    assert!(at(Step::Ping).unwrap() <= secs(1), "{seen:?}");
    assert!(at(Step::HangUp).unwrap() <= secs(5), "{seen:?}");
    assert!(at(Step::Dial).unwrap() <= secs(6), "{seen:?}");
}

#[test]
fn a_peer_that_answers_after_sleep_is_kept() {
    let mut bench = Bench::up();
    bench.now.wall += secs(600);
    bench.pass(secs(1));
    bench.link.received(Incoming::Pong, bench.now);
    assert_eq!(bench.pass(secs(9)), []);
}

#[test]
fn sleep_ends_any_wait_for_the_next_dial() {
    let mut bench = Bench::new();
    bench.steps();
    bench.link.dial_failed(
        Retry::Slowly(secs(300)),
        Text::new("没有此应用", "no such app"),
        bench.now,
    );
    bench.now.wall += secs(3_600);
    let seen = bench.pass(secs(1));
    assert!(seen.iter().any(|(_, step)| *step == Step::Dial), "{seen:?}");
}

#[test]
fn a_clock_that_jumps_back_is_no_sleep() {
    let mut bench = Bench::up();
    bench.now.wall -= secs(3_600);
    assert_eq!(bench.pass(secs(2)), []);
}

#[test]
fn the_first_redial_is_immediate_and_later_ones_back_off() {
    let mut bench = Bench::up();
    bench.pass_alive(secs(60));
    bench.link.lost(Text::new("closed", "closed"), bench.now);
    let seen = bench.pass(millis(250));
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].1, Step::Dial);
    let mut waits = Vec::new();
    for _ in 0..9 {
        bench
            .link
            .dial_failed(Retry::Soon, Text::new("refused", "refused"), bench.now);
        let start = bench.now.mono;
        while !bench.pass(millis(10)).iter().any(|(_, s)| *s == Step::Dial) {}
        waits.push((bench.now.mono - start).as_secs_f64());
    }
    assert!(waits.windows(2).all(|w| w[1] > w[0] * 0.6), "{waits:?}");
    assert!(
        waits[0] < 1.3 && *waits.last().unwrap() <= 73.0,
        "{waits:?}"
    );
}

#[test]
fn connections_that_die_young_back_off_too() {
    let mut bench = Bench::up();
    let mut total = Duration::ZERO;
    for _ in 0..10 {
        bench.link.lost(Text::new("closed", "closed"), bench.now);
        let start = bench.now.mono;
        while !bench.pass(millis(50)).iter().any(|(_, s)| *s == Step::Dial) {}
        total += bench.now.mono - start;
        bench.dialed();
        bench.steps();
    }
    assert!(total > secs(100), "{total:?}");
}

#[test]
fn a_fatal_refusal_is_shown_and_retried_slowly_for_ever() {
    let mut bench = Bench::new();
    bench.steps();
    for _ in 0..5 {
        bench.link.dial_failed(
            Retry::Slowly(secs(300)),
            Text::new("密钥不对", "the app secret is wrong"),
            bench.now,
        );
        assert!(
            matches!(bench.link.phase(), Phase::Degraded { why, .. } if why.get(Lang::En).contains("secret"))
        );
        let seen = bench.pass(secs(331));
        let dials: Vec<_> = seen.iter().filter(|(_, s)| *s == Step::Dial).collect();
        assert_eq!(dials.len(), 1);
        assert!(dials[0].0 >= secs(270));
    }
}

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
            .answer(ticket, &Answer::Show(b"{\"a\":1}".to_vec()), bench.now)
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
    assert!(bench.link.answer(ticket, &Answer::Done, bench.now));
    assert!(!bench.link.answer(ticket, &Answer::Done, bench.now));
    let frames = sent(&bench.steps());
    assert_eq!(frames.len(), 1);
    assert_eq!(payload_text(&frames[0]), r#"{"code":200}"#);
    let (ticket, _) = delivered(&bench.receive(&push("event", "n", "1", "0", b"{}")));
    assert!(bench.link.answer(ticket, &Answer::Again, bench.now));
    assert_eq!(payload_text(&sent(&bench.steps())[0]), r#"{"code":500}"#);
}

#[test]
fn a_slow_handler_is_answered_for_in_time_and_its_own_answer_is_dropped() {
    let mut bench = Bench::up();
    let (ticket, _) = delivered(&bench.receive(&push("event", "m", "1", "0", b"{}")));
    let seen = bench.pass(secs(3));
    let (at, _) = seen
        .iter()
        .find(|(_, step)| matches!(step, Step::Send(_)))
        .unwrap();
    assert_eq!(*at, ANSWER_WITHIN);
    let steps: Vec<_> = seen.into_iter().map(|(_, step)| step).collect();
    let frames = sent(&steps);
    assert_eq!(frames.len(), 1);
    assert_eq!(
        payload_text(&frames[0]),
        r#"{"code":200,"data":"bGF0ZQ=="}"#
    );
    assert!(!bench.link.answer(ticket, &Answer::Done, bench.now));
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
        bench.link.answer(ticket, &Answer::Done, bench.now);
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
            matches!(steps[..], [Step::Note(Note::BadChunk(_))]),
            "{sum}/{seq}: {steps:?}"
        );
    }
    let seen = bench.pass(secs(5));
    assert!(!seen.iter().any(|(_, s)| matches!(s, Step::Send(_))));
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
            steps.iter().all(|s| matches!(s, Step::Note(_))),
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
        assert!(bench.link.answer(ticket, &Answer::Done, bench.now));
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

#[test]
fn an_idle_connection_is_renewed_after_four_hours_and_a_busy_one_is_not() {
    let renewed = |seen: &[(Duration, Step)]| seen.iter().any(|(_, s)| *s == Step::HangUp);
    let mut idle = Bench::up();
    assert!(renewed(&idle.pass_alive(secs(4 * 3_600 + 2))));
    let mut hot = Bench::up();
    hot.link.set_hot(true, hot.now);
    assert!(!renewed(&hot.pass_alive(secs(4 * 3_600 + 2))));
}

#[test]
fn a_hundred_drops_leave_one_peer_and_one_ping_timer() {
    let mut bench = Bench::up();
    for _ in 0..100 {
        bench.link.lost(Text::new("closed", "closed"), bench.now);
        while !bench.pass(secs(1)).iter().any(|(_, s)| *s == Step::Dial) {}
        bench.dialed();
        assert_eq!(bench.steps(), [ping()]);
        let seen = bench.pass_alive(secs(121));
        let pings = seen.iter().filter(|(_, s)| *s == ping()).count();
        assert_eq!(pings, 1);
        assert!(!seen.iter().any(|(_, s)| *s == Step::Dial));
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
            prop_assert!(matches!(step, Step::Note(_) | Step::Deliver(_)), "{:?}", step);
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
                    bench.link.answer(ticket, &Answer::Done, bench.now);
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
                if let Step::Deliver(delivery) = step {
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
