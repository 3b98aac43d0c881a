//! Claude Code's permission rules: the exact one an "always" would leave, the
//! wider one that is a choice of its own, or the reason why none is safe. What
//! Claude Code proposes plays no part. Reads no files: what a path is on this
//! machine is told by whoever may look. A rule that can't be shown whole is
//! never made.

use serde_json::Value;
use std::path::{Path, PathBuf};
use url::{Host, Url};

use crate::text::{escape, secrets};
use codex::{ANY_CHANGE, GRANTED, Granted, PREFIX_RULE, SAME_AGAIN};

pub mod codex;
mod command;
mod mcp;
pub(crate) mod path;
mod programs;

/// `Tool(content)`, or the bare tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    pub tool: String,
    pub content: Option<String>,
}

/// Why a text is not a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    #[error("the tool's name is missing or holds a character no tool has")]
    Tool,
    #[error("the content is empty")]
    Empty,
    #[error("the parentheses are not paired")]
    Unpaired,
}

/// Why no rule is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRule {
    /// No rule of this tool is exact enough.
    Tool,
    /// Its only rule covers any input.
    AnyInput,
    Input,
    /// Line breaks, control or invisible characters, long runs of blanks.
    Unseen,
    TooLong,
    Secret,
    Wildcard,
    Unpaired,
    Compound,
    Expansion,
    Runner,
    /// It takes orders from its standard input, which a rule does not hold.
    Stdin,
    /// Nobody has looked at what it does with its standard input.
    UnknownProgram,
    Sensitive,
    OutsideProject,
    /// No regular file by that very path: a rule for a directory covers all
    /// that is in it.
    NotAFile,
    /// No host with a public name.
    Host,
    /// The agent keeps no rule for one call alone.
    Agent,
    /// Every later command could do more.
    Widens,
}

/// What the path a call names is on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathKind {
    #[default]
    Unknown,
    /// A regular file, and no symbolic link leads to it.
    File,
    /// A directory, a link, something else, or nothing.
    Other,
}

/// What a rule covers, as its sentence says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers<'a> {
    Command(&'a str),
    /// Any command that begins with these words.
    Beginning(&'a str),
    /// Any change of this file.
    Change(&'a str),
    Read(&'a str),
    /// Any address of this host.
    Host(&'a str),
    AnySearch,
    /// Any input of this tool.
    Tool(&'a str),
    /// Codex: any command that begins with these words, wherever.
    Prefix(&'a str),
    /// Codex: what it takes for the same again.
    Same,
    /// Codex: any later change of this file.
    LaterChange(&'a str),
    /// Codex: a permission of every command.
    Granted(Granted<'a>),
    /// Of an older nod, which took Claude Code's proposals.
    Pattern,
}

/// The rules a click may leave behind, each of them shown on the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// For [`LOCAL_SETTINGS`]: this very call, and nothing else.
    pub always: Result<Vec<Rule>, NoRule>,
    /// Until the Claude Code session ends: the same, or what `wider` covers
    /// where no rule is exact.
    pub session: Result<Vec<Rule>, NoRule>,
    /// For [`LOCAL_SETTINGS`]: more than this call, and all of it harmless.
    pub wider: Option<Vec<Rule>>,
    /// What a plain allow permits until the agent's turn ends, where it is more
    /// than one call.
    pub turn: Vec<Rule>,
}

impl Offer {
    /// For what is no call that could be allowed again.
    pub const NONE: Self = Self {
        always: Err(NoRule::Tool),
        session: Err(NoRule::Tool),
        wider: None,
        turn: Vec::new(),
    };
}

/// The call a rule is made for, and where it would run.
#[derive(Debug, Clone, Copy)]
pub struct RuleCall<'a> {
    pub tool: &'a str,
    pub input: &'a Value,
    pub cwd: &'a Path,
    pub project: &'a Path,
    /// What Codex says a yes would leave, where Codex asks.
    pub codex: Option<&'a Leaves>,
    /// Whether a rule for its session can be delivered to who asks.
    pub takes_session_rules: bool,
}

/// What a yes may leave with an agent that says so itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leaves {
    /// It would not ask again for the same until its session ends.
    pub session: bool,
    /// It would run every command that begins with these words.
    pub prefix: Vec<String>,
}

/// Where "always" is kept: in the repository's root, or in the directory that
/// Claude Code was started in when there is no repository.
pub const LOCAL_SETTINGS: &str = ".claude/settings.local.json";

/// A rule longer than this is no longer read before it is agreed to.
const MAX_CONTENT: usize = 512;
/// More input than this may not be shown whole on a card.
const MAX_INPUT: usize = 6 * 1024;
/// A host longer than this would be cut in the toast.
const MAX_HOST: usize = 72;

impl Rule {
    pub fn new(tool: &str, content: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            content: Some(content.to_owned()),
        }
    }

    pub fn bare(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            content: None,
        }
    }

    /// The text that stands in a settings file.
    pub fn render(&self) -> String {
        let Some(content) = &self.content else {
            return self.tool.clone();
        };
        let mut out = String::with_capacity(self.tool.len() + content.len() + 2);
        out.push_str(&self.tool);
        out.push('(');
        for c in content.chars() {
            if matches!(c, '\\' | '(' | ')') {
                out.push('\\');
            }
            out.push(c);
        }
        out.push(')');
        out
    }

    pub fn covers(&self) -> Covers<'_> {
        let content = self.content.as_deref();
        match (&*self.tool, content) {
            ("Bash", Some(command)) if !command.contains('*') => Covers::Command(command),
            ("Bash", Some(pattern)) => pattern
                .strip_suffix(" *")
                .filter(|beginning| !beginning.contains('*'))
                .map_or(Covers::Pattern, Covers::Beginning),
            ("Edit", Some(path)) => file(path).map_or(Covers::Pattern, Covers::Change),
            ("Read", Some(path)) => file(path).map_or(Covers::Pattern, Covers::Read),
            ("WebFetch", Some(content)) => content
                .strip_prefix("domain:")
                .map_or(Covers::Pattern, Covers::Host),
            ("WebSearch", None) => Covers::AnySearch,
            (PREFIX_RULE, Some(words)) => Covers::Prefix(words),
            (SAME_AGAIN, None) => Covers::Same,
            (ANY_CHANGE, Some(path)) => Covers::LaterChange(path),
            (GRANTED, Some(content)) => {
                Granted::parse(content).map_or(Covers::Pattern, Covers::Granted)
            }
            (tool, None) if tool.starts_with("mcp__") => Covers::Tool(tool),
            _ => Covers::Pattern,
        }
    }

    /// Whether it covers what was asked, again, and nothing besides.
    pub fn is_same_call(&self) -> bool {
        matches!(self.covers(), Covers::Command(_) | Covers::Read(_))
    }

    /// Whether it covers one command or one file.
    pub fn is_exact(&self) -> bool {
        matches!(
            self.covers(),
            Covers::Command(_) | Covers::Change(_) | Covers::Read(_)
        )
    }

    /// Reads what Claude Code reads: escaped parentheses, or paired bare ones.
    pub fn parse(text: &str) -> Result<Self, BadRule> {
        let Some((tool, rest)) = text.split_once('(') else {
            return is_tool(text).then(|| Self::bare(text)).ok_or(BadRule::Tool);
        };
        if !is_tool(tool) {
            return Err(BadRule::Tool);
        }
        let mut content = String::with_capacity(rest.len());
        let mut depth = 0_usize;
        let mut chars = rest.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.clone().next() {
                    Some(escaped @ ('\\' | '(' | ')')) => {
                        content.push(escaped);
                        chars.next();
                    }
                    _ => content.push('\\'),
                },
                ')' if depth == 0 => {
                    let closed = chars.as_str().is_empty();
                    return match (closed, content.is_empty()) {
                        (false, _) => Err(BadRule::Unpaired),
                        (true, true) => Err(BadRule::Empty),
                        (true, false) => Ok(Self {
                            tool: tool.to_owned(),
                            content: Some(content),
                        }),
                    };
                }
                _ => {
                    match c {
                        '(' => depth += 1,
                        ')' => depth -= 1,
                        _ => {}
                    }
                    content.push(c);
                }
            }
        }
        Err(BadRule::Unpaired)
    }
}

