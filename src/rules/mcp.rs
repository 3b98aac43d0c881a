//! Tools of MCP servers by their names. A rule for one covers any input, so
//! only a name that reads as harmless gets one.

use crate::text::lists;

/// What the name must begin with: it looks at something and says what it saw.
const LOOKS: &str = "\
    count describe find get info inspect list lookup search show status view";

/// What the name must not hold: it does something, takes a language, goes
/// anywhere, or hands out what nobody should have.
const ACTS: &str = "\
    add all and apply approve assign bash browser call cancel click close cmd code command \
    commit config content contents copy create credential credentials cypher delete deploy \
    directory disable download drop edit enable env environment eval evaluate exec execute \
    expression fetch file files filesystem folder graphql http import insert install invoke \
    javascript kill key keys login mail merge message modify move navigate open or page \
    password passwords path post process program publish push put query python remove rename \
    replace request resource restart run save script secret secrets send set shell source sql \
    ssh start stop submit sync system terminal then token tokens transfer trigger update \
    upload upsert uri url write";

/// The most letters a name may have and still stand whole in a sentence.
const MAX_NAME: usize = 64;

/// `mcp__server__tool`, all three parts there and never a whole server, whose
/// tool's name begins like one that only looks.
pub(super) fn is_harmless(name: &str) -> bool {
    let Some((server, tool)) = name
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"))
    else {
        return false;
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if name.len() > MAX_NAME || server.is_empty() || !name.bytes().all(plain) {
        return false;
    }
    let words = words(tool);
    let looks = words.first().is_some_and(|word| lists::has(LOOKS, word));
    let (server, mut acts) = (self::words(server), words.iter());
    looks
        && !acts.any(|word| lists::has(ACTS, word))
        // A shell by any tool's name stays one.
        && !server.iter().any(|word| lists::has("bash exec shell ssh terminal", word))
}

/// `getIssue`, `get_issue`, `get-issue`: words in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        let parts = matches!(c, '_' | '-');
        if (parts || (was_small && c.is_ascii_uppercase()))
            && words.last().is_some_and(|word| !word.is_empty())
        {
            words.push(String::new());
        }
        if !parts && let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
        was_small = c.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_that_reads_as_looking_gets_a_rule() {
        for name in [
            "mcp__github__get_issue",
            "mcp__github__list_pull_requests",
            "mcp__jira__searchIssues",
            "mcp__k8s__describe-pod",
        ] {
            assert!(is_harmless(name), "{name}");
        }
        let long = format!("mcp__a__get_{}", "b".repeat(80));
        for name in [
            "mcp__shell__exec",
            "mcp__shell__list_jobs",
            "mcp__db__query",
            "mcp__db__get_and_run",
            "mcp__db__list_by_sql",
            "mcp__fs__read_file",
            "mcp__fs__get_file_contents",
            "mcp__mail__send_mail",
            "mcp__github__create_issue",
            "mcp__github__getAndDelete",
            "mcp__vault__get_secret",
            "mcp__web__fetch",
            "mcp__my-echo__echo",
            "mcp__x__y",
            "mcp__x__forget_issue",
            "mcp__x__",
            "mcp____get",
            "mcp__get",
            "mcp__x__get*",
            "mcp__x__get.it",
            "Bash",
            &long,
        ] {
            assert!(!is_harmless(name), "{name}");
        }
    }
}
