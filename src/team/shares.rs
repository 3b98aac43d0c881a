//! Who may have the next call to Feishu made. Feishu counts each kind of call
//! for the app as a whole, so everybody gets a share: whoever has had much
//! waits first, and nobody takes the last of it. Edits that tell of progress
//! stand back for those that end something, and both for cards. What a call
//! is, the call itself shows; what a machine says of it is not asked. Nothing
//! waits here: who has to is told for how long. Pure.

mod turns;

use std::collections::{BTreeMap, HashMap, VecDeque};

use self::turns::ShareTurns;
use crate::bounded::Bounded;
use crate::bus::subjects::Owner;
use crate::clock::Millis;

const MINUTE: Millis = 60_000;
const SECOND: Millis = 1_000;
/// Progress is counted in shorter spans, so that it slows down and never stops.
const SHORT: Millis = 10_000;
/// Nobody has more than so many times what is left for the others.
const GREED: usize = 2;
/// So many edits of one message a minute are taken for endings: a decision,
/// and what is corrected about it. Whatever is edited more often runs.
const ENDINGS: usize = 3;
/// What one person ends in a minute is no more than this part of the app; who
/// edits more, if ever so many messages, tells of progress.
const ENDED_BY_ONE: usize = 10;
/// Calls under way at once, and the bytes that they hold.
const MAX_CALLS: usize = 512;
const MAX_BYTES: usize = 64 << 20;
/// Files that are on their way down at once, each held whole, and those that
/// wait for it.
const MAX_FILES: usize = 4;
const MAX_WAITING: usize = 32;
/// What a gateway reads in a second, before it knows who wrote it. It can
/// remember all of it for as long as it could be repeated.
const MIN_LETTERS: usize = 1_500;
/// Gateways that share one app.
const MAX_GATEWAYS: usize = 64;
/// The wait where the room is taken: nobody knows for how long.
const SOON: Millis = 1_000;

/// What comes first when not everything can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Somebody waits for it: a card, words, a file.
    Card,
    /// It makes a card true.
    Ending,
    Progress,
}

/// A call that wants to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallWish<'a> {
    pub(super) who: &'a Owner,
    /// What Feishu counts it as, one of a handful.
    pub(super) kind: &'static str,
    /// Whom it writes to, or the message that it answers.
    pub(super) writes: Option<&'a str>,
    /// The message that it changes.
    pub(super) edits: Option<&'a str>,
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct Shares {
    /// Calls of one kind a minute that all gateways make together.
    rate: usize,
    /// The other gateways, and until when they count.
    others: Bounded<String, Millis>,
    letters: Window,
    /// One for each kind that was asked for.
    budgets: HashMap<&'static str, CallBudget>,
    /// The last edits of each message that was edited in the last minute.
    edits: Bounded<String, [Option<Millis>; ENDINGS]>,
    /// Who ended what in the last minute.
    endings: Window,
    turns: ShareTurns,
    calls: SharedRoom,
    bytes: SharedRoom,
    waiting: SharedRoom,
    files: SharedRoom,
}

impl Shares {
    /// Calls of one kind a minute, and messages to one chat a second.
    pub(super) fn new(rate: usize, chat_rate: usize) -> Self {
        Self {
            rate,
            others: Bounded::new(MAX_GATEWAYS),
            letters: Window::new(SECOND, Self::letters(rate)),
            budgets: HashMap::new(),
            edits: Bounded::new(rate),
            endings: Window::new(MINUTE, rate),
            turns: ShareTurns::new(chat_rate),
            calls: SharedRoom::new(MAX_CALLS),
            bytes: SharedRoom::new(MAX_BYTES),
            waiting: SharedRoom::new(MAX_WAITING),
            files: SharedRoom::new(MAX_FILES),
        }
    }

    fn letters(rate: usize) -> usize {
        MIN_LETTERS.max(rate / 10)
    }

    /// Another gateway is there, and has its part of the app.
    pub(super) fn gateway(&mut self, id: &str, until: Millis, now: Millis) {
        if let Some(kept) = self.others.live(id.to_owned(), |until| *until < now) {
            *kept = until.max(now);
        }
    }

    /// Whether what this person's machines say is read at all. Asked before
    /// any signature is looked at, which costs more than all the rest.
    pub(super) fn reads(&mut self, who: &Owner, now: Millis) -> bool {
        let most = Self::letters(self.rate);
        let reads = self.letters.wait(who, most, now).is_none();
        if reads {
            self.letters.note(who, now);
        }
        reads
    }

