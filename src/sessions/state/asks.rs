//! What a session waits for: tool requests and questions, each open until it
//! is answered, cancelled, withdrawn or out of time.

use serde_json::Value;

use super::{AskEnding, ChildNo, Effect, Notice, Session, SessionState, Unanswered};
use crate::clock::Millis;
use crate::ids::RequestId;
use crate::sessions::questions::call::{self, AnswerShape, Back};
use crate::sessions::questions::{Ask, form};
use crate::talk::{AgentRequest, AgentWants, Filled, Say, ToolRequest, ToolVerdict};

/// Tools that only read pass without asking.
const READ_ONLY: [&str; 3] = ["Read", "Glob", "Grep"];
/// Parallel subagents ask at the same time, but not like this.
const MAX_ASKS: usize = 32;

#[derive(Debug)]
pub(super) struct OpenAsk {
    pub(super) id: RequestId,
    pub(super) deadline: Millis,
    /// A subagent asked it, and works on when the main agent's turn is over.
    subagent: bool,
    what: OpenKind,
}

#[derive(Debug)]
enum OpenKind {
    Tool { name: String },
    Question { ask: Ask, asked: AnswerShape },
}

impl OpenAsk {
    pub(super) fn wants_text(&self) -> bool {
        match &self.what {
            OpenKind::Tool { .. } => false,
            OpenKind::Question { ask, .. } => ask.wants_text(),
        }
    }

    fn refuse(&self, because: &str, interrupt: bool) -> Say {
        match &self.what {
            OpenKind::Tool { .. } => self.back(Back::Verdict(ToolVerdict::Deny {
                message: because.to_owned(),
                interrupt,
            })),
            OpenKind::Question { asked, .. } => self.back(asked.refused(because, interrupt)),
        }
    }

    fn back(&self, back: Back) -> Say {
        let request = self.id.as_str().to_owned();
        match back {
            Back::Verdict(verdict) => Say::Verdict { request, verdict },
            Back::Filled(answer) => Say::Filled { request, answer },
        }
    }
}

impl Session {
    pub(super) fn request(
        &mut self,
        child: ChildNo,
        request: AgentRequest,
        now: Millis,
        out: &mut Vec<Effect>,
    ) {
        if self.asks.iter().any(|open| open.id.as_str() == request.id) {
            return;
        }
        let id = RequestId::parse(&request.id).ok();
        let room = self.asks.len() < MAX_ASKS;
        let write = |say| Effect::Write { child, say };
        let verdict = |request: String, verdict| write(Say::Verdict { request, verdict });
        match request.what {
            AgentWants::Tool(tool) if READ_ONLY.contains(&tool.tool.as_str()) => {
                let allow = ToolVerdict::Allow {
                    input: tool.input,
                    updates: Vec::new(),
                };
                out.push(verdict(request.id, allow));
            }
            AgentWants::Tool(tool) => {
                let (Some(id), true) = (id, room) else {
                    let deny =
                        ToolVerdict::deny("Too many requests wait for the user; try again later.");
                    out.push(verdict(request.id, deny));
                    return;
                };
                let subagent = tool.agent.is_some();
                if needs_words(&tool) {
                    if let Some(question) = call::read(&tool.tool, &tool.input) {
                        let id = (id, subagent);
                        return self.put(id, (tool.tool, tool.input), question, now, out);
                    }
                    let deny = ToolVerdict::deny("This question could not be shown to the user.");
                    out.push(verdict(request.id, deny));
                    out.push(Effect::Tell(Notice::CannotAsk));
                    return;
                }
                let deadline = now + self.limits.approval;
                self.asks.push(OpenAsk {
                    id: id.clone(),
                    deadline,
                    subagent,
                    what: OpenKind::Tool {
                        name: tool.tool.clone(),
                    },
                });
                out.push(Effect::AskPermission {
                    ask: id,
                    request: tool,
                    deadline,
                });
            }
            AgentWants::Form(asked) => {
                if let Some(id) = id.filter(|_| room)
                    && let Some(question) = form::questions(&asked)
                {
                    let call = (form::CALL.to_owned(), form::input(&asked));
                    return self.put((id, false), call, question, now, out);
                }
                out.push(write(Say::Filled {
                    request: request.id,
                    answer: Filled::Decline,
                }));
                out.push(Effect::Tell(Notice::CannotAsk));
            }
            AgentWants::Other { kind } => out.push(write(Say::Unsupported {
                request: request.id,
                kind,
            })),
        }
    }

    fn put(
        &mut self,
        (id, subagent): (RequestId, bool),
        (tool, input): (String, Value),
        (ask, asked): (Ask, AnswerShape),
        now: Millis,
        out: &mut Vec<Effect>,
    ) {
        let deadline = now + self.limits.question;
        self.asks.push(OpenAsk {
            id: id.clone(),
            deadline,
            subagent,
            what: OpenKind::Question { ask, asked },
        });
        out.push(Effect::AskQuestion {
            ask: id,
            tool,
            input,
            deadline,
        });
    }

