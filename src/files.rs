//! Whole files, replaced at once or not at all. A link is written through, so
//! that dotfiles kept elsewhere stay where they are. Blocking.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Larger than any settings file a person writes.
pub const MAX_BYTES: u64 = 1 << 20;
/// As many links as Linux itself follows.
const MAX_LINKS: usize = 40;

/// The content, or `None` where there is no file. Refuses what is no regular
/// file and what is larger than [`MAX_BYTES`].
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // Asked before opening, because opening a FIFO waits for its other end.
    match fs::metadata(path) {
        Ok(is) if !is.is_file() => return Err(refused("it is not a regular file")),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refused("it is larger than 1 MiB"));
    }
    Ok(Some(bytes))
}

/// Replaces the content. An existing file keeps its mode, a new one gets
/// `mode`.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    put(path, bytes, |known| known.unwrap_or(mode))
}

/// Replaces the content of a file that only its owner may read.
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, |_| 0o600)
}

fn put(path: &Path, bytes: &[u8], mode: impl FnOnce(Option<u32>) -> u32) -> io::Result<()> {
    let path = resolve(path)?;
    let dir = path
        .parent()
        .ok_or_else(|| refused("it has no directory"))?;
    let known = match fs::metadata(&path) {
        Ok(is) => Some(is.permissions().mode() & 0o777),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut temp = tempfile::Builder::new().prefix(".nod-").tempfile_in(dir)?;
    temp.write_all(bytes)?;
    temp.as_file()
        .set_permissions(Permissions::from_mode(mode(known)))?;
    temp.as_file().sync_all()?;
    temp.persist(&path).map_err(|failed| failed.error)?;
    sync_dir(dir)
}

/// Removes a file; one that is gone already is as wanted.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => path.parent().map_or(Ok(()), sync_dir),
    }
}

/// Makes a directory and its parents with `mode`, and says which were missing,
/// outermost first.
pub fn make_dirs(dir: &Path, mode: u32) -> io::Result<Vec<PathBuf>> {
    let mut missing: Vec<PathBuf> = dir
        .ancestors()
        .take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(dir)?;
    Ok(missing)
}

/// Where writing to `path` ends up, links followed even to a file that is not
/// there yet.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => {
                path = path.parent().unwrap_or(Path::new("/")).join(target);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            // Not a link.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(path),
            Err(error) => return Err(error),
        }
    }
    Err(refused("too many links lead there"))
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    match File::open(dir)?.sync_all() {
        // Some file systems can't sync a directory and do not need to.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

fn refused(why: &'static str) -> io::Error {
    io::Error::other(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_link_stays_a_link_and_its_file_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let dotfiles = dir.path().join("dotfiles");
        fs::create_dir(&dotfiles).unwrap();
        let link = dir.path().join("settings.json");
        std::os::unix::fs::symlink("dotfiles/settings.json", &link).unwrap();
        for text in ["new", "newer"] {
            replace(&link, text.as_bytes(), 0o644).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            let there = fs::read_to_string(dotfiles.join("settings.json")).unwrap();
            assert_eq!(there, text);
        }
        assert_eq!(fs::read_dir(&dotfiles).unwrap().count(), 1, "nothing left");
    }

    #[test]
    fn modes_are_kept_and_private_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        replace(&path, b"1", 0o640).unwrap();
        assert_eq!(mode(&path), 0o640);
        replace(&path, b"2", 0o644).unwrap();
        assert_eq!(mode(&path), 0o640);
        replace_private(&path, b"3").unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn what_is_no_plain_file_is_refused_and_nothing_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).is_err());
        assert_eq!(read(&dir.path().join("none")).unwrap(), None);
        let big = dir.path().join("big");
        File::create(&big).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(read(&big).is_err());
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::os::unix::fs::symlink(&a, &b).unwrap();
        std::os::unix::fs::symlink(&b, &a).unwrap();
        assert!(replace(&a, b"x", 0o600).is_err());
    }

    #[test]
    fn made_directories_are_told_outermost_first() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        let made = make_dirs(&deep, 0o700).unwrap();
        assert_eq!(made, [dir.path().join("a"), deep.clone()]);
        assert_eq!(mode(&deep), 0o700);
        assert_eq!(make_dirs(&deep, 0o700).unwrap(), Vec::<PathBuf>::new());
    }
}
