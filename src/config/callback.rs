//! The settings of the HTTP side: where this machine listens, how the others
//! reach it, whom it calls, and the webhook-only mode.

use std::net::SocketAddr;
use url::Url;

use super::{SettingProblem, SettingsReader, app_secret, listed, one_of, truth};
use crate::feishu::outbound::Outbound;
use crate::feishu::secret::Secret;
use crate::gateway::forward::PeerToken;
use crate::gateway::route::CallbackUrl;

/// How cards reach Feishu and decisions come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SendMode {
    /// A self-built app and its long connection.
    #[default]
    App,
    /// A group's custom bot, and pages this machine serves.
    Webhook,
}

/// A group's custom bot.
#[derive(Debug, Clone)]
pub struct CustomBotSettings {
    /// Whoever has it can write into the group.
    pub url: Secret,
    pub secret: Option<Secret>,
}

#[derive(Debug, Clone, Default)]
pub struct Callback {
    pub listen: Option<SocketAddr>,
    pub url: Option<CallbackUrl>,
    pub peers: Vec<CallbackUrl>,
    pub peer_tokens: Vec<PeerToken>,
    pub secret: Option<Secret>,
    pub allow_unsealed: bool,
}

const MAX_PEERS: usize = 64;

impl SettingsReader<'_> {
    pub(super) fn send_mode(&mut self) -> SendMode {
        let modes = [("app", SendMode::App), ("webhook", SendMode::Webhook)];
        self.optional("FEISHU_SEND_MODE", |text| one_of(text, &modes))
            .unwrap_or_default()
    }

    /// Everything the webhook mode can't do without is missed at once.
    pub(super) fn webhook(&mut self) -> Option<CustomBotSettings> {
        let url = self.optional("FEISHU_WEBHOOK_URL", webhook_url);
        let secret = self.optional("FEISHU_WEBHOOK_SECRET", app_secret);
        if !matches!(self.sources.get("FEISHU_SEND_MODE"), Some(("webhook", _))) {
            return None;
        }
        for name in [
            "FEISHU_WEBHOOK_URL",
            "CALLBACK_LISTEN",
            "CALLBACK_SERVER_URL",
        ] {
            if self.sources.get(name).is_none() {
                self.problems.push(SettingProblem::missing(name));
            }
        }
        Some(CustomBotSettings { url: url?, secret })
    }

    pub(super) fn callback(&mut self) -> Callback {
        Callback {
            listen: self.optional("CALLBACK_LISTEN", |text| {
                text.parse().map_err(|_| String::new())
            }),
            url: self.optional("CALLBACK_SERVER_URL", address),
            peers: self
                .optional("CALLBACK_PEERS", |text| listed(text, MAX_PEERS, address))
                .unwrap_or_default(),
            peer_tokens: self
                .optional("CALLBACK_PEER_TOKENS", |text| {
                    listed(text, MAX_PEERS, peer_token)
                })
                .unwrap_or_default(),
            secret: self.optional("CALLBACK_SECRET", |text| {
                let long_enough = Some(text).filter(|text| text.len() >= 16);
                app_secret(long_enough.unwrap_or_default())
            }),
            allow_unsealed: self
                .optional("CALLBACK_ALLOW_UNSEALED", truth)
                .unwrap_or_default(),
        }
    }
}

fn address(text: &str) -> Result<CallbackUrl, String> {
    CallbackUrl::parse(text).map_err(|why| why.to_string())
}

/// The problem never names the token.
fn peer_token(text: &str) -> Result<PeerToken, String> {
    let (peer, token) = text.split_once('=').ok_or_else(String::new)?;
    Ok(PeerToken {
        peer: CallbackUrl::parse(peer.trim()).map_err(|_| String::new())?,
        token: app_secret(token.trim()).map_err(|_| String::new())?,
    })
}

fn webhook_url(text: &str) -> Result<Secret, String> {
    let url = Url::parse(text).map_err(|_| String::new())?;
    Outbound::check(&url).map_err(|_| "it would be posted to unencrypted".to_owned())?;
    let id = url.path().strip_prefix("/open-apis/bot/v2/hook/");
    let fits = id.is_some_and(|id| !id.is_empty() && !id.contains('/'));
    fits.then(|| Secret::new(text)).ok_or_else(String::new)
}
