//! The team's bus: a NATS server where gateways and machines meet. Who is who
//! there, who may say what on which subject, what proves that nobody altered
//! it, and which of Feishu's calls a gateway makes for a machine.

#[cfg(feature = "team")]
pub mod accounts;
#[cfg(feature = "team")]
mod bridge;
pub mod conf;
pub mod errand;
#[cfg(feature = "team")]
mod frames;
pub mod keys;
#[cfg(feature = "team")]
pub mod knock;
pub mod letter;
#[cfg(feature = "team")]
pub mod line;
pub mod lobby;
pub mod membership;
pub mod nkey;
pub mod pass;
pub mod subjects;
pub mod url;
