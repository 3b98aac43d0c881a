//! Where the files people send lie: one folder per session in nod's own
//! directory, which no repository can name. No link is followed on the way,
//! and only a file that nod put there is ever removed. Blocking.

use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// The name in the state directory.
const ROOT: &str = "files";
/// Names tried for a file before it is given up.
const TRIES: usize = 100;

/// What a file is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl Node {
    fn of(is: &Metadata) -> Self {
        Self {
            device: is.dev(),
            inode: is.ino(),
        }
    }
}

/// A session's folder, held open with the one around it.
#[derive(Debug)]
pub(super) struct Folder {
    root: File,
    dir: File,
    name: String,
    path: PathBuf,
}

impl Folder {
    /// Opens the session's folder and makes it where it is missing.
    pub(super) fn make(state: &Path, number: i64) -> io::Result<Self> {
        Self::at(state, number, made)
    }

    /// As it stands; `None` where there is none.
    pub(super) fn find(state: &Path, number: i64) -> io::Result<Option<Self>> {
        match Self::at(state, number, opened) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    fn at(
        state: &Path,
        number: i64,
        enter: fn(&File, &str) -> io::Result<File>,
    ) -> io::Result<Self> {
        let state = state.canonicalize()?;
        let outer = private(rustix::fs::open(&state, directory(), Mode::empty())?.into())?;
        let root = enter(&outer, ROOT)?;
        let name = number.to_string();
        Ok(Self {
            dir: enter(&root, &name)?,
            path: state.join(ROOT).join(&name),
            root,
            name,
        })
    }

    /// Keeps a file under this name, or one like it where it is taken.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> io::Result<(String, Node)> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for again in 0..TRIES {
            let name = match again {
                0 => name.to_owned(),
                n => format!("{n}-{name}"),
            };
            match rustix::fs::openat(&self.dir, &name, flags, Mode::from_raw_mode(0o600)) {
                Ok(file) => return self.fill(&mut file.into(), name, bytes),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::other("too many files of one name"))
    }

    fn fill(&self, file: &mut File, name: String, bytes: &[u8]) -> io::Result<(String, Node)> {
        let node = Node::of(&file.metadata()?);
        if let Err(why) = file.write_all(bytes) {
            // Half a file is of no use; the disk may refuse this as well.
            let _ = self.remove(&name, node);
            return Err(why);
        }
        Ok((name, node))
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Removes the file that was put there. `false` when something else has
    /// its name, which stays.
    pub(super) fn remove(&self, name: &str, node: Node) -> io::Result<bool> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let there = match rustix::fs::openat(&self.dir, name, flags, Mode::empty()) {
            Ok(there) => File::from(there).metadata()?,
            Err(Errno::NOENT) => return Ok(true),
            Err(Errno::LOOP | Errno::MLINK | Errno::NXIO) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        if !there.is_file() || Node::of(&there) != node {
            return Ok(false);
        }
        rustix::fs::unlinkat(&self.dir, name, AtFlags::empty())?;
        Ok(true)
    }

    /// Removes the folder, if nothing is left in it.
    pub(super) fn close(self) {
        // One that is not empty, or gone, stays as it is.
        let _ = rustix::fs::unlinkat(&self.root, &self.name, AtFlags::REMOVEDIR);
    }
}

fn directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn opened(parent: &File, name: &str) -> io::Result<File> {
    let dir = rustix::fs::openat(parent, name, directory(), Mode::empty())?;
    private(dir.into())
}

fn made(parent: &File, name: &str) -> io::Result<File> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => opened(parent, name),
        Err(errno) => Err(errno.into()),
    }
}

/// Whoever else could write there could swap what is in it.
fn private(dir: File) -> io::Result<File> {
    let is = dir.metadata()?;
    if is.uid() != rustix::process::geteuid().as_raw() || is.mode() & 0o077 != 0 {
        return Err(io::Error::other("the directory is open to others"));
    }
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use tempfile::TempDir;

    fn state() -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        dir
    }

    #[test]
    fn a_file_never_takes_the_place_of_another() {
        let state = state();
        let folder = Folder::make(state.path(), 1).unwrap();
        let (first, _) = folder.put("a.txt", b"one").unwrap();
        let (second, _) = folder.put("a.txt", b"two").unwrap();
        assert_ne!(first, second);
        assert_eq!(fs::read(folder.path_of(&first)).unwrap(), b"one");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path_of(&first)), 0o600);
        assert_eq!(mode(&state.path().join("files")), 0o700);
    }

    #[test]
    fn only_what_nod_put_there_is_removed() {
        let state = state();
        let photos = state.path().join("photos");
        fs::create_dir(&photos).unwrap();
        fs::write(photos.join("1"), "mine").unwrap();
        let folder = Folder::make(state.path(), 1).unwrap();
        let (name, node) = folder.put("a", b"sent").unwrap();
        for swap in ["file", "link", "directory", "fifo"] {
            let path = folder.path_of(&name);
            let kept = state.path().join("kept");
            fs::rename(&path, &kept).unwrap();
            match swap {
                "file" => fs::write(&path, "theirs").unwrap(),
                "link" => symlink(photos.join("1"), &path).unwrap(),
                "directory" => fs::create_dir(&path).unwrap(),
                _ => crate::files::make_fifo(&path).unwrap(),
            }
            assert!(!folder.remove(&name, node).unwrap(), "{swap}");
            assert!(fs::symlink_metadata(&path).is_ok(), "{swap}");
            if swap == "directory" {
                fs::remove_dir(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            fs::rename(&kept, &path).unwrap();
        }
        assert!(folder.remove(&name, node).unwrap());
        fs::write(folder.path_of("other"), "theirs").unwrap();
        folder.close();
        let left = state.path().join("files/1/other");
        assert_eq!(fs::read(&left).unwrap(), b"theirs");
        assert_eq!(fs::read(photos.join("1")).unwrap(), b"mine");
        fs::remove_file(&left).unwrap();
        Folder::find(state.path(), 1).unwrap().unwrap().close();
        assert!(Folder::find(state.path(), 1).unwrap().is_none());
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_leads_nowhere() {
        for swapped in ["files", "files/1"] {
            let state = state();
            let photos = state.path().join("photos");
            fs::create_dir_all(photos.join("1")).unwrap();
            if swapped == "files/1" {
                let root = state.path().join("files");
                fs::create_dir(&root).unwrap();
                fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
            }
            symlink(&photos, state.path().join(swapped)).unwrap();
            assert!(Folder::make(state.path(), 1).is_err(), "{swapped}");
            assert!(Folder::find(state.path(), 1).is_err(), "{swapped}");
            assert!(photos.join("1").is_dir(), "{swapped}");
        }
    }

    #[test]
    fn a_folder_open_to_others_is_not_used() {
        let state = state();
        Folder::make(state.path(), 1).unwrap();
        let root = state.path().join("files");
        for mode in [0o770, 0o707, 0o755] {
            fs::set_permissions(&root, fs::Permissions::from_mode(mode)).unwrap();
            assert!(Folder::make(state.path(), 1).is_err(), "{mode:o}");
            assert!(Folder::find(state.path(), 1).is_err(), "{mode:o}");
        }
    }
}
