//! Passwords by the flag, variable or setting that a program takes them in.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use super::{CommandWord, FoundSecret, WordRole};
use crate::text::lists;
use crate::text::secrets::name_kind;

/// Flags that a program is known to take a password by.
struct PasswordFlags {
    programs: &'static str,
    /// The value is in the same word or in the next.
    short: &'static str,
    /// `--flag value` or `--flag=value`.
    long: &'static str,
    /// The value begins after the first of these; empty when it is all value.
    after: &'static str,
}

const fn flags(
    programs: &'static str,
    short: &'static str,
    long: &'static str,
    after: &'static str,
) -> PasswordFlags {
    PasswordFlags {
        programs,
        short,
        long,
        after,
    }
}

const PASSWORD_FLAGS: &[PasswordFlags] = &[
    flags("curl", "-u -U", "--user --proxy-user", ":"),
    flags("curl", "", "--oauth2-bearer", ""),
    flags("http https xh", "-a", "--auth", ":"),
    flags("smbclient rpcclient", "-U", "--user", "%"),
    flags("lftp", "-u", "--user", ","),
    flags("openssl", "", "-pass -passin -passout", "pass:"),
    flags(
        "sshpass mongo mongosh mongodump mongorestore rabbitmqadmin cqlsh twine az",
        "-p",
        "",
        "",
    ),
    flags("redis-cli", "-a", "--pass", ""),
    flags("ldapsearch ldapmodify ldapadd ldapdelete", "-w", "", ""),
    flags("mosquitto_pub mosquitto_sub sqlcmd unzip zip", "-P", "", ""),
    flags("gpg gpg2", "", "--passphrase", ""),
    flags(
        "wget",
        "",
        "--http-password --ftp-password --proxy-password",
        "",
    ),
];
/// `-pvalue` is a password; with a blank after it, `-p` asks for one.
const ATTACHED_ONLY: &str = "7z 7za 7zr mariadb mysql mysqladmin mysqldump mysqlimport";
/// Programs that take `name=value` or `name value` as settings of their own.
const SETTERS: &str = "aws npm pnpm vault yarn";
/// Programs that take a list of `name=value` in one word.
const CONNECTION_STRINGS: &str = "pg_dump pg_restore pgcli psql";
/// The programs with a rule of their own in [`by_flag`].
const SPECIAL: &str = "cargo docker helm htpasswd podman wlfreerdp xfreerdp";
/// The flags of curl that take no value, and so may stand before another.
const CURL_SWITCHES: &str = "0123469BGIJLNORSZafgijklnpqsv#";

/// Passed by a flag, whatever it looks like, and whether the program is known
/// for that flag.
pub(super) fn given(text: &str, words: &[CommandWord]) -> Vec<(FoundSecret, bool)> {
    let mut found = Vec::new();
    let mut program = 0;
    for (i, word) in words.iter().enumerate() {
        let raw = word.text(text);
        match word.role {
            WordRole::Program => program = i,
            WordRole::Assignment => {
                let (name, _) = raw.split_once('=').unwrap_or_default();
                if name_kind(name) == Some("password") || is_pass_variable(name) {
                    let value = word.range.start + name.len() + 1..word.range.end;
                    found.extend(part(text, value, false).map(|secret| (secret, false)));
                }
            }
            WordRole::Argument => {
                let before = &words[program..i];
                let next = words
                    .get(i + 1)
                    .filter(|next| next.command == word.command)
                    .map(|next| &next.range);
                found.extend(by_flag(text, before, word, next));
                // Behind a program that runs it: `timeout 5 mysql`.
                let last = words[i - 1].text(text);
                let is_value = last.starts_with('-') && last != "--";
                if !is_value && takes_passwords(word.name(text)) {
                    program = i;
                }
            }
        }
    }
    found
}

/// Every program with a rule below: most words are none of them.
static KNOWN: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let listed = PASSWORD_FLAGS.iter().map(|known| known.programs);
    let listed = listed.chain([ATTACHED_ONLY, SETTERS, CONNECTION_STRINGS, SPECIAL]);
    listed.flat_map(str::split_ascii_whitespace).collect()
});

fn takes_passwords(program: &str) -> bool {
    KNOWN.contains(program)
}

/// `SSHPASS` and `DB_PASS`, but not `COMPASS`.
fn is_pass_variable(name: &str) -> bool {
    name == "SSHPASS" || name.to_ascii_uppercase().ends_with("_PASS")
}

