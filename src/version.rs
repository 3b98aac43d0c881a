//! Which nod this is: its number, and the build that tells two binaries of
//! one number apart.

/// The number alone, for those who only ask how old a nod is.
pub const NUMBER: &str = env!("CARGO_PKG_VERSION");

/// The number and the commit, the same in every binary of one build.
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("NOD_COMMIT"));

/// What `nod --version` says behind the name.
pub const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("NOD_COMMIT"),
    ", ",
    env!("NOD_TARGET"),
    ")"
);
