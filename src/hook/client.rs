//! The hook's end of the socket: asks, waits, comes back after a daemon
//! restart, and gives up in time. Blocking and small: no runtime, no TLS.
//! Prints nothing; whatever is uncertain is left to Claude Code's own dialog.

mod line;

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::connect::{self, Unreachable};
use super::wire::answer::{self, Decision};
use super::wire::error_word::ErrorWord;
use super::wire::{
    self, Ack, Additions, DaemonOrder, HookMessage, HookNotice, MAX_REQUEST, Registration,
    WireError,
};
use crate::approvals::request::Digest;
use crate::approvals::token::Token;
use crate::claude::mailbox::Mailbox;
use crate::ids::RequestId;
use line::{DaemonLine, Silence};

/// A permission request as the hook read it.
#[derive(Debug, Clone)]
pub struct HookRequest {
    pub id: RequestId,
    pub project: PathBuf,
    /// The hook's stdin, as it came.
    pub raw_input: Vec<u8>,
    /// Of the tool input in it: an allow for another one is not taken.
    pub digest: Digest,
    pub cwd: Option<PathBuf>,
    pub agent: Option<String>,
    pub pid: Option<u32>,
    /// The agent's own process.
    pub process: Option<u32>,
    /// Where the session takes words.
    pub mailbox: Option<Mailbox>,
}

/// How long each step may take.
#[derive(Debug, Clone)]
pub struct Patience {
    /// In all. The server's own time-out comes 30 s earlier.
    pub answer: Duration,
    /// A daemon that accepts and then says nothing is not waited for.
    pub ack: Duration,
    /// A full queue is tried again this long.
    pub queue: Duration,
    /// A lost daemon is looked for this long.
    pub comeback: Duration,
}

impl Patience {
    /// For a daemon that lets a person take `server_timeout`.
    pub fn for_timeout(server_timeout: Duration) -> Self {
        Self {
            answer: server_timeout.saturating_add(Duration::from_secs(30)),
            ack: Duration::from_secs(2),
            queue: Duration::from_secs(2),
            comeback: Duration::from_secs(30),
        }
    }
}

/// Why there is no decision. Each is one line for stderr; the dialog decides.
#[derive(Debug, thiserror::Error)]
pub enum NoDecision {
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// With the daemon's own sentence.
    #[error("the daemon refused the request: {message}")]
    Refused { error: ErrorWord, message: String },
    #[error("the daemon does not answer")]
    Hung,
    #[error("the daemon went away and did not come back")]
    Lost,
    #[error("nobody answered in time")]
    OutOfTime,
    #[error("Claude Code went away")]
    ListenerGone,
    #[error("the request is larger than {MAX_REQUEST} bytes")]
    TooLarge,
    #[error("the daemon speaks another language: {0}")]
    Garbled(#[from] WireError),
}

impl From<Silence> for NoDecision {
    fn from(silence: Silence) -> Self {
        match silence {
            Silence::Closed => Self::Lost,
            Silence::OutOfTime => Self::OutOfTime,
            Silence::ListenerGone => Self::ListenerGone,
        }
    }
}

/// Asks the daemon and waits for the person. `listener` is where the answer
/// will be printed; when nobody is left to read it, the wait ends.
pub fn ask(
    socket: &Path,
    question: &HookRequest,
    patience: &Patience,
    listener: Option<BorrowedFd<'_>>,
) -> Result<Decision, NoDecision> {
    ask_of(socket, question, patience, listener, |_| {})
}

/// As [`ask`]; `met` hears which nod the daemon is that took the request in.
pub fn ask_of(
    socket: &Path,
    question: &HookRequest,
    patience: &Patience,
    listener: Option<BorrowedFd<'_>>,
    met: impl FnOnce(&str),
) -> Result<Decision, NoDecision> {
    let give_up = Instant::now() + patience.answer;
    let mut asking = AskingHook {
        socket,
        question,
        patience,
        listener,
        give_up,
        token: None,
        daemon: None,
    };
    let mut line = asking.register()?;
    if let Some(daemon) = asking.daemon.take() {
        met(&daemon);
    }
    loop {
        match asking.wait(&mut line) {
            Err(NoDecision::Lost) => line = asking.come_back()?,
            ended => return ended,
        }
    }
}

struct AskingHook<'a> {
    socket: &'a Path,
    question: &'a HookRequest,
    patience: &'a Patience,
    listener: Option<BorrowedFd<'a>>,
    give_up: Instant,
    token: Option<Token>,
    /// Which nod took the request in.
    daemon: Option<String>,
}

