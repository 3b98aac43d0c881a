//! Input of any shape as a list of its leaves: small ones whole, long ones by
//! head and tail, and too many of them counted.

use serde_json::Value;
use std::borrow::Cow;

use super::{ScanKind, Sheet};
use crate::cards::EVERYTHING;
use crate::text::escape::{Budget, Shape};
use crate::text::secrets;
use crate::wording::card as words;

/// Every leaf gets at least this, or isn't shown.
const LEAST: usize = 80;
/// What a leaf's name may take, and what a name and a line break cost besides.
const MAX_NAME: usize = 160;
const BESIDES: usize = 8;
/// What surely fits one line of a phone.
const WIDTH: usize = 40;

/// Bytes of text in the input, names included.
pub(in crate::cards) fn weigh(input: &Value) -> usize {
    match input {
        Value::String(text) => text.len(),
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| name.len() + weigh(value))
            .sum(),
        Value::Array(items) => items.iter().map(|item| 1 + weigh(item)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
    }
}

/// Whether all there is was shown already. An empty input is shown as such.
pub(super) fn are_none(input: &Value, shown: &[&str]) -> bool {
    !shown.is_empty()
        && input
            .as_object()
            .is_some_and(|map| map.keys().all(|key| shown.contains(&&**key)))
}

/// `name: value` for every leaf but the top-level fields already shown.
pub(super) fn list(sheet: &mut Sheet, input: &Value, shown: &[&str], budget: Budget) -> String {
    let mut sizes = Vec::new();
    let (mut total, mut bytes, mut lines) = (0_usize, 0_usize, 0_usize);
    each(input, shown, &mut |name, value| {
        let size = value.len().saturating_add(name.len());
        // Only as many as can matter for the shares.
        if sizes.len() <= budget.bytes / LEAST {
            sizes.push(size);
        }
        total += 1;
        bytes = bytes.saturating_add(size + BESIDES);
        lines = lines.saturating_add(height(name, &value));
    });
    if total == 0 {
        return String::new();
    }
    // Many that are small are as quickly read as a few that are long.
    let all_fit = bytes <= budget.bytes && lines <= budget.lines;
    let room = if all_fit {
        total
    } else {
        (budget.bytes / LEAST).min(budget.lines).max(2)
    };
    let (first, last) = if total <= room {
        (total, 0)
    } else {
        (room - room / 3, room / 3)
    };
    let each_leaf = if all_fit {
        budget
    } else {
        Budget::new(
            share(&sizes, total.min(room), budget.bytes),
            (budget.lines / total.min(room)).max(4),
        )
    };
    let mut out = String::new();
    let (mut index, mut skipped, mut skipped_bytes) = (0, 0, 0);
    each(input, shown, &mut |name, value| {
        let visible = index < first || index >= total - last;
        index += 1;
        if !visible {
            skipped += 1;
            skipped_bytes += name.len() + value.len();
            sheet.skip("", name, ScanKind::Value);
            sheet.skip(name, &value, meaning(name));
            return;
        }
        if skipped > 0 && index == total - last + 1 {
            let skipped = if sheet.glance {
                words::folded_fields(skipped)
            } else {
                words::omitted_fields(skipped, skipped_bytes)
            };
            line(&mut out, skipped.get(sheet.lang));
        }
        let text = sheet.show_masked(
            &value,
            Shape::Lines,
            each_leaf,
            meaning(name),
            &secrets::under(name, &value),
        );
        if name.is_empty() {
            line(&mut out, &text);
        } else {
            let name = named(sheet, name);
            // Lines of a value stand behind a bar, so none can pass for a name.
            let text = text.replace('\n', "\n  │ ");
            line(&mut out, &format!("{name}: {text}"));
        }
    });
    out
}

/// The lines that a leaf takes on a phone, at most.
fn height(name: &str, value: &str) -> usize {
    let rows = |bytes: usize| bytes.div_ceil(WIDTH).max(1);
    let mut lines = value.split('\n');
    let first = rows(name.len() + lines.next().unwrap_or_default().len());
    first + lines.map(|line| rows(line.len())).sum::<usize>()
}

/// A field that says it holds a command is read as one.
fn meaning(name: &str) -> ScanKind {
    let last = name.rsplit('.').next().unwrap_or(name);
    let last = last.split('[').next().unwrap_or(last);
    match &*last.to_ascii_lowercase() {
        "command" | "cmd" | "shell" | "bash" | "script" | "shell_command" => ScanKind::Command,
        _ => ScanKind::Value,
    }
}

/// A name that could be read as a name and its value stands in quotes.
fn named(sheet: &mut Sheet, name: &str) -> String {
    let budget = if sheet.budget == EVERYTHING {
        EVERYTHING
    } else {
        Budget::new(MAX_NAME, 1)
    };
    let shown = sheet.show(name, Shape::Line, budget, ScanKind::Value);
    if name.contains([':', ' ', '"', '\n', '=']) {
        format!("\"{shown}\"")
    } else {
        shown
    }
}

fn line(out: &mut String, text: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(text);
}

/// The most one leaf may take, so that all together keep the budget: what the
/// small ones leave over goes to the long ones.
fn share(sizes: &[usize], leaves: usize, budget: usize) -> usize {
    let budget = budget.saturating_sub(leaves * BESIDES);
    let mut most = (budget / leaves.max(1)).max(LEAST / 2);
    if sizes.len() > leaves {
        return most;
    }
    for _ in 0..4 {
        let (small, long): (Vec<usize>, Vec<usize>) =
            sizes.iter().copied().partition(|&size| size <= most);
        if long.is_empty() {
            break;
        }
        let left = budget.saturating_sub(small.iter().sum());
        most = most.max(left / long.len());
    }
    most
}

fn each(input: &Value, shown: &[&str], visit: &mut dyn FnMut(&str, Cow<'_, str>)) {
    let mut name = String::new();
    match input {
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| !shown.contains(&&***key)) {
                name.clear();
                name.push_str(key);
                walk(value, &mut name, visit);
            }
        }
        Value::Array(_) | Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {
            walk(input, &mut name, visit);
        }
    }
}

fn walk(value: &Value, name: &mut String, visit: &mut dyn FnMut(&str, Cow<'_, str>)) {
    let len = name.len();
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                name.push('.');
                name.push_str(key);
                walk(value, name, visit);
                name.truncate(len);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                name.push('[');
                name.push_str(&i.to_string());
                name.push(']');
                walk(item, name, visit);
                name.truncate(len);
            }
        }
        Value::String(text) => visit(name, Cow::Borrowed(text)),
        Value::Object(_) => visit(name, Cow::Borrowed("{}")),
        Value::Array(_) => visit(name, Cow::Borrowed("[]")),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            visit(name, Cow::Owned(value.to_string()));
        }
    }
}
