//! A session's child for tests: what it is told can be read, and it says what a
//! test has it say.

use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::child::process::Child;

const PATIENCE: Duration = Duration::from_secs(20);

/// The other end of a child.
pub(super) struct PlayedChild<E> {
    pub(super) told: mpsc::Receiver<String>,
    pub(super) says: mpsc::Sender<E>,
    pub(super) stop: CancellationToken,
}

/// A child that takes so many lines before it reads one.
pub(super) fn child<E>(room: usize) -> (Child<E>, PlayedChild<E>) {
    let (say, told) = mpsc::channel(room);
    let (says, events) = mpsc::channel(64);
    let stop = CancellationToken::new();
    let played = PlayedChild {
        told,
        says,
        stop: stop.clone(),
    };
    (Child { say, events, stop }, played)
}

impl<E> PlayedChild<E> {
    /// The line that it is told next.
    pub(super) async fn hears(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.told.recv()).await;
        let line = line.expect("it is told").expect("somebody owns it");
        serde_json::from_str(&line).unwrap()
    }

    /// Waits until it is told to end.
    pub(super) async fn is_stopped(&self) {
        let stopped = tokio::time::timeout(PATIENCE, self.stop.cancelled()).await;
        stopped.expect("it is stopped");
    }

    /// Waits until nobody owns it, and nobody has told it anything more.
    pub(super) async fn is_left(&mut self) {
        let left = tokio::time::timeout(PATIENCE, self.told.recv()).await;
        assert_eq!(left.expect("it is left"), None);
    }
}

/// So much time is over at once. Only for when all that is under way waits for
/// time to pass: the store's answers would come too late.
pub(super) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Lets time pass in great steps until this is so.
pub(super) async fn in_time(what: impl Fn() -> bool) {
    for _ in 0..1_000 {
        for _ in 0..20 {
            if what() {
                return;
            }
            tokio::task::yield_now().await;
        }
        pass(Duration::from_secs(5)).await;
    }
    panic!("it never came to be");
}
