//! The sessions in terminals that hooks have told of: which of them are open,
//! what they do, and where each takes words. In memory only; what a hook says
//! counts as far as the session's own status file agrees.

pub(crate) mod speak;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

use crate::claude::mailbox::Mailbox;
use crate::claude::permission::Common;
use crate::claude::status::{self, Activity};
use crate::clock::Millis;
use crate::daemon::terminals::watching;
use crate::ids::SessionId;

const MAX_SESSIONS: usize = 256;
/// Words on their way that may still be read, and for how long: Claude Code
/// drops what nobody released after five minutes.
const MAX_WORDS: usize = 64;
const WORDS_KEPT: Millis = 10 * 60_000;

/// A session in a terminal, as its hooks told of it.
#[derive(Debug, Clone)]
pub(crate) struct TerminalSession {
    /// What a person calls it by, for as long as this daemon runs.
    pub(crate) number: usize,
    pub(crate) session: SessionId,
    pub(crate) project: PathBuf,
    transcript: Option<PathBuf>,
    mailbox: Option<Mailbox>,
    told_at: Millis,
    ended: bool,
}

/// One that is open, and what it does.
pub(crate) struct OpenTerminal {
    pub(crate) terminal: TerminalSession,
    pub(crate) state: Activity,
    /// Its mailbox, if the status file names the same.
    mailbox: Option<(Mailbox, u32)>,
}

#[derive(Default)]
pub(crate) struct Mailboxes {
    book: Mutex<TerminalBook>,
}

#[derive(Default)]
struct TerminalBook {
    terminals: HashMap<SessionId, TerminalSession>,
    numbered: usize,
    words: VecDeque<SpokenWords>,
}

/// Words that were put into a session.
struct SpokenWords {
    session: SessionId,
    text: String,
    at: Millis,
    read: Arc<Notify>,
}

impl Mailboxes {
    fn lock(&self) -> MutexGuard<'_, TerminalBook> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hook of a session tells where it is.
    pub(crate) fn told(
        &self,
        project: &Path,
        common: &Common,
        mailbox: Option<&Mailbox>,
        now: Millis,
    ) {
        let Some(session) = &common.session else {
            return;
        };
        let mut book = self.lock();
        if let Some(known) = book.terminals.get_mut(session) {
            known.told_at = now;
            known.ended = false;
            known.transcript.clone_from(&common.transcript);
            if mailbox.is_some() {
                known.mailbox = mailbox.cloned();
            }
            return;
        }
        if book.terminals.len() >= MAX_SESSIONS {
            let all = book.terminals.values();
            let oldest = all.min_by_key(|terminal| terminal.told_at);
            if let Some(oldest) = oldest.map(|terminal| terminal.session.clone()) {
                book.terminals.remove(&oldest);
            }
        }
        book.numbered += 1;
        let terminal = TerminalSession {
            number: book.numbered,
            session: session.clone(),
            project: project.to_owned(),
            transcript: common.transcript.clone(),
            mailbox: mailbox.cloned(),
            told_at: now,
            ended: false,
        };
        book.terminals.insert(session.clone(), terminal);
    }

    /// A number for a session that another agent has in a terminal.
    pub(crate) fn number(&self) -> usize {
        let mut book = self.lock();
        book.numbered += 1;
        book.numbered
    }

    pub(crate) fn ended(&self, session: &SessionId) {
        if let Some(terminal) = self.lock().terminals.get_mut(session) {
            terminal.ended = true;
            terminal.mailbox = None;
        }
    }

    pub(crate) fn find(&self, session: &SessionId) -> Option<TerminalSession> {
        self.lock().terminals.get(session).cloned()
    }

    /// By its number in the list of `/sessions`.
    pub(crate) fn numbered(&self, number: usize) -> Option<TerminalSession> {
        let book = self.lock();
        let found = book.terminals.values().find(|it| it.number == number);
        found.cloned()
    }

    /// The one used last stands first.
    fn all(&self) -> Vec<TerminalSession> {
        let mut all: Vec<_> = self.lock().terminals.values().cloned().collect();
        all.sort_by_key(|terminal| std::cmp::Reverse((terminal.told_at, terminal.number)));
        all
    }

