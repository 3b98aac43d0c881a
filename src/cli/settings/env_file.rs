//! The text of nod's settings file with some values set or taken out; every
//! other line stays as it is. Pure.

use crate::config::line;

/// A value that no line can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the value of `{0}` can't stand in a settings file")]
pub(in crate::cli) struct UnfitValue(pub(in crate::cli) String);

/// The text with each value in place: in the line that counts, or in a new one
/// at the end.
pub(in crate::cli) fn with(text: &str, values: &[(&str, &str)]) -> Result<String, UnfitValue> {
    let ending = ending(text);
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    for (name, value) in values {
        let new = quoted(name, value)?;
        // The last line of a name is the one that counts.
        if let Some(at) = lines.iter().rposition(|line| name_of(line) == Some(name)) {
            lines[at] = anew(&lines[at], name, &new);
            continue;
        }
        if let Some(last) = lines.last_mut()
            && line_ending(last).is_empty()
        {
            last.push_str(ending);
        }
        lines.push(format!("{name}={new}{ending}"));
    }
    Ok(lines.concat())
}

/// The line with another value; what stands before the name and the comment
/// behind the value stay.
fn anew(line: &str, name: &str, new: &str) -> String {
    let (before, old) = line.split_once('=').unwrap_or((line, ""));
    let before = before.trim_end().strip_suffix(name).unwrap_or_default();
    let comment = comment(old.trim());
    let new = match new {
        // A comment right behind the sign would be the value.
        "" if !comment.is_empty() => "\"\"",
        new => new,
    };
    format!("{before}{name}={new}{comment}{}", line_ending(line))
}

/// The comment behind a value, with a blank before it.
fn comment(value: &str) -> String {
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let begin = match quote {
        Some(quote) => {
            let behind = value[1..].find(quote).map_or(value.len(), |at| at + 2);
            value[behind..].find('#').map(|at| behind + at)
        }
        None => line::comment(value),
    };
    begin.map_or_else(String::new, |at| format!(" {}", &value[at..]))
}

/// The text without the named values, or with the lines they had in `before`.
pub(in crate::cli) fn without(text: &str, names: &[String], before: &str) -> String {
    text.split_inclusive('\n')
        .filter_map(|line| {
            let Some(name) = name_of(line).filter(|name| names.iter().any(|n| n == name)) else {
                return Some(line.to_owned());
            };
            let old = before.lines().rfind(|line| name_of(line) == Some(name))?;
            Some(format!("{old}{}", line_ending(line)))
        })
        .collect()
}

/// The name a line sets, if it sets one.
fn name_of(line: &str) -> Option<&str> {
    let line = line.trim_start_matches('\u{feff}').trim();
    if line.starts_with('#') {
        return None;
    }
    let line = line.strip_prefix("export ").unwrap_or(line);
    line.split_once('=').map(|(name, _)| name.trim())
}

fn line_ending(line: &str) -> &str {
    let bare = line.trim_end_matches(['\r', '\n']);
    &line[bare.len()..]
}

fn ending(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn quoted(name: &str, value: &str) -> Result<String, UnfitValue> {
    let plain = value
        .bytes()
        .all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'#'));
    if plain {
        return Ok(value.to_owned());
    }
    let mark = ['"', '\''].into_iter().find(|mark| !value.contains(*mark));
    match mark {
        Some(mark) if !value.chars().any(char::is_control) => Ok(format!("{mark}{value}{mark}")),
        _ => Err(UnfitValue(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let values = [("A", "1"), ("B", "two words")];
        let with = with(text, &values).unwrap();
        assert_eq!(with, expected, "{text:?}");
        let names = ["A".to_owned(), "B".to_owned()];
        assert_eq!(super::with(&with, &values).unwrap(), with, "twice");
        let back = without(&with, &names, text);
        assert_eq!(back.trim_end(), text.trim_end(), "and back");
    }

    #[test]
    fn values_are_set_where_they_count_and_other_lines_stay() {
        check("", "A=1\nB=\"two words\"\n");
        check("X=y", "X=y\nA=1\nB=\"two words\"\n");
        check(
            "# A=0\nexport A = 'old' # why\nX=y\n",
            "# A=0\nexport A=1 # why\nX=y\nB=\"two words\"\n",
        );
        check("A=0\r\nB=0\r\n", "A=1\r\nB=\"two words\"\r\n");
        let text = "\u{feff}X=1\n";
        check(text, "\u{feff}X=1\nA=1\nB=\"two words\"\n");
    }

    #[test]
    fn a_comment_behind_a_value_stays_and_is_never_taken_for_one() {
        for (line, value, expected) in [
            ("A=0 # why", "1", "A=1 # why"),
            ("A=0\t# why # now", "1", "A=1 # why # now"),
            ("A='0 # 1' # why", "1", "A=1 # why"),
            ("A=\"0\"# why", "1", "A=1 # why"),
            ("A='0' x # why", "1", "A=1 # why"),
            ("A=0#1", "1", "A=1"),
            ("A=0 # why", "", "A=\"\" # why"),
            ("A=0 # why", "a # b", "A=\"a # b\" # why"),
            ("\u{feff} A =0", "1", "\u{feff} A=1"),
            ("A='0", "1", "A=1"),
        ] {
            let after = with(line, &[("A", value)]).unwrap();
            assert_eq!(after, expected, "{line}");
            let read = crate::config::parse_env(&after).unwrap();
            assert_eq!(read["A"], value, "{after}");
        }
    }

    #[test]
    fn the_last_of_several_lines_is_the_one_changed() {
        let with = with("A=0\nA=2\n", &[("A", "1")]).unwrap();
        assert_eq!(with, "A=0\nA=1\n");
    }

    #[test]
    fn what_was_written_reads_back() {
        for value in ["plain", "a#b", "it's", "say \"x\"", "", " ", "a b"] {
            let text = with("", &[("A", value)]).unwrap();
            let read = crate::config::parse_env(&text).unwrap();
            assert_eq!(read["A"], value, "{text}");
        }
        assert!(with("", &[("A", "'\"")]).is_err());
        assert!(with("", &[("A", "a\nB=1")]).is_err());
    }
}
