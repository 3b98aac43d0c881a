//! The other side of a connection that is up: when it was heard, when it is
//! asked whether it lives, and when it counts as dead.

use std::time::{Duration, Instant};

/// How long a healthy peer may be silent before it is asked, and how long it
/// has to answer. It is asked twice before it counts as dead, so that one lost
/// packet does not cost the connection.
const IDLE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));
const HOT: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(2));
/// The hot pace for peers that may die of our probes.
const WARY: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(2));

/// A connection that dies so soon after its first hot probe may die of it.
const QUICK_DEATH: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct LinkPeer {
    pub(super) service: i32,
    pub(super) since: Instant,
    pub(super) heard: Instant,
    pub(super) pinged: Instant,
    /// Probes sent since the peer was last heard, and when the last one was.
    probes: u8,
    probed: Instant,
    /// When it was first asked at the hot pace.
    pressed: Option<Instant>,
    /// Whether a probe is due at once, as after sleep.
    doubted: bool,
}

/// What the silence of a peer calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// A WebSocket ping.
    Ping,
    /// A ping of Feishu's own: whatever the peer thinks of the other kind, it
    /// answers this one.
    AppPing,
    /// Nothing was heard for so long.
    Dead(Duration),
}

impl LinkPeer {
    pub(super) fn new(service: i32, now: Instant) -> Self {
        Self {
            service,
            since: now,
            heard: now,
            pinged: now,
            probes: 0,
            probed: now,
            pressed: None,
            doubted: false,
        }
    }

    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
        self.probes = 0;
        self.doubted = false;
    }

    pub(super) fn doubt(&mut self) {
        self.doubted = true;
        self.probes = 0;
    }

    /// Whether it died behind a hot probe; `None` if there was none.
    pub(super) fn died_quickly(&self, now: Instant) -> Option<bool> {
        let pressed = self.pressed?;
        Some(now.saturating_duration_since(pressed) <= QUICK_DEATH)
    }

    pub(super) fn due(&mut self, hot: bool, wary: bool, now: Instant) -> Due {
        let since = |at: Instant| now.saturating_duration_since(at);
        let pressed = hot || self.doubted;
        let (ask_after, grace) = match pressed {
            true if wary => WARY,
            true => HOT,
            false => IDLE,
        };
        let due = match self.probes {
            0 => self.doubted || since(self.heard) >= ask_after,
            _ => since(self.probed) >= grace,
        };
        if !due {
            return Due::Nothing;
        }
        self.probes += 1;
        self.probed = now;
        if pressed {
            self.pressed.get_or_insert(now);
        }
        match self.probes {
            1 => Due::Ping,
            2 => {
                self.pinged = now;
                Due::AppPing
            }
            _ => Due::Dead(since(self.heard)),
        }
    }
}
