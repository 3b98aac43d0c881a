//! The short answers to a click. Eight of them are fixed by the protocol and
//! may not change by a letter; the rest say the true reason where those don't.

use crate::sessions::questions::ReplyProblem;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

use super::ago;
use crate::approvals::outcome::NotTaken;
use crate::clock::Millis;
use crate::text::{Lang, Text, Tone, plural};

/// The answer to one click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Toast {
    Allowed,
    AllowedAlways,
    AllowedForSession,
    /// More than this call is allowed from here on, and the sentence says what.
    AllowedWider {
        sentence: Text,
    },
    Denied,
    Interrupted,
    /// What the terminal had allowed is stopped.
    Stopped,
    /// No request of this id, here or anywhere we know.
    Unknown,
    /// Decided in Feishu before. Who chose what is on the card that goes along.
    AlreadyHandled,
    HookGone,
    Invalid,
    NotAnApprover,
    SettledInTerminal {
        allowed: Option<bool>,
        ago: Millis,
    },
    TimedOut {
        ago: Millis,
    },
    /// The request lives on another machine that can't be reached from here.
    OtherMachine {
        machine: String,
    },
    /// The click took too long to arrive to be trusted.
    Stale,
    /// The decision was handed over but its arrival isn't confirmed.
    StillChecking,
    /// An "always" that became an "allow once".
    RuleNotSaved {
        why: Text,
    },
    RuleUndone,
    UndoFailed {
        why: Text,
    },
    CallbackUnreachable,
    /// The machine the request lives on is not on the team's bus.
    NotConnected {
        machine: String,
    },
    /// The tap left no gateway.
    NothingDecided,
    /// The machine the request lives on was taken out of the team.
    Forgotten {
        machine: String,
    },
    /// What a gateway has done, or what the machine the request lives on said.
    Said {
        tone: Tone,
        text: Text,
    },
    /// The machine the request lives on was reached and took no call of ours.
    CallbackRefused(NotTaken),
    AlwaysNotOffered,
    /// The button isn't on the card that was shown.
    NotOffered,
    /// The hook lost the daemon and is on its way back.
    Reconnecting,
    /// Remote approval is locked; only a refusal is possible.
    Locked,
    /// The same, because the file that would tell is lost.
    LockedUnsure,
    Processing,
    /// The button asked, by a card of its own.
    AskedOnceMore,
    /// A card that asked before a restart, and answers for nothing any more.
    AskAnew,
    /// The session that asked does not wait any more.
    Expired,
    Stopping,
    /// A session begins, or goes on in the chat.
    Starting,
    /// What a menu's button stands for.
    CarriedOut,
    /// The button of a menu that nod does not remember.
    MenuGone,
    /// The field for words is empty.
    SayWhat,
    /// A gathered request has, or gets, a card of its own.
    Opened,
    DenyingAll {
        count: usize,
    },
    NothingRuns,
    /// Only the owner steers sessions.
    NotTheOwner,
    /// A question has its answer.
    Answered,
    /// The person chose not to answer, or sent a plan back.
    AnswerRefused,
    /// What was given is no answer; the question stays open.
    BadAnswer(ReplyProblem),
}

impl Toast {
    pub const fn tone(&self) -> Tone {
        match self {
            Self::Allowed
            | Self::AllowedAlways
            | Self::AllowedForSession
            | Self::AllowedWider { .. }
            | Self::Denied
            | Self::Interrupted
            | Self::Stopped
            | Self::Answered
            | Self::AnswerRefused
            | Self::Stopping
            | Self::Starting
            | Self::CarriedOut
            | Self::Opened
            | Self::DenyingAll { .. }
            | Self::RuleUndone => Tone::Success,
            Self::Unknown
            | Self::HookGone
            | Self::Invalid
            | Self::NotAnApprover
            | Self::NotTheOwner
            | Self::CallbackUnreachable
            | Self::CallbackRefused(_)
            | Self::UndoFailed { .. } => Tone::Error,
            Self::Said { tone, .. } => *tone,
            Self::AlreadyHandled
            | Self::SettledInTerminal { .. }
            | Self::TimedOut { .. }
            | Self::OtherMachine { .. }
            | Self::NotConnected { .. }
            | Self::NothingDecided
            | Self::Forgotten { .. }
            | Self::Stale
            | Self::RuleNotSaved { .. }
            | Self::AlwaysNotOffered
            | Self::NotOffered
            | Self::AskAnew
            | Self::Expired
            | Self::MenuGone
            | Self::SayWhat
            | Self::NothingRuns
            | Self::BadAnswer(_)
            | Self::Locked
            | Self::LockedUnsure => Tone::Warning,
            Self::StillChecking | Self::Reconnecting | Self::Processing | Self::AskedOnceMore => {
                Tone::Info
            }
        }
    }

