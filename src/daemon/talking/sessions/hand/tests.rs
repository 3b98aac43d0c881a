use super::*;
use crate::agents::codex::chat::{ChatOpening, CodexManner};
use crate::daemon::talking::sessions::bench::{PlayedChild, child};
use crate::talk::{AgentSaid, Exit, Mode};
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

const MOMENT: Duration = Duration::from_millis(10);

fn claude(room: usize) -> (Hand, PlayedChild<AgentEvent>) {
    let (child, played) = child(room);
    (Hand::claude(child), played)
}

fn text(words: &str) -> Say {
    Say::Text {
        uuid: "u".to_owned(),
        text: words.to_owned(),
    }
}

fn mode() -> AgentEvent {
    AgentEvent::Said(AgentSaid::Mode(Mode::Plan))
}

#[tokio::test(start_paused = true)]
async fn what_a_child_is_told_arrives_in_order_however_often_the_wait_is_dropped() {
    let (mut hand, mut played) = claude(1);
    for words in ["one", "two", "three"] {
        hand.tell(text(words));
    }
    for words in ["one", "two", "three"] {
        for _ in 0..3 {
            assert!(timeout(MOMENT, hand.next()).await.is_err(), "it is silent");
        }
        let line = played.hears().await;
        assert_eq!(line["message"]["content"], words);
    }
    assert!(played.told.is_empty(), "each once");
}

#[tokio::test(start_paused = true)]
async fn what_it_says_is_heard_while_it_reads_nothing() {
    let (mut hand, played) = claude(1);
    hand.tell(text("one"));
    hand.tell(text("two"));
    played.says.send(mode()).await.unwrap();
    assert_eq!(timeout(MOMENT, hand.next()).await, Ok(mode()));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_one_that_reads_no_more_is_heard_and_then_nothing() {
    let (mut hand, played) = claude(1);
    drop(played.told);
    hand.tell(text("one"));
    assert!(timeout(MOMENT, hand.next()).await.is_err(), "no end yet");
    let end = AgentEvent::Ended(Exit::Killed);
    played.says.send(end.clone()).await.unwrap();
    drop(played.says);
    assert_eq!(timeout(MOMENT, hand.next()).await, Ok(end));
    assert!(timeout(MOMENT, hand.next()).await.is_err());
}

#[tokio::test]
async fn one_that_is_stopped_is_told_so_and_one_that_is_dropped_loses_its_input() {
    let (mut hand, mut played) = claude(1);
    assert!(!played.stop.is_cancelled());
    hand.stop();
    assert!(played.stop.is_cancelled());
    drop(hand);
    played.is_left().await;
}

#[tokio::test(start_paused = true)]
async fn only_codex_has_requests_of_its_own_kind() {
    let (mut hand, _played) = claude(1);
    hand.decided("codex-1", ask::CodexDecision::Once, None);
    assert_eq!(hand.asked("codex-1"), None);
    let (wire, played) = child(8);
    let opening = ChatOpening::Fresh {
        cwd: "/srv".to_owned(),
        manner: CodexManner::Reads,
    };
    let driver = CodexDriver::over(wire, opening, None);
    let mut hand = Hand::Codex(Box::new(driver));
    let request = json!({"method": "item/commandExecution/requestApproval", "id": 7,
        "params": {"threadId": "t", "itemId": "i", "command": "ls"}});
    let heard = crate::agents::codex::pipe::PipeHeard::Text(request.to_string());
    played.says.send(heard).await.unwrap();
    let AgentEvent::Said(AgentSaid::Request(request)) = hand.next().await else {
        panic!("it asks");
    };
    let asked = hand.asked(&request.id).expect("it asked");
    assert_eq!(asked.input, json!({"command": "ls"}));
    assert_eq!(hand.asked("codex-1"), None);
}
