//! One child and the one task that owns it: writes its input, reads its
//! output, ends it in bounded time and reports how it ended. What the lines
//! mean, its [`ChildManner`] says.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::guard::Guard;
use super::lines::{Cut, Lines, MAX_LINE};

/// Set for every child, so that nod's own hooks in the user's settings stay
/// silent there: the session already asks.
pub const MARK: &str = "NOD_SESSION";

/// Orders and events that may wait; a slow reader slows the child down.
const MAX_WAITING: usize = 64;
/// Bytes the child has not read yet, before further orders wait as well.
const MAX_UNREAD: usize = 1 << 20;
const MAX_ERRORS: usize = 8 << 10;
/// A grandchild can hold the pipes open after the child has gone.
const DRAIN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub project: PathBuf,
    /// The whole environment, but for the mark.
    pub environment: Vec<(OsString, OsString)>,
    pub grace: Grace,
    /// This very program, where one shall end the child that outlives us.
    pub guard: Option<PathBuf>,
}

/// How long a child is given at each step of being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    pub interrupt: Duration,
    pub input_closed: Duration,
    pub terminate: Duration,
    pub kill: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        Self {
            interrupt: Duration::from_secs(5),
            input_closed: Duration::from_secs(5),
            terminate: Duration::from_secs(5),
            kill: Duration::from_secs(5),
        }
    }
}

/// What this kind of child says and is told, as far as its owner must know.
pub struct ChildManner<E> {
    /// `None` for output that says nothing.
    pub read: fn(Cut) -> Option<E>,
    /// What asks it to stop, where a line does.
    pub stop: Option<StopLine<E>>,
    pub ended: fn(ChildEnd) -> E,
}

/// A line, and whether an event says that it was heard.
pub type StopLine<E> = (String, fn(&E) -> bool);

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildEnd {
    NotInstalled,
    ProjectGone,
    NotStarted {
        problem: String,
    },
    Over {
        /// `None` if a signal ended it.
        code: Option<i32>,
        /// We sent one.
        killed: bool,
        /// The end of its error output.
        errors: String,
    },
}

/// A running child. Dropping it ends the child.
#[derive(Debug)]
pub struct Child<E> {
    /// Whole lines, with their newline.
    pub say: mpsc::Sender<String>,
    /// Its end is always the last event.
    pub events: mpsc::Receiver<E>,
    pub stop: CancellationToken,
}

/// Starts a child. What goes wrong is its first and last event.
pub fn start<E: Send + 'static>(launch: Launch, manner: ChildManner<E>) -> Child<E> {
    let (say, orders) = mpsc::channel(MAX_WAITING);
    let (reports, events) = mpsc::channel(MAX_WAITING);
    let stop = CancellationToken::new();
    tokio::spawn(own(launch, manner, orders, reports, stop.clone()));
    Child { say, events, stop }
}

async fn own<E: Send + 'static>(
    launch: Launch,
    manner: ChildManner<E>,
    orders: mpsc::Receiver<String>,
    reports: mpsc::Sender<E>,
    stop: CancellationToken,
) {
    let tell_end = manner.ended;
    let ended = match ChildOwner::open(&launch, manner) {
        Ok(owner) => owner.run(orders, &reports, &stop).await,
        Err(ended) => ended,
    };
    if let ChildEnd::Over { code, killed, .. } = &ended {
        tracing::debug!(?code, killed, "child ended");
    }
    // A reader that left does not need to know.
    let _ = reports.send(tell_end(ended)).await;
}

struct ChildOwner<E> {
    manner: ChildManner<E>,
    child: tokio::process::Child,
    group: ProcessGroup,
    guard: Option<Guard>,
    input: Option<ChildStdin>,
    unread: VecDeque<u8>,
    output: Option<ChildStdout>,
    lines: Lines,
    ready: VecDeque<E>,
    errors: Option<ChildStderr>,
    tail: Vec<u8>,
    grace: Grace,
    step: EndStep,
    code: Option<i32>,
    signalled: bool,
}

/// How far the child came towards its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndStep {
    Running,
    Interrupted {
        until: Instant,
    },
    InputClosed {
        until: Instant,
    },
    Terminated {
        until: Instant,
    },
    Killed {
        until: Instant,
    },
    /// It ended; what it wrote is still read, until then.
    Draining {
        until: Option<Instant>,
    },
    Over,
}

impl EndStep {
    fn until(self) -> Option<Instant> {
        match self {
            Self::Running | Self::Over => None,
            Self::Interrupted { until }
            | Self::InputClosed { until }
            | Self::Terminated { until }
            | Self::Killed { until } => Some(until),
            Self::Draining { until } => until,
        }
    }
}

