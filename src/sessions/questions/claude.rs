//! Claude Code's three ways to ask, as questions of ours, and the answers back
//! in its own form.

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::{Answer, Ask, Choice, Format, Kind, MAX_QUESTIONS, Question, Tap};
use crate::claude::asking::{self, Field, FieldKind};
use crate::talk::{Elicitation, Elicited, Verdict};

/// An MCP server's elicitation, as a call of our own.
pub const ELICITATION: &str = "nod_elicitation";

/// What the answer must be turned back into.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    Questions(asking::Questions),
    Plan(asking::Plan),
    Fields(Vec<Field>),
}

/// The answer in the form the child waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Back {
    Verdict(Verdict),
    Elicited(Elicited),
}

/// The question a tool call puts to a person; `None` for a tool that only
/// wants permission, or a form no card can hold.
pub fn tool(name: &str, input: &Value) -> Option<(Ask, Asked)> {
    match name {
        asking::ASK_USER_QUESTION => {
            let asked = asking::Questions::parse(input)?;
            if asked.questions.len() > MAX_QUESTIONS {
                return None;
            }
            let questions = asked.questions.iter().map(question).collect();
            Some((Ask { questions }, Asked::Questions(asked)))
        }
        asking::EXIT_PLAN_MODE => {
            let plan = asking::Plan::parse(input);
            let question = Question {
                header: None,
                text: String::new(),
                kind: Kind::Plan {
                    plan: plan.plan.clone(),
                },
            };
            Some((Ask::one(question), Asked::Plan(plan)))
        }
        ELICITATION => elicitation(&Elicitation::deserialize(input).ok()?),
        _ => None,
    }
}

pub fn elicitation(asked: &Elicitation) -> Option<(Ask, Asked)> {
    let fields = asking::fields(&asked.schema)?;
    if fields.is_empty() || fields.len() > MAX_QUESTIONS {
        return None;
    }
    let questions = fields
        .iter()
        .enumerate()
        .map(|(i, field)| elicited(field, (i == 0).then_some(asked.message.as_str())))
        .collect();
    Some((Ask { questions }, Asked::Fields(fields)))
}

/// The input under which an elicitation reads back by [`tool`].
pub fn elicited_input(asked: &Elicitation) -> Value {
    json!({
        "mcp_server_name": asked.server,
        "message": asked.message,
        "requested_schema": asked.schema,
    })
}

/// An elicitation's form, filled in with kept words, one per field.
pub fn content(fields: &[Field], words: &[String]) -> Map<String, Value> {
    let mut content = Map::new();
    for (field, words) in fields.iter().zip(words) {
        let answer = match &field.kind {
            _ if words.is_empty() => Answer::Skipped,
            FieldKind::YesNo if *words == Tap::Yes.as_name() => Answer::Yes,
            FieldKind::YesNo => Answer::No,
            FieldKind::Choice { options, .. } => Answer::Picked {
                options: picked(options, words),
                other: None,
            },
            FieldKind::Text | FieldKind::Number | FieldKind::Integer => Answer::Text(words.clone()),
        };
        if let Some(value) = field_value(field, &answer) {
            content.insert(field.name.clone(), value);
        }
    }
    content
}

/// The options that `A, B` names; a label may hold a comma of its own.
fn picked(options: &[(String, String)], words: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut rest = words;
    while !rest.is_empty() {
        let fits = |label: &str| {
            let after = rest.strip_prefix(label)?;
            after
                .is_empty()
                .then_some("")
                .or_else(|| after.strip_prefix(", "))
        };
        let best = options
            .iter()
            .enumerate()
            .filter_map(|(i, (_, label))| Some((label.len(), i, fits(label)?)))
            .max();
        let Some((_, i, after)) = best else { break };
        found.push(i);
        rest = after;
    }
    found
}

impl Asked {
    /// No answer will come; `because` is for the model to read.
    pub fn refused(&self, because: &str, interrupt: bool) -> Back {
        match self {
            Self::Questions(_) | Self::Plan(_) => Back::Verdict(Verdict::Deny {
                message: because.to_owned(),
                interrupt,
            }),
            Self::Fields(_) => Back::Elicited(Elicited::Cancel),
        }
    }
}

