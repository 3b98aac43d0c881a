//! `nod demo` as a newcomer runs it: the real binary, an empty home, nothing
//! set, nothing left behind.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Nothing a demo does takes this long, on a busy machine either.
const LIMIT: Duration = Duration::from_secs(60);

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
            "[Deny with this reason]  “Open a pull request first”",
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
            "the card says at once that it no longer waits",
            "hook decides   (nothing)",
            "card becomes   No longer waiting",
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
            "card           Charge prices in cents · shop · #1",
            "you tap        [Half up]",
            "card becomes   Answered",
            "you tap        [Allow once]",
            "· Claude · Answer",
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
    assert_shows(&told, &SCENES);
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
}

/// Every scene in its order, and its lines under its title.
fn assert_shows(told: &str, scenes: &[(&str, &[&str])]) {
    let mut rest = told;
    for (i, (title, lines)) in scenes.iter().enumerate() {
        let (_, after) = rest.split_once(&format!("\n{title}\n")).expect(title);
        let scene = match scenes.get(i + 1) {
            Some((next, _)) => after.split_once(&format!("\n{next}\n")).expect(next).0,
            None => after,
        };
        for line in *lines {
            assert!(scene.contains(line), "{title}: no `{line}` in {scene}");
        }
        rest = after;
    }
    let closing = format!("{} scenes, each ended as it should", scenes.len());
    assert!(rest.contains(&closing), "{rest}");
    assert!(rest.ends_with("\nnext: `nod setup`\n"), "{rest}");
}

#[cfg(feature = "team")]
const OF_A_TEAM: [(&str, &[&str]); 6] = [
    (
        "1. A laptop without the app's secret",
        &[
            "card           npm test · shop · checkout · desk · Claude · Waiting",
            "comes by       gateway A",
            "✓ Allowed once",
            r#"hook decides   {"behavior":"allow"}"#,
        ],
    ),
    (
        "2. Another laptop, the other gateway",
        &[
            "· travel ·",
            "comes by       gateway B",
            "✓ Denied",
            r#""behavior":"deny""#,
        ],
    ),
    (
        "3. Your colleague's laptop",
        &[
            "· loft ·",
            "colleague taps [Allow once]",
            r#"{"behavior":"allow"}"#,
        ],
    ),
    (
        "4. A colleague taps your card",
        &[
            "colleague taps [Allow once]",
            "✗ You are not an approver: nothing was changed",
            "you tap        [Allow once]",
            "card becomes   Allowed",
        ],
    ),
    (
        "5. A gateway is killed",
        &[
            "gateway        A is killed with -9",
            "comes by       gateway B",
            "card becomes   Allowed",
            r#"{"behavior":"allow"}"#,
            "both are there again",
        ],
    ),
    (
        "6. A laptop sleeps",
        &[
            "laptop         falls asleep",
            "! Checking the outcome: the card will be updated",
            "laptop         wakes up",
            "A tap on this card arrived too late and was not used: tap again.",
            "card becomes   Allowed",
            r#"{"behavior":"allow"}"#,
        ],
    ),
];

#[cfg(feature = "team")]
#[test]
fn the_tour_of_a_team_shows_every_ending_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let run = demo(home.path(), &["--team", "--auto", "--lang", "en"])
        .output()
        .unwrap();
    let told = String::from_utf8(run.stdout).unwrap();
    let complained = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}\n{complained}");
    assert_eq!(complained, "");
    assert!(
        told.contains("bus            the one in nod itself"),
        "{told}"
    );
    assert_shows(&told, &OF_A_TEAM);
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
    assert_eq!(processes(home.path()), []);
}

