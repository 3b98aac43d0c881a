//! Cards that ask for nothing: a long turn has ended, Claude waits for the next
//! instruction, or asks too often.

use serde_json::Value;
use std::path::Path;

use super::{CardHead, MAX_TITLE, card, cut, div, fitting, fold, note, prose, short};
use crate::approvals::request::AskingAgent;
use crate::clock::Millis;
use crate::ids::SessionId;
use crate::text::escape::{self, Budget, Shape};
use crate::text::{Lang, Text, secrets};
use crate::wording::{card as words, span};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Finished,
    Idle,
    /// A session asks so often that the terminal answers the rest.
    Flood,
    /// A turn ended with a fault.
    Failed,
    /// A plan is there; whether to carry it out is asked in the terminal.
    Planned,
    /// The plan is there, and the session went on.
    PlanOver,
    /// The plan is there; nod does not know whether it still waits.
    PlanUnwatched,
    /// Something waits that only the terminal can answer.
    Terminal,
    /// Something waits in the terminal, and nod does not know what it is.
    Unknown,
    /// A question, where nothing can be answered from Feishu.
    NoAnswers,
    /// A dialog in the terminal that was not put to nod.
    Dialog,
    /// That dialog is gone.
    DialogOver,
    /// A daemon that started since does not know whether the dialog still waits.
    DialogUnwatched,
}

#[derive(Debug, Clone, Copy)]
pub struct NoticeCard<'a> {
    pub why: Why,
    pub agent: &'a AskingAgent,
    pub machine: &'a str,
    pub project: &'a Path,
    pub session: Option<&'a SessionId>,
    /// How long the turn took, where that is known.
    pub took: Option<Millis>,
    /// What the assistant said last, or its plan.
    pub message: Option<&'a str>,
}

impl Why {
    /// The mark of what is over, the state and the colour.
    fn shown(self) -> (&'static str, &'static Text, &'static str) {
        match self {
            Self::Finished => ("✓", &words::FINISHED, "green"),
            Self::Idle => ("", &words::IDLE, "blue"),
            Self::Failed => ("✗", &words::FAILED, "red"),
            Self::Planned => ("", &words::PLANNED, "orange"),
            Self::PlanOver => ("–", &words::PLAN_OVER, "grey"),
            Self::Flood => ("", &words::TERMINAL_WAITS, "red"),
            Self::Terminal | Self::Unknown | Self::NoAnswers | Self::Dialog => {
                ("", &words::TERMINAL_WAITS, "orange")
            }
            Self::DialogOver => ("–", &words::TERMINAL_OVER, "grey"),
            Self::DialogUnwatched | Self::PlanUnwatched => {
                ("–", &words::TERMINAL_UNWATCHED, "grey")
            }
        }
    }

    fn told(self) -> Option<&'static Text> {
        match self {
            Self::Flood => Some(&words::FLOOD_TEXT),
            Self::Planned => Some(&words::PLANNED_TEXT),
            Self::PlanOver => Some(&words::PLAN_OVER_TEXT),
            Self::PlanUnwatched => Some(&words::PLAN_UNWATCHED_TEXT),
            Self::Terminal => Some(&words::TERMINAL_WAITS_TEXT),
            Self::Unknown => Some(&words::UNKNOWN_WAITS_TEXT),
            Self::NoAnswers => Some(&words::NO_ANSWERS_TEXT),
            Self::Dialog => Some(&words::DIALOG_WAITS_TEXT),
            Self::DialogOver => Some(&words::DIALOG_OVER_TEXT),
            Self::DialogUnwatched => Some(&words::DIALOG_UNWATCHED_TEXT),
            Self::Finished | Self::Idle | Self::Failed => None,
        }
    }

    /// Whether the message says what it is about, and not just that it waits.
    const fn is_told_by_message(self) -> bool {
        !matches!(self, Self::Idle | Self::Flood)
    }
}

pub fn notice(notice: &NoticeCard<'_>, lang: Lang) -> Value {
    let message = notice.message.filter(|it| !it.trim().is_empty());
    fitting(|budget| build(notice, message, budget, lang))
}

fn build(notice: &NoticeCard<'_>, message: Option<&str>, budget: Budget, lang: Lang) -> Value {
    let (mark, state, colour) = notice.why.shown();
    let shown = message.map(|message| {
        let found = secrets::find(message);
        escape::fit(message, Shape::Code, &found, budget)
    });
    let about = shown.as_ref().filter(|_| notice.why.is_told_by_message());
    let line = about.and_then(|shown| prose::first_line(&shown.head));
    let title = match &line {
        Some(line) => cut(line.clone(), MAX_TITLE),
        None if notice.why == Why::Flood => words::FLOOD.get(lang).to_owned(),
        None => notice.agent.kind().name().to_owned(),
    };
    let mut elements: Vec<Value> = notice
        .why
        .told()
        .map(|it| div(it.get(lang)))
        .into_iter()
        .collect();
    let mut folded = Vec::new();
    if let Some(shown) = &shown {
        let mut said = prose::nodes(&shown.head, Some(&title));
        if let Some(hidden) = &shown.hidden {
            let marker = words::omitted(hidden.range.len(), hidden.lines);
            said.push(note(marker.get(lang)));
            said.extend(prose::nodes(&shown.tail, None));
        }
        let into = if about.is_some() {
            &mut elements
        } else {
            &mut folded
        };
        into.extend(said);
    }
    folded.push(note(&facts(notice, lang)));
    elements.push(fold(words::FOLD_DETAILS.get(lang), folded));
    if let Some(took) = notice.took {
        let line = note(&words::TOOK.labels(span(took).get(lang), lang));
        // A card that is over begins with its line, and one that waits ends with it.
        let at = if mark.is_empty() { elements.len() } else { 0 };
        elements.insert(at, line);
    }
    let title = format!("{mark} {title}");
    let head = CardHead {
        colour,
        title: title.trim_start(),
        tag: state.get(lang),
        // A tag knows no grey.
        tag_colour: if colour == "grey" { "neutral" } else { colour },
        place: &place(notice),
    };
    card(&head, elements, lang)
}

