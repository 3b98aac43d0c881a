//! The lines of the set-up: what is done, what is waited for, what is left.
//! Holds words only.

use std::path::Path;
use std::time::Duration;

use super::super::setup::SetupStep;
use super::Words;
use crate::feishu::registration::USER_IDS;

/// Minutes and seconds.
fn clock(left: Duration) -> String {
    let seconds = left.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

impl Words {
    pub(in crate::cli) fn step(self, step: SetupStep) -> &'static str {
        match step {
            SetupStep::App => self.pick("应用", "app"),
            SetupStep::Check => self.pick("验证凭证", "check the credentials"),
            SetupStep::Owner => self.pick("所有者", "owner"),
            SetupStep::Save => self.pick("保存设置", "save the settings"),
            SetupStep::TestCard => self.pick("测试点击", "prove a tap"),
            SetupStep::Hooks => self.pick("Claude Code 的 hook", "Claude Code's hooks"),
            SetupStep::Mode => self.pick("Claude Code 的权限模式", "Claude Code's permission mode"),
            SetupStep::Service => self.pick("守护进程", "daemon"),
            SetupStep::Trial => self.pick("Claude Code 试问一次", "Claude Code asks once"),
        }
    }
    /// Of a step that is done, and what came of it.
    pub(in crate::cli) fn ticked(self, place: &str, step: SetupStep, what: &str) -> String {
        let what = if what.is_empty() {
            self.step(step)
        } else {
            what
        };
        format!("✓ {place} {what}")
    }

    /// Of a step that is not.
    pub(in crate::cli) fn left(self, place: &str, step: SetupStep, how: &str) -> String {
        let step = self.step(step);
        self.made(
            format!("✗ {place} {step}：未完成。{how}"),
            format!("✗ {place} {step}: not done. {how}"),
        )
    }

    /// Of a step that nobody wants or that has no place here.
    pub(in crate::cli) fn skipped(self, place: &str, step: SetupStep) -> String {
        let step = self.step(step);
        self.made(
            format!("- {place} {step}：跳过"),
            format!("- {place} {step}: skipped"),
        )
    }

    pub(in crate::cli) fn owner_resolved(self, user_id: &str, open_id: &str) -> String {
        self.made(
            format!("所有者的用户 id {user_id} 对应 open id {open_id}，已改用后者"),
            format!(
                "the owner's user id {user_id} is the open id {open_id}, which is used from now on"
            ),
        )
    }

    /// `why` is Feishu's own reason, where it gave one.
    pub(in crate::cli) fn owner_unresolved(self, user_id: &str, why: Option<&str>) -> String {
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        self.made(
            format!(
                "查不到用户 id {user_id} 的 open id{why}：应用须有 {USER_IDS} 权限，否则点击中不带用户 id，点击不会生效"
            ),
            format!(
                "no open id is known for the user id {user_id}{why}: the app needs the scope {USER_IDS}, or taps will not name the owner and will not count"
            ),
        )
    }

    pub(in crate::cli) fn tap_left(self) -> &'static str {
        self.pick(
            "没有收到点击；按上面的步骤检查后，再运行 `nod setup`",
            "No tap arrived; go through the steps above, then run `nod setup` again",
        )
    }

    /// Of credentials that were typed and that Feishu does not take; `sibling`
    /// is the other platform.
    pub(in crate::cli) fn refused(self, sibling: &str) -> String {
        self.made(
            format!("✗ 飞书不接受这个 App ID 和 App Secret，没有保存任何内容，请重新填写（若应用在另一平台：按 Ctrl-C，再运行 `nod setup --domain {sibling}`）"),
            format!("✗ this App ID and App Secret are not accepted. Nothing was saved; once more, please (for an app on the other platform: Ctrl-C, then `nod setup --domain {sibling}`)"),
        )
    }

    pub(in crate::cli) fn waiting_for_scan(self, left: Duration) -> String {
        let left = clock(left);
        self.made(
            format!("… 等待扫码，还剩 {left}（Ctrl-C 停止）"),
            format!("… waiting for the scan, {left} left (Ctrl-C stops)"),
        )
    }

    pub(in crate::cli) fn waiting_for_message(self, left: Duration) -> String {
        let left = clock(left);
        self.made(
            format!("… 等待你的消息，还剩 {left}（Ctrl-C 停止）"),
            format!("… waiting for your message, {left} left (Ctrl-C stops)"),
        )
    }

    pub(in crate::cli) fn sending_card(self) -> &'static str {
        self.pick("… 正在发送测试卡片", "… sending the test card")
    }

    pub(in crate::cli) fn waiting_for_tap(self, left: Duration) -> String {
        let left = clock(left);
        self.made(
            format!("… 等待你的点击，还剩 {left}"),
            format!("… waiting for your tap, {left} left"),
        )
    }

    pub(in crate::cli) fn waiting_for_trial(self, left: Duration) -> String {
        let left = clock(left);
        self.made(
            format!("… 等待 Claude Code 和你的点击，还剩 {left}"),
            format!("… waiting for Claude Code and your tap, {left} left"),
        )
    }

    /// Where the code does not fit the terminal, or a page was asked for.
    pub(in crate::cli) fn scan_on_page(self, address: &str, opened: bool, minutes: u64) -> String {
        let (zh, en) = if opened {
            (
                "二维码在本机的网页上",
                "The code to scan is on a page of this machine",
            )
        } else {
            (
                "这个终端放不下二维码，它在本机的网页上（`nod setup --browser` 会直接打开）",
                "The code to scan does not fit this terminal; it is on a page of this machine (`nod setup --browser` opens it)",
            )
        };
        self.made(
            format!("{zh}，{minutes} 分钟内有效：\n  {address}\n若浏览器在别的机器上，请用手机或浏览器打开这个链接："),
            format!("{en}, good for {minutes} minutes:\n  {address}\nWhere that can't be opened, open this link on the phone or in a browser:"),
        )
    }

    /// The page's language, title, text, and what its link says.
    pub(in crate::cli) fn scan_page(
        self,
    ) -> (&'static str, &'static str, &'static str, &'static str) {
        (
            self.pick("zh-CN", "en"),
            self.pick("nod：扫码创建飞书应用", "nod: scan to create the Feishu app"),
            self.pick(
                "用飞书扫描二维码并同意，然后回到终端；扫码的人会成为所有者。",
                "Scan it with Feishu and agree, then return to the terminal. Whoever scans becomes the owner.",
            ),
            self.pick("或在这个浏览器里打开", "or open it in this browser"),
        )
    }

    /// As the set-up sends one, which can do without.
    pub(in crate::cli) fn setup_card_sent(self) -> &'static str {
        self.pick(
            "测试卡片已发送，请在飞书里点击按钮；要跳过，按 Ctrl-C 后运行 `nod setup --no-test-card`",
            "Sent a test card: tap its button in Feishu. To skip it, press Ctrl-C and run `nod setup --no-test-card`",
        )
    }

    /// Before a tap is asked for that may go astray.
    pub(in crate::cli) fn other_connections(self, count: u64) -> String {
        self.made(
            format!("⚠ 这个应用已有 {count} 个别的长连接：飞书把每次点击只交给其中一个，你的点击可能到不了这里。请先停止用同一应用的其他程序（另一台机器上的 nod、claude-notify 等），或给 nod 单独建一个应用"),
            format!("⚠ this app has other connections open ({count}): Feishu gives each tap to one of them, so yours may not get here. Stop the other programs that use the app (nod on another machine, claude-notify), or give nod an app of its own"),
        )
    }

    /// `had_file`: there is one already.
    pub(in crate::cli) fn hooks_change(self, file: &str, had_file: bool) -> String {
        if had_file {
            self.made(
                format!("Claude Code 的设置 {file}：加入 nod 的 hook，其他内容不变，原文件会备份"),
                format!("Claude Code's settings {file}: nod's hooks are added, all else stays, and the old file is kept"),
            )
        } else {
            self.made(
                format!("Claude Code 的设置 {file}：新建，只含 nod 的 hook"),
                format!(
                    "Claude Code's settings {file}: made anew, with nod's hooks and nothing else"
                ),
            )
        }
    }

    pub(in crate::cli) fn apply(self) -> &'static str {
        self.pick(
            "写入？（d 逐行查看）",
            "Write it? (d shows it line by line)",
        )
    }

    pub(in crate::cli) fn hooks_left(self) -> &'static str {
        self.pick(
            "Claude Code 不会询问 nod；要安装，再运行 `nod setup`",
            "Claude Code will not ask nod; `nod setup` installs them",
        )
    }

    pub(in crate::cli) fn mode_set(self) -> &'static str {
        self.pick(
            "Claude Code 每次都会询问（`default`）",
            "Claude Code asks each time (`default`)",
        )
    }

    pub(in crate::cli) fn mode_left(self) -> &'static str {
        self.pick(
            "它的权限模式使多数操作不会询问；要改，运行 `nod setup --set-mode`",
            "its permission mode lets most things run without asking; `nod setup --set-mode` changes it",
        )
    }

    /// Where none runs.
    pub(in crate::cli) fn daemon_left(self, can_serve: bool) -> &'static str {
        if can_serve {
            self.pick(
                "没有守护进程，就没有卡片；用 `nod service install` 让它一直运行，或用 `nod daemon --background` 启动",
                "Without it there are no cards; keep it running with `nod service install`, or start it with `nod daemon --background`",
            )
        } else {
            self.pick(
                "没有守护进程，就没有卡片；用 `nod daemon --background` 启动",
                "Without it there are no cards; start it with `nod daemon --background`",
            )
        }
    }

    pub(in crate::cli) fn ready(self) -> &'static str {
        self.pick(
            "完成。打开 Claude Code，下一次权限请求就会出现在飞书里。",
            "Done. The next permission request of Claude Code will appear in Feishu.",
        )
    }

    /// Where no `claude` is on the search path.
    pub(in crate::cli) fn ready_for_claude(self) -> &'static str {
        self.pick(
            "nod 已设置好，但在 PATH 中没有找到 `claude`：请安装 Claude Code，或把它加入 PATH；之后它的下一次权限请求就会出现在飞书里。",
            "nod is set up, but no `claude` was found on the PATH: install Claude Code, or add it to the PATH. Its next permission request will then appear in Feishu.",
        )
    }

    pub(in crate::cli) fn hooks_found(self, file: &Path) -> String {
        let file = file.display();
        self.made(
            format!("Claude Code 的 hook 已在 {file} 中"),
            format!("Claude Code's hooks are in {file}"),
        )
    }

    pub(in crate::cli) fn mode_found(self) -> &'static str {
        self.pick(
            "Claude Code 的权限模式会询问",
            "Claude Code's permission mode lets it ask",
        )
    }

    pub(in crate::cli) fn service_found(self, file: &Path) -> String {
        let file = file.display();
        self.made(
            format!("后台服务已安装（{file}）"),
            format!("the service is installed ({file})"),
        )
    }

    pub(in crate::cli) fn daemon_found(self, pid: Option<u64>) -> String {
        match pid {
            Some(pid) => self.made(
                format!("守护进程已在运行（进程 {pid}）"),
                format!("a daemon already runs (process {pid})"),
            ),
            None => self.made("守护进程已在运行", "a daemon already runs"),
        }
    }

    pub(in crate::cli) fn not_ready(self) -> &'static str {
        self.pick(
            "还没有全部完成；做完上面标 ✗ 的几项，权限请求才会出现在飞书里。",
            "Not all done: permission requests appear in Feishu once what has a ✗ above is done.",
        )
    }

    pub(in crate::cli) fn want_background(self) -> &'static str {
        self.pick(
            "这里没有服务管理器。现在就在后台启动守护进程，由它收发卡片（重启机器后需再运行 `nod daemon --background`）？",
            "There is no service manager here. Start the daemon in the background now, so that cards come (after a reboot: `nod daemon --background`)?",
        )
    }

    pub(in crate::cli) fn would_start_in_background(self) -> &'static str {
        self.pick(
            "将在后台启动守护进程（这里没有服务管理器）",
            "would start the daemon in the background (there is no service manager here)",
        )
    }

    pub(in crate::cli) fn in_background(self, pid: u32, log: &Path) -> String {
        let log = log.display();
        self.made(
            format!("守护进程在后台运行（进程 {pid}），日志在 {log}"),
            format!("the daemon runs in the background (process {pid}); its log is {log}"),
        )
    }

    pub(in crate::cli) fn background_stop(self, pid: u32) -> String {
        self.made(
            format!("`nod logs` 显示它在做什么，`kill {pid}` 结束它"),
            format!("`nod logs` shows what it does, `kill {pid}` ends it"),
        )
    }

    pub(in crate::cli) fn background_file(self) -> &'static str {
        self.pick(
            "`--env-file` 只对一次运行有效，不能用于后台的守护进程；请用 `nod settings set` 写入 nod 自己的文件",
            "`--env-file` counts for one run and not for a daemon in the background; put the values into nod's own file with `nod settings set`",
        )
    }

    /// `ended`: with this code, or too slow to answer.
    pub(in crate::cli) fn background_failed(self, ended: Option<i32>, said: &str) -> String {
        let head = match ended {
            Some(code) => self.made(
                format!("守护进程没有起来（退出码 {code}）"),
                format!("the daemon did not come up (exit code {code})"),
            ),
            None => self.made(
                "守护进程没有及时应答，已结束",
                "the daemon did not answer in time and was ended",
            ),
        };
        format!("{head}\n{said}").trim_end().to_owned()
    }

    pub(in crate::cli) fn background_log(self, log: &Path) -> String {
        let log = log.display();
        self.made(format!("日志在 `{log}`"), format!("its log is `{log}`"))
    }

    pub(in crate::cli) fn want_trial(self) -> &'static str {
        self.pick(
            "现在让 Claude Code 真的问一次？它会请求运行一个无害的命令，会消耗少量 token",
            "Have Claude Code really ask once, now? It asks to run one harmless command and spends a few tokens",
        )
    }

    pub(in crate::cli) fn trial_tap(self, command: &str) -> String {
        self.made(
            format!("Claude Code 已启动；请在飞书里批准 `{command}`"),
            format!("Claude Code is started; allow `{command}` in Feishu"),
        )
    }

    pub(in crate::cli) fn trial_allowed(self, command: &str) -> String {
        self.made(
            format!("你的点击让 Claude Code 运行了 `{command}`"),
            format!("your tap let Claude Code run `{command}`"),
        )
    }

    pub(in crate::cli) fn trial_unasked(self) -> &'static str {
        self.pick(
            "Claude Code 没有询问就运行了：它的规则或权限模式允许；`nod doctor` 说明原因",
            "Claude Code ran it without asking: its rules or its permission mode let it; `nod doctor` says which",
        )
    }

    pub(in crate::cli) fn trial_not_run(self) -> &'static str {
        self.pick(
            "没有运行：请求被拒绝、没有及时回答，或 Claude Code 没有提出；`nod audit` 显示经过",
            "it did not run: it was denied, nobody answered in time, or Claude Code did not try; `nod audit` shows which",
        )
    }

    pub(in crate::cli) fn trial_failed(self, code: Option<i32>) -> String {
        let code = code.map_or_else(|| "-".to_owned(), |code| code.to_string());
        self.made(
            format!("Claude Code 没能完成（退出码 {code}）：请自己运行一次 `claude`，看它是否已登录"),
            format!("Claude Code did not get through (exit code {code}): run `claude` yourself and see whether it is logged in"),
        )
    }

    pub(in crate::cli) fn trial_late(self) -> &'static str {
        self.pick(
            "五分钟内没有结果，已停止 Claude Code",
            "nothing came of it within five minutes; Claude Code was stopped",
        )
    }
}
