//! House rules that no lint knows: purity, direction, who may print, who may
//! read the environment, how large a room may grow, whose a name is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

struct Source {
    name: String,
    /// The code without its tests.
    code: String,
    text: String,
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    collect(&root().join("src"), &mut found);
    // A program of its own, and the door for tests.
    found.retain(|source| !["version/build.rs", "for_tests.rs"].contains(&source.name.as_str()));
    assert!(found.len() > 20, "the sources were found");
    let only_tests: Vec<String> = found.iter().flat_map(test_files).collect();
    for source in &mut found {
        let inside = |path: &String| source.name.starts_with(&format!("{path}/"));
        let is = |path: &String| source.name == format!("{path}.rs");
        if only_tests.iter().any(|path| is(path) || inside(path)) {
            source.code.clear();
        }
    }
    found
}

fn collect(dir: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let name = path
                .strip_prefix(root().join("src"))
                .unwrap()
                .to_string_lossy()
                .into_owned();
            found.push(Source {
                code: without_tests(&text).to_owned(),
                name,
                text,
            });
        }
    }
}

/// The items of a file that are compiled for tests alone, each as its first
/// line behind the attributes.
fn for_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices("#[cfg(test)]\n")
        .filter(|(at, _)| *at == 0 || text[..*at].ends_with('\n'))
        .filter_map(|(at, attribute)| {
            let mut lines = text[at + attribute.len()..].lines();
            let item = lines.find(|line| !line.trim_start().starts_with("#["))?;
            Some((at, item))
        })
}

/// A file up to its test module. What is for tests alone and stands before
/// that, as a declaration at the top does, hides nothing.
fn without_tests(text: &str) -> &str {
    let module = for_tests(text)
        .filter(|(_, item)| item.contains("mod ") && item.ends_with('{'))
        .last();
    module.map_or(text, |(at, _)| &text[..at])
}

/// The modules a file declares for tests alone, as paths without an ending.
fn test_files(source: &Source) -> Vec<String> {
    let folder = match source.name.as_str() {
        "lib.rs" | "main.rs" => String::new(),
        name => format!("{}/", name.trim_end_matches(".rs")),
    };
    for_tests(&source.text)
        .filter_map(|(_, item)| item.strip_suffix(';')?.rsplit_once("mod "))
        .map(|(_, module)| format!("{folder}{module}"))
        .collect()
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
    "agents.rs",
    "agents/codex/act.rs",
    "agents/codex/ask.rs",
    "agents/codex/follow.rs",
    "agents/codex/wire.rs",
    "approvals.rs",
    "approvals/choice.rs",
    "approvals/answer.rs",
    "approvals/outcome.rs",
    "approvals/record.rs",
    "approvals/request.rs",
    "approvals/terminal.rs",
    "approvals/token.rs",
    "approvals/told.rs",
    "bounded.rs",
    "bus/conf.rs",
    "bus/errand.rs",
    "bus/keys.rs",
    "bus/letter.rs",
    "bus/membership.rs",
    "bus/nkey.rs",
    "bus/pass.rs",
    "bus/subjects.rs",
    "bus/url.rs",
    "cards.rs",
    "cards/",
    "child/environment.rs",
    "claude/exit.rs",
    "claude/launch.rs",
    "claude/mailbox.rs",
    "claude/permission.rs",
    "claude/results.rs",
    "claude/status.rs",
    "claude/stream.rs",
    "claude/stream/",
    "claude/hooks_file/text.rs",
    "claude/permission.rs",
    "cli/service/unit.rs",
    "cli/setup/migrate.rs",
    "cli/setup/pairing.rs",
    "cli/setup/plan.rs",
    "claude/settings_file/said.rs",
    "cli/doctor/bus.rs",
    "cli/doctor/feishu.rs",
    "cli/doctor/finding.rs",
    "cli/doctor/machine.rs",
    "cli/doctor/settings.rs",
    "cli/settings/env_file.rs",
    "cli/line/help.rs",
    "cli/output/layout.rs",
    "cli/status/",
    "cli/line/usage.rs",
    "cli/wording.rs",
    "cli/wording/",
    "config/apart.rs",
    "config/unknown.rs",
    "daemon/cards/book.rs",
    "daemon/cards/book/",
    "daemon/telling/metrics.rs",
    "danger.rs",
    "danger/",
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
    "gateway/whose.rs",
    "hex.rs",
    "hook/paths.rs",
    "hook/wire.rs",
    "hook/wire/",
    "ids.rs",
    "rules.rs",
    "rules/",
    "shell.rs",
    "shell/",
    "sessions/command.rs",
    "sessions/progress.rs",
    "sessions/questions.rs",
    "sessions/questions/",
    "sessions/route.rs",
    "sessions/state.rs",
    "sessions/state/",
    "store/said.rs",
    "talk.rs",
    "talk/",
    "simulator/world/state.rs",
    "simulator/world/state/",
    "team/seen.rs",
    "team/shares.rs",
    "simulator/world/card.rs",
    "simulator/world/card/",
    "text.rs",
    "text/",
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

/// All rooms, from the floor up: each knows only those before it.
const ORDER: &[&str] = &[
    "ids",
    "version",
    "hex",
    "bounded",
    "clock",
    "text",
    "files",
    "shell",
    "danger",
    "rules",
    "child",
    "talk",
    "claude",
    "feishu",
    "bus",
    "sessions",
    "approvals",
    "agents",
    "wording",
    "cards",
    "hook",
    "gateway",
    "store",
    "config",
    "simulator",
    "team",
    "daemon",
    "cli",
];

/// Who does not know whom although the order would let them.
const APART: &[(&str, &[&str])] = &[
    ("child", &["shell", "danger", "rules"]),
    ("talk", &["shell", "danger", "rules"]),
    ("claude", &["shell", "danger", "rules"]),
    ("feishu", &["shell", "danger", "rules", "child", "claude"]),
    ("bus", &["shell", "danger", "rules", "child", "claude"]),
    ("sessions", &["feishu", "bus"]),
    ("approvals", &["claude", "feishu"]),
    ("agents", &["claude", "feishu"]),
    ("wording", &["feishu", "agents"]),
    ("cards", &["claude", "feishu", "agents"]),
    ("hook", &["feishu", "cards", "agents"]),
    ("gateway", &["claude", "hook", "agents"]),
    ("store", &["feishu", "cards", "hook", "gateway", "agents"]),
];

fn room_of(source: &Source) -> &str {
    let room = source.name.split('/').next().unwrap_or_default();
    room.trim_end_matches(".rs")
}

/// The rooms a file's code names, as `(line, room)`.
fn rooms_named(source: &Source) -> Vec<(usize, &str)> {
    let mut named = Vec::new();
    for (n, line) in source.code.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for (at, path) in line.match_indices("crate::") {
            let rest = &line[at + path.len()..];
            let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_'));
            named.push((n + 1, &rest[..end.unwrap_or(rest.len())]));
        }
    }
    named
}

