//! Edits as the lines they take away and put in their place.

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};
use std::fmt::Write as _;

use crate::text::grouped;

/// Comparing more than this would cost more than it shows; old and new then
/// stand one after the other.
const MAX_COMPARED_BYTES: usize = 32 * 1024;
const MAX_COMPARED_LINES: usize = 400;
const CONTEXT: usize = 2;

/// One text for all edits. Every line of a file has a sign before it, so no
/// line can pass for one of ours.
pub(super) struct Diff {
    pub(super) text: String,
}

impl Diff {
    /// Lines put in and taken away.
    fn counts(&self) -> (usize, usize) {
        tally(&self.text)
    }

    pub(super) fn changed(&self) -> usize {
        let (added, removed) = self.counts();
        added + removed
    }

    /// `+3 −2`.
    pub(super) fn count(&self) -> String {
        said(self.counts())
    }

    /// The same for what stands after this byte.
    pub(super) fn count_after(&self, at: usize) -> String {
        said(tally(&self.text[at..]))
    }

    /// Where the first so many changed lines end.
    pub(super) fn first(&self, changed: usize) -> usize {
        let (mut at, mut seen) = (0, 0);
        for line in self.text.split_inclusive('\n') {
            if seen == changed {
                break;
            }
            seen += usize::from(line.starts_with(['+', '-']));
            at += line.len();
        }
        at
    }
}

fn tally(text: &str) -> (usize, usize) {
    let count = |sign: char| text.lines().filter(|line| line.starts_with(sign)).count();
    (count('+'), count('-'))
}

fn said((added, removed): (usize, usize)) -> String {
    format!("+{} −{}", grouped(added), grouped(removed))
}

/// None when one of them isn't an edit.
pub(super) fn of(edits: &[&Map<String, Value>]) -> Option<Diff> {
    let mut out = String::new();
    for (i, edit) in edits.iter().enumerate() {
        let old = edit.get("old_string")?.as_str()?;
        let new = edit.get("new_string")?.as_str()?;
        let replace_all = match edit.get("replace_all") {
            None => false,
            Some(value) => value.as_bool()?,
        };
        if edits.len() > 1 {
            let known = ["old_string", "new_string", "replace_all"];
            if edit.keys().any(|key| !known.contains(&&**key)) {
                return None;
            }
            let all = if replace_all { ", replace all" } else { "" };
            let _ = writeln!(out, "@@ {}/{}{all} @@", i + 1, edits.len());
        }
        compare(&mut out, old, new);
    }
    if out.ends_with('\n') {
        out.pop();
    }
    Some(Diff { text: out })
}

fn compare(out: &mut String, old: &str, new: &str) {
    let lines = |text: &str| text.bytes().filter(|&b| b == b'\n').count();
    let comparable = old.len() + new.len() <= MAX_COMPARED_BYTES
        && lines(old) <= MAX_COMPARED_LINES
        && lines(new) <= MAX_COMPARED_LINES;
    if !comparable {
        for (sign, text) in [('-', old), ('+', new)] {
            for line in text.split_inclusive('\n') {
                signed(out, sign, line);
            }
        }
        return;
    }
    let diff = TextDiff::from_lines(old, new);
    let mut next = 0;
    for group in diff.grouped_ops(CONTEXT) {
        let start = group.first().map_or(next, |op| op.old_range().start);
        unchanged(out, start - next);
        for op in &group {
            for change in diff.iter_changes(op) {
                let sign = match change.tag() {
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                    ChangeTag::Equal => ' ',
                };
                signed(out, sign, change.value());
            }
            next = op.old_range().end;
        }
    }
    unchanged(out, diff.old_len() - next);
}

fn signed(out: &mut String, sign: char, line: &str) {
    out.push(sign);
    out.push_str(line);
    if !line.ends_with('\n') {
        out.push('\n');
    }
}

fn unchanged(out: &mut String, lines: usize) {
    if lines > 0 {
        let _ = writeln!(out, "@@ {lines} unchanged @@");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn diff(edits: &[Value]) -> Option<String> {
        let edits: Vec<_> = edits.iter().map(|edit| edit.as_object().unwrap()).collect();
        of(&edits).map(|diff| diff.text)
    }

    #[test]
    fn only_what_changes_is_shown_with_a_little_around_it() {
        let old: String = (0..20).fold(String::new(), |text, i| text + &format!("line {i}\n"));
        let new = old.replace("line 10\n", "line ten\n");
        let edit = json!({"old_string": old, "new_string": new});
        assert_eq!(
            diff(&[edit]).unwrap(),
            "@@ 8 unchanged @@\n line 8\n line 9\n-line 10\n+line ten\n line 11\n \
             line 12\n@@ 7 unchanged @@"
        );
    }

    #[test]
    fn several_edits_are_numbered_and_none_can_pose_as_another() {
        let first =
            json!({"old_string": "a", "new_string": "b\n@@ 2/2 @@\n+c", "replace_all": true});
        let second = json!({"old_string": "x", "new_string": ""});
        assert_eq!(
            diff(&[first, second]).unwrap(),
            "@@ 1/2, replace all @@\n-a\n+b\n+@@ 2/2 @@\n++c\n@@ 2/2 @@\n-x"
        );
    }

    #[test]
    fn what_is_too_long_to_compare_is_listed_whole() {
        let old = "a\n".repeat(30_000);
        let edit = json!({"old_string": old, "new_string": "b"});
        let text = diff(&[edit]).unwrap();
        assert_eq!(text.lines().count(), 30_001);
        assert!(text.ends_with("-a\n+b"));
    }

    #[test]
    fn what_is_not_an_edit_is_not_shown_as_one() {
        assert_eq!(diff(&[json!({"old_string": "a"})]), None);
        assert_eq!(diff(&[json!({"old_string": "a", "new_string": 1})]), None);
        let odd = json!({"old_string": "a", "new_string": "b", "extra": 1});
        assert_eq!(diff(&[odd.clone(), odd]), None);
    }
}
