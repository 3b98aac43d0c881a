//! Paths by their text alone: resolved without the file system. Where links
//! really lead is told by whoever looked.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::text::lists;

/// Directories whose files decide what runs or who one is.
const DIRECTORIES: &str = ".aws .claude .config .git .gnupg .husky .kube .ssh .vscode";
const FILES: &str = "\
    .bash_aliases .bash_login .bash_logout .bash_profile .bashrc .envrc .gitconfig .mcp.json \
    .netrc .npmrc .profile .pypirc .zlogin .zprofile .zshenv .zshrc authorized_keys";

/// Files whose content decides what a build, a test or a start runs. A rule for
/// one covers every later change of it, however harmless the first was.
const DECIDING: &str = "\
    .babelrc .curlrc .direnvrc .env .eslintrc .gdbinit .gitattributes .gitmodules .lldbinit \
    .mocharc .pre-commit-config.yaml .pryrc .rspec agents.md build.bazel build.rs cargo.toml \
    claude.md cmakelists.txt composer.json conftest.py containerfile deno.json deno.jsonc \
    dockerfile gemfile gnumakefile gradlew justfile makefile meson.build mise.toml mvnw \
    noxfile.py package.json pom.xml pyproject.toml pytest.ini rakefile setup.cfg setup.py \
    tox.ini workspace";

/// By the file's name alone, whatever its case.
pub(crate) fn decides_what_runs(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    let begins = |known: &str| {
        name.strip_prefix(known)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    DECIDING.split_ascii_whitespace().any(begins)
        || lists::within(".config. compose.y .gradle", &name)
        || path.components().any(|part| {
            matches!(
                part.as_os_str().to_str(),
                Some(".venv" | ".idea" | "node_modules")
            )
        })
}

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

/// The file or directory a call is about, as it named it.
pub(crate) fn named<'a>(tool: &str, input: &'a Value) -> Option<&'a str> {
    let field = match tool {
        "Edit" | "MultiEdit" | "Read" | "Write" => "file_path",
        "NotebookEdit" => "notebook_path",
        "Glob" | "Grep" | "LS" => "path",
        _ => return None,
    };
    input.get(field)?.as_str()
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

/// Outside of the project a file is somebody else's, so more of them count:
/// the system's own, what is hidden, and what is named like a secret.
pub(crate) fn is_sensitive_outside(path: &Path) -> bool {
    const PLACES: &str = "/boot /dev /etc /private/etc /proc /root /run /sys /var";
    const PIECES: &str = "credential id_ key passw private secret token";
    const ENDINGS: &str = ".cer .crt .env .jks .kdbx .p12 .pem .pfx";
    PLACES
        .split_ascii_whitespace()
        .any(|place| path.starts_with(place))
        || path.components().any(|part| {
            let Component::Normal(name) = part else {
                return false;
            };
            let name = name.to_string_lossy().to_ascii_lowercase();
            name.starts_with('.')
                || lists::within(PIECES, &name)
                || ENDINGS
                    .split_ascii_whitespace()
                    .any(|end| name.ends_with(end))
        })
}

/// By name alone, whatever the case: some file systems don't tell it apart.
pub(crate) fn is_sensitive_name(name: &OsStr) -> bool {
    let known = DIRECTORIES.split_ascii_whitespace();
    known
        .chain(FILES.split_ascii_whitespace())
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
    fn files_that_decide_what_runs_are_known_by_their_names() {
        for name in [
            "Makefile",
            "package.json",
            "Dockerfile.dev",
            "vite.config.js",
            "compose.yaml",
            "docker-compose.yml",
            "build.gradle",
            ".venv/bin/python",
            "a/node_modules/b/index.js",
        ] {
            assert!(decides_what_runs(Path::new(name)), "{name}");
        }
        for name in ["a.rs", "makefiles", "packages.json", "config.rs", "venv/a"] {
            assert!(!decides_what_runs(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn each_tool_names_its_file_in_a_field_of_its_own() {
        let input = serde_json::json!({"file_path": "f", "notebook_path": "n", "path": "p"});
        for (tool, file) in [
            ("Edit", Some("f")),
            ("Read", Some("f")),
            ("NotebookEdit", Some("n")),
            ("Grep", Some("p")),
            ("Bash", None),
        ] {
            assert_eq!(named(tool, &input), file, "{tool}");
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
