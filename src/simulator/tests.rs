//! The simulator as a client meets it: over real sockets, with the least
//! possible client.

mod calls;
mod clicks;
mod client;
mod controls;
mod links;
mod pushes;

use std::time::Duration;

use serde_json::{Value, json};

use super::{Armed, Fault, Options, Simulator};
use client::{Http, Link};

const LIMIT: Duration = Duration::from_secs(10);

async fn start() -> Simulator {
    Simulator::start(Options::default()).await.unwrap()
}

async fn start_with(change: impl FnOnce(&mut Options)) -> Simulator {
    let mut options = Options::default();
    change(&mut options);
    Simulator::start(options).await.unwrap()
}

fn once(fault: Fault) -> Armed {
    Armed::once(fault)
}

fn text(content: &str) -> Value {
    json!({"tag": "plain_text", "content": content})
}

/// A card with two buttons and a form.
fn card(title: &str) -> Value {
    let button = |id: &str, action: &str| {
        json!({"tag": "button", "element_id": id, "text": text(action),
               "behaviors": [{"type": "callback", "value": {"action": action, "request_id": "r1"}}]})
    };
    json!({
        "schema": "2.0",
        "config": {"update_multi": true},
        "header": {"title": text(title), "template": "orange"},
        "body": {"elements": [
            {"tag": "markdown", "content": "run it?"},
            button("b_allow", "allow"),
            button("b_deny", "deny"),
            {"tag": "form", "name": "f", "elements": [
                {"tag": "input", "name": "reason"},
                {"tag": "button", "name": "submit_reason", "form_action_type": "submit", "text": text("send"),
                 "behaviors": [{"type": "callback", "value": {"action": "reason"}}]}
            ]},
        ]},
    })
}

fn title(card: Option<&Value>) -> &str {
    card.and_then(|card| card.pointer("/header/title/content"))
        .and_then(Value::as_str)
        .unwrap_or("no card")
}

/// A connected client, a token, and a card in the owner's chat.
async fn ready(simulator: &Simulator) -> (Http, Link, String) {
    let http = Http::signed_in(simulator).await;
    let link = Link::connect(simulator).await;
    let id = http.send_card(&card("asked")).await;
    (http, link, id)
}
