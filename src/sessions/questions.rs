//! A question to a person, whoever asks it, and how an answer is read from a
//! tap, a submitted form or a text. An answer that could mean two things is a
//! problem to tell, never a guess.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::talk::Mode;

pub mod call;
pub mod form;
mod read;
pub mod script;

pub const MAX_QUESTIONS: usize = 4;
/// Longer than any answer a person types, and small beside a prompt.
pub const MAX_ANSWER: usize = 20_000;
/// What the agent hears where nobody says what to change.
pub const KEEP_PLANNING: &str = "Keep planning; the plan is not approved yet.";

/// One card: one to four questions, answered together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub questions: Vec<Question>,
}

impl Ask {
    pub fn one(question: Question) -> Self {
        Self {
            questions: vec![question],
        }
    }

    /// Whether the person is expected to type, rather than to tap.
    pub fn wants_text(&self) -> bool {
        let is_text = |question: &Question| matches!(question.kind, QuestionKind::Text { .. });
        self.questions.iter().any(is_text)
    }

    /// Whether these words are a yes to its one question.
    pub fn is_yes(&self, text: &str) -> bool {
        let read = self.read(&Reply::Text(text.to_owned()));
        matches!(read, Ok(ReplyOutcome::Answered(answers)) if answers == [QuestionAnswer::Yes])
    }

    /// Offers no "approve and accept edits": who asks can't be told a mode.
    pub fn withhold_accept_edits(&mut self) {
        for question in &mut self.questions {
            if let QuestionKind::Plan { accept_edits, .. } = &mut question.kind {
                *accept_edits = false;
            }
        }
    }

