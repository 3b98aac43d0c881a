//! Joining by a line from the chat: a fingerprint on both sides, the owner's
//! tap, and nobody else's; a line lets one machine in, for a short while.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nod::for_tests::bus::errand::ErrandResult;
use nod::for_tests::bus::letter::{self, CallHead};
use nod::for_tests::bus::lobby::{Invite, Invited, JoinWish, ticket};
use nod::for_tests::bus::membership::Membership;
use nod::for_tests::bus::nkey::{KeyKind, KeyPair};
use nod::for_tests::bus::pass::{self, Span};
use nod::for_tests::bus::subjects::{Owner, lobby};
use nod::for_tests::feishu::secret::Secret;
use nod::for_tests::gateway::seal::{SealPurpose, Sealer};
use nod::for_tests::simulator::{APP_SECRET, ChatText, HeldMessage, OWNER, Press, STRANGER};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::hostile::sending;
use super::rig::{Team, connected, seconds};
use super::{said, signal};
use crate::gateway::rig::{Hook, LIMIT, Machine};
use crate::support::until;

const ASKS: &str = "有机器请求加入";
pub(super) const LET_IN: &str = "b_team_0";
const KEEP_OUT: &str = "b_team_1";

/// What the bot answers to `/join`.
pub(super) async fn line(team: &Team) -> String {
    let known = team.feishu.message_count();
    team.feishu
        .push_text(&ChatText::new("/join"))
        .await
        .unwrap();
    until("the line is there", || async {
        let all = team.feishu.messages();
        let new = all.iter().skip(known);
        new.rev().find_map(|one| {
            let content: Value = serde_json::from_str(&one.content).ok()?;
            let (_, line) = content["text"].as_str()?.split_once("nod join ")?;
            Some(line.to_owned())
        })
    })
    .await
}

/// `nod join` on a machine of its own, which waits.
pub(super) struct Joining {
    child: Child,
    dir: tempfile::TempDir,
}

impl Joining {
    fn start(line: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), line, &[])
    }

    /// The same machine joins once more.
    fn again(&mut self, line: &str) -> Self {
        let dir = std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap());
        Self::start_in(dir, line, &[])
    }

    pub(super) fn start_in(dir: tempfile::TempDir, line: &str, more: &[(&str, &str)]) -> Self {
        let out = std::fs::File::create(dir.path().join("said")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_nod"))
            .args(["join", line, "--yes"])
            .env_clear()
            .env("HOME", dir.path())
            .env("NOD_STATE_DIR", dir.path().join("state"))
            .env("NOD_LANG", "en")
            .envs(more.iter().copied())
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap();
        Self { child, dir }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("said")).unwrap()
    }

    fn pass(&self) -> std::path::PathBuf {
        self.dir.path().join("state/bus.pass")
    }

    pub(super) async fn fingerprint(&self) -> String {
        until("the fingerprint is shown", || async {
            let said = self.said();
            let (_, rest) = said.split_once("fingerprint: ")?;
            rest.get(..9).map(str::to_owned)
        })
        .await
    }

    /// How it ended.
    pub(super) async fn ended(&mut self) -> (Option<i32>, String) {
        let code = until("it ends", || {
            let ended = self.child.try_wait().unwrap();
            async move { ended }
        })
        .await;
        (code.code(), self.said())
    }
}

