//! Credentials in a shell command. A mask may hide a value and never what runs
//! or where: a word that is or could become a program, a script or an address
//! stays in sight, and in doubt so does everything else.

use std::collections::HashSet;
use std::ops::Range;

use self::flags::given;
use super::{FoundSecret, all, find, name_kind};
use crate::text::lists;

mod flags;

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

/// What may stand behind a data flag, by its beginning.
const DATA: &str = "\
    --body --build-arg --cookie --data --env --form --from-literal --header --json --secret \
    --set";
const SHORT_DATA: &str = "-d -F -H -b -e";

const OPERATORS: [char; 9] = ['\n', '\r', ';', '|', '&', '(', '{', '`', '!'];
/// Programs that run a word of theirs as a script of a shell.
const SHELLS: &str = "ash bash dash ksh sh ssh su zsh";
/// So many scripts inside each other are looked into.
const MAX_DEPTH: usize = 3;
/// A simple command of more words is not searched for a runner.
const MAX_WORDS: usize = 400;

/// The credentials that a card may mask in a command.
pub fn masks(text: &str) -> Vec<FoundSecret> {
    let expanded = Expanded::of(text);
    let mut masks = masks_within(text, MAX_DEPTH);
    masks.retain(|secret| !expanded.covers(text, secret));
    masks
}

/// Also in the scripts that it gives to shells, so many inside each other.
fn masks_within(text: &str, depth: usize) -> Vec<FoundSecret> {
    let found = find(text);
    let line = CommandLine {
        text,
        words: words(text),
        substitutes: text.contains("$(") || text.contains(['`', '>']),
    };
    let given = given(text, &line.words).into_iter();
    let given = given.filter(|(secret, sure)| line.is_value(secret, Some(*sure)));
    let mut masks: Vec<FoundSecret> = given.map(|(secret, _)| secret).collect();
    if depth > 0 {
        masks.extend(line.scripts().flat_map(|script| {
            let inner = masks_within(&text[script.clone()], depth - 1).into_iter();
            inner.map(move |mut secret| {
                secret.range = script.start + secret.range.start..script.start + secret.range.end;
                secret
            })
        }));
    }
    masks.sort_by_key(|secret| secret.range.start);
    masks.dedup_by(|next, before| next.range.start < before.range.end);
    let mut others: Vec<FoundSecret> = found
        .into_iter()
        .filter(|secret| {
            let after = masks.partition_point(|mask| mask.range.end <= secret.range.start);
            let apart = masks
                .get(after)
                .is_none_or(|mask| secret.range.end <= mask.range.start);
            apart && line.is_value(secret, None)
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
    /// What is given to shells as a script in one quoted word, where each byte
    /// stands for itself.
    fn scripts(&self) -> impl Iterator<Item = Range<usize>> {
        let quoted = |word: &CommandWord| {
            let inside = word.range.start + 1..word.range.end - 1;
            match word.text(self.text).as_bytes() {
                [b'\'', inner @ .., b'\''] => (!inner.contains(&b'\'')).then_some(inside),
                [b'"', inner @ .., b'"'] => {
                    let odd = |b: &u8| matches!(b, b'"' | b'\\' | b'`');
                    (!inner.iter().any(odd)).then_some(inside)
                }
                _ => None,
            }
        };
        let words = self.words.iter().enumerate();
        words.filter_map(move |(at, word)| {
            let inside = quoted(word).filter(|_| word.role == WordRole::Argument)?;
            let own = self.simple(at)?;
            let has = |names: &str| {
                let mut names = own
                    .iter()
                    .map(|other| lists::has(names, other.name(self.text)));
                names.any(|known| known)
            };
            (has(SHELLS) && !has(EVALUATORS)).then_some(inside)
        })
    }

    /// Whether the credential is a value and nothing else. `flag` says that a
    /// flag makes it one: `Some(true)` one that this program is known for.
    fn is_value(&self, secret: &FoundSecret, flag: Option<bool>) -> bool {
        let text = self.text;
        let Range { start, end } = secret.range;
        let value = &text[start..end];
        let known = flag == Some(true);
        if value.contains('\n') {
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
            WordRole::Assignment => {
                let assigned = start > word.range.start + whole.find('=').unwrap_or(0);
                return assigned && !value.contains('/');
            }
            WordRole::Argument => {}
        }
        let Some(own) = self.simple(at) else {
            return false;
        };
        let has = |names: &str| own.iter().any(|other| lists::has(names, other.name(text)));
        if has(EVALUATORS) {
            return false;
        }
        if known {
            return true;
        }
        let before = at
            .checked_sub(1)
            .map(|at| &self.words[at])
            .filter(|before| before.command == word.command)
            .map_or("", |before| before.text(text));
        let long_flag = whole.starts_with("--") && whole.contains('=');
        // A header or a form may hold any sign; elsewhere it may be a path.
        let place = value.contains('/');
        if long_flag && start > word.range.start + 2 {
            return !place;
        }
        if has(RUNNERS) {
            return false;
        }
        if flag.is_some() || (before.starts_with("--") && name_kind(before).is_some()) {
            return !place;
        }
        let data = lists::has(SHORT_DATA, before)
            || lists::begins(SHORT_DATA, whole)
            || lists::begins(DATA, before)
            || is_header(whole);
        let (from, to) = (start - word.range.start, end - word.range.start);
        let bare = from <= 1 && whole.len() - to <= 1;
        if !bare {
            return data || (!place && is_in_address(whole, from, to));
        }
        let echoed = own
            .iter()
            .any(|other| other.role == WordRole::Program && other.name(text) == "echo");
        let taken = self.words[at..]
            .iter()
            .take(MAX_WORDS)
            .find(|next| next.command > word.command)
            .is_some_and(|next| lists::has(LOGINS, next.name(text)));
        echoed && word.piped && taken && !self.substitutes && !place
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

/// A header as a word of its own, as httpie takes it.
fn is_header(word: &str) -> bool {
    let name = word.trim_start_matches(['"', '\'']).split(':').next();
    name.is_some_and(|name| name.eq_ignore_ascii_case("authorization"))
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
