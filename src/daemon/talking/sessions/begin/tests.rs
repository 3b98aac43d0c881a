use super::super::MAX_AWAKE;
use super::*;
use crate::daemon::bench::DaemonBench;
use crate::feishu::messages::AttachmentKind;
use crate::ids::ChatId;
use crate::sessions::route::Written;
use crate::sessions::state::Notice;
use crate::store::Db;
use crate::wording::session;
use serde_json::json;
use tokio::sync::mpsc;

fn message(id: &str) -> MessageId {
    MessageId::parse(id).unwrap()
}

fn shop(bench: &DaemonBench) -> Project {
    Project {
        name: "shop".to_owned(),
        path: bench.shop(),
        agent: Agent::Claude,
    }
}

fn words_of(words: &str) -> SessionOpening<'_> {
    SessionOpening {
        place: ChatPlace {
            chat: ChatId::parse("oc_chat").unwrap(),
            thread: None,
        },
        message: message("om_asked"),
        agent: Agent::Claude,
        conversation: None,
        home: None,
        words,
        files: &[],
    }
}

async fn begins(bench: &DaemonBench, opening: SessionOpening<'_>) -> Result<Option<Text>, Text> {
    let sessions = &bench.chat.sessions;
    begin(sessions, &shop(bench), opening).await
}

/// The only session there is.
fn only(bench: &DaemonBench) -> KeptSession {
    let mut all = bench.chat.sessions.list();
    assert_eq!(all.len(), 1);
    all.remove(0).kept
}

/// What a restart would find.
async fn on_disk(bench: &DaemonBench) -> Vec<KeptSession> {
    let store = &bench.cards.journal.store;
    store.run(Db::sessions).await.unwrap()
}

#[tokio::test]
async fn a_session_begins_with_its_card_in_a_thread_of_its_own() {
    let bench = DaemonBench::new().await;
    let sent = json!({"message_id": "om_card", "chat_id": "oc_chat", "thread_id": "omt_1",
        "root_id": "om_asked"});
    bench.bench.answers(json!({"code": 0, "data": sent}));
    let words = format!("fix\nthe {}", "x".repeat(100));
    assert_eq!(begins(&bench, words_of(&words)).await, Ok(None));
    let kept = only(&bench);
    assert_eq!(kept.place.thread.as_deref(), Some("omt_1"));
    assert_eq!(kept.anchor, message("om_card"));
    assert_eq!(kept.card, Some(message("om_card")));
    assert_eq!(kept.title, clean(&words, MAX_TITLE));
    assert!(!kept.saved.begun, "the agent has not begun yet");
    let (path, body) = bench.bench.calls().remove(0);
    assert!(path.ends_with("messages/om_asked/reply"), "{path}");
    assert_eq!(body["reply_in_thread"], true);
    assert!(body["content"].as_str().unwrap().contains("Task running"));
    let after_a_restart = on_disk(&bench).await.remove(0);
    assert_eq!(after_a_restart.place, kept.place);
    assert_eq!(after_a_restart.anchor, kept.anchor);
    assert_eq!(after_a_restart.saved.conversation, kept.saved.conversation);
    let written = Written {
        place: ChatPlace {
            chat: kept.place.chat.clone(),
            thread: None,
        },
        parent: None,
        root: Some(message("om_asked")),
    };
    let topic = bench.chat.sessions.topic_of(&written);
    assert_eq!(topic, Some(kept.place.clone()), "found by what it hangs on");
    let store = &bench.cards.journal.store;
    let about = store.run(move |db| db.notice(&kept.anchor)).await.unwrap();
    let conversation = about.map(|about| about.session);
    assert_eq!(
        conversation,
        Some(kept.saved.conversation),
        "and by its card"
    );
}

#[tokio::test]
async fn it_gets_its_first_words_at_once() {
    let bench = DaemonBench::new().await;
    begins(&bench, words_of("fix it")).await.unwrap();
    let woken = session::notice(&Notice::NotInstalled, Agent::Claude);
    bench
        .until(|bench| bench.said().iter().any(|said| *said == woken.en))
        .await;
}

#[tokio::test]
async fn where_there_are_no_threads_its_card_stands_in_the_chat() {
    let bench = DaemonBench::new().await;
    let refusal = json!({"code": 230_071, "msg": "no topics here"});
    bench.bench.answers(refusal);
    assert_eq!(begins(&bench, words_of("fix it")).await, Ok(None));
    let calls = bench.bench.calls();
    assert_eq!(calls[0].1["reply_in_thread"], true);
    assert_eq!(calls[1].1["reply_in_thread"], false);
    assert_ne!(calls[0].1["uuid"], calls[1].1["uuid"], "another message");
    assert_eq!(only(&bench).place.thread, None);
    assert_eq!(only(&bench).anchor, message("om_2"));
}

#[tokio::test]
async fn a_thread_that_it_was_asked_for_in_stays_its_place() {
    let bench = DaemonBench::new().await;
    let mut opening = words_of("fix it");
    opening.place.thread = Some("omt_7".to_owned());
    let sessions = &bench.chat.sessions;
    let begun = begin(sessions, &shop(&bench), opening).await;
    assert_eq!(begun, Ok(None));
    assert_eq!(only(&bench).place.thread.as_deref(), Some("omt_7"));
}

