//! Words from the phone for a session in a terminal: a process of our own that
//! tells of itself as Claude Code does, with a mailbox of its own. And words
//! that decide nothing.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use nod::for_tests::simulator::{ChatText, HeldMessage, STRANGER};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixListener;

use crate::hooks::{Hook, Stage, bash, event, offered, within};

const SESSION: &str = "s1";
const TOKEN: &str = "canary-mailbox-token";

/// What stands for Claude Code in a terminal: this very process.
struct Agent {
    dir: PathBuf,
    socket: PathBuf,
    inbox: UnixListener,
}

impl Agent {
    fn of(stage: &Stage) -> Self {
        let dir = stage.home.path().join("home/.claude");
        std::fs::create_dir_all(dir.join("sessions")).unwrap();
        std::fs::create_dir_all(dir.join("projects/-p")).unwrap();
        let socks = stage.home.path().join("socks");
        let made = std::fs::DirBuilder::new().mode(0o700).create(&socks);
        made.unwrap();
        let socket = socks.join("1.sock");
        let agent = Self {
            inbox: UnixListener::bind(&socket).unwrap(),
            socket,
            dir,
        };
        std::fs::write(agent.transcript(), "").unwrap();
        agent
    }

    fn transcript(&self) -> PathBuf {
        self.dir.join("projects/-p/s1.jsonl")
    }

    fn says(&self, status: &str) {
        let pid = std::process::id();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        let began = stat.and_then(|stat| {
            let (_, rest) = stat.rsplit_once(')')?;
            Some(rest.split_ascii_whitespace().nth(19)?.to_owned())
        });
        let said = json!({
            "pid": pid, "sessionId": SESSION, "procStart": began, "entrypoint": "cli",
            "status": status, "messagingSocketPath": &self.socket,
        });
        let file = self.dir.join(format!("sessions/{pid}.json"));
        std::fs::write(file, said.to_string()).unwrap();
    }

    /// Starts a hook as Claude Code starts its own.
    fn hook(&self, stage: &Stage, input: &Value) -> Hook {
        let mut input = input.clone();
        input["transcript_path"] = self.transcript().to_str().into();
        let socket = self.socket.to_str().unwrap();
        let told = [
            ("CLAUDE_CODE_MESSAGING_SOCKET", socket),
            ("CLAUDE_CODE_MESSAGING_TOKEN", TOKEN),
        ];
        stage.home.hook_with(input.to_string().as_bytes(), &told)
    }

    async fn tells(&self, stage: &Stage, name: &str, more: &Value) {
        let hook = self.hook(stage, &event(SESSION, name, more));
        hook.ended().await.left_to_the_terminal();
    }

