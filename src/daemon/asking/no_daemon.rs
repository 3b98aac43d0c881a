//! What is said when nobody is there to decide: in webhook mode a request that
//! finds no daemon is announced in the group, and the terminal decides.

use crate::approvals::request::{Caller, Digest, Facts, Origin};
use crate::cards::linked;
use crate::claude::permission::{HookEvent, HookInput};
use crate::clock::Clock;
use crate::config::Config;
use crate::daemon::known::machine;
use crate::feishu::custom_bot::{CustomBot, CustomBotError};
use crate::feishu::messages::Content;
use crate::feishu::outbound::{Outbound, OutboundError};
use crate::ids::RequestId;

#[derive(Debug, thiserror::Error)]
pub enum AnnounceError {
    #[error("only webhook mode announces: set `FEISHU_SEND_MODE=webhook`")]
    NoBot,
    #[error("this is no permission request: {0}")]
    NoRequest(String),
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    #[error(transparent)]
    Bot(#[from] CustomBotError),
}

/// Sends a card without buttons for the permission request on a hook's stdin.
pub async fn announce(config: &Config, raw_input: &[u8]) -> Result<(), AnnounceError> {
    let Some(bot) = &config.webhook else {
        return Err(AnnounceError::NoBot);
    };
    let input = HookInput::parse(raw_input);
    let input = input.map_err(|why| AnnounceError::NoRequest(why.to_string()))?;
    let HookEvent::PermissionRequest(ask) = input.event else {
        return Err(AnnounceError::NoRequest("another event".to_owned()));
    };
    let clock = Clock::start();
    let cwd = input.common.cwd.unwrap_or_default();
    let request = Facts {
        id: RequestId::parse("announced").expect("a plain word"),
        digest: Digest::of(&ask.input),
        tool: ask.tool,
        input: ask.input,
        origin: Origin {
            machine: machine::name(config),
            user: config.user.clone(),
            branch: machine::branch(&cwd),
            project: cwd.clone(),
            cwd,
            session: input.common.session,
            agent: input.common.agent_type,
            pid: None,
            hosted: false,
            caller: Caller::default(),
        },
        real: crate::approvals::request::RealPath::Unasked,
        asked_at: clock.now(),
        deadline: clock.now(),
    }
    .read();
    let outbound = Outbound::new(&config.proxies, config.ca_file.as_deref())?;
    let webhook = CustomBot::new(&outbound, &bot.url, bot.secret.clone(), config.previews)?;
    let card = linked::announced(&request, config.lang);
    webhook
        .say(&Content::Card(card), || clock.now() / 1_000)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    fn config(hook: &str) -> Config {
        let all = [
            ("FEISHU_SEND_MODE", "webhook"),
            ("FEISHU_WEBHOOK_URL", hook),
            ("CALLBACK_LISTEN", "127.0.0.1:1"),
            ("CALLBACK_SERVER_URL", "http://127.0.0.1:1"),
            ("NOD_MACHINE_NAME", "laptop"),
        ];
        Config::read(&Sources::of(&all)).0
    }

    fn asks() -> Vec<u8> {
        let raw = json!({
            "hook_event_name": "PermissionRequest", "cwd": "/p/shop",
            "tool_name": "Bash", "tool_input": {"command": "npm test"},
        });
        raw.to_string().into_bytes()
    }

    /// A custom bot that takes one card.
    async fn bot(listener: TcpListener) -> Value {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        loop {
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).await.unwrap();
            heard.extend_from_slice(&bytes[..read]);
            let text = String::from_utf8_lossy(&heard).into_owned();
            let body = text.split_once("\r\n\r\n").map(|(_, body)| body);
            if let Some(Ok(body)) = body.map(serde_json::from_str) {
                let reply = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                     content-length: 10\r\n\r\n{\"code\":0}";
                stream.write_all(reply.as_bytes()).await.unwrap();
                return body;
            }
        }
    }

    #[tokio::test]
    async fn the_group_hears_what_waits_in_the_terminal_and_can_press_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let hook = format!("http://127.0.0.1:{port}/open-apis/bot/v2/hook/abc");
        let (config, raw) = (config(&hook), asks());
        let (said, heard) = tokio::join!(announce(&config, &raw), bot(listener));
        said.unwrap();
        let card = heard["card"].to_string();
        assert!(
            card.contains("npm test") && card.contains("laptop"),
            "{card}"
        );
        for pressed in ["callback", "\"button\"", "127.0.0.1"] {
            assert!(!card.contains(pressed), "{card}");
        }
    }

    #[tokio::test]
    async fn nothing_else_is_announced() {
        let webhook = config("http://127.0.0.1:1/open-apis/bot/v2/hook/abc");
        for raw in [&br#"{"hook_event_name":"Stop"}"#[..], b"{", b"[]"] {
            let refused = announce(&webhook, raw).await.unwrap_err();
            assert!(matches!(refused, AnnounceError::NoRequest(_)), "{refused}");
        }
        let app = Config::read(&Sources::of(&[])).0;
        let refused = announce(&app, &asks()).await.unwrap_err();
        assert!(matches!(refused, AnnounceError::NoBot));
    }
}
