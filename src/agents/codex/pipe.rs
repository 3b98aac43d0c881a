//! The two ways a session of a chat reaches Codex: a child of nod's own, one
//! message a line, or the daemon beside whose terminal the thread is open.
//! Both look like a child.

use futures::{SinkExt as _, StreamExt as _};
use std::path::PathBuf;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use super::link;
use crate::child::lines::Cut;
use crate::child::process::{self, Child, ChildEnd, ChildManner, Launch};

const MAX_WAITING: usize = 64;

/// What a child may inherit besides what any may. The key of a provider has a
/// name that its owner chose.
pub const INHERITED: &str = "CODEX_* OPENAI_* AZURE_* *_API_KEY";

#[derive(Debug)]
pub enum PipeHeard {
    Text(String),
    TooLong(usize),
    /// Always the last.
    Ended(ChildEnd),
}

/// A child that speaks by its standard input and output.
pub fn child(launch: Launch) -> Child<PipeHeard> {
    let manner = ChildManner {
        read: |cut| match cut {
            Cut::Line(line) => Some(PipeHeard::Text(String::from_utf8(line).ok()?)),
            Cut::TooLong { bytes, .. } => Some(PipeHeard::TooLong(bytes)),
        },
        // Its turn is interrupted by name before.
        stop: None,
        ended: PipeHeard::Ended,
    };
    process::start(launch, manner)
}

/// The daemon of that home.
pub fn daemon(home: PathBuf) -> Child<PipeHeard> {
    let (say, orders) = mpsc::channel(MAX_WAITING);
    let (reports, events) = mpsc::channel(MAX_WAITING);
    let stop = CancellationToken::new();
    let until = stop.clone();
    tokio::spawn(async move {
        let ended = match link::dial(&home).await {
            Ok(socket) => carry(socket, orders, &reports, &until).await,
            Err(why) => ChildEnd::NotStarted {
                problem: why.to_string(),
            },
        };
        // A reader that left does not need to know.
        let _ = reports.send(PipeHeard::Ended(ended)).await;
    });
    Child { say, events, stop }
}

async fn carry(
    mut socket: link::CodexSocket,
    mut orders: mpsc::Receiver<String>,
    reports: &mpsc::Sender<PipeHeard>,
    stop: &CancellationToken,
) -> ChildEnd {
    let over = |code| ChildEnd::Over {
        code,
        killed: false,
        errors: String::new(),
    };
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            () = reports.closed() => break,
            order = orders.recv() => {
                let Some(line) = order else { break };
                if socket.send(Message::text(line)).await.is_err() {
                    return over(None);
                }
            }
            heard = socket.next() => match heard {
                Some(Ok(Message::Text(text))) => {
                    let text = text.as_str().to_owned();
                    if reports.send(PipeHeard::Text(text)).await.is_err() {
                        break;
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return over(None),
                Some(Ok(_)) => {}
            },
        }
    }
    // It goes on with its terminal, whether it hears this or not.
    let _ = socket.close(None).await;
    over(Some(0))
}
