//! Claude Code's permission rules: the exact one an "always" would leave, or
//! the reason why no rule is safe. Reads no files, so a path is what its text
//! says; a rule that can't be shown whole is never made.

use serde_json::Value;
use url::{Host, Url};

use crate::approvals::request::Request;
use crate::cards::{escape, secrets};

mod command;
pub(crate) mod path;

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
    Sensitive,
    OutsideProject,
}

/// The rules a click may leave behind, each of them shown on the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// For [`LOCAL_SETTINGS`].
    pub always: Result<Vec<Rule>, NoRule>,
    /// Until the Claude Code session ends.
    pub session: Result<Vec<Rule>, NoRule>,
}

/// Where "always" is kept: in the repository's root, or in the directory that
/// Claude Code was started in when there is no repository.
pub const LOCAL_SETTINGS: &str = ".claude/settings.local.json";

/// A rule longer than this is no longer read before it is agreed to.
const MAX_CONTENT: usize = 512;
/// More input than this may not be shown whole on a card.
const MAX_INPUT: usize = 6 * 1024;
const MAX_RULES: usize = 4;

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

fn is_tool(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Session,
    Always,
}

/// The rules that may be offered for this request: Claude Code's own proposal
/// where it is safe to show and to leave, else the narrowest of ours.
pub fn offer(request: &Request) -> Offer {
    let common = presentable(&request.input);
    let made = |reach| {
        common?;
        let rules = rules(request, reach)?;
        let sound = rules
            .iter()
            .all(|rule| Rule::parse(&rule.render()).as_ref() == Ok(rule));
        if sound {
            Ok(rules)
        } else {
            Err(NoRule::Unpaired)
        }
    };
    Offer {
        always: made(Reach::Always),
        session: made(Reach::Session),
    }
}

fn rules(request: &Request, reach: Reach) -> Result<Vec<Rule>, NoRule> {
    match &*request.tool {
        "Bash" => command::rules(request, reach),
        "Edit" | "MultiEdit" | "Write" => file_rule(request, "Edit", reach),
        "Read" => file_rule(request, "Read", reach),
        "WebFetch" => domain_rule(request),
        "WebSearch" => Ok(vec![Rule::bare("WebSearch")]),
        tool if is_mcp_tool(tool) => Ok(vec![Rule::bare(tool)]),
        _ => Err(NoRule::Tool),
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
            && !secrets::find(text).is_empty()
        {
            return Err(NoRule::Secret);
        }
    }
    Ok(())
}