    /// Lets a call be made, until [`Self::done`], or says after how many
    /// milliseconds to ask again.
    pub(super) fn ask(&mut self, wish: &CallWish<'_>, now: Millis) -> Result<(), Millis> {
        let (gateways, most) = (self.gateways(now), self.most(now));
        let rank = self.rank(wish, most, now);
        let (who, bytes) = (wish.who, wish.bytes);
        let has_room = self.calls.has(who, 1, rank) && self.bytes.has(who, bytes, rank);
        if !has_room {
            return Err(SOON);
        }
        let rate = self.rate;
        let budget = self.budgets.entry(wish.kind);
        let budget = budget.or_insert_with(|| CallBudget::new(rate));
        let turn = self.turns.wait(wish, gateways, now);
        if let Some(wait) = budget.wait(who, rank, most, now).max(turn) {
            return Err(wait);
        }
        budget.note(who, rank, now);
        self.turns.note(wish, now);
        self.calls.take(who, 1);
        self.bytes.take(who, bytes);
        if rank == Rank::Ending {
            self.endings.note(who, now);
        }
        if let Some(message) = wish.edits {
            let stale = |last: &[Option<Millis>; ENDINGS]| !is_within(last.last(), now);
            if let Some(last) = self.edits.live(message.to_owned(), stale) {
                last.rotate_left(1);
                if let Some(last) = last.last_mut() {
                    *last = Some(now);
                }
            }
        }
        Ok(())
    }

    pub(super) fn done(&mut self, wish: &CallWish<'_>) {
        self.calls.leave(wish.who, 1);
        self.bytes.leave(wish.who, wish.bytes);
    }

    /// Lets a file be waited for, until [`Self::waited`].
    pub(super) fn may_wait(&mut self, who: &Owner) -> bool {
        self.waiting.enter(who)
    }

    pub(super) fn waited(&mut self, who: &Owner) {
        self.waiting.leave(who, 1);
    }

    /// Lets a file be fetched, until [`Self::fetched`].
    pub(super) fn may_fetch(&mut self, who: &Owner) -> bool {
        self.files.enter(who)
    }

    pub(super) fn fetched(&mut self, who: &Owner) {
        self.files.leave(who, 1);
    }

    /// Feishu says in which chat a message stands, or whoever is written to by
    /// an id of his own.
    pub(super) fn stands(&mut self, what: &str, chat: &str, now: Millis) {
        self.turns.stands(what, chat, now);
    }

    /// Feishu has had enough of this kind of call for a while.
    pub(super) fn pause(&mut self, kind: &'static str, wait: Millis, now: Millis) {
        let rate = self.rate;
        let budget = self.budgets.entry(kind);
        let budget = budget.or_insert_with(|| CallBudget::new(rate));
        let until = now + wait.clamp(0, MINUTE);
        budget.paused = budget.paused.max(Some(until));
    }

    /// The kinds of call that Feishu has had enough of, and for how long.
    pub(super) fn pauses(&self, now: Millis) -> Vec<(&'static str, Millis)> {
        let left = |(kind, budget): (&&'static str, &CallBudget)| {
            let until = budget.paused.filter(|until| *until > now)?;
            Some((*kind, until - now))
        };
        self.budgets.iter().filter_map(left).collect()
    }

    /// How many calls of each kind were made in the last minute.
    pub(super) fn minute(&mut self, now: Millis) -> BTreeMap<&'static str, usize> {
        let made = |(kind, budget): (&&'static str, &mut CallBudget)| {
            budget.minute.forget(now);
            (*kind, budget.minute.log.len())
        };
        self.budgets.iter_mut().map(made).collect()
    }

    /// How many gateways share the app, this one included.
    pub(super) fn gateways(&self, now: Millis) -> usize {
        1 + self.others.count(|until| *until >= now)
    }

    /// Calls of one kind a minute that are this gateway's.
    pub(super) fn most(&self, now: Millis) -> usize {
        (self.rate / self.gateways(now)).max(1)
    }

    fn rank(&mut self, wish: &CallWish<'_>, most: usize, now: Millis) -> Rank {
        let Some(message) = wish.edits else {
            return Rank::Card;
        };
        let last = self.edits.get_mut(&message.to_owned());
        let is_often = last.is_some_and(|last| is_within(last.first(), now));
        let ended = self.endings.had(wish.who, now);
        if is_often || ended >= ENDINGS.max(most / ENDED_BY_ONE) {
            Rank::Progress
        } else {
            Rank::Ending
        }
    }
}

fn is_within(at: Option<&Option<Millis>>, now: Millis) -> bool {
    at.copied().flatten().is_some_and(|at| at + MINUTE > now)
}

/// What is left of one kind of call.
#[derive(Debug)]
struct CallBudget {
    minute: Window,
    second: Window,
    progress: Window,
    paused: Option<Millis>,
}

impl CallBudget {
    fn new(rate: usize) -> Self {
        Self {
            minute: Window::new(MINUTE, rate),
            second: Window::new(SECOND, rate),
            progress: Window::new(SHORT, rate),
            paused: None,
        }
    }

