//! House rules that no lint knows: purity, direction, who may print, who may
//! read the environment, how large a room may grow.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

struct Source {
    name: String,
    /// The code without its in-file tests.
    code: String,
    text: String,
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    collect(&root().join("src"), &mut found);
    assert!(found.len() > 20, "the sources were found");
    found
}

fn collect(dir: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text
                .split("\n#[cfg(test)]")
                .next()
                .unwrap_or_default()
                .to_owned();
            let name = path
                .strip_prefix(root().join("src"))
                .unwrap()
                .to_string_lossy()
                .into_owned();
            let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
            found.push(Source {
                code: if is_test { String::new() } else { code },
                name,
                text,
            });
        }
    }
}

/// Lines of code (comments left out) that hold one of the words.
fn offences(source: &Source, words: &[&str]) -> Vec<String> {
    source
        .code
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .filter(|(_, line)| words.iter().any(|word| line.contains(word)))
        .map(|(n, line)| format!("src/{}:{}: {}", source.name, n + 1, line.trim()))
        .collect()
}

fn none(what: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{what}:\n{}", offences.join("\n"));
}

const PURE: &[&str] = &[
    "approvals.rs",
    "approvals/action.rs",
    "approvals/answer.rs",
    "approvals/record.rs",
    "approvals/request.rs",
    "approvals/token.rs",
    "cards.rs",
    "cards/",
    "claude/asking.rs",
    "claude/exit.rs",
    "claude/launch.rs",
    "claude/permission.rs",
    "claude/stream.rs",
    "claude/stream/",
    "claude/hooks_file/text.rs",
    "claude/permission.rs",
    "cli/service/unit.rs",
    "cli/setup/env_file.rs",
    "cli/setup/migrate.rs",
    "cli/setup/pairing.rs",
    "cli/setup/plan.rs",
    "claude/settings_file/said.rs",
    "cli/doctor/feishu.rs",
    "cli/doctor/finding.rs",
    "cli/doctor/machine.rs",
    "cli/doctor/settings.rs",
    "cli/help.rs",
    "cli/status/",
    "cli/usage.rs",
    "cli/wording.rs",
    "cli/wording/",
    "config/mixed.rs",
    "config/unknown.rs",
    "daemon/metrics.rs",
    "feishu/backoff.rs",
    "feishu/chunks.rs",
    "feishu/domain.rs",
    "feishu/event.rs",
    "feishu/frame.rs",
    "feishu/link.rs",
    "feishu/link/",
    "feishu/pace.rs",
    "feishu/said.rs",
    "gateway/call.rs",
    "gateway/pages.rs",
    "gateway/rate.rs",
    "gateway/route.rs",
    "gateway/seal.rs",
    "hook/paths.rs",
    "hook/wire.rs",
    "hook/wire/",
    "ids.rs",
    "rules.rs",
    "rules/",
    "sessions/command.rs",
    "sessions/progress.rs",
    "sessions/questions.rs",
    "sessions/questions/",
    "sessions/route.rs",
    "sessions/state.rs",
    "sessions/state/",
    "store/said.rs",
    "simulator/state.rs",
    "simulator/state/",
    "simulator/card.rs",
    "simulator/card/",
    "wording.rs",
    "wording/",
];

fn is_any(name: &str, rooms: &[&str]) -> bool {
    rooms
        .iter()
        .any(|room| name == *room || (room.ends_with('/') && name.starts_with(room)))
}

#[test]
fn pure_rooms_touch_no_clock_environment_file_network_runtime_or_chance() {
    let forbidden = [
        "Instant::now",
        "SystemTime::now",
        "std::env",
        "std::fs",
        "std::net",
        "tokio",
        "rand::",
        "std::thread",
        "std::process",
    ];
    for room in PURE {
        let there = root().join("src").join(room);
        assert!(
            there.exists(),
            "{room} is listed as pure and does not exist"
        );
    }
    let offences: Vec<_> = sources()
        .iter()
        .filter(|source| is_any(&source.name, PURE))
        .flat_map(|source| offences(source, &forbidden))
        .collect();
    none("pure rooms", &offences);
}

#[test]
fn only_config_reads_the_environment() {
    let offences: Vec<_> = sources()
        .iter()
        .filter(|source| !source.name.starts_with("config"))
        .flat_map(|source| {
            offences(
                source,
                &["env::var", "env::vars", "env::current_dir", "env::home_dir"],
            )
        })
        .collect();
    none("environment", &offences);
}

#[test]
fn only_output_prints() {
    let offences: Vec<_> = sources()
        .iter()
        .filter(|source| source.name != "cli/output.rs")
        .flat_map(|source| {
            offences(
                source,
                &["println!", "print!(", "eprint!", "io::stdout", "io::stderr"],
            )
        })
        .collect();
    none("printing", &offences);
}

/// Who may not know whom, as `(rooms, what they must not import)`.
const DIRECTIONS: &[(&str, &[&str])] = &[
    (
        "feishu",
        &[
            "approvals::desk",
            "cards",
            "rules",
            "hook",
            "claude",
            "daemon",
            "cli",
            "simulator",
            "store",
            "gateway",
        ],
    ),
    (
        "claude",
        &[
            "approvals",
            "cards",
            "feishu",
            "hook",
            "daemon",
            "cli",
            "simulator",
            "store",
            "gateway",
        ],
    ),
    (
        "cards",
        &[
            "feishu",
            "claude",
            "hook",
            "daemon",
            "cli",
            "store",
            "simulator",
        ],
    ),
    (
        "rules",
        &[
            "feishu",
            "claude",
            "hook",
            "daemon",
            "cli",
            "store",
            "simulator",
        ],
    ),
    (
        "approvals",
        &[
            "feishu",
            "claude",
            "hook",
            "daemon",
            "cli",
            "store",
            "cards",
            "simulator",
        ],
    ),
    (
        "hook",
        &[
            "feishu",
            "daemon",
            "cli",
            "store",
            "cards",
            "simulator",
            "gateway",
        ],
    ),
    (
        "store",
        &[
            "feishu",
            "hook",
            "daemon",
            "cli",
            "cards",
            "simulator",
            "gateway",
        ],
    ),
];

