//! Shell commands as far as a rule needs to know them: their parts, their
//! programs, the paths they name. What it can't read for certain gets no rule.

use std::ffi::OsStr;

use super::{MAX_CONTENT, MAX_RULES, NoRule, Reach, Rule, path};
use crate::approvals::request::{Origin, Request};
use crate::cards::escape;

/// One command of a list or pipeline.
#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    text: &'a str,
    /// Without quotes and backslashes, as the program would get them.
    words: Vec<String>,
}

/// Programs that run what they are given: a rule for them holds nothing.
const RUNNERS: &[&str] = &[
    ".",
    "ash",
    "at",
    "bash",
    "batch",
    "builtin",
    "bunx",
    "chroot",
    "chrt",
    "command",
    "crontab",
    "csh",
    "dash",
    "doas",
    "env",
    "eval",
    "exec",
    "expect",
    "fish",
    "flock",
    "gdb",
    "ionice",
    "ksh",
    "nice",
    "nohup",
    "npx",
    "nsenter",
    "parallel",
    "pipx",
    "pkexec",
    "pnpx",
    "pwsh",
    "rsh",
    "runuser",
    "script",
    "setsid",
    "sg",
    "sh",
    "source",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tcsh",
    "time",
    "timeout",
    "trap",
    "unshare",
    "uvx",
    "watch",
    "xargs",
    "zsh",
];
const INTERPRETERS: &[&str] = &[
    "bun",
    "deno",
    "julia",
    "lua",
    "node",
    "osascript",
    "perl",
    "php",
    "powershell",
    "python",
    "r",
    "rscript",
    "ruby",
    "tclsh",
];
/// Programs with a subcommand that runs something of the caller's choice.
const RUNNING_SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("docker", &["compose", "exec", "run"]),
    ("podman", &["exec", "run"]),
    ("kubectl", &["debug", "exec", "run"]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["dlx", "exec"]),
    ("yarn", &["dlx", "exec"]),
    ("uv", &["run", "tool"]),
    ("poetry", &["run"]),
    ("go", &["run", "generate"]),
    ("nix", &["develop", "run", "shell"]),
];
/// Programs with an option that runs something or reaches anywhere, so that
/// a rule for "anything after these words" would be far wider than it looks.
const NEVER_OPEN: &[&str] = &[
    "awk", "curl", "dd", "find", "gawk", "install", "make", "mv", "rm", "rsync", "scp", "sed",
    "tar", "tee", "vim", "wget",
];

/// The rules an "always" for this command would leave: those Claude Code
/// proposes where every one can be taken, else the command itself.
pub(super) fn rules(request: &Request, reach: Reach) -> Result<Vec<Rule>, NoRule> {
    let command = super::field(request, "command")?.trim_matches(' ');
    super::writable(command)?;
    let parts = parts(command)?;
    for part in &parts {
        part.check(&request.origin, reach == Reach::Always)?;
    }
    let suggested = &request.suggested;
    let contents = suggested.iter().filter_map(|rule| rule.content.as_deref());
    let acceptable = !suggested.is_empty()
        && suggested.len() <= MAX_RULES
        && contents.map(str::len).sum::<usize>() <= MAX_CONTENT
        && suggested.iter().all(|rule| {
            rule.tool == "Bash"
                && rule
                    .content
                    .as_deref()
                    .is_some_and(|content| covers(content, &parts))
        });
    if acceptable {
        return Ok(suggested.clone());
    }
    match &parts[..] {
        [_] => Ok(vec![Rule::new("Bash", command)]),
        _ => Err(NoRule::Compound),
    }
}

