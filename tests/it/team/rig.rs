//! A team: a local Feishu, a bus, gateways and machines, each a process of its
//! own. The bus is nod's small one, or the NATS server that
//! `NOD_TEST_NATS_SERVER` names.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nod::for_tests::bus::conf;
use nod::for_tests::bus::keys::Keys;
use nod::for_tests::bus::line::{self, BusHeard, BusLine, BusLineState, BusUser, LineTurns};
use nod::for_tests::bus::lobby::Invited;
use nod::for_tests::bus::membership::{self, Grant};
use nod::for_tests::bus::nkey::{KeyKind, KeyPair};
use nod::for_tests::bus::pass::{self, Span};
use nod::for_tests::bus::subjects::{MachinePlace, Owner};
use nod::for_tests::bus::url::BusUrl;
use nod::for_tests::clock::{self, Clock};
use nod::for_tests::feishu::outbound::{Outbound, Proxies};
use nod::for_tests::hook::client;
use nod::for_tests::hook::wire::DaemonOrder;
use nod::for_tests::simulator::bus::Bus;
use nod::for_tests::simulator::{APP_ID, APP_SECRET, GROUP, Simulator};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::gateway::rig::{LIMIT, Machine, feishu, free};
use crate::support::{is_connected, until};

pub(super) const HOUR: i64 = 3_600;

pub(super) fn seconds() -> i64 {
    clock::wall_ms() / 1_000
}

/// The server that everybody meets at.
pub(super) enum Broker {
    Small(Bus),
    Real(Child),
    Gone,
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Self::Real(child) = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(super) struct Meeting {
    pub(super) keys: Keys,
    pub(super) at: SocketAddr,
    pub(super) broker: Broker,
    /// What the small server kept of its account.
    word: Option<String>,
    dir: TempDir,
}

impl Meeting {
    pub(super) async fn start() -> Self {
        let mut meeting = Self {
            keys: Keys::make(rand::random),
            at: free([127, 0, 0, 1]),
            broker: Broker::Gone,
            word: None,
            dir: tempfile::tempdir().unwrap(),
        };
        meeting.again().await;
        meeting
    }

    pub(super) fn url(&self) -> BusUrl {
        BusUrl::parse(&format!("nats://{}", self.at)).unwrap()
    }

    /// The server comes back where it was.
    pub(super) async fn again(&mut self) {
        let own = self.keys.own.as_ref().unwrap();
        if let Some(program) = std::env::var_os("NOD_TEST_NATS_SERVER") {
            let conf = self.dir.path().join("nats.conf");
            let words = self.dir.path().join("accounts");
            let text = conf::text(&self.keys, &self.url(), None, &words, seconds()).unwrap();
            std::fs::write(&conf, text).unwrap();
            let child = Command::new(program)
                .arg("-c")
                .arg(&conf)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(std::fs::File::create(self.dir.path().join("log")).unwrap())
                .spawn()
                .unwrap();
            self.broker = Broker::Real(child);
            let at = self.at;
            until("the server listens", || async move {
                tokio::net::TcpStream::connect(at).await.ok().map(drop)
            })
            .await;
            return;
        }
        let [operator, system] = [&own.operator, &own.system].map(|pair| pair.public().to_string());
        // A server keeps the last word for its account over a restart.
        let account = match &self.word {
            Some(word) => word.clone(),
            None => self.keys.account_word(&[], seconds()).unwrap(),
        };
        let at = self.at;
        let bus = until("the address is free", || async {
            Bus::start(at, &operator, &system, &account).await.ok()
        });
        self.broker = Broker::Small(bus.await);
    }

    /// The server dies.
    pub(super) fn gone(&mut self) {
        self.word = self.small().map(Bus::account);
        self.broker = Broker::Gone;
    }

    /// The server dies, and what it kept of its account with it.
    pub(super) fn lost(&mut self) {
        self.broker = Broker::Gone;
        self.word = None;
        let _ = std::fs::remove_dir_all(self.dir.path().join("accounts"));
    }

    /// nod's own bus, for tests that make it hostile.
    pub(super) fn small(&self) -> Option<&Bus> {
        match &self.broker {
            Broker::Small(bus) => Some(bus),
            Broker::Real(_) | Broker::Gone => None,
        }
    }

    /// A machine's pass, made by whoever holds `signer`.
    pub(super) fn pass(&self, signer: &KeyPair, owner: &str, key: &KeyPair, until: i64) -> String {
        self.old_pass(signer, owner, key, (seconds() - 1, until))
    }

