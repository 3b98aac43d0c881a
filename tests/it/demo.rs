//! `nod demo` as a newcomer runs it: the real binary, an empty home, nothing
//! set, nothing left behind.

use std::path::Path;
use std::process::{Command, Stdio};

fn demo(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nod"));
    command
        .arg("demo")
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("TMPDIR", home)
        .current_dir(home)
        .stdin(Stdio::null());
    command
}

fn left_behind(home: &Path) -> Vec<String> {
    std::fs::read_dir(home)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

/// Each scene's title, and what must stand under it.
const SCENES: [(&str, &[&str]); 14] = [
    (
        "1. Allow once",
        &[
            "you tap        [Allow once]",
            "✓ Allowed once",
            r#"hook prints    {"behavior":"allow"}"#,
            "Claude Code    runs it",
            "card becomes   Allowed",
        ],
    ),
    (
        "2. Always allow",
        &[
            r#""ruleContent":"npm run build""#,
            "writes the rule into .claude/settings.local.json: Bash(npm run build)",
            "passes by its rule, no card: Bash(npm run build)",
            "✓ Rule removed",
            "would ask: the rule is gone",
        ],
    ),
    (
        "3. Deny with a reason",
        &[
            "[Deny]  “Open a pull request first”",
            r#""message":"Open a pull request first""#,
            "reads why",
            "card becomes   Denied",
        ],
    ),
    (
        "4. Deny by replying",
        &[
            "you reply      “Use cents, not floats”",
            r#""behavior":"deny""#,
            "card becomes   Denied",
        ],
    ),
    (
        "5. Claude has questions",
        &[
            "[Submit]  SQLite  Metrics + Tests",
            r#""SQLite""#,
            r#""Metrics, Tests""#,
            "card becomes   Answered",
        ],
    ),
    (
        "6. Approve a plan",
        &[
            "[Approve the plan]",
            r#""updatedInput":{"plan""#,
            "card becomes   Answered",
        ],
    ),
    (
        "7. Deny and interrupt",
        &[
            r#""interrupt":true"#,
            "its turn stops at once",
            "card becomes   Denied and interrupted",
        ],
    ),
    (
        "8. A colleague who may not decide",
        &[
            "colleague taps [Allow once]",
            "✗ You are not an approver: nothing was changed",
            "card becomes   Allowed",
        ],
    ),
    (
        "9. The daemon crashes",
        &[
            "killed with -9",
            r#"{"behavior":"allow"}"#,
            "card becomes   Allowed",
        ],
    ),
    (
        "10. Answered in the terminal",
        &[
            "hook prints    (nothing)",
            "nod allowed nothing",
            "card becomes   Allowed in the terminal",
        ],
    ),
    (
        "11. Cancelled in the terminal",
        &[
            "the card is void at once",
            "hook prints    (nothing)",
            "card becomes   Void",
        ],
    ),
    (
        "12. Nobody answers",
        &[
            "nobody taps",
            "hook prints    (nothing)",
            "card becomes   Timed out",
        ],
    ),
    (
        "13. A whole task from the chat",
        &[
            "you write      “/new Charge prices in cents”",
            "card           Task running · shop",
            "you tap        [Half up]",
            "card becomes   Answered",
            "you tap        [Allow once]",
            "card           Answer · shop",
            "rounded as you chose: **Half up**. All 42 tests pass.",
            "card becomes   Task done",
        ],
    ),
    (
        "14. Stop it",
        &[
            "you write      “/new Review the whole shop, file by file”",
            "progress       Read · src/",
            "you tap        [Stop]",
            "✓ Stopping",
            "nod says       Stopped.",
            "card becomes   Task stopped",
        ],
    ),
];

#[test]
fn the_tour_by_itself_shows_every_ending_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let run = demo(home.path(), &["--auto", "--lang", "en"])
        .output()
        .unwrap();
    let told = String::from_utf8(run.stdout).unwrap();
    let complained = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}\n{complained}");
    assert_eq!(complained, "");
    let mut rest = told.as_str();
    for (i, (title, lines)) in SCENES.iter().enumerate() {
        let (_, after) = rest.split_once(&format!("\n{title}\n")).expect(title);
        let scene = match SCENES.get(i + 1) {
            Some((next, _)) => after.split_once(&format!("\n{next}\n")).expect(next).0,
            None => after,
        };
        for line in *lines {
            assert!(scene.contains(line), "{title}: no `{line}` in {scene}");
        }
        rest = after;
    }
    assert!(
        rest.contains("14 scenes, each ended as it should"),
        "{rest}"
    );
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
}

#[test]
fn it_speaks_chinese_unless_told_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let run = demo(home.path(), &["--auto"]).output().unwrap();
    let told = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{told}");
    for toast in [
        "已批准运行",
        "已始终允许，后续相同操作将自动批准",
        "已拒绝运行",
        "已拒绝并中断",
        "你不在审批人名单中，操作未生效",
        "任务已完成",
        "任务已停止",
    ] {
        assert!(told.contains(toast), "{toast}");
    }
}

/// The demo with its page, ended when dropped.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_visitor_gets_a_page_and_one_signal_ends_it_all() {
    use std::io::BufRead as _;

    let home = tempfile::tempdir().unwrap();
    let child = demo(home.path(), &["--no-browser", "--lang", "en"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let mut lines = std::io::BufReader::new(running.0.stdout.take().unwrap()).lines();
    let mut until = |part: &str| {
        lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| line.contains(part))
            .unwrap_or_else(|| panic!("no line with `{part}`"))
    };
    let page = until("http://127.0.0.1:").trim().to_owned();
    until("your turn");
    let body = fetch(&page);
    assert!(
        body.contains("content-security-policy: default-src 'none'"),
        "{body}"
    );
    assert!(
        body.contains("<script type=\"module\" src=\"/app.js\">"),
        "{body}"
    );

    let pid = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    until("The demo is over");
    assert!(running.0.wait().unwrap().success());
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
}

/// The page, headers and all, by the plainest HTTP there is.
fn fetch(page: &str) -> String {
    use std::io::{Read as _, Write as _};

    let address = page
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
