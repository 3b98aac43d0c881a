//! Markdown an agent wrote, set out for reading: headings, lists and code as
//! plain-text nodes of their own. Marks go and every other character stays, so
//! that nothing is left to Feishu's parser and nothing can hide.

use serde_json::{Value, json};

use super::{div, framed, note};

/// A text of more parts than this is shown as it was written.
const MAX_NODES: usize = 40;

/// `title` already stands above the card, so a line that repeats it goes.
pub(super) fn nodes(text: &str, title: Option<&str>) -> Vec<Value> {
    let mut page = ProsePage {
        nodes: Vec::new(),
        lines: Vec::new(),
        title,
    };
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some((mark, info)) = fence(line) {
            let code = lines.by_ref().take_while(|line| !closes(line, mark));
            page.code(info, &code.collect::<Vec<_>>());
        } else {
            page.line(line);
        }
    }
    page.flush();
    if page.nodes.len() > MAX_NODES {
        return vec![div(text)];
    }
    page.nodes
}

/// The first line that says something, as [`nodes`] would show it.
pub(super) fn first_line(text: &str) -> Option<String> {
    let says = |line: &&str| {
        let bare = line.trim();
        !bare.is_empty() && !is_rule(bare) && !is_table_rule(bare) && fence(bare).is_none()
    };
    let line = text.lines().find(says)?.trim();
    Some(heading(line).map_or_else(|| set(line), inline))
}

/// The first heading outside of code, as [`nodes`] would show it.
pub(super) fn first_heading(text: &str) -> Option<String> {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some((mark, _)) = fence(line) {
            lines.by_ref().find(|line| closes(line, mark));
        } else if let Some(heading) = heading(line.trim()) {
            return Some(inline(heading));
        }
    }
    None
}

struct ProsePage<'a> {
    nodes: Vec<Value>,
    /// Lines that share the next node.
    lines: Vec<String>,
    title: Option<&'a str>,
}

impl ProsePage<'_> {
    fn line(&mut self, line: &str) {
        let bare = line.trim();
        if let Some(heading) = heading(bare) {
            self.flush();
            let heading = inline(heading);
            if self.title.take_if(|title| *title == heading).is_none() {
                self.nodes.push(headed(&heading));
            }
        } else if is_rule(bare) {
            self.flush();
            self.nodes.push(json!({"tag": "hr"}));
        } else if is_table_rule(bare) {
            // The line between a table's head and its rows says nothing.
        } else if bare.is_empty() {
            // Space around a part is the card's; inside one it is a blank line.
            if self.lines.last().is_some_and(|last| !last.is_empty()) {
                self.lines.push(String::new());
            }
        } else {
            let shown = set(line);
            if self.title.take_if(|title| *title == shown).is_none() {
                self.lines.push(shown);
            }
        }
    }

    fn code(&mut self, info: &str, code: &[&str]) {
        self.flush();
        let mut held = Vec::new();
        if !info.is_empty() {
            held.push(note(info));
        }
        if !code.is_empty() {
            held.push(div(&code.join("\n")));
        }
        if !held.is_empty() {
            self.nodes.push(framed(held));
        }
    }

    fn flush(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let text = lines.join("\n");
        let text = text.trim_end_matches('\n');
        if !text.is_empty() {
            self.nodes.push(div(text));
        }
    }
}

fn headed(text: &str) -> Value {
    let mut node = div(text);
    node["text"]["text_size"] = json!("heading");
    node
}

/// The text of a heading, without its marks.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    if !(1..=6).contains(&level) || !text.starts_with([' ', '\t']) {
        return None;
    }
    let text = text.trim();
    let closed = text.trim_end_matches('#');
    let closed = closed.strip_suffix(' ').map_or(text, str::trim_end);
    (!closed.is_empty()).then_some(closed)
}

/// The mark and the language of the code that begins here.
fn fence(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let first = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = line.trim_start_matches(first);
    let mark = &line[..line.len() - info.len()];
    let info = info.trim();
    (mark.len() >= 3 && !info.contains('`')).then_some((mark, info))
}

fn closes(line: &str, mark: &str) -> bool {
    let line = line.trim();
    line.starts_with(mark) && line.trim_start_matches(&mark[..1]).is_empty()
}

fn is_rule(line: &str) -> bool {
    ['-', '*', '_'].into_iter().any(|mark| {
        let marks = line.matches(mark).count();
        marks >= 3 && line.chars().all(|c| c == mark || c == ' ')
    })
}

fn is_table_rule(line: &str) -> bool {
    line.contains('|') && line.contains("--") && line.chars().all(|c| "|-: ".contains(c))
}

/// One line outside of code.
fn set(line: &str) -> String {
    let bare = line.trim_start();
    let indent = &line[..line.len() - bare.len()];
    let bullet = ["- ", "* ", "+ "]
        .iter()
        .find_map(|it| bare.strip_prefix(it));
    if let Some(item) = bullet {
        return format!("{indent}• {}", inline(item.trim_start()));
    }
    if let Some(quoted) = bare.strip_prefix("> ") {
        return format!("{indent}│ {}", inline(quoted));
    }
    let bare = bare.trim_end();
    if let Some(cells) = bare.strip_prefix('|').and_then(|it| it.strip_suffix('|')) {
        let cells: Vec<_> = cells.split('|').map(|cell| inline(cell.trim())).collect();
        return format!("{indent}{}", cells.join(" │ "));
    }
    format!("{indent}{}", inline(bare))
}

