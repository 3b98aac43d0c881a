//! The card of a question or a plan: what is asked, and the ways to answer it.
//! The asker's words stand in plain text only, as everywhere.

use serde_json::{Value, json};
use std::borrow::Cow;

mod fields;

use self::fields::{input, inputs, other_input};
use super::body::weigh;
use super::permission::origin;
use super::ways::allow_is_below;
use super::whole::{self, Before, WentOut};
use super::{
    BUDGETS, CardHead, Drawn, EVERYTHING, card, coloured, confirm, div, fold, local_time, markdown,
    masked, note, place, plain, prose, roomiest, row, size,
};
use crate::approvals::request::Request;
use crate::sessions::questions::{Ask, QuestionKind, QuestionOption, QuestionTap, SUBMIT, field};
use crate::text::escape::{self, Budget, Shape};
use crate::text::secrets;
use crate::text::{Lang, Text};
use crate::wording::card as said;
use crate::wording::question as words;

/// Choices that fit under each other as buttons; more go into a list.
const MAX_BUTTONS: usize = 6;
const MAX_LABEL: usize = 90;
const MAX_TITLE: usize = 90;
/// Labels that fit beside another.
const MAX_SMALL: usize = 18;
const MAX_DESCRIPTION: usize = 400;

/// The card of a question that waits, in so many bytes, and whether it holds
/// all of the question. What it does not hold can be answered only if it was
/// sent `before`. `values` makes each button's own value.
pub fn pending(
    request: &Request,
    ask: &Ask,
    before: &Before,
    values: &dyn Fn(QuestionTap) -> Value,
    submit: &Value,
    room: usize,
    lang: Lang,
) -> Drawn {
    let build = |budget| {
        let DrawnQuestions {
            mut texts,
            mut more,
            elided,
            secret,
        } = asked(ask, budget, lang);
        more.push(note(&origin(request, lang)));
        let small = weigh(&request.input) <= whole::MAX_BYTES;
        let answerable = before.went_out().readable(elided) && small;
        // Of several questions each stands right above its own answer.
        let several = answerable && texts.len() > 1;
        let apart = if several {
            Vec::new()
        } else {
            std::mem::take(&mut texts)
        };
        let mut elements: Vec<Value> = apart.into_iter().flatten().collect();
        if secret {
            elements.push(note(said::SECRET_IN_QUESTION.get(lang)));
        }
        elements.extend(before.named(lang));
        if answerable {
            let look = (elided || secret).then(|| {
                let text = said::confirm_answer(elided, secret);
                confirm(&words::CONFIRM_ANSWER, text.get(lang).trim(), lang)
            });
            more.push(note(words::REPLY_HINT.get(lang)));
            elements.extend(ways(ask, texts, values, submit, look.as_ref(), more, lang));
        } else {
            elements.push(coloured(words::NOT_WHOLE.get(lang), "red"));
            let decline = values(QuestionTap::Decline);
            elements.push(button(&words::DECLINE, "default", &decline, lang));
            elements.push(fold(said::FOLD_DETAILS.get(lang), more));
        }
        let until = words::expires(&local_time(request.deadline));
        elements.push(markdown(&format!(
            "<font color='grey'>{}</font>",
            until.get(lang)
        )));
        let state = words::WAITING;
        let head = CardHead {
            colour: colour(ask),
            title: &title(ask, lang),
            tag: state.get(lang),
            tag_colour: "blue",
            place: &place(request, lang),
        };
        Drawn {
            card: card(&head, elements, lang),
            elided,
        }
    };
    roomiest(build, |drawn| size(&drawn.card) <= room)
}

/// Whether a person can have read all of it.
pub fn may_answer(request: &Request, ask: &Ask, went_out: WentOut) -> bool {
    let [roomy, ..] = BUDGETS;
    let elided = asked(ask, roomy, Lang::Zh).elided;
    weigh(&request.input) <= whole::MAX_BYTES && went_out.readable(elided)
}

/// What was asked, and what the reader can't see of it.
pub(super) struct DrawnQuestions {
    /// Of each question.
    texts: Vec<Vec<Value>>,
    /// For the fold.
    pub(super) more: Vec<Value>,
    pub(super) elided: bool,
    pub(super) secret: bool,
}

