//! The HTTP side of this Feishu: discovery and the Open API calls, strict
//! about what they take, with Feishu's codes when they refuse.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use axum::response::IntoResponse as _;
use prost::bytes::Bytes;
use serde_json::{Map, Value, json};

use super::refusals;
use super::upload;
use crate::simulator::control::faults::{At, Fault};
use crate::simulator::world::core::Core;
use crate::simulator::world::state::messages::{HeldMessage, NewMessage};
use crate::simulator::world::state::{Decline, decline, rate_limited, token_expired};

pub(super) const JSON: [(&str, &str); 1] = [("content-type", "application/json; charset=utf-8")];

const MAX_BODY: usize = 1 << 20;
/// How long an edit waits for the reply it races with. A client that edits
/// before it replies waits for the edit's answer, so its reply can't come
/// meanwhile; a client that replied first only lost a race between sockets.
const RACE: Duration = Duration::from_millis(200);

const SEND: &[&str] = &["im:message", "im:message:send_as_bot", "im:message:send"];
const UPDATE: &[&str] = &["im:message", "im:message:send_as_bot", "im:message:update"];
const RECALL: &[&str] = &["im:message", "im:message:send_as_bot", "im:message:recall"];
const READ: &[&str] = &["im:message", "im:message:readonly"];
const UPLOAD: &[&str] = &["im:resource", "im:resource:upload"];
const REACT: &[&str] = &["im:message", "im:message.reactions:write_only"];
const SELF_MANAGE: &[&str] = &["application:application:self_manage"];

pub(in crate::simulator) fn router(core: Arc<Core>) -> Router {
    Router::new()
        .fallback(serve)
        .layer(DefaultBodyLimit::max(upload::MAX_FORM))
        .with_state(core)
}

type RestAnswer = Result<Response<Body>, Decline>;

/// One HTTP request, taken apart.
struct RestCall {
    method: Method,
    path: String,
    query: HashMap<String, String>,
    headers: HeaderMap,
    body: Bytes,
}

impl RestCall {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn json(&self) -> Result<Map<String, Value>, Decline> {
        // The official Python SDK names no type when it asks for a token.
        let content_type = self.headers.get("content-type");
        let is_json = content_type.is_none_or(|value| {
            let value = value.to_str().unwrap_or_default();
            value.starts_with("application/json")
        });
        match serde_json::from_slice(&self.body) {
            Ok(Value::Object(map)) if is_json => Ok(map),
            _ => decline(9499, "Bad Request: the body is no JSON object"),
        }
    }