#[cfg(feature = "team")]
#[test]
fn a_visitor_leaves_a_team_in_the_middle_of_everything_and_nothing_stays() {
    let home = tempfile::tempdir().unwrap();
    // What calls itself a NATS server and is none keeps nobody from a bus.
    let server = home.path().join("nats-server");
    std::fs::write(&server, "").unwrap();
    let mut team = demo(home.path(), &["--team", "--no-browser", "--lang", "en"]);
    team.env("PATH", home.path());
    let mut running = Running::of(team);
    running.until("bus            the one in nod itself");
    let (address, token) = running.address();
    let page = (address.as_str(), token.as_str());
    running.until("your turn");
    let ask = |scene: u32| {
        let wish = format!(r#"{{"ask": "play", "scene": {scene}}}"#);
        http(page, "POST /control/note", &wish);
    };
    let kill = || http(page, "POST /control/note", r#"{"ask": "kill"}"#);
    // Whoever is forgotten is let in again for the next scene.
    http(page, "POST /control/text", r#"{"text": "/forget travel"}"#);
    running.until("card           Forget a machine");
    let asks = history(page, "message").pop().unwrap();
    let tap = serde_json::json!({"message_id": asks["message_id"], "text": "Forget"});
    http(page, "POST /control/click", &tap.to_string());
    running.until("card becomes   Machine forgotten");
    ask(2);
    running.until("card           npm run deploy · shop · checkout · travel");
    ask(5);
    running.until("5. A gateway is killed");
    running.until("your turn");
    kill();
    running.until("A is killed with -9");
    ask(6);
    running.until("6. A laptop sleeps");
    running.until("your turn");
    kill();
    running.until("falls asleep");
    running.interrupt();
    running.until("The demo is over");
    assert!(running.ended().success());
    std::fs::remove_file(server).unwrap();
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
    assert_eq!(processes(home.path()), []);
}

#[cfg(not(feature = "team"))]
#[test]
fn without_teams_there_is_none_to_show() {
    let home = tempfile::tempdir().unwrap();
    let run = demo(home.path(), &["--team", "--auto", "--lang", "en"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1));
    let complained = String::from_utf8_lossy(&run.stderr);
    assert!(complained.contains("built without teams"), "{complained}");
}

#[test]
fn it_speaks_chinese_in_a_chinese_terminal() {
    let home = tempfile::tempdir().unwrap();
    let mut run = demo(home.path(), &["--auto"]);
    let run = run.env("LANG", "zh_CN.UTF-8").output().unwrap();
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
    lines: Receiver<String>,
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
        let printed = BufReader::new(child.stdout.take().unwrap()).lines();
        let (told, lines) = channel();
        std::thread::spawn(move || {
            let mut printed = printed.map_while(Result::ok);
            printed.all(|line| told.send(line).is_ok())
        });
        Self { child, lines }
    }

    /// The next line it prints that holds this.
    fn until(&mut self, part: &str) -> String {
        let until = Instant::now() + LIMIT;
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(until - Instant::now()) {
            if line.contains(part) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line with `{part}` in {seen:#?}")
    }

    /// How it ended.
    fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it did not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Where its page is, and the token in its address.
    fn address(&mut self) -> (String, String) {
        let page = self.until("http://127.0.0.1:");
        let page = page.trim().trim_start_matches("http://");
        let (page, token) = page.split_once('#').expect("a token");
        (page.split('/').next().unwrap().to_owned(), token.to_owned())
    }

    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }

    #[cfg(target_os = "linux")]
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
fn http((address, token): (&str, &str), request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let length = body.len();
    let token = if token.is_empty() {
        String::new()
    } else {
        format!("Authorization: Bearer {token}\r\n")
    };
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{token}\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// What happened so far, of one kind.
fn history(page: (&str, &str), kind: &str) -> Vec<serde_json::Value> {
    let request = format!("GET /control/history?after=0&kind={kind}");
    let answer = http(page, &request, "");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let mut told: serde_json::Value = serde_json::from_str(body).unwrap();
    std::mem::take(told["entries"].as_array_mut().unwrap())
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
    let (address, token) = running.address();
    let page = (address.as_str(), token.as_str());
    let other = beside.address();
    assert_ne!(address, other.0, "two demos do not meet");
    assert_ne!(token, other.1);
    beside.until("your turn");
    running.until("your turn");
    let body = http(page, "GET /", "");
    for part in [
        "content-security-policy: default-src 'none'",
        r#"<script type="module" src="/app.js">"#,
    ] {
        assert!(body.contains(part), "{body}");
    }

    let stop = r#"{"ask": "play", "scene": 14}"#;
    let review = r#"{"text": "/new Review the whole shop, file by file"}"#;
    http(page, "POST /control/note", stop);
    running.until("14. Stop it");
    http(page, "POST /control/text", review);
    running.until("progress       Read · ");
    http(page, "POST /control/note", r#"{"ask": "next"}"#);
    running.until("card becomes   Task stopped");
    running.until("That was all.");

    http(page, "POST /control/note", stop);
    running.until("14. Stop it");
    http(page, "POST /control/text", review);
    running.until("progress       Read · ");
    running.interrupt();
    running.until("The demo is over");
    assert!(running.ended().success());
    assert!(
        TcpStream::connect(&address).is_err(),
        "its port is free again"
    );

    beside.interrupt();
    beside.until("The demo is over");
    assert!(beside.ended().success());
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
    assert_eq!(processes(home.path()), []);
}

#[test]
fn a_visitor_kills_the_daemon_and_undoes_a_lock_and_the_same_card_still_decides() {
    let home = tempfile::tempdir().unwrap();
    let mut running = Running::start(home.path(), &["--no-browser", "--lang", "en"]);
    let (address, token) = running.address();
    let page = (address.as_str(), token.as_str());
    let history = |kind: &str| history(page, kind);
    let noted = |note: &str| {
        let until = Instant::now() + LIMIT;
        loop {
            let found = history("note")
                .into_iter()
                .rfind(|entry| entry["note"] == note);
            if let Some(found) = found {
                return found;
            }
            assert!(Instant::now() < until, "no note `{note}`");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    running.until("your turn");
    let daemon = || {
        let all = processes(home.path());
        all.into_iter()
            .find(|(_, command)| command.contains(" daemon"))
            .map(|(pid, _)| pid)
    };
    let before = daemon();
    http(page, "POST /control/note", r#"{"ask": "kill"}"#);
    running.until("killed with -9");
    let mut back = noted("daemon");
    while back["what"] != "started" {
        back = noted("daemon");
    }
    assert!(back["ms"].as_u64().unwrap() > 0, "{back}");
    if cfg!(target_os = "linux") {
        assert_ne!(before, daemon(), "another process");
    }

    http(page, "POST /control/text", r#"{"text": "/lock"}"#);
    noted("locked");
    http(page, "POST /control/note", r#"{"ask": "unlock"}"#);
    noted("unlocked");
    let card = history("message")
        .into_iter()
        .find(|entry| entry["card"].is_object())
        .unwrap();
    let tap = serde_json::json!({"message_id": card["message_id"], "text": "Allow once"});
    // The card gets its way to allow back a moment after the lock is gone.
    let until = Instant::now() + LIMIT;
    while !http(page, "POST /control/click", &tap.to_string()).starts_with("HTTP/1.1 200") {
        assert!(Instant::now() < until, "the card never had it back");
        std::thread::sleep(Duration::from_millis(50));
    }
    running.until(r#"hook decides   {"behavior":"allow"}"#);
    let end = noted("scene_end");
    assert!(
        end.get("as_planned").is_none(),
        "no choice is another than planned: {end}"
    );
    running.interrupt();
    assert!(running.ended().success());
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
}

#[test]
fn another_user_can_not_decide_in_a_demo() {
    let home = tempfile::tempdir().unwrap();
    let browser = home.path().join("xdg-open");
    let told = home.path().join("told");
    let made = Command::new("mkfifo").arg(&told).status().unwrap();
    assert!(made.success());
    let script = format!("#!/bin/sh\nprintf '%s' \"$*\" >'{}'\n", told.display());
    std::fs::write(&browser, script).unwrap();
    crate::hooks::chmod(&browser, 0o755);
    let mut seen = demo(home.path(), &["--lang", "en"]);
    seen.env("DISPLAY", ":0").env("PATH", home.path());
    let mut running = Running::of(seen);
    let (address, token) = running.address();
    running.until("your turn");
    let mut guess = token.clone().into_bytes();
    guess[0] = if guess[0] == b'a' { b'b' } else { b'a' };
    let guess = String::from_utf8(guess).unwrap();
    for shown in ["", "x", &guess, &token[1..], &format!("{token}x")] {
        for (request, body) in [
            ("GET /control/people", ""),
            ("GET /control/messages", ""),
            ("GET /control/addresses", ""),
            ("GET /control/feed?after=0", ""),
            ("GET /control/wait?messages=0", ""),
            (
                "POST /control/click",
                r#"{"message_id": "om_x", "text": "Allow once"}"#,
            ),
            ("POST /control/click/raw", r#"{"payload": {}}"#),
            ("POST /control/text", r#"{"text": "/help"}"#),
            ("POST /control/event", r#"{"event_type": "x", "event": {}}"#),
            ("POST /control/note", r#"{"ask": "next"}"#),
            ("POST /control/note", r#"{"ask": "kill"}"#),
            ("POST /control/note", r#"{"ask": "unlock"}"#),
            ("POST /control/fault", r#"{"fault": "drop"}"#),
        ] {
            let answer = http((&address, shown), request, body);
            assert!(answer.starts_with("HTTP/1.1 401"), "{request}: {answer}");
            assert!(!answer.contains(&token), "{answer}");
        }
    }
    // Nor can they speak to the local Feishu as the app everybody knows.
    let own = http((&address, &token), "GET /control/addresses", "");
    let (_, own) = own.split_once("\r\n\r\n").unwrap();
    let own: serde_json::Value = serde_json::from_str(own).unwrap();
    let feishu = own["feishu"].as_str().unwrap();
    let known = (
        nod::for_tests::simulator::APP_ID,
        nod::for_tests::simulator::APP_SECRET,
    );
    for (path, body) in [
        (
            "POST /callback/ws/endpoint",
            format!(r#"{{"AppID": "{}", "AppSecret": "{}"}}"#, known.0, known.1),
        ),
        (
            "POST /open-apis/auth/v3/tenant_access_token/internal",
            format!(
                r#"{{"app_id": "{}", "app_secret": "{}"}}"#,
                known.0, known.1
            ),
        ),
    ] {
        let answer = http((feishu, ""), path, &body);
        assert!(!answer.contains(r#""code":0"#), "{answer}");
    }
    // What programs are started with is everybody's to see.
    let way = std::fs::read_to_string(&told).unwrap();
    for (_, command) in processes(home.path()) {
        assert!(!command.contains(&token), "{command}");
    }
    assert!(!way.contains(&token), "{way}");
    let file = std::fs::metadata(&way).unwrap();
    assert_eq!(file.permissions().mode() & 0o077, 0, "{way}");
    let page = std::fs::read_to_string(&way).unwrap();
    assert!(page.contains(&format!("#{token}")), "{page}");
    running.interrupt();
    assert!(running.ended().success());
    assert!(!Path::new(&way).exists());
}

#[test]
fn the_simulator_asks_for_its_token_unless_it_is_open() {
    let home = tempfile::tempdir().unwrap();
    for more in [&[][..], &["--open"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nod"));
        command.arg("simulator").args(more).env_clear();
        command.env("HOME", home.path()).stdin(Stdio::null());
        let mut running = Running::of(command);
        let line = running.until("feishu");
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = told["control"].as_str().unwrap().replace("http://", "");
        let bare = http((&address, ""), "GET /control/people", "");
        assert_eq!(bare.starts_with("HTTP/1.1 200"), !more.is_empty(), "{bare}");
        if let Some(token) = told["token"].as_str() {
            let shown = http((&address, token), "GET /control/people", "");
            assert!(shown.starts_with("HTTP/1.1 200"), "{shown}");
        } else {
            assert!(!more.is_empty(), "{line}");
        }
    }
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
    let status = running.ended();
    let rest: Vec<String> = running.lines.iter().collect();
    assert_eq!(status.code(), Some(1), "{rest:?}");
    let told = running.complaints();
    assert!(told.contains("nod: scene "), "{told}");
    assert_eq!(left_behind(home.path()), Vec::<String>::new());
    assert_eq!(processes(home.path()), []);
}
