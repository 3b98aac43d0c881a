//! Bounds the connections that have not sent a whole request yet. At the cap
//! the slowest makes room, never the newest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// An honest client sends its request in one go; one that takes longer than
/// this gives way when there is no room.
const PATIENCE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct Admission {
    cap: usize,
    open: Mutex<OpenSlots>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct OpenSlots {
    next: u64,
    slots: BTreeMap<u64, (Instant, CancellationToken)>,
}

/// Room for one unfinished request; dropped when it is complete.
#[derive(Debug)]
pub(super) struct RequestSlot {
    admission: Arc<Admission>,
    number: u64,
    evicted: CancellationToken,
}

impl Admission {
    pub(super) fn new(cap: usize) -> Arc<Self> {
        Arc::new(Self {
            cap,
            open: Mutex::default(),
            freed: Notify::new(),
        })
    }

    pub(super) async fn admit(self: &Arc<Self>) -> RequestSlot {
        loop {
            let freed = self.freed.notified();
            let oldest = match self.try_admit() {
                Ok(slot) => return slot,
                Err(oldest) => oldest,
            };
            tokio::select! {
                () = freed => {}
                () = tokio::time::sleep_until(oldest + PATIENCE) => {}
            }
        }
    }

    fn try_admit(self: &Arc<Self>) -> Result<RequestSlot, Instant> {
        let now = Instant::now();
        let mut open = self.lock();
        if open.slots.len() >= self.cap
            && let Some(oldest) = open.slots.first_entry()
        {
            let since = oldest.get().0;
            if now.duration_since(since) < PATIENCE {
                return Err(since);
            }
            oldest.remove().1.cancel();
        }
        let evicted = CancellationToken::new();
        let number = open.next;
        open.next += 1;
        open.slots.insert(number, (now, evicted.clone()));
        Ok(RequestSlot {
            admission: Arc::clone(self),
            number,
            evicted,
        })
    }

    fn lock(&self) -> MutexGuard<'_, OpenSlots> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestSlot {
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        if self.admission.lock().slots.remove(&self.number).is_some() {
            self.admission.freed.notify_one();
        }
    }
}
