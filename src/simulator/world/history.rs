//! Everything that happened, in order and bounded, and one signal that
//! something changed, so that nobody has to poll or sleep.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::watch;

const MAX_VIOLATIONS: usize = 1000;

/// One thing that happened. `kind` is one of the words docs/simulator.md lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryEntry {
    pub seq: u64,
    pub at: u64,
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    #[serde(flatten)]
    pub detail: Map<String, Value>,
}

/// Something a client did that Feishu's protocol does not allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub rule: &'static str,
    pub connection: Option<u64>,
    pub detail: String,
}

#[derive(Debug, Default)]
struct Records {
    entries: VecDeque<HistoryEntry>,
    last: u64,
    violations: VecDeque<Violation>,
}

#[derive(Debug)]
pub(in crate::simulator) struct History {
    records: Mutex<Records>,
    changed: watch::Sender<u64>,
    cap: usize,
    quiet: bool,
}

impl History {
    pub(in crate::simulator) fn new(cap: usize, quiet: bool) -> Self {
        Self {
            records: Mutex::default(),
            changed: watch::Sender::new(0),
            cap: cap.max(1),
            quiet,
        }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `detail` is only called when history is kept.
    pub(in crate::simulator) fn record(
        &self,
        at: u64,
        kind: &'static str,
        connection: Option<u64>,
        detail: impl FnOnce() -> Value,
    ) {
        if !self.quiet {
            let detail = match detail() {
                Value::Object(map) => map,
                other => Map::from_iter([("detail".to_owned(), other)]),
            };
            let mut records = self.records();
            records.last += 1;
            let seq = records.last;
            if records.entries.len() == self.cap {
                records.entries.pop_front();
            }
            records.entries.push_back(HistoryEntry {
                seq,
                at,
                kind,
                connection,
                detail,
            });
        }
        self.touch();
    }

    pub(in crate::simulator) fn violation(
        &self,
        at: u64,
        rule: &'static str,
        connection: Option<u64>,
        detail: String,
    ) {
        let shown = detail.clone();
        {
            let mut records = self.records();
            if records.violations.len() == MAX_VIOLATIONS {
                records.violations.pop_front();
            }
            records.violations.push_back(Violation {
                rule,
                connection,
                detail,
            });
        }
        self.record(
            at,
            "violation",
            connection,
            || serde_json::json!({"rule": rule, "detail": shown}),
        );
    }

    pub(in crate::simulator) fn touch(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Entries after `seq`, oldest first, at most `limit`.
    pub(in crate::simulator) fn after(&self, seq: u64, limit: usize) -> Vec<HistoryEntry> {
        let records = self.records();
        let first = records.entries.front().map_or(0, |entry| entry.seq);
        let skip = usize::try_from((seq + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        records
            .entries
            .iter()
            .skip(skip)
            .take(limit)
            .cloned()
            .collect()
    }

    pub(in crate::simulator) fn last(&self) -> u64 {
        self.records().last
    }

    pub(in crate::simulator) fn violations(&self) -> Vec<Violation> {
        self.records().violations.iter().cloned().collect()
    }

    pub(in crate::simulator) fn clear_violations(&self) {
        self.records().violations.clear();
        self.touch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn old_entries_make_room_and_numbers_go_on() {
        let history = History::new(3, false);
        for n in 0..5 {
            history.record(n, "message", None, || json!({"n": n}));
        }
        let seqs: Vec<u64> = history.after(0, 10).iter().map(|e| e.seq).collect();
        assert_eq!(seqs, [3, 4, 5]);
        assert_eq!(history.after(4, 10).len(), 1);
        assert_eq!(history.after(5, 10), []);
        assert_eq!(history.after(2, 1)[0].seq, 3);
        assert_eq!(history.last(), 5);
    }

    #[test]
    fn quiet_history_still_wakes_waiters() {
        let history = History::new(3, true);
        let mut watch = history.watch();
        history.record(0, "message", None, || panic!("detail built in quiet mode"));
        assert!(watch.has_changed().unwrap());
        watch.mark_unchanged();
        assert_eq!(history.after(0, 10), []);
    }

    #[test]
    fn violations_are_bounded() {
        let history = History::new(3, false);
        for _ in 0..MAX_VIOLATIONS + 5 {
            history.violation(0, "late_reply", None, String::new());
        }
        assert_eq!(history.violations().len(), MAX_VIOLATIONS);
        history.clear_violations();
        assert_eq!(history.violations(), []);
    }
}
