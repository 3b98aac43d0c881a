//! What is said about settings, in both languages. The English of a problem is
//! what the error says itself. Pure.

use std::path::Path;

use super::Words;
use crate::config::{
    BadLine, BadValue, Fallback, LineFault, Problems, Setting, SettingOrigin, SettingProblem,
    Sources, UnknownName, UnreadFile,
};
use crate::files::NotOwn;
use crate::text::{Lang, Text, system};

impl Words {
    /// All that is wrong with the settings, one line each, and where each value
    /// stands if the sources are known.
    pub(in crate::cli) fn problems(self, problems: &Problems, from: Option<&Sources>) -> String {
        let lines = problems.0.iter().map(|one| self.placed(one, from));
        lines.collect::<Vec<_>>().join("\n")
    }

    pub(in crate::cli) fn problem(self, problem: &SettingProblem) -> String {
        match self.0 {
            Lang::En => problem.to_string(),
            Lang::Zh => problem_zh(problem),
        }
    }

    pub(in crate::cli) fn settings_hint(self) -> &'static str {
        self.pick(
            "`nod doctor` 检查全部设置，`nod settings --markdown --zh` 说明每一项",
            "`nod doctor` checks every setting, `nod settings --markdown` describes each",
        )
    }

    pub(in crate::cli) fn credentials_hint(self) -> &'static str {
        self.pick(
            "运行 `nod setup`，或用 `nod settings set` 写入 `~/.config/nod/.env`",
            "run `nod setup`, or put them into `~/.config/nod/.env` with `nod settings set`",
        )
    }

    pub(in crate::cli) fn env_file_not_read(self) -> &'static str {
        self.pick(
            "不读取当前目录的 `.env`：若它是给 nod 的，用 `--env-file` 指明，或写入 `~/.config/nod/.env`",
            "the `.env` in this directory is not read: if it is meant for nod, name it with `--env-file`, or use `~/.config/nod/.env`",
        )
    }

    pub(in crate::cli) fn env_file_read(self, file: &Path) -> String {
        let file = file.display();
        self.made(
            format!("这次也从 `{file}` 读取设置"),
            format!("settings are read from `{file}` too"),
        )
    }

    pub(in crate::cli) fn obeys_another(self, setting: &str) -> String {
        self.made(
            format!("`--env-file` 中的 `{setting}` 与 nod 自己的设置文件不同：守护进程将听命于另一个所有者或应用"),
            format!("the file of `--env-file` sets `{setting}` otherwise than nod's own: the daemon would obey another owner or app"),
        )
    }

    pub(in crate::cli) fn obeys_another_hint(self) -> &'static str {
        self.pick(
            "确实如此打算时，请加上 `--other-owner`",
            "if that is meant, add `--other-owner`",
        )
    }

    pub(in crate::cli) fn bad_hook_line(self) -> &'static str {
        self.pick(
            "hook 命令的参数有误，请重新运行 `nod setup`",
            "the hook's command line is wrong: run `nod setup` again",
        )
    }

    pub(in crate::cli) fn no_hook_file(self) -> &'static str {
        self.pick(
            "hook 命令没有写明设置文件，请重新运行 `nod setup`",
            "the hook's command names no settings file: run `nod setup` again",
        )
    }

    fn placed(self, problem: &SettingProblem, from: Option<&Sources>) -> String {
        let said = self.problem(problem);
        let SettingProblem::Wrong { name, .. } = problem else {
            return said;
        };
        let Some((_, origin)) = from.and_then(|sources| sources.get(name)) else {
            return said;
        };
        let Text { zh, en } = place(origin, whole);
        self.made(
            format!("{said}（在{zh}设置）"),
            format!("{said} (set in {en})"),
        )
    }

    /// In a set-up, of a value in nod's own file.
    pub(in crate::cli) fn replaces(self, name: &str) -> String {
        self.made(
            format!("`{name}` 会重新设置，其他行保持不变"),
            format!("`{name}` is set anew; every other line stays"),
        )
    }

    /// In a set-up, of a value that counts more than what is saved.
    pub(in crate::cli) fn wins(self, name: &str, origin: &SettingOrigin) -> String {
        let Text { zh, en } = place(origin, whole);
        self.made(
            format!("在{zh}删除 `{name}`，否则它仍会优先于保存的设置"),
            format!("take `{name}` out of {en}, or it still wins over what is saved"),
        )
    }
}

