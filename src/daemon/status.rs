//! What `nod status` shows, as JSON.

use serde_json::{Value, json};
use std::time::{Duration, Instant};

use super::parts::Parts;
use crate::feishu::link::Phase;
use crate::store::Health;

pub(super) fn report(parts: &Parts) -> Value {
    let view = parts.link.borrow().clone();
    let now = Instant::now();
    let (state, since, cause, retry) = match &view.phase {
        Phase::Up { since } => (
            "connected",
            Some(now.saturating_duration_since(*since)),
            None,
            None,
        ),
        Phase::Dialing { why } => ("connecting", None, why.clone(), None),
        Phase::Waiting { until, why } => (
            "waiting",
            None,
            Some(why.clone()),
            Some(until_ms(*until, now)),
        ),
        Phase::Degraded { until, why } => (
            "degraded",
            None,
            Some(why.clone()),
            Some(until_ms(*until, now)),
        ),
    };
    let last_event = view
        .counts
        .last_push
        .map(|at| ms(now.saturating_duration_since(at)));
    let store = match parts.store.health() {
        Health::Good => json!({"ok": true}),
        Health::Failing(why) => json!({"ok": false, "cause": why}),
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "up_ms": parts.now() - parts.started,
        "machine": {"id": parts.machine.id.as_str(), "name": parts.machine.name},
        "platform": parts.config.domain.name(),
        "app_id": parts.app_id,
        "connection": {
            "state": state,
            "up_ms": since.map(ms),
            "cause": cause,
            "retry_in_ms": retry,
            "connects": view.counts.connects,
            "events": view.counts.pushes,
            "dropped": view.counts.dropped,
            "last_event_ms_ago": last_event,
        },
        "pending": parts.desk.pending(),
        "locked": parts.lock.is_closed(),
        "owner_set": parts.courier.receiver().is_some(),
        "store": store,
    })
}

fn until_ms(until: Instant, now: Instant) -> u64 {
    ms(until.saturating_duration_since(now))
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