    /// The words that came in, after the token.
    async fn hears(&self) -> String {
        let (stream, _) = within(self.inbox.accept()).await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        let mut next = async || -> Value {
            let line = within(lines.next_line()).await.unwrap().unwrap();
            serde_json::from_str(&line).unwrap()
        };
        assert_eq!(next().await, json!({"type": "auth", "token": TOKEN}));
        next().await["message"]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn writes(&self, line: &Value) {
        let mut text = std::fs::read_to_string(self.transcript()).unwrap();
        text.push_str(&line.to_string());
        text.push('\n');
        std::fs::write(self.transcript(), text).unwrap();
    }

    /// A card of this session that was decided.
    async fn decided_card(&self, stage: &mut Stage) -> String {
        let hook = self.hook(stage, &bash(SESSION, "make"));
        let card = stage.sent().await.message_id;
        stage.tap(&card, "allow").await;
        assert_eq!(hook.ended().await.decision()["behavior"], "allow");
        card
    }
}

fn reply_to(card: &str, text: &str) -> ChatText {
    ChatText {
        parent_id: Some(card.to_owned()),
        ..ChatText::new(text)
    }
}

async fn reply(stage: &Stage, card: &str, text: &str) {
    let text = reply_to(card, text);
    within(stage.sim.push_text(&text)).await.unwrap();
}

fn words(message: &HeldMessage) -> String {
    let content: Value = serde_json::from_str(&message.content).unwrap_or_default();
    content["text"].as_str().unwrap_or_default().to_owned()
}

/// The next text of nod's.
async fn told(stage: &mut Stage, expected: &str) {
    let message = stage.sent().await;
    let said = words(&message);
    assert!(said.contains(expected), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_to_a_card_of_a_terminal_goes_into_that_very_session() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    agent.says("idle");
    let card = agent.decided_card(&mut stage).await;
    for (n, text) in ["now run the tests", "and commit\nthem"]
        .into_iter()
        .enumerate()
    {
        let card = if n == 0 {
            card.clone()
        } else {
            let more = json!({"last_assistant_message": "all green"});
            agent.tells(&stage, "Stop", &more).await;
            let notice = stage.sent().await;
            let shown = stage.face(&notice.message_id);
            assert!(
                shown.contains("任务已完成") && shown.contains("all green"),
                "{shown}"
            );
            notice.message_id
        };
        reply(&stage, &card, text).await;
        assert_eq!(agent.hears().await, text);
        let more = json!({"prompt": text, "prompt_id": n.to_string()});
        agent.tells(&stage, "UserPromptSubmit", &more).await;
        told(&mut stage, "已送达终端会话（project），它开始处理").await;
    }
    let audit = stage.home.audit().await;
    let spoken: Vec<_> = audit
        .iter()
        .filter(|line| line["kind"] == "spoken")
        .collect();
    assert_eq!(spoken.len(), 2, "{audit:?}");
    assert_eq!(spoken[0]["decision"], "read");
    assert_eq!(spoken[0]["detail"]["words"], "now run the tests");
    let log = stage.daemon().log();
    assert!(!log.contains(TOKEN), "{log}");
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_to_a_timed_out_card_is_told_that_the_terminal_waits() {
    let mut stage = Stage::with(|_, home| home.set("PERMISSION_REQUEST_TIMEOUT", "1")).await;
    let agent = Agent::of(&stage);
    agent.says("waiting");
    let hook = agent.hook(&stage, &bash(SESSION, "make"));
    let card = stage.sent().await.message_id;
    hook.ended().await.left_to_the_terminal();
    stage.shows(&card, "超时").await;
    reply(&stage, &card, "好的").await;
    let said = words(&stage.sent().await);
    assert!(
        said.contains("已超时") && said.contains("请在终端处理"),
        "{said}"
    );
    reply(&stage, &card, "use the other file").await;
    assert_eq!(agent.hears().await, "use the other file");
    agent.writes(&json!({
        "type": "queue-operation", "operation": "enqueue", "content": "use the other file",
    }));
    let said = words(&stage.sent().await);
    assert!(
        said.contains("已超时") && said.contains("请在终端处理"),
        "{said}"
    );
    assert!(said.contains("对话框在等待回答"), "{said}");
    assert!(
        !said.contains("已被处理") && !said.contains("正忙"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_the_words_is_said() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    agent.says("busy");
    let card = agent.decided_card(&mut stage).await;

    let stranger = ChatText {
        user: STRANGER.to_owned(),
        ..reply_to(&card, "rm everything")
    };
    within(stage.sim.push_text(&stranger)).await.unwrap();

    reply(&stage, &card, "go on").await;
    assert_eq!(agent.hears().await, "go on", "and nothing of a stranger's");
    agent.writes(&json!({"type": "queue-operation", "operation": "enqueue", "content": "go on"}));
    told(&mut stage, "它正忙").await;

    reply(&stage, &card, "hold this").await;
    assert_eq!(agent.hears().await, "hold this");
    let held = "Held peer message — from an unidentified session; preview: «hold this»";
    agent.writes(&json!({"type": "system", "subtype": "informational", "content": held}));
    told(&mut stage, "消息留在终端").await;

    reply(&stage, &card, "refuse this").await;
    assert_eq!(agent.hears().await, "refuse this");
    told(&mut stage, "没有接收").await;

    within(stage.sim.push_text(&ChatText::new("/sessions")))
        .await
        .unwrap();
    let menu = stage.sent().await.message_id;
    let listed = stage.face(&menu);
    assert!(listed.contains("T1 project · 执行中"), "{listed}");
    assert!(listed.contains("发给终端 T1 · project"), "{listed}");
    within(stage.sim.push_text(&ChatText::new("／say 1 next")))
        .await
        .unwrap();
    assert_eq!(agent.hears().await, "next");
    agent.writes(&json!({"type": "queue-operation", "operation": "enqueue", "content": "next"}));
    told(&mut stage, "它正忙").await;

    agent.tells(&stage, "SessionEnd", &json!({})).await;
    let ended = async {
        loop {
            reply(&stage, &card, "anybody?").await;
            let message = stage.sent().await;
            if words(&message).contains("已在终端结束") {
                return words(&message);
            }
        }
    };
    let said = within(ended).await;
    assert!(said.contains("claude --resume s1"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_go_to_no_socket_that_the_sessions_own_file_does_not_name() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    agent.says("idle");
    let pid = std::process::id();
    let file = agent.dir.join(format!("sessions/{pid}.json"));
    let said = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, said.replace("1.sock", "2.sock")).unwrap();
    let card = agent.decided_card(&mut stage).await;
    reply(&stage, &card, "go on").await;
    told(&mut stage, "没有送达").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_mean_yes_never_decide() {
    let mut stage = Stage::new().await;
    let (hook, card) = stage.ask_bash("make").await;
    for yes in [
        "ok",
        "同意",
        "yes",
        "👍",
        "好的。",
        "ok 👍",
        "[赞]",
        "run it",
        "ＯＫ",
        "批准并自动接受编辑",
        "Always allow this kind",
    ] {
        reply(&stage, &card, yes).await;
        told(&mut stage, "请点击卡片上的「批准运行」").await;
    }
    // Neither is a command a reason, nor is silence.
    reply(&stage, &card, "／help").await;
    let help = stage.sent().await.message_id;
    assert!(stage.face(&help).contains("/lock"));
    reply(&stage, &card, " ").await;
    told(&mut stage, "请求仍在等待").await;
    assert!(
        offered(&stage.sim.message(&card).unwrap().card.unwrap()).contains(&"allow".to_owned())
    );
    reply(&stage, &card, "use pnpm").await;
    told(&mut stage, "已拒绝，你的话已告诉 Claude").await;
    assert_eq!(hook.ended().await.decision()["message"], "use pnpm");
    reply(&stage, &card, "ok").await;
    told(&mut stage, "该请求已被处理").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_that_no_hook_asks_about_is_told_of_until_it_is_gone() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    agent.says("waiting");
    let more = json!({"notification_type": "permission_prompt",
        "message": "Claude needs your permission to use Bash"});
    for _ in 0..2 {
        agent.tells(&stage, "Notification", &more).await;
    }
    let notice = stage.sent().await.message_id;
    let shown = stage.face(&notice);
    assert!(
        shown.contains("请在终端回答") && shown.contains("permission to use Bash"),
        "{shown}"
    );
    agent.says("busy");
    stage.shows(&notice, "终端不再等待").await;

    // One that was open when the daemon went is watched by nobody.
    agent.says("waiting");
    agent.tells(&stage, "Notification", &more).await;
    let left = stage.sent().await.message_id;
    stage.shows(&left, "请在终端回答").await;
    // It is written down right behind the sending.
    tokio::time::sleep(Duration::from_millis(500)).await;
    stage.kill().await;
    stage.start().await;
    stage.shows(&left, "不知道它是否仍在等待").await;
    stage.shows(&notice, "终端不再等待").await;
    agent.says("busy");

    // A dialog with a card of its own needs no second one.
    agent.says("waiting");
    let hook = agent.hook(&stage, &bash(SESSION, "make"));
    let asked = stage.sent().await;
    assert!(asked.card.is_some(), "{}", asked.content);
    let card = asked.message_id;
    agent.tells(&stage, "Notification", &more).await;
    // The event is taken behind the hook's back: the next answer comes after it.
    reply(&stage, &notice, "/sessions").await;
    let listed = stage.sent().await.message_id;
    assert!(stage.face(&listed).contains("T1 project"));
    stage.tap(&card, "allow").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    reply(&stage, &notice, "/say 1 go on").await;
    assert_eq!(agent.hears().await, "go on");
}
