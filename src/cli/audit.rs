//! `nod audit`: who decided what, when and from where; and whether the record
//! is whole.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

use super::wording::Words;
use super::{CommandResult, Failure, output};
use crate::config::{Config, Paths, Sources};
use crate::sessions::questions::script;
use crate::store::{self, AuditEntry, Chain, Db, Recorded, StoreError};
use crate::text::columns;
use crate::text::escape::{Shape, visible};
use crate::wording::span;

#[derive(clap::Args)]
pub(super) struct AuditArguments {
    /// One JSON object a line
    #[arg(long, global = true)]
    json: bool,
    /// How many of the newest lines
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    last: u32,
    #[command(subcommand)]
    command: Option<AuditCommand>,
}

#[derive(clap::Subcommand)]
enum AuditCommand {
    /// Check that no line was changed or taken out
    Verify,
}

pub(super) fn run(arguments: &AuditArguments, sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    let paths = Paths::load(sources).map_err(|why| Failure::settings(words, sources, &why))?;
    let failed = |why: StoreError| Failure::new(words.no_audit(&why));
    if !paths.state_dir.join(store::FILE).exists() {
        nothing(arguments.json, words);
        return Ok(());
    }
    let db = Db::open_read_only(&paths.state_dir).map_err(failed)?;
    match arguments.command {
        Some(AuditCommand::Verify) => verify(&db, arguments.json, words).map_err(failed)?,
        None => {
            let mut rows = db.audit(None, arguments.last).map_err(failed)?;
            rows.reverse();
            if rows.is_empty() {
                nothing(arguments.json, words);
            }
            let mut reader = RecordReader::new(words, sources);
            reader.names = db.names().map_err(failed)?;
            for row in &rows {
                output::line(&if arguments.json {
                    as_json(row, &reader)
                } else {
                    as_line(row, &reader)
                });
            }
            Ok(())
        }
    }
}

/// Says that there is no line to show. As JSON that is no line at all.
fn nothing(json: bool, words: Words) {
    if !json {
        output::say(words.nothing_recorded());
    }
}

fn verify(db: &Db, json: bool, words: Words) -> Result<CommandResult, StoreError> {
    let chain = db.verify_audit()?;
    Ok(match chain {
        Chain::Whole { rows } => {
            output::line(&if json {
                json!({"whole": true, "lines": rows}).to_string()
            } else {
                words.audit_whole(rows)
            });
            Ok(())
        }
        Chain::Broken { seq, problem } => Err(Failure::new(words.audit_broken(seq, problem))),
    })
}

fn as_json(row: &Recorded, reader: &RecordReader) -> String {
    let entry = &row.entry;
    let name = entry.operator.as_ref().and_then(|id| reader.names.get(id));
    json!({
        "line": row.seq,
        "at": time(entry.at),
        "kind": entry.kind,
        "decision": entry.decision,
        "operator": entry.operator,
        "name": name,
        "tool": entry.tool,
        "request": entry.request,
        "session": entry.session,
        "event": entry.event,
        "digest": entry.digest,
        "rule": entry.rule,
        "source": entry.source,
        "detail": entry.detail,
    })
    .to_string()
}

/// Columns of one line for a person; what was decided is cut to fit.
const WIDTH: usize = 100;
const MAX_PROJECT: usize = 20;
/// Columns of the widest word for what happened.
const WHAT: usize = 22;

fn as_line(row: &Recorded, reader: &RecordReader) -> String {
    let entry = &row.entry;
    let word = reader.words.decided(word(entry));
    let room = " ".repeat(WHAT.saturating_sub(columns(word)));
    let head = format!("{}  {word}{room}", local(entry.at, "%m-%d %H:%M:%S"));
    let rest = reader.told(entry, WIDTH.saturating_sub(columns(&head) + 1));
    format!("{head} {rest}").trim_end().to_owned()
}

