//! What a machine that brings a click is told of it, over the wire.

use serde_json::{Value, json};

use nod::for_tests::feishu::event::{Click, EventHead, Person};
use nod::for_tests::gateway::call::{PeerCall, Stamp};
use nod::for_tests::gateway::seal::SealPurpose;
use nod::for_tests::ids::{EventId, MachineId, MessageId, RequestId};
use nod::for_tests::simulator::{OWNER, Simulator};

use super::rig::{Hook, LIMIT, Machine, feishu, free, http};
use super::sealer;

/// The message of a request's card, and the value of its button for this.
async fn button(feishu: &Simulator, request: &str, wanted: &Value) -> (String, Value) {
    let found = feishu.wait_for(LIMIT, |feishu| {
        feishu.history(0).iter().find_map(|entry| {
            let value = value(entry.detail.get("card")?, request, wanted)?;
            let message = entry.detail.get("message_id")?.as_str()?;
            Some((message.to_owned(), value.clone()))
        })
    });
    found.await.expect("a card with that button")
}

fn value<'a>(node: &'a Value, request: &str, wanted: &Value) -> Option<&'a Value> {
    let is_it = |(name, value): (&String, &Value)| node.get(name) == Some(value);
    match node {
        Value::Object(map) => {
            let of_request = map.get("request_id").is_some_and(|id| id == request);
            if of_request && wanted.as_object()?.iter().all(is_it) {
                return Some(node);
            }
            map.values().find_map(|node| value(node, request, wanted))
        }
        Value::Array(list) => list.iter().find_map(|node| value(node, request, wanted)),
        _ => None,
    }
}

/// Brings a click under seal, as another machine does.
async fn bring(
    at: std::net::SocketAddr,
    (message, value): &(String, Value),
    event: &str,
    nonce: &str,
) -> Value {
    let text = |field: &str| value[field].as_str().unwrap();
    let call = PeerCall {
        to: MachineId::parse(text("machine")).ok(),
        action: text("action").to_owned(),
        request: RequestId::parse(text("request_id")).unwrap(),
        project_dir: String::new(),
        click: Some(Click {
            head: EventHead {
                event_id: EventId::parse(event).ok(),
                ..EventHead::default()
            },
            by: Person {
                open: Some(OWNER.to_owned()),
                ..Person::default()
            },
            message: MessageId::parse(message).ok(),
            value: value.clone(),
            ..Click::default()
        }),
        push: None,
    };
    let stamp = Stamp {
        sent_at: nod::for_tests::clock::wall_ms(),
        nonce: nonce.to_owned(),
    };
    let body = call.to_json(Some((&sealer(SealPurpose::Call), &stamp)));
    let (status, _, answer) = http(at, "POST /callback/decision", &body.to_string()).await;
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

fn told(answer: &Value) -> (bool, Option<&str>) {
    (
        answer["success"].as_bool().unwrap(),
        answer["decision"].as_str(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_allow_and_every_answer_that_was_brought_is_a_success() {
    let feishu = feishu().await;
    let at = free([127, 0, 0, 1]);
    let machine = Machine::of_app(&feishu, at, "");
    assert!(feishu.wait_connections(1, LIMIT).await, "{}", machine.log());
    let question = json!({"questions": [{
        "question": "Which database?",
        "header": "Database",
        "options": [{"label": "SQLite"}, {"label": "Postgres"}],
        "multiSelect": false,
    }]});
    let command = json!({"command": "npm test"});
    for (id, tool, input, wanted, decision) in [
        (
            "once",
            "Bash",
            &command,
            json!({"action": "allow"}),
            "allow",
        ),
        (
            "always",
            "Bash",
            &command,
            json!({"action": "always"}),
            "allow",
        ),
        (
            "answer",
            "AskUserQuestion",
            &question,
            json!({"action": "answer", "tap": "o1"}),
            "allow",
        ),
        ("no", "Bash", &command, json!({"action": "deny"}), "deny"),
    ] {
        let hook = Hook::call(&machine, id, tool, input).await;
        let button = button(&feishu, id, &wanted).await;
        let event = format!("event-{id}");
        let answer = bring(at, &button, &event, &format!("nonce-{id}-first")).await;
        assert_eq!(told(&answer), (true, Some(decision)), "{id}: {answer}");
        assert_eq!(answer["nod"]["toast"]["type"], "success", "{answer}");
        assert_eq!(answer["nod"]["toast"]["zh"], answer["message"]);
        let heard = hook.decision().await.expect("a decision").to_string();
        assert!(heard.contains(&format!("{decision:?}")), "{id}: {heard}");
        // The same click again led to the same; another one to nothing.
        let again = bring(at, &button, &event, &format!("nonce-{id}-again")).await;
        assert_eq!(told(&again), (true, Some(decision)), "{id}: {again}");
        assert_eq!(again["message"], answer["message"], "{id}");
        let late = bring(
            at,
            &button,
            &format!("{event}-2"),
            &format!("nonce-{id}-late"),
        )
        .await;
        assert_eq!(told(&late), (false, None), "{id}: {late}");
        assert_eq!(late["message"], "该请求已被处理，请勿重复操作");
    }
}
