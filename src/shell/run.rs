//! Programs that run what their arguments say: what is left of the command
//! when `sudo`, `env`, `xargs` and their like are taken off, and the scripts
//! that stand in a single word.

use super::Word;
use crate::text::lists;

/// What a command runs besides its own program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// The words from here to there are a command of their own.
    Words(usize, usize),
    /// This word is a script, from this byte of it on.
    Script(usize, usize),
    /// All words from here on, joined by blanks, are a script.
    Joined(usize),
    /// The script comes from elsewhere: standard input.
    Input,
}

/// A program in front of another: options that take a value, and how many
/// words of its own come before the other program.
struct Prefix {
    name: &'static str,
    values: &'static str,
    own: usize,
}

const fn prefix(name: &'static str, values: &'static str, own: usize) -> Prefix {
    Prefix { name, values, own }
}

const PREFIXES: &[Prefix] = &[
    prefix("arch", "", 0),
    prefix("bunx", "-p --package", 0),
    prefix("builtin", "", 0),
    prefix("busybox", "", 0),
    prefix("bwrap", "", 0),
    prefix("caffeinate", "-t -w", 0),
    prefix("chpst", "-u -U -e", 0),
    prefix("chroot", "--userspec --groups", 1),
    prefix("chrt", "", 1),
    prefix("command", "", 0),
    prefix("coproc", "", 0),
    prefix("cross-env", "", 0),
    prefix("dbus-run-session", "", 0),
    prefix("doas", "-u -C", 0),
    prefix("dotenv", "-e -f", 0),
    prefix("dotenvx", "-f", 0),
    prefix("entr", "", 0),
    prefix("env", "-u -C --unset --chdir", 0),
    prefix("exec", "-a", 0),
    prefix("fakeroot", "", 0),
    prefix("firejail", "", 0),
    prefix("gosu", "", 1),
    prefix("gtimeout", "-k -s --signal --kill-after", 1),
    prefix("ionice", "-c -n -p", 0),
    prefix("ltrace", "-e -o -p", 0),
    prefix("nice", "-n", 0),
    prefix("nohup", "", 0),
    prefix("npx", "-p --package -c --call", 0),
    prefix("numactl", "", 0),
    prefix("nsenter", "-t --target", 0),
    prefix("pkexec", "--user", 0),
    prefix("pnpx", "", 0),
    prefix("proxychains", "-f", 0),
    prefix("proxychains4", "-f", 0),
    prefix("rlwrap", "", 0),
    prefix("runuser", "-u -g", 0),
    prefix("setarch", "", 1),
    prefix("setsid", "", 0),
    prefix("stdbuf", "-i -o -e", 0),
    prefix("strace", "-e -o -p -s", 0),
    prefix("sudo", "-u -g -h -p -C -r -t -T -U -D -R --user --group", 0),
    prefix("systemd-run", "-p --unit --property --on-calendar -u", 0),
    prefix("taskset", "", 1),
    prefix("time", "-f -o", 0),
    prefix("timeout", "-k -s --signal --kill-after", 1),
    prefix("torify", "", 0),
    prefix("torsocks", "", 0),
    prefix("toybox", "", 0),
    prefix("unbuffer", "", 0),
    prefix("unshare", "", 0),
    prefix("uvx", "--from --with", 0),
    prefix("valgrind", "", 0),
    prefix("xargs", "-I -n -P -d -L -s -E -a", 0),
    prefix("xvfb-run", "-n -s", 0),
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

const SSH: &str = "-i -p -l -o -F -J -L -R -D -b -c -e -m -W -S -E -w";

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
    let mut runs = match &*name {
        "su" | "script" | "runuser" | "flock" | "nix-shell" | "pwsh" | "tmux" | "npm" | "npx" => {
            given(words, &["-c", "--command", "--run", "--call"])
        }
        "env" => given(words, &["-S", "--split-string"]),
        _ => Vec::new(),
    };
    runs.extend(match &*name {
        "eval" => joined(words, 1),
        "script" | "su" => Vec::new(),
        "flock" => behind(words, 1, "-w -E -c --command", 1, Sets::Nothing),
        "command" if matches!(text(1), "-v" | "-V") => Vec::new(),
        "trap" | "alias" | "bind" => scripts(words),
        "parallel" => {
            let values = "-j -a --jobs -I";
            let starts = starts(words, 1, values, 0, Sets::Nothing).into_iter();
            let runs = starts.flat_map(|at| {
                let program = skip(words, at, 0, Sets::Names, |_| false);
                if text(at).contains(' ') {
                    vec![Runs::Script(at, 0)]
                } else if text(program).contains(' ') {
                    joined(words, at)
                } else {
                    one(words, program)
                }
            });
            runs.collect()
        }
        "watch" | "ssh" => {
            let (values, own) = match &*name {
                "watch" => ("-n --interval", 0),
                _ => (SSH, 1),
            };
            let starts = starts(words, 1, values, own, Sets::Nothing).into_iter();
            starts.flat_map(|at| joined(words, at)).collect()
        }
        "hyperfine" | "concurrently" => (1..all)
            .filter(|&i| !text(i).starts_with('-') && text(i).contains(' '))
            .map(|at| Runs::Script(at, 0))
            .collect(),
        "docker" | "podman" | "nerdctl" => container(words),
        "kubectl" | "oc" => match words.iter().position(|word| word.text == "--") {
            Some(i) => one(words, i + 1),
            None => Vec::new(),
        },
        "tmux" | "screen" => {
            let long = |i: &usize| text(*i).contains(' ');
            (1..all)
                .filter(long)
                .map(|at| Runs::Script(at, 0))
                .collect()
        }
        "find" | "fd" | "fdfind" => executed(words),
        "git" => git(words),
        "gdb" | "lldb" => Vec::new(),
        _ => prefixed(words, &name),
    });
    runs
}

