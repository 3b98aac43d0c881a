//! How a session's child ends, and what is said of it.

use super::*;
use crate::daemon::talking::sessions::order;

#[tokio::test]
async fn a_stop_ends_the_child_and_what_it_waits_for() {
    let mut it = Owned::works(SessionLimits::default()).await;
    let id = it.asks("r-1", "Bash", ls()).await;
    assert!(!it.played.stop.is_cancelled());
    it.orders(SessionCommand::Stop).await;
    it.played.is_stopped().await;
    it.bench
        .until(|_| it.status() == SessionStatus::Stopping)
        .await;
    assert!(it.bench.cards.desk.find(&id).is_none());
    it.told(&Notice::NotCarriedOut { texts: 1 }).await;
    it.orders(SessionCommand::Stop).await;
    it.told(&Notice::AlreadyStopping).await;
    let stopped = words::notice(&Notice::Stopped, Agent::Claude).en;
    assert!(!it.bench.said().iter().any(|said| *said == stopped));
    it.ends(Exit::Killed).await;
    it.told(&Notice::Stopped).await;
    it.sleeps().await;
    it.bench
        .until(|_| {
            it.faces()
                .iter()
                .any(|card| card.contains(&*task::STOPPED.en))
        })
        .await;
    assert_eq!(it.status(), SessionStatus::Idle);
    let place = it.kept().place;
    assert_eq!(it.bench.chat.sessions.awake_at(&place), None);
}

#[tokio::test]
async fn a_child_that_ends_by_itself_is_told_with_its_last_words_made_plain() {
    let mut it = Owned::works(SessionLimits::default()).await;
    let id = it.asks("r-1", "Bash", ls()).await;
    let odd = "no such\u{202e} key";
    it.ends(Exit::Crashed {
        code: Some(1),
        words: Some(odd.to_owned()),
    })
    .await;
    it.sleeps().await;
    let crashed = Notice::Crashed {
        words: Some(odd.to_owned()),
    };
    it.told(&voice::quoted(&crashed)).await;
    assert!(
        it.bench
            .said()
            .iter()
            .all(|said| !said.contains('\u{202e}'))
    );
    it.told(&Notice::NotCarriedOut { texts: 1 }).await;
    it.bench
        .until(|_| {
            it.faces()
                .iter()
                .any(|card| card.contains(&*task::CRASHED.en))
        })
        .await;
    assert!(it.bench.cards.desk.find(&id).is_none(), "nobody waits");
    assert!(!it.on_disk().await.saved.running);
}

#[tokio::test]
async fn a_child_that_shows_no_sign_of_life_is_stopped() {
    let mut it = Owned::new(SessionLimits {
        quiet: 50,
        ..SessionLimits::default()
    })
    .await;
    it.played.is_stopped().await;
    it.told(&Notice::NoProgress { minutes: 0 }).await;
    it.ends(Exit::Killed).await;
    it.sleeps().await;
    let stopped = words::notice(&Notice::Stopped, Agent::Claude).en;
    assert!(
        !it.bench.said().iter().any(|said| *said == stopped),
        "nobody asked for it"
    );
}

