//! Nothing secret is ever written: a busy daemon at the most talkative level,
//! with faults that invite it to say too much.

use nod::for_tests::simulator::{APP_ID, Armed, ChatText, Fault, OWNER, Options, Press, Simulator};
use rusqlite::types::ValueRef;
use rustix::process::Signal;
use serde_json::json;
use std::path::Path;

use super::support::{Asker, Daemon, LIMIT, Tap, foreign_click, is_connected, next_connection};

const APP_SECRET: &str = "canary-app-secret-7f3a91c04d";
const EVENT_TOKEN: &str = "canary-event-token-55e0b2";
const TOOL_INPUT: &str = "canary-tool-input-0c8d41";
const CHAT: &str = "canary-chat-words-9b77e3";

/// Every text between `before` and the end of its value.
fn values(heard: &str, before: &str) -> Vec<String> {
    let ends = ['"', '&', '\\', ' ', '\r'];
    heard
        .split(before)
        .skip(1)
        .map(|rest| rest.split(ends).next().unwrap_or_default().to_owned())
        .collect()
}

fn written(dir: &Path, found: &mut Vec<u8>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            written(&path, found);
        } else if path.is_file() {
            found.extend(std::fs::read(path).unwrap());
        }
    }
}

async fn decided(simulator: &Simulator, daemon: &Daemon, number: usize, action: &str) {
    let before = simulator.messages().len();
    let command = format!("echo {TOOL_INPUT}");
    let mut asker = Asker::ask(&daemon.home, number, &command).await;
    let cards = simulator.wait_messages(before + 1, LIMIT).await.unwrap();
    let card = &cards[before].message_id;
    let hook = async {
        asker.decision().await;
        asker.confirm().await;
    };
    let (clicked, ()) = tokio::join!(simulator.click(Press::action(card, action)), hook);
    assert_eq!(clicked.unwrap().popup, None);
}

#[tokio::test]
async fn no_secret_is_logged_at_any_level_or_left_on_disk() {
    let mut options = Options::default();
    APP_SECRET.clone_into(&mut options.apps[0].secret);
    EVENT_TOKEN.clone_into(&mut options.apps[0].verification_token);
    let simulator = Simulator::start(options).await.unwrap();
    let tap = Tap::before(simulator.addresses().feishu).await;
    let arm = |fault| simulator.set_fault(Armed::once(fault)).unwrap();
    let echo = APP_SECRET.to_owned();
    arm(Fault::DiscoveryError {
        code: 1,
        msg: echo.clone(),
        with_data: true,
    });
    arm(Fault::RefuseHandshake {
        http: 503,
        status: Some(1),
        autherrcode: None,
        msg: echo.clone(),
    });
    let base = tap.base();
    let mut daemon = Daemon::start(&[
        ("FEISHU_APP_ID", APP_ID),
        ("FEISHU_APP_SECRET", APP_SECRET),
        ("FEISHU_DOMAIN", &base),
        ("FEISHU_OWNER_ID", OWNER),
        ("NOD_LOG", "trace"),
    ]);
    daemon.status_where("connected", is_connected).await;
    let first = next_connection(&simulator, 0).await;

    decided(&simulator, &daemon, 1, "allow").await;
    arm(Fault::ExpiredToken);
    decided(&simulator, &daemon, 2, "deny").await;
    arm(Fault::RestError {
        path: "POST".to_owned(),
        code: 230_099,
        http: 400,
        msg: format!("{APP_SECRET} {TOOL_INPUT}"),
    });
    let refused = Asker::ask(&daemon.home, 3, TOOL_INPUT).await;
    let struck = simulator.wait_for(LIMIT, |s| s.faults().is_empty().then_some(()));
    assert!(struck.await.is_some());
    drop(refused);
    for fault in [
        Fault::Garbage {
            hex: "0800".to_owned(),
        },
        Fault::TextMessage { text: echo.clone() },
        Fault::ControlFrame {
            r#type: echo.clone(),
        },
    ] {
        arm(fault);
    }
    let text = ChatText {
        text: CHAT.to_owned(),
        ..ChatText::default()
    };
    assert!(simulator.push_text(&text).await.unwrap().acknowledged());
    let broken = format!("{{{EVENT_TOKEN}{TOOL_INPUT}");
    for body in [broken, foreign_click(EVENT_TOKEN)] {
        assert_eq!(simulator.push_click_raw(body).await.0.code, Some(200));
    }
    let strange = json!({"secret": TOOL_INPUT});
    simulator.push_event("x.y_v1", strange).await;
    arm(Fault::Close {
        code: 1011,
        reason: echo.clone(),
    });
    next_connection(&simulator, first.id).await;
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.exit().await.code(), Some(0));

    let heard = tap.heard();
    let mut secrets = vec![APP_SECRET.to_owned(), EVENT_TOKEN.to_owned()];
    for before in ["ticket=", "access_key=", "\"tenant_access_token\":\""] {
        let issued = values(&heard, before);
        assert!(issued.len() >= 2, "{before}: {issued:?}");
        assert!(issued.iter().all(|one| one.len() > 20), "{issued:?}");
        secrets.extend(issued);
    }
    let mut files = Vec::new();
    written(daemon.home.path(), &mut files);
    let files = String::from_utf8_lossy(&files);
    for secret in &secrets {
        assert!(!files.contains(secret.as_str()), "on disk: {secret}");
    }
    secrets.extend([TOOL_INPUT.to_owned(), CHAT.to_owned()]);
    let log = format!("{}{}", daemon.log.whole().await, daemon.out.whole().await);
    assert!(
        log.contains("connected to") && log.contains("decided"),
        "{log}"
    );
    for secret in &secrets {
        assert!(!log.contains(secret.as_str()), "`{secret}` in:\n{log}");
    }
}

