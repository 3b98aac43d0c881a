//! Messages and cards: send, answer, change, take back, and the few reads
//! `doctor` makes. Keeps Feishu's limits per receiver and per message itself.

mod edits;
mod preview;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use self::edits::EditLanes;
pub use self::preview::Previews;
use super::api::Api;
use super::api::exchange::{ApiCall, Upload};
use super::error::ApiError;
use super::pace::Pace;
use crate::ids::{ChatId, MessageId, UserId};

/// A message that would have to wait longer than this for its turn is refused
/// instead.
const LONGEST_QUEUE: Duration = Duration::from_secs(20);

/// Feishu's limit for the key that makes a send happen once.
const MAX_UUID: usize = 50;

/// Whom a message is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Receiver {
    Chat(ChatId),
    User(UserId),
}

impl Receiver {
    fn kind(&self) -> &'static str {
        match self {
            Self::Chat(_) => "chat_id",
            Self::User(UserId::Open(_)) => "open_id",
            Self::User(UserId::Union(_)) => "union_id",
            Self::User(UserId::Tenant(_)) => "user_id",
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::Chat(id) => id.as_str(),
            Self::User(id) => id.as_str(),
        }
    }
}

/// The right to send one message to this receiver now.
#[derive(Debug)]
pub struct SendTurn<'a>(&'a Receiver);

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Card(Value),
    Text(String),
    /// A file that was uploaded, by its key.
    File(String),
}

impl Content {
    fn kind(&self) -> &'static str {
        match self {
            Self::Card(_) => "interactive",
            Self::Text(_) => "text",
            Self::File(_) => "file",
        }
    }

    /// Feishu takes content as JSON inside a JSON string.
    fn wrapped(&self, previews: Previews) -> String {
        match self {
            Self::Card(card) => previews.of_card(card).to_string(),
            Self::Text(text) => json!({"text": plain(text)}).to_string(),
            Self::File(key) => json!({"file_key": key}).to_string(),
        }
    }
}

/// A text as Feishu shows it letter by letter. nod mentions nobody and links
/// nowhere in a text, and it may quote what others wrote; Feishu knows no
/// escape here, so a tag and a link each lose the sign that makes them one.
pub(super) fn plain(text: &str) -> String {
    text.replace('<', "＜").replace("](", "] (")
}

/// Where a message went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    pub message_id: MessageId,
    pub chat_id: Option<ChatId>,
    /// The topic it stands in.
    pub thread: Option<String>,
    /// The message it hangs on, itself or through others.
    pub root: Option<MessageId>,
}

/// What a message's attachment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentKind {
    Image,
    File,
}

/// A person, as far as this app may know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contact {
    pub name: Option<String>,
    pub open_id: Option<UserId>,
}

/// The bot as Feishu sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bot {
    pub open_id: Option<String>,
    pub name: Option<String>,
    /// Whether the bot is enabled and a version is published.
    pub enabled: bool,
}

/// The app's configuration as Feishu sees it; `None` where Feishu did not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    pub scopes: Vec<String>,
    /// How clicks are delivered, `websocket` for the long connection.
    pub callback_type: Option<String>,
    pub callbacks: Option<Vec<String>>,
    /// How events are delivered, `websocket` for the long connection.
    pub subscription_type: Option<String>,
    pub owner: Option<String>,
}

/// One version of the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppVersion {
    pub name: Option<String>,
    pub published: bool,
    pub events: Vec<String>,
}

/// Sends and changes messages as the app's bot; cheap to clone.
#[derive(Debug, Clone)]
pub struct Messages {
    api: Api,
    pace: Arc<Mutex<Pace<Receiver>>>,
    edits: EditLanes,
    previews: Previews,
}

impl Messages {
    /// `per_second` is how many messages one receiver gets in any second.
    pub fn new(api: Api, per_second: usize) -> Self {
        Self {
            api,
            pace: Arc::new(Mutex::new(Pace::new(per_second, LONGEST_QUEUE))),
            edits: EditLanes::default(),
            previews: Previews::Full,
        }
    }

    #[must_use]
    pub fn with_previews(mut self, previews: Previews) -> Self {
        self.previews = previews;
        self
    }

