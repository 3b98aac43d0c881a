//! What every part of a running simulator shares: the world, the armed
//! faults, the live connections, the pushes in flight, the history.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::history::History;
use super::options::Options;
use super::state::World;
use crate::simulator::control::faults::{Armed, At, Fault, Faults};
use crate::simulator::serving::line::{LineOrder, OpenLines};
use crate::simulator::serving::push::Pushes;
use crate::simulator::serving::registration::Registrations;
use crate::simulator::serving::repush::RepushLadder;

#[derive(Debug)]
pub(in crate::simulator) struct Core {
    pub(in crate::simulator) options: Options,
    pub(in crate::simulator) history: History,
    pub(in crate::simulator) cancel: CancellationToken,
    pub(in crate::simulator) tasks: TaskTracker,
    pub(in crate::simulator) ladder_changed: Notify,
    pub(in crate::simulator) socket_port: u16,
    world: Mutex<World>,
    lines: Mutex<OpenLines>,
    pushes: Mutex<Pushes>,
    ladder: Mutex<RepushLadder>,
    registrations: Mutex<Registrations>,
    faults: Mutex<Faults>,
    any_fault: AtomicBool,
    clock_ahead: AtomicI64,
    answers: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    pub(in crate::simulator) fn new(options: Options, socket_port: u16) -> Self {
        Self {
            history: History::new(options.history, options.quiet),
            cancel: CancellationToken::new(),
            tasks: TaskTracker::new(),
            ladder_changed: Notify::new(),
            socket_port,
            world: Mutex::new(World::new(&options)),
            lines: Mutex::default(),
            pushes: Mutex::default(),
            ladder: Mutex::default(),
            registrations: Mutex::default(),
            faults: Mutex::default(),
            any_fault: AtomicBool::new(false),
            clock_ahead: AtomicI64::new(options.clock_ahead_ms),
            answers: AtomicU64::new(0),
            options,
        }
    }

    pub(in crate::simulator) fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    pub(in crate::simulator) fn lines(&self) -> MutexGuard<'_, OpenLines> {
        lock(&self.lines)
    }

    pub(in crate::simulator) fn pushes(&self) -> MutexGuard<'_, Pushes> {
        lock(&self.pushes)
    }

    /// Lock it before the world, never after.
    pub(in crate::simulator) fn registrations(&self) -> MutexGuard<'_, Registrations> {
        lock(&self.registrations)
    }

    pub(in crate::simulator) fn ladder(&self) -> MutexGuard<'_, RepushLadder> {
        lock(&self.ladder)
    }

    /// Milliseconds since 1970, plus what the clock was set ahead.
    pub(in crate::simulator) fn now(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let real = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        real.saturating_add_signed(self.clock_ahead.load(Ordering::Relaxed))
    }

    pub(in crate::simulator) fn advance_clock(&self, ms: u64) {
        let by = i64::try_from(ms).unwrap_or(i64::MAX);
        self.clock_ahead.fetch_add(by, Ordering::Relaxed);
        self.record("clock", None, || json!({"advanced_ms": ms}));
    }

    /// What `Date` carries.
    pub(in crate::simulator) fn http_date(&self) -> String {
        let now = i64::try_from(self.now()).unwrap_or(i64::MAX);
        let now = jiff::Timestamp::from_millisecond(now).unwrap_or_default();
        let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
        let date = printer.timestamp_to_rfc9110_string(&now);
        date.expect("a year of four digits")
    }

    /// What `X-Tt-Logid` carries. Takes no lock, because answers are written
    /// while the world is read.
    pub(in crate::simulator) fn log_id(&self) -> String {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        format!("{}{number:019x}", self.now())
    }

    pub(in crate::simulator) fn record(
        &self,
        kind: &'static str,
        connection: Option<u64>,
        detail: impl FnOnce() -> serde_json::Value,
    ) {
        self.history.record(self.now(), kind, connection, detail);
    }

    pub(in crate::simulator) fn violation(
        &self,
        rule: &'static str,
        connection: Option<u64>,
        detail: String,
    ) {
        self.history.violation(self.now(), rule, connection, detail);
    }

    /// Uses up one armed fault that fits. Costs one load while none is armed.
    pub(in crate::simulator) fn take_fault(
        &self,
        connection: Option<u64>,
        at: At,
        fits: impl Fn(&Fault) -> bool,
    ) -> Option<Fault> {
        if !self.any_fault.load(Ordering::Acquire) {
            return None;
        }
        let fault = {
            let mut faults = lock(&self.faults);
            let fault = faults.take(connection, at, fits)?;
            self.any_fault
                .store(!faults.0.is_empty(), Ordering::Release);
            fault
        };
        self.record(
            "fault",
            connection,
            || json!({"struck": serde_json::to_value(&fault).unwrap_or_default()}),
        );
        Some(fault)
    }

    /// Arms a fault. What cuts or writes into a connection strikes every live
    /// one at once and stays armed for the next only if there is some left.
    pub(in crate::simulator) fn arm(&self, armed: Armed) -> Result<(), String> {
        check_fault(&armed.fault)?;
        self.record(
            "fault",
            armed.connection,
            || json!({"armed": serde_json::to_value(&armed).unwrap_or_default()}),
        );
        let at_once = armed.at == At::Now && (armed.fault.cuts() || armed.fault.injects());
        let mut armed = armed;
        if at_once {
            let struck = self.lines().order_all(armed.connection, || {
                if armed.fault.cuts() {
                    LineOrder::Cut(armed.fault.clone())
                } else {
                    LineOrder::Inject(armed.fault.clone())
                }
            });
            if armed.connection.is_some() && struck == 0 {
                return Err("there is no such connection".to_owned());
            }
            if struck > 0 {
                armed.times = armed.times.map(|times| times.saturating_sub(1));
            }
        }
        let mut faults = lock(&self.faults);
        faults.arm(armed)?;
        self.any_fault
            .store(!faults.0.is_empty(), Ordering::Release);
        Ok(())
    }

    pub(in crate::simulator) fn clear_faults(&self) {
        let mut faults = lock(&self.faults);
        faults.0.clear();
        self.any_fault.store(false, Ordering::Release);
    }

    pub(in crate::simulator) fn faults(&self) -> Vec<Armed> {
        lock(&self.faults).0.clone()
    }

    /// Waits until `ready` gives something, looking again at every change.
    pub(in crate::simulator) async fn wait<T>(
        &self,
        limit: Duration,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let mut changed = self.history.watch();
        let waiting = async {
            loop {
                changed.mark_unchanged();
                if let Some(found) = ready() {
                    return Some(found);
                }
                if changed.changed().await.is_err() {
                    return None;
                }
            }
        };
        timeout(limit, waiting).await.ok().flatten()
    }
}

fn check_fault(fault: &Fault) -> Result<(), String> {
    match fault {
        Fault::Garbage { hex } if crate::simulator::unhex(hex).is_none() => {
            Err("`hex` is not hexadecimal".to_owned())
        }
        Fault::OversizedFrame { bytes } if *bytes > 64 << 20 => {
            Err("`bytes` is more than 64 MiB".to_owned())
        }
        Fault::Fragments(fragments) if !(1..=10_000).contains(&fragments.count) => {
            Err("`count` is not in 1..=10000".to_owned())
        }
        _ => Ok(()),
    }
}
