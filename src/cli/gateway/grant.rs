//! `nod gateway pass` and `forget`: a machine's pass, given as a line for
//! `nod join`, and taken back.

use super::stopped;
use crate::bus::membership::Grant;
use crate::bus::nkey::{KeyKind, PublicKey};
use crate::bus::pass::{self, Span};
use crate::bus::subjects::{MachinePlace, Owner};
use crate::cli::wording::Words;
use crate::cli::{CommandResult, Failure, Quit, output};
use crate::clock;
use crate::config::{Config, Sources};
use crate::team::audit::{self, TeamAuditEntry, TeamEvent};
use crate::team::forget::ForgetError;
use crate::team::{self, TeamError};

const DAY: i64 = 24 * 3_600;

pub(super) fn grant(
    owner: &str,
    key: &str,
    days: u16,
    sources: &Sources,
    words: Words,
) -> CommandResult {
    let owner = Owner::parse(owner)
        .ok_or_else(|| Failure::quits(Quit::WrongLine, words.no_owner(owner)))?;
    let key = PublicKey::parse(key, KeyKind::User)
        .map_err(|why| Failure::quits(Quit::WrongLine, words.no_key(why)))?;
    let config = Config::load(sources).map_err(|why| Failure::settings(words, sources, &why))?;
    let refused = |why: TeamError| stopped(&why, sources, words);
    let keys = team::keys(&config.bus.keys).map_err(refused)?;
    let url = team::bus_url(&config).map_err(refused)?;
    let (app_id, _) = config.app().map_err(|why| refused(why.into()))?;
    let made = clock::wall_ms() / 1_000;
    let span = Span {
        made,
        until: made + i64::from(days) * DAY,
    };
    let grant = Grant {
        url: url.to_string(),
        pass: pass::machine(&keys.machines, &keys.account, &owner, &key, span),
        push: vec![keys.push.public().to_string()],
        app_id: app_id.to_owned(),
    };
    // Who was let in by hand is as well worth knowing as who asked.
    let place = MachinePlace::of(owner, &key);
    let entry = TeamAuditEntry {
        at: clock::wall_ms(),
        what: TeamEvent::Granted,
        owner: Some(place.owner.to_string()),
        machine: Some(place.machine.to_string()),
        why: None,
    };
    audit::write(&config.state_dir, &entry).map_err(|why| {
        let file = config.state_dir.join(audit::FILE);
        Failure::new(words.not_written(&file, &why))
    })?;
    output::line(&grant.line());
    Ok(())
}

pub(super) fn forget(
    name: &str,
    owner: Option<&str>,
    sources: &Sources,
    words: Words,
) -> CommandResult {
    let owner = owner
        .map(|text| {
            let owner = Owner::parse(text);
            owner.ok_or_else(|| Failure::quits(Quit::WrongLine, words.no_owner(text)))
        })
        .transpose()?;
    let config = Config::load(sources).map_err(|why| Failure::settings(words, sources, &why))?;
    let runtime = crate::cli::daemon::runtime()?;
    let forgotten = runtime.block_on(team::forget::by_name(&config, name, owner.as_ref()));
    let (place, cut_off) = forgotten.map_err(|why| match &why {
        ForgetError::Team(why) => stopped(why, sources, words),
        _ => Failure::new(words.not_forgotten(&why)),
    })?;
    output::say(&words.forgotten(&place, cut_off));
    Ok(())
}
