//! Taking a machine's pass back: the server cuts it off and lets it in no more,
//! gateways refuse what it signed, and its waiting cards say so.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::audit::{self, TeamEvent};
use super::beacon::COUNTS_FOR;
use super::roster::Used;
use super::taps::{PushedTap, push};
use super::{Gateway, STOP_WITHIN, TeamError, dialer, hold_line};
use crate::bus::accounts::{self, NotRevoked};
use crate::bus::errand::{self, ErrandCall, ErrandTerms, LeftCard};
use crate::bus::letter::{Letter, PushHead};
use crate::bus::line::{BusHeard, BusLineState, LineTurns};
use crate::bus::lobby::is_ticket;
use crate::bus::nkey::{KeyKind, PublicKey};
use crate::bus::pass::Seconds;
use crate::bus::subjects::{BEACON, MachinePlace, Owner, ToMachine};
use crate::clock::{self, Clock, Millis};
use crate::config::Config;
use crate::feishu::api::exchange::ApiCall;
use crate::feishu::connection;
use crate::text::Text;

/// How long a machine has to name its waiting cards. It can make that no longer.
const LEAVE_WITHIN: Duration = Duration::from_millis(400);
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

/// Why no machine was forgotten.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    #[error(transparent)]
    Team(#[from] TeamError),
    #[error("no machine goes by `{0}`: give its key (`U…`) and `--owner`")]
    Unknown(String),
    #[error("several machines go by `{name}`, give one of their ids: {all}")]
    Several { name: String, all: String },
    #[error("the bus can't be reached: {}", .0.en)]
    NoBus(Text),
    #[error(transparent)]
    NotRevoked(#[from] NotRevoked),
}

/// Takes one machine's pass back, by its name, its id or its key, and says
/// which it was and whether the bus itself refuses it now.
pub async fn by_name(
    config: &Config,
    name: &str,
    owner: Option<&Owner>,
) -> Result<(MachinePlace, bool), ForgetError> {
    let clock = Clock::start();
    let (_view, link) = watch::channel(connection::first_view());
    let (gateway, lines) = Gateway::new(config, clock, link)?;
    let gateway = Arc::new(gateway);
    let (place, key) = gateway.roster().one(name, owner)?;
    let stop = CancellationToken::new();
    let _stopped = stop.clone().drop_guard();
    let mut tasks = JoinSet::new();
    // What machines ask for is left to gateways that stay.
    hold_line(&gateway, Vec::new(), LineTurns::none(), &mut tasks, &stop);
    if let BusLineState::Waiting { why, .. } = gateway.line.settled().await {
        return Err(ForgetError::NoBus(why));
    }
    // Gateways that stay go by Feishu's clock and believe no word from the past.
    if let Err(why) = dialer(config, &gateway)?.learn_time().await {
        warn!("the time was not learned: {why}");
    }
    let forgotten = forget(&gateway, &place, key).await?;
    close_cards(&gateway, &place, forgotten.cards).await;
    stop.cancel();
    let rest = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(STOP_WITHIN, rest).await;
    audit::run(gateway.audit_file(), lines, stop).await;
    Ok((place, forgotten.cut_off))
}

pub(super) async fn forget(
    gateway: &Gateway,
    place: &MachinePlace,
    key: PublicKey,
) -> Result<Forgotten, NotRevoked> {
    let cards = match push(gateway, place, ToMachine::Leave, None, b"{}", LEAVE_WITHIN).await {
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
    let head = gateway.head(COUNTS_FOR);
    gateway.tell(BEACON, &head, what).await;
}

/// What gateways say to each other.
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
    if let Some(feishu) = notice.feishu.filter(|_| head.once != gateway.id) {
        let now = gateway.clock.now();
        gateway.others.told(&head.once, feishu, now);
        let left = head.until - gateway.their_clock.now();
        let until = now + left.min(COUNTS_FOR);
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
