use super::*;
use crate::daemon::bench::{DaemonBench, OWNER};
use crate::daemon::talking::sessions::bench::in_time;
use crate::ids::SessionId;
use crate::sessions::progress::ProgressStep;
use crate::talk::How;
use serde_json::json;

/// A session that rests, where it is, and its voice.
struct Speaking {
    bench: DaemonBench,
    number: i64,
    voice: Voice,
}

impl Speaking {
    /// In this thread of its chat; the card is of its task.
    async fn with(thread: Option<&str>, card: Option<&str>) -> Self {
        let bench = DaemonBench::new().await;
        let number = bench.rests("s1", thread).await;
        let card = card.map(|card| MessageId::parse(card).unwrap());
        let voice = Voice::start(&bench.chat.sessions, number, card);
        Self {
            bench,
            number,
            voice,
        }
    }

    async fn new() -> Self {
        Self::with(Some("omt_1"), None).await
    }

    fn refuses(&self, code: i64, msg: &str) {
        self.bench.bench.answers(json!({"code": code, "msg": msg}));
    }

    /// Whether the session is known to have this card.
    fn shows(&self, card: Option<&str>) -> bool {
        let kept = self.bench.chat.sessions.find(self.number).unwrap().kept;
        kept.card.as_ref().map(MessageId::as_str) == card
    }

    /// As [`Self::shows`], after a restart.
    async fn keeps(&self, card: Option<&str>) -> bool {
        let store = &self.bench.cards.journal.store;
        let kept = store.run(crate::store::Db::sessions).await.unwrap();
        kept[0].card.as_ref().map(MessageId::as_str) == card
    }

    /// The edits made so far: of which message, and the card.
    fn edits(&self) -> Vec<(String, String)> {
        let calls = self.bench.bench.calls().into_iter();
        let edits = calls.filter(|(_, body)| body.get("msg_type").is_none());
        edits
            .map(|(path, body)| {
                let message = path.rsplit('/').next().unwrap_or_default().to_owned();
                (message, body["content"].as_str().unwrap().to_owned())
            })
            .collect()
    }

    fn calls(&self) -> usize {
        self.bench.bench.calls().len()
    }
}

fn view(words: &str) -> ProgressView {
    ProgressView {
        step: Some(ProgressStep {
            tool: "Bash".to_owned(),
            summary: words.to_owned(),
        }),
        words: Some(words.to_owned()),
        tools: vec![("Bash".to_owned(), 1)],
        failed_tools: 0,
        elapsed: 1_000,
        retry: None,
        cost_usd: None,
        model: None,
    }
}

const BUSY: i64 = 1_500;
const NOT_THERE: i64 = 230_002;
const FORBIDDEN: i64 = 230_022;
/// A call is tried so often before its caller hears of it.
const CALLS: usize = 5;

#[tokio::test]
async fn a_task_is_one_card_in_the_thread_from_its_first_step_to_its_end() {
    let it = Speaking::new().await;
    it.voice.progress(view("first step"));
    it.bench.until(|_| it.shows(Some("om_1"))).await;
    let (path, body) = it.bench.bench.calls().remove(0);
    assert!(path.ends_with("messages/om_s1/reply"), "{path}");
    assert_eq!(body["reply_in_thread"], true);
    assert!(body["content"].as_str().unwrap().contains("first step"));
    assert!(it.keeps(Some("om_1")).await, "a restart finds it");
    it.voice.progress(view("second step"));
    it.bench.until(|_| it.edits().len() == 1).await;
    let (message, card) = it.edits().remove(0);
    assert_eq!(message, "om_1");
    assert!(card.contains("second step"));
    it.voice.ended(TaskEnd::Stopped, None);
    it.bench.until(|_| it.edits().len() == 2).await;
    let (message, card) = it.edits().remove(1);
    assert_eq!(message, "om_1");
    assert!(card.contains(&*words::STOPPED.en), "{card}");
    assert!(card.contains("Bash"), "what it last did is known: {card}");
    it.bench.until(|_| it.shows(None)).await;
    it.voice.progress(view("another task"));
    it.bench.until(|_| it.bench.sent().len() == 2).await;
}

#[tokio::test]
async fn of_steps_that_wait_only_the_newest_is_shown() {
    let it = Speaking::with(None, Some("om_card")).await;
    for step in ["one", "two", "three"] {
        it.voice.progress(view(step));
    }
    let end = TaskEnd::Turn(How::Done);
    it.voice.ended(end, Some(view("the last")));
    it.voice.text("done".to_owned());
    it.bench.until(|bench| bench.said() == ["done"]).await;
    it.bench.until(|_| !it.edits().is_empty()).await;
    let edits = it.edits();
    assert_eq!(edits.len(), 1, "{edits:?}");
    assert!(edits[0].1.contains(&*words::DONE.en));
}

