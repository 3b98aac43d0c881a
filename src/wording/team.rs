//! What a gateway says in a chat.

use crate::text::Text;

pub static NO_MACHINE: Text = Text::new(
    "你没有已连接的机器，这条消息没有送达任何地方。发送 /join 可添加一台。",
    "None of your machines is connected, so this message went nowhere. Write /join to add one.",
);

pub static TAPPED_TOO_LATE: Text = Text::new(
    "刚才的点击送达过晚，未生效：请在卡片上重新点击。",
    "A tap on this card arrived too late and was not used: tap again.",
);

pub static TEAM: Text = Text::new("团队", "Team");
pub static GATEWAY: Text = Text::new("nod 网关", "nod gateway");
pub static MACHINES: Text = Text::new("我的机器", "Your machines");
pub static NO_MACHINES: Text = Text::new(
    "网关没有见过你的任何机器。发送 /join 加入一台。",
    "The gateway has seen none of your machines. Write /join to add one.",
);
pub static ONLINE: Text = Text::new("在线", "online");
pub static SILENT: Text = Text::new(
    "已连接但没有回应，可能在休眠",
    "connected but silent, perhaps asleep",
);
pub static UNSURE: Text = Text::new("现在无法得知", "nobody knows right now");
pub static FORGET: Text = Text::new("移除", "Forget");
pub static FORGET_SURE: Text = Text::new("移除这台机器？", "Forget this machine?");
pub static FORGET_TITLE: Text = Text::new("移除机器", "Forget a machine");
pub static FORGOTTEN_TITLE: Text = Text::new("已移除机器", "Machine forgotten");
pub static ASK_ANEW: Text = Text::new(
    "这张卡片已过期：请重新发送命令",
    "This card is too old: send the command again",
);
pub static NOT_YOURS: Text = Text::new(
    "只有这台机器的所有者可以这样做",
    "Only the machine's owner can do that",
);

pub static JOIN_TITLE: Text = Text::new("有机器请求加入", "A machine asks to join");
pub static JOINED_TITLE: Text = Text::new("机器已加入", "Machine joined");
pub static KEPT_OUT_TITLE: Text = Text::new("已拒绝机器加入", "Machine kept out");
pub static LET_IN: Text = Text::new("允许加入", "Let it in");
pub static KEEP_OUT: Text = Text::new("拒绝", "Keep it out");
pub static NOT_ME: Text = Text::new(
    "不是你在操作，或指纹不一致？请拒绝，这一行命令随即作废。",
    "Not you, or another fingerprint? Keep it out: the line then counts for nothing.",
);
pub static LINE_USED: Text = Text::new(
    "这一行命令已经用过：请重新发送 /join",
    "This line was used already: write /join again",
);

/// The line, to be pasted as it is.
pub fn join_with(line: &str, minutes: i64) -> Text {
    Text::made(
        format!(
            "在要加入的机器上运行下面的命令（{minutes} 分钟内有效，只能让你自己的一台机器加入），再核对指纹并点击：\nnod join {line}"
        ),
        format!(
            "Run this on the machine that is to join (it counts for {minutes} minutes, for one machine of your own), then compare the fingerprint and tap:\nnod join {line}"
        ),
    )
}

pub fn wants_to_join(name: &str, user: &str, version: &str, fingerprint: &str) -> Text {
    Text::made(
        format!(
            "机器 {name}（用户 {user}，nod {version}）\n指纹 {fingerprint}\n只有当终端中显示同样的指纹时才允许。"
        ),
        format!(
            "Machine {name} (user {user}, nod {version})\nFingerprint {fingerprint}\nLet it in only if its terminal shows the same one."
        ),
    )
}

pub fn joined(name: &str) -> Text {
    Text::made(format!("{name} 已加入"), format!("{name} joined"))
}

pub fn kept_out(name: &str) -> Text {
    Text::made(
        format!("{name} 没有加入，这一行命令已作废"),
        format!("{name} did not join, and the line counts for nothing any more"),
    )
}

pub fn offline(ago: &Text) -> Text {
    Text::made(
        format!("离线，最后在线：{}", ago.zh),
        format!("offline, last seen {}", ago.en),
    )
}

/// One machine of a list, by its name, how it is, its id and its nod.
pub fn machine(name: &str, state: &Text, id: &str, version: &str) -> Text {
    Text::made(
        format!("{name}：{}\nnod {version} · {id}", state.zh),
        format!("{name}: {}\nnod {version} · {id}", state.en),
    )
}

pub fn forget_what(name: &str) -> Text {
    Text::made(
        format!(
            "{name} 的通行证立即失效，它不再收到点击和消息，等待中的卡片会注明。要再次使用须重新加入。"
        ),
        format!(
            "The pass of {name} stops counting at once: it gets no more taps and messages, and its waiting cards say so. To use it again, join again."
        ),
    )
}

pub fn no_such_machine(name: &str) -> Text {
    Text::made(
        format!("你没有名为 {name} 的机器：发送 /machines 查看。"),
        format!("You have no machine called {name}: write /machines to see them."),
    )
}

/// A forgotten machine's last word on each of its waiting cards.
pub fn closed(name: &str) -> Text {
    Text::made(
        format!("{name} 已被移出团队，这里的点击不再生效：请在它的终端中决定。"),
        format!(
            "{name} was taken out of the team and no tap here counts any more: decide in its terminal."
        ),
    )
}

pub fn forgotten(name: &str) -> Text {
    Text::made(format!("已移除 {name}"), format!("{name} was forgotten"))
}

/// Where the account is somebody else's, gateways are all that refuses it.
pub fn forgotten_here(name: &str) -> Text {
    Text::made(
        format!("{name} 已不受网关服务；总线的账户由他人管理，请其吊销该机器的通行证。"),
        format!(
            "The gateways serve {name} no more. The bus' account is somebody else's: have them revoke its pass as well."
        ),
    )
}

pub fn not_forgotten(name: &str) -> Text {
    Text::made(
        format!("没有移除 {name}：总线没有应允，请重试"),
        format!("{name} was not forgotten: the bus did not take it, try again"),
    )
}
