//! Reads the histories of a run and holds them against eleven invariants, each by
//! its name in docs/reliability.md: how often it was judged, and what broke it.
//! Pure: knows nothing of processes or sockets.

use std::collections::{BTreeMap, HashMap, HashSet};

use nod::for_tests::wording::toast::Toast;

use super::histories::{Asked, Ending, Histories, Said, Seen, Tap};

/// What must hold whatever goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    NoInvention,
    OneOutcome,
    NoFalseSuccess,
    NoHang,
    TrueCards,
    RulesOfTheWinner,
    SameInput,
    Bounded,
    MessagesOnce,
    FailToTerminal,
    RanIsSaid,
}

impl Invariant {
    pub(crate) const ALL: [Self; 11] = [
        Self::NoInvention,
        Self::OneOutcome,
        Self::NoFalseSuccess,
        Self::NoHang,
        Self::TrueCards,
        Self::RulesOfTheWinner,
        Self::SameInput,
        Self::Bounded,
        Self::MessagesOnce,
        Self::FailToTerminal,
        Self::RanIsSaid,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoInvention => "I1 no invention",
            Self::OneOutcome => "I2 one outcome",
            Self::NoFalseSuccess => "I3 no false success",
            Self::NoHang => "I4 no hang",
            Self::TrueCards => "I5 no stale effect; a true card soon",
            Self::RulesOfTheWinner => "I6 a rule only by the winner, once",
            Self::SameInput => "I7 the digest on the card is the digest executed",
            Self::Bounded => "I8 bounded",
            Self::MessagesOnce => "I9 a message runs once",
            Self::FailToTerminal => "I10 fail to the terminal",
            Self::RanIsSaid => "I11 no card says denied of what ran",
        }
    }
}

/// How a broken invariant counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Lost,
    Doubled,
    Invented,
    Other,
}

#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) invariant: Invariant,
    pub(crate) fault: Fault,
    pub(crate) what: String,
}

#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) findings: Vec<Finding>,
    /// How many times each invariant was looked at.
    pub(crate) judged: BTreeMap<Invariant, u64>,
    pub(crate) applied: u64,
    /// By what the person was told.
    pub(crate) refused: BTreeMap<&'static str, u64>,
    pub(crate) unconfirmed: u64,
    /// Cards that show their question, or what was told of it at first, again
    /// because of a tap that could not reach nod and left no trace there: Feishu never sent it, or a byte of
    /// it was altered. The next tap mends them.
    pub(crate) taken_back: u64,
    pub(crate) longest_hook_ms: u64,
}

impl Verdict {
    pub(crate) fn count(&self, fault: Fault) -> usize {
        let of_it = self.findings.iter().filter(|found| found.fault == fault);
        of_it.count()
    }

    pub(crate) fn broken(&self, invariant: Invariant) -> usize {
        let of_it = self.findings.iter();
        of_it.filter(|found| found.invariant == invariant).count()
    }

    pub(crate) fn times(&self, invariant: Invariant) -> u64 {
        self.judged.get(&invariant).copied().unwrap_or(0)
    }

    fn judge(
        &mut self,
        invariant: Invariant,
        holds: bool,
        fault: Fault,
        what: impl FnOnce() -> String,
    ) {
        *self.judged.entry(invariant).or_default() += 1;
        if !holds {
            self.findings.push(Finding {
                invariant,
                fault,
                what: what(),
            });
        }
    }
}

