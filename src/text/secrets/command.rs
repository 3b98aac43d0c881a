//! Credentials in a shell command. A mask may hide a value and never what runs
//! or where: a word that is or could become a program, a script or an address
//! stays in sight, and in doubt so does everything else.

use std::collections::HashSet;
use std::ops::Range;

use super::{FoundSecret, all, find, name_kind};
use crate::text::lists;

/// Programs whose arguments are code, scripts or other programs.
const RUNNERS: &str = "\
    . alias ash awk bash bun bunx busybox cargo csh dash deno eval expect find fish gawk go \
    java just ksh lua make node nodejs npx osascript parallel perl php pipx powershell pwsh \
    python python2 python3 ruby script sed sh source ssh su tclsh tcsh trap uvx watch xargs \
    zsh";
/// Those of them that run the words themselves, flags and all.
const EVALUATORS: &str = ". alias eval source trap";
/// Programs before the program.
const WRAPPERS: &[&str] = &[
    "builtin", "command", "doas", "env", "exec", "export", "nice", "nohup", "setsid", "stdbuf",
    "sudo", "time",
];
/// Programs that take a credential from their input.
const LOGINS: &str = "docker gh helm podman skopeo vault";
const MYSQL: &str = "mariadb mysql mysqladmin mysqldump";

/// What may stand behind a data flag, by its beginning.
const DATA: &str = "\
    --body --build-arg --cookie --data --env --form --from-literal --header --json --secret \
    --set";
const SHORT_DATA: &str = "-d -F -H -b -e";

const OPERATORS: [char; 9] = ['\n', '\r', ';', '|', '&', '(', '{', '`', '!'];
/// A simple command of more words is not searched for a runner.
const MAX_WORDS: usize = 400;

/// The credentials that a card may mask in a command.
pub fn masks(text: &str) -> Vec<FoundSecret> {
    let found = find(text);
    let line = CommandLine {
        text,
        words: words(text),
        substitutes: text.contains("$(") || text.contains(['`', '>']),
    };
    let mut masks = given(text, &line.words);
    if found.is_empty() && masks.is_empty() {
        return found;
    }
    let expanded = Expanded::of(text);
    masks.retain(|secret| line.is_value(secret, true) && !expanded.covers(text, secret));
    let mut others: Vec<FoundSecret> = found
        .into_iter()
        .filter(|secret| {
            let after = masks.partition_point(|mask| mask.range.end <= secret.range.start);
            let apart = masks
                .get(after)
                .is_none_or(|mask| secret.range.end <= mask.range.start);
            apart && line.is_value(secret, false)
        })
        .collect();
    masks.append(&mut others);
    masks.sort_by_key(|secret| secret.range.start);
    masks
}

/// Whether a command holds a credential, also one that must stay in sight.
pub fn holds_one(text: &str) -> bool {
    !all(text).is_empty() || !given(text, &words(text)).is_empty()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordRole {
    /// `NAME=value` before a program.
    Assignment,
    Program,
    Argument,
}

#[derive(Debug, Clone)]
struct CommandWord {
    range: Range<usize>,
    role: WordRole,
    /// Which simple command it belongs to.
    command: usize,
    /// That command's output goes into a pipe.
    piped: bool,
}

impl CommandWord {
    fn text<'a>(&self, text: &'a str) -> &'a str {
        &text[self.range.clone()]
    }

    /// The word without its quotes and directory, as a program's name.
    fn name<'a>(&self, text: &'a str) -> &'a str {
        let word = self.text(text).trim_matches(['"', '\'', '\\']);
        word.rsplit('/').next().unwrap_or(word)
    }
}

