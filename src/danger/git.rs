//! git and the forges: what throws work away, what is forced on others, and
//! settings that make git run a program.

#![allow(
    clippy::too_many_lines,
    clippy::match_same_arms,
    reason = "a table reads better whole"
)]

use super::Danger;
use super::judge::{Judge, ProgramCall};
use crate::shell::Word;
use crate::text::lists;

pub(super) fn judge(judge: &mut Judge, call: &ProgramCall<'_>) -> Option<Danger> {
    if matches!(&*call.name, "gh" | "glab") {
        return forge(call);
    }
    let mut at = 1;
    while let Some(word) = call.words.get(at) {
        let text = &*word.text;
        match text {
            "-c" | "--config-env" => {
                if let Some(danger) = setting(call.text(at + 1)) {
                    return Some(danger);
                }
                at += 2;
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" => at += 2,
            _ if text.starts_with("--exec-path=") => return Some(Danger::GitHooks),
            _ if text.starts_with('-') => at += 1,
            _ => break,
        }
    }
    let command = call.words.get(at)?;
    if command.marks.variable || command.marks.substitution {
        return Some(Danger::HardToRead);
    }
    let rest = &call.words[(at + 1).min(call.words.len())..];
    let has = |wanted: &[&str]| {
        rest.iter().any(|word| {
            let name = word.text.split('=').next().unwrap_or_default();
            wanted.contains(&name)
        })
    };
    let flag = |letter: char| {
        rest.iter().any(|word| {
            word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(letter)
        })
    };
    let first = rest.first().map_or("", |word| &*word.text);
    let plain: Vec<&Word> = rest
        .iter()
        .filter(|word| !word.text.starts_with('-'))
        .collect();
    let everything = rest.iter().any(|word| {
        matches!(&*word.text, "." | "./" | "*" | ":/" | ":/*") || word.text.ends_with('/')
    });
    // Transports and options that run a program at either end.
    let runs = rest.iter().any(|word| {
        let text = &*word.text;
        lists::begins(
            "ext:: --upload-pack --receive-pack --exec= --template --open-files-in-pager",
            text,
        ) || (text.starts_with("-O") && &*command.text == "grep")
            || text == "-u" && matches!(&*command.text, "clone" | "ls-remote")
    });
    if runs {
        return Some(Danger::GitHooks);
    }
    let configured = rest.windows(2).find_map(|two| {
        matches!(&*two[0].text, "-c" | "--config")
            .then(|| setting(&two[1].text))
            .flatten()
    });
    if configured.is_some() && &*command.text == "clone" {
        return configured;
    }
    match &*command.text {
        "push" => {
            let forced = has(&[
                "--force",
                "--force-with-lease",
                "--force-if-includes",
                "--mirror",
                "--delete",
                "--prune",
            ]) || flag('f')
                || flag('d')
                || rest
                    .iter()
                    .any(|word| word.text.starts_with('+') || word.text.starts_with(':'));
            let elsewhere = judge.remote_added
                || plain.first().is_some_and(|word| {
                    word.text.contains("://")
                        || word.text.contains('@')
                        || word.text.starts_with("$()")
                });
            if forced {
                Some(Danger::ForcePush)
            } else {
                elsewhere.then_some(Danger::SendsOut)
            }
        }
        "send-pack" | "http-push" | "daemon" | "instaweb" | "send-email" => Some(Danger::SendsOut),
        "reset" => has(&["--hard", "--merge", "--keep"]).then_some(Danger::DiscardWork),
        "clean" => (flag('f') || has(&["--force"])).then_some(Danger::DiscardWork),
        "checkout" | "restore" | "switch" => {
            let staged = has(&["--staged"]) && !has(&["--worktree"]) || flag('S') && !flag('W');
            let forced = flag('f') || has(&["--force", "--discard-changes"]);
            (forced || (everything && &*command.text != "switch" && !staged))
                .then_some(Danger::DiscardWork)
        }
        "stash" => matches!(first, "drop" | "clear").then_some(Danger::DiscardWork),
        "branch" => {
            (flag('D') || (has(&["--delete"]) && has(&["--force"]))).then_some(Danger::DiscardWork)
        }
        "worktree" => {
            (first == "remove" && (flag('f') || has(&["--force"]))).then_some(Danger::DiscardWork)
        }
        "rm" => ((flag('r') || flag('f')) && !has(&["--cached"])).then_some(Danger::RemoveTree),
        "filter-branch" | "filter-repo" | "fast-import" | "replace" => Some(Danger::DiscardWork),
        "update-ref" => (flag('d') || has(&["--stdin"])).then_some(Danger::DiscardWork),
        "reflog" => matches!(first, "expire" | "delete").then_some(Danger::DiscardWork),
        "gc" => rest
            .iter()
            .any(|word| {
                word.text.starts_with("--prune=")
                    || word.text == "--aggressive" && has(&["--prune"])
            })
            .then_some(Danger::DiscardWork),
        "prune" => Some(Danger::DiscardWork),
        "config" => config(rest),
        "remote" => match first {
            "add" => {
                judge.remote_added = true;
                None
            }
            "set-url" | "set-branches" => Some(Danger::Supply),
            _ => None,
        },
        "submodule" => (first == "add"
            || first == "set-url"
            || first == "deinit" && (flag('f') || has(&["--force", "--all"])))
        .then_some(Danger::Supply),
        "init" => has(&["--template"]).then_some(Danger::GitHooks),
        "credential" | "credential-store" | "credential-cache" => Some(Danger::Keys),
        "archive" => has(&["--remote"]).then_some(Danger::SendsOut),
        "hook" => Some(Danger::GitHooks),
        "commit" | "merge" => (has(&["--no-verify"])
            || &*command.text == "commit" && rest.iter().any(|word| word.text == "-n"))
        .then_some(Danger::GitHooks),
        _ => None,
    }
}

/// `git config …` that writes a setting which runs or redirects something.
fn config(rest: &[Word]) -> Option<Danger> {
    let reads = rest.iter().any(|word| {
        word.text.starts_with("--get")
            || matches!(
                &*word.text,
                "-l" | "--list" | "--unset" | "--unset-all" | "--remove-section" | "get" | "list"
            )
    });
    if reads {
        return None;
    }
    if rest
        .iter()
        .any(|word| matches!(&*word.text, "-e" | "--edit" | "edit"))
    {
        return Some(Danger::GitHooks);
    }
    let mut words = rest
        .iter()
        .enumerate()
        .filter(|(_, word)| !word.text.starts_with('-') && word.text != "set");
    let file = rest
        .iter()
        .position(|word| matches!(&*word.text, "-f" | "--file"));
    let (at, key) = words.find(|(at, _)| file != Some(at.wrapping_sub(1)))?;
    if key.marks.variable || key.marks.substitution {
        return Some(Danger::GitHooks);
    }
    let value = rest[at + 1..]
        .iter()
        .find(|word| !word.text.starts_with("--"))?;
    setting(&format!("{}={}", key.text, value.text))
}

/// Whether `key=value` makes git run a program or trust somebody else.
fn setting(text: &str) -> Option<Danger> {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let key = key.to_lowercase();
    let last = key.rsplit('.').next().unwrap_or_default();
    let first = key.split('.').next().unwrap_or_default();
    let value = value.trim();
    let known_tool = [
        "",
        "cat",
        "less",
        "vim",
        "vi",
        "nvim",
        "nano",
        "emacs",
        "code --wait",
        "true",
        ":",
        "delta",
        "less -frx",
        "less -r",
        "never",
    ];
    let tool = known_tool.contains(&&*value.to_lowercase());
    let dangerous = match first {
        "core" => match last {
            "pager" | "editor" => !tool,
            "fsmonitor" => !matches!(value, "true" | "false"),
            "hookspath"
            | "sshcommand"
            | "gitproxy"
            | "askpass"
            | "attributesfile"
            | "alternaterefscommand"
            | "worktree" => value != "/dev/null",
            "symlinks" | "protecthfs" | "protectntfs" => {
                value == "true" && last == "symlinks" || value == "false" && last != "symlinks"
            }
            _ => false,
        },
        "alias" => value.starts_with('!') || value.contains("$("),
        "credential" | "credentials" => {
            last.starts_with("helper")
                && !matches!(
                    value,
                    "osxkeychain" | "manager" | "cache" | "libsecret" | "manager-core" | ""
                )
        }
        "http" | "https" => matches!(
            last,
            "proxy"
                | "sslverify"
                | "sslcainfo"
                | "extraheader"
                | "cookiefile"
                | "sslcert"
                | "sslkey"
        ),
        "url" => last.ends_with("insteadof"),
        "filter" => matches!(last, "clean" | "smudge" | "process"),
        "diff" => matches!(last, "command" | "textconv" | "external"),
        "merge" | "mergetool" | "difftool" | "browser" | "man" | "trailer" | "guitool" => {
            matches!(last, "driver" | "cmd" | "command" | "path")
        }
        "gpg" => last == "program" || key.ends_with(".program") || last == "defaultkeycommand",
        "sequence" => last == "editor" && !tool,
        "init" => last == "templatedir",
        "include" | "includeif" => last == "path",
        "protocol" => value == "always",
        "receive" | "uploadpack" | "web" | "instaweb" | "sendemail" | "ssh" | "lfs"
        | "interactive" => true,
        "remote" => matches!(
            last,
            "url" | "pushurl" | "uploadpack" | "receivepack" | "vcs" | "proxy"
        ),
        "submodule" => last == "update" || last == "url",
        "pager" => !tool && !matches!(value, "true" | "false"),
        "safe" => value == "*",
        "transfer" | "fetch" => last == "fsckobjects" && value == "false",
        _ => false,
    };
    dangerous.then_some(Danger::GitHooks)
}

fn forge(call: &ProgramCall<'_>) -> Option<Danger> {
    let plain = call.plain();
    let word = |at: usize| plain.get(at).map_or("", |word| &*word.text);
    match (word(0), word(1)) {
        ("api", _) => {
            let method = call.value(&["-X", "--method"]).map(str::to_uppercase);
            let destructive = matches!(method.as_deref(), Some("DELETE" | "PUT" | "PATCH"))
                || call.has(&["-XDELETE", "-XPUT", "-XPATCH"]);
            destructive.then_some(Danger::Destroy)
        }
        (_, "delete" | "delete-asset" | "archive" | "transfer") | ("repo", "edit" | "rename") => {
            Some(Danger::Destroy)
        }
        ("auth", "token" | "login" | "refresh" | "setup-git" | "logout") => Some(Danger::Keys),
        ("secret" | "variable" | "ssh-key" | "gpg-key", "set" | "add" | "remove")
        | ("repo", "deploy-key") => Some(Danger::Keys),
        ("gist", "create" | "edit") => Some(Danger::SendsOut),
        ("pr", "merge") => call.has(&["--admin"]).then_some(Danger::ForcePush),
        ("release", "upload" | "create") => (plain.len() > 3).then_some(Danger::SendsOut),
        ("extension", "install") | ("alias", "set") => Some(Danger::Supply),
        ("workflow", "disable" | "run") => Some(Danger::Destroy),
        ("repo", "create") => call.has(&["--public"]).then_some(Danger::SendsOut),
        ("codespace", "ssh" | "cp") => Some(Danger::SendsOut),
        _ => None,
    }
}
