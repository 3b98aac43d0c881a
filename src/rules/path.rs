//! Paths by their text alone: resolved without the file system, so a symbolic
//! link is taken for what it is named.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Directories whose files decide what runs or who one is.
const DIRECTORIES: &[&str] = &[
    ".aws", ".claude", ".config", ".git", ".gnupg", ".husky", ".kube", ".ssh", ".vscode",
];
const FILES: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".envrc",
    ".gitconfig",
    ".mcp.json",
    ".netrc",
    ".npmrc",
    ".profile",
    ".pypirc",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "authorized_keys",
];

/// The absolute path a name means, `.` and `..` worked out.
pub(crate) fn resolve(cwd: &Path, name: &str) -> PathBuf {
    let mut out = PathBuf::new();
    for component in cwd.join(name).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                out.push(component);
            }
        }
    }
    out
}

/// Strictly below the project, and the project is more than the root.
pub(crate) fn is_inside(path: &Path, project: &Path) -> bool {
    project.is_absolute()
        && project.parent().is_some()
        && path != project
        && path.starts_with(project)
}

pub(crate) fn is_sensitive(path: &Path) -> bool {
    path.components().any(|part| match part {
        Component::Normal(name) => is_sensitive_name(name),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            false
        }
    })
}

/// By name alone, whatever the case: some file systems don't tell it apart.
pub(crate) fn is_sensitive_name(name: &OsStr) -> bool {
    DIRECTORIES
        .iter()
        .chain(FILES)
        .any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_resolve_against_the_directory_without_touching_disk() {
        let cwd = Path::new("/p/src");
        for (name, path) in [
            ("a.rs", "/p/src/a.rs"),
            ("../b", "/p/b"),
            ("./x/../y", "/p/src/y"),
            ("/abs/../etc/x", "/etc/x"),
            ("../../../../x", "/x"),
        ] {
            assert_eq!(resolve(cwd, name), Path::new(path), "{name}");
        }
    }

    #[test]
    fn a_sibling_with_the_same_beginning_is_outside() {
        assert!(is_inside(Path::new("/p/a/x"), Path::new("/p/a")));
        for path in ["/p/ab", "/p/a", "/p", "/etc/x"] {
            assert!(!is_inside(Path::new(path), Path::new("/p/a")), "{path}");
        }
        assert!(!is_inside(Path::new("/x"), Path::new("/")));
    }

    #[test]
    fn what_decides_about_running_code_is_sensitive() {
        for path in [
            "/p/.git/hooks/x",
            "/h/.ssh/id",
            "/p/.Claude/settings.json",
            "/h/.zshrc",
        ] {
            assert!(is_sensitive(Path::new(path)), "{path}");
        }
        assert!(!is_sensitive(Path::new("/p/.gitignore")));
    }
}
