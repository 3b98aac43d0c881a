//! The daemon's long-lived tasks: started together, watched while they run,
//! stopped in order.

use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "team")]
use crate::daemon::arriving::bus;
use crate::daemon::arriving::{calls, dispatch};
use crate::daemon::asking::hook_events::{self, HookEvents};
use crate::daemon::asking::intake;
use crate::daemon::cards::locking;
use crate::daemon::known::journal;
#[cfg(feature = "team")]
use crate::daemon::machines::member::Member;
use crate::daemon::talking::chat::RETURN_AFTER_RESTART;
use crate::daemon::talking::sessions::{self, Sessions};
use crate::daemon::tapping::clicks::Taps;
use crate::daemon::telling::status::{self, Standing};
use crate::daemon::terminals::watching::Terminals;
use crate::feishu::connection::{self, LinkView, Wiring};
use crate::feishu::endpoint::Dialer;
use crate::feishu::link::PushDelivery;
#[cfg(feature = "team")]
use crate::feishu::outbound::Outbound;
use crate::gateway::server;
use crate::hook::listen::Listening;
use crate::hook::server::{Intake, ServerLimits, serve};
use crate::hook::wire::DaemonOrder;
use crate::wording::{Toast, reply_json};

const PRUNE_EVERY: Duration = Duration::from_secs(3_600);
const STOP_WITHIN: Duration = Duration::from_secs(3);

/// A task that must always run has panicked.
#[derive(Debug)]
pub(super) struct TaskPanic;

/// The running tasks, each stopped by its own token so that the order holds.
#[derive(Default)]
pub(super) struct Tasks {
    sockets: CancellationToken,
    feishu: CancellationToken,
    rest: CancellationToken,
    serving: JoinSet<()>,
    connected: JoinSet<()>,
    others: JoinSet<()>,
}

impl Tasks {
    /// Has a task run until the daemon stops.
    pub(super) fn also<F>(&mut self, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.others.spawn(task(self.rest.clone()));
    }

    pub(super) fn connect(
        &mut self,
        taps: &Arc<Taps>,
        dialer: Dialer,
        view: watch::Sender<LinkView>,
    ) {
        let lang = taps.cards.config.lang;
        let shared = Arc::clone(taps);
        let wiring = Wiring {
            handler: move |delivery: PushDelivery| {
                dispatch::answer(Arc::clone(&shared), delivery.payload)
            },
            hot: taps.cards.desk.hot(),
            view,
            overdue_answer: reply_json(&Toast::PROCESSING, None, lang),
            failed_answer: reply_json(&Toast::INVALID, None, lang),
            stop: self.feishu.clone(),
        };
        self.connected.spawn(connection::run(dialer, wiring));
    }

    /// Holds the line of a team's machine.
    #[cfg(feature = "team")]
    pub(super) fn join(
        &mut self,
        taps: &Arc<Taps>,
        member: &Arc<Member>,
        outbound: Outbound,
        view: watch::Sender<LinkView>,
    ) {
        let (taps, member) = (Arc::clone(taps), Arc::clone(member));
        let stop = self.feishu.clone();
        self.connected
            .spawn(bus::run(taps, member, outbound, view, stop));
    }

    /// Lets hooks, and commands of this machine, connect.
    pub(super) fn serve(
        &mut self,
        terminals: &Arc<Terminals>,
        events: &Arc<HookEvents>,
        standing: &Arc<Standing>,
        listeners: Vec<Listening>,
    ) {
        for listening in listeners {
            let terminals = Arc::clone(terminals);
            let mailboxes = Arc::clone(&events.dialogs.mailboxes);
            let (events, standing) = (Arc::clone(events), Arc::clone(standing));
            let intake = Intake {
                register: move |registration, peer| {
                    let (terminals, mailboxes) = (Arc::clone(&terminals), Arc::clone(&mailboxes));
                    intake::register(terminals, mailboxes, registration, peer)
                },
                notify: move |notice, peer| hook_events::take(Arc::clone(&events), notice, peer),
                order: move |order| obey(Arc::clone(&standing), order),
            };
            self.serving.spawn(serve(
                listening,
                Arc::new(intake),
                ServerLimits::default(),
                self.sockets.clone(),
            ));
        }
    }

