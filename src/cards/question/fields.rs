//! What a person fills in on a question's card.

use serde_json::{Value, json};

use super::{MAX_LABEL, masked};
use crate::cards::{fold, label_above, plain, words_field};
use crate::sessions::questions::{
    Question, QuestionKind, QuestionTap, field, option_value, other_field,
};
use crate::text::{Lang, Text};
use crate::wording::question as words;

/// The fields one question adds to the form.
pub(super) fn inputs(i: usize, question: &Question, lang: Lang) -> Vec<Value> {
    match &question.kind {
        QuestionKind::Confirm => {
            let options = [(words::YES, QuestionTap::Yes), (words::NO, QuestionTap::No)]
                .map(|(label, tap)| (label.get(lang).to_owned(), tap.as_name()));
            vec![select(i, &question.text, &options, false, lang)]
        }
        QuestionKind::Choice {
            options,
            multi,
            other,
            ..
        } => {
            let options: Vec<_> = options
                .iter()
                .enumerate()
                .map(|(n, choice)| (masked(&choice.label, MAX_LABEL), option_value(n)))
                .collect();
            let mut fields = vec![select(i, &question.text, &options, *multi, lang)];
            if *other {
                // What one would write opens only when it is wanted.
                let field = other_input(i, lang);
                let mut folded = fold(words::OTHER.get(lang), vec![field]);
                folded["element_id"] = json!(format!("p_other_{i}"));
                fields.push(folded);
            }
            fields
        }
        QuestionKind::Text { optional, .. } => {
            let hint = if *optional {
                words::OPTIONAL
            } else {
                words::YOUR_ANSWER
            };
            let label = masked(&question.text, MAX_LABEL);
            vec![input(&field(i), &label, &hint, lang)]
        }
        QuestionKind::Plan { .. } => Vec::new(),
    }
}

fn select(i: usize, label: &str, options: &[(String, String)], multi: bool, lang: Lang) -> Value {
    let options: Vec<Value> = options
        .iter()
        .map(|(label, value)| json!({"text": plain(label), "value": value}))
        .collect();
    let hint = if multi {
        words::CHOOSE_MANY
    } else {
        words::CHOOSE_ONE
    };
    let placeholder = format!("{} · {}", hint.get(lang), masked(label, 60));
    json!({
        "tag": if multi { "multi_select_static" } else { "select_static" },
        "element_id": format!("s_{i}"),
        "name": field(i),
        "type": "default",
        "width": "fill",
        "required": false,
        "placeholder": plain(&placeholder),
        "options": options,
    })
}

pub(super) fn other_input(i: usize, lang: Lang) -> Value {
    input(&other_field(i), "", &words::OTHER, lang)
}

pub(super) fn input(name: &str, label: &str, hint: &Text, lang: Lang) -> Value {
    let field = words_field(&format!("i_{name}"), name, 8, hint, lang);
    if label.is_empty() {
        return field;
    }
    label_above(field, label)
}
