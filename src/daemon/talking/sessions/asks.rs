//! A session's questions and permission requests at the desk where hooks wait
//! too: the same cards, the same taps, the same endings.

use serde_json::{Value, json};
use std::sync::Arc;

use super::Sessions;
use crate::approvals::answer::Answer;
use crate::approvals::desk::Waiting;
use crate::approvals::request::{
    AskingAgent, Caller, Digest, Dropped, Ending, Facts, Origin, Request,
};
use crate::clock::Millis;
use crate::daemon::cards::courier;
use crate::daemon::known::{journal, machine};
use crate::hook::wire::answer::DENIED;
use crate::ids::{BadId, RequestId, SessionId};
use crate::sessions::command::Project;
use crate::sessions::state::{AskEnding, SessionInput, Unanswered};
use crate::talk::{ToolRequest, ToolVerdict};
use crate::text::Lang;

/// What a session asks for.
pub(super) struct SessionAsk {
    pub(super) id: RequestId,
    pub(super) tool: String,
    pub(super) input: Value,
    pub(super) agent: Option<String>,
    pub(super) by: AskingAgent,
    pub(super) deadline: Millis,
}

impl SessionAsk {
    pub(super) fn permission(id: RequestId, request: ToolRequest, deadline: Millis) -> Self {
        Self {
            id,
            tool: request.tool,
            input: request.input,
            agent: request.agent,
            by: AskingAgent::default(),
            deadline,
        }
    }
}

/// The desk's name for an ask: a child's own ids count from its session.
pub(super) fn desk_id(number: i64, ask: &RequestId) -> Result<RequestId, BadId> {
    RequestId::parse(&format!("s{number}.{ask}"))
}

/// Registers an ask, writes it down and sends its card. `None` when it cannot
/// be put to anybody.
pub(super) async fn put_up(
    sessions: &Arc<Sessions>,
    number: i64,
    project: &Project,
    conversation: &SessionId,
    ask: SessionAsk,
) -> Option<(Waiting, Arc<Request>)> {
    let (kept, cards) = (sessions.find(number)?.kept, &sessions.cards);
    let seen = machine::look(project.path.clone()).await;
    let seen = seen.unwrap_or_default();
    let real = machine::real_path(&ask.tool, &ask.input, &project.path, &project.path).await;
    let request = Facts {
        id: desk_id(number, &ask.id).ok()?,
        digest: Digest::of(&ask.input),
        tool: ask.tool,
        input: ask.input,
        real,
        origin: Origin {
            machine: cards.buttons.machine.name.clone(),
            user: cards.buttons.machine.user.clone(),
            branch: seen.branch,
            cwd: project.path.clone(),
            project: project.path.clone(),
            session: Some(conversation.clone()),
            agent: ask.agent,
            pid: None,
            hosted: true,
            caller: Caller {
                rules_in: seen.rules_in,
                agent: ask.by,
                ..Caller::default()
            },
        },
        asked_at: sessions.now(),
        deadline: ask.deadline,
    }
    .read();
    let id = request.id.clone();
    let waiting = cards.desk.register(request).ok()?;
    let request = cards.desk.find(&id)?;
    if let Some(token) = waiting.token() {
        journal::keep(&cards.journal, &request, token.hash()).await;
    }
    let target = courier::CardTarget::Thread {
        anchor: kept.anchor,
        place: kept.place,
    };
    courier::send_to(cards, &request, target);
    Some((waiting, request))
}

/// What the desk's answer means to the session; `None` when the session itself
/// made it so.
pub(super) fn heard(
    ask: &RequestId,
    request: &Request,
    answer: &Answer,
    lang: Lang,
) -> Option<SessionInput> {
    let decided = |verdict| {
        Some(SessionInput::Decided {
            ask: ask.clone(),
            verdict,
        })
    };
    let unanswered = |why| {
        Some(SessionInput::Unanswered {
            ask: ask.clone(),
            why,
        })
    };
    let updates = || match &answer.extras.updated_permissions {
        Some(Value::Array(updates)) => updates.clone(),
        Some(_) | None => Vec::new(),
    };
    match &answer.ending {
        Ending::Allowed { .. } if answer.digest == Digest::of(&request.input) => {
            decided(ToolVerdict::Allow {
                input: request.input.clone(),
                updates: updates(),
            })
        }
        Ending::Answered { .. } => match &answer.extras.updated_input {
            Some(input) => decided(ToolVerdict::Allow {
                input: input.clone(),
                updates: updates(),
            }),
            None => unanswered(Unanswered::NotShown),
        },
        Ending::Denied {
            reason, interrupt, ..
        } => decided(ToolVerdict::Deny {
            message: refusal(request, reason.as_deref(), lang),
            interrupt: *interrupt,
        }),
        Ending::TimedOut => unanswered(Unanswered::TimedOut),
        Ending::Allowed { .. } | Ending::Undeliverable { .. } => unanswered(Unanswered::NotShown),
        Ending::Terminal { .. }
        | Ending::Ran(_)
        | Ending::DeniedElsewhere
        | Ending::Stopped { .. }
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Dropped { .. } => None,
    }
}

