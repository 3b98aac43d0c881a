//! Whether this machine is a member of a team, for the parts that ask.

use serde_json::Value;
#[cfg(feature = "team")]
use std::sync::Arc;

#[cfg(feature = "team")]
use super::member::Member;
use crate::bus::membership::Membership;
use crate::bus::subjects::Place;
use crate::config::Config;
use crate::feishu::api::Api;
use crate::feishu::clock::TheirClock;
use crate::store::Store;

/// Empty on a machine that holds the app's secret itself.
#[derive(Clone, Default)]
pub(super) struct Team {
    #[cfg(feature = "team")]
    member: Option<Arc<Member>>,
    #[cfg(not(feature = "team"))]
    nobody: Option<std::convert::Infallible>,
}

#[cfg(feature = "team")]
impl Team {
    pub(super) fn of(
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

    pub(super) fn member(&self) -> Option<&Arc<Member>> {
        self.member.as_ref()
    }

    /// How the bus stands, for `status`.
    pub(super) fn report(&self) -> Option<Value> {
        self.member().map(|member| member.report())
    }

    pub(super) fn place(&self) -> Option<&Place> {
        self.member().map(|member| member.place())
    }

    /// Feishu's API by way of the team's gateways.
    pub(super) fn api(&self) -> Option<Api> {
        self.member().map(Member::api)
    }
}

#[cfg(not(feature = "team"))]
impl Team {
    pub(super) fn of(_: Option<Membership>, _: &Config, _: &TheirClock, _: &Store) -> Self {
        Self::default()
    }

    pub(super) fn report(&self) -> Option<Value> {
        self.nobody.map(|nobody| match nobody {})
    }

    pub(super) fn place(&self) -> Option<&Place> {
        self.nobody.map(|nobody| match nobody {})
    }

    pub(super) fn api(&self) -> Option<Api> {
        self.nobody.map(|nobody| match nobody {})
    }
}
