//! Every command the documents show is run: here as it stands, or by the test
//! or stage named in [`ELSEWHERE`]. Settings they show are taken by a real nod,
//! and their links lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nod::for_tests::simulator::{Options, Simulator};

use super::support::{Daemon, Home};

const BIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bin");

/// What a shown command starts with.
const PROGRAMS: [&str; 10] = [
    ".ci/run",
    "cargo",
    "claude",
    "curl",
    "git",
    "nod",
    "systemctl",
    "tests/fuzz/run",
    "tests/mutants/run",
    "tests/peers/run",
];

/// Commands that need more than a daemon and a Feishu, the file whose run runs
/// them, perhaps for a shorter time, and the words in it that do. `N` is any
/// number.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (".ci/run", ".ci/run", "The one gate"),
    ("tests/peers/run", ".ci/run", "tests/peers/run"),
    ("tests/peers/run setup", ".ci/run", "tests/peers/run"),
    (
        "NOD_PEERS_PICTURES=docs tests/peers/run pictures",
        "tests/peers/demo/test_pictures.py",
        "NOD_PEERS_PICTURES",
    ),
    ("cargo test", ".ci/run", "cargo test --locked"),
    (
        "cargo test --lib the_corpus -- --nocapture",
        ".ci/run",
        "cargo test --locked",
    ),
    (
        "cargo run --release -- demo --lang zh",
        "tests/peers/demo/test_page.py",
        "\"--lang\", lang",
    ),
    (
        "cargo run --release -- demo --lang en",
        "tests/it/demo.rs",
        "\"--lang\", \"en\"",
    ),
    (
        "cargo install nod-feishu --locked",
        "tests/peers/install.sh",
        "cargo package --quiet --locked",
    ),
    (
        "npm install -g nod-feishu",
        "tests/peers/package/test_package.py",
        "\"npm\", \"install\", \"--global\"",
    ),
    (
        "sudo dpkg -i nod-feishu_0.2.0_amd64.deb",
        "tests/peers/package/test_package.py",
        "\"dpkg\", \"-i\"",
    ),
    ("cargo bench --bench faults", ".ci/run", "--bench faults"),
    (
        "cargo bench --bench faults -- --outages",
        ".ci/run",
        "--bench faults -- --outages",
    ),
    (
        "cargo bench --bench faults -- --taps N --seed N",
        ".ci/run",
        "--bench faults -- --taps 1000 --seed",
    ),
    (
        "cargo bench --bench faults -- --taps N --seed N --team --restless N",
        ".ci/run",
        "--bench faults -- --taps 10000 --seed 1 --team --restless",
    ),
    ("cargo bench --bench figures", ".ci/run", "--bench figures"),
    (
        "NOD_SIMULATION_SEEDS=N cargo test --test it simulation",
        ".ci/run",
        "NOD_SIMULATION_SEEDS=10000 cargo test",
    ),
    // The gate runs the fuzzer's oracles over their seeds; hours of fuzzing
    // are for a person to start.
    ("cargo install cargo-fuzz", "tests/it/fuzz.rs", "fn replay"),
    ("tests/fuzz/run", "tests/it/fuzz.rs", "fn replay"),
    (
        "tests/fuzz/run [MINUTES [TARGET…]]",
        "tests/it/fuzz.rs",
        "fn replay",
    ),
    ("tests/fuzz/run N", "tests/it/fuzz.rs", "fn replay"),
    (
        "tests/fuzz/run N rule card",
        "tests/it/fuzz.rs",
        "fn replay",
    ),
    // An hour of changing the code is for a person to start, too; what it
    // found missing is among the unit tests of these rooms.
    (
        "cargo install cargo-mutants",
        "src/rules.rs",
        "fn what_takes_orders_from_its_input_gets_no_rule",
    ),
    (
        "tests/mutants/run",
        "src/rules.rs",
        "fn what_takes_orders_from_its_input_gets_no_rule",
    ),
    (
        "tests/mutants/run [ROOM…]",
        "src/rules.rs",
        "fn what_takes_orders_from_its_input_gets_no_rule",
    ),
    (
        "tests/mutants/run rules",
        "src/rules.rs",
        "fn what_takes_orders_from_its_input_gets_no_rule",
    ),
    ("cargo deny", ".ci/run", "bin/cargo-deny"),
    ("claude --resume", "tests/it/sessions.rs", "--resume {id}"),
    ("nod announce", "tests/it/gateway/webhook.rs", "announce"),
    ("nod ask", "tests/it/ask.rs", "\"ask\""),
    ("nod ask choice", "tests/it/ask.rs", "\"choice\""),
    ("nod ask confirm", "tests/it/ask.rs", "\"confirm\""),
    ("nod ask text", "tests/it/ask.rs", "\"text\""),
    ("nod daemon", "tests/it/support.rs", "&[\"daemon\"]"),
    (
        "nod daemon --background",
        "tests/it/daemon.rs",
        "\"--background\"",
    ),
    ("nod logs", "tests/it/messages.rs", "\"logs\", \"--once\""),
    ("nod demo", "tests/it/demo.rs", "--no-browser"),
    ("nod demo --auto", "tests/it/demo.rs", "--auto"),
    ("nod demo --team", "tests/it/demo.rs", "\"--team\""),
    (
        "nod demo --lang en",
        "tests/it/demo.rs",
        "\"--lang\", \"en\"",
    ),
    (
        "nod demo --lang zh",
        "tests/peers/demo/test_page.py",
        "\"--lang\", lang",
    ),
    ("nod doctor", "tests/it/doctor.rs", "\"doctor\""),
    ("nod doctor --click", "tests/it/doctor.rs", "--click"),
    ("nod gateway", "tests/it/team/rig.rs", "\"gateway\""),
    (
        "nod gateway init",
        "tests/it/team.rs",
        "\"gateway\", \"init\"",
    ),
    (
        "nod gateway init --bus wss://bus.example.com",
        "tests/it/team.rs",
        "\"gateway\", \"init\", \"--bus\"",
    ),
    ("nod gateway pass", "tests/it/team.rs", "\"pass\","),
    (
        "nod gateway forget",
        "tests/it/team/forget.rs",
        "\"forget\",",
    ),
    (
        "nod --env-file nod-bus/gateway.env gateway",
        "tests/it/team.rs",
        "\"--env-file\",",
    ),
    (
        "nod --env-file nod-bus/gateway.env gateway pass --owner ou_0123456789 --key UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4",
        "tests/it/team.rs",
        "\"pass\",",
    ),
    (
        "nod --env-file nod-bus/gateway.env gateway forget desk",
        "tests/it/team/forget.rs",
        "\"forget\",",
    ),
    (
        "nod --env-file nod-bus/gateway.env gateway status",
        "tests/it/team/join.rs",
        "[\"gateway\", \"status\"]",
    ),
    (
        "nod --env-file nod-bus/gateway.env gateway audit",
        "tests/it/team/join.rs",
        "[\"gateway\", \"audit\",",
    ),
    (
        "nod gateway status",
        "tests/it/team/join.rs",
        "[\"gateway\", \"status\"]",
    ),
    (
        "nod gateway audit",
        "tests/it/team/join.rs",
        "[\"gateway\", \"audit\",",
    ),
    (
        "nats-server -c nod-bus/nats.conf",
        "tests/it/team/rig.rs",
        ".arg(\"-c\")",
    ),
    ("nod join", "tests/it/team.rs", "&[\"join\"]"),
    (
        "nod join nod1.eyJ1cmwiOiJ…",
        "tests/it/team/join.rs",
        "[\"join\", line, \"--yes\"]",
    ),
    ("nod hook", "tests/it/hooks.rs", "\"hook\""),
    (
        "nod service",
        "tests/it/setup.rs",
        "\"service\", \"install\"",
    ),
    (
        "nod service restart",
        "tests/it/setup.rs",
        "\"service\", \"restart\"",
    ),
    (
        "nod setup",
        "tests/peers/setup/test_setup.py",
        "[binary(), \"setup\"",
    ),
    (
        "nod setup --browser",
        "tests/peers/setup/test_setup.py",
        "\"--browser\"",
    ),
    (
        "nod setup --domain lark",
        "tests/it/setup.rs",
        "\"--domain\"",
    ),
    ("nod setup --yes", "tests/it/setup.rs", "\"--yes\""),
    (
        "nod settings set",
        "tests/it/settings.rs",
        "\"settings\", \"set\"",
    ),
    (
        "nod settings set NAME VALUE",
        "tests/it/settings.rs",
        "\"settings\", \"set\"",
    ),
    (
        "nod settings set 名称 值",
        "tests/it/settings.rs",
        "\"settings\", \"set\"",
    ),
    (
        "nod simulator",
        "tests/peers/harness/simulator.py",
        "\"simulator\"",
    ),
    ("nod simulator --open", "tests/it/demo.rs", "\"--open\""),
];

