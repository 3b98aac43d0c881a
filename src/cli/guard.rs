//! `nod guard`: what the daemon leaves beside each agent it starts. Ends
//! that process group once the daemon is gone.

use rustix::process::Pid;

use crate::child::guard;

#[derive(clap::Args)]
pub(super) struct GuardArguments {
    /// The process group to end
    #[arg(value_parser = clap::value_parser!(i32).range(2..))]
    group: i32,
}

pub(super) fn run(arguments: &GuardArguments) {
    if let Some(group) = Pid::from_raw(arguments.group) {
        guard::watch(group);
    }
}
