//! `POST /callback/ws/endpoint`: credentials in, a one-time URL out.

use axum::body::Body;
use axum::http::{HeaderMap, Method, Response};
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::rest::{cut, html, respond};
use crate::simulator::control::faults::{At, Fault};
use crate::simulator::world::core::Core;

pub(in crate::simulator) async fn answer(
    core: &Core,
    method: &Method,
    headers: &HeaderMap,
    body: &[u8],
) -> Response<Body> {
    if method != Method::POST {
        return html(405, String::new());
    }
    let fault = core.take_fault(None, At::Now, Fault::meets_discovery);
    match &fault {
        Some(Fault::DiscoveryHang) => {
            core.cancel.cancelled().await;
            return cut();
        }
        Some(Fault::DiscoveryHttp { status, body }) => return html(*status, body.clone()),
        Some(Fault::DiscoveryError {
            code,
            msg,
            with_data,
        }) => {
            let mut answer = json!({"code": code, "msg": msg});
            if *with_data {
                answer["data"] = json!({"URL": "", "ClientConfig": core.options.client_config});
            }
            return respond(core, 200, None, &answer);
        }
        _ => {}
    }
    let Some((id, secret)) = credentials(headers, body) else {
        core.violation(
            "discovery_body",
            None,
            "the body is not `AppID` and `AppSecret`".to_owned(),
        );
        return respond(
            core,
            400,
            None,
            &json!({"code": 9499, "msg": "Bad Request"}),
        );
    };
    let signed_in = core.world().sign_in(&id, &secret);
    let app = match signed_in {
        Ok(app) => app,
        Err((number, msg)) => {
            return respond(core, 200, None, &json!({"code": number, "msg": msg}));
        }
    };
    let mut data = json!({
        "URL": url(core, app, fault.as_ref()),
        "ClientConfig": core.options.client_config,
    });
    if let (Some(Fault::DiscoveryConfig { config }), Some(map)) = (&fault, data.as_object_mut()) {
        map.remove("ClientConfig");
        if !config.is_null() {
            map.insert("ClientConfig".to_owned(), config.clone());
        }
    }
    core.record("discovery", None, || json!({"app_id": id}));
    respond(
        core,
        200,
        None,
        &json!({"code": 0, "msg": "", "data": data}),
    )
}

/// The keys are case-sensitive; besides the two only the documented optional
/// ones may stand in the body.
fn credentials(headers: &HeaderMap, body: &[u8]) -> Option<(String, String)> {
    let content_type = headers.get("content-type")?.to_str().ok()?;
    if !content_type.starts_with("application/json") {
        return None;
    }
    let value: Value = serde_json::from_slice(body).ok()?;
    let map = value.as_object()?;
    let text = |key| map.get(key).and_then(Value::as_str).map(str::to_owned);
    let known = ["AppID", "AppSecret", "ClientAssertion", "ChannelTag"];
    map.keys()
        .all(|key| known.contains(&key.as_str()))
        .then_some(())?;
    Some((text("AppID")?, text("AppSecret")?))
}

fn url(core: &Core, app: usize, fault: Option<&Fault>) -> String {
    if let Some(Fault::DiscoveryBadUrl { url }) = fault {
        return url.clone();
    }
    let mut query = core.world().ticket(app);
    if let Some(Fault::DiscoveryQuery { order }) = fault {
        query = order
            .iter()
            .filter_map(|name| query.iter().find(|(key, _)| key == name).cloned())
            .collect();
    }
    let query = Serializer::new(String::new()).extend_pairs(query).finish();
    format!("ws://127.0.0.1:{}/ws/v2?{query}", core.socket_port)
}