/// Splits at the shell's operators. Quotes must be paired; redirections,
/// subshells, comments and everything the shell would expand are refused.
fn parts(command: &str) -> Result<Vec<Part<'_>>, NoRule> {
    if depth(command).is_none() {
        return Err(NoRule::Unpaired);
    }
    let mut parts = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut from = 0;
    let mut chars = command.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some((_, '\'')) => break,
                        Some((_, c)) => word.push(c),
                        None => return Err(NoRule::Unpaired),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some((_, '"')) => break,
                        Some((_, '$' | '`')) => return Err(NoRule::Expansion),
                        Some((_, '\\')) => {
                            let (_, c) = chars.next().ok_or(NoRule::Unpaired)?;
                            if !matches!(c, '$' | '`' | '"' | '\\') {
                                word.push('\\');
                            }
                            word.push(c);
                        }
                        Some((_, c)) => word.push(c),
                        None => return Err(NoRule::Unpaired),
                    }
                }
            }
            '\\' => {
                let (_, escaped) = chars.next().ok_or(NoRule::Unpaired)?;
                word.get_or_insert_default().push(escaped);
            }
            '$' | '`' | '{' | '[' | '?' => return Err(NoRule::Expansion),
            '(' | ')' | '<' => return Err(NoRule::Compound),
            '#' if word.is_none() => return Err(NoRule::Compound),
            '>' => {
                let joins_errors = word.as_deref() == Some("2") && command[at..].starts_with(">&1");
                if !joins_errors {
                    return Err(NoRule::Compound);
                }
                word = None;
                chars.next();
                chars.next();
            }
            ' ' => words.extend(word.take()),
            ';' | '&' | '|' => {
                words.extend(word.take());
                push(&mut parts, &command[from..at], &mut words)?;
                if c != ';' && chars.next_if(|&(_, next)| next == c).is_none() && c == '&' {
                    return Err(NoRule::Compound);
                }
                from = chars.peek().map_or(command.len(), |&(next, _)| next);
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.take());
    push(&mut parts, &command[from..], &mut words)?;
    Ok(parts)
}

fn push<'a>(
    parts: &mut Vec<Part<'a>>,
    text: &'a str,
    words: &mut Vec<String>,
) -> Result<(), NoRule> {
    if words.is_empty() {
        return Err(NoRule::Compound);
    }
    parts.push(Part {
        text: text.trim_matches(' '),
        words: std::mem::take(words),
    });
    Ok(())
}

/// Paired parentheses, also inside quotes: a rule's text has no quotes.
fn depth(text: &str) -> Option<usize> {
    let open = text.chars().try_fold(0_usize, |depth, c| match c {
        '(' => Some(depth + 1),
        ')' => depth.checked_sub(1),
        _ => Some(depth),
    })?;
    (open == 0).then_some(open)
}

impl Part<'_> {
    fn check(&self, origin: &Origin, inside_only: bool) -> Result<(), NoRule> {
        if runs_others(&self.words) {
            return Err(NoRule::Runner);
        }
        let pieces = || {
            self.words
                .iter()
                .flat_map(|word| word.split(['=', ':', '@', ',', ' ', '\'', '"']))
        };
        let sensitive = |piece: &str| {
            piece
                .split('/')
                .any(|name| path::is_sensitive_name(OsStr::new(name)))
        };
        if pieces().any(sensitive) {
            return Err(NoRule::Sensitive);
        }
        let outside = |piece: &str| {
            let named = piece
                .find('/')
                .filter(|_| piece.starts_with('-'))
                .map_or(piece, |slash| &piece[slash..]);
            if named.starts_with('~') {
                return true;
            }
            let reaches = (named.starts_with('/') && !named.starts_with("//"))
                || named.split('/').any(|name| name == "..");
            let resolved = path::resolve(&origin.cwd, named);
            let inside = resolved == origin.project || path::is_inside(&resolved, &origin.project);
            reaches && named != "/dev/null" && !inside
        };
        let elsewhere =
            origin.cwd != origin.project && !path::is_inside(&origin.cwd, &origin.project);
        if inside_only && (elsewhere || pieces().any(outside)) {
            return Err(NoRule::OutsideProject);
        }
        Ok(())
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// Variables that choose what a later program loads or runs.
fn steers(assignment: &str) -> bool {
    let name = assignment.split('=').next().unwrap_or("");
    [
        "LD_", "DYLD_", "GIT_", "PYTHON", "PERL", "RUBY", "NODE_", "NPM_", "BASH_", "JAVA_",
    ]
    .iter()
    .any(|prefix| name.to_ascii_uppercase().starts_with(prefix))
        || ["_OPTIONS", "_COMMAND", "_PROXY", "_WRAPPER", "FLAGS"]
            .iter()
            .any(|suffix| name.to_ascii_uppercase().ends_with(suffix))
        || matches!(
            name,
            "PATH" | "ENV" | "IFS" | "EDITOR" | "VISUAL" | "PAGER" | "SHELL" | "HOME"
        )
}

fn program(words: &[String]) -> (String, &[String]) {
    let first = words.iter().position(|word| !is_assignment(word));
    let Some(first) = first else {
        return (String::new(), &[]);
    };
    let name = words[first].rsplit('/').next().unwrap_or("");
    (name.to_ascii_lowercase(), &words[first + 1..])
}

fn is_interpreter(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&stem)
}

