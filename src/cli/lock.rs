//! `nod lock` and `nod unlock`: whether a tap in Feishu may allow anything.

use super::{Failure, Outcome, output, status};
use crate::config::{HookConfig, Sources};
use crate::hook::wire::Order;
use crate::wording::{LOCKED, UNLOCKED};

pub(super) fn run(order: Order) -> Outcome {
    let sources = Sources::for_person();
    let config = HookConfig::load(&sources).map_err(|why| Failure::new(78, why))?;
    let locked = order == Order::Lock;
    let report = status::order(&config, order)?;
    if report["locked"] != locked {
        return Err(Failure::new(1, "the daemon did not do it"));
    }
    let said = if locked { &LOCKED } else { &UNLOCKED };
    output::line(said.get(sources.lang()));
    Ok(())
}