impl<E> ChildOwner<E> {
    fn open(launch: &Launch, manner: ChildManner<E>) -> Result<Self, ChildEnd> {
        if !launch.project.is_dir() {
            return Err(ChildEnd::ProjectGone);
        }
        let mut child = Command::new(&launch.program)
            .args(&launch.arguments)
            .current_dir(&launch.project)
            .env_clear()
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .env(MARK, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => ChildEnd::NotInstalled,
                _ => ChildEnd::NotStarted {
                    problem: e.to_string(),
                },
            })?;
        let leader = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let guard = launch
            .guard
            .as_deref()
            .zip(leader)
            .and_then(|(nod, leader)| {
                let guard = Guard::over(nod, leader);
                guard
                    .inspect_err(|why| tracing::warn!("a child would outlive nod: {why}"))
                    .ok()
            });
        Ok(Self {
            manner,
            guard,
            input: child.stdin.take(),
            output: child.stdout.take(),
            errors: child.stderr.take(),
            child,
            group: ProcessGroup { leader },
            unread: VecDeque::new(),
            lines: Lines::new(MAX_LINE),
            ready: VecDeque::new(),
            tail: Vec::new(),
            grace: launch.grace,
            step: EndStep::Running,
            code: None,
            signalled: false,
        })
    }

    async fn run(
        mut self,
        mut orders: mpsc::Receiver<String>,
        reports: &mpsc::Sender<E>,
        stop: &CancellationToken,
    ) -> ChildEnd {
        let mut chunk = vec![0; 64 << 10];
        let mut words = vec![0; 4 << 10];
        while self.step != EndStep::Over {
            let running = self.step == EndStep::Running;
            let until = self.step.until();
            let lives = !matches!(self.step, EndStep::Draining { .. });
            let idle = self.ready.is_empty();
            tokio::select! {
                () = stop.cancelled(), if running => self.interrupt(),
                () = reports.closed(), if running => self.interrupt(),
                said = orders.recv(), if running && self.unread.len() < MAX_UNREAD => match said {
                    Some(line) => self.unread.extend(line.bytes()),
                    None => self.interrupt(),
                },
                wrote = write(self.input.as_mut(), self.unread.as_slices().0),
                    if !self.unread.is_empty() => self.wrote(&wrote),
                room = reports.reserve(), if !idle => match (room, self.ready.pop_front()) {
                    (Ok(room), Some(event)) => room.send(event),
                    _ => self.ready.clear(),
                },
                read = read(self.output.as_mut(), &mut chunk), if idle => self.read(&chunk[..read]),
                read = read(self.errors.as_mut(), &mut words) => self.read_errors(&words[..read]),
                status = self.child.wait(), if lives => {
                    self.exited(status.ok().and_then(|status| status.code()));
                }
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    self.advance();
                }
            }
            let told = self.output.is_none() && self.errors.is_none() && self.ready.is_empty();
            if told && matches!(self.step, EndStep::Draining { .. }) {
                self.step = EndStep::Over;
            }
        }
        ChildEnd::Over {
            code: self.code,
            killed: self.signalled,
            errors: String::from_utf8_lossy(&self.tail).into_owned(),
        }
    }

    fn interrupt(&mut self) {
        let Some((line, _)) = &self.manner.stop else {
            return self.close_input();
        };
        self.unread.extend(line.bytes());
        self.step = EndStep::Interrupted {
            until: Instant::now() + self.grace.interrupt,
        };
    }

    fn close_input(&mut self) {
        self.input = None;
        self.unread.clear();
        self.step = EndStep::InputClosed {
            until: Instant::now() + self.grace.input_closed,
        };
    }

    fn advance(&mut self) {
        let now = Instant::now();
        match self.step {
            EndStep::Running | EndStep::Over => {}
            EndStep::Interrupted { .. } => self.close_input(),
            EndStep::InputClosed { .. } => {
                self.signal(Signal::TERM);
                self.step = EndStep::Terminated {
                    until: now + self.grace.terminate,
                };
            }
            EndStep::Terminated { .. } => {
                self.signal(Signal::KILL);
                self.step = EndStep::Killed {
                    until: now + self.grace.kill,
                };
            }
            // Not even the kernel could end it; the session must not wait.
            EndStep::Killed { .. } => self.step = EndStep::Over,
            EndStep::Draining { .. } => {
                self.output = None;
                self.errors = None;
                self.step = EndStep::Draining { until: None };
            }
        }
    }

    fn signal(&mut self, signal: Signal) {
        self.signalled = true;
        self.group.signal(signal);
    }

    fn exited(&mut self, code: Option<i32>) {
        self.code = code;
        if self.step != EndStep::Running {
            // It was told to end, so what it left running ends as well.
            self.group.signal(Signal::KILL);
        }
        self.group.leader = None;
        self.guard = None;
        self.input = None;
        self.unread.clear();
        self.step = EndStep::Draining {
            until: Some(Instant::now() + DRAIN),
        };
    }

    fn wrote(&mut self, wrote: &io::Result<usize>) {
        if let Ok(bytes) = wrote {
            self.unread.drain(..*bytes);
        } else {
            // It reads no more; its end will tell why.
            self.input = None;
            self.unread.clear();
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
        let mut cuts: Vec<_> = std::iter::from_fn(|| self.lines.next_cut()).collect();
        if bytes.is_empty() {
            self.output = None;
            cuts.extend(self.lines.finish());
        }
        for event in cuts.into_iter().filter_map(self.manner.read) {
            let stop = self.manner.stop.as_ref();
            let heard = stop.is_some_and(|(_, heard)| heard(&event));
            if heard && matches!(self.step, EndStep::Interrupted { .. }) {
                self.close_input();
            }
            self.ready.push_back(event);
        }
    }

    fn read_errors(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.errors = None;
        }
        self.tail.extend_from_slice(bytes);
        let over = self.tail.len().saturating_sub(MAX_ERRORS);
        self.tail.drain(..over);
    }
}

/// The child's process group, which must not outlive its owner.
struct ProcessGroup {
    /// `None` once the child was reaped: its number may belong to another.
    leader: Option<Pid>,
}

impl ProcessGroup {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader
            && let Err(e) = kill_process_group(leader, signal)
        {
            tracing::debug!(error = %e, "no process group to signal");
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Reads some bytes; none at the end of the stream or after an error.
async fn read<S: AsyncRead + Unpin>(stream: Option<&mut S>, into: &mut [u8]) -> usize {
    match stream {
        Some(stream) => stream.read(into).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

async fn write(input: Option<&mut ChildStdin>, bytes: &[u8]) -> io::Result<usize> {
    match input {
        Some(input) => input.write(bytes).await,
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}
