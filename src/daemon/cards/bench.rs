//! Cards for tests: a store in memory, and a Feishu that takes every call, names
//! every message once by its key, refuses what it is told to, and can be looked
//! at afterwards.

use futures::FutureExt as _;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::approvals::Settled;
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
use crate::feishu::error::ApiError;
use crate::feishu::link::Phase;
use crate::feishu::messages::{Messages, Receiver};
use crate::feishu::outbound::{Outbound, OutboundError, Proxies};
use crate::feishu::secret::Secret;
use crate::gateway::seal::{SealPurpose, Sealer};
use crate::ids::{CardKey, MachineId, MessageId, RequestId};
use crate::store::Store;

pub(crate) struct Bench {
    pub(crate) cards: Arc<Cards>,
    pub(crate) view: watch::Sender<LinkView>,
    /// Who carries out what the cards ask for.
    _running: DropGuard,
    feishu: Arc<Mutex<BenchFeishu>>,
    stopped: Mutex<Option<StoppedTime>>,
}

#[derive(Default)]
struct BenchFeishu {
    calls: Vec<ApiCall>,
    /// What it does next, before it takes everything again.
    answers: VecDeque<Answer>,
    /// The messages by the keys they were sent with.
    names: HashMap<String, String>,
}

enum Answer {
    Says(Value),
    Fails(ApiError),
    /// Taken at once, and told when this is; never when it is dropped.
    Held(oneshot::Receiver<()>),
}

impl BenchFeishu {
    /// What it makes of a call, and when it says so.
    fn takes(&mut self, call: ApiCall) -> (Answer, Value) {
        let answer = self.answers.pop_front();
        let is_made = matches!(answer, None | Some(Answer::Held(_)));
        let key = call.body.as_ref().and_then(|body| body["uuid"].as_str());
        let key = key.unwrap_or_default().to_owned();
        self.calls.push(call);
        let new = format!("om_{}", self.calls.len());
        let name = match self.names.get(&key) {
            Some(known) => known.clone(),
            None => new,
        };
        if is_made && !key.is_empty() {
            self.names.insert(key, name.clone());
        }
        let file = format!("file_{}", self.calls.len());
        let data = json!({"message_id": name, "chat_id": "oc_chat", "file_key": file});
        let taken = json!({"code": 0, "data": data});
        (answer.unwrap_or_else(|| Answer::Says(taken.clone())), taken)
    }
}

/// A call that gets no answer.
pub(crate) fn unanswered() -> ApiError {
    let peer = "open.feishu.cn".to_owned();
    ApiError::Network(OutboundError::TimedOut { peer })
}

/// What Feishu says when it refuses, as its code and its words.
pub(crate) fn refusal(code: i64, msg: &str) -> Value {
    json!({"code": code, "msg": msg})
}

/// A layout that it does not take.
pub(crate) fn layout_refused() -> Value {
    refusal(230_099, "Failed to create card content, ErrCode: 200621")
}

/// Time that passes by [`Bench::pass`] alone.
struct StoppedTime {
    _held: mpsc::Sender<()>,
}

