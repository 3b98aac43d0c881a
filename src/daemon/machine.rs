//! What a card says about where a request lives: this machine, its user, the
//! project's branch.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

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
    fn the_machine_has_a_name() {
        assert!(!host_name().is_empty());
    }
}
