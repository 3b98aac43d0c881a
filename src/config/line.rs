//! One line of a settings file: its name and its value. Pure.

use super::broken::LineFault;

pub(super) fn pair(line: &str) -> Result<(&str, String), LineFault> {
    let (name, value) = line.split_once('=').ok_or(LineFault::NoPair)?;
    let name = name.trim();
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(LineFault::BadName);
    }
    let value = unquote(value.trim()).ok_or(LineFault::OpenQuote)?;
    Ok((name, value))
}

fn unquote(value: &str) -> Option<String> {
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote) {
            return rest.split_once(quote).map(|(inside, _)| inside.to_owned());
        }
    }
    let end = comment(value).unwrap_or(value.len());
    Some(value[..end].trim_end().to_owned())
}

/// Where the comment behind a value without quotes begins.
pub(crate) fn comment(value: &str) -> Option<usize> {
    let marks = [" #", "\t#"].iter();
    Some(marks.filter_map(|mark| value.find(mark)).min()? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_begins_at_the_first_mark() {
        for line in ["A=x\t#a #b", "A=x #a\t#b", "A=x # a"] {
            assert_eq!(pair(line).unwrap(), ("A", "x".to_owned()), "{line:?}");
        }
        assert_eq!(pair("A=x#a").unwrap(), ("A", "x#a".to_owned()));
    }
}
