//! A local Feishu: discovery, the long connection, the Open API calls nod
//! makes, and people who tap and write. It shares only the frame and the ids
//! with the client, so that it can disagree with it. Loopback only.

pub mod bus;
mod control;
mod people;
mod serving;
mod world;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use prost::bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use control::bench::BenchRun;
pub use control::faults::{Armed, Fault, Flaw, FragmentOrder, Fragments};
pub use control::page::address as page_address;
pub use people::click::{Press, Unclickable};
pub use people::person::{Clicked, Unwritable};
pub use serving::answer::{ClickOutcome, popup};
pub use serving::event::ChatText;
pub use serving::line::Connection;
pub use serving::push::Pushed;
pub use serving::registration::{ScanDecision, ScanOffer, ScannerBrand};
pub use serving::webhook::{WEBHOOK_ID, WEBHOOK_SECRET};
pub use world::history::{HistoryEntry, Violation};
pub use world::options::{
    APP_ID, APP_SECRET, App, GROUP, OWNER, Options, SERVICE_ID, STRANGER, TENANT,
};
pub use world::state::messages::HeldMessage;

/// Whether Feishu would take this card in a message, by its documents; the
/// reason why not.
pub fn check_card(card: &Value) -> Result<(), String> {
    let content = Value::String(card.to_string());
    let id = "0".repeat(50);
    let body = serde_json::json!({
        "receive_id": id, "msg_type": "interactive", "content": content, "uuid": id,
    });
    serving::refusals::card_fits(body.to_string().as_bytes()).map_err(|why| why.msg)?;
    world::card::check(card)
        .map(drop)
        .map_err(|bad| bad.to_string())
}

use self::world::core::Core;

const STOP_LIMIT: Duration = Duration::from_secs(3);

/// Where a simulator listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Addresses {
    /// Discovery and the Open API.
    pub feishu: SocketAddr,
    pub socket: SocketAddr,
    pub control: SocketAddr,
}

/// A running local Feishu; it stops when dropped.
#[derive(Debug)]
pub struct Simulator {
    core: Arc<Core>,
    addresses: Addresses,
    token: Option<String>,
}

impl Simulator {
    pub async fn start(options: Options) -> std::io::Result<Self> {
        let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let feishu = bind(options.port).await?;
        let socket = bind(options.socket_port).await?;
        let control = bind(options.control_port).await?;
        let addresses = Addresses {
            feishu: feishu.local_addr()?,
            socket: socket.local_addr()?,
            control: control.local_addr()?,
        };
        let token = options.control_token.clone();
        let advertised = options.advertised_socket_port;
        let socket_port = advertised.unwrap_or(addresses.socket.port());
        let core = Arc::new(Core::new(options, socket_port));
        core.tasks
            .spawn(serving::socket::listen(core.clone(), socket));
        core.tasks.spawn(core.clone().climb());
        for (listener, router) in [
            (feishu, serving::rest::router(core.clone())),
            (
                control,
                control::router(core.clone(), addresses, token.clone()),
            ),
        ] {
            let stop = core.cancel.clone().cancelled_owned();
            core.tasks.spawn(async move {
                axum::serve(listener, router)
                    .with_graceful_shutdown(stop)
                    .await
            });
        }
        Ok(Self {
            core,
            addresses,
            token,
        })
    }

    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// The address of the custom bot, which wants [`WEBHOOK_SECRET`].
    pub fn webhook_url(&self) -> String {
        format!("{}/open-apis/bot/v2/hook/{WEBHOOK_ID}", self.base_url())
    }

