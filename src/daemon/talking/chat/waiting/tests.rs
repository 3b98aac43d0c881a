use super::*;
use crate::approvals::desk::Waiting;
use crate::approvals::outcome::sample;
use crate::daemon::bench::{APPROVER, DaemonBench, message};
use crate::daemon::talking::chat::take;
use crate::ids::ChatId;
use crate::sessions::route::ChatPlace;
use serde_json::json;

fn written(thread: Option<&str>) -> Written {
    Written {
        place: ChatPlace {
            chat: ChatId::parse("oc_chat").unwrap(),
            thread: thread.map(str::to_owned),
        },
        parent: None,
        root: None,
    }
}

async fn shows(bench: &DaemonBench, id: &str, mut request: Request) -> Waiting {
    request.id = RequestId::parse(id).unwrap();
    bench.bench.shows(request).await.0
}

fn question(text: &str) -> Request {
    sample::request("nod_ask", json!({"question": text, "kind": "text"}))
}

fn one(meant: Meant) -> Option<(String, String)> {
    match meant {
        Meant::One(request, words) => Some((request.to_string(), words)),
        Meant::Which(_) | Meant::Session => None,
    }
}

#[tokio::test]
async fn the_one_question_that_waits_takes_plain_words() {
    let bench = DaemonBench::new().await;
    assert!(!any(&bench.chat, &written(None)));
    let _waiting = shows(&bench, "r1", question("Which port?")).await;
    assert!(any(&bench.chat, &written(None)));
    let answer = one(meant(&bench.chat, &written(None), "8080"));
    assert_eq!(answer, Some(("r1".to_owned(), "8080".to_owned())));
    let elsewhere = Written {
        place: ChatPlace {
            chat: ChatId::parse("oc_other").unwrap(),
            thread: None,
        },
        ..written(None)
    };
    assert!(one(meant(&bench.chat, &elsewhere, "8080")).is_none());
}

#[tokio::test]
async fn an_approvers_words_that_came_late_answer_nothing_that_waits_now() {
    let bench = DaemonBench::new().await;
    let _waiting = shows(&bench, "r1", question("Which port?")).await;
    let age = 6 * 60_000;
    let sent = bench.chat.their_clock.now() - age;
    let late = json!({"create_time": sent.to_string()});
    take(&bench.chat, &message(APPROVER, "8080", &late)).await;
    assert_eq!(bench.cards.desk.pending(), 1);
    assert_eq!(bench.said(), [crate::wording::task::too_old(age).en]);
    let sent = bench.chat.their_clock.now() - 60_000;
    let in_time = json!({"create_time": sent.to_string(), "message_id": "om_2"});
    take(&bench.chat, &message(APPROVER, "8080", &in_time)).await;
    assert_eq!(bench.cards.desk.pending(), 0);
}

#[tokio::test]
async fn of_two_that_wait_the_person_says_which_by_its_number_in_the_list() {
    let bench = DaemonBench::new().await;
    let first = shows(&bench, "r1", question("Which port?")).await;
    let _second = shows(&bench, "r2", question("Which *host*?\nsecond line")).await;
    let Meant::Which(list) = meant(&bench.chat, &written(None), "8080") else {
        panic!("it asks which");
    };
    for told in [&list.zh, &list.en] {
        assert!(told.contains("Which port?") && told.contains("second line"));
        assert!(
            !told.contains("?\nsecond"),
            "an agent's words stay on one line"
        );
    }
    let named = one(meant(&bench.chat, &written(None), "2 localhost"));
    assert_eq!(named, Some(("r2".to_owned(), "localhost".to_owned())));
    drop(first);
    let named = one(meant(&bench.chat, &written(None), "2 localhost"));
    assert_eq!(
        named.unwrap().0,
        "r2",
        "a number means what it meant when told"
    );
}

#[tokio::test]
async fn plain_words_never_meet_a_permission_outside_of_its_own_place() {
    let bench = DaemonBench::new().await;
    let bash = || sample::request("Bash", json!({"command": "ls"}));
    let _hooks = shows(&bench, "r1", bash()).await;
    assert!(one(meant(&bench.chat, &written(None), "no")).is_none());
    assert!(!any(&bench.chat, &written(None)));
    let mut hosted = bash();
    hosted.origin.hosted = true;
    let _hosted = shows(&bench, "r2", hosted).await;
    let met = one(meant(&bench.chat, &written(None), "no"));
    assert_eq!(met.unwrap().0, "r2");
    let topic = one(meant(&bench.chat, &written(Some("omt_1")), "no"));
    assert!(topic.is_none(), "another topic");
}

#[test]
fn an_agents_words_are_cut_to_a_line() {
    let shown = shown(&"x\u{202e}y\n".repeat(100));
    assert!(shown.chars().count() <= MAX_SHOWN);
    assert!(!shown.contains(['\n', '\u{202e}']));
}
