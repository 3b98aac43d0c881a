//! What the people who may decide are called, for the record and for `status`
//! only. Asked once, after the first connect, and kept; no decision rests on a
//! name.

use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::daemon::cards::courier::Cards;
use crate::daemon::machines::team::Team;
use crate::feishu::error::ApiError;
use crate::feishu::link::Phase;
use crate::ids::UserId;
use crate::store::Db;
use crate::text::escape::{Shape, visible};

/// More approvers than this have ids for names.
const MAX_PEOPLE: usize = 50;
const MAX_NAME: usize = 120;

pub(crate) async fn look(cards: Arc<Cards>, team: Team, stop: CancellationToken) {
    let asked = async {
        let kept = cards.journal.store.run(Db::names).await;
        for (id, name) in kept.unwrap_or_default() {
            team.is_called(&id, &name);
        }
        let mut link = cards.link.clone();
        let up = link.wait_for(|view| matches!(view.phase, Phase::Up { .. }));
        if up.await.is_err() {
            return;
        }
        let config = &cards.config;
        for person in config
            .owner
            .iter()
            .chain(&config.approvers)
            .take(MAX_PEOPLE)
        {
            if !learn(&cards, &team, person).await {
                return;
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = asked => {}
    }
}

/// Whether it makes sense to ask after the next one.
async fn learn(cards: &Cards, team: &Team, person: &UserId) -> bool {
    let Some(messages) = cards.courier.messages() else {
        return false;
    };
    match messages.name(person).await {
        Ok(Some(name)) => {
            let id = person.as_str().to_owned();
            let mut name = visible(name.trim(), Shape::Name);
            name.truncate(name.floor_char_boundary(MAX_NAME));
            team.is_called(&id, &name);
            let store = &cards.journal.store;
            store.run(move |db| db.set_name(&id, &name)).await.is_ok()
        }
        Ok(None) => true,
        // One who can't be found hides no other; a missing scope hides all.
        Err(why) => {
            debug!("a person's name is not known: {why}");
            !matches!(why, ApiError::Setup { .. })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::bench::{APPROVER, DaemonBench, OWNER};
    use serde_json::{Value, json};

    fn named(name: &str) -> Value {
        json!({"code": 0, "data": {"user": {"name": name}}})
    }

    async fn looked(bench: &DaemonBench) -> Vec<(String, String)> {
        let (cards, stop) = (Arc::clone(&bench.cards), CancellationToken::new());
        look(cards, Team::default(), stop).await;
        let names = bench.cards.journal.store.run(Db::names).await.unwrap();
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn people_have_names_that_hide_nothing_and_end_somewhere() {
        let bench = DaemonBench::new().await;
        bench.bench.answers(named(" Ann\u{202e} "));
        bench.bench.answers(named(&"李".repeat(100)));
        let names = looked(&bench).await;
        assert_eq!(
            (names[1].0.as_str(), names[0].0.as_str()),
            (OWNER, APPROVER)
        );
        assert!(names[1].1.starts_with("Ann") && !names[1].1.contains('\u{202e}'));
        assert_eq!(names[0].1, "李".repeat(MAX_NAME / 3));
    }

    #[tokio::test]
    async fn one_who_is_not_found_hides_no_other() {
        let bench = DaemonBench::new().await;
        bench.bench.answers(json!({"code": 0, "data": {}}));
        bench.bench.answers(named("Bea"));
        let names = looked(&bench).await;
        assert_eq!(names, [(APPROVER.to_owned(), "Bea".to_owned())]);
    }

    #[tokio::test]
    async fn a_missing_scope_is_asked_once() {
        let bench = DaemonBench::new().await;
        bench
            .bench
            .answers(json!({"code": 99_991_672, "msg": "no scope"}));
        assert!(looked(&bench).await.is_empty());
        assert_eq!(bench.bench.calls().len(), 1);
    }
}
