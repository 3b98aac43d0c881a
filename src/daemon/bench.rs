//! The daemon for tests: all that is joined, on the bench of its cards. Nothing
//! runs that a test does not start.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::arriving::calls;
use super::asking::codex::Codex;
use super::asking::hook_events::HookEvents;
use super::cards::bench::{Bench, config};
use super::cards::courier::Cards;
use super::machines::gate::{self, Gate};
use super::machines::team::Team;
use super::talking::chat::Chat;
use super::talking::sessions;
use super::tapping::clicks::Taps;
use super::telling::status::Standing;
use crate::bus::membership::Membership;
use crate::clock::Clock;
use crate::feishu::clock::TheirClock;
use crate::feishu::event::{self, Click, Message, Push};
use crate::feishu::outbound::{Outbound, Proxies};
use crate::feishu::secret::Secret;
use crate::gateway::call::{CallAnswer, Stamp};
use crate::gateway::route::CallbackUrl;
use crate::gateway::seal::{SealPurpose, Sealer};
use crate::gateway::server::{self, Inside};
use crate::ids::{ChatId, MessageId, SessionId};
use crate::sessions::agent::Agent;
use crate::sessions::route::ChatPlace;
use crate::sessions::state::Saved;
use crate::store::{Db, KeptSession};
use crate::talk::Mode;

pub(crate) const APP: &str = "cli_1";
pub(crate) const OWNER: &str = "ou_owner";
pub(crate) const APPROVER: &str = "ou_approver";
pub(crate) const STRANGER: &str = "ou_stranger";

/// A custom bot that nobody answers.
pub(crate) const WEBHOOK: [(&str, &str); 4] = [
    ("FEISHU_SEND_MODE", "webhook"),
    (
        "FEISHU_WEBHOOK_URL",
        "http://127.0.0.1:1/open-apis/bot/v2/hook/abc",
    ),
    ("CALLBACK_LISTEN", "127.0.0.1:1"),
    ("CALLBACK_SERVER_URL", "http://127.0.0.1:1"),
];

/// A machine with one project, `shop`, and no agent's program.
pub(crate) struct DaemonBench {
    dir: tempfile::TempDir,
    pub(crate) bench: Bench,
    pub(crate) cards: Arc<Cards>,
    pub(crate) taps: Arc<Taps>,
    pub(crate) chat: Arc<Chat>,
    pub(crate) codex: Arc<Codex>,
    pub(crate) events: Arc<HookEvents>,
    pub(crate) standing: Arc<Standing>,
}

impl DaemonBench {
    pub(crate) async fn new() -> Self {
        Self::with(&[]).await
    }

    /// With these settings besides an owner and an approver.
    pub(crate) async fn with(more: &[(&str, &str)]) -> Self {
        Self::built(more, "0123456789abcdef", None).await
    }

    /// The same on a machine of this name.
    pub(crate) async fn named(machine: &str, more: &[(&str, &str)]) -> Self {
        Self::built(more, machine, None).await
    }

    /// A machine of a team; its calls to Feishu still go to the bench.
    pub(crate) async fn in_team(membership: Membership) -> Self {
        let machine = membership.place().machine.to_string();
        Self::built(&[], &machine, Some(membership)).await
    }

    async fn built(more: &[(&str, &str)], machine: &str, membership: Option<Membership>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        std::fs::create_dir(path("shop")).unwrap();
        let (state, claude) = (path("state"), path("claude"));
        let projects = format!("shop={}", path("shop"));
        let mut all = vec![
            ("FEISHU_APPROVERS", APPROVER),
            ("NOD_STATE_DIR", &state),
            ("NOD_CLAUDE", &claude),
            ("NOD_CODEX_PROGRAM", &claude),
            ("NOD_PROJECTS", &projects),
        ];
        all.extend(more);
        let config = config(&all);
        let url = match &membership {
            Some(membership) => Some(membership.place().url()),
            None => config.callback.url.as_ref().map(ToString::to_string),
        };
        let bench = Bench::of(config, machine, url).await;
        let cards = Arc::clone(&bench.cards);
        let outbound = Outbound::new(&Proxies::default(), None).unwrap();
        let terms = gate::terms(&cards.config, Some(&Secret::new("a secret")));
        let clock = TheirClock::new(Clock::start());
        let team = Team::of(membership, &cards.config, &clock, &cards.journal.store);
        let gate = Gate::new(Arc::clone(&cards), &outbound, terms, clock).unwrap();
        let built = super::join(gate, team, APP.to_owned());
        Self {
            chat: Arc::clone(&built.taps.chat),
            taps: built.taps,
            codex: built.codex,
            events: built.events,
            standing: built.standing,
            bench,
            cards,
            dir,
        }
    }

