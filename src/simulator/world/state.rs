//! What this Feishu knows: apps, people, chats, tokens, tickets, messages.
//! Pure: the time is an argument and ids come from a seeded mint.

pub(in crate::simulator) mod messages;

use std::collections::{HashMap, VecDeque};

use prost::bytes::Bytes;
use serde_json::{Value, json};

use super::mint::Mint;
use super::options::{App, ChatGroup, Options, SERVICE_ID, User};
use super::pace::CallPace;
use crate::simulator::serving::upload::Uploads;
use messages::HeldMessages;

const MAX_TICKETS: usize = 10_000;
const MAX_CONNECTIONS: usize = 50;
const MAX_RESOURCES: usize = 100;
const MAX_HELD: usize = 128 << 20;
const KEEP_TOKEN_ABOVE: u64 = 30 * 60 * 1000;

/// A REST call that is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::simulator) struct Decline {
    pub(in crate::simulator) http: u16,
    pub(in crate::simulator) code: i64,
    pub(in crate::simulator) msg: String,
    /// Seconds for `x-ogw-ratelimit-reset`.
    pub(in crate::simulator) reset: Option<u64>,
}

impl Decline {
    pub(in crate::simulator) fn new(code: i64, msg: impl Into<String>) -> Self {
        Self {
            http: 400,
            code,
            msg: msg.into(),
            reset: None,
        }
    }
}

pub(in crate::simulator) fn decline<T>(code: i64, msg: impl Into<String>) -> Result<T, Decline> {
    Err(Decline::new(code, msg))
}

#[derive(Debug)]
struct TenantToken {
    text: String,
    app: usize,
    until: u64,
}

#[derive(Debug)]
struct DialTicket {
    app: usize,
    used: bool,
}

#[derive(Debug)]
struct Resource {
    message_id: String,
    key: String,
    kind: &'static str,
    bytes: Bytes,
}

/// Why an upgrade is refused: the handshake headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::simulator) struct HandshakeRefusal {
    pub(in crate::simulator) http: u16,
    pub(in crate::simulator) status: i64,
    pub(in crate::simulator) autherrcode: Option<i64>,
    pub(in crate::simulator) msg: &'static str,
}

#[derive(Debug, Default)]
pub(in crate::simulator) struct World {
    pub(in crate::simulator) apps: Vec<App>,
    pub(in crate::simulator) users: Vec<User>,
    pub(in crate::simulator) groups: Vec<ChatGroup>,
    pub(in crate::simulator) mint: Mint,
    pub(in crate::simulator) messages: HeldMessages,
    tokens: Vec<TenantToken>,
    tickets: HashMap<String, DialTicket>,
    ticket_order: VecDeque<String>,
    resources: VecDeque<Resource>,
    pub(in crate::simulator) uploads: Uploads,
    pace: CallPace,
    token_seconds: u64,
    chat_per_second: Option<u32>,
    patch_per_second: Option<u32>,
    api_per_second: Option<u32>,
}

impl World {
    pub(in crate::simulator) fn new(options: &Options) -> Self {
        Self {
            apps: options.apps.clone(),
            users: options.users.clone(),
            groups: options.groups.clone(),
            mint: Mint::new(options.seed),
            token_seconds: options.token_seconds,
            chat_per_second: options.chat_per_second,
            patch_per_second: options.patch_per_second,
            api_per_second: options.api_per_second,
            ..Self::default()
        }
    }

    /// Discovery's check of credentials; the code Feishu answers otherwise.
    pub(in crate::simulator) fn sign_in(
        &self,
        id: &str,
        secret: &str,
    ) -> Result<usize, (i64, &'static str)> {
        if id.is_empty() || secret.is_empty() {
            return Err((1_000_040_344, "no credential"));
        }
        self.apps
            .iter()
            .position(|app| app.id == id && app.secret == secret)
            .ok_or((1_000_040_345, "app_id or app_secret is invalid"))
    }

    /// The query of a connection URL, good for one connection.
    pub(in crate::simulator) fn ticket(&mut self, app: usize) -> Vec<(&'static str, String)> {
        let ticket = self.mint.uuid();
        if self.ticket_order.len() >= MAX_TICKETS
            && let Some(oldest) = self.ticket_order.pop_front()
        {
            self.tickets.remove(&oldest);
        }
        self.ticket_order.push_back(ticket.clone());
        self.tickets
            .insert(ticket.clone(), DialTicket { app, used: false });
        vec![
            ("fpid", "493".to_owned()),
            ("aid", "552564".to_owned()),
            ("device_id", self.mint.digits(19)),
            ("access_key", self.mint.hex(32)),
            ("service_id", SERVICE_ID.to_string()),
            ("ticket", ticket),
        ]
    }

