//! The calls that put a question to a person: they stand at the desk, in
//! records and before a hook as the call itself, and read back from it. Claude
//! Code makes such calls; the rooms of other agents make theirs into these.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::form::{self, Field};
use super::{Ask, Format, MAX_QUESTIONS, Question, QuestionKind, QuestionOption};
use crate::talk::{Filled, ToolVerdict};

pub const QUESTIONS: &str = "AskUserQuestion";
pub const PLAN: &str = "ExitPlanMode";

/// What the answer must be turned back into.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerShape {
    Questions(Questions),
    Plan(Plan),
    Fields(Vec<Field>),
}

/// The answer in the form the child waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Back {
    Verdict(ToolVerdict),
    Filled(Filled),
}

/// The question a tool call puts to a person; `None` for a tool that only
/// wants permission, or a form no card can hold.
pub fn read(name: &str, input: &Value) -> Option<(Ask, AnswerShape)> {
    match name {
        QUESTIONS => {
            let asked = Questions::parse(input)?;
            if asked.questions.len() > MAX_QUESTIONS {
                return None;
            }
            let questions = asked.questions.iter().map(question).collect();
            Some((Ask { questions }, AnswerShape::Questions(asked)))
        }
        PLAN => {
            let plan = Plan::parse(input);
            let question = Question {
                header: None,
                text: String::new(),
                kind: QuestionKind::Plan {
                    plan: plan.plan.clone(),
                    accept_edits: true,
                },
            };
            Some((Ask::one(question), AnswerShape::Plan(plan)))
        }
        form::CALL => form::questions(&form::read(input)?),
        _ => None,
    }
}

impl AnswerShape {
    /// No answer will come; `because` is for the model to read.
    pub fn refused(&self, because: &str, interrupt: bool) -> Back {
        match self {
            Self::Questions(_) | Self::Plan(_) => Back::Verdict(ToolVerdict::Deny {
                message: because.to_owned(),
                interrupt,
            }),
            Self::Fields(_) => Back::Filled(Filled::Cancel),
        }
    }
}

/// The input of `AskUserQuestion`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Questions {
    pub questions: Vec<AskedQuestion>,
    #[serde(skip)]
    echo: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AskedQuestion {
    pub question: String,
    #[serde(default)]
    pub header: Option<String>,
    #[serde(default)]
    pub options: Vec<AskedOption>,
    #[serde(default, rename = "multiSelect")]
    pub multi: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AskedOption {
    pub label: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub preview: Option<String>,
}

impl Questions {
    pub fn parse(input: &Value) -> Option<Self> {
        let mut read = Self::deserialize(input).ok()?;
        read.echo = input.clone();
        (!read.questions.is_empty()).then_some(read)
    }

    /// The input that carries the answers, one per question, in order. Several
    /// labels stand as `A, B`.
    pub fn answered(&self, answers: &[String]) -> Value {
        let mut by_text = Map::new();
        for (question, answer) in self.questions.iter().zip(answers) {
            // Answers go by the question's text, so two equal
            // questions share one answer.
            by_text
                .entry(&question.question)
                .and_modify(|earlier| {
                    let both = format!("{}, {answer}", earlier.as_str().unwrap_or_default());
                    *earlier = Value::String(both);
                })
                .or_insert_with(|| Value::String(answer.clone()));
        }
        let mut input = self.echo.clone();
        input["answers"] = Value::Object(by_text);
        input
    }
}

/// The input of `ExitPlanMode`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Missing when the agent wrote no plan file.
    pub plan: Option<String>,
    echo: Value,
}

impl Plan {
    pub fn parse(input: &Value) -> Self {
        Self {
            plan: input["plan"].as_str().map(str::to_owned),
            echo: if input.is_object() {
                input.clone()
            } else {
                json!({})
            },
        }
    }

    /// The plan is approved only if its input comes back.
    pub fn approved(&self) -> Value {
        self.echo.clone()
    }
}