    /// Lets other machines and services call this one.
    pub(super) fn open(&mut self, taps: &Arc<Taps>, standing: &Arc<Standing>, door: TcpListener) {
        let terms = taps.gate.terms.clone();
        let inside = calls::inside(taps, Arc::clone(standing));
        let stop = self.feishu.clone();
        self.connected
            .spawn(server::serve(door, terms, inside, stop));
    }

    /// Waits for `stop`. A task that panics leaves a daemon that looks alive
    /// and no longer does its work, so the whole ends then: hooks go back to
    /// the terminal, and a service manager starts a daemon that is whole.
    pub(super) async fn run_until(&mut self, stop: &CancellationToken) -> Result<(), TaskPanic> {
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            () = self.panicked() => Err(TaskPanic),
        }
    }

    /// Returns when a task has panicked; one that is done is no fault.
    async fn panicked(&mut self) {
        loop {
            let ended = tokio::select! {
                Some(ended) = self.serving.join_next() => ended,
                Some(ended) = self.connected.join_next() => ended,
                Some(ended) = self.others.join_next() => ended,
                else => std::future::pending().await,
            };
            if ended.is_err_and(|why| why.is_panic()) {
                return;
            }
        }
    }

    /// Sessions first, which say why they end; then hooks, which come back to
    /// the next daemon; then Feishu, with its goodbye; then the card
    /// corrections under way.
    pub(super) async fn stop(mut self, sessions: &Sessions) {
        let cards = &sessions.cards;
        sessions.stop().await;
        cards.desk.detach_all(RETURN_AFTER_RESTART);
        self.sockets.cancel();
        drain(&mut self.serving).await;
        self.feishu.cancel();
        drain(&mut self.connected).await;
        self.rest.cancel();
        drain(&mut self.others).await;
        journal::sum_up(&cards.journal, true).await;
        cards.journal.store.clone().close().await;
    }
}

/// What a person's command on this machine asks for; the answer is how nod is
/// afterwards.
async fn obey(standing: Arc<Standing>, order: DaemonOrder) -> serde_json::Value {
    match order {
        DaemonOrder::Status => {}
        DaemonOrder::Lock => locking::set(&standing.cards, true, None).await,
        DaemonOrder::Unlock => locking::set(&standing.cards, false, None).await,
    }
    status::report(&standing)
}

async fn drain(tasks: &mut JoinSet<()>) {
    let all = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_WITHIN, all).await.is_err() {
        tasks.abort_all();
    }
}

/// Removes what is too old to be of use, once an hour.
pub(super) async fn prune(sessions: Arc<Sessions>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PRUNE_EVERY) => {}
        }
        let journal = &sessions.cards.journal;
        let now = journal.now();
        let otherwise = "old records were not removed";
        journal::run(journal, otherwise, move |db| db.prune(now)).await;
        sessions::files::remove_old(&sessions).await;
        journal::sum_up(journal, false).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any test; the clock is set ahead when nothing else is left
    /// to do.
    const EVER: Duration = Duration::from_secs(3_600);

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_ends_the_daemon_whichever_it_is() {
        let sets: [fn(&mut Tasks) -> &mut JoinSet<()>; 3] = [
            |tasks| &mut tasks.serving,
            |tasks| &mut tasks.connected,
            |tasks| &mut tasks.others,
        ];
        for set in sets {
            let (mut tasks, stop) = (Tasks::default(), CancellationToken::new());
            tasks.others.spawn(std::future::pending());
            set(&mut tasks).spawn(async { panic!("a task's own fault") });
            let ended = tokio::time::timeout(EVER, tasks.run_until(&stop)).await;
            assert!(matches!(ended, Ok(Err(TaskPanic))), "{ended:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_that_are_done_or_stopped_are_no_fault() {
        let (mut tasks, stop) = (Tasks::default(), CancellationToken::new());
        tasks.serving.spawn(async {});
        tasks.others.spawn(std::future::pending()).abort();
        let ended = tokio::time::timeout(EVER, tasks.run_until(&stop)).await;
        assert!(ended.is_err(), "{ended:?}");
        stop.cancel();
        let ended = tokio::time::timeout(EVER, tasks.run_until(&stop)).await;
        assert!(matches!(ended, Ok(Ok(()))), "{ended:?}");
    }
}
