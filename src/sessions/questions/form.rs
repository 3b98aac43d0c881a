//! A form of an MCP server's as questions of ours, and filled in again. It
//! stands at the desk as a call of our own.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::call::AnswerShape;
use super::{
    Ask, Format, MAX_QUESTIONS, NumberRange, Question, QuestionKind, QuestionOption, QuestionTap,
};
use crate::talk::Form;

/// The name of that call.
pub const CALL: &str = "nod_elicitation";

/// The form in the input of such a call.
pub fn read(input: &Value) -> Option<Form> {
    Form::deserialize(input).ok()
}

/// The input under which a form reads back by [`read`].
pub fn input(asked: &Form) -> Value {
    json!(asked)
}

/// The questions of a form; `None` for one that no card can hold.
pub fn questions(asked: &Form) -> Option<(Ask, AnswerShape)> {
    let fields = fields(&asked.schema)?;
    if fields.is_empty() || fields.len() > MAX_QUESTIONS {
        return None;
    }
    let questions = fields
        .iter()
        .enumerate()
        .map(|(i, field)| question(field, (i == 0).then_some(asked.message.as_str())))
        .collect();
    Some((Ask { questions }, AnswerShape::Fields(fields)))
}

/// A form, filled in with kept words, one per field.
pub fn content(fields: &[Field], words: &[String]) -> Map<String, Value> {
    let fields = fields.iter().zip(words);
    fields
        .filter_map(|(field, words)| Some((field.name.clone(), value(&field.kind, words)?)))
        .collect()
}

/// What the options that `A, B` names send; a label may hold a comma of its own.
fn picked(options: &[(String, String)], words: &str) -> Vec<Value> {
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
        found.push(Value::String(options[i].0.clone()));
        rest = after;
    }
    found
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub required: bool,
    pub kind: FieldKind,
    /// What a number may be.
    pub range: NumberRange,
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

/// The fields of a form's schema: a flat object of simple values, as
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
                range: NumberRange::new(property["minimum"].as_f64(), property["maximum"].as_f64()),
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

fn question(field: &Field, message: Option<&str>) -> Question {
    let optional = !field.required;
    let text = |format| QuestionKind::Text { format, optional };
    let kind = match &field.kind {
        FieldKind::Text => text(Format::Any),
        FieldKind::Number => text(Format::Number(field.range)),
        FieldKind::Integer => text(Format::Integer(field.range)),
        FieldKind::YesNo => QuestionKind::Confirm,
        FieldKind::Choice { options, multi } => QuestionKind::Choice {
            options: options
                .iter()
                .map(|(_, shown)| QuestionOption {
                    label: shown.clone(),
                    description: None,
                    preview: None,
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

/// What a field sends for kept words; nothing where it was left open.
fn value(kind: &FieldKind, words: &str) -> Option<Value> {
    if words.is_empty() {
        return None;
    }
    Some(match kind {
        FieldKind::YesNo => Value::Bool(words == QuestionTap::Yes.as_name()),
        FieldKind::Number => words.parse::<f64>().ok()?.into(),
        FieldKind::Integer => words.parse::<i64>().ok()?.into(),
        FieldKind::Text => Value::String(words.to_owned()),
        FieldKind::Choice {
            options,
            multi: true,
        } => Value::Array(picked(options, words)),
        FieldKind::Choice { options, .. } => picked(options, words).into_iter().next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::call::Back;
    use super::super::{Asker, KeptDecision, Reply};
    use super::*;
    use crate::talk::Filled;

    #[test]
    fn an_elicitation_comes_back_typed() {
        let asked = Form {
            server: None,
            message: "Who?".to_owned(),
            schema: json!({"properties":{
                "age":{"type":"integer"},
                "ok":{"type":"boolean"},
                "size":{"enum":["s","l"],"enumNames":["small","large"]},
                "tags":{"type":"array","items":{"enum":["a","b"]}}
            }}),
        };
        let (ask, source) = questions(&asked).expect("fields");
        assert_eq!(ask.questions[0].text, "Who?");
        assert_eq!(source.refused("", true), Back::Filled(Filled::Cancel));
        let reply = Reply::Text("42\n是\nlarge\na, b".to_owned());
        let KeptDecision::Answers(words) = ask.decided(&ask.read(&reply).expect("an answer"))
        else {
            panic!("no answers")
        };
        let expected = json!({"age":42,"ok":true,"size":"l","tags":["a","b"]});
        assert_eq!(Asker::Agent(source).answered(&words), (expected, None));
    }

    #[test]
    fn an_elicitation_is_filled_in_from_kept_words() {
        let asked = Form {
            server: Some("files".to_owned()),
            message: "More about it".to_owned(),
            schema: json!({"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer"},
                "sure": {"type": "boolean"},
                "tags": {"type": "array", "items": {"enum": ["a", "b", "c"], "enumNames": ["A", "A, B", "C"]}},
            }}),
        };
        let call = input(&asked);
        let (ask, asked) = super::super::call::read(CALL, &call).expect("a question");
        assert_eq!(ask.questions.len(), 4);
        let AnswerShape::Fields(fields) = asked else {
            panic!("fields")
        };
        let words = ["lin", "", "yes", "A, B, C"].map(str::to_owned);
        let expected = json!({"name": "lin", "sure": true, "tags": ["b", "c"]});
        assert_eq!(Value::Object(content(&fields, &words)), expected);
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