    fn query(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

async fn serve(
    State(core): State<Arc<Core>>,
    method: Method,
    uri: Uri,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let call = RestCall {
        method,
        path: uri.path().to_owned(),
        query,
        headers,
        body,
    };
    let answer = if call.path == "/callback/ws/endpoint" {
        super::discovery::answer(&core, &call.method, &call.headers, &call.body).await
    } else if call.path == super::registration::PATH {
        super::registration::answer(&core, &call.method, &call.headers, &call.body)
    } else {
        open_api(&core, &call).await
    };
    core.record(
        "rest",
        None,
        || json!({"call": call.name(), "http": answer.status().as_u16()}),
    );
    answer
}

async fn open_api(core: &Core, call: &RestCall) -> Response<Body> {
    let name = call.name();
    let slow = |fault: &Fault| matches!(fault, Fault::SlowRest { .. }) && fault.meets_call(&name);
    if let Some(Fault::SlowRest { ms, .. }) = core.take_fault(None, At::Now, slow) {
        tokio::select! {
            () = core.cancel.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(ms)) => {}
        }
    }
    let other = |fault: &Fault| !matches!(fault, Fault::SlowRest { .. }) && fault.meets_call(&name);
    match core.take_fault(None, At::Now, other) {
        Some(Fault::RestHang { .. }) => {
            core.cancel.cancelled().await;
            return cut();
        }
        Some(Fault::RestError {
            code, http, msg, ..
        }) => {
            let refusal = Decline {
                http,
                ..Decline::new(code, msg)
            };
            return refused(core, &refusal);
        }
        Some(Fault::RestHttp { status, body, .. }) => return html(status, body),
        Some(Fault::RateLimit { reset, .. }) => return refused(core, &rate_limited(reset)),
        Some(Fault::ExpiredToken) => {
            core.world().expire_tokens();
            return refused(core, &token_expired());
        }
        _ => {}
    }
    match route(core, call).await {
        Ok(answer) => answer,
        Err(refusal) => refused(core, &refusal),
    }
}

async fn route(core: &Core, call: &RestCall) -> RestAnswer {
    let segments: Vec<&str> = call.path.split('/').skip(1).collect();
    let ["open-apis", rest @ ..] = &segments[..] else {
        return Err(not_found());
    };
    if (call.method.as_str(), rest)
        == (
            "POST",
            &["auth", "v3", "tenant_access_token", "internal"][..],
        )
    {
        return Ok(token(core, call));
    }
    if let ("POST", ["bot", "v2", "hook", id]) = (call.method.as_str(), rest) {
        let answer = super::webhook::post(core, id, &call.body)?;
        return Ok(respond(core, 200, None, &answer));
    }
    let now = core.now();
    let app = core.world().authorize(call.header("authorization"), now)?;
    let parts = rest.iter().map(|part| match part {
        id if id.contains('_') && id.len() > 20 => "*",
        part => part,
    });
    let api = parts.collect::<Vec<_>>().join("/");
    core.world()
        .pace_api(app, &format!("{} {api}", call.method), now)?;
    match (call.method.as_str(), rest) {
        ("POST", ["im", "v1", "files"]) => {
            core.world().need_scope(app, UPLOAD)?;
            let kind = call.header("content-type").unwrap_or_default();
            let data = upload::post(&mut core.world(), app, kind, &call.body)?;
            Ok(ok(core, &data))
        }
        _ if call.body.len() > MAX_BODY => Err(Decline {
            http: 413,
            ..Decline::new(9499, "Bad Request: the body is too large")
        }),
        (_, ["im", "v1", "messages", path @ ..]) => messages(core, call, app, path).await,
        ("GET", ["bot", "v3", "info"]) => Ok(bot(core, app)),
        ("GET", ["event", "v1", "connection"]) => {
            let count = core.lines().count(app);
            Ok(ok(core, &json!({"online_instance_cnt": count})))
        }
        ("GET", ["application", "v6", "applications", id]) => {
            core.world().need_scope(app, SELF_MANAGE)?;
            own_app(core, app, id)?;
            let told = super::console::me(&core.world().apps[app]);
            Ok(ok(core, &told))
        }
        ("GET", ["application", "v6", "applications", id, "app_versions"]) => {
            core.world().need_scope(app, SELF_MANAGE)?;
            own_app(core, app, id)?;
            let told = super::console::versions(&core.world().apps[app], now);
            Ok(ok(core, &told))
        }
        ("GET", ["contact", "v3", "users", id]) => {
            let told = super::contact::user(&core.world(), app, id, &call.query)?;
            Ok(ok(core, &told))
        }
        _ => Err(not_found()),
    }
}

async fn messages(core: &Core, call: &RestCall, app: usize, path: &[&str]) -> RestAnswer {
    match (call.method.as_str(), path) {
        ("POST", []) => send(core, call, app, None),
        ("POST", [id, "reply"]) => send(core, call, app, Some(id)),
        ("PATCH", [id]) => patch(core, call, app, id).await,
        ("GET", [id]) => {
            let world = core.world();
            world.need_scope(app, READ)?;
            let message = world.existing(id)?;
            let mut shown = world.api_view(message);
            let original = call.query("card_msg_content_type") == "user_card_content";
            if let (Some(card), true) = (&message.card, original) {
                shown["body"]["content"] = json!(card.to_string());
            }
            Ok(ok(core, &json!({"items": [shown]})))
        }
        ("DELETE", [id]) => {
            core.world().need_scope(app, RECALL)?;
            core.world().delete(app, id)?;
            core.record(
                "message",
                None,
                || json!({"message_id": id, "recalled": true}),
            );
            Ok(ok(core, &json!({})))
        }
        ("POST", [id, "reactions"]) => {
            core.world().need_scope(app, REACT)?;
            let body = call.json()?;
            let emoji = body
                .get("reaction_type")
                .and_then(|kind| kind.get("emoji_type"))
                .and_then(Value::as_str)
                .unwrap_or_default();
            let reaction = core.world().react(id, emoji)?;
            core.record(
                "reaction",
                None,
                || json!({"message_id": id, "emoji_type": emoji}),
            );
            let data = json!({"reaction_id": reaction, "reaction_type": {"emoji_type": emoji}});
            Ok(ok(core, &data))
        }
        ("DELETE", [id, "reactions", reaction]) => {
            core.world().need_scope(app, REACT)?;
            core.world().unreact(id, reaction)?;
            Ok(ok(core, &json!({"reaction_id": reaction})))
        }
        ("GET", [id, "resources", key]) => {
            core.world().need_scope(app, READ)?;
            let bytes = core.world().resource(id, key, call.query("type"))?;
            Ok(binary(core, bytes))
        }
        _ => Err(not_found()),
    }
}

fn own_app(core: &Core, app: usize, id: &str) -> Result<(), Decline> {
    if id == "me" || core.world().apps[app].id == id {
        return Ok(());
    }
    decline(210_001, "no permission to read another app")
}

fn token(core: &Core, call: &RestCall) -> Response<Body> {
    let body = match call.json() {
        Ok(body) => body,
        Err(refusal) => return refused(core, &refusal),
    };
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
    let now = core.now();
    let answer = core
        .world()
        .tenant_token(text("app_id"), text("app_secret"), now);
    respond(core, 200, None, &answer)
}

fn required<'a>(body: &'a Map<String, Value>, key: &str) -> Result<&'a str, Decline> {
    body.get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| Decline::new(99_992_402, format!("field validation failed: {key}")))
}