fn field<'a>(request: &'a Request, name: &str) -> Result<&'a str, NoRule> {
    match request.input.get(name).and_then(Value::as_str) {
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

/// An edit rule covers `Write`, and only two slashes make a path absolute.
fn file_rule(request: &Request, tool: &str, reach: Reach) -> Result<Vec<Rule>, NoRule> {
    let named = field(request, "file_path")?;
    writable(named)?;
    let path = path::resolve(&request.origin.cwd, named);
    let text = path.to_str().ok_or(NoRule::Unseen)?;
    writable(text)?;
    // The matcher reads paths like an ignore file does.
    if text.contains(['?', '[', ']', '{', '}', '!', '#', '\\']) || text.ends_with(['/', ' ']) {
        return Err(NoRule::Wildcard);
    }
    if path::is_sensitive(&path) {
        return Err(NoRule::Sensitive);
    }
    if reach == Reach::Always && !path::is_inside(&path, &request.origin.project) {
        return Err(NoRule::OutsideProject);
    }
    Ok(vec![Rule::new(tool, &format!("/{text}"))])
}

fn domain_rule(request: &Request) -> Result<Vec<Rule>, NoRule> {
    let text = field(request, "url")?;
    writable(text)?;
    let url = Url::parse(text).map_err(|_| NoRule::Input)?;
    let plain = url.username().is_empty() && url.password().is_none();
    let Some(Host::Domain(host)) = url.host() else {
        return Err(NoRule::Input);
    };
    let dotted = host.contains('.')
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'));
    if !plain || !dotted || !matches!(url.scheme(), "http" | "https") {
        return Err(NoRule::Input);
    }
    Ok(vec![Rule::new("WebFetch", &format!("domain:{host}"))])
}

/// `mcp__server__tool`, all three parts there: never a whole server.
fn is_mcp_tool(name: &str) -> bool {
    name.len() <= 128
        && is_tool(name)
        && !name.contains('.')
        && name
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"))
            .is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::request::{Digest, Origin};
    use crate::ids::RequestId;
    use proptest::prelude::*;
    use serde_json::json;

    fn request(tool: &str, input: Value, suggested: &[Rule]) -> Request {
        Request {
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
            },
            suggested: suggested.to_vec(),
            asked_at: 0,
            deadline: 0,
        }
    }

    fn bash(command: &str, suggested: &[&str]) -> Offer {
        let suggested: Vec<Rule> = suggested.iter().map(|s| Rule::new("Bash", s)).collect();
        offer(&request("Bash", json!({"command": command}), &suggested))
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
    fn claude_codes_own_proposal_is_preferred_when_it_is_narrow() {
        for (command, suggested, rules) in [
            (
                "npm run build",
                &["npm run *"][..],
                &["Bash(npm run *)"][..],
            ),
            (
                "npm run a && git push",
                &["npm run *", "git push *"],
                &["Bash(npm run *)", "Bash(git push *)"],
            ),
            (
                "git commit -m 'x (y)'",
                &["git commit *"],
                &["Bash(git commit *)"],
            ),
            ("python3 x.py", &["python3 x.py"], &["Bash(python3 x.py)"]),
            ("npm run build", &["npm run:*"], &["Bash(npm run:*)"]),
        ] {
            let offer = bash(command, suggested);
            let rules: Vec<String> = rules.iter().map(|&r| r.to_owned()).collect();
            assert_eq!(texts(&offer.always), Ok(rules), "{command}");
        }
    }

    #[test]
    fn what_begins_like_the_command_must_also_be_narrow() {
        for (command, proposal) in [
            ("just -k y", "just -k *"),
            ("just a/b y", "just a/b *"),
            ("just 'a' y", "just 'a' *"),
            ("./just a y", "./just a *"),
            ("j'u'st a y", "j'u'st a *"),
            ("rm a y", "rm a *"),
            ("python3 a.py y", "python3 a.py *"),
            ("npm run  y", "npm run  *"),
        ] {
            let always = bash(command, &[proposal]).always;
            assert_eq!(always, Ok(vec![Rule::new("Bash", command)]), "{proposal}");
        }
    }

    #[test]
    fn a_proposal_longer_than_a_command_may_be_gives_way() {
        for (length, is_taken) in [(510, true), (511, false), (512, false)] {
            let command = format!("npm run {}", "x".repeat(length - 8));
            let proposal = format!("{command} *");
            let rule = if is_taken { &proposal } else { &command };
            let always = bash(&command, &[&proposal]).always;
            assert_eq!(always, Ok(vec![Rule::new("Bash", rule)]), "{length}");
        }
    }

    #[test]
    fn a_wide_or_foreign_proposal_gives_way_to_the_exact_command() {
        for suggested in [
            "*",
            "git *",
            "git:*",
            "npm run * x",
            "",
            "docker run *",
            "python3 *",
            "curl x *",
            "git -c *",
            "npm exec *",
            "npm *",
            "status *",
            "git sta*",
            " git status",
            "git push *",
        ] {
            let offer = bash("git status", &[suggested]);
            assert_eq!(
                texts(&offer.always),
                Ok(vec!["Bash(git status)".to_owned()]),
                "{suggested}"
            );
        }
        let bare = offer(&request(
            "Bash",
            json!({"command": "git status"}),
            &[Rule::bare("Bash")],
        ));
        assert_eq!(texts(&bare.always), Ok(vec!["Bash(git status)".to_owned()]));
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
            ("login --token 8f14e45fceea167a", NoRule::Secret),
            ("echo 'x", NoRule::Unpaired),
            ("echo )x", NoRule::Unpaired),
            ("echo $X", NoRule::Expansion),
            ("cat {/etc,/opt}/x", NoRule::Expansion),
            ("/bin/s[h] x", NoRule::Expansion),
            ("/bin/s? x", NoRule::Expansion),
            ("a && b", NoRule::Compound),
            ("a > b", NoRule::Compound),
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
            ("tool -o/opt/x", NoRule::OutsideProject),
            ("tool --dir=/opt/x", NoRule::OutsideProject),
            ("", NoRule::Input),
        ] {
            assert_eq!(bash(command, &[]).always, Err(why), "{command:?}");
            let wide = bash(command, &["npm run *", "bash *"]);
            assert_eq!(wide.always, Err(why), "{command:?}");
        }
        assert!(bash("cat ../Cargo.toml", &[]).always.is_ok());
        assert!(bash("jq '.[0] | {a}?' x", &[]).always.is_ok());
        assert!(bash("cat /home/lin/shop/x", &[]).always.is_ok());
    }

    #[test]
    fn outside_the_project_a_session_is_as_far_as_it_goes() {
        let outside = bash("cat /opt/notes", &[]);
        assert_eq!(outside.always, Err(NoRule::OutsideProject));
        assert_eq!(
            texts(&outside.session),
            Ok(vec!["Bash(cat /opt/notes)".to_owned()])
        );
        let edit = offer(&request("Edit", json!({"file_path": "/opt/x"}), &[]));
        assert_eq!(edit.always, Err(NoRule::OutsideProject));
        assert_eq!(texts(&edit.session), Ok(vec!["Edit(//opt/x)".to_owned()]));
        assert_eq!(bash("sudo ls", &[]).session, Err(NoRule::Runner));
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
            let mut asked = request("Bash", json!({"command": command}), &[]);
            asked.origin.cwd = cwd.into();
            let always = offer(&asked).always.map(drop);
            assert_eq!(always, expected, "{command} in {cwd}");
        }
    }

    #[test]
    fn other_tools_get_their_exact_rule_or_none() {
        let ok = |rule: &str| Ok(vec![rule.to_owned()]);
        let file = |path: &str| json!({"file_path": path, "content": "x"});
        let url = |url: &str| json!({"url": url, "prompt": "x"});
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
            (
                "WebFetch",
                url("https://docs.example.com/a?b"),
                ok("WebFetch(domain:docs.example.com)"),
            ),
            (
                "WebFetch",
                url("https://good.example@evil.example/"),
                Err(NoRule::Input),
            ),
            (
                "WebFetch",
                url("http://169.254.169.254/x"),
                Err(NoRule::Input),
            ),
            ("WebFetch", url("http://localhost/x"), Err(NoRule::Input)),
            ("WebFetch", url("ftp://a.example/x"), Err(NoRule::Input)),
            (
                "WebFetch",
                url("https://*.example.com/"),
                Err(NoRule::Wildcard),
            ),
            ("WebSearch", json!({"query": "x"}), ok("WebSearch")),
            (
                "mcp__my-echo__echo",
                json!({"a": [1, {"b": null}]}),
                ok("mcp__my-echo__echo"),
            ),
            ("mcp__echo", json!({}), Err(NoRule::Tool)),
            ("mcp__x__*", json!({}), Err(NoRule::Tool)),
            ("mcp____", json!({}), Err(NoRule::Tool)),
            ("mcp____x", json!({}), Err(NoRule::Tool)),
            ("mcp__x__", json!({}), Err(NoRule::Tool)),
            ("NotebookEdit", json!({}), Err(NoRule::Tool)),
            ("Task", json!({"prompt": "x"}), Err(NoRule::Tool)),
        ] {
            let offer = offer(&request(tool, input.clone(), &[]));
            assert_eq!(texts(&offer.always), expected, "{tool} {input}");
        }
    }

    #[test]
    fn what_is_too_long_to_be_read_gets_no_rule() {
        let path = "/home/lin/shop/a";
        let write = |content: usize| {
            let input = json!({"file_path": path, "content": "x".repeat(content)});
            offer(&request("Write", input, &[])).always.map(|_| ())
        };
        let mcp = |name: &str, input: Value| offer(&request(name, input, &[])).always.map(|_| ());
        let nulls = |n: usize| mcp("mcp__a__b", json!({"a": vec![Value::Null; n]}));
        let key = |n: usize| mcp("mcp__a__b", json!({"k".repeat(n): 1}));
        let name = |n: usize| mcp(&format!("mcp__a__{}", "b".repeat(n - 8)), json!({}));
        let command = |n: usize| {
            bash(&format!("make {}", "x".repeat(n - 5)), &[])
                .always
                .map(|_| ())
        };
        let parts = [
            "npm run a",
            "npm run b",
            "npm run c",
            "npm run d",
            "npm run e",
        ];
        let several = |n: usize| {
            bash(&parts[..n].join(" && "), &parts[..n])
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
            ("a tool's name", 128, &name, NoRule::Tool),
            ("a command", 512, &command, NoRule::TooLong),
            ("rules", 4, &several, NoRule::Compound),
        ] {
            assert_eq!(measure(most), Ok(()), "{what}");
            assert_eq!(measure(most + 1), Err(why), "{what}");
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
            let mut command = String::new();
            for i in 0..=self.roll(6) {
                if i > 0 {
                    command.push(' ');
                }
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
        let mut asked = request("Bash", json!({}), &[]);
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
