//! How many tables a markdown text draws, and how many Feishu takes.

use serde_json::{Map, Value};

use super::{BadCard, OVER_LIMIT, refuse};

/// The documents say four; Feishu has refused the fourth.
const MAX_TABLES: usize = 3;

pub(super) fn few(map: &Map<String, Value>, path: &str) -> Result<(), BadCard> {
    let text = map
        .get("content")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if tables(text) > MAX_TABLES {
        return refuse(
            OVER_LIMIT,
            format!("card table number over limit at `{path}`"),
        );
    }
    Ok(())
}

/// How many tables a markdown text draws: each line of dashes and bars below a
/// line with a bar, outside of code.
fn tables(text: &str) -> usize {
    let is_rule = |line: &str| {
        line.contains('-')
            && line.contains('|')
            && line
                .chars()
                .all(|c| matches!(c, '-' | '|' | ':' | ' ' | '\t'))
    };
    let mut count = 0;
    let mut in_code = false;
    let mut above = "";
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
        }
        if !in_code && is_rule(line) && above.contains('|') && !is_rule(above) {
            count += 1;
        }
        above = line;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_counted_as_they_are_drawn() {
        let table = "| a | b |\n|:--|--:|\n| 1 | 2 |\n";
        assert_eq!(tables(&table.repeat(3)), 3);
        assert_eq!(tables(&format!("```\n{table}```\n{table}")), 1);
        assert_eq!(tables("a | b\n--|--\n1 | 2"), 1);
        assert_eq!(tables("text\n---\n- a\n- b | c"), 0);
    }
}
