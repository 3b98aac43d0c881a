//! The world outside: a Feishu that pushes, repeats, splits and loses, a line
//! that breaks or falls silent, a machine that sleeps, a daemon that crashes.

use nod::for_tests::approvals::{Approvals, Past};
use nod::for_tests::feishu::frame::{DATA, Frame, Header};
use nod::for_tests::feishu::link::{DialRetry, Link, ServerSettings};
use nod::for_tests::text::Text;
use prost::bytes::Bytes;
use serde_json::{Value, json};
use std::time::Duration;

use super::task::Written;
use super::world::{Event, GRACE, TAP_LIMIT, Tap, World, id};

/// Texts are numbered from here, taps from zero.
pub(super) const FIRST_TEXT: u64 = 1_000_000;
/// When a text that nobody took comes again.
const REPUSH: [u64; 3] = [15_000, 60_000, 90_000];

impl World {
    /// A person taps.
    pub(super) fn tap(&mut self, request: u64) {
        let event = u64::try_from(self.taps.len()).expect("few");
        let action = if self.dice(2) == 0 { "allow" } else { "deny" };
        let at = self.mono;
        let tap = Tap {
            request,
            action,
            at,
            told: None,
        };
        self.taps.insert(event, tap);
        self.card_tapped(event, request);
        let body = json!({"event": event, "request": request, "action": action});
        if !self.push("card", event, &body) {
            self.card_tap_swallowed(event);
        }
    }

    /// A person writes, and Feishu pushes it until it is taken.
    pub(super) fn write(&mut self) {
        let event = FIRST_TEXT + u64::try_from(self.task.texts.len()).expect("few");
        self.task.texts.insert(event, Written::default());
        if !self.is_calm() {
            let pause = 5_000 + self.dice(40_000);
            self.later(pause, Event::Write);
        }
        self.deliver_text(event, 0);
    }

    pub(super) fn deliver_text(&mut self, event: u64, attempt: usize) {
        if self.task.texts[&event].taken {
            return;
        }
        if attempt > 0 {
            self.count("texts repeated by Feishu");
        }
        self.push("event", event, &json!({"event": event}));
        if let Some(wait) = REPUSH.get(attempt) {
            self.later(*wait, Event::TextAgain(event, attempt + 1));
        }
    }

    /// Down the line, whole or in parts, once or twice; false when Feishu itself
    /// swallowed a part of each.
    fn push(&mut self, kind: &str, event: u64, body: &Value) -> bool {
        let Some((line, false)) = self.line else {
            return true;
        };
        let mut is_whole = false;
        let body = body.to_string();
        let copies = if self.dice(5) == 0 { 2 } else { 1 };
        for _ in 0..copies {
            self.pushes += 1;
            let push = self.pushes;
            let parts = 1 + self.dice(4);
            let mut swallowed = false;
            for (seq, part) in split(body.as_bytes(), parts).into_iter().enumerate() {
                if self.dice(60) == 0 && !self.is_calm() {
                    swallowed = true;
                    continue;
                }
                let frame = Frame {
                    seq_id: event + 1,
                    log_id: push,
                    service: 7,
                    method: DATA,
                    headers: vec![
                        Header::new("type", kind),
                        Header::new("message_id", format!("m{push}")),
                        Header::new("sum", parts.to_string()),
                        Header::new("seq", seq.to_string()),
                    ],
                    payload: Some(part),
                    ..Frame::default()
                };
                let delay = 1 + self.dice(200);
                self.later(delay, Event::AtNod(line, frame.to_bytes()));
            }
            is_whole |= !swallowed;
        }
        is_whole
    }

