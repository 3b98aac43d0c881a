//! Reads the histories of a run and says what must not have happened: a tap
//! that was confirmed and lost, one that counted twice, a decision nobody made,
//! a reason that was not true. Pure: knows nothing of processes or sockets.

use std::collections::{BTreeMap, HashMap, HashSet};

/// What a hook gave Claude Code to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Allow,
    Deny { interrupt: bool },
}

/// One hook, from its start to its end.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) number: u64,
    /// Known from its card, or because the harness chose it.
    pub(crate) request: Option<String>,
    /// Of the tool input the hook was started with.
    pub(crate) digest: String,
    pub(crate) printed: Vec<Said>,
    /// The harness ended the process before it could print.
    pub(crate) killed: bool,
    /// An old client: nod itself leaves its rules.
    pub(crate) old: bool,
    pub(crate) took_ms: u64,
    pub(crate) cards: u32,
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
}

#[derive(Debug, Clone)]
pub(crate) struct Tap {
    pub(crate) request: String,
    pub(crate) event: String,
    pub(crate) action: &'static str,
    pub(crate) by_owner: bool,
    pub(crate) seen: Seen,
    /// Bytes on the way to nod were altered while this tap was under way, so
    /// that nod may have read other words than were sent.
    pub(crate) blurred: bool,
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
}

/// What a card showed in the end.
#[derive(Debug, Clone)]
pub(crate) struct Face {
    pub(crate) request: String,
    pub(crate) title: String,
    pub(crate) can_be_tapped: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Histories {
    pub(crate) owner: String,
    /// The longest a hook may take, its own time-out included.
    pub(crate) patience_ms: u64,
    pub(crate) asked: Vec<Asked>,
    pub(crate) taps: Vec<Tap>,
    pub(crate) endings: Vec<Ending>,
    pub(crate) faces: Vec<Face>,
    /// Every rule in every project's settings file, as often as it is there.
    pub(crate) rules: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Lost,
    Doubled,
    Invented,
    /// A reason or a card that is not true.
    Untrue,
    Hung,
    /// A rule without its decision, or twice, or missing after it was
    /// confirmed.
    Rule,
    Unfinished,
}

#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) fault: Fault,
    pub(crate) what: String,
}

#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) findings: Vec<Finding>,
    pub(crate) applied: u64,
    /// By what the person was told.
    pub(crate) refused: BTreeMap<&'static str, u64>,
    pub(crate) unconfirmed: u64,
    pub(crate) unsure: u64,
    /// Cards that show their question again because Feishu took an edit back
    /// when a tap that nod never saw ran out of time. The next tap mends them.
    pub(crate) taken_back: u64,
    pub(crate) longest_hook_ms: u64,
}

impl Verdict {
    pub(crate) fn count(&self, fault: Fault) -> usize {
        let of_it = self.findings.iter().filter(|found| found.fault == fault);
        of_it.count()
    }

    fn find(&mut self, fault: Fault, what: String) {
        self.findings.push(Finding { fault, what });
    }
}

/// How a toast counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Applied,
    /// True only if the request ended in one of these ways.
    Over(&'static str, &'static [&'static str]),
    NotAnApprover,
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
        ("请求已于", Word::Over("timed out", &["timeout"])),
        (
            "请求已失效",
            Word::Over("hook gone", &["hook_gone", "orphaned", "undeliverable"]),
        ),
        ("你不在审批人名单中", Word::NotAnApprover),
        ("正在重新连接", Word::Open("reconnecting, tap again")),
        ("结果确认中", Word::Open("checking the outcome")),
        ("处理中", Word::Open("processing")),
    ];
    let found = table.iter().find(|(start, _)| content.starts_with(start));
    found.map_or(Word::Never, |(_, word)| *word)
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
    verdict
}

