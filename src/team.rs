//! The gateway of a team: holds the app's secret and Feishu's connection,
//! takes each tap to the machine its button names, and makes the few calls
//! that machines may ask for. Keeps nothing, so any number of them run side by
//! side; decides nothing, so a tap counts only where its machine says so.

pub mod audit;
mod beacon;
mod chat;
mod duty;
mod errands;
pub mod forget;
mod join;
mod orders;
mod passes;
mod roster;
mod seen;
mod shares;
pub mod status;
mod taps;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::audit::{Audit, TeamAuditEntry, TeamEvent};
use self::roster::Roster;
use serde_json::json;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::bus::keys::{BadKeys, Keys};
use crate::bus::line::{self, BusLine, BusUser, LineTurns};
use crate::bus::nkey::{KeyKind, KeyPair};
use crate::bus::pass::{self, Pass, Seconds, Span};
use crate::bus::subjects::{
    BEACON, FromMachine, GATEWAY_INBOX, GROUP, LOBBIES, MachinePlace, Owner,
};
use crate::bus::url::BusUrl;
use crate::clock::{Clock, Millis};
use crate::config::{Config, Problems};
use crate::feishu::api::Api;
use crate::feishu::clock::TheirClock;
use crate::feishu::connection::{self, LinkView, Wiring};
use crate::feishu::endpoint::{DialLimits, Dialer};
use crate::feishu::error::ApiError;
use crate::feishu::link::PushDelivery;
use crate::feishu::messages::Messages;
use crate::feishu::outbound::{Outbound, OutboundError};
use crate::files;
use crate::gateway::seal::{SealPurpose, Sealer};
use crate::ids::MessageId;
use crate::text::Lang;
use crate::wording::{Toast, reply_json};

/// How long a gateway's own pass counts; it makes a new one long before.
const OWN_PASS: Seconds = 24 * 3_600;
const RENEW_OWN: Duration = Duration::from_secs(6 * 3_600);
/// How long a machine's pass counts.
const PASS_FOR: Seconds = 30 * 24 * 3_600;
const STOP_WITHIN: Duration = Duration::from_secs(3);
/// How long a machine has to say that it is there.
const PROBE_WITHIN: Duration = Duration::from_millis(500);
const SAVE_EVERY: Duration = Duration::from_secs(60);
/// Messages one person gets of a gateway itself in any second; the others that
/// Feishu takes are his machines'.
const PACE: usize = 1;

#[derive(Debug, thiserror::Error)]
pub enum TeamError {
    #[error(transparent)]
    Settings(#[from] Problems),
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("the keys in `{}` can't be read: {why}", file.display())]
    NoKeys { file: PathBuf, why: String },
    #[error("the keys in `{}` can't be used: {why}", file.display())]
    BadKeys { file: PathBuf, why: BadKeys },
    #[error("other users can read `{}`, which holds the team's keys: `chmod 600` it", .0.display())]
    Exposed(PathBuf),
    #[error("`NOD_BUS_URL` is not set: a gateway needs the address of its bus")]
    NoBus,
    #[error("a fault of nod's own stopped a part of the gateway, so it has ended as a whole")]
    Fault,
}

/// What a gateway is made of.
struct Gateway {
    /// Its own name among gateways, for beacons only.
    id: String,
    app_id: String,
    keys: Keys,
    line: BusLine,
    api: Api,
    their_clock: TheirClock,
    clock: Clock,
    lang: Lang,
    chats: Vec<String>,
    tickets: Sealer,
    seen: Mutex<seen::SeenCalls>,
    passes: Mutex<passes::Passes>,
    /// What each may have of the app.
    shares: Mutex<shares::Shares>,
    /// Told whenever Feishu has had enough of something.
    paused: Notify,
    /// The others, and whether they reach Feishu.
    others: duty::OtherGateways,
    /// Told whenever a file that was carried down makes room.
    freed: Notify,
    /// The machines, and where they are written down.
    roster: Mutex<Roster>,
    roster_file: PathBuf,
    saving: tokio::sync::Mutex<()>,
    url: BusUrl,
    outbound: Outbound,
    messages: Messages,
    buttons: Sealer,
    counts: status::GatewayCounts,
    audit: Audit,
    started: Millis,
    /// Who asks to join.
    asking: Mutex<join::JoinTickets>,
    link: watch::Receiver<LinkView>,
}

/// The keys of a gateway, from a file that is its own alone.
pub fn keys(file: &std::path::Path) -> Result<Keys, TeamError> {
    use std::os::unix::fs::PermissionsExt as _;
    let unread = |why: String| TeamError::NoKeys {
        file: file.to_owned(),
        why,
    };
    let bytes = files::read(file).map_err(|why| unread(why.to_string()))?;
    let bytes = bytes.ok_or_else(|| unread("there is no such file".to_owned()))?;
    let mode = std::fs::metadata(file).map_err(|why| unread(why.to_string()))?;
    if mode.permissions().mode() & 0o077 != 0 {
        return Err(TeamError::Exposed(file.to_owned()));
    }
    Keys::parse(&String::from_utf8_lossy(&bytes)).map_err(|why| TeamError::BadKeys {
        file: file.to_owned(),
        why,
    })
}

