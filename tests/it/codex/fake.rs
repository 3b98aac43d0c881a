//! Codex's app server as it was recorded (0.166): a WebSocket on a Unix socket,
//! one thread with its terminal, and the first answer wins; and a program that
//! speaks it by its standard input and output, with threads that its clients
//! start. What a client sends is kept, so that a test can say what must and must
//! not have been said.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::task::AbortOnDropHandle;

use crate::support::until;

pub(crate) const THREAD: &str = "01a1e6cd-51ff-7d13-879e-5b7f65d9b61b";
const TURN: &str = "01a1e6cd-5247-7582-933e-d4e88ad828d5";

pub(crate) struct Codex {
    state: Arc<Mutex<State>>,
    home: PathBuf,
    serving: Option<AbortOnDropHandle<()>>,
    running: Option<AbortOnDropHandle<()>>,
}

#[derive(Default)]
struct State {
    /// Threads that clients started, with their directories.
    started: Vec<(String, String)>,
    turns: usize,
    /// Programs that ended, or whose pipes were closed.
    left: usize,
    cwd: String,
    next: i64,
    waiting: Vec<Request>,
    /// Items that a client which joins late has to ask for.
    items: Vec<Value>,
    clients: Vec<Client>,
    came: usize,
    heard: Vec<Value>,
    answers: Vec<Answer>,
    last: Value,
    /// The items of the last turn, the last first.
    last_items: Vec<Value>,
    settings: Value,
    /// It speaks another protocol.
    strange: bool,
}

#[derive(Clone)]
struct Request {
    id: i64,
    method: String,
    params: Value,
}

/// The answer that counted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) id: i64,
    pub(crate) by_terminal: bool,
    pub(crate) result: Value,
    pub(crate) at: Instant,
}

struct Client {
    out: mpsc::UnboundedSender<Value>,
    joined: HashSet<String>,
    number: usize,
}

impl Codex {
    /// A daemon whose thread works in `project`.
    pub(crate) fn start(home: &Path, project: &Path) -> Self {
        let mut codex = Self {
            state: Arc::default(),
            home: home.to_owned(),
            serving: None,
            running: None,
        };
        codex.lock().cwd = project.display().to_string();
        codex.serve();
        codex
    }

    /// A daemon whose settings say who is asked.
    pub(crate) fn reviewed_by(&mut self, reviewer: &str) {
        self.lock().settings =
            json!({"approvals_reviewer": reviewer, "approval_policy": "on-request"});
        self.hang_up();
    }

    /// A daemon that knows none of our words.
    pub(crate) fn becomes_strange(&mut self) {
        self.lock().strange = true;
        self.hang_up();
    }

