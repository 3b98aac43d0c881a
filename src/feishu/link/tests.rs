use super::*;
use crate::feishu::frame::Header;
use crate::wording::Lang;
use proptest::prelude::*;

mod pushes;

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