fn refusal(request: &Request, reason: Option<&str>, lang: Lang) -> String {
    let is_question = request.question().is_some();
    match reason {
        Some(reason) if is_question => {
            format!("The user wants something else before this goes on: {reason}")
        }
        Some(reason) => reason.to_owned(),
        None if is_question => "The user chose not to answer this question.".to_owned(),
        None => DENIED.get(lang).to_owned(),
    }
}

/// How the desk ends an ask that the session has ended; `None` where the desk
/// knows it already.
pub(super) fn dropped(ending: &AskEnding) -> Option<Dropped> {
    match ending {
        AskEnding::Decided => None,
        AskEnding::Cancelled => Some(Dropped::Command),
        AskEnding::TimedOut | AskEnding::Withdrawn | AskEnding::ChildGone => Some(Dropped::Over),
        AskEnding::Restarted => Some(Dropped::Restart),
    }
}

/// The call that a question is put under at the desk.
pub(super) fn question(id: RequestId, tool: String, input: Value, deadline: Millis) -> SessionAsk {
    SessionAsk {
        id,
        tool,
        input: if input.is_null() { json!({}) } else { input },
        agent: None,
        by: AskingAgent::default(),
        deadline,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::answer::Extras;
    use crate::approvals::outcome::sample;
    use crate::approvals::request::{Operator, Reach};
    use crate::ids::UserId;
    use std::time::Duration;

    fn by() -> Operator {
        Operator {
            id: UserId::parse("ou_1").unwrap(),
        }
    }

    fn meaning(tool: &str, input: &Value, ending: Ending, extras: Extras) -> Option<SessionInput> {
        let answer = Answer {
            ending,
            digest: Digest::of(&json!({"command": "ls"})),
            patience: Duration::ZERO,
            extras,
        };
        let id = RequestId::parse("r").unwrap();
        let request = sample::request(tool, input.clone());
        heard(&id, &request, &answer, Lang::En)
    }

    fn verdict(input: Option<SessionInput>) -> ToolVerdict {
        match input {
            Some(SessionInput::Decided { verdict, .. }) => verdict,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_allow_runs_exactly_the_input_that_was_shown() {
        let shown = json!({"command": "ls"});
        let rule = json!({"type": "addRules"});
        let extras = Extras {
            updated_permissions: Some(json!([rule])),
            updated_input: None,
        };
        let allowed = || Ending::Allowed {
            cancelled: false,
            by: by(),
            reach: Reach::Once,
        };
        let expected = ToolVerdict::Allow {
            input: shown.clone(),
            updates: vec![rule],
        };
        assert_eq!(
            verdict(meaning("Bash", &shown, allowed(), extras.clone())),
            expected
        );
        let other = meaning("Bash", &json!({"command": "rm"}), allowed(), extras);
        assert!(
            matches!(other, Some(SessionInput::Unanswered { .. })),
            "never allowed: {other:?}"
        );
    }

    #[test]
    fn a_refusal_reaches_the_model_in_words_that_fit_what_was_asked() {
        let denied = |reason: Option<&str>| Ending::Denied {
            by: by(),
            reason: reason.map(str::to_owned),
            interrupt: true,
        };
        let plan = json!({"plan": "x"});
        for (tool, input, reason, words) in [
            ("Bash", json!({}), None, "The user denied this from Feishu"),
            ("Bash", json!({}), Some("先跑测试"), "先跑测试"),
            (
                "ExitPlanMode",
                plan.clone(),
                Some("cut first"),
                "goes on: cut first",
            ),
            ("ExitPlanMode", plan, None, "chose not to answer"),
        ] {
            let said = verdict(meaning(tool, &input, denied(reason), Extras::default()));
            let ToolVerdict::Deny { message, interrupt } = said else {
                panic!("{said:?}")
            };
            assert!(
                message.ends_with(words) || message.contains(words),
                "{message}"
            );
            assert!(interrupt);
        }
    }

    #[test]
    fn nothing_but_a_persons_choice_decides() {
        for (ending, expected) in [
            (Ending::TimedOut, Some(Unanswered::TimedOut)),
            (
                Ending::Undeliverable { why: None },
                Some(Unanswered::NotShown),
            ),
            (Ending::HookGone, None),
            (
                Ending::Dropped {
                    why: Dropped::Command,
                },
                None,
            ),
        ] {
            let found = meaning("Bash", &json!({}), ending, Extras::default());
            let why = found.map(|input| match input {
                SessionInput::Unanswered { why, .. } => why,
                other => panic!("{other:?}"),
            });
            assert_eq!(why, expected);
        }
    }
}
