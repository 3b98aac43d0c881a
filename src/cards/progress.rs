//! The card of a task from chat: what it does now, and how it ended. The
//! agent's words stand in plain text; its final answer is markdown that
//! [`super::markdown`] has disarmed.

use serde_json::{Value, json};

use super::escape::{self, Shape};
use super::{Head, budget, card, confirm, cut, div, markdown, note, plain, secrets, short};
use crate::ids::SessionId;
use crate::sessions::progress::View;
use crate::sessions::state::How;
use crate::wording::{Lang, Text, card as facts, span, task as words};

const MAX_STEP: usize = 400;
const MAX_SAYS: usize = 900;
const MAX_FACT: usize = 300;

#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    pub number: i64,
    pub project: &'a str,
    pub machine: &'a str,
    pub conversation: &'a SessionId,
    pub mode: &'a str,
    /// Tools run without asking.
    pub unguarded: bool,
    /// `None` before the first sign of life.
    pub view: Option<&'a View>,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Turn(How),
    Stopped,
    Crashed,
    NoProgress,
    NotStarted,
    Restarted,
}

impl End {
    fn shown(self) -> (&'static Text, &'static str) {
        match self {
            Self::Turn(How::Done) => (&words::DONE, "green"),
            Self::Turn(How::Interrupted) => (&words::INTERRUPTED, "grey"),
            Self::Turn(How::ApiError) => (&words::API_ERROR, "red"),
            Self::Turn(How::Failed) => (&words::FAILED, "red"),
            Self::Stopped => (&words::STOPPED, "grey"),
            Self::Crashed => (&words::CRASHED, "red"),
            Self::NoProgress => (&words::NO_PROGRESS, "red"),
            Self::NotStarted => (&words::NOT_STARTED, "red"),
            Self::Restarted => (&words::RESTARTED, "grey"),
        }
    }
}

/// The card while the task runs. `stop` is the value of the stop button.
pub fn running(task: &Task<'_>, stop: &Value, lang: Lang) -> Value {
    let mut elements = Vec::new();
    match task.view.and_then(|view| view.step.as_ref()) {
        Some(now) => {
            let now = format!("{} · {}", now.tool, now.summary);
            elements.push(labelled(&words::STEP, &now, MAX_STEP, lang));
        }
        None if task.view.is_none() => elements.push(note(words::STARTING.get(lang))),
        None => {}
    }
    elements.extend(body(task, lang));
    elements.push(stop_button(stop, lang));
    frame(task, &words::RUNNING, "blue", elements, lang)
}

pub fn ended(task: &Task<'_>, end: End, lang: Lang) -> Value {
    let (title, colour) = end.shown();
    frame(task, title, colour, body(task, lang), lang)
}

/// One piece of the final answer.
pub fn answer(task: &Task<'_>, piece: &str, left_out: usize, lang: Lang) -> Value {
    let mut elements = vec![markdown(piece)];
    if left_out > 0 {
        elements.push(note(words::left_out(left_out).get(lang)));
        elements.push(note(&resume(task, lang)));
    }
    frame(task, &words::ANSWER, "turquoise", elements, lang)
}

fn frame(
    task: &Task<'_>,
    title: &Text,
    colour: &'static str,
    elements: Vec<Value>,
    lang: Lang,
) -> Value {
    let place = format!("{} · {}", short(task.project, 80), short(task.machine, 80));
    let session = format!("#{}", task.number);
    let tag = Text::made(session.clone(), session);
    let head = Head {
        colour,
        title,
        tag: &tag,
        tag_colour: "neutral",
        place: &place,
    };
    card(&head, elements, lang)
}

fn body(task: &Task<'_>, lang: Lang) -> Vec<Value> {
    let mut elements = Vec::new();
    let mut lines = Vec::new();
    let mut fact = |label: &Text, fact: String| lines.push(format!("{}: {fact}", label.get(lang)));
    if let Some(view) = task.view {
        if let Some(said) = &view.words {
            elements.push(labelled(&words::SAYS, said, MAX_SAYS, lang));
        }
        if !view.tools.is_empty() {
            fact(&words::TOOLS, tools(view, lang));
        }
        fact(&facts::TOOK, span(view.elapsed).get(lang).to_owned());
        if let Some(cost) = view.cost_usd {
            fact(&words::COST, format!("${cost:.4}"));
        }
    }
    let model = task.view.and_then(|view| view.model.as_deref());
    let mode = match model {
        Some(model) => format!("{} · {}", task.mode, short(model, 80)),
        None => task.mode.to_owned(),
    };
    fact(&words::MODE, mode);
    lines.push(resume(task, lang));
    elements.push(note(&lines.join("\n")));
    if task.unguarded {
        elements.push(super::coloured(words::UNGUARDED.get(lang), "red"));
    }
    elements
}

fn tools(view: &View, lang: Lang) -> String {
    let used = view.tools.iter();
    let used: Vec<_> = used
        .map(|(name, times)| format!("{} ×{times}", short(name, 60)))
        .collect();
    let mut text = cut(used.join(", "), MAX_FACT);
    if view.failed_tools > 0 {
        let failed = words::failed_tools(view.failed_tools);
        text = format!("{text} ({})", failed.get(lang));
    }
    text
}

