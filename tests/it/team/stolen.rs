//! A stolen machine among the others of its owner: it hears what they hear, and
//! keeps neither a lock nor words from them.

use std::sync::Arc;

use nod::for_tests::bus::letter::{self, AnswerHead, CallHead, Letter, PushHead};
use nod::for_tests::bus::line::{BusAnswer, BusHeard};
use nod::for_tests::bus::subjects::{FromMachine, ToMachine, of_owner};
use nod::for_tests::clock;
use nod::for_tests::simulator::bus::MessageFate;
use nod::for_tests::simulator::{ChatText, OWNER};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::forget::{LISTED, listed};
use super::rig::{Member, SOON, Team, connected, serves, status};
use crate::gateway::rig::LIMIT;
use crate::support::until;

/// As many answers as the bus lets a machine give.
const FLOOD: usize = 64;

impl Member {
    fn is_asked(&self, heard: &BusHeard) -> bool {
        heard.subject == of_owner(&self.place().owner)
    }

    /// Answers a gateway, so many times.
    async fn answers(&self, asked: &BusHeard, body: &Value, times: usize) {
        let letter = Letter::read(&asked.body).unwrap();
        let PushHead { once, .. } = letter.claims().unwrap();
        let head = AnswerHead {
            re: once,
            pass: Some(self.pass.clone()),
        };
        let body = body.to_string();
        let answer = letter::sign(&self.key, &asked.subject, &head, body.as_bytes());
        for _ in 0..times {
            let reply = asked.reply.as_deref().unwrap();
            assert!(self.line.tell(reply, answer.clone()).await);
        }
    }

    /// Returns when all that it said has come to a gateway.
    async fn was_heard(&self) {
        let subject = self.place().says(FromMachine::Hello);
        until("a gateway answers", || async {
            let head = CallHead {
                at: clock::wall_ms(),
                once: format!("{:x}", rand::random::<u128>()),
                pass: self.pass.clone(),
            };
            let hello = letter::sign(&self.key, &subject, &head, b"{}");
            let told = self.line.ask(&subject, hello, LIMIT).await;
            matches!(told, BusAnswer::Answer(_)).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stolen_laptop_that_takes_no_lock_keeps_it_from_no_other_machine() {
    let team = Team::start().await;
    let Some(bus) = team.meeting.small() else {
        return;
    };
    let gateway = team.gateway();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let machine = team.machine(OWNER);
    connected(&machine).await;
    listed(&team, "/machines", LISTED, 1).await;
    let mut thief = team.meeting.member(OWNER);
    thief.up().await;
    // The bus has taken by then what it wants to hear.
    thief.was_heard().await;
    let id = thief.place().machine.to_string();
    // The other machine is too slow to say anything when it is asked.
    bus.meddle(Some(Box::new(|subject, body| {
        let text = String::from_utf8_lossy(body);
        let slow = text.contains("\"claim\"") && !text.contains("thief");
        if subject.starts_with("_IN.gw") && slow {
            MessageFate::Withhold
        } else {
            MessageFate::Pass
        }
    })));
    let stolen = tokio::spawn(async move {
        while let Some(heard) = thief.heard.recv().await {
            if thief.is_asked(&heard) {
                let unknown = json!({"claim": "every", "by": "thief"});
                thief.answers(&heard, &unknown, 1).await;
            }
        }
    });
    let lock = ChatText::new("/lock");
    team.feishu.push_text(&lock).await.unwrap();
    let locked = until("the other machine is locked", || async {
        (status(&machine).await?["locked"] == true).then_some(())
    });
    let in_time = tokio::time::timeout(LIMIT / 6, locked).await.is_ok();
    assert!(in_time, "it is not locked:\n{}", gateway.log());
    let told = until("the owner is told", || async {
        let all = team.feishu.messages();
        let told = |text: &str| text.contains("没有锁定");
        all.into_iter().find(|one| told(&one.content))
    })
    .await;
    assert!(told.content.contains(&format!("：{id}")), "{told:?}");
    assert!(!told.content.contains(", "), "only that one: {told:?}");
    stolen.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_for_one_machine_stay_its_own_however_much_another_says() {
    let team = Team::start().await;
    let gateway = team.gateway();
    serves(&gateway).await;
    let (mut thief, mut meant) = (team.meeting.member(OWNER), team.meeting.member(OWNER));
    for machine in [&thief, &meant] {
        machine.up().await;
        machine.was_heard().await;
    }
    let (flooded, mut after) = mpsc::unbounded_channel();
    let stolen = tokio::spawn(async move {
        while let Some(heard) = thief.heard.recv().await {
            if thief.is_asked(&heard) {
                let unknown = json!({"claim": "every"});
                thief.answers(&heard, &unknown, FLOOD).await;
                thief.was_heard().await;
                let _ = flooded.send(());
            }
        }
    });
    let took = Arc::new(Notify::new());
    let taken = Arc::clone(&took);
    let other = tokio::spawn(async move {
        while let Some(heard) = meant.heard.recv().await {
            if meant.is_asked(&heard) {
                after.recv().await.unwrap();
                meant.answers(&heard, &json!({"claim": "surely"}), 1).await;
            } else {
                assert_eq!(heard.subject, meant.place().hears(ToMachine::Take));
                meant.answers(&heard, &json!({}), 1).await;
                taken.notify_one();
            }
        }
    });
    until("the words come to the machine they are for", || async {
        let words = ChatText::new("go on");
        team.feishu.push_text(&words).await.unwrap();
        tokio::time::timeout(3 * SOON, took.notified()).await.ok()
    })
    .await;
    assert!(!stolen.is_finished() && !other.is_finished());
    stolen.abort();
    other.abort();
}
