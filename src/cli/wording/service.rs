//! What `nod service` and `nod simulator` say, in both languages. Holds words
//! only.

use super::super::service::ManagerKind;
use super::Words;
use crate::text::Lang;

impl Words {
    pub(in crate::cli) fn service_installed(self, file: &str) -> String {
        self.made(
            format!("后台服务已安装并启动（{file}）"),
            format!("the service is installed and running ({file})"),
        )
    }

    pub(in crate::cli) fn service_linger(self, kind: ManagerKind) -> Option<&'static str> {
        match kind {
            ManagerKind::Systemd => Some(self.pick(
                "如需在未登录时也运行：`loginctl enable-linger`",
                "to keep it running while you are logged out: `loginctl enable-linger`",
            )),
            ManagerKind::Launchd => None,
        }
    }

    pub(in crate::cli) fn service_removed(self, was_there: bool) -> &'static str {
        if was_there {
            self.pick("后台服务已停止并移除", "the service is stopped and removed")
        } else {
            self.pick("未安装后台服务", "no service was installed")
        }
    }

    pub(in crate::cli) fn service_runs(self, pid: Option<u32>, says: Option<&str>) -> String {
        let says = says.map_or_else(String::new, |says| match self.0 {
            Lang::Zh => format!("：{says}"),
            Lang::En => format!(": {says}"),
        });
        let pid = pid.map_or_else(String::new, |pid| match self.0 {
            Lang::Zh => format!("（进程 {pid}）"),
            Lang::En => format!(" (process {pid})"),
        });
        self.made(
            format!("后台服务在运行{pid}{says}"),
            format!("the service is running{pid}{says}"),
        )
    }

    pub(in crate::cli) fn service_not_running(self, state: &str) -> String {
        self.made(
            format!("后台服务已安装但没有运行（{state}）"),
            format!("the service is installed and does not run ({state})"),
        )
    }

    pub(in crate::cli) fn service_unseen(self, names: &str) -> String {
        self.made(
            format!("后台服务看不到这些设置：{names}；它不读当前 shell 的环境变量，也不读当前目录的 `.env`"),
            format!("the service would not see {names}: it knows neither this shell's environment nor the `.env` of this directory"),
        )
    }

    pub(in crate::cli) fn service_unseen_hint(self, own: &str) -> String {
        self.made(
            format!("把它们写入 `{own}`（`nod setup` 会写入应用和所有者）"),
            format!("put them into `{own}` (`nod setup` puts the app and the owner there)"),
        )
    }

    pub(in crate::cli) fn service_install_hint(self) -> &'static str {
        self.pick(
            "用 `nod service install` 安装并启动",
            "`nod service install` installs and starts it",
        )
    }

    pub(in crate::cli) fn service_logs_hint(self) -> &'static str {
        self.pick(
            "用 `nod service logs` 查看原因",
            "`nod service logs` shows why",
        )
    }

    pub(in crate::cli) fn service_instead(self) -> &'static str {
        self.pick(
            "容器或没有会话总线的 root 下没有用户服务；可改用 `nod daemon --background`，或让容器自己的进程管理运行 `nod daemon`",
            "a container, or root without a session bus, has no user services; start one with `nod daemon --background` instead, or have the container's own supervisor run `nod daemon`",
        )
    }

    pub(in crate::cli) fn service_ask_daemon(self) -> &'static str {
        self.pick(
            "守护进程是否在运行，`nod status` 会直接询问它",
            "`nod status` asks the daemon itself whether it runs",
        )
    }

    pub(in crate::cli) fn service_own_restart(self) -> &'static str {
        self.pick(
            "没有安装后台服务；自己启动的守护进程请自己停止并重新启动，等待中的请求会接上",
            "no service is installed; stop a daemon that you started yourself and start it again, waiting requests come back",
        )
    }

    pub(in crate::cli) fn service_own_log(self) -> &'static str {
        self.pick(
            "没有安装后台服务；用 `nod daemon --background` 启动的，用 `nod logs` 查看；在前台启动的，日志写到它的标准错误",
            "no service is installed; `nod logs` shows the log of one that `nod daemon --background` started, and one in the foreground writes to its standard error",
        )
    }

    pub(in crate::cli) fn service_elsewhere(self) -> &'static str {
        self.pick(
            "服务定义还在：请在能连到服务管理器的登录会话里再运行一次",
            "the service's definition is there: run this again in a login session that reaches the service manager",
        )
    }

    pub(in crate::cli) fn simulator_daemon(self, command: &str) -> String {
        self.made(
            format!("让 nod 连到这里：`{command}`"),
            format!("lead a nod here: `{command}`"),
        )
    }

    pub(in crate::cli) fn simulator_page(self, page: &str) -> String {
        self.made(
            format!("在浏览器中点卡片、写消息：{page} （Ctrl-C 结束）"),
            format!("tap cards and write messages in a browser: {page} (Ctrl-C ends it)"),
        )
    }
}
