//! The card of a task from chat: what it does now, and how it ended. The
//! agent's words stand in plain text; its final answer is markdown that
//! [`mod@super::markdown`] has disarmed.

use serde_json::Value;

use super::{
    CardHead, MAX_TITLE, button, card, coloured, cut, div, fold, markdown, masked, note, row,
    settled, short,
};
use crate::ids::SessionId;
use crate::sessions::agent::Agent;
use crate::sessions::progress::ProgressView;
use crate::talk::How;
use crate::text::{Lang, Text};
use crate::wording::{card as facts, span, task as words};

/// Two lines of a phone.
const MAX_STEP: usize = 160;
/// Three lines of a phone.
const MAX_SAYS: usize = 240;
/// The words that head the fold of a card that has ended.
const MAX_LAST: usize = 36;
const MAX_FACT: usize = 300;

#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    pub number: i64,
    /// What the person wrote to begin it; empty where nothing was.
    pub title: &'a str,
    pub project: &'a str,
    pub agent: Agent,
    pub machine: &'a str,
    pub conversation: &'a SessionId,
    pub mode: &'a str,
    /// Tools run without asking.
    pub unguarded: bool,
    /// `None` before the first sign of life.
    pub view: Option<&'a ProgressView>,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEnd {
    Turn(How),
    Stopped,
    Crashed,
    NoProgress,
    NotStarted,
    Restarted,
}

impl TaskEnd {
    /// Its mark, its words and its colour.
    fn shown(self) -> (&'static str, &'static Text, &'static str) {
        match self {
            Self::Turn(How::Done) => ("✓", &words::DONE, "green"),
            Self::Turn(How::Interrupted) => ("–", &words::INTERRUPTED, "grey"),
            Self::Turn(How::ApiError) => ("✗", &words::API_ERROR, "red"),
            Self::Turn(How::Failed) => ("✗", &words::FAILED, "red"),
            Self::Stopped => ("–", &words::STOPPED, "grey"),
            Self::Crashed => ("✗", &words::CRASHED, "red"),
            Self::NoProgress => ("✗", &words::NO_PROGRESS, "red"),
            Self::NotStarted => ("✗", &words::NOT_STARTED, "red"),
            Self::Restarted => ("–", &words::RESTARTED, "grey"),
        }
    }
}

/// The card while the task runs. `stop` is the value of the stop button, which
/// stands where other cards deny.
pub fn running(task: &Task<'_>, stop: &Value, lang: Lang) -> Value {
    let mut elements = Vec::new();
    match task.view.and_then(|view| view.step.as_ref()) {
        Some(now) => {
            let now = match (now.tool.as_str(), now.summary.as_str()) {
                ("AskUserQuestion", _) => words::ASKS.get(lang).to_owned(),
                ("ExitPlanMode", _) => words::SHOWS_PLAN.get(lang).to_owned(),
                (tool, "") => tool.to_owned(),
                (tool, summary) => format!("{tool} · {summary}"),
            };
            elements.push(labelled(words::STEP.get(lang), &now, MAX_STEP, lang));
        }
        None if task.view.is_none() => elements.push(note(words::starting(task.agent).get(lang))),
        None => {}
    }
    elements.extend(says(task, lang));
    if let Some(retry) = task.view.and_then(|view| view.retry) {
        elements.push(coloured(words::retry(retry).get(lang), "orange"));
    }
    elements.extend(unguarded(task, lang));
    let stop = button("b_stop", "danger", words::STOP.get(lang), stop);
    elements.push(row(None, Some(stop)));
    elements.push(details(task, None, Vec::new(), lang));
    if let Some(view) = task.view {
        elements.push(note(&lasted(&words::RUNS_FOR, view, lang)));
    }
    frame(task, ("", &words::RUNNING), "blue", elements, lang)
}

pub fn ended(task: &Task<'_>, end: TaskEnd, lang: Lang) -> Value {
    let (mark, state, colour) = end.shown();
    let mut elements = Vec::new();
    if let Some(view) = task.view {
        elements.push(note(&lasted(&facts::TOOK, view, lang)));
    }
    elements.extend(unguarded(task, lang));
    // What it said last may be why it went wrong; an answer comes by itself.
    let last = task.view.and_then(|view| view.words.as_ref());
    let last = last.filter(|_| !matches!(end, TaskEnd::Turn(How::Done)));
    let lead = last.map(|last| lang.labelled(task.agent.short(), masked(last, MAX_LAST)));
    let folded = says(task, lang).into_iter().collect();
    elements.push(details(task, lead, folded, lang));
    settled(frame(task, (mark, state), colour, elements, lang))
}

