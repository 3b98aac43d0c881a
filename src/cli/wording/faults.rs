//! Why a command did not do what was asked, in both languages. The English is
//! what the errors say themselves. Pure.

use std::fmt::Display;
use std::path::Path;

use super::super::service::ServiceError;
use super::Words;
use super::settings::accepts_zh;
use crate::claude::hooks_file::{HooksError, Untouchable};
use crate::claude::permission::BadHook;
use crate::daemon::DaemonError;
use crate::daemon::instance::InstanceError;
use crate::gateway::server::DoorError;
use crate::hook::client::NoDecision;
use crate::hook::connect::Unreachable;
use crate::hook::listen::ListenError;
use crate::hook::wire::answer::DENIED;
use crate::hook::wire::error_word::ErrorWord;
use crate::store::StoreError;
use crate::text::system::io;

impl Words {
    pub(in crate::cli) fn no_daemon(self, socket: &Path, why: &NoDecision) -> String {
        let socket = socket.display();
        if matches!(why, NoDecision::Unreachable(Unreachable::NoDaemon)) {
            return self.made(
                format!("守护进程没有运行：`{socket}` 上没有应答"),
                format!("no daemon is running: nothing answers on `{socket}`"),
            );
        }
        let why = self.unanswered(why);
        self.made(
            format!("`{socket}` 上没有守护进程应答：{why}"),
            format!("no daemon answers on `{socket}`: {why}"),
        )
    }

