//! The settings of the HTTP side: where this machine listens, how the others
//! reach it, whom it calls, and the webhook-only mode.

use std::net::SocketAddr;
use url::Url;

use super::{SettingProblem, SettingsReader, app_secret, setting};
use crate::feishu::outbound::Outbound;
use crate::feishu::secret::Secret;
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
    pub secret: Option<Secret>,
    pub allow_unsealed: bool,
}

const MAX_PEERS: usize = 64;

impl SettingsReader<'_> {
    pub(super) fn send_mode(&mut self) -> SendMode {
        self.optional("FEISHU_SEND_MODE", |text| match text {
            "app" => Ok(SendMode::App),
            "webhook" => Ok(SendMode::Webhook),
            _ => Err(String::new()),
        })
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
                self.problems.push(SettingProblem::Missing {
                    name,
                    accepts: setting(name).accepts,
                });
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
                .optional("CALLBACK_PEERS", addresses)
                .unwrap_or_default(),
            secret: self.optional("CALLBACK_SECRET", |text| {
                let long_enough = Some(text).filter(|text| text.len() >= 16);
                app_secret(long_enough.unwrap_or_default())
            }),
            allow_unsealed: self
                .optional("CALLBACK_ALLOW_UNSEALED", |text| match text {
                    "true" => Ok(true),
                    "false" => Ok(false),
                    _ => Err(String::new()),
                })
                .unwrap_or_default(),
        }
    }
}

fn address(text: &str) -> Result<CallbackUrl, String> {
    CallbackUrl::parse(text).map_err(|why| why.to_string())
}

fn addresses(text: &str) -> Result<Vec<CallbackUrl>, String> {
    let all: Result<Vec<_>, _> = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(address)
        .collect();
    let all = all?;
    if all.len() > MAX_PEERS {
        return Err(format!("it names more than {MAX_PEERS}"));
    }
    Ok(all)
}

fn webhook_url(text: &str) -> Result<Secret, String> {
    let url = Url::parse(text).map_err(|_| String::new())?;
    Outbound::check(&url).map_err(|_| "it would be posted to unencrypted".to_owned())?;
    let id = url.path().strip_prefix("/open-apis/bot/v2/hook/");
    let fits = id.is_some_and(|id| !id.is_empty() && !id.contains('/'));
    if fits {
        Ok(Secret::new(text))
    } else {
        Err(String::new())
    }
}
