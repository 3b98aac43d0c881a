//! What a gateway writes down: who joined, who was refused, whose pass was taken
//! back or renewed. Lines of JSON in a file of its own; the file before it is
//! kept, and no more. A flood of refusals is written as a few and a count.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::clock::Millis;
use crate::files;

/// Where it is kept, in the state directory.
pub const FILE: &str = "team-audit.jsonl";
/// A file that has grown to this is put aside; with the one that is aside, all
/// of it stays within what [`files::read`] takes.
const MAX_BYTES: u64 = 900 * 1024;
const MAX_QUEUED: usize = 1_024;
/// Refusals that are written in any minute.
const MOST_REFUSALS: u32 = 60;
const MINUTE: Millis = 60_000;
const MAX_WHY: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TeamEvent {
    /// A line for joining was given out.
    Invited,
    /// A machine asked to join.
    Asked,
    Joined,
    /// An administrator gave a pass by hand.
    Granted,
    /// The owner said no.
    KeptOut,
    Renewed,
    Forgotten,
    Refused,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamAuditEntry {
    /// By Feishu's time.
    pub at: Millis,
    pub what: TeamEvent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Lets through so many refusals a minute, and counts the rest.
#[derive(Debug, Default)]
struct Dam {
    minute: Millis,
    written: u32,
    held: u32,
}

impl Dam {
    /// Whether this one is written, and how many before it were not.
    fn judge(&mut self, at: Millis) -> (bool, Option<u32>) {
        let minute = at.div_euclid(MINUTE);
        let mut before = None;
        if minute != self.minute {
            before = Some(self.held).filter(|held| *held > 0);
            (self.minute, self.written, self.held) = (minute, 0, 0);
        }
        if self.written < MOST_REFUSALS {
            self.written += 1;
            return (true, before);
        }
        self.held = self.held.saturating_add(1);
        (false, before)
    }
}

/// Takes lines to be written; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Audit {
    lines: mpsc::Sender<TeamAuditEntry>,
}

impl Audit {
    pub(super) fn new() -> (Self, mpsc::Receiver<TeamAuditEntry>) {
        let (lines, queue) = mpsc::channel(MAX_QUEUED);
        (Self { lines }, queue)
    }

    pub(super) fn note(&self, mut entry: TeamAuditEntry) {
        if let Some(why) = &mut entry.why {
            why.truncate(why.floor_char_boundary(MAX_WHY));
        }
        if self.lines.try_send(entry).is_err() {
            warn!("the record of joins and refusals does not keep up: a line is lost");
        }
    }
}

/// Writes until `stop`, and then what was said before.
pub(super) async fn run(
    file: PathBuf,
    mut queue: mpsc::Receiver<TeamAuditEntry>,
    stop: CancellationToken,
) {
    let mut dam = Dam::default();
    loop {
        let entry = tokio::select! {
            entry = queue.recv() => entry,
            () = stop.cancelled(), if !queue.is_closed() => {
                queue.close();
                continue;
            }
        };
        let Some(entry) = entry else {
            return;
        };
        let mut text = String::new();
        if entry.what == TeamEvent::Refused {
            let (written, held) = dam.judge(entry.at);
            if let Some(held) = held {
                let more = TeamAuditEntry {
                    at: entry.at,
                    what: TeamEvent::Refused,
                    owner: None,
                    machine: None,
                    why: Some(format!("and {held} more in the minute before")),
                };
                text.push_str(&line(&more));
            }
            if !written {
                continue;
            }
        }
        text.push_str(&line(&entry));
        let file = file.clone();
        let written = tokio::task::spawn_blocking(move || append(&file, &text)).await;
        if let Err(why) = written.unwrap_or_else(|why| Err(why.into())) {
            warn!("joins and refusals are not written down: {why}");
        }
    }
}

fn line(entry: &TeamAuditEntry) -> String {
    let line = serde_json::to_string(entry).unwrap_or_default();
    line + "\n"
}

/// Writes one line for a command, which is no gateway.
pub fn write(state_dir: &Path, entry: &TeamAuditEntry) -> io::Result<()> {
    append(&state_dir.join(FILE), &line(entry))
}

/// The file before this one.
fn aside(file: &Path) -> PathBuf {
    file.with_extension("jsonl.1")
}

fn append(file: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = file.parent() {
        files::make_dirs(dir, 0o700)?;
    }
    let grown = std::fs::metadata(file).is_ok_and(|is| is.len() >= MAX_BYTES);
    if grown {
        std::fs::rename(file, aside(file))?;
    }
    let mut open = std::fs::File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(file)?;
    open.write_all(text.as_bytes())
}

/// The last lines that were written, oldest first. A line that was torn by the
/// end of its writer is left out.
pub fn last(state_dir: &Path, most: usize) -> io::Result<Vec<TeamAuditEntry>> {
    let file = state_dir.join(FILE);
    let mut all = Vec::new();
    for file in [aside(&file), file] {
        let bytes = files::read(&file)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let entries = text
            .lines()
            .filter_map(|one| serde_json::from_str(one).ok());
        all.extend(entries);
    }
    let skipped = all.len().saturating_sub(most);
    Ok(all.split_off(skipped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn stopped() -> CancellationToken {
        let stop = CancellationToken::new();
        stop.cancel();
        stop
    }

    fn entry(at: Millis, what: TeamEvent) -> TeamAuditEntry {
        TeamAuditEntry {
            at,
            what,
            owner: Some("ou_a".to_owned()),
            machine: None,
            why: Some("x".repeat(5_000)),
        }
    }

    #[tokio::test]
    async fn lines_read_back_in_a_private_file_and_a_torn_one_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state").join(FILE);
        let (audit, queue) = Audit::new();
        audit.note(entry(1, TeamEvent::Joined));
        audit.note(entry(2, TeamEvent::Forgotten));
        drop(audit);
        run(file.clone(), queue, CancellationToken::new()).await;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        append(&file, "{\"at\":3,\"wh").unwrap();
        let read = last(file.parent().unwrap(), 10).unwrap();
        let seen: Vec<_> = read.iter().map(|one| (one.at, one.what)).collect();
        assert_eq!(seen, [(1, TeamEvent::Joined), (2, TeamEvent::Forgotten)]);
        assert_eq!(read[0].why.as_ref().unwrap().len(), MAX_WHY);
        assert_eq!(last(file.parent().unwrap(), 1).unwrap()[0].at, 2);
        assert!(last(dir.path(), 5).unwrap().is_empty(), "no file, no lines");
    }

    #[tokio::test]
    async fn a_flood_of_refusals_is_a_few_lines_and_a_count() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        let (audit, queue) = Audit::new();
        for _ in 0..500 {
            audit.note(entry(5, TeamEvent::Refused));
        }
        audit.note(entry(6, TeamEvent::Joined));
        audit.note(entry(MINUTE, TeamEvent::Refused));
        drop(audit);
        run(file, queue, stopped()).await;
        let read = last(dir.path(), 1_000).unwrap();
        assert_eq!(read.len(), 60 + 1 + 2, "nothing but refusals is held back");
        let more = read[61].why.as_ref().unwrap();
        assert!(more.contains("440 more"), "{more}");
    }

    #[test]
    fn the_file_is_capped_and_the_one_before_it_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        let text = line(&entry(1, TeamEvent::Refused)).repeat(50);
        for _ in 0..40 {
            append(&file, &text).unwrap();
        }
        let size = |file: &Path| std::fs::metadata(file).map_or(0, |is| is.len());
        for file in [&file, &aside(&file)] {
            assert!(size(file) < files::MAX_BYTES, "{}", size(file));
        }
        assert!(size(&aside(&file)) >= MAX_BYTES);
        assert!(!last(dir.path(), 10).unwrap().is_empty());
    }
}