/// The record's own word for what happened. Where nobody asked for leave, a
/// refusal is no denial.
fn word(entry: &AuditEntry) -> &str {
    let detail = entry.detail.as_ref();
    match detail.and_then(|detail| detail["answer"].as_str()) {
        Some("yes") => return "answer_yes",
        Some("no") => return "answer_no",
        _ => {}
    }
    let allowed = detail.and_then(|detail| detail["allowed"].as_bool());
    let decision = entry.decision.as_ref().unwrap_or(&entry.kind);
    match (&*entry.kind, entry.tool.as_deref(), decision.as_str()) {
        ("spoken", _, became) => spoken(became),
        (_, _, "terminal") if allowed == Some(true) => "terminal_yes",
        (_, _, "terminal") if allowed == Some(false) => "terminal_no",
        (_, Some(PLAN), "allow" | "answer") => "plan_approved",
        (_, Some(PLAN), "deny") => "plan_kept",
        (_, Some("AskUserQuestion" | script::TOOL), "deny") => "not_answered",
        _ => decision,
    }
}

/// What became of words that were put into a session.
fn spoken(became: &str) -> &'static str {
    match became {
        "read" => "spoken_read",
        "queued" => "spoken_queued",
        "held" => "spoken_held",
        "too_long" => "spoken_too_long",
        "ended" => "spoken_ended",
        "no_mailbox" | "unknown" => "spoken_nowhere",
        _ => "spoken_refused",
    }
}

/// The tool by which a plan is shown.
const PLAN: &str = "ExitPlanMode";

/// Who looks at the record: that person's own taps are theirs.
pub(super) struct RecordReader {
    pub(super) words: Words,
    pub(super) owner: Option<String>,
    /// What people are called, by their ids.
    pub(super) names: HashMap<String, String>,
}

impl RecordReader {
    pub(super) fn new(words: Words, sources: &Sources) -> Self {
        let (config, _) = Config::read(sources);
        let owner = config.owner.map(|owner| owner.as_str().to_owned());
        Self {
            words,
            owner,
            names: HashMap::new(),
        }
    }

    /// One line of the log: when, what happened, to what, where and by whom.
    pub(super) fn line(&self, entry: &AuditEntry) -> String {
        let word = self.words.decided(word(entry));
        let head = format!("{} {word} ", local(entry.at, "%H:%M"));
        let rest = self.told(entry, WIDTH.saturating_sub(columns(&head)));
        format!("{head}{rest}").trim_end().to_owned()
    }

    /// What it was about, where and by whom, in so many columns.
    fn told(&self, entry: &AuditEntry, width: usize) -> String {
        let nothing = Value::Null;
        let detail = entry.detail.as_ref().unwrap_or(&nothing);
        let project = detail["project"].as_str().map(Path::new);
        let project = project.and_then(|path| path.file_name()?.to_str());
        let project = project.map(|name| cut(&one_line(name), MAX_PROJECT));
        let mut facts: Vec<String> = project.into_iter().collect();
        facts.extend(self.by(entry, detail));
        if let Some(ran) = detail["ran_ms"].as_i64() {
            facts.push(self.words.ran(span(ran).get(self.words.0)));
        }
        if let Some(times) = detail["times"].as_u64() {
            facts.push(self.words.times_more(times));
        }
        let facts = facts.join(" · ");
        let kept = detail["what"].as_str().or(detail["words"].as_str());
        let what = match kept {
            Some(kept) => Some(as_kept(kept)),
            None => entry.rule.as_deref().map(one_line),
        };
        let what = match (what, entry.tool.as_deref()) {
            (Some(what), _) => {
                let room = width.saturating_sub(columns(&facts) + 5).max(8);
                format!("“{}”", cut(&what, room))
            }
            // The word says that it is one.
            (None, None | Some(PLAN)) => String::new(),
            (None, Some(tool)) => one_line(tool),
        };
        match (what.is_empty(), facts.is_empty()) {
            (true, _) => cut(&facts, width),
            (false, true) => what,
            (false, false) => format!("{what} · {facts}"),
        }
    }

