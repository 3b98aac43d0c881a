//! `nod gateway status` and `audit`: how the gateway does, and whom it let in or
//! refused.

use crate::cli::audit::local;
use crate::cli::wording::Words;
use crate::cli::{CommandResult, Failure, output};
use crate::config::{Config, Sources};
use crate::team::{audit as record, status as state};

pub(super) fn status(json: bool, metrics: bool, sources: &Sources, words: Words) -> CommandResult {
    let (config, _) = Config::read(sources);
    let report = state::last(&config.state_dir);
    let report = report.ok_or_else(|| Failure::new(words.no_gateway_here()))?;
    if metrics {
        output::text(&state::metrics(&report));
    } else if json {
        output::line(&report.to_string());
    } else {
        output::say(&words.gateway_status(&report));
    }
    Ok(())
}

pub(super) fn audit(most: usize, json: bool, sources: &Sources, words: Words) -> CommandResult {
    let (config, _) = Config::read(sources);
    let file = config.state_dir.join(record::FILE);
    let all = record::last(&config.state_dir, most);
    let all = all.map_err(|why| Failure::new(words.not_read(&file, &why)))?;
    if all.is_empty() && !json {
        output::say(words.nothing_recorded());
    }
    for entry in all {
        if json {
            output::line(&serde_json::to_string(&entry).unwrap_or_default());
        } else {
            let at = local(entry.at, "%Y-%m-%d %H:%M:%S");
            output::line(&format!("{at}  {}", words.recorded(&entry)));
        }
    }
    Ok(())
}
