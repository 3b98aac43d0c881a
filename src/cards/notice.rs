//! Cards that ask for nothing: a long turn has ended, Claude waits for the next
//! instruction, or asks too often.

use serde_json::Value;
use std::path::Path;

use super::escape::{self, Shape};
use super::{Head, card, div, fitting, note, secrets, short};
use crate::approvals::request::Millis;
use crate::ids::SessionId;
use crate::wording::{Lang, card as words, span};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Finished,
    Idle,
    /// A session asks so often that the terminal answers the rest.
    Flood,
}

#[derive(Debug, Clone, Copy)]
pub struct Notice<'a> {
    pub why: Why,
    pub machine: &'a str,
    pub project: &'a Path,
    pub session: Option<&'a SessionId>,
    /// How long the turn took, where that is known.
    pub took: Option<Millis>,
    /// What the assistant said last.
    pub message: Option<&'a str>,
}

pub fn notice(notice: &Notice<'_>, lang: Lang) -> Value {
    let (title, colour) = match notice.why {
        Why::Finished => (&words::FINISHED, "green"),
        Why::Idle => (&words::IDLE, "blue"),
        Why::Flood => (&words::FLOOD, "red"),
    };
    let project = notice.project.to_string_lossy();
    let name = notice
        .project
        .file_name()
        .unwrap_or(notice.project.as_os_str());
    let place = format!(
        "{} · {}",
        short(&name.to_string_lossy(), 80),
        short(notice.machine, 80)
    );
    let mut facts = vec![
        (&words::MACHINE, short(notice.machine, 120)),
        (&words::PROJECT, short(&project, 300)),
    ];
    if let Some(took) = notice.took {
        facts.push((&words::TOOK, span(took).get(lang).to_owned()));
    }
    if let Some(session) = notice.session {
        facts.push((
            &words::RESUME,
            format!("claude --resume {}", short(session.as_str(), 130)),
        ));
    }
    let facts: Vec<String> = facts
        .iter()
        .map(|(label, fact)| format!("{}: {fact}", label.get(lang)))
        .collect();
    fitting(|budget| {
        let mut elements = Vec::new();
        if notice.why == Why::Flood {
            elements.push(div(words::FLOOD_TEXT.get(lang)));
        }
        if let Some(message) = notice.message.filter(|message| !message.is_empty()) {
            let found = secrets::find(message);
            let shown = escape::fit(message, Shape::Code, &found, budget);
            let text = match shown.hidden {
                None => shown.head,
                Some(hidden) => {
                    let marker = words::omitted(hidden.range.len(), hidden.lines);
                    format!(
                        "{}\n{}\n{}",
                        shown.head.trim_end_matches('\n'),
                        marker.get(lang),
                        shown.tail
                    )
                }
            };
            elements.push(note(words::LAST_MESSAGE.get(lang)));
            elements.push(div(&text));
        }
        elements.push(note(&facts.join("\n")));
        let head = Head {
            colour,
            title,
            tag: title,
            tag_colour: colour,
            place: &place,
        };
        card(&head, elements, lang)
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{actions, read, strings};
    use super::super::{MAX_CARD, size};
    use super::*;

    #[test]
    fn a_notice_tells_what_ended_where() {
        let session = SessionId::parse("3f9c").unwrap();
        let long = format!(
            "CANARY {} the end ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4",
            "x\n".repeat(90_000)
        );
        let card = notice(
            &Notice {
                why: Why::Finished,
                machine: "mbp-lin",
                project: "/home/lin/shop".as_ref(),
                session: Some(&session),
                took: Some(125_000),
                message: Some(&long),
            },
            Lang::Zh,
        );
        assert!(size(&card) <= MAX_CARD && actions(&card).is_empty());
        let seen = read(&card);
        for text in [
            "任务已完成",
            "shop · mbp-lin",
            "CANARY",
            "the end ⟦secret github",
            "用时: 2 分 5 秒",
            "claude --resume 3f9c",
        ] {
            assert!(seen.contains(text), "{text} in {seen}");
        }
        strings(&card, &mut |_, node, text| {
            if text.contains("CANARY") {
                assert_eq!(node["tag"], "plain_text");
            }
        });
    }
}
