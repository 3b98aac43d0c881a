//! The card of a question or a plan: what is asked, and the ways to answer it.
//! The asker's words stand in plain text only, as everywhere.

use serde_json::{Value, json};

use super::escape::{self, Budget, Shape};
use super::permission::origin;
use super::{Head, card, cut, div, fitting, local_time, markdown, note, place, plain, short};
use crate::approvals::request::Request;
use crate::sessions::questions::{
    Ask, Choice, Kind, Question, Tap, field, option_value, other_field,
};
use crate::wording::question as words;
use crate::wording::{Lang, Text};

/// Choices that fit under each other as buttons; more go into a list.
const MAX_BUTTONS: usize = 6;
const MAX_LABEL: usize = 90;
const MAX_DESCRIPTION: usize = 400;

/// The card of a question that waits. `values` makes each button's own value.
pub fn pending(
    request: &Request,
    ask: &Ask,
    values: &dyn Fn(Tap) -> Value,
    submit: &Value,
    lang: Lang,
) -> Value {
    fitting(|budget| {
        let mut elements = asked(ask, budget, lang);
        elements.extend(ways(ask, values, submit, lang));
        elements.push(note(&origin(request, lang)));
        let until = words::expires(&local_time(request.deadline));
        elements.push(markdown(&format!(
            "<font color='grey'>{}</font>",
            until.get(lang)
        )));
        let title = ask
            .questions
            .first()
            .map_or(words::TEXT_TITLE, |question| words::title(&question.kind));
        let head = Head {
            colour: colour(ask),
            title: &title,
            tag: &words::WAITING,
            tag_colour: "blue",
            place: &place(&request.origin),
        };
        card(&head, elements, lang)
    })
}

/// What was asked, for the waiting card and the decided one alike.
pub(super) fn asked(ask: &Ask, budget: Budget, lang: Lang) -> Vec<Value> {
    let share = Budget {
        bytes: budget.bytes / ask.questions.len().max(1),
        lines: budget.lines,
    };
    let mut elements = Vec::new();
    for question in &ask.questions {
        if let Some(header) = &question.header {
            elements.push(note(&short(header, MAX_LABEL)));
        }
        if let Kind::Plan { plan } = &question.kind {
            let plan = plan.as_deref().filter(|plan| !plan.trim().is_empty());
            match plan {
                Some(plan) => elements.extend(shown(plan, share, lang)),
                None => elements.push(note(words::NO_PLAN.get(lang))),
            }
        } else {
            elements.extend(shown(&question.text, share, lang));
        }
        if let Kind::Choice { options, .. } = &question.kind {
            let lines: Vec<String> = options.iter().filter_map(described).collect();
            if !lines.is_empty() {
                elements.push(note(&lines.join("\n")));
            }
        }
    }
    elements
}

fn described(choice: &Choice) -> Option<String> {
    let description = choice.description.as_deref()?;
    Some(format!(
        "{}: {}",
        short(&choice.label, MAX_LABEL),
        short(description, MAX_DESCRIPTION)
    ))
}

fn shown(text: &str, budget: Budget, lang: Lang) -> Vec<Value> {
    let shown = escape::fit(text, Shape::Code, &[], budget);
    let mut nodes = vec![div(&shown.head)];
    if let Some(hidden) = shown.hidden {
        let omitted = crate::wording::card::omitted(hidden.range.len(), hidden.lines);
        nodes.push(note(omitted.get(lang)));
        nodes.push(div(&shown.tail));
    }
    nodes
}

fn colour(ask: &Ask) -> &'static str {
    match ask.questions.first().map(|question| &question.kind) {
        Some(Kind::Confirm) => "yellow",
        Some(Kind::Choice { .. }) => "blue",
        Some(Kind::Plan { .. }) => "purple",
        Some(Kind::Text { .. }) | None => "grey",
    }
}

fn ways(ask: &Ask, values: &dyn Fn(Tap) -> Value, submit: &Value, lang: Lang) -> Vec<Value> {
    let decline = button(&words::DECLINE, "default", &values(Tap::Decline), lang);
    let mut nodes = match ask.questions.as_slice() {
        [question] => match &question.kind {
            Kind::Confirm => vec![
                button(&words::YES, "primary_filled", &values(Tap::Yes), lang),
                button(&words::NO, "default", &values(Tap::No), lang),
            ],
            Kind::Plan { .. } => vec![plan_form(values, lang)],
            Kind::Choice {
                options,
                multi: false,
                other,
                ..
            } if options.len() <= MAX_BUTTONS => {
                let mut nodes: Vec<Value> = options
                    .iter()
                    .enumerate()
                    .map(|(i, choice)| {
                        let label = short(&choice.label, MAX_LABEL);
                        labelled(&label, "default", &values(Tap::Option(i)))
                    })
                    .collect();
                if *other {
                    nodes.push(form(vec![other_input(0, lang)], submit, lang));
                }
                nodes.push(decline);
                nodes
            }
            Kind::Choice { .. } | Kind::Text { .. } => {
                vec![form(inputs(0, question, lang), submit, lang), decline]
            }
        },
        questions => {
            let fields = questions
                .iter()
                .enumerate()
                .flat_map(|(i, question)| inputs(i, question, lang));
            vec![form(fields.collect(), submit, lang), decline]
        }
    };
    nodes.push(note(words::REPLY_HINT.get(lang)));
    nodes
}

