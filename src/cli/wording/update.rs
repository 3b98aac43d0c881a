//! What `nod update` says, and what is said of a daemon that is not this
//! nod, in both languages. Holds words only.

use super::super::update::{Installer, Number};
use super::Words;

impl Words {
    pub(in crate::cli) fn this_nod(self, version: &str, program: &str) -> String {
        self.made(
            format!("本机的 nod 是 {version}，位于 {program}"),
            format!("this nod is {version}, at {program}"),
        )
    }

    pub(in crate::cli) fn no_installer(self) -> &'static str {
        self.pick(
            "它不是由 npm、Homebrew、dpkg 或 cargo 安装的：用当初得到它的方式更新，然后 `nod service restart`",
            "npm, Homebrew, dpkg and cargo know nothing of it: update it the way it came here, then `nod service restart`",
        )
    }

    pub(in crate::cli) fn newer(self, newest: Number, installer: Installer) -> String {
        let (name, command) = (installer.name(), installer.command());
        self.made(
            format!("{name} 有更新的版本 {newest}：\n  {command} && nod service restart"),
            format!("{name} has a newer one, {newest}:\n  {command} && nod service restart"),
        )
    }

    pub(in crate::cli) fn newest(self, installer: Installer) -> String {
        let name = installer.name();
        self.made(
            format!("由 {name} 安装，已是最新版本"),
            format!("installed by {name}, and there is none newer"),
        )
    }

    pub(in crate::cli) fn not_asked(self, installer: Installer, why: &str) -> String {
        let name = installer.name();
        self.made(
            format!("由 {name} 安装；无法询问 {name} 的最新版本：{why}"),
            format!("installed by {name}, which can't be asked for the newest version: {why}"),
        )
    }

    pub(in crate::cli) fn no_newest(self, installer: Installer) -> String {
        let name = installer.name();
        self.made(
            format!("由 {name} 安装；{name} 的回答中没有版本号"),
            format!("installed by {name}, whose answer names no version"),
        )
    }

    pub(in crate::cli) fn update_by_hand(self, installer: Installer) -> String {
        let command = installer.command();
        self.made(
            format!("用 `{command}` 更新"),
            format!("`{command}` updates it"),
        )
    }

    pub(in crate::cli) fn service_restarted(self) -> &'static str {
        self.pick("后台服务已重新启动", "the service is started anew")
    }

    pub(in crate::cli) fn other_build(self, daemon: &str, own: &str) -> String {
        self.made(
            format!("守护进程是 {daemon}，这个 nod 是 {own}：`nod service restart` 使两者一致"),
            format!(
                "the daemon is {daemon}, this nod is {own}: `nod service restart` makes them one"
            ),
        )
    }
}
