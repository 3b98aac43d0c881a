//! `nod setup`: from nothing to a working tap, each step checked before the
//! next. Run again, it goes on where the facts say; `--uninstall` takes back
//! what it wrote.

mod agents;
mod app;
mod asking;
mod flow;
mod hooks;
mod manifest;
mod migrate;
mod owner;
mod page;
mod pairing;
mod plan;
mod preview;
mod steps;
mod takeover;
mod tap;
mod terminal;
mod trial;
mod undo;
mod waiting;

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Duration;

use self::manifest::Manifest;
use self::plan::{SetupFacts, SetupWishes};
use self::steps::{Network, SetupApp};
use super::wording::Words;
use super::wording::trouble::{NO_SUCH_FILE, NOT_A_SECRET, NOT_TEXT};
use super::{CommandResult, Failure, Quit, hook, output, service};
use crate::claude::hooks_file::{Hooks, SettingsDraft};
use crate::config::{Config, Paths, Problems, SettingOrigin, SettingProblem, Sources};
use crate::feishu::domain::Domain;
use crate::feishu::secret::Secret;
use crate::files;
use crate::ids::UserId;
use crate::text::{Text, system};

pub(super) use self::plan::SetupStep;
pub(super) use self::tap::TapError;
pub(super) use self::terminal::Terminal;

/// What every set-up finds out, so that a value that can't be used is none.
const BROUGHT: [&str; 3] = ["FEISHU_APP_ID", "FEISHU_APP_SECRET", "FEISHU_OWNER_ID"];
const MAX_SECRET: usize = 4096;

#[derive(clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one flag of the command line"
)]
pub(super) struct SetupArguments {
    /// The platform: `feishu`, `lark`, or a base URL
    #[arg(long)]
    domain: Option<String>,
    /// An app that exists already
    #[arg(long, value_name = "APP_ID")]
    app_id: Option<String>,
    /// A file that holds the app's secret
    #[arg(
        long,
        value_name = "FILE",
        requires = "app_id",
        conflicts_with = "app_secret_stdin"
    )]
    app_secret_file: Option<PathBuf>,
    /// Read the app's secret from stdin
    #[arg(long, requires = "app_id")]
    app_secret_stdin: bool,
    /// Who gets the cards and decides: an open, union or user id
    #[arg(long, value_name = "USER_ID")]
    owner: Option<String>,
    /// Take over this `.env` of claude-notify
    #[arg(long, value_name = "FILE")]
    migrate: Option<PathBuf>,
    /// Agree to every offer, except to change a permission mode you chose
    #[arg(short, long)]
    yes: bool,
    /// Leave Claude Code's permission mode as it is
    #[arg(long)]
    keep_mode: bool,
    /// Set Claude Code's permission mode to `default` if it keeps Claude Code from asking
    #[arg(long, conflicts_with = "keep_mode")]
    set_mode: bool,
    /// Show the code to scan on a page of this machine's own
    #[arg(long)]
    browser: bool,
    /// Install no service
    #[arg(long)]
    no_service: bool,
    /// Send no test card
    #[arg(long)]
    no_test_card: bool,
    /// Show what would be done and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take back everything the set-up wrote
    #[arg(long)]
    uninstall: bool,
}

impl SetupArguments {
    /// Whether every setting is looked at.
    pub(super) const fn reads_settings(&self) -> bool {
        !self.uninstall
    }
}

