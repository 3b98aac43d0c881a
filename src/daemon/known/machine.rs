//! What a card says about where a request lives: this machine, its user, the
//! project's branch, and where a path of the project really leads.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::approvals::request::RealPath;
use crate::claude::settings_file;
use crate::config::Config;
use crate::files;
use crate::ids::MachineId;
use crate::rules::path;

/// More levels than any project has between its start directory and its root.
const MAX_DEPTH: usize = 64;
/// A pointer of git's, or a branch's name.
const MAX_POINTER: u64 = 4_096;
/// What a file system that hangs may hold up: a few looks at one project, and
/// far fewer in all than there are threads to look.
const MAX_LOOKS: usize = 64;
const MAX_LOOKS_AT_ONE: usize = 4;
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;
const MAX_PARTS: usize = 512;

/// This machine, as cards and buttons name it.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) id: MachineId,
    pub(crate) name: String,
    pub(crate) user: String,
}

/// Where the file a call names really is. Opens nothing.
pub(crate) async fn real_path(
    tool: &str,
    input: &serde_json::Value,
    cwd: &Path,
    project: &Path,
) -> RealPath {
    let Some(named) = path::named(tool, input) else {
        return RealPath::Unasked;
    };
    let (path, at) = (path::resolve(cwd, named), project.to_owned());
    let follow = move || Some((followed(&path)?, followed(&at)?));
    match looked(project, follow).await {
        Some(Some((path, project))) => RealPath::Known { path, project },
        Some(None) | None => RealPath::Unknown,
    }
}

/// The path with every link followed, also one that leads to nothing yet: a
/// write would make the file there.
fn followed(path: &Path) -> Option<PathBuf> {
    let mut real = PathBuf::from("/");
    let mut ahead: Vec<std::ffi::OsString> = Vec::new();
    let push = |ahead: &mut Vec<_>, path: &Path| {
        let parts = path.components().rev();
        ahead.extend(parts.map(|part| part.as_os_str().to_owned()));
    };
    push(&mut ahead, path);
    let (mut links, mut parts) = (0, 0);
    while let Some(part) = ahead.pop() {
        parts += 1;
        if parts > MAX_PARTS || ahead.len() > MAX_PARTS {
            return None;
        }
        match Path::new(&part).components().next()? {
            Component::RootDir => real = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => {
                real.pop();
            }
            Component::Prefix(_) => return None,
            Component::Normal(name) => {
                let next = real.join(name);
                match std::fs::symlink_metadata(&next) {
                    Ok(is) if is.file_type().is_symlink() => {
                        links += 1;
                        if links > MAX_LINKS {
                            return None;
                        }
                        push(&mut ahead, &std::fs::read_link(&next).ok()?);
                    }
                    Ok(_) => real = next,
                    Err(why) if why.kind() == std::io::ErrorKind::NotFound => real = next,
                    Err(_) => return None,
                }
            }
        }
    }
    Some(real)
}

/// What the machine is called: as its settings say, or else as it calls itself.
pub fn name(config: &Config) -> String {
    config.machine_name.clone().unwrap_or_else(host_name)
}

fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name.into_owned()
    }
}

/// Why a project's directory cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadProject {
    #[error("the project's directory is not an absolute path without `..`")]
    NotAbsolute,
    #[error("the project's directory does not exist")]
    Missing,
    #[error("the project's directory belongs to another user")]
    Foreign,
    #[error("the project's directory can't be read in time")]
    Hangs,
}

/// What a project's directory says of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenProject {
    pub(crate) branch: Option<String>,
    /// Where Claude Code keeps the project's rules, if not in it.
    pub(crate) rules_in: Option<PathBuf>,
}

/// Checks a project's directory and reads what it says, without letting a file
/// system that hangs cost other projects their turn.
pub(crate) async fn look(dir: PathBuf) -> Result<SeenProject, BadProject> {
    let at = dir.clone();
    let look = move || {
        check_project(&dir)?;
        Ok(SeenProject {
            branch: branch(&dir),
            rules_in: settings_file::rules_elsewhere(&dir),
        })
    };
    let found = looked(&at, look).await;
    found.unwrap_or(Err(BadProject::Hangs))
}

