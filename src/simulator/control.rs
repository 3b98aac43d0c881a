//! The control interface: what the in-process handle can do, as HTTP and
//! JSON, for tests in any language. Loopback only, every POST must say that it
//! is JSON, so that a web page elsewhere can't drive it, and every call has to
//! show the token, so that nobody else on the machine can.

pub(super) mod bench;
pub(super) mod bend;
pub(super) mod faults;
pub(super) mod page;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, Method, Response, Uri};
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use self::faults::Armed;
use super::people::click::Press;
use super::serving::event::ChatText;
use super::serving::registration::{self, ScanDecision};
use super::serving::rest;
use super::world::core::Core;
use super::world::options::App;
use super::world::state::p2p;
use super::{Addresses, unhex};

const MAX_BODY: usize = 32 << 20;
const DEFAULT_WAIT: u64 = 10_000;
const MAX_WAIT: u64 = 60_000;
const MAX_NOTE: usize = 64 << 10;
const FEED_LIMIT: usize = 1000;

#[derive(Clone)]
struct Control {
    core: Arc<Core>,
    addresses: Addresses,
    token: Option<Arc<str>>,
}

pub(super) fn router(core: Arc<Core>, addresses: Addresses, token: Option<String>) -> Router {
    Router::new()
        .fallback(serve)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Control {
            core,
            addresses,
            token: token.map(Arc::from),
        })
}

/// A control call that can't be done: status and why.
type ControlFailure = (u16, String);
type ControlAnswer = Result<Value, ControlFailure>;
type Parameters = HashMap<String, String>;

async fn serve(
    State(control): State<Control>,
    method: Method,
    uri: Uri,
    Query(query): Query<Parameters>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let core = &control.core;
    if !is_local(&headers) {
        return answered(Err((403, "the host is not this machine".to_owned())));
    }
    if method == Method::GET
        && let Some(file) = page::file(uri.path())
    {
        return file;
    }
    if let Some(token) = &control.token
        && !shows(&headers, token)
    {
        let why = "no token, or another: it stands in the address that nod printed";
        return answered(Err((401, why.to_owned())));
    }
    let segments: Vec<&str> = uri.path().split('/').skip(1).collect();
    let answer = match (method.as_str(), &segments[..]) {
        ("GET", ["control", rest @ ..]) => tokio::select! {
            () = core.cancel.cancelled() => Err((503, "the simulator stops".to_owned())),
            answer = show(&control, rest, &query) => answer,
        },
        ("POST", ["control", ..]) if !is_json(&headers) => {
            Err((415, "content-type is not application/json".to_owned()))
        }
        ("POST", ["control", rest @ ..]) => tokio::select! {
            () = core.cancel.cancelled() => Err((503, "the simulator stops".to_owned())),
            answer = act(core, rest, &body) => answer,
        },
        _ => Err(nothing()),
    };
    answered(answer)
}

fn answered(answer: ControlAnswer) -> Response<Body> {
    let (status, value) = match answer {
        Ok(value) => (200, value),
        Err((status, error)) => (status, json!({"error": error})),
    };
    let headers = [
        ("content-type", "application/json"),
        ("cache-control", "no-store"),
    ];
    (rest::status(status), headers, value.to_string()).into_response()
}

/// Whether the caller meant this machine by name: a site elsewhere whose name
/// was pointed here by DNS did not.
fn is_local(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get("host").and_then(|value| value.to_str().ok()) else {
        return true;
    };
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    ["127.0.0.1", "localhost", "[::1]"].contains(&name)
}

/// Whether a call carries the token. Takes the same time wherever a guess
/// differs.
fn shows(headers: &HeaderMap, token: &str) -> bool {
    let shown = headers.get("authorization");
    let shown = shown.map_or(&b""[..], |value| value.as_bytes());
    let shown = shown.strip_prefix(b"Bearer ").unwrap_or_default();
    let differing = shown.iter().zip(token.as_bytes());
    let differing = differing.fold(0, |all, (a, b)| all | (a ^ b));
    shown.len() == token.len() && differing == 0
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"))
}

fn nothing() -> ControlFailure {
    (
        404,
        "there is no such control, see docs/simulator.md".to_owned(),
    )
}

fn bad(error: impl Into<String>) -> ControlFailure {
    (400, error.into())
}