/// How a toast counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Applied,
    /// True only if the request ended in one of these ways.
    Over(&'static str, &'static [&'static str]),
    NotAnApprover,
    /// True only if this very tap decided nothing.
    Undecided(&'static str),
    /// The outcome is left open, and said to be.
    Open(&'static str),
    /// Never true in this run.
    Never,
}

const DECIDED: &[&str] = &["allow", "session", "always", "deny", "interrupt"];

fn word(kind: &str, content: &str) -> Word {
    if kind == "success" || content.starts_with("已批准本次运行") {
        return Word::Applied;
    }
    let table = [
        ("该请求已被处理", Word::Over("already handled", DECIDED)),
        (
            "已在终端",
            Word::Over("answered in the terminal", &["terminal"]),
        ),
        ("请求已超时", Word::Over("timed out", &["timeout"])),
        (
            "请求已失效",
            Word::Over("hook gone", &["hook_gone", "orphaned", "undeliverable"]),
        ),
        ("你不在审批人名单中", Word::NotAnApprover),
        ("正在重新连接", Word::Open("reconnecting, tap again")),
        ("结果确认中", Word::Open("checking the outcome")),
        ("处理中", Word::Open("processing")),
        (
            "未作出任何决定",
            Word::Undecided("nothing decided, tap again"),
        ),
    ];
    // It begins with the machine's name.
    if content.contains(" 未连接，") {
        return Word::Undecided("not connected");
    }
    let found = table.iter().find(|(start, _)| content.starts_with(start));
    found.map_or(Word::Never, |(_, word)| *word)
}

/// The refusals that this checker takes for something else than nod means: a
/// sentence worded anew is noticed before the run, not by chance in it.
pub(crate) fn misread() -> Vec<Toast> {
    let absent = Toast::not_connected("desk");
    let terminal = |allowed| Toast::settled_in_terminal(allowed, 0);
    let refusals = [
        (Toast::ALREADY_HANDLED, "already handled"),
        (terminal(None), "answered in the terminal"),
        (terminal(Some(true)), "answered in the terminal"),
        (terminal(Some(false)), "answered in the terminal"),
        (Toast::timed_out(0), "timed out"),
        (Toast::HOOK_GONE, "hook gone"),
        (Toast::NOT_AN_APPROVER, "not an approver"),
        (Toast::RECONNECTING, "reconnecting, tap again"),
        (Toast::STILL_CHECKING, "checking the outcome"),
        (Toast::PROCESSING, "processing"),
        (Toast::NOTHING_DECIDED, "nothing decided, tap again"),
        (absent, "not connected"),
    ];
    let refusals = refusals.into_iter().filter(|(toast, meant)| {
        let taken = match word(toast.tone.as_str(), &toast.text.zh) {
            Word::Over(name, _) | Word::Open(name) | Word::Undecided(name) => name,
            Word::NotAnApprover => "not an approver",
            Word::Applied | Word::Never => "",
        };
        taken != *meant
    });
    refusals.map(|(toast, _)| toast).collect()
}

fn said_by(decision: &str) -> Option<Said> {
    match decision {
        "allow" | "session" | "always" => Some(Said::Allow),
        "deny" => Some(Said::Deny { interrupt: false }),
        "interrupt" => Some(Said::Deny { interrupt: true }),
        _ => None,
    }
}

fn title_of(decision: &str) -> &'static str {
    match decision {
        "allow" => "已批准",
        "session" => "本次会话已允许",
        "always" => "已始终允许",
        "deny" => "已拒绝",
        "interrupt" => "已拒绝并中断",
        "terminal" => "已在终端",
        "timeout" => "已超时",
        "hook_gone" => "请求已失效",
        "orphaned" => "连接已中断",
        _ => "卡片无法送达",
    }
}

/// Whether one text is the other with a single byte altered.
fn one_byte_apart(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).filter(|(a, b)| a != b);
    one.len() == other.len() && differ.count() <= 1
}

struct Books<'a> {
    histories: &'a Histories,
    asked: HashMap<&'a str, &'a Asked>,
    endings: HashMap<&'a str, Vec<&'a Ending>>,
    taps: HashMap<&'a str, Vec<&'a Tap>>,
    /// Events of which one push was altered; the others get its answer.
    blurred: HashSet<&'a str>,
}