#[test]
fn rooms_know_only_those_below_them() {
    let place = |room: &str| ORDER.iter().position(|one| *one == room);
    let mut offences = Vec::new();
    for source in sources() {
        let room = room_of(&source);
        if ["lib", "main"].contains(&room) {
            continue;
        }
        let Some(own) = place(room) else {
            panic!("`{room}` has no place in the order of rooms");
        };
        let apart = APART.iter().find(|(one, _)| *one == room);
        let apart = apart.map_or(&[][..], |(_, strangers)| strangers);
        for (line, named) in rooms_named(&source) {
            let above = place(named).is_none_or(|place| place > own);
            if above || apart.contains(&named) {
                offences.push(format!("src/{}:{line}: {named}", source.name));
            }
        }
    }
    none("direction", &offences);
}

/// What nobody uses is named by the compiler only where nobody outside could.
#[test]
fn the_library_has_one_door() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let open: Vec<_> = lib.lines().filter(|line| line.contains("pub")).collect();
    assert_eq!(open, ["pub mod for_tests;", "pub use cli::main;"]);
}

/// The folders of the daemon, from the floor up: each knows only those before
/// it. The files beside them put everything together.
const FOLDERS: &[&str] = &[
    "process",
    "known",
    "cards",
    "terminals",
    "deciding",
    "asking",
    "machines",
    "talking",
    "tapping",
    "telling",
    "arriving",
];

#[test]
fn folders_of_the_daemon_know_only_those_below_them() {
    let place = |folder: &str| FOLDERS.iter().position(|one| *one == folder);
    let mut offences = Vec::new();
    let all = sources();
    for folder in FOLDERS {
        let name = format!("daemon/{folder}.rs");
        assert!(all.iter().any(|source| source.name == name), "no {name}");
    }
    for source in &all {
        let Some((folder, _)) = source
            .name
            .strip_prefix("daemon/")
            .and_then(|inside| inside.split_once('/'))
        else {
            continue;
        };
        let Some(own) = place(folder) else {
            panic!("`{folder}` has no place in the order of the daemon's folders");
        };
        for (n, line) in source.code.lines().enumerate() {
            let lines = line.match_indices("crate::daemon::").map(|(at, path)| {
                let rest = &line[at + path.len()..];
                let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_'));
                &rest[..end.unwrap_or(rest.len())]
            });
            for named in lines {
                if place(named).is_none_or(|place| place > own) {
                    offences.push(format!("src/{}:{}: {named}", source.name, n + 1));
                }
            }
        }
    }
    none("direction in the daemon", &offences);
}

