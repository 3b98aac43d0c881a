//! Claude Code's own reading of a rule, as far as 2.1.325 was seen to read it
//! (`tests/peers/rules`), and what a rule's sentence says. Knows nothing of how
//! nod makes rules.

use nod::for_tests::rules::Rule;
use nod::for_tests::wording::rule::{Until, sentence};

/// The commands of a list or pipeline, by the shell's operators outside quotes.
/// `None` where Claude Code always asks: it would still have to be worked out.
pub(crate) fn segments(command: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut from, mut quote, mut escaped, mut before) = (0, None, false, ' ');
    for (at, c) in command.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '`' | '$' | '(' | ')' | '{') | (Some('"'), '`' | '$') => return None,
            (None, ';' | '|' | '\n') => {
                parts.push(&command[from..at]);
                from = at + 1;
            }
            (None, '&') if before != '>' && !command[at + 1..].starts_with('>') => {
                parts.push(&command[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    if quote.is_some() || escaped {
        return None;
    }
    parts.push(&command[from..]);
    let parts = parts.into_iter().map(|part| part.trim_matches(' '));
    Some(parts.filter(|part| !part.is_empty()).collect())
}

/// A command without what Claude Code takes off before it compares: harmless
/// variables and wrappers in front, harmless redirections behind.
pub(crate) fn bare(mut segment: &str) -> &str {
    const VARIABLES: &[&str] = &[
        "ANTHROPIC_API_KEY",
        "CI",
        "LANG",
        "LC_ALL",
        "NODE_ENV",
        "NO_COLOR",
        "PYTHONUNBUFFERED",
        "RUST_BACKTRACE",
        "RUST_LOG",
        "TERM",
        "TZ",
    ];
    loop {
        let start = segment;
        let (first, rest) = segment.split_once(' ').unwrap_or((segment, ""));
        let assigned = first.split_once('=').is_some_and(|(name, value)| {
            VARIABLES.contains(&name)
                && value
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        });
        let wrapper = matches!(
            first,
            "!" | "nohup" | "time" | "command" | "builtin" | "nice"
        );
        if (assigned || wrapper) && !rest.starts_with('-') {
            segment = rest.trim_start_matches(' ');
        } else if first == "timeout" || first == "stdbuf" {
            let (_, after) = rest.split_once(' ').unwrap_or((rest, ""));
            segment = after;
        }
        let at = segment.rfind(" <").or_else(|| segment.rfind('<'));
        let from_file = at.filter(|&at| {
            let name = segment[at..].trim_start_matches([' ', '<']);
            !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._/-".contains(&b))
        });
        if let Some(at) = from_file {
            segment = segment[..at].trim_end_matches(' ');
        }
        for behind in [
            "2>&1",
            ">/dev/null",
            "> /dev/null",
            "2>/dev/null",
            "&>/dev/null",
        ] {
            if let Some(before) = segment.strip_suffix(behind) {
                segment = before.trim_end_matches(' ');
            }
        }
        if segment == start || segment.is_empty() {
            return start;
        }
    }
}

/// Whether the rule lets one command of a list pass. Every star is a wildcard.
pub(crate) fn lets_pass(rule: &Rule, segment: &str) -> bool {
    let Some(content) = &rule.content else {
        return rule.tool == "Bash";
    };
    let whole = segment.trim_matches(' ');
    [whole, bare(whole)].into_iter().any(|command| {
        let open = content
            .strip_suffix(":*")
            .or_else(|| content.strip_suffix(" *"));
        match open {
            Some(beginning) if !beginning.contains('*') => command
                .strip_prefix(beginning)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')),
            _ => wildcard(content, command),
        }
    })
}

fn wildcard(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether what the rule's sentence promises includes this command, by the
/// sentence's own words.
pub(crate) fn is_said(rule: &Rule, segment: &str) -> bool {
    let said = sentence(rule.covers(), "shop", Until::Undone);
    let whole = segment.trim_matches(' ');
    let named = |before: &str| {
        let rest = said
            .en
            .strip_prefix("From now on Claude may ")?
            .strip_prefix(before)?;
        rest.strip_suffix("`, in shop")
    };
    [whole, bare(whole)].into_iter().any(|command| {
        if let Some(exact) = named("run exactly `") {
            return command == exact;
        }
        named("run anything that begins with `").is_some_and(|beginning| {
            command
                .strip_prefix(beginning)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    })
}

/// A command that the rule would let pass although its sentence says nothing
/// of it.
pub(crate) fn unsaid<'a>(rule: &Rule, command: &'a str) -> Option<&'a str> {
    let parts = segments(command)?;
    parts
        .into_iter()
        .find(|part| lets_pass(rule, part) && !is_said(rule, part))
}
