use super::*;
use crate::claude::permission::Common;
use crate::daemon::bench::{DaemonBench, OWNER, buttons, writes};
use crate::daemon::talking::chat::take;
use crate::ids::SessionId;
use serde_json::Value;

async fn menu(bench: &DaemonBench, text: &str) -> Value {
    take(&bench.chat, &writes(OWNER, text)).await;
    bench.sent().pop().unwrap()
}

/// What the buttons of a menu stand for.
fn stands_for(bench: &DaemonBench, menu: &Value) -> Vec<String> {
    let said = buttons(menu).into_iter().map(|value| {
        assert!(bench.cards.buttons.proof(&value).is_some());
        let key = value["request_id"].as_str().unwrap();
        let draft = bench.chat.drafts.find(key, bench.cards.now()).unwrap();
        let number = usize::try_from(value["pick"].as_u64().unwrap()).unwrap();
        match &draft.choices[number].1 {
            Picked::Command(typed) => typed.clone(),
            Picked::Say(number) => format!("say {number}"),
            Picked::Project(name, _) => format!("in {name}"),
            Picked::Resume(..) => "resume".to_owned(),
        }
    });
    said.collect()
}

#[tokio::test]
async fn help_offers_what_can_be_done_and_the_lock() {
    let bench = DaemonBench::new().await;
    let help = menu(&bench, "/help").await;
    let all = ["/new", "/sessions", "/projects", "/mode", "/stop", "/lock"];
    assert_eq!(stands_for(&bench, &help), all);
}

#[tokio::test]
async fn a_session_starts_in_a_configured_project_only() {
    let bench = DaemonBench::new().await;
    for asked in ["/new", "/projects"] {
        let projects = menu(&bench, asked).await;
        assert_eq!(stands_for(&bench, &projects), ["in shop"]);
    }
    let none = DaemonBench::with(&[("NOD_PROJECTS", "")]).await;
    take(&none.chat, &writes(OWNER, "/projects")).await;
    assert_eq!(none.said(), [task::NO_PROJECTS.en]);
    assert!(none.sent().is_empty());
}

#[tokio::test]
async fn every_session_of_the_list_has_a_button_as_far_as_they_are_read() {
    let bench = DaemonBench::new().await;
    let sessions = menu(&bench, "/sessions").await;
    assert_eq!(stands_for(&bench, &sessions), ["/new"], "there is none yet");
    for n in 0..MAX_LISTED + 3 {
        bench.rests(&format!("c{n}"), None).await;
    }
    let sessions = menu(&bench, "/sessions").await;
    let all = stands_for(&bench, &sessions);
    assert_eq!(all.len(), MAX_LISTED);
    assert!(all.iter().all(|one| one.starts_with("/resume ")), "{all:?}");
}

#[tokio::test]
async fn a_terminal_that_has_gone_is_not_offered() {
    let bench = DaemonBench::new().await;
    let common = Common {
        session: SessionId::parse("s1").ok(),
        ..Common::default()
    };
    let now = bench.cards.now();
    bench.chat.mailboxes.told(&bench.shop(), &common, None, now);
    let sessions = menu(&bench, "/sessions").await;
    assert_eq!(stands_for(&bench, &sessions), ["/new"]);
}

#[tokio::test]
async fn the_mode_that_holds_is_marked() {
    let bench = DaemonBench::new().await;
    take(&bench.chat, &writes(OWNER, "/mode")).await;
    assert_eq!(bench.said(), [task::NO_SESSION_HERE.en]);
    bench.rests("c1", None).await;
    let modes = menu(&bench, "/mode").await;
    let all = stands_for(&bench, &modes);
    assert_eq!(
        all,
        Mode::ALL.map(|mode| format!("/mode {}", mode.as_str()))
    );
    let text = modes.to_string();
    assert_eq!(text.matches("✓ ").count(), 1);
    let holds = format!("✓ {}", words::mode(Mode::Default).en);
    assert!(text.contains(&holds), "{text}");
}
