//! What machines ask of a gateway. Who asks is known by the subject, which the
//! server holds them to, and by a pass and a signature, which it can't forge.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tracing::{debug, info, warn};

use super::audit::TeamEvent;
use super::seen::SeenBefore;
use super::shares::CallWish;
use super::status::add;
use super::{Gateway, PASS_FOR, forget, join};
use crate::bus::errand::{
    self, Errand, ErrandCall, ErrandKind, ErrandResult, ErrandTerms, MAX_FILE, PIECE,
};
use crate::bus::letter::{self, AnswerHead, CallHead, Letter};
use crate::bus::line::BusHeard;
use crate::bus::pass::{self, Pass, Seconds, Span};
use crate::bus::subjects::{BEACON, FromMachine, LOBBY_START, MachinePlace, Owner, speaker};
use crate::clock::{Millis, millis};
use crate::feishu::api::exchange::ApiReply;
use crate::feishu::error::ApiError;
use crate::feishu::link::Phase;
use crate::ids::MessageId;

/// The longest a machine may have its call tried.
const MAX_WITHIN: Duration = Duration::from_secs(20);
/// A call ends here before its machine gives it up, so that no older edit ever
/// comes after a newer one.
const BEFORE_MACHINE: Duration = Duration::from_millis(300);
/// The wait where nobody knows for how long it is.
const SOON: Millis = 1_000;

/// No younger pass is renewed.
const RENEW_AFTER: Seconds = 10 * 24 * 3_600;
/// Nor is one that has longer to go.
const RENEW_BEFORE: Seconds = PASS_FOR - RENEW_AFTER;

/// What a machine says of itself.
#[derive(Deserialize)]
struct CallingMachine {
    name: String,
    version: String,
}

pub(super) async fn hear(gateway: Arc<Gateway>, mut message: BusHeard) {
    if message.subject == BEACON {
        return forget::heard(&gateway, &message).await;
    }
    if message.subject.starts_with(LOBBY_START) {
        return join::hear(&gateway, &message).await;
    }
    let Some((place, what)) = speaker(&message.subject) else {
        return;
    };
    if !gateway.shares().reads(&place.owner, gateway.clock.now()) {
        add(&gateway.counts.crowded);
        debug!(%place, "left unread: this person's machines say too much");
        return;
    }
    let Some((head, pass, body)) = opened(&gateway, &place, &message) else {
        warn!(%place, "refused what was not the machine's own");
        let why = "what it said was not signed by a machine with a pass that counts";
        gateway.note(TeamEvent::Refused, None, Some(&place), Some(why));
        return;
    };
    let (answer, file) = match what {
        FromMachine::Here => {
            if is_new(&gateway, &head) == SeenBefore::New
                && let Ok(here) = serde_json::from_slice::<CallingMachine>(body)
            {
                let now = gateway.seconds();
                gateway.roster().here(&pass, &here.name, &here.version, now);
            }
            return;
        }
        FromMachine::Hello => (hello(&gateway, &pass), None),
        FromMachine::Call => match is_new(&gateway, &head) {
            SeenBefore::New => {
                let asked = serde_json::from_slice(body).ok();
                let length = body.len();
                // A call may be under way for seconds, and it was read.
                drop(std::mem::take(&mut message.body));
                call(&gateway, &place, asked, length).await
            }
            SeenBefore::Full => (crowded(&gateway, SOON), None),
            SeenBefore::Repeated => {
                warn!(%place, "refused a call that came before, or too late");
                let why = "a call came before, or too late";
                gateway.note(TeamEvent::Refused, None, Some(&place), Some(why));
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
struct LargeFile<'a> {
    bytes: Vec<u8>,
    _room: FileRoom<'a>,
}

/// A call that is under way, until it is dropped.
struct ErrandUnderWay<'a> {
    gateway: &'a Gateway,
    wish: CallWish<'a>,
}

impl Drop for ErrandUnderWay<'_> {
    fn drop(&mut self) {
        self.gateway.shares().done(&self.wish);
    }
}

/// A call that waits for room for its file, until it is dropped.
struct WaitsForFile<'a>(&'a Gateway, &'a Owner);

impl Drop for WaitsForFile<'_> {
    fn drop(&mut self) {
        self.0.shares().waited(self.1);
    }
}

