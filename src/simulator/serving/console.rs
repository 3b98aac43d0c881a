//! What the developer console would show of an app, as the application API
//! answers it. Pure.

use serde_json::{Value, json};

use crate::simulator::world::options::App;

/// `applications/me`.
pub(in crate::simulator) fn me(app: &App) -> Value {
    let scopes: Vec<Value> = app
        .scopes
        .iter()
        .map(|scope| json!({"scope": scope, "description": "", "level": 1, "token_types": ["tenant"]}))
        .collect();
    let mut told = json!({"app": {
        "app_id": app.id,
        "app_name": app.name,
        "creator_id": app.owner,
        "owner": {"type": 2, "owner_id": app.owner},
        "status": 1,
        "scene_type": 0,
        "scopes": scopes,
        "online_version_id": if app.published { "oav_1" } else { "" },
        "callback_info": {
            "callback_type": app.callback_mode,
            "subscribed_callbacks": app.callbacks,
        },
    }});
    // No document names this field; some apps were told it.
    if let Some(mode) = &app.event_mode {
        told["app"]["event"] = json!({"subscription_type": mode, "subscribed_events": app.events});
    }
    told
}

/// `app_versions`: one published version, or one still in the works.
pub(in crate::simulator) fn versions(app: &App, now: u64) -> Value {
    let events: Vec<Value> = app
        .events
        .iter()
        .map(|event| json!({"event_type": event, "event_name": event, "event_description": ""}))
        .collect();
    let published = (now / 1000).to_string();
    json!({
        "has_more": false,
        "page_token": "",
        "items": [{
            "app_id": app.id,
            "version": "1.0.0",
            "version_id": "oav_1",
            "status": if app.published { 1 } else { 4 },
            "publish_time": if app.published { published } else { String::new() },
            "event_infos": events,
        }],
    })
}
