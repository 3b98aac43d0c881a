//! What the fuzzer is fed and what it once found, replayed: every file under
//! `tests/fuzz/corpus` and `tests/fuzz/findings` through its target's oracle.

use std::path::Path;

#[path = "../fuzz/oracles/asked.rs"]
pub(crate) mod asked;
#[path = "../fuzz/oracles/card.rs"]
mod card;
#[path = "../fuzz/oracles/event.rs"]
mod event;
#[path = "../fuzz/oracles/fragments.rs"]
mod fragments;
#[path = "../fuzz/oracles/frame.rs"]
mod frame;
#[path = "../fuzz/oracles/hook_stdin.rs"]
mod hook_stdin;
#[path = "../fuzz/oracles/matcher.rs"]
pub(crate) mod matcher;
#[path = "../fuzz/oracles/rule.rs"]
mod rule;
#[path = "../fuzz/oracles/sealed.rs"]
mod sealed;
#[path = "../fuzz/oracles/settings_edit.rs"]
mod settings_edit;
#[path = "../fuzz/oracles/socket_request.rs"]
mod socket_request;

fn replay(target: &str, check: fn(&[u8])) {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let mut replayed = 0;
    for from in ["corpus", "findings"] {
        let Ok(files) = fuzz.join(from).join(target).read_dir() else {
            continue;
        };
        for file in files {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let held = std::panic::catch_unwind(|| check(&bytes)).is_ok();
            assert!(held, "{} no longer holds", path.display());
            replayed += 1;
        }
    }
    assert!(replayed > 0, "nothing to replay for {target}");
}

macro_rules! replay {
    ($($target:ident)*) => {$(
        #[test]
        fn $target() {
            replay(stringify!($target), $target::check);
        }
    )*};
}

/// One test per target, named like it.
mod every {
    use super::*;

    replay!(frame fragments event socket_request hook_stdin settings_edit rule card sealed);
}
