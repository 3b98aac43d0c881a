//! Whole sessions from chat: the real daemon, the local Feishu, and a child
//! of our own that plays Claude Code's part from a script.

use base64::Engine as _;
use nod::for_tests::simulator::{
    Armed, ChatText, Fault, GROUP, HeldMessage, OWNER, Press, STRANGER, Simulator,
};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::approve_endings::Held;
use crate::approve_outages::{cut, is_away};
use crate::hooks::{Home, LIMIT, Stage, chmod, face, toast, within};

pub(crate) const RECEIVED: &str = "已收到你的回复，继续执行...";
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
    Play::of(stage.await)
}

/// A home with these parts, for whatever stage.
fn home(parts: &[Part<'_>]) -> Home {
    let mut home = Home::new("");
    cast(&mut home, parts);
    home
}

fn shop<'a>(fresh: &'a [&'a str]) -> [Part<'a>; 1] {
    [Part {
        project: "shop",
        fresh,
        more: &["exit 0"],
    }]
}

/// The names in a directory.
fn entries(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// What the child of a project was given and has read.
fn log(stage: &Stage, project: &str) -> String {
    fs::read_to_string(stage.home.path().join(format!("{project}.log"))).unwrap_or_default()
}

pub(crate) async fn write(stage: &Stage, text: ChatText) {
    within(stage.sim.push_text(&text)).await.unwrap();
}

pub(crate) async fn says_owner(stage: &Stage, text: &str) {
    write(stage, ChatText::new(text)).await;
}

pub(crate) fn in_thread(text: &str, of: &HeldMessage) -> ChatText {
    ChatText {
        thread_id: of.thread_id.clone(),
        parent_id: of.root_id.clone(),
        ..ChatText::new(text)
    }
}

/// The text of a message that is no card.
pub(crate) fn words(message: &HeldMessage) -> String {
    let content: Value = serde_json::from_str(&message.content).unwrap();
    content["text"].as_str().unwrap_or_default().to_owned()
}

/// A stage, and which of nod's messages a test has dealt with: answers and
/// cards come in no fixed order.
pub(crate) struct Play {
    pub(crate) stage: Stage,
    pub(crate) used: HashSet<String>,
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
    fn of(stage: Stage) -> Self {
        Self {
            stage,
            used: HashSet::new(),
        }
    }

    pub(crate) async fn next(
        &mut self,
        what: &str,
        is_it: impl Fn(&HeldMessage) -> bool,
    ) -> HeldMessage {
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
    pub(crate) async fn told(&mut self, expected: &str) -> HeldMessage {
        let is_it = |m: &HeldMessage| m.msg_type == "text" && words(m).contains(expected);
        self.next(expected, is_it).await
    }

    /// A card of nod's that says this.
    pub(crate) async fn card(&mut self, expected: &str) -> HeldMessage {
        let is_it = |m: &HeldMessage| m.card.as_ref().is_some_and(|c| face(c).contains(expected));
        self.next(expected, is_it).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_from_chat_runs_asks_plans_and_answers() {
    a_whole_task(Stage::of).await;
}

/// Also played over a team's bus.
pub(crate) async fn a_whole_task(on: impl AsyncFnOnce(Home) -> Stage) {
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
    let mut stage = Play::of(on(home(&shop(&steps))).await);
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
    write(
        &stage,
        ChatText::new("先别删").replying_to(&refused.message_id),
    )
    .await;
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
        ChatText::new("a file").replying_to(&by_reply.message_id),
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

/// In a topic Feishu names its root as the parent of every message.
#[tokio::test(flavor = "multi_thread")]
async fn words_in_a_topic_answer_what_waits_there_though_no_reply_names_a_card() {
    let steps = [
        r#"> "content""#.to_owned(),
        init(),
        wants("r1", "Bash", &json!({"command": "rm -r build"})),
        r#"> "message":"keep it""#.to_owned(),
        wants("r2", "Bash", &json!({"command": "npm publish"})),
        wants("r3", "Bash", &json!({"command": "npm version"})),
        asks("q1", "Which store?"),
        r#"> "Which store?":"SQLite""#.to_owned(),
        r#"> "message":"not today""#.to_owned(),
        r#"> "message":"later""#.to_owned(),
        result("done"),
        "eof".to_owned(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut stage = stage(&shop(&steps), |_| {}).await;
    says_owner(&stage, "/new go").await;
    let task = stage.card("任务").await;
    let asked = stage.card("rm -r build").await;
    assert_eq!(asked.parent_id, asked.root_id, "as in every topic");
    assert!(stage.face(&asked.message_id).contains("也可在这里写字"));
    write(
        &stage,
        ChatText::new("keep it").replying_to(&asked.message_id),
    )
    .await;
    stage.shows(&asked.message_id, "已拒绝").await;

    let published = stage.card("npm publish").await;
    let versioned = stage.card("npm version").await;
    let question = stage.card("Which store?").await;
    write(&stage, in_thread("no, wait", &task)).await;
    let list = words(&stage.told("3 件事在等待").await);
    for line in ["1 · 运行命令", "2 · 运行命令", "3 · Store: Which store?"] {
        assert!(list.contains(line), "{list}");
    }
    write(&stage, in_thread("store: 2", &task)).await;
    stage.told(RECEIVED).await;
    stage.shows(&question.message_id, "已回答").await;
    write(&stage, in_thread("2 not today", &task)).await;
    stage.shows(&versioned.message_id, "已拒绝").await;
    // A client may leave the topic out and name only its root.
    let rooted = ChatText {
        parent_id: task.root_id.clone(),
        ..ChatText::new("later")
    };
    write(&stage, rooted).await;
    stage.shows(&published.message_id, "已拒绝").await;
    stage.card("done").await;
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_with_many_tables_and_quotes_arrives_whole() {
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n".repeat(5);
    let quotes = "say \"this\\that\" \n".repeat(1_500);
    let long = format!("{table}{quotes}the end");
    let steps = [
        r#"> "content""#.to_owned(),
        init(),
        result(&long),
        r#"> "content""#.to_owned(),
        result("| x | y |\n|---|---|\n| 1 | 2 |"),
        "eof".to_owned(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut stage = stage(&shop(&steps), |_| {}).await;
    says_owner(&stage, "/new go").await;
    let task = stage.card("任务").await;
    stage.card("the end").await;
    let answers: String = stage
        .sim
        .messages()
        .iter()
        .filter_map(|m| m.card.as_ref().map(face))
        .collect();
    assert_eq!(answers.matches("|---|---|").count(), 5);
    assert!(answers.matches("that").count() >= 1_500, "nothing is lost");

    // A Feishu that takes no such card at all gets the words as text.
    let refuse = Fault::LayoutRefused {
        component: "markdown".to_owned(),
    };
    stage.sim.set_fault(Armed::always(refuse)).unwrap();
    write(&stage, in_thread("again", &task)).await;
    stage.told("| x | y |").await;
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
    for (reading, expected) in [("/status", "等待确认"), ("/frobnicate", "没有 /frobnicate")]
    {
        write(&stage, in_thread(reading, &task)).await;
        stage.told(expected).await;
    }
    for (reading, expected) in [
        ("/sessions", "继续 #1 · shop"),
        ("/projects", "在 shop 中开始"),
        ("/help", "/lock"),
        ("/mode", "✓ default"),
    ] {
        write(&stage, in_thread(reading, &task)).await;
        let menu = stage.card(expected).await;
        assert_eq!(menu.thread_id, task.thread_id, "{reading}");
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
    write(&stage, in_thread("again", &task)).await;
    stage.told("没有进展").await;
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sessions_tool_waits_through_an_outage_and_no_card_is_blamed() {
    let steps = [
        r#"> "content":"do it""#.to_owned(),
        init(),
        "until away1".to_owned(),
        wants("r1", "Bash", &json!({"command": "make one"})),
        r#"> "behavior":"allow""#.to_owned(),
        "until away2".to_owned(),
        wants("r2", "Bash", &json!({"command": "make two"})),
        "> could not be shown".to_owned(),
        result("done"),
        HEAR.to_owned(),
        HEARD.to_owned(),
        "eof".to_owned(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut stage = stage(&shop(&steps), |home| home.set("NOD_TOOL_TIMEOUT", "8")).await;
    says_owner(&stage, "/new do it").await;
    stage.card("任务").await;
    let project = stage.home.path().join("projects/shop");
    cut(&stage, false);
    is_away(&stage).await;
    fs::write(project.join("away1"), "").unwrap();
    stage.until_status(|status| status["pending"] == 1).await;
    stage.sim.clear_faults();
    let tool = stage.card("make one").await;
    stage.tap(&tool.message_id, "allow").await;
    cut(&stage, false);
    is_away(&stage).await;
    fs::write(project.join("away2"), "").unwrap();
    stage.until_status(|status| status["pending"] == 1).await;
    stage.until_status(|status| status["pending"] == 0).await;
    stage.sim.clear_faults();
    stage.told("请求没能送到飞书，Bash 未执行").await;
    assert!(!stage.everything().contains("无法在卡片上显示"));
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

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_does_not_mind_its_input_is_ended_after_a_kill_of_the_daemon() {
    let mut stage = stage(&shop(&[]), |home| {
        let claude = home.path().join("stubborn");
        let pid = home.path().join("pid");
        let script = format!(
            "#!/bin/sh\necho $$ >'{0}.new'\nmv '{0}.new' '{0}'\nexec sleep 600\n",
            pid.display()
        );
        fs::write(&claude, script).unwrap();
        chmod(&claude, 0o755);
        home.set("NOD_CLAUDE", &claude.display().to_string());
    })
    .await;
    says_owner(&stage, "/new do it").await;
    let file = stage.home.path().join("pid");
    let pid = soon(|| fs::read_to_string(&file).ok()).await;
    let pid = pid.trim().to_owned();
    soon(|| is_guarded(&pid).then_some(())).await;
    stage.kill().await;
    let line = format!("/proc/{pid}/cmdline");
    let runs = || fs::read(&line).is_ok_and(|line| !line.is_empty());
    soon(|| (!runs()).then_some(())).await;
}

/// The state of a process, once it is there: nobody reports it.
#[cfg(target_os = "linux")]
async fn soon<T>(probe: impl Fn() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(found) = probe() {
                return found;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    within(wait).await
}

/// Whether somebody ends this process when the daemon is gone.
#[cfg(target_os = "linux")]
fn is_guarded(pid: &str) -> bool {
    let wanted = format!("guard\0{pid}\0");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| line.ends_with(wanted.as_bytes()))
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
    let asked = stage.card("在哪个项目中执行？").await;
    assert!(log(&stage, "one").is_empty(), "nothing began");
    let tapped = stage.press(Press::text(&asked.message_id, "one")).await;
    assert_eq!(toast(&tapped), ("success", "正在开始"));
    stage.shows(&asked.message_id, "已选择：one").await;
    let first = stage.card("任务").await;
    stage.card("Which store for one?").await;
    says_owner(&stage, "/new two work on two").await;
    let second = stage.card("任务").await;
    stage.card("Which store for two?").await;
    assert_ne!(first.thread_id, second.thread_id);
    says_owner(&stage, "store of nobody").await;
    stage.told("2 件事在等待").await;
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
    let old = ChatText {
        age_ms: 6 * 60_000,
        ..ChatText::new("/new do it")
    };
    write(&stage, old).await;
    stage.told("没有执行，请重新发送").await;

    // Nobody is connected, so the push waits on the ladder.
    stage.stop().await;
    let pushed = stage
        .sim
        .push_text(&ChatText::new("/new do it"))
        .await
        .unwrap();
    assert_eq!(stage.sim.unacknowledged(), 1);
    stage.start().await;
    assert_eq!(within(stage.sim.advance_repush()).await.len(), 1);
    let task = stage.card("任务").await;
    stage.shows(&task.message_id, "任务执行中").await;
    stage.daemon().logged("a session begins").await;
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
    let listed = stage.card("继续 #1 · shop").await;
    assert!(!stage.face(&listed.message_id).contains("#2"));
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
        let old = ChatText {
            age_ms: 6 * 60_000,
            ..ChatText::new("/projects")
        };
        write(&stage, old).await;
        stage.told("没有执行，请重新发送").await;
        says_owner(&stage, "/projects").await;
        stage.card("在 shop 中开始").await;
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
    let group = |text: &str| ChatText {
        mention_bot: true,
        ..ChatText::new(text).in_chat(GROUP)
    };
    write(&stage, ChatText::new("/new do it").in_chat(GROUP)).await;
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
        write(&stage, ChatText::new(said).by(STRANGER)).await;
        stage.told(refusal).await;
        write(&stage, group(said).by(STRANGER)).await;
        stage.told(refusal).await;
    }
    let reply = group("Redis").by(STRANGER);
    write(&stage, reply.replying_to(&asked.message_id)).await;
    stage.told("只有所有者").await;
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

/// An app made by hand has not the scope for what people attach.
fn may_read_files(stage: &Stage) {
    let given = stage
        .sim
        .edit_app(nod::for_tests::simulator::APP_ID, |app| {
            app.scopes.push("im:message:readonly".to_owned());
        });
    assert!(given);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_file_cannot_be_had_starts_without_it_and_names_the_scope() {
    let steps = ["> could not be fetched: image.png", "> \"content\"", "eof"];
    let mut stage = stage(&shop(&steps), |_| {}).await;
    let picture = base64::engine::general_purpose::STANDARD.encode("pixels");
    let pasted = |text: &str| ChatText {
        pictures: vec![picture.clone()],
        ..ChatText::new(text)
    };
    write(&stage, pasted("/new look at this")).await;
    let task = stage.card("任务").await;
    let told = words(&stage.told("im:message:readonly").await);
    assert!(told.contains("/auth?q=im:message:readonly"), "{told}");

    may_read_files(&stage);
    let again = ChatText {
        thread_id: task.thread_id.clone(),
        ..pasted("and again")
    };
    write(&stage, again).await;
    let there = |_: &Simulator| log(&stage, "shop").contains("1-image.png").then_some(());
    let read = stage.sim.wait_for(LIMIT, there).await;
    assert!(read.is_some(), "{}", log(&stage, "shop"));
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_goes_with_the_next_words_and_a_missing_claude_is_told() {
    a_file(Stage::of, b"figures").await;
}

/// Also played over a team's bus.
pub(crate) async fn a_file(on: impl AsyncFnOnce(Home) -> Stage, content: &[u8]) {
    let steps = ["> 1-report.csv", "eof"];
    let mut stage = Play::of(on(home(&shop(&steps))).await);
    may_read_files(&stage);
    let project = stage.home.path().join("projects/shop");
    let before = entries(&project);
    let encoded = base64::engine::general_purpose::STANDARD.encode(content);
    let file = ChatText {
        file: Some(encoded),
        file_name: Some("../../report.csv".to_owned()),
        ..ChatText::default()
    };
    write(&stage, file).await;
    stage.told("已收到文件").await;
    says_owner(&stage, "/new read the report").await;
    let task = stage.card("任务").await;
    let folder = stage.home.path().join("state/files/1");
    let there = |_: &Simulator| log(&stage, "shop").contains("1-report.csv").then_some(());
    let read = stage.sim.wait_for(LIMIT, there).await;
    assert!(read.is_some(), "{}", log(&stage, "shop"));
    let sent = folder.canonicalize().unwrap().join("1-report.csv");
    assert!(log(&stage, "shop").contains(&sent.display().to_string()));
    assert!(fs::read(&sent).unwrap() == content, "as it was sent");
    let after = entries(&project);
    stage.stop().await;
    assert!(!folder.exists(), "the files go with the session");
    assert_eq!(after, before, "nothing is put into the project");
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

#[tokio::test(flavor = "multi_thread")]
async fn what_claude_code_says_as_it_dies_mentions_nobody_and_hides_nothing() {
    let token = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
    let last = format!(
        r#"! <at user_id="all">all</at> [pay](https://evil.example) {token} {}"#,
        "\u{202e}gnp.exe\u{200b}"
    );
    let long = format!("! {}", "x".repeat(30_000));
    let steps = [r#"> "content""#.to_owned(), long, last, "exit 3".to_owned()];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut stage = stage(&shop(&steps), |_| {}).await;
    says_owner(&stage, "/new go").await;
    let told = words(&stage.told("意外退出").await);
    for unfit in ["<at", "</at", "](", token, "\u{202e}", "\u{200b}"] {
        assert!(!told.contains(unfit), "{unfit:?} in {told}");
    }
    assert!(told.contains("user_id=\"all\""), "it is told: {told}");
    assert!(told.len() < 4_000, "{}", told.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sent_file_overwrites_and_deletes_nothing_a_repository_points_at() {
    for hostile in ["gitignore", "folder"] {
        let steps = ["> 1-report.csv", "eof"];
        let mut stage = stage(&shop(&steps), |home| {
            let claude = home.path().join("projects/shop/.claude");
            let photos = home.path().join("photos");
            fs::create_dir_all(photos.join("1")).unwrap();
            fs::write(photos.join("1/mine"), "mine").unwrap();
            fs::write(home.path().join(".bashrc"), "mine").unwrap();
            if hostile == "folder" {
                fs::create_dir_all(&claude).unwrap();
                symlink(&photos, claude.join("nod-files")).unwrap();
            } else {
                fs::create_dir_all(claude.join("nod-files")).unwrap();
                let link = claude.join("nod-files/.gitignore");
                symlink(home.path().join(".bashrc"), link).unwrap();
            }
        })
        .await;
        may_read_files(&stage);
        let file = ChatText {
            file: Some(base64::engine::general_purpose::STANDARD.encode("figures")),
            file_name: Some("report.csv".to_owned()),
            ..ChatText::default()
        };
        write(&stage, file).await;
        stage.told("已收到文件").await;
        says_owner(&stage, "/new read the report").await;
        stage.card("任务").await;
        let there = |_: &Simulator| log(&stage, "shop").contains("1-report.csv").then_some(());
        assert!(
            stage.sim.wait_for(LIMIT, there).await.is_some(),
            "{hostile}"
        );
        stage.stop().await;
        let home = stage.home.path();
        let read = |name: &str| fs::read_to_string(home.join(name)).unwrap();
        assert_eq!(read(".bashrc"), "mine", "{hostile}");
        assert_eq!(read("photos/1/mine"), "mine", "{hostile}");
        assert_eq!(entries(&home.join("photos/1")), ["mine"], "{hostile}");
    }
}

/// The value of the button with this label.
fn button(card: &Value, label: &str) -> Value {
    fn find(node: &Value, label: &str) -> Option<Value> {
        match node {
            Value::Object(map) => {
                let says = node["text"]["content"].as_str();
                if node["tag"] == "button" && says.is_some_and(|says| says.starts_with(label)) {
                    return Some(node["behaviors"][0]["value"].clone());
                }
                map.values().find_map(|node| find(node, label))
            }
            Value::Array(all) => all.iter().find_map(|node| find(node, label)),
            _ => None,
        }
    }
    find(card, label).unwrap_or_else(|| panic!("no button `{label}` on {card}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_buttons_of_a_menu_do_what_the_words_would() {
    let steps = [
        r#"> "content":"run the tests""#.to_owned(),
        init(),
        result("done"),
        "eof".to_owned(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut stage = stage(&shop(&steps), |_| {}).await;
    says_owner(&stage, "/help").await;
    let help = stage.card("nod 能做什么").await;
    let face = help.card.as_ref().unwrap().to_string();
    assert!(!face.contains("/join"), "it is in no team: {face}");
    let press = |menu: &HeldMessage, label: &str| Press {
        message_id: menu.message_id.clone(),
        value: Some(button(menu.card.as_ref().unwrap(), label)),
        ..Press::default()
    };
    let tapped = stage.press(press(&help, "开始新会话")).await;
    assert_eq!(toast(&tapped), ("success", "已收到"));
    let start = stage.card("在 shop 中开始").await;
    let empty = stage.press(press(&start, "在 shop 中开始")).await;
    assert_eq!(toast(&empty), ("warning", "请先在输入框中写明内容"));
    let mut with_words = press(&start, "在 shop 中开始");
    let field = nod::for_tests::cards::choice::WORDS_FIELD.to_owned();
    with_words.form_value.insert(field, json!("run the tests"));
    let tapped = stage.press(with_words).await;
    assert_eq!(toast(&tapped), ("success", "正在开始"));
    let task = stage.card("任务").await;
    stage.shows(&task.message_id, "任务已完成").await;
    assert_eq!(log(&stage, "shop").matches("args ").count(), 1);

    // The same menu again: a second card, and not the first one's answer.
    for _ in 0..2 {
        stage.press(press(&help, "会话")).await;
        stage.card("继续 #1 · shop").await;
    }
    write(&stage, in_thread("/mode", &task)).await;
    let modes = stage.card("✓ default").await;
    stage.press(press(&modes, "plan")).await;
    stage.told("权限模式：plan").await;
    stage.press(press(&help, "锁定远程批准")).await;
    stage.told("nod unlock").await;
    assert_eq!(stage.home.status().await["locked"], true);
    stage.home.run(&["unlock"]).await;

    // Nobody else's tap, no forged button and none of an earlier run.
    says_owner(&stage, "/projects").await;
    let start = stage.card("在 shop 中开始").await;
    let kept = Held::of(&stage, &start.message_id);
    let (_, said) = Held::with(&kept, kept.values.clone())
        .by(STRANGER)
        .tap(&stage, "pick")
        .await;
    assert!(said.contains("只有所有者"), "{said}");
    let mut forged = kept.values[0].clone();
    forged["pick"] = json!(1);
    let (_, said) = Held::with(&kept, vec![forged]).tap(&stage, "pick").await;
    assert_eq!(said, "无效的回调请求");
    let mut lifted = Held::with(&kept, kept.values.clone());
    lifted.lift("om_elsewhere");
    assert_eq!(lifted.tap(&stage, "pick").await.1, "无效的回调请求");
    stage.kill().await;
    stage.start().await;
    assert_eq!(
        kept.tap(&stage, "pick").await.1,
        "按钮已失效，请重新发送命令"
    );
    assert_eq!(log(&stage, "shop").matches("args ").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_answer_no_card_decide_nothing_and_say_why() {
    let mut stage = stage(&shop(&["eof"]), |_| {}).await;
    let hook = stage.home.hook(&crate::hooks::bash("s1", "npm test"));
    let card = stage.card("npm test").await;
    says_owner(&stage, "looks good to me").await;
    stage.told("没有回复任何卡片，什么都没有决定").await;
    assert_eq!(stage.home.status().await["pending"], 1);
    stage.tap(&card.message_id, "allow").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}
