//! Words of question and plan cards, and of what is wrong with an answer.

use super::Text;
use crate::sessions::questions::{Kind, Problem, Tap};

pub const CONFIRM_TITLE: Text = Text::new("请确认", "Please confirm");
pub const CHOICE_TITLE: Text = Text::new("请选择", "Please choose");
pub const TEXT_TITLE: Text = Text::new("需要输入", "Input needed");
pub const PLAN_TITLE: Text = Text::new("计划待批准", "A plan to approve");
pub const WAITING: Text = Text::new("等待回答", "Waiting");

pub const YES: Text = Text::new("确认", "Confirm");
pub const NO: Text = Text::new("取消", "Cancel");
pub const SUBMIT: Text = Text::new("提交", "Submit");
pub const DECLINE: Text = Text::new("不回答", "Decline");
pub const APPROVE_PLAN: Text = Text::new("批准计划", "Approve the plan");
pub const APPROVE_PLAN_EDITS: Text = Text::new("批准并自动接受编辑", "Approve and accept edits");
pub const REVISE_PLAN: Text = Text::new("继续完善", "Keep planning");

pub const CHOOSE_ONE: Text = Text::new("选择一项", "Choose one");
pub const CHOOSE_MANY: Text = Text::new("可选择多项", "Choose any");
pub const OTHER: Text = Text::new("其他（自行填写）", "Something else");
pub const YOUR_ANSWER: Text = Text::new("你的回答", "Your answer");
pub const WHAT_TO_CHANGE: Text = Text::new(
    "需要修改什么（“继续完善”时填写）",
    "What to change (for “Keep planning”)",
);
pub const NO_PLAN: Text = Text::new("（没有计划内容）", "(the plan is empty)");
pub const REPLY_HINT: Text = Text::new(
    "也可以直接回复这条消息作答。",
    "You can also answer by replying to this message.",
);
pub const OPTIONAL: Text = Text::new("可不填", "Optional");

pub const ANSWER: Text = Text::new("回答", "Answer");

/// The words for an answer that was a tap rather than a text.
pub fn kept_words(answer: &str) -> Option<Text> {
    Some(match Tap::parse(answer)? {
        Tap::Yes => YES,
        Tap::No => NO,
        Tap::ApprovePlan => APPROVE_PLAN,
        Tap::ApprovePlanAndEdits => APPROVE_PLAN_EDITS,
        Tap::RevisePlan | Tap::Decline | Tap::Option(_) => return None,
    })
}

/// Above the card; several questions are named by the first.
pub fn title(kind: &Kind) -> Text {
    match kind {
        Kind::Confirm => CONFIRM_TITLE,
        Kind::Choice { .. } => CHOICE_TITLE,
        Kind::Text { .. } => TEXT_TITLE,
        Kind::Plan { .. } => PLAN_TITLE,
    }
}

pub fn expires(local_time: &str) -> Text {
    Text::made(
        format!("{local_time} 前有效。"),
        format!("Valid until {local_time}."),
    )
}

/// Several questions wait in one chat, so a plain text could answer any.
pub fn which_question(waiting: usize) -> Text {
    Text::made(
        format!("当前有 {waiting} 个问题在等待，请回复对应的卡片作答。"),
        format!("{waiting} questions are waiting: reply to the card you mean."),
    )
}

pub fn problem(problem: Problem) -> Text {
    match problem {
        Problem::Empty => Text::new("请填写回答", "Please give an answer"),
        Problem::TooLong => Text::new("回答太长", "The answer is too long"),
        Problem::YesOrNo => Text::new("请回答“是”或“否”", "Please answer yes or no"),
        Problem::NoSuchOption { number, of } => Text::made(
            format!("没有第 {number} 项，共 {of} 项"),
            format!("There is no option {number}, only {of}"),
        ),
        Problem::PickOne { of } => Text::made(
            format!("请选择一项（1–{of}）"),
            format!("Please choose one (1–{of})"),
        ),
        Problem::OnlyOne => Text::new("只能选择一项", "Only one can be chosen"),
        Problem::NotANumber => Text::new("请填写数字", "Please give a number"),
        Problem::NotAnInteger => Text::new("请填写整数", "Please give a whole number"),
        Problem::OneLineEach { questions } => Text::made(
            format!("共 {questions} 个问题，请每行回答一个"),
            format!("There are {questions} questions: one line each, please"),
        ),
        Problem::SayWhatToChange => Text::new("请说明需要修改什么", "Please say what to change"),
        Problem::NotThisQuestion => Text::new("无效的回调请求", "Invalid callback"),
    }
}
