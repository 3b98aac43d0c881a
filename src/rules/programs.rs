//! What is known of programs: which ones run others, which ones take orders
//! from their standard input, and the few whose every argument is harmless.
//! A program nobody has looked at is in none of these lists and gets no rule.
//!
//! Why the input matters: under a rule for exactly `prog x` Claude Code also
//! lets `echo ANYTHING | prog x` and `prog x < file` pass.

use crate::text::lists;

/// Programs that run what they are given: a rule for them holds nothing.
const RUNNERS: &str = "\
    . ash at bash batch builtin bunx chroot chrt command crontab csh dash doas env eval exec \
    expect fish flock gdb ionice ksh nice nohup npx nsenter parallel pipx pkexec pnpx pwsh \
    rsh runuser script setsid sg sh source ssh stdbuf strace su sudo systemd-run taskset \
    tcsh time timeout trap unshare uvx watch xargs zsh";

/// Held to a script that is named, without an option nobody has looked at.
const INTERPRETERS: &str = "\
    bun deno julia lua node osascript perl php powershell python r rscript ruby tclsh ts-node \
    tsx";

/// Options these interpreters may have before their script: none of them takes
/// a value, reads code from elsewhere or goes on reading after the script.
/// `perl -I` and `ruby -I` take one, and then there is no script.
const PLAIN_OPTIONS: &[(&str, &str)] = &[
    ("node", "--enable-source-maps --no-warnings --test"),
    ("python", "-B -I -O -OO -S -s -u"),
];

/// As a word of its own, or behind a `=`, any of these may be what runs in the
/// end: `cmake -E env sh`, `make CC='sh -s'`.
const SHELLS: &str = "\
    ash bash code csh dash fish ghci ipython irb jshell ksh pdb pry pwsh sh tcsh zsh";

/// Python's modules that leave their input alone: `-m code` and `-m pdb` don't.
const MODULES: &str = "\
    black build compileall flake8 http.server isort mypy pip pylint pytest ruff \
    unittest venv";

/// Programs with a subcommand that runs something of the caller's choice.
const RUNNING_SUBCOMMANDS: &[(&str, &str)] = &[
    ("docker", "exec run"),
    ("podman", "exec run"),
    ("kubectl", "debug exec run"),
    ("npm", "exec x"),
    ("pnpm", "dlx exec"),
    ("yarn", "dlx exec"),
    ("bun", "exec x"),
    ("deno", "eval repl"),
    ("uv", "run tool"),
    ("poetry", "run shell"),
    ("go", "run generate"),
    ("nix", "develop run shell"),
    ("tox", "devenv exec"),
    ("meson", "devenv"),
    ("mocha", "debug inspect"),
];

/// Programs that take orders from their input, or write it where nobody saw
/// it. Named, so that one that lies in the project is known too.
const READERS: &str = "\
    awk bc clickhouse-client cpio cqlsh dbshell dc dd duckdb ed emacs erl ex ffmpeg ftp gawk \
    ghci gnuplot gpg groovysh guile http iex influx ipython irb jshell ld less lldb m4 mail \
    mariadb mongo mongosh more mutt mysql nano nc ncat netcat nsupdate ocaml octave openssl \
    patch psql pry racket redis-cli sbcl scala sed sendmail sftp socat split sponge sqlcmd \
    sqlite sqlplus tee telnet vi view vim nvim";

/// Words that make many programs read their orders: `manage.py shell`.
const PROMPTS: &str = "\
    console dbconsole dbshell interact interactive repl shell shell_plus tinker";

/// Whose input is data at most, printed, counted or left alone. These read
/// names, files or nothing, and print.
const PRINTERS: &str = "\
    ag arch base64 basename cat cksum cmp column comm curl cut date df diff dirname du echo \
    egrep expr factor false fd fgrep file find fold free getconf grep head hexdump hostname \
    id join journalctl jq ls lsof md5sum nl nm nproc numfmt objdump od paste pgrep printf ps \
    pwd readelf readlink realpath rg rev seq sha1sum sha256sum sha512sum size sleep sort ss \
    stat strings tac tail test tr tree true uname uniq uptime wc wget which whoami xxd yq";
