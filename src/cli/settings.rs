//! `nod settings`: prints the documents that are made from the settings table.

use super::{Outcome, output, wording};
use crate::config;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The text of `.env.example`
    #[arg(long)]
    env_example: bool,
    /// The Chinese table
    #[arg(long, conflicts_with = "env_example")]
    zh: bool,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every command has one outcome type"
)]
pub(super) fn run(arguments: &Arguments) -> Outcome {
    output::text(&if arguments.env_example {
        config::env_example()
    } else if arguments.zh {
        config::readme_table_zh(wording::accepts_zh)
    } else {
        config::readme_table()
    });
    Ok(())
}
