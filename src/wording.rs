//! Every sentence a person in Feishu can see, in Chinese and English. Holds
//! words only: no layout, no decisions, and nothing an agent wrote.

use crate::text::Text;

pub mod card;
pub mod codex;
pub mod ending;
pub mod flood;
pub mod menu;
pub mod need;
pub mod outcome;
pub mod page;
pub mod question;
pub mod rule;
pub mod session;
pub mod task;
pub mod team;
pub mod terminal;
pub mod toast;

pub use toast::{Toast, reply_json};

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A span of milliseconds in the two units a person would name.
pub fn span(millis: i64) -> Text {
    let ms = millis.max(0);
    if ms < MINUTE {
        let s = ms / SECOND;
        Text::made(format!("{s} 秒"), format!("{s} s"))
    } else if ms < HOUR {
        let (m, s) = (ms / MINUTE, ms % MINUTE / SECOND);
        Text::made(format!("{m} 分 {s} 秒"), format!("{m} min {s} s"))
    } else if ms < DAY {
        let (h, m) = (ms / HOUR, ms % HOUR / MINUTE);
        Text::made(format!("{h} 小时 {m} 分"), format!("{h} h {m} min"))
    } else {
        let (d, h) = (ms / DAY, ms % DAY / HOUR);
        Text::made(format!("{d} 天 {h} 小时"), format!("{d} d {h} h"))
    }
}

/// How long ago something was: toasts can't carry a clock time, because only
/// the reader's client knows the reader's time zone.
pub fn ago(millis: i64) -> Text {
    if millis < SECOND {
        return Text::new("刚刚", "just now");
    }
    let Text { zh, en } = span(millis);
    Text::made(format!("{zh}前"), format!("{en} ago"))
}

/// For the owner, when somebody who may not decide taps again and again.
pub fn repeated_stranger(who: &str) -> Text {
    Text::made(
        format!("⚠ {who} 不在审批人名单中，10 分钟内多次点击了批准按钮，均已拒绝。"),
        format!(
            "⚠ {who} is not an approver and tapped approval buttons several times within 10 minutes; every tap was refused."
        ),
    )
}

pub static LOCKED: Text = Text::new(
    "已锁定：在终端运行 nod unlock 之前，飞书中只能拒绝，不能批准。",
    "Locked: until `nod unlock` is run in the terminal, Feishu can deny but not allow.",
);
pub static LOCKED_UNSURE: Text = Text::new(
    "nod 的数据库丢失或无法读取，不知道之前是否已锁定，因此按已锁定处理：在终端运行 nod unlock 之前，飞书中只能拒绝。",
    "nod's database was lost or can't be read, so nobody knows whether it was locked, and it counts as locked: until `nod unlock` is run in the terminal, Feishu can deny but not allow.",
);
pub static UNLOCKED: Text = Text::new(
    "已解锁：可以在飞书中批准。",
    "Unlocked: Feishu can allow again.",
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::yes::means_yes;
    use crate::text::Lang;

    #[test]
    fn the_words_of_a_button_that_lets_work_go_on_mean_yes_where_they_are_typed() {
        for label in [
            &card::ALLOW,
            &card::ALLOW_TURN,
            &card::ALWAYS,
            &card::SESSION,
            &card::WIDER,
            &question::APPROVE_PLAN,
            &question::APPROVE_PLAN_EDITS,
            &question::YES,
        ] {
            for lang in [Lang::Zh, Lang::En] {
                let typed = label.get(lang);
                assert!(means_yes(typed), "{typed}");
            }
        }
        for label in [
            &card::DENY,
            &card::INTERRUPT,
            &question::REVISE_PLAN,
            &question::NO,
        ] {
            for lang in [Lang::Zh, Lang::En] {
                assert!(!means_yes(label.get(lang)));
            }
        }
    }

    #[test]
    fn spans_name_the_two_units_that_matter() {
        for (ms, zh, en) in [
            (-5, "0 秒", "0 s"),
            (59_999, "59 秒", "59 s"),
            (61_000, "1 分 1 秒", "1 min 1 s"),
            (2 * HOUR + 5 * MINUTE, "2 小时 5 分", "2 h 5 min"),
            (3 * DAY + HOUR, "3 天 1 小时", "3 d 1 h"),
        ] {
            let text = span(ms);
            assert_eq!((text.get(Lang::Zh), text.get(Lang::En)), (zh, en));
        }
        assert_eq!(ago(10).get(Lang::Zh), "刚刚");
        assert_eq!(ago(61_000).get(Lang::En), "1 min 1 s ago");
    }
}
