//! For tests: a small daemon around a desk, on a real socket in a directory of
//! its own.

use serde_json::{Value, json};
use std::fs::Permissions;
use std::future::Future;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::listen::{ListenError, listen};
use super::server::{HookRefused, Intake, ServerLimits, serve};
use super::wire::error_word::ErrorWord;
use super::wire::{HookNotice, Registration};
use crate::approvals::answer::{Answer, Extras};
use crate::approvals::choice::Choice;
use crate::approvals::desk::expiry::run_expiry;
use crate::approvals::desk::{Claim, Desk, Return, Waiting};
use crate::approvals::request::{Caller, Digest, Facts, Operator, Origin, Reach};
use crate::clock::Millis;
use crate::ids::{RequestId, UserId};

pub(super) const LIMIT: Duration = Duration::from_secs(30);

pub(super) struct Office {
    pub(super) desk: Arc<Desk>,
    pub(super) path: PathBuf,
    pub(super) notices: Arc<Mutex<Vec<HookNotice>>>,
    cancel: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

pub(super) fn private_dir() -> TempDir {
    tempfile::Builder::new()
        .prefix("nod")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .unwrap()
}

pub(super) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future)
        .await
        .expect("the expected thing did not happen in time")
}

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Millis::try_from(since.as_millis()).unwrap()
}

impl Office {
    pub(super) fn open(dir: &Path, limits: ServerLimits) -> Self {
        Self::open_with(dir, limits, Duration::from_mins(5))
    }

    pub(super) fn open_with(dir: &Path, limits: ServerLimits, patience: Duration) -> Self {
        let path = dir.join("nod.sock");
        let desk = Desk::new(Arc::new(now));
        let notices = Arc::new(Mutex::new(Vec::new()));
        let cancel = CancellationToken::new();
        let (at_desk, heard) = (Arc::clone(&desk), Arc::clone(&notices));
        let intake = Arc::new(Intake {
            register: move |registration: Registration, _| {
                let desk = Arc::clone(&at_desk);
                async move { take(&desk, &registration, patience) }
            },
            notify: move |notice: HookNotice, _| {
                heard.lock().unwrap().push(notice);
                async { json!({"success": true}) }
            },
            order: |_| async { json!({"success": true, "pending": 0}) },
        });
        // A child that another test has just forked holds the last one's lock
        // until it is a program of its own.
        let until = Instant::now() + LIMIT;
        let listening = loop {
            match listen(&path, true) {
                Err(ListenError::AlreadyRunning { .. }) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                listening => break listening.unwrap(),
            }
        };
        let tasks = vec![
            tokio::spawn(serve(listening, intake, limits, cancel.clone())),
            tokio::spawn(run_expiry(Arc::clone(&desk), cancel.clone())),
        ];
        Self {
            desk,
            path,
            notices,
            cancel,
            tasks,
        }
    }

    /// Stops as the daemon does.
    pub(super) async fn close(self) {
        self.desk.detach_all(Duration::from_secs(30));
        self.cancel.cancel();
        for task in self.tasks {
            within(task).await.unwrap();
        }
    }

    pub(super) async fn registered(&self, id: &RequestId) {
        self.count(|office| office.desk.find(id).is_some()).await;
    }

    pub(super) async fn count(&self, reached: impl Fn(&Self) -> bool) {
        let mut hot = self.desk.hot();
        within(async {
            while !reached(self) {
                let tick = tokio::time::sleep(Duration::from_millis(2));
                tokio::select! { _ = hot.changed() => {}, () = tick => {} }
            }
        })
        .await;
    }

    pub(super) fn allow(&self, id: &RequestId) -> Claim {
        let by = Operator {
            id: UserId::parse("ou_ann").unwrap(),
        };
        self.desk
            .claim(id, Choice::Allow(Reach::Once), by)
            .expect("the request is open")
    }

    pub(super) fn deny(&self, id: &RequestId) -> Claim {
        let by = Operator {
            id: UserId::parse("ou_ann").unwrap(),
        };
        let action = Choice::Deny {
            reason: None,
            interrupt: false,
        };
        self.desk
            .claim(id, action, by)
            .expect("the request is open")
    }
}

fn take(
    desk: &Arc<Desk>,
    asked: &Registration,
    patience: Duration,
) -> Result<Waiting, HookRefused> {
    let refused = |error, message: String| HookRefused { error, message };
    if let Some(token) = asked.nod.as_ref().and_then(|nod| nod.resume.clone()) {
        return match desk.resume(&asked.id, token) {
            Ok(Return::Waiting(waiting)) => Ok(waiting),
            Ok(Return::Ended(past)) => Ok(Waiting::ended(
                Answer {
                    ending: past.ending,
                    digest: past.digest,
                    patience,
                    extras: Extras::default(),
                },
                past.at,
            )),
            Err(error) => Err(refused(ErrorWord::Unknown, error.to_string())),
        };
    }
    let input: Value = serde_json::from_slice(&asked.raw_input)
        .map_err(|error| refused(ErrorWord::InvalidRequest, error.to_string()))?;
    let now = now();
    let request = Facts {
        id: asked.id.clone(),
        tool: input["tool_name"].as_str().unwrap_or_default().to_owned(),
        digest: Digest::of(&input["tool_input"]),
        input: input["tool_input"].clone(),
        origin: Origin {
            machine: "m".into(),
            user: "u".into(),
            project: asked.project.clone(),
            cwd: asked.project.clone(),
            branch: None,
            session: asked.session(),
            agent: None,
            pid: None,
            hosted: false,
            caller: Caller::default(),
        },
        real: crate::approvals::request::RealPath::Unasked,
        asked_at: now,
        deadline: now + Millis::try_from(patience.as_millis()).unwrap(),
    }
    .read();
    desk.register(request)
        .map_err(|error| refused(ErrorWord::Duplicate, error.to_string()))
}

pub(super) fn id(n: usize) -> RequestId {
    RequestId::parse(&format!("{n:032x}")).unwrap()
}

pub(super) fn raw_input(n: usize) -> Vec<u8> {
    json!({
        "session_id": "sess_123",
        "tool_name": "Bash",
        "tool_input": {"command": format!("echo {n}")},
    })
    .to_string()
    .into_bytes()
}