#[test]
fn imports_follow_the_map() {
    let mut offences = Vec::new();
    for source in sources() {
        for (room, strangers) in DIRECTIONS {
            let inside =
                source.name == format!("{room}.rs") || source.name.starts_with(&format!("{room}/"));
            if inside {
                for stranger in *strangers {
                    offences.extend(super::tidy::offences(
                        &source,
                        &[
                            &format!("crate::{stranger}::"),
                            &format!("crate::{stranger};"),
                        ],
                    ));
                }
            }
        }
    }
    none("direction", &offences);
}

#[test]
fn the_simulator_shares_only_the_frame_and_the_ids_with_the_client() {
    let offences: Vec<_> = sources()
        .iter()
        .filter(|source| source.name.starts_with("simulator"))
        .flat_map(|source| offences(source, &["crate::"]))
        .filter(|line| {
            !["crate::feishu::frame", "crate::ids", "crate::simulator"]
                .iter()
                .any(|allowed| line.contains(allowed))
        })
        .collect();
    none("simulator", &offences);
}

#[test]
fn the_hook_client_has_no_runtime_and_no_network_but_its_socket() {
    let offences: Vec<_> = sources()
        .iter()
        .filter(|source| source.name.starts_with("hook/client"))
        .flat_map(|source| {
            offences(
                source,
                &["tokio", "reqwest", "rustls", "TcpStream", "async "],
            )
        })
        .collect();
    none("hook client", &offences);
}

#[test]
fn rooms_stay_small_and_say_what_they_are() {
    for source in sources() {
        assert!(
            source.text.starts_with("//!") || source.name.ends_with("tests.rs"),
            "src/{} does not say what it is",
            source.name
        );
        // A file of tests only is a room like any other.
        let all_tests = source.name.ends_with("tests.rs");
        let counted = if all_tests {
            &source.text
        } else {
            &source.code
        };
        let lines = counted.lines().count();
        assert!(lines <= 500, "src/{} has {lines} lines", source.name);
    }
}

#[test]
fn nothing_unfinished_and_nothing_of_one_machine() {
    let words = [
        "todo",
        "fixme",
        "xxx",
        "dbg!",
        "unimplemented",
        "#[ignore",
        concat!("should_", "panic"),
    ];
    let places = ["work", "root", "farm"].map(|dir| format!("\"/{dir}/"));
    for source in sources() {
        for (n, line) in source.text.lines().enumerate() {
            let lower = line.to_lowercase();
            let found = words.iter().find(|word| lower.contains(*word));
            assert!(found.is_none(), "src/{}:{}: {line}", source.name, n + 1);
            let place = places.iter().find(|place| line.contains(*place));
            assert!(place.is_none(), "src/{}:{}: {line}", source.name, n + 1);
        }
    }
}

#[test]
fn the_top_level_is_what_the_design_card_fixed() {
    let allowed = [
        ".ci",
        ".env.example",
        ".git",
        ".gitignore",
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "README.md",
        "benches",
        "docs",
        "proto",
        "src",
        "target",
        "tests",
    ];
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        // A person's own settings may lie beside the sources; git ignores them.
        assert!(
            allowed.contains(&name.as_str()) || name == ".env",
            "`{name}` does not belong at the top"
        );
    }
}

/// What stands in backticks.
fn code_words(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether `name`, as `a::b`, is a room below `src`.
fn is_room(name: &str) -> bool {
    let path = root().join("src").join(name.replace("::", "/"));
    path.is_dir() || path.with_extension("rs").is_file()
}

#[test]
fn the_map_names_every_room_and_nothing_that_is_not_there() {
    let map = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let mut named = Vec::new();
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `"));
    for row in rows.map(|row| format!("`{row}")) {
        let (rooms, inside) = row.split_once(" | ").unwrap();
        let rooms: Vec<&str> = code_words(rooms).collect();
        for room in &rooms {
            assert!(is_room(room), "the map names `{room}`, which is no room");
        }
        let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        for name in code_words(inside).filter(is_name) {
            let there = rooms.iter().any(|room| is_room(&format!("{room}::{name}")));
            assert!(there, "no `{name}` in {rooms:?}");
        }
        named.extend(rooms.into_iter().map(str::to_owned));
    }
    for word in code_words(&map).flat_map(str::split_whitespace) {
        let is_path = word.contains('/');
        if is_path && !is_room(word.trim_end_matches('/')) {
            assert!(root().join(word).exists(), "`{word}` does not exist");
        }
        if word.contains("::") {
            assert!(is_room(word), "`{word}` is no room");
        }
    }
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let path = entry.unwrap().path();
        let room = path.file_stem().unwrap().to_str().unwrap();
        let is_entry = ["lib", "main"].contains(&room);
        let told = named.iter().any(|name| name == room);
        assert!(is_entry || told, "the map does not name `{room}`");
    }
}
