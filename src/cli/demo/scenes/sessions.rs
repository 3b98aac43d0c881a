//! The scenes in which a person starts Claude Code from the chat.

use super::{Actor, Scene, SceneOpening, SceneStep};
use crate::cards::Action;
use crate::cli::demo::stage::Staging;
use crate::cli::demo::stand_in::{HALF_UP, REVIEW};
use crate::text::Text;
use crate::wording::{Toast, ending, task};

pub(super) fn task(staging: Staging) -> Scene {
    Scene {
        name: "session",
        title: Text::new("在聊天里开一个任务", "A whole task from the chat"),
        story: Text::new(
            "人不在电脑前也能开工：nod 启动 Claude Code，进度、提问和请求都到聊天里来。（演示里由一个替身照剧本演 Claude Code。）",
            "Start work away from your desk: nod runs Claude Code, whose progress, questions and requests come to the chat. (Here a stand-in plays Claude Code from a script.)",
        ),
        hint: Text::new(
            "发送下面的消息，回答它的问题，再批准测试。",
            "Send the message below, answer its question, then allow the tests.",
        ),
        opening: SceneOpening::Words(Text::new(
            "/new 把价格改成按分计算",
            "/new Charge prices in cents",
        )),
        staging,
        steps: vec![
            SceneStep::NextCard,
            SceneStep::Choose(&HALF_UP),
            SceneStep::Ends(&ending::ANSWERED),
            SceneStep::NextCard,
            SceneStep::Tap(Actor::Owner, Action::Allow, Toast::ALLOWED),
            SceneStep::Ends(&ending::ALLOWED),
            SceneStep::TaskEnds(&task::DONE),
            SceneStep::NextCard,
            SceneStep::Ends(&task::ANSWER),
        ],
        run: "",
    }
}

pub(super) fn stop(staging: Staging) -> Scene {
    Scene {
        name: "stop",
        title: Text::new("把任务停下来", "Stop it"),
        story: Text::new(
            "任务跑起来后，进度卡片自己更新；停止只是中断，会话之后还能继续。",
            "While a task runs its card keeps itself up to date. Stopping interrupts it; the session can be continued later.",
        ),
        hint: Text::new(
            "发送下面的消息，看它动起来，再点卡片上的“停止”。",
            "Send the message below, watch it work, then press “Stop” on its card.",
        ),
        opening: SceneOpening::Words(Text::made(
            format!("/new {}", REVIEW.zh),
            format!("/new {}", REVIEW.en),
        )),
        staging,
        steps: vec![
            SceneStep::TaskWorks,
            SceneStep::StopTask,
            SceneStep::TaskEnds(&task::STOPPED),
        ],
        run: "",
    }
}
