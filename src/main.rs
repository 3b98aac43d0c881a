//! The `nod` command: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    nod::main()
}