impl DrawnQuestions {
    pub(super) fn nodes(self) -> Vec<Value> {
        self.texts.into_iter().flatten().collect()
    }

    fn push(&mut self, node: Value) {
        self.texts
            .last_mut()
            .expect("a question is open")
            .push(node);
    }

    /// The text with its credentials masked, and what about it is not shown.
    fn show(&mut self, text: &str, shape: Shape, budget: Budget) -> escape::ShownText {
        let secrets = secrets::find(text);
        self.secret |= !secrets.is_empty();
        let shown = escape::fit(text, shape, &secrets, budget);
        self.elided |= shown.hidden.is_some();
        shown
    }

    fn line(&mut self, text: &str, most: usize, budget: Budget) -> String {
        let budget = Budget {
            bytes: if budget == EVERYTHING {
                budget.bytes
            } else {
                most
            },
            lines: 1,
        };
        self.show(text, Shape::Line, budget).joined("…")
    }

    fn block(&mut self, text: &str, budget: Budget, lang: Lang, set: impl Fn(&str) -> Vec<Value>) {
        let shown = self.show(text, Shape::Code, budget);
        let set = |asked: &mut Self, text: &str| {
            for node in set(text) {
                asked.push(node);
            }
        };
        set(self, &shown.head);
        if let Some(hidden) = shown.hidden {
            let omitted = said::omitted(hidden.range.len(), hidden.lines);
            self.push(note(omitted.get(lang)));
            set(self, &shown.tail);
        }
    }
}

/// What was asked, for the waiting card and the decided one alike.
pub(super) fn asked(ask: &Ask, budget: Budget, lang: Lang) -> DrawnQuestions {
    let share = if budget == EVERYTHING {
        budget
    } else {
        Budget::new(budget.bytes / ask.questions.len().max(1), budget.lines)
    };
    let as_it_is = |text: &str| vec![div(text)];
    let mut asked = DrawnQuestions {
        texts: Vec::new(),
        more: Vec::new(),
        elided: false,
        secret: false,
    };
    for question in &ask.questions {
        asked.texts.push(Vec::new());
        // The title of the card is the question, where there is but one.
        let said = budget != EVERYTHING && ask.questions.len() == 1;
        let said = said && question.text == title(ask, lang);
        if let Some(header) = &question.header {
            let header = note(&asked.line(header, MAX_LABEL, share));
            if said {
                asked.more.push(header);
            } else {
                asked.push(header);
            }
        }
        if let QuestionKind::Plan { plan, .. } = &question.kind {
            match plan.as_deref().filter(|plan| !plan.trim().is_empty()) {
                // What goes out before the card is the plan to the letter.
                Some(plan) if budget == EVERYTHING => asked.block(plan, share, lang, as_it_is),
                Some(plan) => {
                    let title = title(ask, lang);
                    asked.block(plan, share, lang, |text| prose::nodes(text, Some(&title)));
                }
                None => asked.push(note(words::NO_PLAN.get(lang))),
            }
        } else if !said {
            asked.block(&question.text, share, lang, as_it_is);
        }
        if let QuestionKind::Choice { options, .. } = &question.kind {
            let lines: Vec<String> = options
                .iter()
                .filter_map(|choice| described(&mut asked, choice, share, lang))
                .collect();
            if !lines.is_empty() {
                asked.push(note(&lines.join("\n")));
            }
            let number = asked.texts.len() - 1;
            previews(&mut asked, number, options, share, lang);
        }
    }
    asked
}

/// What each choice would look like, as the terminal shows it beside them.
fn previews(
    asked: &mut DrawnQuestions,
    question: usize,
    options: &[QuestionOption],
    budget: Budget,
    lang: Lang,
) {
    let shown = options
        .iter()
        .filter_map(|it| Some((it, it.preview.as_ref()?)));
    let shown: Vec<_> = shown.collect();
    let share = if budget == EVERYTHING {
        budget
    } else {
        Budget::new(budget.bytes / (shown.len() + 1), budget.lines)
    };
    for (n, (option, preview)) in shown.into_iter().enumerate() {
        let label = asked.line(&option.label, MAX_LABEL, budget);
        let title = lang.labelled(words::PREVIEW.get(lang), label);
        if budget == EVERYTHING {
            asked.push(note(&title));
            asked.block(preview, share, lang, |text| vec![div(text)]);
            continue;
        }
        // In a fold of its own: the buttons stay near the question.
        asked.texts.push(Vec::new());
        asked.block(preview, share, lang, |text| vec![div(text)]);
        let nodes = asked.texts.pop().unwrap_or_default();
        let mut folded = fold(&title, nodes);
        folded["element_id"] = json!(format!("p_view_{question}_{n}"));
        asked.push(folded);
    }
}