    /// Uses up a ticket of an app that has `open` connections so far.
    pub(in crate::simulator) fn admit(
        &mut self,
        ticket: Option<&str>,
        open: impl Fn(usize) -> usize,
    ) -> Result<usize, HandshakeRefusal> {
        let refused = |status, autherrcode, msg| HandshakeRefusal {
            http: 403,
            status,
            autherrcode,
            msg,
        };
        let known = ticket.and_then(|ticket| self.tickets.get_mut(ticket));
        let Some(ticket) = known else {
            return Err(refused(403, None, "unknown ticket"));
        };
        if ticket.used {
            return Err(refused(514, Some(1_000_040_343), "the ticket was used"));
        }
        ticket.used = true;
        if open(ticket.app) >= MAX_CONNECTIONS {
            return Err(refused(
                514,
                Some(1_000_040_350),
                "the number of connections exceeded the limit",
            ));
        }
        Ok(ticket.app)
    }

    /// The same token while 30 minutes are left, a new one beside it after.
    pub(in crate::simulator) fn tenant_token(&mut self, id: &str, secret: &str, now: u64) -> Value {
        let Some(app) = self.apps.iter().position(|app| app.id == id) else {
            return if well_formed_app_id(id) {
                json!({"code": 10014, "msg": "app id not exists"})
            } else {
                json!({"code": 10003, "msg": "invalid param"})
            };
        };
        if self.apps[app].secret != secret {
            return json!({"code": 10015, "msg": "app secret invalid"});
        }
        self.tokens.retain(|token| token.until > now);
        let kept = self
            .tokens
            .iter()
            .find(|token| token.app == app && token.until >= now + KEEP_TOKEN_ABOVE);
        let (text, until) = if let Some(token) = kept {
            (token.text.clone(), token.until)
        } else {
            let token = TenantToken {
                text: format!("t-{}", self.mint.hex(40)),
                app,
                until: now + self.token_seconds * 1000,
            };
            let answer = (token.text.clone(), token.until);
            self.tokens.push(token);
            let own = |token: &TenantToken| token.app == app;
            if self.tokens.iter().filter(|token| own(token)).count() > 100
                && let Some(oldest) = self.tokens.iter().position(own)
            {
                self.tokens.remove(oldest);
            }
            answer
        };
        json!({
            "code": 0,
            "msg": "ok",
            "tenant_access_token": text,
            "expire": (until - now) / 1000,
        })
    }

    /// The app a call comes from.
    pub(in crate::simulator) fn authorize(
        &self,
        header: Option<&str>,
        now: u64,
    ) -> Result<usize, Decline> {
        let Some(token) = header.and_then(|header| header.strip_prefix("Bearer ")) else {
            return decline(99_991_661, "Missing access token for authorization");
        };
        if !token.starts_with("t-") && !token.starts_with("u-") {
            return decline(
                99_991_671,
                "Invalid access token: it must start with t- or u-",
            );
        }
        self.tokens
            .iter()
            .find(|known| known.text == token && known.until > now)
            .map(|known| known.app)
            .ok_or_else(token_expired)
    }

    /// Every token handed out so far is void from now on.
    pub(in crate::simulator) fn expire_tokens(&mut self) {
        self.tokens.clear();
    }

    pub(in crate::simulator) fn need_scope(&self, app: usize, any: &[&str]) -> Result<(), Decline> {
        let app = &self.apps[app];
        if any
            .iter()
            .any(|scope| app.scopes.iter().any(|own| own == scope))
        {
            return Ok(());
        }
        let wanted = any.join(",");
        decline(
            99_991_672,
            format!(
                "Access denied. One of the following scopes is required: [{wanted}]. \
                 https://open.feishu.cn/app/{}/auth?q={wanted}&op_from=openapi&token_type=tenant",
                app.id
            ),
        )
    }

    pub(in crate::simulator) fn pace_api(
        &mut self,
        app: usize,
        api: &str,
        now: u64,
    ) -> Result<(), Decline> {
        let key = format!("api {app} {api}");
        let has_room = self.pace.take(&key, self.api_per_second, now);
        has_room.then_some(()).ok_or_else(|| rate_limited(1))
    }

    fn pace_chat(&mut self, chat: &str, now: u64) -> Result<(), Decline> {
        let key = format!("chat {chat}");
        too_often_unless(self.pace.take(&key, self.chat_per_second, now))
    }

    fn pace_patch(&mut self, message: &str, now: u64) -> Result<(), Decline> {
        let key = format!("patch {message}");
        too_often_unless(self.pace.take(&key, self.patch_per_second, now))
    }

