use super::*;
use crate::daemon::bench::DaemonBench;
use bench::{command, opening};
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio_tungstenite::WebSocketStream;

/// A home of Codex's whose daemon is this test.
struct Daemon {
    home: tempfile::TempDir,
    listener: UnixListener,
}

type Line = WebSocketStream<tokio::net::UnixStream>;

impl Daemon {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let socket = link::socket(home.path());
        std::fs::create_dir(socket.parent().unwrap()).unwrap();
        let listener = UnixListener::bind(socket).unwrap();
        Self { home, listener }
    }

    async fn accepts(&self) -> Line {
        let (stream, _) = self.listener.accept().await.unwrap();
        tokio_tungstenite::accept_async(stream).await.unwrap()
    }
}

async fn says(line: &mut Line, all: impl IntoIterator<Item = String>) {
    for said in all {
        line.send(Message::text(said)).await.unwrap();
    }
}

/// What is said to the daemon next that holds this word.
async fn hears(line: &mut Line, word: &str) -> Value {
    loop {
        let heard = line.next().await.unwrap().unwrap();
        let text = heard.to_text().unwrap();
        if text.contains(word) {
            return serde_json::from_str(text).unwrap();
        }
    }
}

fn follows(bench: &DaemonBench, daemon: &Daemon, stop: &CancellationToken) {
    let (codex, home) = (Arc::clone(&bench.codex), daemon.home.path().to_owned());
    tokio::spawn(follow(codex, home, stop.clone()));
}

fn state(bench: &DaemonBench) -> String {
    let all = bench.codex.links.report();
    let state = all.first().and_then(|home| home["state"].as_str());
    state.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_daemon_is_followed_while_it_is_there_and_asks_a_person() {
    let (bench, daemon) = (DaemonBench::new().await, Daemon::new());
    let stop = CancellationToken::new();
    follows(&bench, &daemon, &stop);
    let mut line = daemon.accepts().await;
    says(&mut line, opening()).await;
    bench.until(|bench| state(bench) == "attached").await;
    says(&mut line, [command("I", &bench.shop())]).await;
    bench.until(|bench| bench.cards.desk.pending() == 1).await;
    let open = bench.codex.links.open();
    assert_eq!(open.len(), 1, "its thread can be spoken to");
    drop(line);
    bench.until(|bench| state(bench) == "away").await;
    assert!(bench.codex.links.open().is_empty());
    assert_eq!(bench.cards.desk.pending(), 1, "it may come back");
    let mut line = daemon.accepts().await;
    says(&mut line, opening()).await;
    says(&mut line, [command("I", &bench.shop())]).await;
    bench.until(|bench| state(bench) == "attached").await;
    assert_eq!(bench.cards.desk.pending(), 1, "the same request");
    stop.cancel();
}

#[tokio::test]
async fn a_daemon_that_speaks_otherwise_is_not_followed_and_that_is_told() {
    let (bench, daemon) = (DaemonBench::new().await, Daemon::new());
    let stop = CancellationToken::new();
    follows(&bench, &daemon, &stop);
    let mut line = daemon.accepts().await;
    let refusal = r#"{"id":1,"error":{"code":-1,"message":"no such client"}}"#;
    says(&mut line, [refusal.to_owned()]).await;
    bench.until(|bench| state(bench) == "refused").await;
    let told = bench.codex.links.report().remove(0);
    assert!(told["cause"].as_str().unwrap().contains("no such client"));
    assert!(
        told["cause_zh"]
            .as_str()
            .unwrap()
            .contains("no such client")
    );
    stop.cancel();
}

#[tokio::test]
async fn words_reach_their_thread_or_are_told_to_be_refused() {
    let (bench, daemon) = (DaemonBench::new().await, Daemon::new());
    assert_eq!(
        bench.codex.links.say("T", "go on").await,
        None,
        "nobody is there"
    );
    let stop = CancellationToken::new();
    follows(&bench, &daemon, &stop);
    let mut line = daemon.accepts().await;
    says(&mut line, opening()).await;
    bench.until(|bench| state(bench) == "attached").await;
    for refused in [false, true] {
        let links = Arc::clone(&bench.codex.links);
        let said = tokio::spawn(async move { links.say("T", "go on").await });
        let call = hears(&mut line, "turn/start").await;
        assert_eq!(call["params"]["input"][0]["text"], "go on");
        let answer = |call: &Value| {
            let id = &call["id"];
            let no = json!({"code": -1, "message": "not now"});
            let answer = if refused {
                json!({"id": id, "error": no})
            } else {
                json!({"id": id, "result": {}})
            };
            [answer.to_string()]
        };
        says(&mut line, answer(&call)).await;
        if refused {
            // It may only have to be opened.
            let again = hears(&mut line, "turn/start").await;
            says(&mut line, answer(&again)).await;
        }
        let said = said.await.unwrap().unwrap();
        assert_eq!(said.is_err(), refused, "{said:?}");
    }
    stop.cancel();
}

#[tokio::test]
async fn nobody_is_asked_beside_a_chat_that_drives_the_thread() {
    let (bench, daemon) = (DaemonBench::new().await, Daemon::new());
    let stop = CancellationToken::new();
    follows(&bench, &daemon, &stop);
    let mut line = daemon.accepts().await;
    let hosted = bench.codex.links.host("T").await;
    says(&mut line, opening()).await;
    says(&mut line, [command("I", &bench.shop())]).await;
    bench.until(|bench| state(bench) == "attached").await;
    // What comes after it was dealt with: so was the request.
    let links = Arc::clone(&bench.codex.links);
    tokio::spawn(async move { links.say("T", "go on").await });
    hears(&mut line, "turn/start").await;
    assert_eq!(bench.cards.desk.pending(), 0);
    drop(hosted);
    stop.cancel();
}
