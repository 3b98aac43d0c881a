//! Sessions of a chat with Codex, without the program: what it was recorded to
//! say, the real `nod daemon`, and people who write and tap.

use nod::for_tests::simulator::{ChatText, HeldMessage, Press, STRANGER};
use serde_json::{Value, json};
use std::collections::HashSet;

use super::fake::{Codex, THREAD};
use crate::hooks::{Home, Stage, offered, toast};
use crate::sessions::{Play, RECEIVED, in_thread, says_owner, words, write};

const COMMAND: &str = "item/commandExecution/requestApproval";
const FORM: &str = "mcpServer/elicitation/request";
const INPUT: &str = "item/tool/requestUserInput";

/// One project, `shop`, and a `codex`.
struct Chat {
    play: Play,
    codex: Codex,
}

impl Chat {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Home)) -> Self {
        let mut made = None;
        let stage = Stage::with(|_, home| {
            let mut codex = Codex::start(&home.path().join("home/.codex"), &home.project());
            let program = codex.program(home.path());
            home.set("NOD_CODEX_PROGRAM", &program.display().to_string());
            home.set(
                "NOD_PROJECTS",
                &format!("shop={}", home.project().display()),
            );
            home.set("PATH", &std::env::var("PATH").unwrap());
            change(home);
            made = Some(codex);
        });
        let play = Play {
            stage: stage.await,
            used: HashSet::new(),
        };
        let codex = made.unwrap();
        Self { play, codex }
    }

    /// Starts a session; its card, its thread and its first turn.
    async fn begins(&mut self, words: &str) -> (HeldMessage, String, String) {
        let n = self.codex.calls("thread/start").len();
        says_owner(&self.play, words).await;
        let task = self.play.card("任务").await;
        let thread = self.codex.thread(n).await;
        self.codex.nth("turn/start", n).await;
        (task, thread, format!("turn-{}", n + 1))
    }

    fn asks_for(&self, thread: &str, turn: &str, command: &str) -> i64 {
        let params = self.codex.command(command);
        self.codex.asks_in(thread, turn, COMMAND, params)
    }
}

