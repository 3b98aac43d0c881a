//! Why Feishu can't be reached or said no, in both languages, for people. The
//! English is what the errors say themselves. Pure.

use super::endpoint::DialError;
use super::error::{ApiError, ContentProblem, FeishuAnswer};
use super::outbound::OutboundError;
use super::registration::RegistrationError;
use crate::text::{Text, spaced};

impl OutboundError {
    pub fn text(&self) -> Text {
        let zh = match self {
            Self::PlainText { host } => format!("拒绝向 `{host}` 明文发送：请使用 https 地址"),
            Self::BadAddress { problem } => format!("这不是可以访问的地址（{problem}）"),
            Self::BadProxy { name } => format!(
                "`{name}` 不是可用的代理：请写成 `http://host:port`、`https://host:port`、`socks5://host:port` 或 `socks5h://host:port`"
            ),
            Self::BadCaFile { file, reason } => format!(
                "`NOD_CA_FILE` 所指的 `{}` 不可用：请检查它是否存在，且是 PEM 格式的证书（{reason}）",
                file.display()
            ),
            Self::NoTls { reason } => format!("无法启用加密（{reason}）"),
            Self::Unknown { host } => format!(
                "找不到 `{host}` 的地址：请检查网络与 DNS；若此网络需要代理，请设置 `HTTPS_PROXY`"
            ),
            Self::Refused { peer } => {
                format!("{}拒绝了连接：请检查地址、端口与防火墙", peer_zh(peer))
            }
            Self::Unreachable { peer } => {
                format!("无法到达{}：请确认本机已联网", peer_zh(peer))
            }
            Self::TimedOut { peer } => format!(
                "{}没有及时回应：请检查网络；若此网络需要代理，请设置 `HTTPS_PROXY`",
                peer_zh(peer)
            ),
            Self::Tls { host, reason } => format!(
                "无法与 `{host}` 建立可信的加密连接：证书不被信任，可能有认证页面或代理在代为应答，或本机时钟不准（{reason}）"
            ),
            Self::ProxyWantsLogin { proxy } => {
                format!("代理 `{proxy}` 需要用户名与密码：请写成 `http://user:password@host:port`")
            }
            Self::ProxyRefused {
                proxy,
                host,
                reason,
            } => {
                format!(
                    "代理 `{proxy}` 没有连接到 `{host}`：请让代理的管理者放行该主机（{reason}）"
                )
            }
            Self::Lost { peer, reason } => format!("与{}的连接中断（{reason}）", peer_zh(peer)),
        };
        Text::made(zh.trim_start().to_owned(), self.to_string())
    }
}

/// The other side as an error names it.
fn peer_zh(peer: &str) -> String {
    match peer.strip_prefix("the proxy ") {
        Some(proxy) => format!("代理 {proxy} "),
        None => format!(" {} ", peer.replace(" through the proxy ", "（经代理）")),
    }
}

impl DialError {
    pub fn text(&self) -> Text {
        let zh = match self {
            Self::Outbound(error) => return error.text(),
            Self::Busy { name, code } => format!("{}正忙（代码 {code}）", platform_zh(name)),
            Self::BadCredentials { name, code } => format!(
                "{}不接受此 App ID 与 Secret（代码 {code}）：请从应用的凭证页重新复制到 `FEISHU_APP_ID` 与 `FEISHU_APP_SECRET`，再重启 nod",
                platform_zh(name)
            ),
            Self::WrongDomain { name, sibling } => format!(
                "此应用不在{}上：请将 `FEISHU_DOMAIN` 设为 `{sibling}` 并重启 nod",
                platform_zh(name)
            ),
            Self::TooManyConnections { name } => format!(
                "此应用的连接数已达{}的上限：nod 会再试；若一直如此，请停止其他使用此应用的程序",
                platform_zh(name)
            ),
            Self::Forbidden { name, code } => format!(
                "{}拒绝此应用（代码 {code}）：可能已停用或被封禁，请在开发者后台查看其状态",
                platform_zh(name)
            ),
            Self::Refused { name, code, msg } => format!(
                "{}拒绝连接，代码 {code}（`{msg}`）：请在开发者后台查看应用",
                platform_zh(name)
            ),
            Self::Portal { name, status } => format!(
                "有网页代替{}应答（HTTP {status}）：请登录此网络的认证页面，或检查代理",
                platform_zh(name)
            ),
            Self::Http { name, status } => {
                format!("{}回应 HTTP {status}，内容无法使用", platform_zh(name))
            }
            Self::BadUrl { name, .. } => format!("{}没有给出可用的连接地址", platform_zh(name)),
            Self::Upgrade { name, .. } => format!("{}没有接受 WebSocket 连接", platform_zh(name)),
            Self::TimedOut { name, .. } => format!("{}没有及时回应", platform_zh(name)),
        };
        Text::made(spaced(&zh), self.to_string())
    }
}

