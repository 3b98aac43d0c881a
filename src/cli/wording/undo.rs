//! What `nod setup --uninstall` says, in both languages. Holds words only.

use std::path::Path;

use super::Words;

/// What stops a daemon.
pub(in crate::cli) enum HowToStop {
    Service,
    /// It is in the background, under this number.
    Kill(u64),
    /// At a terminal somewhere.
    WhereItRuns(Option<u64>),
}

impl Words {
    pub(in crate::cli) fn would_restore(self, file: &str) -> String {
        self.made(format!("将还原 {file}"), format!("would restore {file}"))
    }

    pub(in crate::cli) fn would_remove(self, file: &str) -> String {
        self.made(format!("将删除 {file}"), format!("would remove {file}"))
    }

    pub(in crate::cli) fn would_edit(self, file: &str) -> String {
        self.made(
            format!("将只从 {file} 中移除 nod 的部分"),
            format!("would take only nod's part out of {file}"),
        )
    }

    /// Of a team's machine.
    pub(in crate::cli) fn pass_stays(self, file: &Path, name: &str) -> String {
        let file = file.display();
        self.made(
            format!("本机仍是团队的成员，通行证还在 {file}：向机器人私聊发送 `/forget {name}` 收回它，然后删除该文件"),
            format!("this machine is still a member of its team, its pass is {file}: write `/forget {name}` to the bot in private to take it back, then delete the file"),
        )
    }

    pub(in crate::cli) fn would_remove_service(self) -> &'static str {
        self.pick("将移除后台服务", "would remove the service")
    }

    pub(in crate::cli) fn removed(self, file: &str) -> String {
        self.made(format!("已删除 {file}"), format!("removed {file}"))
    }

    pub(in crate::cli) fn restored(self, file: &str) -> String {
        self.made(format!("已还原 {file}"), format!("restored {file}"))
    }

    pub(in crate::cli) fn edited(self, file: &str) -> String {
        self.made(
            format!("{file} 之后被改过：只移除了 nod 的部分"),
            format!("{file} was changed since: took out only nod's part"),
        )
    }

    pub(in crate::cli) fn nothing_to_take_back(self) -> &'static str {
        self.pick(
            "没有发现 nod 的设置，没有改动",
            "nothing of nod's set-up was found; nothing was changed",
        )
    }

    pub(in crate::cli) fn records_stay(self, dir: &str) -> String {
        self.made(
            format!("守护进程的记录（审计、规则）还在 {dir}，不需要时可删除"),
            format!("the daemon's records (audit, rules) are still in {dir}; delete it if you don't want them"),
        )
    }

    pub(in crate::cli) fn would_stop(self, pid: u64) -> String {
        self.made(
            format!("将停止后台的守护进程（进程 {pid}）"),
            format!("would stop the daemon in the background (process {pid})"),
        )
    }

    pub(in crate::cli) fn daemon_stopped(self, pid: u64) -> String {
        self.made(
            format!("已停止后台的守护进程（进程 {pid}）"),
            format!("stopped the daemon in the background (process {pid})"),
        )
    }

    pub(in crate::cli) fn daemon_stays(self, stop: &HowToStop, pid: Option<u64>) -> String {
        let who = pid.map_or_else(String::new, |pid| {
            self.made(format!("（进程 {pid}）"), format!(" (process {pid})"))
        });
        let stop = match stop {
            HowToStop::Service => self.made(
                "用 `nod service uninstall` 停止",
                "`nod service uninstall` stops it",
            ),
            HowToStop::Kill(pid) => self.made(
                format!("用 `kill {pid}` 停止"),
                format!("`kill {pid}` stops it"),
            ),
            HowToStop::WhereItRuns(Some(pid)) => self.made(
                format!("在启动它的终端按 Ctrl-C，或 `kill {pid}`"),
                format!("press Ctrl-C where it was started, or `kill {pid}`"),
            ),
            HowToStop::WhereItRuns(None) => self.made(
                "在启动它的终端按 Ctrl-C",
                "press Ctrl-C where it was started",
            ),
        };
        self.made(
            format!("守护进程仍在运行{who}：{stop}"),
            format!("a daemon is still running{who}: {stop}"),
        )
    }

    pub(in crate::cli) fn uninstalled(self) -> &'static str {
        self.pick(
            "nod 的设置已全部撤回",
            "everything the set-up wrote is taken back",
        )
    }
}
