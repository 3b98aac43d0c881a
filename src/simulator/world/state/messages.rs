//! Messages: sending, replying, editing, recalling, and what a click in
//! flight does to an edit that comes too early.

use std::collections::{HashMap, VecDeque};

use prost::bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Decline, World, decline};
use crate::simulator::world::card::{self, BadCard, CardVersion};

const MAX_MESSAGES: usize = 20_000;
const MAX_STATES: usize = 32;
const MAX_TEXT: usize = 150 * 1024;
const HOUR: u64 = 60 * 60 * 1000;
pub(in crate::simulator) const CARD_LIFE: u64 = 14 * 24 * HOUR;

/// One message as this Feishu holds it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct HeldMessage {
    pub message_id: String,
    pub chat_id: String,
    #[serde(skip)]
    pub(in crate::simulator) app: usize,
    /// `app`, or `user` for what a person wrote.
    pub sender_type: &'static str,
    pub sender: String,
    pub msg_type: String,
    pub content: String,
    /// The card a person sees now.
    pub card: Option<Value>,
    /// Earlier cards, oldest first, bounded.
    pub earlier_cards: VecDeque<Value>,
    pub create_time: u64,
    pub update_time: u64,
    pub deleted: bool,
    pub root_id: Option<String>,
    pub parent_id: Option<String>,
    pub thread_id: Option<String>,
    pub uuid: Option<String>,
    pub reactions: Vec<(String, String)>,
    #[serde(skip)]
    pub(in crate::simulator) mentions: Value,
    #[serde(skip)]
    clicks: Vec<OpenClick>,
}

/// A click Feishu has pushed and has no reply for yet.
#[derive(Debug, Clone)]
struct OpenClick {
    id: String,
    card_before: Value,
    patched: bool,
}

/// What a finished click did to its card.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::simulator) struct SettledClick {
    pub(in crate::simulator) applied: bool,
    pub(in crate::simulator) reverted: bool,
}

/// What a new message is made of.
#[derive(Debug, Clone, Default)]
pub(in crate::simulator) struct NewMessage {
    pub(in crate::simulator) msg_type: String,
    pub(in crate::simulator) content: String,
    pub(in crate::simulator) uuid: Option<String>,
    pub(in crate::simulator) parent: Option<String>,
    pub(in crate::simulator) in_thread: bool,
}

#[derive(Debug, Default)]
pub(in crate::simulator) struct HeldMessages {
    by_id: HashMap<String, HeldMessage>,
    order: VecDeque<String>,
    uuids: HashMap<(usize, String), (String, u64)>,
}

impl HeldMessages {
    pub(in crate::simulator) fn get(&self, id: &str) -> Option<&HeldMessage> {
        self.by_id.get(id)
    }

    pub(in crate::simulator) fn get_mut(&mut self, id: &str) -> Option<&mut HeldMessage> {
        self.by_id.get_mut(id)
    }

    /// Oldest first.
    pub(in crate::simulator) fn all(&self) -> impl Iterator<Item = &HeldMessage> {
        self.order.iter().filter_map(|id| self.by_id.get(id))
    }

    pub(in crate::simulator) fn count(&self) -> usize {
        self.order.len()
    }

    pub(in crate::simulator) fn insert(&mut self, message: HeldMessage) {
        if self.order.len() >= MAX_MESSAGES
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
        self.order.push_back(message.message_id.clone());
        self.by_id.insert(message.message_id.clone(), message);
    }
}

impl HeldMessage {
    pub(in crate::simulator) fn new(app: usize, id: String, chat: String, now: u64) -> Self {
        Self {
            message_id: id,
            chat_id: chat,
            app,
            sender_type: "app",
            msg_type: "text".to_owned(),
            create_time: now,
            update_time: now,
            mentions: json!([]),
            ..Self::default()
        }
    }

    fn show(&mut self, card: Value, now: u64) {
        if let Some(earlier) = self.card.replace(card) {
            if self.earlier_cards.len() == MAX_STATES {
                self.earlier_cards.pop_front();
            }
            self.earlier_cards.push_back(earlier);
        }
        self.update_time = now;
    }

    pub(in crate::simulator) fn has_click(&self) -> bool {
        !self.clicks.is_empty()
    }

