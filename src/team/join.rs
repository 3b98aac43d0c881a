//! Letting machines in: a line for whoever writes `/join`, a card for its owner
//! when a machine asks with it, and a pass once the owner has tapped. What
//! stands in the line and on the button is all there is to know, so any gateway
//! takes any of these steps.

use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};
use tracing::{debug, info, warn};

use super::audit::TeamEvent;
use super::forget::tell_gateways;
use super::roster::Used;
use super::seen::SeenBefore;
use super::status::add;
use super::{Gateway, PASS_FOR};
use crate::bounded::Bounded;
use crate::bus::letter::{self, AnswerHead, CallHead, Letter};
use crate::bus::line::BusHeard;
use crate::bus::lobby::{Invite, JoinWish, LobbyReply, No, fingerprint, ticket};
use crate::bus::membership::Grant;
use crate::bus::nkey::{KeyKind, KeyPair, PublicKey};
use crate::bus::pass::{self, Lobby, Seconds, Span};
use crate::bus::subjects::{MachinePlace, Owner, asker, lobby, lobby_inbox};
use crate::cards::team::{Mood, Row, TeamButton, draw};
use crate::clock::Millis;
use crate::feishu::messages::{Content, Receiver};
use crate::feishu::secret::Secret;
use crate::text::escape::{Shape, visible};
use crate::wording::team as words;

/// How long a line counts, and the button that answers it.
pub(super) const LINE_FOR: Seconds = 600;
/// Machines that may ask with one line.
const MAX_KEYS: usize = 3;
const MAX_TICKETS: usize = 1_024;
const DELIVERY_COUNTS_FOR: Millis = 12_000;

/// Who asked with which ticket, on this gateway.
pub(super) struct JoinTickets {
    tickets: Bounded<String, (Seconds, Vec<PublicKey>)>,
}

