//! Words of the card that gathers what a session asks beyond its cards.

use crate::text::Text;

pub static TITLE: Text = Text::new("更多请求", "More requests");
pub static OVER: Text = Text::new("已处理完", "Over");

pub fn count(count: usize) -> Text {
    Text::made(format!("{count} 个等待中"), format!("{count} waiting"))
}

/// `own` others wait on cards of their own.
pub fn why(own: usize) -> Text {
    let waiting = match own {
        0 => {
            return Text::new(
                "该会话的请求列在这里。点一个，打开它的卡片。",
                "Requests of this session are listed here: tap one to open its card.",
            );
        }
        1 => "1 request of this session waits on a card of its own".to_owned(),
        own => format!("{own} requests of this session wait on cards of their own"),
    };
    Text::made(
        format!(
            "该会话另有 {own} 个请求各有卡片、等待回答，其余的列在这里。点一个，打开它的卡片。"
        ),
        format!("{waiting}. The others are listed here: tap one to open its card."),
    )
}

pub fn deny_all(count: usize) -> Text {
    Text::made(
        format!("全部拒绝（{count}）"),
        format!("Deny all ({count})"),
    )
}

pub fn unlisted(count: usize) -> Text {
    let more = match count {
        1 => "1 more is not listed and moves up".to_owned(),
        count => format!("{count} more are not listed and move up"),
    };
    Text::made(
        format!("还有 {count} 个未列出，处理后依次显示。"),
        format!("{more} as these are dealt with."),
    )
}

pub fn became(all: usize, opened: usize, denied: usize, other: usize) -> Text {
    Text::made(
        format!("共汇集 {all} 个：打开 {opened}，拒绝 {denied}，以其他方式结束 {other}。"),
        format!("{all} gathered: {opened} opened, {denied} denied, {other} ended otherwise."),
    )
}
