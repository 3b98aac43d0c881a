//! A hook asks: a permission request becomes a place at the desk and a card,
//! or is refused and the terminal decides.

use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, info};

use crate::approvals::answer::Answer;
use crate::approvals::desk::{Return, Waiting};
use crate::approvals::request::{AskingAgent, Caller, Digest, Facts, Origin, Posed, Request};
use crate::approvals::{Past, RegisterRefusal, ResumeRefusal};
use crate::claude::permission::{HookEvent, HookInput};
use crate::claude::status;
use crate::clock::{Millis, millis};
use crate::daemon::asking::flood;
use crate::daemon::cards::courier::Cards;
use crate::daemon::deciding::verdict;
use crate::daemon::known::{journal, machine, reach};
use crate::daemon::terminals::mailboxes::Mailboxes;
use crate::daemon::terminals::watching::transcript_of;
use crate::daemon::terminals::watching::{self, Terminals};
use crate::hook::server::{HookPeer, HookRefused};
use crate::hook::wire::Registration;
use crate::hook::wire::error_word::ErrorWord;
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
                let why = ResumeRefusal::WrongToken.to_string();
                return Err(refused(ErrorWord::WrongToken, why));
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
        let why = ResumeRefusal::Unknown.to_string();
        return Err(refused(ErrorWord::Unknown, why));
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
        let message = "only permission requests can be registered";
        return Err(refused(ErrorWord::BadRequest, message.to_owned()));
    };
    let seen = machine::look(registration.project.clone())
        .await
        .map_err(|why| refused(ErrorWord::BadProject, why.to_string()))?;
    let cards = &terminals.cards;
    let wishes = ScriptWishes::of(&ask.tool, &ask.input);
    let timeout = wishes.timeout.unwrap_or(cards.config.request_timeout);
    let (now, common, project) = (cards.now(), input.common, registration.project);
    let plain_v1 = registration.nod.is_none();
    let nod = registration.nod.unwrap_or_default();
    let cwd = nod.cwd.or_else(|| common.cwd.clone());
    let cwd = cwd.unwrap_or_else(|| project.clone());
    let request = Facts {
        id: registration.id,
        digest: Digest::of(&ask.input),
        real: machine::real_path(&ask.tool, &ask.input, &cwd, &project).await,
        tool: ask.tool,
        input: ask.input,
        origin: Origin {
            machine: cards.buttons.machine.name.clone(),
            user: cards.buttons.machine.user.clone(),
            branch: nod.branch.or(seen.branch),
            cwd,
            project,
            session: common.session.clone(),
            agent: nod.agent.or_else(|| common.agent_type.clone()),
            pid: nod.pid.or(peer.pid.and_then(|pid| u32::try_from(pid).ok())),
            hosted: false,
            caller: Caller {
                agent: AskingAgent::ClaudeCode,
                agent_id: common.agent_id.clone(),
                status_dir: common.transcript.as_deref().and_then(status::dir),
                transcript: transcript_of(&common),
                process: nod.process,
                unattended: false,
                rules_in: seen.rules_in,
                plain_v1,
            },
        },
        asked_at: now,
        deadline: now + millis(timeout),
    }
    .read();
    if let Some(refused) = untold(cards, &request) {
        return Err(refused);
    }
    if watching::is_asked_already(cards, &request) {
        let message = "another hook of nod's asks for this call already";
        return Err(refused(ErrorWord::AnsweredInTerminal, message.to_owned()));
    }
    if flood::refuses(cards, &request) {
        let message = "too many requests of this session wait for an answer";
        return Err(refused(ErrorWord::Flood, message.to_owned()));
    }
    mailboxes.told(&request.origin.project, &common, nod.mailbox.as_ref(), now);
    let id = request.id.clone();
    let waiting = cards.desk.register(request).map_err(|why| {
        let word = match why {
            RegisterRefusal::Full => ErrorWord::Full,
            RegisterRefusal::Taken => ErrorWord::Duplicate,
            RegisterRefusal::Heavy => ErrorWord::TooMuchInput,
        };
        refused(word, why.to_string())
    })?;
    let Some(request) = cards.desk.find(&id) else {
        let message = "the request ended at once";
        return Err(refused(ErrorWord::Gone, message.to_owned()));
    };
    if let Some(token) = waiting.token() {
        journal::keep(&cards.journal, &request, token.hash()).await;
    }
    info!(request = %id, tool = %request.tool, "a request waits");
    watching::watch(&terminals, &request);
    flood::deliver(cards, &request);
    Ok(waiting)
}

/// Why this can't be put to anybody.
fn untold(cards: &Cards, request: &Request) -> Option<HookRefused> {
    let told = |word, why: &Text| Some(refused(word, why.get(cards.config.lang).to_owned()));
    if !cards.courier.has_receiver() {
        return told(ErrorWord::NoOwner, &NO_OWNER);
    }
    let by_app = cards.courier.webhook().is_none();
    if by_app && let Some(why) = reach::shut_out(&cards.link.borrow().phase) {
        return told(ErrorWord::Offline, &why);
    }
    if !by_app && request.question().is_some() {
        return told(ErrorWord::Unsupported, &NO_QUESTIONS);
    }
    if request.tool == script::TOOL && request.question().is_none() {
        return told(ErrorWord::BadRequest, &UNREADABLE);
    }
    None
}

/// A place whose answer is there already, with all that the ending carries.
fn ended(past: Past, asked_at: Millis, raw_input: &[u8]) -> Waiting {
    let question = match HookInput::parse(raw_input).map(|input| input.event) {
        Ok(HookEvent::PermissionRequest(ask)) => Posed::of(&ask.tool, &ask.input),
        Ok(_) | Err(_) => None,
    };
    let asker = question.as_ref().map(|posed| &posed.asker);
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

static NO_QUESTIONS: Text = Text::new(
    "自定义机器人不能承载提问：请在终端回答",
    "a custom bot cannot carry questions: answer in the terminal",
);
static UNREADABLE: Text = Text::new("问题无法放进卡片", "the question cannot be put on a card");

static NO_OWNER: Text = Text::new(
    "没有设置谁来决定：请设置 `FEISHU_OWNER_ID`",
    "nobody is set to decide: set `FEISHU_OWNER_ID`",
);

fn refused(error: ErrorWord, message: String) -> HookRefused {
    HookRefused { error, message }
}

#[cfg(test)]
mod tests;
