//! A shell command, judged by what the shell would make of it: every command
//! in it, the ones it hands to others, and what can't be told at all.

use std::ops::Range;

use super::places::{self, Use};
use super::{Danger, Hit, MAX_HITS, arguments, code, git, lookalike, net, nod, packages, programs};
use crate::shell::run::{self, Runs};
use crate::shell::{self, Flow, ShellCommand, ShellSeen, TextPlace, Variables, Word};
use crate::text::lists;

/// Scripts within scripts; deeper ones are hard to read.
const MAX_DEPTH: usize = 8;
/// Programs in front of programs.
const MAX_PREFIXES: usize = 12;
/// How much may be looked at, in bytes, for each byte of the command and for
/// any: what is read in several ways, or again and again, must not multiply.
const LOOKS: usize = 32;
const MIN_LOOKS: usize = 64 << 10;
/// What a word or a script costs, however short.
const LOOK: usize = 16;

pub(super) fn command(text: &str) -> Vec<Hit> {
    let mut judge = Judge {
        hits: lookalike::in_text(text),
        fetched: Vec::new(),
        remote_added: false,
        mentions_nod: nod::is_mentioned(text),
        depth: 0,
        looks: LOOKS * text.len() + MIN_LOOKS,
    };
    judge.script(text, &TextPlace::At(0), &mut Variables::default());
    let mut hits = judge.hits;
    hits.sort_by_key(|hit| (hit.range.start, hit.range.end, hit.danger));
    hits.dedup();
    hits.truncate(MAX_HITS);
    hits
}

pub(super) struct Judge {
    hits: Vec<Hit>,
    /// Files that were just downloaded, decoded or unpacked.
    fetched: Vec<String>,
    pub(super) remote_added: bool,
    /// The whole text names nod, wherever.
    pub(super) mentions_nod: bool,
    depth: usize,
    /// How much more may be looked at.
    looks: usize,
}

/// One command with its programs in front taken off.
pub(super) struct ProgramCall<'a> {
    pub(super) name: String,
    pub(super) words: &'a [Word],
    pub(super) command: &'a ShellCommand,
    /// Its input is what another command says or a file holds.
    pub(super) fed: bool,
    pub(super) by_xargs: bool,
}

impl ProgramCall<'_> {
    pub(super) fn text(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| &word.text)
    }

    pub(super) fn arguments(&self) -> impl Iterator<Item = &Word> {
        self.words.iter().skip(1)
    }

    /// Whether the text of an argument is such.
    pub(super) fn any(&self, is_such: impl Fn(&str) -> bool) -> bool {
        self.arguments().any(|word| is_such(&word.text))
    }

    /// Whether one of the options is there, alone or with `=value`.
    pub(super) fn has(&self, options: &[&str]) -> bool {
        self.any(|text| {
            let name = text.split('=').next().unwrap_or_default();
            options.contains(&text) || name.starts_with("--") && options.contains(&name)
        })
    }

    /// Whether a single-letter option is there, in a bundle or alone.
    pub(super) fn flag(&self, letters: &[char]) -> bool {
        self.any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(letters))
    }

    /// Words that are no options.
    pub(super) fn plain(&self) -> Vec<&Word> {
        self.arguments()
            .filter(|word| !word.text.starts_with('-') || word.text == "-")
            .collect()
    }

    /// The value behind an option, joined or apart.
    pub(super) fn value(&self, options: &[&str]) -> Option<&str> {
        for (at, word) in self.words.iter().enumerate().skip(1) {
            if options.contains(&&*word.text) {
                return self.words.get(at + 1).map(|word| &*word.text);
            }
            for option in options {
                let rest = word.text.strip_prefix(option);
                if let Some(value) = rest.and_then(|rest| rest.strip_prefix('=')) {
                    return Some(value);
                }
            }
        }
        None
    }
}

impl Judge {
    fn hit(&mut self, danger: Danger, range: Range<usize>) {
        if self.hits.len() < 2 * MAX_HITS {
            self.hits.push(Hit { danger, range });
        }
    }

