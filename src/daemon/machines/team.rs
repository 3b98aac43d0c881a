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

    pub(crate) fn place(&self) -> Option<&MachinePlace> {
        self.member().map(|member| member.place())
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

    pub(crate) fn place(&self) -> Option<&MachinePlace> {
        self.nobody.map(|nobody| match nobody {})
    }

    pub(crate) fn api(&self) -> Option<Api> {
        self.nobody.map(|nobody| match nobody {})
    }
}
