//! The scenes in which a hook of Claude Code asks: permissions, questions, a
//! plan, and everything that can become of them.

use std::path::Path;

use serde_json::json;

use super::{Actor, Prints, Scene, SceneOpening, SceneStep};
use crate::approvals::request::AskingAgent;
use crate::cards::Action;
use crate::cli::demo::agent::DemoCall;
use crate::cli::demo::stage::Staging;
use crate::cli::wording::Words;
use crate::text::{Lang, Text};
use crate::wording::{Toast, ending, question, terminal};

static PLAN: Text = Text::new(
    "1. 价格改为整数的分\n2. 增加货币一列\n3. 迁移订单，从最新的开始\n4. 下个版本删除旧列",
    "1. Move the prices to integer cents\n2. Add a column for the currency\n3. Migrate the orders, newest first\n4. Remove the old column in the next release",
);

pub(super) fn bash(
    command: &str,
    (zh, en): (&'static str, &'static str),
    lang: Lang,
) -> SceneOpening {
    let description = Words(lang).pick(zh, en);
    SceneOpening::Call(DemoCall {
        tool: "Bash",
        input: json!({"command": command, "description": description}),
    })
}

/// They allow it with a tap, and the card shows it.
pub(super) fn allowed_by(actor: Actor) -> Vec<SceneStep> {
    vec![
        SceneStep::Tap(actor, Action::Allow, Toast::ALLOWED),
        SceneStep::Prints(Prints::Allow),
        SceneStep::Ends(&ending::ALLOWED),
    ]
}

pub(super) fn allow(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "allow",
        title: Text::new("批准运行", "Allow once"),
        story: Text::new(
            "Claude Code 想运行测试，它的 hook 正在等你决定。",
            "Claude Code wants to run the tests; its hook waits for you.",
        ),
        hint: Text::new(
            "看清命令，点“批准运行”。",
            "Read the command, then tap “Allow once”.",
        ),
        opening: bash("npm test", ("运行单元测试", "Run the unit tests"), lang),
        staging,
        steps: allowed_by(Actor::Owner),
        run: "Test Files  3 passed (3)\nTests      42 passed (42)",
    }
}

pub(super) fn always(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "always",
        title: Text::new("始终允许", "Always allow"),
        story: Text::new(
            "卡片上写着将留下的确切规则；之后完全相同的命令不再询问。",
            "The card shows the exact rule a tap leaves; the very same command then passes unasked.",
        ),
        hint: Text::new(
            "点“始终允许”并确认。之后可以用“撤销规则”收回。",
            "Tap “Always allow” and confirm. “Undo the rule” takes it back later.",
        ),
        opening: bash("npm run build", ("构建商店", "Build the shop"), lang),
        staging,
        steps: vec![
            SceneStep::Tap(Actor::Owner, Action::Always, Toast::ALLOWED_ALWAYS),
            SceneStep::Prints(Prints::AllowWithRule("npm run build")),
            SceneStep::Ends(&ending::ALLOWED_ALWAYS),
            SceneStep::PassesByRule,
            SceneStep::Edited(&ending::ALLOWED_ALWAYS),
            SceneStep::Tap(Actor::Owner, Action::Undo, Toast::RULE_UNDONE),
            SceneStep::Ends(&ending::UNDONE),
            SceneStep::AsksAgain,
        ],
        run: "dist/shop.js   48.2 kB\nbuilt in 1.31s",
    }
}

pub(super) fn deny(staging: Staging, lang: Lang) -> Scene {
    let reason = Text::new("先开一个合并请求", "Open a pull request first");
    Scene {
        name: "deny",
        title: Text::new("拒绝并说明理由", "Deny with a reason"),
        story: Text::new(
            "强制推送：卡片标出危险，批准前还会再问一次。",
            "A forced push: the card names the danger and asks twice before it allows.",
        ),
        hint: Text::new(
            "展开卡片，写下理由，点“按此理由拒绝”；Claude 会读到它。",
            "Unfold the card, type a reason and tap “Deny with this reason”; Claude will read it.",
        ),
        opening: bash(
            "git push --force origin main",
            ("发布改写后的历史", "Publish the rewritten history"),
            lang,
        ),
        staging,
        steps: vec![
            SceneStep::DenyWith(reason.clone()),
            SceneStep::Prints(Prints::Deny(Some(reason))),
            SceneStep::Ends(&ending::DENIED),
        ],
        run: "+ 9f2c1ab...4e1d0c7 main -> main (forced update)",
    }
}

