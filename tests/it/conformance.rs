//! `docs/conformance.md` names only tests that exist, and all the cases.

use std::path::Path;

#[test]
fn every_case_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(root.join("docs/conformance.md")).unwrap();
    for case in 1..=44 {
        let row = table
            .lines()
            .find(|l| l.starts_with(&format!("| {case} |")));
        let row = row.unwrap_or_else(|| panic!("case {case} is missing"));
        let mut named = 0;
        for (file, test) in row.split('`').filter_map(|word| word.split_once(".rs::")) {
            let code = std::fs::read_to_string(root.join(format!("{file}.rs"))).unwrap();
            let place = code.find(&format!("fn {test}("));
            let place = place.unwrap_or_else(|| panic!("case {case}: no `{test}` in {file}.rs"));
            let above = &code[place.saturating_sub(200)..place];
            assert!(above.contains("test]"), "case {case}: `{test}` is no test");
            named += 1;
        }
        assert!(named > 0, "case {case} names no test");
    }
}
