//! What machines ask of a gateway. Who asks is known by the subject, which the
//! server holds them to, and by a pass and a signature, which it can't forge.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::{debug, info, warn};

use super::audit::What;
use super::seen::Verdict;
use super::status::add;
use super::{Gateway, PASS_FOR, forget, join};
use crate::bus::errand::{self, Asked, Errand, Kind, MAX_FILE, PIECE, Terms, Told};
use crate::bus::letter::{self, AnswerHead, CallHead, Letter};
use crate::bus::line::Heard;
use crate::bus::pass::{self, Pass, Seconds, Span};
use crate::bus::subjects::{BEACON, FromMachine, LOBBY_START, Place, speaker};
use crate::feishu::api::exchange::Reply;
use crate::feishu::error::ApiError;
use crate::feishu::link::Phase;
use crate::ids::MessageId;

/// The longest a machine may have its call tried.
const MAX_WITHIN: Duration = Duration::from_secs(20);
/// A call ends here before its machine gives it up, so that no older edit ever
/// comes after a newer one.
const BEFORE_MACHINE: Duration = Duration::from_millis(300);
/// Files that are on their way down at once: each is held whole.
static FILES: Semaphore = Semaphore::const_new(4);

/// A pass of this age is renewed.
const RENEW_AFTER: Seconds = 10 * 24 * 3_600;

/// What a machine says of itself.
#[derive(Deserialize)]
struct Here {
    name: String,
    version: String,
}

pub(super) async fn hear(gateway: Arc<Gateway>, message: Heard) {
    if message.subject == BEACON {
        return forget::heard(&gateway, &message).await;
    }
    if message.subject.starts_with(LOBBY_START) {
        return join::hear(&gateway, &message).await;
    }
    let Some((place, what)) = speaker(&message.subject) else {
        return;
    };
    let Some((head, pass, body)) = opened(&gateway, &place, &message) else {
        warn!(%place, "refused what was not the machine's own");
        let why = "what it said was not signed by a machine with a pass that counts";
        gateway.note(What::Refused, None, Some(&place), Some(why));
        return;
    };
    let (answer, file) = match what {
        FromMachine::Here => {
            if is_new(&gateway, &head) == Verdict::New
                && let Ok(here) = serde_json::from_slice::<Here>(body)
            {
                let now = gateway.seconds();
                gateway.roster().here(&pass, &here.name, &here.version, now);
            }
            return;
        }
        FromMachine::Hello => (hello(&gateway, &pass), None),
        FromMachine::Call => match is_new(&gateway, &head) {
            Verdict::New => call(&gateway, &place, body).await,
            Verdict::Full => (crowded(&gateway, 1_000), None),
            Verdict::Repeated => {
                warn!(%place, "refused a call that came before, or too late");
                let why = "a call came before, or too late";
                gateway.note(What::Refused, None, Some(&place), Some(why));
                return;
            }
        },
    };
    let Some(reply) = message.reply.filter(|reply| place.is_answered_at(reply)) else {
        warn!(%place, "answered nobody: the reply would have gone elsewhere");
        return;
    };
    let tell = async |re: String, body: &[u8]| {
        let head = AnswerHead { re, pass: None };
        let letter = letter::sign(&gateway.keys.push, &message.subject, &head, body);
        gateway.line.tell(&reply, letter).await
    };
    let mut sent = tell(head.once.clone(), &answer).await;
    let pieces = file.iter().flat_map(|file| file.bytes.chunks(PIECE));
    for (n, piece) in pieces.enumerate() {
        sent = sent && tell(errand::piece_of(&head.once, n), piece).await;
    }
    if !sent {
        debug!(%place, "an answer did not go out");
    }
}

/// A file too large for one letter, and its place among those under way.
struct File {
    bytes: Vec<u8>,
    _room: SemaphorePermit<'static>,
}

/// What a machine says, if it does.
fn opened<'a>(
    gateway: &Gateway,
    place: &Place,
    message: &'a Heard,
) -> Option<(CallHead, Pass, &'a [u8])> {
    let letter = Letter::read(&message.body)?;
    let head: CallHead = letter.claims()?;
    let pass = gateway.pass(&head.pass)?;
    if pass.place != *place {
        return None;
    }
    let body = letter.open(&pass.key, &message.subject)?;
    Some((head, pass, body))
}

