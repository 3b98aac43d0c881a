//! Who may decide and who steers sessions, by any id they are listed under.

use crate::approvals::request::{Operator, Request};
use crate::feishu::event::Person;
use crate::ids::UserId;
use crate::sessions::questions::script::Addressee;

#[derive(Debug, Default)]
pub(crate) struct People {
    owner: Option<UserId>,
    approvers: Vec<UserId>,
}

impl People {
    pub(crate) fn new(owner: Option<UserId>, approvers: Vec<UserId>) -> Self {
        Self { owner, approvers }
    }

    /// The person as an operator if they may decide.
    pub(crate) fn approver(&self, person: &Person) -> Option<Operator> {
        let mut listed = self.owner.iter().chain(&self.approvers);
        let listed = listed.any(|id| person.is(id));
        listed.then(|| person.id().map(|id| Operator { id }))?
    }

    /// The owner, who alone steers sessions.
    pub(crate) fn owner(&self, person: &Person) -> Option<Operator> {
        let owner = self.owner.as_ref()?;
        person.is(owner).then(|| Operator { id: owner.clone() })
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
}