fn question(asked: &AskedQuestion) -> Question {
    let kind = if asked.options.is_empty() {
        QuestionKind::Text {
            format: Format::Any,
            optional: false,
        }
    } else {
        QuestionKind::Choice {
            options: asked
                .options
                .iter()
                .map(|option| QuestionOption {
                    label: option.label.clone(),
                    description: option.description.clone().filter(|d| !d.is_empty()),
                    preview: option.preview.clone().filter(|p| !p.trim().is_empty()),
                })
                .collect(),
            multi: asked.multi,
            other: true,
            optional: false,
        }
    };
    Question {
        header: asked.header.clone().filter(|header| !header.is_empty()),
        text: asked.question.clone(),
        kind,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Asker, KeptDecision, QuestionTap, Reply};
    use super::*;
    use crate::talk::Mode;

    /// The input of the allow and the mode after it, or why it is a refusal.
    fn answered(
        (ask, asked): (Ask, AnswerShape),
        reply: &Reply,
    ) -> Result<(Value, Option<Mode>), Option<String>> {
        let outcome = ask.read(reply).expect("an answer");
        match ask.decided(&outcome) {
            KeptDecision::Answers(words) => Ok(Asker::Agent(asked).answered(&words)),
            KeptDecision::Refused(why) => Err(why),
        }
    }

    fn question(name: &str, input: &Value) -> (Ask, AnswerShape) {
        read(name, input).expect("a question")
    }

    fn text(text: &str) -> Reply {
        Reply::Text(text.to_owned())
    }

    fn two() -> Value {
        json!({"questions":[
            {"question":"Which?","header":"Pick","options":[{"label":"A","description":"a"},{"label":"B"}],"multiSelect":false},
            {"question":"Sizes?","options":[{"label":"S"},{"label":"L"}],"multiSelect":true}
        ]})
    }

    #[test]
    fn the_question_tool_is_answered_by_text_by_number_and_in_own_words() {
        for (reply, which, sizes) in [
            ("B\nS, L", "B", "S, L"),
            ("2\n1 2", "B", "S, L"),
            ("neither\nL", "neither", "L"),
        ] {
            let back = answered(question("AskUserQuestion", &two()), &text(reply));
            let (input, mode) = back.expect("an allow");
            assert_eq!(input["answers"], json!({"Which?": which, "Sizes?": sizes}));
            assert_eq!(input["questions"], two()["questions"]);
            assert_eq!(mode, None);
        }
    }

    #[test]
    fn a_declined_question_is_a_refusal() {
        let asked = question("AskUserQuestion", &two());
        assert_eq!(
            answered(asked, &Reply::Tap(QuestionTap::Decline)),
            Err(None)
        );
    }

    #[test]
    fn a_plan_is_approved_revised_or_left() {
        let input = json!({"plan":"# do","planFilePath":"/p"});
        let plan = || question("ExitPlanMode", &input);
        let approved = answered(plan(), &Reply::Tap(QuestionTap::ApprovePlan));
        assert_eq!(approved, Ok((input.clone(), None)));
        let edits = answered(plan(), &Reply::Tap(QuestionTap::ApprovePlanAndEdits));
        assert_eq!(edits, Ok((input.clone(), Some(Mode::AcceptEdits))));
        let revised = answered(plan(), &text("先写测试"));
        assert_eq!(revised, Err(Some("先写测试".to_owned())));
    }

    #[test]
    fn answers_are_keyed_by_question_and_the_input_is_echoed() {
        let input = json!({"questions":[
            {"question":"Which one?","header":"Pick","options":[{"label":"A","description":"a"},{"label":"B","description":"b"}],"multiSelect":false},
            {"question":"Sizes?","header":"Size","options":[{"label":"S"},{"label":"L"}],"multiSelect":true}
        ],"metadata":{"kept":true}});
        let asked = Questions::parse(&input).expect("questions");
        assert!(asked.questions[1].multi);
        let answered = asked.answered(&["B".to_owned(), "S, L".to_owned()]);
        let mut expected = input;
        expected["answers"] = json!({"Which one?":"B","Sizes?":"S, L"});
        assert_eq!(answered, expected);
    }

    #[test]
    fn what_holds_no_question_is_none() {
        for input in [json!({}), json!({"questions":[]}), json!(null)] {
            assert!(Questions::parse(&input).is_none(), "{input}");
        }
    }

    #[test]
    fn equal_questions_keep_both_answers() {
        let input = json!({"questions":[{"question":"Q"},{"question":"Q"}]});
        let asked = Questions::parse(&input).expect("questions");
        let answered = asked.answered(&["1".to_owned(), "2".to_owned()]);
        assert_eq!(answered["answers"], json!({"Q":"1, 2"}));
    }

    #[test]
    fn a_plan_is_approved_by_its_echo() {
        let input = json!({"plan":"# do","planFilePath":"/p"});
        let plan = Plan::parse(&input);
        assert_eq!(plan.plan.as_deref(), Some("# do"));
        assert_eq!(plan.approved(), input);
        assert_eq!(Plan::parse(&json!(null)).approved(), json!({}));
    }

    #[test]
    fn what_no_card_can_hold_is_none() {
        let many: Vec<_> = (0..5).map(|i| json!({"question": i.to_string()})).collect();
        assert!(read("AskUserQuestion", &json!({"questions": many})).is_none());
        assert!(read("AskUserQuestion", &json!({})).is_none());
        assert!(read("Bash", &json!({"command":"ls"})).is_none());
    }
}