/// In the place of a password or a token in a command.
const CANARY: &str = "Zq7Canary9Vx2Lm4Kp8Rt6Wn";

/// Every value of every table, as text.
fn columns(file: &Path) -> String {
    let db = rusqlite::Connection::open(file).unwrap();
    let mut tables = db
        .prepare("select name from sqlite_master where type = 'table'")
        .unwrap();
    let tables: Vec<String> = tables
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(tables.len() > 3, "{tables:?}");
    let mut all = String::new();
    for table in tables {
        let mut rows = db.prepare(&format!("select * from {table}")).unwrap();
        let count = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..count {
                let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = row.get_ref(column).unwrap()
                else {
                    continue;
                };
                all.push_str(&String::from_utf8_lossy(bytes));
                all.push('\n');
            }
        }
    }
    all
}

/// One request, its card, and one of the ways it can end.
async fn ended_somehow(simulator: &Simulator, daemon: &Daemon, number: usize, command: &str) {
    let before = simulator.messages().len();
    let mut asker = Asker::ask(&daemon.home, number, command).await;
    let cards = simulator.wait_messages(before + 1, LIMIT).await.unwrap();
    let card = &cards[before].message_id;
    let (code, status, _) = match number % 20 {
        0 => daemon.home.run(&["status"], &[]).await,
        _ => (Some(0), String::new(), String::new()),
    };
    assert_eq!(code, Some(0));
    assert!(!status.contains(CANARY), "{status}");
    let action = match number % 4 {
        0 => "allow",
        1 => "deny",
        2 => "interrupt",
        // Nobody taps: the hook goes away.
        _ => return,
    };
    let hook = async {
        asker.decision().await;
        asker.confirm().await;
    };
    let (clicked, ()) = tokio::join!(simulator.click(Press::action(card, action)), hook);
    let clicked = clicked.unwrap();
    assert!(clicked.toast.is_some(), "{clicked:?}");
    let said = format!("{clicked:?}");
    assert!(!said.contains(CANARY), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_a_command_leaves_the_process_nowhere() {
    let list = include_str!("../data/commands-with-secrets.txt");
    let commands: Vec<String> = list
        .lines()
        .map(|line| line.replace("{}", CANARY))
        .collect();
    assert!(commands.len() >= 60);
    for (lang, own) in [("en", 0), ("zh", 1)] {
        let simulator = Simulator::start(Options::default()).await.unwrap();
        let tap = Tap::before(simulator.addresses().feishu).await;
        let base = tap.base();
        let mut settings = super::support::settings(&base);
        settings.extend([("NOD_LOG", "trace"), ("NOD_LANG", lang)]);
        let mut daemon = Daemon::start(&settings);
        daemon.status_where("connected", is_connected).await;
        // Each language takes half of the list.
        let half = commands.iter().skip(own).step_by(2);
        for (n, command) in half.enumerate() {
            ended_somehow(&simulator, &daemon, n + 1, command).await;
        }
        let none_waits = |status: &serde_json::Value| status["pending"] == 0;
        daemon.status_where("nothing waits", none_waits).await;
        let (_, audit, _) = daemon.home.run(&["audit"], &[]).await;
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.exit().await.code(), Some(0));

        let heard = tap.heard();
        let log = format!("{}{}", daemon.log.whole().await, daemon.out.whole().await);
        let kept = columns(&daemon.home.state().join("nod.db"));
        assert!(kept.contains("\u{27e6}secret password"), "{kept}");
        for (place, text) in [
            ("sent", heard),
            ("logged", log),
            ("audit", audit),
            ("kept", kept),
        ] {
            let at = text.find(CANARY);
            let near = at.map(|at| {
                let from = text.floor_char_boundary(at.saturating_sub(300));
                let to = text.ceil_char_boundary((at + 100).min(text.len()));
                &text[from..to]
            });
            assert!(at.is_none(), "{lang}, {place}: {near:?}");
        }
    }
}