/// The fields one question adds to the form.
fn inputs(i: usize, question: &Question, lang: Lang) -> Vec<Value> {
    match &question.kind {
        Kind::Confirm => {
            let options = [(words::YES, Tap::Yes), (words::NO, Tap::No)]
                .map(|(label, tap)| (label.get(lang).to_owned(), tap.as_name()));
            vec![select(i, &question.text, &options, false, lang)]
        }
        Kind::Choice {
            options,
            multi,
            other,
            ..
        } => {
            let options: Vec<_> = options
                .iter()
                .enumerate()
                .map(|(n, choice)| (short(&choice.label, MAX_LABEL), option_value(n)))
                .collect();
            let mut fields = vec![select(i, &question.text, &options, *multi, lang)];
            if *other {
                fields.push(other_input(i, lang));
            }
            fields
        }
        Kind::Text { optional, .. } => {
            let hint = if *optional {
                words::OPTIONAL
            } else {
                words::YOUR_ANSWER
            };
            let label = cut(short(&question.text, MAX_LABEL), MAX_LABEL);
            vec![input(&field(i), &label, &hint, lang)]
        }
        Kind::Plan { .. } => Vec::new(),
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
    let placeholder = format!("{} · {}", hint.get(lang), short(label, 60));
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

fn other_input(i: usize, lang: Lang) -> Value {
    input(&other_field(i), "", &words::OTHER, lang)
}

fn input(name: &str, label: &str, hint: &Text, lang: Lang) -> Value {
    let mut input = json!({
        "tag": "input",
        "element_id": format!("i_{name}"),
        "name": name,
        "required": false,
        "input_type": "multiline_text",
        "rows": 2,
        "auto_resize": true,
        "max_rows": 8,
        "max_length": 1000,
        "width": "fill",
        "placeholder": plain(hint.get(lang)),
    });
    if !label.is_empty() {
        input["label"] = plain(label);
        input["label_position"] = json!("top");
    }
    input
}

fn form(mut elements: Vec<Value>, submit: &Value, lang: Lang) -> Value {
    elements.push(submit_button(
        "submit_answer",
        &words::SUBMIT,
        "primary_filled",
        submit,
        lang,
    ));
    json!({
        "tag": "form",
        "element_id": "f_answer",
        "name": "answer_form",
        "vertical_spacing": "8px",
        "elements": elements,
    })
}

fn plan_form(values: &dyn Fn(Tap) -> Value, lang: Lang) -> Value {
    let buttons = [
        (
            "submit_approve_plan",
            &words::APPROVE_PLAN,
            "primary_filled",
            Tap::ApprovePlan,
        ),
        (
            "submit_approve_edits",
            &words::APPROVE_PLAN_EDITS,
            "default",
            Tap::ApprovePlanAndEdits,
        ),
        (
            "submit_revise_plan",
            &words::REVISE_PLAN,
            "default",
            Tap::RevisePlan,
        ),
    ];
    let mut elements = vec![input(
        &field(0),
        words::WHAT_TO_CHANGE.get(lang),
        &words::OPTIONAL,
        lang,
    )];
    elements.extend(
        buttons
            .into_iter()
            .map(|(name, label, kind, tap)| submit_button(name, label, kind, &values(tap), lang)),
    );
    json!({
        "tag": "form",
        "element_id": "f_plan",
        "name": "plan_form",
        "vertical_spacing": "8px",
        "elements": elements,
    })
}

fn submit_button(name: &str, label: &Text, kind: &str, value: &Value, lang: Lang) -> Value {
    let mut made = button(label, kind, value, lang);
    made["name"] = json!(name);
    made["form_action_type"] = json!("submit");
    made
}

fn button(label: &Text, kind: &str, value: &Value, lang: Lang) -> Value {
    labelled(label.get(lang), kind, value)
}

fn labelled(label: &str, kind: &str, value: &Value) -> Value {
    json!({
        "tag": "button",
        "type": kind,
        "size": "medium",
        "width": "fill",
        "text": plain(label),
        "behaviors": [{"type": "callback", "value": value}],
    })
}