impl Words {
    /// In one or two words, for the list of all.
    pub(in crate::cli) fn value_from(
        self,
        origin: Option<&SettingOrigin>,
        setting: &Setting,
        own: Option<&Path>,
    ) -> &'static str {
        match origin {
            Some(SettingOrigin::Environment) => self.pick("环境变量", "environment"),
            Some(SettingOrigin::File(path)) if Some(path.as_path()) == own => {
                self.pick("nod 的文件", "nod's file")
            }
            Some(SettingOrigin::File(_)) => "--env-file",
            None => match setting.default {
                Fallback::Needed | Fallback::Nothing => self.pick("未设置", "not set"),
                Fallback::Value(_) | Fallback::Derived(..) => self.pick("默认", "default"),
            },
        }
    }

    /// What holds without a value.
    pub(in crate::cli) fn default_of(self, setting: &Setting) -> &'static str {
        match setting.default {
            Fallback::Needed => self.pick("必填", "needed"),
            Fallback::Nothing => "",
            Fallback::Value(value) => value,
            Fallback::Derived(en, zh) => self.pick(zh, en),
        }
    }

    pub(in crate::cli) fn set_not_shown(self) -> &'static str {
        self.pick("已设置，不显示", "set, not shown")
    }

    /// Below the list of all.
    pub(in crate::cli) fn settings_foot(self, own: Option<&Path>) -> String {
        let file = own.map(whole).unwrap_or_default();
        self.made(
            format!("nod 的文件是 `{file}`，环境变量优先于它。`nod settings set 名称 值` 修改它；`nod settings --markdown --zh` 说明每一项。"),
            format!("nod's file is `{file}`; the environment wins over it. `nod settings set NAME VALUE` changes it; `nod settings --markdown` describes each."),
        )
    }

    pub(in crate::cli) fn unknown_setting(self, unknown: &UnknownName) -> String {
        let name = &unknown.name;
        let Text { zh, en } = place(&unknown.origin, whole);
        let said = self.made(
            format!("nod 没有名为 `{name}` 的设置（在{zh}）"),
            format!("nod has no setting `{name}` (in {en})"),
        );
        match unknown.nearest {
            Some(meant) => format!(
                "{said}{}{}",
                self.pick("；", "; "),
                self.did_you_mean(meant)
            ),
            None => said,
        }
    }

    pub(in crate::cli) fn ask_value(self, name: &str) -> String {
        self.made(
            format!("{name}（不显示）："),
            format!("{name} (not shown): "),
        )
    }

    pub(in crate::cli) fn setting_saved(self, name: &str, is_empty: bool, file: &Path) -> String {
        let file = file.display();
        if is_empty {
            return self.made(
                format!("✓ 已在 `{file}` 取消 `{name}`"),
                format!("✓ took back `{name}` in `{file}`"),
            );
        }
        self.made(
            format!("✓ 已在 `{file}` 设置 `{name}`"),
            format!("✓ set `{name}` in `{file}`"),
        )
    }

    pub(in crate::cli) fn no_value(self, name: &str) -> String {
        self.made(
            format!("没有收到 `{name}` 的值，没有改动任何内容"),
            format!("no value came for `{name}`; nothing was changed"),
        )
    }

    pub(in crate::cli) fn no_value_hint(self, name: &str) -> String {
        self.made(
            format!("要取消它，运行 `nod settings set {name} ''`"),
            format!("to take it back, run `nod settings set {name} ''`"),
        )
    }

    pub(in crate::cli) fn nothing_changed(self) -> &'static str {
        self.pick("没有改动任何内容", "nothing was changed")
    }

    pub(in crate::cli) fn file_not_changed(self, file: &Path, why: &Text) -> String {
        let file = file.display();
        self.made(
            format!("`{file}` {}，未作改动；请先改正", why.zh),
            format!(
                "`{file}`, {}: correct it first; nothing was changed",
                why.en
            ),
        )
    }

    pub(in crate::cli) fn not_own_file(self, file: &Path, why: &NotOwn) -> String {
        let file = file.display();
        match why {
            NotOwn::Link => self.made(
                format!("`{file}` 或它的目录是一个链接，未作改动：请修改它指向的文件"),
                format!(
                    "`{file}` or its directory is a link and was left as it is: change the file it leads to"
                ),
            ),
            NotOwn::Foreign => self.made(
                format!("`{file}` 或它的目录属于其他用户，未作改动"),
                format!("`{file}` or its directory is another user's; nothing was changed"),
            ),
            NotOwn::System(why) => {
                let Text { zh, en } = system::io(why);
                self.made(
                    format!("无法修改 `{file}`：{zh}"),
                    format!("`{file}` can't be changed: {en}"),
                )
            }
        }
    }

    /// Other settings, once one is saved.
    pub(in crate::cli) fn still_wrong(self, names: &[String]) -> String {
        self.made(
            format!(
                "守护进程还不能启动，先改正 {}；`nod settings` 说明原因",
                names.join("、")
            ),
            format!(
                "the daemon can't start before {} can be used; `nod settings` says why",
                names.join(", ")
            ),
        )
    }

    pub(in crate::cli) fn hooks_need_setup(self) -> &'static str {
        self.pick(
            "再运行一次 `nod setup`，让 Claude Code 的 hook 也知道",
            "run `nod setup` once more, so that Claude Code's hooks know it too",
        )
    }

    pub(in crate::cli) fn daemon_reads_later(self) -> &'static str {
        self.pick(
            "运行中的守护进程要重新启动后才会采用：`nod service restart`，或结束后再运行 `nod daemon`",
            "the running daemon takes it up when it starts anew: `nod service restart`, or end it and run `nod daemon`",
        )
    }

    pub(in crate::cli) fn typed_secret(self, name: &str) -> String {
        self.made(
            format!("shell 的历史可能记下了这个值；下次只写 `nod settings set {name}`，它会询问"),
            format!("your shell's history may hold the value now; `nod settings set {name}` alone asks for it"),
        )
    }
}