    /// How long this person has to wait, where so many are for all a minute.
    fn wait(&mut self, who: &Owner, rank: Rank, most: usize, now: Millis) -> Option<Millis> {
        let paused = self.paused.filter(|until| *until > now);
        let paused = paused.map(|until| until - now);
        // Feishu's second is a twentieth of its minute.
        let second = most / 20;
        let is_progress = rank == Rank::Progress;
        let (minute, second) = if is_progress {
            (most * 4 / 5, second * 4 / 5)
        } else {
            (most, second)
        };
        let windows = [
            self.minute.wait(who, minute.max(1), now),
            self.second.wait(who, second.max(1), now),
        ];
        let progress = is_progress
            .then(|| self.progress.wait(who, (most / 15).max(1), now))
            .flatten();
        windows
            .into_iter()
            .chain([progress, paused])
            .flatten()
            .max()
    }

    fn note(&mut self, who: &Owner, rank: Rank, now: Millis) {
        self.minute.note(who, now);
        self.second.note(who, now);
        if rank == Rank::Progress {
            self.progress.note(who, now);
        }
    }
}

/// What was let through in the last so many milliseconds. Never longer than
/// what may be let through.
#[derive(Debug)]
struct Window {
    span: Millis,
    log: VecDeque<(Millis, Owner)>,
    by: Bounded<Owner, usize>,
}

impl Window {
    fn new(span: Millis, most: usize) -> Self {
        Self {
            span,
            log: VecDeque::new(),
            by: Bounded::new(most.max(1)),
        }
    }

    fn forget(&mut self, now: Millis) {
        while let Some((at, _)) = self.log.front()
            && at + self.span <= now
        {
            if let Some((_, whose)) = self.log.pop_front() {
                take_from(&mut self.by, &whose, 1);
            }
        }
    }

    /// How many this person has had.
    fn had(&mut self, who: &Owner, now: Millis) -> usize {
        self.forget(now);
        self.by.get_mut(who).map_or(0, |own| *own)
    }

    /// How long this person has to wait, where `most` are for all together.
    fn wait(&mut self, who: &Owner, most: usize, now: Millis) -> Option<Millis> {
        let mut own = self.had(who, now);
        let mut all = self.log.len();
        let fits = |own: usize, all: usize| own < GREED * most.saturating_sub(all);
        if fits(own, all) {
            return None;
        }
        for (at, whose) in &self.log {
            all -= 1;
            own -= usize::from(whose == who);
            if fits(own, all) {
                return Some((at + self.span - now).max(1));
            }
        }
        Some(self.span)
    }

    /// The same where nobody else has a part.
    fn wait_alone(&mut self, most: usize, now: Millis) -> Option<Millis> {
        self.forget(now);
        let before = self.log.len().checked_sub(most)?;
        let free = self.log.get(before).map_or(now, |(at, _)| at + self.span);
        Some((free - now).max(1))
    }

    fn note(&mut self, who: &Owner, now: Millis) {
        if let Some(own) = self.by.live(who.clone(), |own| *own == 0) {
            *own += 1;
            self.log.push_back((now, who.clone()));
        }
    }
}

/// What is in use at once.
#[derive(Debug)]
struct SharedRoom {
    most: usize,
    used: usize,
    by: Bounded<Owner, usize>,
}

impl SharedRoom {
    fn new(most: usize) -> Self {
        Self {
            most,
            used: 0,
            by: Bounded::new(most.min(MAX_CALLS)),
        }
    }

    /// Whether there is so much for this person and this rank.
    fn has(&mut self, who: &Owner, amount: usize, rank: Rank) -> bool {
        let most = match rank {
            Rank::Card => self.most,
            Rank::Ending => self.most / 4 * 3,
            Rank::Progress => self.most / 2,
        };
        let left = most.saturating_sub(self.used);
        let own = self.by.get_mut(who).map_or(0, |own| *own);
        amount <= left && own + amount <= GREED * left
    }

    fn take(&mut self, who: &Owner, amount: usize) {
        self.used += amount;
        if let Some(own) = self.by.live(who.clone(), |own| *own == 0) {
            *own += amount;
        }
    }

    fn enter(&mut self, who: &Owner) -> bool {
        let has = self.has(who, 1, Rank::Card);
        if has {
            self.take(who, 1);
        }
        has
    }

    fn leave(&mut self, who: &Owner, amount: usize) {
        self.used = self.used.saturating_sub(amount);
        take_from(&mut self.by, who, amount);
    }
}

fn take_from(by: &mut Bounded<Owner, usize>, who: &Owner, amount: usize) {
    if let Some(own) = by.get_mut(who) {
        *own = own.saturating_sub(amount);
        if *own == 0 {
            by.remove(who);
        }
    }
}

#[cfg(test)]
mod tests;
