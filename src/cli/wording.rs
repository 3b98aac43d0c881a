//! What the commands say at the terminal, in Chinese and English: words only.

mod agents;
mod faults;
pub(super) mod help;
mod record;
mod service;
mod settings;
mod steps;
mod team;
pub(super) mod trouble;
pub(super) mod undo;
mod update;
mod usage;

pub(super) use settings::{accepts_zh, place, whole};

use crate::feishu::registration::{CALLBACK, EVENT, SCOPES};
use crate::text::Lang;

/// The sentences of one language.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words(pub(super) Lang);

impl Words {
    pub(super) fn pick(self, zh: &'static str, en: &'static str) -> &'static str {
        match self.0 {
            Lang::Zh => zh,
            Lang::En => en,
        }
    }

    pub(super) fn made(self, zh: impl Into<String>, en: impl Into<String>) -> String {
        match self.0 {
            Lang::Zh => zh.into(),
            Lang::En => en.into(),
        }
    }

    pub(super) fn no_terminal(self) -> &'static str {
        self.pick("没有可供提问的终端", "there is no terminal to ask at")
    }

    pub(super) fn which_platform(self) -> &'static str {
        self.pick(
            "应用建在哪个平台？ 1) 飞书  2) Lark  [1] ",
            "Which platform? 1) Feishu  2) Lark  [1] ",
        )
    }

    pub(super) fn make_by_scan(self) -> &'static str {
        self.pick(
            "扫码自动创建应用？（选 n 则手动填写 App ID 与 Secret）",
            "Create the app by scanning a code? (no: enter an App ID and secret)",
        )
    }

    pub(super) fn scan_this(self, minutes: u64) -> String {
        self.made(
            format!("请用手机扫描二维码，或在浏览器打开下面的链接（{minutes} 分钟内有效）："),
            format!(
                "Scan this with your phone, or open the link below (good for {minutes} minutes):"
            ),
        )
    }

    pub(super) fn scan_expired(self) -> &'static str {
        self.pick(
            "二维码已过期，再来一次？",
            "The code has expired. Another one?",
        )
    }

    pub(super) fn app_made(self, app_id: &str) -> String {
        self.made(
            format!("应用已创建：{app_id}"),
            format!("created the app {app_id}"),
        )
    }

    /// What to do in the developer console, line by line.
    pub(super) fn console_steps(self, base: &str) -> Vec<String> {
        let scopes = SCOPES.map(|scope| format!("\"{scope}\"")).join(",");
        let import = format!("{{\"scopes\":{{\"tenant\":[{scopes}],\"user\":[]}}}}");
        match self.0 {
            Lang::Zh => vec![
                format!("1. 打开 {base}app，创建企业自建应用，在“凭证与基础信息”复制 App ID 与 App Secret"),
                "2. 添加应用能力 → 机器人".to_owned(),
                format!("3. 权限管理 → 批量导入/导出权限，粘贴：{import}"),
                format!("4. 保持本命令（或 `nod daemon`）运行，事件与回调 → 事件配置 → 使用长连接接收事件；添加事件 {EVENT}"),
                format!("5. 事件与回调 → 回调配置 → 使用长连接接收回调；添加回调 卡片回传交互（{CALLBACK}）"),
                "6. 版本管理与发布 → 创建版本，可用范围包含自己 → 发布".to_owned(),
            ],
            Lang::En => vec![
                format!("1. Open {base}app, create a custom app, and copy App ID and App Secret from its credentials page"),
                "2. Add features → Bot".to_owned(),
                format!("3. Permissions & Scopes → batch import, and paste: {import}"),
                format!("4. While this command (or `nod daemon`) runs: Events & Callbacks → Event Configuration → receive events by long connection; add {EVENT}"),
                format!("5. Events & Callbacks → Callback Configuration → receive callbacks by long connection; add the card action callback ({CALLBACK})"),
                "6. Version Management & Release → create a version whose availability includes you, and publish it".to_owned(),
            ],
        }
    }

    pub(super) fn ask_app_id(self) -> &'static str {
        self.pick("App ID（cli_…）：", "App ID (cli_…): ")
    }

    pub(super) fn ask_app_secret(self) -> &'static str {
        self.pick("App Secret（不显示）：", "App Secret (not shown): ")
    }

    pub(super) fn bad_value(self, name: &str) -> String {
        self.made(
            format!("`{name}` 的格式不对"),
            format!("`{name}` does not look right"),
        )
    }

    pub(super) fn app_named(self, id: &str) -> String {
        self.made(format!("应用：{id}"), format!("the app is {id}"))
    }

    pub(super) fn app_works(self, bot: &str) -> String {
        self.made(
            format!("凭证有效，机器人：{bot}"),
            format!("the credentials work; the bot is {bot}"),
        )
    }

    pub(super) fn bot_disabled(self) -> &'static str {
        self.pick(
            "机器人能力未启用或版本未发布，请完成：",
            "the bot is not enabled or no version is published; please finish:",
        )
    }

    pub(super) fn pair_write(self, bot: &str) -> String {
        self.made(
            format!("请在飞书中打开机器人“{bot}”，随便发一条消息；它会回复一个 6 位数字"),
            format!("Open the bot “{bot}” in Feishu and send it any message; it will answer with 6 digits"),
        )
    }

    pub(super) fn pair_type(self) -> &'static str {
        self.pick(
            "在此输入机器人回复的数字：",
            "Type the digits the bot showed you: ",
        )
    }

    pub(super) fn pair_wrong(self) -> &'static str {
        self.pick(
            "数字不对，请再看一眼",
            "those are not the digits; look again",
        )
    }

    pub(super) fn pair_too_many(self) -> &'static str {
        self.pick(
            "错误次数过多，请再给机器人发一条消息以获得新的数字",
            "too many wrong tries; send the bot another message for new digits",
        )
    }

    pub(super) fn pair_silent(self) -> &'static str {
        self.pick(
            "没有收到消息；多半是开发者后台还缺一步：",
            "no message arrived; most likely a console step is missing:",
        )
    }

    /// What the bot writes in the chat.
    pub(super) fn pair_code(self, code: &str) -> String {
        self.made(
            format!("nod 配对码：{code}\n请在运行 `nod setup` 的终端里输入。若你没有在设置 nod，请忽略，不要告诉任何人。"),
            format!("nod pairing code: {code}\nType it in the terminal that runs `nod setup`. If you are not setting nod up, ignore it and tell nobody."),
        )
    }

    pub(super) fn paired(self, owner: &str) -> String {
        self.made(
            format!("所有者（由其批准）：{owner}"),
            format!("the owner is {owner}, who decides"),
        )
    }

    pub(super) fn daemon_holds_line(self) -> &'static str {
        self.pick(
            "守护进程正在运行，会抢走这里要等的消息",
            "a daemon is running and would get the messages this waits for",
        )
    }

    pub(super) fn stop_daemon_hint(self) -> &'static str {
        self.pick(
            "先停止它（`nod service uninstall` 或结束 `nod daemon`），或用 `--owner` 给出所有者",
            "stop it first (`nod service uninstall`, or end `nod daemon`), or name the owner with `--owner`",
        )
    }

    pub(super) fn saved(self, file: &str) -> String {
        self.made(
            format!("设置已写入 {file}（仅本人可读）"),
            format!("wrote the settings to {file} (readable by you only)"),
        )
    }

    pub(super) fn saved_before(self, file: &str) -> String {
        self.made(
            format!("设置在 {file}（仅本人可读）"),
            format!("the settings are in {file} (readable by you only)"),
        )
    }

    pub(super) fn card_title(self) -> &'static str {
        self.pick("nod 设置测试", "nod set-up test")
    }

    pub(super) fn card_text(self) -> &'static str {
        self.pick(
            "点一下按钮，证明这台机器能收到你的点击。",
            "Tap the button to prove that your taps reach this machine.",
        )
    }

    pub(super) fn card_button(self) -> &'static str {
        self.pick("收到，点我", "Tap me")
    }

    pub(super) fn card_done(self) -> &'static str {
        self.pick("点击已到达 ✓", "The tap arrived ✓")
    }

    pub(super) fn card_void(self) -> &'static str {
        self.pick("此测试已结束", "This test is over")
    }

    pub(super) fn not_you(self) -> &'static str {
        self.pick("只有所有者才能执行此操作", "Only the owner can do this")
    }

    pub(super) fn card_sent(self, seconds: u64) -> String {
        self.made(
            format!("测试卡片已发送，请在飞书里点击按钮（等待 {seconds} 秒）…"),
            format!("sent a test card; tap its button in Feishu (waiting {seconds} s)…"),
        )
    }

    pub(super) fn tapped(self, micros: u128) -> String {
        self.made(
            format!("点击已到达，答复用时 {micros} 微秒"),
            format!("the tap arrived and was answered within {micros} µs"),
        )
    }

    pub(super) fn not_tapped(self) -> &'static str {
        self.pick(
            "没有收到点击。若飞书提示出错（200340），说明回调配置缺失：",
            "no tap arrived. If Feishu showed an error (200340), the callback configuration is missing:",
        )
    }

    /// A scan can't set how taps are delivered, so this comes before all else.
    pub(super) fn callback_step(self, base: &str, app_id: &str) -> String {
        let console = format!("{base}app/{app_id}");
        self.made(
            format!("先打开 {console}/callback ，选择“使用长连接接收回调”，添加 卡片回传交互（{CALLBACK}），再到 {console}/version 发布版本。仍不行时，逐项检查："),
            format!("first open {console}/callback, choose to receive callbacks by long connection, add the card action callback ({CALLBACK}), and publish a version at {console}/version. If that was not it, go through all of it:"),
        )
    }

    pub(super) fn unproven(self) -> &'static str {
        self.pick(
            "其余都已设置好，但还没有证明点击能到达",
            "everything else is set up, but no tap has been proven yet",
        )
    }

    pub(super) fn prove_hint(self) -> &'static str {
        self.pick(
            "完成开发者后台步骤后再运行 `nod setup`；`nod doctor` 会指出缺哪一步",
            "finish the console steps, then run `nod setup` again; `nod doctor` names the missing one",
        )
    }

    pub(super) fn test_card_skipped(self) -> &'static str {
        self.pick(
            "守护进程正在运行，因此没有发送测试卡片；用 `nod doctor --click` 证明点击能到达",
            "a daemon is running, so no test card was sent; `nod doctor --click` proves that a tap gets through",
        )
    }

    /// `had_file`: there was one before.
    pub(super) fn hooks_installed(self, had_file: bool) -> &'static str {
        if had_file {
            self.pick(
                "Claude Code 的 hook 已安装（原文件已备份，`nod setup --uninstall` 可还原）",
                "Claude Code's hooks are installed (the old file is kept; `nod setup --uninstall` restores it)",
            )
        } else {
            self.pick(
                "Claude Code 的 hook 已安装（`nod setup --uninstall` 可移除）",
                "Claude Code's hooks are installed (`nod setup --uninstall` removes them)",
            )
        }
    }

    pub(super) fn hooks_off(self) -> &'static str {
        self.pick(
            "`disableAllHooks` 已打开：Claude Code 不会调用任何 hook，请先关闭",
            "`disableAllHooks` is on: Claude Code calls no hook at all until you switch it off",
        )
    }

    pub(super) fn other_hooks(self) -> &'static str {
        self.pick(
            "claude-notify 的 hook 仍在：同一请求会发两张卡片；用它自己的 `install.sh --uninstall` 移除",
            "claude-notify's hooks are still there, so each request makes two cards; remove them with its own `install.sh --uninstall`",
        )
    }

    pub(super) fn mode_unset(self, file: &str) -> String {
        self.made(
            format!("`{file}` 没有设置 `permissions.defaultMode`：新版 Claude Code 此时以 auto 模式启动，多数操作由分类器决定，不会询问你"),
            format!("`{file}` sets no `permissions.defaultMode`: recent Claude Code then starts in auto mode, where a classifier decides most things without asking you"),
        )
    }

    pub(super) fn mode_silent(self, mode: &str) -> String {
        self.made(
            format!("Claude Code 的模式是 `{mode}`：权限请求不会到达 nod"),
            format!("Claude Code's mode is `{mode}`: permission requests will not reach nod"),
        )
    }

    pub(super) fn mode_change(self) -> &'static str {
        self.pick(
            "设为 `default`（每次询问）？",
            "Set it to `default` (ask each time)?",
        )
    }

    pub(super) fn want_service(self) -> &'static str {
        self.pick(
            "安装后台服务（登录后自动运行 nod）？",
            "Install the service that keeps nod running?",
        )
    }

    pub(super) fn migrate_found(self, file: &str, names: &str) -> String {
        self.made(
            format!("发现 claude-notify 的设置 {file}，可沿用：{names}"),
            format!("found claude-notify's settings {file}; these can be taken over: {names}"),
        )
    }

    pub(super) fn migrate_left(self, names: &str) -> String {
        self.made(
            format!("未沿用：{names}（nod 仅在 Webhook 模式或多台机器时需要，见 README）"),
            format!("not taken over: {names} (nod needs them only in webhook mode or for several machines, see the README)"),
        )
    }

    pub(super) fn migrate_unfit(self, names: &str) -> String {
        self.made(
            format!("值不可用，未沿用：{names}"),
            format!("not taken over, their values can't be used: {names}"),
        )
    }

    pub(super) fn migrate(self) -> &'static str {
        self.pick("沿用这些设置？", "Take them over?")
    }

    /// The first line a person at the terminal reads.
    pub(super) fn intro(self) -> &'static str {
        self.pick(
            "依次完成：准备一个飞书应用（给你发卡片的机器人）、点一次测试按钮、安装 hook（让 Claude Code 先问 nod）、让 nod 在后台运行。随时可按 Ctrl-C；再次运行会接着做。",
            "Step by step: a Feishu app (the bot that sends you cards), one test tap, hooks (so that Claude Code asks nod first), and nod running in the background. Ctrl-C stops it anywhere; run it again to go on.",
        )
    }

    /// The same on a machine of a team.
    pub(super) fn intro_of_a_member(self) -> &'static str {
        self.pick(
            "这台机器是团队的成员，应用由网关持有，这里不需要。依次完成：安装 hook（让 Claude Code 先问 nod）、让 nod 在后台运行。随时可按 Ctrl-C；再次运行会接着做。",
            "This machine is a member of a team: the gateways have the app, so none is needed here. Step by step: hooks (so that Claude Code asks nod first), and nod running in the background. Ctrl-C stops it anywhere; run it again to go on.",
        )
    }

    pub(super) fn dry_run(self) -> &'static str {
        self.pick("仅预览，不做任何改动：", "a preview; nothing is changed:")
    }

    /// What the marks of a preview mean.
    pub(super) fn marks(self) -> &'static str {
        self.pick(
            "✓ 已完成　· 待做　- 不需要，或这里做不到",
            "✓ done   · to do   - not wanted, or not possible here",
        )
    }

    pub(super) fn would_send_card(self) -> &'static str {
        self.pick(
            "将向所有者发送测试卡片并等待点击",
            "would send the owner a test card and wait for a tap",
        )
    }

    pub(super) fn would_serve(self, file: &str) -> String {
        self.made(
            format!("将安装并启动后台服务（{file}）"),
            format!("would install and start the service ({file})"),
        )
    }

    /// Of a mode that somebody chose.
    pub(super) fn would_ask_mode(self, yes: bool) -> &'static str {
        if yes {
            self.pick(
                "不会改动它（`--set-mode` 会改）",
                "would leave it (`--set-mode` changes it)",
            )
        } else {
            self.pick(
                "会询问是否改为 `default`",
                "would ask whether to set it to `default`",
            )
        }
    }

    pub(super) fn would_change(self, file: &str) -> String {
        self.made(
            format!("将修改 Claude Code 的设置 {file}："),
            format!("would change Claude Code's settings {file}:"),
        )
    }

    pub(super) fn would_write(self, file: &str, names: &str) -> String {
        self.made(
            format!("将写入 {file}：{names}"),
            format!("would write to {file}: {names}"),
        )
    }

    pub(super) fn stopped(self) -> &'static str {
        self.pick(
            "已停止；再次运行 `nod setup` 会从这里继续",
            "stopped; `nod setup` goes on from here",
        )
    }

    pub(super) fn stuck(self) -> &'static str {
        self.pick(
            "写入没有生效：是否有环境变量覆盖了它？",
            "what was written did not take effect: does the environment override it?",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tap_that_does_not_arrive_leads_to_the_callback_page_first() {
        for lang in [Lang::Zh, Lang::En] {
            let said = Words(lang).callback_step("https://open.feishu.cn/", "cli_1");
            let at = |text: &str| said.find(text).unwrap();
            let callback = at("https://open.feishu.cn/app/cli_1/callback");
            assert!(callback < at("/version"), "{said}");
            assert!(said.contains(CALLBACK), "{said}");
        }
    }

    #[test]
    fn both_languages_name_every_console_step_that_people_miss() {
        for lang in [Lang::Zh, Lang::En] {
            let steps = Words(lang)
                .console_steps("https://open.feishu.cn/")
                .join("\n");
            for part in [EVENT, CALLBACK, SCOPES[0], "https://open.feishu.cn/app"] {
                assert!(steps.contains(part), "{part}");
            }
        }
        let steps = |lang| Words(lang).console_steps("").len();
        assert_eq!(steps(Lang::Zh), steps(Lang::En));
    }

    #[test]
    fn the_scopes_to_import_are_json() {
        let steps = Words(Lang::En).console_steps("");
        let start = steps[2].find('{').unwrap();
        let import: serde_json::Value = serde_json::from_str(&steps[2][start..]).unwrap();
        assert_eq!(
            import["scopes"]["tenant"].as_array().unwrap().len(),
            SCOPES.len()
        );
    }
}