/// Where the bus is, which a gateway can't do without.
pub fn bus_url(config: &Config) -> Result<BusUrl, TeamError> {
    config.bus.url.clone().ok_or(TeamError::NoBus)
}

/// Runs until `stop`. `ready` is called once its tasks run.
pub async fn run(
    config: Config,
    stop: CancellationToken,
    ready: impl FnOnce(),
) -> Result<(), TeamError> {
    let clock = Clock::start();
    let (view, link) = watch::channel(connection::first_view());
    let (gateway, lines) = Gateway::new(&config, clock, link)?;
    let gateway = Arc::new(gateway);
    let dialer = dialer(&config, &gateway)?;
    let mut tasks = JoinSet::new();
    let (on_duty, takes) = watch::channel(false);
    hold_line(&gateway, hears(), in_turn(takes), &mut tasks, &stop);
    tasks.spawn(duty::run(Arc::clone(&gateway), on_duty, stop.clone()));
    tasks.spawn(forget::keep_up(Arc::clone(&gateway), stop.clone()));
    tasks.spawn(save(Arc::clone(&gateway), stop.clone()));
    tasks.spawn(status::run(Arc::clone(&gateway), stop.clone()));
    tasks.spawn(status::count_connections(
        Arc::clone(&gateway),
        stop.clone(),
    ));
    tasks.spawn(audit::run(gateway.audit_file(), lines, stop.clone()));
    tasks.spawn(beacon::run(Arc::clone(&gateway), stop.clone()));
    let tapped = Arc::clone(&gateway);
    let (hot, cold) = watch::channel(true);
    tasks.spawn(connection::run(
        dialer,
        Wiring {
            handler: move |delivery: PushDelivery| {
                taps::answer(Arc::clone(&tapped), delivery.payload)
            },
            hot: cold,
            view,
            overdue_answer: reply_json(&Toast::STILL_CHECKING, None, config.lang),
            failed_answer: reply_json(&Toast::INVALID, None, config.lang),
            stop: stop.clone(),
        },
    ));
    info!(gateway = gateway.id, "ready");
    ready();
    let ended = ended(&mut tasks, &stop).await;
    stop.cancel();
    let rest = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_WITHIN, rest).await.is_err() {
        tasks.abort_all();
    }
    drop(hot);
    ended
}

/// What connects the gateway with Feishu.
fn dialer(config: &Config, gateway: &Gateway) -> Result<Dialer, TeamError> {
    let (app_id, secret) = config.app()?;
    Ok(Dialer {
        outbound: gateway.outbound.clone(),
        domain: config.domain.clone(),
        app_id: app_id.to_owned(),
        app_secret: secret.clone(),
        limits: DialLimits::default(),
        clock: gateway.their_clock.clone(),
    })
}

/// Keeps the gateway on the bus.
fn hold_line(
    gateway: &Arc<Gateway>,
    hears: Vec<String>,
    turns: LineTurns,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let key = Arc::new(KeyPair::of(KeyKind::User, rand::random()));
    let (pass, passes) = watch::channel(gateway.own_pass(&key));
    let member = BusUser {
        url: gateway.url.clone(),
        key: Arc::clone(&key),
        pass: passes,
        hears,
        turns,
    };
    tasks.spawn(renew(Arc::clone(gateway), key, pass, stop.clone()));
    let shared = Arc::clone(gateway);
    tasks.spawn(line::run(
        gateway.line.clone(),
        member,
        gateway.outbound.clone(),
        gateway.clock,
        move |message| errands::hear(Arc::clone(&shared), message),
        stop.clone(),
    ));
}

/// Writes down which machines there are, now and then and at the end.
async fn save(gateway: Arc<Gateway>, stop: CancellationToken) {
    loop {
        let stopped = tokio::select! {
            () = stop.cancelled() => true,
            () = tokio::time::sleep(SAVE_EVERY) => false,
        };
        gateway.save_roster().await;
        if stopped {
            return;
        }
    }
}

fn hears() -> Vec<String> {
    vec![FromMachine::Here.everywhere(), BEACON.to_owned()]
}

/// What one of the gateways does.
fn in_turn(takes: watch::Receiver<bool>) -> LineTurns {
    let subjects = vec![
        FromMachine::Call.everywhere(),
        FromMachine::Hello.everywhere(),
        LOBBIES.to_owned(),
    ];
    LineTurns {
        group: GROUP,
        subjects,
        takes,
    }
}

async fn ended(tasks: &mut JoinSet<()>, stop: &CancellationToken) -> Result<(), TeamError> {
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            ended = tasks.join_next() => match ended {
                Some(Err(why)) if why.is_panic() => return Err(TeamError::Fault),
                Some(_) => {}
                None => return Err(TeamError::Fault),
            },
        }
    }
}