/// The words of every simple command, by quotes and operators alone.
fn words(text: &str) -> Vec<CommandWord> {
    let bytes = text.as_bytes();
    let mut words: Vec<CommandWord> = Vec::new();
    let (mut at, mut command, mut expects) = (0, 0, true);
    while at < bytes.len() {
        match bytes[at] {
            // What a redirection names is an argument like others.
            b' ' | b'\t' | b'<' | b'>' => at += 1,
            b';' | b'&' | b'|' | b'\n' | b'\r' | b'(' | b')' | b'{' | b'}' | b'`' | b'!' => {
                let pipe = bytes[at] == b'|' && bytes.get(at + 1) != Some(&b'|');
                if pipe {
                    let own = words.iter_mut().rev();
                    own.take_while(|word| word.command == command)
                        .for_each(|word| word.piped = true);
                }
                (at, command, expects) = (at + 1, command + 1, true);
            }
            _ => {
                let end = word_end(bytes, at);
                let mut word = CommandWord {
                    range: at..end,
                    role: WordRole::Argument,
                    command,
                    piped: false,
                };
                if expects {
                    if is_assignment(word.text(text)) {
                        word.role = WordRole::Assignment;
                    } else {
                        word.role = WordRole::Program;
                        let name = word.name(text);
                        let goes_on = WRAPPERS.contains(&name)
                            || name.starts_with('-')
                            || matches!(name, "then" | "do" | "else" | "if" | "while" | "until");
                        expects = goes_on;
                    }
                }
                words.push(word);
                at = end;
            }
        }
    }
    words
}

fn word_end(bytes: &[u8], mut at: usize) -> usize {
    let mut quote = None;
    while let Some(&b) = bytes.get(at) {
        match (quote, b) {
            (None | Some(b'"'), b'\\') => at += 1,
            (None, b'\'' | b'"') => quote = Some(b),
            (Some(open), b) if open == b => quote = None,
            (
                None,
                b' ' | b'\t' | b'\n' | b'\r' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>'
                | b'`',
            ) => return at,
            _ => {}
        }
        at += 1;
    }
    at.min(bytes.len())
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

struct CommandLine<'a> {
    text: &'a str,
    words: Vec<CommandWord>,
    /// What a command prints may become a word, or a file that is run.
    substitutes: bool,
}

impl CommandLine<'_> {
    /// Whether the credential is a value and nothing else. `flagged` says that
    /// the program's own flag makes it one.
    fn is_value(&self, secret: &FoundSecret, flagged: bool) -> bool {
        let text = self.text;
        let Range { start, end } = secret.range;
        if text[start..end].contains(['/', '\n']) {
            return false;
        }
        // Also inside quotes, where it may be code.
        let before = text[..start].trim_end_matches(['"', '\'', ' ', '\t']);
        if before.is_empty() || before.ends_with(OPERATORS) {
            return false;
        }
        let at = self.words.partition_point(|word| word.range.end <= start);
        let Some(word) = self.words.get(at).filter(|word| word.range.start <= start) else {
            return false;
        };
        let whole = word.text(text);
        if end > word.range.end || whole.contains("$(") || whole.contains('`') {
            return false;
        }
        match word.role {
            WordRole::Program => return false,
            WordRole::Assignment => return start > word.range.start + whole.find('=').unwrap_or(0),
            WordRole::Argument => {}
        }
        let Some(own) = self.simple(at) else {
            return false;
        };
        let has = |names: &str| own.iter().any(|other| lists::has(names, other.name(text)));
        if has(EVALUATORS) {
            return false;
        }
        let before = at
            .checked_sub(1)
            .map(|at| &self.words[at])
            .filter(|before| before.command == word.command)
            .map_or("", |before| before.text(text));
        let long_flag = whole.starts_with("--") && whole.contains('=');
        if long_flag && start > word.range.start + 2 {
            return true;
        }
        if has(RUNNERS) {
            return flagged && has("sshpass");
        }
        if flagged || (before.starts_with("--") && name_kind(before).is_some()) {
            return true;
        }
        let data = lists::has(SHORT_DATA, before)
            || lists::begins(SHORT_DATA, whole)
            || lists::begins(DATA, before);
        let (from, to) = (start - word.range.start, end - word.range.start);
        let bare = from <= 1 && whole.len() - to <= 1;
        if !bare {
            return data || is_in_address(whole, from, to);
        }
        let echoed = own
            .iter()
            .any(|other| other.role == WordRole::Program && other.name(text) == "echo");
        let taken = self.words[at..]
            .iter()
            .take(MAX_WORDS)
            .find(|next| next.command > word.command)
            .is_some_and(|next| lists::has(LOGINS, next.name(text)));
        echoed && word.piped && taken && !self.substitutes
    }

    /// The simple command around a word; none when it is too long to know.
    fn simple(&self, at: usize) -> Option<&[CommandWord]> {
        let same = |word: &&CommandWord| word.command == self.words[at].command;
        let back = self.words[..at]
            .iter()
            .rev()
            .take(MAX_WORDS)
            .take_while(same);
        let on = self.words[at..].iter().take(MAX_WORDS).take_while(same);
        let (back, on) = (back.count(), on.count());
        (back < MAX_WORDS && on < MAX_WORDS).then(|| &self.words[at - back..at + on])
    }
}

