//! The way to Codex's daemon: a WebSocket over its Unix socket, and only over
//! one that this very user listens on.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, tungstenite};

use crate::text::Text;

/// Where a home of Codex's keeps its daemon's socket.
const SOCKET: &str = "app-server-control/app-server-control.sock";
const DIAL_WITHIN: Duration = Duration::from_secs(5);
/// A turn may be large; a card shows no more than a small part of this.
const MAX_MESSAGE: usize = 16 << 20;

pub type CodexSocket = WebSocketStream<UnixStream>;

#[derive(Debug, thiserror::Error)]
pub enum CodexDialError {
    #[error("there is no socket")]
    None,
    #[error("the socket belongs to user {0}")]
    Owner(u32),
    #[error("the program behind the socket runs as user {0}")]
    Peer(u32),
    #[error("the socket can't be used: {0}")]
    Io(#[from] std::io::Error),
    #[error("no WebSocket behind the socket: {0}")]
    WebSocket(#[from] tungstenite::Error),
    #[error("nobody answered in time")]
    Slow,
    #[error("it sent more than {} MiB at once", MAX_MESSAGE >> 20)]
    TooLarge,
    #[error("it speaks a protocol that nod does not know: {0}")]
    Strange(String),
}

impl CodexDialError {
    /// Why a connection ended.
    pub fn broken(why: &tungstenite::Error) -> Self {
        match why {
            tungstenite::Error::Capacity(_) => Self::TooLarge,
            _ => Self::None,
        }
    }

    /// For people; the cause is Codex's or the system's own word.
    pub fn text(&self) -> Text {
        let zh = match self {
            Self::None => "没有 socket".to_owned(),
            Self::Owner(uid) => format!("socket 属于用户 {uid}"),
            Self::Peer(uid) => format!("socket 另一端的程序以用户 {uid} 运行"),
            Self::Io(why) => format!("socket 无法使用：{why}"),
            Self::WebSocket(why) => format!("socket 另一端不是 WebSocket：{why}"),
            Self::Slow => "没有及时应答".to_owned(),
            Self::TooLarge => format!("一次发来的内容超过 {} MiB", MAX_MESSAGE >> 20),
            Self::Strange(why) => format!("使用 nod 不认识的协议：{why}"),
        };
        Text::made(zh, self.to_string())
    }
}

pub fn socket(home: &Path) -> PathBuf {
    home.join(SOCKET)
}

/// Whether there is a socket of this user's in that home.
pub fn look(home: &Path) -> Result<(), CodexDialError> {
    let uid = rustix::process::geteuid().as_raw();
    match std::fs::metadata(socket(home)) {
        Ok(is) if is.uid() != uid => Err(CodexDialError::Owner(is.uid())),
        Ok(_) => Ok(()),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Err(CodexDialError::None),
        Err(why) => Err(why.into()),
    }
}

pub async fn dial(home: &Path) -> Result<CodexSocket, CodexDialError> {
    look(home)?;
    let path = socket(home);
    let dialled = async {
        let stream = UnixStream::connect(&path).await.map_err(|why| {
            match why.kind() {
                // Left behind by a daemon that is gone.
                std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound => {
                    CodexDialError::None
                }
                _ => why.into(),
            }
        })?;
        let peer = stream.peer_cred()?.uid();
        if peer != rustix::process::geteuid().as_raw() {
            return Err(CodexDialError::Peer(peer));
        }
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        let upgrade =
            tokio_tungstenite::client_async_with_config("ws://localhost/", stream, Some(limits));
        Ok(upgrade.await?.0)
    };
    tokio::time::timeout(DIAL_WITHIN, dialled)
        .await
        .map_err(|_| CodexDialError::Slow)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::process::{Command, Stdio};

    const NOBODY: u32 = 65_534;

    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("app-server-control")).unwrap();
        home
    }

    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[tokio::test]
    async fn a_socket_of_another_user_is_not_even_dialled() {
        let home = home();
        assert!(matches!(look(home.path()), Err(CodexDialError::None)));
        let listener = tokio::net::UnixListener::bind(socket(home.path())).unwrap();
        assert!(look(home.path()).is_ok());
        // Only root can give a file away.
        if is_root() {
            chown(socket(home.path()), Some(NOBODY), None).unwrap();
            assert!(matches!(
                look(home.path()),
                Err(CodexDialError::Owner(NOBODY))
            ));
            let dialled = dial(home.path()).await;
            assert!(matches!(dialled, Err(CodexDialError::Owner(NOBODY))));
            let heard = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
            assert!(heard.is_err(), "somebody dialled");
        }
    }

    /// The file is ours, whoever listens is not: so much a mover of sockets can
    /// do.
    #[tokio::test]
    async fn a_program_of_another_user_behind_our_socket_hears_nothing() {
        if !is_root() {
            return;
        }
        let home = home();
        let dir = home.path().join("app-server-control");
        for open in [home.path(), &dir] {
            std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let script = r#"
            my $s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 5) or die "bind: $!";
            $| = 1; print "ready\n"; my $c = $s->accept; print <$c> // "nothing", "\n";"#;
        let mut squatter = Command::new("perl");
        squatter.args(["-MIO::Socket::UNIX", "-e", script]);
        squatter.arg(socket(home.path()));
        squatter.stdout(Stdio::piped());
        let squatter = std::os::unix::process::CommandExt::uid(&mut squatter, NOBODY).spawn();
        let Ok(mut squatter) = squatter else { return };
        let mut out = std::io::BufReader::new(squatter.stdout.take().unwrap());
        let mut said = String::new();
        std::io::BufRead::read_line(&mut out, &mut said).unwrap();
        assert_eq!(said, "ready\n");
        chown(socket(home.path()), Some(0), None).unwrap();
        let dialled = dial(home.path()).await;
        assert!(
            matches!(dialled, Err(CodexDialError::Peer(NOBODY))),
            "{dialled:?}"
        );
        said.clear();
        std::io::BufRead::read_line(&mut out, &mut said).unwrap();
        assert_eq!(said, "nothing\n");
        squatter.wait().unwrap();
    }
}
