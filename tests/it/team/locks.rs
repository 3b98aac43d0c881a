//! Whom a lock did not reach: the chat names the machines that somebody may be
//! at, and none that have been away for long.

use nod::for_tests::bus::nkey::{KeyKind, KeyPair};
use nod::for_tests::simulator::{ChatText, OWNER};
use serde_json::{Value, json};

use super::rig::{HOUR, Team, connected, private, seconds, status};
use crate::gateway::rig::LIMIT;
use crate::support::until;

const NOT_LOCKED: &str = "没有锁定";
const NONE_THERE: &str = "没有已连接的机器";

/// A machine that a gateway heard so long ago.
fn heard(name: &str, ago: i64) -> Value {
    let key = KeyPair::of(KeyKind::User, rand::random()).public();
    json!({
        "owner": OWNER, "key": key.to_string(), "name": name, "version": "1",
        "seen": seconds() - ago,
    })
}

/// A home in which a gateway finds what it knew.
fn knowing(machines: &[Value]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    nod::for_tests::files::make_dirs(&state, 0o700).unwrap();
    let file = json!({"machines": machines, "forgotten": []});
    private(&state.join("team.json"), &file.to_string());
    dir
}

async fn told(team: &Team, what: &str) -> String {
    let told = until("the owner is told", || async {
        let all = team.feishu.messages();
        all.into_iter().find(|one| one.content.contains(what))
    });
    told.await.content
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_misses_machines_of_late_and_none_that_were_away_for_long() {
    let team = Team::start().await;
    let known = [
        heard("asleep", 2 * HOUR),
        heard("given-away", 9 * 24 * HOUR),
    ];
    let _gateway = team.gateway_in(knowing(&known), &[]);
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let lock = ChatText::new("/lock");
    team.feishu.push_text(&lock).await.unwrap();
    let content = told(&team, NOT_LOCKED).await;
    assert!(content.contains("asleep"), "{content}");
    assert!(!content.contains("given-away"), "{content}");
    until("the one that is there is locked", || async {
        (status(&machine).await?["locked"] == true).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_with_no_machine_of_late_is_told_to_reach_none() {
    let team = Team::start().await;
    let known = [heard("given-away", 9 * 24 * HOUR)];
    let _gateway = team.gateway_in(knowing(&known), &[]);
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    // Messages are for the machines as soon as the gateway is on the bus.
    let lock = ChatText::new("/lock");
    until("the owner is told", || async {
        team.feishu.push_text(&lock).await.unwrap();
        let all = team.feishu.messages();
        let none = all.iter().any(|one| one.content.contains(NONE_THERE));
        none.then_some(())
    })
    .await;
    let all = team.feishu.messages();
    let named = all.iter().find(|one| one.content.contains(NOT_LOCKED));
    assert!(named.is_none(), "{named:?}");
}