#[tokio::test]
async fn a_slow_feishu_holds_nobody_up_and_progress_is_left_out_first() {
    let (voice, mut said) = mpsc::channel(2);
    let voice = Voice(voice);
    voice.text("one".to_owned());
    voice.progress(view("step"));
    voice.progress(view("left out"));
    voice.answer("lost".to_owned());
    assert!(matches!(said.recv().await, Some(VoiceLine::Text(text)) if text == "one"));
    assert!(matches!(said.recv().await, Some(VoiceLine::Progress(_))));
    voice.ended(TaskEnd::Crashed, None);
    let end = said.recv().await;
    assert!(matches!(
        end,
        Some(VoiceLine::Ended(TaskEnd::Crashed, None))
    ));
}

#[tokio::test]
async fn what_it_says_can_be_replied_to() {
    let it = Speaking::with(None, None).await;
    it.voice.text("Stopped.".to_owned());
    it.bench.until(|bench| bench.said() == ["Stopped."]).await;
    let (path, body) = it.bench.bench.calls().remove(0);
    assert!(path.ends_with("messages/om_s1/reply"), "{path}");
    assert_eq!(body["reply_in_thread"], false, "there is no thread");
    it.voice.text("again".to_owned());
    it.bench.until(|bench| bench.said().len() == 2).await;
    let said = MessageId::parse("om_1").unwrap();
    let store = &it.bench.cards.journal.store;
    let about = store
        .run(move |db| db.notice(&said))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(about.session, SessionId::parse("s1").unwrap());
    assert_eq!(about.project, "shop");
}

#[tokio::test]
async fn a_long_answer_is_several_cards_and_only_the_last_says_what_is_missing() {
    let it = Speaking::new().await;
    let limits = markdown::MarkdownLimits::default;
    let line = "x".repeat(99) + "\n\n";
    let mut cards = 0;
    for (text, missing) in [
        ("short **answer**".to_owned(), false),
        (line.repeat(400), false),
        (line.repeat(4_000), true),
    ] {
        let cut = markdown::answer(&text, limits());
        assert_eq!(cut.left_out > 0, missing);
        it.voice.answer(text);
        cards += cut.pieces.len();
        it.bench.until(|bench| bench.sent().len() == cards).await;
        let is_told = |card: &&Value| card.to_string().contains("characters are not shown");
        let sent = it.bench.sent();
        let told = sent.iter().filter(is_told).count();
        assert_eq!(told, usize::from(missing));
        assert_eq!(is_told(&sent.last().unwrap()), missing);
    }
    assert!(cards > 2 + limits().pieces);
}

#[tokio::test]
async fn an_answer_that_feishu_takes_no_card_of_is_said_as_text() {
    let it = Speaking::new().await;
    it.refuses(FORBIDDEN, "no such words");
    it.voice.answer("call 555-0100".to_owned());
    it.bench
        .until(|bench| bench.said() == ["call 555-0100"])
        .await;
    for _ in 0..2 {
        it.refuses(FORBIDDEN, "no such words");
    }
    it.voice.answer("call 555-0199".to_owned());
    let refused = &words::ANSWER_REFUSED.en;
    it.bench
        .until(|bench| bench.said().last().is_some_and(|said| said == refused))
        .await;
}

#[tokio::test]
async fn an_answer_with_nowhere_to_go_is_told_to_the_owner() {
    let it = Speaking::new().await;
    it.refuses(NOT_THERE, "not in the group");
    it.voice.answer("all green".to_owned());
    let lost = words::answer_lost(it.number).en.to_string();
    it.bench.until(|bench| bench.said() == [&*lost]).await;
    let (path, _) = it.bench.bench.calls().remove(1);
    assert!(path.ends_with("/reply"), "where the session is: {path}");
    for _ in 0..2 {
        it.refuses(NOT_THERE, "not in the group");
    }
    it.voice.answer("all green".to_owned());
    it.bench.until(|bench| bench.said().len() == 3).await;
    let (path, body) = it.bench.bench.calls().pop().unwrap();
    assert!(path.ends_with("/messages"), "{path}");
    assert_eq!(body["receive_id"], OWNER);
    assert_eq!(it.bench.said().pop().unwrap(), lost);
}

#[tokio::test]
async fn while_feishu_is_busy_a_notice_waits_a_while_and_an_answer_far_longer() {
    let it = Speaking::new().await;
    let a_while = CALLS * usize::try_from(TRIES).unwrap();
    for _ in 0..2 * a_while {
        it.refuses(BUSY, "busy");
    }
    it.voice.text("a notice".to_owned());
    it.voice.answer("the answer".to_owned());
    in_time(|| it.calls() == 2 * a_while + 1).await;
    let calls = it.bench.bench.calls();
    let (notice, answer) = calls.split_at(a_while);
    let is_notice = |(_, body): &(String, Value)| body["msg_type"] == "text";
    assert!(notice.iter().all(is_notice), "it is given up");
    assert!(!answer.iter().any(is_notice));
    let once = |tries: &[(String, Value)]| {
        let same = |(_, body): &(String, Value)| body["uuid"] == tries[0].1["uuid"];
        tries.iter().all(same)
    };
    assert!(once(notice) && once(answer), "Feishu sends neither twice");
    assert_ne!(notice[0].1["uuid"], answer[0].1["uuid"]);
}