impl Drop for Joining {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn asking(team: &Team) -> Vec<HeldMessage> {
    let all = team.feishu.messages().into_iter();
    let titled = |one: &HeldMessage| {
        let card = one.card.as_ref();
        card.is_some_and(|card| card["header"]["title"]["content"] == ASKS)
    };
    all.filter(titled).collect()
}

pub(super) async fn card(team: &Team, fingerprint: &str) -> HeldMessage {
    until("the owner has a card", || async {
        let shows =
            |one: &HeldMessage| one.card.as_ref().unwrap().to_string().contains(fingerprint);
        asking(team).into_iter().find(shows)
    })
    .await
}

fn value(message: &HeldMessage, element: &str) -> Value {
    let elements = message.card.as_ref().unwrap()["body"]["elements"].clone();
    let mut elements = elements.as_array().unwrap().iter();
    let button = elements.find(|one| one["element_id"] == element).unwrap();
    button["behaviors"][0]["value"].clone()
}

async fn pressed(team: &Team, message: &HeldMessage, by: &str, value: &Value) -> String {
    let event = json!({
        "operator": {"open_id": by},
        "action": {"tag": "button", "value": value},
        "context": {"open_message_id": message.message_id},
    });
    format!(
        "{:?}",
        team.feishu.push_event("card.action.trigger", event).await
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_joins_by_a_line_a_fingerprint_and_its_owners_tap() {
    let team = Team::start().await;
    let gateways = [team.gateway(), team.gateway()];
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    let line = line(&team).await;
    let mut joining = Joining::start(&line);
    let fingerprint = joining.fingerprint().await;
    let message = card(&team, &fingerprint).await;
    assert!(!joining.pass().exists(), "nothing before the tap");
    let clicked = team
        .feishu
        .click(Press::element(&message.message_id, LET_IN))
        .await
        .unwrap();
    assert!(said(&clicked).contains("已加入"), "{clicked:?}");
    let (code, told) = joining.ended().await;
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("is a member now"), "{told}");
    let mode = std::fs::metadata(joining.pass())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!joining.dir.path().join("state/bus.key").exists());
    assert_eq!(asking(&team).len(), 0, "one card, and it is settled");
    // The line has done its work.
    let mut second = Joining::start(&line);
    let (code, told) = second.ended().await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("let another machine in"), "{told}");
    assert_eq!(asking(&team).len(), 0, "nobody is asked");
    // Between them, the gateways have written down what happened.
    let record = until("it is written down", || async {
        let all = gateways
            .iter()
            .map(|one| one.nod(&["gateway", "audit", "--json"]).1);
        let all = all.collect::<String>();
        let whole = ["\"invited\"", "\"asked\"", "\"joined\"", "\"refused\""];
        whole.iter().all(|what| all.contains(what)).then_some(all)
    })
    .await;
    assert!(record.contains(OWNER), "{record}");
    assert!(!record.contains(&line), "no line is written down");
    for gateway in &gateways {
        let file = gateway.dir.path().join("state/team-audit.jsonl");
        let mode = std::fs::metadata(file).map_or(0o600, |is| is.permissions().mode());
        assert_eq!(mode & 0o777, 0o600);
    }
    let machine = daemon(&joining.pass());
    connected(&machine).await;
    let (_, status) = machine.nod(&["status"]);
    for told in [
        "nats-server ",
        "the pass is of",
        "more days",
        "connected to Feishu: 1",
    ] {
        assert!(status.contains(told), "{told}: {status}");
    }
    until("a gateway tells of the machine", || async {
        let (code, told) = gateways[0].nod(&["gateway", "status"]);
        let figures = gateways[0].nod(&["gateway", "status", "--metrics"]).1;
        let told = told.contains("machines: 1 connected") && told.contains("Feishu: connected");
        let figures = figures.contains("nod_gateway_connected 1");
        (code == Some(0) && told && figures).then_some(())
    })
    .await;
    assert_eq!(
        machine.nod(&["gateway", "status"]).0,
        Some(1),
        "no gateway here"
    );
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let press = until("its card is there", || async {
        let all = team.feishu.messages();
        let asks = |one: &&HeldMessage| {
            let card = one.card.as_ref().map(Value::to_string);
            card.is_some_and(|card| card.contains("\"action\":\"allow\""))
        };
        let found = all.iter().find(asks)?;
        Some(Press::action(&found.message_id, "allow"))
    })
    .await;
    assert_eq!(said(&team.feishu.click(press).await.unwrap()), "已批准运行");
    assert!(hook.decision().await.is_some());
    signal(&gateways[0], Signal::TERM);
    until("a gateway that ended is told of no more", || async {
        (gateways[0].nod(&["gateway", "status"]).0 == Some(1)).then_some(())
    })
    .await;
}

