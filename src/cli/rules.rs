//! `nod rules`: the always-allow rules that taps have left, and their undoing.

use serde_json::json;

use super::{Failure, Outcome, audit, output};
use crate::claude::settings_file;
use crate::clock;
use crate::config::{Config, Sources};
use crate::store::{Db, ListedRule};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// One JSON object a line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Take the rule with this number out of its project's settings
    Undo { number: i64 },
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let config = Config::load(&Sources::for_person()).map_err(|why| Failure::new(78, why))?;
    let now = clock::wall_ms();
    let failed =
        |why: &dyn std::fmt::Display| Failure::new(1, format!("the rules cannot be read: {why}"));
    match &arguments.command {
        None => {
            let db = Db::open_read_only(&config.state_dir).map_err(|e| failed(&e))?;
            for rule in db.rules_left().map_err(|e| failed(&e))? {
                output::line(&show(&rule, arguments.json));
            }
            Ok(())
        }
        Some(Command::Undo { number }) => {
            let (db, _) = Db::open(&config.state_dir, now).map_err(|e| failed(&e))?;
            let rules = db.rules_left().map_err(|e| failed(&e))?;
            let rule = rules
                .into_iter()
                .find(|rule| rule.number == *number)
                .ok_or_else(|| Failure {
                    code: 1,
                    why: format!("no rule has the number {number}"),
                    hint: Some("`nod rules` lists them".to_owned()),
                })?;
            let removed = settings_file::remove_allow_rule(&rule.left.project, &rule.left.rule)
                .map_err(|why| Failure::new(1, why))?;
            db.rule_undone(*number, now).map_err(|e| failed(&e))?;
            output::line(&match removed {
                settings_file::Removed::Removed => {
                    format!(
                        "took `{}` out of `{}`",
                        rule.left.rule,
                        rule.left.file.display()
                    )
                }
                settings_file::Removed::NotThere => {
                    format!(
                        "`{}` was no longer in `{}`",
                        rule.left.rule,
                        rule.left.file.display()
                    )
                }
            });
            Ok(())
        }
    }
}

fn show(rule: &ListedRule, json: bool) -> String {
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
    let undone = rule
        .undone_at
        .map_or_else(String::new, |at| format!("  (undone {})", audit::time(at)));
    format!(
        "{:>4}  {}  {}  {}  by {}{undone}",
        rule.number,
        audit::time(left.at),
        left.rule,
        left.project.display(),
        left.operator
    )
}