    pub(in crate::simulator) fn begin_click(&mut self, id: &str) {
        let card_before = self.card.clone().unwrap_or_default();
        self.clicks.push(OpenClick {
            id: id.to_owned(),
            card_before,
            patched: false,
        });
    }

    /// Ends a click: the answer's card is shown, or the edits that came
    /// before the answer are taken back.
    pub(in crate::simulator) fn end_click(
        &mut self,
        id: &str,
        card: Option<Value>,
        now: u64,
    ) -> SettledClick {
        let Some(index) = self.clicks.iter().position(|click| click.id == id) else {
            return SettledClick::default();
        };
        let click = self.clicks.remove(index);
        let applied = card.is_some();
        if let Some(card) = card.or(click.patched.then_some(click.card_before)) {
            self.show(card, now);
        }
        SettledClick {
            applied,
            reverted: click.patched,
        }
    }

    pub(in crate::simulator) fn to_api(&self, sender: &Value) -> Value {
        let mut value = json!({
            "message_id": self.message_id,
            "chat_id": self.chat_id,
            "msg_type": self.msg_type,
            "create_time": self.create_time.to_string(),
            "update_time": self.update_time.to_string(),
            "deleted": self.deleted,
            "updated": self.update_time != self.create_time,
            "sender": sender,
            "body": {"content": self.content},
            "mentions": self.mentions,
        });
        self.show_place(&mut value);
        value
    }

    /// Names what it answers and the topic it is in.
    pub(in crate::simulator) fn show_place(&self, shown: &mut Value) {
        for (key, id) in [
            ("root_id", &self.root_id),
            ("parent_id", &self.parent_id),
            ("thread_id", &self.thread_id),
        ] {
            if let Some(id) = id {
                shown[key] = json!(id);
            }
        }
    }
}

/// Checks the content of a message and reads its card.
fn check_content(msg_type: &str, content: &str) -> Result<Option<(Value, CardVersion)>, Decline> {
    let value: Option<Value> = serde_json::from_str(content).ok();
    match msg_type {
        "interactive" => {
            if content.len() > card::MAX_BYTES {
                return Err(too_long());
            }
            let value =
                value.ok_or_else(|| bad_card(&BadCard::new(card::NOT_PARSABLE, "not JSON")))?;
            if value.get("type").is_some() && value.get("data").is_some() {
                return Err(bad_card(&BadCard::new(
                    200_380,
                    "templates and card entities do not exist here",
                )));
            }
            let version = card::check(&value).map_err(|bad| bad_card(&bad))?;
            Ok(Some((value, version)))
        }
        "text" => {
            if content.len() > MAX_TEXT {
                return Err(too_long());
            }
            match value.as_ref().and_then(|v| v.get("text")) {
                Some(Value::String(text)) if !text.is_empty() => Ok(None),
                _ => Err(invalid("content of a text message holds no `text`")),
            }
        }
        "post" | "image" | "file" | "audio" | "media" | "sticker" | "share_chat" | "share_user" => {
            if content.len() > card::MAX_BYTES {
                return Err(too_long());
            }
            match value {
                Some(Value::Object(_)) => Ok(None),
                _ => Err(invalid("content is not a JSON object")),
            }
        }
        _ => Err(invalid("msg_type is invalid")),
    }
}

fn invalid(problem: &str) -> Decline {
    Decline::new(
        230_001,
        format!("Your request contains an invalid request parameter. {problem}"),
    )
}

pub(in crate::simulator) fn too_long() -> Decline {
    Decline::new(
        230_025,
        "The length of the message content reaches its limit.",
    )
}

fn bad_card(bad: &BadCard) -> Decline {
    Decline::new(
        230_099,
        format!("Failed to create card content, ext={bad}; "),
    )
}