/// What a look at a project's files finds; `None` where it takes too long.
pub(crate) async fn looked<T: Send + 'static>(
    project: &Path,
    look: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let looking = async {
        let turn = LookTurn::at(project).await;
        let looked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            look()
        });
        looked.await.ok()
    };
    tokio::time::timeout(LOOK_WITHIN, looking).await.ok()?
}

/// Held until a look is over, and not only given up.
struct LookTurn {
    _here: Option<OwnedSemaphorePermit>,
    _anywhere: Option<SemaphorePermit<'static>>,
}

static ANYWHERE: Semaphore = Semaphore::const_new(MAX_LOOKS);
static HERE: Mutex<BTreeMap<PathBuf, Arc<Semaphore>>> = Mutex::new(BTreeMap::new());

impl LookTurn {
    async fn at(dir: &Path) -> Self {
        let here = {
            let mut all = HERE.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|_, turns| Arc::strong_count(turns) > 1);
            let turns = all.entry(dir.to_owned());
            Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(MAX_LOOKS_AT_ONE))))
        };
        Self {
            _here: here.acquire_owned().await.ok(),
            _anywhere: ANYWHERE.acquire().await.ok(),
        }
    }
}

/// A rule may be written beneath it and a person is shown its name, so it must
/// be a real directory of this user's, or of the system's.
fn check_project(dir: &Path) -> Result<(), BadProject> {
    let plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    if !dir.is_absolute() || !dir.components().all(plain) {
        return Err(BadProject::NotAbsolute);
    }
    let is = std::fs::metadata(dir).map_err(|_| BadProject::Missing)?;
    if !is.is_dir() {
        return Err(BadProject::Missing);
    }
    let own = rustix::process::geteuid().as_raw();
    if is.uid() != own && is.uid() != 0 {
        return Err(BadProject::Foreign);
    }
    Ok(())
}

/// The branch checked out in the repository around `dir`, if there is one.
pub(crate) fn branch(dir: &Path) -> Option<String> {
    let git = dir
        .ancestors()
        .take(MAX_DEPTH)
        .map(|dir| dir.join(".git"))
        .find(|git| git.symlink_metadata().is_ok())?;
    let head = if git.is_dir() {
        git.join("HEAD")
    } else {
        let pointer = read_small(&git)?;
        let target = PathBuf::from(pointer.strip_prefix("gitdir:")?.trim());
        git.parent()?.join(target).join("HEAD")
    };
    let head = read_small(&head)?;
    let head = head.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => Some(branch.to_owned()),
        // Anything but a commit is not git's, and not ours to show.
        None if head.len() >= 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Some(head.chars().take(12).collect())
        }
        None => None,
    }
}

