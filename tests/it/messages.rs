//! What every command says, good and bad, in both languages, compared with
//! `tests/data/messages/`. `NOD_UPDATE_MESSAGES=1 cargo test --test it
//! messages` writes those files anew, for a person to read in the diff.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use nod::for_tests::simulator::{APP_ID, APP_SECRET, OWNER, Options, Press, Simulator};
use nod::for_tests::version;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::support::{Daemon, Home, LIMIT, is_connected, settings, within};

/// What each run was told and said.
struct Transcript {
    lang: &'static str,
    text: String,
}

impl Transcript {
    fn new(lang: &'static str) -> Self {
        let text = String::new();
        Self { lang, text }
    }

    async fn run(&mut self, home: &Home, about: &str, arguments: &[&str], given: &[(&str, &str)]) {
        self.run_with(home, about, arguments, given, b"").await;
    }

    async fn run_with(
        &mut self,
        home: &Home,
        about: &str,
        arguments: &[&str],
        given: &[(&str, &str)],
        input: &[u8],
    ) {
        let mut child = home
            .nod(arguments, given)
            .env("NOD_LANG", self.lang)
            .env("NOD_LOG", "off")
            .env("RUST_BACKTRACE", "1")
            .env("PATH", "/nonexistent")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that reads nothing may be gone already.
        let _ = stdin.write_all(input).await;
        drop(stdin);
        let output = within(about, child.wait_with_output()).await.unwrap();
        let [out, err] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        let code = output.status.code().unwrap();
        let said = format!("{out}{err}");
        for unfit in [
            "panicked",
            "backtrace",
            "Some(",
            "None",
            "Err(",
            "Ok(",
            "Os {",
            "kind:",
            "src/",
            APP_SECRET,
        ] {
            assert!(!said.contains(unfit), "{about}: `{unfit}` in\n{said}");
        }
        let said = filtered(&said, home, given);
        let line = arguments.join(" ");
        let line = filtered(&line, home, given);
        let _ = writeln!(self.text, "== {about}\n$ nod {line}\n{said}[{code}]\n");
    }

    fn compare(&self) {
        let name = format!("tests/data/messages/{}.txt", self.lang);
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(&name);
        if std::env::var_os("NOD_UPDATE_MESSAGES").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &self.text).unwrap();
            return;
        }
        let known = fs::read_to_string(&file).unwrap_or_default();
        let parts = |text: &str| text.split("== ").map(str::to_owned).collect::<Vec<_>>();
        let (known, said) = (parts(&known), parts(&self.text));
        for (known, said) in known.iter().zip(&said) {
            assert_eq!(known, said, "{name}; NOD_UPDATE_MESSAGES=1 writes it anew");
        }
        assert_eq!(known.len(), said.len(), "{name}");
    }
}

/// Replaces what differs from run to run.
fn filtered(text: &str, home: &Home, given: &[(&str, &str)]) -> String {
    let home = home.path().to_str().unwrap();
    let project = home.rsplit('/').next().unwrap();
    let mut text = text.replace(home, "HOME").replace(project, "PROJECT");
    text = text.replace(env!("CARGO_BIN_EXE_nod"), "NOD");
    text = text.replace(version::LONG, "VERSION (COMMIT, TARGET)");
    text = text.replace(version::BUILD, "VERSION");
    if let Some((_, base)) = given.iter().find(|(name, _)| *name == "FEISHU_DOMAIN") {
        text = text.replace(base, "FEISHU");
    }
    for before in ["pid ", "process ", "kill ", "（进程 ", "，进程 ", "log id "] {
        text = masked(&text, before, |rest| {
            rest.chars().take_while(char::is_ascii_alphanumeric).count()
        });
    }
    let os = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    text = text.replace(&os, "SYSTEM");
    text = undated(&text);
    let units = [" min", " s", " ms", " µs", " 分", " 秒", " 毫秒", " 微秒"];
    for unit in units {
        let parts: Vec<&str> = text.split(unit).collect();
        let last = parts.len() - 1;
        let spans = parts.iter().enumerate().map(|(n, part)| {
            let bare = part.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            if n < last && bare.len() < part.len() {
                format!("{bare}N")
            } else {
                (*part).to_owned()
            }
        });
        text = spans.collect::<Vec<_>>().join(unit);
    }
    text
}

