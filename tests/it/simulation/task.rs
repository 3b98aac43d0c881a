//! A session and its Claude Code, between the desk and the chat: its asks wait
//! where hooks wait too, its words come from Feishu, its child asks, withdraws,
//! finishes and dies.

use std::collections::{BTreeMap, BTreeSet};

use nod::for_tests::approvals::Settled;
use nod::for_tests::approvals::request::{Dropped, Ending};
use nod::for_tests::claude::stream;
use nod::for_tests::clock::Millis;
use nod::for_tests::ids::{RequestId, SessionId};
use nod::for_tests::sessions::state::{
    AskEnding, ChildNo, Effect, PersonText, Session, SessionCommand, SessionInput, SessionLimits,
    SessionStatus, TextFate, Unanswered,
};
use nod::for_tests::talk::{AgentEvent, Exit, Mode, Say, ToolVerdict};
use serde_json::{Value, json};

use super::Bug;
use super::feishu::FIRST_TEXT;
use super::world::{Event, PATIENCE, Row, World, id};

const LIMITS: SessionLimits = SessionLimits {
    question: PATIENCE,
    approval: PATIENCE,
    quiet: 60_000,
    rest: 30_000,
    background: 60 * 60_000,
    slack: 5_000,
};

pub(super) struct Task {
    pub(super) session: Session,
    child: Option<Child>,
    /// What a person wrote, by its event.
    pub(super) texts: BTreeMap<u64, Written>,
    /// What the session asked at the desk, by the desk's number.
    asks: BTreeMap<u64, Ask>,
    requests: u64,
}

#[derive(Default)]
pub(super) struct Written {
    /// Feishu knows that nod has it.
    pub(super) taken: bool,
    /// How often the session got it.
    heard: u32,
    fate: Option<TextFate>,
    /// The daemon crashed while the session had it, and said so afterwards.
    cut_short: bool,
}

struct Ask {
    name: RequestId,
    ending: Option<AskEnding>,
}

/// Claude Code as the session sees it.
struct Child {
    number: ChildNo,
    closing: bool,
    texts: Vec<String>,
    began: bool,
    /// Requests it waits for, and those it no longer wants.
    waits: BTreeMap<String, Value>,
    withdrawn: BTreeSet<String>,
}

impl Default for Task {
    fn default() -> Self {
        let name = SessionId::parse("s").expect("an id");
        Self {
            session: Session::new(name, Mode::Default, LIMITS),
            child: None,
            texts: BTreeMap::new(),
            asks: BTreeMap::new(),
            requests: 0,
        }
    }
}

fn line(value: &Value) -> AgentEvent {
    AgentEvent::Said(stream::parse(value.to_string().as_bytes()).expect("a line"))
}

impl World {
    /// A text that came for the first time.
    pub(super) fn words(&mut self, event: u64) {
        let seed = self.seed;
        let text = self.task.texts.get_mut(&event).expect("written before");
        text.heard += 1;
        assert_eq!(text.heard, 1, "seed {seed}: text {event} ran twice");
        if event % 7 == 3 {
            text.fate = Some(TextFate::Done);
            self.feed(SessionInput::Command(SessionCommand::Stop));
            return;
        }
        let uuid = event.to_string();
        let body = format!("do {event}");
        self.feed(SessionInput::Text(PersonText { uuid, body }));
    }

    /// Hands the session an input and does what it says; true when the child
    /// was written to.
    pub(super) fn feed(&mut self, input: SessionInput) -> bool {
        let effects = self.task.session.on(input, self.millis());
        let wrote = self.obey(effects);
        self.disk.session = Some(self.task.session.saved());
        wrote
    }

    fn obey(&mut self, effects: Vec<Effect>) -> bool {
        let mut wrote = false;
        for effect in effects {
            wrote |= matches!(effect, Effect::Write { .. });
            self.carry_out_for_task(effect);
        }
        wrote
    }

