//! Permissions beyond the sandbox, from Codex's words into those of our own
//! requests: which places, the network, and for how long. What can't be said
//! whole in one sentence is not asked here.

use serde_json::{Map, Value, json};
use std::path::Path;

use super::{CodexAskKind, MadeAsk, PERMISSION_WISH, text};
use crate::rules::Leaves;
use crate::rules::codex::{GrantUntil, MAX_NAMED};
use crate::text::escape;

/// A longer path would not be read.
const MAX_PATH: usize = 240;

/// `item/permissions/requestApproval`: everything asked for is granted to every
/// command, until the turn or the session ends.
pub(super) fn read(params: &Value) -> MadeAsk {
    let wanted = params.get("permissions")?;
    let mut input = json!({"permissions": normal(wanted, GrantUntil::TurnEnd)?});
    if let Some(reason) = text(params, "reason") {
        input["reason"] = json!(reason);
    }
    if let Some(other) = text(params, "environmentId").filter(|id| id != "local") {
        input["environment"] = json!(other);
    }
    let leaves = Leaves {
        session: true,
        prefix: Vec::new(),
    };
    let kind = CodexAskKind::Permissions(wanted.clone());
    Some((PERMISSION_WISH.to_owned(), input, leaves, kind))
}

/// The permissions as a request of ours holds them; `None` for anything in them
/// that nod does not know, and for more than a person would read.
pub(super) fn normal(wanted: &Value, until: GrantUntil) -> Option<Value> {
    let wanted = known(wanted, &["fileSystem", "network"])?;
    let (mut write, mut read) = (Vec::new(), Vec::new());
    if let Some(files) = wanted.get("fileSystem").filter(|it| !it.is_null()) {
        let files = known(files, &["entries", "globScanMaxDepth", "read", "write"])?;
        for (key, places) in [("write", &mut write), ("read", &mut read)] {
            for path in list(files.get(key))? {
                add(places, path.as_str()?)?;
            }
        }
        for entry in list(files.get("entries"))? {
            let entry = known(entry, &["access", "path"])?;
            let places = match entry.get("access")?.as_str()? {
                "write" => &mut write,
                "read" => &mut read,
                _ => return None,
            };
            add(places, place(entry.get("path")?)?)?;
        }
    }
    let network = match wanted.get("network").filter(|it| !it.is_null()) {
        None => false,
        Some(network) => match known(network, &["enabled"])?.get("enabled") {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(_) => return None,
        },
    };
    let count = write.len() + read.len();
    if count > MAX_NAMED || (count == 0 && !network) {
        return None;
    }
    Some(json!({"until": until.word(), "write": write, "read": read, "network": network}))
}

/// Only what one entry of Codex's list names by a path of its own.
fn place(path: &Value) -> Option<&str> {
    match path["type"].as_str()? {
        "path" => path["path"].as_str(),
        "special" if path["value"]["kind"] == "root" => Some("/"),
        "special" if path["value"]["kind"] == "slash_tmp" => Some("/tmp"),
        _ => None,
    }
}

/// Codex names the same place twice, in its old field and in its new one.
fn add(places: &mut Vec<Value>, path: &str) -> Option<()> {
    let shown = path.len() <= MAX_PATH && escape::is_plain(path) && Path::new(path).is_absolute();
    let place = json!({"path": path});
    if shown && !places.contains(&place) {
        places.push(place);
    }
    shown.then_some(())
}

/// The object, if it has no other fields than these.
fn known<'a>(value: &'a Value, fields: &[&str]) -> Option<&'a Map<String, Value>> {
    let object = value.as_object()?;
    let all = object.keys().all(|key| fields.contains(&key.as_str()));
    all.then_some(object)
}

fn list(value: Option<&Value>) -> Option<&[Value]> {
    match value {
        None | Some(Value::Null) => Some(&[]),
        Some(Value::Array(items)) => Some(items),
        Some(_) => None,
    }
}
