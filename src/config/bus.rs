//! The settings of a team: where its bus is, this machine's pass or a
//! gateway's keys, and the chats that all machines may write to.

use std::path::{Path, PathBuf};

use super::{Problems, SendMode, SettingProblem, SettingsReader, absolute, chat, listed};
use crate::bus::membership::Membership;
use crate::bus::url::BusUrl;
use crate::files;

#[derive(Debug, Clone, Default)]
pub struct BusSettings {
    pub url: Option<BusUrl>,
    /// Where a machine's pass lies, whether it is there or not.
    pub pass: PathBuf,
    /// Whether somebody said that there is one.
    chosen: bool,
    /// Where a gateway's keys lie.
    pub keys: PathBuf,
    pub chats: Vec<String>,
    /// Calls of one kind a minute that all gateways of a team make together.
    pub rate: usize,
}

const MAX_CHATS: usize = 64;

impl SettingsReader<'_> {
    pub(super) fn bus(&mut self, state_dir: &Path) -> BusSettings {
        let url = self.optional("NOD_BUS_URL", |text| {
            BusUrl::parse(text).map_err(|why| why.to_string())
        });
        let pass = self.optional("NOD_BUS_PASS", absolute);
        let keys = self.optional("NOD_BUS_KEYS", absolute);
        let chats = self.optional("NOD_GATEWAY_CHATS", |text| {
            listed(text, MAX_CHATS, |part| Ok(chat(part)?.to_string()))
        });
        let rate = self.number("NOD_APP_RATE", 20, 1_000_000);
        BusSettings {
            url,
            chosen: pass.is_some(),
            pass: pass.unwrap_or_else(|| state_dir.join("bus.pass")),
            keys: keys.unwrap_or_else(|| state_dir.join("bus.keys")),
            chats: chats.unwrap_or_default(),
            rate: usize::try_from(rate).unwrap_or(usize::MAX),
        }
    }
}

impl super::Config {
    /// Whether a daemon has a way to Feishu: a team's pass, a webhook or an app.
    pub fn way(&self) -> Result<(), Problems> {
        if self.membership()?.is_some() || self.send_mode == SendMode::Webhook {
            return Ok(());
        }
        self.app().map(drop)
    }

    /// What makes this machine a member of a team, if anything does. A machine
    /// that has a pass must not have the app's secret: what one stolen laptop
    /// can do rests on that.
    pub fn membership(&self) -> Result<Option<Membership>, Problems> {
        use std::os::unix::fs::PermissionsExt as _;
        let file = &self.bus.pass;
        let unusable = |why: String| {
            let file = file.clone();
            Problems::from(SettingProblem::Pass { file, why })
        };
        let bytes = match files::read(file) {
            Ok(None) if !self.bus.chosen => return Ok(None),
            Ok(None) => return Err(unusable("there is no such file".to_owned())),
            Ok(Some(bytes)) => bytes,
            Err(why) => return Err(unusable(why.to_string())),
        };
        let mode = std::fs::metadata(file).map_err(|why| unusable(why.to_string()))?;
        if mode.permissions().mode() & 0o077 != 0 {
            return Err(SettingProblem::ExposedPass(file.clone()).into());
        }
        if self.app_secret.is_some() || self.webhook.is_some() {
            return Err(SettingProblem::SecretBesidePass(file.clone()).into());
        }
        let member = Membership::parse(&String::from_utf8_lossy(&bytes));
        let mut member = member.map_err(|why| unusable(why.to_string()))?;
        if let Some(url) = &self.bus.url {
            member.url = url.clone();
        }
        Ok(Some(member))
    }
}
