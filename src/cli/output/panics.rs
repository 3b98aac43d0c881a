//! A fault of ours, told as one sentence. No panic text and no backtrace ever
//! reaches a person: both may hold what was being worked on.

use std::panic;
use std::process::ExitCode;

use crate::cli::output;
use crate::cli::quit::Quit;
use crate::cli::wording::Words;

/// From here on a panic says one sentence, in whichever thread it happens. In
/// the daemon it ends the task it happens in, and the whole where that task
/// must always run.
pub(in crate::cli) fn tell_in(words: Words) {
    panic::set_hook(Box::new(move |panic| {
        output::problem(&words.own_fault(panic.location()));
    }));
}

/// Runs a command; a panic in it, told already, becomes its exit code.
pub(in crate::cli) fn guarded(command: impl FnOnce() -> ExitCode) -> ExitCode {
    panic::catch_unwind(panic::AssertUnwindSafe(command)).unwrap_or(Quit::OwnFault.into())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::text::Lang;

    /// Set in the process the test starts of itself.
    const CHILD: &str = "NOD_TEST_PANICS";

    fn fails() -> ExitCode {
        let code: u8 = "canary".parse().expect("canary");
        ExitCode::from(code)
    }

    #[test]
    fn a_panic_is_one_sentence_and_an_exit_code() {
        let name = "cli::output::panics::tests::a_panic_is_one_sentence_and_an_exit_code";
        if let Ok(lang) = std::env::var(CHILD) {
            tell_in(Words(if lang == "zh" { Lang::Zh } else { Lang::En }));
            let thread = std::thread::spawn(fails);
            assert!(thread.join().is_err());
            assert_eq!(guarded(fails), Quit::OwnFault.into());
            return;
        }
        let own = std::env::current_exe().unwrap();
        for (lang, says) in [
            ("zh", "内部出错（cli/output/panics.rs:"),
            ("en", "itself (cli/output/panics.rs:"),
        ] {
            let child = Command::new(&own)
                .args([name, "--exact", "--nocapture", "--test-threads=1"])
                .env(CHILD, lang)
                .env("RUST_BACKTRACE", "1")
                .output()
                .unwrap();
            assert!(child.status.success(), "{child:?}");
            let told = String::from_utf8(child.stderr).unwrap();
            let lines: Vec<&str> = told.lines().collect();
            assert_eq!(
                lines.len(),
                2,
                "one for the thread, one for the command: {told}"
            );
            for line in lines {
                assert!(line.starts_with("nod: ") && line.contains(says), "{line}");
                assert!(line.contains("`nod doctor`"), "{line}");
            }
            for unfit in ["canary", "panicked", "backtrace"] {
                assert!(!told.contains(unfit), "{told}");
            }
        }
    }
}