/// A choice with its description. The label alone stands on its button, or in
/// the whole text.
fn described(
    asked: &mut DrawnQuestions,
    choice: &QuestionOption,
    budget: Budget,
    lang: Lang,
) -> Option<String> {
    let label = asked.line(&choice.label, MAX_LABEL, budget);
    match choice.description.as_ref().filter(|text| !text.is_empty()) {
        Some(description) => {
            let description = asked.line(description, MAX_DESCRIPTION, budget);
            Some(lang.labelled(&label, description))
        }
        None => (budget == EVERYTHING).then_some(label),
    }
}

/// The question itself, or the plan's first heading.
pub(super) fn title(ask: &Ask, lang: Lang) -> String {
    let Some(first) = ask.questions.first() else {
        return words::TEXT_TITLE.get(lang).to_owned();
    };
    let text = match &first.kind {
        QuestionKind::Plan { plan, .. } => {
            let heading = plan.as_deref().and_then(prose::first_heading);
            Cow::Owned(heading.unwrap_or_default())
        }
        QuestionKind::Confirm | QuestionKind::Choice { .. } | QuestionKind::Text { .. } => {
            Cow::Borrowed(&*first.text)
        }
    };
    let line = text.lines().find(|line| !line.trim().is_empty());
    match line {
        Some(line) => masked(line.trim(), MAX_TITLE),
        None => words::title(&first.kind).get(lang).to_owned(),
    }
}

fn colour(ask: &Ask) -> &'static str {
    match ask.questions.first().map(|question| &question.kind) {
        Some(QuestionKind::Confirm) => "yellow",
        Some(QuestionKind::Choice { .. }) => "blue",
        Some(QuestionKind::Plan { .. }) => "purple",
        Some(QuestionKind::Text { .. }) | None => "grey",
    }
}

/// `texts` are those of several questions, `look` is what a tap that lets work
/// go on asks first.
fn ways(
    ask: &Ask,
    texts: Vec<Vec<Value>>,
    values: &dyn Fn(QuestionTap) -> Value,
    submit: &Value,
    look: Option<&Value>,
    more: Vec<Value>,
    lang: Lang,
) -> Vec<Value> {
    let details = said::FOLD_DETAILS.get(lang);
    let decline = button(
        &words::DECLINE,
        "default",
        &values(QuestionTap::Decline),
        lang,
    );
    let (mut nodes, more) = match ask.questions.as_slice() {
        [question] => match &question.kind {
            QuestionKind::Confirm => {
                let yes = button(
                    &words::YES,
                    "primary_filled",
                    &values(QuestionTap::Yes),
                    lang,
                );
                let no = button(&words::NO, "default", &values(QuestionTap::No), lang);
                (vec![row(Some(asking(yes, look)), Some(no))], more)
            }
            QuestionKind::Plan { accept_edits, .. } => {
                let ways = plan_ways(values, *accept_edits, look, more, lang);
                (ways, Vec::new())
            }
            QuestionKind::Choice {
                options,
                multi: false,
                other,
                ..
            } if options.len() <= MAX_BUTTONS => {
                let buttons = options.iter().enumerate().map(|(i, choice)| {
                    let label = masked(&choice.label, MAX_LABEL);
                    asking(
                        labelled(&label, "default", &values(QuestionTap::Option(i))),
                        look,
                    )
                });
                let buttons: Vec<Value> = buttons.collect();
                let small = options.iter().all(|it| it.label.len() <= MAX_SMALL);
                let mut nodes = if small { in_rows(buttons) } else { buttons };
                nodes.push(decline);
                if *other {
                    // What one would write opens only when it is wanted.
                    let mut folded = vec![other_input(0, lang), submitted(submit, look, lang)];
                    folded.extend(more);
                    let title = format!("{} · {details}", words::OTHER.get(lang));
                    nodes.push(form_of(vec![fold(&title, folded)]));
                    (nodes, Vec::new())
                } else {
                    (nodes, more)
                }
            }
            QuestionKind::Choice { .. } | QuestionKind::Text { .. } => {
                let form = form(inputs(0, question, lang), submit, look, lang);
                (vec![form, decline], more)
            }
        },
        questions => {
            let mut parts = Vec::new();
            for (i, (question, text)) in questions.iter().zip(texts).enumerate() {
                parts.extend(text);
                parts.extend(inputs(i, question, lang));
            }
            let form = form(parts, submit, look, lang);
            (vec![form, decline], more)
        }
    };
    if !more.is_empty() {
        nodes.push(fold(details, more));
    }
    nodes
}

