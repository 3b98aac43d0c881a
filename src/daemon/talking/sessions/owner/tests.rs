mod agents;
mod asking;
mod ends;

use super::*;
use crate::agents::codex::chat::{ChatOpening, CodexManner};
use crate::agents::codex::pipe::PipeHeard;
use crate::approvals::choice::Choice;
use crate::approvals::outcome::{Outcome, sample};
use crate::approvals::request::Reach;
use crate::daemon::bench::DaemonBench;
use crate::daemon::deciding::decision;
use crate::daemon::talking::sessions::bench::{PlayedChild, child};
use crate::ids::{MessageId, SessionId};
use crate::sessions::questions::call::QUESTIONS;
use crate::sessions::state::{SessionCommand, SessionLimits};
use crate::store::{Db, KeptSession};
use crate::talk::{
    AgentMessage, AgentRequest, AgentSaid, AgentWants, Began, Exit, How, TextStage, ToolRequest,
    TurnEnd,
};
use crate::wording::task;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A session of a chat in the thread `omt_1`, and the child that it has.
struct Owned {
    bench: DaemonBench,
    number: i64,
    played: PlayedChild<AgentEvent>,
    orders: mpsc::Sender<SessionOrder>,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

/// The owner of a session that was just given the words "go", with this child.
async fn owner(
    bench: &DaemonBench,
    limits: SessionLimits,
    (agent, hand): (Agent, Hand),
) -> (SessionOwner, mpsc::Sender<SessionOrder>) {
    let number = bench.rests("s1", Some("omt_1")).await;
    let sessions = &bench.chat.sessions;
    let (orders, inbox) = mpsc::channel(8);
    let owner = Some(orders.clone());
    let kept = sessions.change(number, |entry| entry.owner = owner);
    let (session, _) = Session::restored(kept.unwrap().saved, limits);
    let voice = Voice::start(sessions, number, None);
    let project = super::super::project(sessions, number).unwrap();
    let mut owner = SessionOwner::new(
        Arc::clone(sessions),
        number,
        (project, agent),
        session,
        inbox,
        voice,
    );
    owner.child = Some((1, hand));
    let go = PersonText {
        uuid: "w-1".to_owned(),
        body: "go".to_owned(),
    };
    let effects = owner.session.on(SessionInput::Text(go), sessions.now());
    for effect in effects {
        if !matches!(effect, Effect::Start { .. }) {
            owner.carry_out(effect).await;
        }
    }
    (owner, orders)
}

impl Owned {
    /// It was just given the words "go".
    async fn new(limits: SessionLimits) -> Self {
        let bench = DaemonBench::new().await;
        let (child, played) = child(64);
        let hand = (Agent::Claude, Hand::claude(child));
        let (owner, orders) = owner(&bench, limits, hand).await;
        let (number, stop) = (owner.number, CancellationToken::new());
        let task = Some(tokio::spawn(owner.run(stop.clone())));
        let mut it = Self {
            bench,
            number,
            played,
            orders,
            stop,
            task,
        };
        assert_eq!(it.played.hears().await["message"]["content"], "go");
        it
    }

    /// Its turn has begun, and its card is there.
    async fn works(limits: SessionLimits) -> Self {
        let it = Self::new(limits).await;
        it.says(AgentSaid::Began(Began::default())).await;
        it.bench.until(|_| it.kept().card.is_some()).await;
        it
    }

    async fn says(&self, said: AgentSaid) {
        self.played.says.send(AgentEvent::Said(said)).await.unwrap();
    }

    async fn ends(&self, exit: Exit) {
        let end = AgentEvent::Ended(exit);
        self.played.says.send(end).await.unwrap();
    }

    /// It asks for leave under this name; the name at the desk.
    async fn asks(&self, name: &str, tool: &str, input: Value) -> RequestId {
        self.says(request(name, tool, input)).await;
        let ask = RequestId::parse(name).unwrap();
        let id = asks::desk_id(self.number, &ask).unwrap();
        let courier = &self.bench.cards.courier;
        let shown = |_: &DaemonBench| courier.message_of(&id).is_some();
        self.bench.until(shown).await;
        id
    }

    async fn orders(&self, order: SessionCommand) {
        let order = SessionOrder::Command(order);
        self.orders.send(order).await.unwrap();
    }

    async fn decides(&self, id: &RequestId, choice: Choice) -> Outcome {
        let decider = &self.bench.taps.decider;
        decision::by_reply(decider, id, choice, sample::by(), None).await
    }

    fn kept(&self) -> KeptSession {
        self.bench.chat.sessions.find(self.number).unwrap().kept
    }

    fn status(&self) -> SessionStatus {
        self.bench.chat.sessions.find(self.number).unwrap().status
    }

    /// What a restart would find.
    async fn on_disk(&self) -> KeptSession {
        let store = &self.bench.cards.journal.store;
        store.run(Db::sessions).await.unwrap().remove(0)
    }

    fn faces(&self) -> Vec<String> {
        faces(&self.bench)
    }

    /// Waits until its card shows this.
    async fn shows(&self, words: &str) {
        let shown = || self.faces().last().is_some_and(|card| card.contains(words));
        self.bench.until(|_| shown()).await;
    }

