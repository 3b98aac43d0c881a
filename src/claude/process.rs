//! One Claude Code child and the one task that owns it: writes its input,
//! reads its output, ends it in bounded time and reports how it ended. Knows
//! nothing of what the lines mean, except that an interrupt was heard.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::exit::{Exit, classify};
use super::launch::{Grace, Launch, MARK};
use super::stream::lines::{Lines, MAX_LINE};
use super::stream::say::Say;
use super::stream::{Event, Line, event};

/// Orders and events that may wait; a slow reader slows the child down.
const MAX_WAITING: usize = 64;
/// Bytes the child has not read yet, before further orders wait as well.
const MAX_UNREAD: usize = 1 << 20;
const MAX_ERRORS: usize = 8 << 10;
/// A grandchild can hold the pipes open after the child has gone.
const DRAIN: Duration = Duration::from_secs(2);
const STOP: &str = "nod-stop";

/// A running child. Dropping it ends the child.
#[derive(Debug)]
pub struct Child {
    pub say: mpsc::Sender<Say>,
    /// Ends with [`Event::Ended`], always.
    pub events: mpsc::Receiver<Event>,
    pub stop: CancellationToken,
}

/// Starts a child. What goes wrong is its first and last event.
pub fn start(launch: Launch) -> Child {
    let (say, orders) = mpsc::channel(MAX_WAITING);
    let (reports, events) = mpsc::channel(MAX_WAITING);
    let stop = CancellationToken::new();
    tokio::spawn(own(launch, orders, reports, stop.clone()));
    Child { say, events, stop }
}

async fn own(
    launch: Launch,
    orders: mpsc::Receiver<Say>,
    reports: mpsc::Sender<Event>,
    stop: CancellationToken,
) {
    let exit = match Owner::open(&launch) {
        Ok(owner) => owner.run(orders, &reports, &stop).await,
        Err(exit) => exit,
    };
    tracing::debug!(?exit, "child ended");
    // A reader that left does not need to know.
    let _ = reports.send(Event::Ended(exit)).await;
}

struct Owner {
    child: tokio::process::Child,
    group: Group,
    input: Option<ChildStdin>,
    unread: VecDeque<u8>,
    output: Option<ChildStdout>,
    lines: Lines,
    ready: VecDeque<Event>,
    errors: Option<ChildStderr>,
    tail: Vec<u8>,
    grace: Grace,
    step: Step,
    code: Option<i32>,
    signalled: bool,
}

/// How far the child came towards its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
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

impl Step {
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

impl Owner {
    fn open(launch: &Launch) -> Result<Self, Exit> {
        if !launch.project.is_dir() {
            return Err(Exit::ProjectGone);
        }
        let mut child = Command::new(&launch.program)
            .args(launch.arguments())
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
                io::ErrorKind::NotFound => Exit::NotInstalled,
                _ => Exit::NotStarted {
                    problem: e.to_string(),
                },
            })?;
        let leader = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Ok(Self {
            input: child.stdin.take(),
            output: child.stdout.take(),
            errors: child.stderr.take(),
            child,
            group: Group { leader },
            unread: VecDeque::new(),
            lines: Lines::new(MAX_LINE),
            ready: VecDeque::new(),
            tail: Vec::new(),
            grace: launch.grace,
            step: Step::Running,
            code: None,
            signalled: false,
        })
    }

    async fn run(
        mut self,
        mut orders: mpsc::Receiver<Say>,
        reports: &mpsc::Sender<Event>,
        stop: &CancellationToken,
    ) -> Exit {
        let mut chunk = vec![0; 64 << 10];
        let mut words = vec![0; 4 << 10];
        while self.step != Step::Over {
            let running = self.step == Step::Running;
            let until = self.step.until();
            let lives = !matches!(self.step, Step::Draining { .. });
            let idle = self.ready.is_empty();
            tokio::select! {
                () = stop.cancelled(), if running => self.interrupt(),
                () = reports.closed(), if running => self.interrupt(),
                said = orders.recv(), if running && self.unread.len() < MAX_UNREAD => match said {
                    Some(say) => self.unread.extend(say.to_line().bytes()),
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
            if told && matches!(self.step, Step::Draining { .. }) {
                self.step = Step::Over;
            }
        }
        let tail = String::from_utf8_lossy(&self.tail);
        classify(self.code, self.signalled, &tail)
    }

    fn interrupt(&mut self) {
        let request = STOP.to_owned();
        self.unread
            .extend(Say::Interrupt { request }.to_line().bytes());
        self.step = Step::Interrupted {
            until: Instant::now() + self.grace.interrupt,
        };
    }

    fn close_input(&mut self) {
        self.input = None;
        self.unread.clear();
        self.step = Step::InputClosed {
            until: Instant::now() + self.grace.input_closed,
        };
    }

    fn advance(&mut self) {
        let now = Instant::now();
        match self.step {
            Step::Running | Step::Over => {}
            Step::Interrupted { .. } => self.close_input(),
            Step::InputClosed { .. } => {
                self.signal(Signal::TERM);
                self.step = Step::Terminated {
                    until: now + self.grace.terminate,
                };
            }
            Step::Terminated { .. } => {
                self.signal(Signal::KILL);
                self.step = Step::Killed {
                    until: now + self.grace.kill,
                };
            }
            // Not even the kernel could end it; the session must not wait.
            Step::Killed { .. } => self.step = Step::Over,
            Step::Draining { .. } => {
                self.output = None;
                self.errors = None;
                self.step = Step::Draining { until: None };
            }
        }
    }

    fn signal(&mut self, signal: Signal) {
        self.signalled = true;
        self.group.signal(signal);
    }

    fn exited(&mut self, code: Option<i32>) {
        self.code = code;
        if self.step != Step::Running {
            // It was told to end, so what it left running ends as well.
            self.group.signal(Signal::KILL);
        }
        self.group.leader = None;
        self.input = None;
        self.unread.clear();
        self.step = Step::Draining {
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
        for event in cuts.into_iter().filter_map(event) {
            let heard = matches!(&event, Event::Line(Line::Reply(reply)) if reply.request == STOP);
            if heard && matches!(self.step, Step::Interrupted { .. }) {
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
struct Group {
    /// `None` once the child was reaped: its number may belong to another.
    leader: Option<Pid>,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader
            && let Err(e) = kill_process_group(leader, signal)
        {
            tracing::debug!(error = %e, "no process group to signal");
        }
    }
}

impl Drop for Group {
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
