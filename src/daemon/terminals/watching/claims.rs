//! Rules that an "always" claimed and Claude Code was to write: it takes none
//! from an answer that came after the terminal's. Looks once, when the call has
//! ended or a moment later, and takes back what is not in the file.

use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::info;

use super::Terminals;
use crate::approvals::Settled;
use crate::approvals::request::{Digest, Ending, Reach, Request};
use crate::claude::settings_file;
use crate::clock::Millis;
use crate::daemon::cards::courier;
use crate::daemon::known::journal;
use crate::ids::SessionId;
use crate::rules::Rule;
use crate::store::Db;

/// Claude Code writes within a second, and on a busy machine a little later.
const WRITTEN_WITHIN: Millis = 10_000;
/// It writes before the call runs, so not long after its end the file tells.
const AFTER_ITS_END: Millis = 1_000;
const MAX_CLAIMS: usize = 256;
const MAX_FILE: u64 = 4 * 1024 * 1024;

#[derive(Default)]
pub(super) struct Claims(Mutex<Vec<RuleClaim>>);

struct RuleClaim {
    request: Arc<Request>,
    rules: Vec<String>,
    due: Millis,
}

impl Claims {
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Remembers a rule that was claimed, if the agent is one that writes it.
    pub(super) fn note(&self, settled: &Settled) -> bool {
        let written_by_it = settled.request.origin.caller.status_dir.is_some();
        let Ending::Allowed {
            reach: Reach::Always { rules, .. },
            ..
        } = &settled.ending
        else {
            return false;
        };
        let mut claims = self.lock();
        if !written_by_it || claims.len() >= MAX_CLAIMS {
            return false;
        }
        claims.push(RuleClaim {
            request: Arc::clone(&settled.request),
            rules: rules.iter().map(Rule::render).collect(),
            due: settled.at + WRITTEN_WITHIN,
        });
        true
    }

    /// This call of a session has ended.
    pub(super) fn ran(&self, session: &SessionId, digest: &Digest, now: Millis) {
        let mut claims = self.lock();
        let of_it = |claim: &&mut RuleClaim| {
            let request = &claim.request;
            request.origin.session.as_ref() == Some(session) && request.digest == *digest
        };
        for claim in claims.iter_mut().filter(of_it) {
            claim.due = claim.due.min(now + AFTER_ITS_END);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RuleClaim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn due(&self, now: Millis) -> Vec<RuleClaim> {
        let mut claims = self.lock();
        claims.extract_if(.., |claim| now >= claim.due).collect()
    }
}

pub(super) async fn check(terminals: &Terminals) {
    for claim in terminals.claims.due(terminals.cards.now()) {
        let (project, rules) = (claim.request.origin.project.clone(), claim.rules.clone());
        let looked = tokio::task::spawn_blocking(move || lacks(&project, &rules)).await;
        if let Ok(true) = looked {
            take_back(terminals, &claim.request).await;
        }
    }
}

/// Whether one of the rules is certainly not in the project's file.
fn lacks(project: &Path, rules: &[String]) -> bool {
    let Ok(file) = settings_file::rules_file(project) else {
        return false;
    };
    let text = match std::fs::metadata(&file) {
        Ok(kind) if !kind.is_file() || kind.len() > MAX_FILE => return false,
        Ok(_) => std::fs::read(&file),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(b"{}".to_vec()),
        Err(_) => return false,
    };
    // A file with comments cannot be read so, and is believed.
    let Some(settings) = text
        .ok()
        .and_then(|text| serde_json::from_slice::<Value>(&text).ok())
    else {
        return false;
    };
    let allowed = settings["permissions"]["allow"].as_array();
    // Whoever wrote it may escape more or less than we do.
    let bare = |rule: &str| rule.replace('\\', "");
    let holds = |rule: &String| {
        let mut all = allowed.into_iter().flatten().filter_map(Value::as_str);
        all.any(|one| bare(one) == bare(rule))
    };
    !rules.iter().all(holds)
}

async fn take_back(terminals: &Terminals, request: &Request) {
    let id = &request.id;
    info!(request = %id, "a rule was claimed and is not in the file");
    let (cards, journal) = (&terminals.cards, &terminals.cards.journal);
    let (of, at) = (id.clone(), cards.now());
    let strike = move |db: &Db| {
        for rule in db.rules_left_by(&of)? {
            db.rule_undone(rule.number, at)?;
        }
        Ok(())
    };
    journal::run(journal, "a rule that is in no file is still listed", strike).await;
    journal::missed(journal, "rule_not_left", id).await;
    let told = courier::retold(cards, id, |ending| {
        if let Ending::Allowed { reach, .. } = ending {
            *reach = Reach::Unwritten;
        }
    });
    let Some(face) = told else {
        return;
    };
    let id = id.clone();
    if let Ok(Some(row)) = journal.store.run(move |db| db.settled(&id)).await
        && let Some(place) = row.card
    {
        courier::queue_edit(cards, place.message, face, Duration::ZERO).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_rule_that_is_certainly_missing_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let rule = ["Bash(make it)".to_owned()];
        assert!(lacks(dir.path(), &rule), "there is no file");
        std::fs::create_dir(dir.path().join(".claude")).unwrap();
        let file = dir.path().join(".claude/settings.local.json");
        for (text, missing) in [
            (r#"{"permissions":{"allow":["Bash(make it)"]}}"#, false),
            (r#"{"permissions":{"allow":["Bash(make)"]}}"#, true),
            (r#"{"permissions":{}}"#, true),
            ("{ // mine\n}", false),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(lacks(dir.path(), &rule), missing, "{text}");
        }
    }
}
