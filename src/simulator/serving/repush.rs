//! Feishu's second, third, fourth and fifth try for an event that nobody
//! acknowledged. Callbacks never come here: Feishu does not repeat a click.

use std::time::{Duration, Instant};

use prost::bytes::Bytes;
use serde_json::json;

use super::push::Pushed;
use crate::simulator::world::core::Core;

const MAX_WAITING: usize = 10_000;
const IDLE: Duration = Duration::from_hours(1);

/// An event on its way to being acknowledged.
#[derive(Debug, Clone)]
pub(in crate::simulator) struct UnackedEvent {
    pub(in crate::simulator) app: usize,
    pub(in crate::simulator) event_id: String,
    pub(in crate::simulator) message_id: Option<String>,
    pub(in crate::simulator) payload: Bytes,
    pub(in crate::simulator) attempt: usize,
}

#[derive(Debug, Default)]
pub(in crate::simulator) struct RepushLadder {
    waiting: Vec<(Instant, UnackedEvent)>,
}

impl RepushLadder {
    pub(in crate::simulator) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn next(&self) -> Option<Instant> {
        self.waiting.iter().map(|(due, _)| *due).min()
    }

    /// Takes what is due, or everything.
    fn take(&mut self, now: Option<Instant>) -> Vec<UnackedEvent> {
        let due = |at: &Instant| now.is_none_or(|now| *at <= now);
        self.waiting
            .extract_if(.., |(at, _)| due(at))
            .map(|(_, delivery)| delivery)
            .collect()
    }
}

impl Core {
    /// Pushes an event once; without a 200 in time it goes on the ladder.
    pub(in crate::simulator) async fn deliver(&self, mut delivery: UnackedEvent) -> Pushed {
        let (flight, answered) = self
            .push_and_wait(delivery.app, delivery.payload.clone(), None)
            .await;
        let pushed = Pushed::new(
            delivery.event_id.clone(),
            delivery.message_id.clone(),
            flight.as_ref(),
            answered.as_ref(),
        );
        if pushed.acknowledged() {
            return pushed;
        }
        let wait = self.options.repush.get(delivery.attempt).copied();
        self.record("unacknowledged", pushed.connection, || {
            json!({
                "event_id": pushed.event_id,
                "attempt": delivery.attempt + 1,
                "code": pushed.code,
                "next_in_ms": wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            })
        });
        if let Some(wait) = wait {
            delivery.attempt += 1;
            let mut ladder = self.ladder();
            if ladder.waiting.len() < MAX_WAITING {
                ladder.waiting.push((Instant::now() + wait, delivery));
            }
            drop(ladder);
            self.ladder_changed.notify_one();
            self.history.touch();
        }
        pushed
    }

    /// Pushes again everything that waits for its next try, now.
    pub(in crate::simulator) async fn advance_repush(&self) -> Vec<Pushed> {
        let all = self.ladder().take(None);
        futures::future::join_all(all.into_iter().map(|delivery| self.deliver(delivery))).await
    }

    /// Climbs the ladder in real time until the simulator stops.
    pub(in crate::simulator) async fn climb(self: std::sync::Arc<Self>) {
        loop {
            let next = self.ladder().next();
            let pause = next.map_or(IDLE, |at| at.saturating_duration_since(Instant::now()));
            tokio::select! {
                () = self.cancel.cancelled() => return,
                () = self.ladder_changed.notified() => {}
                () = tokio::time::sleep(pause) => {
                    let due = self.ladder().take(Some(Instant::now()));
                    for delivery in due {
                        let core = self.clone();
                        self.tasks.spawn(async move { core.deliver(delivery).await });
                    }
                }
            }
        }
    }
}
