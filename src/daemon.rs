//! The daemon: builds the parts, starts the tasks, stops them in order. Only
//! here does everything meet.

pub mod instance;
pub mod metrics;
pub mod notify;

mod chat;
mod clicks;
mod courier;
mod dispatch;
mod figures;
mod flood;
mod freshness;
mod hardening;
mod intake;
mod journal;
mod lock;
mod machine;
mod notices;
mod parts;
mod recent;
mod rivals;
mod status;
mod strangers;
mod turns;
mod undo;
mod verdict;

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::courier::{Courier, Edits};
use self::parts::{Machine, Parts};
use crate::approvals::desk::Desk;
use crate::approvals::desk::expiry::run_expiry;
use crate::approvals::request::Request;
use crate::approvals::token::TokenHash;
use crate::clock::Clock;
use crate::config::{Config, Problems};
use crate::feishu::api::Api;
use crate::feishu::connection::{self, View, Wiring};
use crate::feishu::endpoint::{DialLimits, Dialer};
use crate::feishu::error::ApiError;
use crate::feishu::messages::{Messages, Receiver};
use crate::feishu::outbound::{Outbound, OutboundError};
use crate::gateway::seal::Sealer;
use crate::hook::listen::{ListenError, Listening, listen};
use crate::hook::server::{Intake, Limits, serve};
use crate::hook::wire::Order;
use crate::ids::MachineId;
use crate::store::{Notice, Store, StoreError};
use crate::wording::Toast;
use instance::{Instance, InstanceError};

