//! Images and files a person sends: noted until the next words, then put into
//! a folder of nod's own that goes when the session sleeps. Never into the
//! project: a repository could lead nod elsewhere by its links.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tracing::{debug, warn};

use super::Sessions;
use super::folder::{Folder, Node};
use crate::bounded::Bounded;
use crate::clock::Millis;
use crate::daemon::known::journal;
use crate::feishu::error::ApiError;
use crate::feishu::messages::AttachmentKind;
use crate::feishu::registration::ATTACHMENTS;
use crate::ids::MessageId;
use crate::sessions::route::ChatPlace;
use crate::store::{Db, KeptFile, StoreError};
use crate::text::Text;
use crate::wording::task as words;

const MAX_BYTES: u64 = 20 << 20;
const MAX_WAITING: usize = 8;
const MAX_PLACES: usize = 64;
const AGE: Millis = 30 * 60_000;
const MAX_NAME: usize = 80;
/// A session that is awake for longer has read them long ago.
const KEPT: Millis = 7 * 24 * 3_600_000;

/// A file that Feishu holds for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldFile {
    pub(crate) message: MessageId,
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) kind: AttachmentKind,
}

/// Files that wait for words, by where they were sent.
pub(crate) struct Noted {
    places: Mutex<Bounded<ChatPlace, (Millis, Vec<HeldFile>)>>,
}

impl Default for Noted {
    fn default() -> Self {
        Self {
            places: Mutex::new(Bounded::new(MAX_PLACES)),
        }
    }
}

impl Noted {
    /// `false` when too many wait already.
    pub(crate) fn note(&self, place: ChatPlace, sent: HeldFile, now: Millis) -> bool {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((at, waiting)) = places.live(place, |(at, _)| now - at >= AGE) else {
            return false;
        };
        *at = now;
        if waiting.len() >= MAX_WAITING {
            return false;
        }
        waiting.push(sent);
        true
    }

    pub(crate) fn take(&self, place: &ChatPlace, now: Millis) -> Vec<HeldFile> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let found = places.remove(place).filter(|(at, _)| now - at < AGE);
        found.map(|(_, sent)| sent).unwrap_or_default()
    }
}

/// Words with what came of the files that were sent with them.
pub(crate) struct Attached {
    pub(crate) words: String,
    /// What the sender is told of files that are missing.
    pub(crate) told: Option<Text>,
}

/// Fetches files and names them at the end of the words. What can't be had is
/// told, and keeps no task from starting.
pub(crate) async fn attach(
    sessions: &Sessions,
    number: i64,
    sent: &[HeldFile],
    words: &str,
) -> Attached {
    let mut lines = Vec::new();
    let mut missing = Vec::new();
    let mut refused = false;
    for (n, file) in sent.iter().enumerate() {
        let safe = safe_name(&file.name);
        match fetch(sessions, number, file, format!("{}-{safe}", n + 1)).await {
            Ok(path) => lines.push(path.display().to_string()),
            Err(why) => {
                refused |= matches!(why, Unfetched::Scope);
                missing.push(safe);
            }
        }
    }
    let told = (!missing.is_empty()).then(|| {
        let names = missing.join(", ");
        if refused {
            let base = sessions.cards.config.domain.base();
            let link = format!("{base}app/{}/auth?q={ATTACHMENTS}", sessions.app_id);
            words::file_scope_missing(&names, ATTACHMENTS, &link)
        } else {
            words::file_failed(&names)
        }
    });
    let mut all = vec![words.to_owned()];
    if !lines.is_empty() {
        all.extend([String::new(), "Files from the user:".to_owned()]);
        all.extend(lines);
    }
    if !missing.is_empty() {
        all.push(String::new());
        all.push(format!(
            "Files that could not be fetched: {}",
            missing.join(", ")
        ));
    }
    Attached {
        words: all.join("\n"),
        told,
    }
}

enum Unfetched {
    /// The app lacks a scope.
    Scope,
    Other,
}

