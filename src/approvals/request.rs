//! What is asked: one tool call that waits for a person, with everything the
//! person needs to know about where it comes from.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};

use crate::clock::Millis;
use crate::hex;
use crate::ids::{RequestId, SessionId, UserId};
use crate::rules::{self, Leaves, Offer, Rule, RuleCall};
use crate::sessions::agent::Agent;
use crate::sessions::questions::script::{Addressee, ScriptWishes};
use crate::sessions::questions::{self, Ask, Asker};
use crate::talk::DecidedBy;

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub id: RequestId,
    /// `Bash`, `Edit`, `mcp__server__tool`, …: Claude Code's name for it.
    pub tool: String,
    pub input: Value,
    /// Read from tool and input once, by [`Facts::read`].
    pub kind: RequestKind,
    pub digest: Digest,
    pub origin: Origin,
    pub real: RealPath,
    pub asked_at: Millis,
    pub deadline: Millis,
}

/// A request as it was told, before anybody has read what it wants.
#[derive(Debug, Clone)]
pub struct Facts {
    pub id: RequestId,
    pub tool: String,
    pub input: Value,
    pub digest: Digest,
    pub origin: Origin,
    pub real: RealPath,
    pub asked_at: Millis,
    pub deadline: Millis,
}

impl Facts {
    pub fn read(self) -> Request {
        Request {
            kind: RequestKind::of(&self.tool, &self.input, &self.origin),
            id: self.id,
            tool: self.tool,
            input: self.input,
            digest: self.digest,
            origin: self.origin,
            real: self.real,
            asked_at: self.asked_at,
            deadline: self.deadline,
        }
    }
}

/// What a request wants of a person.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestKind {
    /// Leave for a call, with the rules it could leave as far as the call alone
    /// tells: what a file is has to be looked at whenever it counts.
    Permission(Box<Offer>),
    Question(Box<Posed>),
}

/// A question, whoever asks it, and whom, if not the owner.
#[derive(Debug, Clone, PartialEq)]
pub struct Posed {
    pub ask: Ask,
    pub asker: Asker,
    pub to: Option<Addressee>,
}

impl Posed {
    /// The question that a call asks, if it asks one.
    pub fn of(tool: &str, input: &Value) -> Option<Self> {
        let (ask, asker) = questions::of(tool, input)?;
        let to = ScriptWishes::of(tool, input).to;
        Some(Self { ask, asker, to })
    }

    /// Whether a script asks for a yes, which only a tap gives.
    pub fn is_script_confirm(&self) -> bool {
        let confirms = |one: &questions::Question| one.kind == questions::QuestionKind::Confirm;
        self.asker == Asker::Script && self.ask.questions.iter().all(confirms)
    }
}

impl RequestKind {
    fn of(tool: &str, input: &Value, origin: &Origin) -> Self {
        match Posed::of(tool, input) {
            Some(mut posed) => {
                if origin.caller.plain_v1 {
                    posed.ask.withhold_accept_edits();
                }
                Self::Question(Box::new(posed))
            }
            None => Self::Permission(Box::new(rules::offer(call(tool, input, origin)))),
        }
    }
}

impl Request {
    /// The question this is; `None` where it wants leave.
    pub fn question(&self) -> Option<&Posed> {
        match &self.kind {
            RequestKind::Question(posed) => Some(posed),
            RequestKind::Permission(_) => None,
        }
    }

    /// About how many bytes it holds: a question's words stand in its input, in
    /// what is shown, and in what its answer is made of.
    pub fn weight(&self) -> usize {
        let copies = match self.kind {
            RequestKind::Permission(_) => 1,
            RequestKind::Question(_) => 4,
        };
        copies * weight(&self.input)
    }

    /// Moves a request asked after `now` back to `now`: the clock was set back
    /// since. Says whether it moved.
    pub fn pull_back_to(&mut self, now: Millis) -> bool {
        let ahead = (self.asked_at - now).max(0);
        self.asked_at -= ahead;
        self.deadline -= ahead;
        ahead > 0
    }

    /// The same request with another input; its digest is still the old one's.
    #[must_use]
    pub fn with_input(&self, input: Value) -> Self {
        Self {
            kind: RequestKind::of(&self.tool, &input, &self.origin),
            input,
            ..self.clone()
        }
    }
}

impl<'a> From<&'a Request> for RuleCall<'a> {
    fn from(request: &'a Request) -> Self {
        call(&request.tool, &request.input, &request.origin)
    }
}