/// The path of a file rule; one with a pattern in it is not a file.
fn file(content: &str) -> Option<&str> {
    let path = content.strip_prefix('/')?;
    (path.starts_with('/') && !path.contains('*')).then_some(path)
}

fn is_tool(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RuleReach {
    Session,
    Always,
}

/// The rules that may be offered for this call by whoever knows nothing of
/// the machine: none for a file.
pub fn offer<'a>(call: impl Into<RuleCall<'a>>) -> Offer {
    offer_here(call, PathKind::Unknown)
}

/// The rules that may be offered for this call, whose file is `found` so.
pub fn offer_here<'a>(call: impl Into<RuleCall<'a>>, found: PathKind) -> Offer {
    let call = call.into();
    if let Some(leaves) = call.codex {
        return codex::offer(call, leaves);
    }
    let common = presentable(call.input);
    let sound = |rule: Rule| match Rule::parse(&rule.render()) {
        Ok(read) if read == rule => Ok(vec![rule]),
        _ => Err(NoRule::Unpaired),
    };
    let exact = |reach| {
        common?;
        sound(exact(call, reach, found)?)
    };
    let wider = common.and_then(|()| wider(call)).and_then(sound);
    Offer {
        always: exact(RuleReach::Always),
        session: match exact(RuleReach::Session) {
            _ if !call.takes_session_rules => Err(NoRule::Agent),
            Err(NoRule::AnyInput) => wider.clone(),
            exact => exact,
        },
        wider: wider.ok(),
        turn: Vec::new(),
    }
}

/// The path a call names, as a rule for it would.
pub fn file_named<'a>(call: impl Into<RuleCall<'a>>) -> Option<PathBuf> {
    let call = call.into();
    let named = match call.tool {
        "Edit" | "MultiEdit" | "Write" | "Read" => field(call, "file_path").ok()?,
        _ => return None,
    };
    Some(path::resolve(call.cwd, named))
}

fn exact(call: RuleCall<'_>, reach: RuleReach, found: PathKind) -> Result<Rule, NoRule> {
    match call.tool {
        "Bash" => command::rule(call, reach),
        "Edit" | "MultiEdit" | "Write" => file_rule(call, "Edit", reach, found),
        "Read" => file_rule(call, "Read", reach, found),
        "WebFetch" | "WebSearch" => Err(NoRule::AnyInput),
        tool if tool.starts_with("mcp__") => Err(NoRule::AnyInput),
        _ => Err(NoRule::Tool),
    }
}

