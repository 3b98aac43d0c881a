//! What the daemon asks of the system for itself: no core dump that would hold
//! the app's secret, nobody's debugger, and room for every hook's connection.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::debug;

pub(crate) fn apply() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        if let Err(why) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!("a crash could leave secrets in a core dump: {why}");
        }
    }
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(why) = setrlimit(Resource::Core, none) {
        debug!("core dumps could not be switched off: {why}");
    }
    let files = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: files.maximum,
        maximum: files.maximum,
    };
    if let Err(why) = setrlimit(Resource::Nofile, most) {
        debug!("the limit of open files stays as it is: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const CHILD: &str = "NOD_TEST_HARDENED";

    /// In a process of its own, because it lasts as long as that.
    #[test]
    fn a_daemon_leaves_no_core_dump_and_has_room_for_every_hook() {
        let name = "daemon::process::hardening::tests::a_daemon_leaves_no_core_dump_and_has_room_for_every_hook";
        if std::env::var_os(CHILD).is_none() {
            let own = std::env::current_exe().unwrap();
            let child = Command::new(own)
                .args([name, "--exact", "--test-threads=1"])
                .env(CHILD, "yes")
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&child.stdout).into_owned();
            assert!(child.status.success(), "{told}");
            assert!(told.contains("1 passed"), "{told}");
            return;
        }
        let before = getrlimit(Resource::Nofile);
        let few = Rlimit {
            current: Some(64),
            maximum: before.maximum,
        };
        setrlimit(Resource::Nofile, few).unwrap();
        for _ in 0..2 {
            apply();
            let core = getrlimit(Resource::Core);
            assert_eq!((core.current, core.maximum), (Some(0), Some(0)));
            let files = getrlimit(Resource::Nofile);
            assert_eq!(files.current, before.maximum);
            assert_eq!(files.maximum, before.maximum);
            #[cfg(target_os = "linux")]
            {
                use rustix::process::{DumpableBehavior, dumpable_behavior};
                let dumpable = dumpable_behavior().unwrap();
                assert_eq!(dumpable, DumpableBehavior::NotDumpable);
            }
        }
    }
}
