//! What a run leaves behind, as four sides remember it: Feishu (taps and
//! cards), the store's audit, the hooks, and the settings files.

/// What a hook gave Claude Code to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Allow,
    Deny { interrupt: bool },
}

/// One hook, from its start to its end.
#[derive(Debug, Clone, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is witnessed by somebody else"
)]
pub(crate) struct Asked {
    pub(crate) number: u64,
    /// Known from its card, or because the harness chose it.
    pub(crate) request: Option<String>,
    /// Of the tool input the hook was started with.
    pub(crate) digest: String,
    pub(crate) printed: Vec<Said>,
    /// The rules it printed for Claude Code to keep.
    pub(crate) handed: Vec<String>,
    /// The harness ended the process before it could print.
    pub(crate) killed: bool,
    /// An old client: nod itself leaves its rules.
    pub(crate) old: bool,
    /// Allowed in the terminal: its tool ran, and nod took the event.
    pub(crate) ran: bool,
    pub(crate) took_ms: u64,
    pub(crate) cards: u32,
    /// Whether its card shows this very digest.
    pub(crate) card_shows_digest: bool,
}

/// What the person who tapped saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Toast {
        kind: String,
        content: String,
    },
    /// An error of Feishu's own: the tap was not confirmed.
    Nothing,
    /// The writer's own words, which Feishu pushes again until they are
    /// acknowledged. Nobody is told what became of them.
    Words,
}

/// A tap, or words written below a card.
#[derive(Debug, Clone)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is witnessed by somebody else"
)]
pub(crate) struct Tap {
    pub(crate) request: String,
    pub(crate) event: String,
    pub(crate) action: &'static str,
    pub(crate) by_owner: bool,
    pub(crate) seen: Seen,
    /// Bytes on the way to nod were altered while this tap was under way, so
    /// that nod may have read other words than were sent.
    pub(crate) blurred: bool,
    /// Feishu itself never put it on the line.
    pub(crate) swallowed: bool,
    /// When it ran out of time, Feishu put the card back as it was before it.
    pub(crate) took_back: bool,
}

/// A row of the audit that ended a request.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    pub(crate) request: String,
    pub(crate) decision: String,
    pub(crate) operator: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) digest: String,
    pub(crate) rule: Option<String>,
    /// A later row says that the terminal had allowed it.
    pub(crate) corrected: bool,
}

/// What a card showed in the end.
#[derive(Debug, Clone)]
pub(crate) struct Face {
    pub(crate) request: String,
    pub(crate) title: String,
    pub(crate) can_be_tapped: bool,
}

/// What the daemon held at some moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) kib: u64,
    pub(crate) files: usize,
    pub(crate) disk_kib: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Histories {
    pub(crate) owner: String,
    /// The longest a hook may take, its own time-out included.
    pub(crate) patience_ms: u64,
    /// The most the daemon may hold.
    pub(crate) most: Held,
    /// How long after the last trouble every card was true, and may take.
    pub(crate) true_after_ms: u64,
    pub(crate) true_within_ms: u64,
    pub(crate) asked: Vec<Asked>,
    pub(crate) taps: Vec<Tap>,
    pub(crate) endings: Vec<Ending>,
    pub(crate) faces: Vec<Face>,
    /// Every rule in every project's settings file, as often as it is there.
    pub(crate) rules: Vec<String>,
    pub(crate) held: Vec<Held>,
}
