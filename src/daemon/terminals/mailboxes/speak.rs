//! Puts a person's words into a session that runs in a terminal, and finds out
//! what became of them: read, queued, held for the person there, or not taken.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::{Mailboxes, open_one};
use crate::claude::mailbox::{Mailbox, Sign, sign};
use crate::claude::status::{self, Activity};
use crate::clock::Millis;
use crate::daemon::terminals::tail::Tail;
use crate::hook::connect;
use crate::ids::SessionId;

/// Longer than a person types into a chat.
pub(crate) const MAX_WORDS: usize = 20_000;
/// An idle session begins its turn within half a second.
const TOLD_WITHIN: Duration = Duration::from_secs(4);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const WRITE_WITHIN: Duration = Duration::from_secs(2);

/// What became of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordsFate {
    /// The session works on them.
    Read,
    /// It is busy and reads them between two steps.
    Queued,
    /// A dialog is open there, and they are read once somebody answers it.
    BehindDialog,
    /// They wait for the person at the terminal.
    Held,
    /// They were handed over, and nothing came of it.
    Refused,
    /// It may be open, and nobody told how to speak to it.
    NoMailbox,
    /// No hook told of it since this daemon runs.
    Unknown,
    /// It has ended.
    Gone,
    TooLong,
}

impl WordsFate {
    /// One word for the audit.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Queued => "queued",
            Self::BehindDialog => "behind_dialog",
            Self::Held => "held",
            Self::Refused => "refused",
            Self::NoMailbox => "no_mailbox",
            Self::Unknown => "unknown",
            Self::Gone => "ended",
            Self::TooLong => "too_long",
        }
    }
}

/// The words without control characters, which a terminal would carry out;
/// line breaks and tabs stay.
fn without_controls(words: &str) -> String {
    let lines = words.replace("\r\n", "\n");
    let harmless = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    lines.chars().filter(harmless).collect()
}

/// Speaks into the session of this terminal.
pub(crate) async fn to(
    mailboxes: &Mailboxes,
    session: &SessionId,
    words: &str,
    now: Millis,
) -> WordsFate {
    if words.len() > MAX_WORDS {
        return WordsFate::TooLong;
    }
    let words = &*without_controls(words);
    let Some(terminal) = mailboxes.find(session) else {
        return WordsFate::Unknown;
    };
    let transcript = terminal.transcript.clone();
    let has_status = transcript.as_deref().and_then(status::dir).is_some();
    if !has_status && !terminal.ended {
        return WordsFate::NoMailbox;
    }
    let Some(open) = open_one(terminal).await else {
        return WordsFate::Gone;
    };
    let Some((mailbox, pid)) = open.mailbox else {
        return WordsFate::NoMailbox;
    };
    let mut tail = Signs::of(transcript).await;
    let read = mailboxes.expect(session, words, now);
    let letter = mailbox.letter(words);
    let write = move || write(&mailbox, pid, &letter);
    let written = timeout(WRITE_WITHIN, tokio::task::spawn_blocking(write)).await;
    if !matches!(written, Ok(Ok(true))) {
        mailboxes.forget(&read);
        return WordsFate::NoMailbox;
    }
    let queued = match open.state {
        Activity::Waiting => WordsFate::BehindDialog,
        Activity::Busy | Activity::Idle | Activity::Other => WordsFate::Queued,
    };
    let give_up = Instant::now() + TOLD_WITHIN;
    loop {
        if timeout(LOOK_EVERY, read.notified()).await.is_ok() {
            return WordsFate::Read;
        }
        let (seen, looked) = tail.look(words.to_owned()).await;
        tail = looked;
        match seen {
            // A moment for the hook of an idle session, which says more.
            Some(Sign::Taken) if open.state == Activity::Idle => {
                let read = timeout(TOLD_WITHIN, read.notified()).await;
                return read.map_or(queued, |()| WordsFate::Read);
            }
            Some(Sign::Taken) => return queued,
            Some(Sign::Held) => return WordsFate::Held,
            // Without a transcript nobody tells what a busy session queued.
            None if Instant::now() > give_up
                && tail.file.is_none()
                && open.state != Activity::Idle =>
            {
                return queued;
            }
            None if Instant::now() > give_up => {
                mailboxes.forget(&read);
                return WordsFate::Refused;
            }
            None => {}
        }
    }
}

/// Writes to the socket of that very process, of our own user.
fn write(mailbox: &Mailbox, pid: u32, letter: &[u8]) -> bool {
    let stream = match connect::dial(&mailbox.socket) {
        Ok(stream) => stream,
        Err(why) => {
            debug!("a session's mailbox can't be reached: {why}");
            return false;
        }
    };
    if connect::peer_pid(&stream).is_some_and(|server| server != pid) {
        return false;
    }
    let ready = stream.set_nonblocking(false);
    let ready = ready.and_then(|()| stream.set_write_timeout(Some(WRITE_WITHIN)));
    ready.is_ok() && (&stream).write_all(letter).is_ok()
}

/// What the transcript says of words that were handed over.
struct Signs {
    file: Option<PathBuf>,
    tail: Tail,
}

impl Signs {
    async fn of(file: Option<PathBuf>) -> Self {
        let looked = tokio::task::spawn_blocking(move || {
            let tail = file.as_ref().and_then(|file| Tail::from_end(file, 0));
            Self {
                file: file.filter(|_| tail.is_some()),
                tail: tail.unwrap_or_default(),
            }
        });
        looked.await.unwrap_or_else(|_| Self::none())
    }

    /// What the new lines say of these words.
    async fn look(mut self, words: String) -> (Option<Sign>, Self) {
        let looked = tokio::task::spawn_blocking(move || {
            let seen = self.read(&words);
            (seen, self)
        });
        looked.await.unwrap_or_else(|_| (None, Self::none()))
    }

    fn read(&mut self, words: &str) -> Option<Sign> {
        let mut first = None;
        self.tail.lines(self.file.as_ref()?, |line| {
            first = first.or_else(|| sign(line, words));
        });
        first
    }

    fn none() -> Self {
        Self {
            file: None,
            tail: Tail::default(),
        }
    }
}

#[cfg(test)]
mod tests;
