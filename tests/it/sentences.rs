//! Every sentence nod can say, both languages side by side, taken from the
//! sources and compared with `tests/data/messages/sentences.txt`. A sentence
//! that is new, changed or in one language only shows in the diff, for a
//! person to read. `NOD_UPDATE_MESSAGES=1 cargo test --test it sentences`
//! writes the file anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file's string literals, in order, without its tests and comments.
fn literals(code: &str) -> Vec<String> {
    let code = code.split("mod tests {").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let from = &rest[at..];
        if from.starts_with("//") {
            rest = from.split_once('\n').map_or("", |(_, after)| after);
        } else if from.starts_with('"') {
            let end = closing(from);
            found.push(unescaped(&from[1..end]));
            rest = &from[end + 1..];
        } else {
            // A quoted quote is no string.
            let char_literal = ["'\"'", "'\\\"'"]
                .iter()
                .find(|one| from.starts_with(**one));
            rest = &from[char_literal.map_or(1, |one| one.len())..];
        }
    }
    found
}

/// Where the literal that starts `text` ends.
fn closing(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    panic!("a literal is not closed: {}", &text[..text.len().min(40)]);
}

fn unescaped(text: &str) -> String {
    text.replace("\\n", "⏎").replace("\\\"", "\"")
}

fn is_han(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

fn has_han(text: &str) -> bool {
    text.chars().any(is_han)
}

struct Sentence {
    file: String,
    zh: String,
    /// `None`: no English stands beside it.
    en: Option<String>,
}

fn sentences() -> Vec<Sentence> {
    let mut files = Vec::new();
    collect(&root().join("src"), &mut files);
    files.sort();
    let mut all = Vec::new();
    for path in files {
        let file = path
            .strip_prefix(root())
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let found = literals(&fs::read_to_string(&path).unwrap());
        for (n, zh) in found.iter().enumerate().filter(|(_, text)| has_han(text)) {
            let en = found.get(n + 1).filter(|next| !has_han(next)).cloned();
            let zh = zh.clone();
            all.push(Sentence {
                file: file.clone(),
                zh,
                en,
            });
        }
    }
    assert!(all.len() > 400, "the sentences were found");
    all
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") && name != "tests.rs" {
            files.push(path);
        }
    }
}

#[test]
fn every_sentence_is_as_it_was_read() {
    let (mut text, mut file) = (String::new(), String::new());
    for sentence in sentences() {
        if sentence.file != file {
            file.clone_from(&sentence.file);
            let _ = writeln!(text, "== {file}");
        }
        let en = sentence.en.as_deref().unwrap_or("-");
        let _ = writeln!(text, "{}\n    {en}", sentence.zh);
    }
    let place = root().join("tests/data/messages/sentences.txt");
    if std::env::var_os("NOD_UPDATE_MESSAGES").is_some() {
        fs::write(&place, &text).unwrap();
        return;
    }
    let known = fs::read_to_string(&place).unwrap_or_default();
    for (known, said) in known.split("== ").zip(text.split("== ")) {
        assert_eq!(known, said, "NOD_UPDATE_MESSAGES=1 writes it anew");
    }
    assert_eq!(known.len(), text.len());
}

#[test]
fn chinese_is_set_as_feishu_sets_it() {
    let mut wrong = Vec::new();
    for Sentence { file, zh, .. } in sentences() {
        let chars: Vec<char> = outside_literals(&zh);
        for pair in chars.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let half_width = is_han(a) && matches!(b, ',' | ';' | ':' | '?' | '!' | '(' | ')')
                || is_han(b) && matches!(a, ',' | ';' | '(' | ')');
            let touching = is_han(a) && (b.is_ascii_alphanumeric() || b == '`')
                || is_han(b) && (a.is_ascii_alphanumeric() || a == '`');
            if half_width || touching {
                wrong.push(format!("{file}: `{a}{b}` in {zh}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The text with every literal in backticks as one mark.
fn outside_literals(text: &str) -> Vec<char> {
    let parts = text.split('`').enumerate();
    let out = parts.map(|(n, part)| if n % 2 == 0 { part } else { "``" });
    out.collect::<String>().chars().collect()
}

#[test]
fn debug_formatting_reaches_nobody() {
    let mut files = Vec::new();
    collect(&root().join("src"), &mut files);
    let mut wrong = Vec::new();
    for path in files {
        // Rooms that only tests enter.
        if ["cards/truth.rs", "daemon/bench.rs", "hook/test_office.rs"]
            .iter()
            .any(|room| path.ends_with(room))
        {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("mod tests {").next().unwrap_or_default();
        let mut level = "";
        for (n, line) in code.lines().enumerate() {
            let macros = ["trace!(", "debug!(", "info!(", "warn!(", "error!("];
            if let Some(found) = macros.iter().find(|name| line.contains(**name)) {
                level = found;
            }
            let loud = matches!(level, "info!(" | "warn!(" | "error!(");
            let start = line.trim_start();
            let field = start.starts_with('?') || line.contains("= ?") || line.contains("(?");
            if line.contains(":?}") || line.contains(":#?}") || (loud && field) {
                wrong.push(format!("{}:{}: {start}", path.display(), n + 1));
            }
            if line.contains(");") {
                level = "";
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
