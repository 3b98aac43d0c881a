//! A book for tests, and the time it is.

use super::*;
use crate::approvals::request::{Caller, Digest, Ending, Facts, Origin, RealPath};
use std::path::PathBuf;
use std::sync::Arc;

pub(super) fn id(n: usize) -> RequestId {
    RequestId::parse(&format!("r{n}")).unwrap()
}

pub(super) fn message(n: usize) -> MessageId {
    MessageId::parse(&format!("om_{n}")).unwrap()
}

pub(super) fn face(text: &str) -> Face {
    CardText::from(text).into()
}

pub(super) fn settled(n: usize) -> Settled {
    let request = Facts {
        id: id(n),
        tool: "Bash".to_owned(),
        digest: Digest::of(&serde_json::Value::Null),
        input: serde_json::Value::Null,
        real: RealPath::Unasked,
        origin: Origin {
            machine: "m".to_owned(),
            user: "u".to_owned(),
            project: PathBuf::from("/p"),
            cwd: PathBuf::from("/p"),
            branch: None,
            session: None,
            agent: None,
            pid: None,
            hosted: false,
            caller: Caller::default(),
        },
        asked_at: 0,
        deadline: 1,
    }
    .read();
    Settled {
        request: Arc::new(request),
        ending: Ending::TimedOut,
        at: 1,
    }
}

pub(super) fn view(connects: u64, up: bool, lost_heard: Option<Instant>) -> LineView {
    LineView {
        state: if up {
            LineState::Up
        } else {
            LineState::Away(Text::new("cut", "cut"))
        },
        connects,
        lost_heard,
    }
}

/// A book, and the time it is.
pub(super) struct Desk {
    pub(super) book: CardBook<()>,
    pub(super) start: Instant,
    pub(super) now: Instant,
}

impl Desk {
    /// With a connection, long after the start.
    pub(super) fn quiet() -> Self {
        let start = Instant::now();
        let mut book = CardBook::new(view(0, false, None), Lang::En, start);
        let now = start + Duration::from_secs(100);
        book.line(view(1, true, None), now);
        Self { book, start, now }
    }

    pub(super) fn effects(&mut self) -> Vec<CardEffect> {
        std::iter::from_fn(|| self.book.step()).collect()
    }

    /// Lets time pass, tick by tick, and says what came of it.
    pub(super) fn pass(&mut self, span: Duration) -> Vec<CardEffect> {
        let end = self.now + span;
        while let Some(next) = self.book.next_tick().filter(|at| *at <= end) {
            assert!(self.now < next || self.book.next_tick() != Some(self.now));
            self.now = self.now.max(next);
            self.book.tick(self.now);
        }
        self.now = end;
        self.effects()
    }

    pub(super) fn sending(&self) -> Sending {
        Sending {
            not_before: self.now,
            latest: self.now + Duration::from_secs(60),
            needs_line: true,
            is_findable: true,
            sent_before: false,
        }
    }

    pub(super) fn ask(&mut self, n: usize) {
        let sending = self.sending();
        self.book.ask(&id(n), sending, (), self.now);
    }

    /// A card of the last run.
    pub(super) fn restore(&mut self, id: &RequestId, message: Option<&MessageId>) {
        (self.book).restore(id, message, Duration::ZERO, (), self.now);
    }

    pub(super) fn unsent(&mut self, n: usize, in_doubt: bool, passes: bool) {
        let unsent = Unsent {
            in_doubt,
            passes,
            retry_after: None,
            why: WHY,
        };
        self.book.unsent(&id(n), &unsent, self.now);
    }

    pub(super) fn edit(&mut self, n: usize, version: i64, text: &str) {
        let (message, card) = (message(n), CardText::from(text));
        let fits = (self.book).edit(&message, card, Some(version), Duration::ZERO, self.now);
        assert!(fits);
    }

    pub(super) fn taken(&mut self, n: usize) {
        self.book.patched(&message(n), Patched::Taken, self.now);
    }
}

pub(super) const WHY: Text = Text::new("bad", "bad");
pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn patch(n: usize, version: i64, text: &str) -> CardEffect {
    CardEffect::Patch(Patch {
        message: message(n),
        edit: PatchOf::Kept(version, Some(text.into())),
    })
}

pub(super) fn made(n: usize, version: i64) -> CardEffect {
    CardEffect::Made(message(n), version)
}

pub(super) fn struck(n: usize, version: i64) -> CardEffect {
    CardEffect::StrikeOff(CardKey::Message(message(n)), Some(version))
}

pub(super) fn keep(n: usize, of: usize, text: &str, of_what: KeepOf) -> Keep {
    Keep {
        request: id(n),
        message: message(of),
        face: face(text),
        of: of_what,
    }
}
