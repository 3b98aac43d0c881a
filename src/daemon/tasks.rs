//! The daemon's long-lived tasks: started together, watched while they run,
//! stopped in order.

use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::approvals::desk::expiry::run_expiry;
use crate::daemon::DaemonError;
use crate::daemon::RETURN_AFTER_RESTART;
use crate::daemon::asking::codex;
use crate::daemon::asking::flood;
use crate::daemon::asking::hook_events;
use crate::daemon::asking::intake;
use crate::daemon::cards::edits;
use crate::daemon::cards::edits::{Edits, Later};
use crate::daemon::cards::locking;
use crate::daemon::cards::nameless;
use crate::daemon::known::journal;
#[cfg(feature = "team")]
use crate::daemon::machines::member;
use crate::daemon::machines::peers;
use crate::daemon::parts::Parts;
use crate::daemon::talking::sessions;
use crate::daemon::tapping::dispatch;
use crate::daemon::telling::names;
use crate::daemon::telling::rivals;
use crate::daemon::telling::status;
use crate::daemon::terminals::{endings, watching};
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
    pub(super) fn start(
        parts: &Arc<Parts>,
        (edits, left): (Edits, Later),
        listeners: Vec<Listening>,
    ) -> Self {
        let mut tasks = Self::default();
        tasks.serve(parts, listeners);
        let rest = &tasks.rest;
        tasks.others.spawn(edits::run(
            Arc::clone(&parts.cards),
            edits,
            left,
            rest.clone(),
        ));
        tasks
            .others
            .spawn(nameless::run(Arc::clone(&parts.cards), rest.clone()));
        tasks
            .others
            .spawn(endings::run(Arc::clone(&parts.cards), rest.clone()));
        tasks
            .others
            .spawn(run_expiry(Arc::clone(&parts.desk), rest.clone()));
        tasks
            .others
            .spawn(watching::run(Arc::clone(&parts.terminals), rest.clone()));
        tasks
            .others
            .spawn(flood::run(Arc::clone(&parts.cards), rest.clone()));
        tasks
            .others
            .spawn(codex::run(Arc::clone(&parts.followed), rest.clone()));
        tasks.others.spawn(prune(Arc::clone(parts), rest.clone()));
        tasks.others.spawn(rivals::look(
            Arc::clone(&parts.cards),
            parts.team.place().is_some(),
            rest.clone(),
        ));
        tasks
            .others
            .spawn(names::look(Arc::clone(&parts.cards), rest.clone()));
        tasks
    }

    pub(super) fn connect(
        &mut self,
        parts: &Arc<Parts>,
        dialer: Dialer,
        view: watch::Sender<LinkView>,
    ) {
        let lang = parts.config.lang;
        let shared = Arc::clone(parts);
        let wiring = Wiring {
            handler: move |delivery: PushDelivery| {
                dispatch::answer(Arc::clone(&shared), delivery.payload)
            },
            hot: parts.desk.hot(),
            view,
            overdue_answer: reply_json(&Toast::Processing, None, lang),
            failed_answer: reply_json(&Toast::Invalid, None, lang),
            stop: self.feishu.clone(),
        };
        self.connected.spawn(connection::run(dialer, wiring));
    }

    /// Holds the line of a team's machine; without one there is none to hold.
    #[cfg(feature = "team")]
    pub(super) fn join(
        &mut self,
        parts: &Arc<Parts>,
        outbound: Outbound,
        view: watch::Sender<LinkView>,
    ) {
        if let Some(member) = parts.team.member() {
            let (parts, member) = (Arc::clone(parts), Arc::clone(member));
            let stop = self.feishu.clone();
            self.connected
                .spawn(member::run(parts, member, outbound, view, stop));
        }
    }

    fn serve(&mut self, parts: &Arc<Parts>, listeners: Vec<Listening>) {
        for listening in listeners {
            let (terminals, mailboxes) =
                (Arc::clone(&parts.terminals), Arc::clone(&parts.mailboxes));
            let (events, states) = (Arc::clone(&parts.events), Arc::clone(parts));
            let intake = Intake {
                register: move |registration, peer| {
                    let (terminals, mailboxes) = (Arc::clone(&terminals), Arc::clone(&mailboxes));
                    intake::register(terminals, mailboxes, registration, peer)
                },
                notify: move |notice, peer| hook_events::take(Arc::clone(&events), notice, peer),
                order: move |order| obey(Arc::clone(&states), order),
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
    pub(super) fn open(&mut self, parts: &Arc<Parts>, door: TcpListener) {
        let (terms, inside) = (parts.gate.terms.clone(), peers::inside(parts));
        let stop = self.feishu.clone();
        self.connected
            .spawn(server::serve(door, terms, inside, stop));
    }

    /// Waits for `stop`. A task that panics leaves a daemon that looks alive
    /// and no longer does its work, so the whole ends then: hooks go back to
    /// the terminal, and a service manager starts a daemon that is whole.
    pub(super) async fn run_until(&mut self, stop: &CancellationToken) -> Result<(), DaemonError> {
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            () = self.panicked() => Err(DaemonError::Fault),
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
    pub(super) async fn stop(mut self, parts: &Parts) {
        parts.sessions.stop().await;
        parts.desk.detach_all(RETURN_AFTER_RESTART);
        self.sockets.cancel();
        drain(&mut self.serving).await;
        self.feishu.cancel();
        drain(&mut self.connected).await;
        self.rest.cancel();
        drain(&mut self.others).await;
        journal::sum_up(&parts.journal, true).await;
        parts.journal.store.clone().close().await;
    }
}

/// What a person's command on this machine asks for; the answer is how nod is
/// afterwards.
async fn obey(parts: Arc<Parts>, order: DaemonOrder) -> serde_json::Value {
    match order {
        DaemonOrder::Status => {}
        DaemonOrder::Lock => locking::set(&parts.cards, true, None).await,
        DaemonOrder::Unlock => locking::set(&parts.cards, false, None).await,
    }
    status::report(&parts.standing)
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
        if let Err(why) = parts.journal.store.run(move |db| db.prune(now)).await {
            warn!("old records were not removed: {why}");
        }
        sessions::files::remove_old(&parts.sessions).await;
        journal::sum_up(&parts.journal, false).await;
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
            assert!(matches!(ended, Ok(Err(DaemonError::Fault))), "{ended:?}");
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
