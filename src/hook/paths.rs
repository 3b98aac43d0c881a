//! Where the hook socket lies. Pure: the places are given, nothing is touched.

use std::path::{Path, PathBuf};

/// Where clients of plain v1 look by default.
pub const OLD_CLIENTS: &str = "/tmp/claude-permission.sock";

const IN_RUNTIME: &str = "nod/nod.sock";
const IN_STATE: &str = "run/nod.sock";

/// What a Unix socket's address holds, less its final NUL.
pub const MAX_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// The directories and the override a [`SocketPaths`] is made from.
#[derive(Debug, Clone, Copy)]
pub struct SocketPlaces<'a> {
    /// `$XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<&'a Path>,
    /// nod's own state directory.
    pub state_dir: &'a Path,
    /// `PERMISSION_SOCKET_PATH`.
    pub chosen: Option<&'a Path>,
}

/// What a hook knows of where the daemon listens. None of it comes from its
/// environment, which a repository's settings choose.
#[derive(Debug, Clone, Copy)]
pub struct SocketHints<'a> {
    /// `PERMISSION_SOCKET_PATH` of nod's own file.
    pub chosen: Option<&'a Path>,
    /// `NOD_STATE_DIR` of nod's own file.
    pub state_dir: Option<&'a Path>,
    /// What the set-up wrote into the hook's line.
    pub recorded: Option<&'a Path>,
    /// Where the state directory is when nobody chose one.
    pub usual_state: Option<&'a Path>,
    pub uid: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketPaths {
    /// Where nod's own hooks connect.
    pub own: PathBuf,
    /// Whether `own` must lie in a directory of ours alone.
    pub private: bool,
    /// A second path, for clients of plain v1.
    pub old_clients: Option<PathBuf>,
}

impl SocketHints<'_> {
    /// Where the daemon may listen, the likeliest first.
    pub fn candidates(&self) -> Vec<PathBuf> {
        let in_state = |dir: &Path| dir.join(IN_STATE);
        let said = match self.chosen {
            Some(chosen) => Some(chosen.to_owned()),
            None => self.state_dir.map(in_state),
        };
        let is_said = said.is_some();
        let runtime = PathBuf::from(format!("/run/user/{}", self.uid)).join(IN_RUNTIME);
        let usual = self.usual_state.map(in_state).into_iter().chain([runtime]);
        let mut all: Vec<PathBuf> = said
            .into_iter()
            .chain(self.recorded.map(Path::to_owned))
            .chain(usual.filter(|_| !is_said))
            .collect();
        all.dedup();
        all
    }
}

impl SocketPlaces<'_> {
    pub fn socket_paths(&self) -> SocketPaths {
        if let Some(chosen) = self.chosen {
            return SocketPaths {
                own: chosen.to_owned(),
                private: false,
                old_clients: None,
            };
        }
        let own = match self.runtime_dir {
            Some(dir) if dir.is_absolute() => dir.join(IN_RUNTIME),
            _ => self.state_dir.join(IN_STATE),
        };
        SocketPaths {
            own,
            private: true,
            old_clients: Some(OLD_CLIENTS.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_looks_where_nods_own_file_and_the_set_up_say() {
        let path = Path::new;
        let usual = SocketHints {
            chosen: None,
            state_dir: None,
            recorded: None,
            usual_state: Some(path("/home/u/.local/state/nod")),
            uid: 7,
        };
        let found = |known: SocketHints<'_>| {
            let all = known.candidates().into_iter();
            all.map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let places = "/home/u/.local/state/nod/run/nod.sock /run/user/7/nod/nod.sock";
        assert_eq!(found(usual), places);
        let recorded = SocketHints {
            recorded: Some(path("/r.sock")),
            ..usual
        };
        assert_eq!(found(recorded), format!("/r.sock {places}"));
        let apart = SocketHints {
            state_dir: Some(path("/s")),
            ..recorded
        };
        assert_eq!(found(apart), "/s/run/nod.sock /r.sock");
        let chosen = SocketHints {
            chosen: Some(path("/c.sock")),
            ..apart
        };
        assert_eq!(found(chosen), "/c.sock /r.sock");
    }

    #[test]
    fn the_socket_is_private_unless_a_path_was_chosen() {
        let state_dir = Path::new("/home/u/.local/state/nod");
        let place = |runtime_dir: Option<&'static str>, chosen: Option<&'static str>| {
            SocketPlaces {
                runtime_dir: runtime_dir.map(Path::new),
                state_dir,
                chosen: chosen.map(Path::new),
            }
            .socket_paths()
        };
        let paths = place(Some("/run/user/1000"), None);
        assert_eq!(paths.own, Path::new("/run/user/1000/nod/nod.sock"));
        assert!(paths.private);
        assert_eq!(paths.old_clients.as_deref(), Some(Path::new(OLD_CLIENTS)));
        for unusable in [None, Some("run/user")] {
            let own = place(unusable, None).own;
            assert_eq!(own, Path::new("/home/u/.local/state/nod/run/nod.sock"));
        }
        let chosen = place(Some("/run/user/1000"), Some("/tmp/x.sock"));
        assert_eq!(chosen.own, Path::new("/tmp/x.sock"));
        assert_eq!((chosen.private, chosen.old_clients), (false, None));
    }
}
