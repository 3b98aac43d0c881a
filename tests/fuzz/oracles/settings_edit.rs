//! Any text as a project's settings, any text as a rule: nothing but the rule
//! is added, taking it back leaves what was there, and a file that is not
//! understood is not touched.

use std::fs;
use std::path::Path;

use nod::for_tests::claude::settings_file::{add_allow_rule, remove_allow_rule};
use serde_json::Value;

const RULE: &str = "Bash(make nod)";

/// The rule stands before the first NUL, if there is one.
pub(crate) fn check(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |b| *b == 0);
    let first = parts.next().unwrap_or_default();
    let (rule, old) = match (parts.next(), str::from_utf8(first)) {
        (Some(old), Ok(rule)) => (rule, old),
        (Some(old), Err(_)) => (RULE, old),
        (None, _) => (RULE, bytes),
    };
    let project = tempfile::tempdir().expect("a directory");
    let dir = project.path().join(".claude");
    fs::create_dir(&dir).expect("a directory");
    let file = dir.join("settings.local.json");
    fs::write(&file, old).expect("a file");
    edit_and_undo(project.path(), &file, old, rule);
    let left = fs::read_dir(&dir).expect("the directory").count();
    assert_eq!(left, 1, "something was left beside the file");
}

fn edit_and_undo(project: &Path, file: &Path, old: &[u8], rule: &str) {
    let read = || fs::read(file).expect("still there");
    if !matches!(add_allow_rule(project, rule), Ok(true)) {
        assert_eq!(read(), old, "a file that was not to be touched");
        return;
    }
    assert!(!rule.trim().is_empty() && !rule.contains(char::is_control));
    let new = read();
    let before: Value = serde_json::from_slice(old).expect("it was JSON");
    let after: Value = serde_json::from_slice(&new).expect("it is JSON");
    let allow = |settings: &Value| {
        let rules = settings["permissions"]["allow"].as_array();
        rules.cloned().unwrap_or_default()
    };
    let mut wanted = allow(&before);
    wanted.push(rule.into());
    assert_eq!(allow(&after), wanted);
    only_inserted(old, &new);

    let again = add_allow_rule(project, rule).expect("the file is sound");
    assert!(!again);
    assert_eq!(read(), new);
    let undone = remove_allow_rule(project, rule).expect("the file is sound");
    assert!(undone);
    let left = read();
    let meaning: Value = serde_json::from_slice(&left).expect("it is JSON");
    assert_eq!(allow(&meaning), allow(&before));
    if before["permissions"]["allow"].is_array() {
        assert_eq!(compact(&left), compact(old), "undone, but not as it was");
    }
    let nothing = remove_allow_rule(project, rule).expect("the file is sound");
    assert!(!nothing);
    assert_eq!(read(), left);
}

/// All of the old text is in the new one, in one piece or two.
fn only_inserted(old: &[u8], new: &[u8]) {
    let (old, new) = (compact(old), compact(new));
    let same = |pair: &(&u8, &u8)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(same)
        .count();
    assert!(head + tail >= old.len(), "more than the rule was changed");
}

/// The text without the blanks between its words.
fn compact(text: &[u8]) -> Vec<u8> {
    let (mut quoted, mut escaped) = (false, false);
    let kept = text.iter().copied().filter(|&byte| {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            return true;
        }
        quoted = byte == b'"';
        !byte.is_ascii_whitespace()
    });
    kept.collect()
}