/// One piece of the final answer.
pub fn answer(task: &Task<'_>, piece: &str, left_out: usize, lang: Lang) -> Value {
    let mut elements = vec![markdown(piece)];
    if left_out > 0 {
        elements.push(note(words::left_out(left_out).get(lang)));
        elements.push(note(&resume(task, lang)));
    }
    frame(task, ("", &words::ANSWER), "turquoise", elements, lang)
}

/// The title is the same in every state; a mark before it says how it ended.
fn frame(
    task: &Task<'_>,
    (mark, state): (&str, &Text),
    colour: &'static str,
    elements: Vec<Value>,
    lang: Lang,
) -> Value {
    let place = format!(
        "{} · #{} · {} · {}",
        short(task.project, 40),
        task.number,
        short(task.machine, 40),
        task.agent.short(),
    );
    let title = match task.title.trim() {
        "" => words::number(task.number).get(lang).to_owned(),
        title => cut(masked(title, 4 * MAX_TITLE), MAX_TITLE),
    };
    let title = format!("{mark} {title}");
    let head = CardHead {
        colour,
        title: title.trim_start(),
        tag: state.get(lang),
        tag_colour: match colour {
            "green" | "red" | "blue" => colour,
            _ => "neutral",
        },
        place: &place,
    };
    card(&head, elements, lang)
}

/// How long, how many tools and for how much, on one line.
fn lasted(elapsed: &Text, view: &ProgressView, lang: Lang) -> String {
    let mut line = elapsed.labels(span(view.elapsed).get(lang), lang);
    if let Some(cost) = view.cost_usd {
        let cost = words::COST.labels(format_args!("${cost:.4}"), lang);
        line = format!("{line} · {cost}");
    }
    line
}

fn says(task: &Task<'_>, lang: Lang) -> Option<Value> {
    let said = task.view?.words.as_ref()?;
    Some(labelled(task.agent.short(), said, MAX_SAYS, lang))
}

fn unguarded(task: &Task<'_>, lang: Lang) -> Option<Value> {
    let warning = || coloured(words::UNGUARDED.get(lang), "red");
    task.unguarded.then(warning)
}

/// What nobody needs to steer it.
fn details(task: &Task<'_>, lead: Option<String>, mut folded: Vec<Value>, lang: Lang) -> Value {
    let mut lines = Vec::new();
    let mut fact = |label: &Text, fact: String| lines.push(label.labels(fact, lang));
    if let Some(view) = task.view
        && !view.tools.is_empty()
    {
        fact(&words::TOOLS, tools(view, lang));
    }
    let model = task.view.and_then(|view| view.model.as_deref());
    let mode = match model {
        Some(model) => format!("{} · {}", task.mode, short(model, 80)),
        None => task.mode.to_owned(),
    };
    fact(&words::MODE, mode);
    lines.push(resume(task, lang));
    folded.push(note(&lines.join("\n")));
    let title = lead
        .into_iter()
        .chain([facts::FOLD_DETAILS.get(lang).to_owned()]);
    fold(&title.collect::<Vec<_>>().join(" · "), folded)
}

fn tools(view: &ProgressView, lang: Lang) -> String {
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
    facts::RESUME.labels(format_args!("{} {id}", task.agent.resume()), lang)
}