    pub(super) fn feishu_reads(&mut self, line: u64, bytes: Bytes) {
        if self.line != Some((line, false)) {
            return;
        }
        let frame = Frame::parse(bytes).expect("nod writes frames");
        if frame.method != DATA {
            let pong = Frame {
                service: 7,
                headers: vec![Header::new("type", "pong")],
                payload: Some(Bytes::from_static(br#"{"PingInterval":120}"#)),
                ..Frame::default()
            };
            return self.later(5, Event::AtNod(line, pong.to_bytes()));
        }
        let (event, push) = (frame.seq_id - 1, frame.log_id);
        assert!(
            self.replied.insert(push),
            "seed {}: one push was answered twice",
            self.seed
        );
        let payload: Value = serde_json::from_slice(frame.payload.as_deref().unwrap_or_default())
            .expect("a reply is JSON");
        if let Some(text) = self.task.texts.get_mut(&event) {
            text.taken |= payload["code"] == 200;
            return;
        }
        let shown = payload["data"].as_str().expect("something to show");
        let shown = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, shown);
        let shown = String::from_utf8(shown.expect("base64")).expect("UTF-8");
        self.card_tap_over(event);
        let tap = self.taps.get_mut(&event).expect("a tap of ours");
        if self.mono - tap.at <= TAP_LIMIT {
            tap.told = Some(shown);
        }
    }

    pub(super) fn dialed(&mut self, life: u64) {
        if life != self.life {
            return;
        }
        let now = self.now();
        let fails = !self.is_calm() && self.dice(4) == 0;
        if fails {
            let slowly = self.dice(8) == 0;
            let retry = if slowly {
                DialRetry::Slowly(Duration::from_secs(60))
            } else {
                DialRetry::Soon
            };
            self.link.dial_failed(retry, Text::new("坏", "bad"), now);
            return;
        }
        assert!(self.line.is_none(), "seed {}: two lines at once", self.seed);
        self.lines += 1;
        self.count("connections");
        self.line = Some((self.lines, false));
        self.link.dialed(7, ServerSettings::default(), now);
    }

    pub(super) fn trouble(&mut self) {
        if self.is_calm() {
            return;
        }
        match self.dice(8) {
            0..3 => {
                if let Some((_, false)) = self.line {
                    self.line = None;
                    self.silent_since = None;
                    self.link.lost(Text::new("断", "cut"), self.now());
                }
            }
            3 => {
                if let Some((line, false)) = self.line {
                    self.line = Some((line, true));
                    self.count("half-open lines");
                    self.silent_since = Some((self.mono, true));
                }
            }
            4 => {
                if let Some((line, false)) = self.line {
                    let noise = Bytes::from(vec![0xff; 3]);
                    self.later(1, Event::AtNod(line, noise));
                }
            }
            5 => {
                self.slept += 1_000 * self.dice(40);
                self.count("sleeps");
                // Whoever wakes asks the peer anew, and gives it its time.
                if let Some((since, _)) = &mut self.silent_since {
                    *since = self.mono;
                }
            }
            6 => self.crash(),
            _ => {}
        }
        let pause = 500 + self.dice(12_000);
        self.later(pause, Event::Trouble);
    }

    fn crash(&mut self) {
        self.count("crashes");
        self.life += 1;
        self.line = None;
        self.silent_since = None;
        let seed = self.seed ^ self.life;
        self.link = Link::new(self.now(), seed, b"overdue".to_vec());
        self.approvals = Approvals::new();
        let dropped = self.task_restarts();
        for (n, past) in &self.disk.past {
            let digest = self.hooks[n].request.digest;
            let past = Past {
                ending: past.ending.clone(),
                at: past.at,
                digest,
                token: past.token,
            };
            self.approvals.recall(id(*n), past);
        }
        let pending: Vec<_> = self.disk.pending.values().cloned().collect();
        self.approvals.restore(pending, self.millis(), GRACE);
        self.cards_restart(&dropped);
        let numbers: Vec<u64> = self.hooks.keys().copied().collect();
        for n in numbers {
            let hook = self.hooks.get_mut(&n).expect("there");
            if hook.attachment.take().is_some() {
                let back = 50 + self.dice(4_000);
                self.later(back, Event::HookBack(n));
            }
        }
    }
}

fn split(body: &[u8], parts: u64) -> Vec<Bytes> {
    let parts = usize::try_from(parts).expect("few");
    let size = body.len().div_ceil(parts);
    let pieces = body.chunks(size).map(Bytes::copy_from_slice);
    pieces.collect()
}
