//! Whole sessions from chat: the real daemon, the local Feishu, and a child
//! of our own that plays Claude Code's part from a script.

use base64::Engine as _;
use nod::simulator::{GROUP, Message, OWNER, Press, STRANGER, Simulator, Text};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::ops::{Deref, DerefMut};

use crate::hooks::{Home, LIMIT, Stage, chmod, face, toast, within};

const RECEIVED: &str = "已收到你的回复，继续执行...";
const HEAR: &str = r#"> "subtype":"interrupt""#;
const HEARD: &str = r#"< {"type":"control_response","response":{"subtype":"success","request_id":"nod-stop","response":{"still_queued":[]}}}"#;

/// A step that says this.
fn says(value: &Value) -> String {
    format!("< {value}")
}

fn init() -> String {
    says(&json!({"type":"system","subtype":"init","model":"scripted","permissionMode":"default"}))
}

fn wants(id: &str, tool: &str, input: &Value) -> String {
    says(
        &json!({"type":"control_request","request_id":id,"request":{"subtype":"can_use_tool","tool_name":tool,"input":input}}),
    )
}

fn question(text: &str, multi: bool) -> Value {
    json!({"questions":[{"question":text,"header":"Store","multiSelect":multi,"options":[
        {"label":"Redis","description":"shared"},{"label":"SQLite","description":"a file"}]}]})
}

fn asks(id: &str, text: &str) -> String {
    wants(id, "AskUserQuestion", &question(text, false))
}

fn result(text: &str) -> String {
    says(
        &json!({"type":"result","subtype":"success","is_error":false,"result":text,"terminal_reason":"completed","num_turns":1,"total_cost_usd":0.25}),
    )
}

fn interrupted() -> String {
    says(
        &json!({"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools"}),
    )
}

/// The parts a child plays, by project; `more` is what a resumed one does.
struct Part<'a> {
    project: &'a str,
    fresh: &'a [&'a str],
    more: &'a [&'a str],
}

