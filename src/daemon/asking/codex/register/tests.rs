use super::*;
use crate::approvals::Settled;
use crate::approvals::outcome::sample;
use crate::approvals::request::Reach;
use crate::daemon::asking::codex::bench::{asked, command, question};
use crate::daemon::bench::{DaemonBench, WEBHOOK};
use crate::feishu::connection::first_view;
use serde_json::json;

async fn put(bench: &DaemonBench, ask: CodexAsk) -> AnswerKind {
    let id = RequestId::parse(&ask.name).unwrap();
    let session = SessionId::parse(&ask.thread).unwrap();
    put_to_a_person(&bench.codex, id, session, ask, &CancellationToken::new()).await
}

#[tokio::test]
async fn what_nobody_can_be_asked_is_left_to_codexs_terminal() {
    let bench = DaemonBench::with(&[("FEISHU_OWNER_ID", "")]).await;
    let (_, ask) = asked(&command("I", &bench.shop()));
    assert!(matches!(put(&bench, ask).await, AnswerKind::Nothing));
    let bench = DaemonBench::new().await;
    for cwd in [None, Some("/not/there".into()), Some("relative".into())] {
        let (_, mut ask) = asked(&command("I", &bench.shop()));
        ask.cwd = cwd;
        assert!(matches!(put(&bench, ask).await, AnswerKind::Nothing));
    }
    assert!(bench.bench.calls().is_empty());
}

#[tokio::test]
async fn a_request_waits_for_the_connection_and_no_longer_than_its_question() {
    let bench = DaemonBench::new().await;
    bench.bench.view.send_modify(|view| *view = first_view());
    let (_, ask) = asked(&command("I", &bench.shop()));
    let (id, gone) = (
        RequestId::parse(&ask.name).unwrap(),
        CancellationToken::new(),
    );
    let session = SessionId::parse(&ask.thread).unwrap();
    let putting = put_to_a_person(&bench.codex, id, session, ask, &gone);
    let over = async {
        tokio::task::yield_now().await;
        assert_eq!(bench.cards.desk.pending(), 0);
        gone.cancel();
    };
    let (putting, ()) = tokio::join!(putting, over);
    assert!(matches!(putting, AnswerKind::Nothing));
}

#[tokio::test]
async fn what_an_earlier_run_decided_is_not_asked_again() {
    let bench = DaemonBench::new().await;
    let (_, ask) = asked(&command("I", &bench.shop()));
    let mut request = sample::request("Bash", ask.input.clone());
    request.id = RequestId::parse(&ask.name).unwrap();
    let settled = Settled {
        request: Arc::new(request),
        ending: sample::allowed(Reach::Once),
        at: bench.cards.now(),
    };
    let kept = journal::settle(&bench.cards.journal, &settled, None, None).await;
    assert!(kept.is_ok());
    match put(&bench, ask.clone()).await {
        AnswerKind::Before { ending, digest } => {
            assert_eq!(ending, settled.ending);
            assert_eq!(digest, Digest::of(&ask.input));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.cards.desk.pending(), 0);
}

#[tokio::test]
async fn a_question_is_put_to_a_person_by_an_app_and_not_by_a_custom_bot() {
    let bench = DaemonBench::with(&WEBHOOK).await;
    let (_, mut ask) = asked(&question("I"));
    ask.cwd = Some(bench.shop());
    assert!(matches!(
        put(&bench, ask.clone()).await,
        AnswerKind::Nothing
    ));
    let bench = DaemonBench::new().await;
    ask.cwd = Some(bench.shop());
    let (codex, id) = (
        Arc::clone(&bench.codex),
        RequestId::parse(&ask.name).unwrap(),
    );
    let session = SessionId::parse(&ask.thread).unwrap();
    let gone = CancellationToken::new();
    tokio::spawn(async move { put_to_a_person(&codex, id, session, ask, &gone).await });
    bench.until(|bench| bench.cards.desk.pending() == 1).await;
    let asked = bench.cards.desk.all_pending().remove(0);
    assert!(asked.question().is_some());
}

#[tokio::test]
async fn a_patch_says_where_its_files_really_are_if_a_link_leads_elsewhere() {
    let project = tempfile::tempdir().unwrap();
    let project = project.path().canonicalize().unwrap();
    std::os::unix::fs::symlink("/etc/passwd", project.join("notes.txt")).unwrap();
    let path = |name: &str| project.join(name).to_string_lossy().into_owned();
    let mut input = json!({"changes": [{"path": path("notes.txt")}, {"path": path("new.txt")}]});
    name_real_places(&mut input, &project).await;
    assert_eq!(input["changes"][0]["real_path"], "/etc/passwd");
    assert_eq!(input["changes"][1].get("real_path"), None);
    let mut unreadable = json!({"changes": [{"path": 7}]});
    name_real_places(&mut unreadable, &project).await;
    assert_eq!(unreadable["changes"][0]["real_path"], "?");
}
