//! What a simulator starts with: apps, people, groups, limits and times.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub const APP_ID: &str = "cli_a1b2c3d4e5f60718";
pub const APP_SECRET: &str = "simulated-secret-Zq81kLmN0pQrStUv";
pub const TENANT: &str = "2df7399175sim";
pub const OWNER: &str = "ou_owner0c14f3a59eaf2825dbe25359f15a";
pub const STRANGER: &str = "ou_stranger9e8d7c6b5a4f3e2d1c0b9a87";
pub const GROUP: &str = "oc_group5ce6d572455d361153b7cb51da13";
pub const SERVICE_ID: i32 = 33_554_678;

#[derive(Debug, Clone)]
pub struct Options {
    /// 0 lets the system choose.
    pub port: u16,
    pub socket_port: u16,
    pub control_port: u16,
    /// What every control call has to show; `None` lets everybody on the
    /// machine tap and write.
    pub control_token: Option<String>,
    /// The port discovery names for the long connection, where something
    /// stands in front of it; `None` is the real one.
    pub advertised_socket_port: Option<u16>,
    pub apps: Vec<App>,
    pub users: Vec<User>,
    pub groups: Vec<ChatGroup>,
    pub client_config: ClientConfig,
    /// Seconds a tenant token lives.
    pub token_seconds: u64,
    /// Messages into one chat per second; `None` is no limit.
    pub chat_per_second: Option<u32>,
    /// Edits of one message per second.
    pub patch_per_second: Option<u32>,
    /// Calls of one API per second, over all chats.
    pub api_per_second: Option<u32>,
    /// How long Feishu waits for the answer to a push.
    pub answer_limit: Duration,
    /// How often a client may ask whether somebody has scanned.
    pub scan_interval: Duration,
    /// When an unacknowledged event is pushed again.
    pub repush: Vec<Duration>,
    /// How many history entries are kept.
    pub history: usize,
    /// Keeps no history at all; states and waits still work.
    pub quiet: bool,
    /// Events go down an app's connections in turn and not by chance.
    pub in_turn: bool,
    /// How far Feishu's clock is ahead of this machine's at the start.
    pub clock_ahead_ms: i64,
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            socket_port: 0,
            control_port: 0,
            control_token: None,
            advertised_socket_port: None,
            apps: vec![App::default()],
            users: vec![User::new("owner", OWNER), User::new("stranger", STRANGER)],
            groups: vec![ChatGroup {
                chat_id: GROUP.to_owned(),
                members: vec![OWNER.to_owned(), STRANGER.to_owned()],
                has_bot: true,
            }],
            client_config: ClientConfig::default(),
            token_seconds: 7200,
            chat_per_second: Some(5),
            patch_per_second: Some(5),
            api_per_second: Some(50),
            answer_limit: Duration::from_secs(3),
            scan_interval: Duration::from_secs(5),
            repush: [15, 5 * 60, 60 * 60, 6 * 60 * 60]
                .map(Duration::from_secs)
                .to_vec(),
            history: 10_000,
            quiet: false,
            in_turn: false,
            clock_ahead_ms: 0,
            seed: 1,
        }
    }
}

/// One self-built app and what its console says.
#[derive(Debug, Clone)]
pub struct App {
    pub id: String,
    pub secret: String,
    pub tenant_key: String,
    pub name: String,
    pub bot_open_id: String,
    /// `header.token` of every event.
    pub verification_token: String,
    /// The open id `applications/me` names as owner.
    pub owner: String,
    /// A version is published; without it the bot can't send.
    pub published: bool,
    pub scopes: Vec<String>,
    pub events: Vec<String>,
    /// `websocket` or `webhook` where `applications/me` tells it; mostly it does not.
    pub event_mode: Option<String>,
    pub callbacks: Vec<String>,
    pub callback_mode: Option<String>,
}

impl App {
    /// As a scan with nod's preset makes it: files that people send can be
    /// read, and their names.
    pub fn scanned() -> Self {
        let mut app = Self::default();
        let more = [
            "im:message:readonly",
            "contact:contact.base:readonly",
            "contact:user.base:readonly",
        ];
        app.scopes.extend(more.map(str::to_owned));
        app
    }
}

impl Default for App {
    fn default() -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|&t| t.to_owned()).collect();
        Self {
            id: APP_ID.to_owned(),
            secret: APP_SECRET.to_owned(),
            tenant_key: TENANT.to_owned(),
            name: "nod".to_owned(),
            bot_open_id: "ou_bot4d53bc0e7a1f4d0c8a2b6e9f3c7d".to_owned(),
            verification_token: "simulated-verification-token".to_owned(),
            owner: OWNER.to_owned(),
            published: true,
            scopes: owned(&[
                "im:message:send_as_bot",
                "im:message.p2p_msg:readonly",
                "im:message.group_at_msg:readonly",
                "im:resource:upload",
                "im:message.reactions:write_only",
                "contact:user.employee_id:readonly",
                "application:application:self_manage",
            ]),
            events: owned(&["im.message.receive_v1"]),
            event_mode: None,
            callbacks: owned(&["card.action.trigger"]),
            callback_mode: Some("websocket".to_owned()),
        }
    }
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_field_names, reason = "Feishu's own names")]
pub struct User {
    pub name: String,
    pub open_id: String,
    pub union_id: String,
    pub user_id: String,
    pub email: String,
    /// Inside the app's availability range.
    pub available: bool,
}

impl User {
    /// Derives the other ids from the open id.
    pub fn new(name: &str, open_id: &str) -> Self {
        let tail = open_id.strip_prefix("ou_").unwrap_or(open_id);
        Self {
            name: name.to_owned(),
            open_id: open_id.to_owned(),
            union_id: format!("on_{tail}"),
            user_id: tail.chars().take(8).collect(),
            email: format!("{name}@example.com"),
            available: true,
        }
    }

    pub(in crate::simulator) fn is(&self, id: &str) -> bool {
        [&self.open_id, &self.union_id, &self.user_id, &self.name]
            .into_iter()
            .any(|own| own == id)
    }
}

#[derive(Debug, Clone)]
pub struct ChatGroup {
    pub chat_id: String,
    pub members: Vec<String>,
    pub has_bot: bool,
}

/// What discovery and pongs tell the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ClientConfig {
    pub reconnect_count: i64,
    pub reconnect_interval: i64,
    pub reconnect_nonce: i64,
    pub ping_interval: i64,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            reconnect_count: -1,
            reconnect_interval: 120,
            reconnect_nonce: 30,
            ping_interval: 120,
        }
    }
}