    fn carry_out_for_task(&mut self, effect: Effect) {
        let seed = self.seed;
        match effect {
            Effect::Start { child: number, .. } => {
                assert!(self.task.child.is_none(), "seed {seed}: two children");
                self.task.child = Some(Child {
                    number,
                    closing: false,
                    texts: Vec::new(),
                    began: false,
                    waits: BTreeMap::new(),
                    withdrawn: BTreeSet::new(),
                });
                self.count("children");
                let soon = 100 + self.dice(2_000);
                self.later(soon, Event::Child(number));
            }
            Effect::Write { child: number, say } => self.child_reads(number, say),
            Effect::Close { child: number } => {
                let child = self.task.child.as_mut().expect("a child to close");
                assert_eq!(child.number, number, "seed {seed}");
                assert!(!child.closing, "seed {seed}: closed twice");
                child.closing = true;
                let soon = 50 + self.dice(3_000);
                self.later(soon, Event::Child(number));
            }
            Effect::AskPermission {
                ask,
                request,
                deadline,
            } => self.ask_for_task(ask, request.tool, request.input, deadline),
            Effect::AskQuestion {
                ask,
                tool,
                input,
                deadline,
            } => self.ask_for_task(ask, tool, input, deadline),
            Effect::Settle { ask, ending } => self.ask_settled(&ask, ending),
            Effect::Fate { uuid, fate } => {
                let event: u64 = uuid.parse().expect("a text of ours");
                let text = self.task.texts.get_mut(&event).expect("written before");
                let before = text.fate.replace(fate);
                assert_eq!(before, None, "seed {seed}: text {event} ended twice");
                if fate == TextFate::Done {
                    self.count("texts carried out");
                }
            }
            Effect::Progress(_) | Effect::Finished(_) | Effect::Tell(_) => {}
        }
    }

    fn ask_for_task(&mut self, name: RequestId, tool: String, input: Value, deadline: Millis) {
        let n = u64::try_from(self.hooks.len()).expect("few");
        self.task.asks.insert(n, Ask { name, ending: None });
        self.register(tool, input, deadline, true);
    }

    /// The session ended an ask; the desk hears of it unless it did so itself.
    fn ask_settled(&mut self, name: &RequestId, ending: AskEnding) {
        let seed = self.seed;
        let mut asks = self.task.asks.iter_mut().rev();
        let found = asks.find(|(_, ask)| ask.name == *name);
        let (n, ask) = found.expect("asked before");
        assert_eq!(
            ask.ending, None,
            "seed {seed}: ask {name} was settled twice"
        );
        let why = match &ending {
            AskEnding::Decided => None,
            AskEnding::Cancelled => Some(Dropped::Command),
            AskEnding::TimedOut | AskEnding::Withdrawn | AskEnding::ChildGone => {
                Some(Dropped::Over)
            }
            AskEnding::Restarted => Some(Dropped::Restart),
        };
        ask.ending = Some(ending);
        let n = *n;
        self.count(if why.is_none() {
            "asks of a session decided"
        } else {
            "asks of a session dropped"
        });
        let Some(why) = why else { return };
        let now = self.millis();
        if let Some(settled) = self.approvals.drop_one(&id(n), why, now) {
            self.settled(&settled, None);
        }
    }

    /// What an ending at the desk means to the session; true when it went on
    /// to the child.
    pub(super) fn session_hears(&mut self, n: u64, ending: &Ending) -> bool {
        let ask = self.task.asks[&n].name.clone();
        let input = self.hooks[&n].request.input.clone();
        let verdict = match ending {
            Ending::Allowed { .. } | Ending::Answered { .. } => ToolVerdict::Allow {
                input,
                updates: Vec::new(),
            },
            Ending::Denied { interrupt, .. } => ToolVerdict::Deny {
                message: "no".to_owned(),
                interrupt: *interrupt,
            },
            Ending::TimedOut => {
                let why = Unanswered::TimedOut;
                return self.feed(SessionInput::Unanswered { ask, why });
            }
            Ending::Terminal { .. }
            | Ending::Ran(_)
            | Ending::DeniedElsewhere
            | Ending::Stopped { .. }
            | Ending::HookGone
            | Ending::Orphaned
            | Ending::Undeliverable { .. }
            | Ending::Dropped { .. } => return false,
        };
        self.feed(SessionInput::Decided { ask, verdict })
    }

