//! `nod settings`: prints the documents that are made from the settings table.

use super::{Outcome, output};
use crate::config;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The text of `.env.example`
    #[arg(long)]
    env_example: bool,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every command has one outcome type"
)]
pub(super) fn run(arguments: &Arguments) -> Outcome {
    output::text(&if arguments.env_example {
        config::env_example()
    } else {
        config::readme_table()
    });
    Ok(())
}
