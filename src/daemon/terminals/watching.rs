//! Watches, while a request waits, what its agent says about itself: a "yes"
//! in the terminal ends no hook and writes no event before the tool has ended.
//! Once known, the card says so and offers no more than a stop. Also puts
//! right what was told of a call that turns out to have run.

#[cfg(test)]
pub(crate) mod bench;
mod claims;
mod follow;
mod gone;
mod processes;

use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::claims::Claims;
use self::follow::Followed;
pub(crate) use self::follow::{caught_up, fate_of, transcript_of};
pub(crate) use self::gone::explained;
use crate::approvals::request::{Digest, Ending, Request};
use crate::approvals::{Correction, Settled};
use crate::claude::status::{First, StatusJudge, StatusReading, runs_command};
use crate::clock;
use crate::clock::Millis;
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::known::journal;
use crate::hook::connect::own_uid;
use crate::ids::{RequestId, SessionId};

/// Requests beyond this are looked at by nobody; their events end them.
const MAX_WATCHED: usize = 512;
/// Hooks of one call start within this.
const TOGETHER: Millis = 3_000;
const EVERY: Duration = Duration::from_millis(100);
/// What a tap waits for one look.
const LOOK_WITHIN: Duration = Duration::from_millis(60);
/// How long the file may take to tell who answered.
const IN_DOUBT: Millis = 2_000;
const MAX_FILE: u64 = 64 * 1024;
/// Files of sessions that ended without taking theirs away lie there too.
const MAX_FILES: usize = 1_024;
/// Further apart than this, the two clocks tell different times.
const CLOCKS_AGREE: Millis = 1_500;

pub(crate) struct Terminals {
    /// What is made true by what is seen.
    pub(crate) cards: Arc<Cards>,
    watched: Mutex<HashMap<RequestId, Watched>>,
    claims: Claims,
    followed: Followed,
    /// Denied a moment ago, perhaps after the terminal's yes.
    doubts: Mutex<Vec<Doubt>>,
    more: Notify,
}

struct Doubt {
    watched: Watched,
    at: Millis,
}

#[derive(Clone)]
struct Watched {
    request: Arc<Request>,
    file: PathBuf,
    pid: u32,
    judge: StatusJudge,
}

impl Terminals {
    pub(crate) fn new(cards: Arc<Cards>) -> Self {
        Self {
            cards,
            watched: Mutex::default(),
            claims: Claims::default(),
            followed: Followed::default(),
            doubts: Mutex::default(),
            more: Notify::default(),
        }
    }

    /// Has a rule that was claimed looked for in its file.
    pub(crate) fn claimed(&self, settled: &Settled) {
        if self.claims.note(settled) {
            self.more.notify_one();
        }
    }

    /// Has what was claimed of this call looked for soon.
    pub(crate) fn call_ended(&self, session: &SessionId, digest: &Digest, now: Millis) {
        self.claims.ran(session, digest, now);
    }

    /// Has a denial held against the terminal's own time.
    pub(crate) fn denied(&self, settled: &Settled) {
        let Ending::Denied { .. } = settled.ending else {
            return;
        };
        let watched = self.lock().remove(&settled.request.id);
        let main = watched.filter(|it| it.request.origin.caller.agent_id.is_none());
        let mut doubts = self.doubts();
        if let Some(watched) = main
            && doubts.len() < MAX_WATCHED
        {
            let at = settled.at;
            doubts.push(Doubt { watched, at });
            self.more.notify_one();
        }
    }

    fn is_idle(&self) -> bool {
        self.doubts().is_empty()
            && self.lock().is_empty()
            && self.claims.is_empty()
            && self.followed.is_empty()
    }

