//! Everything the daemon is made of, for the tasks that join it.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::{OnceCell, watch};

use crate::approvals::desk::Desk;
use crate::approvals::request::Operator;
use crate::cards::Action;
use crate::clock::Clock;
use crate::clock::Millis;
use crate::config::Config;
use crate::daemon::asking::codex;
use crate::daemon::asking::dialogs::Dialogs;
use crate::daemon::asking::flood::Flood;
use crate::daemon::cards::courier::Courier;
use crate::daemon::known::answered::Recent;
use crate::daemon::known::figures::Figures;
use crate::daemon::known::freshness::Freshness;
use crate::daemon::known::lock::Lock;
use crate::daemon::known::proof::Proof;
use crate::daemon::known::refused::Strangers;
use crate::daemon::known::turns::Turns;
use crate::daemon::machines::peers::Gate;
use crate::daemon::machines::team::Team;
use crate::daemon::talking::drafts::Drafts;
use crate::daemon::talking::sessions::Sessions;
use crate::daemon::talking::sessions::files::Noted;
use crate::daemon::tapping::clicks;
use crate::daemon::terminals::mailboxes::Mailboxes;
use crate::daemon::terminals::watching::Terminals;
use crate::feishu::clock::TheirClock;
use crate::feishu::connection::View;
use crate::feishu::event::{Head, Person};
use crate::feishu::link::Phase;
use crate::gateway::route::Here;
use crate::gateway::seal::Sealer;
use crate::ids::{MachineId, RequestId};
use crate::sessions::naming::Told;
use crate::sessions::questions::Tap;
use crate::sessions::questions::script::{self, Wishes};
use crate::store::Store;
use crate::text::Text;

pub(super) struct Parts {
    pub(super) config: Config,
    pub(super) app_id: String,
    /// Set on a machine that holds no app's secret.
    pub(super) team: Team,
    pub(super) clock: Clock,
    pub(super) their_clock: TheirClock,
    pub(super) machine: Machine,
    pub(super) desk: Arc<Desk>,
    pub(super) store: Store,
    pub(super) sealer: Sealer,
    pub(super) courier: Courier,
    pub(super) gate: Gate,
    pub(super) link: watch::Receiver<View>,
    pub(super) lock: Lock,
    pub(super) proof: Proof,
    pub(super) flood: Flood,
    pub(super) recent: Recent,
    pub(super) freshness: Freshness,
    pub(super) strangers: Strangers,
    pub(super) turns: Turns,
    pub(super) codex: codex::Links,
    pub(super) mailboxes: Mailboxes,
    pub(super) terminals: Terminals,
    pub(super) figures: Figures,
    pub(super) sessions: Sessions,
    pub(super) files: Noted,
    /// The lists of waiting things that were told, by place.
    pub(super) told: Mutex<Told>,
    pub(super) drafts: Drafts,
    /// Dialogs that have no card to decide on.
    pub(super) dialogs: Dialogs,
    /// The bot's own id, once Feishu has told it.
    pub(super) bot: OnceCell<String>,
    pub(super) started: Millis,
}

/// This machine, as cards and buttons name it.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) id: MachineId,
    pub(super) name: String,
    pub(super) user: String,
}

impl Parts {
    pub(super) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Why no tap could reach us for as long as nobody does anything.
    pub(super) fn shut_out(&self) -> Option<Text> {
        let link = self.link.borrow();
        match &link.phase {
            phase @ Phase::Degraded { .. } if self.courier.webhook().is_none() => {
                not_connected(phase)
            }
            _ => None,
        }
    }

    /// Whether an event is of this app. One that names no app is: only Feishu
    /// speaks on a connection that this app's secret opened, and it sends each
    /// app its own events.
    pub(super) fn is_of_our_app(&self, head: &Head) -> bool {
        head.app_id.as_ref().is_none_or(|app| *app == self.app_id)
    }