fn place(notice: &NoticeCard<'_>) -> String {
    let name = notice.project.file_name();
    let name = name.unwrap_or(notice.project.as_os_str());
    format!(
        "{} · {} · {}",
        short(&name.to_string_lossy(), 40),
        short(notice.machine, 40),
        notice.agent.kind().short(),
    )
}

fn facts(notice: &NoticeCard<'_>, lang: Lang) -> String {
    let project = notice.project.to_string_lossy();
    let mut facts = vec![
        (&words::MACHINE, short(notice.machine, 120)),
        (&words::PROJECT, short(&project, 300)),
    ];
    if let Some(session) = notice.session {
        facts.push((
            &words::RESUME,
            format!(
                "{} {}",
                notice.agent.kind().resume(),
                short(session.as_str(), 130)
            ),
        ));
    }
    super::facts(&facts, lang)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{actions, read, strings};
    use super::super::{MAX_CARD, size};
    use super::*;

    fn drawn(why: Why, took: Option<Millis>, message: Option<&str>, lang: Lang) -> Value {
        let session = SessionId::parse("3f9c").unwrap();
        let told = NoticeCard {
            why,
            agent: &AskingAgent::ClaudeCode,
            machine: "mbp-lin",
            project: "/home/lin/shop".as_ref(),
            session: Some(&session),
            took,
            message,
        };
        notice(&told, lang)
    }

    fn title(card: &Value) -> (&str, &str) {
        let head = &card["header"];
        let tag = &head["text_tag_list"][0]["text"]["content"];
        (
            head["title"]["content"].as_str().unwrap(),
            tag.as_str().unwrap(),
        )
    }

    #[test]
    fn a_notice_tells_what_ended_where() {
        let long = format!(
            "CANARY {} the end ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4",
            "x\n".repeat(90_000)
        );
        let card = drawn(Why::Finished, Some(125_000), Some(&long), Lang::Zh);
        assert!(size(&card) <= MAX_CARD && actions(&card).is_empty());
        let seen = read(&card);
        for text in [
            "任务已完成",
            "shop · mbp-lin · Claude",
            "CANARY",
            "the end ⟦secret github",
            "用时：2 分 5 秒",
            "claude --resume 3f9c",
        ] {
            assert!(seen.contains(text), "{text} in {seen}");
        }
        strings(&card, &mut |_, node, text| {
            if text.contains("CANARY") && node.get("tag").is_some() {
                assert_eq!(node["tag"], "plain_text");
            }
        });
    }

    #[test]
    fn a_notice_is_titled_with_what_was_said_and_tagged_with_its_state() {
        for (why, message, expected) in [
            (
                Why::Finished,
                Some("## Fixed **two** prices\n\nand more"),
                ("✓ Fixed two prices", "Finished"),
            ),
            (
                Why::Failed,
                Some("\n- no network"),
                ("✗ • no network", "The turn ended with a fault"),
            ),
            (Why::Finished, None, ("✓ Claude Code", "Finished")),
            (Why::Finished, Some(" "), ("✓ Claude Code", "Finished")),
            (
                Why::Idle,
                Some("Claude is waiting for your input"),
                ("Claude Code", "Waiting for you"),
            ),
            (
                Why::Dialog,
                Some("Claude needs your permission"),
                ("Claude needs your permission", "Answer in the terminal"),
            ),
            (
                Why::DialogOver,
                Some("Claude needs your permission"),
                ("– Claude needs your permission", "No longer waiting"),
            ),
            (
                Why::Flood,
                None,
                ("Too many requests", "Answer in the terminal"),
            ),
        ] {
            let card = drawn(why, None, message, Lang::En);
            assert_eq!(title(&card), expected);
        }
    }

    #[test]
    fn what_the_title_says_is_not_said_twice_and_facts_are_folded() {
        let card = drawn(
            Why::Finished,
            Some(5_000),
            Some("All 42 tests pass."),
            Lang::En,
        );
        assert_eq!(title(&card).0, "✓ All 42 tests pass.");
        let elements = card["body"]["elements"].as_array().unwrap();
        let tags: Vec<_> = elements
            .iter()
            .map(|it| it["tag"].as_str().unwrap())
            .collect();
        assert_eq!(tags, ["div", "collapsible_panel"], "{card}");
        let more = drawn(Why::Finished, None, Some("# Done\n\nand tested"), Lang::En);
        assert_eq!(
            read(&more).matches("Done").count(),
            2,
            "title and preview: {more}"
        );
        assert!(read(&more).contains("and tested"));
        assert!(elements[0].to_string().contains("Took: 5 s"), "{card}");
        assert!(elements[1].to_string().contains("/home/lin/shop"));
    }

    #[test]
    fn how_long_it_took_stands_first_on_what_is_over_and_last_on_what_waits() {
        for (why, place) in [
            (Why::Finished, 0),
            (Why::Failed, 0),
            (Why::PlanOver, 0),
            (Why::Planned, usize::MAX),
        ] {
            let card = drawn(why, Some(5_000), Some("# Cents\n\n1. cut"), Lang::En);
            let elements = card["body"]["elements"].as_array().unwrap();
            let line = &elements[place.min(elements.len() - 1)];
            assert!(line.to_string().contains("Took: 5 s"), "{why:?} {card}");
        }
    }
}