    fn serve(&mut self) {
        let dir = self.home.join("app-server-control");
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("app-server-control.sock");
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(path).unwrap();
        let state = Arc::clone(&self.state);
        let serving = tokio::spawn(async move {
            let mut clients = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                clients.spawn(client(Arc::clone(&state), stream));
            }
        });
        self.serving = Some(AbortOnDropHandle::new(serving));
    }

    /// A `codex` whose `app-server` this is, by two named pipes.
    pub(crate) fn program(&mut self, dir: &Path) -> PathBuf {
        let calls = dir.join("codex-calls");
        std::fs::create_dir_all(&calls).unwrap();
        let path = dir.join("codex");
        let script = format!(
            "#!/bin/sh\n[ \"$*\" = app-server ] || exit 64\nd='{}'/$$\n\
             printf '%s\\n' \"mark $NOD_SESSION secret $FEISHU_APP_SECRET home $CODEX_HOME\" >>'{}'\n\
             mkdir \"$d.new\" && mkfifo \"$d.new/in\" \"$d.new/out\" && mv \"$d.new\" \"$d\"\n\
             exec 3<&0\ncat <&3 >\"$d/in\" &\nexec cat \"$d/out\"\n",
            calls.display(),
            dir.join("codex.log").display(),
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let state = Arc::clone(&self.state);
        let watch = tokio::spawn(async move {
            let mut clients = tokio::task::JoinSet::new();
            let mut known = HashSet::new();
            loop {
                for call in std::fs::read_dir(&calls).unwrap() {
                    let call = call.unwrap().path();
                    if call.extension().is_none() && known.insert(call.clone()) {
                        clients.spawn(by_pipes(Arc::clone(&state), call));
                    }
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
        self.running = Some(AbortOnDropHandle::new(watch));
        path
    }

    /// The thread that the n-th `thread/start` made.
    pub(crate) async fn thread(&self, n: usize) -> String {
        let found = || self.lock().started.get(n).map(|(id, _)| id.clone());
        until("a thread of its own", || async { found() }).await
    }

    /// How many programs have ended.
    pub(crate) async fn left(&self, programs: usize) {
        let found = || (self.lock().left >= programs).then_some(());
        until("a program's end", || async { found() }).await;
    }

    /// What every client of this thread hears.
    pub(crate) fn tells(&self, thread: &str, method: &str, mut params: Value) {
        params["threadId"] = thread.into();
        self.lock()
            .tell(thread, &json!({"method": method, "params": params}));
    }

    /// The running turn of this thread is over.
    pub(crate) fn ends(&self, thread: &str, status: &str, said: &str) {
        if !said.is_empty() {
            let item = json!({"type": "agentMessage", "id": "msg_1", "text": said});
            self.tells(thread, "item/completed", json!({"item": item}));
        }
        let turn = format!("turn-{}", self.lock().turns);
        let error = (status == "failed").then(|| json!({"message": "stream disconnected"}));
        let turn = json!({"id": turn, "status": status, "error": error, "items": []});
        self.tells(thread, "turn/completed", json!({"turn": turn}));
    }

    /// All calls of this method, with their parameters.
    pub(crate) fn calls(&self, method: &str) -> Vec<Value> {
        let heard = self.heard().into_iter();
        let calls = heard.filter(|call| call["method"] == method);
        calls.map(|call| call["params"].clone()).collect()
    }

    /// Waits for the n-th call of this method.
    pub(crate) async fn nth(&self, method: &str, n: usize) -> Value {
        until(method, || async { self.calls(method).get(n).cloned() }).await
    }

    /// Ends every connection; the daemon and its requests stay.
    pub(crate) fn hang_up(&mut self) {
        self.serving = None;
        self.lock().clients.clear();
        self.serve();
    }

    /// The daemon is killed: its socket's file stays behind.
    pub(crate) fn kill(&mut self) {
        self.serving = None;
        let mut state = self.lock();
        state.clients.clear();
        state.waiting.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Asks, as the thread does that the terminal shows; the request's id.
    pub(crate) fn asks(&self, method: &str, params: Value) -> i64 {
        let mut state = self.lock();
        state.status("active", &["waitingOnApproval"]);
        state.ask((THREAD, TURN), method, params)
    }

    /// As [`Self::asks`], in a thread that a client started.
    pub(crate) fn asks_in(&self, thread: &str, turn: &str, method: &str, params: Value) -> i64 {
        self.lock().ask((thread, turn), method, params)
    }

    pub(crate) fn asks_for(&self, command: &str) -> i64 {
        let params = self.command(command);
        self.asks("item/commandExecution/requestApproval", params)
    }

    /// What Codex says of a command that it asks for.
    pub(crate) fn command(&self, command: &str) -> Value {
        let cwd = self.lock().cwd.clone();
        let started = self.lock().next;
        json!({
            "kind": "command", "startedAtMs": 1_794_873_578_212_i64 + started, "environmentId": "local",
            "reason": "need to write", "command": format!("/bin/bash -lc '{command}'"), "cwd": cwd,
            "commandActions": [{"type": "unknown", "command": command}],
            "proposedExecpolicyAmendment": command.split(' ').collect::<Vec<_>>(),
            "availableDecisions": ["accept",
                {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": command.split(' ').collect::<Vec<_>>()}},
                "cancel"],
        })
    }

    /// A file change is in its item; who joins later has not seen it.
    pub(crate) fn asks_to_change(&self, changes: &Value) -> i64 {
        let item = format!("call_{:024}", self.lock().next);
        let made =
            json!({"type": "fileChange", "id": item, "changes": changes, "status": "inProgress"});
        self.lock().items.push(made);
        let params = json!({"itemId": item, "startedAtMs": 5, "reason": null, "grantRoot": null});
        self.asks("item/fileChange/requestApproval", params)
    }

    /// The person at the keyboard answers; whether that came first.
    pub(crate) fn terminal_answers(&self, id: i64, decision: &str) -> bool {
        self.lock().answer(id, json!({"decision": decision}), true)
    }

    /// The turn is over.
    pub(crate) fn ends_turn(&self, last: &str, took: i64) {
        let mut state = self.lock();
        let said = json!({"type": "agentMessage", "id": "msg_1", "text": last});
        state.last_items = vec![json!({"turnId": TURN, "item": said})];
        let items = json!([said]);
        state.last = json!({"id": TURN, "items": items, "itemsView": "summary",
            "status": "completed", "error": null, "durationMs": took});
        state.status("active", &[]);
        state.status("idle", &[]);
    }

    /// The turn is over with a plan, which its summary does not have. Nothing
    /// is asked: the terminal's choice is its own.
    pub(crate) fn proposes(&self, plan: &str) {
        let mut state = self.lock();
        let item = json!({"type": "plan", "id": format!("{TURN}-plan"), "text": plan});
        state.last_items = vec![json!({"turnId": TURN, "item": item})];
        state.last = json!({"id": TURN, "items": [], "itemsView": "summary",
            "status": "completed", "error": null, "durationMs": 74});
        state.status("active", &[]);
        state.status("idle", &[]);
    }

    /// A turn begins, as it does when the terminal says yes to a plan.
    pub(crate) fn works(&self) {
        self.lock().status("active", &[]);
    }

    pub(crate) fn answers(&self) -> Vec<Answer> {
        self.lock().answers.clone()
    }

    /// Waits until this request has its answer.
    pub(crate) async fn answer(&self, id: i64) -> Answer {
        let found = || self.answers().into_iter().find(|answer| answer.id == id);
        until("an answer for Codex", || async { found() }).await
    }

    /// Waits for a call of the client's; its parameters.
    pub(crate) async fn called(&self, method: &str) -> Value {
        let found = || {
            let state = self.lock();
            let mut all = state.heard.iter().filter(|call| call["method"] == method);
            all.next().map(|call| call["params"].clone())
        };
        until(method, || async { found() }).await
    }

    /// What was heard so far is no longer of interest.
    pub(crate) fn forget(&self) {
        self.lock().heard.clear();
    }

    pub(crate) fn heard(&self) -> Vec<Value> {
        self.lock().heard.clone()
    }

    /// Waits until a client asked what the thread does.
    pub(crate) async fn followed(&self) {
        self.called("thread/read").await;
    }
}

impl Request {
    fn message(&self) -> Value {
        json!({"method": self.method, "id": self.id, "params": self.params})
    }
}

impl Client {
    fn send(&self, message: Value) {
        // A client that is gone hears nothing.
        let _ = self.out.send(message);
    }
}

impl State {
    fn status(&mut self, kind: &str, flags: &[&str]) {
        let mut status = json!({"type": kind});
        if kind == "active" {
            status["activeFlags"] = json!(flags);
        }
        let params = json!({"threadId": THREAD, "status": status});
        for client in &self.clients {
            client.send(json!({"method": "thread/status/changed", "params": params}));
        }
    }

    fn ask(&mut self, (thread, turn): (&str, &str), method: &str, mut params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        params["threadId"] = thread.into();
        params["turnId"] = turn.into();
        let of_an_item = method != "mcpServer/elicitation/request";
        if of_an_item && params["itemId"].is_null() {
            params["itemId"] = format!("call_{id:024}").into();
        }
        let request = Request {
            id,
            method: method.to_owned(),
            params,
        };
        self.tell(thread, &request.message());
        self.waiting.push(request);
        id
    }

    fn thread(&self, whole: bool) -> Value {
        let status = if self.of_terminal().next().is_none() {
            json!({"type": "idle"})
        } else {
            json!({"type": "active", "activeFlags": ["waitingOnApproval"]})
        };
        let turns = if whole {
            json!([{"id": TURN, "items": self.items, "status": "inProgress"}])
        } else {
            json!([])
        };
        json!({"id": THREAD, "cwd": self.cwd, "status": status, "ephemeral": false,
            "threadSource": "user", "turns": turns})
    }

    /// The first answer counts; any later one is not even refused.
    fn answer(&mut self, id: i64, result: Value, by_terminal: bool) -> bool {
        let Some(place) = self.waiting.iter().position(|request| request.id == id) else {
            return false;
        };
        let request = self.waiting.remove(place);
        let word = result["decision"].as_str().unwrap_or("accept").to_owned();
        let declined = word == "decline" || word == "cancel";
        self.answers.push(Answer {
            id,
            by_terminal,
            result,
            at: Instant::now(),
        });
        let thread = request.params["threadId"].as_str().unwrap().to_owned();
        let resolved = json!({"threadId": thread, "requestId": id});
        let kind = if request.method.contains("fileChange") {
            "fileChange"
        } else {
            "commandExecution"
        };
        let item = json!({
            "type": kind, "id": request.params["itemId"],
            "status": if declined { "declined" } else { "completed" },
            "exitCode": if declined { Value::Null } else { json!(0) },
            "durationMs": if declined { Value::Null } else { json!(3) },
        });
        self.tell(
            &thread,
            &json!({"method": "serverRequest/resolved", "params": resolved}),
        );
        let turn = &request.params["turnId"];
        self.tell(
            &thread,
            &json!({"method": "item/completed",
            "params": {"item": item, "threadId": thread, "turnId": turn}}),
        );
        if thread == THREAD && self.of_terminal().next().is_none() {
            self.status("active", &[]);
        }
        true
    }

    /// What waits in the terminal.
    fn of_terminal(&self) -> impl Iterator<Item = &Request> {
        let waiting = self.waiting.iter();
        waiting.filter(|request| request.params["threadId"] == THREAD)
    }

    fn tell(&self, thread: &str, message: &Value) {
        for client in &self.clients {
            if client.joined.contains(thread) {
                client.send(message.clone());
            }
        }
    }

    fn begin(&mut self, params: &Value) -> Value {
        let id = format!("01a1e6cd-0000-7000-8000-{:012}", self.started.len());
        let cwd = params["cwd"].as_str().unwrap().to_owned();
        let thread = json!({"id": id, "cwd": cwd, "status": {"type": "idle"}, "path": null});
        self.started.push((id, cwd));
        json!({"thread": thread, "model": "gpt-5", "reasoningEffort": null})
    }

    fn start_turn(&mut self, thread: &str) -> Value {
        self.turns += 1;
        let turn =
            json!({"id": format!("turn-{}", self.turns), "status": "inProgress", "items": []});
        let params = json!({"threadId": thread, "turn": turn});
        self.tell(thread, &json!({"method": "turn/started", "params": params}));
        json!({"turn": turn})
    }

    /// What a client asks about a thread that it, or another, has started.
    fn resume(&self, params: &Value) -> Result<Value, String> {
        let id = params["threadId"].as_str().unwrap();
        if id == THREAD {
            let whole = params["excludeTurns"] != true;
            return Ok(json!({"thread": self.thread(whole), "model": "gpt-5",
                "approvalsReviewer": "user"}));
        }
        let mut started = self.started.iter();
        let (id, cwd) = started
            .find(|(known, _)| known == id)
            .ok_or(format!("no rollout found for thread id {id}"))?;
        let thread = json!({"id": id, "cwd": cwd, "status": {"type": "idle"}, "path": null});
        Ok(json!({"thread": thread, "model": "gpt-5", "reasoningEffort": null}))
    }

    fn call(&mut self, number: usize, message: &Value) {
        let id = &message["id"];
        if message["method"].is_null() {
            let id = id.as_i64().unwrap();
            let refused = &message["error"];
            let result = if refused.is_null() {
                message["result"].clone()
            } else {
                json!({"decision": "decline", "error": refused})
            };
            self.answer(id, result, false);
            return;
        }
        let params = &message["params"];
        if self.strange {
            let error = json!({"code": -32601, "message": "unknown method"});
            let number = |client: &&Client| client.number == number;
            if let Some(client) = self.clients.iter().find(number) {
                client.send(json!({"id": id, "error": error}));
            }
            return;
        }
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({"userAgent": "codex-tui/0.166.0 (nod)", "codexHome": "/"}),
            "initialized" => return,
            "config/read" => json!({"config": self.settings, "origins": {}}),
            "thread/loaded/list" => json!({"data": [THREAD], "nextCursor": null}),
            "thread/read" => json!({"thread": self.thread(false)}),
            "thread/turns/list" => json!({"data": [self.last], "nextCursor": null}),
            "thread/items/list" => json!({"data": self.last_items, "nextCursor": null}),
            "thread/start" => self.begin(params),
            "thread/resume" => match self.resume(params) {
                Ok(result) => result,
                Err(why) => json!({"error": {"code": -32_600, "message": why}}),
            },
            "turn/steer" => json!({"turnId": TURN}),
            "turn/start" => self.start_turn(params["threadId"].as_str().unwrap()),
            _ => json!({}),
        };
        let joins =
            ["thread/resume", "thread/start"].contains(&message["method"].as_str().unwrap());
        let thread = result["thread"]["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let waiting = self.waiting.clone();
        let Some(client) = self
            .clients
            .iter_mut()
            .find(|client| client.number == number)
        else {
            return;
        };
        if !result["error"].is_null() {
            client.send(json!({"id": id, "error": result["error"]}));
            return;
        }
        client.send(json!({"id": id, "result": result}));
        if joins {
            client.joined.insert(thread.clone());
            let of_it = |request: &&Request| request.params["threadId"] == thread.as_str();
            for request in waiting.iter().filter(of_it) {
                client.send(request.message());
            }
        }
        if message["method"] == "thread/unsubscribe" {
            client.joined.remove(params["threadId"].as_str().unwrap());
        }
    }
}

/// A client that comes: its number, and what it is to be told.
fn comes(state: &Mutex<State>) -> (usize, mpsc::UnboundedReceiver<Value>) {
    let (out, outgoing) = mpsc::unbounded_channel::<Value>();
    let mut state = state.lock().unwrap();
    state.came += 1;
    let number = state.came;
    state.clients.push(Client {
        out,
        joined: HashSet::new(),
        number,
    });
    (number, outgoing)
}

fn says(state: &Mutex<State>, number: usize, text: &str) {
    let message: Value = serde_json::from_str(text).unwrap();
    let mut state = state.lock().unwrap();
    state.heard.push(message.clone());
    state.call(number, &message);
}

async fn client(state: Arc<Mutex<State>>, stream: UnixStream) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else {
        return;
    };
    let (number, mut outgoing) = comes(&state);
    loop {
        tokio::select! {
            heard = socket.next() => {
                let Some(Ok(message)) = heard else { return };
                let Message::Text(text) = message else { continue };
                says(&state, number, &text);
            }
            Some(message) = outgoing.recv() => {
                if socket.send(Message::text(message.to_string())).await.is_err() {
                    return;
                }
            }
            else => return,
        }
    }
}

async fn by_pipes(state: Arc<Mutex<State>>, call: PathBuf) {
    let options = pipe::OpenOptions::new();
    let heard = options.open_receiver(call.join("in")).unwrap();
    let said = || async { options.open_sender(call.join("out")).ok() };
    let mut said = until("a reader", said).await;
    let mut heard = BufReader::new(heard).lines();
    let (number, mut outgoing) = comes(&state);
    let mut began = false;
    loop {
        tokio::select! {
            line = heard.next_line() => match line {
                Ok(Some(line)) => {
                    began = true;
                    says(&state, number, &line);
                }
                // Nobody writes yet.
                Ok(None) if !began => {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
                Ok(None) | Err(_) => break,
            },
            Some(message) = outgoing.recv() => {
                if said.write_all(format!("{message}\n").as_bytes()).await.is_err() {
                    break;
                }
            }
        }
    }
    let mut state = state.lock().unwrap();
    state.clients.retain(|client| client.number != number);
    state.left += 1;
}
