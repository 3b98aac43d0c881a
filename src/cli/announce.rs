//! `nod announce`: what `nod hook` leaves behind in webhook mode when no
//! daemon runs. Reads the hook's JSON on stdin and tells the group.

use std::path::PathBuf;

use super::wording::Words;
use super::{CommandResult, Failure, output};
use crate::config::{Config, Sources};
use crate::daemon::no_daemon;
use crate::hook::wire::MAX_REQUEST;

#[derive(clap::Args)]
pub(super) struct AnnounceArguments {
    /// nod's own settings file, as the hook knows it
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub(super) fn run(arguments: &AnnounceArguments) -> CommandResult {
    // A hook's child: a repository must not choose where its requests are
    // posted.
    let sources = Sources::for_hook(&arguments.config);
    let words = Words(sources.lang());
    let config = Config::load(&sources).map_err(|why| Failure::settings(words, &sources, &why))?;
    let raw = output::read_stdin(MAX_REQUEST).map_err(|why| Failure::new(words.no_input(&why)))?;
    super::runtime(1)?
        .block_on(no_daemon::announce(&config, &raw))
        .map_err(Failure::new)
}