async fn show(control: &Control, path: &[&str], query: &Parameters) -> ControlAnswer {
    let core = &control.core;
    Ok(match path {
        ["addresses"] => json!(control.addresses),
        ["messages"] => {
            let chat = query.get("chat_id");
            let world = core.world();
            let messages: Vec<_> = world
                .messages
                .all()
                .filter(|message| chat.is_none_or(|chat| *chat == message.chat_id))
                .collect();
            json!({"messages": messages})
        }
        ["messages", id] => {
            let world = core.world();
            let message = world.messages.get(id);
            json!(message.ok_or_else(|| (404, format!("there is no message `{id}`")))?)
        }
        ["files", id] => {
            let world = core.world();
            let message = world.messages.get(id);
            let content = message.and_then(|message| serde_json::from_str(&message.content).ok());
            let content: Value = content.unwrap_or_default();
            let bytes = world
                .file_of(id)
                .ok_or_else(|| (404, format!("there is no file in message `{id}`")))?;
            json!({"file_name": content["file_name"], "base64": STANDARD.encode(bytes)})
        }
        ["connections"] => json!({"connections": core.lines().all()}),
        ["violations"] => json!({"violations": core.history.violations()}),
        ["faults"] => json!({"faults": core.faults()}),
        ["registrations"] => {
            let now = core.now();
            json!({"registrations": core.registrations().all(now)})
        }
        ["people"] => {
            let world = core.world();
            let users: Vec<Value> = world
                .users
                .iter()
                .map(|user| {
                    let chat_of = |app: &App| {
                        json!({"app_id": app.id, "bot": app.name, "chat_id": p2p(app, user)})
                    };
                    json!({
                        "name": user.name,
                        "open_id": user.open_id,
                        "union_id": user.union_id,
                        "user_id": user.user_id,
                        "chat_id": world.apps.first().map(|app| p2p(app, user)),
                        "chats": world.apps.iter().map(chat_of).collect::<Vec<_>>(),
                    })
                })
                .collect();
            let groups: Vec<&str> = world.groups.iter().map(|g| g.chat_id.as_str()).collect();
            let apps: Vec<&str> = world.apps.iter().map(|app| app.id.as_str()).collect();
            json!({"users": users, "groups": groups, "apps": apps})
        }
        ["history"] => feed(core, query, Duration::ZERO).await?,
        ["feed"] => feed(core, query, limit(query)?).await?,
        ["wait"] => wait(core, query).await?,
        _ => return Err(nothing()),
    })
}

fn number(query: &Parameters, key: &str) -> Result<Option<u64>, ControlFailure> {
    query
        .get(key)
        .map(|text| text.parse())
        .transpose()
        .map_err(|_| bad(format!("`{key}` is not a number")))
}

fn limit(query: &Parameters) -> Result<Duration, ControlFailure> {
    let ms = number(query, "timeout_ms")?.unwrap_or(DEFAULT_WAIT);
    Ok(Duration::from_millis(ms.min(MAX_WAIT)))
}

/// History after a number; with a wait, until there is something.
async fn feed(core: &Core, query: &Parameters, wait: Duration) -> ControlAnswer {
    let after = number(query, "after")?.unwrap_or(0);
    let kind = query.get("kind");
    let ready = || {
        let mut entries = core.history.after(after, FEED_LIMIT);
        let last = entries.last().map_or(after, |entry| entry.seq);
        entries.retain(|entry| kind.is_none_or(|kind| kind == entry.kind));
        (!entries.is_empty()).then_some((entries, last))
    };
    let (entries, last) = match ready() {
        Some(found) => found,
        None => core
            .wait(wait, ready)
            .await
            .unwrap_or_else(|| (Vec::new(), after.max(core.history.last()))),
    };
    Ok(json!({"entries": entries, "last": last}))
}

