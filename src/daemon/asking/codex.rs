//! Codex beside its terminal: one task for each of its homes follows the daemon
//! there, however often that one comes and goes. What it asks stands at the
//! desk like a hook's request; whoever answers first decides.

mod asks;
#[cfg(test)]
mod bench;
mod links;
mod notices;
mod register;

use futures::{SinkExt as _, StreamExt as _};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::agents::codex::act::{CodexAct, Doing};
use crate::agents::codex::ask::NAMES;
use crate::agents::codex::follow::Follower;
use crate::agents::codex::link::{self, CodexDialError, CodexSocket};
use crate::clock::until;
use crate::daemon::asking::dialogs::Dialogs;
use crate::daemon::terminals::watching::Terminals;
use crate::ids::MessageId;
use crate::store::Store;
pub(crate) use asks::decision;
pub(crate) use links::{CodexLinks, Hosted, SeenThread};
pub(crate) use register::name_real_places;

use asks::CodexAsks;
use links::HomeState;

/// A look whether there is a socket costs next to nothing.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What does not come back with the daemon is gone.
const COMEBACK: Duration = Duration::from_secs(10);
/// A daemon of another kind is looked at again, as it may be replaced.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// So long Codex may take to take us for a client.
const READY_WITHIN: Duration = Duration::from_secs(10);
const MAX_ORDERS: usize = 256;

/// Codex's daemons, and what its requests and notices go through.
pub(crate) struct Codex {
    pub(crate) terminals: Arc<Terminals>,
    pub(crate) dialogs: Arc<Dialogs>,
    pub(crate) links: Arc<CodexLinks>,
}

/// What others of the daemon want of a home's task.
#[derive(Debug)]
enum CodexOrder {
    /// The desk has an answer for the request of this name.
    Answered(asks::CodexAnswered),
    Say {
        thread: String,
        text: String,
        done: oneshot::Sender<Result<(), String>>,
    },
    /// A session of a chat speaks for this thread now.
    Leave(String),
}

/// The thread that a card or a notice in Feishu is about.
pub(crate) async fn thread_of(store: &Store, message: &MessageId) -> Option<String> {
    let message = message.clone();
    let found = store.run(move |db| {
        if let Some(row) = db.settled_by_message(&message)? {
            let codex = row.id.as_str().starts_with(NAMES);
            let session = row.subject.session.filter(|_| codex);
            return Ok(session.map(|id| id.as_str().to_owned()));
        }
        let about = db.notice(&message)?;
        let thread = about.and_then(|about| {
            let thread = about.session.as_str().strip_prefix(NAMES)?;
            Some(thread.to_owned())
        });
        Ok(thread)
    });
    found.await.ok().flatten()
}

pub(crate) async fn run(codex: Arc<Codex>, stop: CancellationToken) {
    let mut homes = JoinSet::new();
    for home in codex.terminals.cards.config.codex_homes.clone() {
        homes.spawn(follow(Arc::clone(&codex), home, stop.clone()));
    }
    while let Some(ended) = homes.join_next().await {
        if let Err(fault) = ended
            && fault.is_panic()
        {
            std::panic::resume_unwind(fault.into_panic());
        }
    }
}

async fn follow(codex: Arc<Codex>, home: PathBuf, stop: CancellationToken) {
    let (orders, mut inbox) = mpsc::channel(MAX_ORDERS);
    let mut asks = CodexAsks::new(Arc::clone(&codex), orders.clone());
    loop {
        let why = match link::dial(&home).await {
            Ok(socket) => {
                let mut served = Served {
                    codex: &codex,
                    home: &home,
                    orders: &orders,
                    socket,
                    follower: Follower::new(),
                    words: HashMap::new(),
                    said: 0,
                    ready_by: Some(Instant::now() + READY_WITHIN),
                };
                let why = tokio::select! {
                    () = stop.cancelled() => return,
                    why = served.run(&mut asks, &mut inbox) => why,
                };
                asks.lost();
                why
            }
            Err(why) => why,
        };
        let pause = match &why {
            CodexDialError::Strange(_) | CodexDialError::TooLarge => LOOK_AGAIN,
            _ => LOOK_EVERY,
        };
        away(&codex, &home, &orders, &why);
        let pause = tokio::time::sleep(pause);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = &mut pause => break,
                Some(order) = inbox.recv() => match order {
                    CodexOrder::Answered(answered) => asks.hold(answered),
                    // Dropping its `done` says that nobody is there.
                    CodexOrder::Say { .. } => {}
                    CodexOrder::Leave(thread) => asks.leave(&thread),
                }
            }
        }
        asks.give_up(COMEBACK).await;
    }
}

fn away(codex: &Codex, home: &Path, orders: &mpsc::Sender<CodexOrder>, why: &CodexDialError) {
    let there = !matches!(why, CodexDialError::None);
    let state = HomeState::Away {
        why: why.text(),
        there,
    };
    if codex.links.is(home, orders, state) && there {
        warn!(home = %home.display(), "Codex is not followed: {why}");
    }
}