    fn old_pass(
        &self,
        signer: &KeyPair,
        owner: &str,
        key: &KeyPair,
        (made, until): (i64, i64),
    ) -> String {
        let span = Span { made, until };
        let owner = Owner::parse(owner).unwrap();
        pass::machine(signer, &self.keys.account, &owner, &key.public(), span)
    }

    /// A machine that is only its line, for what no nod would do.
    pub(super) fn member(&self, owner: &str) -> Member {
        self.member_by(owner, self.url(), straight())
    }

    /// The same, by this way to the bus.
    pub(super) fn member_by(&self, owner: &str, url: BusUrl, way: Outbound) -> Member {
        let key = KeyPair::of(KeyKind::User, rand::random());
        let pass = self.pass(&self.keys.machines, owner, &key, seconds() + HOUR);
        let place = MachinePlace::of(Owner::parse(owner).unwrap(), &key.public());
        let inbox = place.inbox();
        let hears = [
            place.hears(nod::for_tests::bus::subjects::ToMachine::Tap),
            place.hears(nod::for_tests::bus::subjects::ToMachine::Take),
            nod::for_tests::bus::subjects::of_owner(&place.owner),
        ];
        line((url, way), (key, pass), &inbox, &hears, Some(place))
    }

    /// Whoever asks to join, and is only its line.
    pub(super) fn in_lobby(&self, invited: Invited, hears: &str) -> Member {
        let inbox = nod::for_tests::bus::subjects::lobby_inbox(&invited.lobby.ticket);
        let way = (self.url(), straight());
        let hears = [hears.to_owned()];
        line(way, (invited.key, invited.pass), &inbox, &hears, None)
    }

    /// A gateway that is only its line.
    pub(super) fn gateway(&self) -> Member {
        let key = KeyPair::of(KeyKind::User, rand::random());
        let span = Span {
            made: seconds() - 1,
            until: seconds() + HOUR,
        };
        let pass = pass::gateway(&self.keys.gateways, &self.keys.account, &key.public(), span);
        let hears = ["nod1.g.*.*.call".to_owned()];
        let way = (self.url(), straight());
        line(way, (key, pass), "_IN.gw", &hears, None)
    }
}

/// With no proxy, and no CA of one's own.
pub(super) fn straight() -> Outbound {
    Outbound::new(&Proxies::default(), None).unwrap()
}

fn line(
    (url, outbound): (BusUrl, Outbound),
    (key, pass): (KeyPair, String),
    inbox: &str,
    subjects: &[String],
    place: Option<MachinePlace>,
) -> Member {
    let (line, stop) = (BusLine::new(inbox), CancellationToken::new());
    let (kept, passes) = watch::channel(pass.clone());
    let key = Arc::new(key);
    let membership = BusUser {
        url,
        key: Arc::clone(&key),
        pass: passes,
        hears: subjects.to_vec(),
        turns: LineTurns::none(),
    };
    let (sender, heard) = mpsc::unbounded_channel();
    let handler = move |message: BusHeard| {
        let sender = sender.clone();
        async move {
            let _ = sender.send(message);
        }
    };
    tokio::spawn(line::run(
        line.clone(),
        membership,
        outbound,
        Clock::start(),
        handler,
        stop.clone(),
    ));
    Member {
        line,
        key,
        pass,
        place,
        heard,
        passes: kept,
        _stop: stop.drop_guard(),
    }
}

/// One end of the bus in the test's own hands.
pub(super) struct Member {
    pub(super) line: BusLine,
    pub(super) key: Arc<KeyPair>,
    pub(super) pass: String,
    pub(super) place: Option<MachinePlace>,
    pub(super) heard: mpsc::UnboundedReceiver<BusHeard>,
    pub(super) passes: watch::Sender<String>,
    _stop: DropGuard,
}

impl Member {
    pub(super) async fn up(&self) {
        let mut state = self.line.state();
        let up = state.wait_for(|state| matches!(state, BusLineState::Up { .. }));
        tokio::time::timeout(LIMIT, up)
            .await
            .expect("in time")
            .unwrap();
    }

    pub(super) fn place(&self) -> &MachinePlace {
        self.place.as_ref().unwrap()
    }
}

/// A team with its Feishu.
pub(super) struct Team {
    pub(super) feishu: Simulator,
    pub(super) meeting: Meeting,
}

impl Team {
    pub(super) async fn start() -> Self {
        Self::at(feishu().await).await
    }

    /// A team of this Feishu.
    pub(super) async fn at(feishu: Simulator) -> Self {
        Self {
            feishu,
            meeting: Meeting::start().await,
        }
    }

