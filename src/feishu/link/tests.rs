//! A link with a clock of the test's own, and the frames its peer would send.

mod liveness;
mod pushes;
mod redial;

use super::*;
use crate::feishu::frame::Header;
use crate::text::Lang;
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
        assert_eq!(bench.steps(), [LinkStep::Dial]);
        bench.dialed();
        assert_eq!(bench.steps(), [ping()]);
        bench
    }

    fn dialed(&mut self) {
        self.link
            .dialed(SERVICE, ServerSettings::default(), self.now);
    }

    fn steps(&mut self) -> Vec<LinkStep> {
        std::iter::from_fn(|| self.link.step()).collect()
    }

    /// Lets time pass in the ticks the link asks for; returns each step with
    /// the time since the start of this call.
    fn pass(&mut self, span: Duration) -> Vec<(Duration, LinkStep)> {
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

    fn receive(&mut self, frame: &Frame) -> Vec<LinkStep> {
        self.link
            .received(Incoming::Binary(frame.to_bytes()), self.now);
        self.steps()
    }

    /// Hears something every second, as a busy peer would have it.
    fn pass_alive(&mut self, span: Duration) -> Vec<(Duration, LinkStep)> {
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

fn ping() -> LinkStep {
    LinkStep::Send(Frame::ping(SERVICE).to_bytes())
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

fn delivered(steps: &[LinkStep]) -> (PushTicket, Bytes) {
    match steps {
        [LinkStep::Deliver(delivery)] => (delivery.ticket, delivery.payload.clone()),
        other => panic!("expected one delivery, got {other:?}"),
    }
}

fn sent(steps: &[LinkStep]) -> Vec<Frame> {
    steps
        .iter()
        .filter_map(|step| match step {
            LinkStep::Send(bytes) => Some(Frame::parse(bytes.clone()).unwrap()),
            _ => None,
        })
        .collect()
}

fn payload_text(frame: &Frame) -> String {
    String::from_utf8(frame.payload().to_vec()).unwrap()
}