fn question() -> Value {
    let options =
        json!([{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]);
    let question = json!({"id": "q1", "header": "Color", "question": "Which color?",
        "isOther": true, "isSecret": false, "options": options});
    json!({"questions": [question], "isBlocking": true, "autoResolutionMs": null})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_for_codex_from_chat_asks_shows_its_progress_and_answers() {
    let mut chat = Chat::new().await;
    let (task, thread, turn) = chat.begins("/new shop @codex run the tests").await;
    let started = chat.codex.nth("thread/start", 0).await;
    assert_eq!(
        started["cwd"],
        chat.play.home.project().display().to_string()
    );
    for (key, value) in [
        ("approvalPolicy", "on-request"),
        ("sandbox", "read-only"),
        ("approvalsReviewer", "user"),
    ] {
        assert_eq!(started[key], value, "{started}");
    }
    let words_heard = chat.codex.nth("turn/start", 0).await;
    assert_eq!(
        words_heard["input"],
        json!([{"type": "text", "text": "run the tests"}])
    );
    let item =
        json!({"type": "commandExecution", "id": "c1", "command": "/bin/bash -lc 'npm test'"});
    chat.codex
        .tells(&thread, "item/started", json!({"item": item}));
    let shown = chat.play.shows(&task.message_id, "Bash · npm test").await;
    assert!(
        shown.contains("shop · #1 · ") && shown.contains(" · Codex"),
        "{shown}"
    );
    assert!(shown.contains(&format!("codex resume {thread}")), "{shown}");

    let id = chat.asks_for(&thread, &turn, "npm publish");
    let asked = chat.play.card("npm publish").await;
    assert_eq!(
        asked.thread_id, task.thread_id,
        "in the session's own thread"
    );
    let face = chat.play.face(&asked.message_id);
    assert!(
        face.contains("Codex") && face.contains("按不允许处理"),
        "{face}"
    );
    let tapped = chat.play.tap(&asked.message_id, "allow").await;
    assert_eq!(toast(&tapped), ("success", "已批准运行"));
    assert_eq!(
        chat.codex.answer(id).await.result,
        json!({"decision": "accept"})
    );

    let id = chat.asks_for(&thread, &turn, "rm -r build");
    let refused = chat.play.card("rm -r build").await;
    write(
        &chat.play,
        ChatText::new("先别删").replying_to(&refused.message_id),
    )
    .await;
    assert_eq!(
        chat.codex.answer(id).await.result,
        json!({"decision": "decline"})
    );
    let steered = chat.codex.nth("turn/steer", 0).await;
    assert_eq!(steered["input"][0]["text"], "先别删");
    assert_eq!(steered["expectedTurnId"], turn.as_str());

    chat.codex.ends(&thread, "completed", "All **done**");
    let done = chat.play.shows(&task.message_id, "任务已完成").await;
    assert!(done.contains("Bash ×1"), "{done}");
    let answer = chat.play.card("All **done**").await;
    assert_eq!(answer.thread_id, task.thread_id);
    let log = std::fs::read_to_string(chat.play.home.path().join("codex.log")).unwrap();
    assert!(log.starts_with("mark 1 secret  home /"), "{log}");
    let audit = chat.play.home.audit().await;
    assert!(
        audit
            .iter()
            .any(|row| row["detail"]["agent"] == "codex" && row["decision"] == "allow")
    );
    chat.play.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_may_have_codex_for_its_own_and_the_list_names_it() {
    let mut chat = Chat::with(|home| {
        let shop = home.project().display().to_string();
        home.set("NOD_PROJECTS", &format!("shop@codex={shop}"));
    })
    .await;
    let (_, thread, _) = chat.begins("/new run the tests").await;
    chat.codex.ends(&thread, "completed", "done");
    chat.play.card("done").await;
    says_owner(&chat.play, "/sessions").await;
    chat.play.card("#1 shop · Codex · 空闲").await;
    let status = chat.play.home.status().await;
    assert_eq!(status["sessions"][0]["agent"], "codex", "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_go_into_the_running_turn_and_then_begin_the_next() {
    let mut chat = Chat::new().await;
    let (task, thread, turn) = chat.begins("/new @codex first").await;
    write(&chat.play, in_thread("and then?", &task)).await;
    let steered = chat.codex.nth("turn/steer", 0).await;
    assert_eq!(steered["input"][0]["text"], "and then?");
    assert_eq!(steered["expectedTurnId"], turn.as_str());
    chat.codex.ends(&thread, "completed", "one");
    chat.play.card("one").await;
    write(&chat.play, in_thread("second", &task)).await;
    let started = chat.codex.nth("turn/start", 1).await;
    assert_eq!(started["input"][0]["text"], "second");
    assert_eq!(started["threadId"], thread.as_str());
    assert_eq!(chat.codex.calls("thread/start").len(), 1, "the same child");
    chat.codex.ends(&thread, "failed", "");
    chat.play.card("stream disconnected").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codexs_question_is_answered_by_a_tap_and_by_words() {
    let mut chat = Chat::new().await;
    let (task, thread, turn) = chat.begins("/new @codex ask me").await;
    let id = chat.codex.asks_in(&thread, &turn, INPUT, question());
    let asked = chat.play.card("Which color?").await;
    let tapped = chat
        .play
        .press(Press::text(&asked.message_id, "Blue"))
        .await;
    assert_eq!(toast(&tapped), ("success", RECEIVED));
    let answers = |word: &str| json!({"answers": {"q1": {"answers": [word]}}});
    assert_eq!(chat.codex.answer(id).await.result, answers("Blue"));
    let mut again = question();
    again["questions"][0]["question"] = "And now?".into();
    let id = chat.codex.asks_in(&thread, &turn, INPUT, again);
    chat.play.card("And now?").await;
    write(&chat.play, in_thread("green", &task)).await;
    assert_eq!(chat.codex.answer(id).await.result, answers("green"));
    let id = chat.codex.asks_in(&thread, &turn, FORM, super::form());
    chat.play.card("Who are you?").await;
    write(&chat.play, in_thread("lin", &task)).await;
    let filled = json!({"action": "accept", "content": {"name": "lin"}});
    assert_eq!(chat.codex.answer(id).await.result, filled);
    let mut secret = question();
    secret["questions"][0]["isSecret"] = true.into();
    let id = chat.codex.asks_in(&thread, &turn, INPUT, secret);
    chat.play
        .told("Codex 提出了一个无法在卡片上显示的问题")
        .await;
    let answer = chat.codex.answer(id).await.result;
    assert!(answer["error"]["message"].is_string(), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_interrupts_codexs_turn_and_words_go_on_with_its_thread() {
    let mut chat = Chat::new().await;
    let (task, thread, turn) = chat.begins("/new @codex run for ever").await;
    let id = chat.asks_for(&thread, &turn, "sleep 600");
    let asked = chat.play.card("sleep 600").await;
    write(&chat.play, in_thread("/stop", &task)).await;
    let interrupted = chat.codex.nth("turn/interrupt", 0).await;
    assert_eq!(interrupted["turnId"], turn.as_str());
    chat.codex.ends(&thread, "interrupted", "");
    chat.play.told("已停止").await;
    chat.play.shows(&task.message_id, "任务已停止").await;
    let face = chat.play.face(&asked.message_id);
    assert!(!face.contains("已批准"), "{face}");
    chat.codex.left(1).await;
    assert!(
        chat.codex.answers().iter().all(|answer| answer.id != id),
        "never answered"
    );
    write(&chat.play, in_thread("go on", &task)).await;
    let resumed = chat.codex.nth("thread/resume", 0).await;
    assert_eq!(resumed["threadId"], thread.as_str());
    let started = chat.codex.nth("turn/start", 1).await;
    assert_eq!(started["input"][0]["text"], "go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_answers_is_declined_and_not_in_the_users_name() {
    let mut chat = Chat::with(|home| home.set("NOD_TOOL_TIMEOUT", "1")).await;
    let (_, thread, turn) = chat.begins("/new @codex go").await;
    let id = chat.asks_for(&thread, &turn, "make deploy");
    chat.play.card("make deploy").await;
    assert_eq!(
        chat.codex.answer(id).await.result,
        json!({"decision": "decline"})
    );
    let steered = chat.codex.nth("turn/steer", 0).await;
    let said = steered["input"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("Nobody answered within"), "{said}");
    chat.play.told("等待批准超时").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nod_killed_in_the_middle_of_codexs_task_leaves_no_child_and_goes_on_by_words() {
    let mut chat = Chat::new().await;
    let (task, thread, turn) = chat.begins("/new @codex go").await;
    chat.asks_for(&thread, &turn, "make deploy");
    let asked = chat.play.card("make deploy").await;
    chat.play.kill().await;
    chat.codex.left(1).await;
    chat.play.start().await;
    chat.play.told("nod 重启，任务已中断").await;
    chat.play.shows(&task.message_id, "任务").await;
    chat.play.shows(&asked.message_id, "重启").await;
    let offers = offered(
        &chat
            .play
            .sim
            .message(&asked.message_id)
            .unwrap()
            .card
            .unwrap(),
    );
    assert!(offers.is_empty(), "{offers:?}");
    write(&chat.play, in_thread("go on", &task)).await;
    let resumed = chat.codex.nth("thread/resume", 0).await;
    assert_eq!(resumed["threadId"], thread.as_str());
    assert_eq!(resumed["approvalsReviewer"], "user");
    let started = chat.codex.nth("turn/start", 1).await;
    assert_eq!(started["input"][0]["text"], "go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_and_wrong_names_start_nothing_and_hear_why() {
    let mut chat = Chat::new().await;
    let stranger = ChatText {
        user: STRANGER.to_owned(),
        ..ChatText::new("/new shop @codex rm -rf /")
    };
    write(&chat.play, stranger).await;
    chat.play.next("a refusal", |m| m.msg_type == "text").await;
    says_owner(&chat.play, "/new shop @gemini go").await;
    chat.play
        .told("没有 gemini 这个代理，可用的有：claude, codex")
        .await;
    says_owner(&chat.play, "/new shup @codex go").await;
    chat.play.told("没有 shup 这个项目").await;
    says_owner(&chat.play, "/resume T9").await;
    chat.play.told("没有这个编号的终端会话").await;
    assert!(chat.codex.calls("thread/start").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_missing_or_off_or_without_its_directory_is_told() {
    let mut missing = Chat::with(|home| home.set("NOD_CODEX_PROGRAM", "/nowhere/codex")).await;
    says_owner(&missing.play, "/new @codex go").await;
    missing.play.told("这台机器上找不到 codex 命令").await;
    let shop = missing.play.home.project();
    std::fs::rename(&shop, shop.with_extension("gone")).unwrap();
    says_owner(&missing.play, "/new @codex go").await;
    missing.play.told("项目目录不存在").await;
    let mut off = Chat::with(|home| home.set("NOD_CODEX", "off")).await;
    says_owner(&off.play, "/new @codex go").await;
    off.play.told("Codex 已关闭").await;
    assert!(off.codex.heard().is_empty());
}

/// The chat takes the terminal's thread over; what it says to that.
async fn taken_over(chat: &mut Chat) -> HeldMessage {
    loop {
        says_owner(&chat.play, "/resume T1").await;
        let said = chat.play.next("an answer", |m| m.msg_type == "text").await;
        // Its thread is known a moment after it is asked for.
        if words(&said).contains("已接续会话 #1（shop）") {
            return said;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminals_thread_is_taken_over_and_asks_in_the_chat_alone() {
    let mut chat = Chat::new().await;
    chat.codex.followed().await;
    let said = taken_over(&mut chat).await;
    write(&chat.play, in_thread("run the tests", &said)).await;
    let started = chat.codex.nth("turn/start", 0).await;
    assert_eq!(started["threadId"], THREAD);
    assert_eq!(started["input"][0]["text"], "run the tests");
    assert!(
        chat.codex.calls("thread/start").is_empty(),
        "no child of its own"
    );
    let id = chat.codex.asks_for("touch asked-for");
    let asked = chat.play.card("touch asked-for").await;
    assert_eq!(asked.thread_id, said.thread_id, "in the session's thread");
    chat.play.tap(&asked.message_id, "allow").await;
    assert_eq!(
        chat.codex.answer(id).await.result,
        json!({"decision": "accept"})
    );
    let cards = chat.play.sim.messages().into_iter();
    let cards = cards.filter(|m| {
        m.card
            .as_ref()
            .is_some_and(|card| card.to_string().contains("touch asked-for"))
    });
    assert_eq!(cards.count(), 1, "one card");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_and_two_sessions_of_the_chat_are_not_mixed() {
    let mut chat = Chat::new().await;
    chat.codex.followed().await;
    let (first, one, turn_one) = chat.begins("/new @codex one").await;
    let (second, two, turn_two) = chat.begins("/new @codex two").await;
    let in_terminal = chat.codex.asks_for("touch terminal");
    let of_one = chat.asks_for(&one, &turn_one, "touch one");
    let of_two = chat.asks_for(&two, &turn_two, "touch two");
    let terminals = chat.play.card("touch terminal").await;
    let ones = chat.play.card("touch one").await;
    let twos = chat.play.card("touch two").await;
    assert_eq!(ones.thread_id, first.thread_id);
    assert_eq!(twos.thread_id, second.thread_id);
    assert_eq!(terminals.thread_id, None);
    chat.play.tap(&twos.message_id, "allow").await;
    write(
        &chat.play,
        ChatText::new("not you").replying_to(&terminals.message_id),
    )
    .await;
    write(&chat.play, in_thread("nor you", &first)).await;
    let accept = json!({"decision": "accept"});
    let decline = json!({"decision": "decline"});
    assert_eq!(chat.codex.answer(of_two).await.result, accept);
    assert_eq!(chat.codex.answer(in_terminal).await.result, decline);
    assert_eq!(chat.codex.answer(of_one).await.result, decline);
    let steered = [
        chat.codex.nth("turn/steer", 0).await,
        chat.codex.nth("turn/steer", 1).await,
    ];
    for (thread, said) in [(THREAD, "not you"), (one.as_str(), "nor you")] {
        let of_thread = |call: &&Value| call["threadId"] == thread;
        let call = steered.iter().find(of_thread).unwrap();
        assert_eq!(call["input"][0]["text"], said);
    }
}

/// The home of the thread is not the first one, and nobody has it open any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_taken_over_from_a_second_home_goes_on_there_after_a_restart() {
    let mut chat = Chat::with(|home| {
        let other = home.path().join("other");
        let theirs = home.path().join("home/.codex");
        let homes = format!("{},{}", other.display(), theirs.display());
        home.set("NOD_CODEX", &homes);
    })
    .await;
    chat.codex.followed().await;
    let said = taken_over(&mut chat).await;
    chat.play.kill().await;
    chat.codex.kill();
    chat.play.start().await;
    write(&chat.play, in_thread("run the tests", &said)).await;
    let started = chat.codex.nth("turn/start", 0).await;
    assert_eq!(started["threadId"], THREAD);
    let log = std::fs::read_to_string(chat.play.home.path().join("codex.log")).unwrap();
    let theirs = chat.play.home.path().join("home/.codex");
    let home = format!("home {}\n", theirs.display());
    assert!(log.ends_with(&home), "{log}");
}