    /// The person with this id of a kind.
    pub(in crate::simulator) fn user_by(&self, kind: &str, id: &str) -> Option<&User> {
        self.users.iter().find(|user| match kind {
            "open_id" => user.open_id == id,
            "union_id" => user.union_id == id,
            "user_id" => user.user_id == id,
            "email" => user.email == id,
            _ => false,
        })
    }

    /// By one of their ids; the first for none.
    pub(in crate::simulator) fn user(&self, id: &str) -> Option<&User> {
        self.users.iter().find(|user| id.is_empty() || user.is(id))
    }

    /// Where a message of `app` to `id` goes: the chat, or why not.
    pub(in crate::simulator) fn destination(
        &self,
        app: usize,
        kind: &str,
        id: &str,
    ) -> Result<String, Decline> {
        let found = match kind {
            "chat_id" => return self.chat(app, id).map(str::to_owned),
            "open_id" | "union_id" | "user_id" | "email" => self.user_by(kind, id),
            _ => {
                return decline(99_992_402, "field validation failed: receive_id_type");
            }
        };
        match found {
            Some(user) if user.available => Ok(p2p(&self.apps[app], user)),
            Some(_) => decline(230_013, "Bot has NO availability to this user."),
            None if kind == "open_id" => decline(
                99_992_351,
                "The request you send is not a valid open_id or not exists",
            ),
            None => decline(230_034, "The receive_id is invalid."),
        }
    }

    fn chat<'a>(&'a self, app: usize, id: &'a str) -> Result<&'a str, Decline> {
        if let Some(group) = self.groups.iter().find(|group| group.chat_id == id) {
            return if group.has_bot {
                Ok(id)
            } else {
                decline(230_002, "The bot can not be outside the group.")
            };
        }
        self.users
            .iter()
            .any(|user| p2p(&self.apps[app], user) == id)
            .then_some(id)
            .ok_or_else(|| Decline::new(230_034, "The receive_id is invalid."))
    }

    pub(in crate::simulator) fn keep_resource(
        &mut self,
        message_id: &str,
        key: &str,
        kind: &'static str,
        bytes: Bytes,
    ) {
        self.resources.push_back(Resource {
            message_id: message_id.to_owned(),
            key: key.to_owned(),
            kind,
            bytes,
        });
        let held = |all: &VecDeque<Resource>| all.iter().map(|r| r.bytes.len()).sum::<usize>();
        while self.resources.len() > MAX_RESOURCES || held(&self.resources) > MAX_HELD {
            self.resources.pop_front();
        }
    }

    pub(in crate::simulator) fn resource(
        &self,
        message_id: &str,
        key: &str,
        kind: &str,
    ) -> Result<Bytes, Decline> {
        self.existing(message_id)?;
        self.resources
            .iter()
            .find(|known| known.message_id == message_id && known.key == key && known.kind == kind)
            .map(|known| known.bytes.clone())
            .ok_or_else(|| Decline::new(234_003, "File not in message."))
    }

    /// The file a message carries.
    pub(in crate::simulator) fn file_of(&self, message_id: &str) -> Option<Bytes> {
        let own = |known: &&Resource| known.message_id == message_id && known.kind == "file";
        self.resources
            .iter()
            .find(own)
            .map(|file| file.bytes.clone())
    }

    pub(in crate::simulator) fn is_group(&self, chat: &str) -> bool {
        self.groups.iter().any(|group| group.chat_id == chat)
    }

    /// Whether a person can see what is in a chat of this app.
    pub(in crate::simulator) fn sees(&self, app: usize, user: &User, chat: &str) -> bool {
        match self.groups.iter().find(|group| group.chat_id == chat) {
            Some(group) => group.members.iter().any(|member| user.is(member)),
            None => p2p(&self.apps[app], user) == chat,
        }
    }
}

fn too_often_unless(has_room: bool) -> Result<(), Decline> {
    let too_often = || Decline::new(230_020, "This operation triggers the frequency limit.");
    has_room.then_some(()).ok_or_else(too_often)
}

pub(in crate::simulator) fn token_expired() -> Decline {
    Decline::new(
        99_991_663,
        "Invalid access token for authorization. Please make a test attempt with a valid one",
    )
}

pub(in crate::simulator) fn rate_limited(reset: u64) -> Decline {
    Decline {
        http: 429,
        code: 99_991_400,
        msg: "request trigger frequency limit".to_owned(),
        reset: Some(reset),
    }
}

/// The private chat of a person with an app's bot.
pub(in crate::simulator) fn p2p(app: &App, user: &User) -> String {
    let tail = |text: &str| text[text.len().saturating_sub(12)..].to_owned();
    format!("oc_p2p{}{}", tail(&app.id), tail(&user.open_id))
}