pub(super) fn reply(staging: Staging, project: &Path) -> Scene {
    let text = Text::new("用分，不要用浮点数", "Use cents, not floats");
    Scene {
        name: "reply",
        title: Text::new("用回复拒绝", "Deny by replying"),
        story: Text::new(
            "修改文件时，卡片显示差异。",
            "For an edit the card shows the difference.",
        ),
        hint: Text::new(
            "点卡片上方的“回复”，写一句话发送：这就是带理由的拒绝。",
            "Press “Reply” above the card and send a sentence: that denies with your reason.",
        ),
        opening: SceneOpening::Call(DemoCall {
            tool: "Edit",
            input: json!({
                "file_path": project.join("src/price.ts"),
                "old_string": "return price;",
                "new_string": "return price * 1.19;",
            }),
        }),
        staging,
        steps: vec![
            SceneStep::Reply(text.clone()),
            SceneStep::Prints(Prints::Deny(Some(text))),
            SceneStep::Ends(&ending::DENIED),
            SceneStep::Says(terminal::denied_by_reply(
                AskingAgent::default().kind().short(),
            )),
        ],
        run: "Updated src/price.ts with 1 addition and 1 removal",
    }
}

pub(super) fn question(staging: Staging, lang: Lang) -> Scene {
    let say = |zh, en| Words(lang).pick(zh, en);
    let option =
        |label: &str, description: &str| json!({"label": label, "description": description});
    let (metrics, tests) = (say("监控指标", "Metrics"), say("测试", "Tests"));
    Scene {
        name: "question",
        title: Text::new("Claude 有问题", "Claude has questions"),
        story: Text::new(
            "Claude 需要你拿主意；选项、多选和自己的话都可以。",
            "Claude needs your choice: one option, several, or words of your own.",
        ),
        hint: Text::new("选好答案，点“提交”。", "Choose your answers and submit."),
        opening: SceneOpening::Call(DemoCall {
            tool: "AskUserQuestion",
            input: json!({"questions": [
                {
                    "question": say("会话缓存存在哪里？", "Which store should the session cache use?"),
                    "header": say("缓存", "Cache"),
                    "multiSelect": false,
                    "options": [
                        option("Redis", say("所有副本共享", "shared by all replicas")),
                        option("SQLite", say("重启后还在", "survives restarts")),
                    ],
                },
                {
                    "question": say("还要做什么？", "What else should I do?"),
                    "header": say("附加", "Extras"),
                    "multiSelect": true,
                    "options": [
                        option(metrics, say("统计命中与未命中", "count hits and misses")),
                        option(say("文档", "Docs"), say("给运维的说明", "a page for operators")),
                        option(tests, say("每个分支一个", "one for each branch")),
                    ],
                },
            ]}),
        }),
        staging,
        steps: vec![
            SceneStep::Answer(
                "submit_answer",
                vec![("q0", json!("o1")), ("q1", json!(["o0", "o2"]))],
            ),
            SceneStep::Prints(Prints::Answers(vec![
                "SQLite".to_owned(),
                format!("{metrics}, {tests}"),
            ])),
            SceneStep::Ends(&ending::ANSWERED),
        ],
        run: "",
    }
}

pub(super) fn plan(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "plan",
        title: Text::new("批准计划", "Approve a plan"),
        story: Text::new(
            "Claude 动手之前，先把计划给你看。",
            "Before Claude touches anything, it shows you its plan.",
        ),
        hint: Text::new(
            "点“批准计划”；要改就点“继续完善”，改什么可展开卡片写下。",
            "Tap “Approve the plan” or “Keep planning”; what to change goes into the fold.",
        ),
        opening: SceneOpening::Call(DemoCall {
            tool: "ExitPlanMode",
            input: json!({"plan": PLAN.get(lang)}),
        }),
        staging,
        steps: vec![
            SceneStep::Choose(&question::APPROVE_PLAN),
            SceneStep::Prints(Prints::Plan),
            SceneStep::Ends(&ending::ANSWERED),
        ],
        run: "",
    }
}

pub(super) fn interrupt(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "interrupt",
        title: Text::new("拒绝并中断", "Deny and interrupt"),
        story: Text::new(
            "Claude 走错了方向，想批量删除。",
            "Claude is on the wrong track and wants to delete in bulk.",
        ),
        hint: Text::new(
            "点“拒绝并中断”：这一轮立即停止。",
            "Tap “Deny and interrupt”: its turn stops at once.",
        ),
        opening: bash(
            "rm -rf src/legacy dist",
            ("删除旧代码", "Remove the old code"),
            lang,
        ),
        staging,
        steps: vec![
            SceneStep::Tap(Actor::Owner, Action::Interrupt, Toast::INTERRUPTED),
            SceneStep::Prints(Prints::Interrupt),
            SceneStep::Ends(&ending::INTERRUPTED),
        ],
        run: "(No output)",
    }
}

