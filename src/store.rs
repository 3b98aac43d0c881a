//! The one durable file: requests, decisions, messages, the card outbox.
//! [`Db`] is the store as plain functions; [`Store`] is a handle to the one
//! thread that owns it. When the disk fails, calls return errors and the
//! daemon goes on from memory: nothing here ever decides a request.

mod audit;
mod db;
mod error;
mod events;
mod files;
mod inbox;
mod left_rules;
mod notices;
mod outbox;
mod requests;
mod said;
#[cfg(test)]
mod samples;
mod schema;
mod sessions;
mod tickets;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

pub use audit::{AuditEntry, Chain, Recorded};
pub use db::Db;
pub use error::StoreError;
pub use files::KeptFile;
pub use inbox::Received;
pub use left_rules::{LeftRule, ListedRule};
pub use notices::About;
pub use requests::{CardPlace, Pending, Settlement, Subject};
pub use schema::{FILE, LOCKED, NOBODY_KNOWS, SetAside};
pub use sessions::KeptSession;

use crate::clock::Millis;
use crate::text::Text;

/// Calls that may wait at the owner's door; further ones wait outside.
const QUEUE: usize = 1024;
/// Calls that share one transaction when several wait.
const BATCH: usize = 256;
/// A click must be answered in three seconds, so a hanging disk is given up on
/// before that.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// After this long without a call the write-ahead log is folded in.
const IDLE: Duration = Duration::from_secs(1);

/// Whether what is written will still be there after a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Good,
    /// Nothing is kept, and why.
    Failing(Text),
}

/// What opening had to do; each is worth telling the user.
#[derive(Debug, Clone)]
pub enum StoreNotice {
    /// The old file could not be used and nod started with an empty one.
    SetAside(SetAside),
    /// There is no file: everything is forgotten when the daemon ends.
    MemoryOnly(StoreError),
}

type StoreReply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
type StoreCall = Box<dyn FnOnce(&Db) -> (Option<StoreError>, StoreReply) + Send>;

enum StoreOrder {
    Run(StoreCall),
    Stop(oneshot::Sender<()>),
}

/// A cheap handle; clones share the one owner thread, which ends with the last.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<SharedStore>,
}

#[derive(Debug)]
struct SharedStore {
    orders: Sender<StoreOrder>,
    room: Arc<Semaphore>,
    health: Arc<Mutex<Health>>,
}

impl Store {
    /// Opens the store in `dir`, or one in memory when that can't be used.
    pub fn open(dir: &Path, now: Millis) -> Result<(Self, Option<StoreNotice>), StoreError> {
        match Db::open(dir, now) {
            Ok((db, set_aside)) => Ok((
                Self::over(db, Health::Good)?,
                set_aside.map(StoreNotice::SetAside),
            )),
            Err(error) => {
                let health = Health::Failing(error.text());
                let db = Db::in_memory()?;
                db.set_meta(LOCKED, NOBODY_KNOWS)?;
                let store = Self::over(db, health)?;
                Ok((store, Some(StoreNotice::MemoryOnly(error))))
            }
        }
    }

