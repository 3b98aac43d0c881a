//! Code in another language inside a command: harmless one-liners are a daily
//! thing; what starts programs, writes, deletes, connects or hides is not.

use super::doors::{escapes, sed_runs};
use super::judge::ProgramCall;
use super::text::is_interpreter;
use super::tokens::{CHANGES, CONNECT_PHRASES, CONNECTS, RUN_PHRASES, RUNS};
use super::{Danger, net};
use crate::shell::run::SHELLS;
use crate::shell::{Flow, Word};
use crate::text::lists;

/// What takes code besides the usual interpreters.
const OTHER_INTERPRETERS: &str = "\
    lua luajit tclsh rscript r julia jshell groovy scala pwsh powershell deno bun ts-node tsx \
    iex invoke-expression ipython pypy pypy3 jruby elixir ghc nodejs cmd";
/// No more of the code than this is looked at closely.
const MAX_CODE: usize = 1 << 20;

pub(super) fn judge(call: &ProgramCall<'_>) -> Option<Danger> {
    let name = &*call.name;
    if SHELLS.contains(&name) {
        let script = call
            .plain()
            .first()
            .is_some_and(|word| word.marks.substitution);
        return script.then_some(Danger::PipeToShell);
    }
    if matches!(name, "awk" | "gawk" | "mawk" | "nawk") {
        let code = call.plain();
        let code = code.first()?;
        let lower = code.text.to_lowercase();
        let runs = lower.contains("system(")
            || lower.contains("getline") && lower.contains('|')
            || lower.contains("| \"")
            || lower.contains("|\"")
            || lower.contains("/inet/")
            || lower.contains("print >") && lower.contains("/etc");
        return (runs || call.has(&["-l", "--load"])).then_some(Danger::InlineCode);
    }
    if matches!(name, "sed" | "gsed") {
        let runs = call
            .plain()
            .iter()
            .take(1)
            .chain(&call.arguments().collect::<Vec<_>>())
            .any(|word| sed_runs(&word.text));
        return runs.then_some(Danger::InlineCode);
    }
    if let Some(danger) = escapes(call) {
        return Some(danger);
    }
    if !is_interpreter(name) && !lists::has(OTHER_INTERPRETERS, name) {
        return None;
    }
    if matches!(name, "iex" | "invoke-expression") && call.fed {
        return Some(Danger::PipeToShell);
    }
    let code = inline(call);
    if code.is_empty() {
        return reads_program(call);
    }
    code.iter().find_map(|word| alarming(word, name))
}

/// The words that are code: behind `-c`, `-e` and their like, or a
/// here-document that the interpreter reads.
fn inline<'a>(call: &'a ProgramCall<'_>) -> Vec<&'a Word> {
    let mut found = Vec::new();
    let python = call.name.starts_with("py") || call.name == "ipython";
    for (at, word) in call.words.iter().enumerate().skip(1) {
        let text = &*word.text;
        let short = text.starts_with('-') && !text.starts_with("--") && text.len() < 8;
        let takes = match text {
            "eval" => at == 1 && matches!(&*call.name, "deno" | "bun"),
            "--eval" | "--print" | "-EncodedCommand" | "-Command" | "-command" | "-enc"
            | "-EncodedCommand:" | "--execute" | "/c" | "/C" => true,
            _ if text.starts_with("--eval=") => {
                found.push(word);
                false
            }
            _ if python => short && text.ends_with('c'),
            _ if call.name == "php" => matches!(text, "-r" | "-B" | "-R" | "-E"),
            _ => {
                short
                    && text.ends_with(['e', 'E', 'p', 'c', 'r'])
                    && !matches!(text, "-r" | "-ic" | "-mc")
            }
        };
        if takes {
            found.extend(call.words.get(at + 1));
        } else if short
            && text.len() > 2
            && (python && text.starts_with("-c") || call.name == "perl" && text.starts_with("-e"))
        {
            found.push(word);
        }
        if python && text == "-m" {
            return found;
        }
    }
    if found.is_empty() {
        let bodies = call
            .command
            .redirects
            .iter()
            .filter(|redirect| matches!(redirect.flow, Flow::Here | Flow::HereString));
        let script = call.plain().iter().any(|word| word.text != "-");
        if !script {
            found.extend(bodies.map(|redirect| &redirect.target));
        }
    }
    found
}

/// An interpreter without a script of its own takes what comes in for one.
fn reads_program(call: &ProgramCall<'_>) -> Option<Danger> {
    let module = call.has(&["-m"]);
    let plain = call.plain();
    let script = plain
        .iter()
        .any(|word| word.text != "-" && word.text != "/dev/stdin" && word.text != "run");
    let asks = call.any(|text| {
        matches!(
            text,
            "--version" | "-v" | "-V" | "--help" | "-h" | "--test" | "--check"
        )
    });
    if module {
        let modules = "\
            http.server smtpd pdb code pty SimpleHTTPServer pyftpdlib webbrowser";
        let serves = call.text(1) == "-m" && lists::has(modules, call.text(2));
        let wide = call
            .any(|text| matches!(text, "/" | "~" | "0.0.0.0") || text.starts_with("--directory=/"));
        return (serves && (wide || call.text(2) != "http.server" && call.text(2) != "pdb"))
            .then_some(Danger::SendsOut);
    }
    if plain.first().is_some_and(|word| {
        word.marks.substitution
            || word.text.starts_with("http://")
            || word.text.starts_with("https://")
            || (word.text == "run" || word.text == "x")
                && plain.iter().any(|word| word.text.starts_with("http"))
    }) {
        return Some(Danger::PipeToShell);
    }
    if call.has(&["-r", "--require", "--import", "--loader"])
        && call.any(|text| text.starts_with("/tmp") || text.starts_with("http"))
    {
        return Some(Danger::Steers);
    }
    if call.has(&["-A", "--allow-all"]) && plain.iter().any(|word| word.text.contains("://")) {
        return Some(Danger::PipeToShell);
    }
    (call.fed && !script && !asks).then_some(Danger::PipeToShell)
}

