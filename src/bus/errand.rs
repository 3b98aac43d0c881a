//! The calls to Feishu that a gateway makes for a machine, and no other. Each
//! is for the machine's owner, or for a message that a ticket says it sent or
//! was brought. What goes out is put together here from what was understood,
//! so nothing else travels along. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::subjects::MachinePlace;
use crate::feishu::api::exchange::{ApiCall, ApiReply, Upload};
use crate::ids::MessageId;

/// A call as a machine writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrandCall {
    pub method: String,
    pub path: Vec<String>,
    #[serde(default)]
    pub query: Vec<(String, String)>,
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub upload: Option<SentFile>,
    /// Milliseconds after which nobody waits for it any more.
    pub within: u64,
    /// The largest answer that is wanted.
    pub most: u64,
    #[serde(default)]
    pub ticket: Option<String>,
}

/// A file on its way up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentFile {
    pub name: String,
    pub bytes: String,
}

/// A card that waited on a machine when its pass was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftCard {
    pub message: String,
    pub ticket: String,
    /// As it is to look from then on.
    pub card: String,
}

/// What came of a call, as a gateway writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrandResult {
    /// Feishu answered.
    Answer {
        status: u16,
        #[serde(default)]
        after: Option<u64>,
        #[serde(default)]
        log_id: Option<String>,
        /// It is a file, in base 64, and not a text.
        #[serde(default)]
        file: bool,
        body: String,
        /// What shows that this machine may touch the message that was sent.
        #[serde(default)]
        ticket: Option<String>,
    },
    /// Feishu gave a file of so many bytes, which follows in pieces.
    Pieces {
        length: u64,
        #[serde(default)]
        log_id: Option<String>,
    },
    /// It did not get through; `in_doubt` where it may have been done.
    Lost { in_doubt: bool, why: String },
    /// Too many calls wait.
    Crowded { after: u64 },
    /// The gateway makes no such call for this machine.
    Refused { why: String },
    /// The file is larger than was wanted.
    TooLarge,
}

impl ErrandCall {
    pub fn of(call: &ApiCall, within: u64, most: u64, ticket: Option<String>) -> Self {
        Self {
            method: call.method.to_string(),
            path: call.path.clone(),
            query: call
                .query
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            body: call.body.clone(),
            upload: call.upload.as_ref().map(|upload| SentFile {
                name: upload.name.clone(),
                bytes: STANDARD.encode(&upload.bytes),
            }),
            within,
            most,
            ticket,
        }
    }
}

impl ErrandResult {
    pub fn of(reply: ApiReply, ticket: Option<String>) -> Self {
        let body = if reply.file {
            STANDARD.encode(&reply.body)
        } else {
            String::from_utf8_lossy(&reply.body).into_owned()
        };
        Self::Answer {
            status: reply.status,
            after: reply.after.map(|wait| wait.as_secs()),
            log_id: reply.log_id,
            file: reply.file,
            body,
            ticket,
        }
    }
}

/// What the head of a file's `n`th piece answers, so that none stands in
/// another's place.
pub fn piece_of(once: &str, n: usize) -> String {
    format!("{once}/{n}")
}

/// Why a gateway does not make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ErrandRefused {
    #[error("gateways make no such call")]
    Unknown,
    #[error("it is not for the owner of this machine")]
    NotTheOwner,
    #[error("this machine has no ticket for that message")]
    NoTicket,
    #[error("it is larger than a gateway carries")]
    TooLarge,
}

/// What kind of call it is, for shares and for the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrandKind {
    Send,
    Reply,
    Edit,
    Download,
    Upload,
    Bot,
    Name,
}

impl ErrandKind {
    const ALL: [Self; 7] = [
        Self::Send,
        Self::Reply,
        Self::Edit,
        Self::Download,
        Self::Upload,
        Self::Bot,
        Self::Name,
    ];

    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Reply => "reply",
            Self::Edit => "edit",
            Self::Download => "download",
            Self::Upload => "upload",
            Self::Bot => "bot",
            Self::Name => "name",
        }
    }

    /// Whether its answer names a message that the machine then may touch.
    pub const fn makes_a_message(self) -> bool {
        matches!(self, Self::Send | Self::Reply)
    }
}

