//! Shell commands as far as a rule needs to know them: their parts, their
//! programs, the paths they name. What it can't read for certain gets no rule.

use std::ffi::OsStr;

use super::{NoRule, Rule, RuleCall, RuleReach, path, programs};
use crate::text::lists;

/// One command of a list or pipeline.
#[derive(Debug, PartialEq, Eq)]
struct CommandPart {
    /// Without quotes and backslashes, as the program would get them.
    words: Vec<String>,
}

/// The exact command, where a rule for it matches that command and no other.
pub(super) fn rule(call: RuleCall<'_>, reach: RuleReach) -> Result<Rule, NoRule> {
    let command = super::field(call, "command")?.trim_matches(' ');
    checked(call, command, reach)?;
    Ok(Rule::new("Bash", command))
}

/// The beginning of the command that may be left open.
pub(super) fn wider(call: RuleCall<'_>) -> Option<Rule> {
    let command = super::field(call, "command").ok()?.trim_matches(' ');
    let part = checked(call, command, RuleReach::Always).ok()?;
    let beginning = programs::harmless_beginning(&part.words)?;
    let follows = command.strip_prefix(beginning)?;
    (follows.is_empty() || follows.starts_with(' '))
        .then(|| Rule::new("Bash", &format!("{beginning} *")))
}

/// A list or pipeline gets no rule: Claude Code matches one for a pipeline
/// against nothing, and one for a list lets a redirection into any file of the
/// project pass behind its last command.
fn checked(call: RuleCall<'_>, command: &str, reach: RuleReach) -> Result<CommandPart, NoRule> {
    super::writable(command)?;
    let mut parts = parts(command)?;
    for part in &parts {
        part.check(call, reach == RuleReach::Always)?;
    }
    match (parts.pop(), parts.is_empty()) {
        (Some(part), true) => Ok(part),
        _ => Err(NoRule::Compound),
    }
}

/// Splits at the shell's operators. Quotes must be paired; redirections,
/// subshells, comments and everything the shell would expand are refused.
fn parts(command: &str) -> Result<Vec<CommandPart>, NoRule> {
    if !parentheses_pair(command) {
        return Err(NoRule::Unpaired);
    }
    let mut parts = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
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
                push(&mut parts, &mut words)?;
                if c != ';' && chars.next_if(|&(_, next)| next == c).is_none() && c == '&' {
                    return Err(NoRule::Compound);
                }
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.take());
    push(&mut parts, &mut words)?;
    Ok(parts)
}

fn push(parts: &mut Vec<CommandPart>, words: &mut Vec<String>) -> Result<(), NoRule> {
    if words.is_empty() {
        return Err(NoRule::Compound);
    }
    parts.push(CommandPart {
        words: std::mem::take(words),
    });
    Ok(())
}

/// Also inside quotes: a rule's text has no quotes.
fn parentheses_pair(text: &str) -> bool {
    let open = text.chars().try_fold(0_usize, |depth, c| match c {
        '(' => Some(depth + 1),
        ')' => depth.checked_sub(1),
        _ => Some(depth),
    });
    open == Some(0)
}

