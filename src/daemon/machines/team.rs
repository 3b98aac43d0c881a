//! Whether this machine is a member of a team, for the parts that ask.

use serde_json::Value;
#[cfg(feature = "team")]
use std::sync::Arc;

use crate::bus::membership::Membership;
use crate::bus::subjects::MachinePlace;
use crate::config::Config;
#[cfg(feature = "team")]
use crate::daemon::machines::member::Member;
use crate::feishu::api::Api;
use crate::feishu::clock::TheirClock;
use crate::store::Store;

/// Empty on a machine that holds the app's secret itself.
#[derive(Clone, Default)]
pub(crate) struct Team {
    #[cfg(feature = "team")]
    member: Option<Arc<Member>>,
    #[cfg(not(feature = "team"))]
    nobody: Option<std::convert::Infallible>,
}

#[cfg(feature = "team")]
impl Team {
    pub(crate) fn of(
        membership: Option<Membership>,
        config: &Config,
        their_clock: &TheirClock,
        store: &Store,
    ) -> Self {
        let member = membership.map(|membership| {
            let (clock, store) = (their_clock.clone(), store.clone());
            Member::new(membership, config, clock, store)
        });
        Self { member }
    }

    pub(crate) fn member(&self) -> Option<&Arc<Member>> {
        self.member.as_ref()
    }

    /// How the bus stands, for `status`.
    pub(crate) fn report(&self) -> Option<Value> {
        self.member().map(|member| member.report())
    }

    /// Learns what somebody is called.
    pub(crate) fn is_called(&self, who: &str, name: &str) {
        if let Some(member) = self.member() {
            member.is_called(who, name);
        }
    }

    pub(crate) fn place(&self) -> Option<&MachinePlace> {
        self.member().map(|member| &member.place)
    }

    /// Feishu's API by way of the team's gateways.
    pub(crate) fn api(&self) -> Option<Api> {
        self.member().map(Member::api)
    }
}

#[cfg(not(feature = "team"))]
impl Team {
    pub(crate) fn member(&self) -> Option<std::convert::Infallible> {
        self.nobody
    }

    pub(crate) fn of(_: Option<Membership>, _: &Config, _: &TheirClock, _: &Store) -> Self {
        Self::default()
    }

    pub(crate) fn report(&self) -> Option<Value> {
        self.nobody.map(|nobody| match nobody {})
    }

    pub(crate) fn is_called(&self, _: &str, _: &str) {
        if let Some(nobody) = self.nobody {
            match nobody {}
        }
    }

    pub(crate) fn place(&self) -> Option<&MachinePlace> {
        self.nobody.map(|nobody| match nobody {})
    }

    pub(crate) fn api(&self) -> Option<Api> {
        self.nobody.map(|nobody| match nobody {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::daemon::cards::bench::config;

    fn joined(membership: Option<Membership>) -> Team {
        let clock = TheirClock::new(Clock::start());
        Team::of(
            membership,
            &config(&[]),
            &clock,
            &Store::in_memory().unwrap(),
        )
    }

    #[test]
    fn a_machine_that_never_joined_has_no_place_no_report_and_no_way_by_gateways() {
        for team in [Team::default(), joined(None)] {
            assert!(team.member().is_none());
            assert_eq!((team.place(), team.report()), (None, None));
            assert!(team.api().is_none());
        }
    }

    #[cfg(feature = "team")]
    #[tokio::test]
    async fn a_machine_that_joined_is_where_its_pass_says_and_calls_feishu_by_gateways() {
        use crate::daemon::machines::bench::{NOWHERE, OWNER, keys, membership};
        use crate::feishu::api::exchange::ApiCall;
        use std::time::Duration;

        let membership = membership(&keys(), OWNER, 1, NOWHERE);
        let place = membership.place().clone();
        let team = joined(Some(membership));
        assert_eq!(team.place(), Some(&place));
        assert_eq!(team.report().unwrap()["url"], NOWHERE);
        // Nobody has told the time, so no call leaves this machine.
        let bot = ApiCall::get(&["open-apis", "bot", "v3", "info"]);
        let asked = team.api().unwrap();
        let asked = asked.reply(&bot, Duration::from_secs(9), 100).await;
        let why = asked.unwrap_err().to_string();
        assert!(why.contains("a gateway of the team"), "{why}");
    }
}
