//! What an ending means to Claude Code: the permission update that goes with
//! it, and the rule it leaves in the project's settings.

use std::path::{Path, PathBuf};

use crate::approvals::answer::Extras;
use crate::approvals::desk::Delivery;
use crate::approvals::request::{Ending, Operator, Reach, Request};
use crate::claude::permission::{Destination, allow_rules, set_mode};
use crate::claude::settings_file;
use crate::daemon::known::journal::{self, Journal};
use crate::rules::Rule;
use crate::sessions::questions::Asker;
use crate::store::{Db, LeftRule};
use crate::text::Text;

/// What the hook is told besides allow or deny. A question's answers go back
/// inside the input of the call that asked it.
pub(crate) fn extras(ending: &Ending, asker: Option<&Asker>) -> Extras {
    let (rules, to) = match ending {
        Ending::Answered { answers, .. } => return answered(asker, answers),
        Ending::Allowed { reach, .. } => match reach {
            // No agent that takes rules from us grants for a turn.
            Reach::Once | Reach::Unwritten | Reach::Turn(_) => return Extras::default(),
            Reach::Session(rules) => (rules, Destination::Session),
            Reach::Always { rules, .. } => (rules, Destination::LocalSettings),
        },
        // Nothing else lets anything run.
        _ => return Extras::default(),
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

fn answered(asker: Option<&Asker>, answers: &[String]) -> Extras {
    let Some(asker) = asker else {
        return Extras::default();
    };
    let (input, mode) = asker.answered(answers);
    Extras {
        updated_input: Some(input),
        updated_permissions: mode.map(|mode| serde_json::json!([set_mode(mode)])),
    }
}

/// Sees to it that an "always" left its rules: Claude Code writes them itself
/// when the hook handed them over, and nod does for clients that cannot. Says
/// why when they could not be saved.
pub(crate) async fn leave_rules(
    journal: &Journal,
    request: &Request,
    by: &Operator,
    rules: &[Rule],
    delivery: Delivery,
) -> Result<(), Text> {
    let texts: Vec<_> = rules.iter().map(Rule::render).collect();
    let project = request.origin.project.clone();
    let place = project.clone();
    let by_claude = delivery != Delivery::Written;
    let work = move || write_rules(&place, texts, by_claude);
    let (file, written, failed) = tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| UNREACHABLE)??;
    let left: Vec<_> = written
        .into_iter()
        .map(|rule| LeftRule {
            request: request.id.clone(),
            project: project.clone(),
            file: file.clone(),
            rule,
            operator: by.id.clone(),
            at: journal.now(),
        })
        .collect();
    let list = move |db: &Db| {
        left.iter()
            .try_for_each(|rule| db.rule_left(rule).map(drop))
    };
    journal::run(journal, "a rule was left but not listed", list).await;
    failed.map_or(Ok(()), Err)
}

pub(crate) const UNREACHABLE: Text =
    Text::new("设置文件读写中断", "the settings file could not be reached");

/// The file, the rules that are in it or will be, and why the rest is not.
fn write_rules(
    project: &Path,
    rules: Vec<String>,
    by_claude: bool,
) -> Result<(PathBuf, Vec<String>, Option<Text>), Text> {
    let file = settings_file::rules_file(project).map_err(|why| why.text())?;
    if by_claude {
        return Ok((file, rules, None));
    }
    let mut written = Vec::new();
    for rule in rules {
        if let Err(why) = settings_file::add_allow_rule(project, &rule) {
            return Ok((file, written, Some(why.text())));
        }
        written.push(rule);
    }
    Ok((file, written, None))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::approvals::outcome::sample::{allowed, always, answered, denied, request};

    #[test]
    fn a_rule_goes_along_with_an_allow_and_says_where_it_is_kept() {
        let rule = || Rule::new("Bash", "npm test");
        for (reach, place) in [
            (Reach::Session(vec![rule()]), "session"),
            (always(rule()), "localSettings"),
        ] {
            let updates = extras(&allowed(reach), None).updated_permissions;
            let updates = updates.expect("a rule").to_string();
            assert!(updates.contains(place), "{updates}");
            assert!(updates.contains("npm test"), "{updates}");
        }
        for ending in [
            allowed(Reach::Once),
            allowed(Reach::Unwritten),
            denied(true),
            Ending::TimedOut,
        ] {
            let extras = extras(&ending, None);
            assert_eq!(extras.updated_permissions, None);
            assert_eq!(extras.updated_input, None);
        }
    }

    #[test]
    fn an_answer_goes_back_only_to_whoever_asked() {
        let asked = request("nod_ask", json!({"question": "Go?", "kind": "confirm"}));
        let whose = asked.question().map(|it| &it.asker);
        let back = extras(&answered(), whose).updated_input;
        assert_eq!(back, Some(json!({"answers": ["yes"]})));
        assert_eq!(extras(&answered(), None).updated_input, None);
    }

    #[test]
    fn nod_writes_the_rules_of_a_client_that_can_not() {
        let project = tempfile::tempdir().unwrap();
        let rules = || vec!["Bash(npm test)".to_owned()];
        let (file, left, why) = write_rules(project.path(), rules(), true).unwrap();
        assert!(!file.exists() && left == rules() && why.is_none());
        let (file, left, why) = write_rules(project.path(), rules(), false).unwrap();
        assert_eq!((left, why), (rules(), None));
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains("Bash(npm test)"), "{text}");
        std::fs::write(project.path().join(".claude/settings.local.json"), "{").unwrap();
        let (_, left, why) = write_rules(project.path(), rules(), false).unwrap();
        assert!(
            left.is_empty() && why.is_some(),
            "a broken file is left alone"
        );
    }
}