    #[allow(
        clippy::too_many_lines,
        reason = "one sentence for each, and nothing else"
    )]
    pub fn text(&self) -> Text {
        match self {
            Self::Allowed => Text::new("已批准运行", "Allowed once"),
            Self::AllowedAlways => Text::new(
                "已始终允许，后续相同操作将自动批准",
                "Always allowed: the same operation is approved from here on",
            ),
            Self::AllowedForSession => Text::new(
                "已批准，本次会话内相同操作将自动批准",
                "Allowed: the same operation is approved until this session ends",
            ),
            Self::AllowedWider { sentence } => Text::made(
                format!("已批准。{}", sentence.zh),
                format!("Allowed. {}", sentence.en),
            ),
            Self::Denied => Text::new("已拒绝运行", "Denied"),
            Self::Interrupted => Text::new("已拒绝并中断", "Denied and interrupted"),
            Self::Stopped => Text::new("已中断运行", "Stopped"),
            Self::Unknown => Text::new("请求不存在或已过期", "Unknown or expired request"),
            Self::AlreadyHandled => Text::new(
                "该请求已被处理，请勿重复操作",
                "This request is already settled",
            ),
            Self::HookGone => Text::new(
                "请求已失效，请返回终端查看状态",
                "No longer waiting: look at the terminal",
            ),
            Self::AskedOnceMore => Text::new(
                "请在新发出的卡片上再次确认",
                "Confirm it on the card that follows",
            ),
            Self::AskAnew => Text::new(
                "请在请求的卡片上重新选择",
                "Choose once more on the request's own card",
            ),
            Self::Expired => super::session::EXPIRED,
            Self::Stopping => Text::new("正在停止", "Stopping"),
            Self::Starting => Text::new("正在开始", "Starting"),
            Self::CarriedOut => Text::new("已收到", "Got it"),
            Self::MenuGone => Text::new(
                "按钮已失效，请重新发送命令",
                "This button is too old: send the command again",
            ),
            Self::SayWhat => Text::new("请先在输入框中写明内容", "Write into the field first"),
            Self::Opened => Text::new("已打开", "Opened"),
            Self::DenyingAll { count } => Text::made(
                format!("正在拒绝 {count} 个请求"),
                format!("Denying {count} {}", plural(*count, "request")),
            ),
            Self::NothingRuns => Text::new("当前没有正在执行的任务", "Nothing is running here"),
            Self::NotTheOwner => Text::new(
                "抱歉，只有所有者可以使用会话命令，操作未生效",
                "Sorry, only the owner can steer sessions: nothing was changed",
            ),
            Self::Invalid => Text::new("无效的回调请求", "Invalid callback"),
            Self::NotAnApprover => Text::new(
                "你不在审批人名单中，操作未生效",
                "You are not an approver: nothing was changed",
            ),
            Self::SettledInTerminal { allowed, ago: age } => {
                let age = ago(*age);
                let (zh, en) = match allowed {
                    Some(true) => ("已在终端批准", "Allowed in the terminal"),
                    Some(false) => ("已在终端拒绝", "Denied in the terminal"),
                    None => ("已在终端处理", "Settled in the terminal"),
                };
                Text::made(format!("{zh}（{}）", age.zh), format!("{en} {}", age.en))
            }
            Self::TimedOut { ago: age } => {
                let age = ago(*age);
                Text::made(
                    format!("请求已超时（{}），请在终端处理", age.zh),
                    format!("Timed out {}: answer in the terminal", age.en),
                )
            }
            Self::OtherMachine { machine } => Text::made(
                format!("该请求属于机器 {machine}，请在该机器上处理"),
                format!("This request belongs to machine {machine}: answer there"),
            ),
            Self::NotConnected { machine } => Text::made(
                format!("{machine} 未连接，请在该机器的终端中处理"),
                format!("{machine} is not connected: answer in its terminal"),
            ),
            Self::NothingDecided => Text::new(
                "未作出任何决定，请重新点击",
                "Nothing was decided: tap again",
            ),
            Self::Forgotten { machine } => Text::made(
                format!("{machine} 已被移出团队，请在该机器的终端中处理"),
                format!("{machine} was taken out of the team: answer in its terminal"),
            ),
            Self::Said { text, .. } => text.clone(),
            Self::Stale => Text::new(
                "点击送达过晚，未生效，请重新点击",
                "The click arrived too late and was not used: click again",
            ),
            Self::StillChecking => Text::new(
                "结果确认中，卡片稍后更新",
                "Checking the outcome: the card will be updated",
            ),
            Self::RuleNotSaved { why } => Text::made(
                format!("已批准本次运行，但规则未能保存：{}", why.zh),
                format!("Allowed once, but the rule could not be saved: {}", why.en),
            ),
            Self::RuleUndone => Text::new(
                "已撤销规则，后续操作将再次询问",
                "Rule removed: you will be asked again",
            ),
            Self::UndoFailed { why } => Text::made(
                format!("撤销规则失败：{}", why.zh),
                format!("The rule could not be removed: {}", why.en),
            ),
            Self::CallbackUnreachable => Text::new(
                "回调服务不可达，请检查服务状态",
                "The callback service can't be reached: check that it runs",
            ),
            Self::CallbackRefused(NotTaken::Clock) => Text::new(
                "两台机器的时钟相差过大，点击未生效",
                "The two machines' clocks differ too much: nothing was changed",
            ),
            Self::CallbackRefused(NotTaken::Secret) => Text::new(
                "请求所在的机器拒绝了转发，请检查两台机器的密钥",
                "The request's machine refused the call: check that both have the same secret",
            ),
            Self::CallbackRefused(NotTaken::Version) => Text::new(
                "两台机器上的 nod 版本不一致，未生效；请将较旧的一台升级",
                "One of the two machines runs an older nod: nothing was changed. Update it",
            ),
            Self::AlwaysNotOffered => Text::new(
                "该请求没有安全的规则，不能始终允许",
                "No rule is safe for this request: it can't be always allowed",
            ),
            Self::NotOffered => Text::new(
                "该请求不能在飞书中批准，请在终端处理",
                "This request can't be allowed from Feishu: answer in the terminal",
            ),
            Self::Reconnecting => Text::new(
                "正在重新连接，请稍后再点一次",
                "Reconnecting: click again in a moment",
            ),
            Self::Locked => Text::new(
                "远程批准已锁定，请在终端解锁；仍可拒绝",
                "Remote approval is locked: unlock in the terminal; denying still works",
            ),
            Self::LockedUnsure => Text::new(
                "数据库丢失，不知道是否已锁定：请在终端运行 nod unlock；仍可拒绝",
                "The database was lost, so nobody knows whether nod was locked: run nod unlock in the terminal; denying still works",
            ),
            Self::Processing => Text::new("处理中，请稍候", "Working on it"),
            Self::Answered => Text::new("已收到你的回复，继续执行...", "Got your reply, going on"),
            Self::AnswerRefused => Text::new("已转告，不再等待回答", "Told, no answer is awaited"),
            Self::BadAnswer(problem) => super::question::problem(*problem),
        }
    }
}

