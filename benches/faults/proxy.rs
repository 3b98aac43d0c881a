//! A TCP proxy that breaks what passes through it: resets at and inside
//! frames, silence with the connection open, delay, one byte at a time, an
//! altered byte, little bandwidth. It knows no protocol.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::AbortOnDropHandle;

const CHUNK: usize = 16 * 1024;
const NARROW_CHUNK: usize = 512;
/// When TCP first sends again what is not acknowledged.
const SYN_AGAIN: Duration = Duration::from_secs(1);
const DATA_AGAIN: Duration = Duration::from_millis(200);

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From nod to Feishu.
    Up,
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Reset,
    Fin,
}

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trouble {
    /// Every connection ends now.
    Cut(End),
    /// The connection that carries the byte this far ahead ends there.
    CutAhead(Way, usize, End),
    /// Connections stay open and carry nothing; after this long they reset.
    Silence(Duration),
    Delay {
        each: Duration,
        lasts: Duration,
    },
    /// So many bytes go one at a time.
    Slice(usize),
    /// 32 KiB a second.
    Narrow(Duration),
    /// The byte this far ahead on the way down is altered.
    Alter(usize),
    /// No network for so long: connections are refused and reset, or hang and
    /// never come back to life.
    Away {
        lasts: Duration,
        hangs: bool,
    },
}

#[derive(Debug, Default)]
struct Weather {
    cut_ahead: Option<(Way, usize, End)>,
    silent_until: Option<Instant>,
    away: Option<(Instant, bool)>,
    delay: Option<(Duration, Instant)>,
    narrow_until: Option<Instant>,
    slice: usize,
    alter_ahead: Option<usize>,
    altered: Vec<std::time::Instant>,
}

