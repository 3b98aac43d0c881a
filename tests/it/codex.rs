//! Codex beside its terminal, without the program: what its daemon was recorded
//! to say, the real `nod daemon`, and people who tap.

mod chat;
pub(crate) mod fake;

use nod::for_tests::simulator::{Armed, ChatText, Fault, OWNER, STRANGER};
use serde_json::{Value, json};

use crate::approve_endings::Held;
use crate::hooks::{Stage, offered, toast, within};
use crate::support::until;
use fake::{Codex, THREAD};

struct Desk {
    stage: Stage,
    codex: Codex,
}

impl Desk {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut crate::hooks::Home)) -> Self {
        let stage = Stage::with(|_, home| change(home)).await;
        let home = stage.home.path().join("home/.codex");
        let codex = Codex::start(&home, &stage.home.project());
        codex.followed().await;
        Self { stage, codex }
    }

    /// The next card; what the bot says of a reply is none.
    async fn card(&mut self) -> String {
        loop {
            let sent = self.stage.sent().await;
            if sent.card.is_some() {
                return sent.message_id;
            }
        }
    }

    async fn reply(&self, user: &str, card: &str, text: &str) {
        let text = ChatText {
            user: user.to_owned(),
            parent_id: Some(card.to_owned()),
            ..ChatText::new(text)
        };
        within(self.stage.sim.push_text(&text)).await.unwrap();
    }

    fn offers(&self, card: &str) -> Vec<String> {
        offered(&self.stage.sim.message(card).unwrap().card.unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_answers_codex_and_the_card_names_it() {
    let mut desk = Desk::new().await;
    let id = desk.codex.asks_for("touch asked-for");
    let card = desk.card().await;
    let face = desk.stage.face(&card);
    assert!(face.contains("Codex"), "{face}");
    assert!(
        face.contains("touch asked-for") && !face.contains("bash -lc"),
        "{face}"
    );
    assert!(face.contains(&format!("codex resume {THREAD}")), "{face}");
    let mut offers = desk.offers(&card);
    offers.sort();
    offers.dedup();
    assert_eq!(offers, ["allow", "deny", "deny_with", "interrupt"]);
    let tapped = desk.stage.tap(&card, "allow").await;
    assert_eq!(toast(&tapped), ("success", "已批准运行"), "{tapped:?}");
    let answer = desk.codex.answer(id).await;
    assert!(!answer.by_terminal);
    assert_eq!(answer.result, json!({"decision": "accept"}));
    desk.stage.shows(&card, "已批准").await;
    let audit = desk.stage.home.audit().await;
    let last = audit.last().unwrap();
    assert_eq!(last["detail"]["agent"], "codex", "{last}");
    assert_eq!(last["decision"], "allow", "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_answers_first_and_a_late_tap_hears_it() {
    let mut desk = Desk::new().await;
    for (decision, word) in [("accept", "已在终端批准"), ("cancel", "已在终端")] {
        let id = desk.codex.asks_for("make test");
        let card = desk.card().await;
        let held = Held::of(&desk.stage, &card);
        desk.codex.called("thread/resume").await;
        assert!(desk.codex.terminal_answers(id, decision));
        desk.stage.shows(&card, word).await;
        assert!(desk.offers(&card).is_empty());
        let (_, late) = held.tap(&desk.stage, "allow").await;
        assert!(late.contains("终端"), "{late}");
        assert!(desk.codex.answer(id).await.by_terminal);
    }
}

/// Both within a moment: one outcome, and the card says which. Twice ten, as
/// one session may ask no more in a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_tap_and_the_terminal_at_once_have_one_outcome_and_a_true_card() {
    tokio::join!(at_once(0), at_once(10));
}

async fn at_once(from: u64) {
    let mut desk = Desk::new().await;
    for round in from..from + 10 {
        let id = desk.codex.asks_for(&format!("touch f{round}"));
        let card = desk.card().await;
        let held = Held::of(&desk.stage, &card);
        let tap = held.tap(&desk.stage, "allow");
        let key = async {
            tokio::time::sleep(std::time::Duration::from_micros(round * 250)).await;
            desk.codex.terminal_answers(id, "cancel")
        };
        let (_, first) = tokio::join!(tap, key);
        assert_eq!(desk.codex.answer(id).await.by_terminal, first);
        let face = if first { "已在终端" } else { "已批准" };
        desk.stage.shows(&card, face).await;
        let outcomes = desk.codex.answers().into_iter();
        assert_eq!(outcomes.filter(|answer| answer.id == id).count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_takes_its_reason_into_the_running_turn() {
    let mut desk = Desk::new().await;
    let id = desk.codex.asks_for("touch a");
    let card = desk.card().await;
    desk.reply(OWNER, &card, "先跑测试").await;
    assert_eq!(
        desk.codex.answer(id).await.result,
        json!({"decision": "decline"})
    );
    let steered = desk.codex.called("turn/steer").await;
    assert_eq!(
        steered["input"],
        json!([{"type": "text", "text": "先跑测试"}])
    );
    assert_eq!(steered["threadId"], THREAD);
    assert!(steered["expectedTurnId"].is_string());
    let id = desk.codex.asks_for("touch b");
    let card = desk.card().await;
    desk.stage.tap(&card, "interrupt").await;
    assert_eq!(
        desk.codex.answer(id).await.result,
        json!({"decision": "cancel"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waited_when_nod_was_killed_is_answered_by_its_old_card() {
    let mut desk = Desk::new().await;
    let id = desk.codex.asks_for("touch a");
    let card = desk.card().await;
    desk.stage.kill().await;
    desk.stage.start().await;
    let tapped = desk.stage.tap(&card, "allow").await;
    assert_eq!(toast(&tapped), ("success", "已批准运行"), "{tapped:?}");
    assert_eq!(
        desk.codex.answer(id).await.result,
        json!({"decision": "accept"})
    );
    assert_eq!(desk.stage.count(), 1, "no second card");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_broke_is_made_again_and_nothing_is_asked_twice() {
    let mut desk = Desk::new().await;
    let id = desk.codex.asks_for("touch a");
    let card = desk.card().await;
    desk.codex.hang_up();
    let tapped = desk.stage.tap(&card, "allow").await;
    assert!(!toast(&tapped).1.is_empty());
    assert_eq!(
        desk.codex.answer(id).await.result,
        json!({"decision": "accept"})
    );
    assert_eq!(desk.stage.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_killed_leaves_no_card_to_tap() {
    let mut desk = Desk::new().await;
    desk.codex.asks_for("touch a");
    let card = desk.card().await;
    desk.codex.kill();
    // Nobody answered it in a terminal.
    desk.stage.shows(&card, "请求已失效").await;
    assert!(desk.offers(&card).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_change_shows_its_diff_also_when_nod_came_late() {
    let mut desk = Desk::new().await;
    let project = desk.stage.home.project();
    let (old, new) = (project.join("old.txt"), project.join("new.txt"));
    let changes = json!([
        {"path": old, "kind": {"type": "update", "move_path": null},
         "diff": "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"},
        {"path": new, "kind": {"type": "add"}, "diff": "hello\n"},
    ]);
    let id = desk.codex.asks_to_change(&changes);
    let card = desk.card().await;
    let face = desk.stage.face(&card);
    for shown in ["old.txt", "+TWO", "new.txt", "hello"] {
        assert!(face.contains(shown), "{shown}: {face}");
    }
    assert!(face.contains("的任何后续修改，Codex 都不再询问"), "{face}");
    desk.stage.tap(&card, "session").await;
    let answer = desk.codex.answer(id).await;
    assert_eq!(answer.result, json!({"decision": "acceptForSession"}));
}

/// A change of `link`, which leads to the file of this name.
fn through_a_link(desk: &Desk, to: &str) -> Value {
    let project = desk.stage.home.project();
    let link = project.join("link");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(project.join(to), &link).unwrap();
    json!([{"path": link, "kind": {"type": "add"}, "diff": "hello\n"}])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_through_a_link_shows_where_it_leads_and_is_allowed_by_a_tap() {
    let mut desk = Desk::new().await;
    let changes = through_a_link(&desk, "target.txt");
    let id = desk.codex.asks_to_change(&changes);
    let card = desk.card().await;
    let face = desk.stage.face(&card);
    assert!(face.contains("target.txt"), "{face}");
    let tapped = desk.stage.tap(&card, "allow").await;
    assert_eq!(toast(&tapped), ("success", "已批准运行"), "{tapped:?}");
    let answer = desk.codex.answer(id).await;
    assert!(!answer.by_terminal);
    assert_eq!(answer.result, json!({"decision": "accept"}));
    desk.stage.shows(&card, "已批准").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_was_moved_while_nod_was_away_is_not_allowed_by_the_old_card() {
    let mut desk = Desk::new().await;
    let changes = through_a_link(&desk, "target.txt");
    let id = desk.codex.asks_to_change(&changes);
    let card = desk.card().await;
    desk.stage.kill().await;
    through_a_link(&desk, "elsewhere.txt");
    desk.stage.start().await;
    desk.stage.tap(&card, "allow").await;
    // The terminal still asks, so the card must not say that it was answered there.
    desk.stage.shows(&card, "连接已中断").await;
    assert!(desk.offers(&card).is_empty());
    assert!(desk.codex.answers().iter().all(|answer| answer.id != id));
    assert!(desk.codex.terminal_answers(id, "accept"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_in_codexs_own_form() {
    let mut desk = Desk::new().await;
    let question = json!({"id": "q1", "header": "Color", "question": "Which color?", "isOther": true,
        "isSecret": false, "options": [{"label": "Red", "description": "warm"},
            {"label": "Blue", "description": "cold"}]});
    let params = json!({"questions": [question], "isBlocking": true, "autoResolutionMs": null});
    let id = desk
        .codex
        .asks("item/tool/requestUserInput", params.clone());
    let card = desk.card().await;
    assert!(desk.stage.face(&card).contains("Which color?"));
    desk.reply(OWNER, &card, "Blue").await;
    let answers = |word: &str| json!({"answers": {"q1": {"answers": [word]}}});
    assert_eq!(desk.codex.answer(id).await.result, answers("Blue"));
    let mut secret = params;
    secret["questions"][0]["isSecret"] = true.into();
    desk.codex.asks("item/tool/requestUserInput", secret);
    let told = desk.card().await;
    let face = desk.stage.face(&told);
    assert!(face.contains("只能在终端回答"), "{face}");
    assert!(desk.offers(&told).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn more_questions_than_a_card_holds_are_named_and_left_to_the_terminal() {
    let mut desk = Desk::new().await;
    let question = |n: usize| {
        json!({"id": format!("q{n}"), "header": "", "question": format!("Which {n}?"),
            "isSecret": false, "options": [{"label": "A", "description": ""},
                {"label": "B", "description": ""}]})
    };
    let questions: Vec<_> = (0..5).map(question).collect();
    let params = json!({"questions": questions, "isBlocking": true});
    desk.codex.asks("item/tool/requestUserInput", params);
    let told = desk.card().await;
    let face = desk.stage.face(&told);
    assert!(face.contains("只能在终端回答"), "{face}");
    assert!(desk.offers(&told).is_empty());
    assert!(desk.codex.answers().is_empty());
}

/// Codex asks nobody but its own terminal whether to carry a plan out.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_shown_with_where_to_decide_and_a_reply_reaches_its_thread() {
    let mut desk = Desk::new().await;
    desk.codex.proposes("# Cut the cake\n- measure\n- cut\n");
    let told = desk.card().await;
    let face = desk.stage.face(&told);
    for shown in ["计划", "Cut the cake", "measure", "只在终端询问", "Codex"] {
        assert!(face.contains(shown), "{shown}: {face}");
    }
    assert!(
        desk.offers(&told).is_empty(),
        "nothing here can be approved"
    );
    desk.reply(STRANGER, &told, "do it").await;
    desk.reply(OWNER, &told, "measure twice").await;
    let started = desk.codex.called("turn/start").await;
    assert_eq!(started["input"][0]["text"], "measure twice");
    assert_eq!(started["threadId"], THREAD);
    assert_eq!(desk.codex.calls("turn/start").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plans_notice_stops_asking_once_the_terminal_went_on() {
    let mut desk = Desk::new().await;
    desk.codex.proposes("# Cut the cake\n- measure\n");
    let told = desk.card().await;
    assert!(desk.stage.face(&told).contains("请在终端决定"));
    desk.codex.works();
    let face = desk.stage.shows(&told, "会话已继续").await;
    assert!(face.contains("measure"), "the plan stays: {face}");
    assert!(!face.contains("请在终端决定"), "{face}");
    // The next plan of the same session has a notice of its own.
    desk.codex.proposes("# Cut it again\n- slowly\n");
    let again = desk.card().await;
    assert!(desk.stage.face(&again).contains("请在终端决定"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plans_notice_says_after_a_restart_that_nobody_watched() {
    let mut desk = Desk::new().await;
    desk.codex.proposes("# Cut the cake\n- measure\n");
    let told = desk.card().await;
    let state = desk.stage.home.state();
    let kept = || {
        let db = nod::for_tests::store::Db::open_read_only(&state).unwrap();
        let open = db.open_dialogs().unwrap();
        (!open.is_empty()).then_some(())
    };
    until("the notice is written down", || async { kept() }).await;
    desk.stage.kill().await;
    desk.stage.start().await;
    let face = desk.stage.shows(&told, "请看终端").await;
    assert!(face.contains("measure"), "the plan stays: {face}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_to_a_notice_that_feishu_has_not_named_yet_reaches_its_thread() {
    let mut desk = Desk::new().await;
    // The answer to the sending is lost, so nod has to ask for the name again.
    let lost = Armed::once(Fault::SendCreatedButReplyLost);
    desk.stage.sim.set_fault(lost).unwrap();
    desk.codex.proposes("# Cut the cake\n- measure\n- cut\n");
    let told = desk.card().await;
    desk.reply(OWNER, &told, "measure twice").await;
    let started = desk.codex.called("turn/start").await;
    assert_eq!(started["input"][0]["text"], "measure twice");
}

/// What an MCP server asks by a form of one field.
fn form() -> Value {
    let schema = json!({"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string", "title": "Your name"}}});
    json!({"serverName": "files", "mode": "form", "message": "Who are you?", "_meta": null,
        "requestedSchema": schema})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_mcp_servers_form_is_filled_in_from_the_phone() {
    let mut desk = Desk::new().await;
    let id = desk.codex.asks("mcpServer/elicitation/request", form());
    let card = desk.card().await;
    assert!(desk.stage.face(&card).contains("Who are you?"));
    desk.reply(OWNER, &card, "lin").await;
    let filled = json!({"action": "accept", "content": {"name": "lin"}});
    assert_eq!(desk.codex.answer(id).await.result, filled);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nod_does_not_know_is_named_and_never_answered() {
    let mut desk = Desk::new().await;
    let id = desk.codex.asks("item/new/requestApproval", json!({}));
    let told = desk.card().await;
    let face = desk.stage.face(&told);
    assert!(
        face.contains("还不认识") && face.contains("Codex"),
        "{face}"
    );
    assert!(desk.codex.terminal_answers(id, "accept"));
}

#[tokio::test(flavor = "multi_thread")]
async fn words_from_the_phone_go_into_the_session_on_the_screen() {
    let mut desk = Desk::with(|home| home.set("NOD_NOTIFY_STOP_AFTER", "1")).await;
    desk.codex.ends_turn("All done.", 120_000);
    let told = desk.card().await;
    let face = desk.stage.face(&told);
    assert!(
        face.contains("All done.") && face.contains("Codex"),
        "{face}"
    );
    desk.reply(STRANGER, &told, "rm -rf /").await;
    desk.reply(OWNER, &told, "now the docs").await;
    let started = desk.codex.called("turn/start").await;
    assert_eq!(
        started["input"],
        json!([{"type": "text", "text": "now the docs"}])
    );
    assert_eq!(started["threadId"], THREAD);
    let starts = |call: &&Value| call["method"] == "turn/start";
    assert_eq!(desk.codex.heard().iter().filter(starts).count(), 1);
}

/// Nod is killed between the notice and the reply to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_finds_its_thread_also_after_a_restart() {
    let mut desk = Desk::with(|home| home.set("NOD_NOTIFY_STOP_AFTER", "1")).await;
    desk.codex.ends_turn("All done.", 120_000);
    let told = desk.card().await;
    // What was told of is known by now.
    desk.reply(OWNER, &told, "first").await;
    desk.codex.called("turn/start").await;
    desk.stage.kill().await;
    desk.codex.forget();
    desk.stage.start().await;
    desk.codex.followed().await;
    desk.reply(OWNER, &told, "now the docs").await;
    let started = desk.codex.called("turn/start").await;
    assert_eq!(started["input"][0]["text"], "now the docs");
    assert_eq!(started["threadId"], THREAD);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_threads_of_terminals_are_listed_and_spoken_to() {
    let mut desk = Desk::new().await;
    desk.codex.called("thread/read").await;
    let mut listed = String::new();
    while !listed.contains("T1 ") {
        within(desk.stage.sim.push_text(&ChatText::new("/sessions")))
            .await
            .unwrap();
        listed = desk.stage.sent().await.content;
    }
    assert!(listed.contains("Codex · 空闲"), "{listed}");
    within(
        desk.stage
            .sim
            .push_text(&ChatText::new("/say T1 run the tests")),
    )
    .await
    .unwrap();
    let started = desk.codex.called("turn/start").await;
    assert_eq!(started["input"][0]["text"], "run the tests");
    assert_eq!(started["threadId"], THREAD);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewer_and_a_strange_protocol_are_known_to_status_and_doctor() {
    let mut desk = Desk::new().await;
    desk.codex.reviewed_by("auto_review");
    let reviewed = |status: &Value| status["codex"][0]["reviewer"] == "auto_review";
    desk.stage.until_status(reviewed).await;
    desk.codex.becomes_strange();
    let refused = |status: &Value| status["codex"][0]["state"] == "refused";
    let status = desk.stage.until_status(refused).await;
    let cause = status["codex"][0]["cause"].as_str().unwrap();
    assert!(cause.contains("does not know: unknown method"), "{cause}");
    let page = desk.stage.home.run(&["status"]).await.stdout;
    assert!(
        page.contains(", not followed: it speaks a protocol"),
        "{page}"
    );
    let asked = |call: &Value| call["method"].is_null();
    assert!(
        !desk.codex.heard().iter().any(asked),
        "nothing was answered"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn off_is_off() {
    let stage = Stage::with(|_, home| home.set("NOD_CODEX", "off")).await;
    let home = stage.home.path().join("home/.codex");
    let codex = Codex::start(&home, &stage.home.project());
    let status = stage.home.status().await;
    assert_eq!(status["codex"], json!([]));
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    assert!(codex.heard().is_empty());
}
