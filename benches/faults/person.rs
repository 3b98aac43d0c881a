//! Somebody who taps for one hook: once, twice, against somebody else, too
//! late, from a stale screen, in writing, or not at all; and who taps again
//! when Feishu showed an error.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nod::for_tests::hook::wire::{HookMessage, HookNotice};
use nod::for_tests::simulator::{
    APP_ID, ChatText, ClickOutcome, Clicked, OWNER, Press, STRANGER, TENANT,
};
use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::histories::{Seen, Tap};
use crate::hooks::{Ask, Ended};
use crate::people::{Card, Crowd};

/// Somebody who sees errors gives up in the end.
const PERSISTENCE: usize = 20;
/// Whoever wrote and sees nothing happen taps after this.
const WRITES_FOR: Duration = Duration::from_millis(1_500);

/// Everybody who has to do with one hook.
pub(crate) struct Person<'a> {
    crowd: &'a Crowd,
    ask: &'a Ask,
    hook: JoinHandle<Ended>,
    asked: Instant,
    daemon: Option<SystemTime>,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) ended: Option<Ended>,
    /// Somebody at the terminal said yes, and nod took the tool's event.
    pub(crate) ran: bool,
}

impl<'a> Person<'a> {
    pub(crate) fn new(
        crowd: &'a Crowd,
        ask: &'a Ask,
        hook: JoinHandle<Ended>,
        stop: oneshot::Sender<()>,
    ) -> Self {
        Self {
            crowd,
            ask,
            hook,
            asked: Instant::now(),
            daemon: daemon(crowd),
            stop: Some(stop),
            ended: None,
            ran: false,
        }
    }

    pub(crate) async fn hook_ends(&mut self) {
        if self.ended.is_none() {
            self.ended = Some((&mut self.hook).await.unwrap_or_default());
        }
    }

    /// Whether there were taps enough.
    pub(crate) fn is_needed(&self) -> bool {
        self.crowd.taps() < self.crowd.plan.taps
    }

    fn hook_waits(&self) -> bool {
        self.ended.is_none() && !self.hook.is_finished()
    }

    pub(crate) async fn act(&mut self, card: &Card, chance: &mut StdRng) {
        let action = choose(card, chance);
        let pause = Duration::from_millis(chance.random_range(0..40));
        match chance.random_range(0..100) {
            55..65 => {
                let (one, other) = (self.tap(card, action, OWNER), self.tap(card, action, OWNER));
                tokio::join!(one, other);
                self.insist(card, action, chance).await;
            }
            65..72 => {
                let other = choose(card, chance);
                let stale = self.stale_tap(card, other, None, OWNER);
                tokio::join!(self.tap(card, action, OWNER), stale);
                self.insist(card, action, chance).await;
            }
            72..80 => {
                self.stale_tap(card, action, None, STRANGER).await;
                self.insist(card, action, chance).await;
            }
            80..90 => {
                let event = self.stale_tap(card, action, None, OWNER).await;
                tokio::time::sleep(pause).await;
                self.stale_tap(card, action, event, OWNER).await;
                self.insist(card, action, chance).await;
            }
            90..94 => {
                let stop = self.stop.take();
                let goes = async move {
                    tokio::time::sleep(pause).await;
                    stop.map(|stop| stop.send(()))
                };
                tokio::join!(self.tap(card, action, OWNER), goes);
            }
            94..98 => {
                let (socket, project) = (self.crowd.home.socket(), self.ask.project.clone());
                // The yes was said before anybody could have tapped.
                let before = Duration::from_millis(chance.random_range(0..30_000));
                let event = self.ask.ran_anyway(self.asked.elapsed() + before);
                let event = event.to_string();
                let told = tokio::task::spawn_blocking(move || told(&socket, project, event));
                let (_, told) = tokio::join!(self.tap(card, action, OWNER), told);
                // A daemon that began since knows nothing of an earlier denial.
                let same = self.daemon.is_some() && self.daemon == daemon(self.crowd);
                self.ran = same && told.is_ok_and(|told| told.is_ok());
                if !self.ran {
                    self.insist(card, action, chance).await;
                }
            }
            98 if self.ask.number.is_multiple_of(4) => {}
            99 => {
                self.write(card).await;
                // The hook has ended, or the writer loses patience.
                let _ = tokio::time::timeout(WRITES_FOR, self.hook_ends()).await;
                self.insist(card, "deny", chance).await;
            }
            _ => self.insist(card, action, chance).await,
        }
    }