fn is_new(gateway: &Gateway, head: &CallHead) -> Verdict {
    let mut seen = gateway.seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.judge(&head.once, head.at, gateway.their_clock.now())
}

/// Says what time it is, whether Feishu is within reach, and gives a machine
/// whose pass is no longer young a new one for the same key and owner.
fn hello(gateway: &Gateway, pass: &Pass) -> Vec<u8> {
    let feishu = matches!(gateway.link.borrow().phase, Phase::Up { .. });
    json!({
        "pass": renewed(gateway, pass),
        "time": gateway.their_clock.now(),
        "gateway": gateway.id,
        "feishu": feishu,
        "version": crate::version::BUILD,
    })
    .to_string()
    .into_bytes()
}

fn renewed(gateway: &Gateway, old: &Pass) -> Option<String> {
    let now = gateway.seconds();
    let keys = &gateway.keys;
    if now - old.made < RENEW_AFTER {
        return None;
    }
    let span = Span {
        made: now,
        until: now + PASS_FOR,
    };
    info!(place = %old.place, "a pass was renewed");
    gateway.note(What::Renewed, None, Some(&old.place), None);
    let owner = &old.place.owner;
    let new = pass::machine(&keys.machines, &keys.account, owner, &old.key, span);
    Some(new)
}

/// The machine is to ask again.
fn crowded(gateway: &Gateway, after: u64) -> Vec<u8> {
    add(&gateway.counts.crowded);
    told(&Told::Crowded { after })
}

fn told(told: &Told) -> Vec<u8> {
    serde_json::to_vec(told).unwrap_or_default()
}

async fn call(gateway: &Gateway, place: &Place, body: &[u8]) -> (Vec<u8>, Option<File>) {
    let refused = |why: String| (told(&Told::Refused { why }), None);
    let Ok(asked) = serde_json::from_slice::<Asked>(body) else {
        return refused("it can't be read".to_owned());
    };
    let terms = Terms {
        place,
        chats: &gateway.chats,
        holds: &|message, ticket| gateway.holds(place, message, ticket),
    };
    let errand = match errand::judge(&asked, &terms) {
        Ok(errand) => errand,
        Err(why) => {
            warn!(%place, method = %asked.method, "refused a call: {why}");
            let told = why.to_string();
            gateway.note(What::Refused, None, Some(place), Some(&told));
            return refused(why.to_string());
        }
    };
    let within = Duration::from_millis(asked.within).min(MAX_WITHIN);
    let within = within.saturating_sub(BEFORE_MACHINE);
    let most = asked.most.min(MAX_FILE);
    info!(%place, kind = errand.kind.word(), "a call");
    gateway.counts.call(errand.kind.word());
    let room = match errand.kind {
        Kind::Download => match tokio::time::timeout(within, FILES.acquire()).await {
            Ok(Ok(room)) => Some(room),
            Ok(Err(_)) | Err(_) => return (crowded(gateway, 1_000), None),
        },
        _ => None,
    };
    let made = gateway.api.reply(&errand.call, within, most).await;
    let answer = match made {
        Ok(Reply {
            file: true,
            body: bytes,
            log_id,
            ..
        }) if bytes.len() > PIECE => {
            let length = bytes.len() as u64;
            let file = room.map(|room| File { bytes, _room: room });
            return (told(&Told::Pieces { length, log_id }), file);
        }
        Ok(reply) => {
            let ticket = ticket(gateway, place, &errand, &reply);
            Told::of(reply, ticket)
        }
        Err(ApiError::TooLarge { .. }) => Told::TooLarge,
        Err(ApiError::Crowded { after }) => {
            let after = u64::try_from(after.as_millis()).unwrap_or(1_000);
            return (crowded(gateway, after), None);
        }
        Err(why) => {
            debug!(%place, "a call did not get through: {why}");
            Told::Lost {
                in_doubt: why.is_in_doubt(),
                why: why.to_string(),
            }
        }
    };
    (told(&answer), None)
}

/// The right to touch the message that a call has made.
fn ticket(gateway: &Gateway, place: &Place, errand: &Errand, reply: &Reply) -> Option<String> {
    if !errand.kind.makes_a_message() {
        return None;
    }
    let envelope = reply.envelope().ok()?;
    let id = envelope
        .pointer("/data/message_id")
        .and_then(Value::as_str)?;
    let id = MessageId::parse(id).ok()?;
    Some(gateway.ticket(place, &id))
}
