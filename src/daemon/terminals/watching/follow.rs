//! Follows what sessions write down of their calls, for as long as a request
//! waits and for a moment after its end: a transcript tells which call it was,
//! whether it ran, and who let it. What it says ends a request that waits, and
//! puts right what was told of one that has ended.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

use super::super::tail::Tail;
use super::{Terminals, correct};
use crate::approvals::request::{Digest, Request};
use crate::claude::permission::Common;
use crate::claude::results::{self, CallNote};
use crate::claude::status;
use crate::clock::Millis;
use crate::ids::{RequestId, SessionId};
use crate::talk::CallFate;

/// Requests beyond this are followed by nobody; their events end them.
const MAX_FOLLOWED: usize = 512;
/// How long after its end what was told of a request is held against this.
const AFTER_ITS_END: Millis = 15_000;
/// How far back from its end a transcript is read at first.
const WINDOW: u64 = 8 << 20;
/// Calls that are remembered of one transcript; the oldest are forgotten first.
const MAX_CALLS: usize = 4_096;
/// Longer names are not Claude Code's.
const MAX_NAME: usize = 256;
/// Claude Code writes a call's end down within this after its event.
const WRITTEN_WITHIN: Duration = Duration::from_millis(1_500);
/// How far a transcript may be behind the end of its turn.
const BEHIND: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Where the agent of a hook's event writes its calls down.
pub(crate) fn transcript_of(common: &Common) -> Option<PathBuf> {
    let file = common.transcript.as_deref()?;
    status::dir(file)?;
    results::of_agent(file, common.agent_id.as_deref())
}

#[derive(Default)]
pub(super) struct Followed {
    all: Mutex<HashMap<RequestId, Following>>,
    records: Arc<Mutex<HashMap<PathBuf, Record>>>,
}

#[derive(Clone)]
struct Following {
    file: PathBuf,
    tool: String,
    digest: Digest,
    asked_at: Millis,
    /// When it was first seen to have ended.
    ended: Option<Millis>,
}

