//! Words of question and plan cards, and of what is wrong with an answer.

use crate::sessions::questions::{QuestionKind, QuestionTap, ReplyProblem};
use crate::text::Text;

pub const CONFIRM_TITLE: Text = Text::new("请确认", "Please confirm");
pub const CHOICE_TITLE: Text = Text::new("请选择", "Please choose");
pub const TEXT_TITLE: Text = Text::new("需要输入", "Input needed");
pub const PLAN_TITLE: Text = Text::new("计划待批准", "A plan to approve");
pub const WAITING: Text = Text::new("等待回答", "Waiting");

pub const YES: Text = Text::new("确认", "Confirm");
pub const NO: Text = Text::new("取消", "Cancel");
pub const SUBMIT: Text = Text::new("提交", "Submit");
pub const DECLINE: Text = Text::new("不回答", "Decline");
pub static APPROVE_PLAN: Text = Text::new("批准计划", "Approve the plan");
pub const APPROVE_PLAN_EDITS: Text = Text::new("批准并自动接受编辑", "Approve, auto-edit");
pub const REVISE_PLAN: Text = Text::new("继续完善", "Keep planning");
pub const REVISE_PLAN_WITH: Text = Text::new("按此继续完善", "Keep planning with this");

pub const CHOOSE_ONE: Text = Text::new("选择一项", "Choose one");
pub const CHOOSE_MANY: Text = Text::new("可选择多项", "Choose any");
pub const OTHER: Text = Text::new("其他（自行填写）", "Something else");
pub const PREVIEW: Text = Text::new("预览", "Preview");
pub const YOUR_ANSWER: Text = Text::new("你的回答", "Your answer");
pub static WHAT_TO_CHANGE: Text = Text::new("需要修改什么", "What to change");
pub const NO_PLAN: Text = Text::new("（没有计划内容）", "(the plan is empty)");
pub const REPLY_HINT: Text = Text::new(
    "也可以直接回复这条消息作答；群里请同时 @ 机器人。",
    "You can also answer by replying to this message; in a group, mention the bot.",
);
pub const CONFIRM_ANSWER: Text = Text::new("确认回答？", "Answer this?");
pub const NOT_WHOLE: Text = Text::new(
    "全文无法送达，不能在飞书中回答，请在终端处理。仍可不回答。",
    "The whole text could not be sent, so it can't be answered from Feishu: answer in the terminal. Declining works.",
);
pub const OPTIONAL: Text = Text::new("可不填", "Optional");

pub const ANSWER: Text = Text::new("回答", "Answer");

/// The words for an answer that was a tap rather than a text.
pub fn kept_words(answer: &str) -> Option<Text> {
    Some(match QuestionTap::parse(answer)? {
        QuestionTap::Yes => YES,
        QuestionTap::No => NO,
        QuestionTap::ApprovePlan => APPROVE_PLAN.clone(),
        QuestionTap::ApprovePlanAndEdits => APPROVE_PLAN_EDITS,
        QuestionTap::RevisePlan | QuestionTap::Decline | QuestionTap::Option(_) => return None,
    })
}

/// Above the card; several questions are named by the first.
pub fn title(kind: &QuestionKind) -> Text {
    match kind {
        QuestionKind::Confirm => CONFIRM_TITLE,
        QuestionKind::Choice { .. } => CHOICE_TITLE,
        QuestionKind::Text { .. } => TEXT_TITLE,
        QuestionKind::Plan { .. } => PLAN_TITLE,
    }
}

pub fn expires(local_time: &str) -> Text {
    Text::made(
        format!("{local_time} 前有效。"),
        format!("Valid until {local_time}."),
    )
}

/// Several things wait in one place, so a plain text could be for any.
pub fn which(waiting: &[Text]) -> Text {
    let count = waiting.len();
    let list = |pick: fn(&Text) -> &str| {
        let lines = (1..).zip(waiting);
        let lines = lines.map(|(n, one)| format!("\n{n} · {}", pick(one)));
        lines.collect::<String>()
    };
    Text::made(
        format!(
            "这里有 {count} 件事在等待（先问的在前），请先写编号，再写回复，例如“2 先不要”：{}",
            list(|text| &text.zh)
        ),
        format!(
            "{count} things wait here, the oldest first. Begin with the number of the one you mean, as in `2 not now`:{}",
            list(|text| &text.en)
        ),
    )
}

pub fn problem(problem: ReplyProblem) -> Text {
    match problem {
        ReplyProblem::Empty => Text::new("请填写回答", "Please give an answer"),
        ReplyProblem::TooLong => Text::new("回答太长", "The answer is too long"),
        ReplyProblem::YesOrNo => Text::new("请回答“是”或“否”", "Please answer yes or no"),
        ReplyProblem::NoSuchOption { number, of } => Text::made(
            format!("没有第 {number} 项，共 {of} 项"),
            format!("There is no option {number}, only {of}"),
        ),
        ReplyProblem::PickOne { of } => Text::made(
            format!("请选择一项（1–{of}）"),
            format!("Please choose one (1–{of})"),
        ),
        ReplyProblem::OnlyOne => Text::new("只能选择一项", "Only one can be chosen"),
        ReplyProblem::NotANumber => Text::new("请填写数字", "Please give a number"),
        ReplyProblem::NotAnInteger => Text::new("请填写整数", "Please give a whole number"),
        ReplyProblem::OutOfRange(range) => {
            let (zh, en) = match (range.least(), range.most()) {
                (Some(least), Some(most)) => (
                    format!("{least} 到 {most} 之间的数字"),
                    format!("number from {least} to {most}"),
                ),
                (Some(least), None) => (
                    format!("不小于 {least} 的数字"),
                    format!("number of at least {least}"),
                ),
                (None, Some(most)) => (
                    format!("不大于 {most} 的数字"),
                    format!("number of at most {most}"),
                ),
                (None, None) => ("数字".to_owned(), "number".to_owned()),
            };
            Text::made(format!("请填写{zh}"), format!("Please give a {en}"))
        }
        ReplyProblem::OneLineEach { questions } => Text::made(
            format!("共 {questions} 个问题，请每行回答一个"),
            format!("There are {questions} questions: one line each, please"),
        ),
        ReplyProblem::Unanswered { number } => Text::made(
            format!("第 {number} 个问题还没有回答"),
            format!("Question {number} has no answer yet"),
        ),
        ReplyProblem::NotThisQuestion => Text::new("无效的回调请求", "Invalid callback"),
    }
}
