use super::*;
use crate::daemon::bench::{APPROVER, DaemonBench, OWNER, STRANGER, message, writes};
use crate::daemon::cards::locking;
use crate::daemon::talking::chat::take;
use serde_json::json;

async fn told(bench: &DaemonBench, text: &str) -> Option<String> {
    let before = bench.said().len();
    take(&bench.chat, &writes(OWNER, text)).await;
    bench.said().get(before).cloned()
}

#[tokio::test]
async fn a_command_without_its_session_is_told_what_is_missing() {
    let bench = DaemonBench::new().await;
    for (text, answer) in [
        ("go on", words::NO_SESSION_HERE),
        ("/stop", words::NO_SESSION_HERE),
        ("/status", words::NOTHING_WAITS),
        ("/mode plan", words::NO_SESSION_HERE),
        ("/resume", words::NO_SESSIONS),
        ("/say 7 hi", terminal::NO_SUCH_TERMINAL),
        ("/resume T7", terminal::NO_SUCH_TERMINAL),
    ] {
        assert_eq!(
            told(&bench, text).await.as_deref(),
            Some(&*answer.en),
            "{text}"
        );
    }
    bench.rests("c1", None).await;
    let answer = told(&bench, "/resume 7").await;
    assert_eq!(answer.as_deref(), Some(&*words::NO_SUCH_SESSION.en));
}

#[tokio::test]
async fn status_outside_of_a_topic_lists_what_waits() {
    let bench = DaemonBench::new().await;
    let command = json!({"command": "mysql -phunter2 shop"});
    let asked = crate::approvals::outcome::sample::request("Bash", command);
    let id = asked.id.clone();
    let _hook = bench.bench.asks(asked);
    let said = told(&bench, "/status").await.unwrap();
    assert!(
        said.starts_with("mysql -p⟦secret password 7B⟧ shop · shop, waits "),
        "{said}"
    );
    let cards = &bench.standing.cards;
    assert!(cards.desk.runs(&id, cards.now()).is_some());
    let said = told(&bench, "/status").await.unwrap();
    assert!(said.contains("shop · shop, runs for 0 s"), "{said}");
}

#[tokio::test]
async fn words_that_could_be_for_two_sessions_go_to_neither() {
    let bench = DaemonBench::new().await;
    bench.rests("c1", Some("omt_1")).await;
    bench.rests("c2", Some("omt_2")).await;
    let answer = told(&bench, "go on").await;
    assert_eq!(answer.as_deref(), Some(&*words::WHICH_SESSION.en));
    let rests = |one: ListedSession| one.status == state::SessionStatus::Idle;
    assert!(bench.chat.sessions.list().into_iter().all(rests));
}

#[tokio::test]
async fn nobody_but_the_owner_begins_or_steers_a_session() {
    let bench = DaemonBench::new().await;
    let number = bench.rests("c1", None).await;
    for who in [STRANGER, APPROVER] {
        for text in [
            "/new shop delete it all",
            "go on",
            "/mode acceptEdits",
            "/stop",
        ] {
            take(&bench.chat, &writes(who, text)).await;
        }
    }
    assert_eq!(bench.chat.sessions.list().len(), 1);
    let found = bench.chat.sessions.find(number).unwrap();
    assert_eq!(found.status, state::SessionStatus::Idle);
    assert_eq!(found.kept.saved.mode, Mode::Default);
    assert!(
        bench
            .audit()
            .await
            .iter()
            .all(|kind| kind != "session_started")
    );
}

