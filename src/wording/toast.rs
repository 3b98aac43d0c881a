//! The short answers to a click. Eight of them are fixed by the protocol and
//! may not change by a letter; the rest say the true reason where those don't.

use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

use super::ago;
use crate::approvals::outcome::PeerSilence;
use crate::clock::Millis;
use crate::text::{Lang, Text, Tone, plural};

/// The answer to one click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toast {
    pub tone: Tone,
    pub text: Text,
}

impl Toast {
    pub const ALLOWED: Self = Self::success("已批准运行", "Allowed once");
    pub const ALLOWED_ALWAYS: Self = Self::success(
        "已始终允许，后续相同操作将自动批准",
        "Always allowed: the same operation is approved from here on",
    );
    pub const ALLOWED_FOR_SESSION: Self = Self::success(
        "已批准，本次会话内相同操作将自动批准",
        "Allowed: the same operation is approved until this session ends",
    );
    pub(super) const ALLOWED_FOR_TURN: Self = Self::success(
        "已允许，到本轮结束为止",
        "Allowed for the rest of this turn",
    );

    /// More than this call is allowed from here on, and the sentence says what.
    pub(super) fn allowed_wider(sentence: &Text) -> Self {
        Self::made(
            Tone::Success,
            format!("已批准。{}", sentence.zh),
            format!("Allowed. {}", sentence.en),
        )
    }

    pub const DENIED: Self = Self::success("已拒绝运行", "Denied");
    pub const INTERRUPTED: Self = Self::success("已拒绝并中断", "Denied and interrupted");
    pub(super) const STOPPED: Self = Self::success("已中断运行", "Stopped");
    /// No request of this id, here or anywhere we know.
    pub const UNKNOWN: Self = Self::error("请求不存在或已过期", "Unknown or expired request");
    /// Decided in Feishu before. Who chose what is on the card that goes along.
    pub const ALREADY_HANDLED: Self = Self::warning(
        "该请求已被处理，请勿重复操作",
        "This request is already settled",
    );
    pub const HOOK_GONE: Self = Self::error(
        "请求已失效，请返回终端查看状态",
        "No longer waiting: look at the terminal",
    );
    pub(super) const ASKED_ONCE_MORE: Self = Self::info(
        "请在新发出的卡片上再次确认",
        "Confirm it on the card that follows",
    );
    pub(super) const ASK_ANEW: Self = Self::warning(
        "请在请求的卡片上重新选择",
        "Choose once more on the request's own card",
    );
    /// The session that asked does not wait any more.
    pub const EXPIRED: Self = Self::said(Tone::Warning, super::session::EXPIRED);
    pub const STOPPING: Self = Self::success("正在停止", "Stopping");
    pub(super) const STARTING: Self = Self::success("正在开始", "Starting");
    pub(super) const CARRIED_OUT: Self = Self::success("已收到", "Got it");
    pub(super) const MENU_GONE: Self = Self::warning(
        "按钮已失效，请重新发送命令",
        "This button is too old: send the command again",
    );
    pub(super) const SAY_WHAT: Self =
        Self::warning("请先在输入框中写明内容", "Write into the field first");
    pub(super) const OPENED: Self = Self::success("已打开", "Opened");

    pub(super) fn denying_all(count: usize) -> Self {
        Self::made(
            Tone::Success,
            format!("正在拒绝 {count} 个请求"),
            format!("Denying {count} {}", plural(count, "request")),
        )
    }

    pub(super) const NOTHING_RUNS: Self =
        Self::warning("当前没有正在执行的任务", "Nothing is running here");
    /// Only the owner steers sessions.
    pub const NOT_THE_OWNER: Self = Self::error(
        "抱歉，只有所有者可以使用会话命令，操作未生效",
        "Sorry, only the owner can steer sessions: nothing was changed",
    );
    pub const INVALID: Self = Self::error("无效的回调请求", "Invalid callback");
    pub const NOT_AN_APPROVER: Self = Self::error(
        "你不在审批人名单中，操作未生效",
        "You are not an approver: nothing was changed",
    );

    pub fn settled_in_terminal(allowed: Option<bool>, age: Millis) -> Self {
        let age = ago(age);
        let (zh, en) = match allowed {
            Some(true) => ("已在终端批准", "Allowed in the terminal"),
            Some(false) => ("已在终端拒绝", "Denied in the terminal"),
            None => ("已在终端处理", "Settled in the terminal"),
        };
        Self::made(
            Tone::Warning,
            format!("{zh}（{}）", age.zh),
            format!("{en} {}", age.en),
        )
    }

    pub fn timed_out(age: Millis) -> Self {
        let age = ago(age);
        Self::made(
            Tone::Warning,
            format!("请求已超时（{}），请在终端处理", age.zh),
            format!("Timed out {}: answer in the terminal", age.en),
        )
    }

