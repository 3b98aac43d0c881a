//! The few calls that work on names in a directory held open, so that nothing
//! put in a name's place can lead them elsewhere.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Opens one name in `dir`, and nothing that a link in its place leads to.
pub(super) fn open_beneath(
    dir: &File,
    name: &str,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(dir, name, flags, mode, resolve) {
            // An old kernel, or a sandbox that does not know the call. `name`
            // has one component, so `NOFOLLOW` below refuses the same links.
            Err(Errno::NOSYS | Errno::PERM) => {}
            other => return other,
        }
    }
    rustix::fs::openat(dir, name, flags | OFlags::NOFOLLOW, mode)
}

/// Fails with `EXIST` when the name has been taken meanwhile, where the system
/// can tell.
pub(super) fn rename_to_new_name(dir: &File, from: &str, to: &str) -> Result<(), Errno> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::RenameFlags;
        match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
            Err(Errno::NOSYS | Errno::INVAL | Errno::NOTSUP) => {}
            other => return other,
        }
    }
    rustix::fs::renameat(dir, from, dir, to)
}
