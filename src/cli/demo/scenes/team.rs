//! The scenes of a team: laptops without the app's secret, gateways that bring
//! what belongs to them, and what happens when one of them is gone.

use super::hooks::{self, allowed_by, bash};
use super::{Actor, Prints, Scene, SceneStep};
use crate::cards::Action;
use crate::cli::demo::stage::Staging;
use crate::text::{Lang, Text};
use crate::wording::{Toast, ending, team};

pub(super) fn desk(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "desk",
        title: Text::new("没有应用密钥的电脑", "A laptop without the app's secret"),
        story: Text::new(
            "你的电脑 desk 只有一张通行证：卡片经总线到网关，再到飞书；点击原路回来，由 desk 自己判断。",
            "Your laptop desk has only a pass: its card goes over the bus to a gateway and on to Feishu, the tap comes back the same way, and desk judges it.",
        ),
        hint: Text::new("点“批准运行”。", "Tap “Allow once”."),
        opening: bash("npm test", ("运行单元测试", "Run the unit tests"), lang),
        staging,
        steps: allowed_by(Actor::Owner),
        run: "Test Files  3 passed (3)\nTests      42 passed (42)",
    }
}

pub(super) fn travel(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "travel",
        title: Text::new(
            "另一台电脑，另一个网关",
            "Another laptop, the other gateway",
        ),
        story: Text::new(
            "这次是你的第二台电脑 travel 在问，卡片上有它的名字。飞书把每次点击交给其中一个网关，哪个都能找到它。",
            "This time travel asks, your second laptop; the card names it. Feishu hands each tap to one of the gateways, and either finds the laptop.",
        ),
        hint: Text::new("点“拒绝运行”。", "Tap “Deny”."),
        opening: bash(
            "npm run deploy",
            ("部署到预发布环境", "Deploy to staging"),
            lang,
        ),
        staging,
        steps: vec![
            SceneStep::Tap(Actor::Owner, Action::Deny, Toast::DENIED),
            SceneStep::Prints(Prints::Deny(None)),
            SceneStep::Ends(&ending::DENIED),
            SceneStep::ByBothGateways,
        ],
        run: "Deployed to staging",
    }
}

pub(super) fn loft(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "loft",
        title: Text::new("同事的电脑", "Your colleague's laptop"),
        story: Text::new(
            "同事的电脑 loft 用的是同一个应用：它的卡片只到同事的手机上，你看不到。",
            "Your colleague's laptop loft uses the same app: its card comes to your colleague's phone alone, and you do not see it.",
        ),
        hint: Text::new(
            "现在是同事的手机：点“批准运行”。",
            "This is your colleague's phone now: tap “Allow once”.",
        ),
        opening: bash("cargo test", ("运行单元测试", "Run the unit tests"), lang),
        staging,
        steps: allowed_by(Actor::Stranger),
        run: "test result: ok. 42 passed; 0 failed",
    }
}

pub(super) fn colleague(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "colleague",
        title: Text::new("同事点了你的卡片", "A colleague taps your card"),
        story: Text::new(
            "desk 的卡片发到群里，两个人都看得到。网关只管送达；谁能决定，由 desk 判断。",
            "The card of desk goes to a group that both see. Gateways only deliver; who may decide is for desk to judge.",
        ),
        ..hooks::stranger(staging, lang)
    }
}

pub(super) fn gateway(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "gateway",
        title: Text::new("网关被杀掉", "A gateway is killed"),
        story: Text::new(
            "请求等待时，一个网关被 kill -9。网关不保存任何东西：另一个接着送达点击、更新卡片。",
            "While the request waits, one gateway is killed with -9. Gateways keep nothing: the other delivers the tap and edits the card.",
        ),
        hint: Text::new(
            "先按终端上的“杀掉一个网关”，再在同一张卡片上点“批准运行”。",
            "Press “Kill a gateway” on the terminal, then tap “Allow once” on the same card.",
        ),
        opening: bash("npm run lint", ("检查代码风格", "Check the style"), lang),
        staging,
        steps: vec![
            SceneStep::Befalls,
            SceneStep::Tap(Actor::Owner, Action::Allow, Toast::ALLOWED),
            SceneStep::Prints(Prints::Allow),
            SceneStep::Edited(&ending::ALLOWED),
            SceneStep::Befalls,
        ],
        run: "0 problems",
    }
}

pub(super) fn sleep(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "sleep",
        title: Text::new("电脑休眠了", "A laptop sleeps"),
        story: Text::new(
            "travel 休眠时你点了批准。它醒来后才收到，但太晚了：丢弃并告诉你，重新点一次才算数。",
            "You allow while travel sleeps. It hears of that when it wakes, too late: the tap is dropped and you are told; only a new one counts.",
        ),
        hint: Text::new(
            "按终端上的“让它休眠”，点“批准运行”，过六秒再“唤醒它”；收到消息后重新点。",
            "Press “Put it to sleep” on the terminal, tap “Allow once”, wait six seconds and press “Wake it”; once you are told, tap again.",
        ),
        opening: bash("npm run build", ("构建商店", "Build the shop"), lang),
        staging,
        steps: vec![
            SceneStep::Befalls,
            SceneStep::Tap(Actor::Owner, Action::Allow, Toast::STILL_CHECKING),
            SceneStep::SleepsOn,
            SceneStep::Befalls,
            SceneStep::Says(team::TAPPED_TOO_LATE.clone()),
            SceneStep::TapAgain(Actor::Owner, Action::Allow, Toast::ALLOWED),
            SceneStep::Prints(Prints::Allow),
            SceneStep::Ends(&ending::ALLOWED),
        ],
        run: "dist/shop.js   48.2 kB\nbuilt in 1.31s",
    }
}
