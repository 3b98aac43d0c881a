//! Several machines behind one app, and the mode without an app: real daemons
//! on two loopback addresses, Feishu's random routing, forged addresses.

mod chat;
pub(crate) mod rig;
mod told;
mod webhook;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use futures::stream;
use nod::for_tests::approvals::outcome::Refusal;
use nod::for_tests::feishu::secret::Secret;
use nod::for_tests::gateway::call::{CallAnswer, PeerCall, Proof, Stamp, TAKE, WHOSE};
use nod::for_tests::gateway::seal::{SealPurpose, Sealer};
use nod::for_tests::ids::{MachineId, RequestId};
use nod::for_tests::simulator::{APP_ID, APP_SECRET, Clicked, OWNER, Press, STRANGER, Simulator};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use rig::{Cards, Hook, LIMIT, Machine, feishu, free, http};

fn said(clicked: &Clicked) -> &str {
    let toast = clicked.toast.as_ref();
    toast.map_or("", |toast| toast.content.as_str())
}

/// What is pressed, what the person reads, and what the hook is told.
const CHOICES: [(&str, &str, &str, bool); 3] = [
    ("allow", "已批准运行", "allow", false),
    ("deny", "已拒绝运行", "deny", false),
    ("interrupt", "已拒绝并中断", "deny", true),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_clicks_each_reach_their_machine_once() {
    const COUNT: usize = 1_000;
    let feishu = feishu().await;
    let (a, b) = (free([127, 0, 0, 1]), free([127, 0, 0, 2]));
    let peers = format!("http://{a},http://{b}");
    let machines = [
        Machine::of_app(&feishu, a, &peers),
        Machine::of_app(&feishu, b, &peers),
    ];
    assert!(
        feishu.wait_connections(2, LIMIT).await,
        "{}",
        machines[0].log()
    );
    let mut cards = Cards::default();
    let mut hooks = Vec::new();
    for n in 0..COUNT {
        let machine = &machines[n % 2];
        let hook = Hook::ask(machine, &format!("request-{n}"), &format!("echo {n}")).await;
        hooks.push(tokio::spawn(hook.decision()));
        if n % 100 == 99 {
            cards.wait(&feishu, n + 1).await;
        }
    }
    let feishu = &feishu;
    let clicks = cards.of.iter().map(|(id, message)| async move {
        let n: usize = id["request-".len()..].parse().unwrap();
        let (action, toast, _, _) = CHOICES[n % CHOICES.len()];
        let press = match action {
            "deny" => Press::action(message, "deny_with").fill("reason", format!("because {n}")),
            _ => Press::action(message, action),
        };
        let clicked = feishu.click(press).await.unwrap();
        assert_eq!(said(&clicked), toast, "{id}: {clicked:?}");
        assert!(clicked.popup.is_none(), "{clicked:?}");
        clicked.connection
    });
    let routed: Vec<_> = stream::iter(clicks).buffer_unordered(6).collect().await;
    for line in feishu.connections() {
        let here = routed.iter().filter(|at| **at == Some(line.id)).count();
        assert!(here > COUNT / 4, "Feishu used both machines: {here}");
    }
    for (n, hook) in hooks.into_iter().enumerate() {
        let decision = hook.await.unwrap().expect("a decision");
        let (action, _, told, interrupt) = CHOICES[n % CHOICES.len()];
        let text = decision.to_string();
        assert!(text.contains(&format!(r#""{told}""#)), "{action}: {text}");
        assert_eq!(text.contains(r#""interrupt":true"#), interrupt, "{text}");
        if action == "deny" {
            assert!(text.contains(&format!("because {n}")), "{text}");
        }
    }
    for (place, machine) in machines.iter().enumerate() {
        let decisions = machine.decisions();
        assert_eq!(decisions.len(), COUNT / 2);
        for (id, times) in decisions {
            let n: usize = id["request-".len()..].parse().unwrap();
            assert_eq!((n % 2, times), (place, 1), "{id}");
        }
    }
    assert!(feishu.violations().is_empty(), "{:?}", feishu.violations());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_dies_is_named_and_nothing_happens_twice() {
    let feishu = feishu().await;
    let (a, b) = (free([127, 0, 0, 1]), free([127, 0, 0, 2]));
    let peers = format!("http://{a},http://{b}");
    let alive = Machine::of_app(&feishu, a, &peers);
    let mut dying = Machine::of_app(&feishu, b, &peers);
    assert!(feishu.wait_connections(2, LIMIT).await);
    let mut hooks = Vec::new();
    for n in 0..12 {
        let (machine, name) = if n % 2 == 0 {
            (&alive, "alive")
        } else {
            (&dying, "dying")
        };
        hooks.push(Hook::ask(machine, &format!("{name}-{n}"), "ls").await);
    }
    let mut cards = Cards::default();
    cards.wait(&feishu, 12).await;
    let click = async |n: usize| {
        let name = if n.is_multiple_of(2) {
            "alive"
        } else {
            "dying"
        };
        let press = Press::action(&cards.of[&format!("{name}-{n}")], "allow");
        feishu.click(press).await.unwrap()
    };
    for n in 0..4 {
        assert_eq!(said(&click(n).await), "已批准运行");
    }
    dying.kill();
    assert!(feishu.wait_connections(1, LIMIT).await);
    for n in 4..8 {
        let expected = if n % 2 == 0 {
            "已批准运行"
        } else {
            "回调服务不可达，请检查服务状态"
        };
        let clicked = click(n).await;
        assert_eq!(said(&clicked), expected, "{clicked:?}");
    }
    dying.again();
    assert!(feishu.wait_connections(2, LIMIT).await, "{}", dying.log());
    // Decided before the end: still decided, and known to be.
    for n in 0..4 {
        let name = if n % 2 == 0 { "alive" } else { "dying" };
        let id = format!("{name}-{n}");
        let payload = push(&cards.allows[&id], &format!("late-{n}"));
        let payload = payload.replace("om_elsewhere", &cards.of[&id]);
        let (_, outcome) = feishu.push_click_raw(payload).await;
        let toast = outcome.toast.expect("a toast").content;
        assert_eq!(toast, "该请求已被处理，请勿重复操作", "{id}");
    }
    for (n, hook) in hooks.into_iter().enumerate() {
        if n <= 4 || n == 6 {
            let decision = hook.decision().await.expect("a decision");
            assert!(decision.to_string().contains(r#""allow""#), "{decision}");
        } else if n % 2 == 1 {
            assert_eq!(hook.decision().await, None, "its daemon died");
        }
    }
    for machine in [&alive, &dying] {
        assert!(machine.decisions().values().all(|times| *times == 1));
    }
    assert_eq!(dying.decisions().len(), 2);
}

fn sealer(purpose: SealPurpose) -> Sealer {
    Sealer::new(&Secret::new(APP_SECRET), purpose)
}

/// A click on a card some machine is supposed to have made.
fn push(value: &Value, event: &str) -> String {
    json!({
        "schema": "2.0",
        "header": {
            "event_id": event,
            "event_type": "card.action.trigger",
            "app_id": APP_ID,
        },
        "event": {
            "operator": {"open_id": OWNER},
            "action": {"value": value, "tag": "button"},
            "host": "im_message",
            "context": {"open_message_id": "om_elsewhere", "open_chat_id": "oc_x"},
        },
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_machine_of_the_request_asks_its_own_approvers() {
    let feishu = feishu().await;
    let (a, b) = (free([127, 0, 0, 1]), free([127, 0, 0, 2]));
    let peers = format!("http://{a},http://{b}");
    let domain = feishu.base_url();
    let trusting = Machine::start(
        a,
        &[
            ("FEISHU_APP_ID", APP_ID),
            ("FEISHU_APP_SECRET", APP_SECRET),
            ("FEISHU_DOMAIN", &domain),
            ("FEISHU_OWNER_ID", OWNER),
            ("FEISHU_APPROVERS", STRANGER),
            ("CALLBACK_PEERS", &peers),
        ],
    );
    assert!(
        feishu.wait_connections(1, LIMIT).await,
        "{}",
        trusting.log()
    );
    let gateway = feishu.connections()[0].id;
    let strict = Machine::of_app(&feishu, b, &peers);
    assert!(feishu.wait_connections(2, LIMIT).await, "{}", strict.log());
    let hook = Hook::ask(&strict, "guarded", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&feishu, 1).await;
    let click = async |who: &str, n: usize| {
        let payload = push(&cards.allows["guarded"], &format!("{who}-{n}"))
            .replace(OWNER, who)
            .replace("om_elsewhere", &cards.of["guarded"]);
        let (pushed, outcome) = feishu.push_click_raw(payload).await;
        (pushed.connection, outcome.toast.expect("a toast").content)
    };
    let mut forwarded = 0;
    for n in 0..40 {
        let (connection, toast) = click(STRANGER, n).await;
        assert_eq!(toast, "你不在审批人名单中，操作未生效");
        forwarded += usize::from(connection == Some(gateway));
        if forwarded == 3 {
            break;
        }
    }
    assert_eq!(
        forwarded, 3,
        "some came by the machine that would have let them"
    );
    assert!(strict.decisions().is_empty() && trusting.decisions().is_empty());
    assert_eq!(click(OWNER, 0).await.1, "已批准运行");
    let decision = hook.decision().await.expect("a decision");
    assert!(decision.to_string().contains(r#""allow""#), "{decision}");
}

fn elsewhere(callback_url: &str) -> Value {
    json!({
        "action": "allow",
        "request_id": "somewhere-else",
        "callback_url": callback_url,
        "machine": "another",
        "machine_name": "desk",
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_address_in_a_button_makes_nod_dial_what_it_must_not() {
    let trap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = trap.local_addr().unwrap().port();
    let touched = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&touched);
    tokio::spawn(async move {
        while trap.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let feishu = feishu().await;
    let at = free([127, 0, 0, 1]);
    let machine = Machine::of_app(&feishu, at, "http://10.255.255.1:9");
    assert!(feishu.wait_connections(1, LIMIT).await, "{}", machine.log());
    let addresses = [
        format!("http://127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
        format!("http://0x7f.1:{port}"),
        format!("http://2130706433:{port}"),
        format!("http://[::ffff:127.0.0.1]:{port}"),
        format!("http://0.0.0.0:{port}"),
        format!("http://10.255.255.1:9@127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}/callback/decision?"),
        "http://169.254.169.254".to_owned(),
        "http://[fe80::1]".to_owned(),
    ];
    for (n, address) in addresses.iter().enumerate() {
        let value = elsewhere(address);
        for (value, how) in [
            (sealer(SealPurpose::Button).seal(value.clone()), "sealed"),
            (value, "bare"),
        ] {
            let payload = push(&value, &format!("event-{n}-{how}"));
            let (_, outcome) = feishu.push_click_raw(payload).await;
            let toast = outcome.toast.expect("a toast").content;
            let refused = [
                "无效的回调请求",
                "该请求属于机器 desk，请在该机器上处理",
                "请求不存在或已过期",
            ];
            assert!(
                refused.contains(&toast.as_str()),
                "{address} {how}: {toast}"
            );
        }
    }
    assert_eq!(touched.load(Ordering::SeqCst), 0);
}

/// A machine that takes the first call and dies over it, and then tells what
/// became of it.
async fn forgetful(listener: TcpListener, asked: tokio::sync::mpsc::UnboundedSender<String>) {
    let sealer = sealer(SealPurpose::Call);
    let card = json!({"schema": "2.0", "body": {"elements": [
        {"tag": "div", "text": {"tag": "plain_text", "content": "the truth"}},
    ]}});
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"}") {
            let mut chunk = [0; 4096];
            let read = stream.read(&mut chunk).await.unwrap();
            bytes.extend_from_slice(&chunk[..read]);
        }
        let head = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let (call, proof) = PeerCall::read(&bytes[head + 4..], Some(&sealer)).unwrap();
        let Proof::Sealed(stamp) = proof else {
            panic!("a call without a seal");
        };
        let first = call.action != "query";
        asked.send(call.action).unwrap();
        if first {
            continue;
        }
        answer(&mut stream, &sealer, &stamp, &card).await;
    }
}

async fn answer(stream: &mut tokio::net::TcpStream, sealer: &Sealer, stamp: &Stamp, card: &Value) {
    let body = CallAnswer::of(&Refusal::Handled.into(), Some(card.clone()));
    let body = body.to_json(Some((sealer, stamp))).to_string();
    let text = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await.unwrap();
}

async fn somebodys_card(feishu: &Simulator, machine: &Machine) -> String {
    let _waiting = Hook::ask(machine, "a-card", "ls").await;
    let mut cards = Cards::default();
    cards.wait(feishu, 1).await;
    cards.of["a-card"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unanswered_call_is_asked_after_and_the_card_told_the_truth() {
    let feishu = feishu().await;
    let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let peer = format!("http://{}", listener.local_addr().unwrap());
    let (asked, mut calls) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(forgetful(listener, asked));
    let machine = Machine::of_app(&feishu, free([127, 0, 0, 1]), &peer);
    assert!(feishu.wait_connections(1, LIMIT).await, "{}", machine.log());
    let card = somebodys_card(&feishu, &machine).await;
    let value = sealer(SealPurpose::Button).seal(elsewhere(&peer));
    let payload = push(&value, "event-lost").replace("om_elsewhere", &card);
    let (_, outcome) = feishu.push_click_raw(payload).await;
    let toast = outcome.toast.expect("a toast").content;
    assert_eq!(toast, "结果确认中，卡片稍后更新");
    assert_eq!(calls.recv().await.as_deref(), Some("allow"));
    assert_eq!(calls.recv().await.as_deref(), Some("query"));
    let told = feishu.wait_for(LIMIT, |feishu| {
        let shown = feishu.message(&card)?.card?.to_string();
        shown.contains("the truth").then_some(())
    });
    assert!(told.await.is_some());
    assert!(calls.try_recv().is_err(), "the click was posted once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_sealed_for_one_machine_is_not_taken_by_another() {
    let feishu = feishu().await;
    let (a, b) = (free([127, 0, 0, 1]), free([127, 0, 0, 2]));
    let machines = [
        Machine::of_app(&feishu, a, ""),
        Machine::of_app(&feishu, b, ""),
    ];
    assert!(
        feishu.wait_connections(2, LIMIT).await,
        "{}",
        machines[0].log()
    );
    let sealer = Sealer::new(&Secret::new(APP_SECRET), SealPurpose::Call);
    let push = json!({
        "schema": "2.0",
        "header": {"event_id": "e", "event_type": "im.message.receive_v1", "app_id": APP_ID},
        "event": {
            "sender": {"sender_id": {"open_id": OWNER}, "sender_type": "user"},
            "message": {
                "message_id": "om_taken", "chat_id": "oc_x", "chat_type": "p2p",
                "message_type": "text", "content": r#"{"text":"/help"}"#,
            },
        },
    });
    let post = async |at, action: &str, to: Option<MachineId>, nonce: &str| {
        let call = PeerCall {
            to,
            action: action.to_owned(),
            request: RequestId::parse("om_taken").unwrap(),
            project_dir: String::new(),
            click: None,
            push: Some(push.to_string()),
        };
        let stamp = Stamp {
            sent_at: nod::for_tests::clock::wall_ms(),
            nonce: nonce.to_owned(),
        };
        let body = call.to_json(Some((&sealer, &stamp))).to_string();
        let (status, _, answer) = http(at, "POST /callback/decision", &body).await;
        let read = CallAnswer::read_sealed(answer.as_bytes(), &sealer, &stamp);
        (status, answer, read)
    };
    let (_, answer, whose) = post(a, WHOSE, None, "nonce-of-whose").await;
    let name = whose.and_then(|answer| answer.machine);
    assert!(name.is_some(), "{answer}");
    let (status, answer, _) = post(b, TAKE, name.clone(), "nonce-of-take").await;
    assert_eq!(status, 401, "{answer}");
    let (status, answer, _) = post(a, TAKE, None, "nonce-of-an-older").await;
    assert_eq!(status, 401, "{answer}");
    assert!(answer.contains("older"), "{answer}");
    let (status, answer, taken) = post(a, TAKE, name, "nonce-of-take").await;
    assert_eq!(status, 200, "{answer}");
    assert!(
        taken.is_some_and(|answer| answer.upshot.is_success()),
        "{answer}"
    );
}