fn labelled(label: &str, text: &str, bytes: usize, lang: Lang) -> Value {
    div(&lang.labelled(label, masked(text, bytes)))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{actions, read, strings};
    use super::super::{MAX_CARD, size};
    use super::*;
    use crate::sessions::progress::ProgressStep;
    use serde_json::json;

    fn view() -> ProgressView {
        ProgressView {
            step: Some(ProgressStep {
                tool: "Bash".to_owned(),
                summary: "CANARY <at id=all></at> **x**".to_owned(),
            }),
            words: Some(format!("CANARY says {}", "词".repeat(5_000))),
            tools: vec![("Bash".to_owned(), 2), ("CANARY_tool".to_owned(), 1)],
            failed_tools: 1,
            elapsed: 61_000,
            retry: None,
            cost_usd: Some(0.125),
            model: Some("CANARY-model".to_owned()),
        }
    }

    fn with<T>(view: Option<&ProgressView>, unguarded: bool, use_it: impl Fn(&Task<'_>) -> T) -> T {
        let conversation = SessionId::parse("3f9c").unwrap();
        use_it(&Task {
            number: 7,
            title: "CANARY fix the prices ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4",
            project: "shop",
            agent: Agent::Claude,
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
            "当前步骤：Bash · CANARY",
            "Bash ×2, CANARY_tool ×1 (1 次失败)",
            "已运行：1 分 1 秒",
            "$0.1250",
            "acceptEdits",
            "claude --resume 3f9c",
        ] {
            assert!(seen.contains(text), "{text} in {seen}");
        }
        assert!(!seen.contains("用时"), "it is not over: {seen}");
        assert_eq!(actions(&card), ["stop"]);
        assert!(size(&card) <= MAX_CARD);
        strings(&card, &mut |_, node, text| {
            if text.contains("CANARY") && node.get("tag").is_some() {
                assert_eq!(node["tag"], "plain_text", "{text}");
            }
        });
        let fresh = with(None, false, |task| running(task, &stop(), Lang::Zh));
        assert!(read(&fresh).contains("正在启动"));
    }

    #[test]
    fn the_title_is_the_task_in_every_state_and_stop_stands_where_others_deny() {
        let view = view();
        let title = |card: &Value| {
            card["header"]["title"]["content"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let running = with(Some(&view), false, |task| running(task, &stop(), Lang::En));
        let name = title(&running);
        assert!(name.starts_with("CANARY fix the prices ⟦secret"), "{name}");
        assert_eq!(
            running["header"]["subtitle"]["content"],
            "shop · #7 · mbp-lin · Claude"
        );
        let summary = running["config"]["summary"]["content"].as_str().unwrap();
        assert_eq!(summary, format!("Task running: {name} · shop"));
        let elements = running["body"]["elements"].as_array().unwrap();
        let tags: Vec<_> = elements
            .iter()
            .map(|it| it["tag"].as_str().unwrap())
            .collect();
        assert_eq!(
            tags,
            ["div", "div", "column_set", "collapsible_panel", "div"],
            "{running}"
        );
        let columns = &elements[2]["columns"];
        assert_eq!(columns[0]["elements"], json!([]));
        assert_eq!(columns[1]["elements"][0]["element_id"], "b_stop");
        for (end, mark) in [
            (TaskEnd::Turn(How::Done), "✓"),
            (TaskEnd::Crashed, "✗"),
            (TaskEnd::Stopped, "–"),
        ] {
            let card = with(Some(&view), false, |task| ended(task, end, Lang::En));
            assert_eq!(title(&card), format!("{mark} {name}"));
        }
        let said = with(None, false, |task| answer(task, "yes", 0, Lang::En));
        assert_eq!(title(&said), name);
        let bare = with(None, false, |task| {
            answer(
                &Task {
                    title: " ",
                    ..*task
                },
                "yes",
                0,
                Lang::En,
            )
        });
        assert_eq!(title(&bare), "Task #7");
    }

    #[test]
    fn a_step_is_told_without_the_leftovers_of_a_format() {
        for (tool, summary, said) in [
            ("AskUserQuestion", "", "Step: Waits for your answer"),
            ("ExitPlanMode", "", "Step: Waits for your word on its plan"),
            ("WebSearch", "", "Step: WebSearch"),
            ("Bash", "ls", "Step: Bash · ls"),
        ] {
            let mut view = view();
            view.step = Some(ProgressStep {
                tool: tool.to_owned(),
                summary: summary.to_owned(),
            });
            let seen = with(Some(&view), false, |task| {
                read(&running(task, &stop(), Lang::En))
            });
            assert!(seen.contains(said), "{said} in {seen}");
            assert!(!seen.contains(&format!("{tool} ·\n")), "{seen}");
        }
    }

    #[test]
    fn a_model_that_does_not_answer_is_said_while_it_is_tried_again() {
        use crate::talk::ModelRetry;
        let mut view = view();
        view.retry = Some(ModelRetry {
            attempt: 3,
            most: Some(10),
            status: Some(529),
        });
        let card = with(Some(&view), false, |task| running(task, &stop(), Lang::Zh));
        assert!(
            read(&card).contains("第 3 次，最多 10 次，HTTP 529"),
            "{card}"
        );
        let over = with(Some(&view), false, |task| {
            ended(task, TaskEnd::Turn(How::Done), Lang::Zh)
        });
        assert!(!read(&over).contains("HTTP 529"));
    }

    #[test]
    fn every_ending_is_told_and_leaves_the_way_back() {
        let view = view();
        for (end, said) in [
            (TaskEnd::Turn(How::Done), "任务已完成"),
            (TaskEnd::Turn(How::Interrupted), "任务已中断"),
            (TaskEnd::Turn(How::ApiError), "模型接口出错"),
            (TaskEnd::Turn(How::Failed), "任务执行失败"),
            (TaskEnd::Stopped, "任务已停止"),
            (TaskEnd::Crashed, "意外退出"),
            (TaskEnd::NoProgress, "任务超时"),
            (TaskEnd::NotStarted, "任务未能启动"),
            (TaskEnd::Restarted, "nod 重启，任务中断"),
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
