//! `nod logs`: what the daemon did, as it does it. Decisions come from the
//! record, because the daemon's own log names ids and never content; the rest
//! comes from that log, which the service manager or a file keeps.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::audit::{self, RecordReader};
use super::wording::Words;
use super::{CommandResult, Failure, output, service};
use crate::clock::Millis;
use crate::config::{Paths, Sources};
use crate::store::{self, Db, Recorded};

#[derive(clap::Args)]
pub(super) struct LogsArguments {
    /// Show what there is and end, instead of waiting for more
    #[arg(long)]
    once: bool,
    /// How many of the newest lines to begin with
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    lines: u32,
}

const LOOK_EVERY: Duration = Duration::from_millis(300);
/// More of the log than this is not looked through for its newest lines.
const MAX_TAIL: u64 = 256 << 10;
const MAX_LINE: u64 = 16 << 10;
/// New rows shown at one look; what is beyond is in `nod audit`.
const MAX_ROWS: u32 = 200;
const LINES_WAITING: usize = 256;

pub(super) fn run(arguments: &LogsArguments, sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    let paths = Paths::load(sources).map_err(|why| Failure::settings(words, sources, &why))?;
    let places = service::places(sources, &paths.state_dir);
    let mut log = match places.and_then(|places| service::journal(&places)) {
        Some(journal) => Log::journal(journal, arguments)
            .map_err(|why| Failure::new(words.no_log(&why.to_string())))?,
        None => Log::file(service::log_file(&paths.state_dir)),
    };
    let follows = !arguments.once;
    let mut record = Rows {
        dir: paths.state_dir,
        last: None,
    };
    let mut reader = RecordReader::new(words, sources);
    let mut shown = record.since(&mut reader, arguments.lines);
    shown.extend(log.first());
    shown.sort_by_key(|line| line.at);
    let most = usize::try_from(arguments.lines).unwrap_or(usize::MAX);
    let from = shown.len().saturating_sub(most);
    if shown.is_empty() {
        output::problem(words.no_lines_yet(follows));
    }
    show(&shown[from..]);
    while follows && output::is_read() {
        std::thread::sleep(LOOK_EVERY);
        let mut new = record.since(&mut reader, MAX_ROWS);
        new.extend(log.next());
        new.sort_by_key(|line| line.at);
        show(&new);
    }
    Ok(())
}

fn show(lines: &[LogLine]) {
    for line in lines {
        output::say(&line.text);
    }
}

struct LogLine {
    at: Millis,
    text: String,
}

/// The record, from the last row that was shown.
struct Rows {
    dir: PathBuf,
    last: Option<i64>,
}

impl Rows {
    /// A record that can't be read just now is read at the next look.
    fn since(&mut self, reader: &mut RecordReader, most: u32) -> Vec<LogLine> {
        if !self.dir.join(store::FILE).exists() {
            return Vec::new();
        }
        let read =
            Db::open_read_only(&self.dir).and_then(|db| Ok((db.audit(None, most)?, db.names()?)));
        let (mut rows, names) = read.unwrap_or_default();
        reader.names = names;
        let seen = self.last.unwrap_or(i64::MIN);
        rows.retain(|row: &Recorded| row.seq > seen);
        self.last = rows.first().map(|row| row.seq).or(self.last);
        rows.reverse();
        let line = |row: &Recorded| LogLine {
            at: row.entry.at,
            text: reader.line(&row.entry),
        };
        rows.iter().map(line).collect()
    }
}

/// The daemon's own lines.
enum Log {
    File {
        path: PathBuf,
        read: u64,
        rest: String,
    },
    Journal {
        child: Child,
        lines: mpsc::Receiver<String>,
        once: bool,
    },
}

impl Log {
    fn file(path: PathBuf) -> Self {
        let size = path.metadata().map_or(0, |is| is.len());
        Self::File {
            path,
            read: size.saturating_sub(MAX_TAIL),
            rest: String::new(),
        }
    }

