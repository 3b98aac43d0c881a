//! The daemon: builds the parts, goes on where the last one stopped, runs the
//! tasks until told to stop. Only here does everything meet.

mod arriving;
mod asking;
#[cfg(test)]
mod bench;
mod cards;
mod deciding;
mod known;
mod machines;
mod process;
mod talking;
mod tapping;
mod tasks;
mod telling;
mod terminals;

use std::sync::{Arc, Mutex};
use tokio::sync::{OnceCell, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::arriving::inbox;
use self::asking::codex::{self, Codex};
use self::asking::dialogs::{self, Dialogs};
use self::asking::flood;
use self::asking::hook_events::HookEvents;
pub use self::asking::no_daemon;
pub(crate) use self::cards::book;
use self::cards::courier::{self, Cards, Courier, Way};
use self::deciding::decision::Decider;
use self::known::buttons::Buttons;
use self::known::journal::{self, Journal};
use self::known::links::PageLinks;
use self::known::machine::Machine;
pub use self::known::machine::name as machine_name;
use self::known::people::People;
use self::known::{answered, figures, freshness, gathered, lock, proof, turns};
use self::machines::gate::{self, Gate};
use self::machines::team::Team;
use self::process::hardening;
pub use self::process::{instance, service_manager};
use self::talking::chat::{Chat, RETURN_AFTER_RESTART};
use self::talking::drafts::Drafts;
use self::talking::sessions::files::Noted;
use self::talking::sessions::{self, Sessions};
use self::tapping::clicks::Taps;
use self::tasks::Tasks;
pub use self::telling::metrics;
use self::telling::status::Standing;
use self::telling::{names, rivals};
use self::terminals::watching::Terminals;
use self::terminals::{endings, mailboxes, watching};
use crate::approvals::Settled;
use crate::approvals::desk::Desk;
use crate::approvals::desk::expiry::run_expiry;
use crate::approvals::request::{Dropped, Ending, Request};
use crate::approvals::token::TokenHash;
use crate::bus::membership::Membership;
use crate::clock::Clock;
use crate::config::{Config, Problems};
use crate::feishu::api::Api;
use crate::feishu::clock::TheirClock;
use crate::feishu::connection::{self, LinkView};
use crate::feishu::custom_bot::CustomBot;
use crate::feishu::endpoint::{DialLimits, Dialer};
use crate::feishu::error::ApiError;
use crate::feishu::messages::{Messages, Receiver};
use crate::feishu::outbound::{Outbound, OutboundError};
use crate::feishu::secret::Secret;
use crate::gateway::seal::{SealPurpose, Sealer};
use crate::gateway::server::{self, DoorError};
use crate::hook::listen::{ListenError, Listening, listen};
use crate::ids::MachineId;
use crate::store::{Store, StoreError, StoreNotice};
use instance::{Instance, InstanceError};

#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(transparent)]
    Settings(#[from] Problems),
    #[error(transparent)]
    Instance(#[from] InstanceError),
    #[error(transparent)]
    Socket(#[from] ListenError),
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    #[error(transparent)]
    Door(#[from] DoorError),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[cfg(not(feature = "team"))]
    #[error("this nod was built without teams, and this machine has the pass of one")]
    NoTeam,
    /// A task that must always run panicked: whoever started the daemon has to
    /// start it anew.
    #[error("a fault of nod's own stopped a part of the daemon, so it has ended as a whole")]
    Fault,
}

/// Runs until `stop`. `ready` is called once hooks can connect.
pub async fn run(
    config: Config,
    stop: CancellationToken,
    ready: impl FnOnce(),
) -> Result<(), DaemonError> {
    hardening::apply();
    let membership = config.membership()?;
    let mut config = config;
    if let Some(membership) = &membership {
        config.owner = Some(membership.place().owner.id());
    }
    #[cfg(not(feature = "team"))]
    if membership.is_some() {
        return Err(DaemonError::NoTeam);
    }
    let app = if config.webhook.is_some() || membership.is_some() {
        None
    } else {
        let (id, secret) = config.app()?;
        Some((id.to_owned(), secret.clone()))
    };
    if let Some(file) = &config.exposed_file {
        warn!(
            "other users can read the app's secret: `chmod 600 {}`",
            file.display()
        );
    }
    let _instance = Instance::acquire(&config.state_dir)?;
    let listeners = listeners(&config)?;
    let outbound = Outbound::new(&config.proxies, config.ca_file.as_deref())?;
    let terms = gate::terms(&config, app.as_ref().map(|(_, secret)| secret));
    let door = match config.callback.listen {
        Some(address) => Some(server::bind(address, &terms).await?),
        None => None,
    };
    if config.callback.url.is_some() && door.is_none() {
        warn!("others cannot call this machine: `CALLBACK_LISTEN` is not set");
    }
    let (view, link) = watch::channel(connection::first_view());
    let built = build(config, app.as_ref(), membership, &outbound, terms, link).await?;
    let Built {
        taps,
        codex,
        events,
        standing,
    } = built;
    let (cards, sessions) = (&taps.cards, &taps.chat.sessions);
    courier::restore(cards).await;
    let unsent = restore(&codex.terminals).await;
    let unsent = flood::restore(cards, unsent).await;
    let dialer = app.map(|(app_id, app_secret)| Dialer {
        outbound: outbound.clone(),
        domain: cards.config.domain.clone(),
        app_id,
        app_secret,
        limits: DialLimits::default(),
        clock: taps.gate.their_clock.clone(),
    });
    let mut tasks = Tasks::default();
    tasks.serve(&codex.terminals, &events, &standing, listeners);
    in_the_background(&mut tasks, &codex, sessions);
    let (people, team) = (Arc::clone(&taps.people), standing.team.clone());
    tasks.also(|stop| rivals::look(Arc::clone(cards), team.member().is_some(), stop));
    tasks.also(|stop| names::look(Arc::clone(cards), people, team, stop));
    match (dialer, standing.team.member()) {
        (Some(dialer), _) => tasks.connect(&taps, dialer, view),
        #[cfg(feature = "team")]
        (None, Some(member)) => tasks.join(&taps, member, outbound, view),
        (None, _) => {}
    }
    if let Some(door) = door {
        tasks.open(&taps, &standing, door);
    }
    sessions::restore(sessions).await;
    inbox::restore(&taps.chat, &taps.gate).await;
    dialogs::restore(&codex.dialogs).await;
    for request in unsent {
        if request.origin.hosted {
            sessions::seek(sessions, &request);
        } else {
            courier::resend(cards, &request);
        }
    }
    if !cards.courier.has_receiver() {
        warn!("nobody is set to decide: set `FEISHU_OWNER_ID`; until then the terminal decides");
    }
    info!("ready");
    ready();
    let ended = tasks.run_until(&stop).await;
    info!("stopping");
    tasks.stop(sessions).await;
    ended.map_err(|_| DaemonError::Fault)
}

/// What nobody waits for, and what runs as long as the daemon.
fn in_the_background(tasks: &mut Tasks, codex: &Arc<Codex>, sessions: &Arc<Sessions>) {
    let cards = || Arc::clone(&codex.terminals.cards);
    tasks.also(|stop| courier::run(cards(), stop));
    tasks.also(|stop| endings::run(cards(), stop));
    tasks.also(|stop| run_expiry(Arc::clone(&cards().desk), stop));
    tasks.also(|stop| watching::run(Arc::clone(&codex.terminals), stop));
    tasks.also(|stop| flood::run(cards(), stop));
    tasks.also(|stop| codex::run(Arc::clone(codex), stop));
    tasks.also(|stop| tasks::prune(Arc::clone(sessions), stop));
}

fn listeners(config: &Config) -> Result<Vec<Listening>, DaemonError> {
    let mut listeners = vec![listen(&config.sockets.own, config.sockets.private)?];
    if let Some(old) = &config.sockets.old_clients {
        match listen(old, false) {
            Ok(listening) => listeners.push(listening),
            Err(why) => warn!("old clients are not served at `{}`: {why}", old.display()),
        }
    }
    Ok(listeners)
}

/// What the tasks start from.
struct Built {
    taps: Arc<Taps>,
    codex: Arc<Codex>,
    events: Arc<HookEvents>,
    standing: Arc<Standing>,
}

async fn build(
    config: Config,
    app: Option<&(String, Secret)>,
    membership: Option<Membership>,
    outbound: &Outbound,
    terms: server::DoorTerms,
    link: watch::Receiver<LinkView>,
) -> Result<Built, DaemonError> {
    let clock = Clock::start();
    let store = store(&config, clock)?;
    let their_clock = TheirClock::new(clock);
    let app_id = match (app, &membership) {
        (Some((id, _)), _) => id.clone(),
        (None, Some(membership)) => membership.app_id.clone(),
        (None, None) => String::new(),
    };
    let team = Team::of(membership, &config, &their_clock, &store);
    let journal = Journal::new(store, clock);
    let cards = cards(config, app, &team, outbound, journal, link).await?;
    let gate = Gate::new(cards, outbound, terms, their_clock)?;
    Ok(join(gate, team, app_id))
}

/// Who works with whom.
fn join(gate: Gate, team: Team, app_id: String) -> Built {
    let (cards, their_clock) = (Arc::clone(&gate.cards), gate.their_clock.clone());
    let mailboxes = Arc::new(mailboxes::Mailboxes::default());
    let terminals = Arc::new(Terminals::new(Arc::clone(&cards)));
    let dialogs = Dialogs::new(Arc::clone(&cards), Arc::clone(&mailboxes));
    let dialogs = Arc::new(dialogs);
    let links = Arc::new(codex::CodexLinks::default());
    let sessions = Sessions::new(Arc::clone(&cards), Arc::clone(&links), app_id.clone());
    let sessions = Arc::new(sessions);
    let figures = Arc::new(figures::Figures::default());
    let people = People::new(cards.config.owner.clone(), cards.config.approvers.clone());
    let people = Arc::new(people);
    let decider = Arc::new(Decider {
        terminals: Arc::clone(&terminals),
        figures: Arc::clone(&figures),
    });
    let chat = Arc::new(Chat {
        cards: Arc::clone(&cards),
        people: Arc::clone(&people),
        decider: Arc::clone(&decider),
        sessions: Arc::clone(&sessions),
        codex: Arc::clone(&links),
        mailboxes,
        drafts: Drafts::new(Arc::clone(&cards)),
        files: Noted::default(),
        told: Mutex::default(),
        bot: OnceCell::new(),
        their_clock,
        in_team: team.place().is_some(),
    });
    let events = HookEvents {
        terminals: Arc::clone(&terminals),
        dialogs: Arc::clone(&dialogs),
        turns: turns::Turns::default(),
    };
    let standing = Standing {
        cards: Arc::clone(&cards),
        figures,
        sessions,
        codex: Arc::clone(&links),
        team,
        app_id: app_id.clone(),
        started: cards.now(),
    };
    let taps = Taps {
        recent: answered::Recent::default(),
        freshness: freshness::Freshness::default(),
        cards,
        people,
        decider,
        chat,
        gate: Arc::new(gate),
        app_id,
    };
    let codex = Codex {
        terminals,
        dialogs,
        links,
    };
    Built {
        taps: Arc::new(taps),
        codex: Arc::new(codex),
        events: Arc::new(events),
        standing: Arc::new(standing),
    }
}

fn store(config: &Config, clock: Clock) -> Result<Store, DaemonError> {
    let (store, notice) = Store::open(&config.state_dir, clock.now())?;
    match notice {
        Some(StoreNotice::SetAside(aside)) => {
            warn!("the database was set aside as `{}`", aside.file.display());
        }
        Some(StoreNotice::MemoryOnly(why)) => {
            warn!("nothing is kept over a restart: {why}");
        }
        None => {}
    }
    Ok(store)
}

async fn cards(
    config: Config,
    app: Option<&(String, Secret)>,
    team: &Team,
    outbound: &Outbound,
    journal: Journal,
    link: watch::Receiver<LinkView>,
) -> Result<Arc<Cards>, DaemonError> {
    let store = &journal.store;
    let own_secret = own_secret(store).await;
    let way = way(&config, team, outbound, &own_secret)?;
    let courier = Courier::new(way, &link.borrow(), config.lang);
    let secret = app.map_or(&own_secret, |(_, secret)| secret);
    let machine = Machine {
        id: match team.place() {
            Some(place) => place.machine.clone(),
            None => machine_id(store).await,
        },
        name: machine_name(&config),
        user: config.user.clone(),
    };
    let url = match (team.place(), &config.callback.url) {
        (Some(place), _) => Some(place.url()),
        (None, url) => url.as_ref().map(ToString::to_string),
    };
    let clock = journal.clock;
    let cards = Cards {
        desk: Desk::new(Arc::new(move || clock.now())),
        lock: lock::Lock::restore(store).await,
        proof: proof::CardProof::restore(store, config.domain.base().as_str()).await,
        buttons: Buttons::new(Sealer::new(secret, SealPurpose::Button), machine, url),
        flood: gathered::Flood::default(),
        config: Arc::new(config),
        journal,
        courier,
        link,
    };
    Ok(Arc::new(cards))
}

fn way(
    config: &Config,
    team: &Team,
    outbound: &Outbound,
    own_secret: &Secret,
) -> Result<Way, DaemonError> {
    if let Some(bot) = &config.webhook {
        let webhook = CustomBot::new(outbound, &bot.url, bot.secret.clone(), config.previews)?;
        let links = config.callback.url.as_ref().map(|url| {
            let secret = config.callback.secret.as_ref().unwrap_or(own_secret);
            PageLinks::new(url.clone(), secret)
        });
        return Ok(Way::Webhook(Box::new(webhook), links));
    }
    let api = if let Some(api) = team.api() {
        api
    } else {
        let (id, secret) = config.app()?;
        Api::new(outbound, config.domain.base(), id, secret.clone())?
    };
    let owner = || config.owner.clone().map(Receiver::User);
    let receiver = config.chat.clone().map(Receiver::Chat).or_else(owner);
    let rate = usize::try_from(config.chat_rate).unwrap_or(usize::MAX);
    Ok(Way::App {
        messages: Messages::new(api, rate).with_previews(config.previews),
        receiver,
    })
}

/// A word made once and kept; for this run only when it can't be.
async fn kept(store: &Store, key: &'static str, fresh: String) -> String {
    let made = fresh.clone();
    let kept = store.run(move |db| {
        if let Some(known) = db.meta(key)? {
            return Ok(known);
        }
        db.set_meta(key, &made)?;
        Ok(made)
    });
    kept.await.unwrap_or(fresh)
}

/// What this machine alone knows, for links nobody else has to verify.
async fn own_secret(store: &Store) -> Secret {
    let fresh = format!("{:032x}", rand::random::<u128>());
    Secret::new(kept(store, "own_secret", fresh).await)
}

/// The machine's id, made once and kept.
async fn machine_id(store: &Store) -> MachineId {
    let fresh = format!("{:016x}", rand::random::<u64>());
    let id = kept(store, "machine_id", fresh.clone()).await;
    MachineId::parse(&id)
        .or_else(|_| MachineId::parse(&fresh))
        .expect("sixteen hex digits")
}

/// Goes on where the last daemon stopped: requests wait for their hooks. Returns
/// those whose card may not have been sent; Feishu takes a card that comes twice
/// as one.
async fn restore(terminals: &Arc<Terminals>) -> Vec<Arc<Request>> {
    let cards = &terminals.cards;
    let pending = journal::pending(&cards.journal).await;
    if !pending.is_empty() {
        info!(requests = pending.len(), "taken over from the last run");
    }
    let (mut waiting, mut unsent) = (Vec::new(), Vec::new());
    for (row, request) in pending {
        let request = Arc::new(request);
        courier::take_over(cards, &request, row.card.as_ref());
        if row.card.is_none() {
            unsent.push(Arc::clone(&request));
        }
        if request.origin.hosted {
            let why = Dropped::Restart;
            let settled = Settled {
                request,
                ending: Ending::Dropped { why },
                at: cards.now(),
            };
            courier::close(cards, &settled).await;
            continue;
        }
        let token = TokenHash::from_bytes(row.token_hash.unwrap_or_default());
        waiting.push((request, token));
    }
    let watched = waiting.iter().map(|(request, _)| Arc::clone(request));
    let watched: Vec<_> = watched.collect();
    cards.desk.restore(waiting, [], RETURN_AFTER_RESTART);
    for request in &watched {
        watching::watch(terminals, request);
    }
    unsent
}
