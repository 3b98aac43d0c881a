//! Takes back the rule an "always" left, from the decided card.

use tracing::warn;

use crate::approvals::outcome::{Outcome, Refusal};
use crate::approvals::request::{Ending, Operator, Reach};
use crate::claude::settings_file;
use crate::daemon::cards::courier::{self, AFTER_REPLY, Face};
use crate::daemon::deciding::ruling::Ruling;
use crate::daemon::deciding::verdict;
use crate::daemon::parts::Parts;
use crate::gateway::seal::Sealed;
use crate::ids::{MessageId, RequestId};
use crate::store::ListedRule;
use crate::text::Text;

pub(crate) async fn undo(
    parts: &Parts,
    id: &RequestId,
    _: Sealed,
    by: &Operator,
    message: Option<&MessageId>,
) -> Ruling {
    let request = id.clone();
    let listed = parts
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
    if let Err(why) = remove(parts, rules).await {
        return Refusal::NotUndone(why).into();
    }
    let (request, at) = (id.clone(), parts.now());
    if let Err(why) = parts
        .journal
        .store
        .run(move |db| db.mark_undone(&request, at))
        .await
    {
        warn!("an undo was not written down: {why}");
    }
    let outcome = Outcome::Undone;
    crate::daemon::known::journal::happened(&parts.journal, &outcome, id, by.id.as_str()).await;
    let face = redraw(parts, id);
    // The decision's own edit may still be on its way; this one comes after it.
    if let (Some(message), Some(face)) = (message, &face) {
        courier::queue_edit(parts, message.clone(), face.clone(), 2 * AFTER_REPLY).await;
    }
    Ruling::with(outcome, face)
}

/// Removes the rules from the project's settings and strikes them off the list.
pub(crate) async fn remove(parts: &Parts, rules: Vec<ListedRule>) -> Result<(), Text> {
    let at = parts.now();
    for rule in rules {
        let (project, text) = (rule.left.project.clone(), rule.left.rule.clone());
        tokio::task::spawn_blocking(move || settings_file::remove_allow_rule(&project, &text))
            .await
            .map_err(|_| verdict::UNREACHABLE)?
            .map_err(|why| why.text())?;
        let number = rule.number;
        if let Err(why) = parts
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

fn redraw(parts: &Parts, id: &RequestId) -> Option<Face> {
    courier::retold(parts, id, |ending| {
        if let Ending::Allowed {
            reach: Reach::Always { undone, .. },
            ..
        } = ending
        {
            *undone = true;
        }
    })
}
