//! The real `nod setup` by flags, from a home with somebody's settings to a
//! proven tap, and all of it taken back.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nod::simulator::{APP_ID, APP_SECRET, OWNER, Options, Press, Simulator};

const LIMIT: Duration = Duration::from_secs(30);
const SETTINGS: &str = "{\n  // mine\n  \"model\": \"opus\"\n}";

fn nod(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nod"));
    command
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/nonexistent")
        .env("NOD_LANG", "en")
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn text(output: &Output) -> String {
    let parts = [&output.stdout, &output.stderr].map(|part| String::from_utf8_lossy(part));
    parts.concat()
}

/// Every file and directory under `dir`, with mode and content.
fn picture(dir: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let is = fs::symlink_metadata(&path).unwrap();
            let content = if is.is_file() {
                fs::read(&path).unwrap()
            } else {
                open.push(path.clone());
                Vec::new()
            };
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            found.insert(name, (is.permissions().mode() & 0o777, content));
        }
    }
    found
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".claude")).unwrap();
    fs::write(home.path().join(".claude/settings.json"), SETTINGS).unwrap();
    home
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_alone_lead_to_a_proven_tap_and_back() {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let home = home();
    let before = picture(home.path());
    let base = feishu.base_url();
    let flags = [
        "setup",
        "--yes",
        "--domain",
        base.trim_end_matches('/'),
        "--app-id",
        APP_ID,
        "--app-secret-stdin",
        "--owner",
        OWNER,
    ];
    let mut child = nod(home.path(), &flags)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{APP_SECRET}").unwrap();
    drop(stdin);
    let setup = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());

    let cards = feishu.wait_messages(1, LIMIT).await.unwrap();
    let press = Press::text(&cards[0].message_id, "Tap me");
    let clicked = feishu.click(press.by(OWNER)).await.unwrap();
    assert_eq!(clicked.toast.unwrap().content, "The tap arrived ✓");

    let output = tokio::time::timeout(LIMIT, setup).await.unwrap().unwrap();
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains(APP_SECRET), "{said}");
    let after = picture(home.path());
    let (mode, env) = &after[".config/nod/.env"];
    assert_eq!(*mode, 0o600);
    let env = std::str::from_utf8(env).unwrap();
    assert!(env.contains(APP_SECRET) && env.contains(OWNER), "{env}");
    let settings = &after[".claude/settings.json"].1;
    let settings = std::str::from_utf8(settings).unwrap();
    assert!(settings.contains("// mine") && settings.contains("PermissionRequest"));

    let again = nod(home.path(), &["setup", "--yes", "--no-test-card"])
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", text(&again));
    assert_eq!(picture(home.path()), after, "a second time changes nothing");

    let back = nod(home.path(), &["setup", "--uninstall"])
        .output()
        .unwrap();
    assert!(back.status.success(), "{}", text(&back));
    assert_eq!(picture(home.path()), before);
    assert!(feishu.violations().is_empty());
    feishu.shutdown().await;
}

#[test]
fn a_preview_changes_nothing() {
    let home = home();
    let before = picture(home.path());
    let preview = nod(home.path(), &["setup", "--yes", "--dry-run"])
        .output()
        .unwrap();
    assert!(preview.status.success(), "{}", text(&preview));
    assert!(text(&preview).contains("+  \"hooks\": {"));
    assert_eq!(picture(home.path()), before);
}

#[test]
fn unreadable_claude_settings_are_named_by_line_and_left_alone() {
    let home = home();
    let file = home.path().join(".claude/settings.json");
    fs::write(&file, "{\n  oops\n}").unwrap();
    let preview = nod(home.path(), &["setup", "--yes", "--dry-run"])
        .output()
        .unwrap();
    assert_eq!(preview.status.code(), Some(1));
    assert!(
        text(&preview).contains("line 2 column 3"),
        "{}",
        text(&preview)
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\n  oops\n}");
}

#[test]
fn a_machine_without_a_service_manager_is_told_what_to_do() {
    let home = home();
    let install = nod(home.path(), &["service", "install"]).output().unwrap();
    assert_eq!(install.status.code(), Some(1));
    assert!(text(&install).contains("nod daemon"), "{}", text(&install));
    let print = nod(home.path(), &["service", "install", "--print"])
        .output()
        .unwrap();
    assert!(print.status.success());
    assert!(text(&print).contains("daemon"), "{}", text(&print));
}