    /// Waits until this was said in the chat.
    async fn told(&self, notice: &Notice) {
        let text = words::notice(notice, Agent::Claude);
        let said = |bench: &DaemonBench| bench.said().iter().any(|said| *said == text.en);
        self.bench.until(said).await;
    }

    /// Waits until nobody owns it any more.
    async fn sleeps(&mut self) {
        let task = self.task.take().unwrap();
        let over = tokio::time::timeout(Duration::from_secs(20), task).await;
        over.expect("it sleeps").unwrap();
    }
}

/// The faces that cards were given, the newest last.
fn faces(bench: &DaemonBench) -> Vec<String> {
    let calls = bench.bench.calls().into_iter();
    let edits = calls.filter(|(_, body)| body.get("msg_type").is_none());
    let cards = edits.map(|(_, body)| body["content"].as_str().unwrap().to_owned());
    cards.collect()
}

fn request(name: &str, tool: &str, input: Value) -> AgentSaid {
    let tool = ToolRequest {
        tool: tool.to_owned(),
        input,
        agent: None,
        wants_a_person: false,
    };
    AgentSaid::Request(AgentRequest {
        id: name.to_owned(),
        what: AgentWants::Tool(Box::new(tool)),
    })
}

fn ls() -> Value {
    json!({"command": "ls"})
}

fn deny(reason: &str) -> Choice {
    Choice::Deny {
        reason: Some(reason.to_owned()),
        interrupt: false,
    }
}

fn turn_end(how: How, text: &str) -> AgentSaid {
    AgentSaid::TurnEnd(Box::new(TurnEnd {
        how,
        text: Some(text.to_owned()),
        ..TurnEnd::default()
    }))
}

#[tokio::test]
async fn a_turn_is_shown_from_its_beginning_to_its_answer() {
    let mut it = Owned::new(SessionLimits::default()).await;
    let renamed = SessionId::parse("s2").unwrap();
    let began = Began {
        session: Some(renamed.clone()),
        model: Some("opus".to_owned()),
        mode: Some(Mode::Plan),
    };
    it.says(AgentSaid::Began(began)).await;
    it.bench.until(|_| it.kept().card.is_some()).await;
    assert_eq!(it.status(), SessionStatus::Executing);
    let saved = it.on_disk().await.saved;
    assert_eq!(saved.conversation, renamed, "a restart takes up this one");
    assert!(saved.begun && saved.running && saved.mode == Mode::Plan);
    let (uuid, stage) = ("w-1".to_owned(), TextStage::Started);
    it.says(AgentSaid::Text { uuid, stage }).await;
    it.says(AgentSaid::Message(AgentMessage {
        text: "looking".to_owned(),
        ..AgentMessage::default()
    }))
    .await;
    it.says(turn_end(How::Done, "all green")).await;
    it.bench.until(|bench| bench.sent().len() == 2).await;
    assert!(it.bench.sent()[1].to_string().contains("all green"));
    it.shows(&task::DONE.en).await;
    assert_eq!(it.status(), SessionStatus::Idle);
    assert!(!it.on_disk().await.saved.running);
    assert!(it.task.as_ref().is_some_and(|task| !task.is_finished()));
    it.orders
        .send(SessionOrder::Text("more".to_owned()))
        .await
        .unwrap();
    let more = it.played.hears().await;
    assert_eq!(more["message"]["content"], "more", "the same child");
}

#[tokio::test]
async fn what_it_said_is_found_under_the_name_its_agent_gave_it() {
    let it = Owned::works(SessionLimits::default()).await;
    let renamed = SessionId::parse("s2").unwrap();
    it.says(AgentSaid::Began(Began {
        session: Some(renamed.clone()),
        ..Began::default()
    }))
    .await;
    it.bench
        .until(|_| it.kept().saved.conversation == renamed)
        .await;
    it.says(turn_end(How::Done, "")).await;
    it.shows(&task::DONE.en).await;
    let card = MessageId::parse("om_1").unwrap();
    let anchor = MessageId::parse("om_s1").unwrap();
    let store = &it.bench.cards.journal.store;
    for message in [card, anchor] {
        let about = store.run(move |db| db.notice(&message)).await.unwrap();
        assert_eq!(about.unwrap().session, renamed);
    }
    assert_eq!(it.bench.sent().len(), 1, "an empty answer is none");
}

#[tokio::test]
async fn effects_for_an_earlier_child_reach_nobody() {
    let bench = DaemonBench::new().await;
    let (wire, mut played) = child(64);
    let hand = (Agent::Claude, Hand::claude(wire));
    let (mut owner, _orders) = owner(&bench, SessionLimits::default(), hand).await;
    let say = crate::talk::Say::Interrupt {
        request: "old".to_owned(),
    };
    owner.carry_out(Effect::Write { child: 0, say }).await;
    owner.carry_out(Effect::Close { child: 0 }).await;
    let moment = Duration::from_millis(20);
    let silent = tokio::time::timeout(moment, next(&mut owner.child)).await;
    assert!(silent.is_err());
    assert_eq!(played.hears().await["message"]["content"], "go");
    assert!(played.told.is_empty() && !played.stop.is_cancelled());
    let mut none = None;
    let silent = tokio::time::timeout(moment, next(&mut none)).await;
    assert!(silent.is_err(), "no child says nothing");
}