/// These change the files that are named, and ask at most for a yes to it.
const CHANGERS: &str = "\
    chmod cp gunzip gzip ln mkdir mv pkill rm rmdir touch truncate xz zstd";
/// These build, check and test what the project holds. What the project's own
/// scripts make of their input is the project's, like the scripts.
const BUILDERS: &str = "\
    actionlint ant bazel biome black cloc cmake codespell ctest cypress eslint flake8 gofmt \
    golangci-lint gradle gradlew hadolint isort javac jest just make markdownlint meson \
    mocha mvn mvnw mypy ninja nox nx phpunit prettier protoc pylint pyright pytest rake \
    rollup rspec rubocop ruff rustc rustfmt shellcheck shfmt sphinx-build staticcheck \
    stylelint tokei tox tsc turbo typos vite vitest webpack yamllint";
/// These by their subcommands: the others ask for a login, open an editor or a
/// prompt, or run something of the caller's.
const BY_SUBCOMMAND: &[(&str, &str)] = &[
    ("bundle", "check install list update"),
    ("cabal", "build check test update"),
    (
        "cargo",
        "\
        --version -V add audit bench build c check clean clippy deny doc fetch fmt generate-lockfile \
        install llvm-cov machete metadata nextest outdated package pkgid remove run \
        test tree update vendor version",
    ),
    (
        "composer",
        "\
        dump-autoload install require run-script show test update validate",
    ),
    ("coverage", "html report xml"),
    ("dart", "analyze compile fix format pub test"),
    (
        "docker",
        "\
        build images info inspect logs ps pull restart rm rmi start stats stop tag top version",
    ),
    ("docker-compose", COMPOSE),
    (
        "dotnet",
        "\
        --info --version build clean format list publish restore run test",
    ),
    ("flutter", "analyze build pub test"),
    ("gem", "install list"),
    (
        "go",
        "\
        build doc env fix fmt get install list mod test version vet work",
    ),
    (
        "kubectl",
        "\
        api-resources cluster-info describe explain get logs top version",
    ),
    ("mix", "compile credo deps.get dialyzer format test"),
    ("mkdocs", "build"),
    ("next", "build lint"),
    (
        "npm",
        "\
        --version -v audit ci dedupe i install ls list outdated pack ping prune rebuild run run-script \
        start stop t test uninstall update view why",
    ),
    ("pip", "check download freeze install list show wheel"),
    ("pipenv", "graph install lock sync"),
    ("playwright", "install test"),
    ("pnpm", SCRIPTS),
    (
        "podman",
        "build images info inspect logs ps pull rm rmi stop version",
    ),
    (
        "poetry",
        "add build check install lock remove show sync update version",
    ),
    ("pre-commit", "install run"),
    (
        "rails",
        "db:create db:migrate db:rollback db:seed routes test",
    ),
    ("rebar3", "compile ct eunit"),
    ("rustup", "--version component show target toolchain update"),
    ("stack", "build test"),
    ("swift", "build package test"),
    ("systemctl", "is-active is-enabled list-units show status"),
    ("terraform", "fmt providers validate version"),
    (
        "uv",
        "add build export lock pip remove sync tree venv version",
    ),
    ("yarn", SCRIPTS),
    ("zig", "build fmt test"),
];
const COMPOSE: &str = "\
    build config down images logs ps pull restart start stop top up";
/// For these any other word is a script of the project.
const SCRIPTS: &str = "\
    --version -v add audit build check ci dedupe dev format i info install lint list ls \
    outdated pack preview prune remove run start test typecheck up update upgrade why";
/// For git the ones below, unless an option opens an editor or asks again and
/// again what to do: an editor without a terminal takes its input for keys.
const GIT: &str = "\
    add archive blame branch check-attr check-ignore check-ref-format checkout cherry \
    cherry-pick clean clone commit config count-objects describe diff diff-tree fetch \
    for-each-ref fsck gc grep init log ls-files ls-remote ls-tree merge merge-base mv name-rev \
    prune pull push rebase reflog remote reset restore rev-list rev-parse revert rm shortlog \
    show show-ref stash status switch tag version whatchanged worktree";

