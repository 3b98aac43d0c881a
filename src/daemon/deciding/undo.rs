//! Takes back the rule an "always" left, from the decided card.

use tracing::warn;

use crate::approvals::outcome::{Outcome, Refusal};
use crate::approvals::request::{Ending, Operator, Reach};
use crate::claude::settings_file;
use crate::daemon::cards::courier::{self, AFTER_REPLY, Cards, Face};
use crate::daemon::deciding::ruling::Ruling;
use crate::daemon::deciding::verdict;
use crate::daemon::known::journal;
use crate::gateway::seal::Sealed;
use crate::ids::{MessageId, RequestId};
use crate::store::ListedRule;
use crate::text::Text;

pub(crate) async fn undo(
    cards: &Cards,
    id: &RequestId,
    _: Sealed,
    by: &Operator,
    message: Option<&MessageId>,
) -> Ruling {
    let request = id.clone();
    let listed = cards
        .journal
        .store
        .run(move |db| db.rules_left_by(&request))
        .await;
    let rules: Vec<_> = match listed {
        Ok(rules) => rules
            .into_iter()
            .filter(|r| r.undone_at.is_none())
            .collect(),
        Err(why) => {
            return Refusal::NotUndone(why.text()).into();
        }
    };
    if rules.is_empty() {
        return Refusal::Handled.into();
    }
    if let Err(why) = remove(cards, rules).await {
        return Refusal::NotUndone(why).into();
    }
    let (request, at) = (id.clone(), cards.now());
    if let Err(why) = cards
        .journal
        .store
        .run(move |db| db.mark_undone(&request, at))
        .await
    {
        warn!("an undo was not written down: {why}");
    }
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
        let number = rule.number;
        if let Err(why) = cards
            .journal
            .store
            .run(move |db| db.rule_undone(number, at))
            .await
        {
            warn!("an undone rule is still listed: {why}");
        }
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
