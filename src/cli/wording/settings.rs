//! What is said about settings, in both languages. The English of a problem is
//! what the error says itself. Pure.

use std::path::Path;

use super::Words;
use crate::config::{BadLine, LineFault, Origin, Problem, Problems, Seen, Sources, Unread};
use crate::wording::{Lang, Text};

impl Words {
    /// All that is wrong with the settings, one line each, and where each value
    /// stands if the sources are known.
    pub(in crate::cli) fn problems(self, problems: &Problems, from: Option<&Sources>) -> String {
        let lines = problems.0.iter().map(|one| self.placed(one, from));
        lines.collect::<Vec<_>>().join("\n")
    }

    pub(in crate::cli) fn problem(self, problem: &Problem) -> String {
        match self.0 {
            Lang::En => problem.to_string(),
            Lang::Zh => problem_zh(problem),
        }
    }

    pub(in crate::cli) fn settings_hint(self) -> &'static str {
        self.pick(
            "`nod doctor` 检查全部设置，`nod settings --zh` 说明每一项",
            "`nod doctor` checks every setting, `nod settings` describes each",
        )
    }

    pub(in crate::cli) fn credentials_hint(self) -> &'static str {
        self.pick(
            "运行 `nod setup`，或写入当前目录的 `.env` 或 `~/.config/nod/.env`；说明见 `nod settings --zh`",
            "run `nod setup`, or put them into `.env` here or into `~/.config/nod/.env`; `nod settings` describes them",
        )
    }

    fn placed(self, problem: &Problem, from: Option<&Sources>) -> String {
        let said = self.problem(problem);
        let Problem::Wrong { name, .. } = problem else {
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
    pub(in crate::cli) fn wins(self, name: &str, origin: &Origin) -> String {
        let Text { zh, en } = place(origin, whole);
        self.made(
            format!("在{zh}删除 `{name}`，否则它仍会优先于保存的设置"),
            format!("take `{name}` out of {en}, or it still wins over what is saved"),
        )
    }
}

/// Where a value stands: in Chinese to follow 在, in English a preposition.
/// `shown` tells how a path may be shown.
pub(in crate::cli) fn place(origin: &Origin, shown: impl Fn(&Path) -> String) -> Text {
    match origin {
        Origin::Environment => Text::new("环境变量中", "the environment"),
        Origin::File(path) => {
            let path = shown(path);
            Text::made(format!(" `{path}` 中"), format!("`{path}`"))
        }
    }
}

/// A path as it is.
pub(in crate::cli) fn whole(path: &Path) -> String {
    path.display().to_string()
}

fn problem_zh(problem: &Problem) -> String {
    match problem {
        Problem::Wrong {
            name,
            seen: Seen::Quoted(value),
            ..
        } => format!("`{name}` 的值 `{value}` 不可用；可用：{}", accepts_zh(name)),
        Problem::Wrong { name, .. } => format!("`{name}` 的值不可用；可用：{}", accepts_zh(name)),
        Problem::Missing { name, .. } => format!("`{name}` 未设置；可用：{}", accepts_zh(name)),
        Problem::BrokenFile(file) => format!(
            "设置文件 `{}` 有误：{}",
            file.path.display(),
            unread_zh(&file.why)
        ),
        Problem::Exposed(path) => format!(
            "其他用户可以读取 `{0}`，其中有应用密钥：请 `chmod 600 {0}`",
            path.display()
        ),
        Problem::NoHome => "没有主目录：请设置 `HOME` 或 `NOD_STATE_DIR`".to_owned(),
    }
}

/// Why a settings file can't be read.
pub(in crate::cli) fn unread(why: &Unread) -> Text {
    Text::made(unread_zh(why), why.to_string())
}

fn unread_zh(why: &Unread) -> String {
    match why {
        Unread::TooLarge => "大于 1 MiB".to_owned(),
        Unread::System(why) => why.zh.to_string(),
        Unread::Line(line) => bad_line_zh(line),
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
        "CALLBACK_PEERS" => "与 `CALLBACK_SERVER_URL` 同样的地址，以逗号分隔",
        "CALLBACK_SECRET" => "16 到 128 个不含空格的字符，各机器相同",
        "CALLBACK_ALLOW_UNSEALED" | "NOD_ALLOW_BYPASS" => "`true` 或 `false`",
        "NOD_PROJECTS" => "`名称=/路径`，以逗号分隔，路径须是已有的目录",
        "NOD_CLAUDE" => "程序名或绝对路径",
        "TOOL_APPROVAL_ENABLED" => "`true`，或与 `NOD_ALLOW_BYPASS=true` 一起用的 `false`",
        "PERMISSION_SOCKET_PATH" => "不超过 107 字节的绝对路径",
        "PERMISSION_REQUEST_TIMEOUT"
        | "NOD_TOOL_TIMEOUT"
        | "NOD_QUESTION_TIMEOUT"
        | "NOD_TASK_TIMEOUT" => "1 到 86400 秒",
        "PERMISSION_NOTIFY_DELAY" => "0 到 3600 秒",
        "NOD_NOTIFY_STOP_AFTER" => "0 到 86400 秒，或 `off`",
        "NOD_CHAT_RATE" => "1 到 1000 的数",
        "NOD_STATE_DIR" => "绝对路径",
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