fn wider(call: RuleCall<'_>) -> Result<Rule, NoRule> {
    match call.tool {
        "Bash" => command::wider(call).ok_or(NoRule::AnyInput),
        "WebFetch" => domain_rule(call),
        "WebSearch" => Ok(Rule::bare("WebSearch")),
        tool if mcp::is_harmless(tool) => Ok(Rule::bare(tool)),
        _ => Err(NoRule::AnyInput),
    }
}

/// Whether the whole input can stand on a card and holds no credential.
fn presentable(input: &Value) -> Result<(), NoRule> {
    let mut left = MAX_INPUT;
    let mut open = vec![input];
    while let Some(value) = open.pop() {
        let weight = match value {
            Value::String(text) => text.len(),
            Value::Object(map) => {
                open.extend(map.values());
                map.keys().map(String::len).sum()
            }
            Value::Array(items) => {
                open.extend(items);
                items.len()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        };
        left = left.checked_sub(weight).ok_or(NoRule::TooLong)?;
        if let Value::String(text) = value
            && secrets::holds_one(text)
        {
            return Err(NoRule::Secret);
        }
    }
    Ok(())
}

fn field<'a>(call: RuleCall<'a>, name: &str) -> Result<&'a str, NoRule> {
    match call.input.get(name).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(NoRule::Input),
    }
}

/// A text that can stand in a rule and looks on the card exactly as it is.
fn writable(text: &str) -> Result<(), NoRule> {
    if text.len() > MAX_CONTENT {
        Err(NoRule::TooLong)
    } else if !escape::is_plain(text) {
        Err(NoRule::Unseen)
    } else if text.contains('*') {
        Err(NoRule::Wildcard)
    } else {
        Ok(())
    }
}

/// An edit rule covers `Write`, and only two slashes make a path absolute. A
/// path that is a directory, or becomes one, covers everything below it.
fn file_rule(
    call: RuleCall<'_>,
    tool: &str,
    reach: RuleReach,
    found: PathKind,
) -> Result<Rule, NoRule> {
    writable(field(call, "file_path")?)?;
    let path = file_named(call).ok_or(NoRule::Input)?;
    let text = path.to_str().ok_or(NoRule::Unseen)?;
    writable(text)?;
    // The matcher reads paths like an ignore file does.
    if text.contains(['?', '[', ']', '{', '}', '!', '#', '\\']) || text.ends_with(['/', ' ']) {
        return Err(NoRule::Wildcard);
    }
    let inside = path::is_inside(&path, call.project);
    let runs = tool == "Edit" && path::decides_what_runs(&path);
    if runs || path::is_sensitive(&path) || (!inside && path::is_sensitive_outside(&path)) {
        return Err(NoRule::Sensitive);
    }
    if reach == RuleReach::Always && !inside {
        return Err(NoRule::OutsideProject);
    }
    if found != PathKind::File || call.project.starts_with(&path) {
        return Err(NoRule::NotAFile);
    }
    Ok(Rule::new(tool, &format!("/{text}")))
}