/// Two beside each other.
fn in_rows(buttons: Vec<Value>) -> Vec<Value> {
    let mut buttons = buttons.into_iter();
    let mut rows = Vec::new();
    while let Some(left) = buttons.next() {
        rows.push(row(Some(left), buttons.next()));
    }
    rows
}

fn asking(mut button: Value, look: Option<&Value>) -> Value {
    if let Some(look) = look {
        button["confirm"] = look.clone();
    }
    button
}

fn form(mut elements: Vec<Value>, submit: &Value, look: Option<&Value>, lang: Lang) -> Value {
    elements.push(submitted(submit, look, lang));
    form_of(elements)
}

fn submitted(submit: &Value, look: Option<&Value>, lang: Lang) -> Value {
    let (name, kind) = (SUBMIT, "primary_filled");
    let submit = submit_button(name, &words::SUBMIT, kind, submit, lang);
    asking(submit, look)
}

fn form_of(elements: Vec<Value>) -> Value {
    super::form("f_answer", "answer_form", elements)
}

/// As on a permission's card: to go on stands left and to go on planning right,
/// without a form; what is more, and what asks first, one row below each other.
fn plan_ways(
    values: &dyn Fn(QuestionTap) -> Value,
    accept_edits: bool,
    look: Option<&Value>,
    more: Vec<Value>,
    lang: Lang,
) -> Vec<Value> {
    let (name, kind) = ("submit_approve_plan", "primary_filled");
    let approve = values(QuestionTap::ApprovePlan);
    let keep = values(QuestionTap::RevisePlan);
    let approve = named(
        "b_approve",
        button(&words::APPROVE_PLAN, kind, &approve, lang),
    );
    let (first, asks) = match look {
        None => (approve, None),
        Some(_) => (allow_is_below(lang), Some(submitting(name, approve))),
    };
    let edits = accept_edits.then(|| {
        let (name, label) = ("submit_approve_edits", &words::APPROVE_PLAN_EDITS);
        let value = values(QuestionTap::ApprovePlanAndEdits);
        submit_button(name, label, "default", &value, lang)
    });
    let below = asks.into_iter().chain(edits);
    let mut elements: Vec<Value> = below
        .map(|button| row(Some(asking(button, look)), None))
        .collect();
    let (name, label) = ("submit_revise_plan", &words::REVISE_PLAN_WITH);
    let change = words::WHAT_TO_CHANGE.get(lang);
    let mut folded = vec![
        input(&field(0), change, &words::OPTIONAL, lang),
        submit_button(name, label, "default", &keep, lang),
    ];
    folded.extend(more);
    let title = format!("{change} · {}", said::FOLD_DETAILS.get(lang));
    elements.push(fold(&title, folded));
    let form = super::form("f_plan", "plan_form", elements);
    let keep = named(
        "b_keep",
        button(&words::REVISE_PLAN, "default", &keep, lang),
    );
    vec![row(Some(first), Some(keep)), form]
}

fn named(id: &str, mut button: Value) -> Value {
    button["element_id"] = json!(id);
    button
}

fn submit_button(name: &str, label: &Text, kind: &str, value: &Value, lang: Lang) -> Value {
    submitting(name, button(label, kind, value, lang))
}

