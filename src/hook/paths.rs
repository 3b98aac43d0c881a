//! Where the hook socket lies. Pure: the places are given, nothing is touched.

use std::path::{Path, PathBuf};

/// Where clients of plain v1 look by default.
pub const OLD_CLIENTS: &str = "/tmp/claude-permission.sock";

/// What a Unix socket's address holds, less its final NUL.
pub const MAX_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// The directories and the override a [`SocketPaths`] is made from.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// `$XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<&'a Path>,
    /// nod's own state directory.
    pub state_dir: &'a Path,
    /// `PERMISSION_SOCKET_PATH`, only if the user's own settings named it: a
    /// repository's settings can put variables into a hook's environment.
    pub chosen: Option<&'a Path>,
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

impl Places<'_> {
    pub fn socket_paths(&self) -> SocketPaths {
        if let Some(chosen) = self.chosen {
            return SocketPaths {
                own: chosen.to_owned(),
                private: false,
                old_clients: None,
            };
        }
        let own = match self.runtime_dir {
            Some(dir) if dir.is_absolute() => dir.join("nod/nod.sock"),
            _ => self.state_dir.join("run/nod.sock"),
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
    fn the_socket_is_private_unless_a_path_was_chosen() {
        let state_dir = Path::new("/home/u/.local/state/nod");
        let place = |runtime_dir: Option<&'static str>, chosen: Option<&'static str>| {
            Places {
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