    pub(super) fn decided(
        &mut self,
        id: &RequestId,
        verdict: ToolVerdict,
        now: Millis,
        out: &mut Vec<Effect>,
    ) {
        self.expire_asks(now, out);
        let Some(child) = self.listening() else {
            return;
        };
        let Some(at) = self.asks.iter().position(|open| open.id == *id) else {
            return;
        };
        let open = self.asks.remove(at);
        if let SessionState::Running(run) = &mut self.state {
            run.seen = now;
        }
        let back = match (&open.what, verdict) {
            (
                OpenKind::Question {
                    asked: AnswerShape::Fields(_),
                    ..
                },
                verdict,
            ) => Back::Filled(match verdict {
                ToolVerdict::Allow {
                    input: Value::Object(content),
                    ..
                } => Filled::Accept(content),
                ToolVerdict::Allow { .. } | ToolVerdict::Deny { .. } => Filled::Decline,
            }),
            (_, verdict) => Back::Verdict(verdict),
        };
        out.push(Effect::Write {
            child,
            say: open.back(back),
        });
        out.push(Effect::Settle {
            ask: open.id,
            ending: AskEnding::Decided,
        });
    }

    pub(super) fn unanswered(&mut self, id: &RequestId, why: Unanswered, out: &mut Vec<Effect>) {
        match why {
            Unanswered::TimedOut => self.time_out(|open| open.id == *id, out),
            Unanswered::NotShown => self.end_asks(
                |open| open.id == *id,
                &AskEnding::Withdrawn,
                out,
                |open| {
                    let because = "This could not be shown to the user, so nobody answered.";
                    let tool = match &open.what {
                        OpenKind::Tool { name } => Some(name.clone()),
                        OpenKind::Question { .. } => None,
                    };
                    let notice = Notice::NotBrought { tool };
                    (open.refuse(because, false), Some(notice))
                },
            ),
        }
    }

    /// A command came instead of an answer.
    pub(super) fn cancel_asks(&mut self, out: &mut Vec<Effect>) {
        self.end_asks(
            |_| true,
            &AskEnding::Cancelled,
            out,
            |open| {
                let because = "The user gave a command instead of answering. \
                           Do not assume an answer: go on without it, or stop.";
                (open.refuse(because, false), None)
            },
        );
    }

    pub(super) fn expire_asks(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let slack = self.limits.slack;
        self.time_out(|open| now >= open.deadline + slack, out);
    }

    fn time_out(&mut self, which: impl Fn(&OpenAsk) -> bool, out: &mut Vec<Effect>) {
        let limits = self.limits;
        self.end_asks(which, &AskEnding::TimedOut, out, |open| match &open.what {
            OpenKind::Tool { name } => {
                let because = format!(
                    "Nobody answered within {} seconds, so this was not allowed. \
                         The user may be away: do not try it again unasked.",
                    limits.approval / 1_000
                );
                let tool = name.clone();
                (
                    open.refuse(&because, false),
                    Some(Notice::ApprovalTimedOut { tool }),
                )
            }
            OpenKind::Question { .. } => {
                let because = format!(
                    "Nobody answered within {} seconds. The task stops here.",
                    limits.question / 1_000
                );
                (open.refuse(&because, true), Some(Notice::QuestionTimedOut))
            }
        });
    }

    fn end_asks(
        &mut self,
        which: impl Fn(&OpenAsk) -> bool,
        ending: &AskEnding,
        out: &mut Vec<Effect>,
        refusal: impl Fn(&OpenAsk) -> (Say, Option<Notice>),
    ) {
        let Some(child) = self.listening() else {
            return;
        };
        let over: Vec<OpenAsk> = self.asks.extract_if(.., |open| which(open)).collect();
        for open in over {
            let (say, notice) = refusal(&open);
            // A form's answer can't end the turn; an order can.
            let interrupt = *ending == AskEnding::TimedOut && matches!(say, Say::Filled { .. });
            out.push(Effect::Write { child, say });
            if interrupt {
                self.orders += 1;
                let request = format!("nod-{}", self.orders);
                out.push(Effect::Write {
                    child,
                    say: Say::Interrupt { request },
                });
            }
            out.push(Effect::Settle {
                ask: open.id,
                ending: ending.clone(),
            });
            out.extend(notice.map(Effect::Tell));
        }
    }

    /// The main agent's turn is over: what it asked is refused, so that the
    /// child never waits for it, and what its subagents asked stays open.
    pub(super) fn end_turns_asks(&mut self, out: &mut Vec<Effect>) {
        let refusal = |open: &OpenAsk| {
            let because = "The turn ended before the user answered.";
            (open.refuse(because, false), None)
        };
        self.end_asks(|open| !open.subagent, &AskEnding::Withdrawn, out, refusal);
    }

    /// Nobody is left who would take an answer.
    pub(super) fn forget_asks(&mut self, ending: &AskEnding, out: &mut Vec<Effect>) {
        for open in self.asks.drain(..) {
            out.push(Effect::Settle {
                ask: open.id,
                ending: ending.clone(),
            });
        }
    }

    pub(super) fn withdrawn(&mut self, request: &str, out: &mut Vec<Effect>) {
        let Some(at) = self
            .asks
            .iter()
            .position(|open| open.id.as_str() == request)
        else {
            return;
        };
        let open = self.asks.remove(at);
        out.push(Effect::Settle {
            ask: open.id,
            ending: AskEnding::Withdrawn,
        });
    }
}

/// A plain allow would do nothing. The agent says so; of its two oldest such
/// tools it need not.
fn needs_words(tool: &ToolRequest) -> bool {
    tool.wants_a_person || [call::QUESTIONS, call::PLAN].contains(&tool.tool.as_str())
}
