//! Taking a machine's pass back: the server cuts it off and lets it in no more,
//! gateways refuse what it signed, and its waiting cards say so.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::Gateway;
use super::audit::TeamEvent;
use super::roster::Used;
use super::taps::{PushedTap, push_within};
use crate::bus::accounts::{self, NotRevoked};
use crate::bus::errand::{self, ErrandCall, ErrandTerms, LeftCard};
use crate::bus::letter::{self, Letter, PushHead};
use crate::bus::line::{BusHeard, BusLineState};
use crate::bus::lobby::is_ticket;
use crate::bus::nkey::{KeyKind, PublicKey};
use crate::bus::pass::Seconds;
use crate::bus::subjects::{BEACON, MachinePlace, ToMachine};
use crate::clock::{self, Millis};
use crate::feishu::api::exchange::ApiCall;

/// How long a machine has to name its waiting cards. It can make that no longer.
const LEAVE_WITHIN: Duration = Duration::from_millis(400);
const NOTICE_COUNTS_FOR: Millis = 12_000;
/// More than anybody forgets at once.
const MAX_TOLD: usize = 64;
const MAX_LEFT: usize = 64;
const EDIT_WITHIN: u64 = 20_000;

/// A machine that counts for nothing any more.
pub(super) struct Forgotten {
    /// What waited on it.
    pub(super) cards: Vec<LeftCard>,
    /// Whether the server refuses it as well.
    pub(super) cut_off: bool,
}

#[derive(Deserialize)]
struct Leaving {
    #[serde(default)]
    cards: Vec<LeftCard>,
}

/// A gateway's word to the others.
#[derive(Deserialize)]
struct ForgetNotice {
    /// Only a gateway that says that it is there says this, under its own id.
    feishu: Option<bool>,
    /// The kinds of call that Feishu has had enough of, and until when.
    #[serde(default)]
    paused: Vec<(String, Millis)>,
    #[serde(default)]
    forgot: Vec<(String, Seconds)>,
    /// Lines that were used, by whom, and until when they would count.
    #[serde(default)]
    spent: Vec<(String, Option<String>, Seconds)>,
}

pub(super) async fn forget(
    gateway: &Gateway,
    place: &MachinePlace,
    key: PublicKey,
) -> Result<Forgotten, NotRevoked> {
    let cards = match push_within(gateway, place, ToMachine::Leave, None, b"{}", LEAVE_WITHIN).await
    {
        PushedTap::Answered(body) => {
            let leaving = serde_json::from_slice::<Leaving>(&body);
            leaving.map_or_else(|_| Vec::new(), |leaving| leaving.cards)
        }
        PushedTap::Nobody | PushedTap::NotSent | PushedTap::Unknown => Vec::new(),
    };
    // A pass that was made by the faster of two clocks is over, too.
    let from = (clock::wall_ms() / 1_000).max(gateway.seconds()) + 1;
    let more = [(key, from)];
    let taken = accounts::revoke(&gateway.keys, &gateway.url, &gateway.outbound, &more);
    let cut_off = match taken.await {
        Ok(_) => true,
        Err(NotRevoked::NoOperator) => false,
        Err(why) => {
            warn!(%place, "a machine was not forgotten: {why}");
            return Err(why);
        }
    };
    gateway.roster().forget(key, from, gateway.seconds());
    gateway.save_roster().await;
    info!(%place, cut_off, "a machine was forgotten");
    gateway.note(TeamEvent::Forgotten, None, Some(place), None);
    let told = json!({"forgot": [(key.to_string(), from)]});
    tell_gateways(gateway, &told).await;
    Ok(Forgotten { cards, cut_off })
}

