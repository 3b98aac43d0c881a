//! `nod demo` as a newcomer runs it: the real binary, an empty home, nothing
//! set, nothing left behind.

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

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
            r#"hook decides   {"behavior":"allow"}"#,
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
            "hook decides   (nothing)",
            "nod allowed nothing",
            "card becomes   Allowed in the terminal",
        ],
    ),
    (
        "11. Cancelled in the terminal",
        &[
            "the card is void at once",
            "hook decides   (nothing)",
            "card becomes   Void",
        ],
    ),
    (
        "12. Nobody answers",
        &[
            "nobody taps",
            "hook decides   (nothing)",
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
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(home: &Path, arguments: &[&str]) -> Self {
        Self::of(demo(home, arguments))
    }

    fn of(mut demo: Command) -> Self {
        let mut child = demo
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line it prints that holds this.
    fn until(&mut self, part: &str) -> String {
        self.lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| line.contains(part))
            .unwrap_or_else(|| panic!("no line with `{part}`"))
    }

    /// Where its page is.
    fn address(&mut self) -> String {
        let page = self.until("http://127.0.0.1:");
        let page = page.trim().trim_start_matches("http://");
        page.split('/').next().unwrap().to_owned()
    }

    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }

    fn complaints(&mut self) -> String {
        let mut text = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut text).unwrap();
        text
    }
}

/// The processes that belong to a demo in this home: their ids and their
/// command lines. Only where the kernel tells.
fn processes(home: &Path) -> Vec<(i32, String)> {
    let Ok(all) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let of_home = |entry: std::fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let read = |file: &str| std::fs::read(entry.path().join(file)).ok();
        let environment = String::from_utf8_lossy(&read("environ")?).into_owned();
        let command = String::from_utf8_lossy(&read("cmdline")?).replace('\0', " ");
        let own = environment.contains(home.to_str()?) && !command.is_empty();
        own.then_some((pid, command))
    };
    all.flatten().filter_map(of_home).collect()
}

/// An answer of the page's server, headers and all, by the plainest HTTP there is.
fn http(address: &str, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_visitor_gets_a_page_plays_and_one_signal_ends_it_all() {
    let home = tempfile::tempdir().unwrap();
    let arguments = ["--no-browser", "--lang", "en"];
    let mut running = Running::start(home.path(), &arguments);
    // A screen, but nothing that could open a browser on it.
    let mut headless = demo(home.path(), &["--lang", "en"]);
    headless.env("DISPLAY", ":0").env("PATH", home.path());
    let mut beside = Running::of(headless);
    let page = running.address();
    assert_ne!(page, beside.address(), "two demos do not meet");
    beside.until("your turn");
    running.until("your turn");
    let body = http(&page, "GET /", "");
    for part in [
        "content-security-policy: default-src 'none'",
        r#"<script type="module" src="/app.js">"#,
    ] {
        assert!(body.contains(part), "{body}");
    }

    let stop = r#"{"ask": "play", "scene": 14}"#;
    let review = r#"{"text": "/new Review the whole shop, file by file"}"#;
    http(&page, "POST /control/note", stop);
    running.until("14. Stop it");
    http(&page, "POST /control/text", review);
    running.until("progress       Read · ");
    http(&page, "POST /control/note", r#"{"ask": "next"}"#);
    running.until("card becomes   Task stopped");
    running.until("That was all.");

    http(&page, "POST /control/note", stop);
    running.until("14. Stop it");
    http(&page, "POST /control/text", review);
    running.until("progress       Read · ");
    running.interrupt();
    running.until("The demo is over");
    assert!(running.child.wait().unwrap().success());
    assert!(TcpStream::connect(&page).is_err(), "its port is free again");

    beside.interrupt();
    beside.until("The demo is over");
    assert!(beside.child.wait().unwrap().success());
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
    assert_eq!(processes(home.path()), []);
}

#[test]
fn a_reader_that_leaves_ends_the_tour_quietly() {
    let home = tempfile::tempdir().unwrap();
    let mut child = demo(home.path(), &["--auto", "--lang", "en"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    assert!(first.starts_with("nod demo: "), "{first}");
    drop(reader);
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success());
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn a_scene_that_fails_is_named_and_fails_the_tour() {
    let home = tempfile::tempdir().unwrap();
    let mut running = Running::start(home.path(), &["--auto", "--lang", "en"]);
    running.until("2. Always allow");
    let all = processes(home.path());
    let daemon = all.iter().find(|(_, command)| command.contains(" daemon"));
    let pid = rustix::process::Pid::from_raw(daemon.expect("a daemon").0).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let rest: Vec<String> = running.lines.by_ref().map_while(Result::ok).collect();
    assert_eq!(running.child.wait().unwrap().code(), Some(1), "{rest:?}");
    let told = running.complaints();
    assert!(told.contains("nod: scene "), "{told}");
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
    assert_eq!(processes(home.path()), []);
}