    fn journal(mut command: Command, arguments: &LogsArguments) -> std::io::Result<Self> {
        command.args(["--lines", &arguments.lines.to_string()]);
        if !arguments.once {
            command.arg("--follow");
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (say, lines) = mpsc::sync_channel(LINES_WAITING);
        if let Some(out) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut out = BufReader::new(out);
                while let Some(line) = capped_line(&mut out) {
                    if say.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let once = arguments.once;
        Ok(Self::Journal { child, lines, once })
    }

    /// What is there when the command begins.
    fn first(&mut self) -> Vec<LogLine> {
        match self {
            Self::File { .. } => self.next(),
            Self::Journal { lines, once, .. } => {
                let mut found = Vec::new();
                loop {
                    let next = if *once {
                        lines.recv().ok()
                    } else {
                        lines.recv_timeout(LOOK_EVERY).ok()
                    };
                    match next {
                        Some(line) => found.extend(told(&line)),
                        None => return found,
                    }
                }
            }
        }
    }

    fn next(&mut self) -> Vec<LogLine> {
        match self {
            Self::Journal { lines, .. } => {
                lines.try_iter().filter_map(|line| told(&line)).collect()
            }
            Self::File { path, read, rest } => {
                let (text, from, to) = grown(path, *read);
                if from < *read {
                    rest.clear();
                }
                *read = to;
                rest.push_str(&text);
                let Some(end) = rest.rfind('\n') else {
                    if rest.len() as u64 > MAX_TAIL {
                        rest.clear();
                    }
                    return Vec::new();
                };
                let whole: String = rest.drain(..=end).collect();
                whole.lines().filter_map(told).collect()
            }
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Self::Journal { child, .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn capped_line(from: &mut impl std::io::BufRead) -> Option<String> {
    let mut line = Vec::new();
    let read = from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
    match read {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(String::from_utf8_lossy(&line).into_owned()),
    }
}

/// What a file has got since, and from where to where that is. One that was
/// begun anew is read from its beginning.
fn grown(path: &Path, from: u64) -> (String, u64, u64) {
    let read = || -> std::io::Result<(String, u64, u64)> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let from = if size < from { 0 } else { from };
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(MAX_TAIL).read_to_end(&mut bytes)?;
        let to = from + bytes.len() as u64;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), from, to))
    };
    read().unwrap_or((String::new(), from, from))
}

/// A line of the log as a person reads it. What the record tells better is
/// left to it.
fn told(line: &str) -> Option<LogLine> {
    let (time, rest) = line.trim().split_once(char::is_whitespace)?;
    let at: jiff::Timestamp = time.parse().ok()?;
    let (level, text) = rest.trim_start().split_once(' ')?;
    if text.starts_with("decided ") {
        return None;
    }
    let mark = match level {
        "WARN" => "! ",
        "ERROR" => "✗ ",
        _ => "",
    };
    let at = at.as_millisecond();
    let clock = audit::local(at, "%H:%M");
    Some(LogLine {
        at,
        text: format!("{clock} {mark}{}", text.trim()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemons_lines_are_shown_by_the_clock_and_decisions_left_to_the_record() {
        let shown = |line: &str| told(line).map(|line| line.text[5..].to_owned());
        for (line, text) in [
            (
                "2026-11-16T16:10:00.123456Z  INFO connected to Feishu",
                Some(" connected to Feishu"),
            ),
            (
                "2026-11-16T16:10:00Z  WARN an ending was not written down: x",
                Some(" ! an ending was not written down: x"),
            ),
            (
                "2026-11-16T16:10:00Z  INFO decided request=r1 decision=\"allow\"",
                None,
            ),
            ("-- Journal begins --", None),
            ("", None),
        ] {
            assert_eq!(shown(line).as_deref(), text, "{line}");
        }
    }

    #[test]
    fn a_file_is_followed_also_when_it_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        let line = |word: &str| format!("2026-11-16T16:10:00Z  INFO {word}\n");
        let mut log = Log::file(path.clone());
        let mut texts = || {
            let lines = log.next().into_iter();
            lines.map(|l| l.text[6..].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(texts(), [""; 0]);
        std::fs::write(&path, format!("{}half", line("one"))).unwrap();
        assert_eq!(texts(), ["one"]);
        std::fs::write(&path, line("two")).unwrap();
        assert_eq!(texts(), ["two"]);
    }
}