    pub(super) fn other_machine(machine: &str) -> Self {
        Self::made(
            Tone::Warning,
            format!("该请求属于机器 {machine}，请在该机器上处理"),
            format!("This request belongs to machine {machine}: answer there"),
        )
    }

    /// The machine the request lives on is not on the team's bus.
    pub fn not_connected(machine: &str) -> Self {
        Self::made(
            Tone::Warning,
            format!("{machine} 未连接，请在该机器的终端中处理"),
            format!("{machine} is not connected: answer in its terminal"),
        )
    }

    /// The tap left no gateway.
    pub const NOTHING_DECIDED: Self = Self::warning(
        "未作出任何决定，请重新点击",
        "Nothing was decided: tap again",
    );

    /// The machine the request lives on was taken out of the team.
    pub fn forgotten(machine: &str) -> Self {
        Self::made(
            Tone::Warning,
            format!("{machine} 已被移出团队，请在该机器的终端中处理"),
            format!("{machine} was taken out of the team: answer in its terminal"),
        )
    }

    /// What a gateway has done, or what the machine the request lives on said.
    pub const fn said(tone: Tone, text: Text) -> Self {
        Self { tone, text }
    }

    /// The click took too long to arrive to be trusted.
    pub const STALE: Self = Self::warning(
        "点击送达过晚，未生效，请重新点击",
        "The click arrived too late and was not used: click again",
    );
    /// The decision was handed over but its arrival isn't confirmed.
    pub const STILL_CHECKING: Self = Self::info(
        "结果确认中，卡片稍后更新",
        "Checking the outcome: the card will be updated",
    );

    /// An "always" that became an "allow once".
    pub(super) fn rule_not_saved(why: &Text) -> Self {
        Self::made(
            Tone::Warning,
            format!("已批准本次运行，但规则未能保存：{}", why.zh),
            format!("Allowed once, but the rule could not be saved: {}", why.en),
        )
    }

    pub const RULE_UNDONE: Self = Self::success(
        "已撤销规则，后续操作将再次询问",
        "Rule removed: you will be asked again",
    );

    pub(super) fn undo_failed(why: &Text) -> Self {
        Self::made(
            Tone::Error,
            format!("撤销规则失败：{}", why.zh),
            format!("The rule could not be removed: {}", why.en),
        )
    }

    pub const CALLBACK_UNREACHABLE: Self = Self::error(
        "回调服务不可达，请检查服务状态",
        "The callback service can't be reached: check that it runs",
    );
    pub(super) const NO_TOKEN: Self = Self::error(
        "回调服务拒绝了转发，未生效；请检查其令牌（CALLBACK_PEER_TOKENS）",
        "The callback service refused the call: nothing was changed. Check its token (CALLBACK_PEER_TOKENS)",
    );
    /// The reference protocol's sentence, and that nothing was decided.
    pub(super) fn peer_status(status: u16) -> Self {
        Self::said(
            Tone::Error,
            Text::made(
                format!("回调服务错误：HTTP {status}，未生效"),
                format!("The callback service answered HTTP {status}: nothing was changed"),
            ),
        )
    }
    /// A service that is not nod can't be asked again.
    pub(super) fn service_unclear(why: PeerSilence) -> Self {
        let (zh, en) = match why {
            PeerSilence::Status(status) => (
                format!("回调服务错误：HTTP {status}"),
                format!("The callback service failed with HTTP {status}"),
            ),
            PeerSilence::Slow => (
                "回调服务响应超时".to_owned(),
                "The callback service did not answer in time".to_owned(),
            ),
            PeerSilence::Broken => (
                "回调服务的答复无法读取".to_owned(),
                "The callback service gave no answer that can be read".to_owned(),
            ),
        };
        Self::said(
            Tone::Warning,
            Text::made(
                format!("{zh}，不确定是否已生效，请在终端查看"),
                format!("{en}. It may or may not have decided: look in the terminal"),
            ),
        )
    }
    pub(super) const NO_CLOCK: Self = Self::error(
        "两台机器的时钟相差过大，点击未生效",
        "The two machines' clocks differ too much: nothing was changed",
    );
    pub(super) const NO_SECRET: Self = Self::error(
        "请求所在的机器拒绝了转发，请检查两台机器的密钥",
        "The request's machine refused the call: check that both have the same secret",
    );
    pub(super) const NO_VERSION: Self = Self::error(
        "两台机器上的 nod 版本不一致，未生效；请将较旧的一台升级",
        "One of the two machines runs an older nod: nothing was changed. Update it",
    );
    pub(super) const ALWAYS_NOT_OFFERED: Self = Self::warning(
        "该请求没有安全的规则，不能始终允许",
        "No rule is safe for this request: it can't be always allowed",
    );
    pub(super) const NOT_OFFERED: Self = Self::warning(
        "该请求不能在飞书中批准，请在终端处理",
        "This request can't be allowed from Feishu: answer in the terminal",
    );
    /// The hook lost the daemon and is on its way back.
    pub const RECONNECTING: Self = Self::info(
        "正在重新连接，请稍后再点一次",
        "Reconnecting: click again in a moment",
    );
    pub(super) const LOCKED: Self = Self::warning(
        "远程批准已锁定，请在终端解锁；仍可拒绝",
        "Remote approval is locked: unlock in the terminal; denying still works",
    );
    /// Remote approval may be locked: the file that would tell is lost.
    pub const LOCKED_UNSURE: Self = Self::warning(
        "数据库丢失，不知道是否已锁定：请在终端运行 nod unlock；仍可拒绝",
        "The database was lost, so nobody knows whether nod was locked: run nod unlock in the terminal; denying still works",
    );
    pub const PROCESSING: Self = Self::info("处理中，请稍候", "Working on it");
    /// A question has its answer.
    pub const ANSWERED: Self =
        Self::success("已收到你的回复，继续执行...", "Got your reply, going on");
    /// The person chose not to answer, or sent a plan back.
    pub const ANSWER_REFUSED: Self =
        Self::success("已转告，不再等待回答", "Told, no answer is awaited");

