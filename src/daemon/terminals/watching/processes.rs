//! What the system says about the processes of an agent. Where it says
//! nothing, nobody knows.

#[cfg(target_os = "linux")]
mod told {
    use std::fs;

    const MOST_CHILDREN: usize = 256;

    /// When a process began, in clock ticks since the start of the system.
    pub(crate) fn began(pid: u32) -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may hold anything, blanks and brackets too.
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_ascii_whitespace().nth(19)?.parse().ok()
    }

    /// The arguments a process was started with.
    pub(crate) fn arguments(pid: u32) -> Option<Vec<u8>> {
        fs::read(format!("/proc/{pid}/cmdline")).ok()
    }

    /// The arguments of every child that began no earlier than `since`.
    pub(crate) fn children(pid: u32, since: u64) -> Vec<Vec<u8>> {
        let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let listed = listed.unwrap_or_default();
        let pids = listed.split_ascii_whitespace().take(MOST_CHILDREN);
        pids.filter_map(|child| child.parse().ok())
            .filter(|child| began(*child).is_some_and(|at| at >= since))
            .filter_map(arguments)
            .collect()
    }
}

#[cfg(not(target_os = "linux"))]
mod told {
    pub(crate) fn began(_: u32) -> Option<u64> {
        None
    }

    pub(crate) fn arguments(_: u32) -> Option<Vec<u8>> {
        None
    }

    pub(crate) fn children(_: u32, _: u64) -> Vec<Vec<u8>> {
        Vec::new()
    }
}

pub(super) use told::{arguments, began, children};

/// Whether the process a status file speaks of is the one that runs now.
pub(super) fn is_alive(pid: u32, its_began: Option<&str>) -> bool {
    match (began(pid), its_began) {
        (Some(now), Some(then)) => then.parse() == Ok(now),
        (Some(_), None) => true,
        (None, _) => !cfg!(target_os = "linux"),
    }
}

#[cfg(test)]
mod tests;