fn call<'a>(tool: &'a str, input: &'a Value, origin: &'a Origin) -> RuleCall<'a> {
    RuleCall {
        tool,
        input,
        cwd: &origin.cwd,
        project: &origin.project,
        codex: match &origin.caller.agent {
            AskingAgent::ClaudeCode => None,
            AskingAgent::Codex(leaves) => Some(leaves),
        },
        takes_session_rules: !origin.caller.plain_v1,
    }
}

/// About how many bytes a value takes in memory: its text, and what each node
/// costs beside it, which for short ones is many times as much.
pub fn weight(value: &Value) -> usize {
    /// A key's own string and its place in the map.
    const ENTRY: usize = 64;
    let node = size_of::<Value>();
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => node,
        Value::String(text) => node + text.len(),
        Value::Array(items) => node + items.iter().map(weight).sum::<usize>(),
        Value::Object(map) => {
            let entries = map.iter();
            let held = entries.map(|(key, value)| ENTRY + key.len() + weight(value));
            node + held.sum::<usize>()
        }
    }
}

/// Where the file a call names really is, with every link on this machine
/// followed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RealPath {
    /// The call names none, or nobody looked.
    #[default]
    Unasked,
    /// It can't be told.
    Unknown,
    Known {
        path: PathBuf,
        /// The project's own place, by the same reckoning.
        project: PathBuf,
    },
}

impl RealPath {
    /// Whether a link leads from the path of a call to another place, or
    /// nobody knows. The project itself may stand behind one.
    pub fn is_elsewhere(&self, path: &Path, project: &Path) -> bool {
        match self {
            Self::Unasked => false,
            Self::Unknown => true,
            Self::Known {
                path: real,
                project: real_project,
            } => {
                let below = path.strip_prefix(project);
                let same = below.is_ok_and(|below| real_project.join(below) == *real);
                real != path && !same
            }
        }
    }
}

/// Where a request comes from. Shown on the card, never trusted for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub machine: String,
    pub user: String,
    pub project: PathBuf,
    pub cwd: PathBuf,
    pub branch: Option<String>,
    pub session: Option<SessionId>,
    /// The subagent's type when a subagent asks.
    pub agent: Option<String>,
    pub pid: Option<u32>,
    /// Asked by a session nod itself runs: no terminal could answer instead.
    pub hosted: bool,
    pub caller: Caller,
}

/// Which agent asks, which part of it, and where it says how it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caller {
    pub agent: AskingAgent,
    /// The subagent's own id; the main agent has none.
    pub agent_id: Option<String>,
    /// The directory of the agent's own status files.
    pub status_dir: Option<PathBuf>,
    /// Where the agent writes down what became of its calls.
    pub transcript: Option<PathBuf>,
    /// The agent's own process, as its hook was told.
    pub process: Option<u32>,
    /// It has no dialog of its own: what nobody allows is refused.
    pub unattended: bool,
    /// Where it keeps the project's rules, if not in the project itself.
    pub rules_in: Option<PathBuf>,
    /// Its hook speaks protocol v1, which carries no permission updates: no
    /// leave for a session and no change of mode can be delivered.
    pub plain_v1: bool,
}

/// The coding agent a request comes from, with what only that one offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AskingAgent {
    #[default]
    ClaudeCode,
    Codex(Leaves),
}

impl AskingAgent {
    pub const fn kind(&self) -> Agent {
        match self {
            Self::ClaudeCode => Agent::Claude,
            Self::Codex(_) => Agent::Codex,
        }
    }
}

/// SHA-256 of the tool input's canonical JSON: what was shown is what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(input: &Value) -> Self {
        let mut hash = Sha256::new();
        feed(&mut hash, input);
        Self(hash.finalize().into())
    }

    pub fn hex(&self) -> String {
        hex::encode(&self.0)
    }

    /// Eight hex digits: enough for a person to compare two screens.
    pub fn short(&self) -> String {
        self.hex()[..8].to_owned()
    }

    pub fn parse_hex(text: &str) -> Option<Self> {
        hex::decode(text).map(Self)
    }
}

/// Keys in sorted order, so that two writers of the same object agree.
fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            hash.update(b"{");
            for (key, value) in keys {
                feed(hash, &Value::String(key.clone()));
                hash.update(b":");
                feed(hash, value);
                hash.update(b",");
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                feed(hash, item);
                hash.update(b",");
            }
            hash.update(b"]");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            hash.update(value.to_string().as_bytes());
        }
    }
}

