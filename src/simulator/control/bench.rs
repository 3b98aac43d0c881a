//! Many prebuilt payloads down one app's connection with a fixed number in
//! flight, and how long each reply took. Writes no history.

use std::time::{Duration, Instant};

use prost::bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::simulator::serving::line::LineOrder;
use crate::simulator::serving::push::Sink;
use crate::simulator::world::core::Core;

const REPLY_LIMIT: Duration = Duration::from_secs(10);

/// What a run measured.
#[derive(Debug, Clone, Default)]
pub struct BenchRun {
    /// From the write of the event to the arrival of its reply, unsorted.
    pub latencies: Vec<Duration>,
    pub elapsed: Duration,
    /// Replies with a code other than 200.
    pub refused: usize,
    /// Pushes that got no reply within 10 s.
    pub unanswered: usize,
}

impl BenchRun {
    pub fn per_second(&self) -> f64 {
        let count = u32::try_from(self.latencies.len()).unwrap_or(u32::MAX);
        f64::from(count) / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl Core {
    /// Pushes all payloads to the app's connection, `in_flight` at a time.
    pub(in crate::simulator) async fn bench(
        &self,
        app: usize,
        payloads: &[Bytes],
        in_flight: usize,
    ) -> Option<BenchRun> {
        let (connection, orders) = {
            let mut world = self.world();
            self.lines()
                .choose(app, self.options.in_turn, &mut world.mint)?
        };
        let (sender, mut replies) = mpsc::unbounded_channel();
        let mut waiting = std::collections::HashMap::with_capacity(in_flight.max(1));
        let mut run = BenchRun {
            latencies: Vec::with_capacity(payloads.len()),
            ..BenchRun::default()
        };
        let started = Instant::now();
        let mut next = payloads.iter();
        loop {
            while waiting.len() < in_flight.max(1)
                && let Some(payload) = next.next()
            {
                let sink = Sink::Many(sender.clone());
                let (number, frames) = self.prepare(app, connection, payload, sink, None);
                waiting.insert(number, Instant::now());
                orders.send(LineOrder::Write(frames, None)).await.ok()?;
            }
            if waiting.is_empty() {
                break;
            }
            let Ok(Some(first)) = timeout(REPLY_LIMIT, replies.recv()).await else {
                run.unanswered = waiting.len() + next.len();
                break;
            };
            let mut reply = Some(first);
            while let Some((number, at, code)) = reply {
                if let Some(sent) = waiting.remove(&number) {
                    run.latencies.push(at.saturating_duration_since(sent));
                    run.refused += usize::from(code != 200);
                }
                reply = replies.try_recv().ok();
            }
        }
        run.elapsed = started.elapsed();
        Some(run)
    }
}
