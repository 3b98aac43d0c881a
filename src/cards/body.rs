//! What is asked, as nodes of a card: each tool's own layout, and every leaf
//! of its input either shown or counted. Reports what it could not show.

use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use url::Url;

use super::danger::{self, Danger, Hit, Scan};
use super::escape::{self, Budget, Hidden, Shape, Shown};
use super::{coloured, cut, div, note, secrets};
use crate::approvals::request::Request;
use crate::rules::path;
use crate::wording::{Lang, Text, card as words};

mod diff;
mod leaves;

/// The nodes, and what the reader can't see of the input.
pub(super) struct Body {
    pub(super) nodes: Vec<Value>,
    /// Something is not on the card.
    pub(super) elided: bool,
    /// A credential is masked.
    pub(super) secret: bool,
    /// Dangers anywhere in the input, each once.
    pub(super) attention: Vec<Danger>,
    /// Dangers in what is not shown, quoted.
    pub(super) hidden: Vec<(Danger, String)>,
    /// All of those, also the ones past quoting.
    pub(super) hidden_hits: usize,
    pub(super) bytes: usize,
}

/// The tools with a layout of their own.
const LAID_OUT: &[&str] = &[
    "Bash",
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "Read",
    "WebFetch",
    "WebSearch",
    "Write",
];
/// As many quotes as fit beside the rest; the others are counted.
const MAX_QUOTES: usize = 6;
/// Shown on both sides of a hit, so that the quote can be understood.
const QUOTE_MARGIN: usize = 48;

pub(super) fn body(request: &Request, budget: Budget, lang: Lang) -> Body {
    let mut sheet = Sheet {
        body: Body {
            nodes: Vec::new(),
            elided: false,
            secret: false,
            attention: Vec::new(),
            hidden: Vec::new(),
            hidden_hits: 0,
            bytes: 0,
        },
        budget,
        lang,
    };
    sheet.body.bytes = leaves::weigh(&request.input);
    let known = request
        .input
        .as_object()
        .is_some_and(|input| sheet.known(request, input).is_some());
    if !known {
        sheet.body.nodes.clear();
        if LAID_OUT.contains(&&*request.tool) {
            sheet.push(coloured(words::UNUSUAL.get(lang), "red"));
        }
        sheet.fields(&words::INPUT, &request.input, &[], 8);
    }
    sheet.body
}

struct Sheet {
    body: Body,
    budget: Budget,
    lang: Lang,
}

fn text<'a>(input: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    input.get(name)?.as_str()
}

impl Sheet {
    /// The tool's own layout; none when the input isn't what the tool takes.
    fn known(&mut self, request: &Request, input: &Map<String, Value>) -> Option<()> {
        let all = &request.input;
        match &*request.tool {
            "Bash" => {
                let command = text(input, "command")?;
                self.block(&words::COMMAND, command, Shape::Lines, 5, Scan::Command);
                let mut shown = vec!["command"];
                if let Some(claim) = text(input, "description") {
                    self.block(&words::CLAIM, claim, Shape::Line, 1, Scan::Content);
                    shown.push("description");
                }
                self.fields(&words::FIELDS, all, &shown, 2);
            }
            "Edit" => {
                let changes = diff::of(&[input])?;
                let named = self.path(request, text(input, "file_path")?);
                self.block(&words::CHANGES, &changes, Shape::Diff, 6, Scan::Content);
                if input.get("replace_all") == Some(&Value::Bool(true)) {
                    self.push(note(words::REPLACE_ALL.get(self.lang)));
                }
                let shown = ["old_string", "new_string", "replace_all"];
                self.fields(&words::FIELDS, all, &[&shown[..], named].concat(), 1);
            }
            "MultiEdit" => {
                let edits = input.get("edits")?.as_array()?;
                let edits: Option<Vec<_>> = edits.iter().map(Value::as_object).collect();
                let changes = diff::of(&edits?)?;
                let named = self.path(request, text(input, "file_path")?);
                self.block(&words::CHANGES, &changes, Shape::Diff, 6, Scan::Content);
                self.fields(&words::FIELDS, all, &[&["edits"], named].concat(), 1);
            }
            "Write" => {
                let content = text(input, "content")?;
                let named = self.path(request, text(input, "file_path")?);
                self.block(&words::CONTENT, content, Shape::Code, 6, Scan::Content);
                self.fields(&words::FIELDS, all, &[&["content"], named].concat(), 1);
            }
            "NotebookEdit" => {
                let source = text(input, "new_source")?;
                text(input, "notebook_path").map(|named| self.path(request, named));
                self.block(&words::CELL, source, Shape::Code, 5, Scan::Content);
                self.fields(&words::FIELDS, all, &["new_source"], 2);
            }
            "Read" => {
                let named = self.path(request, text(input, "file_path")?);
                self.fields(&words::FIELDS, all, named, 6);
            }
            "WebFetch" => {
                let url = text(input, "url")?;
                self.block(&words::URL, url, Shape::Line, 3, Scan::Content);
                if let Some(host) = Url::parse(url)
                    .ok()
                    .and_then(|url| url.host_str().map(str::to_owned))
                {
                    self.line(&words::HOST, &host);
                }
                let mut shown = vec!["url"];
                if let Some(prompt) = text(input, "prompt") {
                    self.block(&words::PROMPT, prompt, Shape::Lines, 3, Scan::Content);
                    shown.push("prompt");
                }
                self.fields(&words::FIELDS, all, &shown, 2);
            }
            "WebSearch" => {
                self.block(
                    &words::QUERY,
                    text(input, "query")?,
                    Shape::Line,
                    4,
                    Scan::Content,
                );
                self.fields(&words::FIELDS, all, &["query"], 4);
            }
            _ => return None,
        }
        Some(())
    }