#[test]
fn the_house_rules_see_past_what_is_for_tests_alone() {
    let text = "mod a;\n#[cfg(test)]\nmod fake;\n\nfn b() {}\n\n#[cfg(test)]\n#[path = \"x\"]\nmod c {\n}\n";
    let source = Source {
        name: "room.rs".to_owned(),
        code: without_tests(text).to_owned(),
        text: text.to_owned(),
    };
    assert!(source.code.contains("fn b()") && !source.code.contains("mod c"));
    assert_eq!(test_files(&source), ["room/fake"]);
    let grown: Vec<_> = sources()
        .into_iter()
        .filter(|source| source.name == "store.rs")
        .collect();
    assert!(grown[0].code.contains("impl Store"), "all of it is seen");
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

/// The types that a file's code defines. A trait's own types belong to it.
fn types(source: &Source) -> impl Iterator<Item = &str> {
    source.code.lines().filter_map(|line| {
        let item = line.trim_start();
        let item = match item.strip_prefix("pub(") {
            Some(seen) => seen.split_once(") ")?.1,
            None => item.strip_prefix("pub ").unwrap_or(item),
        };
        let (kind, rest) = item.split_once(' ')?;
        let defines = ["struct", "enum", "trait", "union"].contains(&kind)
            || (kind == "type" && !line.starts_with(' '));
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        defines.then(|| &rest[..end.unwrap_or(rest.len())])
    })
}

/// The files that define a type of each name.
fn owners(sources: &[Source]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut owners = BTreeMap::<_, BTreeSet<_>>::new();
    for source in sources {
        for name in types(source) {
            owners.entry(name).or_default().insert(&*source.name);
        }
    }
    owners
}

/// The names that more than one room gives to a type.
fn in_two_rooms(owners: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let room = |file: &&str| file.split(['/', '.']).next().unwrap_or_default().to_owned();
    owners
        .iter()
        .filter(|(_, files)| files.iter().map(room).collect::<BTreeSet<_>>().len() > 1)
        .map(|(name, files)| format!("{name}: {files:?}"))
        .collect()
}

#[test]
fn a_type_name_has_one_owner() {
    let sources = sources();
    let owners = owners(&sources);
    assert!(owners.len() > 500, "the types were found");
    none("type names in two rooms", &in_two_rooms(&owners));
    let shared = owners.values().filter(|files| files.len() > 1).count();
    assert!(
        shared * 100 < owners.len() * 5,
        "{shared} of {} type names have more than one owner",
        owners.len()
    );
}

#[test]
fn a_type_name_in_two_rooms_is_noticed() {
    let source = |name: &str, code: &str| Source {
        name: name.to_owned(),
        code: code.to_owned(),
        text: code.to_owned(),
    };
    let sources = [
        source(
            "store.rs",
            "pub(super) struct Line<'a> {\n}\ntype Row = u8;\n",
        ),
        source("store/audit.rs", "fn a() {\n    enum Row {}\n}\n"),
        source(
            "bus/line.rs",
            "impl A for B {\n    type Row = u8;\n}\npub enum Line {\n}\n",
        ),
    ];
    let found = in_two_rooms(&owners(&sources));
    assert_eq!(found, ["Line: {\"bus/line.rs\", \"store.rs\"}"]);
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
fn the_top_level_holds_nothing_new() {
    let allowed = [
        ".cargo",
        ".ci",
        ".env.example",
        ".git",
        ".github",
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
        let is_entry = ["lib", "main", "for_tests"].contains(&room);
        let told = named.iter().any(|name| name == room);
        assert!(is_entry || told, "the map does not name `{room}`");
    }
}

/// Rooms whose every file stands on the map.
const MAPPED: &[&str] = &["daemon", "store", "gateway", "claude"];

#[test]
fn the_map_names_every_file_of_the_large_rooms() {
    let map = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let mut missing = Vec::new();
    for source in sources().iter().filter(|source| !source.code.is_empty()) {
        let whole = source.name.trim_end_matches(".rs").replace('/', "::");
        let Some((room, _)) = whole.split_once("::") else {
            continue;
        };
        // A folder of a large room may have a row of its own.
        let told = whole.match_indices("::").any(|(at, colons)| {
            let (row, name) = (&whole[..at], &whole[at + colons.len()..]);
            let row = format!("| `{row}` ");
            let row = map.lines().find(|line| line.starts_with(&row));
            row.is_some_and(|row| code_words(row).any(|word| word == name || word == whole))
        });
        if MAPPED.contains(&room) && !told {
            missing.push(source.name.clone());
        }
    }
    none("not on the map", &missing);
}
