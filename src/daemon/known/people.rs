//! Who may decide and who steers sessions, by any id they are listed under.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::approvals::request::{Operator, Request};
use crate::feishu::event::Person;
use crate::ids::UserId;
use crate::sessions::questions::script::Addressee;

#[derive(Debug, Default)]
pub(crate) struct People {
    owner: Option<UserId>,
    approvers: Vec<UserId>,
    /// The open ids of those who are listed by a user id: Feishu leaves user
    /// ids out of taps unless the app has a scope for them.
    open_ids: RwLock<HashMap<UserId, UserId>>,
}

impl People {
    pub(crate) fn new(owner: Option<UserId>, approvers: Vec<UserId>) -> Self {
        Self {
            owner,
            approvers,
            open_ids: RwLock::default(),
        }
    }

    /// Those who are listed, the owner first.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &UserId> {
        self.owner.iter().chain(&self.approvers)
    }

    /// Feishu says that this is the open id of somebody who is listed. No
    /// other id is kept.
    pub(crate) fn set_open_id(&self, listed: &UserId, open: UserId) {
        if self.listed().any(|id| id == listed) {
            let mut known = self
                .open_ids
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            known.insert(listed.clone(), open);
        }
    }

    /// The person as an operator if they may decide.
    pub(crate) fn approver(&self, person: &Person) -> Option<Operator> {
        let listed = self.listed().any(|id| self.is(person, id));
        listed.then(|| person.id().map(|id| Operator { id }))?
    }

    /// The owner, who alone steers sessions.
    pub(crate) fn owner(&self, person: &Person) -> Option<Operator> {
        let owner = self.owner.as_ref()?;
        let is_owner = self.is(person, owner);
        is_owner.then(|| Operator { id: owner.clone() })
    }

    fn is(&self, person: &Person, listed: &UserId) -> bool {
        let known = self.open_ids.read().unwrap_or_else(PoisonError::into_inner);
        person.is(listed) || known.get(listed).is_some_and(|open| person.is(open))
    }
}

/// The person a script put this question to: they may answer it, and nothing
/// else.
pub(crate) fn addressee(request: &Request, person: &Person) -> Option<Operator> {
    match request.question()?.to.as_ref()? {
        Addressee::User(id) if person.is(id) => person.id().map(|id| Operator { id }),
        Addressee::User(_) | Addressee::Chat(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cards::sample;
    use crate::sessions::questions::script;
    use serde_json::json;

    fn user(id: &str) -> UserId {
        UserId::parse(id).unwrap()
    }

    fn person(open: &str, tenant: Option<&str>) -> Person {
        Person {
            open: Some(open.to_owned()),
            tenant: tenant.map(str::to_owned),
            ..Person::default()
        }
    }

    #[test]
    fn whoever_is_listed_decides_and_the_owner_alone_steers() {
        let people = People::new(Some(user("ou_owner")), vec![user("ou_other")]);
        let (owner, other) = (person("ou_owner", None), person("ou_other", None));
        let stranger = person("ou_stranger", None);
        assert_eq!(people.approver(&owner).unwrap().id, user("ou_owner"));
        assert_eq!(people.approver(&other).unwrap().id, user("ou_other"));
        assert_eq!(people.owner(&owner).unwrap().id, user("ou_owner"));
        assert_eq!(people.owner(&other), None);
        assert_eq!(people.approver(&stranger), None);
        assert_eq!(people.owner(&stranger), None);
    }

    #[test]
    fn a_person_listed_by_another_id_is_the_same_person() {
        let people = People::new(None, vec![user("on_union")]);
        let mut both = person("ou_open", None);
        both.union = Some("on_union".to_owned());
        assert_eq!(people.approver(&both).unwrap().id, user("ou_open"));
        both.union = Some("on_another".to_owned());
        assert_eq!(people.approver(&both), None);
    }

    #[test]
    fn nobody_decides_where_nobody_is_listed_or_named() {
        let nobody = People::default();
        assert_eq!(nobody.approver(&person("ou_owner", None)), None);
        assert_eq!(nobody.owner(&person("ou_owner", None)), None);
        let people = People::new(Some(user("ou_owner")), Vec::new());
        assert_eq!(people.approver(&Person::default()), None);
    }

    #[test]
    fn a_question_is_answered_by_the_one_it_was_put_to() {
        let put_to = |to: &str| {
            let input = json!({"question": "which?", "kind": "text", "to": to});
            sample::request(script::TOOL, input)
        };
        let (ann, bob) = (person("ou_ann", None), person("ou_bob", None));
        let to_ann = put_to("ou_ann");
        assert_eq!(addressee(&to_ann, &ann).unwrap().id, user("ou_ann"));
        assert_eq!(addressee(&to_ann, &bob), None);
        assert_eq!(addressee(&put_to("oc_a_group"), &ann), None);
        assert_eq!(addressee(&sample::bash("ls"), &ann), None);
    }

    #[test]
    fn who_is_listed_by_a_user_id_counts_by_the_open_id_feishu_told() {
        let people = People::new(Some(user("e33gg")), vec![user("f44hh")]);
        let tap = person("ou_ann", None);
        assert_eq!(people.approver(&tap), None, "the tap names no user id");
        people.set_open_id(&user("e33gg"), user("ou_ann"));
        assert_eq!(people.approver(&tap).unwrap().id, user("ou_ann"));
        assert_eq!(people.owner(&tap).unwrap().id, user("e33gg"));
        people.set_open_id(&user("somebody"), user("ou_eve"));
        assert_eq!(people.approver(&person("ou_eve", None)), None);
        people.set_open_id(&user("f44hh"), user("ou_bea"));
        assert!(people.approver(&person("ou_bea", None)).is_some());
        assert_eq!(people.owner(&person("ou_bea", None)), None);
    }
}
