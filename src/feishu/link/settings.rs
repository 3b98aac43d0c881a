//! What the server may tell a client about pace. Each field is taken or left
//! alone by itself: `{}` changes nothing, and no value can make a busy loop.

use serde_json::Value;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerSettings {
    pub ping_every: Duration,
    /// The longest wait between two dials.
    pub redial_ceiling: Duration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            ping_every: Duration::from_secs(120),
            redial_ceiling: Duration::from_secs(120),
        }
    }
}

impl ServerSettings {
    /// Takes over the usable fields of a `ClientConfig`. `ReconnectCount` and
    /// `ReconnectNonce` are not honoured: a daemon that gives up, or that stays
    /// deaf for half a minute, fails the person waiting for it.
    #[must_use]
    pub fn updated(mut self, config: &Value) -> Self {
        if let Some(seconds) = seconds(config, "PingInterval") {
            self.ping_every = Duration::from_secs(seconds.clamp(10, 300));
        }
        if let Some(seconds) = seconds(config, "ReconnectInterval") {
            self.redial_ceiling = Duration::from_secs(seconds.clamp(1, 120));
        }
        self
    }
}

fn seconds(config: &Value, field: &str) -> Option<u64> {
    config.get(field)?.as_u64().filter(|&seconds| seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_field_is_judged_alone() {
        let base = ServerSettings::default().updated(&json!({"PingInterval": 90}));
        assert_eq!(base.ping_every, Duration::from_secs(90));
        for (config, ping, redial) in [
            (json!({}), 90, 120),
            (json!(null), 90, 120),
            (json!([1]), 90, 120),
            (json!({"PingInterval": 0}), 90, 120),
            (json!({"PingInterval": -5}), 90, 120),
            (json!({"PingInterval": "10"}), 90, 120),
            (json!({"PingInterval": null, "ReconnectInterval": 7}), 90, 7),
            (json!({"PingInterval": 1}), 10, 120),
            (json!({"PingInterval": u64::MAX}), 300, 120),
            (
                json!({"PingInterval": 1.5e300, "ReconnectInterval": 1e9}),
                90,
                120,
            ),
            (json!({"ReconnectInterval": 1_000_000}), 90, 120),
        ] {
            let got = base.updated(&config);
            assert_eq!(got.ping_every.as_secs(), ping, "{config}");
            assert_eq!(got.redial_ceiling.as_secs(), redial, "{config}");
        }
    }
}