impl<'a> Books<'a> {
    fn of(histories: &'a Histories) -> Self {
        let asked = histories.asked.iter();
        let asked = asked.filter_map(|asked| Some((asked.request.as_deref()?, asked)));
        let (mut endings, mut taps) = (HashMap::new(), HashMap::new());
        for ending in &histories.endings {
            let all: &mut Vec<_> = endings.entry(ending.request.as_str()).or_default();
            all.push(ending);
        }
        for tap in &histories.taps {
            let all: &mut Vec<_> = taps.entry(tap.request.as_str()).or_default();
            all.push(tap);
        }
        let blurred = histories.taps.iter().filter(|tap| tap.blurred);
        Self {
            asked: asked.collect(),
            blurred: blurred.map(|tap| tap.event.as_str()).collect(),
            histories,
            endings,
            taps,
        }
    }

    fn ending(&self, request: &str) -> Option<&'a Ending> {
        self.endings.get(request)?.first().copied()
    }

    fn ending_of(&self, asked: &Asked) -> Option<&'a Ending> {
        self.ending(asked.request.as_deref()?)
    }

    fn taps_on(&self, request: &str) -> &[&'a Tap] {
        self.taps.get(request).map_or(&[], Vec::as_slice)
    }
}

pub(crate) fn check(histories: &Histories) -> Verdict {
    let books = Books::of(histories);
    let mut verdict = Verdict::default();
    for tap in &histories.taps {
        check_tap(&books, tap, &mut verdict);
    }
    for asked in &histories.asked {
        check_hook(&books, asked, &mut verdict);
    }
    check_endings(&books, &mut verdict);
    check_faces(&books, &mut verdict);
    check_rules(&books, &mut verdict);
    check_written(&books, &mut verdict);
    check_bounds(histories, &mut verdict);
    for invariant in Invariant::ALL {
        if verdict.times(invariant) == 0 {
            verdict.findings.push(Finding {
                invariant,
                fault: Fault::Other,
                what: "never judged: the run was too short for it".to_owned(),
            });
        }
    }
    verdict
}

/// A confirmed tap was applied, or refused for a reason that is true.
fn check_tap(books: &Books<'_>, tap: &Tap, verdict: &mut Verdict) {
    use Invariant::{NoFalseSuccess, TrueCards};
    let (kind, content) = match &tap.seen {
        Seen::Toast { kind, content } => (kind, content),
        Seen::Nothing => return verdict.unconfirmed += 1,
        Seen::Words => return,
    };
    let blurred = books.blurred.contains(tap.event.as_str());
    let ending = books.ending(&tap.request);
    let describe = || format!("{tap:?}; it ended as {ending:?}");
    match word(kind, content) {
        Word::Applied => {
            verdict.applied += 1;
            let counted =
                ending.is_some_and(|ending| ending.event.as_ref() == Some(&tap.event) || blurred);
            verdict.judge(NoFalseSuccess, counted, Fault::Lost, || {
                format!("confirmed, but not recorded: {}", describe())
            });
            let expected = ending.and_then(|ending| said_by(&ending.decision));
            let hook = books.asked.get(tap.request.as_str());
            let told = hook.is_some_and(|hook| {
                hook.killed || expected.is_some_and(|said| hook.printed.contains(&said))
            });
            verdict.judge(NoFalseSuccess, told, Fault::Lost, || {
                format!("confirmed, but {hook:?} did not print it: {}", describe())
            });
        }
        Word::Over(name, decisions) => {
            *verdict.refused.entry(name).or_default() += 1;
            let mine = ending.is_some_and(|it| it.event.as_ref() == Some(&tap.event));
            let is_true = ending.is_some_and(|it| {
                let corrected = it.corrected && decisions.contains(&"terminal");
                corrected || decisions.contains(&it.decision.as_str())
            });
            // The tap that won, and whose hook was gone when it was told.
            let came_too_late = mine && name == "hook gone";
            let fine = is_true || came_too_late || blurred;
            verdict.judge(TrueCards, fine, Fault::Other, describe);
        }
        Word::NotAnApprover => {
            *verdict.refused.entry("not an approver").or_default() += 1;
            let fine = !tap.by_owner || blurred;
            verdict.judge(TrueCards, fine, Fault::Other, describe);
        }
        Word::Undecided(name) => {
            *verdict.refused.entry(name).or_default() += 1;
            let counted = ending.is_some_and(|it| it.event.as_ref() == Some(&tap.event));
            // Another push of the same event may have arrived.
            let again = books.taps_on(&tap.request).iter();
            let again = again.filter(|other| other.event == tap.event).count() > 1;
            let fine = !counted || again || blurred;
            verdict.judge(TrueCards, fine, Fault::Other, describe);
        }
        Word::Open(name) => *verdict.refused.entry(name).or_default() += 1,
        Word::Never => {
            if blurred {
                *verdict.refused.entry("garbled on the way").or_default() += 1;
            }
            verdict.judge(TrueCards, blurred, Fault::Other, describe);
        }
    }
}

