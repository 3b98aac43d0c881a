//! Everything the daemon is made of, for the tasks that join it.

use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;

use crate::clock::Clock;
use crate::daemon::asking::codex::{Codex, CodexLinks};
use crate::daemon::asking::dialogs::Dialogs;
use crate::daemon::asking::hook_events::HookEvents;
use crate::daemon::cards::courier::Cards;
use crate::daemon::known::answered::Recent;
use crate::daemon::known::figures::Figures;
use crate::daemon::known::freshness::Freshness;
use crate::daemon::known::people::People;
use crate::daemon::machines::peers::Gate;
use crate::daemon::machines::team::Team;
use crate::daemon::talking::drafts::Drafts;
use crate::daemon::talking::sessions::Sessions;
use crate::daemon::talking::sessions::files::Noted;
use crate::daemon::telling::status::Standing;
use crate::daemon::terminals::mailboxes::Mailboxes;
use crate::daemon::terminals::watching::Terminals;
use crate::feishu::clock::TheirClock;
use crate::feishu::event::EventHead;
use crate::gateway::route::ThisMachine;
use crate::sessions::naming::ToldLists;

pub(super) struct Parts {
    pub(super) cards: Arc<Cards>,
    pub(super) people: People,
    pub(super) app_id: String,
    /// Set on a machine that holds no app's secret.
    pub(super) team: Team,
    pub(super) clock: Clock,
    pub(super) their_clock: TheirClock,
    pub(super) gate: Gate,
    pub(super) recent: Recent,
    pub(super) freshness: Freshness,
    pub(super) events: Arc<HookEvents>,
    pub(super) followed: Arc<Codex>,
    pub(super) codex: Arc<CodexLinks>,
    pub(super) mailboxes: Arc<Mailboxes>,
    pub(super) terminals: Arc<Terminals>,
    pub(super) figures: Arc<Figures>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) standing: Standing,
    pub(super) files: Noted,
    /// The lists of waiting things that were told, by place.
    pub(super) told: Mutex<ToldLists>,
    pub(super) drafts: Drafts,
    /// Dialogs that have no card to decide on.
    pub(super) dialogs: Arc<Dialogs>,
    /// The bot's own id, once Feishu has told it.
    pub(super) bot: OnceCell<String>,
}

/// Until each function takes what it needs.
impl std::ops::Deref for Parts {
    type Target = Cards;

    fn deref(&self) -> &Cards {
        &self.cards
    }
}

impl Parts {
    /// Whether an event is of this app. One that names no app is: only Feishu
    /// speaks on a connection that this app's secret opened, and it sends each
    /// app its own events.
    pub(super) fn is_of_our_app(&self, head: &EventHead) -> bool {
        head.app_id.as_ref().is_none_or(|app| *app == self.app_id)
    }

    /// What this machine is to the others.
    pub(super) fn here(&self) -> ThisMachine<'_> {
        let callback = &self.config.callback;
        ThisMachine {
            machine: &self.buttons.machine.id,
            url: callback.url.as_ref(),
            peers: &callback.peers,
            allow_unsealed: callback.allow_unsealed,
        }
    }
}