impl World {
    /// Creates a message; a repeated uuid within the hour gives the first one.
    pub(in crate::simulator) fn send(
        &mut self,
        app: usize,
        chat: String,
        draft: NewMessage,
        now: u64,
    ) -> Result<String, Decline> {
        if !self.apps[app].published {
            return decline(
                230_006,
                "Bot ability is not activated, or the version is not published.",
            );
        }
        if let Some(uuid) = &draft.uuid {
            if uuid.len() > 50 {
                return Err(invalid("uuid is longer than 50"));
            }
            let known = self.messages.uuids.get(&(app, uuid.clone()));
            if let Some((id, at)) = known
                && at + HOUR > now
            {
                return Ok(id.clone());
            }
        }
        let card = check_content(&draft.msg_type, &draft.content)?;
        let file = match draft.msg_type.as_str() {
            "file" => Some(self.uploaded(app, &draft.content)?),
            _ => None,
        };
        self.pace_chat(&chat, now)?;
        let id = format!("om_{}", self.mint.hex(32));
        let mut message = HeldMessage::new(app, id.clone(), chat, now);
        message.sender.clone_from(&self.apps[app].id);
        if let Some(parent) = draft.parent.as_deref().and_then(|p| self.messages.get(p)) {
            message.parent_id = Some(parent.message_id.clone());
            let root = parent.root_id.as_ref().unwrap_or(&parent.message_id);
            message.root_id = Some(root.clone());
            message.thread_id.clone_from(&parent.thread_id);
            if draft.in_thread && message.thread_id.is_none() {
                message.thread_id = Some(format!("omt_{}", self.mint.hex(16)));
            }
            // In a topic every message replies to its root.
            if message.thread_id.is_some() {
                message.parent_id.clone_from(&message.root_id);
            }
        }
        message.msg_type = draft.msg_type;
        message.content = draft.content;
        if let Some((key, name, bytes)) = file {
            message.content = json!({"file_key": key, "file_name": name}).to_string();
            self.keep_resource(&id, &key, "file", bytes);
        }
        message.card = card.map(|(card, _)| card);
        message.uuid.clone_from(&draft.uuid);
        if let Some(uuid) = draft.uuid {
            let uuids = &mut self.messages.uuids;
            if uuids.len() >= MAX_MESSAGES {
                uuids.retain(|_, (_, at)| *at + HOUR > now);
            }
            uuids.insert((app, uuid), (id.clone(), now));
        }
        self.messages.insert(message);
        Ok(id)
    }

    /// The file that a message's content names: key, name, bytes.
    fn uploaded(&self, app: usize, content: &str) -> Result<(String, String, Bytes), Decline> {
        let content: Value = serde_json::from_str(content).unwrap_or_default();
        let key = content["file_key"].as_str().unwrap_or_default();
        let file = self.uploads.get(app, key);
        file.map(|(name, bytes)| (key.to_owned(), name, bytes))
            .ok_or_else(|| invalid("file_key is invalid"))
    }

    /// The message a call names, if it still exists.
    pub(in crate::simulator) fn existing(&self, id: &str) -> Result<&HeldMessage, Decline> {
        match self.messages.get(id) {
            Some(message) if message.deleted => decline(230_011, "The message was withdrawn."),
            Some(message) => Ok(message),
            None if !id.starts_with("om_") => decline(
                99_992_354,
                "The request you send is not a valid {message_id} or not exists",
            ),
            None => decline(230_110, "The message has been deleted."),
        }
    }

    pub(in crate::simulator) fn reply(
        &mut self,
        app: usize,
        parent: &str,
        mut draft: NewMessage,
        now: u64,
    ) -> Result<String, Decline> {
        let chat = self.existing(parent)?.chat_id.clone();
        draft.parent = Some(parent.to_owned());
        self.send(app, chat, draft, now)
    }

    /// Edits a card of this app. While a click waits for its answer the edit
    /// is shown and later taken back, as Feishu's clients do.
    pub(in crate::simulator) fn patch(
        &mut self,
        app: usize,
        id: &str,
        content: &str,
        now: u64,
    ) -> Result<(), Decline> {
        let message = self.existing(id)?;
        if message.msg_type != "interactive" {
            return Err(invalid("the message is not a card"));
        }
        if message.app != app || message.sender_type != "app" {
            return decline(230_012, "The message was not sent by this app.");
        }
        if message.create_time + CARD_LIFE < now {
            return decline(230_031, "The message is beyond the edit period of 14 days.");
        }
        let before = message
            .card
            .as_ref()
            .and_then(|card| card::check(card).ok());
        self.pace_patch(id, now)?;
        let Some((card, version)) = check_content("interactive", content)? else {
            return Err(invalid("content is no card"));
        };
        match (before, version) {
            (Some(CardVersion::Two), CardVersion::One) => {
                return Err(bad_card(&BadCard::new(
                    card::DOWNGRADE,
                    "a 2.0 card cannot become a 1.0 card",
                )));
            }
            (_, CardVersion::One) if card.pointer("/config/update_multi") != Some(&json!(true)) => {
                return Err(invalid("config.update_multi is not true"));
            }
            _ => {}
        }
        if let Some(message) = self.messages.get_mut(id) {
            for click in &mut message.clicks {
                click.patched = true;
            }
            content.clone_into(&mut message.content);
            message.show(card, now);
        }
        Ok(())
    }

