//! The scenes of the tour, as data: what the agent wants, what people do, and
//! how each has to end. A new scene is a new entry here.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::agent::Call;
use super::stage::Staging;
use crate::cards::Action;
use crate::wording::{Text, Toast, ending};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Person {
    Owner,
    Stranger,
}

/// One thing that happens in a scene, or has to be true in it.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Somebody taps a button and sees a toast.
    Tap(Person, Action, Toast),
    /// The owner types a reason into the card and denies.
    DenyWith(Text),
    /// The owner answers the card's message with a text.
    Reply(Text),
    /// The owner fills in a question's form and presses the button of this name.
    Answer(&'static str, Vec<(&'static str, Value)>),
    /// Yes in Claude Code's own dialog; the call runs.
    TerminalYes,
    /// Esc in Claude Code's own dialog; the hook is told to go.
    TerminalEsc,
    /// The daemon dies and comes back while the request waits.
    Crash,
    /// Nobody does anything.
    Nobody,
    /// The hook has ended and printed this.
    Prints(Prints),
    /// The card shows how it ended.
    Ends(&'static Text),
    /// Every viewer's card shows it: the edit that follows a tap has come.
    Edited(&'static Text),
    /// The agent makes the same call again, which a rule lets pass.
    PassesByRule,
    /// The same call would have to ask again.
    AsksAgain,
}

#[derive(Debug, Clone)]
pub(super) enum Prints {
    Allow,
    /// Allow, and this rule for Claude Code to write.
    AllowWithRule(&'static str),
    /// Allow, with the person's answers to the questions.
    Answers(Vec<&'static str>),
    /// Allow, with the plan as it was shown.
    Plan,
    /// Deny, and the model is told this.
    Deny(Option<Text>),
    Interrupt,
    /// No decision: the terminal decides.
    Nothing,
}

pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) title: Text,
    /// What happens.
    pub(super) story: Text,
    /// What a visitor may do about it.
    pub(super) hint: Text,
    pub(super) call: Call,
    pub(super) staging: Staging,
    pub(super) steps: Vec<Step>,
    /// Claude Code's own dialog is open and can be answered.
    pub(super) dialog: bool,
}

fn bash(command: &str, description: &str) -> Call {
    Call {
        tool: "Bash",
        input: json!({"command": command, "description": description}),
    }
}

/// All scenes. `short` is how long the one request nobody answers waits.
pub(super) fn all(short: Duration, project: &Path) -> Vec<Scene> {
    let usual = Staging::default();
    let group = Staging {
        group: true,
        ..usual
    };
    let hurried = Staging {
        answer_within: short,
        ..usual
    };
    vec![
        allow(usual),
        always(usual),
        deny(usual),
        reply(usual, project),
        question(usual),
        plan(usual),
        interrupt(usual),
        stranger(group),
        crash(usual),
        terminal(usual),
        gone(usual),
        timeout(hurried),
    ]
}

fn allow(staging: Staging) -> Scene {
    Scene {
        name: "allow",
        title: Text::new("批准一次", "Allow once"),
        story: Text::new(
            "Claude Code 想运行测试，它的钩子正在等你决定。",
            "Claude Code wants to run the tests; its hook waits for you.",
        ),
        hint: Text::new(
            "看清命令，点“批准运行”。",
            "Read the command, then tap “Allow once”.",
        ),
        call: bash("npm test", "Run the unit tests"),
        staging,
        steps: vec![
            Step::Tap(Person::Owner, Action::Allow, Toast::Allowed),
            Step::Prints(Prints::Allow),
            Step::Ends(&ending::ALLOWED),
        ],
        dialog: false,
    }
}

fn always(staging: Staging) -> Scene {
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
        call: bash("npm run build", "Build the shop"),
        staging,
        steps: vec![
            Step::Tap(Person::Owner, Action::Always, Toast::AllowedAlways),
            Step::Prints(Prints::AllowWithRule("npm run build")),
            Step::Ends(&ending::ALLOWED_ALWAYS),
            Step::PassesByRule,
            Step::Edited(&ending::ALLOWED_ALWAYS),
            Step::Tap(Person::Owner, Action::Undo, Toast::RuleUndone),
            Step::Ends(&ending::UNDONE),
            Step::AsksAgain,
        ],
        dialog: false,
    }
}