/// Where a value stands: in Chinese to follow 在, in English a preposition.
/// `shown` tells how a path may be shown.
pub(in crate::cli) fn place(origin: &SettingOrigin, shown: impl Fn(&Path) -> String) -> Text {
    match origin {
        SettingOrigin::Environment => Text::new("环境变量中", "the environment"),
        SettingOrigin::File(path) => {
            let path = shown(path);
            Text::made(format!(" `{path}` 中"), format!("`{path}`"))
        }
    }
}

/// A path as it is.
pub(in crate::cli) fn whole(path: &Path) -> String {
    path.display().to_string()
}

fn problem_zh(problem: &SettingProblem) -> String {
    match problem {
        SettingProblem::Wrong {
            name,
            seen: BadValue::Quoted(value),
            ..
        } => format!("`{name}` 的值 `{value}` 不可用；可用：{}", accepts_zh(name)),
        SettingProblem::Wrong { name, .. } => {
            format!("`{name}` 的值不可用；可用：{}", accepts_zh(name))
        }
        SettingProblem::Missing { name, .. } => {
            format!("`{name}` 未设置；可用：{}", accepts_zh(name))
        }
        SettingProblem::BrokenFile(file) => format!(
            "设置文件 `{}` 有误：{}",
            file.path.display(),
            unread_zh(&file.why)
        ),
        SettingProblem::Exposed(path) => format!(
            "其他用户可以读取 `{0}`，其中有应用密钥：请 `chmod 600 {0}`",
            path.display()
        ),
        SettingProblem::Pass { file, why } => {
            format!("通行证 `{}` 不可用（{why}）", file.display())
        }
        SettingProblem::ExposedPass(path) => format!(
            "其他用户可以读取 `{0}`，其中有本机的密钥：请 `chmod 600 {0}`",
            path.display()
        ),
        SettingProblem::SecretBesidePass(path) => format!(
            "本机已有团队通行证 `{}`，却还有应用密钥或 Webhook：请从设置中去掉 `FEISHU_APP_SECRET` 与 `FEISHU_SEND_MODE`，或删除通行证",
            path.display()
        ),
        SettingProblem::NoHome => "没有主目录：请设置 `HOME` 或 `NOD_STATE_DIR`".to_owned(),
    }
}

fn unread_zh(why: &UnreadFile) -> String {
    match why {
        UnreadFile::TooLarge => "大于 1 MiB".to_owned(),
        UnreadFile::System(why) => why.zh.to_string(),
        UnreadFile::Line(line) => bad_line_zh(line),
    }
}

