//! Looks up the people who may decide, once, after the first connect: their
//! names, for the record and for `status` only, and the open id of whoever is
//! listed by a user id, which taps may not name. No decision rests on a name.

use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::daemon::cards::courier::Cards;
use crate::daemon::known::people::People;
use crate::daemon::machines::team::Team;
use crate::feishu::error::ApiError;
use crate::feishu::link::Phase;
use crate::feishu::messages::{Contact, Messages};
use crate::feishu::registration::USER_IDS;
use crate::ids::UserId;
use crate::store::Db;
use crate::text::escape::{Shape, visible};

/// More approvers than this have ids for names.
const MAX_PEOPLE: usize = 50;
const MAX_NAME: usize = 120;
/// An id that decides who may tap is asked for again this much later.
const AGAIN: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
];

pub(crate) async fn look(
    cards: Arc<Cards>,
    people: Arc<People>,
    team: Team,
    stop: CancellationToken,
) {
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
        let mut names = true;
        for person in people.listed().take(MAX_PEOPLE) {
            if names || matches!(person, UserId::Tenant(_)) {
                names = learn(&cards, &people, &team, person).await && names;
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = asked => {}
    }
}

/// Whether it makes sense to ask after the next one's name.
async fn learn(cards: &Cards, people: &People, team: &Team, person: &UserId) -> bool {
    let Some(messages) = cards.courier.messages() else {
        return false;
    };
    let found = look_up(messages, person).await;
    if let UserId::Tenant(id) = person {
        match found.as_ref().map(|found| found.open_id.clone()) {
            Ok(Some(open)) => {
                info!("the user id {id} is {open}");
                people.set_open_id(person, open);
            }
            Ok(None) => {
                warn!("taps of {id} count only with the scope {USER_IDS}: no open id is known");
            }
            Err(why) => warn!("taps of {id} count only with the scope {USER_IDS}: {why}"),
        }
    }
    match found.map(|found| found.name) {
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

/// A name may stay unknown; an open id that decides is asked for again while
/// Feishu can't be reached.
async fn look_up(messages: &Messages, person: &UserId) -> Result<Contact, ApiError> {
    let mut found = messages.contact(person).await;
    for pause in AGAIN {
        let transient = matches!(
            found,
            Err(ApiError::Network(_) | ApiError::Retry { .. } | ApiError::Crowded { .. })
        );
        if !transient || !matches!(person, UserId::Tenant(_)) {
            break;
        }
        tokio::time::sleep(pause).await;
        found = messages.contact(person).await;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::bench::{APPROVER, DaemonBench, OWNER};
    use crate::feishu::event::Person;
    use serde_json::{Value, json};

    fn named(name: &str) -> Value {
        json!({"code": 0, "data": {"user": {"name": name}}})
    }

    async fn looked(bench: &DaemonBench) -> Vec<(String, String)> {
        let (cards, stop) = (Arc::clone(&bench.cards), CancellationToken::new());
        let people = Arc::clone(&bench.taps.people);
        look(cards, people, Team::default(), stop).await;
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

    #[tokio::test]
    async fn an_owner_listed_by_a_user_id_may_tap_once_feishu_told_the_open_id() {
        let bench = DaemonBench::with(&[("FEISHU_OWNER_ID", "e33gg")]).await;
        let told = json!({"code": 0, "data": {"user": {"open_id": "ou_ann", "name": "Ann"}}});
        bench.bench.answers(told);
        bench.bench.answers(named("Bea"));
        let people = &bench.taps.people;
        let ann = Person {
            open: Some("ou_ann".to_owned()),
            ..Person::default()
        };
        assert_eq!(people.owner(&ann), None);
        looked(&bench).await;
        assert!(people.owner(&ann).is_some() && people.approver(&ann).is_some());
        let asked = &bench.bench.calls()[0].0;
        assert!(asked.ends_with("users/e33gg"), "{asked}");
    }
}