    pub(in crate::simulator) fn delete(&mut self, app: usize, id: &str) -> Result<(), Decline> {
        let message = self.existing(id)?;
        if message.app != app || message.sender_type != "app" {
            return decline(230_012, "The message was not sent by this app.");
        }
        if let Some(message) = self.messages.get_mut(id) {
            message.deleted = true;
        }
        Ok(())
    }

    pub(in crate::simulator) fn react(&mut self, id: &str, emoji: &str) -> Result<String, Decline> {
        let gone = || Decline::new(231_003, "The message does not exist.");
        self.existing(id).map_err(|_| gone())?;
        let well_formed = (1..=40).contains(&emoji.len())
            && emoji
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !well_formed {
            return decline(231_001, "reaction type is invalid.");
        }
        let reaction = self.mint.hex(48);
        let message = self.messages.get_mut(id).ok_or_else(gone)?;
        if message.reactions.len() < 100 {
            message.reactions.push((reaction.clone(), emoji.to_owned()));
        }
        Ok(reaction)
    }

    pub(in crate::simulator) fn unreact(
        &mut self,
        id: &str,
        reaction: &str,
    ) -> Result<(), Decline> {
        let message = self.messages.get_mut(id);
        let reactions = message.map(|message| &mut message.reactions);
        let Some((reactions, index)) = reactions.and_then(|reactions| {
            let index = reactions.iter().position(|(known, _)| known == reaction)?;
            Some((reactions, index))
        }) else {
            return decline(231_007, "The reaction does not exist.");
        };
        reactions.remove(index);
        Ok(())
    }

