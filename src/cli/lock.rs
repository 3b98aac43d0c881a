//! `nod lock` and `nod unlock`: whether a tap in Feishu may allow anything.

use super::wording::Words;
use super::{CommandResult, Failure, output, status};
use crate::config::{Paths, Sources};
use crate::hook::wire::DaemonOrder;
use crate::wording::{LOCKED, UNLOCKED};

pub(super) fn run(order: DaemonOrder, sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    let paths = Paths::load(sources).map_err(|why| Failure::settings(words, sources, &why))?;
    let locked = order == DaemonOrder::Lock;
    let report = status::order(sources, &paths.sockets.own, order, words)?;
    if report["locked"] != locked {
        return Err(Failure::new(words.not_done()));
    }
    let said = if locked { &LOCKED } else { &UNLOCKED };
    output::say(said.get(sources.lang()));
    if report["lock_kept"] == false {
        return Err(Failure::new(words.lock_not_kept()));
    }
    Ok(())
}