/// Room for a file, until it is dropped.
struct FileRoom<'a>(&'a Gateway, &'a Owner);

impl Drop for FileRoom<'_> {
    fn drop(&mut self) {
        self.0.shares().fetched(self.1);
        self.0.freed.notify_waiters();
    }
}

/// Room for a file, when there is some; none where too many wait already, or
/// for too long.
async fn room_for_file<'a>(
    gateway: &'a Gateway,
    who: &'a Owner,
    within: Duration,
) -> Option<FileRoom<'a>> {
    if !gateway.shares().may_wait(who) {
        return None;
    }
    let _waits = WaitsForFile(gateway, who);
    let waiting = async {
        loop {
            // Made before it looks, so that no room goes by unseen.
            let freed = gateway.freed.notified();
            if gateway.shares().may_fetch(who) {
                return FileRoom(gateway, who);
            }
            freed.await;
        }
    };
    tokio::time::timeout(within, waiting).await.ok()
}

/// What a machine says, if it does.
fn opened<'a>(
    gateway: &Gateway,
    place: &MachinePlace,
    message: &'a BusHeard,
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

fn is_new(gateway: &Gateway, head: &CallHead) -> SeenBefore {
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

/// How long a pass counts from now on, if it is time to renew it.
fn renewal(old: &Pass, now: Seconds) -> Option<Span> {
    let is_due = now - old.made >= RENEW_AFTER && old.until - now <= RENEW_BEFORE;
    // A word that forgets the machine, come late, must mean what was renewed
    // meanwhile as well: so it was made when the machine joined.
    is_due.then_some(Span {
        made: old.made,
        until: now + PASS_FOR,
    })
}

fn renewed(gateway: &Gateway, old: &Pass) -> Option<String> {
    let span = renewal(old, gateway.seconds())?;
    let keys = &gateway.keys;
    info!(place = %old.place, "a pass was renewed");
    gateway.note(TeamEvent::Renewed, None, Some(&old.place), None);
    let owner = &old.place.owner;
    let new = pass::machine(&keys.machines, &keys.account, owner, &old.key, span);
    Some(new)
}

/// The machine is to ask again.
fn crowded(gateway: &Gateway, after: Millis) -> Vec<u8> {
    add(&gateway.counts.crowded);
    let after = u64::try_from(after).unwrap_or_default();
    told(&ErrandResult::Crowded { after })
}

fn told(told: &ErrandResult) -> Vec<u8> {
    serde_json::to_vec(told).unwrap_or_default()
}

async fn call<'a>(
    gateway: &'a Gateway,
    place: &'a MachinePlace,
    asked: Option<ErrandCall>,
    length: usize,
) -> (Vec<u8>, Option<LargeFile<'a>>) {
    let refused = |why: String| (told(&ErrandResult::Refused { why }), None);
    let Some(asked) = asked else {
        return refused("it can't be read".to_owned());
    };
    let terms = ErrandTerms {
        place,
        chats: &gateway.chats,
        holds: &|message, ticket| gateway.holds(place, message, ticket),
    };
    let errand = match errand::judge(&asked, &terms) {
        Ok(errand) => errand,
        Err(why) => {
            warn!(%place, method = %asked.method, "refused a call: {why}");
            let told = why.to_string();
            gateway.note(TeamEvent::Refused, None, Some(place), Some(&told));
            return refused(why.to_string());
        }
    };
    let wish = CallWish {
        who: &place.owner,
        kind: errand.kind.word(),
        writes: errand.writes(),
        edits: errand.edits(),
        bytes: length,
    };
    if let Err(wait) = gateway.shares().ask(&wish, gateway.clock.now()) {
        debug!(%place, kind = errand.kind.word(), wait, "a call is put off");
        return (crowded(gateway, wait), None);
    }
    let _under_way = ErrandUnderWay { gateway, wish };
    let within = Duration::from_millis(asked.within).min(MAX_WITHIN);
    let within = within.saturating_sub(BEFORE_MACHINE);
    let most = asked.most.min(MAX_FILE);
    drop(asked);
    debug!(%place, kind = errand.kind.word(), "a call");
    gateway.counts.call(errand.kind.word());
    let room = match errand.kind {
        ErrandKind::Download => match room_for_file(gateway, &place.owner, within).await {
            Some(room) => Some(room),
            None => return (crowded(gateway, SOON), None),
        },
        _ => None,
    };
    let made = gateway.api.reply(&errand.call, within, most).await;
    let answer = match made {
        Ok(ApiReply {
            file: true,
            body: bytes,
            log_id,
            ..
        }) if bytes.len() > PIECE => {
            let length = bytes.len() as u64;
            let file = room.map(|room| LargeFile { bytes, _room: room });
            return (told(&ErrandResult::Pieces { length, log_id }), file);
        }
        Ok(reply) => {
            if let Some(wait) = enough(&reply) {
                warn!(kind = errand.kind.word(), wait, "Feishu has had enough");
                let now = gateway.clock.now();
                gateway.shares().pause(wish.kind, wait, now);
                gateway.paused.notify_one();
            }
            let ticket = ticket(gateway, place, &errand, &reply);
            ErrandResult::of(reply, ticket)
        }
        Err(ApiError::TooLarge { .. }) => ErrandResult::TooLarge,
        Err(ApiError::Crowded { after }) => {
            return (crowded(gateway, millis(after)), None);
        }
        Err(why) => {
            debug!(%place, "a call did not get through: {why}");
            ErrandResult::Lost {
                in_doubt: why.is_in_doubt(),
                why: why.to_string(),
            }
        }
    };
    (told(&answer), None)
}

