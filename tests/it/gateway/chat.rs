//! What is written in a chat, and the buttons of sessions, where two machines
//! share an app: each goes to the machine it is for, whoever received it.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use nod::for_tests::simulator::{
    APP_ID, APP_SECRET, ChatText, HeldMessage, OWNER, Press, Simulator,
};
use serde_json::json;
use tempfile::TempDir;

use super::rig::{Cards, Hook, LIMIT, Machine, feishu, free};
use super::said;
use crate::hooks::{chmod, face, within};
use crate::support::until;

/// Enough that each kind of push came by the wrong machine at least once.
const ROUNDS: usize = 20;

/// A task that asks one question, hears the answer, and stops when told to.
const STEPS: [&str; 7] = [
    r#"> "content""#,
    r#"< {"type":"system","subtype":"init","model":"scripted","permissionMode":"default"}"#,
    r#"< {"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which store?","header":"Store","multiSelect":false,"options":[{"label":"Redis","description":"shared"},{"label":"SQLite","description":"a file"}]}]}}}"#,
    r#"> "Which store?":"SQLite""#,
    r#"> "subtype":"interrupt""#,
    r#"< {"type":"control_response","response":{"subtype":"success","request_id":"nod-stop","response":{"still_queued":[]}}}"#,
    "eof",
];