/// One connection while it stands.
struct Served<'a> {
    codex: &'a Arc<Codex>,
    home: &'a Path,
    orders: &'a mpsc::Sender<CodexOrder>,
    socket: CodexSocket,
    follower: Follower,
    /// Words on their way, by tag.
    words: HashMap<u64, oneshot::Sender<Result<(), String>>>,
    said: u64,
    /// Until it has taken us for a client.
    ready_by: Option<Instant>,
}

impl Served<'_> {
    /// Serves until the connection ends; why it did.
    async fn run(
        &mut self,
        asks: &mut CodexAsks,
        inbox: &mut mpsc::Receiver<CodexOrder>,
    ) -> CodexDialError {
        let first = self.follower.start();
        if let Err(why) = self.perform(asks, first).await {
            return why;
        }
        loop {
            let due = asks.next_due();
            let acts = tokio::select! {
                heard = self.socket.next() => match heard {
                    Some(Ok(Message::Text(text))) => self.follower.heard(&text),
                    Some(Err(why)) => return CodexDialError::broken(&why),
                    Some(Ok(Message::Close(_))) | None => return CodexDialError::None,
                    Some(Ok(_)) => Vec::new(),
                },
                Some(order) = inbox.recv() => self.obey(asks, order).await,
                () = until(due) => {
                    asks.settle_due();
                    asks.give_up(COMEBACK).await;
                    Vec::new()
                }
                () = until(self.ready_by) => return CodexDialError::Slow,
            };
            if let Err(why) = self.perform(asks, acts).await {
                return why;
            }
        }
    }

    async fn obey(&mut self, asks: &mut CodexAsks, order: CodexOrder) -> Vec<CodexAct> {
        match order {
            CodexOrder::Answered(answered) => asks.answer(&mut self.follower, answered).await,
            CodexOrder::Leave(thread) => {
                asks.leave(&thread);
                Vec::new()
            }
            CodexOrder::Say { thread, text, done } => {
                self.words.retain(|_, done| !done.is_closed());
                self.said += 1;
                self.words.insert(self.said, done);
                self.follower.say(self.said, &thread, &text)
            }
        }
    }

    async fn perform(
        &mut self,
        asks: &mut CodexAsks,
        acts: Vec<CodexAct>,
    ) -> Result<(), CodexDialError> {
        let mut acts = std::collections::VecDeque::from(acts);
        while let Some(act) = acts.pop_front() {
            if thread_told_of(&act).is_some_and(|thread| self.codex.links.is_hosted(thread)) {
                continue;
            }
            match act {
                CodexAct::Send(text) => {
                    if let Err(why) = self.socket.send(Message::text(text)).await {
                        debug!("Codex' daemon is gone: {why}");
                        return Err(CodexDialError::None);
                    }
                }
                CodexAct::Ready { agent } => {
                    self.ready_by = None;
                    let asks = links::AskPolicy::default();
                    let state = HomeState::Attached { agent, asks };
                    if self.codex.links.is(self.home, self.orders, state) {
                        info!(home = %self.home.display(), "Codex is followed");
                    }
                }
                CodexAct::Strange(why) => return Err(CodexDialError::Strange(why)),
                CodexAct::Asks { reviewer, policy } => {
                    let asks = links::AskPolicy { reviewer, policy };
                    self.codex.links.asks(self.home, asks);
                }
                CodexAct::Thread(thread) => {
                    if thread.doing != Doing::Idle {
                        notices::went_on(self.codex, &thread.id);
                    }
                    let number = || self.codex.dialogs.mailboxes.number();
                    self.codex.links.tells(self.home, thread, number);
                }
                CodexAct::Asked(ask) => {
                    acts.extend(asks.asked(&mut self.follower, *ask).await);
                }
                CodexAct::Resolved(name) => asks.resolved(&name),
                CodexAct::Taken(name) => asks.taken(&name),
                CodexAct::Changed(name) => asks.changed(&name),
                CodexAct::CutOff(name) => asks.cut_off(&name).await,
                CodexAct::Became {
                    name,
                    declined,
                    took,
                } => asks.became(&name, declined, took).await,
                CodexAct::TerminalOnly { thread, cwd, known } => {
                    notices::terminal_only(self.codex, &thread, cwd, known);
                }
                CodexAct::TurnOver(over) => notices::turn_over(self.codex, over),
                CodexAct::Said { tag, refused } => {
                    if let Some(done) = self.words.remove(&tag) {
                        // Whoever spoke may have stopped waiting.
                        let _ = done.send(refused.map_or(Ok(()), Err));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The thread of what a person would be told or asked.
fn thread_told_of(act: &CodexAct) -> Option<&str> {
    match act {
        CodexAct::Asked(ask) => Some(&ask.thread),
        CodexAct::TerminalOnly { thread, .. } => Some(thread),
        CodexAct::TurnOver(over) => Some(&over.thread),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