    pub(super) fn gateway(&self) -> Machine {
        self.gateway_with(&[])
    }

    pub(super) fn gateway_with(&self, more: &[(&str, &str)]) -> Machine {
        self.gateway_in(tempfile::tempdir().unwrap(), more)
    }

    /// A gateway in a home that may have been made ready.
    pub(super) fn gateway_in(&self, dir: TempDir, more: &[(&str, &str)]) -> Machine {
        let keys = dir.path().join("bus.keys");
        private(&keys, self.meeting.keys.text().expose());
        let settings = [
            ("FEISHU_APP_ID", APP_ID),
            ("FEISHU_APP_SECRET", APP_SECRET),
            ("FEISHU_DOMAIN", &self.feishu.base_url()),
            ("NOD_BUS_URL", &self.meeting.url().to_string()),
            ("NOD_BUS_KEYS", &keys.to_string_lossy()),
            ("NOD_GATEWAY_CHATS", GROUP),
            ("NOD_CHAT_RATE", "1000"),
        ];
        Machine::run("gateway", dir, &[&settings, more].concat())
    }

    /// A machine of this owner; it knows no app's secret and no Feishu.
    pub(super) fn machine(&self, owner: &str) -> Machine {
        self.machine_with(owner, &[])
    }

    pub(super) fn machine_with(&self, owner: &str, more: &[(&str, &str)]) -> Machine {
        self.machine_since(owner, seconds() - 1, more)
    }

    /// A machine whose pass was made then.
    pub(super) fn machine_since(&self, owner: &str, made: i64, more: &[(&str, &str)]) -> Machine {
        member_machine(&self.membership(owner, made), more)
    }

    /// A machine that reaches the bus by an address of its own.
    pub(super) fn machine_by(&self, owner: &str, url: &str) -> Machine {
        member_machine(&self.membership_by(owner, seconds() - 1, url), &[])
    }

    /// What a machine of this owner keeps in its file.
    pub(super) fn membership(&self, owner: &str, made: i64) -> String {
        self.membership_by(owner, made, &self.meeting.url().to_string())
    }

    fn membership_by(&self, owner: &str, made: i64, url: &str) -> String {
        let meeting = &self.meeting;
        let key = KeyPair::of(KeyKind::User, rand::random());
        let grant = Grant {
            url: url.to_owned(),
            pass: meeting.old_pass(
                &meeting.keys.machines,
                owner,
                &key,
                (made, seconds() + HOUR),
            ),
            push: vec![meeting.keys.push.public().to_string()],
            app_id: APP_ID.to_owned(),
        };
        let member = membership::Membership::of(&grant, key).unwrap();
        member.text().expose().to_owned()
    }
}

fn member_machine(membership: &str, more: &[(&str, &str)]) -> Machine {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    nod::for_tests::files::make_dirs(&state, 0o700).unwrap();
    private(&state.join("bus.pass"), membership);
    let rate = [("NOD_CHAT_RATE", "1000")];
    Machine::run("daemon", dir, &[&rate, more].concat())
}

pub(super) fn private(file: &Path, text: &str) {
    nod::for_tests::files::replace_private(file, text.as_bytes()).unwrap();
}

/// Waits until a machine says that it is connected.
pub(super) async fn connected(machine: &Machine) {
    let what = "the machine is connected";
    let waited = async {
        loop {
            let status = status(machine).await;
            if status.as_ref().is_some_and(is_connected) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(LIMIT / 4, waited).await.is_ok();
    assert!(in_time, "{what}, not in time:\n{}", machine.log());
}

/// Waits until a gateway does what machines ask for.
pub(super) async fn serves(gateway: &Machine) {
    until("the gateway takes its turn on the bus", || async {
        let log = gateway.log();
        let words = ["connected to the bus", "takes its turn"];
        words.iter().all(|word| log.contains(word)).then_some(())
    })
    .await;
}

/// Waits until a machine that slept has left the line that it slept on.
pub(super) async fn woke(machine: &Machine) {
    until("the machine has a new line", || async {
        let log = machine.log();
        let (_, since) = log.rsplit_once("this machine slept")?;
        since.contains("connected to the bus").then_some(())
    })
    .await;
}

pub(super) const SOON: Duration = Duration::from_secs(1);

/// What a machine says of itself.
pub(super) async fn status(machine: &Machine) -> Option<serde_json::Value> {
    let socket = machine.socket();
    let asking = spawn_blocking(move || client::order(&socket, DaemonOrder::Status, LIMIT));
    asking.await.unwrap().ok()
}