/// A project of this name, and a `claude` that plays the steps in it.
fn project(dir: &Path, name: &str) -> [(&'static str, String); 3] {
    let place = dir.join(name);
    fs::create_dir_all(&place).unwrap();
    let script = dir.join(format!("{name}-script"));
    // Feishu takes two cards of one id for one, and Claude Code's ids are unique.
    let id = format!(r#""request_id":"q-{name}""#);
    let steps = STEPS.join("\n").replace(r#""request_id":"q""#, &id);
    fs::write(&script, steps + "\n").unwrap();
    let claude = dir.join(format!("{name}-claude"));
    let fake = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fake-claude");
    let program = format!(
        "#!/bin/sh\nexport FAKE_CLAUDE_LOG='{}' FAKE_CLAUDE_SCRIPT='{}'\nexec '{fake}' \"$@\"\n",
        dir.join(format!("{name}.log")).display(),
        script.display(),
    );
    fs::write(&claude, program).unwrap();
    chmod(&claude, 0o755);
    [
        ("NOD_PROJECTS", format!("{name}={}", place.display())),
        ("NOD_CLAUDE", claude.display().to_string()),
        ("PATH", std::env::var("PATH").unwrap()),
    ]
}

/// Two machines, each with one project, and which connection is the first's.
struct Pair {
    feishu: Simulator,
    machines: [Machine; 2],
    addresses: [SocketAddr; 2],
    first: u64,
    used: HashSet<String>,
    dir: TempDir,
}

const PROJECTS: [&str; 2] = ["alpha", "beta"];

impl Pair {
    async fn start() -> Self {
        let feishu = feishu().await;
        let dir = tempfile::tempdir().unwrap();
        let addresses = [free([127, 0, 0, 1]), free([127, 0, 0, 2])];
        let peers = addresses.map(|at| format!("http://{at}")).join(",");
        let machine = |n: usize| {
            let project = project(dir.path(), PROJECTS[n]);
            let base = feishu.base_url();
            let mut settings = vec![
                ("FEISHU_APP_ID", APP_ID),
                ("FEISHU_APP_SECRET", APP_SECRET),
                ("FEISHU_DOMAIN", &base),
                ("FEISHU_OWNER_ID", OWNER),
                ("NOD_CHAT_RATE", "1000"),
                ("CALLBACK_PEERS", &peers),
            ];
            settings.extend(project.iter().map(|(name, value)| (*name, value.as_str())));
            Machine::start(addresses[n], &settings)
        };
        let alpha = machine(0);
        assert!(feishu.wait_connections(1, LIMIT).await, "{}", alpha.log());
        let first = feishu.connections()[0].id;
        let beta = machine(1);
        assert!(feishu.wait_connections(2, LIMIT).await, "{}", beta.log());
        Self {
            machines: [alpha, beta],
            addresses,
            first,
            used: HashSet::new(),
            feishu,
            dir,
        }
    }

    /// Whether a push for this machine came by the other one.
    fn came_astray(&self, connection: Option<u64>, machine: usize) -> usize {
        let by_first = connection == Some(self.first);
        usize::from(by_first != (machine == 0))
    }

    async fn write(&self, text: ChatText) -> Option<u64> {
        let pushed = within(self.feishu.push_text(&text)).await.unwrap();
        assert!(pushed.acknowledged());
        pushed.connection
    }

    /// The next message of nod's with this in its text or its card.
    async fn next(&mut self, expected: &str) -> HeldMessage {
        let used = &self.used;
        let says = |message: &HeldMessage| match &message.card {
            Some(card) => card.to_string().contains(expected),
            None => message.content.contains(expected),
        };
        let find = |feishu: &Simulator| {
            let mut all = feishu.messages().into_iter();
            all.find(|m| m.sender_type == "app" && !used.contains(&m.message_id) && says(m))
        };
        let found = self.feishu.wait_for(LIMIT, find).await;
        let logs = || self.machines.each_ref().map(Machine::log).join("\n---\n");
        let found = found.unwrap_or_else(|| panic!("no {expected}:\n{}", logs()));
        self.used.insert(found.message_id.clone());
        found
    }

    async fn shows(&self, message: &str, expected: &str) {
        let shown = self.feishu.wait_for(LIMIT, |feishu| {
            let card = feishu.message(message)?.card?;
            face(&card).contains(expected).then_some(())
        });
        assert!(shown.await.is_some(), "{expected}");
    }

    /// What the children in this project were given to read.
    fn read(&self, machine: usize) -> String {
        let log = self.dir.path().join(format!("{}.log", PROJECTS[machine]));
        fs::read_to_string(log).unwrap_or_default()
    }
}

fn reply(card: &str, text: &str) -> ChatText {
    ChatText {
        parent_id: Some(card.to_owned()),
        ..ChatText::new(text)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_for_a_session_reaches_its_machine() {
    let mut pair = Pair::start().await;
    let (mut begun, mut answered, mut stopped) = (0, 0, 0);
    for round in 0..ROUNDS {
        let machine = round % 2;
        let project = PROJECTS[machine];
        let prompt = format!("/new {project} do {round}");
        let by = pair.write(ChatText::new(&prompt)).await;
        begun += pair.came_astray(by, machine);
        let task = pair.next(r#""action":"stop""#).await;
        pair.next(r#""action":"answer""#).await;
        let answer = ChatText {
            thread_id: task.thread_id.clone(),
            parent_id: task.root_id.clone(),
            ..ChatText::new("SQLite")
        };
        let by = pair.write(answer).await;
        answered += pair.came_astray(by, machine);
        until("the answer at the child", || async {
            let heard = pair
                .read(machine)
                .matches(r#""Which store?":"SQLite""#)
                .count();
            (heard == round / 2 + 1).then_some(())
        })
        .await;
        let stop = Press::action(&task.message_id, "stop");
        let clicked = within(pair.feishu.click(stop)).await.unwrap();
        assert_eq!(said(&clicked), "正在停止", "{clicked:?}");
        stopped += pair.came_astray(clicked.connection, machine);
        pair.shows(&task.message_id, "任务已停止").await;
        let read = pair.read(machine);
        assert!(read.contains(&format!("do {round}")), "{read}");
        if begun.min(answered).min(stopped) > 0 && round % 2 == 1 {
            return;
        }
    }
    panic!("{begun} beginnings, {answered} answers and {stopped} stops came astray");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_answers_its_card_and_a_lock_locks_every_machine() {
    let mut pair = Pair::start().await;
    let mut cards = Cards::default();
    let mut astray = 0;
    for round in 0..ROUNDS {
        let machine = round % 2;
        let id = format!("reply-{round}");
        let hook = Hook::ask(&pair.machines[machine], &id, "ls").await;
        cards.wait(&pair.feishu, round + 1).await;
        let why = format!("because of {round}");
        let by = pair.write(reply(&cards.of[&id], &why)).await;
        astray += pair.came_astray(by, machine);
        let decision = hook.decision().await.expect("a decision").to_string();
        assert!(
            decision.contains(r#""deny""#) && decision.contains(&why),
            "{decision}"
        );
        assert_eq!(pair.machines[machine].decisions()[&id], 1);
    }
    assert!(astray > 1, "{astray}");

    let waiting = Hook::ask(&pair.machines[0], "left-behind", "ls").await;
    cards.wait(&pair.feishu, ROUNDS + 1).await;

    pair.write(ChatText::new("/lock")).await;
    for machine in &pair.machines {
        let state = machine.dir.path().join("state");
        until("the lock of each machine", || async {
            let db = nod::for_tests::store::Db::open_read_only(&state).unwrap();
            (db.meta("locked").unwrap().as_deref() == Some("yes")).then_some(())
        })
        .await;
    }

    pair.machines[0].kill();
    assert!(pair.feishu.wait_connections(1, LIMIT).await);
    pair.write(reply(&cards.of["left-behind"], "no")).await;
    pair.next("无法联系，没有执行").await;
    assert_eq!(waiting.decision().await, None);
    pair.write(ChatText::new("/lock")).await;
    let open = format!("没有锁定：http://{}", pair.addresses[0]);
    pair.next(&open).await;
    assert_eq!(json!(pair.feishu.violations()), json!([]));
}
