//! Which makings of a card this Feishu has taken in an edit. The card in the
//! answer to a tap is refused where nod can't see it, so it is sent only if all
//! that it is made of was taken before; kept over restarts.

use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::debug;

use crate::cards::shape::facts;
use crate::store::Store;

/// Far more than all cards of one version are made of.
const MAX: usize = 1_024;

pub(crate) struct CardProof {
    /// The row that keeps it: one for each Feishu.
    row: String,
    taken: Mutex<BTreeSet<String>>,
}

impl CardProof {
    pub(crate) async fn restore(store: &Store, feishu: &str) -> Self {
        let row = format!("taken {feishu}");
        let of = row.clone();
        let kept = match store.run(move |db| db.meta(&of)).await {
            Ok(kept) => kept.unwrap_or_default(),
            Err(why) => {
                debug!("what Feishu has taken is not known: {why}");
                String::new()
            }
        };
        let taken = kept.lines().take(MAX).map(str::to_owned).collect();
        Self {
            row,
            taken: Mutex::new(taken),
        }
    }

    /// Whether all that this card is made of was taken before.
    pub(crate) fn covers(&self, card: &str) -> bool {
        let card: Value = match serde_json::from_str(card) {
            Ok(card) => card,
            Err(_) => return false,
        };
        facts(&card).is_subset(&self.lock())
    }

    /// Feishu took this card in an edit.
    pub(crate) fn took(&self, store: &Store, card: &str) {
        let Ok(card) = serde_json::from_str::<Value>(card) else {
            return;
        };
        let kept = {
            let mut taken = self.lock();
            let facts = facts(&card);
            if facts.is_subset(&taken) || taken.len() + facts.len() > MAX {
                return;
            }
            taken.extend(facts);
            taken.iter().cloned().collect::<Vec<_>>().join("\n")
        };
        let row = self.row.clone();
        store.later("what Feishu has taken", move |db| db.set_meta(&row, &kept));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn what_was_taken_is_known_after_a_restart_and_to_the_same_feishu_only() {
        let store = Store::in_memory().unwrap();
        let proof = CardProof::restore(&store, "https://a").await;
        let card = |tag: &str| json!({"body": {"elements": [{"tag": tag}]}}).to_string();
        assert!(!proof.covers(&card("hr")));
        assert!(!proof.covers("no card"));
        proof.took(&store, &card("hr"));
        assert!(proof.covers(&card("hr")));
        assert!(!proof.covers(&card("chart")));
        let again = CardProof::restore(&store, "https://a").await;
        assert!(again.covers(&card("hr")));
        let other = CardProof::restore(&store, "https://b").await;
        assert!(!other.covers(&card("hr")));
    }
}
