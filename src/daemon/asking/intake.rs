//! A hook asks: a permission request becomes a place at the desk and a card,
//! or is refused and the terminal decides.

use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, info};

use crate::approvals::answer::Answer;
use crate::approvals::desk::{Return, Waiting};
use crate::approvals::request::{AskingAgent, Caller, Digest, Facts, Origin};
use crate::approvals::{Past, RegisterRefusal, ResumeRefusal};
use crate::claude::permission::{HookEvent, HookInput, PermissionAsk};
use crate::claude::status;
use crate::clock::{Millis, millis};
use crate::daemon::asking::flood;
use crate::daemon::cards::courier::Cards;
use crate::daemon::deciding::verdict;
use crate::daemon::known::{journal, machine, reach};
use crate::daemon::terminals::mailboxes::Mailboxes;
use crate::daemon::terminals::watching::{self, Terminals};
use crate::hook::server::{HookPeer, HookRefused};
use crate::hook::wire::Registration;
use crate::hook::wire::error_word::ErrorWord;
use crate::sessions::questions;
use crate::sessions::questions::script::{self, ScriptWishes};
use crate::text::Text;

pub(crate) async fn register(
    terminals: Arc<Terminals>,
    mailboxes: Arc<Mailboxes>,
    registration: Registration,
    peer: HookPeer,
) -> Result<Waiting, HookRefused> {
    let resume = registration.nod.as_ref().and_then(|nod| nod.resume.clone());
    if let Some(token) = resume {
        match terminals.cards.desk.resume(&registration.id, token.clone()) {
            Ok(Return::Waiting(waiting)) => {
                info!(request = %registration.id, "a hook came back");
                return Ok(waiting);
            }
            Ok(Return::Ended(past)) => return Ok(ended(past, 0, &registration.raw_input)),
            Err(ResumeRefusal::WrongToken) => {
                return Err(refused(
                    ErrorWord::WrongToken,
                    ResumeRefusal::WrongToken.to_string(),
                ));
            }
            Err(ResumeRefusal::Unknown) => {}
        }
        let remembered = journal::remembered(&terminals.cards.journal, &registration.id).await;
        if let Some(it) = remembered.filter(|it| it.token == Some(token.hash())) {
            let past = Past {
                ending: it.ending,
                at: it.at,
                digest: it.digest,
                token: token.hash(),
            };
            return Ok(ended(past, it.asked_at, &registration.raw_input));
        }
        return Err(refused(
            ErrorWord::Unknown,
            ResumeRefusal::Unknown.to_string(),
        ));
    }
    ask(terminals, mailboxes, registration, peer).await
}