    /// Whether there is room to look at so much more; what is not looked at is
    /// hard to read.
    fn may_look(&mut self, bytes: usize, range: &Range<usize>) -> bool {
        let left = self.looks.checked_sub(bytes);
        self.looks = left.unwrap_or_default();
        if left.is_none() {
            self.hit(Danger::HardToRead, range.clone());
        }
        left.is_some()
    }

    fn script(&mut self, text: &str, place: &TextPlace, variables: &mut Variables) {
        let range = match place {
            TextPlace::At(at) => *at..*at + text.len(),
            TextPlace::Within(range) => range.clone(),
        };
        if !self.may_look(text.len() + LOOK, &range) {
            return;
        }
        if self.depth > MAX_DEPTH {
            self.hit(Danger::HardToRead, range);
            return;
        }
        self.depth += 1;
        shell::read(text, place, variables, &mut |seen, range| match seen {
            ShellSeen::Command(command) => self.command(command, &range),
            ShellSeen::Unreadable => self.hit(Danger::HardToRead, range),
        });
        self.depth -= 1;
    }

    fn command(&mut self, command: &ShellCommand, range: &Range<usize>) {
        if self.hits.len() >= 2 * MAX_HITS {
            return;
        }
        if command.recursive {
            self.hit(Danger::Destroy, range.clone());
        }
        for (name, value) in &command.assigns {
            if let Some(danger) = arguments::assigns(name, value) {
                self.hit(danger, value.range.clone());
            }
            self.odd(value, false);
        }
        let mut fed = command.piped;
        for redirect in &command.redirects {
            let target = &redirect.target;
            match redirect.flow {
                Flow::Write | Flow::Append => {
                    self.place(target, Use::Write);
                    self.odd(target, false);
                }
                Flow::Read => {
                    fed = true;
                    self.place(target, Use::Read);
                    self.odd(target, false);
                }
                Flow::Here | Flow::HereString => fed = true,
            }
        }
        self.words(command, &command.words, fed, 0, false);
    }

    fn words(
        &mut self,
        command: &ShellCommand,
        words: &[Word],
        fed: bool,
        depth: usize,
        xargs: bool,
    ) {
        let Some(program) = words.first() else {
            return;
        };
        if depth > MAX_PREFIXES {
            self.hit(Danger::HardToRead, program.range.clone());
            return;
        }
        let length = words.iter().map(|word| word.text.len() + LOOK).sum();
        if !self.may_look(length, &program.range) {
            return;
        }
        let call = ProgramCall {
            name: run::name(program),
            words,
            command,
            fed,
            by_xargs: xargs,
        };
        if hard(program) {
            self.hit(Danger::HardToRead, program.range.clone());
        }
        if lookalike::in_program(&program.text) {
            self.hit(Danger::Lookalike, program.range.clone());
        }
        self.odd(program, false);
        for word in &words[1..] {
            self.odd(word, true);
        }
        let range = program.range.clone();
        for danger in judged(self, &call) {
            self.hit(danger, range.clone());
        }
        self.paths(&call);
        self.fetch(&call);
        for run in run::runs(words, fed) {
            self.run(command, &call, run, depth);
        }
    }

