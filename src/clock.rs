//! The daemon's clocks. Deadlines are kept in milliseconds since the epoch by
//! a steady clock: it starts at the wall clock, runs on through sleep, and no
//! later correction of the wall clock moves it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since the Unix epoch, by the daemon's steady clock.
pub type Millis = i64;

#[derive(Debug, Clone, Copy)]
pub struct Clock {
    offset: Millis,
}

impl Clock {
    pub fn start() -> Self {
        Self {
            offset: wall_ms() - running_ms(),
        }
    }

    pub fn now(self) -> Millis {
        self.offset + running_ms()
    }
}

pub fn wall_ms() -> Millis {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, millis)
}

pub fn millis(span: Duration) -> Millis {
    Millis::try_from(span.as_millis()).unwrap_or(Millis::MAX)
}

/// Sleeps until then; without a time, for ever.
pub async fn until(when: Option<tokio::time::Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// Milliseconds since boot, sleep included.
fn running_ms() -> Millis {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const RUNNING: ClockId = ClockId::Boottime;
    // Elsewhere (macOS, the BSDs) the monotonic clock runs on through sleep.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const RUNNING: ClockId = ClockId::Monotonic;
    let now = clock_gettime(RUNNING);
    now.tv_sec * 1_000 + now.tv_nsec / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steady_clock_starts_at_the_wall_clock_and_never_runs_back() {
        let clock = Clock::start();
        let mut last = clock.now();
        assert!((last - wall_ms()).abs() < 1_000);
        for _ in 0..1_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
