//! The messages on the hook socket: protocol v1 byte for byte, and what nod
//! adds under the one key `nod`. Pure. No message decides anything: answers
//! travel from the daemon to the hook only.

pub mod answer;
pub mod error_word;
pub mod scan;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;

use self::error_word::ErrorWord;
use crate::approvals::request::Digest;
use crate::approvals::token::Token;
use crate::claude::mailbox::Mailbox;
use crate::clock::Millis;
use crate::ids::{BadId, RequestId, SessionId};

/// The version nod's own client and server speak, besides plain v1.
pub const VERSION: u32 = 2;
pub const MAX_REQUEST: usize = 8 * 1024 * 1024;
/// Acks and decisions; the kernel takes this much even from an unread socket.
pub const MAX_REPLY: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("the message is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the message is not a JSON object")]
    NotAnObject,
    #[error("the message is not valid JSON: {0}")]
    BadJson(String),
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{0}` can't be read")]
    BadField(&'static str),
    #[error(transparent)]
    BadId(#[from] BadId),
    #[error("`{0}` is not a verb of this socket")]
    UnknownVerb(String),
}

/// What a client can say.
#[derive(Debug, Clone, PartialEq)]
pub enum HookMessage {
    Register(Registration),
    Notify(HookNotice),
    Order(DaemonOrder),
    /// claude-notify's hooks ask this first: is anybody there?
    Ping,
    /// The waiting client has its decision.
    Received,
    /// The waiting client no longer wants one.
    Cancel,
}

/// The whole reply to [`HookMessage::Ping`].
pub const PONG: &[u8] = br#"{"type":"pong"}"#;

/// What a person's own command asks of the daemon. None of them decides a
/// request: a lock takes authority away, and opening it gives back no more
/// than a person in Feishu had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DaemonOrder {
    Status,
    Lock,
    Unlock,
}

impl DaemonOrder {
    const ALL: [Self; 3] = [Self::Status, Self::Lock, Self::Unlock];

    const fn verb(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Lock => "lock",
            Self::Unlock => "unlock",
        }
    }
}

/// A permission request, as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    pub id: RequestId,
    pub project: PathBuf,
    /// The hook's stdin, undecoded: Claude Code's own JSON.
    pub raw_input: Vec<u8>,
    /// `None` for a client of plain v1.
    pub nod: Option<Additions>,
}

/// What nod's own client says besides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Additions {
    pub resume: Option<Token>,
    pub digest: Option<Digest>,
    pub branch: Option<String>,
    pub cwd: Option<PathBuf>,
    pub agent: Option<String>,
    pub pid: Option<u32>,
    /// The agent's own process.
    pub process: Option<u32>,
    pub mailbox: Option<Mailbox>,
}

/// Another hook event; nobody waits for an answer to it.
#[derive(Debug, Clone, PartialEq)]
pub struct HookNotice {
    pub project: PathBuf,
    pub raw_input: Vec<u8>,
    /// Where the session takes words, as its hook was told.
    pub mailbox: Option<Mailbox>,
    /// The agent's own process.
    pub process: Option<u32>,
}

#[derive(Default, Serialize, Deserialize)]
struct RawMessage {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_dir: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_input_encoded: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nod: Option<RawAdditions>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct RawAdditions {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    verb: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mailbox: Option<RawMailbox>,
}

#[derive(Serialize, Deserialize)]
struct RawMailbox {
    socket: String,
    token: String,
}

impl RawMailbox {
    fn of(mailbox: Option<&Mailbox>) -> Option<Self> {
        mailbox.map(|mailbox| Self {
            socket: mailbox.socket.to_string_lossy().into_owned(),
            token: mailbox.expose_token().to_owned(),
        })
    }

    /// One that can't be used is none: nothing but speaking depends on it.
    fn read(&self) -> Option<Mailbox> {
        Mailbox::new(&self.socket, &self.token)
    }
}

impl HookMessage {
    /// Reads one complete message, as cut out by [`scan::Scanner`].
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let raw: RawMessage =
            serde_json::from_slice(bytes).map_err(|e| WireError::BadJson(shape_of(&e)))?;
        if raw.request_id.is_none() && raw.nod.is_none() && raw.kind == Some("ping".into()) {
            return Ok(Self::Ping);
        }
        match raw.nod.as_ref().and_then(|nod| nod.verb.as_deref()) {
            None | Some("register") => Registration::read(raw).map(Self::Register),
            Some("notify") => HookNotice::read(raw).map(Self::Notify),
            Some("received") => Ok(Self::Received),
            Some("cancel") => Ok(Self::Cancel),
            Some(verb) => DaemonOrder::ALL
                .into_iter()
                .find(|order| order.verb() == verb)
                .map(Self::Order)
                .ok_or_else(|| WireError::UnknownVerb(verb.chars().take(32).collect())),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let verb = |verb: &str| {
            Some(RawAdditions {
                version: VERSION,
                verb: Some(verb.to_owned()),
                ..RawAdditions::default()
            })
        };
        let bare = |nod| RawMessage {
            nod,
            ..RawMessage::default()
        };
        let raw = match self {
            Self::Register(registration) => registration.raw(),
            Self::Notify(notice) => RawMessage {
                project_dir: Some(notice.project.to_string_lossy().into_owned()),
                raw_input_encoded: Some(encode_base64(&notice.raw_input)),
                ..bare(verb("notify").map(|nod| RawAdditions {
                    mailbox: RawMailbox::of(notice.mailbox.as_ref()),
                    process: notice.process,
                    ..nod
                }))
            },
            Self::Order(order) => bare(verb(order.verb())),
            Self::Ping => RawMessage {
                kind: Some("ping".into()),
                ..RawMessage::default()
            },
            Self::Received => bare(verb("received")),
            Self::Cancel => bare(verb("cancel")),
        };
        // Strings, numbers and options: nothing in it can fail to serialize.
        serde_json::to_vec(&raw).unwrap_or_default()
    }
}

impl Registration {
    fn read(raw: RawMessage) -> Result<Self, WireError> {
        let id = raw.request_id.ok_or(WireError::Missing("request_id"))?;
        Ok(Self {
            id: RequestId::parse(&id)?,
            project: raw
                .project_dir
                .ok_or(WireError::Missing("project_dir"))?
                .into(),
            raw_input: read_input(raw.raw_input_encoded)?,
            nod: raw.nod.map(Additions::read).transpose()?,
        })
    }

    fn raw(&self) -> RawMessage {
        RawMessage {
            kind: None,
            request_id: Some(self.id.as_str().to_owned()),
            project_dir: Some(self.project.to_string_lossy().into_owned()),
            raw_input_encoded: Some(encode_base64(&self.raw_input)),
            nod: self.nod.as_ref().map(|nod| RawAdditions {
                version: VERSION,
                verb: None,
                resume: nod.resume.as_ref().map(Token::hex),
                digest: nod.digest.as_ref().map(Digest::hex),
                branch: nod.branch.clone(),
                cwd: nod
                    .cwd
                    .as_ref()
                    .map(|cwd| cwd.to_string_lossy().into_owned()),
                agent: nod.agent.clone(),
                pid: nod.pid,
                process: nod.process,
                mailbox: RawMailbox::of(nod.mailbox.as_ref()),
            }),
        }
    }

    /// The session Claude Code names in its input, if it is a usable id.
    pub fn session(&self) -> Option<SessionId> {
        #[derive(Deserialize)]
        struct SessionOnly {
            session_id: Option<String>,
        }
        let session: SessionOnly = serde_json::from_slice(&self.raw_input).ok()?;
        SessionId::parse(&session.session_id?).ok()
    }
}

impl Additions {
    /// A token or digest that can't be read is refused: ignoring it would turn
    /// a resume into a second question.
    fn read(raw: RawAdditions) -> Result<Self, WireError> {
        let resume = raw
            .resume
            .map(|text| Token::parse_hex(&text).ok_or(WireError::BadField("nod.resume")))
            .transpose()?;
        let digest = raw
            .digest
            .map(|text| Digest::parse_hex(&text).ok_or(WireError::BadField("nod.digest")))
            .transpose()?;
        Ok(Self {
            resume,
            digest,
            branch: raw.branch,
            cwd: raw.cwd.map(PathBuf::from),
            agent: raw.agent,
            pid: raw.pid,
            process: raw.process,
            mailbox: raw.mailbox.as_ref().and_then(RawMailbox::read),
        })
    }
}

impl HookNotice {
    fn read(raw: RawMessage) -> Result<Self, WireError> {
        let mailbox = raw.nod.as_ref().and_then(|nod| nod.mailbox.as_ref());
        Ok(Self {
            project: raw.project_dir.unwrap_or_default().into(),
            mailbox: mailbox.and_then(RawMailbox::read),
            process: raw.nod.as_ref().and_then(|nod| nod.process),
            raw_input: read_input(raw.raw_input_encoded)?,
        })
    }
}

/// The reply to a registration, before any decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Ack {
    Registered {
        session: String,
        /// Present for nod's own client only.
        nod: Option<AckAdditions>,
    },
    Refused {
        session: String,
        error: ErrorWord,
        message: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct AckAdditions {
    pub resume_token: Option<Token>,
    pub deadline: Millis,
    pub server_version: String,
}

impl Ack {
    pub fn encode(&self) -> Vec<u8> {
        let value = match self {
            Self::Registered { session, nod } => {
                let mut value = json!({
                    "success": true,
                    "message": "Request registered",
                    "session_id": session,
                });
                if let Some(nod) = nod {
                    value["nod"] = json!({
                        "version": VERSION,
                        "deadline_ms": nod.deadline,
                        "server_version": nod.server_version,
                    });
                    if let Some(token) = &nod.resume_token {
                        value["nod"]["resume_token"] = token.hex().into();
                    }
                }
                value
            }
            Self::Refused {
                session,
                error,
                message,
            } => answer::fallback(session, *error, message),
        };
        value.to_string().into_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        #[derive(Deserialize)]
        struct RawAnswer {
            success: bool,
            #[serde(default)]
            message: String,
            #[serde(default)]
            error: String,
            #[serde(default)]
            session_id: Option<String>,
            nod: Option<RawNod>,
        }
        #[derive(Deserialize)]
        struct RawNod {
            resume_token: Option<String>,
            #[serde(default)]
            deadline_ms: Millis,
            #[serde(default)]
            server_version: String,
        }
        let raw: RawAnswer =
            serde_json::from_slice(bytes).map_err(|e| WireError::BadJson(shape_of(&e)))?;
        let session = raw.session_id.unwrap_or_default();
        if !raw.success {
            return Ok(Self::Refused {
                session,
                error: ErrorWord::parse(&raw.error),
                message: raw.message,
            });
        }
        let nod = raw.nod.map(|nod| AckAdditions {
            resume_token: nod.resume_token.and_then(|text| Token::parse_hex(&text)),
            deadline: nod.deadline_ms,
            server_version: nod.server_version,
        });
        Ok(Self::Registered { session, nod })
    }
}

/// 4 bytes of big-endian length, then the JSON.
pub fn frame(value: &Value) -> Result<Vec<u8>, WireError> {
    let json = value.to_string();
    if json.len() > MAX_REPLY {
        return Err(WireError::TooLarge(MAX_REPLY));
    }
    let length = u32::try_from(json.len()).map_err(|_| WireError::TooLarge(MAX_REPLY))?;
    let mut bytes = Vec::with_capacity(4 + json.len());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(json.as_bytes());
    Ok(bytes)
}

/// The JSON of the frame at the start of `bytes` and the frame's length, or
/// `None` while it is incomplete.
pub fn unframe(bytes: &[u8]) -> Result<Option<(Value, usize)>, WireError> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    if length > MAX_REPLY {
        return Err(WireError::TooLarge(MAX_REPLY));
    }
    let Some(json) = rest.get(..length) else {
        return Ok(None);
    };
    let value = serde_json::from_slice(json).map_err(|e| WireError::BadJson(shape_of(&e)))?;
    Ok(Some((value, 4 + length)))
}

fn read_input(encoded: Option<String>) -> Result<Vec<u8>, WireError> {
    let encoded = encoded.ok_or(WireError::Missing("raw_input_encoded"))?;
    decode_base64(encoded).ok_or(WireError::BadField("raw_input_encoded"))
}

fn encode_base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Shells and languages differ: line-wrapped output, the URL-safe alphabet and
/// missing padding all mean the same bytes.
fn decode_base64(mut text: String) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    text.retain(|c| !c.is_ascii_whitespace());
    let alphabet = if text.contains(['-', '_']) {
        &URL_SAFE
    } else {
        &STANDARD
    };
    GeneralPurpose::new(alphabet, LENIENT).decode(text).ok()
}

/// Where and what kind of error, without a word of the content.
fn shape_of(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Io => "read",
        serde_json::error::Category::Syntax => "syntax",
        serde_json::error::Category::Data => "type",
        serde_json::error::Category::Eof => "end of input",
    };
    format!("{kind} error at column {}", error.column())
}

#[cfg(test)]
mod tests;