#[tokio::test]
async fn one_that_feishu_takes_no_card_of_does_not_begin() {
    let bench = DaemonBench::new().await;
    for _ in 0..2 {
        let refusal = json!({"code": 230_002, "msg": "not in the group"});
        bench.bench.answers(refusal);
    }
    let begun = begins(&bench, words_of("fix it")).await;
    assert_eq!(begun, Err(words::FEISHU_FAILED));
    assert_eq!(bench.bench.calls().len(), 2);
    assert!(bench.chat.sessions.list().is_empty());
    assert_eq!(on_disk(&bench).await, [], "a restart brings none");
}

#[tokio::test]
async fn one_too_many_does_not_begin_and_shows_no_card_that_runs_for_ever() {
    let bench = DaemonBench::new().await;
    for n in 0..MAX_AWAKE {
        bench.rests(&format!("c{n}"), Some("omt_1")).await;
    }
    let sessions = &bench.chat.sessions;
    let (orders, _inbox) = mpsc::channel(1);
    for awake in sessions.list() {
        let owner = Some(orders.clone());
        sessions.change(awake.kept.number, |entry| entry.owner = owner);
    }
    let begun = begins(&bench, words_of("fix it")).await;
    assert_eq!(begun, Err(words::TOO_MANY_SESSIONS));
    assert!(bench.sent().is_empty());
    assert_eq!(sessions.list().len(), MAX_AWAKE);
    assert_eq!(on_disk(&bench).await.len(), MAX_AWAKE);
}

#[tokio::test]
async fn the_card_of_one_that_got_no_words_says_that_it_did_not_start() {
    let bench = DaemonBench::new().await;
    let unknown = Project {
        name: "gone".to_owned(),
        ..shop(&bench)
    };
    let sessions = &bench.chat.sessions;
    let begun = begin(sessions, &unknown, words_of("fix it")).await;
    assert_eq!(begun, Err(words::PROJECT_UNKNOWN));
    let ended = |bench: &DaemonBench| {
        let calls = bench.bench.calls();
        let (path, body) = calls.last().unwrap();
        let card = body["content"].as_str().unwrap();
        path.ends_with("/om_1") && card.contains(&*words::NOT_STARTED.en)
    };
    bench.until(ended).await;
}

#[tokio::test]
async fn codex_begins_only_where_it_has_a_home() {
    let bench = DaemonBench::with(&[("NOD_CODEX", "off")]).await;
    let opening = SessionOpening {
        agent: Agent::Codex,
        ..words_of("fix it")
    };
    assert_eq!(begins(&bench, opening).await, Err(words::CODEX_OFF));
    let bench = DaemonBench::with(&[("NOD_CODEX", "/codex")]).await;
    let opening = SessionOpening {
        agent: Agent::Codex,
        home: Some("/codex".into()),
        ..words_of("fix it")
    };
    assert_eq!(begins(&bench, opening).await, Ok(None));
    let kept = only(&bench);
    assert_eq!(kept.agent, Agent::Codex);
    assert_eq!(kept.home.as_deref(), Some("/codex".as_ref()));
}

#[tokio::test]
async fn a_file_that_cannot_be_had_is_told_and_keeps_no_session_from_beginning() {
    let bench = DaemonBench::new().await;
    let file = files::HeldFile {
        message: message("om_file"),
        key: "file_1".to_owned(),
        name: "plan.txt".to_owned(),
        kind: AttachmentKind::File,
    };
    let refusal = json!({"code": 230_110, "msg": "it is gone"});
    bench.bench.answers(refusal);
    let files = [file];
    let opening = SessionOpening {
        files: &files,
        ..words_of("read this")
    };
    let begun = begins(&bench, opening).await;
    assert_eq!(begun, Ok(Some(words::file_failed("plan.txt"))));
    assert_eq!(only(&bench).title, "read this");
}

#[tokio::test]
async fn a_terminals_session_comes_into_the_chat_once_and_waits_for_words() {
    let bench = DaemonBench::new().await;
    let taken = || SessionOpening {
        conversation: SessionId::parse("c-1").ok(),
        ..words_of("")
    };
    let sessions = &bench.chat.sessions;
    let number = adopt(sessions, &shop(&bench), taken()).await;
    let kept = only(&bench);
    assert_eq!(number, Ok(kept.number));
    assert_eq!(kept.saved.conversation.as_str(), "c-1");
    assert!(kept.saved.begun, "its agent knows it");
    assert_eq!(kept.anchor, message("om_asked"));
    assert!(bench.bench.calls().is_empty(), "nothing runs");
    let again = adopt(sessions, &shop(&bench), taken()).await;
    assert_eq!(again, Err(words::ALREADY_HERE));
    assert_eq!(on_disk(&bench).await.len(), 1);
    let begun = begins(&bench, taken()).await;
    assert_eq!(begun, Err(words::ALREADY_HERE));
}
