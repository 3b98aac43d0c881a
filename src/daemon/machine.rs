//! What a card says about where a request lives: this machine, its user, the
//! project's branch.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// More levels than any project has between its start directory and its root.
const MAX_DEPTH: usize = 64;

/// The machine's own name for itself.
pub(super) fn host_name() -> String {
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
pub(super) enum BadProject {
    #[error("the project's directory is not an absolute path without `..`")]
    NotAbsolute,
    #[error("the project's directory does not exist")]
    Missing,
    #[error("the project's directory belongs to another user")]
    Foreign,
}

/// A rule may be written beneath it and a person is shown its name, so it must
/// be a real directory of this user's, or of the system's.
pub(super) fn check_project(dir: &Path) -> Result<(), BadProject> {
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
pub(super) fn branch(dir: &Path) -> Option<String> {
    let git = dir
        .ancestors()
        .take(MAX_DEPTH)
        .map(|dir| dir.join(".git"))
        .find(|git| git.exists())?;
    let head = if git.is_dir() {
        git.join("HEAD")
    } else {
        let pointer = read_small(&git)?;
        let target = PathBuf::from(pointer.strip_prefix("gitdir:")?.trim());
        git.parent()?.join(target).join("HEAD")
    };
    let head = read_small(&head)?;
    let head = head.trim();
    Some(match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => branch.to_owned(),
        None => head.chars().take(12).collect(),
    })
}

fn read_small(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path)
        .ok()?
        .take(4_096)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        std::fs::write(head, "0123456789abcdef\n").unwrap();
        std::fs::write(tree.join(".git"), "gitdir: ../repo/.git/worktrees/tree\n").unwrap();
        assert_eq!(branch(&tree).as_deref(), Some("0123456789ab"));
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
    fn the_machine_has_a_name() {
        assert!(!host_name().is_empty());
    }
}
