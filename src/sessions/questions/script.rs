//! Questions a script asks through `nod ask`. They travel as a tool call of
//! our own, so that they wait, resume and end like any request.

use serde_json::{Value, json};
use std::time::Duration;

use super::{Ask, Format, MAX_ANSWER, Question, QuestionKind, QuestionOption};
use crate::ids::{BadId, ChatId, UserId};

pub const TOOL: &str = "nod_ask";
const MAX_OPTIONS: usize = 50;
/// A week, in seconds: longer than any script should wait.
pub const MAX_TIMEOUT: u64 = 7 * 24 * 3_600;

/// The tool input that asks this question.
pub fn input(question: &Question) -> Value {
    let mut input = json!({"question": question.text});
    match &question.kind {
        QuestionKind::Confirm => input["kind"] = json!("confirm"),
        QuestionKind::Text { .. } => input["kind"] = json!("text"),
        QuestionKind::Plan { .. } => input["kind"] = json!("plan"),
        QuestionKind::Choice {
            options,
            multi,
            other,
            ..
        } => {
            let labels: Vec<_> = options.iter().map(|choice| &choice.label).collect();
            input["kind"] = json!("choice");
            input["options"] = json!(labels);
            input["multi"] = json!(multi);
            input["other"] = json!(other);
        }
    }
    input
}

/// What a script asks for besides the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptWishes {
    pub timeout: Option<Duration>,
    pub to: Option<Addressee>,
}

/// Somebody else than the owner, who may then answer too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addressee {
    Chat(ChatId),
    User(UserId),
}

impl Addressee {
    pub fn parse(text: &str) -> Result<Self, BadId> {
        if text.starts_with("oc_") {
            return ChatId::parse(text).map(Self::Chat);
        }
        UserId::parse(text).map(Self::User)
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Chat(id) => id.as_str(),
            Self::User(id) => id.as_str(),
        }
    }
}

impl ScriptWishes {
    /// Adds the wishes to a question's input.
    pub fn write(&self, input: &mut Value) {
        if let Some(timeout) = self.timeout {
            input["timeout_s"] = json!(timeout.as_secs());
        }
        if let Some(to) = &self.to {
            input["to"] = json!(to.as_str());
        }
    }

    /// The wishes of a tool call; none for any call but a script's question.
    pub fn of(tool: &str, input: &Value) -> Self {
        if tool != TOOL {
            return Self::default();
        }
        let seconds = input["timeout_s"].as_u64();
        Self {
            timeout: seconds
                .filter(|s| (1..=MAX_TIMEOUT).contains(s))
                .map(Duration::from_secs),
            to: input["to"]
                .as_str()
                .and_then(|to| Addressee::parse(to).ok()),
        }
    }
}

pub fn parse(input: &Value) -> Option<Ask> {
    let text = input["question"].as_str()?.to_owned();
    if text.trim().is_empty() || text.len() > MAX_ANSWER {
        return None;
    }
    let kind = match input["kind"].as_str()? {
        "confirm" => QuestionKind::Confirm,
        "text" => QuestionKind::Text {
            format: Format::Any,
            optional: false,
        },
        "choice" => {
            let labels = input["options"].as_array()?;
            let options: Option<Vec<_>> = labels
                .iter()
                .map(|label| {
                    Some(QuestionOption {
                        label: label.as_str()?.to_owned(),
                        description: None,
                        preview: None,
                    })
                })
                .collect();
            let options = options.filter(|o| (1..=MAX_OPTIONS).contains(&o.len()))?;
            QuestionKind::Choice {
                options,
                multi: input["multi"].as_bool().unwrap_or(false),
                other: input["other"].as_bool().unwrap_or(false),
                optional: false,
            }
        }
        _ => return None,
    };
    Some(Ask::one(Question {
        header: None,
        text,
        kind,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_reads_back_from_its_input() {
        let choice = |multi, other| QuestionKind::Choice {
            options: vec![QuestionOption {
                label: "a".to_owned(),
                description: None,
                preview: None,
            }],
            multi,
            other,
            optional: false,
        };
        let text = QuestionKind::Text {
            format: Format::Any,
            optional: false,
        };
        for kind in [
            QuestionKind::Confirm,
            text,
            choice(true, false),
            choice(false, true),
        ] {
            let question = Question {
                header: None,
                text: "which?".to_owned(),
                kind,
            };
            assert_eq!(parse(&input(&question)), Some(Ask::one(question)));
        }
    }

    #[test]
    fn wishes_read_back_and_count_for_scripts_only() {
        let wishes = ScriptWishes {
            timeout: Some(Duration::from_secs(9)),
            to: Some(Addressee::parse("oc_1").unwrap()),
        };
        let mut input = json!({"question": "q", "kind": "text"});
        wishes.write(&mut input);
        assert!(parse(&input).is_some());
        assert_eq!(ScriptWishes::of(TOOL, &input), wishes);
        assert_eq!(ScriptWishes::of("Bash", &input), ScriptWishes::default());
        let never = json!({"timeout_s": 0, "to": "a b"});
        assert_eq!(ScriptWishes::of(TOOL, &never), ScriptWishes::default());
    }

    #[test]
    fn what_no_card_could_ask_is_refused() {
        let many: Vec<_> = (0..51).map(|n| n.to_string()).collect();
        for input in [
            json!({}),
            json!({"question": " ", "kind": "text"}),
            json!({"question": "q", "kind": "guess"}),
            json!({"question": "q", "kind": "choice"}),
            json!({"question": "q", "kind": "choice", "options": []}),
            json!({"question": "q", "kind": "choice", "options": [1]}),
            json!({"question": "q", "kind": "choice", "options": many}),
        ] {
            assert_eq!(parse(&input), None, "{input}");
        }
    }
}