    /// Words are about to be put into a session; reports when they are read.
    fn expect(&self, session: &SessionId, text: &str, now: Millis) -> Arc<Notify> {
        let mut book = self.lock();
        book.words.retain(|words| words.at > now - WORDS_KEPT);
        if book.words.len() >= MAX_WORDS {
            book.words.pop_front();
        }
        let read = Arc::new(Notify::new());
        book.words.push_back(SpokenWords {
            session: session.clone(),
            text: text.trim().to_owned(),
            at: now,
            read: Arc::clone(&read),
        });
        read
    }

    /// Takes back what was not put there.
    fn forget(&self, read: &Arc<Notify>) {
        let mut book = self.lock();
        book.words.retain(|words| !Arc::ptr_eq(&words.read, read));
    }

    /// Notes that a session reads a prompt; says whether it came from the phone.
    pub(crate) fn reads(&self, session: &SessionId, prompt: &str, now: Millis) -> bool {
        let mut book = self.lock();
        let found = book.words.iter().position(|words| {
            words.session == *session && words.text == prompt.trim() && words.at > now - WORDS_KEPT
        });
        let words = found.and_then(|at| book.words.remove(at));
        if let Some(words) = &words {
            words.read.notify_one();
        }
        words.is_some()
    }
}

/// The name of a session's directory, as above every card.
pub(crate) fn place_name(project: &Path) -> Cow<'_, str> {
    let name = project.file_name().unwrap_or(project.as_os_str());
    name.to_string_lossy()
}

/// The terminals that are open, the one used last first.
pub(crate) async fn open(mailboxes: &Mailboxes) -> Vec<OpenTerminal> {
    let all = mailboxes.all();
    let looked =
        tokio::task::spawn_blocking(move || all.into_iter().filter_map(look).collect::<Vec<_>>());
    looked.await.unwrap_or_default()
}

/// Looks at one terminal: `None` once its session has ended.
pub(crate) async fn open_one(terminal: TerminalSession) -> Option<OpenTerminal> {
    let looked = tokio::task::spawn_blocking(move || look(terminal)).await;
    looked.ok().flatten()
}

fn look(terminal: TerminalSession) -> Option<OpenTerminal> {
    if terminal.ended {
        return None;
    }
    let dir = status::dir(terminal.transcript.as_deref()?)?;
    let (_, reading) = watching::locate(&dir, terminal.session.as_str(), None)?;
    if !reading.in_terminal() {
        return None;
    }
    let named = reading.socket.as_deref();
    let mailbox = terminal.mailbox.clone();
    let mailbox = mailbox.filter(|mailbox| named == Some(mailbox.socket.as_path()));
    Some(OpenTerminal {
        state: reading.state(),
        mailbox: mailbox.map(|mailbox| (mailbox, reading.pid)),
        terminal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::parse(name).unwrap()
    }

    #[test]
    fn a_terminal_keeps_its_number_and_the_oldest_makes_room() {
        let mailboxes = Mailboxes::default();
        for n in 0..2 * MAX_SESSIONS {
            let now = Millis::try_from(n).unwrap();
            let common = Common {
                session: Some(session(&format!("s{n}"))),
                ..Common::default()
            };
            for _ in 0..2 {
                mailboxes.told("/p".as_ref(), &common, None, now);
            }
        }
        let all = mailboxes.all();
        assert_eq!(all.len(), MAX_SESSIONS);
        assert_eq!(all[0].number, 2 * MAX_SESSIONS);
        mailboxes.ended(&all[0].session);
        assert!(look(mailboxes.find(&all[0].session).unwrap()).is_none());
    }

    #[test]
    fn only_the_words_that_were_sent_are_known_again_and_once() {
        let mailboxes = Mailboxes::default();
        mailboxes.expect(&session("a"), " go on\n", 0);
        assert!(!mailboxes.reads(&session("b"), "go on", 1));
        assert!(!mailboxes.reads(&session("a"), "go", 1));
        assert!(mailboxes.reads(&session("a"), "go on", 1));
        assert!(!mailboxes.reads(&session("a"), "go on", 1));
        mailboxes.expect(&session("a"), "late", 0);
        assert!(!mailboxes.reads(&session("a"), "late", WORDS_KEPT));
        for n in 0..2 * MAX_WORDS {
            mailboxes.expect(&session("a"), &n.to_string(), WORDS_KEPT);
        }
        assert_eq!(mailboxes.lock().words.len(), MAX_WORDS);
    }
}