    fn doubts(&self) -> MutexGuard<'_, Vec<Doubt>> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds the status file of the agent that asked, and watches it.
pub(crate) fn watch(terminals: &Arc<Terminals>, request: &Arc<Request>) {
    if terminals.followed.start(request) {
        terminals.more.notify_one();
    }
    let origin = &request.origin;
    let (Some(dir), Some(session)) = (&origin.caller.status_dir, &origin.session) else {
        return;
    };
    let (terminals, request) = (Arc::clone(terminals), Arc::clone(request));
    let (dir, session) = (dir.clone(), session.as_str().to_owned());
    let process = origin.caller.process;
    tokio::spawn(async move {
        let found = tokio::task::spawn_blocking(move || locate(&dir, &session, process)).await;
        let Ok(Some((file, reading))) = found else {
            return;
        };
        let mut judge = StatusJudge::new(request.asked_at);
        judge.see(&reading, terminals.cards.now(), clocks_agree(&terminals));
        let watched = Watched {
            file,
            pid: reading.pid,
            judge,
            request,
        };
        let mut all = terminals.lock();
        if all.len() < MAX_WATCHED {
            all.insert(watched.request.id.clone(), watched);
            terminals.more.notify_one();
        }
    });
}

/// Whether another hook asks for this very call already: Claude Code starts a
/// command once however many settings files hold it, so two hooks that were
/// started by different commands for the same call are one request twice.
pub(crate) fn is_asked_already(cards: &Cards, request: &Request) -> bool {
    let (origin, agent) = (&request.origin, &request.origin.caller.agent_id);
    let Some(own) = origin.pid.and_then(processes::arguments) else {
        return false;
    };
    let all = cards.desk.all_pending();
    let mut same = all.iter().filter(|other| {
        other.origin.session == origin.session
            && other.origin.session.is_some()
            && other.origin.caller.agent_id == *agent
            && (&other.tool, other.digest) == (&request.tool, request.digest)
            && request.asked_at - other.asked_at < TOGETHER
    });
    same.any(|other| {
        let theirs = other.origin.pid.and_then(processes::arguments);
        theirs.is_some_and(|theirs| theirs != own)
    })
}

/// Looks while anybody waits.
pub(crate) async fn run(terminals: Arc<Terminals>, stop: CancellationToken) {
    loop {
        let pause = async {
            if terminals.is_idle() {
                terminals.more.notified().await;
            } else {
                tokio::time::sleep(EVERY).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = pause => {
                follow::look(&terminals).await;
                look_at_all(&terminals).await;
                settle_doubts(&terminals).await;
                claims::check(&terminals).await;
            }
        }
    }
}

async fn look_at_all(terminals: &Arc<Terminals>) {
    let desk = &terminals.cards.desk;
    let all: Vec<Watched> = {
        let mut all = terminals.lock();
        all.retain(|id, _| desk.find(id).is_some() && desk.running_since(id).is_none());
        all.values().cloned().collect()
    };
    let alone = all.iter().map(|one| desk.is_alone(&one.request));
    let alone: Vec<bool> = alone.collect();
    let looked = tokio::task::spawn_blocking(move || look(all, &alone)).await;
    let (now, agree) = (terminals.cards.now(), clocks_agree(terminals));
    for (id, reading, runs) in looked.unwrap_or_default() {
        let since = {
            let mut all = terminals.lock();
            let Some(watched) = all.get_mut(&id) else {
                continue;
            };
            if let Some(reading) = reading {
                watched.see(&reading, now, agree);
            }
            watched.judge.runs(now).or(runs.then_some(now))
        };
        if let Some(since) = since {
            allowed_there(terminals, &id, since);
        }
    }
}

/// Looks who was first, the terminal or a denial: the file says when the
/// dialog went, and the answer of a hook cannot have made it go earlier.
async fn settle_doubts(terminals: &Terminals) {
    let doubts = std::mem::take(&mut *terminals.doubts());
    if doubts.is_empty() || !clocks_agree(terminals) {
        return;
    }
    let now = terminals.cards.now();
    let looked = tokio::task::spawn_blocking(move || {
        let look = |doubt: Doubt| {
            let reading = read(&doubt.watched.file)?;
            let asked_at = doubt.watched.request.asked_at;
            let first = reading.first(asked_at, doubt.at);
            Some((doubt, first))
        };
        doubts.into_iter().filter_map(look).collect::<Vec<_>>()
    });
    for (doubt, first) in looked.await.unwrap_or_default() {
        match first {
            First::Terminal(since) => {
                let id = &doubt.watched.request.id;
                terminals.cards.desk.terminal_was_first(id, since);
            }
            First::NotYetTold if now < doubt.at + IN_DOUBT => {
                terminals.doubts().push(doubt);
            }
            First::NotYetTold | First::NotTheTerminal => {}
        }
    }
    for correction in terminals.cards.desk.take_corrections() {
        correct(terminals, correction).await;
    }
}

impl Watched {
    /// A subagent's request has no dialog while its hook waits: the state
    /// speaks of others.
    fn see(&mut self, reading: &StatusReading, now: Millis, clocks_agree: bool) {
        if self.request.origin.caller.agent_id.is_none() {
            self.judge.see(reading, now, clocks_agree);
        }
    }
}

/// Every file once; the processes of a command that only they can tell of.
fn look(all: Vec<Watched>, alone: &[bool]) -> Vec<(RequestId, Option<StatusReading>, bool)> {
    let mut files: HashMap<PathBuf, Option<StatusReading>> = HashMap::new();
    let of_main = |one: &Watched| one.request.origin.caller.agent_id.is_none();
    let mut dialogs: HashMap<PathBuf, usize> = HashMap::new();
    for one in all.iter().filter(|one| of_main(one)) {
        *dialogs.entry(one.file.clone()).or_default() += 1;
    }
    let looked = all.into_iter().zip(alone).map(|(one, alone)| {
        let known = files.entry(one.file.clone());
        let reading = known.or_insert_with(|| read(&one.file)).clone();
        let same = reading.filter(|reading| reading.pid == one.pid);
        // The one dialog there can be is open: it does not run.
        let only = of_main(&one) && dialogs.get(&one.file) == Some(&1);
        let open = only && same.as_ref().is_some_and(StatusReading::shows_dialog);
        let runs = !open && *alone && its_command_runs(&one);
        (one.request.id.clone(), same, runs)
    });
    looked.collect()
}

fn its_command_runs(one: &Watched) -> bool {
    let request = &one.request;
    let command = request.input["command"].as_str();
    let (Some(command), "Bash") = (command, request.tool.as_str()) else {
        return false;
    };
    // Whatever began before the hook is not what it asks for.
    let Some(asked) = request.origin.pid.and_then(processes::began) else {
        return false;
    };
    let children = processes::children(one.pid, asked);
    children.iter().any(|child| runs_command(child, command))
}

/// One more look before a tap claims: since when the dialog is gone.
pub(crate) async fn left(terminals: &Terminals, id: &RequestId) -> Option<Millis> {
    if terminals.followed.holds(id) {
        // A call that has ended takes no choice any more.
        let _ = tokio::time::timeout(LOOK_WITHIN, follow::look(terminals)).await;
    }
    let file = terminals.lock().get(id)?.file.clone();
    let look = tokio::task::spawn_blocking(move || read(&file));
    let reading = tokio::time::timeout(LOOK_WITHIN, look).await;
    let (now, agree) = (terminals.cards.now(), clocks_agree(terminals));
    let mut all = terminals.lock();
    let watched = all.get_mut(id)?;
    if let Ok(Ok(Some(reading))) = reading
        && reading.pid == watched.pid
    {
        watched.see(&reading, now, agree);
    }
    watched.judge.left()
}

/// The terminal said yes, and the hook is still there.
fn allowed_there(terminals: &Terminals, id: &RequestId, since: Millis) {
    let cards = &terminals.cards;
    let Some(request) = cards.desk.find(id) else {
        return;
    };
    if request.question().is_some() || cards.courier.is_held(id) {
        cards.desk.answered_there(id);
    } else if cards.desk.runs(id, since).is_some() {
        info!(request = %id, "allowed in the terminal, and it runs");
        courier::show_running(cards, &request, since);
    }
}

/// Puts right what a card and the record said of a call that ran.
pub(crate) async fn correct(terminals: &Terminals, correction: Correction) {
    let id = &correction.id;
    info!(request = %id, "an ending is put right");
    let cards = &terminals.cards;
    journal::written(&cards.journal, id).await;
    let face = courier::retold(cards, id, |ending| {
        *ending = correction.ending.clone();
    });
    let key = cards.courier.ending_key(id);
    let kept = face.as_ref().and_then(|face| face.kept_by(key.as_ref()));
    let version = journal::correct(&cards.journal, &correction, kept).await;
    if let (Some(key), Some(face)) = (key, face) {
        (cards.courier).recorded(&key, face.shown, version, Duration::ZERO);
    }
}

fn clocks_agree(terminals: &Terminals) -> bool {
    (clock::wall_ms() - terminals.cards.now()).abs() < CLOCKS_AGREE
}

/// The status file of this process, or, where nobody named one, of a process
/// that lives and is in this session.
pub(crate) fn locate(
    dir: &Path,
    session: &str,
    process: Option<u32>,
) -> Option<(PathBuf, StatusReading)> {
    if let Some(pid) = process {
        let path = dir.join(format!("{pid}.json"));
        let reading = read(&path).filter(|reading| reading.pid == pid);
        let alive = |it: &StatusReading| processes::is_alive(pid, it.began.as_deref());
        if let Some(reading) = reading.filter(alive) {
            return Some((path, reading));
        }
    }
    let files = std::fs::read_dir(dir).ok()?.flatten().take(MAX_FILES);
    let files = files.map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|e| e == "json"));
    let mut found = files.filter_map(|path| {
        let reading = read(&path).filter(|reading| reading.session == session)?;
        let named = path.file_stem()?.to_str()?.parse() == Ok(reading.pid);
        let alive = processes::is_alive(reading.pid, reading.began.as_deref());
        (named && alive).then_some((path, reading))
    });
    found.next()
}

