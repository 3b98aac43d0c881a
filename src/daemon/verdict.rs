//! What an ending means to Claude Code: the permission update that goes with
//! it, and the rule it leaves in the project's settings.

use serde_json::Value;
use std::path::PathBuf;
use tracing::warn;

use super::parts::Parts;
use crate::approvals::answer::Extras;
use crate::approvals::desk::Delivery;
use crate::approvals::request::{Ending, Operator, Reach, Request};
use crate::claude::permission::{Destination, allow_rules};
use crate::claude::settings_file;
use crate::rules::Rule;
use crate::sessions::questions;
use crate::store::LeftRule;

/// What the hook is told besides allow or deny. `asked` is the tool call that
/// ended this way: a question's answers go back inside its own input.
pub(super) fn extras(ending: &Ending, tool: &str, input: &Value) -> Extras {
    let reach = match ending {
        Ending::Allowed { reach, .. } => reach,
        Ending::Answered { answers, .. } => return answered(tool, input, answers),
        Ending::Denied { .. }
        | Ending::Terminal { .. }
        | Ending::TimedOut
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Undeliverable
        | Ending::Dropped { .. } => return Extras::default(),
    };
    let (rules, to) = match reach {
        Reach::Once => return Extras::default(),
        Reach::Session(rules) => (rules, Destination::Session),
        Reach::Always { rules, .. } => (rules, Destination::LocalSettings),
    };
    let parts: Vec<_> = rules
        .iter()
        .map(|rule| (rule.tool.clone(), rule.content.clone()))
        .collect();
    Extras {
        updated_permissions: allow_rules(&parts, to).map(|update| serde_json::json!([update])),
        updated_input: None,
    }
}

fn answered(tool: &str, input: &Value, answers: &[String]) -> Extras {
    let Some((ask, asker)) = questions::of(tool, input) else {
        return Extras::default();
    };
    let (input, updates) = ask.answered(&asker, answers);
    Extras {
        updated_input: Some(input),
        updated_permissions: (!updates.is_empty()).then(|| Value::Array(updates)),
    }
}

/// Sees to it that an "always" left its rules: Claude Code writes them itself
/// when the hook handed them over, and nod does for clients that cannot. Says
/// why when they could not be saved.
pub(super) async fn leave_rules(
    parts: &Parts,
    request: &Request,
    by: &Operator,
    rules: &[Rule],
    delivery: Delivery,
) -> Result<(), String> {
    let texts: Vec<_> = rules.iter().map(Rule::render).collect();
    let project = request.origin.project.clone();
    let written_by_claude = match delivery {
        Delivery::Confirmed | Delivery::Unconfirmed => true,
        Delivery::Written => false,
        Delivery::Lost => return Err("the hook is gone".to_owned()),
    };
    let to_write = texts.clone();
    let place = project.clone();
    let file = tokio::task::spawn_blocking(move || -> Result<PathBuf, String> {
        let file = settings_file::rules_file(&place).map_err(|e| e.to_string())?;
        if !written_by_claude {
            for rule in &to_write {
                settings_file::add_allow_rule(&place, rule).map_err(|e| e.to_string())?;
            }
        }
        Ok(file)
    })
    .await
    .map_err(|_| "the settings file could not be reached".to_owned())??;
    let left: Vec<_> = texts
        .into_iter()
        .map(|rule| LeftRule {
            request: request.id.clone(),
            project: project.clone(),
            file: file.clone(),
            rule,
            operator: by.id.clone(),
            at: parts.now(),
        })
        .collect();
    let kept = parts.store.run(move |db| {
        for rule in &left {
            db.rule_left(rule)?;
        }
        Ok(())
    });
    if let Err(why) = kept.await {
        warn!("a rule was left but not listed: {why}");
    }
    Ok(())
}