    fn by(&self, entry: &AuditEntry, detail: &Value) -> Option<String> {
        let waited = detail["waited_ms"].as_i64().map(span);
        let waited = waited.as_ref().map(|span| span.get(self.words.0));
        let source = entry.source.as_deref();
        match (&entry.operator, source) {
            (Some(id), _) if Some(id) == self.owner.as_ref() => Some(self.words.by_you(waited)),
            (Some(id), _) => {
                let name = self.names.get(id);
                // So that nobody is called "you" but the owner.
                let sign = if name.is_some() { "@" } else { "" };
                let who = cut(&one_line(name.unwrap_or(id)), 12);
                Some(self.words.by_somebody(&format!("{sign}{who}"), waited))
            }
            (None, Some("terminal")) => Some(self.words.in_terminal(waited)),
            (None, _) => waited.map(|waited| self.words.after(waited)),
        }
    }
}

/// The record holds what others wrote; it writes no line of its own.
fn one_line(text: &str) -> String {
    visible(text, Shape::Name)
}

/// A line that was made fit for eyes before it was written down: the brackets in
/// it are nod's own, around masks and escapes.
fn as_kept(text: &str) -> String {
    let mut out = String::new();
    for piece in text.split_inclusive(MARKS) {
        let inner = piece.trim_end_matches(MARKS);
        out.push_str(&one_line(inner));
        out.push_str(&piece[inner.len()..]);
    }
    out
}

const MARKS: [char; 2] = ['⟦', '⟧'];

/// As much of the text as fits into so many columns.
fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if columns(&out) + columns(c.encode_utf8(&mut [0; 4])) >= width {
            break;
        }
        out.push(c);
    }
    out + "…"
}

/// The time where the reader is.
pub(super) fn local(millis: i64, shape: &str) -> String {
    jiff::Timestamp::from_millisecond(millis).map_or_else(
        |_| millis.to_string(),
        |at| {
            at.to_zoned(jiff::tz::TimeZone::system())
                .strftime(shape)
                .to_string()
        },
    )
}