/// The user's part before a host, or a value after the path: the host stays.
fn is_in_address(word: &str, start: usize, end: usize) -> bool {
    let Some(scheme) = word[..start].find("://") else {
        return false;
    };
    let before = &word[scheme + 3..start];
    let user = !before.contains(['/', '?', '#', '@'])
        && (before.is_empty() || before.ends_with(':'))
        && word[end..].starts_with('@');
    user || before.contains(['?', '#'])
}

/// The variables a text uses: what is assigned to one may become a word of a
/// command.
pub(super) struct Expanded<'a> {
    names: HashSet<&'a str>,
    any: bool,
}

impl<'a> Expanded<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let name = |rest: &'a str| {
            let rest = rest.strip_prefix('{').unwrap_or(rest);
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            &rest[..end.unwrap_or(rest.len())]
        };
        Self {
            names: text
                .match_indices('$')
                .map(|(at, _)| name(&text[at + 1..]))
                .filter(|name| !name.is_empty())
                .collect(),
            any: text.contains("${!") || text.contains("eval "),
        }
    }

    pub(super) fn covers(&self, text: &str, secret: &FoundSecret) -> bool {
        let before = text[..secret.range.start].trim_end_matches(['"', '\'']);
        let Some(before) = before.strip_suffix('=') else {
            return false;
        };
        let name = before
            .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default();
        !name.is_empty() && (self.any || self.names.contains(name))
    }
}

/// Passed by a flag that a program is known for, whatever it looks like.
fn given(text: &str, words: &[CommandWord]) -> Vec<FoundSecret> {
    let mut found = Vec::new();
    let mut program = "";
    for (i, word) in words.iter().enumerate() {
        let raw = word.text(text);
        match word.role {
            WordRole::Program => program = word.name(text),
            WordRole::Assignment => {
                let (name, _) = raw.split_once('=').unwrap_or_default();
                if name_kind(name) == Some("password") {
                    found.extend(part(
                        text,
                        word.range.start + name.len() + 1..word.range.end,
                    ));
                }
            }
            WordRole::Argument => {
                let next = words
                    .get(i + 1)
                    .filter(|next| next.command == word.command)
                    .map(|next| &next.range);
                found.extend(by_flag(text, program, word, next));
            }
        }
    }
    found
}

fn by_flag(
    text: &str,
    program: &str,
    word: &CommandWord,
    next: Option<&Range<usize>>,
) -> Option<FoundSecret> {
    let raw = word.text(text);
    let rest = |flag: &str| word.range.start + flag.len()..word.range.end;
    let short = |flag: &'static str| {
        let attached = raw.starts_with(flag) && raw.len() > flag.len() && !raw.starts_with("--");
        if attached {
            return Some(rest(flag));
        }
        next.cloned().filter(|_| raw == flag)
    };
    let long = |flag: &str| match raw.strip_prefix(flag) {
        Some("") => next.cloned(),
        Some(value) if value.starts_with('=') => Some(rest(flag).start + 1..word.range.end),
        _ => None,
    };
    match program {
        "curl" => {
            let pair = short("-u")
                .or_else(|| long("--user"))
                .or_else(|| long("--proxy-user"))?;
            let colon = text[pair.clone()].find(':')?;
            part(text, pair.start + colon + 1..pair.end)
        }
        // With a blank after it, `-p` asks and the next word is a database.
        _ if lists::has(MYSQL, program) && raw.starts_with("-p") && raw.len() > 2 => {
            part(text, rest("-p"))
        }
        "sshpass" => part(text, short("-p")?),
        "redis-cli" => part(text, short("-a")?),
        _ => part(text, long("--password").or_else(|| long("--passwd"))?),
    }
}

