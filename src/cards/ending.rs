//! The card of a settled request: what became of it, by whom, when, after how
//! long; and still what was asked. Has no button but the undo of an "always".

use serde_json::{Value, json};

use super::body::body;
use super::escape::{self, Budget, Shape};
use super::permission::{origin, rendered};
use super::question;
use super::{
    Head, card, coloured, confirm, cut, div, fitting, local_time, markdown, note, place, plain,
};
use crate::approvals::request::{Ending, Millis, Operator, Reach, Request};
use crate::ids::UserId;
use crate::rules::LOCAL_SETTINGS;
use crate::sessions::questions;
use crate::wording::card::{self as words};
use crate::wording::{Lang, Text, ending as said, question as asking};

/// Whether the waiting process confirmed that it took the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    Confirmed,
    Unconfirmed,
}

/// Settled requests are read at a glance: a share of what a waiting one gets.
const BODY_SHARE: usize = 3;
const MAX_REASON: usize = 3 * 1024;

/// The card in its final state. `undo` is the value of the undo button, which
/// only an "always" that still holds can have.
pub fn ended(
    request: &Request,
    ending: &Ending,
    at: Millis,
    delivery: Delivery,
    undo: Option<&Value>,
    lang: Lang,
) -> Value {
    fitting(|budget| {
        let budget = Budget {
            bytes: budget.bytes / BODY_SHARE,
            lines: budget.lines / BODY_SHARE,
        };
        build(request, ending, at, delivery, undo, budget, lang)
    })
}

fn build(
    request: &Request,
    ending: &Ending,
    at: Millis,
    delivery: Delivery,
    undo: Option<&Value>,
    budget: Budget,
    lang: Lang,
) -> Value {
    let unconfirmed = delivery == Delivery::Unconfirmed
        && matches!(
            ending,
            Ending::Allowed { .. } | Ending::Denied { .. } | Ending::Answered { .. }
        );
    let (title, colour) = outcome(ending);
    let mut elements = match questions::of(&request.tool, &request.input) {
        Some((ask, _)) => question::asked(&ask, budget, lang),
        None => body(request, budget, lang).nodes,
    };
    elements.push(note(&origin(request, lang)));
    elements.push(json!({"tag": "hr"}));
    elements.extend(result(ending, title, request, at, lang));
    if unconfirmed {
        elements.push(coloured(said::UNCONFIRMED_TEXT.get(lang), "orange"));
    }
    elements.extend(detail(ending, request, undo, lang));
    let tag = if unconfirmed {
        &said::UNCONFIRMED
    } else {
        title
    };
    let head = Head {
        colour,
        title,
        tag,
        tag_colour: match (unconfirmed, colour) {
            (true, _) => "orange",
            (false, "green") => "green",
            (false, "red") => "red",
            (false, _) => "neutral",
        },
        place: &place(&request.origin),
    };
    card(&head, elements, lang)
}

fn outcome(ending: &Ending) -> (&'static Text, &'static str) {
    match ending {
        Ending::Allowed { reach, .. } => match reach {
            Reach::Once => (&said::ALLOWED, "green"),
            Reach::Session(_) => (&said::ALLOWED_SESSION, "green"),
            Reach::Always { undone: false, .. } => (&said::ALLOWED_ALWAYS, "green"),
            Reach::Always { undone: true, .. } => (&said::UNDONE, "green"),
        },
        Ending::Denied { interrupt, .. } => {
            let title = if *interrupt {
                &said::INTERRUPTED
            } else {
                &said::DENIED
            };
            (title, "red")
        }
        Ending::Answered { .. } => (&said::ANSWERED, "green"),
        Ending::Terminal { allowed } => match allowed {
            Some(true) => (&said::TERMINAL_YES, "grey"),
            Some(false) => (&said::TERMINAL_NO, "grey"),
            None => (&said::TERMINAL, "grey"),
        },
        Ending::TimedOut => (&said::TIMED_OUT, "grey"),
        Ending::HookGone => (&said::HOOK_GONE, "grey"),
        Ending::Orphaned => (&said::ORPHANED, "grey"),
        Ending::Undeliverable { .. } => (&said::UNDELIVERABLE, "grey"),
        Ending::Dropped { .. } => (&said::DROPPED, "grey"),
    }
}

