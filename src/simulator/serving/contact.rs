//! The address book, as far as an app may look into it: who an id is needs one
//! scope, that person's name another.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::simulator::world::state::{Decline, World, decline};

const PEOPLE: &[&str] = &[
    "contact:contact.base:readonly",
    "contact:contact:readonly_as_app",
    "contact:contact:access_as_app",
];
const NAMES: &[&str] = &[
    "contact:user.base:readonly",
    "contact:contact:readonly_as_app",
    "contact:contact:access_as_app",
];

pub(in crate::simulator) fn user(
    world: &World,
    app: usize,
    id: &str,
    query: &HashMap<String, String>,
) -> Result<Value, Decline> {
    world.need_scope(app, PEOPLE)?;
    let kind = query.get("user_id_type").map_or("open_id", String::as_str);
    let found = world.user_by(kind, id).filter(|_| kind != "email");
    let Some(user) = found else {
        return decline(41_012, "user id invalid error");
    };
    let mut told = json!({"user": {"open_id": user.open_id, "union_id": user.union_id}});
    if world.need_scope(app, NAMES).is_ok() {
        told["user"]["name"] = json!(user.name);
    }
    Ok(told)
}
