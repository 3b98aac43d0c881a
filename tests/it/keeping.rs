//! What nod keeps and what it lets go: no tool input after the end, no lock
//! that opens by itself, no history that a stranger pushes out, and nothing
//! that a repository's odd files hold up.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nod::for_tests::hook::wire::{Additions, HookMessage, Registration};
use nod::for_tests::ids::RequestId;
use nod::for_tests::simulator::{ChatText, STRANGER};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::hooks::{Home, LIMIT, Stage, bash, offered, permission, toast, within};
use crate::support::until;

const ALLOWED: (&str, &str) = ("success", "已批准运行");

/// Asks over the socket as a hook does; the ack, and the place at the desk.
async fn asks(home: &Home, project: &Path, n: usize, input: &Value) -> (Value, UnixStream) {
    let mut input = input.clone();
    input["cwd"] = json!(project);
    let message = HookMessage::Register(Registration {
        id: RequestId::parse(&format!("{n:032x}")).unwrap(),
        project: project.to_owned(),
        raw_input: input.to_string().into_bytes(),
        nod: Some(Additions::default()),
    });
    let mut stream = within(UnixStream::connect(home.socket())).await.unwrap();
    within(stream.write_all(&message.encode())).await.unwrap();
    let mut ack = Vec::new();
    loop {
        if let Ok(ack) = serde_json::from_slice(&ack) {
            return (ack, stream);
        }
        let read = within(stream.read_buf(&mut ack)).await.unwrap();
        assert!(read > 0, "no ack: {}", String::from_utf8_lossy(&ack));
    }
}

fn fifo(path: &Path) {
    // By the program, since macOS lacks the call.
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fifo_in_a_repository_holds_up_neither_other_projects_nor_the_stop() {
    let mut stage = Stage::new().await;
    let odd: Vec<_> = ["git", "head", "settings"]
        .iter()
        .map(|name| stage.home.path().join(name))
        .collect();
    for dir in &odd {
        fs::create_dir(dir).unwrap();
    }
    fifo(&odd[0].join(".git"));
    fs::create_dir(odd[1].join(".git")).unwrap();
    fifo(&odd[1].join(".git/HEAD"));
    fs::create_dir(odd[2].join(".claude")).unwrap();
    fifo(&odd[2].join(".claude/settings.local.json"));
    let mut held = Vec::new();
    for n in 0..600 {
        let (ack, stream) =
            asks(&stage.home, &odd[n % 3], n, &bash(&format!("s{n}"), "make")).await;
        assert_eq!(ack["success"], true, "request {n}: {ack}");
        held.push(stream);
    }
    let begun = Instant::now();
    let hook = stage.home.hook(&bash("mine", "npm run mine"));
    let card = stage
        .sim
        .wait_for(LIMIT, |sim| {
            let mut all = sim.messages().into_iter();
            all.find(|message| message.content.contains("npm run mine"))
        })
        .await
        .expect("the other project's card");
    let tapped = stage.tap(&card.message_id, "allow").await;
    assert_eq!(toast(&tapped), ALLOWED, "after {:?}", begun.elapsed());
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    let daemon = stage.take_daemon();
    let begun = Instant::now();
    daemon.stop().await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "the stop took {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_database_leaves_nod_locked_until_it_is_unlocked_here() {
    let mut stage = Stage::new().await;
    assert_eq!(stage.home.status().await["locked"], false, "a first start");
    let file = stage.home.state().join("nod.db");
    for lost in ["damaged", "empty", "in memory"] {
        assert_eq!(stage.home.run(&["lock"]).await.code, Some(0));
        stage.stop().await;
        for tail in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{tail}", file.display()));
        }
        match lost {
            "damaged" => fs::write(&file, "not a database".repeat(100)).unwrap(),
            "empty" => fs::write(&file, "").unwrap(),
            _ => fs::create_dir(&file).unwrap(),
        }
        stage.start().await;
        for again in [false, true] {
            let status = stage.home.status().await;
            assert_eq!(status["locked"], true, "{lost}: {status}");
            let page = stage.home.run(&["status"]).await.stdout;
            assert!(page.contains("nod unlock"), "{page}");
            let (hook, card) = stage.ask_bash(&format!("touch {lost}")).await;
            let shown = stage.sim.message(&card).unwrap().card.unwrap();
            assert!(!offered(&shown).contains(&"allow".to_owned()), "{lost}");
            assert!(stage.face(&card).contains("nod unlock"), "{lost}");
            let tapped = stage.tap(&card, "deny").await;
            assert_eq!(toast(&tapped), ("success", "已拒绝运行"), "{lost}");
            assert_eq!(hook.ended().await.decision()["behavior"], "deny");
            if !again {
                stage.kill().await;
                stage.start().await;
            }
        }
        assert_eq!(stage.home.run(&["unlock"]).await.code, Some(0));
        let (hook, card) = stage.ask_bash(&format!("touch {lost}")).await;
        assert_eq!(toast(&stage.tap(&card, "allow").await), ALLOWED, "{lost}");
        assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    }
}

