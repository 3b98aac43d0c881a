//! What a command's words are: variables that steer another program, and the
//! arguments that are paths.

#![allow(
    clippy::too_many_lines,
    clippy::match_same_arms,
    reason = "a table reads better whole"
)]

use super::Danger;
use super::judge::ProgramCall;
use super::places::Use;
use crate::shell::Word;
use crate::text::lists;

/// Variables that choose what another program loads, runs or talks to.
pub(super) fn assigns(name: &str, value: &Word) -> Option<Danger> {
    let upper = name.trim_end_matches('+').to_ascii_uppercase();
    let text = &*value.text;
    let loads = "\
        LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH BASH_ENV \
        PROMPT_COMMAND PERL5OPT PERL5LIB RUBYOPT PYTHONSTARTUP PYTHONHOME JAVA_TOOL_OPTIONS \
        _JAVA_OPTIONS GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_ASKPASS \
        SSH_ASKPASS GIT_TEMPLATE_DIR GIT_EXEC_PATH GIT_CONFIG_GLOBAL GIT_CONFIG_COUNT \
        GIT_CONFIG_PARAMETERS RUSTC_WRAPPER CARGO_BUILD_RUSTC_WRAPPER LESSOPEN LESSCLOSE \
        MANPAGER BROWSER PS4 HISTFILE PERL5DB ELECTRON_RUN_AS_NODE NPM_CONFIG_REGISTRY \
        NPM_CONFIG_SCRIPT_SHELL NPM_CONFIG_NODE_OPTIONS PIP_INDEX_URL PIP_EXTRA_INDEX_URL \
        YARN_NPM_REGISTRY_SERVER NODE_TLS_REJECT_UNAUTHORIZED GIT_SSL_NO_VERIFY SUDO_ASKPASS";
    let runs = "EDITOR VISUAL PAGER GIT_EDITOR GIT_PAGER GIT_SEQUENCE_EDITOR SHELL";
    // `BASH_FUNC_ls%%` makes `ls` whatever its value says.
    if lists::has(loads, &upper) || upper.starts_with("BASH_FUNC_") {
        let quiet = (upper == "LD_LIBRARY_PATH" && !in_open_place(text))
            || upper == "BROWSER" && text == "none"
            || (upper == "GIT_SSH_COMMAND"
                && text.starts_with("ssh -i")
                && !text.contains("ProxyCommand"))
            || (upper == "HISTFILE" && !matches!(text, "" | "/dev/null"));
        return (!quiet).then_some(Danger::Steers);
    }
    if lists::begins(super::nod::VARIABLES, &upper) {
        return Some(Danger::Nod);
    }
    match &*upper {
        "PATH" | "PYTHONPATH" | "NODE_PATH" | "RUBYLIB" | "CLASSPATH" => {
            in_open_place(text).then_some(Danger::Steers)
        }
        "NODE_OPTIONS" => {
            let loads = lists::within("require import loader inspect=0.0.0.0", text);
            (loads || text.contains("-r ")).then_some(Danger::Steers)
        }
        "HTTP_PROXY" | "HTTPS_PROXY" | "ALL_PROXY" => {
            (!text.is_empty() && !super::net::is_local(text)).then_some(Danger::Steers)
        }
        name if lists::has(runs, name) => {
            let odd = text.contains(['|', ';', '&', '`', '/'])
                || text.starts_with("sh ")
                || text.starts_with("bash ");
            let usual = text == "/dev/null" || lists::begins("/usr/ /bin/", text);
            (odd && !usual).then_some(Danger::Steers)
        }
        _ => None,
    }
}

/// A search path that begins where anybody can write.
fn in_open_place(value: &str) -> bool {
    value
        .split(':')
        .take_while(|part| !part.starts_with('$'))
        .any(|part| {
            matches!(part, "" | "." | "./") && value.contains(':')
                || part.starts_with("/tmp")
                || part.starts_with("/var/tmp")
                || part.starts_with("/dev/shm")
        })
}