/// Beginnings that may be followed by anything: no argument of these writes a
/// file, runs a program, sets a setting, calls a hook or goes to the network,
/// and none prints what a file outside the repository holds.
///
/// Left out on purpose: `git log`, `diff`, `show`, `rev-list`, `shortlog`,
/// `stash list` (`--output=FILE`), `git grep` (`-O PROGRAM`), `git cat-file`
/// (`--textconv`, `--filters`), `git status`, `ls-files`, `check-ignore` and
/// `check-attr` (the index's file monitor is a program), `git branch`, `tag`,
/// `remote`, `config` (they write), `rg` (`--pre`), `sort` (`-o`), `uniq` (its
/// second file), `tree` (`-o`), `cat`, `head`, `wc`, `grep`, `du`, `date` and
/// `shellcheck` (they print any file, some by an error message), `find`
/// (`-exec`, `-fprint`), `npm ls` and `pip list` (settings that run programs),
/// `cargo tree` (fetches, runs a wrapper), `docker`, `kubectl`, `gh` (network).
/// `ls`, `stat` and the like never ask within the project, and outside of it
/// there is no rule.
const HARMLESS: &[&str] = &[
    // Numbers; it takes `-v` and `-H` and nothing else.
    "git count-objects",
    // Looks at the text of its argument and at nothing else.
    "git check-ref-format",
];

/// The beginning of these words that may be left open.
pub(super) fn harmless_beginning(words: &[String]) -> Option<&'static str> {
    let begins = |known: &&&str| {
        let mut words = words.iter();
        known
            .split(' ')
            .all(|known| words.next().is_some_and(|word| word == known))
    };
    HARMLESS.iter().find(begins).copied()
}

fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

pub(super) fn is_runner(name: &str) -> bool {
    lists::has(RUNNERS, name) || lists::has(RUNNERS, stem(name))
}

pub(super) fn is_interpreter(name: &str) -> bool {
    lists::has(INTERPRETERS, stem(name))
}

/// Whether an interpreter was given anything but a script to run. `rest` is
/// what follows its name.
pub(super) fn interprets_more(name: &str, rest: &[String]) -> bool {
    let mut known = PLAIN_OPTIONS.iter();
    let own = known.find(|(of, _)| *of == stem(name));
    let plain = |word: &&String| own.is_some_and(|(_, options)| lists::has(options, word));
    let options = rest.iter().take_while(plain).count();
    let (options, rest) = rest.split_at(options);
    let Some((script, more)) = rest.split_first() else {
        return !options.iter().any(|word| word == "--test");
    };
    match (stem(name), script.as_str()) {
        ("python", "-m") => more
            .first()
            .is_none_or(|module| !lists::has(MODULES, module)),
        (
            "bun" | "deno",
            "add" | "check" | "fmt" | "install" | "lint" | "run" | "task" | "test",
        ) => {
            let inline = ["-e", "-p", "-r", "--eval", "--print", "--preload"];
            more.iter()
                .any(|word| inline.iter().any(|option| word.starts_with(option)))
        }
        // It may be cut short.
        ("php", "artisan") => more
            .first()
            .is_some_and(|word| "tinker".starts_with(word.as_str())),
        (_, "--version" | "-V") => !more.is_empty(),
        (_, script) => script.starts_with('-') || !script.contains(['.', '/']),
    }
}

/// Whether a word after the program's own may be a program that runs anything.
pub(super) fn may_run(word: &str) -> bool {
    word.split(['=', ' ', ',']).any(|piece| {
        let name = piece.rsplit('/').next().unwrap_or("").to_ascii_lowercase();
        let stem = stem(&name);
        stem.len() > 1 && (lists::has(SHELLS, stem) || lists::has(INTERPRETERS, stem))
    })
}