async fn ask(
    terminals: Arc<Terminals>,
    mailboxes: Arc<Mailboxes>,
    registration: Registration,
    peer: HookPeer,
) -> Result<Waiting, HookRefused> {
    let input = HookInput::parse(&registration.raw_input)
        .map_err(|why| refused(ErrorWord::BadRequest, why.to_string()))?;
    let HookEvent::PermissionRequest(ask) = input.event else {
        return Err(refused(
            ErrorWord::BadRequest,
            "only permission requests can be registered".to_owned(),
        ));
    };
    let seen = machine::look(registration.project.clone())
        .await
        .map_err(|why| refused(ErrorWord::BadProject, why.to_string()))?;
    if let Some(refused) = untold(&terminals.cards, &ask) {
        return Err(refused);
    }
    let wishes = ScriptWishes::of(&ask.tool, &ask.input);
    let timeout = wishes
        .timeout
        .unwrap_or(terminals.cards.config.request_timeout);
    let now = terminals.cards.now();
    if flood::refuses(
        &terminals.cards,
        &input.common.session,
        &registration.project,
        AskingAgent::ClaudeCode,
    ) {
        let message = "too many requests of this session wait for an answer";
        return Err(refused(ErrorWord::Flood, message.to_owned()));
    }
    let nod = registration.nod.unwrap_or_default();
    let (project, mailbox) = (&registration.project, nod.mailbox.as_ref());
    mailboxes.told(project, &input.common, mailbox, now);
    let cwd = nod.cwd.or(input.common.cwd);
    let project = registration.project;
    let cwd = cwd.unwrap_or_else(|| project.clone());
    let request = Facts {
        id: registration.id,
        digest: Digest::of(&ask.input),
        real: machine::real_path(&ask.tool, &ask.input, &cwd, &project).await,
        tool: ask.tool,
        input: ask.input,
        origin: Origin {
            machine: terminals.cards.buttons.machine.name.clone(),
            user: terminals.cards.buttons.machine.user.clone(),
            branch: nod.branch.or(seen.branch),
            cwd,
            project,
            session: input.common.session,
            agent: nod.agent.or(input.common.agent_type),
            pid: nod.pid.or(peer.pid.and_then(|pid| u32::try_from(pid).ok())),
            hosted: false,
            caller: Caller {
                agent: AskingAgent::ClaudeCode,
                agent_id: input.common.agent_id,
                status_dir: input.common.transcript.as_deref().and_then(status::dir),
                unattended: false,
                rules_in: seen.rules_in,
            },
        },
        asked_at: now,
        deadline: now + millis(timeout),
    }
    .read();
    let id = request.id.clone();
    let waiting = terminals.cards.desk.register(request).map_err(|why| {
        let word = match why {
            RegisterRefusal::Full => ErrorWord::Full,
            RegisterRefusal::Taken => ErrorWord::Duplicate,
            RegisterRefusal::Heavy => ErrorWord::TooMuchInput,
        };
        refused(word, why.to_string())
    })?;
    let Some(request) = terminals.cards.desk.find(&id) else {
        return Err(refused(
            ErrorWord::Gone,
            "the request ended at once".to_owned(),
        ));
    };
    if let Some(token) = waiting.token() {
        journal::keep(&terminals.cards.journal, &request, token.hash()).await;
    }
    info!(request = %id, tool = %request.tool, "a request waits");
    watching::watch(&terminals, &request);
    flood::deliver(&terminals.cards, &request);
    Ok(waiting)
}

/// Why this can't be put to anybody.
fn untold(cards: &Cards, ask: &PermissionAsk) -> Option<HookRefused> {
    let said = |zh, en| Text::new(zh, en).get(cards.config.lang).to_owned();
    if !cards.courier.has_receiver() {
        return Some(refused(
            ErrorWord::NoOwner,
            NO_OWNER.get(cards.config.lang).to_owned(),
        ));
    }
    let by_app = cards.courier.webhook().is_none();
    if let Some(why) = by_app
        .then(|| reach::shut_out(&cards.link.borrow().phase))
        .flatten()
    {
        return Some(refused(
            ErrorWord::Offline,
            why.get(cards.config.lang).to_owned(),
        ));
    }
    if cards.courier.webhook().is_some() && questions::of(&ask.tool, &ask.input).is_some() {
        return Some(refused(
            ErrorWord::Unsupported,
            said(
                "自定义机器人不能承载提问：请在终端回答",
                "a custom bot cannot carry questions: answer in the terminal",
            ),
        ));
    }
    if ask.tool == script::TOOL && script::parse(&ask.input).is_none() {
        return Some(refused(
            ErrorWord::BadRequest,
            said("问题无法放进卡片", "the question cannot be put on a card"),
        ));
    }
    None
}

/// A place whose answer is there already, with all that the ending carries.
fn ended(past: Past, asked_at: Millis, raw_input: &[u8]) -> Waiting {
    let question = match HookInput::parse(raw_input).map(|input| input.event) {
        Ok(HookEvent::PermissionRequest(ask)) => questions::of(&ask.tool, &ask.input),
        Ok(_) | Err(_) => None,
    };
    let asker = question.as_ref().map(|(_, asker)| asker);
    let extras = verdict::extras(&past.ending, asker);
    let patience = (past.at - asked_at).max(0).unsigned_abs();
    debug!("a hook came back for an answer it had missed");
    Waiting::ended(
        Answer {
            ending: past.ending,
            digest: past.digest,
            patience: Duration::from_millis(patience),
            extras,
        },
        past.at,
    )
}

static NO_OWNER: Text = Text::new(
    "没有设置谁来决定：请设置 `FEISHU_OWNER_ID`",
    "nobody is set to decide: set `FEISHU_OWNER_ID`",
);

fn refused(error: ErrorWord, message: String) -> HookRefused {
    HookRefused { error, message }
}

#[cfg(test)]
mod tests;