    /// A machine of this name whose HTTP door is open, and where that is.
    pub(crate) async fn with_door(machine: &str) -> (Self, CallbackUrl, DropGuard) {
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", door.local_addr().unwrap());
        let bench = Self::named(machine, &[("CALLBACK_SERVER_URL", &url)]).await;
        let open = bench.opens(door);
        (bench, CallbackUrl::parse(&url).unwrap(), open)
    }

    /// What its HTTP door leads to.
    pub(crate) fn inside(&self) -> Inside {
        calls::inside(&self.taps, Arc::clone(&self.standing))
    }

    /// Its HTTP door is open, until the guard is dropped.
    fn opens(&self, door: TcpListener) -> DropGuard {
        let stop = CancellationToken::new();
        let terms = self.taps.gate.terms.clone();
        tokio::spawn(server::serve(door, terms, self.inside(), stop.clone()));
        stop.drop_guard()
    }

    /// How many messages were written down and not yet dealt with.
    pub(crate) async fn kept(&self) -> usize {
        self.cards.journal.store.run(Db::inbox).await.unwrap().len()
    }

    /// Waits until every message that came was dealt with.
    pub(crate) async fn settled(&self) {
        let wait = async {
            while self.kept().await > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let wait = tokio::time::timeout(Duration::from_secs(20), wait);
        wait.await.expect("every message is dealt with");
    }

    /// The directory of the project.
    pub(crate) fn shop(&self) -> PathBuf {
        self.dir.path().join("shop")
    }

    /// A session of a chat that rests, with this conversation; its number.
    pub(crate) async fn rests(&self, conversation: &str, thread: Option<&str>) -> i64 {
        let now = self.cards.now();
        let kept = KeptSession {
            number: 0,
            saved: Saved {
                conversation: SessionId::parse(conversation).unwrap(),
                begun: true,
                mode: Mode::Default,
                running: false,
                asks: Vec::new(),
            },
            agent: Agent::Claude,
            home: None,
            project: "shop".to_owned(),
            title: String::new(),
            place: ChatPlace {
                chat: ChatId::parse("oc_chat").unwrap(),
                thread: thread.map(str::to_owned),
            },
            anchor: MessageId::parse(&format!("om_{conversation}")).unwrap(),
            card: None,
            began_at: now,
            used_at: now,
        };
        let store = &self.cards.journal.store;
        let number = store.run(move |db| db.add_session(&kept)).await.unwrap();
        sessions::restore(&self.chat.sessions).await;
        number
    }

    /// Waits until this is so.
    pub(crate) async fn until(&self, what: impl Fn(&Self) -> bool) {
        let wait = async {
            while !what(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let wait = tokio::time::timeout(Duration::from_secs(20), wait);
        wait.await.expect("it comes to be");
    }

    /// The words of the audit, the newest first.
    pub(crate) async fn audit(&self) -> Vec<String> {
        let written = self.cards.journal.store.run(|db| db.audit(None, 100));
        let written = written.await.unwrap().into_iter();
        written.map(|it| it.entry.kind).collect()
    }

    /// The texts that were said so far, in replies or to the receiver.
    pub(crate) fn said(&self) -> Vec<String> {
        let calls = self.bench.calls().into_iter();
        let texts = calls.filter(|(_, body)| body["msg_type"] == "text");
        let texts = texts.map(|(_, body)| {
            let content: Value = serde_json::from_str(body["content"].as_str().unwrap()).unwrap();
            content["text"].as_str().unwrap().to_owned()
        });
        texts.collect()
    }

    /// The cards that were sent so far.
    pub(crate) fn sent(&self) -> Vec<Value> {
        let calls = self.bench.calls().into_iter();
        let cards = calls.filter(|(_, body)| body["msg_type"] == "interactive");
        cards
            .map(|(_, body)| serde_json::from_str(body["content"].as_str().unwrap()).unwrap())
            .collect()
    }
}

/// A message as Feishu pushes it: in private, of a person, with this text.
pub(crate) fn push(by: &str, id: &str, text: &str, more: &Value) -> Vec<u8> {
    let mut message = json!({
        "message_id": id, "chat_id": "oc_chat", "chat_type": "p2p",
        "message_type": "text", "content": json!({"text": text}).to_string(),
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        message[field] = value.clone();
    }
    let push = json!({
        "schema": "2.0",
        "header": {"event_type": "im.message.receive_v1", "event_id": format!("e-{id}"), "app_id": APP},
        "event": {
            "sender": {"sender_id": {"open_id": by}, "sender_type": "user"},
            "message": message,
        },
    });
    push.to_string().into_bytes()
}

/// What this person writes to the bot.
pub(crate) fn writes(by: &str, text: &str) -> Message {
    message(by, text, &Value::Null)
}

/// What this person replies to a message.
pub(crate) fn replies(by: &str, text: &str, to: &MessageId) -> Message {
    message(
        by,
        text,
        &json!({"parent_id": to.as_str(), "root_id": to.as_str()}),
    )
}

pub(crate) fn message(by: &str, text: &str, more: &Value) -> Message {
    match event::parse(&push(by, "om_written", text, more)) {
        Push::Message(message) => *message,
        other => panic!("{other:?}"),
    }
}

/// A tap as Feishu pushes it.
pub(crate) fn tap_push(by: &str, value: &Value, on: &str) -> Vec<u8> {
    let push = json!({
        "schema": "2.0",
        "header": {"event_type": "card.action.trigger", "event_id": format!("tap-{on}"), "app_id": APP},
        "event": {
            "operator": {"open_id": by},
            "action": {"value": value, "tag": "button"},
            "host": "im_message",
            "context": {"open_message_id": on, "open_chat_id": "oc_chat"},
        },
    });
    push.to_string().into_bytes()
}

/// This person taps a button with this value on that message.
pub(crate) fn taps(by: &str, value: &Value, on: &MessageId) -> Click {
    match event::parse(&tap_push(by, value, on.as_str())) {
        Push::Click(click) => *click,
        other => panic!("{other:?}"),
    }
}

/// The values of a card's buttons, in order.
pub(crate) fn buttons(card: &Value) -> Vec<Value> {
    match card {
        Value::Object(fields) if fields.contains_key("seal") => vec![card.clone()],
        Value::Object(fields) => fields.values().flat_map(buttons).collect(),
        Value::Array(all) => all.iter().flat_map(buttons).collect(),
        _ => Vec::new(),
    }
}

/// A service on this machine that answers each call with what `says` makes of
/// its body and of how many came before; nothing is a closed connection.
pub(crate) async fn peer(
    says: impl Fn(&Value, usize) -> Option<Value> + Send + Sync + 'static,
) -> CallbackUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut before = 0;
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let body = body(&mut stream).await;
            if let Some(answer) = says(&body, before) {
                let answer = answer.to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    answer.len()
                );
                let answer = head + &answer;
                stream.get_mut().write_all(answer.as_bytes()).await.unwrap();
            }
            before += 1;
        }
    });
    CallbackUrl::parse(&url).unwrap()
}

async fn body(stream: &mut BufReader<TcpStream>) -> Value {
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let line = line.trim().to_ascii_lowercase();
        if let Some(told) = line.strip_prefix("content-length:") {
            length = told.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// What a machine of ours answers to the call of this body.
pub(crate) fn sealed(answer: &CallAnswer, call: &Value) -> Value {
    let sealer = Sealer::new(&Secret::new("a secret"), SealPurpose::Call);
    let stamp = Stamp {
        sent_at: call["nod"]["sent_at"].as_i64().unwrap(),
        nonce: call["nod"]["nonce"].as_str().unwrap().to_owned(),
    };
    answer.to_json(Some((&sealer, &stamp)))
}