pub(super) fn bad_line_zh(line: &BadLine) -> String {
    let fault = match line.fault {
        LineFault::NoPair => "应为 `名称=值`",
        LineFault::BadName => "名称只能含字母、数字和 `_`",
        LineFault::OpenQuote => "引号没有闭合",
    };
    format!("第 {} 行{fault}", line.number)
}

pub(in crate::cli) fn accepts_zh(name: &str) -> &'static str {
    match name {
        "FEISHU_APP_ID" => "`cli_` 加 8 到 64 个字母或数字",
        "FEISHU_APP_SECRET" => "开发者后台显示的密钥，不含空格",
        "FEISHU_DOMAIN" => "`feishu`、`lark` 或基地址（明文 http 仅限本机）",
        "FEISHU_OWNER_ID" => "open id（`ou_…`）、union id（`on_…`）或 user id",
        "FEISHU_APPROVERS" => "以逗号分隔的用户 id",
        "FEISHU_CHAT_ID" => "会话 id（`oc_…`）",
        "FEISHU_SEND_MODE" => "`app` 或 `webhook`",
        "FEISHU_WEBHOOK_URL" => "自定义机器人的地址，以 `/open-apis/bot/v2/hook/…` 结尾",
        "FEISHU_WEBHOOK_SECRET" => "机器人页面显示的签名密钥，不含空格",
        "CALLBACK_LISTEN" => "IP 地址与端口，如 `127.0.0.1:8080`",
        "CALLBACK_SERVER_URL" => "`http://` 或 `https://` 加主机，可带端口，不带路径",
        "NOD_BUS_URL" => "`wss://`、`tls://`，或本机的 `nats://`，加主机与端口",
        "NOD_MACHINE_NAME" => "1 到 64 个字符，一行",
        "NOD_GATEWAY_CHATS" => "群聊 id（`oc_…`），以逗号分隔",
        "CALLBACK_PEERS" => "与 `CALLBACK_SERVER_URL` 同样的地址，以逗号分隔",
        "CALLBACK_PEER_TOKENS" => "`地址=令牌`，以逗号分隔，每个令牌为 8 到 128 个不含空格的字符",
        "CALLBACK_SECRET" => "16 到 128 个不含空格的字符，各机器相同",
        "CALLBACK_ALLOW_UNSEALED" | "NOD_ALLOW_BYPASS" => "`true` 或 `false`",
        "NOD_PROJECTS" => "`名称=/路径` 或 `名称@codex=/路径`，以逗号分隔，路径须是已有的目录",
        "NOD_CLAUDE" | "NOD_CODEX_PROGRAM" => "程序名或绝对路径",
        "NOD_CODEX" => "`off`，或以逗号分隔的绝对路径",
        "TOOL_APPROVAL_ENABLED" => "`true`，或与 `NOD_ALLOW_BYPASS=true` 一起用的 `false`",
        "PERMISSION_SOCKET_PATH" => "不超过 107 字节的绝对路径",
        "PERMISSION_REQUEST_TIMEOUT"
        | "NOD_TOOL_TIMEOUT"
        | "NOD_QUESTION_TIMEOUT"
        | "NOD_TASK_TIMEOUT" => "1 到 86400 秒",
        "PERMISSION_NOTIFY_DELAY" => "0 到 3600 秒",
        "NOD_CARDS_AT_ONCE" => "1 到 100 的数",
        "NOD_NOTIFY_STOP_AFTER" => "0 到 86400 秒，或 `off`",
        "NOD_PREVIEWS" => "`full` 或 `state`",
        "NOD_CHAT_RATE" => "1 到 1000 的数",
        "NOD_APP_RATE" => "20 到 1000000 的数",
        "NOD_STATE_DIR" | "NOD_BUS_PASS" | "NOD_BUS_KEYS" => "绝对路径",
        "NOD_LANG" => "`zh` 或 `en`",
        "NOD_LOG" => "`off`、`error`、`warn`、`info`、`debug` 或 `trace`",
        "NOD_CA_FILE" => "PEM 文件的路径",
        "HTTPS_PROXY" => "`http://`、`https://`、`socks5://` 或 `socks5h://` 加主机与端口",
        _ => "见 `.env.example`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SETTINGS;

    #[test]
    fn what_each_setting_accepts_is_told_in_chinese() {
        for setting in SETTINGS {
            let told = accepts_zh(setting.name);
            assert_ne!(told, accepts_zh(""), "{}", setting.name);
        }
    }
}