/// A confirmed tap was applied, or refused for a reason that is true.
fn check_tap(books: &Books<'_>, tap: &Tap, verdict: &mut Verdict) {
    let Seen::Toast { kind, content } = &tap.seen else {
        verdict.unconfirmed += 1;
        return;
    };
    let blurred = books.blurred.contains(tap.event.as_str());
    let ending = books.ending(&tap.request);
    let describe = || format!("{tap:?}; it ended as {ending:?}");
    match word(kind, content) {
        Word::Applied => {
            verdict.applied += 1;
            let counted = ending.is_some_and(|ending| {
                ending.event.as_ref() == Some(&tap.event) || (blurred && ending.event.is_some())
            });
            if !counted {
                verdict.find(
                    Fault::Lost,
                    format!("confirmed, but not recorded: {}", describe()),
                );
                return;
            }
            let expected = ending.and_then(|ending| said_by(&ending.decision));
            let hook = books.asked.get(tap.request.as_str());
            let told = hook.is_some_and(|hook| {
                hook.killed || expected.is_some_and(|said| hook.printed.contains(&said))
            });
            if !told {
                let what = format!("confirmed, but {hook:?} did not print it: {}", describe());
                verdict.find(Fault::Lost, what);
            }
        }
        Word::Over(name, decisions) => {
            *verdict.refused.entry(name).or_default() += 1;
            let mine = ending.is_some_and(|it| it.event.as_ref() == Some(&tap.event));
            let is_true = ending.is_some_and(|it| decisions.contains(&it.decision.as_str()));
            // The tap that won, and whose hook was gone when it was told.
            let came_too_late = mine && name == "hook gone";
            if !is_true && !came_too_late && !blurred {
                verdict.find(Fault::Untrue, describe());
            }
        }
        Word::NotAnApprover => {
            *verdict.refused.entry("not an approver").or_default() += 1;
            if tap.by_owner && !blurred {
                verdict.find(Fault::Untrue, describe());
            }
        }
        Word::Open(name) => {
            *verdict.refused.entry(name).or_default() += 1;
            verdict.unsure += 1;
        }
        Word::Never if blurred => *verdict.refused.entry("garbled on the way").or_default() += 1,
        Word::Never => verdict.find(Fault::Untrue, describe()),
    }
}

/// A hook printed at most once, in time, and only what an approver decided for
/// exactly its input.
fn check_hook(books: &Books<'_>, asked: &Asked, verdict: &mut Verdict) {
    verdict.longest_hook_ms = verdict.longest_hook_ms.max(asked.took_ms);
    if asked.took_ms > books.histories.patience_ms {
        verdict.find(Fault::Hung, format!("hook {}: {asked:?}", asked.number));
    }
    if asked.printed.len() > 1 || asked.cards > 1 {
        verdict.find(Fault::Doubled, format!("{asked:?}"));
    }
    let Some(said) = asked.printed.first() else {
        return;
    };
    let ending = asked.request.as_deref().and_then(|id| books.ending(id));
    let Some(ending) = ending else {
        verdict.find(Fault::Invented, format!("nobody decided {asked:?}"));
        return;
    };
    let by_owner = ending.operator.as_deref() == Some(books.histories.owner.as_str());
    if said_by(&ending.decision) != Some(*said) || !by_owner || ending.digest != asked.digest {
        verdict.find(Fault::Invented, format!("{asked:?} from {ending:?}"));
    }
}

/// One ending each, and behind every decision a tap of the owner's on that
/// request for that action.
fn check_endings(books: &Books<'_>, verdict: &mut Verdict) {
    for (request, endings) in &books.endings {
        if endings.len() > 1 {
            verdict.find(Fault::Doubled, format!("{endings:?}"));
        }
        let ending = endings[0];
        if said_by(&ending.decision).is_none() {
            continue;
        }
        let event = ending.event.as_deref().unwrap_or_default();
        let meant = |tap: &&Tap| {
            let same = tap.event == event || (tap.blurred && one_byte_apart(&tap.event, event));
            same && tap.by_owner && tap.action == ending.decision
        };
        if !books.taps_on(request).iter().any(meant) {
            let taps = books.taps_on(request);
            verdict.find(Fault::Invented, format!("{ending:?} by none of {taps:?}"));
        }
    }
    for asked in &books.histories.asked {
        let had_card = asked.cards > 0;
        let over = asked.request.as_deref().and_then(|id| books.ending(id));
        if had_card && over.is_none() {
            verdict.find(Fault::Unfinished, format!("never ended: {asked:?}"));
        }
    }
}

