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