/// What a program in front of another runs.
fn prefixed(words: &[Word], name: &str) -> Vec<Runs> {
    if let Some(prefix) = PREFIXES.iter().find(|prefix| prefix.name == name) {
        let sets = match name {
            "env" | "sudo" | "doas" | "cross-env" => Sets::Anything,
            _ => Sets::Names,
        };
        return behind(words, 1, prefix.values, prefix.own, sets);
    }
    let sub = words.get(1).map_or("", |word| &*word.text);
    let mut known = SUBCOMMANDS.iter();
    if known.any(|(program, subs)| *program == name && subs.contains(&sub)) {
        let own = usize::from(name == "direnv");
        let values = "-n -p -c --call --name --with --package --python";
        return behind(words, 2, values, own, Sets::Names);
    }
    Vec::new()
}

/// Which words are set as variables of what runs.
#[derive(Clone, Copy)]
enum Sets {
    Nothing,
    /// `NAME=…`
    Names,
    /// Whatever has the sign in it, as `env` takes it.
    Anything,
}

/// Where what a program runs begins, behind so many words of its own. The last
/// letter of a bundle may have a value or not (`env -vu A program`): either.
fn starts(words: &[Word], from: usize, values: &str, own: usize, sets: Sets) -> Vec<usize> {
    let has_value = |text: &str| lists::has(values, text);
    let letters = values.split_ascii_whitespace();
    let letters = letters.filter_map(|value| match value.as_bytes() {
        [b'-', letter] => Some(char::from(*letter)),
        _ => None,
    });
    let letters: Vec<char> = letters.collect();
    // The first letter that has a value takes all that follows it.
    let bundled = |text: &str| {
        text.starts_with('-')
            && !text.starts_with("--")
            && text.find(&*letters).is_some_and(|at| at + 1 == text.len())
    };
    let alone = skip(words, from, own, sets, has_value);
    let with_value = skip(words, from, own, sets, |text| {
        has_value(text) || bundled(text)
    });
    let mut starts = vec![alone, with_value];
    starts.dedup();
    starts
}

/// The first word that is neither an option, nor an option's value, nor an
/// assignment, after so many others.
fn skip(
    words: &[Word],
    from: usize,
    mut own: usize,
    sets: Sets,
    has_value: impl Fn(&str) -> bool,
) -> usize {
    let (mut at, mut options) = (from, true);
    while let Some(word) = words.get(at) {
        let text = &*word.text;
        let is_set = match sets {
            Sets::Nothing => false,
            Sets::Names => super::expand::assigned(text).is_some(),
            Sets::Anything => text.contains('='),
        };
        if options && text == "--" {
            options = false;
        } else if options && has_value(text) {
            at += 1;
        } else if options && text.starts_with('-') {
            // A lone `-` is one of `env`'s.
        } else if own > 0 {
            own -= 1;
        } else if !is_set {
            return at;
        }
        at += 1;
    }
    at
}