/// A `claude` that plays the part of the project it runs in.
fn cast(home: &mut Home, parts: &[Part<'_>]) {
    let dir = home.path().to_owned();
    let mut projects = Vec::new();
    for part in parts {
        let project = dir.join("projects").join(part.project);
        fs::create_dir_all(&project).unwrap();
        projects.push(format!("{}={}", part.project, project.display()));
        for (kind, steps) in [("fresh", part.fresh), ("more", part.more)] {
            let file = dir.join(format!("{}-{kind}", part.project));
            fs::write(file, steps.join("\n") + "\n").unwrap();
        }
    }
    let fake = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fake-claude");
    let dir = dir.display();
    let program = format!(
        "#!/bin/sh\nproject=${{PWD##*/}}\nkind=fresh\ncase $* in *--resume*) kind=more ;; esac\n\
         export FAKE_CLAUDE_LOG='{dir}'/$project.log FAKE_CLAUDE_SCRIPT='{dir}'/$project-$kind\n\
         exec '{fake}' \"$@\"\n"
    );
    let path = home.path().join("claude");
    fs::write(&path, program).unwrap();
    chmod(&path, 0o755);
    home.set("NOD_CLAUDE", &path.display().to_string());
    home.set("NOD_PROJECTS", &projects.join(","));
    home.set("PATH", &std::env::var("PATH").unwrap());
}

async fn stage(parts: &[Part<'_>], change: impl FnOnce(&mut Home)) -> Play {
    let stage = Stage::with(|_, home| {
        cast(home, parts);
        change(home);
    });
    Play {
        stage: stage.await,
        used: HashSet::new(),
    }
}

fn shop<'a>(fresh: &'a [&'a str]) -> [Part<'a>; 1] {
    [Part {
        project: "shop",
        fresh,
        more: &["exit 0"],
    }]
}

/// What the child of a project was given and has read.
fn log(stage: &Stage, project: &str) -> String {
    fs::read_to_string(stage.home.path().join(format!("{project}.log"))).unwrap_or_default()
}

async fn write(stage: &Stage, text: Text) {
    within(stage.sim.push_text(&text)).await.unwrap();
}

async fn says_owner(stage: &Stage, text: &str) {
    write(stage, Text::new(text)).await;
}

fn in_thread(text: &str, of: &Message) -> Text {
    Text {
        thread_id: of.thread_id.clone(),
        parent_id: of.root_id.clone(),
        ..Text::new(text)
    }
}

/// The text of a message that is no card.
fn words(message: &Message) -> String {
    let content: Value = serde_json::from_str(&message.content).unwrap();
    content["text"].as_str().unwrap_or_default().to_owned()
}

/// A stage, and which of nod's messages a test has dealt with: answers and
/// cards come in no fixed order.
struct Play {
    stage: Stage,
    used: HashSet<String>,
}

impl Deref for Play {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl DerefMut for Play {
    fn deref_mut(&mut self) -> &mut Stage {
        &mut self.stage
    }
}

impl Play {
    async fn next(&mut self, what: &str, is_it: impl Fn(&Message) -> bool) -> Message {
        let used = &self.used;
        let find = |sim: &Simulator| {
            let mut all = sim.messages().into_iter();
            all.find(|m| m.sender_type == "app" && !used.contains(&m.message_id) && is_it(m))
        };
        let found = self.stage.sim.wait_for(LIMIT, find).await;
        let found = found.unwrap_or_else(|| panic!("no {what}:\n{}", self.everything()));
        self.used.insert(found.message_id.clone());
        found
    }

    fn everything(&self) -> String {
        let mut said = String::new();
        for message in self.stage.sim.messages() {
            let text = message.card.as_ref().map_or_else(|| words(&message), face);
            said = format!("{said}--- {} {text}\n", message.sender_type);
        }
        said + &self.stage.daemon().log()
    }

    /// A text of nod's that says this.
    async fn told(&mut self, expected: &str) -> Message {
        let is_it = |m: &Message| m.msg_type == "text" && words(m).contains(expected);
        self.next(expected, is_it).await
    }

    /// A card of nod's that says this.
    async fn card(&mut self, expected: &str) -> Message {
        let is_it = |m: &Message| m.card.as_ref().is_some_and(|c| face(c).contains(expected));
        self.next(expected, is_it).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_from_chat_runs_asks_plans_and_answers() {
    let plan = json!({"plan": "1. measure\n2. cut", "planFilePath": "/p"});
    let steps = [
        r#"> "content":"run the tests""#.to_owned(),
        init(),
        says(
            &json!({"type":"assistant","message":{"content":[{"type":"text","text":"I look"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"npm test"}}]}}),
        ),
        wants("r0", "Read", &json!({"file_path": "/etc/hosts"})),
        r#"> "behavior":"allow""#.to_owned(),
        wants("r1", "Bash", &json!({"command": "npm test"})),
        r#"> "updatedInput":{"command":"npm test"}"#.to_owned(),
        wants("r2", "Bash", &json!({"command": "rm -r build"})),
        r#"> "message":"先别删""#.to_owned(),
        asks("q1", "Which store?"),
        r#"> "Which store?":"SQLite""#.to_owned(),
        wants("q2", "AskUserQuestion", &question("Which ones?", true)),
        r#"> "Which ones?":"Redis, SQLite""#.to_owned(),
        asks("q3", "And for tests?"),
        r#"> "And for tests?":"a file""#.to_owned(),
        asks("q4", "Really?"),
        r#"> "Really?":"SQLite""#.to_owned(),
        wants("p1", "ExitPlanMode", &plan),
        r#"> "updatedPermissions":[{"type":"setMode""#.to_owned(),
        result("All **done** <at id=all></at>"),
        "eof".to_owned(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut stage = stage(&shop(&steps), |_| {}).await;
    says_owner(&stage, "/new run the tests").await;
    let task = stage.card("任务").await;
    assert!(task.thread_id.is_some(), "a thread of its own");
    stage.shows(&task.message_id, "任务执行中").await;

    let asked = stage.card("npm test").await;
    assert_eq!(asked.thread_id, task.thread_id);
    let shown = stage.face(&asked.message_id);
    assert!(
        shown.contains("按不允许处理") && !shown.contains("终端"),
        "{shown}"
    );
    let tapped = stage.tap(&asked.message_id, "allow").await;
    assert_eq!(toast(&tapped), ("success", "已批准运行"));
    stage.shows(&asked.message_id, "已批准").await;
    let refused = stage.card("rm -r build").await;
    write(&stage, Text::new("先别删").replying_to(&refused.message_id)).await;
    stage.shows(&refused.message_id, "已拒绝").await;

    let by_tap = stage.card("Which store?").await;
    let status = stage.home.status().await;
    assert_eq!(status["sessions"][0]["project"], "shop");
    assert_eq!(status["sessions"][0]["state"], "waiting_confirm");
    let tapped = stage.press(Press::text(&by_tap.message_id, "SQLite")).await;
    assert_eq!(toast(&tapped), ("success", RECEIVED));
    let by_form = stage.card("Which ones?").await;
    let form = Press::named(&by_form.message_id, "submit_answer").fill("q0", json!(["o0", "o1"]));
    assert_eq!(toast(&stage.press(form).await), ("success", RECEIVED));
    let by_reply = stage.card("And for tests?").await;
    write(
        &stage,
        Text::new("a file").replying_to(&by_reply.message_id),
    )
    .await;
    stage.told(RECEIVED).await;
    stage.card("Really?").await;
    write(&stage, in_thread("2", &task)).await;
    stage.told(RECEIVED).await;

    let planned = stage.card("2. cut").await;
    stage
        .press(Press::text(&planned.message_id, "批准并自动接受编辑"))
        .await;
    stage.shows(&planned.message_id, "批准并自动接受编辑").await;
    let done = stage.shows(&task.message_id, "任务已完成").await;
    for part in ["Bash ×1", "$0.2500", "claude --resume", "scripted"] {
        assert!(done.contains(part), "{part} in {done}");
    }
    let answer = stage.card("All **done**").await;
    assert_eq!(answer.thread_id, task.thread_id);
    let shown = stage.face(&answer.message_id);
    assert!(!shown.contains("<at"), "{shown}");
    let log = log(&stage, "shop");
    assert!(log.contains("mark 1") && log.contains("secret \n"), "{log}");
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_stopped_by_command_and_by_button_and_a_command_ends_a_wait() {
    let go = r#"> "content""#.to_owned();
    let steps = [
        go.clone(),
        init(),
        asks("q1", "Which store?"),
        HEAR.to_owned(),
        HEARD.to_owned(),
        "eof".to_owned(),
    ];
    let more = [
        go,
        init(),
        asks("q2", "Which one now?"),
        r#"> "behavior":"deny""#.to_owned(),
        r#"> "subtype":"set_permission_mode""#.to_owned(),
        HEAR.to_owned(),
        HEARD.to_owned(),
        "eof".to_owned(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let parts = [Part {
        project: "shop",
        fresh: &steps,
        more: &more,
    }];
    let mut stage = stage(&parts, |_| {}).await;
    says_owner(&stage, "/new shop do it").await;
    let task = stage.card("任务").await;
    let asked = stage.card("Which store?").await;
    for (reading, expected) in [
        ("/status", "等待确认"),
        ("/sessions", "#1 shop"),
        ("/projects", "shop"),
        ("/help", "/resume"),
        ("/mode", "default"),
        ("/frobnicate", "没有 /frobnicate"),
    ] {
        write(&stage, in_thread(reading, &task)).await;
        stage.told(expected).await;
    }
    assert!(
        stage.face(&asked.message_id).contains("等待回答"),
        "reading cancels nothing"
    );
    write(&stage, in_thread("/stop", &task)).await;
    stage.shows(&asked.message_id, "已取消").await;
    stage.shows(&task.message_id, "任务已停止").await;
    stage.told("已停止").await;
    let late = Press::text(&asked.message_id, "Redis");
    assert!(
        within(stage.sim.click(late)).await.is_err(),
        "no button is left"
    );
    write(&stage, in_thread("/stop", &task)).await;
    stage.told("当前没有正在执行的任务").await;

    write(&stage, in_thread("go on", &task)).await;
    let again = stage.card("任务").await;
    assert_eq!(again.thread_id, task.thread_id);
    let asked = stage.card("Which one now?").await;
    write(&stage, in_thread("/mode plan", &task)).await;
    stage.shows(&asked.message_id, "收到了新的命令").await;
    stage.told("权限模式：plan").await;
    let stranger = Press::action(&again.message_id, "stop").by(STRANGER);
    assert!(
        within(stage.sim.click(stranger)).await.is_err(),
        "not in this chat"
    );
    let tapped = stage.tap(&again.message_id, "stop").await;
    assert_eq!(toast(&tapped), ("success", "正在停止"));
    stage.shows(&again.message_id, "任务已停止").await;
    assert!(log(&stage, "shop").contains("--resume"));
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_told_and_ends_what_waited() {
    let steps = [
        r#"> "content":"do it""#.to_owned(),
        init(),
        wants("r1", "Bash", &json!({"command": "make"})),
        "> within 1 seconds".to_owned(),
        asks("q1", "Which store?"),
        r#"> "interrupt":true"#.to_owned(),
        interrupted(),
        r#"> "content":"again""#.to_owned(),
        HEAR.to_owned(),
        HEARD.to_owned(),
        "eof".to_owned(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut stage = stage(&shop(&steps), |home| {
        home.set("NOD_TOOL_TIMEOUT", "1");
        home.set("NOD_QUESTION_TIMEOUT", "1");
        home.set("NOD_TASK_TIMEOUT", "2");
    })
    .await;
    says_owner(&stage, "/new do it").await;
    let task = stage.card("任务").await;
    let tool = stage.card("make").await;
    let shown = stage.shows(&tool.message_id, "已超时").await;
    assert!(shown.contains("已按不允许处理"), "{shown}");
    stage.told("等待批准超时").await;
    let asked = stage.card("Which store?").await;
    stage.told("等待回答超时").await;
    stage.shows(&asked.message_id, "已超时").await;
    stage.shows(&task.message_id, "任务已中断").await;
    write(&stage, Text::new("Redis").replying_to(&asked.message_id)).await;
    stage.told("该请求已被处理").await;
    write(&stage, in_thread("again", &task)).await;
    stage.told("没有进展").await;
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_daemon_leaves_endings_and_a_session_that_goes_on() {
    let steps = [
        r#"> "content":"do it""#.to_owned(),
        init(),
        wants("r1", "Bash", &json!({"command": "make"})),
        "eof".to_owned(),
    ];
    let more = [
        r#"> "content":"go on""#.to_owned(),
        init(),
        result("went on"),
        "eof".to_owned(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let parts = [Part {
        project: "shop",
        fresh: &steps,
        more: &more,
    }];
    let mut stage = stage(&parts, |_| {}).await;
    says_owner(&stage, "/new do it").await;
    let task = stage.card("任务").await;
    let asked = stage.card("make").await;
    stage.shows(&task.message_id, "任务执行中").await;
    stage.kill().await;
    stage.start().await;
    stage.shows(&task.message_id, "nod 重启，任务中断").await;
    stage.shows(&asked.message_id, "nod 重启，任务已中断").await;
    stage.told("nod 重启，任务已中断").await;
    let late = stage
        .sim
        .click(Press::action(&asked.message_id, "allow"))
        .await;
    assert!(late.is_err(), "no button is left");
    says_owner(&stage, "/resume 7").await;
    stage.told("没有这个编号").await;
    says_owner(&stage, "/resume 1").await;
    let taken_up = stage.told("已接续会话 #1").await;
    assert_ne!(taken_up.thread_id, task.thread_id);
    write(&stage, in_thread("go on", &taken_up)).await;
    let answer = stage.card("went on").await;
    assert_eq!(answer.thread_id, taken_up.thread_id);
    let log = log(&stage, "shop");
    let fresh = log.split("--session-id ").nth(1).unwrap();
    let id = fresh.split_whitespace().next().unwrap();
    assert!(log.contains(&format!("--resume {id}")), "{log}");

    stage.stop().await;
    let log = fs::read_to_string(stage.home.path().join("shop.log")).unwrap();
    assert_eq!(log.matches("args ").count(), 2, "{log}");
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_in_two_threads_do_not_mix() {
    let part = |name: &str| {
        [
            format!(r#"> "content":"work on {name}""#),
            init(),
            asks("same-id", &format!("Which store for {name}?")),
            format!(r#"> "Which store for {name}?":"store of {name}""#),
            result(&format!("{name} is done")),
            "eof".to_owned(),
        ]
    };
    let (one, two) = (part("one"), part("two"));
    let one: Vec<&str> = one.iter().map(String::as_str).collect();
    let two: Vec<&str> = two.iter().map(String::as_str).collect();
    let parts = [("one", &one), ("two", &two)].map(|(project, fresh)| Part {
        project,
        fresh,
        more: &[],
    });
    let mut stage = stage(&parts, |_| {}).await;
    says_owner(&stage, "/new work on one").await;
    stage.told("可用的项目：one, two").await;
    says_owner(&stage, "/new one work on one").await;
    let first = stage.card("任务").await;
    stage.card("Which store for one?").await;
    says_owner(&stage, "/new two work on two").await;
    let second = stage.card("任务").await;
    stage.card("Which store for two?").await;
    assert_ne!(first.thread_id, second.thread_id);
    says_owner(&stage, "store of nobody").await;
    stage.told("当前有 2 个问题在等待").await;
    write(&stage, in_thread("store of two", &second)).await;
    let done = stage.card("two is done").await;
    assert_eq!(done.thread_id, second.thread_id);
    says_owner(&stage, "store of one").await;
    let done = stage.card("one is done").await;
    assert_eq!(done.thread_id, first.thread_id);
    stage.shows(&first.message_id, "任务已完成").await;
    stage.shows(&second.message_id, "任务已完成").await;
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_counts_once_and_an_old_one_never() {
    let steps = [r#"> "content":"do it""#, "eof"];
    let mut stage = stage(&shop(&steps), |_| {}).await;
    let old = Text {
        age_ms: 6 * 60_000,
        ..Text::new("/new do it")
    };
    write(&stage, old).await;
    stage.told("没有执行，请重新发送").await;

    // Nobody is connected, so the push waits on the ladder.
    stage.stop().await;
    let pushed = stage.sim.push_text(&Text::new("/new do it")).await.unwrap();
    assert_eq!(stage.sim.unacknowledged(), 1);
    stage.start().await;
    assert_eq!(within(stage.sim.advance_repush()).await.len(), 1);
    let task = stage.card("任务").await;
    stage.shows(&task.message_id, "任务执行中").await;
    let event = received(&stage.sim, pushed.message_id.as_deref().unwrap());
    for later in [15, 300, 21_600] {
        stage
            .sim
            .advance_clock(std::time::Duration::from_secs(later));
        within(stage.sim.push_event("im.message.receive_v1", event.clone())).await;
    }
    stage.kill().await;
    stage.start().await;
    within(stage.sim.push_event("im.message.receive_v1", event)).await;
    stage.shows(&task.message_id, "nod 重启").await;
    stage.told("nod 重启").await;
    says_owner(&stage, "/sessions").await;
    let listed = stage.told("#1 shop").await;
    assert_eq!(words(&listed).lines().count(), 1, "{}", words(&listed));
    assert_eq!(log(&stage, "shop").matches("args ").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_clock_here_makes_no_message_old_or_young() {
    for ahead in [-20 * 60_000, 20 * 60_000] {
        let stage = Stage::with(|options, home| {
            options.clock_ahead_ms = ahead;
            cast(home, &shop(&["eof"]));
        });
        let mut stage = Play {
            stage: stage.await,
            used: HashSet::new(),
        };
        let old = Text {
            age_ms: 6 * 60_000,
            ..Text::new("/projects")
        };
        write(&stage, old).await;
        stage.told("没有执行，请重新发送").await;
        says_owner(&stage, "/projects").await;
        assert_eq!(words(&stage.told("shop").await), "shop");
    }
}

/// The event of a message, as it would be pushed again.
fn received(sim: &Simulator, message: &str) -> Value {
    let message = sim.message(message).unwrap();
    json!({
        "sender": {"sender_id": {"open_id": OWNER}, "sender_type": "user"},
        "message": {
            "message_id": message.message_id,
            "create_time": message.create_time.to_string(),
            "chat_id": message.chat_id,
            "chat_type": "p2p",
            "message_type": "text",
            "content": message.content,
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_the_owner_has_any_effect() {
    let steps = [
        r#"> "content":"do it""#.to_owned(),
        init(),
        asks("q1", "Which store?"),
        r#"> "Which store?":"Redis""#.to_owned(),
        result("done"),
        "eof".to_owned(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut stage = stage(&shop(&steps), |home| home.set("FEISHU_CHAT_ID", GROUP)).await;
    let group = |text: &str| Text {
        mention_bot: true,
        ..Text::new(text).in_chat(GROUP)
    };
    write(&stage, Text::new("/new do it").in_chat(GROUP)).await;
    write(&stage, group("/new do it")).await;
    let task = stage.card("任务").await;
    assert_eq!(task.chat_id, GROUP, "only the mention counted");
    let asked = stage.card("Which store?").await;
    for said in [
        "/new do it",
        "/stop",
        "/status",
        "/sessions",
        "/resume 1",
        "/projects",
        "/mode plan",
        "/help",
        "/frobnicate",
        "Redis",
        "/lock",
    ] {
        let refusal = if said == "/lock" {
            "名单"
        } else {
            "只有所有者"
        };
        write(&stage, Text::new(said).by(STRANGER)).await;
        stage.told(refusal).await;
        write(&stage, group(said).by(STRANGER)).await;
        stage.told(refusal).await;
    }
    let reply = Text::new("Redis").by(STRANGER).in_chat(GROUP);
    write(&stage, reply.replying_to(&asked.message_id)).await;
    stage.told("不在审批人名单").await;
    for press in [
        Press::text(&asked.message_id, "Redis"),
        Press::action(&task.message_id, "stop"),
    ] {
        let tapped = stage.press(press.by(STRANGER)).await;
        assert_eq!(toast(&tapped).0, "error");
    }
    let status = stage.home.status().await;
    assert_eq!(
        status["sessions"].as_array().map(Vec::len),
        Some(1),
        "{status}"
    );
    assert_eq!(status["sessions"][0]["state"], "waiting_confirm");
    stage.press(Press::text(&asked.message_id, "Redis")).await;
    stage.card("done").await;
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_goes_with_the_next_words_and_a_missing_claude_is_told() {
    let steps = ["> nod-files", "eof"];
    let mut stage = stage(&shop(&steps), |_| {}).await;
    let encoded = base64::engine::general_purpose::STANDARD.encode("figures");
    let file = Text {
        file: Some(encoded),
        file_name: Some("../../report.csv".to_owned()),
        ..Text::default()
    };
    write(&stage, file).await;
    stage.told("已收到文件").await;
    says_owner(&stage, "/new read the report").await;
    let task = stage.card("任务").await;
    let folder = stage.home.path().join("projects/shop/.claude/nod-files/1");
    let there = |_: &Simulator| log(&stage, "shop").contains("1-report.csv").then_some(());
    let read = stage.sim.wait_for(LIMIT, there).await;
    assert!(read.is_some(), "{}", log(&stage, "shop"));
    assert_eq!(fs::read(folder.join("1-report.csv")).unwrap(), b"figures");
    stage.stop().await;
    assert!(!folder.exists(), "the files go with the session");
    stage.shows(&task.message_id, "nod 重启").await;
    stage.told("nod 重启").await;

    stage.home.set("NOD_CLAUDE", "/nowhere/claude");
    stage.start().await;
    says_owner(&stage, "/new try it").await;
    stage.told("找不到 claude 命令").await;
    says_owner(&stage, "/lock").await;
    stage.told("已锁定").await;
    says_owner(&stage, "/new try it").await;
    stage.told("已锁定").await;
    stage.no_violations();
}