fn daemon(pass: &Path) -> Machine {
    Machine::run(
        "daemon",
        tempfile::tempdir().unwrap(),
        &[("NOD_BUS_PASS", &pass.to_string_lossy())],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_machine_comes_back_by_a_new_line_and_tap_only() {
    let team = Team::start().await;
    let gateways = [team.gateway(), team.gateway()];
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    let old = line(&team).await;
    let mut joining = Joining::start(&old);
    let message = card(&team, &joining.fingerprint().await).await;
    let press = Press::element(&message.message_id, LET_IN);
    team.feishu.click(press).await.unwrap();
    assert_eq!(joining.ended().await.0, Some(0), "{}", joining.said());
    // Whoever joined and heard nothing of it may ask again with its line.
    let mut joining = joining.again(&old);
    assert_eq!(joining.ended().await.0, Some(0), "{}", joining.said());
    let kept = std::fs::read_to_string(joining.pass()).unwrap();
    let key = Membership::parse(&kept).unwrap().key.public().to_string();
    let forget = ["gateway", "forget", key.as_str(), "--owner", OWNER];
    let (code, told) = gateways[0].nod(&forget);
    assert_eq!(code, Some(0), "{told}");
    let mut joining = joining.again(&old);
    let (code, told) = joining.ended().await;
    assert_eq!(code, Some(1), "{told}");
    assert_eq!(std::fs::read_to_string(joining.pass()).unwrap(), kept);
    assert_eq!(asking(&team).len(), 0, "nobody is asked");
    // The second in which it was forgotten must be over.
    let over = seconds() + 2;
    until("time goes by", || async {
        (seconds() > over).then_some(())
    })
    .await;
    let mut joining = joining.again(&line(&team).await);
    let message = card(&team, &joining.fingerprint().await).await;
    let press = Press::element(&message.message_id, LET_IN);
    team.feishu.click(press).await.unwrap();
    assert_eq!(joining.ended().await.0, Some(0), "{}", joining.said());
    assert_ne!(std::fs::read_to_string(joining.pass()).unwrap(), kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_its_owner_keeps_out_stays_out_whoever_taps_afterwards() {
    let team = Team::start().await;
    let _gateways = [team.gateway(), team.gateway()];
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    let line = line(&team).await;
    let mut joining = Joining::start(&line);
    let message = card(&team, &joining.fingerprint().await).await;
    let (yes, no) = (value(&message, LET_IN), value(&message, KEEP_OUT));
    // Somebody else who got hold of the button, or made one.
    let told = pressed(&team, &message, STRANGER, &yes).await;
    assert!(told.contains("只有这台机器的所有者"), "{told}");
    let other = KeyPair::of(KeyKind::User, rand::random())
        .public()
        .to_string();
    for (field, forged) in [
        ("owner", json!(STRANGER)),
        ("key", json!(other)),
        ("ticket", json!(ticket([7; 16]))),
        ("until", json!(i64::MAX)),
        ("team", json!("refuse")),
    ] {
        let mut value = yes.clone();
        value[field] = forged;
        let by = if field == "owner" { STRANGER } else { OWNER };
        let told = pressed(&team, &message, by, &value).await;
        assert!(told.contains("无效"), "{field}: {told}");
    }
    // One of ours whose time is over.
    let sealer = Sealer::new(&Secret::new(APP_SECRET.to_owned()), SealPurpose::Team);
    let mut old = yes.clone();
    old["until"] = json!(1_000);
    let told = pressed(&team, &message, OWNER, &sealer.seal(old)).await;
    assert!(told.contains("已过期"), "{told}");
    assert!(!joining.pass().exists());
    let told = pressed(&team, &message, OWNER, &no).await;
    assert!(told.contains("没有加入"), "{told}");
    let (code, told) = joining.ended().await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("keeps it out"), "{told}");
    for _ in 0..4 {
        let told = pressed(&team, &message, OWNER, &yes).await;
        assert!(told.contains("已经用过"), "{told}");
    }
    let mut again = Joining::start(&line);
    let (code, told) = again.ended().await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("keeps it out"), "{told}");
    assert!(!joining.pass().exists() && !again.pass().exists());
}

/// Whoever has a line may say as much as he likes in its lobby, under any
/// number of keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_in_a_lobby_brings_three_cards_at_most_and_keeps_no_colleague_waiting() {
    let team = Team::start().await;
    let _gateway = team.gateway();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let invited = Invited::of_line(&line(&team).await).unwrap();
    let (asks, hears) = lobby(&invited.lobby.owner, &invited.lobby.ticket);
    let (pass, ticket) = (invited.pass.clone(), invited.lobby.ticket.clone());
    let flooder = team.meeting.in_lobby(invited, &hears);
    flooder.up().await;
    let colleague = team.meeting.member(STRANGER);
    colleague.up().await;
    let flood = async {
        for _ in 0..2_000 {
            let key = KeyPair::of(KeyKind::User, rand::random());
            let wish = JoinWish::of(&key, &ticket, "x", "x", "x");
            let head = CallHead {
                at: nod::for_tests::clock::wall_ms(),
                once: format!("{:032x}", rand::random::<u128>()),
                pass: pass.clone(),
            };
            let body = serde_json::to_vec(&wish).unwrap();
            let letter = letter::sign(&flooder.key, &asks, &head, &body);
            let _ = flooder.line.put(&asks, letter, 1).await;
        }
    };
    // A line that was lost is made anew, so a call may go unanswered; none is
    // put off.
    let working = async {
        for _ in 0..10 {
            until("the colleague is served", || async {
                let body = serde_json::to_vec(&sending(STRANGER)).unwrap();
                let told = colleague.heard_saying(&team, &body).await?;
                assert!(
                    matches!(told, ErrandResult::Answer { status: 200, .. }),
                    "{told:?}"
                );
                Some(())
            })
            .await;
        }
    };
    tokio::join!(flood, working);
    let asked = asking(&team).len();
    assert!((1..=3).contains(&asked), "{asked}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_over_forged_or_repeated_lets_nobody_in() {
    let team = Team::start().await;
    let gateway = team.gateway();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let keys = &team.meeting.keys;
    let crafted = |signer: &KeyPair, until: i64| {
        let key = KeyPair::of(KeyKind::User, rand::random());
        let span = Span {
            made: seconds() - 700,
            until,
        };
        let owner = Owner::parse(OWNER).unwrap();
        let name = ticket(rand::random());
        let invite = Invite {
            url: team.meeting.url().to_string(),
            lobby: pass::lobby(signer, &keys.account, &owner, &name, &key.public(), span),
            seed: key.seed().expose().to_owned(),
            push: vec![keys.push.public().to_string()],
        };
        invite.line().expose().to_owned()
    };
    let stranger = KeyPair::of(KeyKind::Account, rand::random());
    for (line, why) in [
        (crafted(&keys.lobby, seconds() - 1), "time is over"),
        (
            crafted(&stranger, seconds() + 300),
            "does not accept this pass",
        ),
        // A machine's key signs no invitation: its rights are others.
        (crafted(&keys.machines, seconds() + 300), "did not join"),
        ("nod1.e30".to_owned(), "makes no member"),
    ] {
        let mut joining = Joining::start(&line);
        if why == "did not join" {
            until("the bus or the gateway refuses", || async {
                let refusals = team.meeting.small().map(|bus| bus.refusals().len());
                (refusals != Some(0)).then_some(())
            })
            .await;
        } else {
            let (code, told) = joining.ended().await;
            assert_eq!(code, Some(1), "{told}");
            assert!(told.contains(why), "{why}: {told}");
        }
        assert!(!joining.pass().exists());
    }
    assert_eq!(asking(&team).len(), 0, "nobody is asked");
    // What was asked, said once more by the bus, brings no second card.
    let line = line(&team).await;
    let joining = Joining::start(&line);
    let message = card(&team, &joining.fingerprint().await).await;
    if let Some(bus) = team.meeting.small() {
        let passed = bus.passed();
        let asked = passed.iter().find(|one| one.subject.starts_with("nod1.j."));
        let asked = asked.unwrap();
        assert!(bus.inject(&asked.subject, asked.reply.as_deref(), &asked.body));
        until("the gateway refuses it", || async {
            gateway
                .log()
                .contains("refused somebody in the lobby")
                .then_some(())
        })
        .await;
        // Another machine's key under this ticket, with no proof of its own.
        let mut altered = asked.body.to_vec();
        altered.extend_from_slice(b" ");
        assert!(bus.inject(&asked.subject, asked.reply.as_deref(), &altered));
    }
    assert_eq!(asking(&team).len(), 1);
    assert_eq!(asking(&team)[0].message_id, message.message_id);
    // A line that many machines ask with stops asking.
    let more: Vec<Joining> = (0..2).map(|_| Joining::start(&line)).collect();
    for one in &more {
        card(&team, &one.fingerprint().await).await;
    }
    let mut last = Joining::start(&line);
    let (code, told) = last.ended().await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("too many machines"), "{told}");
    assert_eq!(asking(&team).len(), 3);
}
