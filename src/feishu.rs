//! What Feishu is to us: a long connection that brings events and takes our
//! answers, and a REST API that sends and edits cards. Knows no approvals.

pub mod api;
pub mod backoff;
pub mod chunks;
pub mod clock;
pub mod connection;
pub mod custom_bot;
pub mod domain;
pub mod endpoint;
pub mod error;
pub mod event;
#[cfg(test)]
pub(crate) mod fake;
pub mod frame;
pub mod link;
pub mod messages;
pub mod outbound;
pub mod pace;
pub mod registration;
pub(crate) mod said;
pub mod secret;
pub mod token;