/// Longer than any toast of ours with a name in it; a reason from elsewhere is
/// cut here, because Feishu shows two lines at most.
const MAX_CHARS: usize = 180;

fn cut(text: &str) -> Cow<'_, str> {
    // Never fewer bytes than characters.
    if text.len() <= MAX_CHARS && !text.contains(char::is_control) {
        return text.into();
    }
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    if text.chars().count() <= MAX_CHARS {
        return clean.collect();
    }
    clean.take(MAX_CHARS - 1).chain(['…']).collect()
}

/// A callback's answer as Feishu takes it.
#[derive(Serialize)]
struct ToastReply<'a> {
    toast: Short<'a>,
}

#[derive(Serialize)]
struct Short<'a> {
    r#type: &'static str,
    /// What clients without `i18n` show.
    content: Cow<'a, str>,
    i18n: Both<'a>,
}

#[derive(Serialize)]
struct Both<'a> {
    zh_cn: Cow<'a, str>,
    en_us: Cow<'a, str>,
}

/// What a click is answered with: a toast, and the card's true face where it
/// has changed, given as the JSON it is.
pub fn reply_json(toast: &Toast, card: Option<&str>, lang: Lang) -> Vec<u8> {
    let text = toast.text();
    let reply = ToastReply {
        toast: Short {
            r#type: toast.tone().as_str(),
            content: cut(text.get(lang)),
            i18n: Both {
                zh_cn: cut(&text.zh),
                en_us: cut(&text.en),
            },
        },
    };
    let mut json = serde_json::to_vec(&reply).expect("text is always JSON");
    if let Some(card) = card {
        // Behind the toast, in the object that ends here.
        json.pop();
        json.extend_from_slice(br#","card":{"type":"raw","data":"#);
        json.extend_from_slice(card.as_bytes());
        json.extend_from_slice(b"}}");
    }
    json
}

/// A reply as it was kept, and the card that went with it.
pub fn read_reply(bytes: &[u8]) -> Option<(Tone, Text, Option<Value>)> {
    let mut said: Value = serde_json::from_slice(bytes).ok()?;
    let card = said.pointer_mut("/card/data").map(Value::take);
    let text = |at: &str| said.pointer(at)?.as_str().map(str::to_owned);
    let words = Text::made(text("/toast/i18n/zh_cn")?, text("/toast/i18n/en_us")?);
    Some((Tone::parse(&text("/toast/type")?), words, card))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(toast: &Toast, lang: Lang) -> Value {
        let reply: Value = serde_json::from_slice(&reply_json(toast, None, lang)).unwrap();
        assert_eq!(reply.as_object().unwrap().len(), 1);
        reply["toast"].clone()
    }

    #[test]
    fn a_card_goes_with_its_toast() {
        let card = json!({"schema": "2.0"});
        let reply = reply_json(&Toast::Allowed, Some(&card.to_string()), Lang::En);
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        assert_eq!(reply["card"], json!({"type": "raw", "data": card}));
        assert_eq!(reply["toast"]["type"], "success");
    }

    #[test]
    fn a_kept_reply_reads_back() {
        let card = json!({"schema": "2.0"});
        let reply = reply_json(&Toast::Denied, Some(&card.to_string()), Lang::En);
        let said = (Tone::Success, Toast::Denied.text(), Some(card));
        assert_eq!(read_reply(&reply), Some(said));
        let bare = reply_json(&Toast::Stale, None, Lang::Zh);
        let said = (Tone::Warning, Toast::Stale.text(), None);
        assert_eq!(read_reply(&bare), Some(said));
        assert_eq!(read_reply(b"{}"), None);
    }

    #[test]
    fn the_protocols_toasts_are_exact() {
        for (toast, tone, zh) in [
            (Toast::Allowed, "success", "已批准运行"),
            (
                Toast::AllowedAlways,
                "success",
                "已始终允许，后续相同操作将自动批准",
            ),
            (Toast::Denied, "success", "已拒绝运行"),
            (Toast::Interrupted, "success", "已拒绝并中断"),
            (Toast::Unknown, "error", "请求不存在或已过期"),
            (
                Toast::AlreadyHandled,
                "warning",
                "该请求已被处理，请勿重复操作",
            ),
            (Toast::HookGone, "error", "请求已失效，请返回终端查看状态"),
            (Toast::Invalid, "error", "无效的回调请求"),
            (
                Toast::CallbackUnreachable,
                "error",
                "回调服务不可达，请检查服务状态",
            ),
        ] {
            let json = shown(&toast, Lang::Zh);
            assert_eq!(json["type"], tone, "{toast:?}");
            assert_eq!(json["content"], zh);
            assert_eq!(json["i18n"]["zh_cn"], zh);
            assert_ne!(json["i18n"]["en_us"], zh);
        }
    }

    #[test]
    fn a_wider_rule_is_told_in_full() {
        use super::super::rule::{Until, sentence};
        use crate::rules::Covers;
        let (project, host) = ("p".repeat(32), "h".repeat(72));
        let tool = format!("mcp__{}", "t".repeat(59));
        for covers in [
            Covers::Beginning("git check-ref-format"),
            Covers::Host(&host),
            Covers::AnySearch,
            Covers::Tool(&tool),
        ] {
            for until in [Until::Undone, Until::SessionEnd] {
                let sentence = sentence(covers, &project, until);
                for lang in [Lang::Zh, Lang::En] {
                    let toast = Toast::AllowedWider {
                        sentence: sentence.clone(),
                    };
                    let json = shown(&toast, lang);
                    let content = json["content"].as_str().unwrap();
                    assert!(content.ends_with(sentence.get(lang)), "{content}");
                    assert!(!content.contains("相同操作") && !content.contains("same operation"));
                }
            }
        }
    }

    #[test]
    fn the_language_chooses_the_content_and_i18n_carries_both() {
        let json = shown(&Toast::Allowed, Lang::En);
        assert_eq!(json["content"], "Allowed once");
        assert_eq!(json["i18n"]["zh_cn"], "已批准运行");
    }

    #[test]
    fn reasons_from_elsewhere_are_cut_and_kept_on_one_line() {
        let toast = Toast::RuleNotSaved {
            why: Text::made(
                format!("第 3 行\n第 4 列 {}", "x".repeat(9_000)),
                String::new(),
            ),
        };
        let json = shown(&toast, Lang::Zh);
        let content = json["content"].as_str().unwrap();
        assert_eq!(content.chars().count(), MAX_CHARS);
        assert!(
            content.ends_with('…') && !content.contains('\n'),
            "{content}"
        );
    }
}
