//! The only place that prints. What was asked for goes to stdout, everything
//! else to stderr; a reader that went away is no error.

use std::io::{self, Write as _};

/// One line of the answer.
pub(super) fn line(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// Text that already ends as it should.
pub(super) fn text(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

pub(super) fn json(value: &serde_json::Value) {
    line(&format!("{value:#}"));
}

/// Why the command did not do what was asked.
pub(super) fn problem(text: &str) {
    let mut err = io::stderr().lock();
    for line in text.lines() {
        let _ = writeln!(err, "nod: {line}");
    }
}

/// What the person can do about it.
pub(super) fn hint(text: &str) {
    let _ = writeln!(io::stderr().lock(), "hint: {text}");
}