/// The same, and how far that is from UTC.
pub(super) fn time(millis: i64) -> String {
    local(millis, "%Y-%m-%d %H:%M:%S %:z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Lang;

    #[test]
    fn yes_and_no_in_the_terminal_and_waiting_and_running_are_told_apart() {
        let audit = |allowed: Value, ran: Value| {
            let detail = json!({"what": "make", "project": "/p/shop", "waited_ms": 4_000,
                "allowed": allowed, "ran_ms": ran});
            let entry = AuditEntry {
                operator: None,
                source: Some("terminal".to_owned()),
                ..entry("", "terminal", detail)
            };
            told(&entry, Lang::En)
        };
        for (line, said) in [
            (
                audit(json!(true), json!(25_000)),
                "allowed in terminal “make” · shop · in the terminal after 4 s · ran 25 s",
            ),
            (
                audit(json!(false), Value::Null),
                "denied in terminal “make” · shop · in the terminal after 4 s",
            ),
            (
                audit(Value::Null, Value::Null),
                "settled in terminal “make” · shop · in the terminal after 4 s",
            ),
        ] {
            assert!(line.ends_with(said), "{line}");
        }
    }

    fn entry(operator: &str, decision: &str, detail: Value) -> AuditEntry {
        AuditEntry {
            kind: "settled".to_owned(),
            operator: Some(operator.to_owned()),
            tool: Some("Bash".to_owned()),
            decision: Some(decision.to_owned()),
            source: Some("feishu".to_owned()),
            detail: Some(detail),
            ..AuditEntry::default()
        }
    }

    fn told(entry: &AuditEntry, lang: Lang) -> String {
        let reader = RecordReader {
            words: Words(lang),
            owner: Some("ou_me".to_owned()),
            names: [("ou_li".to_owned(), "李\u{202e}雷".to_owned())].into(),
        };
        let line = reader.line(entry);
        assert!(columns(&line) <= WIDTH, "{line}");
        let recorded = Recorded {
            seq: 1,
            entry: entry.clone(),
            hash: [0; 32],
        };
        let row = as_line(&recorded, &reader);
        assert!(columns(&row) <= WIDTH, "{row}");
        line.split_once(' ').unwrap().1.to_owned()
    }

    #[test]
    fn a_line_says_what_was_decided_where_by_whom_and_after_how_long() {
        let detail = json!({"what": "npm test", "project": "/home/u/shop", "waited_ms": 12_400});
        let mine = entry("ou_me", "allow", detail.clone());
        assert_eq!(
            told(&mine, Lang::En),
            "allowed “npm test” · shop · by you after 12 s"
        );
        assert_eq!(
            told(&mine, Lang::Zh),
            "批准运行 “npm test” · shop · 你，12 秒后"
        );
        // A name from Feishu turns no line around and is nobody else's.
        let named = entry("ou_li", "deny", detail.clone());
        assert_eq!(
            told(&named, Lang::En),
            "denied “npm test” · shop · by @李⟦U+202E⟧雷 after 12 s"
        );
        let theirs = entry("ou_1234567890abcdef", "deny", detail);
        let line = told(&theirs, Lang::En);
        assert_eq!(
            line,
            "denied “npm test” · shop · by ou_12345678… after 12 s"
        );
    }

    #[test]
    fn yes_and_no_are_told_apart() {
        for (answer, en, zh) in [
            ("yes", "answered yes", "回答“是”"),
            ("no", "answered no", "回答“否”"),
        ] {
            let detail = json!({"what": "Deploy?", "answer": answer});
            let entry = entry("ou_me", "answer", detail);
            assert!(told(&entry, Lang::En).starts_with(en));
            assert!(told(&entry, Lang::Zh).starts_with(zh));
        }
    }

    #[test]
    fn a_mask_and_an_escape_are_shown_as_they_were_written_down() {
        let what = "curl -H ⟦secret github 40B⟧ x⟦U+202E⟧y";
        let line = told(&entry("ou_me", "allow", json!({"what": what})), Lang::En);
        assert_eq!(line, format!("allowed “{what}” · by you"));
        // What somebody put into the file by hand hides nothing all the same.
        let forged = json!({"what": "⟦\u{202e}⟧ \u{1b}[2K"});
        let line = told(&entry("ou_me", "allow", forged), Lang::En);
        assert!(
            line.contains("⟦⟦U+202E⟧⟧") && !line.contains('\u{1b}'),
            "{line}"
        );
    }

    #[test]
    fn plans_questions_and_words_are_told_by_their_own_names() {
        let of = |kind: &str, tool: Option<&str>, decision: &str| AuditEntry {
            kind: kind.to_owned(),
            tool: tool.map(str::to_owned),
            ..entry("ou_me", decision, json!({"project": "/p/shop"}))
        };
        for (entry, en, zh) in [
            (
                of("settled", Some("ExitPlanMode"), "deny"),
                "planning goes on shop · by you",
                "继续完善计划 shop · 你",
            ),
            (
                of("settled", Some("ExitPlanMode"), "answer"),
                "plan approved shop · by you",
                "批准计划 shop · 你",
            ),
            (
                of("settled", Some("AskUserQuestion"), "deny"),
                "not answered AskUserQuestion · shop · by you",
                "未作回答 AskUserQuestion · shop · 你",
            ),
            (
                of("spoken", None, "no_mailbox"),
                "words not delivered shop · by you",
                "消息未能送达 shop · 你",
            ),
            (
                of("settled", Some("Bash"), "hook_gone"),
                "no longer waiting Bash · shop · by you",
                "请求失效 Bash · shop · 你",
            ),
        ] {
            assert_eq!(told(&entry, Lang::En), en);
            assert_eq!(told(&entry, Lang::Zh), zh);
        }
    }

    #[test]
    fn what_others_wrote_stays_on_its_line_and_within_it() {
        let long = "测试 \u{1b}[2K\n".repeat(200);
        for lang in [Lang::Zh, Lang::En] {
            for detail in [
                json!({"what": long, "project": format!("/p/{}", "长".repeat(40)), "waited_ms": 1}),
                json!({"times": u64::MAX}),
                json!([1]),
            ] {
                let line = told(&entry(&long, "always", detail), lang);
                assert!(!line.contains(char::is_control), "{line}");
            }
        }
    }
}