pub(super) fn run(arguments: &SetupArguments, all: &Sources) -> CommandResult {
    // Of a file that was named for this run only the way to Feishu is taken:
    // nothing of it may be saved.
    let sources = all.lasting();
    let words = Words(all.lang());
    let (reached, problems) = Config::read(all);
    let (config, _) = Config::read(&sources);
    let found = FoundSettings {
        words,
        sources: &sources,
        config: &config,
        reached: &reached,
    };
    if arguments.uninstall {
        Paths::load(&sources).map_err(|why| Failure::settings(words, &sources, &why))?;
        return Setup::new(arguments, &found)?.undo(arguments.dry_run);
    }
    tell_replaced(arguments, all, problems, words)?;
    let mut setup = Setup::new(arguments, &found)?;
    setup.take_flags(arguments)?;
    setup.keep_app_and_pass_apart()?;
    if arguments.dry_run {
        return setup.preview();
    }
    let runtime = super::runtime(2)?;
    // Ctrl-C ends the process as it does everywhere: what is written is written
    // whole, and the next run goes on from there.
    let outcome = runtime.block_on(setup.go());
    // A question may still stand at the terminal.
    runtime.shutdown_background();
    outcome
}

/// Names the values that can't be used and that this run brings anew; any other
/// one is for the person to correct.
fn tell_replaced(
    arguments: &SetupArguments,
    sources: &Sources,
    problems: Problems,
    words: Words,
) -> CommandResult {
    let is_brought = |problem: &SettingProblem| match problem {
        SettingProblem::Wrong { name, .. } => {
            BROUGHT.contains(name) || (*name == "FEISHU_DOMAIN" && arguments.domain.is_some())
        }
        _ => false,
    };
    let (brought, others): (Vec<_>, Vec<_>) = problems.0.into_iter().partition(is_brought);
    if !others.is_empty() {
        return Err(Failure::settings(words, sources, &Problems(others)));
    }
    let own = sources.own_file();
    for problem in brought {
        output::say(&words.problem(&problem));
        let SettingProblem::Wrong { name, .. } = problem else {
            continue;
        };
        match sources.get(name) {
            Some((_, SettingOrigin::File(file))) if Some(file) == own.as_ref() => {
                output::say(&words.replaces(name));
            }
            Some((_, origin)) => output::hint(words, &words.wins(name, origin)),
            None => {}
        }
    }
    Ok(())
}

/// What the settings say.
struct FoundSettings<'a> {
    /// In the terminal's language; what Feishu shows is in the settings'.
    words: Words,
    sources: &'a Sources,
    config: &'a Config,
    reached: &'a Config,
}

/// The set-up while it runs.
struct Setup<'a> {
    words: Words,
    sources: &'a Sources,
    config: &'a Config,
    /// How Feishu is reached in this run.
    reached: &'a Config,
    terminal: Option<Terminal>,
    yes: bool,
    set_mode: bool,
    wishes: SetupWishes,
    /// The code is wanted on a page.
    browser: bool,
    manifest: Manifest,
    /// Made when it is needed: a preview and an uninstall ask nobody.
    network: OnceCell<Network>,
    paths: Files,
    hooks: Hooks,
    /// A team's pass, where this machine has one.
    pass: Option<PathBuf>,
    /// The platform, where it is known.
    domain: Option<Domain>,
    app: Option<SetupApp>,
    owner: Option<UserId>,
    /// Settings taken over from elsewhere.
    extra: Vec<(&'static str, String)>,
    /// What only this run knows.
    seen: SetupProgress,
}

#[derive(Default)]
struct SetupProgress {
    /// The name of the bot that answered.
    bot: Option<String>,
    /// The steps that have their line.
    told: Vec<SetupStep>,
    tapped: bool,
    unproven: bool,
    /// Claude Code asked, and a tap let it go on.
    tried: bool,
    /// The saved settings that are told to be overruled.
    overruled: Vec<&'static str>,
}

struct Files {
    /// nod's own settings.
    own: PathBuf,
    /// Claude Code's user settings.
    claude: PathBuf,
    home: PathBuf,
}