async fn fetch(
    sessions: &Sessions,
    number: i64,
    file: &HeldFile,
    name: String,
) -> Result<PathBuf, Unfetched> {
    let messages = sessions.cards.courier.messages().ok_or(Unfetched::Other)?;
    let fetched = messages
        .download_resource(&file.message, &file.key, file.kind, MAX_BYTES)
        .await;
    let bytes = fetched.map_err(|why| {
        warn!("a file could not be fetched: {why}");
        match why {
            ApiError::Setup { .. } => Unfetched::Scope,
            _ => Unfetched::Other,
        }
    })?;
    keep(sessions, number, name, bytes).await.map_err(|why| {
        warn!("{why}");
        Unfetched::Other
    })
}

/// Written down as nod's own, so that it, and nothing else, is taken away.
async fn keep(
    sessions: &Sessions,
    number: i64,
    name: String,
    bytes: Vec<u8>,
) -> Result<PathBuf, String> {
    let fail = |why: &dyn std::fmt::Display| format!("a file could not be kept: {why}");
    let weight = bytes.len() as u64;
    let journal = &sessions.cards.journal;
    let room = journal
        .store
        .run(move |db| db.room_for_file(number, weight));
    if !room.await.map_err(|why| fail(&why))? {
        return Err("a file was not kept: there is no room".to_owned());
    }
    let state = sessions.cards.config.state_dir.clone();
    let put = tokio::task::spawn_blocking(move || {
        let folder = Folder::make(&state, number)?;
        let (name, node) = folder.put(&name, &bytes)?;
        std::io::Result::Ok((folder.path_of(&name), name, node))
    });
    let put = put.await.map_err(|why| fail(&why))?;
    let (path, name, node) = put.map_err(|why| fail(&why))?;
    let kept = KeptFile {
        session: number,
        name,
        device: node.device,
        inode: node.inode,
        bytes: weight,
        at: sessions.now(),
    };
    let otherwise = "a file will not be taken away by itself";
    journal::run(journal, otherwise, move |db| db.file_kept(&kept)).await;
    Ok(path)
}

/// Takes away what a session was sent.
pub(super) async fn remove(sessions: &Sessions, number: i64) {
    take_away(sessions, move |db| db.files_of(number)).await;
}

/// Takes away what the last run left: none of its sessions is awake.
pub(super) async fn remove_all(sessions: &Sessions) {
    take_away(sessions, |db| db.files_before(Millis::MAX)).await;
}

/// Takes away what has lain there for longer than anybody works on it.
pub(crate) async fn remove_old(sessions: &Sessions) {
    let before = sessions.now() - KEPT;
    take_away(sessions, move |db| db.files_before(before)).await;
}

async fn take_away(
    sessions: &Sessions,
    find: impl FnOnce(&Db) -> Result<Vec<KeptFile>, StoreError> + Send + 'static,
) {
    let store = &sessions.cards.journal.store;
    let found = match store.run(find).await {
        Ok(found) if found.is_empty() => return,
        Ok(found) => found,
        Err(why) => return debug!("the files of sessions cannot be listed: {why}"),
    };
    let state = sessions.cards.config.state_dir.clone();
    let gone = tokio::task::spawn_blocking(move || {
        let gone = found.into_iter().filter(|file| is_gone(&state, file));
        gone.collect::<Vec<_>>()
    });
    let Ok(gone) = gone.await else { return };
    if let Err(why) = store.run(move |db| db.files_gone(&gone)).await {
        debug!("files that are gone are still listed: {why}");
    }
}

/// Removes it; whether it need not be thought of any more.
fn is_gone(state: &Path, file: &KeptFile) -> bool {
    let node = Node {
        device: file.device,
        inode: file.inode,
    };
    let removed = Folder::find(state, file.session).and_then(|folder| {
        let Some(folder) = folder else {
            return Ok(true);
        };
        let ours = folder.remove(&file.name, node)?;
        folder.close();
        Ok(ours)
    });
    match removed {
        Ok(true) => true,
        Ok(false) => {
            warn!("a file in nod's directory is not the one nod put there, and stays");
            true
        }
        Err(why) => {
            debug!("a session's file was not removed: {why}");
            false
        }
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

    fn place(n: usize) -> ChatPlace {
        ChatPlace {
            chat: ChatId::parse(&format!("oc_{n}")).unwrap(),
            thread: None,
        }
    }

    fn sent() -> HeldFile {
        HeldFile {
            message: MessageId::parse("om_1").unwrap(),
            key: "k".to_owned(),
            name: "n".to_owned(),
            kind: AttachmentKind::File,
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
}