/// Which arguments are paths, and what is done with them.
#[allow(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "the text is in lower case, or its case counts"
)]
pub(super) fn paths<'a>(call: &'a ProgramCall<'_>) -> Vec<(&'a Word, Use)> {
    let plain = call.plain();
    let all = |used| plain.iter().map(|word| (*word, used)).collect::<Vec<_>>();
    let valued = |options: &str, used| {
        let mut found = Vec::new();
        for (at, word) in call.words.iter().enumerate().skip(1) {
            if lists::has(options, &word.text) {
                found.extend(call.words.get(at + 1).map(|word| (word, used)));
            }
        }
        found
    };
    let mut found = match &*call.name {
        // Words to be printed, matched or looked at from outside are no paths.
        "echo" | "printf" | "ls" | "stat" | "test" | "[" | "cd" | "mkdir" | "file" | "du"
        | "ssh" | "exa" | "eza" | "ssh-add" | "ssh-keygen" | "git" | "gh" | "kubectl" | "helm"
        | "which" | "type" | "export" | "realpath" | "readlink" | "dirname" | "basename"
        | "touch" | "true" | ":" | "commit" | "npm" | "yarn" | "pnpm" | "docker" | "podman"
        | "chown" | "pushd" | "find" | "fd" | "man" | "declare" | "local" | "readonly"
        | "ssh-copy-id" | "pip" | "pip3" => Vec::new(),
        "base64" | "base32" | "xxd" | "gzip" | "zip" | "gpg" | "openssl" => {
            let dotenv = |word: &&Word| -> bool {
                let name = word.text.rsplit('/').next().unwrap_or_default();
                name.starts_with(".env") && !name.contains("example") && !name.contains("sample")
            };
            if plain.iter().any(dotenv) {
                return plain
                    .iter()
                    .map(|word| (*word, Use::Secret))
                    .filter(|(word, _)| dotenv(word))
                    .collect();
            }
            all(Use::Read)
        }
        "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" => {
            let skip = usize::from(call.value(&["-e", "-f", "--regexp"]).is_none());
            plain
                .iter()
                .skip(skip)
                .map(|word| (*word, Use::Read))
                .collect()
        }
        "cp" | "mv" | "install" | "ln" | "rsync" | "scp" | "ditto" => {
            let mut found = valued("-t --target-directory", Use::Write);
            if let Some((last, others)) = plain.split_last() {
                found.push((last, Use::Write));
                if call.name != "ln" {
                    found.extend(others.iter().map(|word| (*word, Use::Read)));
                }
                if call.name == "mv" {
                    found.extend(others.iter().map(|word| (*word, Use::Write)));
                }
            }
            found
        }
        "tee" | "sponge" | "truncate" | "shred" | "vi" | "vim" | "nvim" | "nano" | "emacs"
        | "ed" | "ex" | "code" | "subl" | "patch" | "dos2unix" | "chattr" | "setfacl" => {
            all(Use::Write)
        }
        "rm" | "unlink" => {
            let in_git =
                |word: &&&Word| word.text.starts_with(".git/") || word.text.contains("/.git/");
            let tests = |word: &&&Word| !word.text.ends_with(".py");
            plain
                .iter()
                .filter(|word| !in_git(word) && tests(word))
                .map(|word| (*word, Use::Write))
                .filter(|(word, _)| {
                    !matches!(
                        super::places::of(&word.text, Use::Write),
                        Some(Danger::BuildFiles | Danger::AgentSettings)
                    )
                })
                .collect()
        }
        "chmod" => {
            let hooks = |word: &&&Word| {
                matches!(
                    super::places::of(&word.text, Use::Write),
                    Some(Danger::GitHooks | Danger::SystemFiles | Danger::Startup)
                ) && !word.text.contains(".husky")
                    && !word.text.contains(".githooks")
            };
            plain
                .iter()
                .filter(hooks)
                .map(|word| (*word, Use::Write))
                .collect()
        }
        "sed" | "gsed" | "perl" | "ruby" | "awk" | "gawk" | "yq" | "sd" => {
            let in_place = call.any(|text| {
                text.starts_with("-i")
                    || text.starts_with("--in-place")
                    || text == "inplace"
                    || (call.name == "perl"
                        && text.starts_with('-')
                        && !text.starts_with("--")
                        && text.contains('i'))
            }) || call.name == "sd";
            let script = usize::from(call.value(&["-e", "-f"]).is_none());
            let used = if in_place { Use::Write } else { Use::Read };
            plain
                .iter()
                .skip(script)
                .map(|word| (*word, used))
                .collect()
        }
        "dd" => {
            let part = |used: Use, key: &str| {
                call.arguments()
                    .filter(|word| word.text.starts_with(key))
                    .map(move |word| (word, used))
                    .collect::<Vec<_>>()
            };
            let mut found = part(Use::Write, "of=");
            found.extend(part(Use::Read, "if="));
            found
        }
        "curl" | "wget" => {
            let named = "-o -O --output --output-document -P --directory-prefix";
            let mut found = valued(named, Use::Write);
            found.extend(
                call.arguments()
                    .filter(|word| word.text.contains(['@', '=']))
                    .map(|word| (word, Use::Read)),
            );
            let sent = "-T --upload-file --post-file --body-file -K --netrc-file";
            found.extend(valued(sent, Use::Read));
            found
        }
        "tar" | "unzip" | "bsdtar" => {
            let mut found = valued("-C -d --directory", Use::Write);
            found.extend(plain.iter().map(|word| (*word, Use::Read)));
            found
        }
        _ => all(Use::Read),
    };
    found.truncate(512);
    found
}

/// Whether an edit of a manifest in place may touch what it runs.
pub(super) fn edits_scripts(call: &ProgramCall<'_>) -> bool {
    let words = "\
        script install prepare \"test \"build \"start hook \"bin publish \"pre \"post";
    call.any(|text| lists::within(words, text))
}