/// What, who and when on one line of our own markdown.
fn result(ending: &Ending, title: &Text, request: &Request, at: Millis, lang: Lang) -> Vec<Value> {
    let when = said::when(&local_time(at), at.saturating_sub(request.asked_at));
    let mut line = format!("**{}** · {}", title.get(lang), when.get(lang));
    let by = match ending {
        Ending::Allowed { by, .. } | Ending::Denied { by, .. } | Ending::Answered { by, .. } => by,
        Ending::Terminal { .. }
        | Ending::TimedOut
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Undeliverable { .. }
        | Ending::Dropped { .. } => return vec![markdown(&line)],
    };
    match person(by) {
        Some(person) => {
            line = format!("{line} · {} {person}", said::BY.get(lang));
            vec![markdown(&line)]
        }
        None => vec![
            markdown(&line),
            note(&format!("{}: {}", said::BY.get(lang), by.id)),
        ],
    }
}

/// Feishu shows an open id as the person's name.
fn person(by: &Operator) -> Option<String> {
    let UserId::Open(id) = &by.id else {
        return None;
    };
    let harmless = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    harmless.then(|| {
        format!("<person id='{id}' show_name=true show_avatar=true style='normal'></person>")
    })
}

fn detail(ending: &Ending, request: &Request, undo: Option<&Value>, lang: Lang) -> Vec<Value> {
    let say = |text: &Text| vec![note(text.get(lang))];
    match ending {
        Ending::Allowed { reach, .. } => match reach {
            Reach::Once => Vec::new(),
            Reach::Session(rules) => {
                vec![note(&format!(
                    "{}: {}",
                    said::SESSION_RULE.get(lang),
                    rendered(rules)
                ))]
            }
            Reach::Always { rules, undone } => {
                let rule = format!(
                    "{}: {}\n{}: {LOCAL_SETTINGS}",
                    said::RULE.get(lang),
                    rendered(rules),
                    words::RULE_FILE.get(lang),
                );
                let mut nodes = vec![note(&rule)];
                match undo {
                    _ if *undone => nodes.push(note(said::UNDONE_TEXT.get(lang))),
                    Some(value) => nodes.push(undo_button(value, lang)),
                    None => {}
                }
                nodes
            }
        },
        Ending::Denied { reason, .. } => reason
            .as_deref()
            .filter(|reason| !reason.is_empty())
            .map(|reason| {
                let text = cut(
                    escape::visible(&cut(reason.to_owned(), MAX_REASON), Shape::Lines),
                    MAX_REASON,
                );
                vec![note(said::REASON.get(lang)), div(&text)]
            })
            .unwrap_or_default(),
        Ending::Answered { answers, .. } => answers
            .iter()
            .map(|answer| {
                let words = asking::kept_words(answer).map_or_else(
                    || escape::visible(&cut(answer.clone(), MAX_REASON), Shape::Lines),
                    |text| text.get(lang).to_owned(),
                );
                div(&format!(
                    "{}: {}",
                    asking::ANSWER.get(lang),
                    cut(words, MAX_REASON)
                ))
            })
            .collect(),
        Ending::Terminal { .. } => say(&said::TERMINAL_TEXT),
        Ending::TimedOut if request.origin.hosted => say(&said::UNANSWERED_TEXT),
        Ending::TimedOut => say(&said::TIMED_OUT_TEXT),
        Ending::HookGone => say(&said::HOOK_GONE_TEXT),
        Ending::Orphaned => say(&said::ORPHANED_TEXT),
        Ending::Undeliverable { .. } => say(&said::UNDELIVERABLE_TEXT),
        Ending::Dropped { why } => say(said::dropped(*why)),
    }
}