    /// Whether it asks to approve a plan.
    pub fn is_plan(&self) -> bool {
        let is_plan = |question: &Question| matches!(question.kind, QuestionKind::Plan { .. });
        self.questions.iter().any(is_plan)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// A word or two that name the topic.
    pub header: Option<String>,
    pub text: String,
    pub kind: QuestionKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionKind {
    Confirm,
    Choice {
        options: Vec<QuestionOption>,
        multi: bool,
        /// Whether words of one's own are an answer too.
        other: bool,
        optional: bool,
    },
    Text {
        format: Format,
        optional: bool,
    },
    /// Stands alone on its card.
    Plan {
        plan: Option<String>,
        /// Whether "approve and accept edits" is offered.
        accept_edits: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionOption {
    pub label: String,
    pub description: Option<String>,
    /// What choosing it would look like: code, a layout, a text.
    pub preview: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Any,
    Number(NumberRange),
    Integer(NumberRange),
}

/// From which number to which one, both counted in; kept as bits, for numbers
/// with a point are not compared exactly elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NumberRange {
    least: Option<u64>,
    most: Option<u64>,
}

impl NumberRange {
    pub fn new(least: Option<f64>, most: Option<f64>) -> Self {
        Self {
            least: least.map(f64::to_bits),
            most: most.map(f64::to_bits),
        }
    }

    pub fn least(self) -> Option<f64> {
        self.least.map(f64::from_bits)
    }

    pub fn most(self) -> Option<f64> {
        self.most.map(f64::from_bits)
    }

    fn holds(self, number: f64) -> bool {
        self.least().is_none_or(|least| number >= least)
            && self.most().is_none_or(|most| number <= most)
    }
}

/// What a person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Tap(QuestionTap),
    /// A submitted form, with the button that submitted it.
    Form {
        button: Option<QuestionTap>,
        fields: Fields,
    },
    Text(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionTap {
    Yes,
    No,
    Option(usize),
    ApprovePlan,
    ApprovePlanAndEdits,
    RevisePlan,
    /// "I will not answer this."
    Decline,
}

impl QuestionTap {
    pub fn as_name(self) -> String {
        match self {
            Self::Yes => "yes".to_owned(),
            Self::No => "no".to_owned(),
            Self::Option(index) => option_value(index),
            Self::ApprovePlan => "approve_plan".to_owned(),
            Self::ApprovePlanAndEdits => "approve_plan_edits".to_owned(),
            Self::RevisePlan => "revise_plan".to_owned(),
            Self::Decline => "decline".to_owned(),
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "yes" => Self::Yes,
            "no" => Self::No,
            "approve_plan" => Self::ApprovePlan,
            "approve_plan_edits" => Self::ApprovePlanAndEdits,
            "revise_plan" => Self::RevisePlan,
            "decline" => Self::Decline,
            option => Self::Option(option_index(option)?),
        })
    }
}

/// A form's values by field name; a field of several choices has several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields(BTreeMap<String, Vec<String>>);

impl Fields {
    pub fn from_json(form: &Map<String, Value>) -> Self {
        let texts = |value: &Value| match value {
            Value::String(text) => vec![text.clone()],
            Value::Array(items) => items
                .iter()
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
        };
        Self(
            form.iter()
                .map(|(name, value)| (name.clone(), texts(value)))
                .collect(),
        )
    }

    fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// What was chosen in a select; some clients send a list as JSON text.
    fn choices(&self, name: &str) -> Vec<String> {
        match self.all(name) {
            [text] if text.starts_with('[') => {
                serde_json::from_str(text).unwrap_or_else(|_| vec![text.clone()])
            }
            all => all.to_vec(),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        let text = self.all(name).first()?.trim();
        (!text.is_empty()).then_some(text)
    }
}

/// The name of the button that hands the form in, and taps nothing else.
pub const SUBMIT: &str = "submit_answer";

/// What another submit button taps by its name alone, for clients that drop
/// its value.
pub fn submitted_by(name: &str) -> Option<QuestionTap> {
    Some(match name {
        "submit_approve_plan" => QuestionTap::ApprovePlan,
        "submit_approve_edits" => QuestionTap::ApprovePlanAndEdits,
        "submit_revise_plan" => QuestionTap::RevisePlan,
        _ => return None,
    })
}

/// The name of a question's select or input in the form.
pub fn field(question: usize) -> String {
    format!("q{question}")
}

/// The name of the input for words of one's own beside a choice.
pub fn other_field(question: usize) -> String {
    format!("q{question}_other")
}

/// The value of an option in a select.
pub fn option_value(index: usize) -> String {
    format!("o{index}")
}

fn option_index(value: &str) -> Option<usize> {
    value.strip_prefix('o')?.parse().ok()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// One answer per question, in order.
    Answered(Vec<QuestionAnswer>),
    Declined,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionAnswer {
    Yes,
    No,
    Picked {
        options: Vec<usize>,
        other: Option<String>,
    },
    Text(String),
    /// An optional question left open.
    Skipped,
    PlanApproved {
        accept_edits: bool,
    },
    PlanRevised(String),
}

/// Why a reply is no answer. The person is told, and the question stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyProblem {
    Empty,
    TooLong,
    YesOrNo,
    NoSuchOption {
        number: usize,
        of: usize,
    },
    PickOne {
        of: usize,
    },
    OnlyOne,
    NotANumber,
    NotAnInteger,
    OutOfRange(NumberRange),
    OneLineEach {
        questions: usize,
    },
    /// One of several has no answer yet, counted from one.
    Unanswered {
        number: usize,
    },
    /// A button that does not belong to this question.
    NotThisQuestion,
}

/// Whoever asks by a tool call, and how the answer goes back to them.
#[derive(Debug, Clone, PartialEq)]
pub enum Asker {
    Agent(call::AnswerShape),
    Script,
}

/// The question a tool call puts to a person; `None` for a call that only
/// wants permission.
pub fn of(tool: &str, input: &Value) -> Option<(Ask, Asker)> {
    if tool == script::TOOL {
        return Some((script::parse(input)?, Asker::Script));
    }
    let (ask, asked) = call::read(tool, input)?;
    Some((ask, Asker::Agent(asked)))
}

/// What a person decided, in words that can be kept: the same words give the
/// same answer back, also after a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptDecision {
    Answers(Vec<String>),
    /// No answer, or a plan sent back; the words are for the asker.
    Refused(Option<String>),
}

impl Ask {
    pub fn decided(&self, outcome: &ReplyOutcome) -> KeptDecision {
        let ReplyOutcome::Answered(answers) = outcome else {
            return KeptDecision::Refused(None);
        };
        if let [QuestionAnswer::PlanRevised(text)] = answers.as_slice() {
            return KeptDecision::Refused(Some(text.clone()));
        }
        let words = self.questions.iter().zip(answers);
        KeptDecision::Answers(
            words
                .map(|(question, answer)| question.kept(answer))
                .collect(),
        )
    }
}

impl Asker {
    /// The allow that carries kept answers back: the input, and the mode that
    /// the agent is to go on in.
    pub fn answered(&self, words: &[String]) -> (Value, Option<Mode>) {
        match self {
            Self::Script => (serde_json::json!({"answers": words}), None),
            Self::Agent(call::AnswerShape::Questions(these)) => (these.answered(words), None),
            Self::Agent(call::AnswerShape::Plan(plan)) => (plan.approved(), mode_after(words)),
            Self::Agent(call::AnswerShape::Fields(fields)) => {
                (Value::Object(form::content(fields, words)), None)
            }
        }
    }
}

/// The mode that goes with an approved plan, by the words that are kept of it.
pub fn mode_after(words: &[String]) -> Option<Mode> {
    let edits = QuestionTap::ApprovePlanAndEdits.as_name();
    (words.first() == Some(&edits)).then_some(Mode::AcceptEdits)
}

impl Question {
    /// The answer as the asker and the decided card word it, or its button's
    /// name where the words depend on the reader's language.
    fn kept(&self, answer: &QuestionAnswer) -> String {
        match answer {
            QuestionAnswer::Yes => QuestionTap::Yes.as_name(),
            QuestionAnswer::No => QuestionTap::No.as_name(),
            QuestionAnswer::PlanApproved { accept_edits: true } => {
                QuestionTap::ApprovePlanAndEdits.as_name()
            }
            QuestionAnswer::PlanApproved {
                accept_edits: false,
            } => QuestionTap::ApprovePlan.as_name(),
            QuestionAnswer::Picked {
                options: picked,
                other,
            } => {
                let options = match &self.kind {
                    QuestionKind::Choice { options, .. } => options.as_slice(),
                    _ => &[],
                };
                let labels = picked.iter().filter_map(|i| options.get(*i));
                let mut words: Vec<&str> = labels.map(|choice| choice.label.as_str()).collect();
                words.extend(other.as_deref());
                words.join(", ")
            }
            QuestionAnswer::Text(text) | QuestionAnswer::PlanRevised(text) => text.clone(),
            QuestionAnswer::Skipped => String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