/// How a request ended. Every ending is shown on the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Allowed {
        by: Operator,
        reach: Reach,
        /// The terminal interrupted the call at the same moment or later: it
        /// did not run, or not to its end.
        cancelled: bool,
    },
    Denied {
        by: Operator,
        reason: Option<String>,
        interrupt: bool,
    },
    /// A question's answers, in order, in words that can be kept.
    Answered {
        by: Operator,
        answers: Vec<String>,
    },
    /// Settled in the terminal; `allowed` is unknown when only the end of the
    /// turn told us.
    Terminal {
        allowed: Option<bool>,
    },
    /// Allowed in the terminal or by another hook, and it ran.
    Ran(Ran),
    /// Another hook, or a rule, refused it.
    DeniedElsewhere,
    /// Allowed in the terminal, then stopped by a person while it ran.
    Stopped {
        by: Operator,
        since: Millis,
    },
    TimedOut,
    /// The hook's process ended without an answer.
    HookGone,
    /// The daemon restarted and the hook did not come back.
    Orphaned,
    /// Feishu would not carry the card, so the terminal was told to decide.
    /// `why` is for the person at the terminal.
    Undeliverable {
        why: Option<String>,
    },
    /// The session that asked wants no answer any more.
    Dropped {
        why: Dropped,
    },
}

impl Ending {
    /// How long a request that was asked and ended at these times waited, and
    /// how long its call then ran, where that is known.
    pub fn waited_and_ran(&self, asked_at: Millis, at: Millis) -> (Millis, Option<Millis>) {
        let (began, ran) = match self {
            Self::Stopped { since, .. } => (*since, Some(at - since)),
            Self::Ran(ran) => match (ran.since, ran.took) {
                (Some(since), took) => (since, took),
                // Told before it ran, so that it waited until then.
                (None, took) if ran.corrects.is_some() => (at, took),
                (None, took) => (at - took.unwrap_or_default(), took),
            },
            _ => (at, None),
        };
        ((began.min(at) - asked_at).max(0), ran.map(|ran| ran.max(0)))
    }
}

/// What is known of a call that ran.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    /// Who allowed it, once the agent has written that down.
    pub by: Option<DecidedBy>,
    /// When it was allowed, if the agent told.
    pub since: Option<Millis>,
    pub took: Option<Millis>,
    /// What was said of it before, if that was untrue.
    pub corrects: Option<UntrueEnding>,
}

/// An ending that was told and turned out untrue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrueEnding {
    /// Its word, by [`super::record::kind`].
    pub kind: String,
    pub by: Option<Operator>,
}

/// Why a session of nod's own stopped waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// A command came instead of an answer.
    Command,
    /// The task or its process ended first.
    Over,
    /// The daemon stopped, and the task with it.
    Restart,
    /// The agent changed what it asks.
    Changed,
    /// It was allowed, and then the agent's turn was interrupted.
    CutOff,
}

/// How far an allow reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    Once,
    /// Once: its rule was meant to stay and is in no file.
    Unwritten,
    /// Until the agent's turn ends: more than the one call.
    Turn(Vec<Rule>),
    /// Until the agent's session ends.
    Session(Vec<Rule>),
    Always {
        rules: Vec<Rule>,
        /// Set once the rules were taken back from the decided card.
        undone: bool,
    },
}

impl Reach {
    /// Whether every rule it leaves covers one command or one file.
    pub fn is_exact(&self) -> bool {
        match self {
            Self::Once | Self::Unwritten => true,
            Self::Turn(rules) | Self::Session(rules) | Self::Always { rules, .. } => {
                rules.iter().all(Rule::is_exact)
            }
        }
    }
}

/// The person who decided, as Feishu named them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    pub id: UserId,
}

impl Operator {
    /// Whoever held a link of the webhook mode.
    pub const LINK: &str = "(link)";
    /// A callback service that names nobody.
    pub const CALLBACK: &str = "(callback)";

    /// Somebody Feishu did not name.
    pub fn unnamed(word: &'static str) -> Self {
        Self {
            id: UserId::Tenant(word.into()),
        }
    }

