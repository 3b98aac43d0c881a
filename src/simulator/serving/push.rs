//! Pushing a payload to one connection of an app and taking its reply: each
//! push is remembered, so that a wrong, late or second reply is noticed.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use prost::bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::answer::{self, ClickOutcome, ReplyFrame};
use super::line::LineOrder;
use super::shape;
use crate::feishu::frame::Frame;
use crate::simulator::control::bend;
use crate::simulator::control::faults::{At, Fault};
use crate::simulator::world::card::CardVersion;
use crate::simulator::world::core::Core;
use crate::simulator::world::options::SERVICE_ID;
use crate::simulator::world::state::messages::SettledClick;

/// How many pushes are remembered for late and second replies.
const MAX_REMEMBERED: usize = 20_000;

/// What may bend one event, each kind once.
const SHAPES: [fn(&Fault) -> bool; 3] = [
    |fault| matches!(fault, Fault::TypeHeader { .. }),
    |fault| matches!(fault, Fault::MissingHeaders { .. }),
    |fault| matches!(fault, Fault::Fragments(_)),
];

/// Where a reply goes besides the history.
#[derive(Debug)]
pub(in crate::simulator) enum Sink {
    None,
    One(oneshot::Sender<AnsweredPush>),
    /// The push's number and when its reply arrived.
    Many(mpsc::UnboundedSender<(u64, Instant, i64)>),
}

/// The click a push carries, so that its card settles with the reply.
#[derive(Debug, Clone)]
pub(in crate::simulator) struct ClickOf {
    pub(in crate::simulator) message_id: String,
    pub(in crate::simulator) event_id: String,
    pub(in crate::simulator) version: CardVersion,
}

#[derive(Debug, Clone)]
pub(in crate::simulator) struct AnsweredPush {
    pub(in crate::simulator) reply: ReplyFrame,
    pub(in crate::simulator) connection: u64,
    pub(in crate::simulator) at: Instant,
    pub(in crate::simulator) outcome: ClickOutcome,
    pub(in crate::simulator) settled: SettledClick,
}

#[derive(Debug)]
struct RememberedPush {
    /// Without payloads.
    frames: Vec<Frame>,
    app: usize,
    sent_at: Instant,
    answered: bool,
    sink: Sink,
    click: Option<ClickOf>,
}

#[derive(Debug, Default)]
pub(in crate::simulator) struct Pushes {
    last: u64,
    remembered: HashMap<u64, RememberedPush>,
    order: VecDeque<u64>,
    pub(in crate::simulator) answered: u64,
}

impl Pushes {
    fn remember(&mut self, number: u64, push: RememberedPush) {
        if self.order.len() >= MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.remembered.remove(&oldest);
        }
        self.order.push_back(number);
        self.remembered.insert(number, push);
    }

    /// Stops waiting; false if the reply has come meanwhile.
    pub(super) fn give_up(&mut self, number: u64) -> bool {
        match self.remembered.get_mut(&number) {
            Some(push) => matches!(std::mem::replace(&mut push.sink, Sink::None), Sink::One(_)),
            None => true,
        }
    }
}

/// A push whose frames are on their way.
#[derive(Debug)]
pub(in crate::simulator) struct Flight {
    pub(in crate::simulator) number: u64,
    pub(in crate::simulator) connection: u64,
    pub(in crate::simulator) sent_at: Instant,
}

/// How a push ended.
#[derive(Debug, Clone, Serialize)]
pub struct Pushed {
    pub event_id: String,
    /// The message a text became.
    pub message_id: Option<String>,
    /// `None` if the app had none.
    pub connection: Option<u64>,
    /// The code of the reply, if one came in time.
    pub code: Option<i64>,
    /// The decoded `data` of the reply.
    pub data: Option<Value>,
    pub latency_us: Option<u64>,
}

impl Pushed {
    pub(in crate::simulator) fn new(
        event_id: String,
        message_id: Option<String>,
        flight: Option<&Flight>,
        answered: Option<&AnsweredPush>,
    ) -> Self {
        let data = answered.and_then(|answered| answered.reply.data.clone());
        Self {
            event_id,
            message_id,
            connection: answered
                .map(|answered| answered.connection)
                .or(flight.map(|flight| flight.connection)),
            code: answered.map(|answered| answered.reply.code),
            data: data.and_then(Result::ok),
            latency_us: latency_us(flight, answered),
        }
    }