fn question(asked: &asking::AskedQuestion) -> Question {
    let kind = if asked.options.is_empty() {
        Kind::Text {
            format: Format::Any,
            optional: false,
        }
    } else {
        Kind::Choice {
            options: asked
                .options
                .iter()
                .map(|option| Choice {
                    label: option.label.clone(),
                    description: option.description.clone().filter(|d| !d.is_empty()),
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

fn elicited(field: &Field, message: Option<&str>) -> Question {
    let optional = !field.required;
    let text = |format| Kind::Text { format, optional };
    let kind = match &field.kind {
        FieldKind::Text => text(Format::Any),
        FieldKind::Number => text(Format::Number),
        FieldKind::Integer => text(Format::Integer),
        FieldKind::YesNo => Kind::Confirm,
        FieldKind::Choice { options, multi } => Kind::Choice {
            options: options
                .iter()
                .map(|(_, shown)| Choice {
                    label: shown.clone(),
                    description: None,
                })
                .collect(),
            multi: *multi,
            other: false,
            optional,
        },
    };
    let words = [message, field.description.as_deref()];
    let text: Vec<&str> = words
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .collect();
    Question {
        header: Some(field.title.clone().unwrap_or_else(|| field.name.clone())),
        text: text.join("\n"),
        kind,
    }
}

fn field_value(field: &Field, answer: &Answer) -> Option<Value> {
    Some(match (&field.kind, answer) {
        (FieldKind::YesNo, Answer::Yes) => Value::Bool(true),
        (FieldKind::YesNo, Answer::No) => Value::Bool(false),
        (FieldKind::Number, Answer::Text(text)) => text.parse::<f64>().ok()?.into(),
        (FieldKind::Integer, Answer::Text(text)) => text.parse::<i64>().ok()?.into(),
        (FieldKind::Text, Answer::Text(text)) => Value::String(text.clone()),
        (
            FieldKind::Choice { options, multi },
            Answer::Picked {
                options: picked, ..
            },
        ) => {
            let mut values = picked
                .iter()
                .filter_map(|i| options.get(*i))
                .map(|(value, _)| Value::String(value.clone()));
            if *multi {
                Value::Array(values.collect())
            } else {
                values.next()?
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Asker, Decided, Reply};
    use super::*;

    /// The input and the permissions of the allow, or why it is a refusal.
    fn answered(
        (ask, asked): (Ask, Asked),
        reply: &Reply,
    ) -> Result<(Value, Vec<Value>), Option<String>> {
        let outcome = ask.read(reply).expect("an answer");
        match ask.decided(&outcome) {
            Decided::Answers(words) => Ok(ask.answered(&Asker::Claude(asked), &words)),
            Decided::Refused(why) => Err(why),
        }
    }

    fn question(name: &str, input: &Value) -> (Ask, Asked) {
        tool(name, input).expect("a question")
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
            let (input, permissions) = back.expect("an allow");
            assert_eq!(input["answers"], json!({"Which?": which, "Sizes?": sizes}));
            assert_eq!(input["questions"], two()["questions"]);
            assert!(permissions.is_empty());
        }
    }

    #[test]
    fn a_declined_question_is_a_refusal() {
        let asked = question("AskUserQuestion", &two());
        assert_eq!(answered(asked, &Reply::Tap(Tap::Decline)), Err(None));
    }

    #[test]
    fn a_plan_is_approved_revised_or_left() {
        let input = json!({"plan":"# do","planFilePath":"/p"});
        let plan = || question("ExitPlanMode", &input);
        let approved = answered(plan(), &Reply::Tap(Tap::ApprovePlan));
        assert_eq!(approved, Ok((input.clone(), Vec::new())));
        let edits = answered(plan(), &Reply::Tap(Tap::ApprovePlanAndEdits));
        assert_eq!(edits.expect("an allow").1.len(), 1);
        let revised = answered(plan(), &text("先写测试"));
        assert_eq!(revised, Err(Some("先写测试".to_owned())));
    }

    #[test]
    fn an_elicitation_comes_back_typed() {
        let asked = Elicitation {
            server: None,
            message: "Who?".to_owned(),
            mode: None,
            schema: json!({"properties":{
                "age":{"type":"integer"},
                "ok":{"type":"boolean"},
                "size":{"enum":["s","l"],"enumNames":["small","large"]},
                "tags":{"type":"array","items":{"enum":["a","b"]}}
            }}),
        };
        let (ask, source) = elicitation(&asked).expect("fields");
        assert_eq!(ask.questions[0].text, "Who?");
        assert_eq!(source.refused("", true), Back::Elicited(Elicited::Cancel));
        let back = answered((ask, source), &text("42\n是\nlarge\na, b"));
        let expected = json!({"age":42,"ok":true,"size":"l","tags":["a","b"]});
        assert_eq!(back, Ok((expected, Vec::new())));
    }

    #[test]
    fn what_no_card_can_hold_is_none() {
        let many: Vec<_> = (0..5).map(|i| json!({"question": i.to_string()})).collect();
        assert!(tool("AskUserQuestion", &json!({"questions": many})).is_none());
        assert!(tool("AskUserQuestion", &json!({})).is_none());
        assert!(tool("Bash", &json!({"command":"ls"})).is_none());
    }

    #[test]
    fn an_elicitation_is_filled_in_from_kept_words() {
        let asked = Elicitation {
            server: Some("files".to_owned()),
            message: "More about it".to_owned(),
            mode: None,
            schema: json!({"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer"},
                "sure": {"type": "boolean"},
                "tags": {"type": "array", "items": {"enum": ["a", "b", "c"], "enumNames": ["A", "A, B", "C"]}},
            }}),
        };
        let input = elicited_input(&asked);
        let (ask, asked) = tool(ELICITATION, &input).expect("a question");
        assert_eq!(ask.questions.len(), 4);
        let Asked::Fields(fields) = asked else {
            panic!("fields")
        };
        let words = ["lin", "", "yes", "A, B, C"].map(str::to_owned);
        let expected = json!({"name": "lin", "sure": true, "tags": ["b", "c"]});
        assert_eq!(Value::Object(content(&fields, &words)), expected);
    }
}