/// Runs every block of a terminal that the documents show, and compares what
/// is printed.
const CONSOLE: &str = "tests/peers/docs/test_console.py";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The documents, by their path from the root.
fn documents() -> Vec<(String, String)> {
    let mut names = vec!["README.md".to_owned(), ".env.example".to_owned()];
    for dir in ["docs", "proto"] {
        for entry in fs::read_dir(root().join(dir)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if Path::new(&name).extension().is_some_and(|ext| ext == "md") {
                names.push(format!("{dir}/{name}"));
            }
        }
    }
    names.sort();
    assert!(names.len() > 9, "{names:?}");
    let read = |name: String| {
        let text = fs::read_to_string(root().join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// What a document shows to be typed.
#[derive(Default)]
struct Shown {
    /// In a shell block or in running text.
    commands: BTreeSet<String>,
    /// `NAME=value`, in a shell block or in running text.
    settings: BTreeSet<String>,
    /// In a block that shows a terminal.
    console: Vec<String>,
}

impl Shown {
    fn of(text: &str) -> Self {
        let mut shown = Self::default();
        let mut block: Option<&str> = None;
        for line in text.lines() {
            match (line.strip_prefix("```"), block) {
                (Some(_), Some(_)) => block = None,
                (Some(kind), None) => block = Some(kind),
                (None, Some("sh")) => shown.take(without_comment(line)),
                (None, Some("console")) => {
                    let typed = line.strip_prefix("$ ").map(str::to_owned);
                    shown.console.extend(typed);
                }
                (None, Some(_)) => {}
                (None, None) => {
                    let code = line.split('`').skip(1).step_by(2);
                    code.filter(|code| is_command(code) || is_setting(code))
                        .for_each(|code| shown.take(code));
                }
            }
        }
        shown
    }

    fn take(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if is_setting(line) {
            self.settings.insert(line.to_owned());
        } else {
            self.commands.extend(alternatives(line));
        }
    }
}

fn without_comment(line: &str) -> &str {
    let end = line.find(" #").unwrap_or(line.len());
    let line = line[..end].trim();
    if line.starts_with('#') { "" } else { line }
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_uppercase() || c == '_';
    text.contains('_') && text.chars().all(fits)
}

fn is_setting(text: &str) -> bool {
    let name = text.split_once('=').map(|(name, _)| name);
    name.is_some_and(is_name) && !text.contains(' ')
}

/// A program, perhaps behind settings, and something it is told.
fn is_command(code: &str) -> bool {
    let mut words = code.split(' ').skip_while(|word| is_setting(word));
    let Some(program) = words.next().filter(|word| PROGRAMS.contains(word)) else {
        return false;
    };
    let told = words.next();
    program.contains('/')
        || told.is_some_and(|word| word.starts_with(|c: char| c.is_ascii_lowercase() || c == '-'))
            // The sealed text of a call between machines starts with these.
            && !code.starts_with("nod call seal")
}

/// Numbers that stand alone, each as `N`; a nod command is run as it stands.
fn numberless(line: &str) -> String {
    if line.starts_with("nod ") {
        return line.to_owned();
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let words = line.split(' ').map(|word| match word.split_once('=') {
        Some((name, value)) if is_number(value) => format!("{name}=N"),
        None if is_number(word) => "N".to_owned(),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `nod ask confirm|text` is two commands.
fn alternatives(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for word in line.split(' ') {
        let ways = word.split('|').map(|way| {
            let more = |line: &String| format!("{line} {way}").trim_start().to_owned();
            all.iter().map(more).collect::<Vec<_>>()
        });
        all = ways.flatten().collect();
    }
    all
}

#[test]
fn what_is_typed_is_told_from_what_is_written() {
    let text = "Run `nod rules`, `nod ask a|b` or `A_B=1 cargo test`; `nod` is a name, \
                `claude` too, and `nod.db` a file.\n\
                ```sh\nnod setup   # all of it\n# nothing\nNOD_X=/a,b=/c\n```\n\
                ```console\n$ nod simulator\n{\"nod x\":1}\n```\n\
                ```json\nnod nothing\n```\nand `NOD_LANG=en`.\n";
    let shown = Shown::of(text);
    let commands: Vec<_> = shown.commands.iter().map(String::as_str).collect();
    let expected = [
        "A_B=1 cargo test",
        "nod ask a",
        "nod ask b",
        "nod rules",
        "nod setup",
    ];
    assert_eq!(commands, expected);
    assert!(shown.settings.iter().eq(["NOD_LANG=en", "NOD_X=/a,b=/c"]));
    assert_eq!(shown.console, ["nod simulator"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_shown_is_run() {
    let mut commands: BTreeSet<String> = BTreeSet::new();
    let mut console = 0;
    for (_, text) in documents() {
        let shown = Shown::of(&text);
        commands.extend(shown.commands.iter().map(|line| numberless(line)));
        console += shown.console.len();
    }
    assert!(commands.len() > 20 && console > 4, "{commands:?} {console}");
    assert!(root().join(CONSOLE).exists(), "nobody runs {console} lines");
    for (command, file, words) in ELSEWHERE {
        assert!(
            commands.remove(*command),
            "`{command}` is shown nowhere: take it off the list"
        );
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(words), "{file} has no `{words}`: {command}");
    }

    let feishu = Simulator::start(Options::default()).await.unwrap();
    let daemon = Daemon::connected(&feishu).await;
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let ["nod", arguments @ ..] = &words[..] else {
            panic!("`{command}` is shown, and neither run here nor named as run elsewhere");
        };
        let (code, out, err) = daemon.home.run(arguments, &[]).await;
        assert_eq!(code, Some(0), "`{command}`: {out}{err}");
        let said = out.len() + err.len();
        assert!(said > 0, "`{command}` says nothing");
    }
}

/// What nod's own check of the settings finds wrong, by name.
async fn wrong(home: &Home, settings: &[(&str, &str)]) -> Vec<String> {
    let given = [&[("PATH", BIN)], settings].concat();
    let (_, out, err) = home.run(&["doctor", "--json"], &given).await;
    let report: serde_json::Value = serde_json::from_str(&out).expect(&err);
    let checks = report["checks"].as_array().unwrap();
    let wrong = checks
        .iter()
        .filter(|check| check["check"] == "settings" && check["level"] == "problem");
    wrong.map(|check| check["text"].to_string()).collect()
}

#[tokio::test]
async fn every_setting_shown_is_taken() {
    let home = Home::new();
    for dir in ["shop", "blog"] {
        fs::create_dir(home.path().join(dir)).unwrap();
    }
    let here = home.path().to_str().unwrap();
    let mut seen = 0;
    for (name, text) in documents() {
        // One at a time: a document shows settings of different modes.
        for setting in Shown::of(&text).settings {
            let (key, value) = setting.split_once('=').unwrap();
            // What only tests read.
            let of_tests = ["NOD_SIMULATION_", "NOD_TEST_"];
            if of_tests.iter().any(|start| key.starts_with(start)) {
                continue;
            }
            let value = value
                .replace("/home/me", here)
                .replace("/path/to", here)
                .replace('…', "0123456789abcdef");
            let mut given = vec![(key, value.as_str())];
            if key == "TOOL_APPROVAL_ENABLED" {
                given.push(("NOD_ALLOW_BYPASS", "true"));
            }
            let known = nod::for_tests::config::SETTINGS
                .iter()
                .any(|known| known.name == key);
            assert!(known, "{name}: `{key}` is no setting");
            let wrong = wrong(&home, &given).await;
            let named = wrong.iter().filter(|text| text.contains(key));
            assert_eq!(named.count(), 0, "{name}: `{setting}`: {wrong:?}");
            seen += 1;
        }
    }
    assert!(seen > 8, "{seen}");
}

#[tokio::test]
async fn the_example_file_works_as_it_is_and_with_every_default_written_out() {
    let example = fs::read_to_string(root().join(".env.example")).unwrap();
    let spelled: String = example
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if is_setting(rest) => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    assert_ne!(example, spelled);
    for text in [example, spelled] {
        let home = Home::new();
        let own = home.path().join(".config/nod/.env");
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        fs::write(own, text).unwrap();
        let wrong = wrong(&home, &[]).await;
        let missing = ["FEISHU_APP_ID", "FEISHU_APP_SECRET"];
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        for name in missing {
            assert!(wrong[0].contains(name), "{wrong:?}");
        }
    }
}

#[tokio::test]
async fn the_chinese_table_is_the_one_in_the_code() {
    let (code, table, err) = Home::new()
        .run(&["settings", "--markdown", "--zh"], &[])
        .await;
    assert_eq!(code, Some(0), "{err}");
    let readme = fs::read_to_string(root().join("docs/README.zh-CN.md")).unwrap();
    assert!(
        readme.contains(&table),
        "`nod settings --markdown --zh` prints it"
    );
}

/// As GitHub makes an anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut seen = 0;
    for (name, text) in documents() {
        let here = root().join(&name);
        let sources = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'));
        let images = text.split("src=\"").skip(1);
        let images = images.filter_map(|rest| rest.split_once('"'));
        for (link, _) in sources.chain(images) {
            if link.starts_with("https://") {
                continue;
            }
            let (file, part) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => here.clone(),
                file => here.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{name}: `{link}` leads nowhere");
            if !part.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let mut headings = text.lines().filter_map(|line| line.strip_prefix('#'));
                let found = headings.any(|line| anchor(line.trim_start_matches('#')) == part);
                assert!(found, "{name}: `{link}` has no such heading");
            }
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen}");
}