    pub fn acknowledged(&self) -> bool {
        self.code == Some(200)
    }
}

/// A frame's number is the tail of its message id and its `SeqID`.
fn message_id(core: &Core, number: u64) -> String {
    let uuid = core.world().mint.uuid();
    format!("{}-{number:012x}", &uuid[..23])
}

fn number_of(frame: &Frame) -> u64 {
    frame
        .header("message_id")
        .and_then(|id| id.rsplit('-').next())
        .and_then(|tail| u64::from_str_radix(tail, 16).ok())
        .unwrap_or(frame.seq_id)
}

impl Core {
    /// Builds the frames of a push and remembers it.
    pub(in crate::simulator) fn prepare(
        &self,
        app: usize,
        connection: u64,
        payload: &Bytes,
        sink: Sink,
        click: Option<ClickOf>,
    ) -> (u64, Vec<Bytes>) {
        let number = {
            let mut pushes = self.pushes();
            pushes.last += 1;
            pushes.last
        };
        let id = message_id(self, number);
        let now = self.now();
        let mut frames = {
            let mut world = self.world();
            let frame = shape::event(
                &mut world.mint,
                SERVICE_ID,
                number,
                &id,
                now,
                payload.clone(),
            );
            vec![frame]
        };
        for shapes in SHAPES {
            if let Some(fault) = self.take_fault(Some(connection), At::Now, shapes) {
                frames = shape::apply(&fault, frames, &mut self.world().mint);
            }
        }
        let bytes = frames.iter().map(Frame::to_bytes).collect();
        for frame in &mut frames {
            frame.payload = None;
        }
        self.pushes().remember(
            number,
            RememberedPush {
                frames,
                app,
                sent_at: Instant::now(),
                answered: false,
                sink,
                click,
            },
        );
        (number, bytes)
    }

    /// Sends a payload down one random connection of the app.
    pub(in crate::simulator) async fn push(
        &self,
        app: usize,
        payload: Bytes,
        sink: Sink,
        click: Option<ClickOf>,
    ) -> Option<Flight> {
        let (connection, orders) = {
            let mut world = self.world();
            self.lines()
                .choose(app, self.options.in_turn, &mut world.mint)?
        };
        let (number, bytes) = self.prepare(app, connection, &payload, sink, click);
        let is_duplicate = |fault: &Fault| *fault == Fault::Duplicate;
        let again = self
            .take_fault(Some(connection), At::Now, is_duplicate)
            .map(|_| self.prepare(app, connection, &payload, Sink::None, None));
        let is_swallow = |fault: &Fault| *fault == Fault::SwallowEvents;
        let swallowed = self
            .take_fault(Some(connection), At::Now, is_swallow)
            .is_some();
        let cut = self.take_fault(Some(connection), At::Event, Fault::cuts);
        self.record("event_out", Some(connection), || {
            json!({
                "push": number,
                "frames": bytes.len(),
                "swallowed": swallowed,
                "duplicated": again.is_some(),
                "payload": serde_json::from_slice::<Value>(&payload)
                    .unwrap_or_else(|_| json!(String::from_utf8_lossy(&payload))),
            })
        });
        let sent_at = Instant::now();
        if !swallowed {
            let mut all = bytes;
            all.extend(again.into_iter().flat_map(|(_, bytes)| bytes));
            if orders.send(LineOrder::Write(all, cut)).await.is_err() {
                self.record("event_lost", Some(connection), || json!({"push": number}));
            }
        }
        Some(Flight {
            number,
            connection,
            sent_at,
        })
    }

    /// Pushes and waits for the reply as long as Feishu does.
    pub(in crate::simulator) async fn push_and_wait(
        &self,
        app: usize,
        payload: Bytes,
        click: Option<ClickOf>,
    ) -> (Option<Flight>, Option<AnsweredPush>) {
        let (sender, mut receiver) = oneshot::channel();
        let Some(flight) = self.push(app, payload, Sink::One(sender), click).await else {
            return (None, None);
        };
        let limit = self.options.answer_limit;
        let answered = match tokio::time::timeout(limit, &mut receiver).await {
            Ok(answered) => answered.ok(),
            Err(_) if self.pushes().give_up(flight.number) => None,
            Err(_) => receiver.await.ok(),
        };
        (Some(flight), answered)
    }

