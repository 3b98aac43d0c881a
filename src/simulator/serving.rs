//! What the local Feishu serves: discovery, the Open API, the long connection
//! and what is pushed down it, webhooks and the registration of apps.

pub(super) mod answer;
pub(super) mod console;
pub(super) mod contact;
pub(super) mod discovery;
pub(super) mod event;
pub(super) mod line;
pub(super) mod push;
pub(super) mod refusals;
pub(super) mod registration;
pub(super) mod repush;
pub(super) mod rest;
pub(super) mod shape;
pub(super) mod socket;
pub(super) mod upload;
pub(super) mod webhook;
pub(super) mod ws;