    pub(super) const fn success(zh: &'static str, en: &'static str) -> Self {
        Self::said(Tone::Success, Text::new(zh, en))
    }

    pub(super) const fn error(zh: &'static str, en: &'static str) -> Self {
        Self::said(Tone::Error, Text::new(zh, en))
    }

    pub(super) const fn warning(zh: &'static str, en: &'static str) -> Self {
        Self::said(Tone::Warning, Text::new(zh, en))
    }

    pub(super) const fn info(zh: &'static str, en: &'static str) -> Self {
        Self::said(Tone::Info, Text::new(zh, en))
    }

    pub(super) const fn made(tone: Tone, zh: String, en: String) -> Self {
        Self::said(tone, Text::made(zh, en))
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
    let text = &toast.text;
    let reply = ToastReply {
        toast: Short {
            r#type: toast.tone.as_str(),
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
pub fn read_reply(bytes: &[u8]) -> Option<(Toast, Option<Value>)> {
    let mut said: Value = serde_json::from_slice(bytes).ok()?;
    let card = said.pointer_mut("/card/data").map(Value::take);
    let text = |at: &str| said.pointer(at)?.as_str().map(str::to_owned);
    let tone = Tone::parse(&text("/toast/type")?);
    let toast = Toast::made(tone, text("/toast/i18n/zh_cn")?, text("/toast/i18n/en_us")?);
    Some((toast, card))
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
        let reply = reply_json(&Toast::ALLOWED, Some(&card.to_string()), Lang::En);
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        assert_eq!(reply["card"], json!({"type": "raw", "data": card}));
        assert_eq!(reply["toast"]["type"], "success");
    }

    #[test]
    fn a_kept_reply_reads_back() {
        let card = json!({"schema": "2.0"});
        let reply = reply_json(&Toast::DENIED, Some(&card.to_string()), Lang::En);
        assert_eq!(read_reply(&reply), Some((Toast::DENIED, Some(card))));
        let bare = reply_json(&Toast::STALE, None, Lang::Zh);
        assert_eq!(read_reply(&bare), Some((Toast::STALE, None)));
        assert_eq!(read_reply(b"{}"), None);
    }

    #[test]
    fn the_protocols_toasts_are_exact() {
        for (toast, tone, zh) in [
            (Toast::ALLOWED, "success", "已批准运行"),
            (
                Toast::ALLOWED_ALWAYS,
                "success",
                "已始终允许，后续相同操作将自动批准",
            ),
            (Toast::DENIED, "success", "已拒绝运行"),
            (Toast::INTERRUPTED, "success", "已拒绝并中断"),
            (Toast::UNKNOWN, "error", "请求不存在或已过期"),
            (
                Toast::ALREADY_HANDLED,
                "warning",
                "该请求已被处理，请勿重复操作",
            ),
            (Toast::HOOK_GONE, "error", "请求已失效，请返回终端查看状态"),
            (Toast::INVALID, "error", "无效的回调请求"),
            (
                Toast::CALLBACK_UNREACHABLE,
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
                    let toast = Toast::allowed_wider(&sentence);
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
        let json = shown(&Toast::ALLOWED, Lang::En);
        assert_eq!(json["content"], "Allowed once");
        assert_eq!(json["i18n"]["zh_cn"], "已批准运行");
    }

    #[test]
    fn reasons_from_elsewhere_are_cut_and_kept_on_one_line() {
        let toast = Toast::rule_not_saved(&Text::made(
            format!("第 3 行\n第 4 列 {}", "x".repeat(9_000)),
            String::new(),
        ));
        let json = shown(&toast, Lang::Zh);
        let content = json["content"].as_str().unwrap();
        assert_eq!(content.chars().count(), MAX_CHARS);
        assert!(
            content.ends_with('…') && !content.contains('\n'),
            "{content}"
        );
    }
}