impl CommandPart {
    fn check(&self, call: RuleCall<'_>, inside_only: bool) -> Result<(), NoRule> {
        if holds_password(&self.words) {
            return Err(NoRule::Secret);
        }
        if runs_others(&self.words) {
            return Err(NoRule::Runner);
        }
        let written = self
            .words
            .iter()
            .position(|word| !is_assignment(word))
            .unwrap_or(0);
        let program = &self.words[written];
        let own = program.contains('/')
            && !program.starts_with('~')
            && path::is_inside(&path::resolve(call.cwd, program), call.project);
        let later = &self.words[written + 1..];
        if later.iter().any(|word| programs::may_run(word)) {
            return Err(NoRule::Runner);
        }
        if self.words.iter().any(|word| programs::names_input(word)) {
            return Err(NoRule::Stdin);
        }
        match programs::input(program, own, later) {
            programs::StdinUse::Data => {}
            programs::StdinUse::Orders => return Err(NoRule::Stdin),
            programs::StdinUse::Unknown => return Err(NoRule::UnknownProgram),
        }
        // An address is no path; every other run of slashes begins one.
        let words: Vec<String> = self
            .words
            .iter()
            .map(|word| without_schemes(word))
            .collect();
        let pieces = || {
            words
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
            let reaches = named.starts_with('/') || named.split('/').any(|name| name == "..");
            let resolved = path::resolve(call.cwd, named);
            let inside = resolved == call.project || path::is_inside(&resolved, call.project);
            reaches && named != "/dev/null" && !inside
        };
        let elsewhere = call.cwd != call.project && !path::is_inside(call.cwd, call.project);
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

fn without_schemes(word: &str) -> String {
    let schemes = ["http://", "https://", "ssh://", "git://"];
    let word = word.to_owned();
    schemes
        .iter()
        .fold(word, |word, scheme| word.replace(scheme, ""))
}

/// Whether a variable may choose what a later program loads or runs. Only
/// those that everybody knows don't.
fn steers(assignment: &str) -> bool {
    const HARMLESS: &str = "\
        CI COLUMNS DEBUG FORCE_COLOR HOST LANG LC_ALL LOG_LEVEL NODE_ENV NO_COLOR PORT \
        RUST_BACKTRACE RUST_LOG TERM TZ";
    let name = assignment.split('=').next().unwrap_or("");
    !lists::has(HARMLESS, name)
}

fn program(words: &[String]) -> (String, &[String]) {
    let first = words.iter().position(|word| !is_assignment(word));
    let Some(first) = first else {
        return (String::new(), &[]);
    };
    let name = words[first].rsplit('/').next().unwrap_or("");
    (name.to_ascii_lowercase(), &words[first + 1..])
}

/// Whether what runs is decided by the arguments rather than by the program.
fn runs_others(words: &[String]) -> bool {
    let (name, rest) = program(words);
    // `a+=1`, `a[0]=1`: an assignment to some shells, with the program behind it.
    // Blanks and quotes: no program is called so, and a reader of the rule may
    // take a part of it for another.
    let written = words.iter().find(|word| !is_assignment(word));
    if written.is_some_and(|word| word.contains(['=', ' ', '\\', '\'', '"'])) {
        return true;
    }
    let steered = words
        .iter()
        .take_while(|word| is_assignment(word))
        .any(|word| steers(word));
    if name.is_empty()
        || steered
        || programs::is_runner(&name)
        || programs::runs_by_subcommand(&name, rest)
    {
        return true;
    }
    let mut options = rest.iter().map(String::as_str);
    match &*name {
        _ if programs::is_interpreter(&name) => programs::interprets_more(&name, rest),
        "find" => options
            .any(|word| word.starts_with("-exec") || word.starts_with("-ok") || word == "-delete"),
        // Its short options may stand together.
        "fd" => options.any(|word| {
            word.starts_with("--exec")
                || (word.starts_with('-') && !word.starts_with("--") && word.contains(['x', 'X']))
        }),
        "cmake" => options.any(|word| word == "-E"),
        "just" => options.any(|word| word.starts_with('-')),
        "rg" => options.any(|word| word.starts_with("--pre")),
        "docker" | "podman" => options
            .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('i')),
        "git" => options
            .take_while(|word| word.starts_with('-'))
            .any(|word| word.starts_with("-c") || (word.starts_with("--") && word != "--version")),
        _ => false,
    }
}

/// A password among the arguments must not stand in a file.
fn holds_password(words: &[String]) -> bool {
    const NAMES: &str = "\
        apikey authoriz bearer cookie credential passw pwd secret token";
    let (name, rest) = program(words);
    let telling = |text: &str| {
        let text = text.to_ascii_lowercase().replace(['-', '_'], "");
        lists::within(NAMES, &text)
    };
    let assigned = words.iter().take_while(|word| is_assignment(word));
    let by_name = assigned
        .into_iter()
        .any(|word| telling(word.split('=').next().unwrap_or("")));
    let by_option = rest
        .iter()
        .any(|word| word.starts_with("--") && telling(word));
    let mut pairs = rest.iter().zip(rest.iter().skip(1));
    let user = |word: &str| {
        let value = word
            .strip_prefix("--user=")
            .or_else(|| word.strip_prefix("-u"));
        value.is_some_and(|value| value.contains(':'))
    };
    let by_user = rest.iter().any(|word| user(word))
        || pairs.any(|(option, value)| {
            (matches!(
                option.as_str(),
                "-u" | "-U" | "--user" | "--proxy-user" | "-a"
            ) && value.contains(':'))
                || (matches!(option.as_str(), "-H" | "--header" | "-b")
                    && (telling(value) || value.contains('=')))
        });
    let stuck = matches!(&*name, "mysql" | "mysqldump" | "mysqladmin" | "mariadb")
        && rest
            .iter()
            .any(|word| word.len() > 2 && word.starts_with("-p"));
    by_name || by_option || by_user || stuck
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Result<Vec<Vec<String>>, NoRule> {
        parts(command).map(|parts| parts.into_iter().map(|part| part.words).collect())
    }

    /// The words of one plain command.
    fn plainly(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_assignment_has_a_name() {
        for (word, is_one) in [
            ("A_1=x", true),
            ("=x", false),
            ("a-b=x", false),
            ("x", false),
        ] {
            assert_eq!(is_assignment(word), is_one, "{word}");
        }
    }

    #[test]
    fn what_others_run_for_their_caller_is_known_by_its_options() {
        for (command, is_so) in [
            ("fd -Hx rm", true),
            ("fd --exec rm", true),
            ("fd --extension x", false),
            ("fd --max-depth 1", false),
            ("fd index", false),
            ("docker -i ps", true),
            ("docker --tls info", false),
            ("docker inspect", false),
            ("git -c a.b=c log", true),
            ("git --exec-path=. log", true),
            ("git --version", false),
            ("git log --oneline", false),
        ] {
            assert_eq!(runs_others(&plainly(command)), is_so, "{command}");
        }
    }

    #[test]
    fn a_password_that_sticks_to_its_option_is_one() {
        assert!(holds_password(&plainly("mysql -psesame")));
        assert!(!holds_password(&plainly("mysql -p")));
        assert!(!holds_password(&plainly("ls -psesame")));
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
            "python3 -X utf8",
            "bun x y",
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
            "FOO=1 npm test",
            "FOO_2=1 npm test",
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
            "cmake -E x",
            "just --x y",
            "rg --pre x y",
            "docker start -i x",
            "podman start -ai x",
            "node --no-warnings",
            "python3 --version x",
        ] {
            let parsed = words(command).unwrap();
            assert!(runs_others(&parsed[0]), "{command}");
        }
        for command in [
            "npm run build",
            "git status",
            "python3 x.py",
            "python -m pytest",
            "PORT=1 npm test",
            "LC_ALL=C npm test",
            "cargo test",
            "node x.js",
            "docker ps",
            "find . -name x",
            "kubectl get pods",
            "cmake --build x",
            "just x",
            "rg -i x",
            "docker start x",
            "node --no-warnings x.js",
            "node --test",
            "python3 -u x.py",
            "python3 --version",
        ] {
            let parsed = words(command).unwrap();
            assert!(!runs_others(&parsed[0]), "{command}");
        }
    }
}
