//! Whole files, replaced at once or not at all. A link is written through, so
//! that dotfiles kept elsewhere stay where they are. Blocking.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// Larger than any settings file a person writes.
pub const MAX_BYTES: u64 = 1 << 20;
/// How often a directory that somebody else holds is tried.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(10);
/// As many links as Linux itself follows.
const MAX_LINKS: usize = 40;

/// The content, or `None` where there is no file. Refuses what is no regular
/// file and what is larger than [`MAX_BYTES`].
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular(path, OFlags::empty()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    bounded(file).map(Some)
}

fn bounded(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refused("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

/// The first bytes of a regular file whose name is no link, for files that a
/// repository could have made into anything.
pub fn read_start(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular(path, OFlags::NOFOLLOW)?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Asked before opening, because that alone may set off a device; and after,
/// because the name may lead elsewhere by then. Never waits for the other end
/// of a FIFO.
fn open_regular(path: &Path, flags: OFlags) -> io::Result<File> {
    let check = |is: &fs::Metadata| {
        let regular = is.is_file();
        regular
            .then_some(())
            .ok_or_else(|| refused("it is not a regular file"))
    };
    check(&fs::metadata(path)?)?;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
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

/// Why a file is not for this user to change.
#[derive(Debug)]
pub enum NotOwn {
    /// It leads elsewhere.
    Link,
    /// It, or its directory, is another user's.
    Foreign,
    System(io::Error),
}

impl From<io::Error> for NotOwn {
    fn from(why: io::Error) -> Self {
        Self::System(why)
    }
}

/// As [`read`], of this user's own file: neither it nor its directory is a
/// link or somebody else's.
pub fn read_own(path: &Path) -> Result<Option<Vec<u8>>, NotOwn> {
    read_of(path, rustix::process::geteuid().as_raw())
}

fn read_of(path: &Path, user: u32) -> Result<Option<Vec<u8>>, NotOwn> {
    match path.parent().map(fs::symlink_metadata) {
        Some(Ok(dir)) if dir.is_symlink() => return Err(NotOwn::Link),
        Some(Ok(dir)) if dir.uid() != user => return Err(NotOwn::Foreign),
        _ => {}
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(is) if is.is_symlink() => return Err(NotOwn::Link),
        is => is?,
    };
    // A link that took its place meanwhile is not followed either.
    let file = open_regular(path, OFlags::NOFOLLOW)?;
    if file.metadata()?.uid() != user {
        return Err(NotOwn::Foreign);
    }
    bounded(file).map(Some).map_err(NotOwn::System)
}

/// Puts a private file under this very name: a link there is replaced, never
/// followed.
pub fn replace_here(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put_here(path, bytes, 0o600)
}

/// Holds the directory for one writer at a time, until dropped.
pub fn turn(dir: &Path, within: Duration) -> io::Result<File> {
    let until = Instant::now() + within;
    let dir = File::open(dir)?;
    loop {
        match flock(&dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(dir),
            Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                std::thread::sleep(TRY_AGAIN_AFTER);
            }
            Err(Errno::WOULDBLOCK) => return Err(io::ErrorKind::TimedOut.into()),
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn put(path: &Path, bytes: &[u8], mode: impl FnOnce(Option<u32>) -> u32) -> io::Result<()> {
    let path = resolve(path)?;
    let known = match fs::metadata(&path) {
        Ok(is) => Some(is.permissions().mode() & 0o777),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    put_here(&path, bytes, mode(known))
}

fn put_here(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let dir = path
        .parent()
        .ok_or_else(|| refused("it has no directory"))?;
    let mut temp = tempfile::Builder::new().prefix(".nod-").tempfile_in(dir)?;
    temp.write_all(bytes)?;
    temp.as_file()
        .set_permissions(Permissions::from_mode(mode))?;
    temp.as_file().sync_all()?;
    temp.persist(path).map_err(|failed| failed.error)?;
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

/// By the program, since macOS lacks the call.
#[cfg(test)]
pub(crate) fn make_fifo(path: &Path) -> io::Result<()> {
    let made = std::process::Command::new("mkfifo").arg(path).status()?;
    made.success()
        .then_some(())
        .ok_or_else(|| refused("no fifo"))
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
    fn the_start_is_read_of_regular_files_only_and_never_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("plain"), "0123456789").unwrap();
        assert_eq!(read_start(&path("plain"), 4).unwrap(), b"0123");
        File::create(path("huge"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        assert_eq!(read_start(&path("huge"), 4).unwrap(), [0; 4]);
        make_fifo(&path("fifo")).unwrap();
        std::os::unix::fs::symlink(path("plain"), path("link")).unwrap();
        std::os::unix::fs::symlink(path("fifo"), path("to-fifo")).unwrap();
        fs::create_dir(path("dir")).unwrap();
        for odd in ["fifo", "link", "to-fifo", "dir", "none"] {
            assert!(read_start(&path(odd), 4).is_err(), "{odd}");
        }
        assert!(read_start(Path::new("/dev/zero"), 4).is_err());
        assert!(read(Path::new("/dev/zero")).is_err());
        assert!(read(&path("fifo")).is_err());
        assert!(read(&path("to-fifo")).is_err());
    }

    #[test]
    fn a_file_is_ones_own_unless_it_is_a_link_or_somebody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let user = rustix::process::geteuid().as_raw();
        assert!(matches!(read_own(&path("none")), Ok(None)));
        replace_here(&path("plain"), b"mine").unwrap();
        assert_eq!(mode(&path("plain")), 0o600);
        assert_eq!(read_own(&path("plain")).unwrap().unwrap(), b"mine");
        let as_another = read_of(&path("plain"), user + 1);
        assert!(matches!(as_another, Err(NotOwn::Foreign)), "{as_another:?}");
        std::os::unix::fs::symlink(path("plain"), path("link")).unwrap();
        assert!(matches!(read_own(&path("link")), Err(NotOwn::Link)));
        fs::create_dir(path("dir")).unwrap();
        replace_here(&path("dir/file"), b"theirs").unwrap();
        std::os::unix::fs::symlink(path("dir"), path("to-dir")).unwrap();
        for file in ["to-dir/file", "to-dir/none"] {
            let through = read_own(&path(file));
            assert!(matches!(through, Err(NotOwn::Link)), "{file}: {through:?}");
        }
        assert!(matches!(read_own(dir.path()), Err(NotOwn::System(_))));
        // Put there by name, it takes the link's place and leaves its file.
        replace_here(&path("link"), b"new").unwrap();
        assert_eq!(fs::read(path("plain")).unwrap(), b"mine");
        assert!(fs::symlink_metadata(path("link")).unwrap().is_file());
    }

    #[test]
    fn one_writer_at_a_time_and_nobody_waits_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let held = turn(dir.path(), Duration::ZERO).unwrap();
        let late = turn(dir.path(), Duration::from_millis(30)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(held);
        // A program that another test starts holds it too until it runs.
        turn(dir.path(), Duration::from_secs(30)).unwrap();
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
