//! Data frames that wait for our answer. Each is answered once: by the handler
//! in time, or by a stand-in when the handler takes too long.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::bytes::Bytes;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::feishu::frame::{Frame, Header};

/// Feishu gives a click three seconds end to end; this leaves half a second
/// for the way there and back.
pub const ANSWER_WITHIN: Duration = Duration::from_millis(2_500);
/// Past this age an answer cannot reach the person any more.
const WORTHLESS_AFTER: Duration = Duration::from_secs(3);
const MAX_PARKED: usize = 1_024;

/// Names one delivered push until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PushTicket(u64);

/// The answer to one push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushAnswer {
    /// Taken, with nothing to show.
    Done,
    /// Taken; this JSON (a toast, a card) goes back to the person.
    Show(Vec<u8>),
    /// Not taken: Feishu shall push it again.
    Again,
}

#[derive(Debug, Default)]
pub(super) struct Parked {
    waiting: BTreeMap<PushTicket, (Frame, Instant)>,
    /// Answers given while no connection was up.
    unsent: Vec<(Bytes, Instant)>,
    next: u64,
}

impl Parked {
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_PARKED
    }

    /// Keeps the frame until its answer.
    pub(super) fn park(&mut self, mut frame: Frame, now: Instant) -> PushTicket {
        frame.payload = None;
        self.next += 1;
        let ticket = PushTicket(self.next);
        self.waiting.insert(ticket, (frame, now));
        ticket
    }

    /// The reply frame, unless this ticket was answered before.
    pub(super) fn answer(
        &mut self,
        ticket: PushTicket,
        answer: &PushAnswer,
        now: Instant,
    ) -> Option<Bytes> {
        let (frame, received) = self.waiting.remove(&ticket)?;
        Some(reply(
            frame,
            answer,
            now.saturating_duration_since(received),
        ))
    }

    /// The first push whose time is over, taken out with its age.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<(Frame, Duration)> {
        let entry = self.waiting.first_entry()?;
        let age = now.saturating_duration_since(entry.get().1);
        (age >= ANSWER_WITHIN).then(|| (entry.remove().0, age))
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let (_, received) = self.waiting.first_key_value()?.1;
        Some(*received + ANSWER_WITHIN)
    }

    pub(super) fn keep_for_next_connection(&mut self, bytes: Bytes, now: Instant) {
        if self.unsent.len() < MAX_PARKED {
            self.unsent.push((bytes, now + WORTHLESS_AFTER));
        }
    }

    /// What a fresh connection can still deliver in time.
    pub(super) fn take_unsent(&mut self, now: Instant) -> impl Iterator<Item = Bytes> {
        std::mem::take(&mut self.unsent)
            .into_iter()
            .filter(move |(_, until)| now < *until)
            .map(|(bytes, _)| bytes)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// The received frame sent back: same ids and headers, the handler's time
/// appended, the payload replaced.
pub(super) fn reply(mut frame: Frame, answer: &PushAnswer, took: Duration) -> Bytes {
    frame
        .headers
        .push(Header::new("biz_rt", took.as_millis().to_string()));
    frame.payload = Some(match answer {
        PushAnswer::Done => Bytes::from_static(br#"{"code":200}"#),
        PushAnswer::Again => Bytes::from_static(br#"{"code":500}"#),
        PushAnswer::Show(json) => {
            let mut payload = String::with_capacity(json.len() * 4 / 3 + 32);
            payload.push_str(r#"{"code":200,"data":""#);
            STANDARD.encode_string(json, &mut payload);
            payload.push_str(r#""}"#);
            Bytes::from(payload)
        }
    });
    frame.to_bytes()
}