/// Covers every address of the host, over any port. An address without a name,
/// or with one that only this network knows, gets no rule.
fn domain_rule(call: RuleCall<'_>) -> Result<Rule, NoRule> {
    let text = field(call, "url")?;
    writable(text)?;
    let url = Url::parse(text).map_err(|_| NoRule::Input)?;
    let plain = url.username().is_empty() && url.password().is_none();
    if !plain || !matches!(url.scheme(), "http" | "https") {
        return Err(NoRule::Input);
    }
    let Some(Host::Domain(host)) = url.host() else {
        return Err(NoRule::Host);
    };
    if host.len() > MAX_HOST {
        return Err(NoRule::TooLong);
    }
    let dotted = host.contains('.')
        && !host.ends_with('.')
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'));
    let last = host.rsplit('.').next().unwrap_or("");
    let public = !matches!(
        last,
        "arpa" | "corp" | "home" | "internal" | "intranet" | "lan" | "local" | "localhost"
    );
    // `xn--…` may look like any other name.
    if !dotted || !public || host.split('.').any(|label| label.starts_with("xn--")) {
        return Err(NoRule::Host);
    }
    Ok(Rule::new("WebFetch", &format!("domain:{host}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::request::{Caller, Digest, Facts, Origin, RealPath, Request};
    use crate::ids::RequestId;
    use proptest::prelude::*;
    use serde_json::json;

    fn request(tool: &str, input: Value) -> Request {
        Facts {
            id: RequestId::parse("r1").unwrap(),
            tool: tool.to_owned(),
            digest: Digest::of(&input),
            input,
            origin: Origin {
                machine: "mbp".to_owned(),
                user: "lin".to_owned(),
                project: "/home/lin/shop".into(),
                cwd: "/home/lin/shop/src".into(),
                branch: None,
                session: None,
                agent: None,
                pid: None,
                hosted: false,
                caller: Caller::default(),
            },
            real: RealPath::Unasked,
            asked_at: 0,
            deadline: 0,
        }
        .read()
    }

    fn bash(command: &str) -> Offer {
        offer(&request("Bash", json!({"command": command})))
    }

    fn here(tool: &str, input: Value) -> Offer {
        offer_here(&request(tool, input), PathKind::File)
    }

    fn texts(rules: &Result<Vec<Rule>, NoRule>) -> Result<Vec<String>, NoRule> {
        rules
            .as_ref()
            .map(|rules| rules.iter().map(Rule::render).collect())
            .map_err(|why| *why)
    }

    #[test]
    fn rules_read_and_write_as_claude_code_does() {
        for (text, tool, content) in [
            ("WebSearch", "WebSearch", None),
            ("mcp__my-echo__echo", "mcp__my-echo__echo", None),
            ("Bash(npm run *)", "Bash", Some("npm run *")),
            (
                r"Bash(git commit -m 'x \(y\)')",
                "Bash",
                Some("git commit -m 'x (y)'"),
            ),
            (r"Bash(echo a\\b)", "Bash", Some(r"echo a\b")),
        ] {
            let rule = Rule {
                tool: tool.to_owned(),
                content: content.map(str::to_owned),
            };
            assert_eq!(Rule::parse(text).as_ref(), Ok(&rule));
            assert_eq!(rule.render(), text);
        }
        let bare_parentheses = Rule::parse("Bash(git commit -m 'x (y)')");
        assert_eq!(
            bare_parentheses,
            Ok(Rule::new("Bash", "git commit -m 'x (y)'"))
        );
    }

    #[test]
    fn what_a_rule_covers_is_told_apart() {
        for (text, covers, is_same, is_exact) in [
            ("Bash(ls -l)", Covers::Command("ls -l"), true, true),
            (
                "Bash(npm run *)",
                Covers::Beginning("npm run"),
                false,
                false,
            ),
            ("Bash(npm * run)", Covers::Pattern, false, false),
            ("Edit(//a/b)", Covers::Change("/a/b"), false, true),
            ("Read(//a/b)", Covers::Read("/a/b"), true, true),
            ("Read(//a/*)", Covers::Pattern, false, false),
            ("WebFetch(domain:a.b)", Covers::Host("a.b"), false, false),
            ("WebSearch", Covers::AnySearch, false, false),
            ("mcp__a__b", Covers::Tool("mcp__a__b"), false, false),
            (
                "prefix_rule(npm test)",
                Covers::Prefix("npm test"),
                false,
                false,
            ),
            ("codex_session", Covers::Same, false, false),
            ("Bash", Covers::Pattern, false, false),
        ] {
            let rule = Rule::parse(text).unwrap();
            assert_eq!(rule.covers(), covers, "{text}");
            let told = (rule.is_same_call(), rule.is_exact());
            assert_eq!(told, (is_same, is_exact), "{text}");
        }
    }

    #[test]
    fn codex_is_offered_what_it_would_leave_and_no_wider_than_is_harmless() {
        let offered = |command: &str, session, prefix: &[&str]| {
            let input = json!({"command": command});
            let leaves = Leaves {
                session,
                prefix: prefix.iter().map(|word| (*word).to_owned()).collect(),
            };
            let offer = offer(RuleCall {
                tool: "Bash",
                input: &input,
                cwd: Path::new("/home/lin/shop"),
                project: Path::new("/home/lin/shop"),
                codex: Some(&leaves),
                takes_session_rules: true,
            });
            assert_eq!(offer.always, Err(NoRule::Agent), "{command}");
            let wider = offer.wider.map(|rules| texts(&Ok(rules)).unwrap());
            (texts(&offer.session), wider)
        };
        let same = || Ok(vec![SAME_AGAIN.to_owned()]);
        let prefix = |words: &str| Some(vec![format!("{PREFIX_RULE}({words})")]);
        let run = "git count-objects -v";
        let begins = offered(run, true, &["git", "count-objects"]);
        assert_eq!(begins, (same(), prefix("git count-objects")));
        let longer = offered(run, false, &["git", "count-objects", "-v"]);
        assert_eq!(longer, (Err(NoRule::Agent), prefix(run)));
        for more in ["a b", "", "$(x)", &"x".repeat(MAX_CONTENT)] {
            let words = ["git", "count-objects", more];
            assert_eq!(offered(run, true, &words), (same(), None), "{more}");
        }
        for words in [&["git"][..], &["git", "count-objectss"]] {
            assert_eq!(offered(run, true, words), (same(), None), "{words:?}");
        }
        let long = format!("{run} {}", "x".repeat(MAX_INPUT));
        let long = offered(&long, true, &["git", "count-objects"]);
        assert_eq!(long, (Err(NoRule::TooLong), None));
        assert_eq!(offered("rm -r a", true, &["rm"]), (same(), None));
    }

    #[test]
    fn a_file_that_decides_what_runs_may_be_read_again_and_not_changed() {
        let path = json!({"file_path": "/home/lin/shop/Makefile"});
        let changed = here("Edit", path.clone());
        assert_eq!(changed.session, Err(NoRule::Sensitive));
        assert!(here("Read", path).session.is_ok());
    }

    #[test]
    fn broken_rules_are_refused() {
        for (text, why) in [
            ("", BadRule::Tool),
            ("(x)", BadRule::Tool),
            ("Ba sh(x)", BadRule::Tool),
            ("mcp__x__*", BadRule::Tool),
            ("Bash()", BadRule::Empty),
            ("Bash(x", BadRule::Unpaired),
            ("Bash(x))", BadRule::Unpaired),
            ("Bash(x)y", BadRule::Unpaired),
            (r"Bash(x\)", BadRule::Unpaired),
            ("Bash((x)", BadRule::Unpaired),
        ] {
            assert_eq!(Rule::parse(text), Err(why), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_rule_reads_back(tool in "[A-Za-z][A-Za-z0-9_.-]{0,20}", content in ".{1,60}") {
            let rule = Rule::new(&tool, &content);
            prop_assert_eq!(Rule::parse(&rule.render()), Ok(rule));
        }

        #[test]
        fn reading_any_text_ends(text in any::<String>()) {
            if let Ok(rule) = Rule::parse(&text) {
                prop_assert_eq!(Rule::parse(&rule.render()), Ok(rule));
            }
        }
    }

    #[test]
    fn an_always_is_the_exact_command_and_nothing_else() {
        for command in [
            "git config user.name lin",
            "npm run build",
            "npm test",
            "git commit -m 'x (y)'",
            "cargo test --lib 2>&1",
            "NODE_ENV=test npm run build",
            "./build.sh --fast",
            "python3 x.py",
            "python3 -m pytest -q",
            "docker compose up -d",
        ] {
            let offer = bash(command);
            let exact = Ok(vec![Rule::new("Bash", command)]);
            assert_eq!(
                (&offer.always, &offer.session),
                (&exact, &exact),
                "{command}"
            );
            assert_eq!(offer.wider, None, "{command}");
        }
    }

    #[test]
    fn a_wider_rule_is_offered_for_harmless_beginnings_only() {
        let wider = |command: &str| bash(command).wider.map(|rules| rules[0].render());
        for (command, rule) in [
            ("git count-objects", "Bash(git count-objects *)"),
            ("git count-objects -v", "Bash(git count-objects *)"),
            ("git check-ref-format x", "Bash(git check-ref-format *)"),
        ] {
            assert_eq!(wider(command).as_deref(), Some(rule), "{command}");
        }
        for command in [
            "git log --oneline",
            "git diff",
            "git status",
            "git config user.name lin",
            "git count-objectsx",
            "git  count-objects -v",
            "git 'count-objects' -v",
            "git count-objects -v | sh",
            "git count-objects $X",
            "LANG=C git count-objects -v",
            "git count-objects -v ../../x",
            "rg x",
            "sort x",
            "cat x",
            "ls",
            "npm run build",
            "docker ps",
        ] {
            assert_eq!(wider(command), None, "{command}");
        }
    }

    #[test]
    fn what_takes_orders_from_its_input_gets_no_rule() {
        for command in [
            "psql shop",
            "/usr/bin/psql shop",
            "./psql shop",
            "sqlite3 x.db",
            "mysql shop",
            "patch -p1",
            "git apply",
            "git am",
            "git commit",
            "git commit --amend",
            "git commit -Smykey",
            "git rebase -i main",
            "git add -p",
            "git apply x.diff",
            "git update-ref --stdin",
            "make -f -",
            "make -f-",
            "kubectl apply -f -",
            "docker build -",
            "curl -d @- example.com",
            "curl telnet://example.com",
            "tar xz",
            "tee x",
            "dd of=x",
            "sort -o x",
            "bc",
            "ed x",
            "vim x",
            "sed e",
            "awk 1",
            "python3 manage.py shell",
            "rails console",
            "pytest --pdb",
            "cat /dev/stdin",
            "cp /proc/self/fd/0 x",
        ] {
            let why = bash(command).session.unwrap_err();
            assert!(
                matches!(why, NoRule::Stdin | NoRule::UnknownProgram),
                "{command}: {why:?}"
            );
        }
        for command in [
            "terraform apply",
            "frobnicate x",
            "npm login",
            "cargo login",
            "gh api x",
            "kubectl apply -f x",
        ] {
            assert_eq!(
                bash(command).session,
                Err(NoRule::UnknownProgram),
                "{command}"
            );
        }
        for command in [
            "python3",
            "python3 -i x.py",
            "python3 -X utf8",
            "python3 -m code",
            "node",
            "node inspect",
            "bun run -e x",
            "php artisan tinker",
        ] {
            assert_eq!(bash(command).session, Err(NoRule::Runner), "{command}");
        }
    }

    #[test]
    fn a_password_among_the_arguments_stands_in_no_rule() {
        for command in [
            "curl -u lin:pass example.com",
            "curl -ulin:pass example.com",
            "curl --user lin:pass example.com",
            "curl --user=lin:pass example.com",
            "curl -H 'Authorization: Basic abc' example.com",
            "mysql -psecret shop",
            "mysqldump -psecret shop",
            "wget --password=x example.com",
            "PGPASSWORD=x npm test",
            "API_TOKEN=x npm test",
        ] {
            assert_eq!(bash(command).session, Err(NoRule::Secret), "{command}");
        }
        assert!(bash("git log --author=lin").always.is_ok());
    }

    #[test]
    fn commands_without_a_safe_rule_say_why() {
        let long = format!("echo {}", "x".repeat(600));
        for (command, why) in [
            ("ls\nrm x", NoRule::Unseen),
            ("ls\tx", NoRule::Unseen),
            ("ls \u{202e}x", NoRule::Unseen),
            ("ls     x", NoRule::Unseen),
            ("echo “x”", NoRule::Unseen),
            (&long, NoRule::TooLong),
            ("ls *.txt", NoRule::Wildcard),
            ("npm run:*", NoRule::Wildcard),
            ("make --token 8f14e45fceea167a", NoRule::Secret),
            ("make CC=bash", NoRule::Runner),
            ("echo 'x", NoRule::Unpaired),
            ("echo )x", NoRule::Unpaired),
            ("echo $X", NoRule::Expansion),
            ("cat {/etc,/opt}/x", NoRule::Expansion),
            ("/bin/s[h] x", NoRule::Expansion),
            ("/bin/s? x", NoRule::Expansion),
            ("make && make b", NoRule::Compound),
            ("make > b", NoRule::Compound),
            ("bash -c ls", NoRule::Runner),
            ("ls && sudo x", NoRule::Runner),
            ("A=1 sudo x", NoRule::Runner),
            ("A+=1 sudo x", NoRule::Runner),
            ("A[0]=1/2 sudo x", NoRule::Expansion),
            ("=sudo x", NoRule::Runner),
            ("cat .git/config", NoRule::Sensitive),
            ("cp x --to=.claude/settings.json", NoRule::Sensitive),
            ("cat ~/notes", NoRule::OutsideProject),
            ("cat ../../other/x", NoRule::OutsideProject),
            ("make -o/opt/x", NoRule::OutsideProject),
            ("make --dir=/opt/x", NoRule::OutsideProject),
            ("", NoRule::Input),
        ] {
            assert_eq!(bash(command).always, Err(why), "{command:?}");
        }
        assert!(bash("cat ../Cargo.toml").always.is_ok());
        assert!(bash("jq '.[0] | {a}?' x").always.is_ok());
        assert!(bash("cat /home/lin/shop/x").always.is_ok());
    }

    #[test]
    fn outside_the_project_a_session_is_as_far_as_it_goes() {
        let outside = bash("cat /opt/notes");
        assert_eq!(outside.always, Err(NoRule::OutsideProject));
        assert_eq!(
            texts(&outside.session),
            Ok(vec!["Bash(cat /opt/notes)".to_owned()])
        );
        for tool in ["Edit", "Read"] {
            let file = here(tool, json!({"file_path": "/opt/x"}));
            assert_eq!(file.always, Err(NoRule::OutsideProject));
            assert_eq!(texts(&file.session), Ok(vec![format!("{tool}(//opt/x)")]));
        }
        assert_eq!(bash("sudo ls").session, Err(NoRule::Runner));
    }

    #[test]
    fn where_a_command_runs_decides_what_is_inside() {
        for (cwd, command, expected) in [
            ("/home/lin/shop", "ls src", Ok(())),
            ("/home/lin/shop", "ls ..", Err(NoRule::OutsideProject)),
            ("/home/lin/shop/src", "ls ..", Ok(())),
            ("/home/lin/shop", "git fetch https://a.example/x", Ok(())),
            ("/home/lin", "ls src", Err(NoRule::OutsideProject)),
            ("/opt", "ls src", Err(NoRule::OutsideProject)),
        ] {
            let mut asked = request("Bash", json!({"command": command}));
            asked.origin.cwd = cwd.into();
            let always = offer(&asked).always.map(drop);
            assert_eq!(always, expected, "{command} in {cwd}");
        }
    }

    #[test]
    fn a_file_gets_its_exact_rule_or_none() {
        let ok = |rule: &str| Ok(vec![rule.to_owned()]);
        let file = |path: &str| json!({"file_path": path, "content": "x"});
        for (tool, input, expected) in [
            (
                "Write",
                file("/home/lin/shop/a.txt"),
                ok("Edit(//home/lin/shop/a.txt)"),
            ),
            ("Edit", file("b.txt"), ok("Edit(//home/lin/shop/src/b.txt)")),
            ("Read", file("b.txt"), ok("Read(//home/lin/shop/src/b.txt)")),
            (
                "MultiEdit",
                file("/home/lin/shop/x/../a (1).txt"),
                ok(r"Edit(//home/lin/shop/a \(1\).txt)"),
            ),
            (
                "Edit",
                file("/home/lin/shop/.claude/settings.json"),
                Err(NoRule::Sensitive),
            ),
            (
                "Write",
                file("/home/lin/shop/.git/hooks/pre-push"),
                Err(NoRule::Sensitive),
            ),
            (
                "Write",
                file("/home/lin/shop/../.bashrc"),
                Err(NoRule::Sensitive),
            ),
            (
                "Write",
                file("/home/lin/shop/../x"),
                Err(NoRule::OutsideProject),
            ),
            ("Write", file("/home/lin/shop/*"), Err(NoRule::Wildcard)),
            ("Write", file("/home/lin/shop/[ab]"), Err(NoRule::Wildcard)),
            ("Write", json!({"content": "x"}), Err(NoRule::Input)),
            (
                "Write",
                json!({"file_path": "/home/lin/shop/a", "content": "x".repeat(7_000)}),
                Err(NoRule::TooLong),
            ),
            ("NotebookEdit", json!({}), Err(NoRule::Tool)),
            ("Task", json!({"prompt": "x"}), Err(NoRule::Tool)),
        ] {
            let offer = here(tool, input.clone());
            assert_eq!(texts(&offer.always), expected, "{tool} {input}");
            assert_eq!(offer.wider, None);
        }
    }

    #[test]
    fn no_rule_of_any_reach_is_for_a_directory_or_what_nobody_looked_at() {
        for tool in ["Read", "Edit", "Write", "MultiEdit"] {
            for path in [
                "/home/lin",
                "/home/lin/shop",
                "/home/lin/shop/a",
                "/",
                "/opt",
                "/opt/x",
            ] {
                let asked = request(tool, json!({"file_path": path}));
                for found in [PathKind::Unknown, PathKind::Other] {
                    let offer = offer_here(&asked, found);
                    assert!(
                        offer.always.is_err() && offer.session.is_err(),
                        "{tool} {path}"
                    );
                }
            }
            // Whatever is said of it, the project is not in a file.
            for path in ["/home/lin", "/home/lin/shop", "/"] {
                let offer = here(tool, json!({"file_path": path}));
                assert!(
                    offer.always.is_err() && offer.session.is_err(),
                    "{tool} {path}"
                );
            }
        }
    }

    #[test]
    fn outside_of_the_project_what_may_be_secret_gets_no_rule() {
        for path in [
            "/home/lin/.ssh/id_rsa",
            "/home/lin/.netrc",
            "/home/lin/.hidden/x",
            "/home/lin/backup/id_ed25519",
            "/home/lin/aws-credentials.csv",
            "/home/lin/server.pem",
            "/home/lin/prod.env",
            "/etc/hosts",
            "/proc/self/environ",
        ] {
            for tool in ["Read", "Edit"] {
                let offer = here(tool, json!({"file_path": path}));
                assert_eq!(offer.session, Err(NoRule::Sensitive), "{tool} {path}");
            }
        }
    }

    #[test]
    fn a_rule_for_any_input_is_never_an_always() {
        let url = |url: &str| json!({"url": url, "prompt": "x"});
        for (tool, input, rule) in [
            (
                "WebFetch",
                url("https://docs.example.com/a?b"),
                Ok("WebFetch(domain:docs.example.com)"),
            ),
            (
                "WebFetch",
                url("https://good.example@evil.example/"),
                Err(NoRule::Input),
            ),
            (
                "WebFetch",
                url("http://169.254.169.254/x"),
                Err(NoRule::Host),
            ),
            ("WebFetch", url("http://127.1/x"), Err(NoRule::Host)),
            ("WebFetch", url("http://[::1]/x"), Err(NoRule::Host)),
            ("WebFetch", url("http://localhost/x"), Err(NoRule::Host)),
            (
                "WebFetch",
                url("http://shop.localhost/x"),
                Err(NoRule::Host),
            ),
            ("WebFetch", url("http://wiki.corp/x"), Err(NoRule::Host)),
            (
                "WebFetch",
                url("http://metadata.google.internal/x"),
                Err(NoRule::Host),
            ),
            ("WebFetch", url("https://example.com./x"), Err(NoRule::Host)),
            (
                "WebFetch",
                url("https://xn--pple-43d.com/x"),
                Err(NoRule::Host),
            ),
            ("WebFetch", url("ftp://a.example/x"), Err(NoRule::Input)),
            (
                "WebFetch",
                url("https://*.example.com/"),
                Err(NoRule::Wildcard),
            ),
            ("WebSearch", json!({"query": "x"}), Ok("WebSearch")),
            (
                "mcp__github__get_issue",
                json!({"a": [1]}),
                Ok("mcp__github__get_issue"),
            ),
            ("mcp__shell__exec", json!({}), Err(NoRule::AnyInput)),
            ("mcp__my-echo__echo", json!({}), Err(NoRule::AnyInput)),
            ("mcp__x__*", json!({}), Err(NoRule::AnyInput)),
        ] {
            let offer = here(tool, input.clone());
            assert_eq!(offer.always, Err(NoRule::AnyInput), "{tool} {input}");
            let expected = rule.map(|rule| vec![Rule::parse(rule).unwrap()]);
            assert_eq!(offer.session, expected, "{tool} {input}");
            assert_eq!(offer.wider, expected.ok(), "{tool} {input}");
        }
    }

    #[test]
    fn what_is_too_long_to_be_read_gets_no_rule() {
        let path = "/home/lin/shop/a";
        let write = |content: usize| {
            let input = json!({"file_path": path, "content": "x".repeat(content)});
            here("Write", input).always.map(|_| ())
        };
        let get = |name: &str, input: Value| here(name, input).session.map(|_| ());
        let nulls = |n: usize| get("mcp__a__get", json!({"a": vec![Value::Null; n]}));
        let key = |n: usize| get("mcp__a__get", json!({"k".repeat(n): 1}));
        let name = |n: usize| get(&format!("mcp__a__get_{}", "b".repeat(n - 12)), json!({}));
        let host = |n: usize| {
            let url = format!("https://{}.{}.example/", "a".repeat(30), "b".repeat(n - 39));
            get("WebFetch", json!({"url": url, "prompt": "x"}))
        };
        let command = |n: usize| {
            bash(&format!("make {}", "x".repeat(n - 5)))
                .always
                .map(|_| ())
        };
        for (what, most, measure, why) in [
            (
                "input",
                6_144 - 16 - path.len(),
                &write as &dyn Fn(usize) -> _,
                NoRule::TooLong,
            ),
            ("nulls", (6_144 - 1) / 5, &nulls, NoRule::TooLong),
            ("a key", 6_144 - 4, &key, NoRule::TooLong),
            ("a tool's name", 64, &name, NoRule::AnyInput),
            ("a host", 72, &host, NoRule::TooLong),
            ("a command", 512, &command, NoRule::TooLong),
        ] {
            assert_eq!(measure(most), Ok(()), "{what}");
            assert_eq!(measure(most + 1), Err(why), "{what}");
        }
    }

    #[test]
    fn a_rule_says_what_it_covers() {
        for (rule, covers) in [
            ("Bash(npm test)", Covers::Command("npm test")),
            (
                "Bash(git count-objects *)",
                Covers::Beginning("git count-objects"),
            ),
            ("Bash(a * b)", Covers::Pattern),
            ("Bash", Covers::Pattern),
            ("Edit(//p/a)", Covers::Change("/p/a")),
            ("Read(//p/a)", Covers::Read("/p/a")),
            ("Read(//p/**)", Covers::Pattern),
            ("Read(/a)", Covers::Pattern),
            ("WebFetch(domain:a.example)", Covers::Host("a.example")),
            ("WebSearch", Covers::AnySearch),
            ("mcp__a__get", Covers::Tool("mcp__a__get")),
        ] {
            let rule = Rule::parse(rule).unwrap();
            assert_eq!(rule.covers(), covers);
        }
    }

    /// Claude Code's matcher as far as it was observed.
    fn matches(rule: &Rule, command: &str) -> bool {
        let Some(content) = &rule.content else {
            return rule.tool == "Bash";
        };
        let command = command.trim_start_matches(' ');
        let command = command.strip_prefix("timeout 5 ").unwrap_or(command);
        let command = command.strip_suffix(" 2>&1").unwrap_or(command);
        let open = content
            .strip_suffix(":*")
            .or_else(|| content.strip_suffix(" *"));
        match open {
            Some(prefix) => command
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')),
            None => wildcard(content, command),
        }
    }

    fn wildcard(pattern: &str, text: &str) -> bool {
        let mut pieces = pattern.split('*');
        let first = pieces.next().unwrap_or("");
        let Some(mut rest) = text.strip_prefix(first) else {
            return false;
        };
        let mut last = None;
        for piece in pieces {
            if let Some(previous) = last.replace(piece) {
                match rest.find(previous) {
                    Some(at) => rest = &rest[at + str::len(previous)..],
                    None => return false,
                }
            }
        }
        last.map_or(rest.is_empty(), |last| rest.ends_with(last))
    }

    /// Xorshift: the same commands in every run.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 >> 33).unwrap() % sides
        }

        fn command(&mut self) -> String {
            const WORDS: &[&str] = &[
                "npm",
                "run",
                "build",
                "git",
                "status",
                "commit",
                "-m",
                "'fix (x)'",
                "cargo",
                "test",
                "--lib",
                "\"a b\"",
                "ls",
                "-la",
                "src/x.rs",
                "make",
                "all",
                "a\\ b",
                "x=1",
            ];
            const ODD: &[&str] = &[
                "*", ":*", "\n", "'", "(", ")", "$X", "|", "&&", ";", ">", "sudo", "bash",
                "\u{200b}", "~", "../..", "\\", "`x`", "é", "中文", "#", "&", "rm", "\t",
            ];
            const PROGRAMS: &[&str] = &[
                "npm run",
                "git status",
                "cargo test",
                "ls",
                "make",
                "x",
                "./x",
            ];
            let mut command = PROGRAMS[self.roll(PROGRAMS.len())].to_owned();
            for _ in 0..self.roll(6) {
                command.push(' ');
                command.push_str(if self.roll(12) == 0 {
                    ODD[self.roll(ODD.len())]
                } else {
                    WORDS[self.roll(WORDS.len())]
                });
            }
            command
        }

        fn near_miss(&mut self, command: &str) -> String {
            let at = command.floor_char_boundary(self.roll(command.len() + 1));
            let (head, tail) = command.split_at(at);
            match self.roll(10) {
                0 => format!("{command} && curl x"),
                1 => format!("{command}; curl x"),
                2 => format!("{command}x"),
                3 => format!("{command} x"),
                4 => format!("FOO=1 {command}"),
                5 => format!("{head} {tail}"),
                6 => format!("{head}*{tail}"),
                7 => format!("{command} > f"),
                8 => head.to_owned(),
                _ => format!("x{command}"),
            }
        }
    }

    /// A million where the code is optimised; enough to notice elsewhere.
    const COMMANDS: usize = if cfg!(debug_assertions) {
        60_000
    } else {
        1_000_000
    };

    #[test]
    fn our_own_rule_matches_its_command_and_no_other() {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let mut kept = 0;
        let mut asked = request("Bash", json!({}));
        for _ in 0..COMMANDS {
            let command = dice.command();
            asked.input = json!({ "command": command });
            let Ok(rules) = offer(&asked).always else {
                continue;
            };
            kept += 1;
            let [rule] = &rules[..] else {
                panic!("{command:?} got {rules:?}");
            };
            assert_eq!(Rule::parse(&rule.render()).as_ref(), Ok(rule));
            assert!(matches(rule, &command), "{rule:?} misses {command:?}");
            let other = dice.near_miss(&command);
            if other.trim_matches(' ') != command {
                assert!(!matches(rule, &other), "{rule:?} matches {other:?}");
            }
            let content = rule.content.as_deref().unwrap();
            assert!(rule.tool == "Bash" && !content.contains('*'), "{rule:?}");
        }
        assert!(kept > COMMANDS / 4, "only {kept} commands got a rule");
    }
}