fn only(body: &Map<String, Value>, known: &[&str]) -> Result<(), Decline> {
    match body.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => decline(
            99_992_402,
            format!("field validation failed: unknown field {key}"),
        ),
        None => Ok(()),
    }
}

fn send(core: &Core, call: &RestCall, app: usize, parent: Option<&str>) -> RestAnswer {
    core.world().need_scope(app, SEND)?;
    let body = call.json()?;
    let now = core.now();
    if body.get("msg_type").and_then(Value::as_str) == Some("interactive") {
        refusals::card_fits(&call.body)?;
    }
    let draft = NewMessage {
        msg_type: required(&body, "msg_type")?.to_owned(),
        content: required(&body, "content")?.to_owned(),
        uuid: body.get("uuid").and_then(Value::as_str).map(str::to_owned),
        parent: None,
        in_thread: body.get("reply_in_thread") == Some(&Value::Bool(true)),
    };
    refusals::layout(core, &draft.msg_type, &draft.content)?;
    let id = if let Some(parent) = parent {
        only(&body, &["msg_type", "content", "uuid", "reply_in_thread"])?;
        core.world().reply(app, parent, draft, now)?
    } else {
        only(&body, &["receive_id", "msg_type", "content", "uuid"])?;
        let kind = call.query("receive_id_type");
        let mut world = core.world();
        let chat = world.destination(app, kind, required(&body, "receive_id")?)?;
        world.send(app, chat, draft, now)?
    };
    let (shown, card, created) = {
        let world = core.world();
        let message = world.existing(&id)?;
        (
            world.api_view(message),
            message.card.clone(),
            message.create_time,
        )
    };
    core.record("message", None, || {
        json!({
            "message_id": id,
            "chat_id": shown["chat_id"],
            "sender": shown["sender"]["id"],
            "msg_type": shown["msg_type"],
            "repeated": created != now,
            "content": card.is_none().then(|| &shown["body"]["content"]),
            "card": card,
        })
    });
    let lost = |fault: &Fault| *fault == Fault::SendCreatedButReplyLost;
    if core.take_fault(None, At::Now, lost).is_some() {
        return Ok(cut());
    }
    Ok(ok(core, &shown))
}

