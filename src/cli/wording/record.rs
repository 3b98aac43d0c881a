//! The words of `nod audit` and `nod rules`, in both languages. Pure.

use super::Words;

impl Words {
    /// What happened, from the record's own word for it.
    pub(in crate::cli) fn decided(self, word: &str) -> &str {
        match word {
            "allow" => self.pick("批准运行", "allowed"),
            "session" => self.pick("本次会话允许", "allowed for session"),
            "always" => self.pick("始终允许", "always allowed"),
            "deny" => self.pick("拒绝运行", "denied"),
            "interrupt" => self.pick("拒绝并中断", "denied, interrupted"),
            "answer" => self.pick("已回答", "answered"),
            "terminal" => self.pick("在终端处理", "settled in terminal"),
            "timeout" => self.pick("超时", "timed out"),
            "hook_gone" => self.pick("请求失效", "void"),
            "orphaned" => self.pick("连接中断", "connection lost"),
            "undeliverable" => self.pick("卡片无法送达", "undeliverable"),
            "cancelled" => self.pick("已取消", "cancelled"),
            "task_over" => self.pick("任务已结束", "task over"),
            "restarted" => self.pick("nod 重启", "nod restarted"),
            "not_an_approver" => self.pick("不是审批人，已拒绝", "not an approver"),
            "not_the_owner" => self.pick("不是所有者，已拒绝", "not the owner"),
            "rule_undone" => self.pick("规则已撤销", "rule undone"),
            "session_started" => self.pick("开始会话", "session started"),
            "locked" => self.pick("已锁定", "locked"),
            "unlocked" => self.pick("已解锁", "unlocked"),
            other => other,
        }
    }

    /// Where it came from.
    pub(in crate::cli) fn source(self, word: &str) -> &str {
        match word {
            "feishu" => self.pick("飞书", "Feishu"),
            "terminal" => self.pick("终端", "the terminal"),
            "clock" => self.pick("时限", "the time limit"),
            "hook" => self.pick("hook", "the hook"),
            "nod" => "nod",
            "link" => self.pick("网页链接", "a web link"),
            "callback" => self.pick("回调服务", "a callback service"),
            other => other,
        }
    }

    pub(in crate::cli) fn by(self) -> &'static str {
        self.pick("操作人 ", "by ")
    }

    pub(in crate::cli) fn from(self) -> &'static str {
        self.pick("来自 ", "from ")
    }

    pub(in crate::cli) fn rule(self) -> &'static str {
        self.pick("规则 ", "rule ")
    }

    pub(in crate::cli) fn digest(self) -> &'static str {
        self.pick("校验码 ", "digest ")
    }

    pub(in crate::cli) fn request(self) -> &'static str {
        self.pick("请求 ", "request ")
    }

    pub(in crate::cli) fn undone(self, at: &str) -> String {
        self.made(format!("（{at} 已撤销）"), format!("  (undone {at})"))
    }
}