fn alarming(word: &Word, name: &str) -> Option<Danger> {
    let text = &word.text[..word.text.floor_char_boundary(MAX_CODE)];
    if word.marks.substitution || (word.marks.variable && is_whole_variable(text)) {
        // The code itself is made up while it runs.
        let whole = text.trim_start().starts_with('$')
            || text.contains("$()") && word.inner.iter().any(|ran| fetches(ran));
        if whole {
            return Some(Danger::PipeToShell);
        }
    }
    if matches!(name, "powershell" | "pwsh" | "cmd") {
        let lower = text.to_lowercase();
        let calm = lower.starts_with("get-") && !lower.contains(['|', ';']);
        return (!calm).then_some(Danger::InlineCode);
    }
    let lower = text.to_lowercase();
    // Blanks between a name and its parenthesis change nothing.
    let tight: String = lower.replace(" (", "(").replace("\\n", " ");
    let all = |words: &'static str, phrases: &'static [&'static str]| {
        let words = words.split_ascii_whitespace();
        words.chain(phrases.iter().copied())
    };
    let regex_exec = |code: &str| {
        code.matches(".exec(").count() == code.matches("exec(").count() && code.contains("/.exec(")
    };
    let runs = all(RUNS, RUN_PHRASES)
        .any(|token| marked(&tight, token) && !(token == "exec(" && regex_exec(&tight)));
    let changes = all(CHANGES, &[]).any(|token| marked(&tight, token));
    let backticks = matches!(name, "perl" | "ruby" | "php") && text.contains('`');
    if runs || backticks || changes || opens_to_write(&tight, name) || hides(text) {
        return Some(Danger::InlineCode);
    }
    let connects = all(CONNECTS, CONNECT_PHRASES).any(|token| marked(&tight, token));
    if connects && !only_local(&lower) {
        return Some(Danger::SendsOut);
    }
    let secret = [
        ".ssh/",
        ".aws/",
        "id_rsa",
        ".netrc",
        "/etc/shadow",
        "/etc/passwd",
        ".git-credentials",
        ".npmrc",
        "/.kube/",
        "login data",
        ".gnupg",
        ".bash_history",
        ".docker/config",
    ];
    if secret.iter().any(|place| lower.contains(place)) {
        return Some(Danger::Keys);
    }
    None
}

fn is_whole_variable(text: &str) -> bool {
    text.trim().starts_with('$') && !text.trim().contains([' ', '('])
}

fn fetches(ran: &str) -> bool {
    lists::begins("curl wget base64 cat echo xxd printf openssl", ran)
}

/// Behind a dot these are somebody's own methods.
const METHODS: &[&str] = &[
    "load(", "resolve(", "compile(", "fork", "assert(", "system ", "exec ", "eval ",
];

/// The token at the beginning of a name, not in the middle of another.
fn marked(code: &str, token: &str) -> bool {
    let plain = token.starts_with(|c: char| c.is_ascii_alphanumeric());
    code.match_indices(token).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !plain
            || !before.is_some_and(|c| {
                c.is_ascii_alphanumeric() || c == '_' || (c == '.' && METHODS.contains(&token))
            })
    })
}

/// How the mode of a file that gets written begins.
const TO_WRITE: &str = "'w \"w 'a' \"a\" 'ab \"ab 'x' \"x\" 'r+ \"r+ '> \"> 'wb mode='w";

fn opens_to_write(code: &str, name: &str) -> bool {
    code.match_indices("open(").any(|(at, _)| {
        let rest = &code[at..];
        let end = rest.find(')').unwrap_or(rest.len().min(400));
        let inside = &rest[..rest.floor_char_boundary(end)];
        lists::within(TO_WRITE, inside)
    }) || (name == "perl"
        && code.contains("open")
        && (code.contains("\">")
            || code.contains("'>")
            || code.contains("|\"")
            || code.contains("\"|")))
}

/// Letters spelled out, or a long run that no reader can tell the meaning of.
fn hides(code: &str) -> bool {
    let escapes = code.matches("\\x").count() + code.matches("\\u00").count();
    let letters = code.matches("chr(").count()
        + code.matches("fromCharCode").count() * 3
        + code.matches("String.fromCodePoint").count() * 3;
    let decodes = "\
        unhexlify fromhex b64decode(b' zlib.decompress codecs.decode rot13 rot_13 pack('H \
        pack(\"H unpack1 hex2bin gzinflate str_rot13";
    let run = code
        .split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '/' | '='))
        .any(|part| part.len() >= 60);
    let loaded = (code.contains("base64") || code.contains("b64decode") || code.contains("atob("))
        && (code.contains("exec") || code.contains("eval") || code.contains("loads"));
    let reversed = code.contains("[::-1]") && (code.contains("getattr") || code.contains("import"));
    escapes >= 3 || letters >= 3 || lists::within(decodes, code) || run || loaded || reversed
}

/// Every address in the code is on this machine.
fn only_local(code: &str) -> bool {
    let mut urls = code.match_indices("://").peekable();
    if urls.peek().is_none() {
        return code.contains("localhost") || code.contains("127.0.0.1");
    }
    code.match_indices("://").all(|(at, _)| {
        let rest = &code[at + 3..];
        let end = rest.find(['\'', '"', '`', ' ', ')']).unwrap_or(rest.len());
        net::is_local(&rest[..end])
    })
}