    /// Where the decision came from, for the audit.
    pub fn source(&self) -> &'static str {
        match self.id.as_str() {
            Self::LINK => "link",
            Self::CALLBACK => "callback",
            _ => "feishu",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::outcome::sample::request;
    use serde_json::json;

    #[test]
    fn a_request_says_what_it_wants_and_of_whom() {
        let permission = request("Bash", json!({"command": "npm test"}));
        assert_eq!(permission.question(), None);
        let RequestKind::Permission(offer) = &permission.kind else {
            panic!("it asks nothing");
        };
        assert_eq!(**offer, rules::offer(&permission));
        assert!(offer.always.is_ok());
        let asked = json!({"question": "Go?", "kind": "confirm", "to": "ou_colleague"});
        let posed = request("nod_ask", asked.clone());
        let posed = posed.question().expect("a question");
        assert_eq!(posed.asker, Asker::Script);
        let colleague = Addressee::parse("ou_colleague").ok();
        assert_eq!(posed.to, colleague);
        // Only a script chooses whom it asks, and words in a command are none.
        let spoofed = request("Bash", asked);
        assert_eq!(spoofed.question(), None);
        let plan = request(
            "ExitPlanMode",
            json!({"plan": "1. Do", "to": "ou_colleague"}),
        );
        let plan = plan.question().expect("a question");
        assert!(plan.ask.is_plan() && plan.to.is_none());
    }

    #[test]
    fn another_input_is_read_anew() {
        let asked = request("nod_ask", json!({"question": "Go?", "kind": "confirm"}));
        assert!(asked.weight() > weight(&asked.input));
        let emptied = asked.with_input(Value::Null);
        assert_eq!(emptied.question(), None);
        assert_eq!(emptied.weight(), weight(&Value::Null));
    }

    #[test]
    fn the_digest_ignores_key_order_and_nothing_else() {
        let a = Digest::of(&json!({"command": "ls", "timeout": 1}));
        assert_eq!(a, Digest::of(&json!({"timeout": 1, "command": "ls"})));
        assert_ne!(a, Digest::of(&json!({"command": "ls ", "timeout": 1})));
        assert_ne!(
            Digest::of(&json!({"a": ["b", "c"]})),
            Digest::of(&json!({"a": ["b"], "c": 0})),
        );
    }

    #[test]
    fn the_digest_outlives_a_way_through_text() {
        for number in [
            "98446744073709551616",
            "0.1",
            "5e-324",
            "1.7976931348623157e308",
        ] {
            let input: Value = serde_json::from_str(number).unwrap();
            let again: Value = serde_json::from_str(&input.to_string()).unwrap();
            assert_eq!(Digest::of(&input), Digest::of(&again), "{number}");
        }
    }

    #[test]
    fn the_digest_reads_back_from_its_hex() {
        let digest = Digest::of(&json!({"command": "ls"}));
        assert_eq!(Digest::parse_hex(&digest.hex()), Some(digest));
        assert_eq!(digest.short().len(), 8);
        assert!(digest.hex().starts_with(&digest.short()));
        for bad in ["zz", &"é".repeat(32), &"+1".repeat(32)] {
            assert_eq!(Digest::parse_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_audit_tells_a_named_person_from_a_link_and_a_callback() {
        let ann = Operator {
            id: UserId::parse("ou_ann").unwrap(),
        };
        for (by, source) in [
            (Operator::unnamed(Operator::LINK), "link"),
            (Operator::unnamed(Operator::CALLBACK), "callback"),
            (ann, "feishu"),
        ] {
            assert_eq!(by.source(), source);
        }
    }

    #[test]
    fn the_weight_of_an_input_is_its_text_and_what_each_node_costs() {
        let node = size_of::<Value>();
        for (input, held) in [
            (json!(null), node),
            (json!("four"), node + 4),
            (json!([true, 7, "four"]), 4 * node + 4),
            (json!({"key": "four", "k": null}), 3 * node + 2 * 64 + 8),
        ] {
            assert_eq!(weight(&input), held, "{input}");
        }
    }

    #[test]
    fn a_link_leads_elsewhere_unless_the_whole_project_stands_behind_it() {
        let known = |path: &str, project: &str| RealPath::Known {
            path: path.into(),
            project: project.into(),
        };
        for (real, is_elsewhere) in [
            (RealPath::Unasked, false),
            (RealPath::Unknown, true),
            (known("/p/a", "/p"), false),
            (known("/p/a", "/disk/p"), false),
            (known("/disk/p/a", "/disk/p"), false),
            (known("/etc/a", "/p"), true),
        ] {
            let found = real.is_elsewhere(Path::new("/p/a"), Path::new("/p"));
            assert_eq!(found, is_elsewhere, "{real:?}");
        }
    }

    #[test]
    fn each_agent_has_its_words() {
        let codex = AskingAgent::Codex(Leaves::default());
        for (agent, words) in [
            (
                AskingAgent::ClaudeCode,
                ["Claude Code", "Claude", "claude", "claude --resume"],
            ),
            (codex, ["Codex", "Codex", "codex", "codex resume"]),
        ] {
            let agent = agent.kind();
            let said = [agent.name(), agent.short(), agent.word(), agent.resume()];
            assert_eq!(said, words);
        }
    }
}