fn well_formed_app_id(id: &str) -> bool {
    id.strip_prefix("cli_")
        .is_some_and(|tail| tail.len() == 16 && tail.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::world::options::{APP_ID, APP_SECRET, GROUP, OWNER};

    fn world() -> World {
        World::new(&Options::default())
    }

    fn token(world: &mut World, now: u64) -> (String, u64) {
        let answer = world.tenant_token(APP_ID, APP_SECRET, now);
        (
            answer["tenant_access_token"].as_str().unwrap().to_owned(),
            answer["expire"].as_u64().unwrap(),
        )
    }

    #[test]
    fn a_token_is_the_same_until_its_last_half_hour() {
        let mut world = world();
        let minute = 60 * 1000;
        let (first, expire) = token(&mut world, 0);
        assert_eq!(expire, 7200);
        assert_eq!(token(&mut world, 90 * minute), (first.clone(), 1800));
        let (second, expire) = token(&mut world, 90 * minute + 1000);
        assert_ne!(second, first);
        assert_eq!(expire, 7200);
        for valid in [&first, &second] {
            let header = format!("Bearer {valid}");
            assert_eq!(world.authorize(Some(&header), 119 * minute), Ok(0));
        }
        let header = format!("Bearer {first}");
        let code = world
            .authorize(Some(&header), 120 * minute)
            .unwrap_err()
            .code;
        assert_eq!(code, 99_991_663);
    }

    #[test]
    fn wrong_credentials_have_their_own_codes() {
        let mut world = world();
        for (id, secret, code) in [
            (APP_ID, "wrong", 10015),
            ("cli_0000000000000000", "x", 10014),
            ("", "", 10003),
        ] {
            assert_eq!(world.tenant_token(id, secret, 0)["code"], code, "{id}");
        }
        assert_eq!(world.sign_in(APP_ID, APP_SECRET), Ok(0));
        assert_eq!(world.sign_in(APP_ID, "x").unwrap_err().0, 1_000_040_345);
        assert_eq!(world.sign_in("", "x").unwrap_err().0, 1_000_040_344);
        assert_eq!(world.authorize(None, 0).unwrap_err().code, 99_991_661);
        let code = world.authorize(Some("Bearer x"), 0).unwrap_err().code;
        assert_eq!(code, 99_991_671);
    }

    #[test]
    fn a_ticket_is_good_for_one_connection() {
        let mut world = world();
        let query = world.ticket(0);
        let ticket = query.iter().find(|(key, _)| *key == "ticket").unwrap();
        let ticket = Some(ticket.1.as_str());
        assert_eq!(world.admit(ticket, |_| 0), Ok(0));
        assert_eq!(world.admit(ticket, |_| 0).unwrap_err().status, 514);
        assert_eq!(world.admit(Some("foreign"), |_| 0).unwrap_err().status, 403);
        assert_eq!(world.admit(None, |_| 0).unwrap_err().status, 403);
        let query = world.ticket(0);
        let full = world.admit(Some(&query[5].1), |_| 50).unwrap_err();
        assert_eq!((full.status, full.autherrcode), (514, Some(1_000_040_350)));
    }

    #[test]
    fn receivers_are_found_by_every_kind_of_id() {
        let world = world();
        let owner = world.user(OWNER).unwrap().clone();
        let chat = p2p(&world.apps[0], &owner);
        for (kind, id) in [
            ("open_id", owner.open_id.as_str()),
            ("union_id", &owner.union_id),
            ("user_id", &owner.user_id),
            ("email", &owner.email),
            ("chat_id", &chat),
        ] {
            assert_eq!(world.destination(0, kind, id), Ok(chat.clone()), "{kind}");
        }
        assert_eq!(world.destination(0, "chat_id", GROUP), Ok(GROUP.to_owned()));
        for (kind, id, code) in [
            ("open_id", "ou_nobody", 99_992_351),
            ("chat_id", "oc_nowhere", 230_034),
            ("phone", "1", 99_992_402),
        ] {
            assert_eq!(
                world.destination(0, kind, id).unwrap_err().code,
                code,
                "{id}"
            );
        }
    }

    #[test]
    fn a_missing_scope_is_named() {
        let mut world = world();
        assert_eq!(
            world.need_scope(0, &["im:message", "im:message:send_as_bot"]),
            Ok(())
        );
        world.apps[0].scopes.clear();
        let refusal = world.need_scope(0, &["im:message"]).unwrap_err();
        assert_eq!(refusal.code, 99_991_672);
        assert!(refusal.msg.contains("[im:message]"));
    }
}