    fn run(&mut self, command: &ShellCommand, call: &ProgramCall<'_>, run: Runs, depth: usize) {
        let words = call.words;
        match run {
            Runs::Words(from, to) => {
                let xargs =
                    matches!(&*call.name, "xargs" | "parallel" | "find" | "fd") || call.by_xargs;
                let inner = &words[from..to];
                // The prefix's own assignments: `env A=b program`.
                for word in &words[1..from] {
                    if let Some((name, value)) = word.text.split_once('=')
                        && let Some(danger) =
                            arguments::assigns(name, &word.after(word.text.len() - value.len()))
                    {
                        self.hit(danger, word.range.clone());
                    }
                }
                self.words(command, inner, call.fed && !xargs, depth + 1, xargs);
            }
            Runs::Script(at, from) => self.inner(call, &words[at].after(from)),
            Runs::Joined(from) => {
                let texts: Vec<&str> = words[from..].iter().map(|word| &*word.text).collect();
                let mut word = Word {
                    text: texts.join(" "),
                    range: words[from].range.start..words[words.len() - 1].range.end,
                    ..Word::default()
                };
                for part in &words[from..] {
                    word.marks.variable |= part.marks.variable;
                    word.marks.substitution |= part.marks.substitution;
                    word.inner.extend(part.inner.iter().take(8).cloned());
                    word.inner.truncate(8);
                }
                self.inner(call, &word);
            }
            Runs::Input => {
                let here = call
                    .command
                    .redirects
                    .iter()
                    .rev()
                    .find(|redirect| matches!(redirect.flow, Flow::Here | Flow::HereString));
                match here {
                    Some(body) if body.target.is_certain() && !call.command.piped => {
                        self.inner(call, &body.target);
                    }
                    _ => self.hit(Danger::PipeToShell, words[0].range.clone()),
                }
            }
        }
    }

    /// A script in a word: read on, unless it is made up while it runs.
    fn inner(&mut self, call: &ProgramCall<'_>, word: &Word) {
        let made = word.text.trim_start();
        let unknown = made.starts_with('$') || word.text.contains("$()");
        let harmless = call.name == "eval"
            && !word.marks.variable
            && !word.inner.is_empty()
            && word.inner.iter().all(|ran| is_hook(ran));
        if harmless {
            return;
        }
        let given = call.by_xargs && word.text.contains("{}");
        if call.name == "eval" && (word.marks.variable || word.marks.substitution || given) {
            self.hit(Danger::InlineCode, word.range.clone());
        }
        if unknown && call.name != "ssh" {
            let danger = if word.inner.is_empty() {
                Danger::HardToRead
            } else {
                Danger::PipeToShell
            };
            self.hit(danger, word.range.clone());
        }
        // What was worked out already must not be worked out again.
        let text = word.text.replace("$()", "___").replace('…', "_");
        let place = if text.len() == word.text.len() {
            word.place()
        } else {
            TextPlace::Within(word.range.clone())
        };
        self.script(&text, &place, &mut Variables::default());
    }

    fn place(&mut self, word: &Word, used: Use) {
        // Nobody can tell what the manifest will say.
        let name = word.text.rsplit('/').next().unwrap_or_default();
        if used == Use::Write && name.eq_ignore_ascii_case("package.json") {
            self.hit(Danger::BuildFiles, word.range.clone());
        }
        if let Some(danger) = places::of(&word.text, used) {
            self.hit(danger, word.range.clone());
        }
    }

    /// Words that were made to be misread, wherever they stand.
    fn odd(&mut self, word: &Word, argument: bool) {
        let marks = word.marks;
        let root_glob = word.text.starts_with('/')
            && marks.glob
            && (word.text[1..].split('/').next().is_some_and(is_glob)
                || word.text.contains('?')
                || single_class(&word.text));
        if marks.spliced
            || marks.encoded
            || marks.carved
            || (marks.blank && argument)
            || (root_glob && argument)
        {
            self.hit(Danger::HardToRead, word.range.clone());
        }
        if word.foreign
            && let Some(hit) = lookalike::in_bare_word(&word.text)
        {
            self.hit(hit, word.range.clone());
        }
    }

    /// Arguments that are paths to places that matter.
    fn paths(&mut self, call: &ProgramCall<'_>) {
        let harmless_edit = matches!(&*call.name, "sed" | "gsed" | "perl" | "sd")
            && !arguments::edits_scripts(call);
        for (word, used) in arguments::paths(call) {
            if harmless_edit && word.text.ends_with("package.json") {
                continue;
            }
            self.place(word, used);
            // `--file=path`, `@path`, `name=@path`, `of=path`
            let text = &word.text;
            let tail = text.rsplit(['=', '@', '<']).next().unwrap_or(text);
            if tail.len() < text.len()
                && let Some(danger) = places::of(tail, used)
            {
                self.hit(danger, word.range.clone());
            }
        }
    }