impl Drop for StoppedTime {
    fn drop(&mut self) {
        tokio::time::resume();
    }
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
        let url = config.callback.url.as_ref().map(ToString::to_string);
        Self::of(config, "0123456789abcdef", url).await
    }

    /// On the machine of this name, which the others reach there.
    pub(crate) async fn of(config: Config, machine: &str, url: Option<String>) -> Self {
        let store = Store::in_memory().unwrap();
        store
            .run(|db| db.set_meta(crate::store::LOCKED, "no"))
            .await
            .unwrap();
        let machine = MachineId::parse(machine).unwrap();
        Self::over(Arc::new(config), store, Arc::default(), machine, url).await
    }

    /// The next daemon, over the same store and with the same Feishu.
    pub(crate) async fn restarted(self) -> Self {
        let config = Arc::clone(&self.cards.config);
        let url = config.callback.url.as_ref().map(ToString::to_string);
        let machine = self.cards.buttons.machine.id.clone();
        let store = self.cards.journal.store.clone();
        let feishu = Arc::clone(&self.feishu);
        drop(self);
        Self::over(config, store, feishu, machine, url).await
    }

    async fn over(
        config: Arc<Config>,
        store: Store,
        feishu: Arc<Mutex<BenchFeishu>>,
        machine: MachineId,
        url: Option<String>,
    ) -> Self {
        let answering = Arc::clone(&feishu);
        let errands: Errands = Arc::new(move |call, _, _| {
            let (answer, taken) = locked(&answering).takes(call);
            async move {
                let body = match answer {
                    Answer::Says(body) => body,
                    Answer::Fails(why) => return Err(why),
                    Answer::Held(told) => told.await.map(|()| taken).map_err(|_| unanswered())?,
                };
                Ok(ApiReply {
                    status: 200,
                    after: None,
                    log_id: None,
                    file: false,
                    body: body.to_string().into_bytes(),
                })
            }
            .boxed()
        });
        let messages = Messages::new(Api::by_errand("cli_1", errands), 100);
        let receiver = config.owner.clone().map(Receiver::User);
        let way = if config.webhook.is_some() {
            let outbound = Outbound::new(&Proxies::default(), None).unwrap();
            let (team, own) = (Team::default(), Secret::new("a link's secret"));
            crate::daemon::way(&config, &team, &outbound, &own).unwrap()
        } else {
            Way::App { messages, receiver }
        };
        let (view, link) = watch::channel(first_view());
        let courier = Courier::new(way, &link.borrow(), config.lang);
        let clock = Clock::start();
        let machine = Machine {
            id: machine,
            name: "laptop".to_owned(),
            user: "ann".to_owned(),
        };
        let sealer = Sealer::new(&Secret::new("a secret"), SealPurpose::Button);
        let cards = Arc::new(Cards {
            desk: Desk::new(Arc::new(move || clock.now())),
            lock: Lock::restore(&store).await,
            proof: CardProof::restore(&store, "https://open.feishu.cn").await,
            buttons: Buttons::new(sealer, machine, url),
            flood: Flood::default(),
            journal: Journal::new(store, clock),
            config,
            courier,
            link,
        });
        let stop = CancellationToken::new();
        tokio::spawn(courier::run(Arc::clone(&cards), stop.clone()));
        let bench = Self {
            cards,
            view,
            _running: stop.drop_guard(),
            feishu,
            stopped: Mutex::default(),
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
        self.until(|| self.calls().len() > number).await;
        let (_, body) = &self.calls()[number];
        body["content"].as_str().unwrap_or_default().to_owned()
    }

    /// As [`Self::asks`], with its card in Feishu; the message that this is.
    pub(crate) async fn shows(&self, request: Request) -> (Waiting, Arc<Request>, MessageId) {
        let (waiting, request) = self.asks(request);
        self.keep(&waiting, &request).await;
        courier::send_now(&self.cards, &request);
        let message = self.named(&request.id).await;
        (waiting, request, message)
    }

    /// Writes a request down, as the daemon does before it sends a card.
    pub(crate) async fn keep(&self, waiting: &Waiting, request: &Request) {
        let token = waiting.token().unwrap().hash();
        journal::keep(&self.cards.journal, request, token).await;
    }

    /// The message that carries a request's card, once Feishu has named it.
    pub(crate) async fn named(&self, id: &RequestId) -> MessageId {
        let name = || self.cards.courier.message_of(id);
        self.until(|| name().is_some()).await;
        name().unwrap()
    }

    /// Waits until this is so, whether time passes or not.
    pub(crate) async fn until(&self, what: impl Fn() -> bool) {
        let began = std::time::Instant::now();
        while !what() {
            assert!(began.elapsed() < Duration::from_secs(20), "it comes to be");
            self.settled().await;
        }
    }

    /// Lets all go on that needs no time, or no more than a moment.
    pub(crate) async fn settled(&self) {
        for _ in 0..4 {
            if locked(&self.stopped).is_some() {
                // A timer that is due fires with the next millisecond.
                tokio::time::advance(Duration::from_millis(1)).await;
            }
            let written = self.cards.journal.store.run(|_| Ok(()));
            written.await.unwrap();
            for _ in 0..16 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// From now on time passes by [`Self::pass`] alone.
    pub(crate) fn stop_time(&self) {
        tokio::time::pause();
        let (held, over) = mpsc::channel();
        // Time never passes by itself while such a task runs.
        tokio::task::spawn_blocking(move || over.recv());
        *locked(&self.stopped) = Some(StoppedTime { _held: held });
    }

    /// Lets time pass that was stopped, in steps that leave room for what each
    /// brings about.
    pub(crate) async fn pass(&self, span: Duration) {
        assert!(locked(&self.stopped).is_some(), "it passes by itself");
        let end = tokio::time::Instant::now() + span;
        self.settled().await;
        while let Some(left) = end.checked_duration_since(tokio::time::Instant::now()) {
            tokio::time::advance(left.min(Duration::from_millis(100))).await;
            self.settled().await;
        }
    }

    /// As [`Self::pass`], while this is done.
    pub(crate) async fn meanwhile<T>(&self, span: Duration, work: impl Future<Output = T>) -> T {
        tokio::join!(work, self.pass(span)).0
    }

    /// The next request that ended without a claim.
    pub(crate) async fn ended(&self) -> Settled {
        let ended = Mutex::new(None);
        let next = async { *locked(&ended) = Some(self.cards.desk.next_settled().await) };
        tokio::join!(next, self.until(|| locked(&ended).is_some()));
        let ended = locked(&ended).take();
        ended.unwrap()
    }

    /// The next call gets this answer.
    pub(crate) fn answers(&self, answer: Value) {
        locked(&self.feishu).answers.push_back(Answer::Says(answer));
    }

    /// The next call comes to nothing.
    pub(crate) fn fails(&self, why: ApiError) {
        locked(&self.feishu).answers.push_back(Answer::Fails(why));
    }

    /// Feishu takes the next call and says so when it is told to, or never.
    pub(crate) fn holds(&self) -> oneshot::Sender<()> {
        let (told, held) = oneshot::channel();
        locked(&self.feishu).answers.push_back(Answer::Held(held));
        told
    }

    /// What Feishu was asked so far: the path's end, and the body.
    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        let feishu = locked(&self.feishu);
        let told = feishu.calls.iter().map(|call| {
            let path = call.path.join("/");
            (path, call.body.clone().unwrap_or_default())
        });
        told.collect()
    }

    /// The faces that this message was given by edits, in order.
    pub(crate) fn edits_of(&self, message: &MessageId) -> Vec<String> {
        let path = format!("messages/{message}");
        let calls = self.calls().into_iter();
        let edits = calls.filter(|(of, _)| of.ends_with(&path));
        let content = |body: &Value| body["content"].as_str().unwrap_or_default().to_owned();
        edits.map(|(_, body)| content(&body)).collect()
    }

    /// The edits on disk: what each is kept by, its card, and how often it was
    /// made.
    pub(crate) async fn kept(&self) -> Vec<(CardKey, String, u32)> {
        let kept = self.cards.journal.store.run(|db| {
            let cards = db.first_edits(1_000)?.into_iter();
            let all = cards.zip(db.edits()?);
            Ok(all.map(|(it, left)| (it.key, it.card, left.made)).collect())
        });
        kept.await.unwrap()
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