fn deny(staging: Staging) -> Scene {
    let reason = Text::new("先开一个合并请求", "Open a pull request first");
    Scene {
        name: "deny",
        title: Text::new("拒绝并说明理由", "Deny with a reason"),
        story: Text::new(
            "强制推送：卡片标出危险，批准前还会再问一次。",
            "A forced push: the card names the danger and asks twice before it allows.",
        ),
        hint: Text::new(
            "写下理由，点“拒绝运行”；Claude 会读到它。",
            "Type a reason and tap “Deny”; Claude will read it.",
        ),
        call: bash(
            "git push --force origin main",
            "Publish the rewritten history",
        ),
        staging,
        steps: vec![
            Step::DenyWith(reason.clone()),
            Step::Prints(Prints::Deny(Some(reason))),
            Step::Ends(&ending::DENIED),
        ],
        dialog: false,
    }
}

fn reply(staging: Staging, project: &Path) -> Scene {
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
        call: Call {
            tool: "Edit",
            input: json!({
                "file_path": project.join("src/price.ts"),
                "old_string": "return price;",
                "new_string": "return price * 1.19;",
            }),
        },
        staging,
        steps: vec![
            Step::Reply(text.clone()),
            Step::Prints(Prints::Deny(Some(text))),
            Step::Ends(&ending::DENIED),
        ],
        dialog: false,
    }
}

fn question(staging: Staging) -> Scene {
    let option =
        |label: &str, description: &str| json!({"label": label, "description": description});
    Scene {
        name: "question",
        title: Text::new("Claude 有问题", "Claude has questions"),
        story: Text::new(
            "Claude 需要你拿主意；选项、多选和自己的话都可以。",
            "Claude needs your choice: one option, several, or words of your own.",
        ),
        hint: Text::new("选好答案，点“提交”。", "Choose your answers and submit."),
        call: Call {
            tool: "AskUserQuestion",
            input: json!({"questions": [
                {
                    "question": "Which store should the session cache use?",
                    "header": "Cache",
                    "multiSelect": false,
                    "options": [
                        option("Redis", "shared by all replicas"),
                        option("SQLite", "survives restarts"),
                    ],
                },
                {
                    "question": "What else should I do?",
                    "header": "Extras",
                    "multiSelect": true,
                    "options": [
                        option("Metrics", "count hits and misses"),
                        option("Docs", "a page for operators"),
                        option("Tests", "one for each branch"),
                    ],
                },
            ]}),
        },
        staging,
        steps: vec![
            Step::Answer(
                "submit_answer",
                vec![("q0", json!("o1")), ("q1", json!(["o0", "o2"]))],
            ),
            Step::Prints(Prints::Answers(vec!["SQLite", "Metrics, Tests"])),
            Step::Ends(&ending::ANSWERED),
        ],
        dialog: false,
    }
}

fn plan(staging: Staging) -> Scene {
    Scene {
        name: "plan",
        title: Text::new("批准计划", "Approve a plan"),
        story: Text::new(
            "Claude 动手之前，先把计划给你看。",
            "Before Claude touches anything, it shows you its plan.",
        ),
        hint: Text::new(
            "点“批准计划”，或写下要改的再点“继续完善”。",
            "Tap “Approve the plan”, or say what to change and let it keep planning.",
        ),
        call: Call {
            tool: "ExitPlanMode",
            input: json!({"plan": "1. Move the prices to integer cents\n2. Add a column for the currency\n3. Migrate the orders, newest first\n4. Remove the old column in the next release"}),
        },
        staging,
        steps: vec![
            Step::Answer("submit_approve_plan", Vec::new()),
            Step::Prints(Prints::Plan),
            Step::Ends(&ending::ANSWERED),
        ],
        dialog: false,
    }
}

fn interrupt(staging: Staging) -> Scene {
    Scene {
        name: "interrupt",
        title: Text::new("拒绝并中断", "Deny and interrupt"),
        story: Text::new(
            "Claude 走错了方向，想批量删除。",
            "Claude is on the wrong track and wants to delete in bulk.",
        ),
        hint: Text::new(
            "点“拒绝并中断”并确认：这一轮立即停止。",
            "Tap “Deny and interrupt” and confirm: its turn stops at once.",
        ),
        call: bash("rm -rf src/legacy dist", "Remove the old code"),
        staging,
        steps: vec![
            Step::Tap(Person::Owner, Action::Interrupt, Toast::Interrupted),
            Step::Prints(Prints::Interrupt),
            Step::Ends(&ending::INTERRUPTED),
        ],
        dialog: false,
    }
}

