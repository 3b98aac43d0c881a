//! What the set-up wrote, and what stood there before: enough to take it all
//! back to the byte. Kept in the state directory, private, written before the
//! files it speaks of.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::files;
use crate::hex;

const DIR: &str = "setup";
const FILE: &str = "manifest.json";
/// Claude Code's own choice for its settings.
const NEW_MODE: u32 = 0o644;

/// What a file is to us, and so how to undo our part of it when somebody else
/// changed it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileKind {
    /// Claude Code's user settings.
    ClaudeSettings,
    /// nod's own settings.
    Settings,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ManifestEntry {
    pub(super) kind: FileKind,
    pub(super) path: PathBuf,
    /// The copy beside the manifest of what stood there; none where there was
    /// no file.
    before: Option<String>,
    /// The mode of the file before.
    mode: u32,
    /// Digest of what the set-up left there.
    wrote: String,
    /// The names set in a settings file.
    #[serde(default)]
    pub(super) names: Vec<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct WrittenManifest {
    entries: Vec<ManifestEntry>,
    /// Directories the set-up made, in the order it made them.
    #[serde(default)]
    dirs: Vec<PathBuf>,
    #[serde(default)]
    service: bool,
    /// What stood as Claude Code's mode before the set-up changed it.
    #[serde(default)]
    mode_before: Option<ModeBefore>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ModeBefore(pub(super) Option<String>);

#[derive(Debug)]
pub(super) struct Manifest {
    dir: PathBuf,
    written: WrittenManifest,
}

/// A change to one file.
pub(super) struct Change<'a> {
    pub(super) kind: FileKind,
    pub(super) path: &'a Path,
    pub(super) before: Option<&'a [u8]>,
    pub(super) after: &'a [u8],
    pub(super) names: Vec<String>,
}

/// What is left of a file when our part is taken out.
pub(super) enum Undone {
    /// Exactly what stood there before.
    Restored,
    /// There was no such file before.
    Removed,
    /// Somebody changed it; this is it without our part.
    Edited,
    /// It was gone, or nothing of ours was left in it.
    Nothing,
}

/// What a file holds without our part: what was written, as it is now, as it was
/// before us, and the mode that was set then.
pub(super) type WithoutOurs =
    fn(&ManifestEntry, &[u8], Option<&[u8]>, Option<&ModeBefore>) -> Option<Vec<u8>>;

impl ManifestEntry {
    #[cfg(test)]
    pub(super) fn of(kind: FileKind, path: &Path, names: &[&str]) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            before: None,
            mode: NEW_MODE,
            wrote: String::new(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }
}

impl Manifest {
    pub(super) fn open(state_dir: &Path) -> io::Result<Self> {
        let dir = state_dir.join(DIR);
        let written = match files::read(&dir.join(FILE))? {
            None => WrittenManifest::default(),
            Some(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other)?,
        };
        Ok(Self { dir, written })
    }

    /// Makes a directory and remembers which parts of it are ours.
    pub(super) fn make_dirs(&mut self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        self.make_own_dir()?;
        let made = files::make_dirs(dir, 0o700)?;
        self.written.dirs.extend(made);
        self.save()
    }

    pub(super) fn note_service(&mut self, made: Vec<PathBuf>) -> io::Result<()> {
        self.make_own_dir()?;
        self.written.service = true;
        self.written.dirs.extend(made);
        self.save()
    }

    /// Whether the set-up installed the service.
    pub(super) fn has_service(&self) -> bool {
        self.written.service
    }

    pub(super) fn note_mode(&mut self, before: Option<&str>) -> io::Result<()> {
        self.make_own_dir()?;
        if self.written.mode_before.is_none() {
            self.written.mode_before = Some(ModeBefore(before.map(str::to_owned)));
        }
        self.save()
    }

    /// What Claude Code's mode was, if the set-up changed it.
    pub(super) fn entries(&self) -> Vec<ManifestEntry> {
        self.written.entries.clone()
    }

    /// Notes a change and makes it. `undo` takes our part out of a text; it is
    /// asked when somebody changed the file since the last time.
    pub(super) fn write(&mut self, change: Change<'_>, undo: WithoutOurs) -> io::Result<()> {
        self.make_own_dir()?;
        if let Some(parent) = files::resolve(change.path)?.parent() {
            self.make_dirs(parent)?;
        }
        let at = self
            .written
            .entries
            .iter()
            .position(|entry| entry.path == change.path);
        let mut entry = match at {
            Some(at) => self.written.entries.remove(at),
            None => ManifestEntry {
                kind: change.kind,
                path: change.path.to_owned(),
                before: None,
                mode: mode_of(change.path)?.unwrap_or(NEW_MODE),
                wrote: String::new(),
                names: Vec::new(),
            },
        };
        // The first time what stands there is the original; later only if
        // somebody else worked on it, and then without our part.
        let ours = change.before.is_some_and(|now| digest(now) == entry.wrote);
        if !ours {
            let original = match (at, change.before) {
                (Some(_), Some(now)) => {
                    let known = self.original(&entry)?;
                    let mode_before = self.written.mode_before.as_ref();
                    undo(&entry, now, known.as_deref(), mode_before).or(Some(now.to_vec()))
                }
                (_, now) => now.map(<[u8]>::to_vec),
            };
            entry.before = match original {
                None => None,
                Some(bytes) => Some(self.keep(change.path, &bytes)?),
            };
        }
        for name in change.names {
            if !entry.names.contains(&name) {
                entry.names.push(name);
            }
        }
        entry.wrote = digest(change.after);
        self.written.entries.push(entry);
        self.save()?;
        match change.kind {
            FileKind::Settings => files::replace_private(change.path, change.after),
            FileKind::ClaudeSettings => files::replace(change.path, change.after, NEW_MODE),
        }
    }

    /// Takes one file back.
    pub(super) fn undo(&mut self, entry: &ManifestEntry, undo: WithoutOurs) -> io::Result<Undone> {
        let (undone, bytes) = self.undoing(entry, undo)?;
        match undone {
            Undone::Removed => files::remove(&files::resolve(&entry.path)?)?,
            Undone::Restored => {
                files::replace(&entry.path, &bytes, entry.mode)?;
                restore_mode(&entry.path, entry.mode)?;
            }
            Undone::Edited => files::replace(&entry.path, &bytes, entry.mode)?,
            Undone::Nothing => {}
        }
        Ok(undone)
    }

    /// What taking one file back comes to, and its text then.
    pub(super) fn undoing(
        &self,
        entry: &ManifestEntry,
        undo: WithoutOurs,
    ) -> io::Result<(Undone, Vec<u8>)> {
        let Some(now) = files::read(&entry.path)? else {
            return Ok((Undone::Nothing, Vec::new()));
        };
        let original = self.original(entry)?;
        let mode_before = self.written.mode_before.as_ref();
        if digest(&now) == entry.wrote {
            return Ok(match original {
                Some(bytes) => (Undone::Restored, bytes),
                None => (Undone::Removed, Vec::new()),
            });
        }
        Ok(match undo(entry, &now, original.as_deref(), mode_before) {
            Some(bytes) if bytes != now => (Undone::Edited, bytes),
            _ => (Undone::Nothing, now),
        })
    }

    /// Removes the manifest, its copies, and every directory the set-up made
    /// that is empty again.
    pub(super) fn forget(&mut self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        for dir in std::mem::take(&mut self.written).dirs.iter().rev() {
            // One that holds something of somebody else's stays.
            if let Err(error) = std::fs::remove_dir(dir) {
                tracing::debug!(dir = %dir.display(), %error, "a directory stays");
            }
        }
        Ok(())
    }

    fn make_own_dir(&mut self) -> io::Result<()> {
        let made = files::make_dirs(&self.dir, 0o700)?;
        self.written.dirs.extend(made);
        Ok(())
    }

    fn original(&self, entry: &ManifestEntry) -> io::Result<Option<Vec<u8>>> {
        match &entry.before {
            None => Ok(None),
            Some(name) => files::read(&self.dir.join(name)),
        }
    }

    fn keep(&self, path: &Path, bytes: &[u8]) -> io::Result<String> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().trim_start_matches('.').to_owned())
            .unwrap_or_default();
        let place = digest(path.as_os_str().as_encoded_bytes());
        let name = format!("{name}-{}.before", &place[..8]);
        files::replace_private(&self.dir.join(&name), bytes)?;
        Ok(name)
    }

    fn save(&self) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(&self.written).map_err(io::Error::other)?;
        files::replace_private(&self.dir.join(FILE), &text)
    }
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}