/// Replaces times of the day, and ids that are made anew each time.
fn undated(text: &str) -> String {
    const SHAPES: [&[u8]; 3] = [b"0000-00-00 00:00:00 +00:00", b"00-00 00:00:00", b"00:00"];
    let is_like = |at: &[u8], shape: &[u8]| {
        let fits = |(is, shape): (&u8, &u8)| match shape {
            b'0' => is.is_ascii_digit(),
            b'+' => matches!(is, b'+' | b'-'),
            other => is == other,
        };
        at.len() >= shape.len() && at.iter().zip(shape).all(fits)
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let shape = SHAPES.iter().find(|shape| is_like(rest.as_bytes(), shape));
        if let Some(shape) = shape {
            out.push_str("TIME");
            rest = &rest[shape.len()..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    let is_id = |word: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        word.len() == 32 && word.bytes().all(plain)
    };
    let words = out.split_inclusive([' ', '\n']).map(|word| {
        let bare = word.trim_end();
        if is_id(bare) {
            word.replace(bare, "ID")
        } else {
            word.to_owned()
        }
    });
    words.collect()
}

/// Replaces what follows `before`, as long as `length` says.
fn masked(text: &str, before: &str, length: impl Fn(&str) -> usize) -> String {
    let mut parts = text.split(before);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = length(part);
        out.push_str(before);
        out.push_str(if end > 0 { "N" } else { "" });
        out.push_str(&part[end..]);
    }
    out
}

fn request(tool: &str) -> Vec<u8> {
    json!({
        "session_id": "s", "cwd": "/", "hook_event_name": "PermissionRequest",
        "tool_name": tool, "tool_input": {"command": "ls"},
    })
    .to_string()
    .into_bytes()
}

async fn without_a_daemon(said: &mut Transcript) {
    let home = Home::new();
    let wrong = [
        ("FEISHU_APP_ID", "one"),
        ("FEISHU_APP_SECRET", "t w o"),
        ("FEISHU_DOMAIN", "http://example.com"),
        ("FEISHU_OWNER_ID", "three three"),
        ("PERMISSION_REQUEST_TIMEOUT", "0"),
        ("NOD_STATE_DIR", "relative"),
        ("NOD_CHAT_RATE", "fast"),
    ];
    said.run(&home, "nothing set", &["daemon"], &[]).await;
    said.run(&home, "everything wrong", &["daemon"], &wrong)
        .await;
    let proxied = [&settings("feishu")[..], &[("HTTPS_PROXY", "ftp://h:1")]].concat();
    said.run(&home, "no such proxy", &["daemon"], &proxied)
        .await;
    for arguments in [
        &["status"][..],
        &["lock"],
        &["unlock"],
        &["ask", "confirm", "Deploy?"],
    ] {
        said.run(&home, "no daemon", arguments, &[]).await;
    }
    said.run(
        &home,
        "no daemon for an app",
        &["status"],
        &settings("feishu"),
    )
    .await;
    let wrong_app = [("FEISHU_APP_ID", "cli_bad")];
    said.run(&home, "no daemon for a wrong app", &["lock"], &wrong_app)
        .await;
    said.run(&home, "no question", &["ask", "confirm", ""], &[])
        .await;
    let bash = request("Bash");
    said.run_with(&home, "a hook without a daemon", &["hook"], &[], &bash)
        .await;
    said.run_with(&home, "a hook without JSON", &["hook"], &[], b"nonsense")
        .await;
    let never = [("PERMISSION_REQUEST_TIMEOUT", "0")];
    said.run_with(
        &home,
        "a hook with a wrong setting",
        &["hook"],
        &never,
        &bash,
    )
    .await;
    said.run(&home, "no audit yet", &["audit"], &[]).await;
    said.run(&home, "no rules yet", &["rules"], &[]).await;
    said.run(&home, "no such rule", &["rules", "undo", "7"], &[])
        .await;
    for verb in ["status", "install", "logs", "uninstall"] {
        said.run(&home, "no service manager", &["service", verb], &[])
            .await;
    }
    said.run(&home, "a doctor for nothing", &["doctor"], &[])
        .await;
    said.run(
        &home,
        "a set-up by nobody",
        &["setup", "--yes"],
        &[("FEISHU_DOMAIN", "http://127.0.0.1:1")],
    )
    .await;
    said.run(&home, "a bad flag", &["setup", "--owner", "a b"], &[])
        .await;
    for line in [
        "setup --app-id me --app-secret-stdin",
        "setup --domain http://10.0.0.1",
        "setup --app-id cli_a1b2c3d4e5f60718 --app-secret-file nowhere",
        "ask --to oc_\u{e9} confirm q",
    ] {
        let line: Vec<&str> = line.split(' ').collect();
        said.run(&home, "a bad flag", &line, &[]).await;
    }
    said.run(&home, "a preview", &["setup", "--yes", "--dry-run"], &[])
        .await;
    said.run(
        &home,
        "nothing to take back",
        &["setup", "--uninstall"],
        &[],
    )
    .await;
    with_broken_files(said).await;
}

async fn with_broken_files(said: &mut Transcript) {
    let home = Home::new();
    let claude = home.path().join(".claude");
    fs::create_dir(&claude).unwrap();
    fs::write(claude.join("settings.json"), "{ oops").unwrap();
    said.run(
        &home,
        "broken Claude settings",
        &["setup", "--yes", "--dry-run"],
        &[],
    )
    .await;
    let own = home.path().join(".config/nod");
    fs::create_dir_all(&own).unwrap();
    fs::write(
        own.join(".env"),
        format!("FEISHU_APP_ID={APP_ID}\nFEISHU_APP_SECRET={APP_SECRET}\n"),
    )
    .unwrap();
    fs::set_permissions(own.join(".env"), fs::Permissions::from_mode(0o644)).unwrap();
    for verb in ["daemon", "status"] {
        said.run(&home, "a secret open to all", &[verb], &[]).await;
    }
    fs::write(own.join(".env"), "FEISHU_APP_ID cli\n").unwrap();
    for verb in ["daemon", "status"] {
        said.run(&home, "a broken settings file", &[verb], &[])
            .await;
    }
    fs::remove_file(own.join(".env")).unwrap();
    fs::create_dir(home.state()).ok();
    fs::set_permissions(home.state(), fs::Permissions::from_mode(0o755)).unwrap();
    said.run(
        &home,
        "a state directory open to all",
        &["daemon"],
        &settings("feishu"),
    )
    .await;
}

async fn with_a_daemon(said: &mut Transcript) {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let base = feishu.base_url();
    let given = [&settings(&base)[..], &[("NOD_LANG", said.lang)]].concat();
    let daemon = Daemon::start(&given);
    daemon.status_where("connected", is_connected).await;
    let home = &daemon.home;
    said.run(home, "connected", &["status"], &given).await;
    said.run(home, "a second daemon", &["daemon"], &given).await;
    said.run(home, "locked", &["lock"], &given).await;
    said.run(home, "a locked daemon", &["status"], &given).await;
    said.run(home, "unlocked", &["unlock"], &given).await;
    said.run(
        home,
        "nobody answers",
        &["ask", "--timeout", "1", "confirm", "Deploy?"],
        &given,
    )
    .await;
    let before = feishu.messages().len();
    let tapping = async {
        let messages = feishu.wait_messages(before + 1, LIMIT).await.unwrap();
        let card = &messages[before].message_id;
        let press = Press {
            value: Some(json!({"tap": "no"})),
            ..Press::text(card, "")
        };
        let press = Press {
            text: None,
            ..press
        }
        .by(OWNER);
        feishu.click(press).await.unwrap();
    };
    tokio::join!(
        said.run(
            home,
            "somebody says no",
            &["ask", "confirm", "Deploy?"],
            &given
        ),
        tapping
    );
    said.run(home, "an audit that is whole", &["audit", "verify"], &given)
        .await;
    said.run(home, "an audit", &["audit"], &given).await;
    said.run(home, "the log", &["logs", "--once"], &given).await;
    said.run(
        home,
        "a daemon that stays",
        &["setup", "--uninstall"],
        &given,
    )
    .await;
    said.run(home, "a doctor with a daemon", &["doctor"], &given)
        .await;
}

async fn with_a_lost_daemon(said: &mut Transcript) {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let base = feishu.base_url();
    let mut given = settings(&base);
    given.retain(|(name, _)| *name != "FEISHU_OWNER_ID");
    given.extend([
        ("FEISHU_APP_SECRET", "not-the-secret"),
        ("NOD_LANG", said.lang),
    ]);
    let daemon = Daemon::start(&given);
    let degraded = |status: &serde_json::Value| status["connection"]["state"] == "degraded";
    daemon.status_where("degraded", degraded).await;
    said.run(
        &daemon.home,
        "a secret Feishu does not know",
        &["status"],
        &given,
    )
    .await;
    let asks = request("Bash");
    said.run_with(
        &daemon.home,
        "a hook nobody can answer",
        &["hook"],
        &given,
        &asks,
    )
    .await;
    let nobody = settings("http://127.0.0.1:1");
    let daemon = Daemon::start(&nobody);
    // Long enough for the next command to find it waiting still.
    let waiting = |status: &serde_json::Value| {
        let connection = &status["connection"];
        connection["state"] == "waiting" && connection["retry_in_ms"].as_u64() > Some(1_500)
    };
    daemon.status_where("waiting", waiting).await;
    said.run(&daemon.home, "no network", &["status"], &nobody)
        .await;
}

/// Every command, as `nod --help` names them, and those below.
const COMMANDS: &[&str] = &[
    "",
    "setup",
    "service",
    "service install",
    "service uninstall",
    "service status",
    "service logs",
    "demo",
    "doctor",
    "daemon",
    "status",
    "hook",
    "ask",
    "ask confirm",
    "ask choice",
    "ask text",
    "audit",
    "audit verify",
    "logs",
    "rules",
    "rules undo",
    "lock",
    "unlock",
    "simulator",
    "completions",
    "man",
    "settings",
    "settings set",
];

const MISTAKES: &[&str] = &[
    "frob",
    "help frob",
    "status --foo",
    "status extra",
    "status --json --watch",
    "status --json --json",
    "status --json=yes",
    "doctor --wait 5",
    "rules undo",
    "rules undo x",
    "completions ksh",
    "settings set NOD_LNAG en",
    "settings set NOD_LANG fr",
    "settings set FEISHU_APP_SECRET",
    "ask choice q a",
    "ask --timeout 0 confirm q",
    "audit --last",
    "setup --app-secret-file f",
    "demo --lang fr",
    "service install --sandbox none",
];

async fn lines_that_are_not_run(said: &mut Transcript) {
    let home = Home::new();
    for command in COMMANDS {
        let line: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        said.run(&home, "help", &line, &[]).await;
    }
    for line in ["help help", "help --help", "gateway init --help"] {
        let line: Vec<&str> = line.split(' ').collect();
        said.run(&home, "help", &line, &[]).await;
    }
    said.run(&home, "the version", &["--version"], &[]).await;
    said.run(&home, "no command", &["ask"], &[]).await;
    for line in MISTAKES {
        let line: Vec<&str> = line.split(' ').collect();
        said.run(&home, "a wrong line", &line, &[]).await;
    }
}

/// The language is the one thing that cannot be told in the right one.
#[tokio::test]
async fn an_unknown_language_is_told_in_both() {
    let home = Home::new();
    for (line, code) in [("lock", 1), ("man", 0), ("daemon", 78), ("--help", 0)] {
        let output = within(line, home.nod(&[line], &[("NOD_LANG", "fr")]).output())
            .await
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            told.matches("`NOD_LANG` ").count().min(1),
            1,
            "{line}: {told}"
        );
        assert!(told.contains("`zh` 或 `en`"), "{line}: {told}");
    }
}

async fn everything(lang: &'static str) {
    let mut said = Transcript::new(lang);
    lines_that_are_not_run(&mut said).await;
    without_a_daemon(&mut said).await;
    with_a_daemon(&mut said).await;
    with_a_lost_daemon(&mut said).await;
    said.compare();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_speaks_chinese() {
    everything("zh").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_speaks_english() {
    everything("en").await;
}
