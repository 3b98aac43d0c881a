//! The daemon's figures in Prometheus' text format, from the same report that
//! `nod status` shows. Formats only.

use serde_json::Value;
use std::fmt::Write as _;

/// The page a scraper reads, of a status report.
pub fn text(report: &Value) -> String {
    let connection = &report["connection"];
    let mut page = MetricsPage::default();
    let version = report["version"].as_str().unwrap_or_default();
    page.head("nod_info", "gauge", "The running version.");
    let _ = writeln!(page.0, "nod_info{{version=\"{}\"}} 1", label_value(version));
    let up = seconds(&report["up_ms"], 1e3);
    page.gauge("nod_uptime_seconds", "Since the daemon started.", up);
    let connected = flag(connection["state"] == "connected");
    page.gauge(
        "nod_connected",
        "Whether the long connection is up.",
        connected,
    );
    let connects = &connection["connects"];
    page.counter("nod_connects_total", "Long connections opened.", connects);
    let events = &connection["events"];
    page.counter("nod_events_total", "Events taken from Feishu.", events);
    let (dropped, help) = (&connection["dropped"], "Events that could not be taken.");
    page.counter("nod_dropped_events_total", help, dropped);
    let pending = number(&report["pending"]);
    page.gauge(
        "nod_pending_requests",
        "Requests that wait for a tap.",
        pending,
    );
    let locked = flag(report["locked"] == true);
    page.gauge("nod_locked", "Whether remote approval is locked.", locked);
    let stored = flag(report["store"]["ok"] == true);
    page.gauge("nod_store_ok", "Whether the store can be written.", stored);
    page.summary(
        "nod_tap_reply_seconds",
        "From a tap to the reply for Feishu.",
        &report["latency"]["tap_to_reply"],
    );
    page.summary(
        "nod_tap_hook_seconds",
        "From a tap to the hook's word that it has the decision.",
        &report["latency"]["tap_to_hook"],
    );
    page.0
}

#[derive(Default)]
struct MetricsPage(String);

impl MetricsPage {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, "gauge", help);
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, count: &Value) {
        self.head(name, "counter", help);
        let _ = writeln!(self.0, "{name} {}", number(count));
    }

    fn summary(&mut self, name: &str, help: &str, of: &Value) {
        self.head(name, "summary", help);
        for (quantile, field) in [("0.5", "p50_us"), ("0.99", "p99_us")] {
            let value = seconds(&of[field], 1e6);
            let _ = writeln!(self.0, "{name}{{quantile=\"{quantile}\"}} {value}");
        }
        let _ = writeln!(self.0, "{name}_sum {}", seconds(&of["sum_us"], 1e6));
        let _ = writeln!(self.0, "{name}_count {}", number(&of["count"]));
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn seconds(value: &Value, per_second: f64) -> f64 {
    number(value) / per_second
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn label_value(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_line_is_a_comment_or_a_sample_and_every_sample_is_described() {
        let latency = json!({"count": 4, "sum_us": 1_000, "p50_us": 200, "p99_us": 400});
        let page = text(&json!({
            "version": "0.1.0\"\n", "up_ms": 1_500, "pending": 2, "locked": false,
            "connection": {"state": "connected", "connects": 3, "events": 9, "dropped": 0},
            "store": {"ok": true},
            "latency": {"tap_to_reply": latency, "tap_to_hook": {}},
        }));
        for expected in [
            "nod_info{version=\"0.1.0\\\"\\n\"} 1\n",
            "nod_uptime_seconds 1.5\n",
            "nod_connected 1\n",
            "nod_connects_total 3\n",
            "nod_events_total 9\n",
            "nod_pending_requests 2\n",
            "nod_locked 0\n",
            "nod_store_ok 1\n",
            "nod_tap_reply_seconds{quantile=\"0.5\"} 0.0002\n",
            "nod_tap_reply_seconds{quantile=\"0.99\"} 0.0004\n",
            "nod_tap_reply_seconds_sum 0.001\n",
            "nod_tap_reply_seconds_count 4\n",
            "nod_tap_hook_seconds_count 0\n",
        ] {
            assert!(page.contains(expected), "{expected} is not in\n{page}");
        }
        let mut described = "";
        for line in page.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["#", "HELP", name, ..] => described = name,
                ["#", "TYPE", name, _] => assert_eq!(name, described),
                [sample, value] => {
                    assert!(sample.starts_with(described), "{line}");
                    assert!(value.parse::<f64>().is_ok(), "{line}");
                }
                _ => panic!("{line}"),
            }
        }
        assert!(page.ends_with('\n'));
    }
}
