//! What a Feishu that refuses cards makes necessary, and how that is told.

use crate::text::Text;

pub static NOT_ASKED: Text = Text::new(
    "再次确认用的卡片没能发出：请重试，或在终端处理。",
    "The card that asks once more could not be sent: try again, or answer in the terminal.",
);

/// What was needed for a card to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The plainest layout.
    Plain,
    /// Less text on a card.
    Smaller,
    /// A card without the request's content.
    Withheld,
}

impl Need {
    pub const ALL: [Self; 3] = [Self::Plain, Self::Smaller, Self::Withheld];

    /// As the status says it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Smaller => "smaller",
            Self::Withheld => "withheld",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|need| need.as_str() == text)
    }

    /// What it means for cards, in a list of warnings.
    pub const fn told(self) -> Text {
        match self {
            Self::Plain => Text::new(
                "飞书拒绝了卡片样式，在重启之前使用最简样式",
                "Feishu refused the cards' layout: they come in the plainest one until a restart",
            ),
            Self::Smaller => Text::new(
                "飞书嫌卡片太大，在重启之前卡片上显示得更少",
                "Feishu found a card too large: cards show less until a restart",
            ),
            Self::Withheld => Text::new(
                "飞书拒绝显示某个请求的内容，它的卡片只能拒绝",
                "Feishu refused to show what a request holds: its card could only deny",
            ),
        }
    }
}

/// What the owner is told, once each, when Feishu refuses a card.
pub fn refused(need: Need, code: i64, log_id: &str) -> Text {
    let (zh, en) = match need {
        Need::Plain => (
            "在重启之前改用最简样式：内容与按钮不变，需要再次确认的选项会再发一张卡片来问",
            "Until a restart cards come in the plainest layout: same words and buttons, and what asks a second time does so by another card",
        ),
        Need::Smaller => (
            "在重启之前，卡片上显示得更少；装不下的内容会在卡片之前全文发出",
            "Until a restart cards show less; what does not fit is sent whole before the card",
        ),
        Need::Withheld => (
            "该请求的卡片不含其内容，只能拒绝；要批准请在终端处理",
            "The card of that request shows nothing of it and can only deny; to allow, answer in the terminal",
        ),
    };
    Text::made(
        format!("飞书拒绝了 nod 的一张卡片（代码 {code}，log_id {log_id}）。{zh}。"),
        format!("Feishu refused a card of nod's (code {code}, log id {log_id}). {en}."),
    )
}