pub(super) fn runs_by_subcommand(name: &str, rest: &[String]) -> bool {
    let mut words = rest.iter().map(String::as_str);
    RUNNING_SUBCOMMANDS
        .iter()
        .filter(|(known, _)| *known == name)
        .any(|(_, running)| {
            words
                .find(|word| !word.starts_with('-'))
                .is_some_and(|word| lists::has(running, word))
        })
}

/// What a program does with its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StdinUse {
    /// Data at most.
    Data,
    /// Orders, or content for a file.
    Orders,
    Unknown,
}

/// What is known of this command's input. `written` is the program as it was
/// written, `own` whether it lies in the project, `rest` what follows it.
pub(super) fn input(written: &str, own: bool, rest: &[String]) -> StdinUse {
    let name = written
        .rsplit('/')
        .next()
        .unwrap_or("")
        .to_ascii_lowercase();
    let (name, stem) = (name.as_str(), stem(&name));
    let reads = rest
        .iter()
        .any(|word| names_input(word) || lists::has(PROMPTS, word));
    if reads || lists::has(READERS, name) || lists::has(READERS, stem) {
        return StdinUse::Orders;
    }
    if is_interpreter(name) {
        return StdinUse::Data;
    }
    let second = |known| known_if(rest.get(1).is_some_and(|word| lists::has(known, word)));
    match (name, rest.first().map(String::as_str)) {
        ("git", _) => git_input(rest),
        ("tar", Some(options)) => known_if(!options.starts_with("--") && options.contains('f')),
        // `--compress-program`, which may be cut short.
        ("sort", _)
            if rest
                .iter()
                .any(|word| writes_output(word) || word.starts_with("--c")) =>
        {
            StdinUse::Orders
        }
        ("curl", _)
            if rest
                .iter()
                .any(|word| word == "." || word.contains("telnet:")) =>
        {
            StdinUse::Orders
        }
        ("bundle", Some("exec")) => match rest.get(1) {
            Some(program) if !program.contains('/') && !is_interpreter(program) => {
                input(program, false, &rest[2..])
            }
            _ => StdinUse::Unknown,
        },
        ("docker", Some("compose")) => second(COMPOSE),
        ("gh", Some("issue" | "pr" | "release" | "repo" | "run" | "workflow")) => {
            second("checks diff list status view")
        }
        _ if [PRINTERS, CHANGERS, BUILDERS]
            .iter()
            .any(|list| lists::has(list, name) || lists::has(list, stem)) =>
        {
            StdinUse::Data
        }
        (_, first) => match BY_SUBCOMMAND.iter().find(|(known, _)| *known == stem) {
            Some((_, some)) => known_if(first.is_some_and(|word| lists::has(some, word))),
            // What the project holds was written by whoever asks; a rule for
            // it trusts the file that it names, whatever it says by then.
            None => known_if(own),
        },
    }
}

fn known_if(known: bool) -> StdinUse {
    if known {
        StdinUse::Data
    } else {
        StdinUse::Unknown
    }
}

/// `-`, `-f-`, `@-`, `--file=-`, `/dev/stdin`, `--password-stdin`; and the
/// options by which a test runner stops and asks.
pub(super) fn names_input(word: &str) -> bool {
    let mut lower = word.to_ascii_lowercase().replace("/./", "/");
    while lower.contains("//") {
        lower = lower.replace("//", "/");
    }
    ["stdin", "/dev/fd", "/proc/", "--pdb", "--ipdb"]
        .iter()
        .any(|name| lower.contains(name))
        || ["--trace", "--interactive", "--files"]
            .iter()
            .any(|option| lower.starts_with(option))
        || word.split(['=', '@', ':', ',']).any(|piece| piece == "-")
        || (word.len() > 2 && word.starts_with('-') && word.ends_with('-'))
}

fn writes_output(word: &str) -> bool {
    word.starts_with("--o") || (is_short(word) && word.contains('o'))
}

fn is_short(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--")
}

