//! One thing the doctor looked at: how it is, and what to do about it. Pure.

use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Write as _;

use crate::text::{Lang, Text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Ok,
    /// Works, but look.
    Warning,
    /// A tap will not get through, or somebody could listen.
    Problem,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }

    fn mark(self) -> &'static str {
        match self {
            Self::Ok => "✓",
            Self::Warning => "!",
            Self::Problem => "✗",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// A name that stays, for scripts.
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) text: Text,
    /// What to do, step by step.
    pub(super) fix: Vec<Text>,
    /// How long the tap took, in microseconds.
    pub(super) took: Option<Took>,
}

/// The way of a tap, as the daemon or the test itself measured it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Took {
    pub(super) reply_us: u64,
    pub(super) hook_us: Option<u64>,
}

type FindingText = Cow<'static, str>;

/// One thing that is looked at, by its name.
pub(super) struct Probe(pub(super) &'static str);

impl Probe {
    pub(super) fn ok(self, zh: impl Into<FindingText>, en: impl Into<FindingText>) -> Finding {
        self.found(Level::Ok, zh, en)
    }

    pub(super) fn warning(self, zh: impl Into<FindingText>, en: impl Into<FindingText>) -> Finding {
        self.found(Level::Warning, zh, en)
    }

    pub(super) fn problem(self, zh: impl Into<FindingText>, en: impl Into<FindingText>) -> Finding {
        self.found(Level::Problem, zh, en)
    }

    pub(super) fn found(
        self,
        level: Level,
        zh: impl Into<FindingText>,
        en: impl Into<FindingText>,
    ) -> Finding {
        let (zh, en) = (zh.into(), en.into());
        Finding {
            check: self.0,
            level,
            text: Text { zh, en },
            fix: Vec::new(),
            took: None,
        }
    }
}

impl Finding {
    /// Adds one thing to do.
    pub(super) fn fix(mut self, zh: impl Into<FindingText>, en: impl Into<FindingText>) -> Self {
        let (zh, en) = (zh.into(), en.into());
        self.fix.push(Text { zh, en });
        self
    }

    /// The lines a person reads.
    pub(super) fn page(&self, lang: Lang) -> String {
        let mut out = format!("{} {}\n", self.level.mark(), self.text.get(lang));
        for step in &self.fix {
            let _ = writeln!(out, "    → {}", step.get(lang));
        }
        out
    }

    pub(super) fn as_json(&self, lang: Lang) -> Value {
        let mut value = json!({
            "check": self.check,
            "level": self.level.name(),
            "text": self.text.get(lang),
            "fix": self.fix.iter().map(|step| step.get(lang)).collect::<Vec<_>>(),
        });
        if let Some(took) = self.took {
            value["tap_to_reply_us"] = json!(took.reply_us);
            value["tap_to_hook_us"] = json!(took.hook_us);
        }
        value
    }
}