/// A hook printed at most once, in time, and only what an approver decided for
/// exactly its input.
fn check_hook(books: &Books<'_>, asked: &Asked, verdict: &mut Verdict) {
    use Invariant::{FailToTerminal, NoHang, NoInvention, OneOutcome, SameInput};
    let ending = books.ending_of(asked);
    let describe = || format!("hook {}: {asked:?} from {ending:?}", asked.number);
    verdict.longest_hook_ms = verdict.longest_hook_ms.max(asked.took_ms);
    let in_time = asked.took_ms <= books.histories.patience_ms;
    verdict.judge(NoHang, in_time, Fault::Other, describe);
    let once = asked.printed.len() <= 1 && asked.cards <= 1;
    verdict.judge(OneOutcome, once, Fault::Doubled, describe);
    if asked.cards > 0 {
        let shown = asked.card_shows_digest;
        verdict.judge(SameInput, shown, Fault::Other, describe);
        let over = ending.is_some();
        verdict.judge(OneOutcome, over, Fault::Other, || {
            format!("never ended: {asked:?}")
        });
    }
    let decided = ending.and_then(|ending| said_by(&ending.decision));
    if decided.is_none() {
        let silent = asked.printed.is_empty();
        verdict.judge(FailToTerminal, silent, Fault::Invented, describe);
    }
    let Some(said) = asked.printed.first() else {
        return;
    };
    let by_owner = |it: &Ending| it.operator.as_deref() == Some(books.histories.owner.as_str());
    let meant = decided == Some(*said) && ending.is_some_and(by_owner);
    verdict.judge(NoInvention, meant, Fault::Invented, describe);
    let same = ending.is_some_and(|ending| ending.digest == asked.digest);
    verdict.judge(SameInput, same, Fault::Invented, describe);
}

/// One ending each, and behind every decision a tap of the owner's on that
/// request for that action.
fn check_endings(books: &Books<'_>, verdict: &mut Verdict) {
    for (request, endings) in &books.endings {
        let one = endings.len() == 1;
        verdict.judge(Invariant::OneOutcome, one, Fault::Doubled, || {
            format!("{endings:?}")
        });
        let ending = endings[0];
        if said_by(&ending.decision).is_none() {
            continue;
        }
        let meant = |tap: &&Tap| {
            let same = match ending.event.as_deref() {
                Some(event) if tap.blurred => one_byte_apart(&tap.event, event),
                Some(event) => tap.event == event,
                // The byte was one of the field's name.
                None => tap.blurred,
            };
            same && tap.by_owner && tap.action == ending.decision
        };
        let taps = books.taps_on(request);
        let tapped = taps.iter().any(meant);
        verdict.judge(Invariant::NoInvention, tapped, Fault::Invented, || {
            format!("{ending:?} by none of {taps:?}")
        });
    }
}

