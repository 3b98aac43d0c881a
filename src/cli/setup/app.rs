//! Gets an app: by one scan, or by id and secret from the console.

use super::Setup;
use super::page::SetupPage;
use super::plan::SetupStep;
use super::steps::SetupApp;
use super::waiting::watched;
use crate::cli::output::qr;
use crate::cli::wording::Words;
use crate::cli::{Failure, demo, output};
use crate::feishu::domain::Domain;
use crate::feishu::registration::{AppOffer, RegistrationError};
use crate::feishu::secret::Secret;

/// The name of a new app, where the person may change it.
const APP_NAME: &str = "nod";

/// Tells what to do in the developer console.
pub(super) fn tell_console(words: Words, domain: &Domain) {
    for line in words.console_steps(domain.base().as_str()) {
        output::say(&line);
    }
}

impl Setup<'_> {
    /// Asks for whatever the flags did not give, and says whether a scan brought
    /// it: its secret is shown nowhere else then.
    pub(super) async fn obtain_app(&mut self) -> Result<bool, Failure> {
        let words = self.words;
        if self.terminal.is_none() && !self.yes {
            return Err(Failure::new(words.no_terminal()).hinted(words.flags_hint(self.yes)));
        }
        let domain = self.platform()?;
        if self.agrees(words.make_by_scan())? && self.scan(&domain).await? {
            return Ok(true);
        }
        tell_console(words, &domain);
        self.type_app(domain)?;
        Ok(false)
    }

    /// Asks for id and secret; whether they are right is for Feishu to say.
    pub(super) fn type_app(&mut self, domain: Domain) -> Result<(), Failure> {
        let words = self.words;
        loop {
            let id = self.ask(words.ask_app_id())?.trim().to_owned();
            if !crate::config::is_app_id(&id) {
                output::say(&words.bad_value("App ID"));
                continue;
            }
            let secret = self.ask_secret(words.ask_app_secret())?.trim().to_owned();
            if !crate::config::is_app_secret(&secret) {
                output::say(&words.bad_value("App Secret"));
                continue;
            }
            self.app = Some(SetupApp {
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
            let offer = match registration.begin(APP_NAME).await {
                Ok(offer) => offer,
                Err(error) => {
                    output::problem(error.text().get(words.0));
                    return Ok(false);
                }
            };
            let shown = self.show_code(&offer).await;
            let waiting = registration.wait(&offer);
            let left = |left| words.waiting_for_scan(left);
            let scanned = watched(waiting, offer.life, left).await;
            drop(shown);
            match scanned {
                Ok(made) => {
                    self.ticked(SetupStep::App, &words.app_made(&made.app_id));
                    self.app = Some(SetupApp {
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

    /// Draws the code where all of it can be seen at once, and serves a page
    /// with it elsewhere.
    async fn show_code(&self, offer: &AppOffer) -> Option<(SetupPage, tempfile::TempDir)> {
        let words = self.words;
        let link = offer.link.as_str();
        let colour = output::is_terminal() && self.sources.get("NO_COLOR").is_none();
        let drawn = qr::drawn(link, colour).unwrap_or_default();
        // The heading, the link's own lines and the one that waits.
        let needed = drawn.len() + 2 + link.len().div_ceil(80);
        let fits = output::rows().is_none_or(|rows| rows >= needed) && !drawn.is_empty();
        let minutes = offer.life.as_secs() / 60;
        if fits && !self.browser {
            output::say(&words.scan_this(minutes));
            for line in drawn {
                output::line(&line);
            }
            output::line(link);
            return None;
        }
        let page = SetupPage::open(link, words).await;
        let dir = tempfile::Builder::new().prefix("nod-scan-").tempdir();
        let (Ok(page), Ok(dir)) = (page, dir) else {
            output::say(&words.scan_this(minutes));
            output::line(link);
            return None;
        };
        output::say(&words.scan_on_page(&page.address, self.browser, minutes));
        output::line(link);
        if self.browser {
            demo::open(&dir.path().join("scan.html"), &page.address);
        }
        Some((page, dir))
    }
}