/// Each card shows in the end what the audit says, and can't be tapped.
fn check_faces(books: &Books<'_>, verdict: &mut Verdict) {
    for face in &books.histories.faces {
        let Some(ending) = books.ending(&face.request) else {
            continue;
        };
        let title = title_of(&ending.decision);
        let unanswered = |tap: &&Tap| tap.seen == Seen::Nothing;
        if face.can_be_tapped && books.taps_on(&face.request).iter().any(unanswered) {
            verdict.taken_back += 1;
            continue;
        }
        if face.can_be_tapped || !face.title.starts_with(title) {
            verdict.find(Fault::Untrue, format!("{face:?} shows {ending:?}"));
        }
    }
}

/// In the settings stand exactly the rules that an "always" left there.
fn check_rules(books: &Books<'_>, verdict: &mut Verdict) {
    let mut seen = HashSet::new();
    for rule in &books.histories.rules {
        if !seen.insert(rule.as_str()) {
            verdict.find(Fault::Rule, format!("twice: {rule}"));
        }
    }
    let always = books.histories.endings.iter();
    let always = always.filter(|ending| ending.decision == "always");
    let mut left = HashSet::new();
    for ending in always {
        let Some(asked) = books.asked.get(ending.request.as_str()) else {
            continue;
        };
        if !asked.old {
            continue;
        }
        let rule = ending.rule.as_deref().unwrap_or_default();
        left.insert(rule);
        let confirmed = books.taps_on(&ending.request).iter().any(|tap| {
            matches!(&tap.seen, Seen::Toast { content, .. } if content.starts_with("已始终允许"))
        });
        if confirmed && !seen.contains(rule) {
            verdict.find(Fault::Rule, format!("confirmed, but not saved: {ending:?}"));
        }
    }
    for rule in seen {
        if !left.contains(rule) {
            verdict.find(Fault::Rule, format!("nobody left it: {rule}"));
        }
    }
}

/// What a broken nod would have left behind, so that the checker can be seen
/// to notice it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sabotage {
    Lost,
    Doubled,
    Invented,
}

impl Sabotage {
    pub(crate) const ALL: [Self; 3] = [Self::Lost, Self::Doubled, Self::Invented];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == text)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Doubled => "doubled",
            Self::Invented => "invented",
        }
    }

    pub(crate) fn fault(self) -> Fault {
        match self {
            Self::Lost => Fault::Lost,
            Self::Doubled => Fault::Doubled,
            Self::Invented => Fault::Invented,
        }
    }

    /// Alters one entry; `None` when the run holds nothing to alter.
    pub(crate) fn commit(self, histories: &mut Histories) -> Option<()> {
        match self {
            Self::Lost => {
                let applied: HashSet<_> = histories
                    .taps
                    .iter()
                    .filter(
                        |tap| matches!(&tap.seen, Seen::Toast { kind, .. } if kind == "success"),
                    )
                    .map(|tap| tap.request.clone())
                    .collect();
                let mut hooks = histories.asked.iter_mut();
                let hook = hooks.find(|asked| {
                    let its = asked.request.as_ref();
                    !asked.killed && its.is_some_and(|id| applied.contains(id))
                })?;
                hook.printed.clear();
            }
            Self::Doubled => {
                let ending = histories.endings.last()?.clone();
                histories.endings.push(ending);
            }
            Self::Invented => {
                let mut hooks = histories.asked.iter_mut();
                let hook = hooks.find(|asked| asked.printed.is_empty())?;
                hook.printed.push(Said::Allow);
            }
        }
        Some(())
    }
}