    pub(in crate::cli) fn start_daemon_hint(self, can_serve: bool) -> &'static str {
        if can_serve {
            self.pick(
                "用 `nod daemon` 启动，或用 `nod service install` 让它一直运行",
                "start it with `nod daemon`, or keep it running with `nod service install`",
            )
        } else {
            self.pick(
                "用 `nod daemon --background` 启动",
                "start it with `nod daemon --background`",
            )
        }
    }

    pub(in crate::cli) fn doctor_hint(self) -> &'static str {
        self.pick("`nod doctor` 会说明原因", "`nod doctor` tells why")
    }

    pub(in crate::cli) fn flags_hint(self, yes: bool) -> &'static str {
        if yes {
            return self.pick(
                "`--yes` 不会提问，还要用参数给出：`--app-id`、`--app-secret-file`（或 `--app-secret-stdin`）和 `--owner`",
                "`--yes` asks nothing, so give the rest by flags too: `--app-id`, `--app-secret-file` (or `--app-secret-stdin`) and `--owner`",
            );
        }
        self.pick(
            "用参数给出：`--app-id`、`--app-secret-file`（或 `--app-secret-stdin`）、`--owner`，再加 `--yes`",
            "give everything by flags: `--app-id`, `--app-secret-file` (or `--app-secret-stdin`), `--owner`, and `--yes`",
        )
    }

    pub(in crate::cli) fn unusable_setting_hint(self) -> &'static str {
        self.pick(
            "照现在的设置，它无法启动：`nod doctor` 会说明原因",
            "it can't start with the settings as they are: `nod doctor` tells why",
        )
    }

    pub(in crate::cli) fn set_up_hint(self) -> &'static str {
        self.pick(
            "还没有设置应用：请先运行 `nod setup`",
            "no app is set yet: run `nod setup` first",
        )
    }

    pub(in crate::cli) fn not_connected(self) -> &'static str {
        self.pick(
            "未连接，需要你来处理；`nod doctor` 会指出缺哪一步",
            "not connected, and only you can change it; `nod doctor` names the step",
        )
    }

    pub(in crate::cli) fn not_done(self) -> &'static str {
        self.pick("守护进程没有照做", "the daemon did not do it")
    }

    pub(in crate::cli) fn lock_not_kept(self) -> &'static str {
        self.pick(
            "数据库无法写入，守护进程重启后会忘记这一点",
            "the store can't be written, so a restart of the daemon would forget it",
        )
    }

    /// What the model reads when the person gave no reason.
    pub(in crate::cli) fn denied_from_feishu(self) -> &'static str {
        DENIED.get(self.0)
    }

    pub(in crate::cli) fn declined(self) -> &'static str {
        self.pick("对方选择不回答", "they chose not to answer")
    }

    pub(in crate::cli) fn bad_question(self) -> &'static str {
        self.pick("问题为空或过长", "the question is empty or too long")
    }

    /// Why the terminal decides after all. The socket's own words are fixed by
    /// the protocol, whatever the language.
    pub(in crate::cli) fn terminal(
        self,
        error: ErrorWord,
        message: &str,
        why: Option<&str>,
    ) -> String {
        let said = match error {
            ErrorWord::ServerTimeout => self.pick("没有人及时回答", "nobody answered in time"),
            ErrorWord::HookGone | ErrorWord::Dropped => {
                self.pick("请求已失效", "the request is no longer waiting")
            }
            ErrorWord::DaemonRestarted => self.pick("守护进程已重启", "the daemon was restarted"),
            ErrorWord::CardUndeliverable => {
                self.pick("飞书卡片无法送达", "no card could be delivered")
            }
            ErrorWord::DigestMismatch => self.pick(
                "收到的决定属于另一次调用，未采用",
                "the decision was made for another call and is not used",
            ),
            ErrorWord::AnsweredInTerminal => {
                self.pick("已在终端处理", "it was answered in the terminal")
            }
            ErrorWord::ReplyTooLarge => self.pick("回答过大", "the answer is too large"),
            ErrorWord::UnknownDecision => self.pick(
                "收到的决定无法识别，版本可能不同",
                "the decision is not one this nod knows, perhaps the daemon is another version",
            ),
            _ => message,
        };
        match why {
            Some(why) => self.made(format!("{said}：{why}"), format!("{said}: {why}")),
            None => said.to_owned(),
        }
    }

    pub(in crate::cli) fn bad_hook(self, why: &BadHook) -> String {
        let zh = match why {
            BadHook::NotJson(_) => "hook 的输入不是预期的 JSON".to_owned(),
            BadHook::Missing(field) => format!("hook 的输入缺少 `{field}`"),
        };
        self.made(zh, why.to_string())
    }

    pub(in crate::cli) fn bad_flag(self, name: &str, why: &dyn Display) -> String {
        let accepts = match name {
            "--app-id" => accepts_zh("FEISHU_APP_ID"),
            "--domain" => accepts_zh("FEISHU_DOMAIN"),
            "--owner" => accepts_zh("FEISHU_OWNER_ID"),
            _ => "会话 id（`oc_…`）或用户 id（`ou_…`），不含空格",
        };
        self.made(
            format!("`{name}` 的值不可用；可用：{accepts}"),
            format!("`{name}` can't be used: {why}"),
        )
    }

    pub(in crate::cli) fn nothing_recorded(self) -> &'static str {
        self.pick("尚无记录", "nothing is recorded yet")
    }

    pub(in crate::cli) fn no_rules_left(self) -> &'static str {
        self.pick("尚未留下任何规则", "no rules have been left yet")
    }

    pub(in crate::cli) fn doctor_question(self) -> &'static str {
        self.pick(
            "nod doctor 测试：点任意一个按钮，证明这台机器能收到你的点击",
            "nod doctor: tap either button to prove that your taps reach this machine",
        )
    }

    pub(in crate::cli) fn unanswered(self, why: &NoDecision) -> String {
        let zh = match why {
            NoDecision::Unreachable(why) => match why {
                Unreachable::NoDaemon => "守护进程没有运行".to_owned(),
                Unreachable::Busy => "守护进程的队列已满".to_owned(),
                Unreachable::Foreign(_) => {
                    "在那里监听的不是本人的守护进程，未发送任何内容".to_owned()
                }
                Unreachable::Io(error) => format!("无法连接守护进程：{}", io(error).zh),
            },
            NoDecision::Refused { error, message } => return self.refusal(*error, message),
            NoDecision::Hung => "守护进程没有应答".to_owned(),
            NoDecision::Lost => "守护进程中断后没有恢复".to_owned(),
            NoDecision::OutOfTime => "没有人及时回答".to_owned(),
            NoDecision::ListenerGone => "Claude Code 已离开".to_owned(),
            NoDecision::TooLarge => "请求过大".to_owned(),
            NoDecision::Garbled(_) => "守护进程的应答无法识别，版本可能不同".to_owned(),
        };
        self.made(zh, why.to_string())
    }

    /// Why the daemon took no request, by the protocol's word for it. What it
    /// knows better stays in its own words.
    fn refusal(self, error: ErrorWord, message: &str) -> String {
        let why = match error {
            ErrorWord::Flood => self.pick(
                "这个会话等待回答的请求过多",
                "too many requests of this session wait for an answer",
            ),
            ErrorWord::Full => self.pick("等待中的请求过多", "too many requests are waiting"),
            ErrorWord::TooMuchInput => self.pick(
                "等待中的请求内容合计过大",
                "the requests that wait hold too much input already",
            ),
            ErrorWord::Busy => self.pick("没有及时受理", "it did not take the request in time"),
            ErrorWord::SlowRequest => {
                self.pick("请求没有及时送达", "the request did not arrive in time")
            }
            ErrorWord::Duplicate => {
                self.pick("同一编号的请求已存在", "a request with this id exists")
            }
            ErrorWord::Unknown | ErrorWord::WrongToken => self.pick(
                "它不认识这个请求，可能已重启",
                "it does not know this request and was perhaps restarted",
            ),
            ErrorWord::InvalidRequest | ErrorWord::BadRequest if message.is_ascii() => self.pick(
                "请求无法识别，版本可能不同",
                "it cannot read the request, perhaps it is another version",
            ),
            ErrorWord::BadProject => self.pick(
                "项目目录不存在、不是绝对路径或属于他人",
                "the project's directory does not exist, is not absolute or is somebody else's",
            ),
            ErrorWord::Gone => self.pick("请求立即结束了", "the request ended at once"),
            ErrorWord::NoOwner => self.pick(
                "没有设置谁来决定：请设置 `FEISHU_OWNER_ID`",
                "nobody is set to decide: set `FEISHU_OWNER_ID`",
            ),
            ErrorWord::Unsupported => self.pick(
                "自定义机器人不能承载提问：请在终端回答",
                "a custom bot cannot carry questions: answer in the terminal",
            ),
            _ => message,
        };
        self.made(
            format!("守护进程拒绝了请求：{why}"),
            format!("the daemon refused the request: {why}"),
        )
    }

    pub(in crate::cli) fn daemon_error(self, why: &DaemonError) -> String {
        match why {
            DaemonError::Settings(problems) => self.problems(problems, None),
            DaemonError::Instance(why) => self.instance(why),
            DaemonError::Socket(why) => self.listen(why),
            DaemonError::Outbound(why) => why.text().get(self.0).to_owned(),
            DaemonError::Api(why) => why.text().get(self.0).to_owned(),
            DaemonError::Store(why) => self.store(why),
            DaemonError::Door(why) => self.door(why),
            #[cfg(not(feature = "team"))]
            DaemonError::NoTeam => self.no_team().to_owned(),
            DaemonError::Fault => self.made(
                "nod 内部出错，守护进程的一部分停止了，因此整个守护进程已结束",
                why.to_string(),
            ),
        }
    }

    fn door(self, why: &DoorError) -> String {
        let zh = match why {
            DoorError::NoSecret(address) => format!(
                "`CALLBACK_LISTEN` 为 `{address}`，其他机器可以访问，却没有可供验证的密钥：请设置 `CALLBACK_SECRET`，或改为监听 127.0.0.1"
            ),
            DoorError::Taken { address, why } => {
                format!("无法监听 `{address}`：{}", io(why).zh)
            }
        };
        self.made(zh, why.to_string())
    }

    fn instance(self, why: &InstanceError) -> String {
        let zh = match why {
            InstanceError::AlreadyRunning { pid } => {
                let pid = pid.as_deref();
                let pid = pid.map_or_else(String::new, |pid| format!("（进程 {pid}）"));
                format!("守护进程已在运行{pid}：请先停止它，或为这一个单独设置 `NOD_STATE_DIR`")
            }
            InstanceError::NotPrivate(path) => format!(
                "`{}` 属于他人或对他人开放：必须归本人所有，权限 0700",
                path.display()
            ),
            InstanceError::Unusable(path, error) => {
                format!("`{}` 不可用：{}", path.display(), io(error).zh)
            }
        };
        self.made(zh, why.to_string())
    }

    fn listen(self, why: &ListenError) -> String {
        let zh = match why {
            ListenError::PathTooLong { path, length } => format!(
                "套接字路径有 {length} 字节，过长：请选择比 `{}` 更短的目录",
                path.display()
            ),
            ListenError::UnsafePlace { path, .. } => {
                format!("`{}` 不能安全地放置套接字", path.display())
            }
            ListenError::AlreadyRunning { pid } => {
                let pid = pid.map_or_else(String::new, |pid| format!("，进程 {pid}"));
                format!("已在运行{pid}")
            }
            ListenError::Io { path, source } => {
                format!("无法在 `{}` 监听：{}", path.display(), io(source).zh)
            }
        };
        self.made(zh, why.to_string())
    }

    pub(in crate::cli) fn running_hint(self) -> &'static str {
        self.pick(
            "`nod status` 显示它在做什么",
            "`nod status` shows what it does",
        )
    }

    pub(in crate::cli) fn store(self, why: &StoreError) -> String {
        why.text().get(self.0).to_owned()
    }

    pub(in crate::cli) fn no_audit(self, why: &StoreError) -> String {
        let why = self.store(why);
        self.made(
            format!("无法读取审计记录：{why}"),
            format!("the audit cannot be read: {why}"),
        )
    }

    pub(in crate::cli) fn audit_whole(self, rows: impl Display) -> String {
        self.made(
            format!("完整：{rows} 行，没有改动或缺失"),
            format!("whole: {rows} lines, none changed or missing in between"),
        )
    }

    pub(in crate::cli) fn audit_broken(self, line: impl Display, problem: impl Display) -> String {
        self.made(
            format!("审计记录在第 {line} 行被改动过"),
            format!("the audit was tampered with at line {line}: {problem}"),
        )
    }

    pub(in crate::cli) fn no_rules(self, why: &StoreError) -> String {
        let why = self.store(why);
        self.made(
            format!("无法读取规则：{why}"),
            format!("the rules cannot be read: {why}"),
        )
    }

    pub(in crate::cli) fn no_such_rule(self, number: i64) -> String {
        self.made(
            format!("没有编号为 {number} 的规则"),
            format!("no rule has the number {number}"),
        )
    }

    pub(in crate::cli) fn rule_undone_before(self, rule: &str, at: &str) -> String {
        self.made(
            format!("`{rule}` 已于 {at} 撤销，没有改动"),
            format!("`{rule}` was undone at {at} already; nothing was changed"),
        )
    }

    pub(in crate::cli) fn rules_hint(self) -> &'static str {
        self.pick("`nod rules` 列出它们", "`nod rules` lists them")
    }

    pub(in crate::cli) fn rule_removed(self, rule: &str, file: &Path, was_there: bool) -> String {
        let file = file.display();
        if was_there {
            self.made(
                format!("已从 `{file}` 移除 `{rule}`"),
                format!("took `{rule}` out of `{file}`"),
            )
        } else {
            self.made(
                format!("`{rule}` 已不在 `{file}` 中"),
                format!("`{rule}` was no longer in `{file}`"),
            )
        }
    }

    pub(in crate::cli) fn service_error(self, why: &ServiceError) -> String {
        let zh = match why {
            ServiceError::NoManager { why } => format!("没有可用的服务管理器：{}", why.zh),
            ServiceError::NoHome => "没有主目录：请设置 `HOME`".to_owned(),
            ServiceError::Unfit(_) => "路径或环境变量不能写进服务定义".to_owned(),
            ServiceError::Refused { command, words } => format!("`{command}` 失败：{words}"),
            ServiceError::Io { source, .. } => format!("无法读写服务定义：{}", io(source).zh),
        };
        self.made(zh, why.to_string())
    }

    pub(in crate::cli) fn hooks_error(self, why: &HooksError) -> String {
        let zh = match why {
            HooksError::Untouchable {
                file,
                why: Untouchable { line, column, .. },
            } => format!(
                "`{}` 第 {line} 行第 {column} 列无法理解，未作改动：请先修正",
                file.display()
            ),
            HooksError::Changed { file } => {
                format!("`{}` 同时被别的程序改动，请再试一次", file.display())
            }
            HooksError::BadProgram { path, problem } => {
                format!("`{}` 不能写进 hook 的命令：{}", path.display(), problem.zh)
            }
            HooksError::Io { file, source, .. } => {
                format!("`{}` 无法读写：{}", file.display(), io(source).zh)
            }
        };
        self.made(zh, why.to_string())
    }
}