#[tokio::test]
async fn the_card_of_a_task_shows_every_end_and_nothing_else_ends_it() {
    let bench = DaemonBench::new().await;
    let (wire, _played) = child(1);
    let hand = (Agent::Claude, Hand::claude(wire));
    let (mut owner, _orders) = owner(&bench, SessionLimits::default(), hand).await;
    let last_words = Some("boom".to_owned());
    let problem = "boom".to_owned();
    let tool = "Bash".to_owned();
    let ends = [
        (Notice::Stopped, Some(&task::STOPPED)),
        (Notice::Crashed { words: last_words }, Some(&task::CRASHED)),
        (Notice::NoProgress { minutes: 30 }, Some(&task::NO_PROGRESS)),
        (Notice::NotInstalled, Some(&task::NOT_STARTED)),
        (Notice::ProjectGone, Some(&task::NOT_STARTED)),
        (Notice::NotStarted { problem }, Some(&task::NOT_STARTED)),
        (Notice::Expired, Some(&task::NOT_STARTED)),
        (Notice::InUse, Some(&task::NOT_STARTED)),
        (Notice::Restarted, Some(&task::RESTARTED)),
        (Notice::QuestionTimedOut, None),
        (Notice::ApprovalTimedOut { tool }, None),
        (Notice::NothingRuns, None),
        (Notice::NotCarriedOut { texts: 1 }, None),
        (Notice::TooManyTexts, None),
        (Notice::LineTooLong { bytes: 9 }, None),
        (Notice::CannotAsk, None),
        (Notice::NotBrought { tool: None }, None),
        (Notice::Mode(Mode::Plan), None),
    ];
    let mut edits = 0;
    for (n, (notice, end)) in ends.into_iter().enumerate() {
        let card = MessageId::parse(&format!("om_task{n}")).unwrap();
        owner.voice = Voice::start(&owner.sessions, owner.number, Some(card));
        owner.tell(&notice);
        bench.until(|bench| bench.said().len() == n + 1).await;
        let text = words::notice(&voice::quoted(&notice), Agent::Claude);
        assert_eq!(bench.said()[n], text.en);
        edits += usize::from(end.is_some());
        bench.until(|bench| faces(bench).len() == edits).await;
        if let Some(end) = end {
            let faces = faces(&bench);
            assert!(faces[edits - 1].contains(&*end.en), "{notice:?}");
        }
    }
}

#[tokio::test]
async fn a_child_that_has_rested_long_enough_is_let_go() {
    let mut it = Owned::works(SessionLimits {
        rest: 0,
        ..SessionLimits::default()
    })
    .await;
    let (uuid, stage) = ("w-1".to_owned(), TextStage::Started);
    it.says(AgentSaid::Text { uuid, stage }).await;
    it.says(turn_end(How::Done, "all green")).await;
    it.played.is_stopped().await;
    it.ends(Exit::Finished).await;
    it.sleeps().await;
    it.shows(&task::DONE.en).await;
    assert!(it.bench.said().is_empty(), "that is no news");
}

#[tokio::test]
async fn the_daemons_end_says_what_a_restart_would_and_leaves_nothing_open() {
    let mut it = Owned::works(SessionLimits::default()).await;
    let id = it.asks("r-1", "Bash", ls()).await;
    assert_eq!(it.on_disk().await.saved.asks.len(), 1);
    it.stop.cancel();
    it.sleeps().await;
    it.told(&Notice::Restarted).await;
    it.bench
        .until(|_| {
            it.faces()
                .iter()
                .any(|card| card.contains(&*task::RESTARTED.en))
        })
        .await;
    assert!(it.bench.cards.desk.find(&id).is_none());
    it.played.is_left().await;
    let saved = it.on_disk().await.saved;
    assert!(!saved.running && saved.asks.is_empty());
}

#[tokio::test]
async fn words_for_a_child_that_cannot_be_started_are_told_to_be_lost() {
    let bench = DaemonBench::new().await;
    let number = bench.rests("s1", Some("omt_1")).await;
    let sessions = &bench.chat.sessions;
    let go = || SessionOrder::Text("go".to_owned());
    let said = |notice: Notice| words::notice(&notice, Agent::Claude).en.to_string();
    for why in [Notice::NotInstalled, Notice::ProjectGone] {
        if why == Notice::ProjectGone {
            std::fs::remove_dir(bench.shop()).unwrap();
        }
        let before = bench.said().len();
        order(sessions, number, go()).unwrap();
        bench.until(|bench| bench.said().len() == before + 2).await;
        let lost = Notice::NotCarriedOut { texts: 1 };
        assert_eq!(bench.said()[before..], [said(lost), said(why)]);
        let place = sessions.find(number).unwrap().kept.place;
        bench.until(|_| sessions.awake_at(&place).is_none()).await;
    }
}
