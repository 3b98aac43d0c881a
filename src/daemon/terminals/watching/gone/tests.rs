use super::*;
use crate::approvals::outcome::sample;
use crate::clock::Millis;
use crate::daemon::terminals::watching::bench::{own_pid, says, writes};
use crate::ids::SessionId;
use serde_json::json;
use std::path::Path;

const ASKED: Millis = 1_000_000;

/// A request of the session `s1`, whose status files lie there.
fn asked(dir: &Path) -> Request {
    let mut request = sample::request("Bash", json!({"command": "ls"}));
    request.asked_at = ASKED;
    request.origin.session = SessionId::parse("s1").ok();
    request.origin.caller.status_dir = Some(dir.to_owned());
    request
}

async fn told(request: Request, ending: Ending) -> Settled {
    let settled = Settled {
        request: Arc::new(request),
        ending,
        at: ASKED + 500,
    };
    explained(settled).await
}

fn no() -> Ending {
    let allowed = Some(false);
    Ending::Terminal { allowed }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_ends_with_the_turn_was_a_no_in_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    says(dir.path(), "s1", "idle", ASKED + 400);
    let settled = told(asked(dir.path()), Ending::HookGone).await;
    assert_eq!(settled.ending, no());
}

#[tokio::test(start_paused = true)]
async fn the_file_has_a_moment_to_say_so() {
    let dir = tempfile::tempdir().unwrap();
    says(dir.path(), "s1", "waiting", ASKED + 10);
    let request = asked(dir.path());
    let later = async {
        sleep(TOLD_WITHIN / 2).await;
        says(dir.path(), "s1", "idle", ASKED + 600);
    };
    let (settled, ()) = tokio::join!(told(request, Ending::HookGone), later);
    assert_eq!(settled.ending, no());
    says(dir.path(), "s1", "waiting", ASKED + 10);
    let began = Instant::now();
    let settled = told(asked(dir.path()), Ending::HookGone).await;
    assert_eq!(settled.ending, Ending::HookGone, "the dialog is open");
    assert!(began.elapsed() < TOLD_WITHIN + 4 * LOOK_EVERY, "no longer");
}

#[tokio::test(start_paused = true)]
async fn no_other_end_of_a_hook_is_taken_for_a_no() {
    let dir = tempfile::tempdir().unwrap();
    let gone = async |why: &str, request: Request| {
        let settled = told(request, Ending::HookGone).await;
        assert_eq!(settled.ending, Ending::HookGone, "{why}");
    };
    gone("the session has no file", asked(dir.path())).await;
    says(dir.path(), "s2", "idle", ASKED + 400);
    gone("the file is of another", asked(dir.path())).await;
    says(dir.path(), "s1", "busy", ASKED + 400);
    gone("another hook answered", asked(dir.path())).await;
    says(dir.path(), "s1", "idle", ASKED - 400);
    gone("it was idle before", asked(dir.path())).await;
    says(dir.path(), "s1", "idle", ASKED + 400);
    let mut subagents = asked(dir.path());
    subagents.origin.caller.agent_id = Some("a1".to_owned());
    gone("a subagent asked", subagents).await;
    let mut unknown = asked(dir.path());
    unknown.origin.caller.status_dir = None;
    gone("nobody knows where its file is", unknown).await;
    let mut nameless = asked(dir.path());
    nameless.origin.session = None;
    gone("nobody knows its session", nameless).await;
    let printing = json!({"pid": own_pid(), "sessionId": "s1", "entrypoint": "sdk-cli",
        "status": "idle", "statusUpdatedAt": ASKED + 400});
    writes(dir.path(), &printing);
    gone("nobody sits before it", asked(dir.path())).await;
}

#[tokio::test(start_paused = true)]
async fn what_timed_out_where_nobody_sits_is_told_so_and_nothing_else_is() {
    let dir = tempfile::tempdir().unwrap();
    let unattended = async |ending: Ending| {
        let settled = told(asked(dir.path()), ending.clone()).await;
        assert_eq!(settled.ending, ending);
        settled.request.origin.caller.unattended
    };
    assert!(!unattended(Ending::TimedOut).await, "nobody knows");
    says(dir.path(), "s1", "waiting", ASKED + 10);
    assert!(!unattended(Ending::TimedOut).await, "the dialog goes on");
    let printing = json!({"pid": own_pid(), "sessionId": "s1", "entrypoint": "sdk-cli"});
    writes(dir.path(), &printing);
    assert!(unattended(Ending::TimedOut).await);
    assert!(!unattended(sample::denied(false)).await, "a person decided");
}