/// Each card shows in the end what the audit says, and can't be tapped.
fn check_faces(books: &Books<'_>, verdict: &mut Verdict) {
    for face in &books.histories.faces {
        let Some(ending) = books.ending(&face.request) else {
            continue;
        };
        let without_a_trace = |tap: &&Tap| tap.took_back && (tap.swallowed || tap.blurred);
        let taps = books.taps_on(&face.request);
        // What the card was before: the question, or what was told at first.
        let is_older = face.can_be_tapped
            || ending.corrected && face.title.starts_with(title_of(&ending.decision));
        if is_older && taps.iter().any(without_a_trace) {
            verdict.taken_back += 1;
            continue;
        }
        let decision = if ending.corrected {
            "terminal"
        } else {
            &ending.decision
        };
        let is_true = !face.can_be_tapped && face.title.starts_with(title_of(decision));
        let ran = books.asked.get(face.request.as_str());
        if ran.is_some_and(|asked| asked.ran) {
            let fine = !face.title.starts_with(title_of("deny"));
            verdict.judge(Invariant::RanIsSaid, fine, Fault::Other, || {
                format!("{face:?} of what ran, after {ending:?}")
            });
        }
        verdict.judge(Invariant::TrueCards, is_true, Fault::Other, || {
            format!("{face:?} shows {ending:?} after {taps:?}")
        });
    }
    let (took, may_take) = (
        books.histories.true_after_ms,
        books.histories.true_within_ms,
    );
    verdict.judge(Invariant::TrueCards, took <= may_take, Fault::Other, || {
        format!("cards were true only {took} ms after the last trouble")
    });
}

/// In the settings stand exactly the rules that an "always" left there, and a
/// hook hands on exactly those of its own decision.
fn check_rules(books: &Books<'_>, verdict: &mut Verdict) {
    use Invariant::RulesOfTheWinner;
    let mut seen = HashSet::new();
    for rule in &books.histories.rules {
        let first = seen.insert(rule.as_str());
        verdict.judge(RulesOfTheWinner, first, Fault::Doubled, || {
            format!("twice: {rule}")
        });
    }
    let mut left = HashSet::new();
    for ending in &books.histories.endings {
        let Some(asked) = books.asked.get(ending.request.as_str()) else {
            continue;
        };
        let rule = ending.rule.as_deref().unwrap_or_default();
        if !asked.old {
            let own: &[String] = &asked.handed;
            let fits = own.is_empty() || own.join(", ") == rule;
            let owed = !rule.is_empty() && asked.printed == [Said::Allow];
            let handed = fits && (!owed || !own.is_empty());
            if owed || !own.is_empty() {
                verdict.judge(RulesOfTheWinner, handed, Fault::Other, || {
                    format!("{asked:?} handed on other rules than {ending:?}")
                });
            }
            continue;
        }
        if ending.decision != "always" {
            continue;
        }
        left.insert(rule);
        let confirmed = books.taps_on(&ending.request).iter().any(|tap| {
            matches!(&tap.seen, Seen::Toast { content, .. } if content.starts_with("已始终允许"))
        });
        let saved = !confirmed || seen.contains(rule);
        verdict.judge(RulesOfTheWinner, saved, Fault::Lost, || {
            format!("confirmed, but not saved: {ending:?}")
        });
    }
    for rule in seen {
        let known = left.contains(rule);
        verdict.judge(RulesOfTheWinner, known, Fault::Invented, || {
            format!("nobody left it: {rule}")
        });
    }
}

/// A written text ended one request at most, however often it was pushed.
fn check_written(books: &Books<'_>, verdict: &mut Verdict) {
    let mut ended = HashMap::<&str, u32>::new();
    for event in books
        .histories
        .endings
        .iter()
        .filter_map(|it| it.event.as_deref())
    {
        *ended.entry(event).or_default() += 1;
    }
    for tap in books
        .histories
        .taps
        .iter()
        .filter(|tap| tap.seen == Seen::Words)
    {
        let times = ended.get(tap.event.as_str()).copied().unwrap_or(0);
        verdict.judge(Invariant::MessagesOnce, times <= 1, Fault::Doubled, || {
            format!("{tap:?} ended {times} requests")
        });
    }
}

fn check_bounds(histories: &Histories, verdict: &mut Verdict) {
    let most = histories.most;
    for held in &histories.held {
        let fits =
            held.kib <= most.kib && held.files <= most.files && held.disk_kib <= most.disk_kib;
        verdict.judge(Invariant::Bounded, fits, Fault::Other, || {
            format!("the daemon held {held:?}, more than {most:?}")
        });
    }
}
