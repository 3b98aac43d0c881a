//! Programs with a door to a shell: options and commands of theirs that run
//! something else.

use super::Danger;
use super::judge::ProgramCall;
use crate::text::lists;

/// Programs with a door to a shell.
#[allow(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "the text is in lower case, or its case counts"
)]
#[allow(
    clippy::too_many_lines,
    clippy::match_same_arms,
    reason = "a table reads better whole"
)]
pub(super) fn escapes(call: &ProgramCall<'_>) -> Option<Danger> {
    let found = match &*call.name {
        "vi" | "vim" | "nvim" | "ex" | "view" | "emacs" | "ed" => call.any(|text| {
            text.starts_with('!')
                || lists::within(":! system( shell-command", text)
                || ["py import", "py3 ", "lua "]
                    .iter()
                    .any(|it| text.contains(it))
        }),
        "tar" | "bsdtar" | "gtar" => call.any(|text| {
            let runs = "\
                --checkpoint-action --to-command --use-compress-program --rsh-command --info-script";
            lists::begins(runs, text) || text == "-I"
        }),
        "zip" => call.any(|text| text == "-TT" || text.starts_with("--unzip-command")),
        "make" | "gmake" => call.any(|text| {
            text.starts_with("SHELL=")
                || text.starts_with("--eval")
                || text == "-f"
                    && call.value(&["-f"]).is_some_and(|file| {
                        file == "-" || file.starts_with("/tmp") || file.contains("$()")
                    })
        }),
        "gdb" | "lldb" => call.any(|text| {
            lists::within("shell system python", text)
                || text.contains("call ")
                || matches!(text, "--pid" | "-p")
        }),
        "man" | "less" | "more" => call.any(|text| lists::begins("-P --pager +!", text)),
        "nmap" => call.any(|text| text.starts_with("--script")),
        "expect" => call.any(|text| text.contains("spawn")),
        "source" | "." => {
            let target = call.text(1);
            let word = call.words.get(1)?;
            let completion = !word.inner.is_empty()
                && word
                    .inner
                    .iter()
                    .all(|ran| ran.ends_with("completion") || ran.contains(" completion"));
            (word.marks.substitution && !completion)
                || matches!(target, "/dev/stdin" | "-")
                || lists::begins("/tmp/ /dev/tcp", target)
        }
        "node-gyp" | "nodemon" => {
            call.any(|text| text == "--exec")
                && call.any(|text| text.starts_with("sh ") || text.starts_with("bash "))
        }
        "busctl" | "dbus-send" | "at-spi" => true,
        "jq" => call.any(|text| text.contains("input_filename|system")),
        "xterm" | "gnome-terminal" => call.has(&["-e", "--"]),
        "ld.so" | "ld-linux-x86-64.so.2" => true,
        "certutil" | "bitsadmin" | "mshta" | "regsvr32" | "rundll32" | "wscript" | "cscript" => {
            true
        }
        "php" => call.has(&["-S"]) && call.any(|text| text.starts_with("0.0.0.0")),
        "java" => call.any(|text| text.starts_with("-javaagent") || text.starts_with("-agentpath")),
        "gcc" | "cc" | "clang" => {
            call.any(|text| text.starts_with("-fplugin") || text.starts_with("-wrapper"))
        }
        "ansible" => call.any(|text| matches!(text, "shell" | "command" | "raw")),
        "xdg-open" | "open" => call.any(|text| {
            text.starts_with("file:") && text.contains("/.")
                || text.ends_with(".command")
                || text.ends_with(".app") && text.starts_with("/tmp")
        }),
        _ => false,
    };
    found.then_some(Danger::InlineCode)
}

pub(super) fn sed_runs(text: &str) -> bool {
    let text = text.trim_end();
    let substitutes = text.starts_with("s/") || text.starts_with("s|") || text.starts_with("s#");
    let flags = if substitutes {
        text.rsplit(['/', '|', '#']).next().unwrap_or_default()
    } else {
        ""
    };
    flags.contains('e') && flags.len() < 5
        || text == "e"
        || text
            .strip_prefix("1e")
            .is_some_and(|rest| rest.starts_with([' ', 's', 'r', 'c']))
        || text.starts_with("e ")
        || text.ends_with("/e")
}
