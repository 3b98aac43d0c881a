//! Clients of protocol v1 against the real daemon: what a person chose reaches
//! them, and what v1 has no words for is not offered.

use nod::for_tests::simulator::Press;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::hooks::{Stage, offered, permission, within};

/// A v1 client that waits for its decision.
pub(crate) struct V1Client(UnixStream);

impl V1Client {
    /// Registers a request; the ack comes with it.
    pub(crate) async fn ask(stage: &Stage, id: &str, tool: &str, input: &Value) -> (Self, Value) {
        use base64::Engine as _;
        let stdin = json!({"session_id": "sess_123", "tool_name": tool, "tool_input": input});
        let encoded = base64::engine::general_purpose::STANDARD.encode(stdin.to_string());
        let request = json!({
            "request_id": id,
            "project_dir": stage.home.project(),
            "raw_input_encoded": encoded,
        });
        let mut client = Self::connected(stage).await;
        client.send(&request).await;
        let ack = client.reply().await;
        (client, ack)
    }

    async fn connected(stage: &Stage) -> Self {
        Self(UnixStream::connect(stage.home.socket()).await.unwrap())
    }

    async fn send(&mut self, message: &Value) {
        let message = message.to_string();
        self.0.write_all(message.as_bytes()).await.unwrap();
    }

    /// A bare object, taken with one read as the known clients do.
    async fn reply(&mut self) -> Value {
        let mut bytes = vec![0; 4_096];
        let read = within(self.0.read(&mut bytes)).await.unwrap();
        serde_json::from_slice(&bytes[..read]).unwrap()
    }

    pub(crate) async fn decision(&mut self) -> Value {
        let length = within(self.0.read_u32()).await.unwrap();
        let mut frame = vec![0; usize::try_from(length).unwrap()];
        within(self.0.read_exact(&mut frame)).await.unwrap();
        serde_json::from_slice(&frame).unwrap()
    }
}

fn buttons(stage: &Stage, message: &str) -> Vec<String> {
    offered(&stage.sim.message(message).unwrap().card.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_notifys_ping_is_answered() {
    let stage = Stage::new().await;
    let mut client = V1Client::connected(&stage).await;
    client.send(&json!({"type": "ping"})).await;
    client.0.shutdown().await.unwrap();
    assert_eq!(client.reply().await, json!({"type": "pong"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_question_reaches_a_v1_client() {
    let mut stage = Stage::new().await;
    let question = json!({"questions": [{
        "question": "Which store?", "header": "Store", "multiSelect": false,
        "options": [{"label": "Redis", "description": ""}, {"label": "SQLite", "description": ""}],
    }]});
    let (mut client, _) = V1Client::ask(&stage, "r-question", "AskUserQuestion", &question).await;
    let card = stage.sent().await.message_id;
    stage.press(Press::text(&card, "SQLite")).await;
    let mut answered = question.clone();
    answered["answers"] = json!({"Which store?": "SQLite"});
    assert_eq!(
        client.decision().await["decision"],
        json!({"behavior": "allow", "updated_input": answered})
    );
    stage.shows(&card, "已回答").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_v1_cannot_carry_is_not_offered() {
    let mut stage = Stage::new().await;
    let command = json!({"command": "npm test"});
    let (hook, card) = stage.ask(&permission("s1", "Bash", &command)).await;
    let offers = buttons(&stage, &card);
    assert!(offers.contains(&"session".to_owned()), "{offers:?}");
    drop(hook);
    let (_client, _) = V1Client::ask(&stage, "r-command", "Bash", &command).await;
    let card = stage.sent().await.message_id;
    let offers = buttons(&stage, &card);
    assert!(!offers.contains(&"session".to_owned()), "{offers:?}");
    assert!(offers.contains(&"always".to_owned()), "{offers:?}");

    let plan = json!({"plan": "1. measure"});
    let (mut client, _) = V1Client::ask(&stage, "r-plan", "ExitPlanMode", &plan).await;
    let card = stage.sent().await.message_id;
    let face = stage.face(&card);
    assert!(
        face.contains("批准计划") && !face.contains("自动接受编辑"),
        "{face}"
    );
    stage.press(Press::text(&card, "批准计划")).await;
    assert_eq!(
        client.decision().await["decision"],
        json!({"behavior": "allow", "updated_input": plan})
    );
}