/// The value inside its quotes, if it could not be anything else.
fn part(text: &str, range: Range<usize>) -> Option<FoundSecret> {
    let raw = &text[range.clone()];
    let value = raw.trim_matches(['"', '\'']);
    let start = range.start + (raw.len() - raw.trim_start_matches(['"', '\'']).len());
    let plain = !value.contains(['/', '$', '`', '\n', '"', '\'', '<', '>', '|', ';', '&']);
    (!value.is_empty() && plain && !value.starts_with('-')).then_some(FoundSecret {
        range: start..start + value.len(),
        kind: "password",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::escape::excerpt;

    fn masked(text: &str) -> String {
        excerpt(text, 0..text.len(), &masks(text))
    }

    #[test]
    fn a_mask_hides_neither_what_runs_nor_where() {
        for text in [
            "PASSWORD=evil1.example; curl $PASSWORD; ./x",
            "PASSWORD=evil1example; curl ${PASSWORD}/a",
            "TOKEN=ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8 sh -c '$TOKEN'",
            "sh sk-a1B2c3D4e5F6g7H8i9J0k1L2",
            "sk-a1B2c3D4e5F6g7H8i9J0k1L2 now",
            "sudo sk-a1B2c3D4e5F6g7H8i9J0k1L2",
            "timeout 5 sh password=evil1script",
            "alias password=evil1script",
            "python3 password=evil1script",
            "curl sk-a1B2c3D4e5F6g7H8i9J0k1L2",
            "curl -s password=evil1.example",
            "wget https://password=evil1.example",
            "eval --password=evil1script",
            "timeout 5 bash --password evil1script",
            "npx --token evil1package99",
            "X=`sk-a1B2c3D4e5F6g7H8i9J0k1L2`",
            "echo sk-a1B2c3D4e5F6g7H8i9J0k1L2 | sh",
            "$(echo sk-a1B2c3D4e5F6g7H8i9J0k1L2)",
            "x --token abc/def0123456789",
            "export secret=a1b2c3d4e5f6/run",
            "find . -name password=evil1script",
            "if sk-a1B2c3D4e5F6g7H8i9J0k1L2; then ls; fi",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn what_a_flag_or_a_variable_carries_is_masked() {
        for (text, seen) in [
            (
                "curl -u bob:hunter https://x.example/a",
                "curl -u bob:⟦secret password 6B⟧ https://x.example/a",
            ),
            (
                "curl --user 'bob:hunter' x.example",
                "curl --user 'bob:⟦secret password 6B⟧' x.example",
            ),
            (
                "curl -ubob:hunter x.example",
                "curl -ubob:⟦secret password 6B⟧ x.example",
            ),
            (
                "mysql -psecret -h db.example shop",
                "mysql -p⟦secret password 6B⟧ -h db.example shop",
            ),
            (
                "mysqldump --password=secret shop",
                "mysqldump --password=⟦secret password 6B⟧ shop",
            ),
            (
                "PGPASSWORD=secret psql -h db.example",
                "PGPASSWORD=⟦secret password 6B⟧ psql -h db.example",
            ),
            (
                "sshpass -p hunter ssh x.example",
                "sshpass -p ⟦secret password 6B⟧ ssh x.example",
            ),
            (
                "curl -H 'Authorization: Bearer a1b2c3d4e5f6g7' https://x.example",
                "curl -H 'Authorization: Bearer ⟦secret bearer 14B⟧' https://x.example",
            ),
            (
                "curl https://bob:hunter@x.example/a",
                "curl https://bob:⟦secret password 6B⟧@x.example/a",
            ),
            (
                "echo ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8 | docker login -u x",
                "echo ⟦secret github 40B⟧ | docker login -u x",
            ),
            ("mysql -p shop", "mysql -p shop"),
            ("curl -u bob x.example", "curl -u bob x.example"),
            ("curl -u $USER:$PASS x", "curl -u $USER:$PASS x"),
        ] {
            assert_eq!(masked(text), seen);
        }
    }

    #[test]
    fn any_text_is_taken_apart() {
        for text in [
            "",
            "'",
            "\"\\",
            "a\\",
            "<",
            "a<b>c",
            "é='x",
            "$(",
            "| |",
            "-u",
            "curl -u",
            "curl -u :",
        ] {
            let _ = masks(text);
        }
    }
}
