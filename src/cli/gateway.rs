//! `nod gateway`: runs a team's gateway, makes what it needs, and lets machines
//! in by hand.

#[cfg(feature = "team")]
mod grant;
#[cfg(feature = "team")]
mod told;

use std::path::{Path, PathBuf};

#[cfg(feature = "team")]
use self::grant::{forget, grant};
use super::wording::Words;
use super::{CommandResult, Failure, Quit, output};
use crate::bus::conf::{self, Encryption};
use crate::bus::keys::Keys;
use crate::bus::url::BusUrl;
use crate::clock;
use crate::config::Sources;
#[cfg(feature = "team")]
use crate::config::{Config, SettingProblem};
use crate::files;
#[cfg(feature = "team")]
use crate::team::{self, TeamError};

#[derive(clap::Args)]
pub(super) struct GatewayArguments {
    #[command(subcommand)]
    command: Option<GatewayCommand>,
}

#[derive(clap::Subcommand)]
enum GatewayCommand {
    /// Write the bus' configuration, and the gateway's keys and settings
    Init {
        /// Where machines reach the bus: `wss://`, `tls://`, or here `nats://`
        #[arg(long, value_name = "URL")]
        bus: String,
        /// Write into this directory
        #[arg(long, value_name = "DIR", default_value = "nod-bus")]
        dir: PathBuf,
        /// The bus' own certificate (PEM); without one it listens here only
        #[arg(long, value_name = "FILE", requires = "key")]
        cert: Option<PathBuf>,
        /// The certificate's private key (PEM)
        #[arg(long, value_name = "FILE", requires = "cert")]
        key: Option<PathBuf>,
    },
    /// Give a machine its pass, as a line for `nod join`
    Pass {
        /// Whose machine it is: an open id (`ou_…`)
        #[arg(long, value_name = "USER_ID")]
        owner: String,
        /// The machine's public key, the `U…` that `nod join` shows
        #[arg(long, value_name = "KEY")]
        key: String,
        /// For how many days it counts, 1 to 366
        #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=366))]
        days: u16,
    },
    /// Take a machine's pass back: the bus cuts it off at once
    Forget {
        /// The machine's name, its id, or its key (`U…`)
        #[arg(value_name = "MACHINE")]
        machine: String,
        /// Whose machine it is, where the name alone does not tell
        #[arg(long, value_name = "USER_ID")]
        owner: Option<String>,
    },
    /// Tell how the gateway on this machine does
    Status {
        /// As one JSON object
        #[arg(long, conflicts_with = "metrics")]
        json: bool,
        /// In Prometheus' text format
        #[arg(long)]
        metrics: bool,
    },
    /// Show who joined, was refused or forgotten
    Audit {
        /// How many of the last lines
        #[arg(long, value_name = "COUNT", default_value_t = 20)]
        last: usize,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(arguments: &GatewayArguments, sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    match &arguments.command {
        #[cfg(feature = "team")]
        None => serve(sources, words),
        Some(GatewayCommand::Init {
            bus,
            dir,
            cert,
            key,
        }) => {
            let files = cert.as_deref().zip(key.as_deref());
            init(bus, dir, files, sources, words)
        }
        #[cfg(feature = "team")]
        Some(GatewayCommand::Pass { owner, key, days }) => grant(owner, key, *days, sources, words),
        #[cfg(feature = "team")]
        Some(GatewayCommand::Forget { machine, owner }) => {
            forget(machine, owner.as_deref(), sources, words)
        }
        #[cfg(feature = "team")]
        Some(GatewayCommand::Status { json, metrics }) => {
            told::status(*json, *metrics, sources, words)
        }
        #[cfg(feature = "team")]
        Some(GatewayCommand::Audit { last, json }) => told::audit(*last, *json, sources, words),
        #[cfg(not(feature = "team"))]
        None
        | Some(
            GatewayCommand::Pass { .. }
            | GatewayCommand::Forget { .. }
            | GatewayCommand::Status { .. }
            | GatewayCommand::Audit { .. },
        ) => Err(Failure::new(words.no_team())),
    }
}

#[cfg(feature = "team")]
fn serve(sources: &Sources, words: Words) -> CommandResult {
    let config = Config::load(sources).map_err(|why| Failure::settings(words, sources, &why))?;
    let log = super::daemon::log_to_stderr(config.log);
    super::daemon::warn_of_unknown(sources);
    super::daemon::in_foreground(sources, &log, |stop, ready| async move {
        let ended = team::run(config, stop, ready).await;
        ended.map_err(|why| stopped(&why, sources, words))
    })
}

/// Whoever begins has no settings yet; they come with the bus.
#[cfg(feature = "team")]
fn stopped(why: &TeamError, sources: &Sources, words: Words) -> Failure {
    let (failure, is_unset) = match why {
        TeamError::Settings(problems) => (
            Failure::settings(words, sources, problems),
            (problems.0.iter()).any(|one| matches!(one, SettingProblem::Missing { .. })),
        ),
        TeamError::Api(_) | TeamError::Fault => (Failure::new(words.team_error(why)), false),
        _ => (
            Failure::quits(Quit::BadSettings, words.team_error(why)),
            matches!(why, TeamError::NoBus | TeamError::NoKeys { .. }),
        ),
    };
    let hint = is_unset.then(|| words.gateway_unset(sources.named.as_deref()));
    Failure {
        hint: hint.or(failure.hint),
        ..failure
    }
}

/// Writes nothing over: keys that are lost or replaced shut every machine out.
fn init(
    bus: &str,
    dir: &Path,
    files: Option<(&Path, &Path)>,
    sources: &Sources,
    words: Words,
) -> CommandResult {
    let url = BusUrl::parse(bus)
        .map_err(|why| Failure::quits(Quit::BadSettings, words.no_bus_url(bus, why)))?;
    let unwritten = |file: &Path, why: &std::io::Error| Failure::new(words.not_written(file, why));
    files::make_dirs(dir, 0o700).map_err(|why| unwritten(dir, &why))?;
    let dir = dir.canonicalize().map_err(|why| unwritten(dir, &why))?;
    let [conf, keys_file, env] =
        ["nats.conf", "bus.keys", "gateway.env"].map(|name| dir.join(name));
    for file in [&conf, &keys_file, &env] {
        if file.exists() {
            return Err(Failure::new(words.already_there(file)));
        }
    }
    let made = clock::wall_ms() / 1_000;
    let keys = Keys::make(rand::random);
    let encryption = files.map(|(certificate, key)| Encryption { certificate, key });
    let text = conf::text(&keys, &url, encryption, &dir.join("accounts"), made);
    let text = text.unwrap_or_default();
    files::replace_private(&keys_file, keys.text().expose().as_bytes())
        .map_err(|why| unwritten(&keys_file, &why))?;
    let settings = settings(&url, &keys_file, sources);
    files::replace_private(&env, settings.as_bytes()).map_err(|why| unwritten(&env, &why))?;
    files::replace(&conf, text.as_bytes(), 0o600).map_err(|why| unwritten(&conf, &why))?;
    output::say(&words.gateway_made(&conf, &keys_file, &env, files.is_none()));
    Ok(())
}

/// The gateway's own settings. An app that this machine knows is taken over.
fn settings(url: &BusUrl, keys: &Path, sources: &Sources) -> String {
    let value = |name: &str| sources.get(name).map_or("", |(value, _)| value);
    format!(
        "FEISHU_APP_ID={}\nFEISHU_APP_SECRET={}\nNOD_BUS_URL={url}\nNOD_BUS_KEYS={}\n",
        value("FEISHU_APP_ID"),
        value("FEISHU_APP_SECRET"),
        keys.display()
    )
}
