//! What each has of the app: a machine that floods the gateway takes nothing
//! from a colleague, whatever it calls its calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nod::for_tests::bus::errand::{ErrandCall, ErrandResult};
use nod::for_tests::simulator::{Armed, Fault, OWNER, Press, STRANGER};
use serde_json::{Value, json};

use super::hostile::{asked, sending};
use super::rig::{Member, Team, connected, serves};
use super::said;
use crate::gateway::rig::{Cards, Hook, LIMIT, Machine};
use crate::support::until;

/// Of each kind of call 240 a minute and 12 a second.
const RATE: &str = "240";

fn card_text() -> String {
    let text = json!({"tag": "plain_text", "content": "at work"});
    let elements = json!([{"tag": "div", "text": text}]);
    json!({"schema": "2.0", "body": {"elements": elements}}).to_string()
}

/// A message of this machine's owner, and the right to touch it.
async fn sent(member: &Member, team: &Team, owner: &str) -> (String, String) {
    let mut card = sending(owner);
    let body = card.body.as_mut().unwrap();
    body["msg_type"] = "interactive".into();
    body["content"] = card_text().into();
    let told = member.asks(team, &card).await;
    let ErrandResult::Answer {
        status: 200,
        body,
        ticket: Some(ticket),
        ..
    } = told
    else {
        panic!("not sent: {told:?}");
    };
    let body: Value = serde_json::from_str(&body).unwrap();
    let id = body["data"]["message_id"].as_str().unwrap();
    (id.to_owned(), ticket)
}

fn edit((id, ticket): &(String, String)) -> ErrandCall {
    ErrandCall {
        body: Some(json!({"content": card_text()})),
        ticket: Some(ticket.clone()),
        ..asked("PATCH", &["open-apis", "im", "v1", "messages", id])
    }
}

/// How often it was put off and how often not.
#[derive(Default)]
struct Count {
    crowded: AtomicUsize,
    made: AtomicUsize,
}

impl Count {
    fn crowded(&self) -> usize {
        self.crowded.load(Ordering::SeqCst)
    }
}