/// A small file of our own: anything else says nothing.
fn read(file: &Path) -> Option<StatusReading> {
    let (opened, length) = open_own(file).filter(|(_, length)| *length <= MAX_FILE)?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    opened.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    StatusReading::parse(&bytes)
}

/// A regular file of our own and no link, and its length.
pub(crate) fn open_own(file: &Path) -> Option<(File, u64)> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).ok()?)
        .open(file)
        .ok()?;
    let kind = opened.metadata().ok()?;
    let own = kind.uid() == own_uid();
    (kind.is_file() && own).then_some((opened, kind.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cards::sample;
    use crate::daemon::cards::bench::Bench;
    use crate::ids::CardKey;

    /// The one edit on disk: whose it is, and the card.
    async fn kept(bench: &Bench) -> (CardKey, String) {
        let store = &bench.cards.journal.store;
        let mut all = store.run(|db| db.first_edits(9)).await.unwrap();
        assert_eq!(all.len(), 1);
        let edit = all.remove(0);
        (edit.key, edit.card)
    }

    /// Ends by time, and turns out to have been allowed in the terminal.
    async fn ends_and_ran(bench: &Bench, request: &Arc<Request>) -> Ending {
        let settled = Settled {
            request: Arc::clone(request),
            ending: Ending::TimedOut,
            at: bench.cards.now(),
        };
        courier::close(&bench.cards, &settled).await;
        let terminals = Terminals::new(Arc::clone(&bench.cards));
        let correction = Correction {
            id: request.id.clone(),
            ending: Ending::Terminal {
                allowed: Some(true),
            },
            at: bench.cards.now(),
        };
        correct(&terminals, correction).await;
        let kept = journal::remembered(&bench.cards.journal, &request.id).await;
        kept.unwrap().ending
    }

    #[tokio::test]
    async fn a_call_that_ran_is_put_right_in_the_record_and_on_its_card() {
        let bench = Bench::new().await;
        let (_waiting, request) = bench.asks(sample::bash("ls"));
        courier::send_now(&bench.cards, &request);
        bench.call(0).await;
        while bench.cards.courier.message_of(&request.id).is_none() {
            tokio::task::yield_now().await;
        }
        let ending = ends_and_ran(&bench, &request).await;
        assert!(matches!(
            ending,
            Ending::Terminal {
                allowed: Some(true)
            }
        ));
        let (key, card) = kept(&bench).await;
        assert!(matches!(key, CardKey::Message(of) if of.as_str() == "om_1"));
        assert!(card.contains("Allowed in the terminal"));
    }

    #[tokio::test]
    async fn the_card_without_a_name_of_a_call_that_ran_is_put_right_too() {
        let bench = Bench::new().await;
        let (_waiting, request) = bench.asks(sample::bash("ls"));
        courier::take_over(&bench.cards, &request, None);
        ends_and_ran(&bench, &request).await;
        let (key, card) = kept(&bench).await;
        assert_eq!(key, CardKey::Sending(request.id.clone()));
        assert!(card.contains("Allowed in the terminal"));
    }
}
