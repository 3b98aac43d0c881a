//! The daemon as a process of the system: one at a time, hardened, and heard of by
//! the service manager.

pub(crate) mod hardening;
pub mod instance;
pub mod service_manager;