    fn push(&mut self, node: Value) {
        self.body.nodes.push(node);
    }

    /// So many eighths of the whole budget.
    fn share(&self, eighths: usize) -> Budget {
        Budget {
            bytes: self.budget.bytes * eighths / 8,
            lines: (self.budget.lines * eighths / 8).max(3),
        }
    }

    fn line(&mut self, label: &Text, value: &str) {
        let budget = Budget {
            bytes: self.share(1).bytes.max(400),
            lines: 1,
        };
        let shown = self.show(value, Shape::Line, budget, Scan::Content);
        let line = format!("{}: {shown}", label.get(self.lang));
        self.push(div(&line));
    }

    /// The path as it is meant, and whether that is outside the project. Says
    /// which field it thereby showed.
    fn path(&mut self, request: &Request, named: &str) -> &'static [&'static str] {
        let resolved = path::resolve(&request.origin.cwd, named);
        let text = resolved.to_string_lossy();
        self.line(&words::PATH, &text);
        if !path::is_inside(&resolved, &request.origin.project) {
            self.push(coloured(words::OUTSIDE.get(self.lang), "red"));
        }
        if text == named { &["file_path"] } else { &[] }
    }

    fn block(&mut self, label: &Text, text: &str, shape: Shape, eighths: usize, scan: Scan) {
        let budget = self.share(eighths);
        let shown = self.show(text, shape, budget, scan);
        self.framed(label, &shown);
    }

    fn framed(&mut self, label: &Text, text: &str) {
        self.push(note(label.get(self.lang)));
        let text = if text.is_empty() {
            words::EMPTY.get(self.lang)
        } else {
            text
        };
        let frame = json!({
            "tag": "column_set",
            "flex_mode": "none",
            "background_style": "grey",
            "columns": [{
                "tag": "column",
                "width": "weighted",
                "weight": 1,
                "padding": "8px 8px 8px 8px",
                "elements": [div(text)],
            }],
        });
        self.push(frame);
    }

    /// Everything in the input but the fields already shown.
    fn fields(&mut self, label: &Text, input: &Value, shown: &[&str], eighths: usize) {
        let budget = self.share(eighths);
        let text = leaves::list(self, input, shown, budget);
        if !text.is_empty() {
            self.framed(label, &text);
        } else if shown.is_empty() {
            self.framed(label, "");
        }
    }

    /// The text as the card shows it, with everything else about it noted.
    fn show(&mut self, text: &str, shape: Shape, budget: Budget, scan: Scan) -> String {
        let secrets = secrets::find(text);
        self.body.secret |= !secrets.is_empty();
        let Shown {
            mut head,
            tail,
            hidden,
        } = escape::fit(text, shape, &secrets, budget);
        let hits = danger::scan(text, scan);
        self.note_hits(text, &hits, hidden.as_ref(), &secrets);
        let Some(Hidden { range, lines }) = hidden else {
            return head;
        };
        self.body.elided = true;
        let marker = words::omitted(range.len(), lines);
        let marker = marker.get(self.lang);
        let _ = match shape {
            Shape::Line => write!(head, " {marker} {tail}"),
            Shape::Lines | Shape::Code | Shape::Diff => {
                let end = if head.ends_with('\n') { "" } else { "\n" };
                write!(head, "{end}{marker}\n{tail}")
            }
        };
        head
    }

    /// A text that isn't shown at all.
    fn skip(&mut self, text: &str) {
        let secrets = secrets::find(text);
        let all = Hidden {
            range: 0..text.len(),
            lines: 0,
        };
        self.body.elided = true;
        self.note_hits(
            text,
            &danger::scan(text, Scan::Command),
            Some(&all),
            &secrets,
        );
    }

    fn note_hits(
        &mut self,
        text: &str,
        hits: &[Hit],
        hidden: Option<&Hidden>,
        secrets: &[secrets::Secret],
    ) {
        for Hit { danger, range } in hits {
            if !self.body.attention.contains(danger) {
                self.body.attention.push(*danger);
            }
            let unseen = hidden.is_some_and(|hidden| {
                range.start < hidden.range.end && range.end > hidden.range.start
            });
            if !unseen {
                continue;
            }
            self.body.hidden_hits += 1;
            if self.body.hidden.len() < MAX_QUOTES {
                let before = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
                let after = text[range.end..]
                    .find('\n')
                    .map_or(text.len(), |at| range.end + at);
                let from = range.start.saturating_sub(QUOTE_MARGIN).max(before);
                let to = (range.end + QUOTE_MARGIN).min(after);
                let quoted = text.floor_char_boundary(from)..text.ceil_char_boundary(to);
                let quote = escape::excerpt(text, quoted, secrets);
                self.body.hidden.push((*danger, cut(quote, 240)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{read, request, waiting};
    use super::*;

    #[test]
    fn every_leaf_of_an_unknown_tool_is_shown() {
        let input = json!({
            "to": "bob@example.com", "n": 3, "on": true, "none": null, "empty": "", "list": [], "map": {},
            "body": "line one\nline two", "nested": {"deep": [{"x": "y"}]}, "cc: bob": "eve",
        });
        let seen = read(&waiting(&request("mcp__mail__send", input)));
        for leaf in [
            "to: bob@example.com",
            "n: 3",
            "on: true",
            "none: null",
            "empty: ",
            "list: []",
            "map: {}",
            "body: line one\n  │ line two",
            "nested.deep[0].x: y",
            "\"cc: bob\": eve",
        ] {
            assert!(seen.contains(leaf), "{leaf} in {seen}");
        }
    }

    #[test]
    fn input_that_is_not_the_tools_own_is_shown_as_it_came() {
        let seen = read(&waiting(&request(
            "Bash",
            json!({"cmd": "ls", "command": 3}),
        )));
        assert!(seen.contains("参数格式与该工具不符"), "{seen}");
        assert!(seen.contains("cmd: ls\ncommand: 3"), "{seen}");
    }

    #[test]
    fn a_long_leaf_does_not_push_the_short_ones_off() {
        let long = "x".repeat(40_000);
        let input = json!({"a": long, "to": "evil@example.com", "z": long});
        let seen = read(&waiting(&request("mcp__mail__send", input)));
        assert!(seen.contains("to: evil@example.com"), "{seen}");
    }

    #[test]
    fn files_show_where_they_really_are() {
        let edit = |path: &str| {
            request(
                "Edit",
                json!({"file_path": path, "old_string": "a\n", "new_string": "b\n"}),
            )
        };
        let seen = read(&waiting(&edit("/home/lin/shop/x/../y.rs")));
        assert!(
            seen.contains("文件: /home/lin/shop/y.rs") && seen.contains("-a\n+b"),
            "{seen}"
        );
        assert!(
            seen.contains("file_path: /home/lin/shop/x/../y.rs"),
            "{seen}"
        );
        assert!(!seen.contains("在项目之外"));
        let seen = read(&waiting(&edit("/home/lin/shop/../.bashrc")));
        assert!(
            seen.contains("文件: /home/lin/.bashrc") && seen.contains("⚠ 在项目之外"),
            "{seen}"
        );
        let seen = read(&waiting(&request(
            "WebFetch",
            json!({"url": "https://good.example@evil.example/"}),
        )));
        assert!(seen.contains("主机: evil.example"), "{seen}");
    }
}