/// How long Feishu wants no more calls of that kind, if it said so. That one
/// chat has had enough is no reason to keep others waiting.
fn enough(reply: &ApiReply) -> Option<Millis> {
    const TOO_MANY: i64 = 99_991_400;
    let why = reply.envelope().err()?;
    let is_so = why.code() == Some(TOO_MANY) || why.code().is_none() && reply.status == 429;
    is_so.then(|| why.retry_after().map_or(SOON, millis))
}

/// The right to touch the message that a call has made.
fn ticket(
    gateway: &Gateway,
    place: &MachinePlace,
    errand: &Errand,
    reply: &ApiReply,
) -> Option<String> {
    if !errand.kind.makes_a_message() {
        return None;
    }
    let envelope = reply.envelope().ok()?;
    let id = envelope
        .pointer("/data/message_id")
        .and_then(Value::as_str)?;
    let id = MessageId::parse(id).ok()?;
    if let Some(chat) = envelope.pointer("/data/chat_id").and_then(Value::as_str) {
        let (now, mut shares) = (gateway.clock.now(), gateway.shares());
        shares.stands(id.as_str(), chat, now);
        if errand.writes() == Some(place.owner.as_str()) {
            shares.stands(place.owner.as_str(), chat, now);
        }
    }
    Some(gateway.ticket(place, &id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::nkey::{KeyKind, KeyPair};

    const DAY: Seconds = 24 * 3_600;

    #[test]
    fn a_pass_is_renewed_from_its_tenth_day_on_every_ten_days_as_of_its_joining() {
        let key = KeyPair::of(KeyKind::User, [7; 32]).public();
        let given = |days: Seconds| Pass {
            place: MachinePlace::of(Owner::parse("ou_a").unwrap(), &key),
            key,
            signer: KeyPair::of(KeyKind::Account, [1; 32]).public(),
            made: 1_000,
            until: 1_000 + days * DAY,
        };
        let days = |pass: &Pass| {
            let due = |day: &Seconds| renewal(pass, 1_000 + day * DAY).is_some();
            (0..60).find(due)
        };
        assert_eq!(days(&given(30)), Some(10));
        assert_eq!(days(&given(12)), Some(10), "one for fewer days, too");
        assert_eq!(days(&given(50)), Some(30), "none is made shorter");
        let span = renewal(&given(30), 1_000 + 10 * DAY).unwrap();
        assert_eq!((span.made, span.until), (1_000, 1_000 + 40 * DAY));
        assert_eq!(days(&given(40)), Some(20), "ten days after that");
    }
}
