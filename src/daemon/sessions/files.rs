//! Images and files a person sends: noted until the next words, then put into
//! a folder of the session's project that goes when the session sleeps.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tracing::{debug, warn};

use crate::approvals::request::Millis;
use crate::daemon::parts::Parts;
use crate::feishu::messages::Attachment;
use crate::ids::MessageId;
use crate::sessions::command::Project;
use crate::sessions::route::Place;
use crate::wording::{Text, task as words};

const MAX_BYTES: u64 = 20 << 20;
const MAX_WAITING: usize = 8;
const MAX_PLACES: usize = 64;
const AGE: Millis = 30 * 60_000;
const MAX_NAME: usize = 80;

/// A file that Feishu holds for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::daemon) struct Sent {
    pub(in crate::daemon) message: MessageId,
    pub(in crate::daemon) key: String,
    pub(in crate::daemon) name: String,
    pub(in crate::daemon) kind: Attachment,
}

/// Files that wait for words, by where they were sent.
#[derive(Default)]
pub(in crate::daemon) struct Noted {
    places: Mutex<HashMap<Place, (Millis, Vec<Sent>)>>,
}

impl Noted {
    /// `false` when too many wait already.
    pub(in crate::daemon) fn note(&self, place: Place, sent: Sent, now: Millis) -> bool {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, (at, _)| now - *at < AGE);
        if places.len() >= MAX_PLACES && !places.contains_key(&place) {
            return false;
        }
        let (at, waiting) = places.entry(place).or_default();
        *at = now;
        if waiting.len() >= MAX_WAITING {
            return false;
        }
        waiting.push(sent);
        true
    }

    pub(in crate::daemon) fn take(&self, place: &Place, now: Millis) -> Vec<Sent> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let found = places.remove(place).filter(|(at, _)| now - at < AGE);
        found.map(|(_, sent)| sent).unwrap_or_default()
    }
}

/// Fetches files into the project and names them at the end of the words.
pub(in crate::daemon) async fn attach(
    parts: &Parts,
    project: &Project,
    folder: &str,
    sent: &[Sent],
    words: &str,
) -> Result<String, Text> {
    if sent.is_empty() {
        return Ok(words.to_owned());
    }
    let mut lines = vec![
        words.to_owned(),
        String::new(),
        "Files from the user:".to_owned(),
    ];
    for (n, file) in sent.iter().enumerate() {
        let failed = || words::file_failed(&safe_name(&file.name));
        let messages = parts.courier.messages().ok_or_else(failed)?;
        let bytes = messages
            .download_resource(&file.message, &file.key, file.kind, MAX_BYTES)
            .await
            .map_err(|why| {
                warn!("a file could not be fetched: {why}");
                failed()
            })?;
        let folder = root(project).join(folder);
        let name = format!("{}-{}", n + 1, safe_name(&file.name));
        let written = tokio::task::spawn_blocking(move || put(&folder, &name, &bytes)).await;
        match written {
            Ok(Ok(path)) => lines.push(path.display().to_string()),
            Ok(Err(why)) => {
                warn!("a file could not be put into the project: {why}");
                return Err(failed());
            }
            Err(_) => return Err(failed()),
        }
    }
    Ok(lines.join("\n"))
}

fn root(project: &Project) -> PathBuf {
    project.path.join(".claude").join("nod-files")
}

/// What the folder of a session is called.
pub(in crate::daemon) fn folder(number: i64) -> String {
    number.to_string()
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    if let Some(root) = folder.parent() {
        // Nothing in here is for the project's history.
        std::fs::write(root.join(".gitignore"), "*\n")?;
    }
    for again in 0..100 {
        let path = match again {
            0 => folder.join(name),
            n => folder.join(format!("{n}-{name}")),
        };
        let opened = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match opened {
            Ok(mut file) => {
                file.write_all(bytes)?;
                return Ok(path);
            }
            Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why),
        }
    }
    Err(std::io::Error::other("too many files of one name"))
}

/// Removes what a session was sent.
pub(super) async fn remove(project: &Project, number: i64) {
    let root = root(project);
    let folder = root.join(folder(number));
    let removed = tokio::task::spawn_blocking(move || {
        if !folder.is_dir() {
            return Ok(());
        }
        std::fs::remove_dir_all(&folder)?;
        let is_last = std::fs::read_dir(&root)?.count() <= 1;
        if is_last {
            std::fs::remove_dir_all(&root)
        } else {
            Ok(())
        }
    });
    if let Ok(Err(why)) = removed.await {
        debug!("a session's files were not removed: {why}");
    }
}

/// A name that can stand in a path and in a prompt.
fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let safe: String = last
        .chars()
        .map(|c| if kept(c) { c } else { '_' })
        .collect();
    let safe = safe.trim_start_matches('.');
    let skipped = safe.chars().count().saturating_sub(MAX_NAME);
    let safe: String = safe.chars().skip(skipped).collect();
    if safe.is_empty() {
        "file".to_owned()
    } else {
        safe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ChatId;

    fn place(n: usize) -> Place {
        Place {
            chat: ChatId::parse(&format!("oc_{n}")).unwrap(),
            thread: None,
        }
    }

    fn sent() -> Sent {
        Sent {
            message: MessageId::parse("om_1").unwrap(),
            key: "k".to_owned(),
            name: "n".to_owned(),
            kind: Attachment::File,
        }
    }

    #[test]
    fn names_cannot_leave_the_folder_or_hide() {
        for (name, safe) in [
            ("shot 1.png", "shot_1.png"),
            ("../../etc/passwd", "passwd"),
            ("..", "file"),
            (".env", "env"),
            ("a\n\u{202e}b", "a__b"),
            ("报告.pdf", "报告.pdf"),
            ("", "file"),
        ] {
            assert_eq!(safe_name(name), safe, "{name:?}");
        }
        assert_eq!(
            safe_name(&format!("{}.pdf", "x".repeat(300)))
                .chars()
                .count(),
            MAX_NAME
        );
    }

    #[test]
    fn files_wait_for_words_within_bounds() {
        let noted = Noted::default();
        for n in 0..=MAX_WAITING {
            assert_eq!(noted.note(place(0), sent(), 1), n < MAX_WAITING);
        }
        assert_eq!(noted.take(&place(0), 2).len(), MAX_WAITING);
        assert!(noted.take(&place(0), 2).is_empty());
        for n in 0..=MAX_PLACES {
            assert_eq!(noted.note(place(n), sent(), 1), n < MAX_PLACES);
        }
        assert!(noted.take(&place(1), 1 + AGE).is_empty(), "too old");
    }

    #[test]
    fn a_file_never_takes_the_place_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("nod-files/1");
        let first = put(&folder, "a.txt", b"one").unwrap();
        let second = put(&folder, "a.txt", b"two").unwrap();
        assert_ne!(first, second);
        assert_eq!(std::fs::read(first).unwrap(), b"one");
        assert!(dir.path().join("nod-files/.gitignore").is_file());
    }
}