/// The scripts that an option brings: behind it, behind a bundle that ends
/// with it, or joined to it.
fn given(words: &[Word], options: &[&str]) -> Vec<Runs> {
    let found = words.iter().enumerate().skip(1).flat_map(|(at, word)| {
        let text = &*word.text;
        options.iter().filter_map(move |option| {
            let is_long = option.starts_with("--");
            let bundled = !is_long && !text.starts_with("--") && text.starts_with('-');
            if text == *option || bundled && text.ends_with(&option[1..]) {
                return Some(Runs::Script(at + 1, 0));
            }
            let rest = text.strip_prefix(option)?;
            match rest.strip_prefix('=') {
                Some(_) => Some(Runs::Script(at, option.len() + 1)),
                None if is_long => None,
                None => Some(Runs::Script(at, option.len())),
            }
        })
    });
    let there = |run: &Runs| !matches!(run, Runs::Script(at, _) if *at >= words.len());
    found.filter(there).collect()
}

/// The words from each of the [`starts`], as a command of their own.
fn behind(words: &[Word], from: usize, values: &str, own: usize, sets: Sets) -> Vec<Runs> {
    let starts = starts(words, from, values, own, sets).into_iter();
    starts.flat_map(|at| one(words, at)).collect()
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
        1 => vec![Runs::Script(from, 0)],
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
                    return vec![script.map_or(Runs::Input, |at| Runs::Script(at, 0))];
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
    let named = name(&words[0]) != "trap";
    let runs = scripts.map(|at| {
        let equals = words[at].text.find('=').filter(|_| named);
        Runs::Script(at, equals.map_or(0, |at| at + 1))
    });
    runs.collect()
}

fn container(words: &[Word]) -> Vec<Runs> {
    let mut at = 1;
    if words.get(at).is_some_and(|word| word.text == "compose") {
        let has_value = |text: &str| lists::has("-f -p --profile --env-file", text);
        at = skip(words, at + 1, 0, Sets::Nothing, has_value);
    }
    let sub = words.get(at).map_or("", |word| &*word.text);
    if !matches!(sub, "exec" | "run") {
        return Vec::new();
    }
    let values = "\
        -e -u -w -v -p --name --env --user --workdir --volume --network --net --mount \
        --entrypoint --env-file -h --hostname -m --memory --cpus --platform --add-host \
        --index --pull -l --label --gpus --ipc --pid --restart --cap-add --device \
        --security-opt --cap-drop --ulimit --sysctl --shm-size --tmpfs --dns --dns-search \
        --group-add --userns --runtime --log-driver --log-opt --storage-opt -a --attach --link \
        --expose --publish --volumes-from --cgroupns --cgroup-parent --cidfile --stop-signal \
        --annotation --cpuset-cpus --cpu-shares -c --memory-swap --pids-limit --ip --ip6 \
        --mac-address --network-alias --detach-keys --health-cmd --label-file --uts";
    // No image has the sign in its name; an option's value may.
    let images = starts(words, at + 1, values, 0, Sets::Anything).into_iter();
    images.flat_map(|image| one(words, image + 1)).collect()
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
        1 => vec![Runs::Script(from, 0)],
        _ => vec![Runs::Words(from, words.len())],
    }
}

fn git(words: &[Word]) -> Vec<Runs> {
    let has_value = |text: &str| lists::has("-C -c --git-dir --work-tree", text);
    let at = skip(words, 1, 0, Sets::Nothing, has_value);
    let text = |i: usize| words.get(i).map_or("", |word| &*word.text);
    let script = |options: &[&str]| given(words, options);
    match text(at) {
        "bisect" if text(at + 1) == "run" => whole(words, at + 2),
        "submodule" if text(at + 1) == "foreach" => {
            joined(words, skip(words, at + 2, 0, Sets::Nothing, |_| false))
        }
        "rebase" => script(&["-x", "--exec"]),
        "filter-branch" => (at + 1..words.len())
            .filter(|&i| text(i - 1).ends_with("-filter"))
            .map(|at| Runs::Script(at, 0))
            .collect(),
        "difftool" => script(&["-x", "--extcmd"]),
        _ => Vec::new(),
    }
}
