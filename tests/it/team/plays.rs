//! What works with an app's secret works over the bus: the same plays, with a
//! machine that has a pass and nothing else, and a gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nod::for_tests::simulator::OWNER;
use nod::for_tests::simulator::bus::MessageFate;

use super::rig::{self, Team};
use crate::hooks::{Home, Stage};
use crate::{approve, ask, sessions};

/// A stage whose daemon is a machine of a team.
async fn over_the_bus(home: Home) -> Stage {
    with(Team::start().await, home).await
}

async fn with(team: Team, mut home: Home) -> Stage {
    let gateway = team.gateway();
    for name in [
        "FEISHU_DOMAIN",
        "FEISHU_APP_ID",
        "FEISHU_APP_SECRET",
        "FEISHU_OWNER_ID",
    ] {
        home.unset(name);
    }
    let pass = team.membership(OWNER, rig::seconds() - 1);
    rig::private(&home.state().join("bus.pass"), &pass);
    let Team { feishu, meeting } = team;
    Stage::on(feishu, home, Some(Box::new((gateway, meeting)))).await
}

async fn plain() -> Stage {
    over_the_bus(Home::new("")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_button_works_over_the_bus() {
    approve::buttons(plain().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reason_reaches_the_model_over_the_bus() {
    approve::reasons(plain().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_always_is_taken_back_over_the_bus() {
    approve::always_and_undo(plain().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_claudes_is_answered_over_the_bus() {
    ask::claude_asks(plain().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_decided_over_the_bus() {
    ask::claude_plans(plain().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_asks_over_the_bus() {
    ask::a_script_asks(plain().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_from_chat_runs_over_the_bus() {
    sessions::a_whole_task(over_the_bus).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_goes_to_a_task_over_the_bus() {
    sessions::a_file(over_the_bus, b"figures").await;
}

/// Of many of the bus's messages, the last of them not full.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_larger_than_the_bus_carries_at_once_comes_whole() {
    let content: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
    sessions::a_file(over_the_bus, &content).await;
}

/// One piece is altered, another comes twice, a third is kept back; each time
/// the file is asked for again.
#[tokio::test(flavor = "multi_thread")]
async fn a_bus_that_meddles_with_a_files_pieces_delays_it_and_alters_nothing() {
    let team = Team::start().await;
    let Some(bus) = team.meeting.small() else {
        return;
    };
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    bus.meddle(Some(Box::new(move |_, body| {
        if body.len() < 200 * 1024 {
            return MessageFate::Pass;
        }
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => {
                let mut body = body.to_vec();
                *body.last_mut().unwrap() ^= 1;
                MessageFate::Alter(body)
            }
            5 => MessageFate::Twice,
            7 => MessageFate::Withhold,
            _ => MessageFate::Pass,
        }
    })));
    let content: Vec<u8> = (0..900_000_u32).map(|n| (n % 241) as u8).collect();
    sessions::a_file(async |home| with(team, home).await, &content).await;
    assert!(seen.load(Ordering::SeqCst) > 9, "it was asked for again");
}
