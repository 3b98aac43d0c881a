//! Any text as a rule, and any call as one to make a rule for: what is written
//! reads back the same, and an offered rule allows what was asked and no
//! program, place or command besides.

use nod::rules::{self, Rule};
use serde_json::json;

use super::asked;

/// The tool, what Claude Code proposed, and the input, on a line each.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    if let Ok(rule) = Rule::parse(text) {
        assert_eq!(Rule::parse(&rule.render()).as_ref(), Ok(&rule));
    }
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (tool, proposed, input) = (line(), line(), line());
    reads_back(tool, input);
    command(proposed, input);
    for tool in ["Edit", "Write", "MultiEdit", "Read"] {
        file(tool, input);
    }
    domain(input);
    anything(tool, input);
}

fn reads_back(tool: &str, content: &str) {
    if Rule::parse(tool) == Ok(Rule::bare(tool)) && !content.is_empty() {
        let rule = Rule::new(tool, content);
        assert_eq!(Rule::parse(&rule.render()), Ok(rule));
    }
}

fn offered(tool: &str, input: serde_json::Value, proposed: &str) -> [Vec<Rule>; 2] {
    let proposed = match proposed {
        "" => Vec::new(),
        some => some.split('\t').map(|text| Rule::new(tool, text)).collect(),
    };
    let offer = rules::offer(&asked::request(tool, input, proposed));
    let offered = [offer.always, offer.session].map(Result::unwrap_or_default);
    for rule in offered.iter().flatten() {
        let text = rule.render();
        assert_eq!(Rule::parse(&text).as_ref(), Ok(rule));
        assert!(!text.contains(char::is_control));
        assert!(text.len() <= 1_100, "a rule nobody would read");
    }
    offered
}

fn command(proposed: &str, command: &str) {
    let command = command.trim_matches(' ');
    let offered = offered("Bash", json!({"command": command}), proposed);
    for rule in offered.iter().flatten() {
        assert_eq!(rule.tool, "Bash");
        let content = rule.content.as_deref().expect("never the whole shell");
        let parts = segments(command);
        assert!(
            content == command || parts.iter().any(|part| allows(content, part)),
            "a rule for something else: {content}"
        );
        if content != command {
            assert!(proposed.split('\t').any(|known| known == content));
        }
        let open = content.ends_with('*');
        let fixed = content.trim_end_matches('*');
        assert!(!fixed.contains('*'), "an open middle");
        assert!(!open || fixed.trim_end_matches([' ', ':']).contains(' '));
        for part in parts {
            is_no_runner(part);
        }
    }
}

/// Claude Code's own reading of a rule.
fn allows(content: &str, command: &str) -> bool {
    let open = content
        .strip_suffix(":*")
        .or_else(|| content.strip_suffix(" *"));
    match open {
        None => content == command,
        Some(open) => command
            .strip_prefix(open)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')),
    }
}

/// The commands of a list or pipeline, by the shell's operators outside quotes.
fn segments(command: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut quote, mut escaped, mut before) = (0, None, false, ' ');
    for (at, c) in command.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '`' | '$' | '<' | '{' | '[' | '?' | '\n') | (Some('"'), '`' | '$') => {
                panic!("a rule for what the shell would still work out");
            }
            (None, ';' | '|') => {
                parts.push(&command[from..at]);
                from = at + 1;
            }
            (None, '&') if before != '>' => {
                parts.push(&command[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    assert!(quote.is_none() && !escaped, "a rule for half a word");
    parts.push(&command[from..]);
    let parts = parts.into_iter().map(|part| part.trim_matches(' '));
    parts.filter(|part| !part.is_empty()).collect()
}

fn is_no_runner(part: &str) {
    let plain = |word: &str| word.replace(['\'', '"', '\\'], "");
    let mut words = part.split(' ').map(plain);
    let program = words.find(|word| !word.is_empty() && !word.contains('='));
    let program = program.unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let runners = [
        "sudo", "bash", "sh", "zsh", "env", "xargs", "eval", "ssh", "exec",
    ];
    assert!(
        !runners.contains(&name),
        "a rule that lets {name} run anything"
    );
}

fn file(tool: &str, path: &str) {
    let [always, session] = offered(tool, json!({"file_path": path, "content": ""}), "");
    let inside = format!("/{}/", asked::PROJECT);
    for rule in &always {
        let content = rule.content.as_deref().expect("never every file");
        assert!(
            content.starts_with(&inside),
            "outside the project: {content}"
        );
    }
    for rule in always.iter().chain(&session) {
        assert_eq!(rule.tool, if tool == "Read" { "Read" } else { "Edit" });
        let content = rule.content.as_deref().expect("never every file");
        assert!(content.starts_with("//"), "read as relative: {content}");
        assert!(!content.contains(['*', '?', '[', '{', '!']), "a pattern");
        for name in content.split('/') {
            let name = name.to_ascii_lowercase();
            assert!(name != ".." && name != ".git" && name != ".claude" && name != ".ssh");
        }
    }
}

fn domain(url: &str) {
    for rule in offered("WebFetch", json!({"url": url}), "")
        .iter()
        .flatten()
    {
        let host = rule
            .content
            .as_deref()
            .and_then(|text| text.strip_prefix("domain:"));
        let host = host.expect("one domain");
        assert!(host.contains('.') && !host.contains(['*', '/', '@', ' ']));
    }
}

fn anything(tool: &str, input: &str) {
    for rule in offered(tool, json!({"input": input}), "").iter().flatten() {
        assert!(rule == &Rule::bare("WebSearch") || rule.tool.split("__").count() >= 3);
        assert_eq!(rule.tool, tool);
    }
}