/// Whether what runs is decided by the arguments rather than by the program.
fn runs_others(words: &[String]) -> bool {
    let (name, rest) = program(words);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    // `a+=1`, `a[0]=1`: an assignment to some shells, with the program behind it.
    // Blanks and quotes: no program is called so, and a reader of the rule may
    // take a part of it for another.
    let program = words.iter().find(|word| !is_assignment(word));
    if program.is_some_and(|word| word.contains(['=', ' ', '\\', '\'', '"'])) {
        return true;
    }
    if name.is_empty() || RUNNERS.contains(&&*name) || RUNNERS.contains(&stem) {
        return true;
    }
    if words
        .iter()
        .take_while(|word| is_assignment(word))
        .any(|word| steers(word))
    {
        return true;
    }
    let mut options = rest.iter().map(String::as_str);
    if is_interpreter(&name) {
        // Nothing but options means that it reads a program from its input.
        let script = rest.iter().any(|word| !word.starts_with('-'));
        let inline = options.any(|word| {
            let short = word.starts_with('-') && !word.starts_with("--");
            matches!(word, "-" | "eval" | "x" | "exec")
                || word.starts_with("--eval")
                || word.starts_with("--print")
                || (short && word.contains(['c', 'e', 'E', 'p', 'r']))
        });
        return !script || inline;
    }
    match &*name {
        "find" | "fd" => options.any(|word| {
            word.starts_with("-exec")
                || word.starts_with("-ok")
                || word == "-delete"
                || word == "-x"
                || word == "-X"
                || word.starts_with("--exec")
        }),
        "git" => options
            .take_while(|word| word.starts_with('-'))
            .any(|word| word.starts_with("-c") || word.starts_with("--")),
        _ => RUNNING_SUBCOMMANDS
            .iter()
            .filter(|(known, _)| *known == name)
            .any(|(_, running)| {
                options
                    .find(|word| !word.starts_with('-'))
                    .is_some_and(|word| running.contains(&word))
            }),
    }
}