impl<'a> Setup<'a> {
    fn new(arguments: &SetupArguments, found: &FoundSettings<'a>) -> Result<Self, Failure> {
        let (words, sources, config) = (found.words, found.sources, found.config);
        let home = sources.home.clone();
        let no_home = || Failure::quits(Quit::BadSettings, words.problem(&SettingProblem::NoHome));
        let home = home.ok_or_else(no_home)?;
        let program =
            std::env::current_exe().map_err(|why| Failure::new(words.nod_not_found(&why)))?;
        let own = sources.own_file().ok_or_else(no_home)?;
        let member = if arguments.uninstall {
            None
        } else {
            let member = config.membership();
            member.map_err(|why| Failure::settings(words, sources, &why))?
        };
        Ok(Self {
            words,
            sources,
            config,
            reached: found.reached,
            terminal: if arguments.yes {
                None
            } else {
                Terminal::open()
            },
            yes: arguments.yes,
            set_mode: arguments.set_mode,
            wishes: SetupWishes {
                test_card: !arguments.no_test_card,
                hooks: true,
                mode: !arguments.keep_mode,
                service: !arguments.no_service,
                trial: true,
            },
            browser: arguments.browser,
            manifest: Manifest::open(&config.state_dir)
                .map_err(|why| Failure::new(words.no_record(&why)))?,
            network: OnceCell::new(),
            pass: member.map(|_| config.bus.pass.clone()),
            hooks: hook::wanted(&program, &own, config, config.request_timeout)
                .map_err(|error| Failure::new(words.hooks_error(&error)))?,
            paths: Files {
                own,
                claude: sources.claude_settings().ok_or_else(no_home)?,
                home,
            },
            domain: sources.get("FEISHU_DOMAIN").map(|_| config.domain.clone()),
            app: SetupApp::of(config),
            owner: config.owner.clone(),
            extra: Vec::new(),
            seen: SetupProgress::default(),
        })
    }

    fn network(&self) -> Result<&Network, Failure> {
        if let Some(network) = self.network.get() {
            return Ok(network);
        }
        let network = Network::new(self.reached).map_err(|why| Failure::told(why.text()))?;
        Ok(self.network.get_or_init(|| network))
    }

    fn take_flags(&mut self, arguments: &SetupArguments) -> Result<(), Failure> {
        let words = self.words;
        let bad = |name: &str, why: &dyn std::fmt::Display| {
            Failure::quits(Quit::WrongLine, words.bad_flag(name, why))
        };
        if let Some(text) = &arguments.domain {
            let domain = Domain::parse(text).map_err(|why| bad("--domain", &why))?;
            if let Some(app) = &mut self.app {
                app.domain = domain.clone();
            }
            self.domain = Some(domain);
        }
        if let Some(text) = &arguments.owner {
            let owner = UserId::parse(text).map_err(|why| bad("--owner", &why))?;
            self.owner = Some(owner);
        }
        if let Some(id) = &arguments.app_id {
            if !crate::config::is_app_id(id) {
                return Err(bad(
                    "--app-id",
                    &"it is not `cli_` and 8 to 64 letters or digits",
                ));
            }
            let secret = self.given_secret(arguments)?;
            let domain = self.domain.clone().unwrap_or_default();
            if self.app.as_ref().is_some_and(|known| known.id != *id) && arguments.owner.is_none() {
                // An open id is another one for every app.
                self.owner = None;
            }
            self.app = Some(SetupApp {
                domain,
                id: id.clone(),
                secret,
            });
        }
        self.take_over(arguments.migrate.as_deref())
    }

    const fn is_member(&self) -> bool {
        self.pass.is_some()
    }

    /// What one stolen laptop can do rests on that.
    fn keep_app_and_pass_apart(&self) -> CommandResult {
        let (Some(pass), Some(_)) = (&self.pass, &self.app) else {
            return Ok(());
        };
        let both = Problems(vec![SettingProblem::SecretBesidePass(pass.clone())]);
        Err(Failure::settings(self.words, self.sources, &both))
    }

