//! `docs/security.md`, `docs/reliability.md` and `docs/feishu.md` answer for
//! every requirement, invariant, fault and belief by its id: each names a test,
//! or says that there is no defence. Each name must exist, as must those in
//! `docs/team.md`.

use std::path::PathBuf;

/// How many of each there are: `S-1` to `S-13`, and so on.
const REQUIREMENTS: [(&str, u32, u32); 9] = [
    ("S-", 1, 13),
    ("E-", 1, 10),
    ("C-", 1, 7),
    ("R-", 0, 11),
    ("T-", 1, 12),
    ("F-", 1, 6),
    ("L-", 1, 4),
    ("P-", 1, 4),
    ("U-", 1, 3),
];
const FAULTS: [(&str, u32, u32); 7] = [
    ("I", 1, 11),
    ("N", 1, 12),
    ("F", 1, 9),
    ("R", 1, 4),
    ("D", 1, 7),
    ("O", 1, 12),
    ("G", 1, 8),
];
const BELIEFS: [(&str, u32, u32); 2] = [("A", 1, 23), ("B", 1, 5)];
const PAGES: [&str; 3] = ["security.md", "reliability.md", "feishu.md"];
/// A number that was never given out.
const NONE: &str = "T-10";

fn page(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(root.join("docs").join(name)).unwrap()
}

/// The rows of a page's tables: the ids in the first column, and what is said
/// about them.
fn rows(page: &str) -> Vec<(Vec<&str>, &str)> {
    let rows = page.lines().filter_map(|line| {
        let (first, said) = line.strip_prefix("| ")?.split_once(" | ")?;
        let ids = first.split(' ').map(|word| word.trim_end_matches(','));
        let is_id = |word: &&str| {
            let number = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
            let number = number.strip_prefix('-').unwrap_or(number);
            number.len() < word.len() && number.parse::<u32>().is_ok()
        };
        Some((ids.take_while(is_id).collect(), said))
    });
    rows.collect()
}

#[test]
fn every_id_is_answered_for_once() {
    for (name, wanted) in [
        ("security.md", REQUIREMENTS.as_slice()),
        ("reliability.md", FAULTS.as_slice()),
        ("feishu.md", BELIEFS.as_slice()),
    ] {
        let page = page(name);
        let rows = rows(&page);
        let mut missing: Vec<String> = Vec::new();
        for (prefix, first, last) in wanted {
            for number in *first..=*last {
                let id = format!("{prefix}{number}");
                let about = |(ids, _): &&(Vec<&str>, &str)| ids.contains(&id.as_str());
                let told = rows.iter().filter(about).count();
                if told != usize::from(id != NONE) {
                    missing.push(format!("{id}: {told} rows"));
                }
            }
        }
        assert!(missing.is_empty(), "{name}: {missing:?}");
        let known: u32 = wanted.iter().map(|(_, first, last)| last - first + 1).sum();
        let found: usize = rows.iter().map(|(ids, _)| ids.len()).sum();
        let none = wanted
            .iter()
            .filter(|(prefix, ..)| NONE.starts_with(prefix));
        assert_eq!(found, known as usize - none.count(), "{name}: no other ids");
    }
}

#[test]
fn every_answer_is_a_test_or_an_honest_no() {
    for name in PAGES {
        let page = page(name);
        for (ids, said) in rows(&page).iter().filter(|(ids, _)| !ids.is_empty()) {
            let tested = said.contains("::");
            let measured = said.contains("cargo bench");
            let forbidden = said.contains("= \"forbid\"");
            let no = ["not ", "partly"].iter().any(|no| said.starts_with(no));
            assert!(tested || measured || forbidden || no, "{ids:?}: {said}");
        }
    }
}

#[test]
fn every_promise_names_a_test_that_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let page = PAGES.map(page).concat();
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

/// That page names tests without their files: they are all in one room, but for
/// those of a machine alone before a hostile bus.
#[test]
fn every_test_that_the_teams_page_names_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let tests = root.join("tests/it");
    let alone = root.join("src/daemon/arriving/bus/tests/hostile.rs");
    let files = std::fs::read_dir(tests.join("team")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let text: String = files
        .chain([tests.join("team.rs"), alone])
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    let page = page("team.md");
    let is_name = |quoted: &&str| {
        quoted.matches('_').count() > 3
            && quoted.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    };
    let named: Vec<&str> = page.split('`').filter(is_name).collect();
    assert!(named.len() > 10, "the names were found: {named:?}");
    let is_there = |name: &str| text.contains(&format!("fn {name}("));
    let missing: Vec<_> = named.into_iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
