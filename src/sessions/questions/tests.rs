//! Every way to answer, and every way not to.

use super::*;
use serde_json::json;

fn of(kind: QuestionKind) -> Ask {
    Ask::one(Question {
        header: None,
        text: "?".to_owned(),
        kind,
    })
}

fn choice(multi: bool, other: bool) -> Ask {
    let labels = ["Redis", "In-process LRU", "SQLite"];
    of(QuestionKind::Choice {
        options: labels
            .map(|label| QuestionOption {
                label: label.to_owned(),
                description: None,
                preview: None,
            })
            .into(),
        multi,
        other,
        optional: false,
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "compared with what reading returns"
)]
fn picked(options: &[usize], other: Option<&str>) -> Result<ReplyOutcome, ReplyProblem> {
    Ok(ReplyOutcome::Answered(vec![QuestionAnswer::Picked {
        options: options.to_vec(),
        other: other.map(str::to_owned),
    }]))
}

fn fields(value: &Value) -> Fields {
    Fields::from_json(value.as_object().expect("an object"))
}

fn form(value: &Value) -> Reply {
    Reply::Form {
        button: None,
        fields: fields(value),
    }
}

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

#[test]
fn a_choice_is_read_by_tap_label_number_and_own_words() {
    let one = choice(false, true);
    let no_such = |number| Err(ReplyProblem::NoSuchOption { number, of: 3 });
    for (reply, expected) in [
        (Reply::Tap(QuestionTap::Option(1)), picked(&[1], None)),
        (text("sqlite"), picked(&[2], None)),
        (text(" 2 "), picked(&[1], None)),
        (text("in-process lru"), picked(&[1], None)),
        (
            text("Postgres, please"),
            picked(&[], Some("Postgres, please")),
        ),
        (text("9000"), picked(&[], Some("9000"))),
        (text("7"), no_such(7)),
        (text("0"), no_such(0)),
        (text("1, 2"), Err(ReplyProblem::OnlyOne)),
        (text("  "), Err(ReplyProblem::Empty)),
        (Reply::Tap(QuestionTap::Option(3)), no_such(4)),
        (
            Reply::Tap(QuestionTap::Yes),
            Err(ReplyProblem::NotThisQuestion),
        ),
        (
            Reply::Tap(QuestionTap::ApprovePlan),
            Err(ReplyProblem::NotThisQuestion),
        ),
    ] {
        assert_eq!(one.read(&reply), expected, "{reply:?}");
    }
    assert_eq!(
        choice(false, false).read(&text("Postgres")),
        Err(ReplyProblem::PickOne { of: 3 })
    );
}

#[test]
fn several_choices_are_read_by_numbers_and_labels() {
    let many = choice(true, true);
    for (reply, expected) in [
        (text("1,3"), picked(&[0, 2], None)),
        (text("3 1 1"), picked(&[0, 2], None)),
        (text("SQLite、Redis"), picked(&[0, 2], None)),
        (
            text("Redis, and Postgres"),
            picked(&[], Some("Redis, and Postgres")),
        ),
        (
            form(&json!({"q0":["o0","o2"],"q0_other":""})),
            picked(&[0, 2], None),
        ),
        (
            form(&json!({"q0":["o0"],"q0_other":"Postgres"})),
            picked(&[0], Some("Postgres")),
        ),
        (
            form(&json!({"q0":["o9"]})),
            Err(ReplyProblem::NotThisQuestion),
        ),
        (
            form(&json!({"q0":[]})),
            Err(ReplyProblem::PickOne { of: 3 }),
        ),
    ] {
        assert_eq!(many.read(&reply), expected, "{reply:?}");
    }
}

#[test]
fn own_words_in_a_form_stand_against_the_select() {
    let one = choice(false, true);
    assert_eq!(
        one.read(&form(&json!({"q0":"o0","q0_other":"Postgres"}))),
        picked(&[], Some("Postgres"))
    );
    assert_eq!(one.read(&form(&json!({"q0":"o1"}))), picked(&[1], None));
    assert_eq!(
        choice(false, false).read(&form(&json!({"q0":"o1","q0_other":"x"}))),
        picked(&[1], None)
    );
}

#[test]
fn a_confirmation_takes_whole_words_only() {
    let ask = of(QuestionKind::Confirm);
    let read = |word: &str| ask.read(&text(word));
    for word in ["是", "确认", "YES", "ok"] {
        assert_eq!(
            read(word),
            Ok(ReplyOutcome::Answered(vec![QuestionAnswer::Yes]))
        );
    }
    for word in ["否", "取消", "No"] {
        assert_eq!(
            read(word),
            Ok(ReplyOutcome::Answered(vec![QuestionAnswer::No]))
        );
    }
    for word in ["yes but not now", "是吗", "1"] {
        assert_eq!(read(word), Err(ReplyProblem::YesOrNo), "{word}");
    }
}

#[test]
fn texts_are_checked_against_their_format() {
    let kind = |format, optional| of(QuestionKind::Text { format, optional });
    let ok = |text: &str| {
        Ok(ReplyOutcome::Answered(vec![QuestionAnswer::Text(
            text.to_owned(),
        )]))
    };
    let long = "x".repeat(MAX_ANSWER + 1);
    let (any, few) = (
        NumberRange::default(),
        NumberRange::new(Some(1.0), Some(10.0)),
    );
    for (format, words, expected) in [
        (Format::Any, " src/main.rs ", ok("src/main.rs")),
        (Format::Any, long.as_str(), Err(ReplyProblem::TooLong)),
        (Format::Integer(any), "4.5", Err(ReplyProblem::NotAnInteger)),
        (Format::Integer(any), "-4", ok("-4")),
        (Format::Number(any), "4.5", ok("4.5")),
        (Format::Number(any), "inf", Err(ReplyProblem::NotANumber)),
        (Format::Integer(few), "10", ok("10")),
        (
            Format::Integer(few),
            "11",
            Err(ReplyProblem::OutOfRange(few)),
        ),
        (
            Format::Number(few),
            "0.5",
            Err(ReplyProblem::OutOfRange(few)),
        ),
        (Format::Number(few), "9.75", ok("9.75")),
    ] {
        assert_eq!(kind(format, false).read(&text(words)), expected);
    }
    let empty = form(&json!({"q0":null}));
    assert_eq!(
        kind(Format::Any, false).read(&empty),
        Err(ReplyProblem::Empty)
    );
    assert_eq!(
        kind(Format::Any, true).read(&empty),
        Ok(ReplyOutcome::Answered(vec![QuestionAnswer::Skipped]))
    );
}

#[test]
fn several_questions_want_a_form_or_a_line_each() {
    let mut ask = choice(false, true);
    ask.questions.extend(of(QuestionKind::Confirm).questions);
    let both = Ok(ReplyOutcome::Answered(vec![
        QuestionAnswer::Picked {
            options: vec![0],
            other: None,
        },
        QuestionAnswer::Yes,
    ]));
    assert_eq!(ask.read(&form(&json!({"q0":"o0","q1":"yes"}))), both);
    assert_eq!(ask.read(&text("1\n\n是")), both);
    assert_eq!(
        ask.read(&text("1")),
        Err(ReplyProblem::OneLineEach { questions: 2 })
    );
    assert_eq!(
        ask.read(&Reply::Tap(QuestionTap::Option(0))),
        Err(ReplyProblem::NotThisQuestion)
    );
    assert_eq!(
        ask.read(&Reply::Tap(QuestionTap::Decline)),
        Ok(ReplyOutcome::Declined)
    );
}

#[test]
fn words_never_approve_a_plan() {
    let ask = of(QuestionKind::Plan {
        plan: None,
        accept_edits: true,
    });
    let answered = |answer| Ok(ReplyOutcome::Answered(vec![answer]));
    for words in [
        "批准计划",
        "1",
        "2",
        "yes",
        "批准吗",
        "approve it later",
        "可以，但先写测试",
    ] {
        assert_eq!(
            ask.read(&text(words)),
            answered(QuestionAnswer::PlanRevised(words.to_owned()))
        );
    }
    let revise = |value: &Value| Reply::Form {
        button: Some(QuestionTap::RevisePlan),
        fields: fields(value),
    };
    assert_eq!(
        ask.read(&revise(&json!({}))),
        answered(QuestionAnswer::PlanRevised(KEEP_PLANNING.to_owned()))
    );
    assert_eq!(
        ask.read(&revise(&json!({"q0_other":"smaller"}))),
        answered(QuestionAnswer::PlanRevised("smaller".to_owned()))
    );
}

#[test]
fn button_names_read_back() {
    for tap in [
        QuestionTap::Yes,
        QuestionTap::No,
        QuestionTap::Option(3),
        QuestionTap::ApprovePlan,
        QuestionTap::ApprovePlanAndEdits,
        QuestionTap::RevisePlan,
        QuestionTap::Decline,
    ] {
        assert_eq!(QuestionTap::parse(&tap.as_name()), Some(tap));
    }
    assert_eq!(QuestionTap::parse("o"), None);
    assert_eq!(QuestionTap::parse("allow"), None);
}

#[test]
fn equal_labels_are_told_apart_only_by_number() {
    let twin = || QuestionOption {
        label: "Same".to_owned(),
        description: None,
        preview: None,
    };
    let ask = of(QuestionKind::Choice {
        options: vec![twin(), twin()],
        multi: false,
        other: false,
        optional: false,
    });
    assert_eq!(
        ask.read(&text("same")),
        Err(ReplyProblem::PickOne { of: 2 })
    );
    assert_eq!(ask.read(&text("2")), picked(&[1], None));
}

#[test]
fn a_number_beside_its_own_label_is_that_option() {
    let choice = |label: &str| QuestionOption {
        label: label.to_owned(),
        description: None,
        preview: None,
    };
    let ask = |multi| {
        of(QuestionKind::Choice {
            options: vec![choice("SQLite"), choice("2 servers"), choice("Redis")],
            multi,
            other: true,
            optional: false,
        })
    };
    for typed in ["1. SQLite", "1、sqlite", "1) SQLite", "1 SQLite"] {
        assert_eq!(ask(false).read(&text(typed)), picked(&[0], None), "{typed}");
    }
    assert_eq!(ask(false).read(&text("2 servers")), picked(&[1], None));
    assert_eq!(
        ask(true).read(&text("1. SQLite, 3. Redis")),
        picked(&[0, 2], None)
    );
    // Number and words of two options: neither is meant for certain.
    let unclear = ask(false).read(&text("1. Redis"));
    assert_eq!(unclear, picked(&[], Some("1. Redis")));
}

#[test]
fn of_several_questions_the_unanswered_one_is_named() {
    let any = |optional| Question {
        kind: QuestionKind::Text {
            format: Format::Any,
            optional,
        },
        ..of(QuestionKind::Confirm).questions.remove(0)
    };
    let ask = Ask {
        questions: vec![any(true), any(false)],
    };
    let form = Reply::Form {
        button: None,
        fields: Fields::default(),
    };
    assert_eq!(ask.read(&form), Err(ReplyProblem::Unanswered { number: 2 }));
}