impl ApiError {
    pub fn text(&self) -> Text {
        let zh = match self {
            Self::Retry { answer, .. } => format!("飞书正忙：{}", said(answer)),
            Self::StaleToken(answer) => format!("飞书不接受刚取得的令牌：{}", said(answer)),
            Self::BadCredentials(answer) => format!(
                "飞书不接受此 App ID 与 Secret，请检查 `FEISHU_APP_ID`、`FEISHU_APP_SECRET` 与 `FEISHU_DOMAIN`：{}",
                said(answer)
            ),
            Self::Setup { answer, .. } => {
                format!(
                    "飞书应用的配置还不够，{}：{}",
                    fix_zh(answer.code),
                    said(answer)
                )
            }
            Self::Recipient { answer, .. } => format!("飞书无法送达此接收者：{}", said(answer)),
            Self::Content { answer, problem } => {
                format!("飞书拒绝了内容，{}：{}", problem_zh(*problem), said(answer))
            }
            Self::Gone(answer) => format!("消息已不存在或不能再修改：{}", said(answer)),
            Self::Quota(answer) => format!("租户本月的接口调用额度已用完：{}", said(answer)),
            Self::Rejected(answer) => format!("飞书拒绝了调用：{}", said(answer)),
            Self::Network(error) => return error.text(),
            Self::Malformed { status, .. } => {
                format!("应答的不是飞书接口（HTTP {status}）：可能是认证页面或代理")
            }
            Self::TooLarge { limit } => format!("文件大于 {limit} 字节"),
            Self::Crowded { .. } => "等待发送的消息过多".to_owned(),
        };
        Text::made(zh, self.to_string())
    }
}

fn said(answer: &FeishuAnswer) -> String {
    let id = answer.log_id.as_ref();
    let id = id.map_or_else(String::new, |id| format!("，log id {id}"));
    format!("代码 {} `{}`{id}", answer.code, answer.msg)
}

fn fix_zh(code: i64) -> &'static str {
    match code {
        99_991_401 => "请关闭 IP 白名单或加入本机地址",
        99_991_662 | 99_991_673 => "请在此租户启用应用",
        99_991_672 | 230_027 => "请添加缺少的权限并发布新版本",
        99_992_361 => "open id 只对一个应用有效，请使用此应用看到的 id",
        230_006 => "请启用机器人能力并发布版本",
        _ => "请查看开发者后台",
    }
}

fn problem_zh(problem: ContentProblem) -> &'static str {
    match problem {
        ContentProblem::TooLong => "过长",
        ContentProblem::Sensitive => "含有租户禁止的词",
        ContentProblem::DataLeak => "触发了租户的数据保护",
        ContentProblem::Card { .. } => "卡片无效",
        ContentProblem::Parameter => "参数无效",
    }
}

impl RegistrationError {
    pub fn text(&self) -> Text {
        let zh = match self {
            Self::Expired => "没有人及时扫码".to_owned(),
            Self::Denied => "扫码的人拒绝了".to_owned(),
            Self::Refused { code, words } => {
                format!("平台拒绝：`{code}` {words}").trim_end().to_owned()
            }
            Self::Malformed { status } => format!("应答的不是注册服务（HTTP {status}）"),
            Self::Network(error) => return error.text(),
        };
        Text::made(zh, self.to_string())
    }
}

/// The platform's name in Chinese, where it has one.
pub(crate) fn platform_zh(name: &str) -> &str {
    match name {
        "Feishu" => "飞书",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Lang;

    #[test]
    fn what_only_the_library_knows_is_told_in_both_languages() {
        let (host, reason) = ("h".to_owned(), "canary".to_owned());
        for error in [
            OutboundError::BadAddress { problem: "canary" },
            OutboundError::BadCaFile {
                file: "/f.pem".into(),
                reason: reason.clone(),
            },
            OutboundError::NoTls {
                reason: reason.clone(),
            },
            OutboundError::Tls {
                host: host.clone(),
                reason: "canary",
            },
            OutboundError::ProxyRefused {
                proxy: "p".to_owned(),
                host: host.clone(),
                reason: reason.clone(),
            },
            OutboundError::Lost { peer: host, reason },
        ] {
            let text = error.text();
            for lang in [Lang::Zh, Lang::En] {
                assert!(text.get(lang).contains("canary"), "{}", text.get(lang));
            }
        }
    }

    #[test]
    fn names_stand_in_both_languages_and_words_only_in_theirs() {
        let errors = [
            OutboundError::TimedOut {
                peer: "`open.feishu.cn` through the proxy `http://p:1`".to_owned(),
            }
            .text(),
            OutboundError::Refused {
                peer: "the proxy `http://p:1`".to_owned(),
            }
            .text(),
            DialError::WrongDomain {
                name: "Feishu".to_owned(),
                sibling: "lark",
            }
            .text(),
            ApiError::BadCredentials(FeishuAnswer::new(10_014, "app secret invalid", None)).text(),
        ];
        let names = [
            "`http://p:1`",
            "`http://p:1`",
            "`lark`",
            "`FEISHU_APP_SECRET`",
        ];
        for (text, name) in errors.iter().zip(names) {
            for lang in [Lang::Zh, Lang::En] {
                assert!(text.get(lang).contains(name), "{}", text.get(lang));
            }
            assert!(
                !text.get(Lang::Zh).contains(" the "),
                "{}",
                text.get(Lang::Zh)
            );
            assert!(text.get(Lang::En).is_ascii(), "{}", text.get(Lang::En));
        }
    }
}