impl<'a> AskingHook<'a> {
    /// Connects, asks and reads the ack.
    fn register(&mut self) -> Result<DaemonLine<'a>, NoDecision> {
        let message = self.message();
        if message.len() > MAX_REQUEST {
            return Err(NoDecision::TooLarge);
        }
        let mut line = self.dial()?;
        let until = (Instant::now() + self.patience.ack).min(self.give_up);
        let hung = |silence| match silence {
            Silence::OutOfTime => NoDecision::Hung,
            Silence::Closed | Silence::ListenerGone => silence.into(),
        };
        // A server that refuses early closes before it has read everything;
        // what it said is still there to be read.
        let written = line.write(&message, until);
        let ack = match (line.read_object(until), written) {
            (Ok(ack), _) => ack?,
            (Err(_), Err(silence)) | (Err(silence), Ok(())) => return Err(hung(silence)),
        };
        match Ack::decode(&ack)? {
            Ack::Registered { nod, .. } => {
                if let Some(nod) = nod {
                    self.token = nod.resume_token.or(self.token.take());
                    self.daemon = Some(nod.server_version);
                }
                Ok(line)
            }
            Ack::Refused { error, message, .. } => Err(NoDecision::Refused { error, message }),
        }
    }

    fn message(&self) -> Vec<u8> {
        let question = self.question;
        HookMessage::Register(Registration {
            id: question.id.clone(),
            project: question.project.clone(),
            raw_input: question.raw_input.clone(),
            nod: Some(Additions {
                resume: self.token.clone(),
                digest: Some(question.digest),
                cwd: question.cwd.clone(),
                agent: question.agent.clone(),
                pid: question.pid,
                process: question.process,
                mailbox: question.mailbox.clone(),
                ..Additions::default()
            }),
        })
        .encode()
    }

    fn dial(&self) -> Result<DaemonLine<'a>, NoDecision> {
        let until = (Instant::now() + self.patience.queue).min(self.give_up);
        loop {
            match connect::dial(self.socket) {
                Ok(stream) => return Ok(DaemonLine::new(stream, self.listener)),
                Err(Unreachable::Busy) if Instant::now() < until => {
                    let jitter = rand::random_range(5..50);
                    line::rest(Duration::from_millis(jitter), self.listener)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads the decision and confirms it.
    fn wait(&self, line: &mut DaemonLine<'_>) -> Result<Decision, NoDecision> {
        let frame = line.read_frame(self.give_up)??;
        let decision = answer::decode(&frame, &self.question.digest);
        if !matches!(&decision, Decision::Terminal { .. }) {
            let until = Instant::now() + Duration::from_millis(500);
            // The decision stands without it; the daemon then knows less.
            let _ = line.write(&HookMessage::Received.encode(), until);
        }
        Ok(decision)
    }

    /// Looks for the daemon again and takes the same place with the token.
    fn come_back(&mut self) -> Result<DaemonLine<'a>, NoDecision> {
        if self.token.is_none() {
            return Err(NoDecision::Lost);
        }
        let until = (Instant::now() + self.patience.comeback).min(self.give_up);
        let mut pause = Duration::from_millis(50);
        while Instant::now() + pause < until {
            line::rest(pause, self.listener)?;
            match self.register() {
                Ok(line) => return Ok(line),
                Err(
                    NoDecision::Lost
                    | NoDecision::Hung
                    | NoDecision::Unreachable(
                        Unreachable::NoDaemon | Unreachable::Busy | Unreachable::Io(_),
                    ),
                ) => {}
                Err(error) => return Err(error),
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
        Err(NoDecision::Lost)
    }
}

/// Hands the daemon another hook event, within `limit`. Nobody waits for what
/// it makes of it: Claude Code stands still until the hook has ended.
pub fn notify(socket: &Path, notice: HookNotice, limit: Duration) -> Result<(), NoDecision> {
    let until = Instant::now() + limit;
    let message = HookMessage::Notify(notice).encode();
    if message.len() > MAX_REQUEST {
        return Err(NoDecision::TooLarge);
    }
    let mut line = DaemonLine::new(connect::dial(socket)?, None);
    Ok(line.write(&message, until)?)
}

/// Hands the daemon a person's order and returns how it is afterwards.
pub fn order(socket: &Path, order: DaemonOrder, limit: Duration) -> Result<Value, NoDecision> {
    let until = Instant::now() + limit;
    let mut line = DaemonLine::new(connect::dial(socket)?, None);
    line.write(&HookMessage::Order(order).encode(), until)?;
    Ok(line.read_frame(until)??)
}

#[cfg(test)]
mod tests;