    /// Takes a data frame a client sent.
    pub(super) fn take_reply(&self, connection: u64, frame: &Frame) {
        let at = Instant::now();
        let number = number_of(frame);
        let read = answer::reply(frame);
        let mut found = Vec::new();
        let app = self.lines().app_of(connection);
        let (sink, click, known) = {
            let mut pushes = self.pushes();
            match pushes.remembered.get_mut(&number) {
                None => (Sink::None, None, false),
                Some(push) => {
                    found.extend(answer::echo_violations(&push.frames, frame));
                    if app != Some(push.app) {
                        found.push(("reply_of_another_app", String::new()));
                    }
                    if push.answered {
                        found.push(("second_reply", format!("push {number}")));
                    }
                    if at.duration_since(push.sent_at) > self.options.answer_limit {
                        found.push(("late_reply", format!("push {number}")));
                    }
                    push.answered = true;
                    let sink = std::mem::replace(&mut push.sink, Sink::None);
                    let click = push.click.take();
                    pushes.answered += 1;
                    (sink, click, true)
                }
            }
        };
        if !known {
            found.push(("reply_to_unknown", format!("push {number}")));
        }
        let reply = read.unwrap_or_else(|problem| {
            found.push(("malformed_reply", problem.clone()));
            ReplyFrame {
                code: 0,
                data: Some(Err(problem)),
                biz_rt: None,
            }
        });
        for (rule, detail) in found {
            self.violation(rule, Some(connection), detail);
        }
        if let Sink::Many(sender) = sink {
            let _ = sender.send((number, at, reply.code));
            return;
        }
        self.lines().update(connection, |line| line.replies += 1);
        let waited = matches!(sink, Sink::One(_));
        let (outcome, settled) = match click.filter(|_| waited) {
            Some(click) => self.settle(&click, &reply, connection),
            None => Default::default(),
        };
        self.record("reply_in", Some(connection), || {
            json!({
                "push": number,
                "code": reply.code,
                "data": reply.data.as_ref().and_then(|data| data.as_ref().ok()),
                "headers": frame.headers.iter()
                    .map(|h| json!([h.key, h.value]))
                    .collect::<Vec<_>>(),
            })
        });
        if let Sink::One(sender) = sink {
            let _ = sender.send(AnsweredPush {
                reply,
                connection,
                at,
                outcome,
                settled,
            });
        }
    }

    /// Ends a click in the world the moment its reply is read, so that an edit
    /// that follows the reply finds it ended.
    fn settle(
        &self,
        click: &ClickOf,
        reply: &ReplyFrame,
        connection: u64,
    ) -> (ClickOutcome, SettledClick) {
        let mut outcome = answer::outcome(reply, click.version);
        if let Some(card) = outcome.card.clone() {
            let refuses = |fault: &Fault| match fault {
                Fault::CallbackCardRefused => true,
                Fault::LayoutRefused { component } => bend::holds(&card, component),
                _ => false,
            };
            if self.take_fault(None, At::Now, refuses).is_some() {
                outcome.popup = Some(answer::popup::BAD_CARD);
                outcome.card = None;
            }
        }
        if reply.code == 200 && reply.data.is_none() {
            self.violation(
                "click_reply_without_data",
                Some(connection),
                click.event_id.clone(),
            );
        }
        let settled = self.end_click(click, outcome.card.clone());
        (outcome, settled)
    }

    pub(in crate::simulator) fn end_click(
        &self,
        click: &ClickOf,
        card: Option<Value>,
    ) -> SettledClick {
        let now = self.now();
        // Nobody sees the card before it is told of.
        let mut world = self.world();
        let (settled, shown) = match world.messages.get_mut(&click.message_id) {
            Some(message) => {
                let settled = message.end_click(&click.event_id, card, now);
                (settled, message.card.clone())
            }
            None => (SettledClick::default(), None),
        };
        let why = if settled.applied {
            "answered"
        } else {
            "reverted"
        };
        if settled.applied || settled.reverted {
            self.record(
                "card",
                None,
                || json!({"message_id": click.message_id, "why": why, "card": shown}),
            );
        } else {
            self.history.touch();
        }
        settled
    }
}

pub(in crate::simulator) fn latency_us(
    flight: Option<&Flight>,
    answered: Option<&AnsweredPush>,
) -> Option<u64> {
    let taken = answered?.at.duration_since(flight?.sent_at);
    Some(u64::try_from(taken.as_micros()).unwrap_or(u64::MAX))
}