    /// What stands in for `https://open.feishu.cn`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addresses.feishu)
    }

    /// The page's address in a language.
    pub fn page(&self, lang: &str) -> String {
        control::page::address(self.addresses.control, lang, self.token.as_deref())
    }

    /// Taps a component of a card and waits for what the person sees.
    pub async fn click(&self, press: Press) -> Result<Clicked, Unclickable> {
        self.core.click(press).await
    }

    /// Pushes any bytes once, as the first app's callback; touches no card.
    pub async fn push_click_raw(&self, payload: impl Into<Bytes>) -> (Pushed, ClickOutcome) {
        self.core.push_raw(0, payload.into()).await
    }

    /// Writes as a person; re-pushed like every event until acknowledged.
    pub async fn push_text(&self, text: &ChatText) -> Result<Pushed, Unwritable> {
        self.core.write(text).await
    }

    /// Pushes a plain event of any type to the first app.
    pub async fn push_event(&self, event_type: &str, event: Value) -> Pushed {
        self.core.emit(0, event_type, event, None).await
    }

    /// Pushes everything that waits on the re-push ladder now.
    pub async fn advance_repush(&self) -> Vec<Pushed> {
        self.core.advance_repush().await
    }

    /// How many events wait on the re-push ladder.
    pub fn unacknowledged(&self) -> usize {
        self.core.ladder().len()
    }

    /// Sets the clock ahead: tokens, uuids and cards age.
    pub fn advance_clock(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.core.advance_clock(ms);
    }

    pub fn set_fault(&self, armed: Armed) -> Result<(), String> {
        self.core.arm(armed)
    }

    pub fn clear_faults(&self) {
        self.core.clear_faults();
    }

    pub fn faults(&self) -> Vec<Armed> {
        self.core.faults()
    }

    /// All messages, oldest first.
    pub fn messages(&self) -> Vec<HeldMessage> {
        self.core.world().messages.all().cloned().collect()
    }

    /// How many messages there are.
    pub fn message_count(&self) -> usize {
        self.core.world().messages.count()
    }

    pub fn message(&self, id: &str) -> Option<HeldMessage> {
        self.core.world().messages.get(id).cloned()
    }

    /// The content of the file a message carries.
    pub fn file(&self, message_id: &str) -> Option<Vec<u8>> {
        let file = self.core.world().file_of(message_id)?;
        Some(file.to_vec())
    }

    pub fn connections(&self) -> Vec<Connection> {
        self.core.lines().all()
    }

    pub fn violations(&self) -> Vec<Violation> {
        self.core.history.violations()
    }

    pub fn clear_violations(&self) {
        self.core.history.clear_violations();
    }

    /// History entries after a number, oldest first.
    pub fn history(&self, after: u64) -> Vec<HistoryEntry> {
        self.core.history.after(after, usize::MAX)
    }

    /// Puts a line of the caller's own into the history, for whoever reads it.
    pub fn note(&self, detail: Value) {
        self.core.record("note", None, || detail);
    }

    /// How many replies arrived so far.
    pub fn replies(&self) -> u64 {
        self.core.pushes().answered
    }

    /// Changes what the console of an app says, while running.
    pub fn edit_app(&self, id: &str, change: impl FnOnce(&mut App)) -> bool {
        let mut world = self.core.world();
        let app = world.apps.iter_mut().find(|app| app.id == id);
        app.map(change).is_some()
    }

    /// The links the registration service handed out, oldest first.
    pub fn registrations(&self) -> Vec<ScanOffer> {
        let now = self.core.now();
        self.core.registrations().all(now)
    }

    /// Scans a link and agrees, or declines.
    pub fn scan(&self, decision: &ScanDecision) -> Result<ScanOffer, String> {
        serving::registration::decide(&self.core, decision)
    }

    /// Waits until `ready` gives something, looking again at every change.
    pub async fn wait_for<T>(
        &self,
        limit: Duration,
        mut ready: impl FnMut(&Self) -> Option<T>,
    ) -> Option<T> {
        self.core.wait(limit, || ready(self)).await
    }

    pub async fn wait_connections(&self, count: usize, limit: Duration) -> bool {
        let ready = |sim: &Self| (sim.connections().len() == count).then_some(());
        self.wait_for(limit, ready).await.is_some()
    }

    /// The messages, once there are at least this many.
    pub async fn wait_messages(&self, count: usize, limit: Duration) -> Option<Vec<HeldMessage>> {
        let ready = |sim: &Self| (sim.message_count() >= count).then(|| sim.messages());
        self.wait_for(limit, ready).await
    }

    /// Pushes prebuilt payloads with a fixed number in flight; `None` without
    /// a connection.
    pub async fn bench_clicks(&self, payloads: &[Bytes], in_flight: usize) -> Option<BenchRun> {
        self.core.bench(0, payloads, in_flight).await
    }

    /// Ends every connection with a close frame and waits for the end.
    pub async fn shutdown(self) {
        self.core.cancel.cancel();
        self.core.tasks.close();
        let _ = tokio::time::timeout(STOP_LIMIT, self.core.tasks.wait()).await;
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.core.cancel.cancel();
    }
}

/// Runs a simulator until cancelled; `ready` hears where it listens.
pub async fn run(
    options: Options,
    cancel: CancellationToken,
    ready: impl FnOnce(Addresses),
) -> std::io::Result<()> {
    let simulator = Simulator::start(options).await?;
    ready(simulator.addresses());
    cancel.cancelled().await;
    simulator.shutdown().await;
    Ok(())
}

fn unhex(text: &str) -> Option<Bytes> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs
        .remainder()
        .is_empty()
        .then(|| pairs.map(|pair| pair[0] * 16 + pair[1]).collect())
}

#[cfg(test)]
mod tests;
