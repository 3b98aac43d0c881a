//! What the commands of a team say.

use std::path::Path;

use super::Words;
use crate::bus::membership::BadMembership;
#[cfg(feature = "team")]
use crate::bus::nkey::BadKey;
use crate::bus::subjects::MachinePlace;
use crate::bus::url::{BadBusUrl, BusUrl};
use crate::text::Lang;
#[cfg(feature = "team")]
use crate::text::escape::{Shape, visible};
#[cfg(feature = "team")]
use crate::wording::span;
#[cfg(feature = "team")]
use crate::wording::team::LET_IN;

impl Words {
    #[cfg(feature = "team")]
    pub(in crate::cli) fn team_error(self, why: &crate::team::TeamError) -> String {
        use crate::team::TeamError;
        if self.0 == Lang::En {
            return why.to_string();
        }
        match why {
            TeamError::Settings(problems) => self.problems(problems, None),
            TeamError::Outbound(why) => why.text().zh.into_owned(),
            TeamError::Api(why) => why.text().zh.into_owned(),
            TeamError::NoKeys { file, why } => {
                format!("无法读取 `{}` 中的密钥（{why}）", file.display())
            }
            TeamError::BadKeys { file, why } => {
                format!("`{}` 中的密钥不可用（{why}）", file.display())
            }
            TeamError::Exposed(file) => format!(
                "其他用户可以读取 `{0}`，其中有团队的密钥：请 `chmod 600 {0}`",
                file.display()
            ),
            TeamError::NoBus => "`NOD_BUS_URL` 未设置：网关需要总线的地址".to_owned(),
            TeamError::Fault => "nod 自身的故障使网关的一部分停止，整个网关已结束".to_owned(),
        }
    }

    /// Where the gateway's settings come from; `file`: the one that was named.
    #[cfg(feature = "team")]
    pub(in crate::cli) fn gateway_unset(self, file: Option<&Path>) -> String {
        match file {
            Some(file) => {
                let file = file.display();
                self.made(
                    format!("请填在 `{file}` 中"),
                    format!("put it into `{file}`"),
                )
            }
            None => self.made(
                "先运行 `nod gateway init --bus URL`，填写它写出的文件，再用 `--env-file` 指定它".to_owned(),
                "first `nod gateway init --bus URL`; fill in the file that it writes and name it with `--env-file`".to_owned(),
            ),
        }
    }

    #[cfg(feature = "team")]
    pub(in crate::cli) fn not_forgotten(self, why: &crate::team::forget::ForgetError) -> String {
        use crate::bus::accounts::NotRevoked;
        use crate::team::forget::ForgetError;
        let why = match (self.0, why) {
            (Lang::En, ForgetError::Team(why)) => return why.to_string(),
            (Lang::En, why) => return format!("no machine was forgotten: {why}"),
            (Lang::Zh, ForgetError::Team(why)) => return self.team_error(why),
            (Lang::Zh, ForgetError::Unknown(name)) => {
                format!("没有名为 `{name}` 的机器：请给出它的公钥（`U…`）与 `--owner`")
            }
            (Lang::Zh, ForgetError::Several { name, all }) => {
                format!("有多台机器名为 `{name}`，请给出其中一个 id：{all}")
            }
            (Lang::Zh, ForgetError::NoBus(why)) => format!("总线无法连接：{}", why.zh),
            (Lang::Zh, ForgetError::NotRevoked(why)) => match why {
                NotRevoked::NoOperator => "密钥中没有 operator，账户由他人管理".to_owned(),
                NotRevoked::Unreached => "总线无法连接，或不让此网关与它自身通话".to_owned(),
                NotRevoked::Silent => "总线没有及时回应".to_owned(),
                NotRevoked::Refused(why) => format!("总线拒绝了（{why}）"),
                NotRevoked::Foreign => "总线上的账户声明不是由其 operator 签署的".to_owned(),
                NotRevoked::Full => "已移除的机器过多".to_owned(),
            },
        };
        format!("没有移除任何机器：{why}")
    }

    #[cfg(feature = "team")]
    pub(in crate::cli) fn forgotten(self, place: &MachinePlace, cut_off: bool) -> String {
        if cut_off {
            return self.made(
                format!("已移除 {place}：总线不再接受它的通行证"),
                format!("{place} was forgotten: the bus takes its pass no more"),
            );
        }
        self.made(
            format!("网关不再服务 {place}；总线的账户由他人管理，请其同样吊销它的通行证"),
            format!("the gateways serve {place} no more; the bus' account is somebody else's, have them revoke its pass as well"),
        )
    }

