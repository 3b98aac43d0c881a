//! `nod join`: makes this machine a member of a team. Its key is made here and
//! never leaves. The line is the bot's answer to `/join`, with which it asks and
//! its owner taps, or an administrator's, which holds the pass.

use std::path::Path;

use super::wording::Words;
use super::{CommandResult, Failure, Quit, output};
use crate::bus::membership::{BadMembership, Grant, Membership};
use crate::bus::nkey::{KeyKind, KeyPair};
use crate::config::{Config, Sources};
use crate::files;

#[derive(clap::Args)]
pub(super) struct JoinArguments {
    /// The bot's answer to `/join`, or an administrator's line; without it, this
    /// machine's key is shown
    #[arg(value_name = "LINE")]
    line: Option<String>,
}

/// Where the key waits for its pass.
const KEY: &str = "bus.key";

pub(super) fn run(arguments: &JoinArguments, sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    let (config, _) = Config::read(sources);
    if config.state_dir.as_os_str().is_empty() {
        let problems = Config::load(sources).err();
        let problems = problems.unwrap_or(crate::config::Problems(Vec::new()));
        return Err(Failure::settings(words, sources, &problems));
    }
    if config.app_secret.is_some() {
        return Err(Failure::quits(Quit::BadSettings, words.secret_here()));
    }
    let unwritten = |file: &Path, why: &std::io::Error| Failure::new(words.not_written(file, why));
    files::make_dirs(&config.state_dir, 0o700).map_err(|why| unwritten(&config.state_dir, &why))?;
    let key_file = config.state_dir.join(KEY);
    let pass_file = &config.bus.pass;
    let key = if let Some(key) = known(&key_file, pass_file) {
        key
    } else {
        let key = KeyPair::of(KeyKind::User, rand::random());
        let seed = format!("{}\n", key.seed().expose());
        files::replace_private(&key_file, seed.as_bytes())
            .map_err(|why| unwritten(&key_file, &why))?;
        key
    };
    let Some(line) = &arguments.line else {
        output::line(&key.public().to_string());
        output::hint(words, &words.ask_for_a_pass(&key.public().to_string()));
        return Ok(());
    };
    let grant = match Grant::of_line(line) {
        Ok(grant) => grant,
        Err(_) => asked(line, &key, &config, words)?,
    };
    let public = key.public().to_string();
    let member = Membership::of(&grant, key).map_err(|why| no_member(why, &public, words))?;
    let before = files::read(pass_file).ok().flatten().unwrap_or_default();
    let before = Membership::parse(&String::from_utf8_lossy(&before)).ok();
    let again = before.is_some_and(|before| {
        let same = before.key.public() == member.key.public() && before.push == member.push;
        same && before.place() == member.place() && before.url == member.url
    });
    files::replace_private(pass_file, member.text().expose().as_bytes())
        .map_err(|why| unwritten(pass_file, &why))?;
    // The key now stands beside its pass.
    files::remove(&key_file).map_err(|why| unwritten(&key_file, &why))?;
    output::say(&words.joined(member.place(), &member.url, again));
    Ok(())
}

/// What is wrong with the line, and where a good one comes from.
fn no_member(why: BadMembership, key: &str, words: Words) -> Failure {
    Failure {
        hint: Some(words.ask_for_a_pass(key)),
        ..Failure::new(words.no_member(why))
    }
}

/// Asks with a line from the chat, and waits for its owner's tap.
#[cfg(feature = "team")]
fn asked(line: &str, key: &KeyPair, config: &Config, words: Words) -> Result<Grant, Failure> {
    use crate::bus::knock::knock;
    use crate::bus::lobby::{Invited, fingerprint};
    use crate::feishu::outbound::Outbound;
    let invited =
        Invited::of_line(line).map_err(|why| no_member(why, &key.public().to_string(), words))?;
    let outbound = Outbound::new(&config.proxies, config.ca_file.as_deref());
    let outbound = outbound.map_err(|why| Failure::new(why.text().get(words.0)))?;
    let fingerprint = fingerprint(&invited.lobby.ticket, &key.public());
    let (host, user) = (crate::daemon::machine_name(config), config.user.clone());
    let runtime = super::daemon::runtime()?;
    let granted = runtime.block_on(knock(invited, key, (&host, &user), outbound, || {
        output::say(&words.compare(&fingerprint));
    }));
    runtime.shutdown_background();
    granted.map_err(|why| Failure::new(words.not_joined(&why)))
}

#[cfg(not(feature = "team"))]
fn asked(line: &str, key: &KeyPair, _: &Config, words: Words) -> Result<Grant, Failure> {
    use crate::bus::lobby::Invited;
    let invited =
        Invited::of_line(line).map_err(|why| no_member(why, &key.public().to_string(), words));
    Err(invited.err().unwrap_or(Failure::new(words.no_team())))
}

/// The key this machine has: beside its pass, or waiting for one.
fn known(key_file: &Path, pass_file: &Path) -> Option<KeyPair> {
    let read = |file: &Path| {
        let bytes = files::read(file).ok().flatten()?;
        String::from_utf8(bytes).ok()
    };
    let waiting = read(key_file).and_then(|seed| KeyPair::parse(seed.trim(), KeyKind::User).ok());
    waiting.or_else(|| Some(Membership::parse(&read(pass_file)?).ok()?.key))
}
