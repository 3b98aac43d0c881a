use super::*;
use crate::approvals::choice::Choice;
use crate::approvals::outcome::sample;
use crate::approvals::request::{Ending, Reach};
use crate::approvals::token::{Token, TokenHash};
use crate::daemon::bench::{DaemonBench, WEBHOOK};
use crate::feishu::link::Phase;
use crate::hook::wire::Additions;
use crate::ids::RequestId;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

const NOBODY: [(&str, &str); 1] = [("FEISHU_OWNER_ID", "")];
fn registration(id: &str, project: &Path, raw: &Value) -> Registration {
    Registration {
        id: RequestId::parse(id).unwrap(),
        project: project.to_owned(),
        raw_input: raw.to_string().into_bytes(),
        nod: None,
    }
}

fn asks(tool: &str, input: &Value) -> Value {
    json!({
        "hook_event_name": "PermissionRequest", "session_id": "s1",
        "tool_name": tool, "tool_input": input,
    })
}

async fn registered(
    bench: &DaemonBench,
    registration: Registration,
) -> Result<Waiting, HookRefused> {
    let terminals = Arc::clone(&bench.codex.terminals);
    let mailboxes = Arc::clone(&bench.chat.mailboxes);
    let peer = HookPeer {
        pid: Some(1),
        since: Instant::now(),
    };
    register(terminals, mailboxes, registration, peer).await
}

async fn refused_with(bench: &DaemonBench, project: &Path, raw: &Value) -> ErrorWord {
    let refused = registered(bench, registration("r1", project, raw)).await;
    assert_eq!(bench.cards.desk.pending(), 0);
    refused.unwrap_err().error
}

#[tokio::test]
async fn what_nobody_can_be_asked_goes_to_the_terminal_with_a_word_why() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path();
    let bash = asks("Bash", &json!({"command": "ls"}));
    let bench = DaemonBench::new().await;
    for (project, raw, word) in [
        (
            here,
            json!({"hook_event_name": "Stop"}),
            ErrorWord::BadRequest,
        ),
        (here, json!(["no", "hook"]), ErrorWord::BadRequest),
        (here, asks("nod_ask", &json!({})), ErrorWord::BadRequest),
        (Path::new("shop"), bash.clone(), ErrorWord::BadProject),
        (Path::new("/not/there"), bash.clone(), ErrorWord::BadProject),
    ] {
        assert_eq!(refused_with(&bench, project, &raw).await, word, "{raw}");
    }
    bench.bench.view.send_modify(|view| {
        view.phase = Phase::Degraded {
            until: Instant::now(),
            why: Text::new("没有权限", "no permission"),
        };
    });
    let word = refused_with(&bench, here, &bash).await;
    assert_eq!(word, ErrorWord::Offline);
    let nobody = DaemonBench::with(&NOBODY).await;
    let word = refused_with(&nobody, here, &bash).await;
    assert_eq!(word, ErrorWord::NoOwner);
}

#[tokio::test]
async fn a_custom_bot_carries_no_question() {
    let dir = tempfile::tempdir().unwrap();
    let bench = DaemonBench::with(&WEBHOOK).await;
    let question = json!({"question": "Go?", "kind": "confirm"});
    let question = asks("nod_ask", &question);
    let word = refused_with(&bench, dir.path(), &question).await;
    assert_eq!(word, ErrorWord::Unsupported);
    let bash = asks("Bash", &json!({"command": "ls"}));
    let taken = registered(&bench, registration("r1", dir.path(), &bash)).await;
    assert!(taken.is_ok());
}

#[tokio::test]
async fn a_request_is_kept_with_the_digest_of_what_its_hook_read() {
    let dir = tempfile::tempdir().unwrap();
    let bench = DaemonBench::new().await;
    let input = json!({"command": "npm test"});
    let raw = asks("Bash", &input);
    let waiting = registered(&bench, registration("r1", dir.path(), &raw)).await;
    let waiting = waiting.unwrap();
    let pending = journal::pending(&bench.cards.journal).await;
    let [(row, request)] = pending.as_slice() else {
        panic!("{}", pending.len());
    };
    assert_eq!(request.digest, Digest::of(&input));
    assert_eq!(request.origin.pid, Some(1));
    let token = waiting.token().unwrap().hash();
    assert_eq!(row.token_hash.map(TokenHash::from_bytes), Some(token));
    let allowed = millis(bench.cards.config.request_timeout);
    assert_eq!(request.deadline, request.asked_at + allowed);
    let again = registered(&bench, registration("r1", dir.path(), &raw)).await;
    assert_eq!(again.unwrap_err().error, ErrorWord::Duplicate);
}

#[tokio::test]
async fn a_script_says_how_long_its_question_waits() {
    let dir = tempfile::tempdir().unwrap();
    let bench = DaemonBench::new().await;
    let input = json!({"question": "Go?", "kind": "confirm", "timeout_s": 90});
    let raw = asks("nod_ask", &input);
    let _waiting = registered(&bench, registration("r1", dir.path(), &raw)).await;
    let asked = bench.cards.desk.find(&RequestId::parse("r1").unwrap());
    let asked = asked.unwrap();
    assert_eq!(asked.deadline - asked.asked_at, 90_000);
}