fn mode_of(path: &Path) -> io::Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt as _;
    match std::fs::metadata(path) {
        Ok(is) => Ok(Some(is.permissions().mode() & 0o777)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn restore_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Our part of a file is the line `ours`.
    fn without_ours(
        _: &ManifestEntry,
        now: &[u8],
        _: Option<&[u8]>,
        _: Option<&ModeBefore>,
    ) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(now).ok()?;
        Some(text.replace("ours\n", "").into_bytes())
    }

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn file(&self) -> PathBuf {
            self.0.path().join("a/b/file")
        }

        fn manifest(&self) -> Manifest {
            Manifest::open(&self.0.path().join("state/nod")).unwrap()
        }

        fn write(&self, after: &str) {
            let before = files::read(&self.file()).unwrap();
            let change = Change {
                kind: FileKind::Settings,
                path: &self.file(),
                before: before.as_deref(),
                after: after.as_bytes(),
                names: Vec::new(),
            };
            self.manifest().write(change, without_ours).unwrap();
        }

        fn undo(&self) {
            let mut manifest = self.manifest();
            for entry in manifest.entries() {
                manifest.undo(&entry, without_ours).unwrap();
            }
            manifest.forget().unwrap();
        }

        fn is_empty(&self) -> bool {
            fs::read_dir(self.0.path()).unwrap().next().is_none()
        }
    }

    #[test]
    fn a_fresh_home_is_empty_again() {
        let home = Home::new();
        home.write("ours\n");
        home.write("ours\nmore\n");
        assert_eq!(mode_of(&home.file()).unwrap(), Some(0o600));
        home.undo();
        assert!(home.is_empty());
    }

    #[test]
    fn an_old_file_comes_back_to_the_byte_with_its_mode() {
        let home = Home::new();
        fs::create_dir_all(home.file().parent().unwrap()).unwrap();
        fs::write(home.file(), b"theirs\r\n\xff").unwrap();
        restore_mode(&home.file(), 0o640).unwrap();
        home.write("ours\n");
        home.write("ours again\n");
        home.undo();
        assert_eq!(fs::read(home.file()).unwrap(), b"theirs\r\n\xff");
        assert_eq!(mode_of(&home.file()).unwrap(), Some(0o640));
        assert!(!home.0.path().join("state").exists());
    }

    #[test]
    fn a_users_edit_survives_the_undoing() {
        let home = Home::new();
        home.write("ours\n");
        fs::write(home.file(), "ours\nedited\n").unwrap();
        home.undo();
        assert_eq!(fs::read_to_string(home.file()).unwrap(), "edited\n");
    }

    #[test]
    fn a_users_edit_between_two_set_ups_counts_as_theirs() {
        let home = Home::new();
        home.write("ours\n");
        fs::write(home.file(), "ours\nedited\n").unwrap();
        home.write("ours\nedited\nours\n");
        home.undo();
        assert_eq!(fs::read_to_string(home.file()).unwrap(), "edited\n");
    }

    #[test]
    fn a_file_that_is_gone_stays_gone() {
        let home = Home::new();
        home.write("ours\n");
        fs::remove_file(home.file()).unwrap();
        home.undo();
        assert!(home.is_empty());
    }

    #[test]
    fn the_copies_are_private() {
        let home = Home::new();
        fs::create_dir_all(home.file().parent().unwrap()).unwrap();
        fs::write(home.file(), "secret").unwrap();
        home.write("ours\n");
        let dir = home.0.path().join("state/nod/setup");
        assert_eq!(mode_of(&dir).unwrap(), Some(0o700));
        let mut count = 0;
        for entry in fs::read_dir(dir).unwrap() {
            assert_eq!(mode_of(&entry.unwrap().path()).unwrap(), Some(0o600));
            count += 1;
        }
        assert_eq!(count, 2);
    }
}
