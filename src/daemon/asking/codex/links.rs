//! What is known of Codex's daemons and of the threads on their screens, and
//! the way to speak to one.

use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

use super::CodexOrder;
use crate::agents::codex::act::{self, Doing};
use crate::text::Text;

/// Threads that are listed; the oldest are forgotten first.
const MAX_THREADS: usize = 1_024;
const SAY_WITHIN: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct CodexLinks {
    homes: Mutex<HashMap<PathBuf, FollowedHome>>,
    threads: Mutex<Vec<SeenThread>>,
    hosted: Arc<Mutex<HashSet<String>>>,
}

/// A session of a chat speaks for this thread: nobody else puts it to a person.
pub(crate) struct Hosted {
    thread: String,
    all: Arc<Mutex<HashSet<String>>>,
}

impl Drop for Hosted {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.thread);
    }
}

#[derive(Debug, Clone)]
struct FollowedHome {
    state: HomeState,
    orders: mpsc::Sender<CodexOrder>,
}

#[derive(Debug, Clone)]
pub(super) enum HomeState {
    Attached {
        agent: String,
        asks: AskPolicy,
    },
    Away {
        why: Text,
        /// Something is there that is not followed.
        there: bool,
    },
}

/// Who is asked by Codex's settings, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AskPolicy {
    pub(super) reviewer: Option<String>,
    pub(super) policy: Option<String>,
}

/// A thread in a terminal.
#[derive(Debug, Clone)]
pub(crate) struct SeenThread {
    /// What a person calls it by, for as long as this daemon runs.
    pub(crate) number: usize,
    pub(crate) thread: String,
    pub(crate) project: PathBuf,
    pub(crate) doing: Doing,
    pub(crate) home: PathBuf,
}

impl CodexLinks {
    /// For `nod status`: each home, and whether there is anything in it.
    pub(crate) fn report(&self) -> Vec<Value> {
        let homes = lock(&self.homes);
        let mut all: Vec<_> = homes.iter().collect();
        all.sort_by_key(|(home, _)| (*home).clone());
        all.iter()
            .map(|(path, home)| {
                let shown = path.to_string_lossy();
                match &home.state {
                    HomeState::Attached { agent, asks } => json!({
                        "home": shown, "state": "attached", "agent": agent,
                        "reviewer": asks.reviewer, "policy": asks.policy,
                    }),
                    HomeState::Away { why, there } => {
                        let state = if *there { "refused" } else { "away" };
                        json!({
                            "home": shown, "state": state,
                            "cause": why.en, "cause_zh": why.zh,
                        })
                    }
                }
            })
            .collect()
    }

