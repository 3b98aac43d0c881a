//! A team on one app: gateways hold its secret, machines a pass. Real
//! processes over nod's small bus, or over the NATS server that
//! `NOD_TEST_NATS_SERVER` names.

mod bridge;
mod bus;
mod clocks;
mod cuts;
mod duty;
mod faults;
mod forget;
mod hangs;
mod hostile;
mod join;
mod locks;
mod plays;
mod rig;
mod shares;
mod stolen;

use std::time::Duration;

use nod::for_tests::bus::nkey::{KeyKind, KeyPair};
use nod::for_tests::simulator::{APP_SECRET, ChatText, Clicked, GROUP, OWNER, Press, STRANGER};
use rustix::process::{Pid, Signal, kill_process};

use crate::gateway::rig::{Cards, Hook, LIMIT, Machine};
use crate::support::until;
use rig::{Team, connected};

fn said(clicked: &Clicked) -> &str {
    let toast = clicked.toast.as_ref();
    toast.map_or("", |toast| toast.content.as_str())
}

fn signal(machine: &Machine, signal: Signal) {
    let pid = Pid::from_raw(machine.pid().cast_signed()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taps_reach_their_machines_through_either_gateway() {
    let team = Team::start().await;
    let gateways = [team.gateway(), team.gateway()];
    assert!(
        team.feishu.wait_connections(2, LIMIT).await,
        "{}",
        gateways[0].log()
    );
    let machines = [
        team.machine(OWNER),
        team.machine(OWNER),
        team.machine(STRANGER),
    ];
    for machine in &machines {
        connected(machine).await;
    }
    let (mut cards, mut hooks) = (Cards::default(), Vec::new());
    for n in 0..12 {
        let hook = Hook::ask(&machines[n % 3], &format!("request-{n}"), "ls").await;
        hooks.push(tokio::spawn(hook.decision()));
    }
    cards.wait(&team.feishu, 12).await;
    let mut by = Vec::new();
    for n in 0..12 {
        let owner = if n % 3 == 2 { STRANGER } else { OWNER };
        let (action, toast) = [("allow", "已批准运行"), ("deny", "已拒绝运行")][n % 2];
        let press = Press::action(&cards.of[&format!("request-{n}")], action).by(owner);
        let clicked = team.feishu.click(press).await.unwrap();
        assert_eq!(
            said(&clicked),
            toast,
            "{clicked:?}\n{}",
            machines[n % 3].log()
        );
        by.push(clicked.connection);
    }
    by.sort();
    by.dedup();
    assert_eq!(by.len(), 2, "both gateways took taps");
    for (n, hook) in hooks.into_iter().enumerate() {
        let decision = hook.await.unwrap().expect("a decision").to_string();
        let told = ["\"allow\"", "\"deny\""][n % 2];
        assert!(decision.contains(told), "{n}: {decision}");
    }
    for machine in &machines {
        assert_eq!(machine.decisions().len(), 4);
        assert!(!machine.log().contains(APP_SECRET));
    }
    // Each card ends as its machine says, by way of a gateway.
    for message in cards.of.values() {
        let decided = until("the card is decided", || async {
            let card = team.feishu.message(message)?.card?.to_string();
            (!card.contains("\"allow\"")).then_some(())
        });
        decided.await;
    }
    assert!(
        team.feishu.violations().is_empty(),
        "{:?}",
        team.feishu.violations()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_colleagues_tap_is_judged_by_the_machine_and_refused() {
    let team = Team::start().await;
    let _gateway = team.gateway();
    let machine = team.machine_with(OWNER, &[("FEISHU_CHAT_ID", GROUP)]);
    connected(&machine).await;
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let press = Press::action(&cards.of["mine"], "allow");
    let clicked = team.feishu.click(press.clone().by(STRANGER)).await.unwrap();
    assert!(said(&clicked).contains("不在审批人名单"), "{clicked:?}");
    assert_eq!(machine.decisions().len(), 0);
    let clicked = team.feishu.click(press).await.unwrap();
    assert_eq!(said(&clicked), "已批准运行");
    assert!(hook.decision().await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_taps_a_colleagues_card() {
    let team = Team::start().await;
    let _gateway = team.gateway();
    let machine = team.machine_with(
        OWNER,
        &[("FEISHU_APPROVERS", STRANGER), ("FEISHU_CHAT_ID", GROUP)],
    );
    connected(&machine).await;
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let press = Press::action(&cards.of["mine"], "allow").by(STRANGER);
    assert_eq!(said(&team.feishu.click(press).await.unwrap()), "已批准运行");
    assert!(hook.decision().await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_or_a_bus_that_is_gone_is_told_and_decides_nothing() {
    let mut team = Team::start().await;
    let gateway = team.gateway();
    let mut machine = team.machine(OWNER);
    connected(&machine).await;
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let press = Press::action(&cards.of["mine"], "allow");
    team.meeting.gone();
    until("the gateway has noticed", || async {
        gateway.log().contains("the bus was lost").then_some(())
    })
    .await;
    let clicked = team.feishu.click(press.clone()).await.unwrap();
    assert_eq!(said(&clicked), "未作出任何决定，请重新点击", "{clicked:?}");
    team.meeting.again().await;
    let decided = until("the tap is taken again", || async {
        let clicked = team.feishu.click(press.clone()).await.unwrap();
        (said(&clicked) == "已批准运行").then_some(())
    });
    decided.await;
    assert!(hook.decision().await.is_some());
    assert_eq!(machine.decisions()["mine"], 1);
    let _waiting = Hook::ask(&machine, "next", "ls").await;
    cards.wait(&team.feishu, 2).await;
    machine.kill();
    let press = Press::action(&cards.of["next"], "allow");
    let told = until("the machine is missed", || async {
        let clicked = team.feishu.click(press.clone()).await.unwrap();
        said(&clicked).contains("未连接").then_some(())
    });
    told.await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_dies_leaves_the_rest_to_the_other() {
    let team = Team::start().await;
    let mut dying = team.gateway();
    let _other = team.gateway();
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    let machine = team.machine(OWNER);
    connected(&machine).await;
    dying.kill();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let press = Press::action(&cards.of["mine"], "allow");
    assert_eq!(said(&team.feishu.click(press).await.unwrap()), "已批准运行");
    assert!(hook.decision().await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_gateway_a_request_waits_and_gets_its_card_when_one_is_back() {
    let team = Team::start().await;
    let mut gateway = team.gateway();
    let machine = team.machine(OWNER);
    connected(&machine).await;
    gateway.kill();
    assert!(team.feishu.wait_connections(0, LIMIT).await);
    let hook = Hook::ask(&machine, "mine", "ls").await;
    gateway.again();
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let press = Press::action(&cards.of["mine"], "allow");
    assert_eq!(said(&team.feishu.click(press).await.unwrap()), "已批准运行");
    assert!(hook.decision().await.is_some());
}

/// It asked before anybody was there to tell the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_was_there_before_its_gateway_works_as_soon_as_that_comes() {
    let team = Team::start().await;
    let machine = team.machine(OWNER);
    until("the machine is on the bus", || async {
        machine.log().contains("connected to the bus").then_some(())
    })
    .await;
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let _gateway = team.gateway();
    let mut cards = Cards::default();
    let carded = tokio::time::timeout(LIMIT / 4, cards.wait(&team.feishu, 1)).await;
    assert!(carded.is_ok(), "no card came:\n{}", machine.log());
    connected(&machine).await;
    let press = Press::action(&cards.of["mine"], "allow");
    assert_eq!(said(&team.feishu.click(press).await.unwrap()), "已批准运行");
    assert!(hook.decision().await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tap_that_waited_while_the_machine_slept_is_dropped_and_told() {
    let team = Team::start().await;
    let _gateway = team.gateway();
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let hook = Hook::ask(&machine, "mine", "rm -r build").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let press = Press::action(&cards.of["mine"], "allow");
    signal(&machine, Signal::STOP);
    let clicked = team.feishu.click(press.clone()).await.unwrap();
    assert_eq!(said(&clicked), "结果确认中，卡片稍后更新");
    // Its time is over by more than two clocks may differ.
    tokio::time::sleep(Duration::from_secs(5)).await;
    signal(&machine, Signal::CONT);
    let told = until("the person is told", || async {
        let all = team.feishu.messages();
        let late = |text: &str| text.contains("送达过晚");
        all.iter().any(|one| late(&one.content)).then_some(())
    });
    let in_time = tokio::time::timeout(LIMIT / 6, told).await.is_ok();
    assert!(in_time, "nobody is told:\n{}", machine.log());
    assert_eq!(machine.decisions().len(), 0, "{}", machine.log());
    rig::woke(&machine).await;
    let decided = until("a tap in time decides", || async {
        let clicked = team.feishu.click(press.clone()).await.unwrap();
        (said(&clicked) == "已批准运行").then_some(())
    });
    decided.await;
    assert!(hook.decision().await.is_some());
    assert_eq!(machine.decisions()["mine"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_reaches_the_writers_own_machine_or_is_told_to_reach_none() {
    let team = Team::start().await;
    let gateway = team.gateway();
    let machines = [team.machine(OWNER), team.machine(OWNER)];
    for machine in &machines {
        connected(machine).await;
    }
    let text = ChatText::new("hello").by(STRANGER);
    team.feishu.push_text(&text).await.unwrap();
    let told = until("nobody is told", || async {
        let all = team.feishu.messages();
        let nobody = |text: &str| text.contains("没有已连接的机器");
        all.iter().any(|one| nobody(&one.content)).then_some(())
    });
    told.await;
    // One of them answers, and names what the gateway hears, too.
    team.feishu
        .push_text(&ChatText::new("/help"))
        .await
        .unwrap();
    let helped = until("the team's commands are named", || async {
        let all = team.feishu.messages();
        let named = |text: &str| {
            let commands = ["/new", "/join", "/machines", "/forget"];
            commands.iter().all(|command| text.contains(command))
        };
        all.iter().any(|one| named(&one.content)).then_some(())
    });
    helped.await;
    team.feishu
        .push_text(&ChatText::new("/lock"))
        .await
        .unwrap();
    for machine in &machines {
        let locked = until("each machine is locked", || async {
            let _hook = Hook::ask(machine, &format!("{:x}", rand::random::<u64>()), "ls").await;
            let report = rig::status(machine).await?;
            (report["locked"] == true).then_some(())
        });
        locked.await;
    }
    assert!(!gateway.log().contains("hello"), "no content in the log");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pass_that_is_no_longer_young_renews_itself_and_the_doctor_tells() {
    let team = Team::start().await;
    let _gateway = team.gateway();
    let machine = team.machine_since(OWNER, rig::seconds() - 11 * 24 * 3_600, &[]);
    let file = machine.dir.path().join("state/bus.pass");
    let pass = || {
        let text = std::fs::read_to_string(&file).unwrap();
        nod::for_tests::bus::membership::Membership::parse(&text)
            .unwrap()
            .pass
    };
    let (before, month) = (pass(), 29 * 24 * 3_600);
    until("the pass is renewed", || async {
        (pass().until > rig::seconds() + month).then_some(())
    })
    .await;
    assert_eq!(pass().key, before.key, "its key never changes");
    assert_eq!(pass().place, before.place);
    connected(&machine).await;
    let (_, said) = machine.nod(&["doctor"]);
    for line in ["the pass is of", "not on this machine", "the bus nats://"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!said.contains("FEISHU_APP"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_secret_or_a_readable_file_beside_a_pass_is_refused() {
    let team = Team::start().await;
    let settings = [("FEISHU_APP_SECRET", "0123456789abcdef0123456789abcdef")];
    let mut machine = team.machine_with(OWNER, &settings);
    assert_eq!(machine.ended(), Some(78), "{}", machine.log());
    assert!(machine.log().contains("bus.pass"), "{}", machine.log());
    let dir = tempfile::tempdir().unwrap();
    let pass = dir.path().join("pass");
    std::fs::write(&pass, team.membership(OWNER, rig::seconds())).unwrap();
    crate::hooks::chmod(&pass, 0o644);
    let mut machine = Machine::run("daemon", dir, &[("NOD_BUS_PASS", &pass.to_string_lossy())]);
    assert_eq!(machine.ended(), Some(78), "{}", machine.log());
    assert!(machine.log().contains("chmod 600"), "{}", machine.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_and_a_machine_are_set_up_by_commands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let at = crate::gateway::rig::free([127, 0, 0, 1]);
    let nod = |arguments: &[&str], home: &str| {
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_nod"))
            .args(arguments)
            .env_clear()
            .env("HOME", dir.path().join(home))
            .env("NOD_LANG", "en")
            .current_dir(dir.path())
            .output()
            .unwrap();
        let err = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.success(), "{arguments:?}: {err}");
        String::from_utf8(done.stdout).unwrap()
    };
    for home in ["server", "laptop"] {
        std::fs::create_dir(dir.path().join(home)).unwrap();
    }
    let url = format!("nats://{at}");
    nod(&["gateway", "init", "--bus", &url], "server");
    let made = dir.path().join("nod-bus");
    let env = made.join("gateway.env");
    let text = std::fs::read_to_string(&env).unwrap();
    let feishu = crate::gateway::rig::feishu().await;
    let text = text
        .replace(
            "FEISHU_APP_ID=",
            &format!("FEISHU_APP_ID={}", nod::for_tests::simulator::APP_ID),
        )
        .replace(
            "FEISHU_APP_SECRET=",
            &format!("FEISHU_APP_SECRET={APP_SECRET}"),
        );
    rig::private(&env, &text);
    let key = nod(&["join"], "laptop");
    let env = env.to_string_lossy();
    let pass = [
        "--env-file",
        &env,
        "gateway",
        "pass",
        "--owner",
        OWNER,
        "--key",
        key.trim(),
    ];
    let line = nod(&pass, "server");
    nod(&["join", line.trim(), "--yes"], "laptop");
    assert!(!dir.path().join("laptop/.local/state/nod/bus.key").exists());
    // The server's configuration carries what the small bus needs as well.
    let keys = std::fs::read_to_string(made.join("bus.keys")).unwrap();
    let keys = nod::for_tests::bus::keys::Keys::parse(&keys).unwrap();
    let own = keys.own.as_ref().unwrap();
    let [operator, system] = [&own.operator, &own.system].map(|pair| pair.public().to_string());
    let conf = std::fs::read_to_string(made.join("nats.conf")).unwrap();
    let account = format!("{}: ", keys.account);
    let account = conf
        .lines()
        .find_map(|line| line.trim().strip_prefix(&account));
    let bus = nod::for_tests::simulator::bus::Bus::start(at, &operator, &system, account.unwrap());
    let _bus = bus.await.unwrap();
    let _gateway = Machine::run(
        "gateway",
        tempfile::tempdir().unwrap(),
        &[
            ("FEISHU_APP_ID", nod::for_tests::simulator::APP_ID),
            ("FEISHU_APP_SECRET", APP_SECRET),
            ("FEISHU_DOMAIN", &feishu.base_url()),
            ("NOD_BUS_URL", &url),
            ("NOD_BUS_KEYS", &made.join("bus.keys").to_string_lossy()),
        ],
    );
    let pass = dir.path().join("laptop/.local/state/nod/bus.pass");
    let machine = Machine::run(
        "daemon",
        tempfile::tempdir().unwrap(),
        &[("NOD_BUS_PASS", &pass.to_string_lossy())],
    );
    connected(&machine).await;
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&feishu, 1).await;
    let press = Press::action(&cards.of["mine"], "allow");
    assert_eq!(said(&feishu.click(press).await.unwrap()), "已批准运行");
    assert!(hook.decision().await.is_some());
    // A second time would shut every machine out.
    let again = std::process::Command::new(env!("CARGO_BIN_EXE_nod"))
        .args(["gateway", "init", "--bus", &url])
        .env_clear()
        .env("HOME", dir.path())
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(!again.status.success());
    let kept = std::fs::read_to_string(made.join("bus.keys")).unwrap();
    assert_eq!(kept, keys.text().expose());
    let other = KeyPair::of(KeyKind::User, rand::random())
        .public()
        .to_string();
    assert_ne!(other, key.trim());
}
