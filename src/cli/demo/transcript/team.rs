//! What the tour of a team says besides: who is on the stage, what befalls
//! machines and gateways, and which gateway a tap came by.

use std::path::Path;

use super::{Transcript, say};
use crate::cli::demo::stage::Happened;
use crate::cli::output;
use crate::text::{Lang, Text};

static OPENING: Text = Text::new(
    "nod demo --team：本机上的飞书、一条总线、两个真正的网关、两个人的三台电脑（各有真正的守护进程和 hook）；没有任何数据离开这台机器。",
    "nod demo --team: a local Feishu, a bus, two real gateways, and three laptops of two people with real daemons and hooks; nothing leaves this machine.",
);
static BUS: Text = Text::new("总线", "bus");
static OWN_BUS: Text = Text::new(
    "nod 自带的（PATH 中没有能启动的 nats-server）",
    "the one in nod itself (no nats-server on PATH that starts)",
);
static GATEWAYS: Text = Text::new("网关", "gateways");
static SECRET: Text = Text::new(
    "A 和 B，应用密钥只在它们那里",
    "A and B, who alone have the app's secret",
);
static YOURS: Text = Text::new("你的电脑", "your laptops");
static THEIRS: Text = Text::new("同事的电脑", "colleague's");
static GATEWAY: Text = Text::new("网关", "gateway");
static BACK: Text = Text::new("两个都在了", "both are there again");
static LAPTOP: Text = Text::new("电脑", "laptop");
static ASLEEP: Text = Text::new("休眠了（SIGSTOP）", "falls asleep (SIGSTOP)");
static AWAKE: Text = Text::new("醒来", "wakes up");
static DAEMON: Text = Text::new("守护进程", "daemon");
static CRASHED: Text = Text::new(
    "kill -9 后重新启动，请求还在等",
    "killed with -9 and started again; the request still waits",
);
static VIA: Text = Text::new("经过", "comes by");

/// `server` is the NATS server that carries all, where there is one.
pub(in crate::cli::demo) fn opening(lang: Lang, server: Option<&Path>) {
    output::line(OPENING.get(lang));
    let server = server.map(|program| program.display().to_string());
    let server = server.unwrap_or_else(|| OWN_BUS.get(lang).to_owned());
    say(BUS.get(lang), &server);
    say(GATEWAYS.get(lang), SECRET.get(lang));
    say(YOURS.get(lang), "desk, travel");
    say(THEIRS.get(lang), "loft");
}

impl Transcript {
    pub(in crate::cli::demo) fn happened(&self, what: Happened) {
        let (label, text) = match what {
            Happened::Crashed => (&DAEMON, CRASHED.clone()),
            Happened::GatewayKilled(name) => (&GATEWAY, killed(name)),
            Happened::GatewayBack => (&GATEWAY, BACK.clone()),
            Happened::FellAsleep => (&LAPTOP, ASLEEP.clone()),
            Happened::Woke => (&LAPTOP, AWAKE.clone()),
        };
        say(self.word(label), text.get(self.lang));
    }

    /// Which gateway an event came by, where it came by one.
    pub(super) fn via(&self, connection: Option<u64>) {
        let name = connection.and_then(|id| self.gateways.get(&id));
        if let Some(name) = name {
            let gateway = self.word(&GATEWAY);
            say(self.word(&VIA), &format!("{gateway} {name}"));
        }
    }
}

fn killed(name: &str) -> Text {
    Text::made(
        format!("{name} 被 kill -9，另一个继续"),
        format!("{name} is killed with -9; the other goes on"),
    )
}