#[tokio::test]
async fn words_alone_widen_no_mode() {
    let bench = DaemonBench::new().await;
    let number = bench.rests("c1", None).await;
    let mode = || bench.chat.sessions.find(number).unwrap().kept.saved.mode;
    let becomes = async |wanted| {
        for _ in 0..1_000 {
            if mode() == wanted {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the mode is {:?}", mode());
    };
    take(&bench.chat, &writes(OWNER, "/mode acceptEdits")).await;
    assert_eq!(mode(), Mode::Default);
    let offered = crate::daemon::bench::buttons(bench.sent().last().unwrap());
    assert_eq!(offered.len(), 1, "the one that was typed");
    // The button stands for the same words, said by a tap.
    super::super::tapped(&bench.chat, &writes(OWNER, "/mode acceptEdits")).await;
    becomes(Mode::AcceptEdits).await;
    take(&bench.chat, &writes(OWNER, "/mode plan")).await;
    becomes(Mode::Plan).await;
    take(&bench.chat, &writes(OWNER, "/mode default")).await;
    let sent = bench.sent();
    let offered = crate::daemon::bench::buttons(sent.last().unwrap());
    assert_eq!(offered.len(), 1, "{sent:?}");
    assert_eq!(mode(), Mode::Plan, "to ask less is wider");
}

#[tokio::test]
async fn a_lock_keeps_every_session_from_working() {
    let bench = DaemonBench::new().await;
    let number = bench.rests("c1", None).await;
    locking::set(&bench.cards, true, None).await;
    let locked = bench.cards.lock.text();
    for text in ["/new shop do it", "/resume T1", "go on"] {
        assert_eq!(
            told(&bench, text).await.as_deref(),
            Some(&*locked.en),
            "{text}"
        );
    }
    assert_eq!(bench.chat.sessions.list().len(), 1);
    let found = bench.chat.sessions.find(number).unwrap();
    assert_eq!(found.status, state::SessionStatus::Idle);
}

#[tokio::test]
async fn the_only_project_needs_no_name_and_of_several_none_is_guessed() {
    let bench = DaemonBench::new().await;
    told(&bench, "/new tidy up").await;
    let [one] = &bench.chat.sessions.list()[..] else {
        panic!("one session");
    };
    assert_eq!(
        (one.kept.project.as_str(), one.kept.title.as_str()),
        ("shop", "tidy up")
    );
    assert_eq!(bench.audit().await, ["session_started"]);
    let shop = bench.shop();
    let two = format!("shop={0},site={0}", shop.display());
    let bench = DaemonBench::with(&[("NOD_PROJECTS", &two)]).await;
    told(&bench, "/new tidy up").await;
    assert!(bench.chat.sessions.list().is_empty(), "it asks which");
    let asked = crate::daemon::bench::buttons(&bench.sent()[0]);
    assert_eq!(asked.len(), 2);
    let bench = DaemonBench::with(&[("NOD_PROJECTS", "")]).await;
    let answer = told(&bench, "/new tidy up").await;
    assert_eq!(answer.as_deref(), Some(&*words::NO_PROJECTS.en));
}

#[tokio::test]
async fn a_session_whose_project_is_configured_no_more_gets_no_words() {
    let bench = DaemonBench::with(&[("NOD_PROJECTS", "")]).await;
    let number = bench.rests("c1", None).await;
    let answer = told(&bench, "go on").await;
    assert_eq!(answer.as_deref(), Some(&*words::PROJECT_UNKNOWN.en));
    let found = bench.chat.sessions.find(number).unwrap();
    assert_eq!(found.status, state::SessionStatus::Idle);
}

#[tokio::test]
async fn a_session_is_taken_up_in_the_thread_of_whoever_asks_or_without_one() {
    let bench = DaemonBench::new().await;
    let number = bench.rests("c1", None).await;
    let anchor = || bench.chat.sessions.find(number).unwrap().kept.anchor;
    let threads = |from: usize| -> Vec<bool> {
        let calls = bench.bench.calls().split_off(from);
        let all = calls
            .iter()
            .map(|(_, body)| body["reply_in_thread"] == true);
        all.collect()
    };
    let before = anchor();
    told(&bench, "/resume 1").await;
    assert_eq!(threads(0), [true]);
    assert_eq!(anchor().as_str(), "om_1", "a reply to its words is for it");
    assert_ne!(before, anchor());
    bench
        .bench
        .answers(json!({"code": 230_071, "msg": "no threads here"}));
    told(&bench, "/resume 1").await;
    assert_eq!(threads(1), [true, false]);
    assert_eq!(anchor().as_str(), "om_3");
}

#[tokio::test]
async fn a_terminal_of_claude_codes_is_not_taken_over() {
    let bench = DaemonBench::new().await;
    let common = crate::claude::permission::Common {
        session: SessionId::parse("s1").ok(),
        ..Default::default()
    };
    bench
        .chat
        .mailboxes
        .told(&bench.shop(), &common, None, bench.cards.now());
    let answer = told(&bench, "/resume T1").await;
    assert_eq!(answer.as_deref(), Some(&*words::NOT_TAKEN_OVER.en));
    assert!(bench.chat.sessions.list().is_empty());
}

#[tokio::test]
async fn a_list_is_no_longer_than_a_person_reads() {
    let bench = DaemonBench::new().await;
    for n in 0..MAX_LISTED + 5 {
        bench.rests(&format!("c{n}"), None).await;
    }
    let all = bench.chat.sessions.list();
    let text = list(&bench.chat, &all);
    for told in [&text.zh, &text.en] {
        assert_eq!(told.lines().count(), MAX_LISTED);
        assert!(told.contains("shop"));
    }
}

#[tokio::test]
async fn a_message_that_waited_too_long_starts_nothing() {
    let bench = DaemonBench::new().await;
    let sent = bench.chat.their_clock.now() - 6 * 60_000;
    let late = message(
        OWNER,
        "/new shop do it",
        &json!({"create_time": sent.to_string()}),
    );
    take(&bench.chat, &late).await;
    assert!(bench.chat.sessions.list().is_empty());
    assert_eq!(bench.said(), [words::too_old(6 * 60_000).en]);
}