    /// What is fetched and then run, in one go.
    fn fetch(&mut self, call: &ProgramCall<'_>) {
        let runs = match &*call.name {
            name if run::SHELLS.contains(&name) || super::text::is_interpreter(name) => {
                call.plain().first().map(|word| word.text.clone())
            }
            "source" | "." | "chmod" | "open" | "installer" | "dpkg" | "rpm" => {
                call.plain().last().map(|word| word.text.clone())
            }
            _ => Some(call.text(0).to_owned()),
        };
        if let Some(target) = runs.map(|target| base(&target).to_owned())
            && !target.is_empty()
            && self.fetched.contains(&target)
        {
            self.hit(Danger::PipeToShell, call.words[0].range.clone());
        }
        let mut files: Vec<String> = Vec::new();
        let fetches = matches!(&*call.name, "curl" | "wget" | "aria2c" | "http" | "fetch");
        let decodes = matches!(
            &*call.name,
            "base64" | "base32" | "xxd" | "openssl" | "uudecode"
        );
        if fetches {
            let named = call.value(&["-o", "-O", "--output", "--output-document", "--out"]);
            files.extend(named.map(str::to_owned));
            let urls = call.plain();
            files.extend(urls.iter().map(|word| word.text.clone()));
        }
        if fetches || decodes {
            let written = call
                .command
                .redirects
                .iter()
                .filter(|redirect| matches!(redirect.flow, Flow::Write | Flow::Append));
            files.extend(written.map(|redirect| redirect.target.text.clone()));
        }
        for file in files {
            let name = base(&file);
            if self.fetched.len() < 64 && !name.is_empty() && name != "null" {
                self.fetched.push(name.to_owned());
            }
        }
    }
}

fn base(path: &str) -> &str {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

fn is_glob(part: &str) -> bool {
    part.contains(['*', '?', '['])
}

/// `[s]`: a class of one, which serves nothing but hiding a letter.
fn single_class(text: &str) -> bool {
    text.as_bytes()
        .windows(3)
        .any(|three| three[0] == b'[' && three[2] == b']')
}

/// Whether the program itself can't be told, or was written to be misread.
fn hard(program: &Word) -> bool {
    let marks = program.marks;
    !program.is_certain()
        || marks.encoded
        || marks.carved
        // What `xargs` and `find` put in.
        || program.text == "{}"
        || (marks.patched && !program.text.contains(char::is_whitespace))
}

/// Programs whose output is made to be evaluated when a shell starts.
fn is_hook(ran: &str) -> bool {
    let (program, first) = ran.split_once(' ').unwrap_or((ran, ""));
    let name = program.rsplit('/').next().unwrap_or(program);
    let hooks = "\
        ssh-agent direnv pyenv rbenv nodenv brew minikube opam starship zoxide fnm mise conda \
        gpg-agent dircolors keychain docker-machine luarocks fzf thefuck \
        register-python-argcomplete";
    lists::has(hooks, name) || first == "completion"
}

fn judged(judge: &mut Judge, call: &ProgramCall<'_>) -> Vec<Danger> {
    let mut found = Vec::new();
    found.extend(programs::judge(call));
    found.extend(nod::judge(judge, call));
    found.extend(match &*call.name {
        "git" | "hub" | "gh" | "glab" => git::judge(judge, call),
        _ => None,
    });
    found.extend(packages::judge(call));
    found.extend(net::judge(call));
    found.extend(code::judge(call));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_looked_at_is_hard_to_read_also_when_the_room_ended_to_the_byte() {
        let mut judge = Judge {
            hits: Vec::new(),
            fetched: Vec::new(),
            remote_added: false,
            mentions_nod: false,
            depth: 0,
            looks: 20,
        };
        assert!(judge.may_look(20, &(0..20)));
        assert_eq!(judge.hits, []);
        assert!(!judge.may_look(1, &(20..21)));
        let hit = Hit {
            danger: Danger::HardToRead,
            range: 20..21,
        };
        assert_eq!(judge.hits, [hit]);
    }
}
