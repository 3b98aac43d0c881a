//! `nod rules`: the always-allow rules that taps have left, and their undoing.

use serde_json::json;

use super::wording::Words;
use super::{CommandResult, Failure, audit, output};
use crate::claude::settings_file;
use crate::clock;
use crate::config::{Paths, Sources};
use crate::store::{self, AuditEntry, Db, ListedRule, StoreError};

#[derive(clap::Args)]
pub(super) struct RulesArguments {
    /// One JSON object a line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<RulesCommand>,
}

#[derive(clap::Subcommand)]
enum RulesCommand {
    /// Take the rule with this number out of its project's settings
    Undo {
        /// The number that `nod rules` shows
        number: i64,
    },
}

pub(super) fn run(arguments: &RulesArguments, sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    let paths = Paths::load(sources).map_err(|why| Failure::settings(words, sources, &why))?;
    let now = clock::wall_ms();
    let failed = |why: StoreError| Failure::new(words.no_rules(&why));
    match &arguments.command {
        None => {
            if !paths.state_dir.join(store::FILE).exists() {
                nothing(arguments.json, words);
                return Ok(());
            }
            let db = Db::open_read_only(&paths.state_dir).map_err(failed)?;
            let rules = db.rules_left().map_err(failed)?;
            if rules.is_empty() {
                nothing(arguments.json, words);
            }
            for rule in rules {
                output::line(&show(&rule, arguments.json, words));
            }
            Ok(())
        }
        Some(RulesCommand::Undo { number }) => {
            let unknown = Failure::new(words.no_such_rule(*number));
            if !paths.state_dir.join(store::FILE).exists() {
                return Err(unknown);
            }
            let (db, _) = Db::open(&paths.state_dir, now).map_err(failed)?;
            let rules = db.rules_left().map_err(failed)?;
            let rule = rules
                .into_iter()
                .find(|rule| rule.number == *number)
                .ok_or_else(|| unknown.hinted(words.rules_hint()))?;
            if let Some(at) = rule.undone_at {
                output::say(&words.rule_undone_before(&rule.left.rule, &audit::time(at)));
                return Ok(());
            }
            let was_there = settings_file::remove_allow_rule(&rule.left.project, &rule.left.rule)
                .map_err(|why| Failure::told(why.text()))?;
            let entry = AuditEntry {
                at: now,
                kind: "rule_undone".to_owned(),
                request: Some(rule.left.request.to_string()),
                rule: Some(rule.left.rule.clone()),
                source: Some("terminal".to_owned()),
                ..AuditEntry::default()
            };
            db.atomically(|db| {
                // The card's button may have been first.
                if db.rule_undone(*number, now)? {
                    db.append_audit(&entry)?;
                }
                Ok(())
            })
            .map_err(failed)?;
            output::say(&words.rule_removed(&rule.left.rule, &rule.left.file, was_there));
            Ok(())
        }
    }
}

/// As JSON that is no line at all.
fn nothing(json: bool, words: Words) {
    if !json {
        output::say(words.no_rules_left());
    }
}

fn show(rule: &ListedRule, json: bool, words: Words) -> String {
    let left = &rule.left;
    if json {
        return json!({
            "number": rule.number,
            "rule": left.rule,
            "project": left.project,
            "file": left.file,
            "operator": left.operator.as_str(),
            "at": audit::time(left.at),
            "undone_at": rule.undone_at.map(audit::time),
        })
        .to_string();
    }
    let undone = rule.undone_at.map(|at| words.undone(&audit::time(at)));
    format!(
        "{:>4}  {}  {}  {}  {}{}{}",
        rule.number,
        audit::time(left.at),
        left.rule,
        left.project.display(),
        words.by(),
        left.operator,
        undone.unwrap_or_default()
    )
}