/// Asks for the same again and again, and calls it a card.
fn flood(
    machine: &Arc<Member>,
    team: &Arc<Team>,
    asked: impl Fn() -> ErrandCall + Send + 'static,
) -> Arc<Count> {
    let count = Arc::new(Count::default());
    let (counting, machine, team) = (Arc::clone(&count), Arc::clone(machine), Arc::clone(team));
    tokio::spawn(async move {
        loop {
            let mut body = serde_json::to_value(asked()).unwrap();
            for (name, claim) in [("kind", "send"), ("class", "card"), ("rank", "Card")] {
                body[name] = claim.into();
            }
            let told = machine.says(&team, body.to_string().as_bytes()).await;
            let counted = match told {
                ErrandResult::Crowded { after } => {
                    assert!(after > 0);
                    &counting.crowded
                }
                _ => &counting.made,
            };
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_floods_delays_no_colleagues_card() {
    let team = Arc::new(Team::start().await);
    let gateway = team.gateway_with(&[("NOD_APP_RATE", RATE)]);
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let (flooder, colleague) = (team.meeting.member(STRANGER), team.meeting.member(OWNER));
    let flooder = Arc::new(flooder);
    flooder.up().await;
    colleague.up().await;
    serves(&gateway).await;
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let running = sent(&flooder, &team, STRANGER).await;
    let mut theirs = Vec::new();
    for _ in 0..2 {
        theirs.push(sent(&colleague, &team, OWNER).await);
    }
    let since = Instant::now();
    let progress = edit(&running);
    let edits = flood(&flooder, &team, move || progress.clone());
    let sends = flood(&flooder, &team, || sending(STRANGER));
    until("both floods are put off", || async {
        let all = [&edits, &sends];
        all.iter().all(|count| count.crowded() > 20).then_some(())
    })
    .await;
    // The colleague's own are made at once, first try.
    for _ in 0..2 {
        let told = colleague.asks(&team, &sending(OWNER)).await;
        assert!(
            matches!(told, ErrandResult::Answer { status: 200, .. }),
            "{told:?}"
        );
    }
    for message in &theirs {
        let told = colleague.asks(&team, &edit(message)).await;
        assert!(
            matches!(told, ErrandResult::Answer { status: 200, .. }),
            "{told:?}"
        );
    }
    // So it is with a real machine: a card, a tap, and the card's last face.
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let press = Press::action(&cards.of["mine"], "allow");
    assert_eq!(said(&team.feishu.click(press).await.unwrap()), "已批准运行");
    assert!(hook.decision().await.is_some());
    let before = [edits.crowded(), sends.crowded()];
    until("the card is decided", || async {
        let card = team.feishu.message(&cards.of["mine"])?.card?.to_string();
        (!card.contains("\"allow\"")).then_some(())
    })
    .await;
    until("the floods went on all the time", || async {
        let now = [edits.crowded(), sends.crowded()];
        (now[0] > before[0] && now[1] > before[1]).then_some(())
    })
    .await;
    // Calling progress a card made no more of it: what one person may have of
    // two fifths of the app, and the first few of each minute.
    let spans = usize::try_from(since.elapsed().as_secs() / 10).unwrap() + 1;
    let made = edits.made.load(Ordering::SeqCst);
    assert!(
        made <= spans * 11 + 3 * (spans / 6 + 1),
        "{made} in {spans}"
    );
}

/// It comes again by itself, so its cards come a little later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_is_put_off_sends_its_cards_a_little_later() {
    let team = Team::start().await;
    let gateway = team.gateway_with(&[("NOD_APP_RATE", "20")]);
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let mut hooks = Vec::new();
    for n in 0..4 {
        hooks.push(Hook::ask(&machine, &format!("request-{n}"), "ls").await);
    }
    Cards::default().wait(&team.feishu, hooks.len()).await;
    until("it is told that calls were put off", || async {
        let (_, page) = gateway.nod(&["gateway", "status", "--metrics"]);
        let count = page.lines().find_map(|line| {
            let count = line.strip_prefix("nod_gateway_crowded_total ")?;
            count.parse::<u64>().ok()
        });
        count.filter(|count| *count > 0)
    })
    .await;
}

/// Waits until a gateway counts so many.
async fn counts(of: &Machine, all: &str) {
    until("the gateways know of each other", || async {
        let (_, page) = of.nod(&["gateway", "status", "--metrics"]);
        let line = format!("nod_gateway_gateways {all}");
        page.lines().any(|one| one == line).then_some(())
    })
    .await;
}

/// Feishu takes five messages a second for one chat; however many laptops
/// write, they are put off before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn laptops_of_one_person_write_together_no_faster_than_feishu_takes() {
    let team = Arc::new(Team::start().await);
    let pace = [("NOD_CHAT_RATE", "4")];
    let gateways = [team.gateway_with(&pace), team.gateway_with(&pace)];
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    for gateway in &gateways {
        counts(gateway, "2").await;
    }
    let mut machines = Vec::new();
    for _ in 0..3 {
        let machine = team.meeting.member(OWNER);
        machine.up().await;
        machines.push(machine);
    }
    let since = Instant::now();
    let mut writing = Vec::new();
    for machine in machines {
        let team = Arc::clone(&team);
        writing.push(tokio::spawn(async move {
            let mut crowded = 0;
            for _ in 0..40 {
                match machine.asks(&team, &sending(OWNER)).await {
                    ErrandResult::Answer { status: 200, .. } => {}
                    ErrandResult::Crowded { after } => {
                        assert!((1..=1_000).contains(&after), "{after}");
                        crowded += 1;
                    }
                    told => panic!("{told:?}"),
                }
            }
            crowded
        }));
    }
    let mut crowded = 0;
    for one in writing {
        crowded += one.await.unwrap();
    }
    let seconds = usize::try_from(since.elapsed().as_secs()).unwrap();
    let made = team.feishu.message_count();
    assert_eq!(made + crowded, 3 * 40);
    // Those of a second that has begun, and of the one that has just ended.
    assert!(made <= 4 * (seconds + 2), "{made} in {seconds} s");
    assert!(made >= 4, "{made}");
}

/// What Feishu tells one gateway, the other heeds as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_feishu_tells_to_wait_tells_the_others() {
    let team = Team::start().await;
    let gateways = [team.gateway(), team.gateway()];
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    for gateway in &gateways {
        counts(gateway, "2").await;
    }
    let machine = team.meeting.member(OWNER);
    machine.up().await;
    let bot = asked("GET", &["open-apis", "bot", "v3", "info"]);
    let told = machine.asks(&team, &bot).await;
    assert!(
        matches!(told, ErrandResult::Answer { status: 200, .. }),
        "{told:?}"
    );
    let limit = Fault::RateLimit {
        path: "bot/v3/info".to_owned(),
        reset: 30,
    };
    team.feishu.set_fault(Armed::once(limit)).unwrap();
    let told = machine.asks(&team, &bot).await;
    assert!(
        matches!(told, ErrandResult::Answer { status: 429, .. }),
        "{told:?}"
    );
    // Either gateway may be asked: all of twenty never meet the same one.
    until("both gateways wait", || async {
        for _ in 0..20 {
            if !matches!(
                machine.asks(&team, &bot).await,
                ErrandResult::Crowded { .. }
            ) {
                return None;
            }
        }
        Some(())
    })
    .await;
    let told = machine.asks(&team, &sending(OWNER)).await;
    assert!(
        matches!(told, ErrandResult::Answer { status: 200, .. }),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_know_how_many_share_the_app_and_heed_what_feishu_says() {
    let team = Team::start().await;
    let mut gateways = [team.gateway(), team.gateway()];
    for gateway in &gateways {
        counts(gateway, "2").await;
    }
    gateways[1].kill();
    counts(&gateways[0], "1").await;
    let machine = team.meeting.member(OWNER);
    machine.up().await;
    let message = sent(&machine, &team, OWNER).await;
    let limit = Fault::RateLimit {
        path: message.0.clone(),
        reset: 30,
    };
    team.feishu.set_fault(Armed::once(limit)).unwrap();
    let told = machine.asks(&team, &edit(&message)).await;
    assert!(
        matches!(told, ErrandResult::Answer { status: 429, .. }),
        "{told:?}"
    );
    // Whoever else wants to edit is not sent to be refused as well.
    let told = machine.asks(&team, &edit(&message)).await;
    assert!(
        matches!(told, ErrandResult::Crowded { after: 1.. }),
        "{told:?}"
    );
    let told = machine.asks(&team, &sending(OWNER)).await;
    assert!(
        matches!(told, ErrandResult::Answer { status: 200, .. }),
        "{told:?}"
    );
}