pub(super) fn stranger(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "stranger",
        title: Text::new("不在名单上的同事", "A colleague who may not decide"),
        story: Text::new(
            "卡片发到群里，人人看得到，只有名单上的人能决定。",
            "The card goes to a group: everybody sees it, only approvers decide.",
        ),
        hint: Text::new(
            "先以“同事”的身份点批准，再换回“你”来点。",
            "Switch to “Colleague” and tap allow; then be yourself again and tap.",
        ),
        opening: bash(
            "docker compose up -d",
            ("启动服务", "Start the services"),
            lang,
        ),
        staging,
        steps: [
            vec![SceneStep::Tap(
                Actor::Stranger,
                Action::Allow,
                Toast::NOT_AN_APPROVER,
            )],
            allowed_by(Actor::Owner),
        ]
        .concat(),
        run: "Container shop-db-1   Started\nContainer shop-web-1  Started",
    }
}

pub(super) fn crash(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "crash",
        title: Text::new("守护进程崩溃", "The daemon crashes"),
        story: Text::new(
            "请求等待时，守护进程被 kill -9 后重启；hook 自己接了回来。",
            "While the request waits the daemon is killed with -9 and started again; the hook comes back by itself.",
        ),
        hint: Text::new(
            "先按终端上的“杀掉守护进程”，再在同一张卡片上点“批准运行”。",
            "Press “Kill the daemon” on the terminal, then tap “Allow once” on the same card.",
        ),
        opening: bash("npm run lint", ("检查代码风格", "Check the style"), lang),
        staging,
        steps: [vec![SceneStep::Befalls], allowed_by(Actor::Owner)].concat(),
        run: "0 problems",
    }
}

pub(super) fn terminal(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "terminal",
        title: Text::new("在终端回答", "Answered in the terminal"),
        story: Text::new(
            "终端的对话框和卡片同时等着，谁先答算谁的。",
            "Claude Code's own dialog and the card wait side by side; the first answer counts.",
        ),
        hint: Text::new(
            "在终端里选“是”，看卡片自己收回。",
            "Choose Yes in the terminal and watch the card withdraw.",
        ),
        opening: bash("npm ci", ("安装依赖", "Install the dependencies"), lang),
        staging,
        steps: vec![
            SceneStep::TerminalYes,
            SceneStep::Prints(Prints::Nothing),
            SceneStep::Ends(&ending::TERMINAL_YES),
        ],
        run: "added 312 packages in 4s",
    }
}

pub(super) fn gone(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "gone",
        title: Text::new("在终端取消", "Cancelled in the terminal"),
        story: Text::new(
            "在终端按 Esc，hook 随即结束，卡片立刻失效：没有人等的事，谁也批准不了。",
            "Esc in the terminal ends the hook, and the card says at once that it no longer waits: nobody can allow what nobody waits for.",
        ),
        hint: Text::new("在终端里选“否”。", "Choose No in the terminal."),
        opening: bash("npm publish", ("发布软件包", "Publish the package"), lang),
        staging,
        steps: vec![
            SceneStep::TerminalEsc,
            SceneStep::Prints(Prints::Nothing),
            SceneStep::Ends(&ending::HOOK_GONE),
        ],
        run: "+ shop@1.4.0",
    }
}

pub(super) fn timeout(staging: Staging, lang: Lang) -> Scene {
    Scene {
        name: "timeout",
        title: Text::new("没有人回答", "Nobody answers"),
        story: Text::new(
            "这次只等几秒（平时五分钟）。到时不算拒绝，由终端接着问。",
            "This one waits a few seconds (five minutes as a rule). Then it is no denial: the terminal asks on.",
        ),
        hint: Text::new("什么也别点，等它过期。", "Tap nothing and let it run out."),
        opening: bash(
            "npm run deploy",
            ("部署到预发布环境", "Deploy to staging"),
            lang,
        ),
        staging,
        steps: vec![
            SceneStep::Nobody,
            SceneStep::Prints(Prints::Nothing),
            SceneStep::Ends(&ending::TIMED_OUT),
        ],
        run: "Deployed to staging",
    }
}