fn undo_button(value: &Value, lang: Lang) -> Value {
    json!({
        "tag": "button",
        "element_id": "b_undo",
        "type": "default",
        "size": "medium",
        "width": "default",
        "text": plain(words::UNDO.get(lang)),
        "behaviors": [{"type": "callback", "value": value}],
        "confirm": confirm(&words::CONFIRM_UNDO, words::CONFIRM_UNDO_TEXT.get(lang), lang),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Action;
    use super::super::sample::{actions, bash, endings, read, strings, values};
    use super::*;

    #[test]
    fn every_ending_says_what_who_when_and_how_long() {
        let request = bash("npm run build");
        let undo = values(Action::Undo);
        for (ending, said) in endings().iter().zip([
            "已批准",
            "本次会话已允许",
            "已始终允许",
            "规则已撤销",
            "已拒绝",
            "已拒绝并中断",
            "已在终端批准",
            "已在终端拒绝",
            "已在终端处理",
            "已超时",
            "请求已失效",
            "连接已中断",
            "已取消",
            "已取消",
            "已取消",
            "卡片无法送达",
        ]) {
            let at = request.asked_at + 61_000;
            let card = ended(
                &request,
                ending,
                at,
                Delivery::Confirmed,
                Some(&undo),
                Lang::Zh,
            );
            let seen = read(&card);
            assert!(seen.contains(&format!("**{said}**")), "{seen}");
            assert!(
                seen.contains("npm run build") && seen.contains("等待 1 分 1 秒"),
                "{seen}"
            );
            assert!(seen.contains(&format!("millisecond='{at}'")), "{seen}");
            let decided = matches!(ending, Ending::Allowed { .. } | Ending::Denied { .. });
            assert_eq!(seen.contains("<person id='ou_1'"), decided, "{seen}");
            let always = matches!(
                ending,
                Ending::Allowed {
                    reach: Reach::Always { undone: false, .. },
                    ..
                }
            );
            assert_eq!(actions(&card), if always { vec!["undo"] } else { vec![] });
            assert!(!seen.contains("没有收到确认"));
            let card = ended(&request, ending, at, Delivery::Unconfirmed, None, Lang::Zh);
            assert_eq!(read(&card).contains("没有收到确认"), decided);
            assert_eq!(actions(&card), Vec::<&str>::new());
        }
    }

    #[test]
    fn a_hosted_request_has_no_terminal_to_go_back_to() {
        let mut request = bash("ls");
        let timed_out = |request: &Request| {
            let ending = Ending::TimedOut;
            let card = ended(request, &ending, 0, Delivery::Confirmed, None, Lang::Zh);
            read(&card)
        };
        assert!(timed_out(&request).contains("已交回终端处理"));
        request.origin.hosted = true;
        let seen = timed_out(&request);
        assert!(
            seen.contains("已按不允许处理") && !seen.contains("终端"),
            "{seen}"
        );
    }

    #[test]
    fn a_reason_is_shown_as_it_was_typed() {
        let request = bash("ls");
        let ending = &endings()[4];
        let card = ended(&request, ending, 0, Delivery::Confirmed, None, Lang::Zh);
        strings(&card, &mut |_, node, text| {
            if text.contains("**no**") {
                assert_eq!(node["tag"], "plain_text");
            }
        });
        assert!(read(&card).contains("**no** <at id=all></at>"));
    }

    #[test]
    fn an_id_that_is_not_an_open_id_stays_plain() {
        let request = bash("ls");
        for id in ["on_9", "e33gg", "ou_'><at"] {
            let by = Operator {
                id: UserId::parse(id).unwrap(),
            };
            let ending = Ending::Allowed {
                by,
                reach: Reach::Once,
            };
            let card = ended(&request, &ending, 0, Delivery::Confirmed, None, Lang::En);
            assert!(!read(&card).contains("<person"));
            assert!(read(&card).contains(&format!("By: {id}")));
        }
    }
}
