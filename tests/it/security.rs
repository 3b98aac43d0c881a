//! `docs/security.md` and `docs/reliability.md` name a test for each promise;
//! each name must exist.

use std::path::PathBuf;

#[test]
fn every_promise_names_a_test_that_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let pages = ["docs/security.md", "docs/reliability.md"];
    let page = pages.map(|page| std::fs::read_to_string(root.join(page)).unwrap());
    let page = page.concat();
    let named: Vec<(&str, &str)> = page
        .split('`')
        .filter_map(|quoted| quoted.split_once("::"))
        .collect();
    assert!(named.len() > 60, "the names were found");
    let missing: Vec<_> = named
        .into_iter()
        .filter(|(file, test)| {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            let heads = [format!("fn {test}("), format!("def {test}(")];
            !heads.iter().any(|head| text.contains(head))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
