//! Cards for tests: a store in memory, and a Feishu that takes every call, names
//! every message and can be looked at afterwards.

use futures::FutureExt as _;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::approvals::desk::{Desk, Waiting};
use crate::approvals::request::Request;
use crate::clock::Clock;
use crate::config::{Config, Sources};
use crate::daemon::cards::courier::{self, Cards, Courier, Way};
use crate::daemon::known::buttons::Buttons;
use crate::daemon::known::gathered::Flood;
use crate::daemon::known::journal::{self, Journal};
use crate::daemon::known::lock::Lock;
use crate::daemon::known::machine::Machine;
use crate::daemon::known::proof::CardProof;
use crate::daemon::machines::team::Team;
use crate::feishu::api::exchange::{ApiCall, ApiReply};
use crate::feishu::api::{Api, Errands};
use crate::feishu::connection::{LinkView, first_view};
use crate::feishu::link::Phase;
use crate::feishu::messages::{Messages, Receiver};
use crate::feishu::outbound::{Outbound, Proxies};
use crate::feishu::secret::Secret;
use crate::gateway::seal::{SealPurpose, Sealer};
use crate::ids::{MachineId, MessageId};
use crate::store::Store;

pub(crate) struct Bench {
    pub(crate) cards: Arc<Cards>,
    pub(crate) view: watch::Sender<LinkView>,
    /// Who carries out what the cards ask for.
    _running: DropGuard,
    calls: Arc<Mutex<Vec<ApiCall>>>,
    /// What Feishu answers next, before it takes everything again.
    answers: Arc<Mutex<VecDeque<Value>>>,
}

/// Settings of a machine with an owner.
pub(crate) fn config(more: &[(&str, &str)]) -> Config {
    let mut all = vec![("FEISHU_OWNER_ID", "ou_owner"), ("NOD_LANG", "en")];
    all.extend(more);
    Config::read(&Sources::of(&all)).0
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(config(&[])).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let calls = Arc::<Mutex<Vec<ApiCall>>>::default();
        let answers = Arc::<Mutex<VecDeque<Value>>>::default();
        let (asked, answering) = (Arc::clone(&calls), Arc::clone(&answers));
        let errands: Errands = Arc::new(move |call, _, _| {
            let mut calls = asked.lock().unwrap_or_else(PoisonError::into_inner);
            calls.push(call);
            let data = json!({"message_id": format!("om_{}", calls.len()), "chat_id": "oc_chat"});
            let mut answers = answering.lock().unwrap_or_else(PoisonError::into_inner);
            let body = answers.pop_front();
            let body = body.unwrap_or_else(|| json!({"code": 0, "data": data}));
            let body = body.to_string().into_bytes();
            let reply = ApiReply {
                status: 200,
                after: None,
                log_id: None,
                file: false,
                body,
            };
            async move { Ok(reply) }.boxed()
        });
        let messages = Messages::new(Api::by_errand("cli_1", errands), 100);
        let receiver = config.owner.clone().map(Receiver::User);
        let way = if config.webhook.is_some() {
            let outbound = Outbound::new(&Proxies::default(), None).unwrap();
            let (team, own) = (Team::default(), Secret::new("a link's secret"));
            crate::daemon::way(&config, None, &team, &outbound, &own).unwrap()
        } else {
            Way::App { messages, receiver }
        };
        let (view, link) = watch::channel(first_view());
        let courier = Courier::new(way, &link.borrow(), config.lang);
        let (clock, store) = (Clock::start(), Store::in_memory().unwrap());
        store
            .run(|db| db.set_meta(crate::store::LOCKED, "no"))
            .await
            .unwrap();
        let machine = Machine {
            id: MachineId::parse("0123456789abcdef").unwrap(),
            name: "laptop".to_owned(),
            user: "ann".to_owned(),
        };
        let sealer = Sealer::new(&Secret::new("a secret"), SealPurpose::Button);
        let cards = Arc::new(Cards {
            desk: Desk::new(Arc::new(move || clock.now())),
            lock: Lock::restore(&store).await,
            proof: CardProof::restore(&store, "https://open.feishu.cn").await,
            buttons: Buttons::new(sealer, machine, None),
            flood: Flood::default(),
            journal: Journal::new(store, clock),
            config: Arc::new(config),
            courier,
            link,
        });
        let stop = CancellationToken::new();
        tokio::spawn(courier::run(Arc::clone(&cards), stop.clone()));
        let bench = Self {
            cards,
            view,
            _running: stop.drop_guard(),
            calls,
            answers,
        };
        bench.connected();
        bench
    }

    pub(crate) fn connected(&self) {
        let since = std::time::Instant::now();
        self.view.send_modify(|view| {
            view.phase = Phase::Up { since };
            view.counts.connects += 1;
        });
    }

    /// A request that waits at the desk from now on.
    pub(crate) fn asks(&self, mut request: Request) -> (Waiting, Arc<Request>) {
        request.asked_at = self.cards.now();
        request.deadline = request.asked_at + 60_000;
        let id = request.id.clone();
        let waiting = self.cards.desk.register(request).unwrap();
        let request = self.cards.desk.find(&id).unwrap();
        (waiting, request)
    }

    /// The content of the call of this number, once it is made.
    pub(crate) async fn call(&self, number: usize) -> String {
        loop {
            if let Some((_, body)) = self.calls().get(number) {
                return body["content"].as_str().unwrap_or_default().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// As [`Self::asks`], with its card in Feishu; the message that this is.
    pub(crate) async fn shows(&self, request: Request) -> (Waiting, Arc<Request>, MessageId) {
        let (waiting, request) = self.asks(request);
        let token = waiting.token().unwrap().hash();
        journal::keep(&self.cards.journal, &request, token).await;
        courier::send_now(&self.cards, &request);
        loop {
            if let Some(message) = self.cards.courier.message_of(&request.id) {
                return (waiting, request, message);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The next call gets this answer.
    pub(crate) fn answers(&self, answer: Value) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.push_back(answer);
    }

    /// What Feishu was asked so far: the path's end, and the body.
    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let told = calls.iter().map(|call| {
            let path = call.path.join("/");
            (path, call.body.clone().unwrap_or_default())
        });
        told.collect()
    }
}