/// A call that a gateway may make.
#[derive(Debug)]
pub struct Errand {
    pub kind: ErrandKind,
    pub call: ApiCall,
}

impl Errand {
    /// The message that it changes, as its own path names it.
    pub fn edits(&self) -> Option<&str> {
        let id = self.call.path.get(4).map(String::as_str);
        id.filter(|_| self.kind == ErrandKind::Edit)
    }

    /// Whom it writes to, or the message that it answers.
    pub fn writes(&self) -> Option<&str> {
        match self.kind {
            ErrandKind::Send => self.call.body.as_ref()?.get("receive_id")?.as_str(),
            ErrandKind::Reply => self.call.path.get(4).map(String::as_str),
            _ => None,
        }
    }
}

/// A card has 30 KB; what is larger is none.
const MAX_CONTENT: usize = 64 * 1024;
const MAX_UPLOAD: usize = 512 * 1024;
/// The largest file that is carried down, and how much of one a letter holds.
pub const MAX_FILE: u64 = 20 << 20;
pub const PIECE: usize = 256 * 1024;
/// So many letters answer one call at most: the first, and a file's pieces.
pub const MAX_LETTERS: usize = 1 + 80;

/// What a call needs to be judged by.
pub struct ErrandTerms<'a> {
    pub place: &'a MachinePlace,
    /// Chats that every machine may write to.
    pub chats: &'a [String],
    /// Whether the ticket is this machine's for this message.
    pub holds: &'a (dyn Fn(&MessageId, &str) -> bool + Sync),
}

/// The call to make, or why it is not made.
pub fn judge(asked: &ErrandCall, terms: &ErrandTerms<'_>) -> Result<Errand, ErrandRefused> {
    let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
    let (kind, call) = match (asked.method.as_str(), path.as_slice()) {
        ("POST", ["open-apis", "im", "v1", "messages"]) => (ErrandKind::Send, send(asked, terms)?),
        ("POST", ["open-apis", "im", "v1", "messages", id, "reply"]) => {
            let id = touched(id, asked, terms)?;
            let body = reply_body(asked, terms.place)?;
            let path = ApiCall::of_message(&id, &["reply"]);
            (ErrandKind::Reply, ApiCall::post(&path, body))
        }
        ("PATCH", ["open-apis", "im", "v1", "messages", id]) => {
            let id = touched(id, asked, terms)?;
            let body = json!({"content": content(asked)?});
            let path = ApiCall::of_message(&id, &[]);
            (ErrandKind::Edit, ApiCall::patch(&path, body))
        }
        ("GET", ["open-apis", "im", "v1", "messages", id, "resources", key]) => {
            let id = touched(id, asked, terms)?;
            (ErrandKind::Download, download(&id, key, asked)?)
        }
        ("POST", ["open-apis", "im", "v1", "files"]) => (ErrandKind::Upload, upload(asked)?),
        ("GET", ["open-apis", "bot", "v3", "info"]) => (
            ErrandKind::Bot,
            ApiCall::get(&["open-apis", "bot", "v3", "info"]),
        ),
        ("GET", ["open-apis", "contact", "v3", "users", id]) => {
            if *id != terms.place.owner.as_str() {
                return Err(ErrandRefused::NotTheOwner);
            }
            let path = ["open-apis", "contact", "v3", "users", id];
            let call = ApiCall::get(&path).query("user_id_type", "open_id");
            (ErrandKind::Name, call)
        }
        _ => return Err(ErrandRefused::Unknown),
    };
    Ok(Errand { kind, call })
}

fn send(asked: &ErrandCall, terms: &ErrandTerms<'_>) -> Result<ApiCall, ErrandRefused> {
    let to = text(asked, "receive_id")?;
    let [(name, kind)] = asked.query.as_slice() else {
        return Err(ErrandRefused::Unknown);
    };
    let kind = match (name.as_str(), kind.as_str()) {
        ("receive_id_type", "open_id") if to == terms.place.owner.as_str() => "open_id",
        ("receive_id_type", "chat_id") if terms.chats.iter().any(|chat| chat == to) => "chat_id",
        ("receive_id_type", "open_id" | "chat_id" | "union_id" | "user_id") => {
            return Err(ErrandRefused::NotTheOwner);
        }
        _ => return Err(ErrandRefused::Unknown),
    };
    let body = json!({
        "receive_id": to,
        "msg_type": message_kind(asked)?,
        "content": content(asked)?,
        "uuid": own_uuid(asked, terms.place)?,
    });
    let call = ApiCall::post(&["open-apis", "im", "v1", "messages"], body);
    Ok(call.query("receive_id_type", kind))
}