/// The files below `dir` that hold these bytes.
fn holding(dir: &Path, bytes: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if path.is_file()
            && let Ok(text) = fs::read(&path)
            && text
                .windows(bytes.len())
                .any(|part| part == bytes.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_end_the_tools_input_is_in_no_file_of_nods() {
    const MARK: &str = "mark-7f3a91";
    const SECRET: &str = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
    let mut stage = Stage::new().await;
    let dir = stage.home.state();
    // The record keeps one short masked line: not the secret, not the rest.
    let padding = "all ".repeat(40);
    let command = format!("make TOKEN={SECRET} {padding} {MARK}");
    let (allowed, first) = stage.ask_bash(&command).await;
    let (denied, second) = stage.ask_bash(&command).await;
    let question = json!({"questions": [{"question": format!("{padding} {MARK}?"), "header": "h",
        "multiSelect": false, "options": [{"label": "Yes", "description": "y"},
        {"label": "No", "description": "n"}]}]});
    let asked = permission("s2", "AskUserQuestion", &question);
    let (hook, third) = stage.ask(&asked).await;
    assert_ne!(holding(&dir, MARK), [""; 0], "it waits on disk");
    let tapped = stage.tap(&first, "allow").await;
    assert_eq!(toast(&tapped), ALLOWED);
    stage.tap(&second, "deny").await;
    hook.signal("-TERM");
    assert_eq!(allowed.ended().await.decision()["behavior"], "allow");
    assert_eq!(denied.ended().await.decision()["behavior"], "deny");
    for (card, ending) in [(&first, "已批准"), (&second, "已拒绝"), (&third, "失效")] {
        let shown = stage.shows(card, ending).await;
        assert!(shown.contains(MARK), "people still see it: {shown}");
    }
    until("the input is in no file", || async {
        holding(&dir, MARK).is_empty().then_some(())
    })
    .await;
    stage.kill().await;
    for word in [MARK, SECRET] {
        assert_eq!(holding(&dir, word), [""; 0], "nor after a crash");
    }
    let audit = stage.home.audit().await;
    let what = |line: &Value| line["detail"]["what"].as_str().unwrap().to_owned();
    for line in audit.iter().map(what) {
        assert!(line.len() < 120 && line.ends_with('…'), "{line}");
    }
    assert!(what(&audit[0]).starts_with("make TOKEN="), "{audit:?}");
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_who_writes_again_and_again_leaves_two_lines_in_the_audit() {
    const TIMES: usize = 300;
    let mut stage = Stage::new().await;
    let (hook, card) = stage.ask_bash("npm test").await;
    stage.tap(&card, "allow").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    for n in 0..TIMES {
        let text = ChatText::new(&format!("hello {n}")).by(STRANGER);
        within(stage.sim.push_text(&text)).await.unwrap();
    }
    let refused = |sim: &nod::for_tests::simulator::Simulator| {
        let all = sim.messages();
        let refused = all.iter().filter(|one| one.content.contains("只有所有者"));
        (refused.count() == TIMES).then_some(())
    };
    assert!(stage.sim.wait_for(LIMIT, refused).await.is_some());
    let kinds = |audit: &[Value], kind: &str| audit.iter().filter(|l| l["kind"] == kind).count();
    let audit = stage.home.audit().await;
    assert_eq!(kinds(&audit, "not_the_owner"), 1, "{audit:?}");
    stage.stop().await;
    let audit = stage.home.audit().await;
    assert_eq!(kinds(&audit, "not_the_owner"), 2, "{audit:?}");
    assert_eq!(kinds(&audit, "settled"), 1, "{audit:?}");
    let last = audit.last().unwrap();
    assert_eq!(last["detail"]["times"], TIMES - 1, "{last}");
}

/// What the process holds in memory, in MiB.
#[cfg(target_os = "linux")]
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib >> 10
}

#[tokio::test(flavor = "multi_thread")]
async fn input_beyond_the_cap_is_for_the_terminal_and_what_ended_is_let_go() {
    let stage = Stage::with(|_, home| home.set("PERMISSION_NOTIFY_DELAY", "600")).await;
    let project = stage.home.project();
    // A digit a node: in memory it weighs many times what it is as text.
    let heavy = json!({"rows": vec![0; 80_000]});
    let mut held = Vec::new();
    let mut refused = 0;
    for n in 0..24 {
        let input = permission(&format!("s{}", n / 2), "mcp__db__put", &heavy);
        let (ack, stream) = asks(&stage.home, &project, n, &input).await;
        if ack["success"] == true {
            held.push(stream);
        } else {
            assert_eq!(ack["error"], "too_much_input", "{ack}");
            refused += 1;
        }
    }
    assert!((5..20).contains(&held.len()), "{} fit", held.len());
    assert_eq!(held.len() + refused, 24);
    let (ack, small) = asks(&stage.home, &project, 99, &bash("other", "ls")).await;
    assert_eq!(ack["success"], true, "a small one finds room: {ack}");
    drop((held, small));
    stage.until_status(|status| status["pending"] == 0).await;
    let size = || {
        let entries = fs::read_dir(stage.home.state()).unwrap();
        let sizes = entries.map(|entry| entry.unwrap().metadata().unwrap().len());
        sizes.sum::<u64>()
    };
    until("the file is small", || async {
        (size() < 3 << 20).then_some(())
    })
    .await;
    #[cfg(target_os = "linux")]
    until("the memory is returned", || async {
        (resident(stage.daemon().pid()) < 128).then_some(())
    })
    .await;
    let (ack, _again) = asks(
        &stage.home,
        &project,
        100,
        &permission("s0", "mcp__db__put", &heavy),
    )
    .await;
    assert_eq!(ack["success"], true, "there is room again: {ack}");
}
