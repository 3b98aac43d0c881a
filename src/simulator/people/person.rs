//! What people do in this Feishu: tap a card, write into a chat.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::click::{self, Press, Unclickable};
use crate::simulator::control::bend;
use crate::simulator::control::faults::At;
use crate::simulator::serving::answer::popup::{NO_ANSWER, NOT_SUBSCRIBED};
use crate::simulator::serving::answer::{self, ClickOutcome, ShownToast};
use crate::simulator::serving::event::{self, ChatText, PersonTap};
use crate::simulator::serving::push::{ClickOf, Pushed, latency_us};
use crate::simulator::serving::repush::UnackedEvent;
use crate::simulator::world::card::{self, CardVersion};
use crate::simulator::world::core::Core;
use crate::simulator::world::options::User;
use crate::simulator::world::state::messages::{CARD_LIFE, HeldMessage};
use crate::simulator::world::state::{World, p2p};

const MESSAGE: &str = "im.message.receive_v1";
const MAX_RESOURCE: usize = 16 << 20;

/// What the person who tapped sees.
#[derive(Debug, Clone, Serialize)]
pub struct Clicked {
    pub event_id: String,
    /// The connection the click was pushed to.
    pub connection: Option<u64>,
    /// The error code the client pops up, `None` if all went well.
    pub popup: Option<i64>,
    pub problem: Option<String>,
    pub toast: Option<ShownToast>,
    /// The card in the answer; shown if `applied`.
    pub card: Option<Value>,
    pub applied: bool,
    /// An edit came before the answer and was taken back.
    pub reverted: bool,
    pub code: Option<i64>,
    pub latency_us: Option<u64>,
}

/// Why a text can't be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    #[error("there is no user `{0}`")]
    NoUser(String),
    #[error("`{0}` does not see this chat")]
    NotInChat(String),
    #[error("there is no message `{0}`")]
    NoMessage(String),
    #[error("`{0}` is not base64 or larger than 16 MiB")]
    BadResource(&'static str),
    #[error("there is no app `{0}`")]
    NoApp(String),
}

impl Core {
    /// Makes a tap, pushes it, and tells what the person sees.
    pub(in crate::simulator) async fn click(&self, press: Press) -> Result<Clicked, Unclickable> {
        let (app, click, payload) = self.begin_click(&press)?;
        self.record("click", None, || {
            json!({"message_id": press.message_id, "user": press.user, "event_id": click.event_id})
        });
        let subscribed = {
            let world = self.world();
            let app = &world.apps[app];
            app.published
                && app.callback_mode.as_deref() == Some("websocket")
                && app
                    .callbacks
                    .iter()
                    .any(|name| name == "card.action.trigger")
        };
        let (flight, answered) = if subscribed {
            self.push_and_wait(app, payload, Some(click.clone())).await
        } else {
            (None, None)
        };
        let (outcome, settled) = if let Some(answered) = &answered {
            (answered.outcome.clone(), answered.settled)
        } else {
            let popup = if flight.is_some() {
                NO_ANSWER
            } else {
                NOT_SUBSCRIBED
            };
            (ClickOutcome::popup(popup), self.end_click(&click, None))
        };
        let clicked = Clicked {
            event_id: click.event_id,
            connection: flight.as_ref().map(|flight| flight.connection),
            popup: outcome.popup,
            problem: outcome.problem,
            toast: outcome.toast,
            card: outcome.card,
            applied: settled.applied,
            reverted: settled.reverted,
            code: answered.as_ref().map(|answered| answered.reply.code),
            latency_us: latency_us(flight.as_ref(), answered.as_ref()),
        };
        self.record("clicked", clicked.connection, || {
            let mut shown = serde_json::to_value(&clicked).unwrap_or_default();
            shown.as_object_mut().map(|map| map.remove("connection"));
            shown
        });
        Ok(clicked)
    }