fn comes_back(project: &Path, raw: &Value, token: Token) -> Registration {
    let mut registration = registration("r1", project, raw);
    registration.nod = Some(Additions {
        resume: Some(token),
        ..Additions::default()
    });
    registration
}

#[tokio::test]
async fn a_hook_that_comes_back_needs_its_own_token() {
    let dir = tempfile::tempdir().unwrap();
    let bench = DaemonBench::new().await;
    let raw = asks("Bash", &json!({"command": "ls"}));
    let stolen = Token::from_bytes([1; 32]);
    let unknown = comes_back(dir.path(), &raw, stolen.clone());
    let unknown = registered(&bench, unknown).await.unwrap_err();
    assert_eq!(unknown.error, ErrorWord::Unknown);
    let first = registered(&bench, registration("r1", dir.path(), &raw)).await;
    let mut first = first.unwrap();
    let token = first.token().unwrap().clone();
    let other = registered(&bench, comes_back(dir.path(), &raw, stolen)).await;
    assert_eq!(other.unwrap_err().error, ErrorWord::WrongToken);
    let back = registered(&bench, comes_back(dir.path(), &raw, token)).await;
    assert!(back.unwrap().token().is_some());
    assert!(
        first.answered().await.is_none(),
        "the new connection has it"
    );
}

#[tokio::test]
async fn a_hook_that_missed_its_answer_gets_the_whole_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let bench = DaemonBench::new().await;
    let input = json!({"question": "Go?", "kind": "confirm"});
    let raw = asks("nod_ask", &input);
    let waiting = registered(&bench, registration("r1", dir.path(), &raw)).await;
    let token = waiting.as_ref().unwrap().token().unwrap().clone();
    let id = RequestId::parse("r1").unwrap();
    let yes = Choice::Answer(vec!["yes".to_owned()]);
    let claim = bench.cards.desk.claim(&id, yes, sample::by());
    drop((claim, waiting));
    let back = registered(&bench, comes_back(dir.path(), &raw, token)).await;
    let answer = back.unwrap().answered().await.unwrap().answer;
    assert_eq!(answer.ending, sample::answered());
    assert_eq!(answer.digest, Digest::of(&input));
    let put_in = answer.extras.updated_input.unwrap();
    assert_eq!(put_in, json!({"answers": ["yes"]}));
}

#[tokio::test]
async fn an_answer_of_an_earlier_run_is_found_in_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let bench = DaemonBench::new().await;
    let raw = asks("Bash", &json!({"command": "ls"}));
    let mut request = sample::request("Bash", json!({"command": "ls"}));
    request.asked_at = bench.cards.now();
    let token = Token::from_bytes([1; 32]);
    journal::keep(&bench.cards.journal, &request, token.hash()).await;
    let settled = crate::approvals::Settled {
        request: Arc::new(request),
        ending: sample::allowed(Reach::Once),
        at: bench.cards.now(),
    };
    let kept = journal::settle(&bench.cards.journal, &settled, None, None).await;
    assert!(kept.is_ok());
    let stolen = comes_back(dir.path(), &raw, Token::from_bytes([2; 32]));
    let stolen = registered(&bench, stolen).await.unwrap_err();
    assert_eq!(stolen.error, ErrorWord::Unknown);
    let back = registered(&bench, comes_back(dir.path(), &raw, token)).await;
    let answer = back.unwrap().answered().await.unwrap().answer;
    assert!(matches!(answer.ending, Ending::Allowed { .. }));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn two_spellings_of_the_hook_make_one_request_and_two_calls_make_two() {
    let dir = tempfile::tempdir().unwrap();
    let bench = DaemonBench::new().await;
    let hook = |seconds: &str| {
        let mut command = std::process::Command::new("sleep");
        command.arg(seconds).spawn().unwrap()
    };
    let (mut first, mut again, mut other) = (hook("31"), hook("31"), hook("32"));
    let asks_as = |id: &str, pid: u32, command: &str| {
        let raw = asks("Bash", &json!({"command": command}));
        let nod = Additions {
            pid: Some(pid),
            ..Additions::default()
        };
        Registration {
            nod: Some(nod),
            ..registration(id, dir.path(), &raw)
        }
    };
    let _one = registered(&bench, asks_as("r1", first.id(), "ls"))
        .await
        .unwrap();
    let second = registered(&bench, asks_as("r2", other.id(), "ls")).await;
    assert_eq!(second.unwrap_err().error, ErrorWord::AnsweredInTerminal);
    assert_eq!(bench.cards.desk.pending(), 1);
    // Claude Code starts one command once for each call.
    let _two = registered(&bench, asks_as("r3", again.id(), "ls"))
        .await
        .unwrap();
    let _three = registered(&bench, asks_as("r4", other.id(), "pwd"))
        .await
        .unwrap();
    assert_eq!(bench.cards.desk.pending(), 3);
    for child in [&mut first, &mut again, &mut other] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