/// Whether a proposed rule belongs to one of the parts and is narrow enough to
/// be shown as what it is: the part itself, or program and subcommand followed
/// by anything.
fn covers(content: &str, parts: &[Part<'_>]) -> bool {
    if content.len() > MAX_CONTENT || !escape::is_plain(content) {
        return false;
    }
    let open = content
        .strip_suffix(" *")
        .or_else(|| content.strip_suffix(":*"));
    let Some(prefix) = open else {
        return !content.contains('*') && parts.iter().any(|part| part.text == content);
    };
    if prefix.contains('*') || prefix.trim_matches(' ') != prefix {
        return false;
    }
    let words: Vec<String> = prefix.split(' ').map(str::to_owned).collect();
    let [program, subcommand, ..] = &words[..] else {
        return false;
    };
    let name = program.to_ascii_lowercase();
    let narrow = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !name.contains(['/', '=', '\'', '"', '\\'])
        && subcommand.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !subcommand.contains(['/', '=', '\'', '"', '\\'])
        && !NEVER_OPEN.contains(&&*name)
        && !is_interpreter(&name)
        && !runs_others(&words)
        // The first words of a subcommand can be what makes it a runner.
        && !runs_others(&words[..2]);
    narrow
        && parts.iter().any(|part| {
            part.text
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Result<Vec<Vec<String>>, NoRule> {
        parts(command).map(|parts| parts.into_iter().map(|part| part.words).collect())
    }

    #[test]
    fn commands_split_as_a_shell_splits_them() {
        for (command, expected) in [
            ("npm run build", vec![vec!["npm", "run", "build"]]),
            (
                "a 'b c' \"d \\\" e\" f\\ g",
                vec![vec!["a", "b c", "d \" e", "f g"]],
            ),
            (
                "a && b || c; d | e",
                vec![vec!["a"], vec!["b"], vec!["c"], vec!["d"], vec!["e"]],
            ),
            ("a \"b\\c\\$\\`\\\\\"", vec![vec!["a", "b\\c$`\\"]]),
            ("make 2>&1", vec![vec!["make"]]),
            ("echo a#b ''", vec![vec!["echo", "a#b", ""]]),
        ] {
            let expected: Vec<Vec<String>> = expected
                .into_iter()
                .map(|part| part.into_iter().map(str::to_owned).collect())
                .collect();
            assert_eq!(words(command), Ok(expected), "{command}");
        }
    }

    #[test]
    fn what_the_shell_would_change_gets_no_parts() {
        for (command, why) in [
            ("echo $HOME", NoRule::Expansion),
            ("echo \"$(x)\"", NoRule::Expansion),
            ("echo `x`", NoRule::Expansion),
            ("echo 'x", NoRule::Unpaired),
            ("echo \"x", NoRule::Unpaired),
            ("echo ')'", NoRule::Unpaired),
            ("x\\", NoRule::Unpaired),
            ("echo x > f", NoRule::Compound),
            ("make 2> f", NoRule::Compound),
            ("make 1>&1", NoRule::Compound),
            ("cat < f", NoRule::Compound),
            ("(x)", NoRule::Compound),
            ("x & y", NoRule::Compound),
            ("ls # y", NoRule::Compound),
            ("; x", NoRule::Compound),
            ("x &&", NoRule::Compound),
        ] {
            assert_eq!(words(command), Err(why), "{command}");
        }
    }

    #[test]
    fn programs_that_run_others_are_known() {
        for command in [
            "bash -c x",
            "sh x.sh",
            "/bin/zsh -l",
            "python3 -c y",
            "python3.12 -",
            "node -e y",
            "node --eval y",
            "node --print y",
            "perl -ne y",
            "ruby",
            "eval x",
            "xargs rm",
            "env A=1 x",
            "sudo ls",
            "ssh host ls",
            "npx foo",
            "docker run x",
            "docker --debug run x",
            "find . -exec y",
            "find . -ok y",
            "find . -delete",
            "fd y -x z",
            "fd y -X z",
            "fd y --exec z",
            "git -c a=b status",
            "git --exec-path=x status",
            "timeout 5 x",
            "nohup x",
            "npm exec x",
            "pnpm dlx x",
            "LD_PRELOAD=x ls",
            "PATH=. ls",
            "GIT_SSH_COMMAND=x git fetch",
            "A=1",
            "A+=1 ls",
            "bash5.2 x",
            "ba''sh x",
            "sh\\\\\\\\ x",
            "'sh\"' x",
            "'sh x' y",
            "'sh /x' y",
            "b\\ash x",
            "deno eval x",
            "kubectl exec x",
            "'sudo' ls",
        ] {
            let parsed = words(command).unwrap();
            assert!(runs_others(&parsed[0]), "{command}");
        }
        for command in [
            "npm run build",
            "git status",
            "python3 x.py",
            "python -m pytest",
            "FOO=1 npm test",
            "FOO_2=1 npm test",
            "cargo test",
            "node x.js",
            "docker ps",
            "find . -name x",
            "kubectl get pods",
        ] {
            let parsed = words(command).unwrap();
            assert!(!runs_others(&parsed[0]), "{command}");
        }
    }
}
