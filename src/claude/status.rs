//! What Claude Code says about itself in `sessions/<pid>.json`, and what that
//! means for a request that waits: whether its dialog was answered in the
//! terminal. Pure. It never yields an allow: whoever could forge the file can
//! only take a request back to the terminal. What holds in which version is in
//! `docs/claude-code.md`.

use crate::clock::Millis;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A dialog is gone for good after this; on a "no" the hook ends before.
const GRACE: Millis = 150;

/// One look at the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusReading {
    pub pid: u32,
    pub session: String,
    /// When the process began, in the system's own count.
    pub began: Option<String>,
    /// Where it takes words of others, if it does.
    pub socket: Option<PathBuf>,
    /// A person sits before it. In print mode and over stdio nobody does.
    in_terminal: bool,
    state: Activity,
    /// When `state` became what it is, by the wall clock.
    changed_at: Option<Millis>,
}

/// Who answered first, the terminal or somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// The dialog was gone by then.
    Terminal(Millis),
    NotTheTerminal,
    /// The file has not caught up with either.
    NotYetTold,
}

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Some dialog is open, whichever.
    Waiting,
    Busy,
    Idle,
    Other,
}

impl StatusReading {
    /// Who answered a request that was asked at `asked_at` and got another
    /// answer at `answered_at`.
    pub fn first(&self, asked_at: Millis, answered_at: Millis) -> First {
        match (self.state, self.changed_at.filter(|at| *at > asked_at)) {
            (Activity::Waiting, _) | (_, None) => First::NotYetTold,
            (Activity::Busy, Some(at)) if at <= answered_at => First::Terminal(at),
            (Activity::Busy | Activity::Idle | Activity::Other, Some(_)) => First::NotTheTerminal,
        }
    }

    /// A person sits before it.
    pub fn in_terminal(&self) -> bool {
        self.in_terminal
    }

    pub fn state(&self) -> Activity {
        self.state
    }

    /// What it does began after this.
    pub fn changed_since(&self, at: Millis) -> bool {
        self.changed_at.is_some_and(|changed| changed > at)
    }

    /// Some dialog is open before a person.
    pub fn shows_dialog(&self) -> bool {
        self.in_terminal && self.state == Activity::Waiting
    }

    pub fn parse(bytes: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct RawStatus {
            pid: u32,
            session_id: String,
            proc_start: Option<String>,
            entrypoint: Option<String>,
            messaging_socket_path: Option<PathBuf>,
            status: Option<String>,
            status_updated_at: Option<i64>,
        }
        let raw: RawStatus = serde_json::from_slice(bytes).ok()?;
        Some(Self {
            pid: raw.pid,
            session: raw.session_id,
            began: raw.proc_start,
            socket: raw.messaging_socket_path,
            in_terminal: raw.entrypoint.as_deref() == Some("cli"),
            state: match raw.status.as_deref() {
                Some("waiting") => Activity::Waiting,
                Some("busy") => Activity::Busy,
                Some("idle") => Activity::Idle,
                _ => Activity::Other,
            },
            changed_at: raw.status_updated_at,
        })
    }
}

/// The directory of the status files, from where a session's transcript is.
pub fn dir(transcript: &Path) -> Option<PathBuf> {
    let projects = transcript.parent()?.parent()?;
    let is_there = transcript.is_absolute() && projects.file_name()? == "projects";
    is_there.then(|| projects.with_file_name("sessions"))
}

/// What the readings say about one request of the main agent.
#[derive(Debug, Clone)]
pub struct StatusJudge {
    asked_at: Millis,
    waited: bool,
    left: Option<LeftWaiting>,
}

#[derive(Debug, Clone, Copy)]
struct LeftWaiting {
    since: Millis,
    seen: Millis,
}

impl StatusJudge {
    pub fn new(asked_at: Millis) -> Self {
        Self {
            asked_at,
            waited: false,
            left: None,
        }
    }

    /// Takes a reading. A file that has not caught up with the dialog yet says
    /// `busy` too: only what was `waiting` since the request, or has changed
    /// since, counts. `clocks_agree`: the file's clock can be compared.
    pub fn see(&mut self, reading: &StatusReading, now: Millis, clocks_agree: bool) {
        if !reading.in_terminal {
            return;
        }
        match reading.state {
            Activity::Waiting => {
                self.waited = true;
                self.left = None;
            }
            Activity::Busy if self.left.is_none() => {
                let changed = reading.changed_at.filter(|_| clocks_agree);
                let changed = changed.filter(|at| *at > self.asked_at);
                if self.waited || changed.is_some() {
                    let since = changed.unwrap_or(now).min(now);
                    self.left = Some(LeftWaiting { since, seen: now });
                }
            }
            Activity::Busy | Activity::Idle | Activity::Other => {}
        }
    }

    /// Since when no dialog is open any more, as far as one look can tell.
    pub fn left(&self) -> Option<Millis> {
        self.left.map(|left| left.since)
    }

    /// The same once it is certain, if the hook is still there: the terminal
    /// said yes.
    pub fn runs(&self, now: Millis) -> Option<Millis> {
        let left = self.left.filter(|left| now >= left.seen + GRACE)?;
        Some(left.since)
    }
}