async fn patch(core: &Core, call: &RestCall, app: usize, id: &str) -> RestAnswer {
    core.world().need_scope(app, UPDATE)?;
    let body = call.json()?;
    only(&body, &["content"])?;
    let content = required(&body, "content")?;
    refusals::card_fits(&call.body)?;
    refusals::layout(core, "interactive", content)?;
    let in_click = || {
        core.world()
            .messages
            .get(id)
            .is_some_and(HeldMessage::has_click)
    };
    if in_click() {
        core.wait(RACE, || (!in_click()).then_some(())).await;
    }
    let now = core.now();
    // Nobody sees the card before it is told of.
    let mut world = core.world();
    world.patch(app, id, content, now)?;
    core.record("card", None, || {
        let message = world.messages.get(id);
        json!({
            "message_id": id,
            "why": if message.is_some_and(HeldMessage::has_click) { "patched before the reply" } else { "patched" },
            "card": message.and_then(|m| m.card.clone()),
        })
    });
    Ok(ok(core, &json!({})))
}

fn bot(core: &Core, app: usize) -> Response<Body> {
    let world = core.world();
    let app = &world.apps[app];
    let answer = json!({
        "code": 0,
        "msg": "ok",
        "bot": {
            "activate_status": if app.published { 2 } else { 0 },
            "app_name": app.name,
            "avatar_url": "",
            "ip_white_list": [],
            "open_id": app.bot_open_id,
        },
    });
    drop(world);
    respond(core, 200, None, &answer)
}

fn not_found() -> Decline {
    Decline {
        http: 404,
        ..Decline::new(404, "404 page not found")
    }
}

fn ok(core: &Core, data: &Value) -> Response<Body> {
    let answer = json!({"code": 0, "msg": "success", "data": data});
    respond(core, 200, None, &answer)
}

fn refused(core: &Core, refusal: &Decline) -> Response<Body> {
    let log_id = core.log_id();
    let answer = json!({
        "code": refusal.code,
        "msg": refusal.msg,
        "error": {"log_id": log_id},
    });
    core.record(
        "refused",
        None,
        || json!({"code": refusal.code, "msg": refusal.msg}),
    );
    respond(core, refusal.http, refusal.reset, &answer)
}

pub(super) fn respond(
    core: &Core,
    http: u16,
    reset: Option<u64>,
    answer: &Value,
) -> Response<Body> {
    let limits = reset.map(|reset| {
        let reset = reset.to_string();
        let limit = "50".to_owned();
        [
            ("x-ogw-ratelimit-limit", limit),
            ("x-ogw-ratelimit-reset", reset),
        ]
    });
    (
        status(http),
        JSON,
        of_feishu(core),
        limits,
        answer.to_string(),
    )
        .into_response()
}

fn binary(core: &Core, bytes: Bytes) -> Response<Body> {
    let kind = [("content-type", "application/octet-stream")];
    (kind, of_feishu(core), bytes).into_response()
}

/// What all of Feishu's answers carry.
fn of_feishu(core: &Core) -> [(&'static str, String); 2] {
    [("x-tt-logid", core.log_id()), ("date", core.http_date())]
}

pub(in crate::simulator) fn html(http: u16, body: String) -> Response<Body> {
    let body = if body.is_empty() {
        format!("<html><body><h1>{http}</h1></body></html>")
    } else {
        body
    };
    (status(http), [("content-type", "text/html")], body).into_response()
}

/// A response whose body breaks before its first byte: the connection ends.
pub(in crate::simulator) fn cut() -> Response<Body> {
    let broken = futures::stream::iter([Err::<Bytes, _>(std::io::Error::other("cut by a fault"))]);
    Response::new(Body::from_stream(broken))
}

pub(in crate::simulator) fn status(http: u16) -> StatusCode {
    StatusCode::from_u16(http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
