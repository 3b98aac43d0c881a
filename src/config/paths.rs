//! Where nod's things lie, for commands that need to know nothing else.

use std::path::PathBuf;

use super::{Problems, SettingOrigin, SettingProblem, SettingsReader, Sources, UnreadFile};
use crate::hook::paths::SocketPaths;

const READ: [&str; 2] = ["NOD_STATE_DIR", "PERMISSION_SOCKET_PATH"];

/// A wrong setting elsewhere must not keep anybody from looking at the record,
/// from locking nod or from taking it off the machine.
#[derive(Debug, Clone)]
pub struct Paths {
    pub state_dir: PathBuf,
    pub sockets: SocketPaths,
}

impl Paths {
    pub fn load(sources: &Sources) -> Result<Self, Problems> {
        let mut read = SettingsReader {
            sources,
            problems: Vec::new(),
        };
        let state_dir = read.state_dir();
        let sockets = read.sockets(state_dir.as_ref());
        // A file of which nothing is known may say where they lie, but never
        // against the environment.
        let open = |name: &str| !matches!(sources.get(name), Some((_, SettingOrigin::Environment)));
        let hiding = sources.broken.iter().filter(|file| {
            READ.iter().any(|name| match file.why {
                UnreadFile::Line(_) => file.hidden.contains(name) && open(name),
                UnreadFile::TooLarge | UnreadFile::System(_) => open(name),
            })
        });
        read.problems
            .extend(hiding.cloned().map(SettingProblem::BrokenFile));
        match state_dir {
            Some(state_dir) if read.problems.is_empty() => Ok(Self { state_dir, sockets }),
            _ => Err(Problems(read.problems)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> Result<Paths, Problems> {
        loaded_with(&[("FEISHU_APP_ID", "cli_bad")], text)
    }

    fn loaded_with(environment: &[(&str, &str)], text: &str) -> Result<Paths, Problems> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut sources = Sources::of(environment);
        sources.add_file(file.path());
        Paths::load(&sources)
    }

    #[test]
    fn what_is_wrong_elsewhere_does_not_hide_where_things_lie() {
        for text in [
            "NOD_STATE_DIR=/s\n",
            "garbage\nNOD_STATE_DIR=/s\nNOD_LOG=\"x\n",
        ] {
            assert_eq!(
                loaded(text).unwrap().state_dir,
                PathBuf::from("/s"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_place_that_cannot_be_read_is_not_guessed() {
        for text in [
            "NOD_STATE_DIR=s\n",
            "NOD_STATE_DIR=\"/s\n",
            "X=1\ngarbage\nexport NOD_STATE_DIR /s\n",
            "PERMISSION_SOCKET_PATH='/s\n",
        ] {
            assert_eq!(loaded(text).unwrap_err().0.len(), 1, "{text}");
        }
    }

    #[test]
    fn what_the_environment_says_no_file_can_hide() {
        let state = ("NOD_STATE_DIR", "/e");
        let socket = ("PERMISSION_SOCKET_PATH", "/e/s");
        let hidden = "NOD_STATE_DIR=\"/s\n";
        let paths = loaded_with(&[state], hidden).unwrap();
        assert_eq!(paths.state_dir, PathBuf::from("/e"));
        assert_eq!(loaded_with(&[socket], hidden).unwrap_err().0.len(), 1);
        let too_large = "#".repeat((1 << 20) + 1);
        assert!(loaded_with(&[state], &too_large).is_err());
        assert!(loaded_with(&[state, socket], &too_large).is_ok());
    }
}