/// Takes the marks of emphasis, code and links off where they plainly are
/// such; in doubt a mark stays, because it may be part of a name.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let opens = out.chars().next_back().is_none_or(may_stand_before);
        let taken = match c {
            '`' => code_span(rest),
            '[' => link(rest),
            '!' if rest[1..].starts_with('[') => link(&rest[1..]).map(|(shown, n)| (shown, n + 1)),
            '*' if opens => emphasis(rest),
            _ => None,
        };
        if let Some((shown, length)) = taken {
            out.push_str(&shown);
            rest = &rest[length..];
        } else {
            let run = match c {
                // The rest of a run that opens nothing opens nothing.
                '*' | '`' => rest.len() - rest.trim_start_matches(c).len(),
                _ => c.len_utf8(),
            };
            out.push_str(&rest[..run]);
            rest = &rest[run..];
        }
    }
    out
}

fn may_stand_before(c: char) -> bool {
    c.is_whitespace() || "([{\"'（「“‘，。：；、".contains(c)
}

fn may_stand_behind(c: char) -> bool {
    c.is_whitespace() || ".,;:!?)]}\"'）」”’，。：；、！？".contains(c)
}

/// What stands between marks, and how much of the text both take.
type TakenText = (String, usize);

fn code_span(text: &str) -> Option<TakenText> {
    let mark = &text[..text.len() - text.trim_start_matches('`').len()];
    let inner = &text[mark.len()..];
    let end = inner.find(mark)?;
    let behind = &inner[end + mark.len()..];
    let whole = end > 0 && !behind.starts_with('`');
    whole.then(|| (inner[..end].to_owned(), 2 * mark.len() + end))
}

fn link(text: &str) -> Option<TakenText> {
    let (label, behind) = text.strip_prefix('[')?.split_once("](")?;
    let (address, _) = behind.split_once(')')?;
    if label.contains(['[', ']']) || address.contains(['(', ' ']) || address.is_empty() {
        return None;
    }
    let length = label.len() + address.len() + "[](".len() + ")".len();
    let label = inline(label);
    let shown = if label == address || label.is_empty() {
        address.to_owned()
    } else {
        format!("{label} ({address})")
    };
    Some((shown, length))
}

/// Not by underscores, because `__init__` is a name, and not what is struck out,
/// which would read as if it stood.
fn emphasis(text: &str) -> Option<TakenText> {
    let mark = ["***", "**", "*"]
        .into_iter()
        .find(|mark| text.starts_with(mark))?;
    let inner = &text[mark.len()..];
    let end = inner.find(mark)?;
    let behind = inner[end + mark.len()..].chars().next();
    let words = &inner[..end];
    let plainly = !words.is_empty()
        && words.trim() == words
        && !words.starts_with(&mark[..1])
        && behind.is_none_or(may_stand_behind);
    plainly.then(|| (inline(words), 2 * mark.len() + end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(node: &Value, out: &mut Vec<String>) {
        match node {
            Value::Object(fields) => {
                if fields.get("tag").is_some_and(|tag| tag == "plain_text") {
                    out.extend(fields["content"].as_str().map(str::to_owned));
                }
                fields.values().for_each(|value| texts(value, out));
            }
            Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
            _ => {}
        }
    }

    fn read(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        for node in nodes(text, None) {
            texts(&node, &mut out);
        }
        out
    }

    #[test]
    fn a_plan_reads_without_its_marks() {
        let plan = "# Cart\n\nFirst **the price**, then `total()`.\n\n- one\n  - two\n1. three\n\n\
                    > quoted\n\n| a | b |\n|---|---|\n| 1 | *2* |\n\n```rust\nlet x = \"**\";\n```\n\
                    See [the notes](https://example.com/a_b_c).\n\n---\nend";
        assert_eq!(
            read(plan),
            [
                "Cart",
                "First the price, then total().\n\n• one\n  • two\n1. three\n\n│ quoted\n\na │ b\n1 │ 2",
                "rust",
                "let x = \"**\";",
                "See the notes (https://example.com/a_b_c).",
                "end",
            ]
        );
        let heading = &nodes(plan, None)[0];
        assert_eq!(heading["text"]["text_size"], "heading");
        assert_eq!(read("# Cart\ntext").len(), 2);
        assert_eq!(nodes("# Cart\ntext", Some("Cart")).len(), 1);
    }

    #[test]
    fn the_first_heading_reads_without_its_marks_and_is_none_of_a_codes_remarks() {
        let plan = "words\n```sh\n# install\n```\n## Charge **whole** `cents` ##\n# later";
        assert_eq!(first_heading(plan).as_deref(), Some("Charge whole cents"));
        assert_eq!(first_heading("~~~\n# never closed\n"), None);
    }

    #[test]
    fn what_only_looks_like_a_mark_stays() {
        for text in [
            "delete src/**/*.rs",
            "2 * 3 * 4",
            "snake_case_name",
            "a `half",
            "[not](a link",
            "*open",
            "#nothing",
            "5 ** 2",
            "__init__.py",
            "~~drop the table~~ keep it",
        ] {
            assert_eq!(read(text), [text]);
        }
    }

    #[test]
    fn a_text_of_very_many_parts_is_shown_as_it_is() {
        let text = "# a\nb\n".repeat(100);
        assert_eq!(read(&text), [text]);
    }

    proptest! {
        /// Marks may go; no letter, digit or address ever does.
        #[test]
        fn nothing_that_says_something_is_lost(
            text in "([a-z0-9 #*_~`>|\\[\\]()!<&\\-+.\\n]|```|\\*\\*|\\]\\(|\n- |\n# ){0,80}"
        ) {
            let said = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
            prop_assert_eq!(said(&read(&text).concat()), said(&text));
        }
    }
}