fn reply_body(asked: &ErrandCall, place: &MachinePlace) -> Result<Value, ErrandRefused> {
    let in_thread = asked
        .body
        .as_ref()
        .and_then(|body| body.get("reply_in_thread"));
    Ok(json!({
        "msg_type": message_kind(asked)?,
        "content": content(asked)?,
        "reply_in_thread": in_thread.and_then(Value::as_bool).unwrap_or_default(),
        "uuid": own_uuid(asked, place)?,
    }))
}

fn download(id: &MessageId, key: &str, asked: &ErrandCall) -> Result<ApiCall, ErrandRefused> {
    let path = ApiCall::of_message(id, &["resources", key]);
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let fits = (1..=256).contains(&key.len()) && key.bytes().all(plain);
    match asked.query.as_slice() {
        [(name, kind)] if fits && name == "type" && (kind == "image" || kind == "file") => {
            Ok(ApiCall::get(&path).query("type", kind.clone()))
        }
        _ => Err(ErrandRefused::Unknown),
    }
}

fn upload(asked: &ErrandCall) -> Result<ApiCall, ErrandRefused> {
    let sent = asked.upload.as_ref().ok_or(ErrandRefused::Unknown)?;
    if sent.bytes.len() > MAX_UPLOAD.div_ceil(3) * 4 {
        return Err(ErrandRefused::TooLarge);
    }
    let bytes = STANDARD
        .decode(&sent.bytes)
        .map_err(|_| ErrandRefused::Unknown)?;
    let upload = Upload {
        fields: vec![
            ("file_type", "stream".to_owned()),
            ("file_name", sent.name.clone()),
        ],
        name: sent.name.clone(),
        bytes: bytes.into(),
    };
    Ok(ApiCall::upload(&["open-apis", "im", "v1", "files"], upload))
}

/// The message a call is about, if the machine has a ticket for it.
fn touched(
    id: &str,
    asked: &ErrandCall,
    terms: &ErrandTerms<'_>,
) -> Result<MessageId, ErrandRefused> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let id = Some(id)
        .filter(|id| id.bytes().all(plain))
        .and_then(|id| MessageId::parse(id).ok());
    let id = id.ok_or(ErrandRefused::Unknown)?;
    match &asked.ticket {
        Some(ticket) if (terms.holds)(&id, ticket) => Ok(id),
        _ => Err(ErrandRefused::NoTicket),
    }
}

fn text<'a>(asked: &'a ErrandCall, field: &str) -> Result<&'a str, ErrandRefused> {
    let body = asked.body.as_ref().ok_or(ErrandRefused::Unknown)?;
    body.get(field)
        .and_then(Value::as_str)
        .ok_or(ErrandRefused::Unknown)
}

fn message_kind(asked: &ErrandCall) -> Result<&'static str, ErrandRefused> {
    match text(asked, "msg_type")? {
        "interactive" => Ok("interactive"),
        "text" => Ok("text"),
        "file" => Ok("file"),
        _ => Err(ErrandRefused::Unknown),
    }
}

fn content(asked: &ErrandCall) -> Result<&str, ErrandRefused> {
    let content = text(asked, "content")?;
    if content.len() > MAX_CONTENT {
        return Err(ErrandRefused::TooLarge);
    }
    Ok(content)
}

/// The key that makes a send happen once is this machine's own, so that nobody
/// else's message is taken for it.
fn own_uuid(asked: &ErrandCall, place: &MachinePlace) -> Result<String, ErrandRefused> {
    let uuid = text(asked, "uuid")?;
    let own = Sha256::digest(format!("{place}\n{uuid}"));
    Ok(URL_SAFE_NO_PAD.encode(own))
}

#[cfg(test)]
mod tests;
