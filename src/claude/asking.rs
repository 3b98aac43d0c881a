//! What Claude Code asks a person besides "may I": its question tool, its
//! plan tool and an MCP server's elicitation, each with the exact form of
//! answer the CLI accepts. A plain allow is ignored for the first two.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::talk::Verdict;

pub const ASK_USER_QUESTION: &str = "AskUserQuestion";
pub const EXIT_PLAN_MODE: &str = "ExitPlanMode";

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
}

impl Questions {
    pub fn parse(input: &Value) -> Option<Self> {
        let mut read = Self::deserialize(input).ok()?;
        read.echo = input.clone();
        (!read.questions.is_empty()).then_some(read)
    }

    /// The allow that carries the answers, one per question, in order. Several
    /// labels stand as `A, B`.
    pub fn answered(&self, answers: &[String]) -> Verdict {
        let mut by_text = Map::new();
        for (question, answer) in self.questions.iter().zip(answers) {
            // Claude Code keys answers by the question's text, so two equal
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
        Verdict::Allow {
            input,
            permissions: Vec::new(),
        }
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
    pub fn approved(&self, accept_edits: bool) -> Verdict {
        let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
        Verdict::Allow {
            input: self.echo.clone(),
            permissions: if accept_edits { vec![mode] } else { Vec::new() },
        }
    }
}

/// One field of an elicitation's form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub required: bool,
    pub kind: FieldKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    Text,
    Number,
    Integer,
    YesNo,
    /// What is sent, and what a person reads.
    Choice {
        options: Vec<(String, String)>,
        multi: bool,
    },
}

/// The fields of an elicitation's schema: a flat object of simple values, as
/// the MCP specification has it. `None` for any other shape.
pub fn fields(schema: &Value) -> Option<Vec<Field>> {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    schema["properties"]
        .as_object()?
        .iter()
        .map(|(name, property)| {
            let text = |field: &str| property[field].as_str().map(str::to_owned);
            Some(Field {
                name: name.clone(),
                title: text("title"),
                description: text("description"),
                required: required.contains(&name.as_str()),
                kind: field_kind(property)?,
            })
        })
        .collect()
}

fn field_kind(property: &Value) -> Option<FieldKind> {
    if let Some(options) = options(property) {
        return Some(FieldKind::Choice {
            options,
            multi: false,
        });
    }
    Some(match property["type"].as_str()? {
        "string" => FieldKind::Text,
        "number" => FieldKind::Number,
        "integer" => FieldKind::Integer,
        "boolean" => FieldKind::YesNo,
        "array" => FieldKind::Choice {
            options: options(&property["items"])?,
            multi: true,
        },
        _ => return None,
    })
}

/// Both spellings of a choice: `enum` (with `enumNames`), or `oneOf`/`anyOf`
/// of constants with titles.
fn options(property: &Value) -> Option<Vec<(String, String)>> {
    if let Some(values) = property["enum"].as_array() {
        return values
            .iter()
            .enumerate()
            .map(|(i, value)| {
                let value = value.as_str()?;
                let shown = property["enumNames"][i].as_str().unwrap_or(value);
                Some((value.to_owned(), shown.to_owned()))
            })
            .collect();
    }
    let named = property["oneOf"]
        .as_array()
        .or_else(|| property["anyOf"].as_array())?;
    named
        .iter()
        .map(|option| {
            let value = option["const"].as_str()?;
            let shown = option["title"].as_str().unwrap_or(value);
            Some((value.to_owned(), shown.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(verdict: Verdict) -> (Value, Vec<Value>) {
        match verdict {
            Verdict::Allow { input, permissions } => (input, permissions),
            Verdict::Deny { message, .. } => panic!("denied: {message}"),
        }
    }

    #[test]
    fn answers_are_keyed_by_question_and_the_input_is_echoed() {
        let input = json!({"questions":[
            {"question":"Which one?","header":"Pick","options":[{"label":"A","description":"a"},{"label":"B","description":"b"}],"multiSelect":false},
            {"question":"Sizes?","header":"Size","options":[{"label":"S"},{"label":"L"}],"multiSelect":true}
        ],"metadata":{"kept":true}});
        let asked = Questions::parse(&input).expect("questions");
        assert!(asked.questions[1].multi);
        let (answered, permissions) = allowed(asked.answered(&["B".to_owned(), "S, L".to_owned()]));
        let mut expected = input;
        expected["answers"] = json!({"Which one?":"B","Sizes?":"S, L"});
        assert_eq!(answered, expected);
        assert!(permissions.is_empty());
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
        let (answered, _) = allowed(asked.answered(&["1".to_owned(), "2".to_owned()]));
        assert_eq!(answered["answers"], json!({"Q":"1, 2"}));
    }

    #[test]
    fn a_plan_is_approved_by_its_echo() {
        let input = json!({"plan":"# do","planFilePath":"/p"});
        let plan = Plan::parse(&input);
        assert_eq!(plan.plan.as_deref(), Some("# do"));
        assert_eq!(allowed(plan.approved(false)), (input.clone(), Vec::new()));
        let (_, permissions) = allowed(plan.approved(true));
        assert_eq!(
            permissions,
            [json!({"type":"setMode","mode":"acceptEdits","destination":"session"})]
        );
        assert_eq!(
            allowed(Plan::parse(&json!(null)).approved(false)).0,
            json!({})
        );
    }

    #[test]
    fn a_flat_schema_becomes_fields_and_any_other_none() {
        let schema = json!({"type":"object","required":["name"],"properties":{
            "name":{"type":"string","title":"Name","description":"yours"},
            "age":{"type":"integer"},
            "rate":{"type":"number"},
            "ok":{"type":"boolean"},
            "size":{"type":"string","enum":["s","l"],"enumNames":["small","large"]},
            "tags":{"type":"array","items":{"anyOf":[{"const":"a","title":"Alpha"}]}}
        }});
        let fields = fields(&schema).expect("fields");
        let kinds: Vec<_> = fields.iter().map(|f| f.kind.clone()).collect();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            kinds,
            [
                FieldKind::Text,
                FieldKind::Integer,
                FieldKind::Number,
                FieldKind::YesNo,
                FieldKind::Choice {
                    options: vec![pair("s", "small"), pair("l", "large")],
                    multi: false
                },
                FieldKind::Choice {
                    options: vec![pair("a", "Alpha")],
                    multi: true
                },
            ]
        );
        assert!(fields[0].required && !fields[1].required);
        for bad in [
            json!(null),
            json!({"type":"object"}),
            json!({"properties":{"x":{"type":"object"}}}),
            json!({"properties":{"x":{"type":"array","items":{"type":"string"}}}}),
        ] {
            assert_eq!(super::fields(&bad), None, "{bad}");
        }
    }
}