async fn renew(
    gateway: Arc<Gateway>,
    key: Arc<KeyPair>,
    pass: watch::Sender<String>,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RENEW_OWN) => {}
        }
        pass.send_replace(gateway.own_pass(&key));
    }
}

impl Gateway {
    fn new(
        config: &Config,
        clock: Clock,
        link: watch::Receiver<LinkView>,
    ) -> Result<(Self, mpsc::Receiver<TeamAuditEntry>), TeamError> {
        let (audit, lines) = Audit::new();
        let (app_id, secret) = config.app()?;
        let url = bus_url(config)?;
        let keys = keys(&config.bus.keys)?;
        let outbound = Outbound::new(&config.proxies, config.ca_file.as_deref())?;
        let api = Api::new(&outbound, config.domain.base(), app_id, secret.clone())?;
        let chat_rate = usize::try_from(config.chat_rate).unwrap_or(usize::MAX);
        let roster_file = config.state_dir.join(roster::FILE);
        let gateway = Self {
            id: format!("{:08x}", rand::random::<u32>()),
            app_id: app_id.to_owned(),
            line: BusLine::new(GATEWAY_INBOX),
            messages: Messages::new(api.clone(), PACE),
            api,
            their_clock: TheirClock::new(clock),
            clock,
            lang: config.lang,
            chats: config.bus.chats.clone(),
            tickets: Sealer::new(secret, SealPurpose::Ticket),
            buttons: Sealer::new(secret, SealPurpose::Team),
            seen: Mutex::default(),
            passes: Mutex::default(),
            shares: Mutex::new(shares::Shares::new(config.bus.rate, chat_rate)),
            paused: Notify::new(),
            others: duty::OtherGateways::default(),
            freed: Notify::new(),
            counts: status::GatewayCounts::default(),
            audit,
            started: clock.now(),
            asking: Mutex::default(),
            roster: Mutex::new(Roster::read(&roster_file)),
            roster_file,
            saving: tokio::sync::Mutex::default(),
            url,
            outbound,
            keys,
            link,
        };
        Ok((gateway, lines))
    }

    /// Writes down what happened, and to whom.
    fn note(
        &self,
        what: TeamEvent,
        owner: Option<&Owner>,
        place: Option<&MachinePlace>,
        why: Option<&str>,
    ) {
        if what == TeamEvent::Refused {
            status::add(&self.counts.refused);
        }
        let owner = owner.or(place.map(|place| &place.owner));
        self.audit.note(TeamAuditEntry {
            at: self.their_clock.now(),
            what,
            owner: owner.map(ToString::to_string),
            machine: place.map(|place| place.machine.to_string()),
            why: why.map(str::to_owned),
        });
    }

    fn asking(&self) -> MutexGuard<'_, join::JoinTickets> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shares(&self) -> MutexGuard<'_, shares::Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn audit_file(&self) -> PathBuf {
        self.roster_file.with_file_name(audit::FILE)
    }

    fn roster(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the machines down, if there is anything new. The server knows
    /// whose passes no longer count even where this fails.
    async fn save_roster(&self) {
        let _turn = self.saving.lock().await;
        let Some(text) = self.roster().text() else {
            return;
        };
        if let Err(why) = replace(self.roster_file.clone(), text).await {
            warn!("the list of machines was not written: {why}");
        }
    }

    /// A machine's pass, if it counts.
    fn pass(&self, text: &str) -> Option<Pass> {
        let signer = self.keys.machines.public();
        let passes = self.passes.lock();
        let mut passes = passes.unwrap_or_else(PoisonError::into_inner);
        let pass = passes.check(text, &signer, self.seconds()).ok()?;
        drop(passes);
        (!self.roster().is_forgotten(&pass)).then_some(pass)
    }

    /// Seconds by Feishu's clock.
    fn seconds(&self) -> Seconds {
        self.their_clock.now() / 1_000
    }

    fn own_pass(&self, key: &KeyPair) -> String {
        // The server goes by its own clock, as does this.
        let made = self.clock.now() / 1_000;
        let span = Span {
            made,
            until: made + OWN_PASS,
        };
        pass::gateway(&self.keys.gateways, &self.keys.account, &key.public(), span)
    }

    /// The right of one machine to touch one message.
    fn ticket(&self, place: &MachinePlace, message: &MessageId) -> String {
        self.tickets.tag(&ticket_value(place, message))
    }

    fn holds(&self, place: &MachinePlace, message: &MessageId, ticket: &str) -> bool {
        self.tickets.verifies(&ticket_value(place, message), ticket)
    }
}

/// Replaces a file of the gateway's own, whose directory need not be there.
async fn replace(file: PathBuf, text: String) -> std::io::Result<()> {
    let write = move || {
        if let Some(dir) = file.parent() {
            files::make_dirs(dir, 0o700)?;
        }
        files::replace_private(&file, text.as_bytes())
    };
    tokio::task::spawn_blocking(write).await?
}

fn ticket_value(place: &MachinePlace, message: &MessageId) -> serde_json::Value {
    json!({
        "owner": place.owner.as_str(),
        "machine": place.machine.as_str(),
        "message": message.as_str(),
    })
}