/// How long a hook may take to come back after a restart.
const COMEBACK: Duration = Duration::from_secs(30);
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);
const STOP_WITHIN: Duration = Duration::from_secs(3);

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
    Api(#[from] ApiError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Runs until `stop`. `ready` is called once hooks can connect.
pub async fn run(
    config: Config,
    stop: CancellationToken,
    ready: impl FnOnce(),
) -> Result<(), DaemonError> {
    hardening::apply();
    let (app_id, app_secret) = config.app()?;
    let (app_id, app_secret) = (app_id.to_owned(), app_secret.clone());
    if let Some(file) = &config.exposed_file {
        warn!(
            "other users can read the app's secret: `chmod 600 {}`",
            file.display()
        );
    }
    let _instance = Instance::acquire(&config.state_dir)?;
    let listeners = listeners(&config)?;
    let outbound = Outbound::new(&config.proxies, config.ca_file.as_deref())?;
    let api = Api::new(&outbound, config.domain.base(), &app_id, app_secret.clone())?;
    let (view, link) = watch::channel(connection::first_view());
    let (parts, edits) = build(config, app_id, api, &app_secret, link).await?;
    let unsent = restore(&parts).await;
    let dialer = Dialer {
        outbound,
        domain: parts.config.domain.clone(),
        app_id: parts.app_id.clone(),
        app_secret,
        limits: DialLimits::default(),
    };
    let tasks = Tasks::start(&parts, edits, listeners, dialer, view);
    for request in unsent {
        tokio::spawn(courier::send_now(Arc::clone(&parts), request));
    }
    if parts.courier.receiver().is_none() {
        warn!("nobody is set to decide: set `FEISHU_OWNER_ID`; until then the terminal decides");
    }
    info!("ready");
    ready();
    stop.cancelled().await;
    info!("stopping");
    tasks.stop(&parts).await;
    Ok(())
}

fn listeners(config: &Config) -> Result<Vec<Listening>, DaemonError> {
    let mut listeners = vec![listen(&config.sockets.own, config.sockets.private)?];
    if let Some(old) = &config.sockets.old_clients {
        match listen(old, false) {
            Ok(listening) => listeners.push(listening),
            Err(why) => warn!("old clients are not served: {why}"),
        }
    }
    Ok(listeners)
}

async fn build(
    config: Config,
    app_id: String,
    api: Api,
    app_secret: &crate::feishu::secret::Secret,
    link: watch::Receiver<View>,
) -> Result<(Arc<Parts>, Edits), DaemonError> {
    let clock = Clock::start();
    let (store, notice) = Store::open(&config.state_dir, clock.now())?;
    match notice {
        Some(Notice::SetAside(aside)) => {
            warn!("the database was set aside as `{}`", aside.file.display());
        }
        Some(Notice::MemoryOnly(why)) => {
            warn!("nothing is kept over a restart: {why}");
        }
        None => {}
    }
    let receiver = config
        .chat
        .clone()
        .map(Receiver::Chat)
        .or_else(|| config.owner.clone().map(Receiver::User));
    let rate = usize::try_from(config.chat_rate).unwrap_or(usize::MAX);
    let (courier, edits) = Courier::new(Messages::new(api, rate), receiver);
    let machine = Machine {
        id: machine_id(&store).await,
        name: machine::host_name(),
        user: config.user.clone(),
    };
    let parts = Parts {
        desk: Desk::new(Arc::new(move || clock.now())),
        sealer: Sealer::new(app_secret),
        lock: lock::Lock::restore(&store).await,
        flood: flood::Flood::default(),
        recent: recent::Recent::default(),
        freshness: freshness::Freshness::default(),
        strangers: strangers::Strangers::default(),
        turns: turns::Turns::default(),
        figures: figures::Figures::default(),
        started: clock.now(),
        config,
        app_id,
        clock,
        machine,
        store,
        courier,
        link,
    };
    Ok((Arc::new(parts), edits))
}

/// The machine's id, made once and kept.
async fn machine_id(store: &Store) -> MachineId {
    let fresh = format!("{:016x}", rand::random::<u64>());
    let made = fresh.clone();
    let kept = store.run(move |db| {
        if let Some(known) = db.meta("machine_id")? {
            return Ok(known);
        }
        db.set_meta("machine_id", &made)?;
        Ok(made)
    });
    let id = kept.await.unwrap_or_else(|_| fresh.clone());
    MachineId::parse(&id)
        .or_else(|_| MachineId::parse(&fresh))
        .expect("sixteen hex digits")
}

/// Goes on where the last daemon stopped: requests wait for their hooks, cards
/// for their edits. Returns the requests whose card may not have been sent;
/// Feishu takes a card that comes twice as one.
async fn restore(parts: &Arc<Parts>) -> Vec<Arc<Request>> {
    let pending = journal::pending(parts).await;
    if !pending.is_empty() {
        info!(requests = pending.len(), "taken over from the last run");
    }
    let (mut waiting, mut unsent) = (Vec::new(), Vec::new());
    for (row, request) in pending {
        let request = Arc::new(request);
        parts.courier.restore(&request.id, row.card.as_ref());
        if row.card.is_none() {
            unsent.push(Arc::clone(&request));
        }
        let token = TokenHash::from_bytes(row.token_hash.unwrap_or_default());
        waiting.push((request, token));
    }
    parts.desk.restore(waiting, [], COMEBACK);
    match parts.store.run(crate::store::Db::edits).await {
        Ok(edits) => {
            for edit in edits {
                if let Ok(card) = serde_json::from_str(&edit.card) {
                    let version = Some(edit.version);
                    parts
                        .courier
                        .edit(edit.message, card, version, Duration::ZERO);
                }
            }
        }
        Err(why) => warn!("cards left uncorrected cannot be found: {why}"),
    }
    unsent
}

/// The running tasks, each stopped by its own token so that the order holds.
struct Tasks {
    sockets: CancellationToken,
    feishu: CancellationToken,
    rest: CancellationToken,
    serving: JoinSet<()>,
    connected: JoinSet<()>,
    others: JoinSet<()>,
}

impl Tasks {
    fn start(
        parts: &Arc<Parts>,
        edits: Edits,
        listeners: Vec<Listening>,
        dialer: Dialer,
        view: watch::Sender<View>,
    ) -> Self {
        let mut tasks = Self {
            sockets: CancellationToken::new(),
            feishu: CancellationToken::new(),
            rest: CancellationToken::new(),
            serving: JoinSet::new(),
            connected: JoinSet::new(),
            others: JoinSet::new(),
        };
        tasks.connect(parts, dialer, view);
        tasks.serve(parts, listeners);
        let rest = &tasks.rest;
        tasks
            .others
            .spawn(courier::run_edits(Arc::clone(parts), edits, rest.clone()));
        tasks
            .others
            .spawn(courier::run_endings(Arc::clone(parts), rest.clone()));
        tasks
            .others
            .spawn(run_expiry(Arc::clone(&parts.desk), rest.clone()));
        tasks.others.spawn(prune(Arc::clone(parts), rest.clone()));
        tasks
            .others
            .spawn(rivals::look(Arc::clone(parts), rest.clone()));
        tasks
    }

    fn connect(&mut self, parts: &Arc<Parts>, dialer: Dialer, view: watch::Sender<View>) {
        let lang = parts.config.lang;
        let shared = Arc::clone(parts);
        let wiring = Wiring {
            handler: move |delivery| dispatch::answer(Arc::clone(&shared), delivery),
            hot: parts.desk.hot(),
            view,
            overdue_answer: dispatch::bare(&Toast::Processing, lang),
            failed_answer: dispatch::bare(&Toast::Invalid, lang),
            stop: self.feishu.clone(),
        };
        self.connected.spawn(connection::run(dialer, wiring));
    }

    fn serve(&mut self, parts: &Arc<Parts>, listeners: Vec<Listening>) {
        for listening in listeners {
            let (registers, notes, states) =
                (Arc::clone(parts), Arc::clone(parts), Arc::clone(parts));
            let intake = Intake {
                register: move |registration, peer| {
                    intake::register(Arc::clone(&registers), registration, peer)
                },
                notify: move |notice, _| {
                    let answer = notices::take(&notes, &notice);
                    async move { answer }
                },
                order: move |order| obey(Arc::clone(&states), order),
            };
            self.serving.spawn(serve(
                listening,
                Arc::new(intake),
                Limits::default(),
                self.sockets.clone(),
            ));
        }
    }

    /// Hooks first, which come back to the next daemon; then Feishu, with its
    /// goodbye; then the card corrections under way.
    async fn stop(mut self, parts: &Parts) {
        parts.desk.detach_all(COMEBACK);
        self.sockets.cancel();
        drain(&mut self.serving).await;
        self.feishu.cancel();
        drain(&mut self.connected).await;
        self.rest.cancel();
        drain(&mut self.others).await;
        parts.store.clone().close().await;
    }
}

/// What a person's command on this machine asks for; the answer is how nod is
/// afterwards.
async fn obey(parts: Arc<Parts>, order: Order) -> serde_json::Value {
    match order {
        Order::Status => {}
        Order::Lock => lock::set(&parts, true, None).await,
        Order::Unlock => lock::set(&parts, false, None).await,
    }
    status::report(&parts)
}

async fn drain(tasks: &mut JoinSet<()>) {
    let all = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_WITHIN, all).await.is_err() {
        tasks.abort_all();
    }
}

async fn prune(parts: Arc<Parts>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PRUNE_EVERY) => {}
        }
        let now = parts.now();
        if let Err(why) = parts.store.run(move |db| db.prune(now)).await {
            warn!("old records were not removed: {why}");
        }
    }
}