    /// Taps until somebody confirmed something or the hook has ended.
    async fn insist(&self, card: &Card, action: &'static str, chance: &mut StdRng) {
        for _ in 0..PERSISTENCE {
            if !self.hook_waits() || self.tap(card, action, OWNER).await {
                return;
            }
            let pause = chance.random_range(50..500);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// One tap on the card as it is now; true when it need not be repeated.
    async fn tap(&self, card: &Card, action: &'static str, user: &str) -> bool {
        let started = Instant::now();
        let press = Press::action(&card.message, action).by(user);
        match self.crowd.sim.click(press).await {
            Err(_) => true,
            Ok(Clicked {
                connection: None, ..
            }) => false,
            Ok(clicked) => {
                let outcome = ClickOutcome {
                    popup: clicked.popup,
                    problem: clicked.problem,
                    toast: clicked.toast,
                    card: None,
                };
                let seen = seen(&outcome);
                let settled = matches!(&seen, Seen::Toast { kind, .. } if kind != "info");
                let tap = Tap {
                    took_back: clicked.reverted && !clicked.applied,
                    ..self.a_tap(card, clicked.event_id, action, user, started)
                };
                self.record(Tap { seen, ..tap });
                self.crowd.books().latencies.extend(clicked.latency_us);
                settled
            }
        }
    }

    /// A tap from a screen that still shows the first card; with an event, that
    /// very push once more.
    pub(crate) async fn stale_tap(
        &self,
        card: &Card,
        action: &'static str,
        event: Option<String>,
        user: &str,
    ) -> Option<String> {
        let started = Instant::now();
        let value = card.values.get(action)?;
        let number = self.crowd.events.fetch_add(1, Ordering::Relaxed);
        let event = event.unwrap_or_else(|| format!("stale-{:x}-{number:x}", self.crowd.plan.seed));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let payload = json!({
            "schema": "2.0",
            "header": {
                "event_id": event, "token": "t", "create_time": now.as_micros().to_string(),
                "event_type": "card.action.trigger", "tenant_key": TENANT, "app_id": APP_ID,
            },
            "event": {
                "operator": {"open_id": user}, "token": "c-1", "host": "im_message",
                "action": {"value": value, "tag": "button"},
                "context": {"open_message_id": card.message, "open_chat_id": card.chat},
            },
        });
        let pushed = self.crowd.sim.push_click_raw(payload.to_string()).await;
        let (pushed, outcome) = pushed;
        pushed.connection?;
        let tap = self.a_tap(card, event.clone(), action, user, started);
        self.record(Tap {
            seen: seen(&outcome),
            ..tap
        });
        Some(event)
    }

    /// A reason written below the card, which refuses the request.
    async fn write(&self, card: &Card) {
        let started = Instant::now();
        let text = ChatText {
            user: OWNER.to_owned(),
            parent_id: Some(card.message.clone()),
            ..ChatText::new("not like this")
        };
        if let Ok(pushed) = self.crowd.sim.push_text(&text).await {
            let tap = self.a_tap(card, pushed.event_id, "deny", OWNER, started);
            self.record(Tap {
                seen: Seen::Words,
                ..tap
            });
        }
    }

    fn a_tap(
        &self,
        card: &Card,
        event: String,
        action: &'static str,
        user: &str,
        started: Instant,
    ) -> Tap {
        Tap {
            request: card.request.clone(),
            event,
            action,
            by_owner: user == OWNER,
            seen: Seen::Nothing,
            blurred: self.crowd.long_connection.altered_since(started),
            swallowed: false,
            took_back: false,
        }
    }

    fn record(&self, tap: Tap) {
        self.crowd.taps.fetch_add(1, Ordering::Relaxed);
        self.crowd.books().taps.push(tap);
    }
}

fn seen(outcome: &ClickOutcome) -> Seen {
    match (outcome.popup, &outcome.toast) {
        (None, Some(toast)) => Seen::Toast {
            kind: toast.kind.clone(),
            content: toast.content.clone(),
        },
        (Some(popup), _) if !is_silence(popup) => Seen::Toast {
            kind: "popup".to_owned(),
            content: format!("{popup}: {:?}", outcome.problem),
        },
        _ => Seen::Nothing,
    }
}

/// Feishu's own words for "your app did not answer".
fn is_silence(popup: i64) -> bool {
    [
        nod::for_tests::simulator::popup::NO_ANSWER,
        nod::for_tests::simulator::popup::NOT_SUBSCRIBED,
    ]
    .contains(&popup)
}

pub(crate) fn choose(card: &Card, chance: &mut StdRng) -> &'static str {
    let action = match chance.next_u32() % 100 {
        0..50 => "allow",
        50..58 => "always",
        58..64 => "session",
        64..90 => "deny",
        _ => "interrupt",
    };
    if card.values.contains_key(action) {
        action
    } else {
        "allow"
    }
}

/// Which daemon serves now, by when its socket was made.
fn daemon(crowd: &Crowd) -> Option<SystemTime> {
    let socket = std::fs::metadata(crowd.home.socket()).ok()?;
    socket.modified().ok()
}

/// Tells the daemon of a hook's event, and whether it has taken it.
fn told(socket: &Path, project: PathBuf, event: String) -> std::io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let notice = HookNotice {
        process: None,
        project,
        raw_input: event.into_bytes(),
        mailbox: None,
    };
    stream.write_all(&HookMessage::Notify(notice).encode())?;
    stream.read_exact(&mut [0])
}