/// Whether git would open an editor, or ask piece by piece what to do. Its long
/// options may be cut short.
fn git_input(rest: &[String]) -> StdinUse {
    let Some((subcommand, rest)) = rest.split_first() else {
        return StdinUse::Unknown;
    };
    if subcommand == "--version" {
        return known_if(rest.is_empty());
    }
    if !lists::has(GIT, subcommand) {
        let option = subcommand.starts_with('-');
        return if option {
            StdinUse::Unknown
        } else {
            StdinUse::Orders
        };
    }
    let any = |long: &[&str], short: &[char]| {
        rest.iter().any(|word| {
            (is_short(word) && word.contains(short))
                || long.iter().any(|long| word.starts_with(long))
        })
    };
    let said = rest.iter().any(|word| {
        let long = ["--message", "--file", "--no-edit", "--reuse-message"];
        let short = || {
            word.trim_start_matches('-')
                .trim_start_matches(['a', 'n', 'q', 's', 'v'])
        };
        long.iter().any(|long| word.starts_with(long))
            || (is_short(word) && short().starts_with(['m', 'F', 'C']))
    });
    let asks = match subcommand.as_str() {
        "commit" => !said || any(&["--e", "--pat", "--int"], &['e', 'p', 'c']),
        "tag" => any(&["--e"], &['e']) || (any(&["--an", "--s", "--l"], &['a', 's', 'u']) && !said),
        "add" => any(&["--e", "--pat", "--int"], &['e', 'p', 'i']),
        "checkout" | "reset" | "restore" | "stash" => any(&["--pat"], &['p']),
        "clean" => any(&["--i"], &['i']),
        "grep" => any(&["--op"], &['O']),
        "branch" | "config" => any(&["--e"], &['e']) || rest.iter().any(|word| word == "edit"),
        "cherry-pick" | "merge" | "pull" | "revert" => any(&["--e", "--con"], &['e']),
        "rebase" => any(&["--con", "--e", "--i"], &['i', 'x']),
        _ => false,
    };
    if asks {
        StdinUse::Orders
    } else {
        StdinUse::Data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_does_with_its_input_is_told_by_its_words() {
        use StdinUse::{Data, Orders, Unknown};
        for (command, told) in [
            ("cat a", Data),
            ("sort a", Data),
            ("sort -n words.txt", Data),
            ("sort -o a", Orders),
            ("base64 a", Data),
            ("pytest3 a", Data),
            ("m4 a", Orders),
            ("sqlite3 a", Orders),
            ("sort --compress-program=x", Orders),
            ("sort --reverse", Data),
            ("curl a.b", Data),
            ("curl .", Orders),
            ("curl telnet://a.b", Orders),
            ("tar xf a", Data),
            ("tar x", Unknown),
            ("tar --file=a", Unknown),
            ("bundle exec rspec", Data),
            ("bundle exec ruby", Unknown),
            ("bundle exec bin/x", Unknown),
            ("bundle exec", Unknown),
            ("gh pr view", Data),
            ("gh pr create", Unknown),
            ("gh auth login", Unknown),
            ("cat a-", Data),
            ("cat -", Orders),
            ("cat -f-", Orders),
            ("cat --", Data),
            ("git tag", Data),
            ("git tag -a", Orders),
            ("git tag -a -m x", Data),
            ("git tag -e -m x", Orders),
            ("git checkout a", Data),
            ("git checkout -p", Orders),
            ("git stash --patch", Orders),
            ("git clean -f", Data),
            ("git clean -i", Orders),
            ("git grep x", Data),
            ("git grep -O x", Orders),
            ("git branch", Data),
            ("git branch --edit-description", Orders),
            ("git config edit", Orders),
            ("git merge a", Data),
            ("git merge --edit", Orders),
            ("git revert --continue", Orders),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(input(&words[0], false, &words[1..]), told, "{command}");
        }
    }

    #[test]
    fn one_letter_is_no_word_for_a_program_that_runs_anything() {
        assert!(!may_run("-r") && !may_run("r"));
        assert!(may_run("a=/bin/sh") && may_run("python3"));
    }
}