    #[cfg(test)]
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::over(Db::in_memory()?, Health::Good)
    }

    fn over(db: Db, health: Health) -> Result<Self, StoreError> {
        let (orders, inbox) = channel();
        let health = Arc::new(Mutex::new(health));
        let owner = DbOwner {
            db,
            health: Arc::clone(&health),
        };
        std::thread::Builder::new()
            .name("nod-store".to_owned())
            .spawn(move || owner.serve(&inbox))
            .map_err(|_| StoreError::Closed)?;
        Ok(Self {
            shared: Arc::new(SharedStore {
                orders,
                room: Arc::new(Semaphore::new(QUEUE)),
                health,
            }),
        })
    }

    /// Runs `work` on the owner thread. Calls that wait together share one
    /// transaction, yet each succeeds or fails by itself; the answer comes
    /// after the commit.
    pub async fn run<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Db) -> Result<T, StoreError> + Send + 'static,
    {
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.ask(work)).await;
        answer.unwrap_or(Err(StoreError::Slow(ANSWER_WITHIN.as_millis())))
    }

    async fn ask<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Db) -> Result<T, StoreError> + Send + 'static,
    {
        let room = Arc::clone(&self.shared.room).acquire_owned().await;
        let room = room.map_err(|_| StoreError::Closed)?;
        let (answer, answered) = oneshot::channel();
        self.submit(room, work, move |result| {
            // The caller may have given up waiting.
            let _ = answer.send(result);
        })?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    /// As [`Self::run`], for what nobody waits for: it stands in the queue when
    /// this returns, before whatever is asked later. Where too much waits it is
    /// dropped, and the log says so.
    pub fn later<T, F>(&self, what: &'static str, work: F)
    where
        T: Send + 'static,
        F: FnOnce(&Db) -> Result<T, StoreError> + Send + 'static,
    {
        let Ok(room) = Arc::clone(&self.shared.room).try_acquire_owned() else {
            tracing::debug!("{what} was not kept: too much waits to be written");
            return;
        };
        let told = move |result: Result<T, StoreError>| {
            if let Err(why) = result {
                tracing::debug!("{what} was not kept: {why}");
            }
        };
        if let Err(why) = self.submit(room, work, told) {
            tracing::debug!("{what} was not kept: {why}");
        }
    }

    /// Puts `work` in the queue; `told` hears of it after the commit.
    fn submit<T, F>(
        &self,
        room: OwnedSemaphorePermit,
        work: F,
        told: impl FnOnce(Result<T, StoreError>) + Send + 'static,
    ) -> Result<(), StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Db) -> Result<T, StoreError> + Send + 'static,
    {
        let call: StoreCall = Box::new(move |db| {
            let result = work(db);
            let failed = result.as_ref().err().cloned();
            let reply: StoreReply = Box::new(move |committed| {
                drop(room);
                told(committed.and(result));
            });
            (failed, reply)
        });
        let sent = self.shared.orders.send(StoreOrder::Run(call));
        sent.map_err(|_| StoreError::Closed)
    }

    pub fn health(&self) -> Health {
        let health = self.shared.health.lock();
        health.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Finishes what was asked before and closes the file. Other handles get
    /// [`StoreError::Closed`] from then on.
    pub async fn close(self) {
        let (done, closed) = oneshot::channel();
        if self.shared.orders.send(StoreOrder::Stop(done)).is_ok() {
            // An error means that the thread had ended by itself.
            let _ = closed.await;
        }
    }
}

struct DbOwner {
    db: Db,
    health: Arc<Mutex<Health>>,
}

impl DbOwner {
    fn serve(self, inbox: &Receiver<StoreOrder>) {
        let mut dirty = false;
        let mut wait = IDLE;
        loop {
            let first = if dirty {
                match inbox.recv_timeout(wait) {
                    Ok(order) => order,
                    Err(RecvTimeoutError::Timeout) => {
                        dirty = self.fold_in();
                        wait = if dirty { Duration::ZERO } else { IDLE };
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            } else {
                match inbox.recv() {
                    Ok(order) => order,
                    Err(_) => break,
                }
            };
            wait = IDLE;
            let mut calls = Vec::new();
            let mut stop = None;
            let mut next = Some(first);
            while let Some(order) = next {
                match order {
                    StoreOrder::Run(call) => calls.push(call),
                    StoreOrder::Stop(done) => stop = Some(done),
                }
                if stop.is_some() || calls.len() == BATCH {
                    break;
                }
                next = inbox.try_recv().ok();
            }
            let before = self.db.changes();
            self.serve_batch(calls);
            dirty |= self.db.changes() != before;
            if let Some(done) = stop {
                drop(self.db);
                // The one who asked may be gone; the file is closed all the same.
                let _ = done.send(());
                return;
            }
        }
    }

    fn serve_batch(&self, calls: Vec<StoreCall>) {
        if calls.len() < 2 || self.db.run("BEGIN IMMEDIATE").is_err() {
            // Also when the disk refuses a transaction: reading may still work.
            for call in calls {
                self.serve_one(call);
            }
            return;
        }
        let mut calls = calls.into_iter();
        let mut replies = Vec::with_capacity(calls.len());
        let mut lost = None;
        for call in calls.by_ref() {
            let (failed, reply) = self.db.in_part(call);
            replies.push(reply);
            if self.db.is_idle() {
                // SQLite gave the whole transaction up, with what others did.
                lost = failed.or(Some(StoreError::Closed));
                break;
            }
        }
        let committed = match lost {
            Some(error) => Err(error),
            None => self.db.commit(),
        };
        self.note(committed.as_ref().err());
        for reply in replies {
            reply(committed.clone());
        }
        for call in calls {
            self.serve_one(call);
        }
    }

    fn serve_one(&self, call: StoreCall) {
        let before = self.db.changes();
        let (failed, reply) = call(&self.db);
        if failed.is_some() || self.db.changes() != before {
            self.note(failed.as_ref());
        }
        reply(Ok(()));
    }

    /// A store in memory stays failing, whatever it can do.
    fn note(&self, failed: Option<&StoreError>) {
        let health = match failed {
            Some(error) if error.is_about_the_disk() => Health::Failing(error.text()),
            None if self.db.is_durable() => Health::Good,
            Some(_) | None => return,
        };
        let mut known = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != health {
            match &health {
                Health::Good => tracing::info!("the store can be written again"),
                Health::Failing(problem) => {
                    tracing::error!(problem = %problem.en, "the store can't be written");
                }
            }
            *known = health;
        }
    }

    /// Empties the log and gives unused pages back; whether there are more.
    fn fold_in(&self) -> bool {
        let more = self.db.shrink();
        if let Err(error) = self.db.checkpoint() {
            tracing::debug!(%error, "the write-ahead log was not folded in");
        }
        more.unwrap_or_else(|error| {
            tracing::debug!(%error, "the store's file did not shrink");
            false
        })
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{SECRET, id, pending, settlement};
    use super::*;
    use std::fs;
    use std::time::Instant;

    async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
        let limit = Instant::now() + Duration::from_secs(20);
        while !holds() {
            assert!(Instant::now() < limit, "never happened: {what}");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_was_written_is_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let (store, notice) = Store::open(dir.path(), 1).unwrap();
        assert!(notice.is_none());
        store
            .run(|db| db.save_pending(&pending("r1")))
            .await
            .unwrap();
        store
            .run(|db| db.settle(&settlement("r2", "denied")))
            .await
            .unwrap();
        let other = store.clone();
        store.close().await;
        let closed = other.run(Db::pending_all).await;
        assert!(matches!(closed, Err(StoreError::Closed)), "{closed:?}");

        let (store, _) = Store::open(dir.path(), 2).unwrap();
        assert_eq!(store.run(Db::pending_all).await.unwrap(), [pending("r1")]);
        let settled = store.run(|db| db.settled(&id("r2"))).await.unwrap();
        assert_eq!(settled.unwrap().kind, "denied");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn calls_that_share_a_transaction_fail_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(dir.path(), 1).unwrap();
        let calls = (0..500).map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                // Every id is asked for twice; one of the two must lose.
                let end = settlement(&format!("r{}", n / 2), "allowed");
                store.run(move |db| db.settle(&end)).await
            })
        });
        let mut won = 0;
        for call in futures::future::join_all(calls).await {
            match call.unwrap() {
                Ok(()) => won += 1,
                Err(StoreError::AlreadySettled) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(won, 250);
        let chain = store.run(Db::verify_audit).await.unwrap();
        assert_eq!(chain, Chain::Whole { rows: 250 });
    }

    #[test]
    fn a_batch_undoes_only_what_failed() {
        let (health, asked) = (Arc::new(Mutex::new(Health::Good)), Mutex::new(Vec::new()));
        let asked = Arc::new(asked);
        let owner = DbOwner {
            db: Db::in_memory().unwrap(),
            health,
        };
        let call = |key: &'static str, fails: bool| -> StoreCall {
            let asked = Arc::clone(&asked);
            Box::new(move |db| {
                db.set_meta(key, "set").unwrap();
                let failed = fails.then_some(StoreError::AlreadySettled);
                let reply: StoreReply = Box::new(move |committed| {
                    asked.lock().unwrap().push((key, committed.is_ok()));
                });
                (failed, reply)
            })
        };
        owner.serve_batch(vec![call("a", false), call("b", true), call("c", false)]);
        assert_eq!(
            *asked.lock().unwrap(),
            [("a", true), ("b", true), ("c", true)]
        );
        let set = |key| owner.db.meta(key).unwrap().is_some();
        assert_eq!((set("a"), set("b"), set("c")), (true, false, true));
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_kept_before_what_is_asked_next() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(dir.path(), 1).unwrap();
        let event = crate::ids::EventId::parse("e1").unwrap();
        let kept = event.clone();
        store.later("an answer", move |db| db.remember_answer(&kept, b"yes", 1));
        store.later("nothing", |_| Err::<(), _>(StoreError::AlreadySettled));
        let answer = store.run(move |db| db.answer(&event)).await.unwrap();
        assert_eq!(answer.as_deref(), Some(&b"yes"[..]));
        store.clone().close().await;
        store.later("too late", |_| Ok(()));
    }

    #[tokio::test]
    async fn a_full_disk_is_said_in_words_and_passes() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(dir.path(), 1).unwrap();
        let pages = |count: i64| {
            move |db: &Db| {
                db.conn.pragma_update(None, "max_page_count", count)?;
                Ok(())
            }
        };
        store
            .run(|db| db.save_pending(&pending("r1")))
            .await
            .unwrap();
        store.run(pages(1)).await.unwrap();
        let mut big = pending("r2");
        big.request = "x".repeat(1 << 20);
        let failed = store.run(move |db| db.save_pending(&big)).await;
        assert!(matches!(failed, Err(StoreError::Full(_))), "{failed:?}");
        let health = store.health();
        assert!(
            matches!(&health, Health::Failing(why) if why.en.contains("full")),
            "{health:?}"
        );
        let waiting = store.run(Db::pending_all).await.unwrap();
        assert_eq!(waiting, [pending("r1")]);

        store.run(pages(1 << 30)).await.unwrap();
        store
            .run(|db| db.settle(&settlement("r1", "allowed")))
            .await
            .unwrap();
        assert_eq!(store.health(), Health::Good);
    }

    #[tokio::test]
    async fn without_a_place_to_write_the_store_works_from_memory_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("not-a-directory");
        fs::write(&file, "").unwrap();
        let (store, notice) = Store::open(&file, 1).unwrap();
        assert!(
            matches!(notice, Some(StoreNotice::MemoryOnly(_))),
            "{notice:?}"
        );
        store
            .run(|db| db.save_pending(&pending("r1")))
            .await
            .unwrap();
        assert_eq!(store.run(Db::pending_all).await.unwrap().len(), 1);
        assert!(matches!(store.health(), Health::Failing(_)));
    }

    #[tokio::test]
    async fn settled_input_is_in_no_file_once_the_store_is_idle() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(dir.path(), 1).unwrap();
        let holds_secret = || {
            fs::read_dir(dir.path()).unwrap().any(|entry| {
                let bytes = fs::read(entry.unwrap().path()).unwrap();
                bytes
                    .windows(SECRET.len())
                    .any(|part| part == SECRET.as_bytes())
            })
        };
        store
            .run(|db| db.save_pending(&pending("r1")))
            .await
            .unwrap();
        assert!(holds_secret());
        store
            .run(|db| db.settle(&settlement("r1", "allowed")))
            .await
            .unwrap();
        wait_until("the input is gone", || !holds_secret()).await;
    }

    #[tokio::test]
    async fn the_file_is_small_again_once_large_requests_have_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(dir.path(), 1).unwrap();
        let size = || {
            let files = fs::read_dir(dir.path()).unwrap();
            files
                .map(|entry| entry.unwrap().metadata().unwrap().len())
                .sum::<u64>()
        };
        for n in 0..12 {
            let mut large = pending(&format!("r{n}"));
            large.request = "x".repeat(4 << 20);
            store.run(move |db| db.save_pending(&large)).await.unwrap();
        }
        assert!(size() > 48 << 20);
        for n in 0..12 {
            let end = settlement(&format!("r{n}"), "allowed");
            store.run(move |db| db.settle(&end)).await.unwrap();
        }
        wait_until("the file is small", || size() < 4 << 20).await;
        let waiting = store.run(Db::pending_all).await.unwrap();
        assert_eq!(waiting, []);
    }

    #[tokio::test]
    #[allow(
        clippy::print_stdout,
        reason = "the figure is for the reader of the test run"
    )]
    async fn ten_thousand_requests_are_saved_and_settled() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(dir.path(), 1).unwrap();
        let mut waits = Vec::new();
        for n in 0..10_000 {
            let name = format!("r{n}");
            let (waiting, end) = (pending(&name), settlement(&name, "allowed"));
            store
                .run(move |db| db.save_pending(&waiting))
                .await
                .unwrap();
            let start = Instant::now();
            store.run(move |db| db.settle(&end)).await.unwrap();
            waits.push(start.elapsed());
        }
        waits.sort();
        let (p50, p99, max) = (waits[5_000], waits[9_900], waits[9_999]);
        println!("settle, one at a time: p50 {p50:?}, p99 {p99:?}, max {max:?}");
        store.close().await;

        let start = Instant::now();
        let (db, set_aside) = Db::open(dir.path(), 2).unwrap();
        println!("open with 10,000 endings: {:?}", start.elapsed());
        assert_eq!(set_aside, None);
        let chain = db.verify_audit().unwrap();
        assert_eq!(chain, Chain::Whole { rows: 10_000 });
    }
}
