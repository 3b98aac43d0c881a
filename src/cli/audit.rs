//! `nod audit`: who decided what, when and from where; and whether the record
//! is whole.

use serde_json::json;

use super::wording::Words;
use super::{Failure, Outcome, output};
use crate::config::{Paths, Sources};
use crate::store::{self, Chain, Db, Recorded, StoreError};
use crate::wording::columns;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// One JSON object a line
    #[arg(long, global = true)]
    json: bool,
    /// How many of the newest lines
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    last: u32,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check that no line was changed or taken out
    Verify,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let sources = Sources::for_person();
    let words = Words(sources.lang());
    let paths = Paths::load(&sources).map_err(|why| Failure::settings(words, &sources, &why))?;
    let failed = |why: StoreError| Failure::new(1, words.no_audit(&why));
    if !paths.state_dir.join(store::FILE).exists() {
        nothing(arguments.json, words);
        return Ok(());
    }
    let db = Db::open_read_only(&paths.state_dir).map_err(failed)?;
    match arguments.command {
        Some(Command::Verify) => verify(&db, arguments.json, words).map_err(failed)?,
        None => {
            let mut rows = db.audit(None, arguments.last).map_err(failed)?;
            rows.reverse();
            if rows.is_empty() {
                nothing(arguments.json, words);
            }
            for row in &rows {
                output::line(&if arguments.json {
                    as_json(row)
                } else {
                    as_line(row, words)
                });
            }
            Ok(())
        }
    }
}

/// Says that there is no line to show. As JSON that is no line at all.
fn nothing(json: bool, words: Words) {
    if !json {
        output::line(words.nothing_recorded());
    }
}

fn verify(db: &Db, json: bool, words: Words) -> Result<Outcome, StoreError> {
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
        Chain::Broken { seq, problem } => Err(Failure::new(1, words.audit_broken(seq, problem))),
    })
}

fn as_json(row: &Recorded) -> String {
    let entry = &row.entry;
    json!({
        "line": row.seq,
        "at": time(entry.at),
        "kind": entry.kind,
        "decision": entry.decision,
        "operator": entry.operator,
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

fn as_line(row: &Recorded, words: Words) -> String {
    let entry = &row.entry;
    let what = words.decided(entry.decision.as_ref().unwrap_or(&entry.kind));
    let room = " ".repeat(WHAT.saturating_sub(columns(what)));
    let mut line = format!("{}  {what}{room}", time(entry.at));
    let digest = entry.digest.as_deref();
    for (label, value) in [
        ("", entry.tool.as_deref()),
        (words.by(), entry.operator.as_deref()),
        (
            words.from(),
            entry.source.as_deref().map(|at| words.source(at)),
        ),
        (words.rule(), entry.rule.as_deref()),
        (words.digest(), digest.and_then(|digest| digest.get(..8))),
        (words.request(), entry.request.as_deref()),
    ] {
        if let Some(value) = value {
            line.push_str("  ");
            line.push_str(label);
            line.push_str(value);
        }
    }
    line
}

/// Columns of the widest word for what happened.
const WHAT: usize = 22;

/// The time where the reader is, and how far that is from UTC.
pub(super) fn time(millis: i64) -> String {
    jiff::Timestamp::from_millisecond(millis).map_or_else(
        |_| millis.to_string(),
        |at| {
            at.to_zoned(jiff::tz::TimeZone::system())
                .strftime("%Y-%m-%d %H:%M:%S %:z")
                .to_string()
        },
    )
}
