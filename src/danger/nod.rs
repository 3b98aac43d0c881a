//! nod itself: commands that operate it, lead it elsewhere or stop it, and
//! those that write in Feishu under its owner's name. One careless tap on such
//! a command would give away every later one.

use super::Danger;
use super::judge::{Judge, ProgramCall};
use crate::shell::Word;
use crate::text::lists;

/// How the names of nod's settings begin; a test holds them against the table.
pub(super) const VARIABLES: &str = "CALLBACK_ FEISHU_ NOD_ PERMISSION_ TOOL_APPROVAL_";

/// Commands of nod that only look, whatever follows them. `doctor` logs in to
/// wherever the environment says.
const LOOKS: &str = "audit completions help logs man status update";
/// Those that do more, for text in which `nod` may be a word like any other.
pub(super) const OPERATES: &str = "\
    --env-file daemon doctor gateway hook join lock service setup unlock";
/// These only look with no subcommand, or with one of these.
const PARTLY_LOOKS: &[(&str, &str)] = &[
    ("gateway", "audit status"),
    ("rules", "-"),
    ("service", "logs status"),
    ("settings", "-"),
];
/// What stops, replaces or removes the service, container or package it names.
const STOPS: &str = "\
    bootout delete disable down kill kill-session mask purge quit reinstall remove restart rm \
    stop suspend terminate uninstall unload";
/// Whatever `pkill -f` may find in the line of a running nod.
const LINE: &str = "/home/users/usr/local/.local/.cargo/bin/nod daemon --background";

pub(super) fn judge(judge: &Judge, call: &ProgramCall<'_>) -> Option<Danger> {
    let plain = call.plain();
    let uncertain = || plain.iter().any(|word| !word.is_certain());
    let stops = match &*call.name {
        "nod" => !only_looks(call, &plain),
        "lark-cli" => return in_owners_name(call, &plain),
        "pkill" | "killall" | "skill" => {
            if uncertain() || call.by_xargs {
                return Some(Danger::HardToRead);
            }
            let part = call.name == "pkill" || call.has(&["-r", "-m", "--regexp"]);
            let line = if call.flag(&['f']) || call.has(&["--full"]) {
                LINE
            } else {
                "nod"
            };
            let all_but = call.flag(&['v']) || call.has(&["--inverse"]);
            let found = |word: &&Word| {
                let exact = word.text.eq_ignore_ascii_case("nod");
                exact || part && may_match(&word.text, line)
            };
            all_but || plain.iter().any(found)
        }
        // Which process it is can't be seen, but what the text is about can.
        "kill" | "fuser" => {
            let unseen = call.by_xargs || uncertain() || call.name == "fuser";
            plain.iter().any(|word| is_nod(word)) || unseen && judge.mentions_nod
        }
        "git" | "gh" => false,
        _ => plain.iter().any(|word| lists::has(STOPS, &word.text)) && call.arguments().any(is_nod),
    };
    stops.then_some(Danger::Nod)
}

fn is_nod(word: &Word) -> bool {
    let name = word.text.rsplit('/').next().unwrap_or_default();
    lists::has("nod nod.service", name)
}

/// Whether nod stands in the text as a word, also in the pattern `[n]od`.
pub(super) fn is_mentioned(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| !"[]'\"\\".contains(*c)).collect();
    bare.split(|c: char| !c.is_alphanumeric())
        .any(|word| word.eq_ignore_ascii_case("nod"))
        || bare.contains("claude-permission")
}

/// Whether a regular expression may match in the line: no text that it needs
/// is missing there.
fn may_match(pattern: &str, line: &str) -> bool {
    let needs = |one: &str| {
        let mut runs = vec![String::new()];
        let mut chars = one.chars();
        while let Some(c) = chars.next() {
            let run = runs.last_mut();
            match (c, run) {
                ('[', _) => {
                    chars.find(|c| *c == ']');
                    runs.push(String::new());
                }
                ('\\', _) => {
                    chars.next();
                    runs.push(String::new());
                }
                // The character before may be left out.
                ('*' | '?' | '{', Some(run)) => {
                    run.pop();
                    runs.push(String::new());
                }
                ('^' | '$' | '.' | '+' | '(' | ')' | '}', _) => runs.push(String::new()),
                (c, Some(run)) => run.extend(c.to_lowercase()),
                (_, None) => {}
            }
        }
        runs.iter().all(|run| line.contains(run.as_str()))
    };
    pattern.split('|').any(needs)
}

fn only_looks(call: &ProgramCall<'_>, plain: &[&Word]) -> bool {
    let word = |at: usize| plain.get(at).map_or("", |word| &*word.text);
    let asks_help = call
        .words
        .last()
        .is_some_and(|word| matches!(&*word.text, "--help" | "-h"));
    let partly = PARTLY_LOOKS.iter().find(|(name, _)| *name == word(0));
    let looks = word(0).is_empty()
        || lists::has(LOOKS, word(0))
        || partly.is_some_and(|(_, looks)| match word(1) {
            "" => lists::has(looks, "-"),
            sub => sub != "-" && lists::has(looks, sub),
        });
    (looks || asks_help) && !call.has(&["--env-file", "--"])
}

/// Unless it is told to be the bot, the official tool speaks as whoever is
/// logged in, and nod takes that for its owner's own words.
fn in_owners_name(call: &ProgramCall<'_>, plain: &[&Word]) -> Option<Danger> {
    let first = plain.first().map_or("", |word| &*word.text);
    let speaks = !lists::has("auth config doctor help schema", first) && !first.is_empty();
    (speaks && call.value(&["--as"]) != Some("bot")).then_some(Danger::InOwnersName)
}
