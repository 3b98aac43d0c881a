//! The `nod` command.

fn main() {}