    #[cfg(feature = "team")]
    pub(in crate::cli) fn no_gateway_here(self) -> &'static str {
        self.pick(
            "本机没有网关在运行，或它使用另一个 `NOD_STATE_DIR`：用 `nod --env-file nod-bus/gateway.env gateway` 启动；没有 `gateway.env` 时先运行 `nod gateway init`",
            "no gateway runs on this machine, or it has another `NOD_STATE_DIR`: `nod --env-file nod-bus/gateway.env gateway` starts one, `nod gateway init` makes what it needs",
        )
    }

    #[cfg(feature = "team")]
    pub(in crate::cli) fn not_read(self, file: &Path, why: &std::io::Error) -> String {
        let file = file.display();
        self.made(
            format!("无法读取 `{file}`（{why}）"),
            format!("`{file}` can't be read: {why}"),
        )
    }

    #[cfg(feature = "team")]
    pub(in crate::cli) fn gateway_status(self, report: &serde_json::Value) -> String {
        use crate::bus::conf::has_holes;
        let text = |field: &str| visible(report[field].as_str().unwrap_or("-"), Shape::Name);
        let count = |field: &str| report[field].as_u64().unwrap_or_default();
        let up = span(report["up_ms"].as_i64().unwrap_or_default());
        let (url, server) = (text("url"), text("server"));
        let listed = |field: &str| {
            let all = report[field].as_object().into_iter().flatten();
            let all = all.map(|(kind, count)| format!("{kind} {count}"));
            match &all.collect::<Vec<_>>()[..] {
                [] => self.made("无", "none"),
                all => visible(&all.join(", "), Shape::Name),
            }
        };
        let (calls, minute) = (listed("calls"), listed("minute"));
        let (here, known) = (count("connected"), count("machines"));
        let (taps, unanswered) = (count("taps"), count("unanswered"));
        let (refused, crowded) = (count("refused"), count("crowded"));
        let most = count("most");
        let connections = match report["connections"].as_u64() {
            Some(open) => (
                format!("，应用共 {open} 个连接，上限 50"),
                format!(", the app has {open} connections of 50"),
            ),
            None => (String::new(), String::new()),
        };
        let holes = has_holes(&server);
        match self.0 {
            Lang::Zh => {
                let bus = if report["bus"] == true {
                    format!("已连接，nats-server {server}")
                } else {
                    format!("未连接：{}", text("cause_zh"))
                };
                let feishu = if report["feishu"] == true {
                    "已连接"
                } else {
                    "未连接"
                };
                let holes = if holes {
                    "\n此 nats-server 有已知漏洞：请换用 2.11.15、2.12.6 或更新的版本"
                } else {
                    ""
                };
                format!(
                    "网关 {}，nod {}，已运行 {}\n总线：{url}，{bus}\n飞书：{feishu}{}\n机器：{here} 台在线，共知道 {known} 台\n点击：{taps} 次，其中 {unanswered} 次没有机器应答\n代为调用：{calls}\n最近一分钟（每种最多 {most}）：{minute}\n拒绝 {refused} 次，因限额推迟 {crowded} 次{holes}",
                    text("gateway"),
                    text("version"),
                    up.zh,
                    connections.0
                )
            }
            Lang::En => {
                let bus = if report["bus"] == true {
                    format!("connected, nats-server {server}")
                } else {
                    format!("not connected: {}", text("cause"))
                };
                let feishu = if report["feishu"] == true {
                    "connected"
                } else {
                    "not connected"
                };
                let holes = if holes {
                    "\nthis nats-server has known holes: use 2.11.15, 2.12.6 or newer"
                } else {
                    ""
                };
                format!(
                    "gateway {}, nod {}, up {}\nbus: {url}, {bus}\nFeishu: {feishu}{}\nmachines: {here} connected, {known} known\ntaps: {taps}, {unanswered} of them answered by no machine\ncalls made: {calls}\nin the last minute, of {most} of each kind: {minute}\nrefused: {refused}, put off to keep Feishu's limits: {crowded}{holes}",
                    text("gateway"),
                    text("version"),
                    up.en,
                    connections.1
                )
            }
        }
    }

    /// One line of a gateway's record.
    #[cfg(feature = "team")]
    pub(in crate::cli) fn recorded(self, entry: &crate::team::audit::TeamAuditEntry) -> String {
        use crate::team::audit::TeamEvent;
        let (zh, en) = match entry.what {
            TeamEvent::Invited => ("发出加入用的一行", "a line for joining was given"),
            TeamEvent::Asked => ("机器请求加入", "a machine asked to join"),
            TeamEvent::Joined => ("机器已加入", "a machine joined"),
            TeamEvent::Granted => ("管理员发放了通行证", "a pass was given by hand"),
            TeamEvent::KeptOut => ("所有者拒绝机器加入", "its owner kept a machine out"),
            TeamEvent::Renewed => ("通行证已更新", "a pass was renewed"),
            TeamEvent::Forgotten => ("机器已移除", "a machine was forgotten"),
            TeamEvent::Refused => ("已拒绝", "refused"),
        };
        let parts = [&entry.owner, &entry.machine, &entry.why];
        let mut line = self.pick(zh, en).to_owned();
        for part in parts.into_iter().flatten() {
            line.push_str("  ");
            line.push_str(&visible(part, Shape::Name));
        }
        line
    }

    #[cfg(not(feature = "team"))]
    pub(in crate::cli) fn no_team(self) -> &'static str {
        self.pick(
            "此 nod 构建时未包含团队功能",
            "this nod was built without teams",
        )
    }

    pub(in crate::cli) fn no_bus_url(self, text: &str, why: BadBusUrl) -> String {
        self.made(
            format!("`{text}` 不是可用的总线地址（{why}）"),
            format!("`{text}` is no address of a bus: {why}"),
        )
    }

    pub(in crate::cli) fn already_there(self, file: &Path) -> String {
        self.made(
            format!(
                "`{}` 已存在，未作任何改动：换掉密钥会使所有机器无法连接",
                file.display()
            ),
            format!(
                "`{}` is there already, so nothing was written: other keys would shut every machine out",
                file.display()
            ),
        )
    }

    pub(in crate::cli) fn gateway_made(
        self,
        conf: &Path,
        keys: &Path,
        env: &Path,
        needs_front: bool,
    ) -> String {
        let (conf, keys, env) = (conf.display(), keys.display(), env.display());
        let front = if needs_front {
            self.pick(
                "\n没有给出证书，总线只在本机监听：其他机器要经由能加密的前端连接。",
                "\nwithout a certificate the bus listens on this machine only: others reach it through something that encrypts",
            )
        } else {
            ""
        };
        self.made(
            format!(
                "已写入：\n  {conf}  总线的配置\n  {keys}  团队的密钥，请像应用密钥一样保管\n  {env}  网关的设置，请填入应用的 App ID 与 App Secret\n接下来：\n  nats-server -c {conf}\n  nod --env-file {env} gateway{front}"
            ),
            format!(
                "written:\n  {conf}  the bus' configuration\n  {keys}  the team's keys, to be guarded like the app's secret\n  {env}  the gateway's settings: fill in the app's id and secret\nnow run:\n  nats-server -c {conf}\n  nod --env-file {env} gateway{front}"
            ),
        )
    }

    #[cfg(feature = "team")]
    pub(in crate::cli) fn no_owner(self, text: &str) -> String {
        self.made(
            format!("`{text}` 不是 open id（`ou_` 加小写字母与数字）"),
            format!("`{text}` is no open id: `ou_` and small letters and digits"),
        )
    }

    #[cfg(feature = "team")]
    pub(in crate::cli) fn no_key(self, why: BadKey) -> String {
        self.made(
            format!("这不是机器的公钥，应为 `nod join` 显示的 `U…`（{why}）"),
            format!("this is no machine's key, the `U…` that `nod join` shows: {why}"),
        )
    }

    pub(in crate::cli) fn secret_here(self) -> &'static str {
        self.pick(
            "本机的设置中有应用密钥：团队的机器不持有它，请先去掉 `FEISHU_APP_SECRET`",
            "this machine's settings hold an app's secret, which a team's machine has not: take `FEISHU_APP_SECRET` out first",
        )
    }

    pub(in crate::cli) fn ask_for_a_pass(self, key: &str) -> String {
        let command = format!("nod gateway pass --owner ou_… --key {key}");
        self.made(
            format!(
                "向机器人私聊发送 `/join`，并运行它回复的命令；或请网关的管理员运行 `{command}`，再用它输出的一行运行 `nod join`"
            ),
            format!(
                "write `/join` to the bot in private and run what it answers; or have whoever runs the gateway run `{command}`, then run `nod join` with the line it prints"
            ),
        )
    }

    pub(in crate::cli) fn join_question(self, owner: &str, bus: &BusUrl) -> String {
        self.made(
            format!("加入总线 {bus} 上的团队：本机 Agent 的请求将由 {owner} 决定。加入？"),
            format!("join the team on the bus {bus}: {owner} would decide what this machine's agents ask. Join?"),
        )
    }

    pub(in crate::cli) fn replace_question(self, owner: &str, bus: &BusUrl) -> String {
        self.made(
            format!("本机已有 {owner} 的通行证（总线 {bus}），它将被覆盖。确定要替换？"),
            format!("this machine has a pass of {owner} on the bus {bus}, which would be overwritten. Really replace it?"),
        )
    }

    pub(in crate::cli) fn agree_by_flags(self, flags: &str) -> String {
        self.made(
            format!("在终端中运行；或确认以上内容后加上 `{flags}`"),
            format!("run it at a terminal, or add `{flags}` once you have read this"),
        )
    }

    pub(in crate::cli) fn nothing_joined(self) -> &'static str {
        self.pick("未加入，什么都没有改变", "not joined, nothing was changed")
    }

    pub(in crate::cli) fn no_member(self, why: BadMembership) -> String {
        match (self.0, why) {
            (Lang::En, _) => format!("this line makes no member: {why}"),
            (Lang::Zh, BadMembership::NoLine) => "这不是网关给出的一行".to_owned(),
            (Lang::Zh, BadMembership::NoFile) => "这不是 `nod join` 写入的内容".to_owned(),
            (Lang::Zh, BadMembership::OtherKey) => "其中的通行证属于另一台机器的密钥".to_owned(),
            (Lang::Zh, BadMembership::BadUrl) => "其中的总线地址不可用".to_owned(),
            (Lang::Zh, BadMembership::NoGateway) => "其中没有网关的公钥".to_owned(),
        }
    }

    #[cfg(feature = "team")]
    pub(in crate::cli) fn compare(self, fingerprint: &str) -> String {
        // The card speaks the gateway's language.
        let (zh, en) = (LET_IN.get(Lang::Zh), LET_IN.get(Lang::En));
        self.made(
            format!(
                "指纹：{fingerprint}\n你在飞书中收到了一张卡片：指纹相同时，请点击“{zh}”（{en}）"
            ),
            format!(
                "fingerprint: {fingerprint}\nyou have got a card in Feishu: if it shows the same one, tap \"{en}\" ({zh})"
            ),
        )
    }

    #[cfg(feature = "team")]
    pub(in crate::cli) fn not_joined(self, why: &crate::bus::knock::NotJoined) -> String {
        use crate::bus::knock::NotJoined;
        use crate::bus::lobby::No;
        let (zh, en) = match why {
            NotJoined::Over | NotJoined::Refused(No::Unasked) => (
                "这一行的有效时间已过：请重新发送 /join".to_owned(),
                "the line's time is over: write /join again".to_owned(),
            ),
            NotJoined::NoBus(why) => (
                format!("无法连接总线：{}", why.zh),
                format!("the bus can't be reached: {}", why.en),
            ),
            NotJoined::Silent => (
                "团队的网关没有回应，请稍后重试".to_owned(),
                "no gateway of the team answers: try again later".to_owned(),
            ),
            NotJoined::Refused(No::Owner) => (
                "所有者拒绝了".to_owned(),
                "its owner keeps it out".to_owned(),
            ),
            NotJoined::Refused(No::Used) => (
                "这一行已让另一台机器加入：请重新发送 /join".to_owned(),
                "the line let another machine in: write /join again".to_owned(),
            ),
            NotJoined::Refused(No::Many) => (
                "太多机器用这一行请求加入：请重新发送 /join".to_owned(),
                "too many machines ask with this line: write /join again".to_owned(),
            ),
        };
        self.made(
            format!("本机没有加入：{zh}"),
            format!("this machine did not join: {en}"),
        )
    }

    /// `again` where only the pass is new.
    pub(in crate::cli) fn joined(self, place: &MachinePlace, url: &BusUrl, again: bool) -> String {
        let owner = &place.owner;
        match (self.0, again) {
            (Lang::Zh, false) => format!(
                "本机已加入团队：所有者 {owner}，总线 {url}\n下一步：`nod setup` 设置 hook 和后台服务；已经设置过的话，用 `nod service restart` 重新启动守护进程"
            ),
            (Lang::En, false) => format!(
                "this machine is a member now: its owner is {owner}, its bus {url}\nnext: `nod setup` sets up the hooks and the service; where that is done, `nod service restart` starts the daemon anew"
            ),
            (Lang::Zh, true) => format!(
                "本机有了新的通行证：所有者 {owner}，总线 {url}\n正在运行的守护进程会自行使用它"
            ),
            (Lang::En, true) => format!(
                "this machine has a new pass: its owner is {owner}, its bus {url}\na daemon that runs goes on with it by itself"
            ),
        }
    }
}
