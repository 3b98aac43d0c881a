//! Any text as a rule, and any call as one to make a rule for: what is written
//! reads back the same, and an offered rule covers what its sentence says and
//! no program, place or command besides.

use nod::for_tests::rules::{self, PathKind, Rule};
use serde_json::json;

use super::{asked, matcher};

/// The tool, a second command, and the input, on a line each.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    if let Ok(rule) = Rule::parse(text) {
        assert_eq!(Rule::parse(&rule.render()).as_ref(), Ok(&rule));
    }
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (tool, second, input) = (line(), line(), line());
    reads_back(tool, input);
    command(second, input);
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

/// What may be left: for this very call, for the session, and for more.
fn offered(tool: &str, input: serde_json::Value, found: PathKind) -> [Vec<Rule>; 3] {
    let offer = rules::offer_here(&asked::request(tool, input), found);
    let offered = [
        offer.always.unwrap_or_default(),
        offer.session.unwrap_or_default(),
        offer.wider.unwrap_or_default(),
    ];
    for rule in offered.iter().flatten() {
        let text = rule.render();
        assert_eq!(Rule::parse(&text).as_ref(), Ok(rule));
        assert!(!text.contains(char::is_control));
        assert!(text.len() <= 1_100, "a rule nobody would read");
    }
    assert!(offered[0].iter().all(Rule::is_exact), "more than the call");
    offered
}

fn command(second: &str, command: &str) {
    let command = command.trim_matches(' ');
    let [always, session, wider] = offered("Bash", json!({"command": command}), PathKind::Unknown);
    for rule in always.iter().chain(&session) {
        assert_eq!(rule, &Rule::new("Bash", command), "not this very command");
    }
    for rule in always.iter().chain(&session).chain(&wider) {
        let parts = matcher::segments(command).expect("nothing left to work out");
        assert_eq!(parts.len(), 1, "a list or pipeline");
        assert!(
            !outside_quotes(command).contains('<') && !command.contains('\n'),
            "an input of its own"
        );
        is_no_runner(command);
        takes_no_orders(command);
        assert!(
            matcher::lets_pass(rule, command),
            "asked again for {command}"
        );
        for other in [
            second,
            &format!("{command}{second}"),
            &format!("{command} {second}"),
            &format!("{second} {command}"),
            &format!("{command} && {second}"),
            &format!("LANG=C timeout 5 {command} 2>&1 < f"),
        ] {
            let unsaid = matcher::unsaid(rule, other);
            assert_eq!(unsaid, None, "{rule:?} covers more than it says");
        }
    }
    let open = ["git count-objects *", "git check-ref-format *"];
    for rule in &wider {
        let content = rule.content.as_deref().expect("never the whole shell");
        assert!(open.contains(&content), "nobody has looked at {content}");
        assert!(
            !always.is_empty(),
            "more than the command, but not the command"
        );
    }
}

/// The command without what stands in quotes or behind a backslash.
fn outside_quotes(command: &str) -> String {
    let mut plain = String::new();
    let mut quote = None;
    let mut escaped = false;
    for c in command.chars() {
        if escaped {
            escaped = false;
        } else if let Some(open) = quote {
            escaped = c == '\\' && open == '"';
            quote = quote.filter(|_| c != open);
        } else if c == '\\' {
            escaped = true;
        } else if matches!(c, '\'' | '"') {
            quote = Some(c);
        } else {
            plain.push(c);
        }
    }
    plain
}

/// What comes by a pipe or from a file is not held by any rule.
fn takes_no_orders(command: &str) {
    // Words are told apart by blanks alone here.
    if command.contains(['\'', '"', '\\']) {
        return;
    }
    let mut words = command
        .split(' ')
        .skip_while(|word| word.is_empty() || word.contains('='));
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let readers = [
        "psql",
        "sqlite3",
        "mysql",
        "patch",
        "ed",
        "ex",
        "vi",
        "vim",
        "bc",
        "dc",
        "tee",
        "dd",
        "gdb",
        "m4",
        "awk",
        "sed",
        "redis-cli",
        "mongosh",
        "irb",
        "ghci",
        "tclsh",
        "ftp",
        "nc",
        "telnet",
    ];
    assert!(!readers.contains(&name), "{name} takes orders");
    let words: Vec<&str> = words.collect();
    assert!(!words.contains(&"-"), "{name} was told to read");
    let bare = [
        "python", "python3", "node", "ruby", "perl", "php", "lua", "deno", "bun",
    ];
    assert!(
        !(bare.contains(&name) && words.is_empty()),
        "{name} reads a program"
    );
    assert!(!(name == "git" && matches!(words.first(), Some(&("am" | "apply" | "fast-import")))));
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
    let input = || json!({"file_path": path, "content": ""});
    for found in [PathKind::Unknown, PathKind::Other] {
        let nothing = offered(tool, input(), found);
        assert!(
            nothing.iter().all(Vec::is_empty),
            "a rule for no file: {path}"
        );
    }
    let [always, session, wider] = offered(tool, input(), PathKind::File);
    assert_eq!(wider, Vec::new());
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
        assert!(
            !inside.starts_with(&format!("{content}/")),
            "what the project is in"
        );
        for name in content.split('/') {
            let name = name.to_ascii_lowercase();
            assert!(name != ".." && name != ".git" && name != ".claude" && name != ".ssh");
            assert!(
                content.starts_with(&inside) || !name.starts_with('.'),
                "hidden outside"
            );
        }
    }
}

fn domain(url: &str) {
    let [always, session, wider] = offered("WebFetch", json!({"url": url}), PathKind::Unknown);
    assert!(always.is_empty(), "no rule holds one address");
    for rule in session.iter().chain(&wider) {
        let host = rule
            .content
            .as_deref()
            .and_then(|text| text.strip_prefix("domain:"));
        let host = host.expect("one domain");
        assert!(host.contains('.') && !host.contains(['*', '/', '@', ' ', ':']));
        assert!(host.parse::<std::net::IpAddr>().is_err(), "an address");
    }
}

fn anything(tool: &str, input: &str) {
    let [always, session, wider] = offered(tool, json!({"input": input}), PathKind::File);
    assert!(always.is_empty(), "no rule holds one input");
    for rule in session.iter().chain(&wider) {
        assert_eq!(rule, &Rule::bare(tool));
        if tool == "WebSearch" {
            continue;
        }
        let name = tool
            .rsplit("__")
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        assert!(tool.starts_with("mcp__") && tool.split("__").count() >= 3);
        for acts in [
            "exec", "write", "delete", "query", "send", "run_", "shell", "eval", "create", "update",
        ] {
            let word = name
                .split(['_', '-'])
                .any(|word| word == acts.trim_end_matches('_'));
            assert!(!word, "{tool} does more than look");
        }
    }
}