/// Whether these arguments of a process of Claude Code's run this command.
pub fn runs_command(arguments: &[u8], command: &str) -> bool {
    let text = String::from_utf8_lossy(arguments);
    let quoted = command.replace('\'', "'\"'\"'");
    text.contains(&format!(" eval '{quoted}' "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Millis = 1_000_000;

    fn reading(status: &str, changed_at: Millis) -> StatusReading {
        let text = format!(
            r#"{{"pid":7,"sessionId":"s","procStart":"42","entrypoint":"cli","version":"2.1.325",
                "status":"{status}","statusUpdatedAt":{changed_at}}}"#
        );
        StatusReading::parse(text.as_bytes()).unwrap()
    }

    fn seen(readings: &[(&str, Millis, Millis)]) -> StatusJudge {
        let mut judge = StatusJudge::new(ASKED);
        for (status, changed_at, now) in readings {
            judge.see(&reading(status, *changed_at), *now, true);
        }
        judge
    }

    #[test]
    fn a_yes_is_noticed_and_a_dialog_that_is_not_open_yet_is_not_taken_for_one() {
        let yes = seen(&[
            ("busy", ASKED - 900, ASKED + 10),
            ("waiting", ASKED + 30, ASKED + 110),
            ("busy", ASKED + 5_000, ASKED + 5_050),
        ]);
        assert_eq!(yes.left(), Some(ASKED + 5_000));
        assert_eq!(yes.runs(ASKED + 5_060), None, "a no ends the hook first");
        assert_eq!(yes.runs(ASKED + 5_050 + GRACE), Some(ASKED + 5_000));
        let open = seen(&[
            ("busy", ASKED - 900, ASKED + 10),
            ("busy", ASKED - 900, ASKED + 60_000),
        ]);
        assert_eq!(open.left(), None);
    }

    #[test]
    fn a_dialog_that_opened_before_the_hook_began_counts() {
        let yes = seen(&[
            ("waiting", ASKED - 280, ASKED + 10),
            ("busy", ASKED + 400, ASKED + 450),
        ]);
        assert_eq!(yes.left(), Some(ASKED + 400));
    }

    #[test]
    fn a_yes_between_two_looks_or_while_nobody_looked_is_noticed() {
        assert_eq!(
            seen(&[("busy", ASKED + 90, ASKED + 60_000)]).left(),
            Some(ASKED + 90)
        );
        let mut judge = StatusJudge::new(ASKED);
        judge.see(&reading("busy", ASKED + 90), ASKED + 100, false);
        assert_eq!(judge.left(), None, "the clocks do not agree");
    }

    #[test]
    fn the_next_dialog_takes_a_moment_without_one_back() {
        let queue = seen(&[
            ("waiting", ASKED, ASKED + 10),
            ("busy", ASKED + 500, ASKED + 510),
            ("waiting", ASKED + 520, ASKED + 610),
        ]);
        assert_eq!(queue.left(), None);
    }

    #[test]
    fn an_idle_or_unknown_state_and_print_mode_say_nothing() {
        for status in ["idle", "shell", ""] {
            let judge = seen(&[("waiting", ASKED, ASKED), (status, ASKED + 9, ASKED + 9)]);
            assert_eq!(judge.left(), None, "{status}");
        }
        let mut judge = StatusJudge::new(ASKED);
        let mut printing = reading("busy", ASKED + 9);
        printing.in_terminal = false;
        judge.see(&printing, ASKED + 10, true);
        assert_eq!(judge.left(), None);
    }

    #[test]
    fn whoever_answered_first_is_told_by_the_time_of_the_change() {
        let at = |status, changed_at| reading(status, changed_at).first(ASKED, ASKED + 500);
        assert_eq!(at("waiting", ASKED + 20), First::NotYetTold);
        assert_eq!(at("busy", ASKED - 20), First::NotYetTold);
        assert_eq!(at("busy", ASKED + 490), First::Terminal(ASKED + 490));
        assert_eq!(at("busy", ASKED + 530), First::NotTheTerminal);
        assert_eq!(at("idle", ASKED + 900), First::NotTheTerminal);
    }

    #[test]
    fn what_is_no_status_is_none() {
        for bad in [
            "",
            "{}",
            "[1]",
            r#"{"pid":-1,"sessionId":"s"}"#,
            r#"{"pid":1}"#,
        ] {
            assert_eq!(StatusReading::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn the_directory_is_found_beside_the_projects() {
        let found = |path: &str| dir(Path::new(path));
        assert_eq!(
            found("/h/.claude/projects/-p/x.jsonl"),
            Some("/h/.claude/sessions".into())
        );
        for elsewhere in ["x.jsonl", "/x.jsonl", "/a/b/c.jsonl", "projects/p/x.jsonl"] {
            assert_eq!(found(elsewhere), None, "{elsewhere}");
        }
    }

    #[test]
    fn a_command_is_found_in_its_shells_arguments_and_no_other() {
        let shell = |script: &str| {
            let script = script.replace('\'', "'\"'\"'");
            format!(
                "/bin/bash\0-c\0source /s 2>/dev/null || true && eval '{script}' < /dev/null && pwd -P >| /t\0"
            )
        };
        let command = "echo 'it''s' \"$HOME\" | cat; sleep 3";
        assert!(runs_command(shell(command).as_bytes(), command));
        assert!(!runs_command(shell("echo; sleep 3").as_bytes(), "sleep 3"));
        assert!(!runs_command(b"/bin/sh\0-c\0nod hook\0", "nod hook"));
    }
}