fn resume(task: &Task<'_>, lang: Lang) -> String {
    let id = short(task.conversation.as_str(), 130);
    format!("{}: claude --resume {id}", facts::RESUME.get(lang))
}

fn labelled(label: &Text, text: &str, bytes: usize, lang: Lang) -> Value {
    let found = secrets::find(text);
    let shown = escape::fit(text, Shape::Line, &found, budget(bytes, 1));
    let text = match shown.hidden {
        None => shown.head,
        Some(_) => format!("{}…{}", shown.head, shown.tail),
    };
    div(&format!("{}: {text}", label.get(lang)))
}

fn stop_button(value: &Value, lang: Lang) -> Value {
    json!({
        "tag": "button",
        "element_id": "b_stop",
        "type": "danger",
        "size": "medium",
        "width": "default",
        "text": plain(words::STOP.get(lang)),
        "behaviors": [{"type": "callback", "value": value}],
        "confirm": confirm(&words::CONFIRM_STOP, words::CONFIRM_STOP_TEXT.get(lang), lang),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{actions, read, strings};
    use super::super::{MAX_CARD, size};
    use super::*;
    use crate::sessions::progress::Step;

    fn view() -> View {
        View {
            step: Some(Step {
                tool: "Bash".to_owned(),
                summary: "CANARY <at id=all></at> **x**".to_owned(),
            }),
            words: Some(format!("CANARY says {}", "词".repeat(5_000))),
            tools: vec![("Bash".to_owned(), 2), ("CANARY_tool".to_owned(), 1)],
            failed_tools: 1,
            elapsed: 61_000,
            cost_usd: Some(0.125),
            model: Some("CANARY-model".to_owned()),
        }
    }

    fn with<T>(view: Option<&View>, unguarded: bool, use_it: impl Fn(&Task<'_>) -> T) -> T {
        let conversation = SessionId::parse("3f9c").unwrap();
        use_it(&Task {
            number: 7,
            project: "shop",
            machine: "mbp-lin",
            conversation: &conversation,
            mode: "acceptEdits",
            unguarded,
            view,
        })
    }

    fn stop() -> Value {
        json!({"action": "stop", "session": 7})
    }

    #[test]
    fn a_running_task_shows_step_tools_time_cost_mode_and_a_stop_button() {
        let view = view();
        let card = with(Some(&view), false, |task| running(task, &stop(), Lang::Zh));
        let seen = read(&card);
        for text in [
            "任务执行中",
            "#7",
            "当前步骤: Bash · CANARY",
            "Bash ×2, CANARY_tool ×1 (1 次失败)",
            "用时: 1 分 1 秒",
            "$0.1250",
            "acceptEdits",
            "claude --resume 3f9c",
        ] {
            assert!(seen.contains(text), "{text} in {seen}");
        }
        assert_eq!(actions(&card), ["stop"]);
        assert!(size(&card) <= MAX_CARD);
        strings(&card, &mut |_, node, text| {
            if text.contains("CANARY") {
                assert_eq!(node["tag"], "plain_text", "{text}");
            }
        });
        let fresh = with(None, false, |task| running(task, &stop(), Lang::Zh));
        assert!(read(&fresh).contains("正在启动"));
    }

    #[test]
    fn every_ending_is_told_and_leaves_the_way_back() {
        let view = view();
        for (end, said) in [
            (End::Turn(How::Done), "任务已完成"),
            (End::Turn(How::Interrupted), "任务已中断"),
            (End::Turn(How::ApiError), "模型接口出错"),
            (End::Turn(How::Failed), "任务执行失败"),
            (End::Stopped, "任务已停止"),
            (End::Crashed, "Claude Code 意外退出"),
            (End::NoProgress, "任务超时"),
            (End::NotStarted, "任务未能启动"),
            (End::Restarted, "nod 重启，任务中断"),
        ] {
            for view in [None, Some(&view)] {
                let card = with(view, false, |task| ended(task, end, Lang::Zh));
                let seen = read(&card);
                assert!(seen.contains(said), "{said} in {seen}");
                assert!(seen.contains("claude --resume 3f9c"), "{seen}");
                assert!(!seen.contains("当前步骤"), "{seen}");
                assert!(actions(&card).is_empty());
            }
        }
    }

    #[test]
    fn a_task_without_approvals_says_so() {
        let seen = with(None, true, |task| read(&running(task, &stop(), Lang::En)));
        assert!(seen.contains("Approvals are off"), "{seen}");
        let seen = with(None, false, |task| read(&running(task, &stop(), Lang::En)));
        assert!(!seen.contains("Approvals are off"), "{seen}");
    }

    #[test]
    fn an_answer_that_was_cut_says_how_much_is_missing() {
        let whole = with(None, false, |task| answer(task, "**yes**", 0, Lang::Zh));
        assert!(read(&whole).contains("**yes**"));
        let cut = with(None, false, |task| {
            answer(task, "**yes**", 12_345, Lang::Zh)
        });
        assert!(read(&cut).contains("12,345"), "{}", read(&cut));
    }
}
