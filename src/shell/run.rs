//! Programs that run what their arguments say: what is left of the command
//! when `sudo`, `env`, `xargs` and their like are taken off, and the scripts
//! that stand in a single word.

use super::Word;

/// What a command runs besides its own program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// The words from here to there are a command of their own.
    Words(usize, usize),
    /// This word is a script.
    Script(usize),
    /// All words from here on, joined by blanks, are a script.
    Joined(usize),
    /// The script comes from elsewhere: standard input.
    Input,
}

/// A program in front of another: options that take a value, and how many
/// words of its own come before the other program.
struct Prefix {
    name: &'static str,
    values: &'static [&'static str],
    own: usize,
}

const fn prefix(name: &'static str, values: &'static [&'static str], own: usize) -> Prefix {
    Prefix { name, values, own }
}

const PREFIXES: &[Prefix] = &[
    prefix("arch", &[], 0),
    prefix("bunx", &["-p", "--package"], 0),
    prefix("builtin", &[], 0),
    prefix("busybox", &[], 0),
    prefix("bwrap", &[], 0),
    prefix("caffeinate", &["-t", "-w"], 0),
    prefix("chpst", &["-u", "-U", "-e"], 0),
    prefix("chroot", &["--userspec", "--groups"], 1),
    prefix("chrt", &[], 1),
    prefix("command", &[], 0),
    prefix("coproc", &[], 0),
    prefix("cross-env", &[], 0),
    prefix("dbus-run-session", &[], 0),
    prefix("doas", &["-u", "-C"], 0),
    prefix("dotenv", &["-e", "-f"], 0),
    prefix("dotenvx", &["-f"], 0),
    prefix("entr", &[], 0),
    prefix("env", &["-u", "-C", "--unset", "--chdir"], 0),
    prefix("exec", &["-a"], 0),
    prefix("fakeroot", &[], 0),
    prefix("firejail", &[], 0),
    prefix("gosu", &[], 1),
    prefix("gtimeout", &["-k", "-s", "--signal", "--kill-after"], 1),
    prefix("ionice", &["-c", "-n", "-p"], 0),
    prefix("ltrace", &["-e", "-o", "-p"], 0),
    prefix("nice", &["-n"], 0),
    prefix("nohup", &[], 0),
    prefix("npx", &["-p", "--package"], 0),
    prefix("numactl", &[], 0),
    prefix("nsenter", &["-t", "--target"], 0),
    prefix("pkexec", &["--user"], 0),
    prefix("pnpx", &[], 0),
    prefix("proxychains", &["-f"], 0),
    prefix("proxychains4", &["-f"], 0),
    prefix("rlwrap", &[], 0),
    prefix("runuser", &["-u", "-g"], 0),
    prefix("setarch", &[], 1),
    prefix("setsid", &[], 0),
    prefix("stdbuf", &["-i", "-o", "-e"], 0),
    prefix("strace", &["-e", "-o", "-p", "-s"], 0),
    prefix(
        "sudo",
        &[
            "-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group",
        ],
        0,
    ),
    prefix(
        "systemd-run",
        &["-p", "--unit", "--property", "--on-calendar", "-u"],
        0,
    ),
    prefix("taskset", &[], 1),
    prefix("time", &["-f", "-o"], 0),
    prefix("timeout", &["-k", "-s", "--signal", "--kill-after"], 1),
    prefix("torify", &[], 0),
    prefix("torsocks", &[], 0),
    prefix("toybox", &[], 0),
    prefix("unbuffer", &[], 0),
    prefix("unshare", &[], 0),
    prefix("uvx", &["--from", "--with"], 0),
    prefix("valgrind", &[], 0),
    prefix(
        "xargs",
        &["-I", "-n", "-P", "-d", "-L", "-s", "-E", "-a"],
        0,
    ),
    prefix("xvfb-run", &["-n", "-s"], 0),
];

/// `program subcommand … command`.
const SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("asdf", &["exec"]),
    ("bun", &["x"]),
    ("bundle", &["exec"]),
    ("conda", &["run"]),
    ("direnv", &["exec"]),
    ("hatch", &["run"]),
    ("mise", &["exec", "x"]),
    ("npm", &["exec", "x"]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pixi", &["run"]),
    ("pnpm", &["dlx", "exec"]),
    ("poetry", &["run"]),
    ("pyenv", &["exec"]),
    ("rbenv", &["exec"]),
    ("uv", &["run"]),
    ("yarn", &["dlx", "exec"]),
];

pub const SHELLS: &[&str] = &[
    "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh", "tcsh", "zsh",
];

/// The program's bare name; some file systems don't tell case apart.
pub fn name(word: &Word) -> String {
    let base = word.text.rsplit('/').next().unwrap_or_default();
    base.trim_end_matches(".exe").to_ascii_lowercase()
}

/// What these words run, besides the first of them. Bounded by their number.
#[allow(clippy::match_same_arms, reason = "the order of the arms counts")]
pub fn runs(words: &[Word], piped: bool) -> Vec<Runs> {
    let Some(program) = words.first() else {
        return Vec::new();
    };
    let name = name(program);
    let all = words.len();
    let text = |i: usize| words.get(i).map_or("", |word| &*word.text);
    if SHELLS.contains(&&*name) {
        return shell(words, piped);
    }
    match &*name {
        "eval" => joined(words, 1),
        "su" | "script" | "runuser" | "flock" | "nix-shell" | "pwsh" | "tmux" | "npm" | "npx"
            if let Some(i) = value_of(words, &["-c", "--command", "--run", "--call"]) =>
        {
            vec![Runs::Script(i)]
        }
        "script" | "su" => Vec::new(),
        "env" if let Some(i) = value_of(words, &["-S", "--split-string"]) => vec![Runs::Script(i)],
        "flock" => one(words, skip(words, 1, &["-w", "-E"], 1)),
        "command" if matches!(text(1), "-v" | "-V") => Vec::new(),
        "trap" | "alias" | "bind" => scripts(words),
        "parallel" => {
            let at = skip(words, 1, &["-j", "-a", "--jobs", "-I"], 0);
            if text(at).contains(' ') {
                vec![Runs::Script(at)]
            } else {
                one(words, at)
            }
        }
        "watch" => joined(words, skip(words, 1, &["-n", "--interval"], 0)),
        "ssh" => joined(
            words,
            skip(
                words,
                1,
                &[
                    "-i", "-p", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-b", "-c", "-e", "-m",
                    "-W", "-S", "-E", "-w",
                ],
                1,
            ),
        ),
        "hyperfine" | "concurrently" => (1..all)
            .filter(|&i| !text(i).starts_with('-') && text(i).contains(' '))
            .take(32)
            .map(Runs::Script)
            .collect(),
        "docker" | "podman" | "nerdctl" => container(words),
        "kubectl" | "oc" => match words.iter().position(|word| word.text == "--") {
            Some(i) => one(words, i + 1),
            None => Vec::new(),
        },
        "tmux" | "screen" => {
            let long = |i: &usize| text(*i).contains(' ');
            (1..all).filter(long).take(32).map(Runs::Script).collect()
        }
        "find" | "fd" | "fdfind" => executed(words),
        "git" => git(words),
        "gdb" | "lldb" => Vec::new(),
        _ => {
            let known = PREFIXES.iter().find(|prefix| prefix.name == name);
            if let Some(prefix) = known {
                return behind(words, 1, prefix.values, prefix.own);
            }
            let sub = SUBCOMMANDS.iter().find(|(program, _)| *program == name);
            match sub {
                Some((_, subs)) if subs.contains(&text(1)) => {
                    let own = usize::from(name == "direnv");
                    let values = &["-n", "-p", "--name", "--with", "--package", "--python"];
                    behind(words, 2, values, own)
                }
                _ => Vec::new(),
            }
        }
    }
}

/// The first word that is neither an option, nor an option's value, nor an
/// assignment, after so many others.
fn skip(words: &[Word], from: usize, values: &[&str], own: usize) -> usize {
    skip_by(words, from, own, |text| values.contains(&text))
}

/// What `env -vu A program` runs: the last letter of a bundle may have a value
/// or not, and either is looked at.
fn behind(words: &[Word], from: usize, values: &[&str], own: usize) -> Vec<Runs> {
    let bundled = |text: &str| {
        let last = |value: &&str| value.len() == 2 && text.ends_with(&value[1..]);
        text.starts_with('-') && !text.starts_with("--") && values.iter().any(last)
    };
    let ends_alone = skip(words, from, values, own);
    let with_value = skip_by(words, from, own, |text| {
        values.contains(&text) || bundled(text)
    });
    let mut runs = one(words, ends_alone);
    if with_value != ends_alone {
        runs.extend(one(words, with_value));
    }
    runs
}

fn skip_by(words: &[Word], from: usize, mut own: usize, has_value: impl Fn(&str) -> bool) -> usize {
    let (mut at, mut options) = (from, true);
    while let Some(word) = words.get(at) {
        let text = &*word.text;
        if options && text == "--" {
            options = false;
        } else if options && has_value(text) {
            at += 1;
        } else if options && text.starts_with('-') {
            // A lone `-` is one of `env`'s.
        } else if own > 0 {
            own -= 1;
        } else if !text.contains('=') {
            // `env` takes any word with that sign for a variable.
            return at;
        }
        at += 1;
    }
    at
}

fn value_of(words: &[Word], options: &[&str]) -> Option<usize> {
    let at = words
        .iter()
        .position(|word| options.contains(&&*word.text))?;
    (at + 1 < words.len()).then_some(at + 1)
}

/// All words from there, as a command of its own.
fn one(words: &[Word], from: usize) -> Vec<Runs> {
    if from < words.len() {
        vec![Runs::Words(from, words.len())]
    } else {
        Vec::new()
    }
}

fn joined(words: &[Word], from: usize) -> Vec<Runs> {
    match words.len().saturating_sub(from) {
        0 => Vec::new(),
        1 => vec![Runs::Script(from)],
        _ => vec![Runs::Joined(from)],
    }
}

/// `sh -c script`, or a shell that reads its input.
fn shell(words: &[Word], piped: bool) -> Vec<Runs> {
    let mut at = 1;
    let mut from_input = false;
    while let Some(word) = words.get(at) {
        let text = &*word.text;
        match text {
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => at += 1,
            "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" => from_input = true,
            _ if text.starts_with("--") => {}
            _ if text.starts_with('-') => {
                if text.contains('c') {
                    let script = (at + 1..words.len()).find(|&i| {
                        let text = &words[i].text;
                        !(text.starts_with('-') && text.len() == 2)
                    });
                    return vec![script.map_or(Runs::Input, Runs::Script)];
                }
                from_input |= text.contains('s');
            }
            _ => {
                return if from_input && piped {
                    vec![Runs::Input]
                } else {
                    Vec::new()
                };
            }
        }
        at += 1;
    }
    if piped || from_input {
        vec![Runs::Input]
    } else {
        Vec::new()
    }
}

/// `trap 'script' EXIT`, `alias name='script'`.
fn scripts(words: &[Word]) -> Vec<Runs> {
    let scripts = (1..words.len()).filter(|&i| {
        let text = &words[i].text;
        text.contains([' ', '=', ';']) && !text.starts_with('-')
    });
    scripts.take(32).map(Runs::Script).collect()
}

fn container(words: &[Word]) -> Vec<Runs> {
    let mut at = 1;
    if words.get(at).is_some_and(|word| word.text == "compose") {
        at = skip(words, at + 1, &["-f", "-p", "--profile", "--env-file"], 0);
    }
    let sub = words.get(at).map_or("", |word| &*word.text);
    if !matches!(sub, "exec" | "run") {
        return Vec::new();
    }
    let values = &[
        "-e",
        "-u",
        "-w",
        "-v",
        "-p",
        "--name",
        "--env",
        "--user",
        "--workdir",
        "--volume",
        "--network",
        "--net",
        "--mount",
        "--entrypoint",
        "--env-file",
        "-h",
        "--hostname",
        "-m",
        "--memory",
        "--cpus",
        "--platform",
        "--add-host",
        "--index",
        "--pull",
        "-l",
        "--label",
        "--gpus",
        "--ipc",
        "--pid",
        "--restart",
        "--cap-add",
        "--device",
        "--security-opt",
    ];
    let inner = skip(words, at + 1, values, 1);
    one(words, inner)
}

/// `find … -exec command ;`, each of them.
fn executed(words: &[Word]) -> Vec<Runs> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() && found.len() < 32 {
        let text = &*words[at].text;
        at += 1;
        if matches!(
            text,
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
        ) {
            let rest = &words[at..];
            let len = rest
                .iter()
                .position(|word| matches!(&*word.text, ";" | "+"));
            let end = at + len.unwrap_or(rest.len());
            if end > at {
                found.push(Runs::Words(at, end));
            }
            at = end;
        }
    }
    found
}

/// One word is a script, several are a command.
fn whole(words: &[Word], from: usize) -> Vec<Runs> {
    match words.len().saturating_sub(from) {
        0 => Vec::new(),
        1 => vec![Runs::Script(from)],
        _ => vec![Runs::Words(from, words.len())],
    }
}

fn git(words: &[Word]) -> Vec<Runs> {
    let at = skip(words, 1, &["-C", "-c", "--git-dir", "--work-tree"], 0);
    let text = |i: usize| words.get(i).map_or("", |word| &*word.text);
    let script = |options: &[&str]| {
        let script = value_of(words, options).map(Runs::Script);
        script.into_iter().collect()
    };
    match text(at) {
        "bisect" if text(at + 1) == "run" => whole(words, at + 2),
        "submodule" if text(at + 1) == "foreach" => whole(words, skip(words, at + 2, &[], 0)),
        "rebase" => script(&["-x", "--exec"]),
        "filter-branch" => (at + 1..words.len())
            .filter(|&i| text(i - 1).ends_with("-filter"))
            .take(8)
            .map(Runs::Script)
            .collect(),
        "difftool" => script(&["-x", "--extcmd"]),
        _ => Vec::new(),
    }
}