#[derive(Debug)]
struct Shared {
    weather: Mutex<Weather>,
    cut: watch::Sender<(u64, End)>,
    carried: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

impl Proxy {
    /// Carries what reaches `listener` to the address that `to` says.
    pub(crate) fn start(listener: TcpListener, to: SocketAddr) -> Self {
        let shared = Arc::new(Shared {
            weather: Mutex::default(),
            cut: watch::Sender::new((0, End::Fin)),
            carried: AtomicU64::new(0),
        });
        let work = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            let mut guests = JoinSet::new();
            loop {
                tokio::select! {
                    Ok((stream, _)) = listener.accept() => {
                        guests.spawn(carry(Arc::clone(&work), stream, to));
                    }
                    Some(_) = guests.join_next() => {}
                }
            }
        });
        Self {
            shared,
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub(crate) fn trouble(&self, trouble: Trouble) {
        let now = Instant::now();
        let mut weather = self.shared.weather();
        match trouble {
            Trouble::Cut(end) => self.shared.cut.send_modify(|cut| *cut = (cut.0 + 1, end)),
            Trouble::CutAhead(way, bytes, end) => weather.cut_ahead = Some((way, bytes, end)),
            Trouble::Silence(lasts) => weather.silent_until = Some(now + lasts),
            Trouble::Delay { each, lasts } => weather.delay = Some((each, now + lasts)),
            Trouble::Slice(bytes) => weather.slice = bytes,
            Trouble::Narrow(lasts) => weather.narrow_until = Some(now + lasts),
            Trouble::Alter(ahead) => weather.alter_ahead = Some(ahead),
            Trouble::Away { lasts, hangs } => {
                weather.away = Some((now + lasts, hangs));
                if !hangs {
                    let cut = |cut: &mut (u64, End)| *cut = (cut.0 + 1, End::Reset);
                    self.shared.cut.send_modify(cut);
                }
            }
        }
    }

    pub(crate) fn calm(&self) {
        let altered = std::mem::take(&mut self.shared.weather().altered);
        *self.shared.weather() = Weather {
            altered,
            ..Weather::default()
        };
    }

    /// Whether a byte was altered since then.
    pub(crate) fn altered_since(&self, then: std::time::Instant) -> bool {
        let weather = self.shared.weather();
        weather.alter_ahead.is_some() || weather.altered.iter().any(|at| *at >= then)
    }

    pub(crate) fn carried(&self) -> u64 {
        self.shared.carried.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// When what is sent now arrives, if it is first sent again after `again`;
    /// `None` when there is no network that would lose it.
    fn arrives(&self, again: Duration) -> Option<Arrival> {
        let (until, hangs) = self.weather().away?;
        let now = Instant::now();
        if now >= until {
            return None;
        }
        if !hangs {
            return Some(Arrival::Never);
        }
        let doubling = std::iter::successors(Some(again), |after| Some(*after * 2 + again));
        let times = doubling.map(|after| now + after);
        let at = times.into_iter().find(|at| *at >= until)?;
        Some(Arrival::At(at, until))
    }

    fn weather(&self) -> MutexGuard<'_, Weather> {
        self.weather.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Arrival {
    /// Then; the network is back a little earlier.
    At(Instant, Instant),
    Never,
}

async fn carry(shared: Arc<Shared>, mut client: TcpStream, to: SocketAddr) {
    match shared.arrives(SYN_AGAIN) {
        None => {}
        Some(Arrival::At(at, _)) => sleep_until(at).await,
        Some(Arrival::Never) => {
            let _ = client.set_zero_linger();
            return;
        }
    }
    let Ok(mut server) = TcpStream::connect(to).await else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let mut cut = shared.cut.subscribe();
    let end = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::select! {
            end = pump(&shared, Way::Up, from_client, to_server) => end,
            end = pump(&shared, Way::Down, from_server, to_client) => end,
            _ = cut.changed() => cut.borrow().1,
        }
    };
    if end == End::Reset {
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

/// What the weather does to the bytes just read.
struct Passage {
    /// Nothing passes any more; the end comes then.
    silent_until: Option<Instant>,
    wait: Duration,
    one_by_one: usize,
    narrow: bool,
    cut: Option<(usize, End)>,
}

fn pass(shared: &Shared, way: Way, bytes: &mut [u8]) -> Passage {
    let now = Instant::now();
    let mut weather = shared.weather();
    let one_by_one = weather.slice.min(bytes.len());
    weather.slice -= one_by_one;
    if way == Way::Down
        && let Some(ahead) = weather.alter_ahead.take()
    {
        if let Some(byte) = bytes.get_mut(ahead) {
            *byte ^= 1 << (ahead % 7);
            weather.altered.push(std::time::Instant::now());
        } else {
            weather.alter_ahead = Some(ahead - bytes.len());
        }
    }
    let mut cut = None;
    if let Some((of, ahead, end)) = weather.cut_ahead
        && of == way
    {
        if ahead < bytes.len() {
            cut = Some((ahead, end));
            weather.cut_ahead = None;
        } else {
            weather.cut_ahead = Some((of, ahead - bytes.len(), end));
        }
    }
    let delay = weather.delay.filter(|(_, until)| now < *until);
    Passage {
        silent_until: weather.silent_until.filter(|until| now < *until),
        wait: delay.map_or(Duration::ZERO, |(each, _)| each),
        one_by_one,
        narrow: weather.narrow_until.is_some_and(|until| now < until),
        cut,
    }
}

async fn pump(shared: &Shared, way: Way, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> End {
    let mut buffer = vec![0; CHUNK];
    loop {
        let Ok(read) = from.read(&mut buffer).await else {
            return End::Reset;
        };
        match shared.arrives(DATA_AGAIN) {
            None => {}
            Some(Arrival::At(at, back)) => tokio::select! {
                () = sleep_until(at) => {}
                () = reset(&from, back) => return End::Reset,
            },
            Some(Arrival::Never) => return End::Reset,
        }
        if read == 0 {
            return End::Fin;
        }
        let bytes = &mut buffer[..read];
        let passage = pass(shared, way, bytes);
        if let Some(until) = passage.silent_until {
            sleep_until(until).await;
            return End::Reset;
        }
        if !passage.wait.is_zero() {
            sleep(passage.wait).await;
        }
        let whole = passage.cut.map_or(read, |(at, _)| at);
        if !write(&mut to, &bytes[..whole], &passage).await {
            return End::Reset;
        }
        shared.carried.fetch_add(whole as u64, Ordering::Relaxed);
        if let Some((_, end)) = passage.cut {
            return end;
        }
    }
}

/// A reset waits for nothing that was sent before it; one sent while there is
/// no network is lost.
async fn reset(from: &ReadHalf<'_>, back: Instant) {
    let _ = from.ready(Interest::ERROR).await;
    if Instant::now() < back {
        std::future::pending::<()>().await;
    }
}

async fn write(to: &mut WriteHalf<'_>, bytes: &[u8], passage: &Passage) -> bool {
    let (slow, fast) = bytes.split_at(passage.one_by_one.min(bytes.len()));
    for byte in slow {
        if to.write_all(std::slice::from_ref(byte)).await.is_err() {
            return false;
        }
        tokio::task::yield_now().await;
    }
    if !passage.narrow {
        return to.write_all(fast).await.is_ok();
    }
    for piece in fast.chunks(NARROW_CHUNK) {
        if to.write_all(piece).await.is_err() {
            return false;
        }
        sleep(Duration::from_millis(16)).await;
    }
    true
}