fn stranger(staging: Staging) -> Scene {
    Scene {
        name: "stranger",
        title: Text::new("群里的陌生人", "A stranger in the group"),
        story: Text::new(
            "卡片发到群里，人人看得到，只有名单上的人能决定。",
            "The card goes to a group: everybody sees it, only approvers decide.",
        ),
        hint: Text::new(
            "先以“同事”的身份点批准，再换回“你”来点。",
            "Switch to “Colleague” and tap allow; then be yourself again and tap.",
        ),
        call: bash("docker compose up -d", "Start the services"),
        staging,
        steps: vec![
            Step::Tap(Person::Stranger, Action::Allow, Toast::NotAnApprover),
            Step::Tap(Person::Owner, Action::Allow, Toast::Allowed),
            Step::Prints(Prints::Allow),
            Step::Ends(&ending::ALLOWED),
        ],
        dialog: false,
    }
}

fn crash(staging: Staging) -> Scene {
    Scene {
        name: "crash",
        title: Text::new("守护进程崩溃", "The daemon crashes"),
        story: Text::new(
            "请求等待时，守护进程被 kill -9 后重启；钩子自己接了回来。",
            "While the request waits the daemon is killed with -9 and started again; the hook comes back by itself.",
        ),
        hint: Text::new(
            "同一张卡片照样有效：点“批准运行”。",
            "The same card still works: tap “Allow once”.",
        ),
        call: bash("npm run lint", "Check the style"),
        staging,
        steps: vec![
            Step::Crash,
            Step::Tap(Person::Owner, Action::Allow, Toast::Allowed),
            Step::Prints(Prints::Allow),
            Step::Ends(&ending::ALLOWED),
        ],
        dialog: false,
    }
}

fn terminal(staging: Staging) -> Scene {
    Scene {
        name: "terminal",
        title: Text::new("在终端回答", "Answered in the terminal"),
        story: Text::new(
            "终端的对话框和卡片同时等着，谁先答算谁的。",
            "Claude Code's own dialog and the card wait side by side; the first answer counts.",
        ),
        hint: Text::new(
            "在下面的终端里按“是”，看卡片自己收回。",
            "Press Yes in the terminal below and watch the card withdraw.",
        ),
        call: bash("npm ci", "Install the dependencies"),
        staging,
        steps: vec![
            Step::TerminalYes,
            Step::Prints(Prints::Nothing),
            Step::Ends(&ending::TERMINAL_YES),
        ],
        dialog: true,
    }
}

fn gone(staging: Staging) -> Scene {
    Scene {
        name: "gone",
        title: Text::new("提问的进程走了", "The one who asked has left"),
        story: Text::new(
            "在终端按 Esc 会结束钩子；卡片立刻失效，不会批准无人等待的事。",
            "Esc in the terminal ends the hook; the card is void at once, so nothing is allowed that nobody waits for.",
        ),
        hint: Text::new("在下面的终端里按 Esc。", "Press Esc in the terminal below."),
        call: bash("npm publish", "Publish the package"),
        staging,
        steps: vec![
            Step::TerminalEsc,
            Step::Prints(Prints::Nothing),
            Step::Ends(&ending::HOOK_GONE),
        ],
        dialog: true,
    }
}

fn timeout(staging: Staging) -> Scene {
    Scene {
        name: "timeout",
        title: Text::new("没有人回答", "Nobody answers"),
        story: Text::new(
            "这次只等几秒（平时五分钟）。到时不算拒绝，由终端接着问。",
            "This one waits a few seconds (five minutes as a rule). Then it is no denial: the terminal asks on.",
        ),
        hint: Text::new("什么也别点，等它过期。", "Tap nothing and let it run out."),
        call: bash("npm run deploy", "Deploy to staging"),
        staging,
        steps: vec![
            Step::Nobody,
            Step::Prints(Prints::Nothing),
            Step::Ends(&ending::TIMED_OUT),
        ],
        dialog: false,
    }
}