    fn begin_click(&self, press: &Press) -> Result<(usize, ClickOf, Bytes), Unclickable> {
        let now = self.now();
        let mut world = self.world();
        let user = world.user(&press.user).cloned();
        let user = user.ok_or_else(|| Unclickable::NoUser(press.user.clone()))?;
        let no_message = || Unclickable::NoMessage(press.message_id.clone());
        let message = world
            .messages
            .get(&press.message_id)
            .ok_or_else(no_message)?;
        if message.deleted {
            return Err(Unclickable::Recalled);
        }
        if message.create_time + CARD_LIFE < now {
            return Err(Unclickable::Expired);
        }
        let (app, chat) = (message.app, message.chat_id.clone());
        if !world.sees(app, &user, &chat) {
            return Err(Unclickable::NotInChat(user.open_id));
        }
        let card = message.card.as_ref().ok_or(Unclickable::NoCard)?;
        let version = card::check(card).unwrap_or(CardVersion::Two);
        let action = click::action(card, press)?;
        let event_id = world.mint.hex(32);
        let token = format!("c-{}", world.mint.hex(40));
        let mut body = event::click(&PersonTap {
            app: &world.apps[app],
            user: &user,
            event_id: &event_id,
            token: &token,
            now,
            message_id: &press.message_id,
            chat_id: &chat,
            action,
        });
        for kind in bend::BENDS {
            let fits = |fault: &_| *fault == kind && bend::meets(fault, &body);
            if let Some(fault) = self.take_fault(None, At::Now, fits) {
                bend::bend(&fault, &mut body);
            }
        }
        let message = world
            .messages
            .get_mut(&press.message_id)
            .ok_or_else(no_message)?;
        message.begin_click(&event_id);
        let click = ClickOf {
            message_id: press.message_id.clone(),
            event_id,
            version,
        };
        Ok((app, click, Bytes::from(body.to_string())))
    }

    /// Pushes any bytes as a callback: one try, no card is touched.
    pub(in crate::simulator) async fn push_raw(
        &self,
        app: usize,
        payload: Bytes,
    ) -> (Pushed, ClickOutcome) {
        let event_id = serde_json::from_slice::<Value>(&payload)
            .ok()
            .and_then(|body| Some(body.pointer("/header/event_id")?.as_str()?.to_owned()))
            .unwrap_or_default();
        let (flight, answered) = self.push_and_wait(app, payload, None).await;
        let outcome = answered.as_ref().map_or_else(
            || ClickOutcome::popup(NO_ANSWER),
            |answered| answer::outcome(&answered.reply, CardVersion::Two),
        );
        let pushed = Pushed::new(event_id, None, flight.as_ref(), answered.as_ref());
        (pushed, outcome)
    }

    /// Writes a message as a person and pushes it, with re-pushes if nobody
    /// acknowledges it.
    pub(in crate::simulator) async fn write(&self, text: &ChatText) -> Result<Pushed, Unwritable> {
        let app = self
            .app(text.app_id.as_deref())
            .ok_or_else(|| Unwritable::NoApp(text.app_id.clone().unwrap_or_default()))?;
        let (message_id, event) = self.compose(app, text)?;
        Ok(self.emit(app, MESSAGE, event, Some(message_id)).await)
    }

    /// The app with this id, or the first.
    pub(in crate::simulator) fn app(&self, id: Option<&str>) -> Option<usize> {
        let world = self.world();
        match id {
            Some(id) => world.apps.iter().position(|app| app.id == id),
            None => (!world.apps.is_empty()).then_some(0),
        }
    }

    /// Pushes a plain event of any type, with re-pushes.
    pub(in crate::simulator) async fn emit(
        &self,
        app: usize,
        event_type: &str,
        event: Value,
        message_id: Option<String>,
    ) -> Pushed {
        let (event_id, body) = {
            let mut world = self.world();
            let event_id = world.mint.hex(32);
            let body = event::envelope(&world.apps[app], &event_id, event_type, self.now(), &event);
            (event_id, body)
        };
        self.deliver(UnackedEvent {
            app,
            event_id,
            message_id,
            payload: Bytes::from(body.to_string()),
            attempt: 0,
        })
        .await
    }

    /// A chat message from the first user, as a whole event body.
    pub(in crate::simulator) fn small_talk(&self, app: usize) -> Value {
        let event = self
            .compose(app, &ChatText::new("right behind the handshake"))
            .map(|(_, event)| event)
            .unwrap_or_default();
        let now = self.now();
        let mut world = self.world();
        let event_id = world.mint.hex(32);
        event::envelope(&world.apps[app], &event_id, MESSAGE, now, &event)
    }

