//! Takes back the rule an "always" left, from the decided card.

use crate::approvals::outcome::{Outcome, Refusal};
use crate::approvals::request::{Ending, Operator, Reach};
use crate::claude::settings_file;
use crate::daemon::cards::courier::{self, AFTER_REPLY, Cards, Face};
use crate::daemon::deciding::ruling::Ruling;
use crate::daemon::deciding::verdict;
use crate::daemon::known::journal;
use crate::gateway::seal::Sealed;
use crate::ids::{MessageId, RequestId};
use crate::store::{Db, ListedRule};
use crate::text::Text;

pub(crate) async fn undo(
    cards: &Cards,
    id: &RequestId,
    _: Sealed,
    by: &Operator,
    message: Option<&MessageId>,
) -> Ruling {
    let (of, store) = (id.clone(), &cards.journal.store);
    let rules = match store.run(move |db| db.rules_left_by(&of)).await {
        Ok(rules) => rules.into_iter().filter(|rule| rule.undone_at.is_none()),
        Err(why) => return Refusal::NotUndone(why.text()).into(),
    };
    let rules: Vec<_> = rules.collect();
    if rules.is_empty() {
        return Refusal::Handled.into();
    }
    if let Err(why) = remove(cards, rules).await {
        return Refusal::NotUndone(why).into();
    }
    let (of, at) = (id.clone(), cards.now());
    let mark = move |db: &Db| db.mark_undone(&of, at);
    journal::run(&cards.journal, "an undo was not written down", mark).await;
    let outcome = Outcome::Undone;
    journal::happened(&cards.journal, &outcome, id, by.id.as_str()).await;
    let face = redraw(cards, id);
    // The decision's own edit may still be on its way; this one comes after it.
    if let (Some(message), Some(face)) = (message, &face) {
        courier::queue_edit(cards, message.clone(), face.clone(), 2 * AFTER_REPLY).await;
    }
    Ruling::with(outcome, face)
}

/// Removes the rules from the project's settings and strikes them off the list.
pub(crate) async fn remove(cards: &Cards, rules: Vec<ListedRule>) -> Result<(), Text> {
    let at = cards.now();
    for rule in rules {
        let (project, text) = (rule.left.project.clone(), rule.left.rule.clone());
        tokio::task::spawn_blocking(move || settings_file::remove_allow_rule(&project, &text))
            .await
            .map_err(|_| verdict::UNREACHABLE)?
            .map_err(|why| why.text())?;
        let undone = move |db: &Db| db.rule_undone(rule.number, at);
        journal::run(&cards.journal, "an undone rule is still listed", undone).await;
    }
    Ok(())
}

fn redraw(cards: &Cards, id: &RequestId) -> Option<Face> {
    courier::retold(cards, id, |ending| {
        if let Ending::Allowed {
            reach: Reach::Always { undone, .. },
            ..
        } = ending
        {
            *undone = true;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::outcome::sample;
    use crate::daemon::cards::bench::Bench;
    use crate::store::LeftRule;
    use std::path::{Path, PathBuf};

    const RULE: &str = "Bash(npm test)";

    fn id() -> RequestId {
        RequestId::parse("r1").unwrap()
    }

    fn settings(project: &Path) -> PathBuf {
        project.join(".claude/settings.local.json")
    }

    /// A rule that an "always" left.
    async fn left(cards: &Cards, project: &Path) {
        settings_file::add_allow_rule(project, RULE).unwrap();
        let left = LeftRule {
            request: id(),
            project: project.to_owned(),
            file: settings(project),
            rule: RULE.to_owned(),
            operator: sample::by().id,
            at: cards.now(),
        };
        let kept = cards.journal.store.run(move |db| db.rule_left(&left));
        kept.await.unwrap();
    }

    async fn undone(cards: &Cards) -> Outcome {
        let proof = Sealed::by_our_card(&id());
        undo(cards, &id(), proof, &sample::by(), None).await.outcome
    }

    #[tokio::test]
    async fn the_rule_is_gone_from_the_file_and_a_second_tap_finds_nothing() {
        let (bench, project) = (Bench::new().await, tempfile::tempdir().unwrap());
        left(&bench.cards, project.path()).await;
        assert_eq!(undone(&bench.cards).await, Outcome::Undone);
        let file = std::fs::read_to_string(settings(project.path())).unwrap();
        assert!(!file.contains(RULE), "{file}");
        assert_eq!(undone(&bench.cards).await, Refusal::Handled.into());
    }

    #[tokio::test]
    async fn a_rule_that_stays_is_told_and_can_be_undone_later() {
        let (bench, project) = (Bench::new().await, tempfile::tempdir().unwrap());
        left(&bench.cards, project.path()).await;
        let file = settings(project.path());
        let before = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, "{ no settings").unwrap();
        let refused = undone(&bench.cards).await;
        assert!(
            matches!(refused, Outcome::Refused(Refusal::NotUndone(_))),
            "{refused:?}"
        );
        std::fs::write(&file, before).unwrap();
        assert_eq!(undone(&bench.cards).await, Outcome::Undone);
    }

    #[tokio::test]
    async fn nothing_is_undone_that_this_request_did_not_leave() {
        let (bench, project) = (Bench::new().await, tempfile::tempdir().unwrap());
        settings_file::add_allow_rule(project.path(), RULE).unwrap();
        assert_eq!(undone(&bench.cards).await, Refusal::Handled.into());
        let file = std::fs::read_to_string(settings(project.path())).unwrap();
        assert!(file.contains(RULE), "the person's own rule stays");
    }
}