impl Followed {
    /// Follows the call of this request; says whether there is a record of it.
    pub(super) fn start(&self, request: &Arc<Request>) -> bool {
        let mut all = self.lock();
        let Some(file) = request.origin.caller.transcript.clone() else {
            return false;
        };
        if all.len() >= MAX_FOLLOWED {
            all.retain(|_, following| following.ended.is_none());
        }
        let has_room = all.len() < MAX_FOLLOWED;
        if has_room {
            let following = Following {
                file,
                tool: request.tool.clone(),
                digest: request.digest,
                asked_at: request.asked_at,
                ended: None,
            };
            all.insert(request.id.clone(), following);
        }
        has_room
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(super) fn holds(&self, id: &RequestId) -> bool {
        self.lock().contains_key(id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Following>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a transcript said of its calls so far.
#[derive(Default)]
struct Record {
    tail: Option<Tail>,
    calls: VecDeque<RecordedCall>,
}

struct RecordedCall {
    name: String,
    tool: String,
    digest: Digest,
    made: Millis,
    end: Option<(CallFate, Millis)>,
}

impl Record {
    fn grow(&mut self, file: &Path) {
        if self.tail.is_none() {
            self.tail = Tail::from_end(file, WINDOW);
        }
        let Some(tail) = &mut self.tail else {
            return;
        };
        let calls = &mut self.calls;
        tail.lines(file, |line| {
            let Some((at, notes)) = results::read(line) else {
                return;
            };
            for note in notes {
                take(calls, note, at);
            }
        });
    }

    /// The one call that a request can have asked for: made before it, and not
    /// over by then.
    fn asked_by(&self, request: &Following) -> Option<&RecordedCall> {
        let mut found = self.calls.iter().filter(|call| {
            let is_open = call.end.is_none_or(|(_, at)| at >= request.asked_at);
            let same = (call.digest, &call.tool) == (request.digest, &request.tool);
            same && is_open && call.made <= request.asked_at
        });
        found.next().filter(|_| found.next().is_none())
    }

    fn fate(&self, name: &str) -> Option<CallFate> {
        let call = self.calls.iter().rfind(|call| call.name == name)?;
        Some(call.end?.0)
    }
}

fn take(calls: &mut VecDeque<RecordedCall>, note: CallNote, at: Millis) {
    match note {
        CallNote::Made { id, tool, input } => {
            if id.len() > MAX_NAME || tool.len() > MAX_NAME {
                return;
            }
            if calls.len() >= MAX_CALLS {
                calls.pop_front();
            }
            calls.push_back(RecordedCall {
                digest: Digest::of(&input),
                name: id,
                tool,
                made: at,
                end: None,
            });
        }
        CallNote::Ended { id, fate } => {
            if let Some(call) = calls.iter_mut().rfind(|call| call.name == id) {
                call.end = Some((fate, at));
            }
        }
    }
}

/// Reads what was written since, and makes it true.
pub(super) async fn look(terminals: &Terminals) {
    let desk = &terminals.cards.desk;
    let now = terminals.cards.now();
    let all: Vec<(RequestId, Following)> = {
        let mut all = terminals.followed.lock();
        all.retain(|id, following| {
            if following.ended.is_none() && desk.find(id).is_none() {
                following.ended = Some(now);
            }
            following.ended.is_none_or(|at| now < at + AFTER_ITS_END)
        });
        let all = all.iter();
        all.map(|(id, it)| (id.clone(), it.clone())).collect()
    };
    let records = Arc::clone(&terminals.followed.records);
    if all.is_empty() || !super::clocks_agree(terminals) {
        return forget_records(&records, &HashSet::new());
    }
    let looked = tokio::task::spawn_blocking(move || {
        let files = all.iter().map(|(_, it)| it.file.clone()).collect();
        forget_records(&records, &files);
        let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
        for file in files {
            records.entry(file.clone()).or_default().grow(&file);
        }
        let told = |(id, it): (RequestId, Following)| {
            let call = records.get(&it.file)?.asked_by(&it)?;
            Some((id, call.name.clone(), call.end))
        };
        all.into_iter().filter_map(told).collect::<Vec<_>>()
    });
    for (id, name, end) in looked.await.unwrap_or_default() {
        desk.call_is(&id, &name);
        if let Some((fate, at)) = end {
            desk.learned(&id, fate, at);
            terminals.followed.lock().remove(&id);
        }
    }
    for correction in desk.take_corrections() {
        correct(terminals, correction).await;
    }
}

fn forget_records(records: &Mutex<HashMap<PathBuf, Record>>, but: &HashSet<PathBuf>) {
    let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
    records.retain(|file, _| but.contains(file));
}

/// Waits a moment for what the calls of this session came to, where one still
/// waits: a transcript is written a little later than the event of its end.
pub(crate) async fn caught_up(terminals: &Terminals, session: &SessionId) {
    let desk = &terminals.cards.desk;
    let give_up = Instant::now() + BEHIND;
    loop {
        look(terminals).await;
        let waits = desk.waiting_of(Some(session)) > 0;
        if !waits || terminals.followed.is_empty() || Instant::now() > give_up {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What the agent wrote down of the call of this name, once it has.
pub(crate) async fn fate_of(file: PathBuf, name: String) -> Option<CallFate> {
    let give_up = Instant::now() + WRITTEN_WITHIN;
    let mut record = Record::default();
    loop {
        let (file, name) = (file.clone(), name.clone());
        let looked = tokio::task::spawn_blocking(move || {
            record.grow(&file);
            (record.fate(&name), record)
        });
        let (fate, grown) = looked.await.ok()?;
        if fate.is_some() || grown.tail.is_none() || Instant::now() > give_up {
            return fate;
        }
        record = grown;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
