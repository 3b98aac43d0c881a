//! Gets an app: by one scan, or by id and secret from the console.

use super::super::{Failure, output, qr};
use super::Setup;
use super::steps::App;
use crate::feishu::domain::Domain;
use crate::feishu::registration::{Purpose, RegistrationError};
use crate::feishu::secret::Secret;

/// The name of a new app, where the person may change it.
const APP_NAME: &str = "nod";

impl Setup<'_> {
    /// Asks for whatever the flags did not give.
    pub(super) async fn obtain_app(&mut self) -> Result<(), Failure> {
        let words = self.words;
        if self.terminal.is_none() && !self.yes {
            return Err(Failure {
                hint: Some(words.flags_hint(self.yes).to_owned()),
                ..Failure::new(1, words.no_terminal())
            });
        }
        let domain = self.platform()?;
        if self.agrees(words.make_by_scan())? && self.scan(&domain).await? {
            return Ok(());
        }
        for line in words.console_steps(domain.base().as_str()) {
            output::line(&line);
        }
        loop {
            let id = self.ask(words.ask_app_id())?.trim().to_owned();
            if !crate::config::is_app_id(&id) {
                output::line(&words.bad_value("App ID"));
                continue;
            }
            let secret = self.ask_secret(words.ask_app_secret())?.trim().to_owned();
            if !crate::config::is_app_secret(&secret) {
                output::line(&words.bad_value("App Secret"));
                continue;
            }
            self.app = Some(App {
                domain,
                id,
                secret: Secret::new(secret),
            });
            return Ok(());
        }
    }

    fn platform(&mut self) -> Result<Domain, Failure> {
        if let Some(domain) = self.domain.clone() {
            return Ok(domain);
        }
        if self.yes {
            return Ok(Domain::Feishu);
        }
        loop {
            match self.ask(self.words.which_platform())?.trim() {
                "" | "1" => return Ok(Domain::Feishu),
                "2" => return Ok(Domain::Lark),
                _ => {}
            }
        }
    }

    /// Whether a scan made an app; if not, the console is left.
    async fn scan(&mut self, domain: &Domain) -> Result<bool, Failure> {
        let words = self.words;
        let registration = self.network()?.registration(domain);
        loop {
            let offer = match registration.begin(Purpose::Create { name: APP_NAME }).await {
                Ok(offer) => offer,
                Err(error) => {
                    output::problem(error.text().get(words.0));
                    return Ok(false);
                }
            };
            output::line(&words.scan_this(offer.life.as_secs() / 60));
            let colour = output::is_terminal() && self.sources.get("NO_COLOR").is_none();
            for line in qr::drawn(offer.link.as_str(), colour).unwrap_or_default() {
                output::line(&line);
            }
            output::line(offer.link.as_str());
            match registration.wait(&offer).await {
                Ok(made) => {
                    output::line(&words.app_made(&made.app_id));
                    self.app = Some(App {
                        domain: made.domain(domain),
                        id: made.app_id,
                        secret: made.app_secret,
                    });
                    self.owner = made.owner.or(self.owner.take());
                    return Ok(true);
                }
                Err(RegistrationError::Expired)
                    if !self.yes && self.agrees(words.scan_expired())? => {}
                Err(error) => {
                    output::problem(error.text().get(words.0));
                    return Ok(false);
                }
            }
        }
    }
}