    pub(in crate::simulator) fn api_view(&self, message: &HeldMessage) -> Value {
        let tenant = &self.apps[message.app].tenant_key;
        let id_type = if message.sender_type == "app" {
            "app_id"
        } else {
            "open_id"
        };
        message.to_api(&json!({
            "id": message.sender,
            "id_type": id_type,
            "sender_type": message.sender_type,
            "tenant_key": tenant,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::world::options::{GROUP, Options};

    fn world() -> World {
        World::new(&Options::default())
    }

    fn card(text: &str) -> String {
        json!({"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": text}]}})
            .to_string()
    }

    fn draft(content: String, uuid: Option<&str>) -> NewMessage {
        NewMessage {
            msg_type: "interactive".to_owned(),
            content,
            uuid: uuid.map(str::to_owned),
            ..NewMessage::default()
        }
    }

    fn send(
        world: &mut World,
        content: String,
        uuid: Option<&str>,
        now: u64,
    ) -> Result<String, i64> {
        world
            .send(0, GROUP.to_owned(), draft(content, uuid), now)
            .map_err(|refusal| refusal.code)
    }

    fn shown(world: &World, id: &str) -> String {
        world.messages.get(id).unwrap().card.as_ref().unwrap()["body"]["elements"][0]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn a_repeated_uuid_gives_the_first_message_for_an_hour() {
        let mut world = world();
        let first = send(&mut world, card("a"), Some("u1"), 0).unwrap();
        assert_eq!(
            send(&mut world, card("b"), Some("u1"), HOUR - 1),
            Ok(first.clone())
        );
        assert_eq!(shown(&world, &first), "a");
        assert_ne!(
            send(&mut world, card("b"), Some("u2"), 1),
            Ok(first.clone())
        );
        assert_ne!(send(&mut world, card("b"), Some("u1"), HOUR), Ok(first));
        let long = "u".repeat(51);
        assert_eq!(send(&mut world, card("b"), Some(&long), HOUR), Err(230_001));
    }

    #[test]
    fn a_chat_takes_five_messages_a_second() {
        let mut world = world();
        for _ in 0..5 {
            send(&mut world, card("a"), None, 10).unwrap();
        }
        assert_eq!(send(&mut world, card("a"), None, 1009), Err(230_020));
        send(&mut world, card("a"), None, 1010).unwrap();
    }

    #[test]
    fn content_is_refused_with_its_code() {
        let mut world = world();
        let large = card(&"x".repeat(card::MAX_BYTES));
        assert_eq!(send(&mut world, large, None, 0), Err(230_025));
        assert_eq!(send(&mut world, "{".to_owned(), None, 0), Err(230_099));
        let refusal = world
            .send(
                0,
                GROUP.to_owned(),
                draft(
                    json!({"schema": "2.0", "body": {"elements": [{"tag": "note"}]}}).to_string(),
                    None,
                ),
                0,
            )
            .unwrap_err();
        assert_eq!(refusal.code, 230_099);
        assert!(refusal.msg.contains("ErrCode: 200861;"), "{}", refusal.msg);
    }

    #[test]
    fn only_own_fresh_cards_can_be_patched() {
        let mut world = world();
        let id = send(&mut world, card("a"), None, 0).unwrap();
        let patch = |world: &mut World, app, id: &str, content: &str, now| {
            world.patch(app, id, content, now).map_err(|r| r.code)
        };
        assert_eq!(patch(&mut world, 0, &id, &card("b"), 1), Ok(()));
        assert_eq!(shown(&world, &id), "b");
        assert_eq!(world.messages.get(&id).unwrap().earlier_cards.len(), 1);
        assert_eq!(patch(&mut world, 1, &id, &card("c"), 1), Err(230_012));
        assert_eq!(patch(&mut world, 0, "om_x", &card("c"), 1), Err(230_110));
        assert_eq!(patch(&mut world, 0, "c-1", &card("c"), 1), Err(99_992_354));
        assert_eq!(
            patch(&mut world, 0, &id, &card("c"), CARD_LIFE + 1),
            Err(230_031)
        );
        let one = json!({"config": {"update_multi": true}, "elements": []}).to_string();
        let refusal = world.patch(0, &id, &one, 5).unwrap_err();
        assert!(refusal.msg.contains("ErrCode: 200830;"), "{}", refusal.msg);
        world.delete(0, &id).unwrap();
        assert_eq!(patch(&mut world, 0, &id, &card("c"), 1), Err(230_011));
    }

    #[test]
    fn a_patch_before_the_answer_is_taken_back() {
        let mut world = world();
        let id = send(&mut world, card("asked"), None, 0).unwrap();
        world.messages.get_mut(&id).unwrap().begin_click("e1");
        world.patch(0, &id, &card("early"), 1).unwrap();
        assert_eq!(shown(&world, &id), "early");
        let settled = world
            .messages
            .get_mut(&id)
            .unwrap()
            .end_click("e1", None, 2);
        assert!(settled.reverted);
        assert_eq!(shown(&world, &id), "asked");
        world.patch(0, &id, &card("decided"), 3).unwrap();
        assert_eq!(shown(&world, &id), "decided");
    }

    #[test]
    fn the_answers_card_is_shown() {
        let mut world = world();
        let id = send(&mut world, card("asked"), None, 0).unwrap();
        let message = world.messages.get_mut(&id).unwrap();
        message.begin_click("e1");
        let decided = serde_json::from_str(&card("decided")).unwrap();
        let settled = message.end_click("e1", Some(decided), 2);
        assert_eq!((settled.applied, settled.reverted), (true, false));
        assert_eq!(shown(&world, &id), "decided");
    }

    #[test]
    fn a_reply_knows_its_parent_and_root() {
        let mut world = world();
        let first = send(&mut world, card("a"), None, 0).unwrap();
        let second = world.reply(0, &first, draft(card("b"), None), 1).unwrap();
        let third = world.reply(0, &second, draft(card("c"), None), 2).unwrap();
        let third = world.messages.get(&third).unwrap();
        assert_eq!(third.parent_id.as_deref(), Some(second.as_str()));
        assert_eq!(third.root_id.as_deref(), Some(first.as_str()));
    }

    #[test]
    fn messages_are_bounded() {
        let mut world = world();
        for n in 0..MAX_MESSAGES + 3 {
            let id = format!("om_{n}");
            world
                .messages
                .insert(HeldMessage::new(0, id, GROUP.to_owned(), 0));
        }
        assert_eq!(world.messages.all().count(), MAX_MESSAGES);
        assert!(world.messages.get("om_0").is_none());
    }
}