/// `before` is the program and the words between it and this one.
fn by_flag(
    text: &str,
    before: &[CommandWord],
    word: &CommandWord,
    next: Option<&Range<usize>>,
) -> Option<(FoundSecret, bool)> {
    let sure = |value| Some((part(text, value, true)?, true));
    let likely = |value| Some((part(text, value, false)?, false));
    let program = before.first().map_or("", |first| first.name(text));
    let raw = word.text(text);
    let rest = |flag: &str| word.range.start + flag.len()..word.range.end;
    let short = |flag: &str| {
        let attached = raw.starts_with(flag) && raw.len() > flag.len() && !raw.starts_with("--");
        let clustered = program == "curl"
            && raw.strip_prefix('-').is_some_and(|letters| {
                letters.len() > 1
                    && letters.ends_with(&flag[1..])
                    && letters[..letters.len() - 1]
                        .chars()
                        .all(|letter| CURL_SWITCHES.contains(letter))
            });
        if attached {
            return Some(rest(flag));
        }
        next.cloned().filter(|_| raw == flag || clustered)
    };
    let long = |flag: &str| match raw.strip_prefix(flag) {
        Some("") => next.cloned(),
        Some(value) if value.starts_with('=') => Some(rest(flag).start + 1..word.range.end),
        _ => None,
    };
    let anywhere = || likely(long("--password").or_else(|| long("--passwd"))?);
    if !takes_passwords(program) {
        return anywhere();
    }
    for known in PASSWORD_FLAGS {
        if !lists::has(known.programs, program) {
            continue;
        }
        let value = known.short.split_whitespace().find_map(short);
        let value = value.or_else(|| known.long.split_whitespace().find_map(long));
        if let Some(value) = value {
            let skipped = match known.after {
                "" => 0,
                after => text[value.clone()].find(after)? + after.len(),
            };
            return sure(value.start + skipped..value.end);
        }
    }
    let after = |name: &str| before.iter().any(|other| other.text(text) == name);
    if lists::has(ATTACHED_ONLY, program) && raw.starts_with("-p") && raw.len() > 2 {
        return sure(rest("-p"));
    }
    match program {
        // Elsewhere `-p` publishes a port.
        "docker" | "podman" | "helm" if after("login") => return sure(short("-p")?),
        "htpasswd" if next.is_none() && before.iter().any(|one| is_batch(one.text(text))) => {
            return sure(word.range.clone());
        }
        "xfreerdp" | "wlfreerdp" if raw.starts_with("/p:") => return sure(rest("/p:")),
        "cargo" if before.get(1).is_some_and(|one| one.text(text) == "publish") => {
            return sure(long("--token")?);
        }
        _ if lists::has(SETTERS, program) => {
            if let Some((name, _)) = raw.split_once('=').filter(|(name, _)| is_secret(name)) {
                return likely(word.range.start + name.len() + 1..word.range.end);
            }
            if after("set") && is_secret(raw) {
                return likely(next?.clone());
            }
        }
        _ if lists::has(CONNECTION_STRINGS, program) => {
            let value = word.range.start + raw.find("password=")? + "password=".len();
            let end = text[value..word.range.end].find([' ', '"', '\'']);
            let end = end.map_or(word.range.end, |end| value + end);
            return sure(value..end);
        }
        _ => {}
    }
    anywhere()
}

/// The name of a setting that holds a credential, with the place it is for.
fn is_secret(name: &str) -> bool {
    let name = name.rsplit(':').next().unwrap_or(name);
    let name = name.trim_start_matches(['-', '_']);
    !name.contains('/') && name_kind(name).is_some()
}

/// `-b`, alone or among other letters: the password is the last word.
fn is_batch(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains('b')
}

/// The value inside its quotes, if it could not be anything else. `known` says
/// that the program takes nothing else there, so that it may look like a path.
fn part(text: &str, range: Range<usize>, known: bool) -> Option<FoundSecret> {
    let raw = &text[range.clone()];
    let value = raw.trim_matches(['"', '\'']);
    let start = range.start + (raw.len() - raw.trim_start_matches(['"', '\'']).len());
    // What a shell takes as it is, between its quotes.
    let odd: &[char] = match raw.as_bytes() {
        [b'\'', .., b'\''] => &['\n', '\''],
        [b'"', .., b'"'] => &['\n', '"', '$', '`', '\\'],
        _ => &['\n', '"', '\'', '$', '`', '<', '>', '|', ';', '&'],
    };
    let plain = !value.contains(odd) && (known || !value.contains('/'));
    (!value.is_empty() && plain && !value.starts_with('-')).then_some(FoundSecret {
        range: start..start + value.len(),
        kind: "password",
    })
}