    /// Says something in a thread of Codex's; `None` when none is there to
    /// hear it. A thread that nobody told of may be of any home.
    pub(crate) async fn say(&self, thread: &str, text: &str) -> Option<Result<(), String>> {
        let mut answer = None;
        for to in self.ways(thread) {
            let (done, said) = oneshot::channel();
            let order = CodexOrder::Say {
                thread: thread.to_owned(),
                text: text.to_owned(),
                done,
            };
            if to.send(order).await.is_err() {
                continue;
            }
            let said = tokio::time::timeout(SAY_WITHIN, said).await;
            match said {
                Ok(Ok(Ok(()))) => return Some(Ok(())),
                Ok(Ok(Err(why))) => answer = Some(Err(why)),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        answer
    }

    fn ways(&self, thread: &str) -> Vec<mpsc::Sender<CodexOrder>> {
        let known = lock(&self.threads)
            .iter()
            .find(|seen| seen.thread == thread)
            .map(|seen| seen.home.clone());
        let homes = lock(&self.homes);
        let attached = homes
            .iter()
            .filter(|(_, home)| matches!(home.state, HomeState::Attached { .. }));
        attached
            .filter(|(path, _)| known.as_ref().is_none_or(|known| known == *path))
            .map(|(_, home)| home.orders.clone())
            .collect()
    }

    /// A thread came up, or does something else. `number` makes it a name.
    pub(super) fn tells(
        &self,
        home: &Path,
        thread: act::ScreenThread,
        number: impl FnOnce() -> usize,
    ) {
        let mut threads = lock(&self.threads);
        let at = threads.iter().position(|seen| seen.thread == thread.id);
        let mut seen = match at {
            Some(at) => threads.remove(at),
            None if thread.doing == Doing::Closed => return,
            None => SeenThread {
                number: number(),
                thread: thread.id,
                project: PathBuf::new(),
                doing: thread.doing,
                home: home.to_owned(),
            },
        };
        if threads.len() >= MAX_THREADS {
            threads.remove(0);
        }
        seen.doing = thread.doing;
        home.clone_into(&mut seen.home);
        if let Some(cwd) = thread.cwd {
            seen.project = cwd.into();
        }
        threads.push(seen);
    }

    /// Those that are open, the one that did something last first.
    pub(crate) fn open(&self) -> Vec<SeenThread> {
        let threads = lock(&self.threads);
        let open = threads.iter().rev();
        open.filter(|seen| seen.doing != Doing::Closed)
            .cloned()
            .collect()
    }

    /// Whether it is known to do anything but wait for words.
    pub(super) fn is_busy(&self, thread: &str) -> bool {
        let threads = lock(&self.threads);
        let mut found = threads.iter().filter(|seen| seen.thread == thread);
        found.any(|seen| seen.doing != Doing::Idle)
    }

    /// The home in whose daemon the thread is open.
    pub(crate) fn open_in(&self, thread: &str) -> Option<PathBuf> {
        let threads = lock(&self.threads);
        let mut open = threads.iter().filter(|seen| seen.doing != Doing::Closed);
        let found = open.find(|seen| seen.thread == thread)?;
        Some(found.home.clone())
    }

    /// Leaves the thread to a session of a chat; what it asked is asked there.
    pub(crate) async fn host(&self, thread: &str) -> Hosted {
        lock(&self.hosted).insert(thread.to_owned());
        for to in self.ways(thread) {
            let order = CodexOrder::Leave(thread.to_owned());
            // Its task ends only with the daemon.
            let _ = to.send(order).await;
        }
        Hosted {
            thread: thread.to_owned(),
            all: Arc::clone(&self.hosted),
        }
    }

    pub(super) fn is_hosted(&self, thread: &str) -> bool {
        lock(&self.hosted).contains(thread)
    }

    /// By its number in the list of `/sessions`.
    pub(crate) fn numbered(&self, number: usize) -> Option<SeenThread> {
        let threads = lock(&self.threads);
        let found = threads.iter().find(|seen| seen.number == number);
        found.cloned()
    }

    /// Whether that is news.
    pub(super) fn is(
        &self,
        path: &Path,
        orders: &mpsc::Sender<CodexOrder>,
        state: HomeState,
    ) -> bool {
        if let HomeState::Away { .. } = &state {
            let mut threads = lock(&self.threads);
            let theirs = threads.iter_mut().filter(|seen| seen.home == path);
            theirs.for_each(|seen| seen.doing = Doing::Closed);
        }
        let word = |state: &HomeState| match state {
            HomeState::Attached { .. } => String::new(),
            HomeState::Away { why, .. } => why.en.to_string(),
        };
        let (now, orders) = (word(&state), orders.clone());
        let home = FollowedHome { state, orders };
        let before = lock(&self.homes).insert(path.to_owned(), home);
        before.is_none_or(|before| word(&before.state) != now)
    }

    pub(super) fn asks(&self, path: &Path, now: AskPolicy) {
        if let Some(home) = lock(&self.homes).get_mut(path)
            && let HomeState::Attached { asks, .. } = &mut home.state
        {
            *asks = now;
        }
    }
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: usize, doing: Doing) -> act::ScreenThread {
        act::ScreenThread {
            id: id.to_string(),
            cwd: Some("/p".to_owned()),
            doing,
        }
    }

    #[test]
    fn a_thread_keeps_its_number_and_is_listed_while_it_is_open() {
        let links = CodexLinks::default();
        let home = Path::new("/h");
        links.tells(home, thread(1, Doing::Idle), || 1);
        links.tells(home, thread(2, Doing::Idle), || 2);
        links.tells(home, thread(1, Doing::Works), || 3);
        let open: Vec<_> = links.open().iter().map(|seen| seen.number).collect();
        assert_eq!(open, [1, 2]);
        links.tells(home, thread(2, Doing::Closed), || 4);
        links.tells(home, thread(9, Doing::Closed), || 5);
        assert_eq!(links.open().len(), 1);
        let (orders, _inbox) = mpsc::channel(1);
        let why = Text::new("", "");
        let gone = HomeState::Away { why, there: false };
        links.is(home, &orders, gone);
        assert!(links.open().is_empty(), "their daemon is gone");
        assert_eq!(links.numbered(2).unwrap().thread, "2");
    }

    #[test]
    fn memory_is_bounded() {
        let links = CodexLinks::default();
        for id in 0..2 * MAX_THREADS {
            links.tells(Path::new("/h"), thread(id, Doing::Idle), || id);
        }
        assert_eq!(links.open().len(), MAX_THREADS);
        assert!(links.numbered(0).is_none());
    }
}
