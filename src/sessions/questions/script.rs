//! Questions a script asks through `nod ask`. They travel as a tool call of
//! our own, so that they wait, resume and end like any request.

use serde_json::{Value, json};

use super::{Ask, Choice, Format, Kind, MAX_ANSWER, Question};

pub const TOOL: &str = "nod_ask";
const MAX_OPTIONS: usize = 50;

/// The tool input that asks this question.
pub fn input(question: &Question) -> Value {
    let mut input = json!({"question": question.text});
    match &question.kind {
        Kind::Confirm => input["kind"] = json!("confirm"),
        Kind::Text { .. } => input["kind"] = json!("text"),
        Kind::Plan { .. } => input["kind"] = json!("plan"),
        Kind::Choice {
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

pub fn parse(input: &Value) -> Option<Ask> {
    let text = input["question"].as_str()?.to_owned();
    if text.trim().is_empty() || text.len() > MAX_ANSWER {
        return None;
    }
    let kind = match input["kind"].as_str()? {
        "confirm" => Kind::Confirm,
        "text" => Kind::Text {
            format: Format::Any,
            optional: false,
        },
        "choice" => {
            let labels = input["options"].as_array()?;
            let options: Option<Vec<_>> = labels
                .iter()
                .map(|label| {
                    Some(Choice {
                        label: label.as_str()?.to_owned(),
                        description: None,
                    })
                })
                .collect();
            let options = options.filter(|o| (1..=MAX_OPTIONS).contains(&o.len()))?;
            Kind::Choice {
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
        let choice = |multi, other| Kind::Choice {
            options: vec![Choice {
                label: "a".to_owned(),
                description: None,
            }],
            multi,
            other,
            optional: false,
        };
        let text = Kind::Text {
            format: Format::Any,
            optional: false,
        };
        for kind in [
            Kind::Confirm,
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
