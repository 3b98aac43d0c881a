//! The words of `nod audit` and `nod rules`, in both languages. Pure.

use super::Words;

impl Words {
    /// What happened, from the record's own word for it.
    pub(in crate::cli) fn decided(self, word: &str) -> &str {
        match word {
            "allow" => self.pick("批准运行", "allowed"),
            "turn" => self.pick("本轮内允许", "allowed for turn"),
            "session" => self.pick("本次会话允许", "allowed for session"),
            "always" => self.pick("始终允许", "always allowed"),
            "wider" => self.pick("始终允许这一类", "this kind always allowed"),
            "deny" => self.pick("拒绝运行", "denied"),
            "interrupt" => self.pick("拒绝并中断", "denied, interrupted"),
            "stop" => self.pick("终端批准后中断", "stopped while it ran"),
            "corrected" => self.pick("更正：已经执行", "corrected: it ran"),
            "completed" => self.pick("执行结束", "run ended"),
            "answer" => self.pick("已回答", "answered"),
            "answer_yes" => self.pick("回答“是”", "answered yes"),
            "answer_no" => self.pick("回答“否”", "answered no"),
            "terminal_yes" => self.pick("在终端批准", "allowed in terminal"),
            "terminal_no" => self.pick("在终端拒绝", "denied in terminal"),
            "terminal" => self.pick("在终端处理", "settled in terminal"),
            "timeout" => self.pick("超时", "timed out"),
            "hook_gone" => self.pick("请求失效", "no longer waiting"),
            "plan_approved" => self.pick("批准计划", "plan approved"),
            "plan_kept" => self.pick("继续完善计划", "planning goes on"),
            "not_answered" => self.pick("未作回答", "not answered"),
            "spoken_read" => self.pick("消息已送达", "words delivered"),
            "spoken_queued" => self.pick("消息已排队", "words queued"),
            "spoken_held" => self.pick("消息待终端确认", "words held there"),
            "spoken_refused" => self.pick("消息未被接收", "words not taken"),
            "spoken_nowhere" => self.pick("消息未能送达", "words not delivered"),
            "spoken_ended" => self.pick("会话已结束", "session had ended"),
            "spoken_too_long" => self.pick("消息过长", "words too long"),
            "orphaned" => self.pick("连接中断", "connection lost"),
            "undeliverable" => self.pick("卡片无法送达", "undeliverable"),
            "cancelled" => self.pick("已取消", "cancelled"),
            "task_over" => self.pick("任务已结束", "task over"),
            "restarted" => self.pick("nod 重启", "nod restarted"),
            "cut_off" => self.pick("批准后被中断", "allowed, interrupted"),
            "changed" => self.pick("请求已变", "request changed"),
            "not_an_approver" => self.pick("不是审批人，已拒绝", "not an approver"),
            "not_the_owner" => self.pick("不是所有者，已拒绝", "not the owner"),
            "rule_undone" => self.pick("规则已撤销", "rule undone"),
            "rule_not_left" => self.pick("规则未写入", "rule not written"),
            "session_started" => self.pick("开始会话", "session started"),
            "locked" => self.pick("已锁定", "locked"),
            "unlocked" => self.pick("已解锁", "unlocked"),
            other => other,
        }
    }

    pub(in crate::cli) fn by(self) -> &'static str {
        self.pick("操作人 ", "by ")
    }

    pub(in crate::cli) fn no_log(self, why: &str) -> String {
        self.made(
            format!("无法读取守护进程的日志：{why}"),
            format!("the daemon's log can't be read: {why}"),
        )
    }

    /// `waits`: for what comes.
    pub(in crate::cli) fn no_lines_yet(self, waits: bool) -> &'static str {
        if waits {
            self.pick(
                "还没有任何记录和日志；守护进程作为服务或在后台运行时写日志，每个请求结束时有一行（Ctrl-C 停止）",
                "nothing is recorded or logged yet; a daemon that is a service or in the background logs, and each request that ends makes a line (Ctrl-C stops)",
            )
        } else {
            self.pick("还没有任何记录和日志", "nothing is recorded or logged yet")
        }
    }

    /// Who decided, and how long it had waited.
    pub(in crate::cli) fn by_you(self, waited: Option<&str>) -> String {
        self.made(self.with("你", waited), self.with("by you", waited))
    }

    pub(in crate::cli) fn by_somebody(self, who: &str, waited: Option<&str>) -> String {
        self.made(
            self.with(who, waited),
            self.with(&format!("by {who}"), waited),
        )
    }

    pub(in crate::cli) fn in_terminal(self, waited: Option<&str>) -> String {
        self.made(
            self.with("终端", waited),
            self.with("in the terminal", waited),
        )
    }

    fn with(self, who: &str, waited: Option<&str>) -> String {
        match waited {
            None => who.to_owned(),
            Some(waited) => {
                let after = self.after(waited);
                self.made(format!("{who}，{after}"), format!("{who} {after}"))
            }
        }
    }

    pub(in crate::cli) fn after(self, waited: &str) -> String {
        self.made(format!("{waited}后"), format!("after {waited}"))
    }

    /// How long the call ran, which is not part of the waiting.
    pub(in crate::cli) fn ran(self, span: &str) -> String {
        self.made(format!("运行 {span}"), format!("ran {span}"))
    }

    /// Refusals that were only counted.
    pub(in crate::cli) fn times_more(self, times: u64) -> String {
        self.made(format!("另有 {times} 次"), format!("{times} times more"))
    }

    pub(in crate::cli) fn undone(self, at: &str) -> String {
        self.made(format!("（{at} 已撤销）"), format!("  (undone {at})"))
    }
}