#[tokio::test]
async fn words_that_wait_for_feishu_do_not_hold_up_the_daemons_end() {
    let it = Speaking::new().await;
    for _ in 0..2 * CALLS {
        it.refuses(BUSY, "busy");
    }
    it.voice.answer("the answer".to_owned());
    in_time(|| it.calls() == CALLS).await;
    let Speaking { bench, voice, .. } = it;
    drop(voice);
    let since = std::time::Instant::now();
    bench.chat.sessions.stop().await;
    assert!(since.elapsed() < super::super::STOP_WITHIN / 2);
    assert_eq!(bench.bench.calls().len(), CALLS, "nothing is said of it");
}

#[tokio::test]
async fn a_task_that_the_daemons_end_cuts_off_is_shown_so_at_once_or_at_the_next_start() {
    for refused in [false, true] {
        let it = Speaking::with(None, Some("om_card")).await;
        if refused {
            it.refuses(230_099, "ErrCode: 200621; ErrMsg: parse card json err");
        }
        it.bench.chat.sessions.stop.cancel();
        it.voice.ended(TaskEnd::Restarted, None);
        it.bench.until(|_| it.edits().len() == 2).await;
        for (message, card) in it.edits() {
            assert_eq!(message, "om_card");
            assert!(card.contains(&*words::RESTARTED.en));
        }
        assert!(it.shows(None));
    }
}

#[tokio::test]
async fn a_task_without_a_card_ends_without_one() {
    let it = Speaking::new().await;
    it.voice.ended(TaskEnd::Crashed, Some(view("step")));
    it.voice.text("over".to_owned());
    it.bench.until(|bench| bench.said() == ["over"]).await;
    assert_eq!(it.calls(), 1);
}

#[tokio::test]
async fn a_card_in_a_layout_that_feishu_refuses_comes_plainly_and_that_is_told_once() {
    let it = Speaking::new().await;
    it.refuses(230_099, "ErrCode: 200621; ErrMsg: parse card json err");
    it.voice.progress(view("first step"));
    it.bench.until(|_| it.shows(Some("om_2"))).await;
    let calls = it.bench.bench.calls();
    assert_ne!(calls[0].1["content"], calls[1].1["content"]);
    let told = it.bench.said();
    assert_eq!(told.len(), 1, "{told:?}");
    it.voice.progress(view("second step"));
    it.bench.until(|_| it.edits().len() == 1).await;
    assert_eq!(it.bench.said().len(), 1);
}

#[tokio::test]
async fn feishus_own_trouble_with_a_card_is_waited_out_once() {
    let it = Speaking::new().await;
    let hiccup = "Failed to create card content, ext=Server Internal Error";
    it.refuses(230_099, hiccup);
    it.voice.progress(view("first step"));
    in_time(|| it.calls() == 2).await;
    let calls = it.bench.bench.calls();
    assert_eq!(
        calls[0].1["content"], calls[1].1["content"],
        "the same card"
    );
    it.bench.until(|_| it.shows(Some("om_2"))).await;
}

#[tokio::test]
async fn a_session_that_nobody_knows_says_nothing() {
    let it = Speaking::new().await;
    let voice = Voice::start(&it.bench.chat.sessions, it.number + 1, None);
    voice.progress(view("step"));
    voice.answer("all green".to_owned());
    voice.text("over".to_owned());
    drop(voice);
    for said in 1..3 {
        it.voice.text("I am here".to_owned());
        it.bench.until(|bench| bench.said().len() == said).await;
    }
    assert_eq!(it.bench.said(), ["I am here", "I am here"]);
    assert!(it.bench.sent().is_empty());
}

#[test]
fn what_a_program_said_stands_in_a_chat_only_as_it_may_be_quoted() {
    let odd = "rm\u{202e}x";
    let shown = quote(odd);
    assert_ne!(shown, odd);
    let words = || Some(odd.to_owned());
    for (notice, wanted) in [
        (
            Notice::Crashed { words: words() },
            Notice::Crashed {
                words: Some(shown.clone()),
            },
        ),
        (
            Notice::NotStarted {
                problem: odd.to_owned(),
            },
            Notice::NotStarted {
                problem: shown.clone(),
            },
        ),
        (
            Notice::ApprovalTimedOut {
                tool: odd.to_owned(),
            },
            Notice::ApprovalTimedOut {
                tool: shown.clone(),
            },
        ),
        (
            Notice::NotBrought { tool: words() },
            Notice::NotBrought {
                tool: Some(shown.clone()),
            },
        ),
        (
            Notice::BackgroundEnded {
                tasks: vec![odd.to_owned(), "make".to_owned()],
            },
            Notice::BackgroundEnded {
                tasks: vec![shown.clone(), "make".to_owned()],
            },
        ),
        (Notice::Stopped, Notice::Stopped),
    ] {
        assert_eq!(quoted(&notice), wanted);
    }
}
