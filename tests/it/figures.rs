//! The published figures: what the READMEs and the plot show is what
//! `docs/figures.json` says.

use std::fs;
use std::path::Path;

#[path = "../../benches/figures/page.rs"]
mod page;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn what_is_shown_is_what_was_measured() {
    for (file, drawn) in page::drawn(Path::new(ROOT)).unwrap() {
        let shown = fs::read_to_string(&file).unwrap();
        let name = file.display();
        assert!(
            shown == drawn,
            "{name} is stale: `cargo bench --bench figures -- --draw` draws it again"
        );
    }
}