    fn given_secret(&mut self, arguments: &SetupArguments) -> Result<Secret, Failure> {
        let words = self.words;
        let file = arguments.app_secret_file.as_deref();
        let fail = |why: &Text| Failure::quits(Quit::WrongLine, words.no_secret(file, why));
        let bytes = if let Some(file) = file {
            files::read(file)
                .map_err(|error| fail(&system::io(&error)))?
                .ok_or_else(|| fail(&NO_SUCH_FILE))?
        } else if arguments.app_secret_stdin {
            output::read_stdin(MAX_SECRET).map_err(|error| fail(&system::io(&error)))?
        } else {
            self.ask_secret(self.words.ask_app_secret())?.into_bytes()
        };
        let text = String::from_utf8(bytes).map_err(|_| fail(&NOT_TEXT))?;
        let text = text.trim();
        if crate::config::is_app_secret(text) {
            Ok(Secret::new(text))
        } else {
            Err(fail(&NOT_A_SECRET))
        }
    }

    /// What stands where, as of now.
    fn facts(&self) -> SetupFacts {
        let draft = SettingsDraft::open(&self.paths.claude).ok();
        let installed = draft.as_ref().is_some_and(|draft| {
            let mut wanted = draft.clone();
            wanted.install(&self.hooks).is_ok() && !wanted.is_changed()
        });
        let manager = service::ServiceManager::find().ok();
        let places = service::places(self.sources, &self.config.state_dir);
        SetupFacts {
            is_member: self.is_member(),
            has_app: self.app.is_some(),
            app_works: self.seen.bot.is_some(),
            has_owner: self.owner.is_some(),
            saved: self.is_saved(),
            tapped: self.seen.tapped,
            hooks_installed: installed,
            claude_asks: draft.is_some_and(|draft| {
                matches!(draft.asking(), Ok(crate::claude::hooks_file::AskMode::Asks))
            }),
            service_installed: match (&manager, &places) {
                (Some(manager), Some(places)) => manager.kind.is_installed(places),
                _ => false,
            },
            daemon_runs: std::os::unix::net::UnixStream::connect(&self.config.sockets.own).is_ok(),
            can_serve: manager.is_some(),
            can_ask: self.terminal.is_some(),
            has_claude: self.claude().is_some(),
            tried: self.seen.tried,
        }
    }

    /// The settings as they shall stand in nod's own file.
    fn values(&self) -> Vec<(&'static str, String)> {
        let mut values = self.extra.clone();
        if let Some(app) = &self.app {
            values.push(("FEISHU_APP_ID", app.id.clone()));
            values.push(("FEISHU_APP_SECRET", app.secret.expose().to_owned()));
            let domain = match &app.domain {
                Domain::Feishu => "feishu".to_owned(),
                Domain::Lark => "lark".to_owned(),
                Domain::Other(url) => url.as_str().trim_end_matches('/').to_owned(),
            };
            values.push(("FEISHU_DOMAIN", domain));
        }
        if let Some(owner) = &self.owner {
            values.push(("FEISHU_OWNER_ID", owner.to_string()));
        }
        // Cards and hooks shall speak the language this set-up speaks.
        if let Some((lang, SettingOrigin::Environment)) = self.sources.get("NOD_LANG") {
            values.push(("NOD_LANG", lang.to_owned()));
        }
        values
    }

    fn is_saved(&self) -> bool {
        let Ok(Some(bytes)) = files::read(&self.paths.own) else {
            return false;
        };
        let text = String::from_utf8_lossy(&bytes);
        crate::config::parse_env(&text).is_ok_and(|found| {
            self.values()
                .iter()
                .all(|(name, value)| found.get(*name) == Some(value))
        })
    }
}

/// Sends the owner a test card and waits `limit` for the tap, over a
/// connection of its own.
pub(super) async fn prove_tap(
    config: &Config,
    owner: &UserId,
    words: Words,
    limit: Duration,
    sent: impl FnOnce(),
) -> Result<Duration, TapError> {
    let app = SetupApp::of(config).ok_or(TapError::Silence)?;
    let network = Network::new(config).map_err(|error| TapError::Api(error.into()))?;
    tap::prove(&network, &app, owner, words, limit, sent).await
}