    /// Stores a person's message and describes it as an event.
    fn compose(&self, app: usize, text: &ChatText) -> Result<(String, Value), Unwritable> {
        let created = self.now().saturating_sub(text.age_ms);
        let mut guard = self.world();
        let world = &mut *guard;
        let user = world.user(&text.user).cloned();
        let user = user.ok_or_else(|| Unwritable::NoUser(text.user.clone()))?;
        let chat = text
            .chat_id
            .clone()
            .unwrap_or_else(|| p2p(&world.apps[app], &user));
        if !world.sees(app, &user, &chat) {
            return Err(Unwritable::NotInChat(user.open_id));
        }
        let id = format!("om_{}", world.mint.hex(32));
        let mut message = HeldMessage::new(app, id.clone(), chat.clone(), created);
        message.sender_type = "user";
        message.sender.clone_from(&user.open_id);
        message.thread_id.clone_from(&text.thread_id);
        if let Some(parent) = &text.parent_id {
            let known = world
                .messages
                .get(parent)
                .ok_or_else(|| Unwritable::NoMessage(parent.clone()))?;
            if message.thread_id.is_none() {
                message.thread_id.clone_from(&known.thread_id);
            }
            message.root_id = Some(known.root_id.as_ref().unwrap_or(parent).clone());
            message.parent_id = Some(parent.clone());
        }
        if let Some(topic) = &message.thread_id {
            let root = message.root_id.clone().or_else(|| root_of(world, topic));
            message.root_id.clone_from(&root);
            message.parent_id = root;
        }
        let (msg_type, content) = content(world, &id, text)?;
        msg_type.clone_into(&mut message.msg_type);
        message.content = content.to_string();
        if text.mention_bot {
            let bot = &world.apps[app];
            message.mentions = json!([{
                "key": "@_user_1",
                "id": {"union_id": "", "user_id": "", "open_id": bot.bot_open_id},
                "mentioned_type": "bot",
                "name": bot.name,
                "tenant_key": bot.tenant_key,
            }]);
        }
        let group = world.is_group(&chat);
        let event = described(world, &message, &user, group);
        world.messages.insert(message);
        drop(guard);
        self.record("message", None, || {
            json!({"message_id": id, "chat_id": chat, "sender": user.open_id, "msg_type": msg_type})
        });
        Ok((id, event))
    }
}

/// The message a topic hangs on.
fn root_of(world: &World, topic: &str) -> Option<String> {
    let mut all = world.messages.all();
    let inside = all.find(|message| message.thread_id.as_deref() == Some(topic))?;
    inside.root_id.clone()
}

fn content(
    world: &mut World,
    message_id: &str,
    text: &ChatText,
) -> Result<(&'static str, Value), Unwritable> {
    let decode = |field, encoded: &str| {
        STANDARD
            .decode(encoded)
            .ok()
            .filter(|bytes| bytes.len() <= MAX_RESOURCE)
            .map(Bytes::from)
            .ok_or(Unwritable::BadResource(field))
    };
    if let Some(image) = &text.image {
        let bytes = decode("image", image)?;
        let key = format!("img_v3_{}", world.mint.hex(32));
        world.keep_resource(message_id, &key, "image", bytes);
        return Ok(("image", json!({"image_key": key})));
    }
    if let Some(file) = &text.file {
        let bytes = decode("file", file)?;
        let key = format!("file_v3_{}", world.mint.hex(32));
        world.keep_resource(message_id, &key, "file", bytes);
        let name = text.file_name.as_deref().unwrap_or("file.bin");
        return Ok(("file", json!({"file_key": key, "file_name": name})));
    }
    let shown = if text.mention_bot {
        format!("@_user_1 {}", text.text)
    } else {
        text.text.clone()
    };
    if text.pictures.is_empty() {
        return Ok(("text", json!({"text": shown})));
    }
    let mut lines = vec![json!([{"tag": "text", "text": shown, "style": []}])];
    for picture in &text.pictures {
        let bytes = decode("pictures", picture)?;
        let key = format!("img_v3_{}", world.mint.hex(32));
        world.keep_resource(message_id, &key, "image", bytes);
        lines.push(json!([{"tag": "img", "image_key": key}]));
    }
    Ok(("post", json!({"title": "", "content": lines})))
}

fn described(world: &World, message: &HeldMessage, user: &User, group: bool) -> Value {
    let app = &world.apps[message.app];
    let mut shown = json!({
        "message_id": message.message_id,
        "create_time": message.create_time.to_string(),
        "update_time": message.create_time.to_string(),
        "chat_id": message.chat_id,
        "chat_type": if group { "group" } else { "p2p" },
        "message_type": message.msg_type,
        "content": message.content,
    });
    message.show_place(&mut shown);
    if message.mentions != json!([]) {
        shown["mentions"] = message.mentions.clone();
    }
    json!({
        "sender": {
            "sender_id": event::ids(app, user),
            "sender_type": "user",
            "tenant_key": app.tenant_key,
        },
        "message": shown,
    })
}
