//! The links on the cards of a custom bot, which open pages of this machine.

use serde_json::json;

use crate::cards::Action;
use crate::cards::linked::LINKED;
use crate::feishu::secret::Secret;
use crate::gateway::route::CallbackUrl;
use crate::gateway::seal::{self, SealPurpose, Sealed, Sealer};
use crate::gateway::tickets::PressTickets;
use crate::ids::RequestId;

/// Makes links and knows its own again.
pub(crate) struct PageLinks {
    base: CallbackUrl,
    sealer: Sealer,
    pub(crate) tickets: PressTickets,
}

impl PageLinks {
    pub(crate) fn new(base: CallbackUrl, secret: &Secret) -> Self {
        Self {
            base,
            sealer: Sealer::new(secret, SealPurpose::Link),
            tickets: PressTickets::default(),
        }
    }

    fn token(&self, request: &RequestId, action: Action) -> String {
        self.sealer.tag(&claim(request, action))
    }

    pub(crate) fn link(&self, request: &RequestId, action: Action) -> String {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("id", request.as_str())
            .append_pair("t", &self.token(request, action))
            .finish();
        format!("{}/{}?{query}", self.base, action.as_str())
    }

    /// The request a link of ours is for.
    pub(crate) fn open(
        &self,
        id: &str,
        action: Action,
        token: &str,
    ) -> Option<(RequestId, Sealed)> {
        let request = RequestId::parse(id).ok()?;
        let mut claim = claim(&request, action);
        claim[seal::FIELD] = json!(token);
        let proof = self.sealer.proof(&claim)?;
        LINKED.contains(&action).then_some((request, proof))
    }
}

fn claim(request: &RequestId, action: Action) -> serde_json::Value {
    json!({"request_id": request.as_str(), "action": action.as_str()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(secret: &str) -> PageLinks {
        let base = CallbackUrl::parse("https://ann.example:8443").unwrap();
        PageLinks::new(base, &Secret::new(secret))
    }

    fn opened(links: &PageLinks, id: &str, action: Action, token: &str) -> Option<RequestId> {
        links.open(id, action, token).map(|(request, _)| request)
    }

    fn id() -> RequestId {
        RequestId::parse("r-1").unwrap()
    }

    #[test]
    fn a_link_opens_its_own_request_and_choice_and_no_other() {
        let links = links("ours");
        let token = links.token(&id(), Action::Allow);
        let link = links.link(&id(), Action::Allow);
        assert!(
            link.starts_with("https://ann.example:8443/allow?"),
            "{link}"
        );
        assert!(link.contains(&token) && link.contains("id=r-1"), "{link}");
        assert_eq!(opened(&links, "r-1", Action::Allow, &token), Some(id()));
        assert_eq!(opened(&links, "r-2", Action::Allow, &token), None);
        assert_eq!(opened(&links, "r-1", Action::Deny, &token), None);
        assert_eq!(opened(&links, "r-1", Action::Allow, "0000"), None);
    }

    #[test]
    fn a_link_of_another_machine_opens_nothing_here() {
        let theirs = links("theirs").token(&id(), Action::Allow);
        assert_eq!(opened(&links("ours"), "r-1", Action::Allow, &theirs), None);
    }

    #[test]
    fn what_no_page_offers_is_not_opened_by_a_true_token_either() {
        let links = links("ours");
        let token = links.token(&id(), Action::Undo);
        assert_eq!(opened(&links, "r-1", Action::Undo, &token), None);
    }
}