    fn child_reads(&mut self, number: ChildNo, say: Say) {
        let seed = self.seed;
        let child = self.task.child.as_mut().expect("a child to write to");
        assert_eq!(child.number, number, "seed {seed}: written to nobody");
        assert!(!child.closing, "seed {seed}: written after the end");
        match say {
            Say::Text { uuid, .. } => {
                child.texts.push(uuid);
                let soon = 100 + self.dice(2_000);
                self.later(soon, Event::Child(number));
            }
            Say::Verdict { request, verdict } => {
                if child.withdrawn.contains(&request) {
                    return;
                }
                let input = child.waits.remove(&request);
                let input =
                    input.unwrap_or_else(|| panic!("seed {seed}: {request} answered twice"));
                if let ToolVerdict::Allow { input: given, .. } = verdict {
                    assert_eq!(given, input, "seed {seed}: allowed for another input");
                    let by_a_person = self.decided_by_a_tap(&request);
                    let harmless = request.starts_with("read");
                    assert!(
                        by_a_person || harmless,
                        "seed {seed}: {request} was allowed by nobody"
                    );
                }
                let soon = 100 + self.dice(2_000);
                self.later(soon, Event::Child(number));
            }
            Say::Filled { .. }
            | Say::Unsupported { .. }
            | Say::Interrupt { .. }
            | Say::SetMode { .. } => {}
        }
    }

    fn decided_by_a_tap(&self, request: &str) -> bool {
        let mut asks = self.task.asks.iter();
        let found = asks.find(|(_, ask)| ask.name.as_str() == request);
        found.is_some_and(|(n, _)| self.disk.past.get(n).is_some_and(|row| row.event.is_some()))
    }

    /// The child does something, likely or not.
    pub(super) fn child_acts(&mut self, number: ChildNo) {
        let calm = self.is_calm();
        let (dies, asks, lets_go) = (self.dice(40), self.dice(10), self.dice(8));
        let Some(child) = &mut self.task.child else {
            return;
        };
        if child.number != number {
            return;
        }
        if child.closing || (dies == 0 && !calm) {
            let exit = if child.closing {
                Exit::Finished
            } else {
                Exit::Crashed {
                    code: None,
                    words: None,
                }
            };
            self.task.child = None;
            if self.bug != Some(Bug::ForgetsAChild) {
                self.hear(number, AgentEvent::Ended(exit));
            }
            return;
        }
        if child.texts.is_empty() {
            return;
        }
        if !child.began {
            child.began = true;
            let uuid = child.texts[0].clone();
            self.hear(
                number,
                line(&json!({
                    "type": "command_lifecycle", "command_uuid": uuid, "state": "started",
                })),
            );
            self.hear(
                number,
                line(&json!({
                    "type": "system", "subtype": "init", "session_id": "s",
                })),
            );
            self.later(300, Event::Child(number));
            return;
        }
        if !child.waits.is_empty() {
            // It waits for an answer, unless it changes its mind.
            if lets_go == 0
                && let Some((request, _)) = child.waits.pop_first()
            {
                child.withdrawn.insert(request.clone());
                let gone = json!({"type": "control_cancel_request", "request_id": request});
                self.hear(number, line(&gone));
            }
            self.later(2_000, Event::Child(number));
            return;
        }
        if asks < 6 && !calm {
            self.task.requests += 1;
            let (request, tool, input) = wanted(asks, self.task.requests);
            let child = self.task.child.as_mut().expect("it acts");
            child.waits.insert(request.clone(), input.clone());
            self.hear(
                number,
                line(&json!({
                    "type": "control_request", "request_id": request,
                    "request": {"subtype": "can_use_tool", "tool_name": tool, "input": input},
                })),
            );
            self.later(2_000, Event::Child(number));
            return;
        }
        child.began = false;
        child.texts.remove(0);
        let more = !child.texts.is_empty();
        self.hear(
            number,
            line(&json!({
                "type": "result", "subtype": "success", "is_error": false, "result": "done",
                "terminal_reason": "completed", "num_turns": 1,
            })),
        );
        if more {
            self.later(200, Event::Child(number));
        }
    }

