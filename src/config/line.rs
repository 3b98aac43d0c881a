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
    let end = value
        .find(" #")
        .or_else(|| value.find("\t#"))
        .unwrap_or(value.len());
    Some(value[..end].trim_end().to_owned())
}