impl Default for JoinTickets {
    fn default() -> Self {
        Self {
            tickets: Bounded::new(MAX_TICKETS),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum AskCount {
    First,
    Again,
    Many,
}

impl JoinTickets {
    fn note(&mut self, ticket: &str, key: PublicKey, now: Seconds) -> AskCount {
        let is_over = |(at, _): &(Seconds, Vec<PublicKey>)| now - *at > LINE_FOR;
        let Some((at, keys)) = self.tickets.live(ticket.to_owned(), is_over) else {
            return AskCount::Many;
        };
        if keys.is_empty() {
            *at = now;
        }
        if keys.contains(&key) {
            return AskCount::Again;
        }
        if keys.len() >= MAX_KEYS {
            return AskCount::Many;
        }
        keys.push(key);
        AskCount::First
    }

    /// The card did not go out: it will be tried again.
    fn forget(&mut self, ticket: &str, key: PublicKey) {
        if let Some((_, keys)) = self.tickets.get_mut(&ticket.to_owned()) {
            keys.retain(|known| *known != key);
        }
    }
}

/// The line with which one machine of `owner` may ask.
pub(super) fn line(gateway: &Gateway, owner: &Owner) -> Secret {
    let key = KeyPair::of(KeyKind::User, rand::random());
    let made = gateway.seconds();
    let span = Span {
        made,
        until: made + LINE_FOR,
    };
    let (keys, ticket) = (&gateway.keys, ticket(rand::random()));
    let invite = Invite {
        url: gateway.url.to_string(),
        lobby: pass::lobby(
            &keys.lobby,
            &keys.account,
            owner,
            &ticket,
            &key.public(),
            span,
        ),
        seed: key.seed().expose().to_owned(),
        push: vec![keys.push.public().to_string()],
    };
    info!(%owner, "somebody may ask to join");
    gateway.note(TeamEvent::Invited, Some(owner), None, None);
    invite.line()
}

/// Somebody asks in the lobby.
pub(super) async fn hear(gateway: &Gateway, message: &BusHeard) {
    let Some((owner, ticket)) = asker(&message.subject) else {
        return;
    };
    // A line is enough to ask with, and to ask for ever.
    if !gateway.shares().reads(&owner, gateway.clock.now()) {
        add(&gateway.counts.crowded);
        debug!(%owner, "left unread: too much is said in this person's lobby");
        return;
    }
    let read = || {
        let letter = Letter::read(&message.body)?;
        let head: CallHead = letter.claims()?;
        let lobby = Lobby::check(&head.pass, &gateway.keys.lobby.public(), gateway.seconds());
        let lobby = lobby.ok()?;
        let own = lobby.owner == owner && lobby.ticket == ticket;
        let body = own.then(|| letter.open(&lobby.key, &message.subject))??;
        let wish: JoinWish = serde_json::from_slice(body).ok()?;
        let key = wish.key(&ticket)?;
        // Its clock may be wrong; that it came before does not depend on it.
        let now = gateway.their_clock.now();
        let mut seen = gateway.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let new = seen.judge(&head.once, now, now) == SeenBefore::New;
        new.then_some((head.once, lobby, wish, key))
    };
    let Some((once, lobby, wish, key)) = read() else {
        warn!(%owner, "refused somebody in the lobby");
        let why = "somebody asked to join with a line that is over, forged or repeated";
        gateway.note(TeamEvent::Refused, Some(&owner), None, Some(why));
        return;
    };
    let home = format!("{}.", lobby_inbox(&ticket));
    let Some(reply) = message.reply.as_ref().filter(|to| is_home(to, &home)) else {
        warn!(%owner, "answered nobody: the reply would have gone elsewhere");
        return;
    };
    let answer = answer(gateway, &lobby, &wish, key).await;
    let head = AnswerHead {
        re: once,
        pass: None,
    };
    let body = serde_json::to_vec(&answer).unwrap_or_default();
    let letter = letter::sign(&gateway.keys.push, &message.subject, &head, &body);
    gateway.line.tell(reply, letter).await;
}

fn is_home(reply: &str, home: &str) -> bool {
    let token = reply.strip_prefix(home);
    token.is_some_and(|token| {
        (1..=64).contains(&token.len()) && token.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}

async fn answer(gateway: &Gateway, lobby: &Lobby, wish: &JoinWish, key: PublicKey) -> LobbyReply {
    let used = gateway.roster().used(&lobby.ticket);
    match used {
        Some(Used::By(known)) if known == key => {
            // A line of before it was forgotten brings nobody back.
            let forgotten = gateway.roster().forgotten_until(&key);
            if forgotten.is_none_or(|since| since <= lobby.until - LINE_FOR) {
                return LobbyReply::Granted(grant(gateway, &lobby.owner, key));
            }
            warn!(owner = %lobby.owner, "refused a forgotten machine on its old line");
            let place = MachinePlace::of(lobby.owner.clone(), &key);
            let why = "it was forgotten and asked to join with its old line";
            gateway.note(TeamEvent::Refused, None, Some(&place), Some(why));
            return LobbyReply::Refused(No::Used);
        }
        Some(Used::By(_)) => {
            warn!(owner = %lobby.owner, "refused a second machine on one line");
            let place = MachinePlace::of(lobby.owner.clone(), &key);
            let why = "it asked to join with a line that was used";
            gateway.note(TeamEvent::Refused, None, Some(&place), Some(why));
            return LobbyReply::Refused(No::Used);
        }
        Some(Used::Refused) => return LobbyReply::Refused(No::Owner),
        None => {}
    }
    let now = gateway.seconds();
    let asks = gateway.asking().note(&lobby.ticket, key, now);
    match asks {
        AskCount::Again => return LobbyReply::Asked,
        AskCount::Many => {
            warn!(owner = %lobby.owner, "refused one more machine on one line");
            let why = "too many machines ask to join with one line";
            gateway.note(TeamEvent::Refused, Some(&lobby.owner), None, Some(why));
            return LobbyReply::Refused(No::Many);
        }
        AskCount::First => {}
    }
    let card = question(gateway, lobby, wish, key);
    let to = Receiver::User(lobby.owner.id());
    // The other gateway may be asked next; the owner gets one card.
    let uuid = format!("join-{}-{}", lobby.ticket, fingerprint(&lobby.ticket, &key));
    let content = Content::Card(card);
    match gateway.messages.send(&to, &content, &uuid).await {
        Ok(_) => {
            info!(owner = %lobby.owner, "a machine asks to join");
            let place = MachinePlace::of(lobby.owner.clone(), &key);
            gateway.note(TeamEvent::Asked, None, Some(&place), None);
            LobbyReply::Asked
        }
        Err(why) => {
            warn!(owner = %lobby.owner, "nobody was asked whether a machine may join: {why}");
            gateway.asking().forget(&lobby.ticket, key);
            LobbyReply::Refused(No::Unasked)
        }
    }
}

fn question(gateway: &Gateway, lobby: &Lobby, wish: &JoinWish, key: PublicKey) -> Value {
    let value = |what: &str| {
        gateway.buttons.seal(json!({
            "team": what,
            "owner": lobby.owner.as_str(),
            "key": wish.key,
            "name": wish.name,
            "ticket": lobby.ticket,
            "until": lobby.until * 1_000,
        }))
    };
    let fingerprint = fingerprint(&lobby.ticket, &key);
    let name = |text: &str| visible(text, Shape::Name);
    let text = words::wants_to_join(
        &name(&wish.name),
        &name(&wish.user),
        &name(&wish.version),
        &fingerprint,
    );
    let rows = [
        Row {
            text,
            button: Some(TeamButton {
                label: words::LET_IN.clone(),
                value: value("join"),
                takes: false,
                sure: None,
            }),
        },
        Row {
            text: words::NOT_ME.clone(),
            button: Some(TeamButton {
                label: words::KEEP_OUT.clone(),
                value: value("refuse"),
                takes: true,
                sure: None,
            }),
        },
    ];
    draw(&words::JOIN_TITLE, Mood::Asks, &rows, gateway.lang)
}

fn grant(gateway: &Gateway, owner: &Owner, key: PublicKey) -> Grant {
    let keys = &gateway.keys;
    let now = gateway.seconds();
    // A machine that was forgotten comes back with a pass that was made since.
    let since = gateway.roster().forgotten_until(&key);
    let made = since.map_or(now, |since| now.max(since + 1));
    let span = Span {
        made,
        until: now + PASS_FOR,
    };
    Grant {
        url: gateway.url.to_string(),
        pass: pass::machine(&keys.machines, &keys.account, owner, &key, span),
        push: vec![keys.push.public().to_string()],
        app_id: gateway.app_id.clone(),
    }
}

/// What came of the owner's tap.
pub(super) enum Tapped {
    Joined,
    Refused,
    /// The line has done its work.
    Used,
}

/// The owner has said yes or no to one machine.
pub(super) async fn tapped(
    gateway: &Arc<Gateway>,
    place: &MachinePlace,
    key: PublicKey,
    (ticket, until): (&str, Millis),
    yes: bool,
) -> Tapped {
    let used = if yes { Used::By(key) } else { Used::Refused };
    let now = gateway.seconds();
    let first = gateway.roster().spend(ticket, used, until / 1_000, now);
    if first != used {
        warn!(%place, "refused a tap on a line that was used");
        let why = "a tap on a line that was used";
        gateway.note(TeamEvent::Refused, None, Some(place), Some(why));
        return Tapped::Used;
    }
    gateway.save_roster().await;
    tell_gateways(
        gateway,
        &json!({"spent": [(ticket, used.key().map(|key| key.to_string()), until / 1_000)]}),
    )
    .await;
    if !yes {
        info!(%place, "the owner keeps a machine out");
        gateway.note(TeamEvent::KeptOut, None, Some(place), None);
        return Tapped::Refused;
    }
    info!(%place, "the owner lets a machine in");
    gateway.note(TeamEvent::Joined, None, Some(place), None);
    deliver(gateway, place, key, ticket).await;
    Tapped::Joined
}

/// Brings a pass to the lobby; a machine that does not hear it asks again.
async fn deliver(gateway: &Gateway, place: &MachinePlace, key: PublicKey, ticket: &str) {
    let (_, hears) = lobby(&place.owner, ticket);
    let head = gateway.head(DELIVERY_COUNTS_FOR);
    let body = json!({"grant": grant(gateway, &place.owner, key)});
    gateway.tell(&hears, &head, &body).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> PublicKey {
        KeyPair::of(KeyKind::User, [n; 32]).public()
    }

    #[test]
    fn one_line_brings_its_owner_few_cards() {
        let mut asking = JoinTickets::default();
        for n in 0..3 {
            assert_eq!(asking.note("t", key(n), 0), AskCount::First);
            assert_eq!(asking.note("t", key(n), 1), AskCount::Again);
        }
        assert_eq!(asking.note("t", key(9), 2), AskCount::Many);
        assert_eq!(asking.note("u", key(9), 2), AskCount::First);
        asking.forget("t", key(0));
        assert_eq!(asking.note("t", key(0), 3), AskCount::First);
        for n in 0..MAX_TICKETS {
            asking.note(&n.to_string(), key(1), 4);
        }
        assert_eq!(asking.note("one more", key(1), 5), AskCount::Many);
        let later = 6 + LINE_FOR;
        assert_eq!(asking.note("one more", key(1), later), AskCount::First);
    }

    #[test]
    fn whoever_asks_is_answered_at_home_only() {
        let home = "_IN.l.abc.";
        assert!(is_home("_IN.l.abc.0f", home));
        for bad in [
            "_IN.l.abc.",
            "_IN.l.abc.>",
            "_IN.l.abd.x",
            "_IN.l.abc.x.y",
            "nod1.b",
        ] {
            assert!(!is_home(bad, home), "{bad}");
        }
    }
}
