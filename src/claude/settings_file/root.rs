//! Where a project's local settings lie: the repository's root as Claude Code
//! takes it, and for a linked worktree the main checkout. Only reads.

use std::io;
use std::path::{Path, PathBuf};

use crate::files;

/// A pointer file of git's holds one path.
const POINTER_MAX: u64 = 8 * 1024;

/// The repository that holds `start`, else `start` itself; no symlinks left.
pub(super) fn of(start: &Path) -> io::Result<PathBuf> {
    let start = start.canonicalize()?;
    let found = start.ancestors().find_map(|dir| {
        let git = dir.join(".git");
        let is = git.symlink_metadata().ok()?;
        if is.is_dir() {
            git.join("HEAD").exists().then(|| dir.to_owned())
        } else if is.is_file() {
            Some(main_checkout(dir, &git).unwrap_or_else(|| dir.to_owned()))
        } else {
            None
        }
    });
    Ok(found.unwrap_or(start))
}

/// A worktree's `.git` file points into the main repository, which must point
/// back: otherwise a stray `.git` file could send a rule into any project. A
/// submodule has such a file too, but shares nothing.
fn main_checkout(dir: &Path, git: &Path) -> Option<PathBuf> {
    let admin = dir.join(pointer(git)?.strip_prefix("gitdir:")?.trim_start());
    let common = admin
        .join(pointer(&admin.join("commondir"))?)
        .canonicalize()
        .ok()?;
    let back = admin.join(pointer(&admin.join("gitdir"))?);
    if back.canonicalize().ok()? != git.canonicalize().ok()? {
        return None;
    }
    let inside = admin.canonicalize().ok()?.starts_with(&common);
    let is_checkout = common.file_name()? == ".git";
    (inside && is_checkout).then(|| common.parent().map(Path::to_owned))?
}

fn pointer(file: &Path) -> Option<String> {
    let text = files::read_start(file, POINTER_MAX).ok()?;
    let text = String::from_utf8(text).ok()?;
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn repository(at: &Path) {
        fs::create_dir_all(at.join(".git")).unwrap();
        fs::write(at.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    /// What `git worktree add` leaves behind.
    fn worktree(main: &Path, at: &Path, back: &Path) {
        let admin = main.join(".git/worktrees/side");
        fs::create_dir_all(&admin).unwrap();
        fs::create_dir_all(at).unwrap();
        fs::write(admin.join("commondir"), "../..\n").unwrap();
        fs::write(admin.join("gitdir"), format!("{}\n", back.display())).unwrap();
        fs::write(at.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
    }

    #[track_caller]
    fn check(start: &Path, expected: &Path) {
        assert_eq!(of(start).unwrap(), expected.canonicalize().unwrap());
    }

    #[test]
    fn the_repository_is_found_from_below() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("shop/src/deep");
        fs::create_dir_all(&deep).unwrap();
        check(&deep, &deep);
        repository(&dir.path().join("shop"));
        check(&deep, &dir.path().join("shop"));
        // Not a repository: git would go on upwards.
        fs::create_dir(deep.join(".git")).unwrap();
        check(&deep, &dir.path().join("shop"));
    }

    #[test]
    fn a_worktree_belongs_to_its_main_checkout() {
        let dir = tempfile::tempdir().unwrap();
        let (main, side) = (dir.path().join("main"), dir.path().join("side"));
        repository(&main);
        worktree(&main, &side, &side.join(".git"));
        fs::create_dir(side.join("src")).unwrap();
        check(&side.join("src"), &main);
    }

    #[test]
    fn a_pointer_that_nothing_points_back_to_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (main, side) = (dir.path().join("main"), dir.path().join("side"));
        repository(&main);
        worktree(&main, &side, &dir.path().join("elsewhere/.git"));
        check(&side, &side);
        fs::write(side.join(".git"), "gitdir: /nowhere\n").unwrap();
        check(&side, &side);
        fs::write(side.join(".git"), [0xff; 20]).unwrap();
        check(&side, &side);
    }

    #[test]
    fn a_submodule_is_its_own_root() {
        let dir = tempfile::tempdir().unwrap();
        let (outer, module) = (dir.path().join("outer"), dir.path().join("outer/lib"));
        repository(&outer);
        fs::create_dir_all(outer.join(".git/modules/lib")).unwrap();
        fs::create_dir(&module).unwrap();
        fs::write(module.join(".git"), "gitdir: ../.git/modules/lib\n").unwrap();
        check(&module, &module);
    }

    #[test]
    fn a_bare_repository_has_no_checkout_to_write_to() {
        let dir = tempfile::tempdir().unwrap();
        let (bare, side) = (dir.path().join("shop.git"), dir.path().join("side"));
        let admin = bare.join("worktrees/side");
        fs::create_dir_all(&admin).unwrap();
        fs::create_dir_all(&side).unwrap();
        fs::write(admin.join("commondir"), "../..\n").unwrap();
        fs::write(admin.join("gitdir"), format!("{}/.git\n", side.display())).unwrap();
        fs::write(side.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
        check(&side, &side);
    }
}
