//! A call to Feishu, made by a gateway: signed, with the right to touch its
//! message, one try at a time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::bytes::Bytes;
use serde_json::Value;

use super::Member;
use super::gateways::head;
use crate::bus::errand::{ErrandCall, ErrandResult, MAX_LETTERS, PIECE, piece_of};
use crate::bus::letter::{self, AnswerHead, Letter};
use crate::bus::line::{BusAnswer, LineQuestion};
use crate::bus::subjects::FromMachine;
use crate::feishu::api::exchange::{ApiCall, ApiReply};
use crate::feishu::error::{ApiError, FeishuAnswer};
use crate::feishu::outbound::OutboundError;
use crate::ids::MessageId;

/// What a bus carries in one message.
const MAX_LETTER: usize = 1024 * 1024 - 4 * 1024;
/// So long the next piece of a file may take.
const PIECE_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn carry(
    member: &Member,
    call: ApiCall,
    limit: Duration,
    most: u64,
) -> Result<ApiReply, ApiError> {
    if !member.knows_time.load(Ordering::Relaxed) {
        return Err(no_gateway());
    }
    let ticket = match touched(&call) {
        Some(message) => member.tickets.of(&message).await,
        None => None,
    };
    let within = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    let asked = ErrandCall::of(&call, within, most, ticket);
    let body = serde_json::to_vec(&asked).unwrap_or_default();
    let subject = member.place.says(FromMachine::Call);
    let head = head(member);
    let letter = letter::sign(&member.key, &subject, &head, &body);
    if letter.len() > MAX_LETTER {
        return Err(ApiError::TooLarge {
            limit: MAX_LETTER as u64,
        });
    }
    let asking = async {
        let asking = member.line.put(&subject, letter, MAX_LETTERS).await;
        let mut asking = asking.ok_or_else(no_bus)?;
        let bytes = answer(asking.next(limit).await)?;
        let told = opened(member, &subject, &head.once, &bytes)
            .and_then(|body| serde_json::from_slice(body).ok());
        match told.ok_or_else(unsigned)? {
            ErrandResult::Pieces { length, log_id } => Ok(ApiReply {
                status: 200,
                after: None,
                log_id,
                file: true,
                body: gathered(member, &mut asking, (&subject, &head.once), (length, most)).await?,
            }),
            told => replied(member, told, most).await,
        }
    };
    let asking = tokio::time::timeout(limit, asking).await;
    asking.unwrap_or_else(|_| Err(too_slow()))
}

fn answer(answered: BusAnswer) -> Result<Bytes, ApiError> {
    match answered {
        BusAnswer::Answer(bytes) => Ok(bytes),
        BusAnswer::Nobody => Err(no_gateway()),
        BusAnswer::Down => Err(no_bus()),
        BusAnswer::Unknown => Err(too_slow()),
    }
}

fn no_bus() -> ApiError {
    ApiError::Network(OutboundError::Unreachable {
        peer: "the team's bus".to_owned(),
    })
}

fn too_slow() -> ApiError {
    ApiError::Network(OutboundError::TimedOut {
        peer: "the team's gateway".to_owned(),
    })
}

/// The pieces of a file, each signed as the one that comes next.
async fn gathered(
    member: &Member,
    asking: &mut LineQuestion<'_>,
    (subject, once): (&str, &str),
    (length, most): (u64, u64),
) -> Result<Vec<u8>, ApiError> {
    if length > most {
        return Err(ApiError::TooLarge { limit: most });
    }
    let mut file = Vec::new();
    let mut n = 0;
    while (file.len() as u64) < length {
        let bytes = answer(asking.next(PIECE_WITHIN).await)?;
        let piece = opened(member, subject, &piece_of(once, n), &bytes).ok_or_else(unsigned)?;
        let fits = (1..=PIECE).contains(&piece.len());
        if !fits || (file.len() + piece.len()) as u64 > length {
            return Err(lost("a file came in pieces that do not fit"));
        }
        file.extend_from_slice(piece);
        n += 1;
    }
    Ok(file)
}

fn no_gateway() -> ApiError {
    ApiError::Network(OutboundError::Unreachable {
        peer: "a gateway of the team".to_owned(),
    })
}

fn lost(reason: &str) -> ApiError {
    ApiError::Network(OutboundError::Lost {
        peer: "the team's gateway".to_owned(),
        reason: reason.to_owned(),
    })
}

fn unsigned() -> ApiError {
    lost("an answer came that no gateway signed")
}

/// The message that a call is about.
fn touched(call: &ApiCall) -> Option<MessageId> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["open-apis", "im", "v1", "messages", id, ..] => MessageId::parse(id).ok(),
        _ => None,
    }
}

/// What answers `once`, if a gateway says it.
fn opened<'a>(member: &Member, subject: &str, once: &str, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let letter = Letter::read(bytes)?;
    let head: AnswerHead = letter.claims()?;
    (head.re == once).then(|| member.by_gateway(&letter, subject))?
}

async fn replied(member: &Member, told: ErrandResult, most: u64) -> Result<ApiReply, ApiError> {
    match told {
        ErrandResult::Answer {
            status,
            after,
            log_id,
            file,
            body,
            ticket,
        } => {
            if let Some(ticket) = ticket {
                keep(member, &body, &ticket).await;
            }
            let body = if file {
                let bytes = STANDARD.decode(&body);
                bytes.map_err(|_| lost("a file came that can't be read"))?
            } else {
                body.into_bytes()
            };
            Ok(ApiReply {
                status,
                after: after.map(Duration::from_secs),
                log_id,
                file,
                body,
            })
        }
        ErrandResult::Lost { in_doubt: true, .. } => Err(lost("its call to Feishu was cut short")),
        ErrandResult::Lost { why, .. } => Err(ApiError::Network(OutboundError::Unreachable {
            peer: format!("Feishu by way of the gateway ({why})"),
        })),
        ErrandResult::Crowded { after } => Err(ApiError::Crowded {
            after: Duration::from_millis(after),
        }),
        ErrandResult::Refused { why } => {
            let why = format!("the gateway makes no such call: {why}");
            Err(ApiError::Rejected(FeishuAnswer::new(-1, &why, None)))
        }
        // Its pieces are gathered where it was asked for.
        ErrandResult::Pieces { .. } => Err(unsigned()),
        ErrandResult::TooLarge => Err(ApiError::TooLarge { limit: most }),
    }
}

/// The right to touch the message that was just sent.
async fn keep(member: &Member, body: &str, ticket: &str) {
    let envelope: Option<Value> = serde_json::from_str(body).ok();
    let id = envelope.as_ref().and_then(|envelope| {
        let id = envelope.pointer("/data/message_id")?.as_str()?;
        MessageId::parse(id).ok()
    });
    if let Some(id) = id {
        member.tickets.keep_sent(&id, ticket).await;
    }
}

#[cfg(test)]
mod tests;