/// Makes the cards true that waited on a machine, as it drew them itself: only
/// those that it had a ticket for.
pub(super) async fn close_cards(gateway: &Gateway, place: &MachinePlace, cards: Vec<LeftCard>) {
    for left in cards.into_iter().take(MAX_LEFT) {
        let path = ["open-apis", "im", "v1", "messages", &left.message];
        let call = ApiCall::patch(&path, json!({"content": left.card}));
        let asked = ErrandCall::of(&call, EDIT_WITHIN, 0, Some(left.ticket));
        let terms = ErrandTerms {
            place,
            chats: &[],
            holds: &|message, ticket| gateway.holds(place, message, ticket),
        };
        let errand = match errand::judge(&asked, &terms) {
            Ok(errand) => errand,
            Err(why) => {
                warn!(%place, "a card of a forgotten machine was left as it is: {why}");
                continue;
            }
        };
        if let Err(why) = gateway.api.call(&errand.call).await {
            warn!(%place, "a card of a forgotten machine was not changed: {why}");
        }
    }
}

/// Says something to the other gateways.
pub(super) async fn tell_gateways(gateway: &Gateway, what: &Value) {
    let head = PushHead {
        until: gateway.their_clock.now() + NOTICE_COUNTS_FOR,
        once: format!("{:032x}", rand::random::<u128>()),
        ticket: None,
    };
    let body = what.to_string();
    let letter = letter::sign(&gateway.keys.push, BEACON, &head, body.as_bytes());
    gateway.line.tell(BEACON, letter).await;
}

/// What gateways say to each other besides that they are there.
pub(super) async fn heard(gateway: &Gateway, message: &BusHeard) {
    let read = || {
        let letter = Letter::read(&message.body)?;
        let body = letter.open(&gateway.keys.push.public(), BEACON)?;
        let head: PushHead = letter.claims()?;
        let counts = head.until >= gateway.their_clock.now();
        let notice: ForgetNotice = serde_json::from_slice(body).ok()?;
        counts.then_some((head, notice))
    };
    let Some((head, notice)) = read() else {
        return;
    };
    if notice.feishu.is_some() && head.once != gateway.id {
        let now = gateway.clock.now();
        let left = head.until - gateway.their_clock.now();
        let until = now + left.min(NOTICE_COUNTS_FOR);
        let mut shares = gateway.shares();
        shares.gateway(&head.once, until, now);
        for (kind, until) in notice.paused.iter().take(MAX_TOLD) {
            let wait = until.saturating_sub(gateway.their_clock.now());
            if let Some(kind) = errand::ErrandKind::of(kind).filter(|_| wait > 0) {
                shares.pause(kind.word(), wait, now);
            }
        }
    }
    let ForgetNotice { forgot, spent, .. } = notice;
    let now = gateway.seconds();
    for (key, from) in forgot.iter().take(MAX_TOLD) {
        if let Ok(key) = PublicKey::parse(key, KeyKind::User) {
            gateway.roster().forget(key, *from, now);
        }
    }
    for (ticket, by, until) in spent.iter().take(MAX_TOLD) {
        let by = by
            .as_deref()
            .map(|key| PublicKey::parse(key, KeyKind::User));
        if let (true, Ok(by)) = (is_ticket(ticket), by.transpose()) {
            gateway.roster().spend(ticket, Used::of(by), *until, now);
        }
    }
    gateway.save_roster().await;
}

/// Learns at each connection whose passes no longer count, and tells a server
/// that has lost it.
pub(super) async fn keep_up(gateway: Arc<Gateway>, stop: CancellationToken) {
    let mut state = gateway.line.state();
    let mut last = 0;
    loop {
        let now = match &*state.borrow_and_update() {
            BusLineState::Up { connects, .. } => Some(*connects),
            BusLineState::Dialing | BusLineState::Waiting { .. } => None,
        };
        if let Some(connects) = now.filter(|connects| *connects != last) {
            last = connects;
            tokio::select! {
                () = stop.cancelled() => return,
                () = agree(&gateway) => {}
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = state.changed() => if changed.is_err() { return },
        }
    }
}

async fn agree(gateway: &Gateway) {
    let own = gateway.roster().forgotten();
    match accounts::revoke(&gateway.keys, &gateway.url, &gateway.outbound, &own).await {
        Ok(all) => {
            for (key, from) in all {
                gateway.roster().forget(key, from, gateway.seconds());
            }
            gateway.save_roster().await;
        }
        Err(NotRevoked::NoOperator) => {}
        Err(why) => warn!("it is not known whose passes the bus has taken back: {why}"),
    }
}