    /// Sends a message. Within an hour, the same `uuid` never makes a second
    /// one: make it once per message, not per try.
    pub async fn send(
        &self,
        to: &Receiver,
        content: &Content,
        uuid: &str,
    ) -> Result<SentMessage, ApiError> {
        let turn = self.turn(to).await?;
        self.send_in_turn(turn, content, uuid).await
    }

    /// Waits until this receiver may be written to again, or says at once that
    /// too many others wait.
    pub async fn turn<'a>(&self, to: &'a Receiver) -> Result<SendTurn<'a>, ApiError> {
        let now = Instant::now().into_std();
        let turn = {
            let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
            pace.next_slot(to.clone(), now)
        };
        let wait = turn.map_err(|full| ApiError::Crowded {
            after: full.again_in,
        })?;
        tokio::time::sleep(wait).await;
        Ok(SendTurn(to))
    }

    /// As [`Self::send`], for whoever makes the message only when its turn has
    /// come.
    pub async fn send_in_turn(
        &self,
        SendTurn(to): SendTurn<'_>,
        content: &Content,
        uuid: &str,
    ) -> Result<SentMessage, ApiError> {
        let body = json!({
            "receive_id": to.id(),
            "msg_type": content.kind(),
            "content": content.wrapped(self.previews),
            "uuid": fitting(uuid),
        });
        let call = ApiCall::post(&["open-apis", "im", "v1", "messages"], body)
            .query("receive_id_type", to.kind());
        sent(&self.api.call(&call).await?)
    }

    /// Answers a message, in its topic if asked to. `chat` is where it
    /// stands, if known, and only serves to keep the pace.
    pub async fn reply(
        &self,
        message: &MessageId,
        chat: Option<&ChatId>,
        content: &Content,
        in_thread: bool,
        uuid: &str,
    ) -> Result<SentMessage, ApiError> {
        if let Some(chat) = chat {
            self.turn(&Receiver::Chat(chat.clone())).await?;
        }
        let body = json!({
            "msg_type": content.kind(),
            "content": content.wrapped(self.previews),
            "reply_in_thread": in_thread,
            "uuid": fitting(uuid),
        });
        let path = ApiCall::of_message(message, &["reply"]);
        sent(&self.api.call(&ApiCall::post(&path, body)).await?)
    }

    /// Replaces a card. Edits of one message go out one after another; of
    /// several that wait, only the newest does. `Ok` means that this card or
    /// a newer one is in place.
    pub async fn patch(&self, message: &MessageId, card: Arc<str>) -> Result<(), ApiError> {
        self.edits
            .apply(message, card, |card| async move {
                let path = ApiCall::of_message(message, &[]);
                let body = json!({"content": self.previews.of_json(&card)});
                self.api.call(&ApiCall::patch(&path, body)).await.map(drop)
            })
            .await
    }

    /// Puts a file where [`Content::File`] can name it by the key that comes
    /// back.
    pub async fn upload(&self, name: &str, bytes: Arc<[u8]>) -> Result<String, ApiError> {
        let upload = Upload {
            fields: vec![
                ("file_type", "stream".to_owned()),
                ("file_name", name.to_owned()),
            ],
            name: name.to_owned(),
            bytes,
        };
        let call = ApiCall::upload(&["open-apis", "im", "v1", "files"], upload);
        let answer = self.api.call(&call).await?;
        text(&answer["data"]["file_key"]).ok_or(ApiError::Malformed {
            status: 200,
            what: "an answer without a file key came",
        })
    }

    /// Fetches an image or file out of a message.
    pub async fn download_resource(
        &self,
        message: &MessageId,
        file_key: &str,
        kind: AttachmentKind,
        max_bytes: u64,
    ) -> Result<Vec<u8>, ApiError> {
        let path = ApiCall::of_message(message, &["resources", file_key]);
        let kind = match kind {
            AttachmentKind::Image => "image",
            AttachmentKind::File => "file",
        };
        let call = ApiCall::get(&path).query("type", kind);
        self.api.download(&call, max_bytes).await
    }

    /// Who the bot is, and whether it can work.
    pub async fn bot(&self) -> Result<Bot, ApiError> {
        let answer = self
            .api
            .call(&ApiCall::get(&["open-apis", "bot", "v3", "info"]))
            .await?;
        let bot = &answer["bot"];
        Ok(Bot {
            open_id: text(&bot["open_id"]),
            name: text(&bot["app_name"]),
            enabled: bot["activate_status"] == 2,
        })
    }

    /// Looks a person up by any of their ids.
    pub async fn contact(&self, person: &UserId) -> Result<Contact, ApiError> {
        let path = ["open-apis", "contact", "v3", "users", person.as_str()];
        let kind = Receiver::User(person.clone()).kind();
        let call = ApiCall::get(&path).query("user_id_type", kind);
        let answer = self.api.call(&call).await?;
        let user = &answer["data"]["user"];
        let open = text(&user["open_id"]).and_then(|id| UserId::parse(&id).ok());
        Ok(Contact {
            name: text(&user["name"]),
            open_id: open.filter(|id| matches!(id, UserId::Open(_))),
        })
    }

    /// How many long connections the app has open, or `None` where this
    /// Feishu cannot tell.
    pub async fn online_connections(&self) -> Result<Option<u64>, ApiError> {
        let call = ApiCall::get(&["open-apis", "event", "v1", "connection"]);
        match self.api.call(&call).await {
            Ok(answer) => Ok(answer["data"]["online_instance_cnt"].as_u64()),
            Err(ApiError::Malformed { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How the app is configured.
    pub async fn application(&self) -> Result<Application, ApiError> {
        let path = ["open-apis", "application", "v6", "applications", "me"];
        let answer = self
            .api
            .call(&ApiCall::get(&path).query("lang", "zh_cn"))
            .await?;
        let app = &answer["data"]["app"];
        let owner = &app["owner"];
        Ok(Application {
            scopes: texts(&app["scopes"], |scope| &scope["scope"]).unwrap_or_default(),
            callback_type: text(&app["callback_info"]["callback_type"]),
            callbacks: texts(&app["callback_info"]["subscribed_callbacks"], |name| name),
            subscription_type: text(&app["event"]["subscription_type"]),
            owner: if owner["type"] == 2 {
                text(&owner["owner_id"])
            } else {
                text(&app["creator_id"])
            },
        })
    }

    /// The app's versions, newest first as Feishu lists them.
    pub async fn app_versions(&self) -> Result<Vec<AppVersion>, ApiError> {
        let path = [
            "open-apis",
            "application",
            "v6",
            "applications",
            self.api.app_id(),
            "app_versions",
        ];
        let answer = self
            .api
            .call(&ApiCall::get(&path).query("lang", "zh_cn"))
            .await?;
        let listed = answer["data"]["items"].as_array();
        Ok(listed.into_iter().flatten().map(version).collect())
    }
}

fn sent(answer: &Value) -> Result<SentMessage, ApiError> {
    let id = answer["data"]["message_id"].as_str().unwrap_or_default();
    let message_id = MessageId::parse(id).map_err(|_| ApiError::Malformed {
        status: 200,
        what: "an answer without a message id came",
    })?;
    let chat_id = answer["data"]["chat_id"].as_str();
    Ok(SentMessage {
        message_id,
        chat_id: chat_id.and_then(|id| ChatId::parse(id).ok()),
        thread: text(&answer["data"]["thread_id"]),
        root: answer["data"]["root_id"]
            .as_str()
            .and_then(|id| MessageId::parse(id).ok()),
    })
}

/// Feishu refuses long keys; a long one is replaced by its digest, which is
/// the same for every try.
fn fitting(uuid: &str) -> String {
    if uuid.len() <= MAX_UUID {
        return uuid.to_owned();
    }
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(uuid.as_bytes()))
}

fn version(item: &Value) -> AppVersion {
    let published = item["status"] == 1
        && match &item["publish_time"] {
            Value::String(time) => !time.is_empty() && time != "0",
            Value::Number(time) => time.as_i64() != Some(0),
            _ => false,
        };
    AppVersion {
        name: text(&item["version"]),
        published,
        events: texts(&item["event_infos"], |event| &event["event_type"]).unwrap_or_default(),
    }
}

fn text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn texts(list: &Value, pick: fn(&Value) -> &Value) -> Option<Vec<String>> {
    let list = list.as_array()?;
    Some(list.iter().filter_map(|item| text(pick(item))).collect())
}

#[cfg(test)]
mod tests;
