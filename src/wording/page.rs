//! Words on the pages of the webhook mode.

use crate::text::Text;

pub static CONFIRM: Text = Text::new(
    "只有按下按钮才会生效。",
    "Nothing happens until you press the button.",
);
pub static DETAILS: Text = Text::new("完整内容 · 规则 · 详情", "In full · rule · details");
pub static REASON: Text = Text::new("拒绝理由，会转告智能体", "Reason, sent to the agent");
pub static OPEN_CARD: Text = Text::new(
    "请在飞书卡片中重新打开链接。",
    "Open the link on the card in Feishu again.",
);
pub static LEAVE: Text = Text::new("可以关闭此页面。", "You can close this page.");
pub static RETRY: Text = Text::new("稍后刷新此页面再试。", "Reload this page in a moment.");
pub static NOTIFY_ONLY: Text = Text::new(
    "nod 服务未运行，请在终端处理。",
    "The nod service is not running: answer in the terminal.",
);
pub static DECIDE_ON_PAGE: Text = Text::new(
    "按钮会打开网页，在网页上确认后才生效。持有链接的人都可以决定，请勿转发。",
    "The buttons open a page; nothing happens until it is confirmed there. Whoever has the link can decide: do not pass it on.",
);