    fn hear(&mut self, child: ChildNo, event: AgentEvent) {
        self.feed(SessionInput::Child { child, event });
    }

    /// The daemon crashed, and the child with it. What the disk knows of the
    /// session is all that is left; what it waited for has ended.
    pub(super) fn task_restarts(&mut self) -> Vec<Settled> {
        let seed = self.seed;
        self.task.child = None;
        let hosted = |(_, (request, _)): &(&u64, &(_, _))| -> bool {
            let request: &std::sync::Arc<nod::for_tests::approvals::request::Request> = request;
            request.origin.hosted
        };
        let left = self.disk.pending.iter().filter(hosted);
        let left: Vec<u64> = left.map(|(n, _)| *n).collect();
        let mut dropped = Vec::new();
        for n in &left {
            let (request, token) = self.disk.pending.remove(n).expect("just seen");
            let why = Dropped::Restart;
            let (ending, at) = (Ending::Dropped { why }, self.millis());
            dropped.push(Settled {
                request,
                ending: ending.clone(),
                at,
            });
            let row = Row {
                ending,
                at,
                token,
                event: None,
            };
            let before = self.disk.past.insert(*n, row);
            assert!(before.is_none(), "seed {seed}: request {n} ended twice");
            self.hooks.get_mut(n).expect("asked before").attachment = None;
        }
        let Some(saved) = self.disk.session.take() else {
            self.task.session = Task::default().session;
            return dropped;
        };
        assert_eq!(
            saved.asks.len(),
            left.len(),
            "seed {seed}: desk and session know the same asks"
        );
        for text in self.task.texts.values_mut() {
            text.cut_short |= text.heard > 0 && text.fate.is_none();
        }
        let (session, effects) = Session::restored(saved, LIMITS);
        self.task.session = session;
        self.obey(effects);
        self.disk.session = Some(self.task.session.saved());
        dropped
    }

    /// What must hold for the session, once nothing more goes wrong.
    pub(super) fn judge_task(&self) {
        let seed = self.seed;
        let task = &self.task;
        assert_eq!(task.session.status(), SessionStatus::Idle, "seed {seed}");
        for (n, ask) in &task.asks {
            let known = ask.ending.is_some() && self.disk.past.contains_key(n);
            assert!(known, "seed {seed}: ask {n} never ended");
        }
        for (event, text) in &task.texts {
            assert!(*event >= FIRST_TEXT && text.heard <= 1, "seed {seed}");
            let known = text.fate.is_some() || text.cut_short;
            let ended = text.heard == 0 || known;
            assert!(ended, "seed {seed}: nobody knows what became of {event}");
        }
        let waits = task
            .child
            .as_ref()
            .is_some_and(|child| !child.waits.is_empty());
        assert!(!waits, "seed {seed}: a child waits for nobody");
    }
}

/// A call that needs leave, one that only reads, or a question.
fn wanted(kind: u64, n: u64) -> (String, &'static str, Value) {
    match kind {
        0..4 => (
            format!("bash{n}"),
            "Bash",
            json!({"command": format!("make {n}")}),
        ),
        4 => (
            format!("read{n}"),
            "Read",
            json!({"file_path": format!("/p/{n}")}),
        ),
        _ => {
            let options = json!([{"label": "A"}, {"label": "B"}]);
            let question = json!({"question": format!("Which, {n}?"), "options": options});
            (
                format!("ask{n}"),
                "AskUserQuestion",
                json!({"questions": [question]}),
            )
        }
    }
}