fn read_small(path: &Path) -> Option<String> {
    let text = files::read_start(path, MAX_POINTER).ok()?;
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::make_fifo;

    #[test]
    fn the_branch_is_found_from_below_in_a_worktree_and_detached() {
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path().join("repo");
        let below = repo.join("src/deep");
        std::fs::create_dir_all(&below).unwrap();
        assert_eq!(branch(&below), None);
        std::fs::create_dir(repo.join(".git")).unwrap();
        std::fs::write(repo.join(".git/HEAD"), "ref: refs/heads/feat/x\n").unwrap();
        assert_eq!(branch(&below).as_deref(), Some("feat/x"));
        let tree = dir.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        std::fs::create_dir_all(repo.join(".git/worktrees/tree")).unwrap();
        let head = repo.join(".git/worktrees/tree/HEAD");
        std::fs::write(head, "0123456789abcdef".repeat(3)).unwrap();
        std::fs::write(tree.join(".git"), "gitdir: ../repo/.git/worktrees/tree\n").unwrap();
        assert_eq!(branch(&tree).as_deref(), Some("0123456789ab"));
    }

    #[test]
    fn what_is_no_plain_file_of_gits_is_neither_waited_for_nor_shown() {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("secret");
        std::fs::write(&secret, "ref: refs/heads/hidden\n").unwrap();
        let repo = |name: &str| {
            let repo = dir.path().join(name);
            std::fs::create_dir(&repo).unwrap();
            repo
        };
        let head_in = |repo: &Path| {
            std::fs::create_dir(repo.join(".git")).unwrap();
            repo.join(".git/HEAD")
        };
        let odd = repo("fifo");
        make_fifo(&odd.join(".git")).unwrap();
        assert_eq!(branch(&odd), None);
        let odd = repo("fifo-head");
        make_fifo(&head_in(&odd)).unwrap();
        assert_eq!(branch(&odd), None);
        let odd = repo("link-head");
        std::os::unix::fs::symlink(&secret, head_in(&odd)).unwrap();
        assert_eq!(branch(&odd), None, "another file's words");
        let odd = repo("device");
        std::fs::write(odd.join(".git"), "gitdir: /dev/zero/..").unwrap();
        assert_eq!(branch(&odd), None);
        let odd = repo("directory");
        std::fs::create_dir(head_in(&odd)).unwrap();
        assert_eq!(branch(&odd), None);
        let odd = repo("huge");
        std::fs::File::create(head_in(&odd))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        assert_eq!(branch(&odd), None);
        let odd = repo("words");
        std::fs::write(
            head_in(&odd),
            "password: hunter2 and more than forty letters",
        )
        .unwrap();
        assert_eq!(branch(&odd), None);
    }

    #[tokio::test(start_paused = true)]
    async fn one_project_that_hangs_leaves_the_others_their_looks() {
        let dir = tempfile::tempdir().unwrap();
        let hangs = dir.path().join("a");
        let mut held = Vec::new();
        for _ in 0..MAX_LOOKS_AT_ONE {
            held.push(LookTurn::at(&hangs).await);
        }
        assert_eq!(look(hangs.clone()).await, Err(BadProject::Hangs));
        assert_eq!(
            look(dir.path().to_owned()).await,
            Ok(SeenProject::default())
        );
        drop(held);
        assert_eq!(look(hangs).await, Err(BadProject::Missing));
    }

    #[test]
    fn a_project_is_a_real_directory_of_this_user() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let lines = dir.path().join("two\nlines");
        std::fs::create_dir(&lines).unwrap();
        let below = |bytes: &[u8]| dir.path().join(std::ffi::OsStr::from_bytes(bytes));
        for (path, expected) in [
            (dir.path().to_owned(), Ok(())),
            (lines, Ok(())),
            (PathBuf::new(), Err(BadProject::NotAbsolute)),
            (PathBuf::from("src"), Err(BadProject::NotAbsolute)),
            (dir.path().join("../x"), Err(BadProject::NotAbsolute)),
            (dir.path().join("none"), Err(BadProject::Missing)),
            (below(b"a\0b"), Err(BadProject::Missing)),
            (below(b"\xff"), Err(BadProject::Missing)),
            (file, Err(BadProject::Missing)),
        ] {
            assert_eq!(check_project(&path), expected, "{}", path.display());
        }
    }

    #[test]
    fn links_are_followed_to_where_a_write_would_land() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, dir.join(at)).unwrap();
        std::fs::create_dir_all(dir.join("repo/src")).unwrap();
        std::fs::create_dir(dir.join("secret")).unwrap();
        link("../../secret", "repo/src/link");
        link("link/new", "repo/src/dangling");
        link("loop", "repo/loop");
        std::fs::write(dir.join("repo/file"), "").unwrap();
        for (given, real) in [
            ("repo/src/x", Some("repo/src/x")),
            ("repo/src/link/x", Some("secret/x")),
            ("repo/src/link/none/deep", Some("secret/none/deep")),
            ("repo/src/dangling", Some("secret/new")),
            ("repo/loop", None),
            ("repo/file/x", None),
        ] {
            let expected = real.map(|real| dir.join(real));
            assert_eq!(followed(&dir.join(given)), expected, "{given}");
        }
    }

    #[tokio::test]
    async fn a_fifo_in_the_way_of_a_path_keeps_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        make_fifo(&fifo).unwrap();
        let input = serde_json::json!({"file_path": "fifo"});
        let real = real_path("Read", &input, dir.path(), dir.path()).await;
        let project = dir.path().canonicalize().unwrap();
        let path = project.join("fifo");
        assert_eq!(real, RealPath::Known { path, project });
        let none = serde_json::json!({"command": "ls"});
        let real = real_path("Bash", &none, dir.path(), dir.path()).await;
        assert_eq!(real, RealPath::Unasked);
    }

    #[test]
    fn the_machine_has_a_name() {
        assert!(!host_name().is_empty());
    }
}