/// Waits until every given number is reached, or says where things stand.
async fn wait(core: &Core, query: &Parameters) -> ControlAnswer {
    let chat = query.get("chat_id").map(String::as_str);
    let wanted: Vec<(&str, u64)> = [
        "messages",
        "connections",
        "replies",
        "violations",
        "unacknowledged",
    ]
    .into_iter()
    .filter_map(|key| Some((key, number(query, key).transpose()?)))
    .map(|(key, count)| count.map(|count| (key, count)))
    .collect::<Result<_, _>>()?;
    let card = query.get("message_id").zip(query.get("contains"));
    if wanted.is_empty() && card.is_none() {
        return Err(bad(
            "wait for messages, connections, replies, violations, unacknowledged, or message_id and contains",
        ));
    }
    let ready = || {
        let counts = wanted
            .iter()
            .all(|(key, count)| counted(core, key, chat) >= *count);
        let shown = card.is_none_or(|(id, text)| {
            let world = core.world();
            let message = world.messages.get(id);
            message
                .and_then(|message| message.card.as_ref())
                .is_some_and(|card| card.to_string().contains(text.as_str()))
        });
        (counts && shown).then_some(())
    };
    let done = core.wait(limit(query)?, ready).await.is_some();
    let mut answer = json!({"done": done});
    for (key, _) in &wanted {
        answer[key] = json!(counted(core, key, chat));
    }
    if done {
        Ok(answer)
    } else {
        Err((408, answer.to_string()))
    }
}

fn counted(core: &Core, key: &str, chat: Option<&str>) -> u64 {
    let count = match key {
        "messages" => core
            .world()
            .messages
            .all()
            .filter(|message| chat.is_none_or(|chat| chat == message.chat_id))
            .count(),
        "connections" => core.lines().all().len(),
        "replies" => return core.pushes().answered,
        "violations" => core.history.violations().len(),
        _ => core.ladder().len(),
    };
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPush {
    app_id: Option<String>,
    /// A JSON body, or …
    payload: Option<Value>,
    /// … any bytes, as hex.
    hex: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainEvent {
    app_id: Option<String>,
    event_type: String,
    event: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockStep {
    advance_ms: u64,
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ControlFailure> {
    serde_json::from_slice(body).map_err(|e| bad(e.to_string()))
}

fn app(core: &Core, id: Option<&str>) -> Result<usize, ControlFailure> {
    core.app(id).ok_or_else(|| bad("there is no such app"))
}

async fn act(core: &Core, path: &[&str], body: &Bytes) -> ControlAnswer {
    Ok(match path {
        ["click"] => {
            let press: Press = parse(body)?;
            json!(core.click(press).await.map_err(|e| (409, e.to_string()))?)
        }
        ["click", "raw"] => {
            let raw: RawPush = parse(body)?;
            let app = app(core, raw.app_id.as_deref())?;
            let payload = match (raw.payload, raw.hex) {
                (Some(value), None) => Bytes::from(value.to_string()),
                (None, Some(hex)) => unhex(&hex).ok_or_else(|| bad("`hex` is not hexadecimal"))?,
                _ => return Err(bad("give `payload` or `hex`")),
            };
            let (pushed, outcome) = core.push_raw(app, payload).await;
            json!({"pushed": pushed, "outcome": outcome})
        }
        ["text"] => {
            let text: ChatText = parse(body)?;
            json!(core.write(&text).await.map_err(|e| (409, e.to_string()))?)
        }
        ["event"] => {
            let event: PlainEvent = parse(body)?;
            let app = app(core, event.app_id.as_deref())?;
            json!(core.emit(app, &event.event_type, event.event, None).await)
        }
        ["registration"] => {
            let decision: ScanDecision = parse(body)?;
            json!(registration::decide(core, &decision).map_err(|why| (409, why))?)
        }
        ["fault"] => {
            let armed = Armed::from_json(parse(body)?).map_err(bad)?;
            core.arm(armed).map_err(bad)?;
            json!({"faults": core.faults()})
        }
        ["faults", "clear"] => {
            core.clear_faults();
            json!({"faults": []})
        }
        ["violations", "clear"] => {
            core.history.clear_violations();
            json!({"violations": []})
        }
        ["note"] => {
            let note: Map<String, Value> = parse(body)?;
            if body.len() > MAX_NOTE {
                return Err((413, "a note may have 64 KiB".to_owned()));
            }
            core.record("note", None, || Value::Object(note));
            json!({"last": core.history.last()})
        }
        ["repush"] => json!({"pushed": core.advance_repush().await}),
        ["clock"] => {
            let clock: ClockStep = parse(body)?;
            core.advance_clock(clock.advance_ms);
            json!({"now": core.now()})
        }
        _ => return Err(nothing()),
    })
}