fn submitting(name: &str, mut button: Value) -> Value {
    button["name"] = json!(name);
    button["form_action_type"] = json!("submit");
    button
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

#[cfg(test)]
mod tests {
    use super::super::MAX_CARD;
    use super::super::sample::{read, request};
    use super::*;
    use crate::sessions::questions;

    fn plan(text: &str) -> Request {
        request("ExitPlanMode", json!({"plan": text}))
    }

    fn drawn_after(request: &Request, before: &Before) -> Drawn {
        let (ask, _) = questions::of(&request.tool, &request.input).unwrap();
        let values = |tap: QuestionTap| json!({"tap": tap.as_name()});
        let submit = json!({});
        pending(request, &ask, before, &values, &submit, MAX_CARD, Lang::Zh)
    }

    /// The taps of each row, left and right, above the fold.
    fn rows(elements: &Value) -> Vec<[Value; 2]> {
        let mut found = Vec::new();
        for element in elements.as_array().unwrap() {
            if element["tag"] == "column_set" {
                let tap = |n: usize| {
                    let button = &element["columns"][n]["elements"][0];
                    button["behaviors"][0]["value"]["tap"].clone()
                };
                found.push([tap(0), tap(1)]);
            } else if element["tag"] == "form" {
                found.extend(rows(&element["elements"]));
            }
        }
        found
    }

    #[test]
    fn the_ways_to_answer_a_plan_stand_where_those_of_a_permission_stand() {
        let short = drawn_after(&plan("# Cart\n\n- price first"), &Before::Nothing).card;
        let nothing = Value::Null;
        assert_eq!(
            rows(&short["body"]["elements"]),
            [
                [json!("approve_plan"), json!("revise_plan")],
                [json!("approve_plan_edits"), nothing.clone()],
            ]
        );
        assert!(!short.to_string().contains("confirm"));
        // What asks first is a form's, and stands below.
        let token = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
        let secret = drawn_after(&plan(&format!("# Use {token}")), &Before::Nothing).card;
        assert!(!read(&secret).contains("实际执行"), "nothing runs");
        assert_eq!(
            rows(&secret["body"]["elements"]),
            [
                [nothing.clone(), json!("revise_plan")],
                [json!("approve_plan"), nothing.clone()],
                [json!("approve_plan_edits"), nothing],
            ]
        );
    }

    #[test]
    fn a_plan_is_set_out_for_reading_and_its_heading_is_the_title() {
        let card = drawn_after(
            &plan("# **Cart** in `cents`\n\n- **price** first\n\n```\nnpm test\n```"),
            &Before::Nothing,
        )
        .card;
        assert_eq!(card["header"]["title"]["content"], "Cart in cents");
        let body = &card["body"]["elements"];
        assert_eq!(body[0]["text"]["content"], "• price first", "{body}");
        assert_eq!(body[1]["background_style"], "grey", "{body}");
        let seen = read(&card);
        assert!(
            seen.contains("npm test") && !seen.contains("**") && !seen.contains("```"),
            "{seen}"
        );
    }

    #[test]
    fn of_several_questions_each_stands_above_its_own_answers() {
        let one = |text: &str, label: &str| {
            json!({"question": text, "header": "h", "multiSelect": false,
                "options": [{"label": label, "description": "why"}, {"label": "b", "description": "d"}]})
        };
        let input = json!({"questions": [one("Which store?", "SQLite"), one("Which port?", "80")]});
        let asked = request("AskUserQuestion", input);
        let card = drawn_after(&asked, &Before::Nothing).card;
        let form = &card["body"]["elements"][0];
        assert_eq!(form["tag"], "form", "{card}");
        let place = |what: &str| {
            let parts = form["elements"].as_array().unwrap();
            parts
                .iter()
                .position(|part| part.to_string().contains(what))
                .unwrap()
        };
        let order = [
            "Which store?",
            "SQLite：why",
            "\"s_0\"",
            "Which port?",
            "80：why",
            "\"s_1\"",
        ]
        .map(place);
        assert!(order.is_sorted(), "{order:?} {form}");
        // A field for one's own words is closed until it is wanted.
        let other = &form["elements"][order[2] + 1];
        assert_eq!(
            (&other["tag"], &other["expanded"]),
            (&json!("collapsible_panel"), &json!(false))
        );
    }

    #[test]
    fn a_plan_of_fifty_kilobytes_is_approved_only_after_it_was_sent_whole() {
        let long = plan(&"a step of the plan\n".repeat(2_700));
        let (ask, _) = questions::of(&long.tool, &long.input).unwrap();
        let bare = drawn_after(&long, &Before::Nothing);
        assert!(bare.elided && !may_answer(&long, &ask, WentOut::Unknown));
        let seen = read(&bare.card);
        assert!(
            !seen.contains("批准计划") && seen.contains("全文无法送达"),
            "{seen}"
        );
        let card = drawn_after(&long, &Before::Messages(3)).card;
        assert!(may_answer(&long, &ask, WentOut::Whole) && size(&card) <= MAX_CARD);
        let seen = read(&card);
        assert!(
            seen.contains("批准计划") && seen.contains("上方的 3 条消息"),
            "{seen}"
        );
        assert!(seen.contains("确认回答？"), "{seen}");

        let short = plan("one step");
        let drawn = drawn_after(&short, &Before::Nothing);
        assert!(!drawn.elided && read(&drawn.card).contains("批准计划"));
        assert!(!read(&drawn.card).contains("确认回答？"));
    }

    fn with_previews(previews: [&str; 2]) -> Request {
        let option = |label: &str, preview: &str| json!({"label": label, "description": "d", "preview": preview});
        let [left, right] = previews;
        let input = json!({"questions": [{"question": "Which layout?", "header": "h",
            "multiSelect": false, "options": [option("Rows", left), option("Grid", right)]}]});
        request("AskUserQuestion", input)
    }

    #[test]
    fn what_a_choice_would_look_like_stands_on_the_card() {
        let asked = with_previews(["+--+\n|a |\n+--+", "+-+-+\n|a|b|\n+-+-+"]);
        let drawn = drawn_after(&asked, &Before::Nothing);
        assert!(!drawn.elided);
        let seen = read(&drawn.card);
        assert!(
            seen.contains("预览：Rows") && seen.contains("预览：Grid"),
            "{seen}"
        );
        assert!(seen.contains("|a |") && seen.contains("|a|b|"), "{seen}");
        let mut names: Vec<_> = drawn
            .card
            .to_string()
            .match_indices("p_view_")
            .map(|(at, _)| at)
            .collect();
        names.dedup();
        assert_eq!(names.len(), 2, "a fold for each");
        // A preview too long for the card goes out before it, as a plan does.
        let long = format!("{}the last line", "a line of code\n".repeat(4_000));
        let asked = with_previews([&long, "short"]);
        let (ask, _) = questions::of(&asked.tool, &asked.input).unwrap();
        let bare = drawn_after(&asked, &Before::Nothing);
        assert!(bare.elided && !may_answer(&asked, &ask, WentOut::Unknown));
        assert!(
            whole::text(&asked, Lang::Zh)
                .unwrap()
                .contains("the last line")
        );
        assert!(size(&drawn_after(&asked, &Before::Messages(3)).card) <= MAX_CARD);
    }

    #[test]
    fn a_label_that_is_cut_counts_as_not_shown() {
        let long = "x".repeat(200);
        let input = json!({"questions": [{"question": "Which?", "header": "h", "multiSelect": false,
            "options": [{"label": long, "description": "d"}, {"label": "b", "description": "d"}]}]});
        let asked = request("AskUserQuestion", input);
        assert!(drawn_after(&asked, &Before::Nothing).elided);
        let whole = whole::text(&asked, Lang::Zh).unwrap();
        assert!(whole.contains(&long), "{whole}");
    }

    #[test]
    fn credentials_in_a_question_or_a_plan_are_masked() {
        let token = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        let text = format!("Use {token}?");
        let input = json!({"questions": [{"question": text, "header": token, "multiSelect": false,
            "options": [{"label": token, "description": text, "preview": text}, {"label": "b", "description": "d"}]}]});
        for asked in [request("AskUserQuestion", input), plan(&text)] {
            let card = drawn_after(&asked, &Before::Nothing).card;
            let all = card.to_string();
            assert!(!all.contains("a1B2c3"), "{all}");
            assert!(all.contains("⟦secret github 40B⟧"), "{all}");
            assert!(read(&card).contains("含有凭据，已遮盖"));
        }
    }
}
