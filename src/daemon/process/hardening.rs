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