    /// What this machine is to the others.
    pub(super) fn here(&self) -> Here<'_> {
        let callback = &self.config.callback;
        Here {
            machine: &self.machine.id,
            url: callback.url.as_ref(),
            peers: &callback.peers,
            allow_unsealed: callback.allow_unsealed,
        }
    }

    /// The person as an operator if they may decide, by any id they are
    /// listed under.
    pub(super) fn approver(&self, person: &Person) -> Option<Operator> {
        let listed = self
            .config
            .owner
            .iter()
            .chain(&self.config.approvers)
            .any(|id| person.is(id));
        listed.then(|| person.id().map(|id| Operator { id }))?
    }

    /// The owner, who alone steers sessions.
    pub(super) fn owner(&self, person: &Person) -> Option<Operator> {
        let owner = self.config.owner.as_ref()?;
        person.is(owner).then(|| Operator { id: owner.clone() })
    }

    /// The person a script put its question to: they may answer that question,
    /// and nothing else.
    pub(super) fn addressee(&self, request: &RequestId, person: &Person) -> Option<Operator> {
        let request = self.desk.find(request)?;
        match Wishes::of(&request.tool, &request.input).to? {
            script::Receiver::User(id) if person.is(&id) => person.id().map(|id| Operator { id }),
            script::Receiver::User(_) | script::Receiver::Chat(_) => None,
        }
    }

    /// The value of a button, sealed to this request, action and machine.
    pub(super) fn button(&self, request: &RequestId, action: Action) -> Value {
        self.sealer.seal(self.value(request, action.as_str()))
    }

    /// As [`Self::button`], for a card whose input went out whole before it:
    /// the seal keeps that, also over a restart.
    pub(super) fn button_after(&self, request: &RequestId, action: Action, sent: bool) -> Value {
        let mut value = self.value(request, action.as_str());
        if sent {
            value[clicks::WHOLE] = json!(true);
        }
        self.sealer.seal(value)
    }

    /// The value of a question's button, or of its form's submit. `sent` says
    /// that the question went out whole before its card.
    pub(super) fn answer_button(&self, request: &RequestId, tap: Option<Tap>, sent: bool) -> Value {
        let mut value = self.value(request, clicks::ANSWER);
        // A null may not come back, and would break the seal.
        if let Some(tap) = tap {
            value["tap"] = json!(tap.as_name());
        }
        if sent {
            value[clicks::WHOLE] = json!(true);
        }
        self.sealer.seal(value)
    }

    /// The value of the button that stops a session's task.
    pub(super) fn stop_button(&self, session: i64) -> Value {
        let request = format!("s{session}.stop");
        let mut value = json!({"action": clicks::STOP, "request_id": request, "session": session});
        self.sign(&mut value);
        self.sealer.seal(value)
    }

    fn value(&self, request: &RequestId, action: &str) -> Value {
        let mut value = json!({"action": action, "request_id": request.as_str()});
        self.sign(&mut value);
        value
    }

    /// Says which machine a button belongs to, and where the others reach it.
    pub(super) fn sign(&self, value: &mut Value) {
        let url = match (self.team.place(), &self.config.callback.url) {
            (Some(place), _) => place.url(),
            (None, Some(url)) => url.to_string(),
            (None, None) => format!("nod://{}", self.machine.id),
        };
        value["callback_url"] = json!(url);
        value["machine"] = json!(self.machine.id.as_str());
        value["machine_name"] = json!(self.machine.name);
    }
}

/// Why no tap can reach us now; `None` while the connection stands.
pub(super) fn not_connected(phase: &Phase) -> Option<Text> {
    let why = match phase {
        Phase::Up { .. } => return None,
        Phase::Dialing { why: None } => {
            return Some(Text::new(
                "nod 正在连接飞书",
                "nod is still connecting to Feishu",
            ));
        }
        Phase::Dialing { why: Some(why) }
        | Phase::Waiting { why, .. }
        | Phase::Degraded { why, .. } => why,
    };
    Some(Text::made(
        format!("nod 未连接飞书：{}", why.zh),
        format!("nod is not connected to Feishu: {}", why.en),
    ))
}
