//! What hooks bring: a permission request becomes a place at the desk and a
//! card; the other events settle what the terminal has answered.

use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, info};

use super::flood::{MOST, Verdict};
use super::machine::BadProject;
use super::parts::Parts;
use super::{courier, journal, machine, notices, verdict};
use crate::approvals::answer::Answer;
use crate::approvals::desk::{Return, Waiting};
use crate::approvals::request::{Digest, Millis, Origin, Request};
use crate::approvals::{Past, RegisterRefusal, ResumeRefusal};
use crate::claude::permission::{Ask, Event, HookInput};
use crate::feishu::link::Phase;
use crate::hook::server::{Peer, Refused};
use crate::hook::wire::Registration;
use crate::rules::Rule;
use crate::sessions::questions;
use crate::sessions::questions::script::{self, Wishes};
use crate::wording::Text;

/// How long a hook waits for a connection that is being dialled.
const CONNECTING: Duration = Duration::from_millis(800);
/// A redial further away than this is not waited for.
const SOON: Duration = Duration::from_millis(500);

pub(super) async fn register(
    parts: Arc<Parts>,
    registration: Registration,
    peer: Peer,
) -> Result<Waiting, Refused> {
    let resume = registration.nod.as_ref().and_then(|nod| nod.resume.clone());
    if let Some(token) = resume {
        match parts.desk.resume(&registration.id, token.clone()) {
            Ok(Return::Waiting(waiting)) => {
                info!(request = %registration.id, "a hook came back");
                return Ok(waiting);
            }
            Ok(Return::Ended(past)) => return Ok(ended(past, 0, &registration.raw_input)),
            Err(ResumeRefusal::WrongToken) => {
                return Err(refused(
                    "wrong_token",
                    ResumeRefusal::WrongToken.to_string(),
                ));
            }
            Err(ResumeRefusal::Unknown) => {}
        }
        let remembered = journal::remembered(&parts, &registration.id).await;
        if let Some(it) = remembered.filter(|it| it.token == Some(token.hash())) {
            let past = Past {
                ending: it.ending,
                at: it.at,
                digest: it.digest,
                token: token.hash(),
            };
            return Ok(ended(past, it.asked_at, &registration.raw_input));
        }
        return Err(refused("unknown", ResumeRefusal::Unknown.to_string()));
    }
    ask(parts, registration, peer).await
}

async fn ask(
    parts: Arc<Parts>,
    registration: Registration,
    peer: Peer,
) -> Result<Waiting, Refused> {
    let input = HookInput::parse(&registration.raw_input)
        .map_err(|why| refused("bad_request", why.to_string()))?;
    let Event::PermissionRequest(ask) = input.event else {
        return Err(refused(
            "bad_request",
            "only permission requests can be registered".to_owned(),
        ));
    };
    let project = registration.project.clone();
    let checked = tokio::task::spawn_blocking(move || {
        machine::check_project(&project).map(|()| machine::branch(&project))
    });
    let branch = match checked.await {
        Ok(Ok(branch)) => branch,
        Ok(Err(why)) => return Err(refused("bad_project", why.to_string())),
        Err(_) => return Err(refused("bad_project", BadProject::Missing.to_string())),
    };
    let said = |zh, en| Text::new(zh, en).get(parts.config.lang).to_owned();
    if !parts.courier.has_receiver() {
        return Err(refused(
            "no_owner",
            NO_OWNER.get(parts.config.lang).to_owned(),
        ));
    }
    wait_for_connection(&parts)
        .await
        .map_err(|why| refused("offline", why))?;
    if parts.courier.webhook().is_some() && questions::of(&ask.tool, &ask.input).is_some() {
        return Err(refused(
            "unsupported",
            said(
                "自定义机器人不能承载提问：请在终端回答",
                "a custom bot cannot carry questions: answer in the terminal",
            ),
        ));
    }
    if ask.tool == script::TOOL && script::parse(&ask.input).is_none() {
        return Err(refused(
            "bad_request",
            said("问题无法放进卡片", "the question cannot be put on a card"),
        ));
    }
    let wishes = Wishes::of(&ask.tool, &ask.input);
    let timeout = wishes.timeout.unwrap_or(parts.config.request_timeout);
    let now = parts.now();
    if let Verdict::TooOften { first } = parts.flood.ask(&input.common.session, now) {
        if first {
            tokio::spawn(notices::flood(
                parts,
                input.common.session,
                registration.project,
            ));
        }
        let message = format!("more than {MOST} requests of this session within a minute");
        return Err(refused("flood", message));
    }
    let nod = registration.nod.unwrap_or_default();
    let cwd = nod.cwd.or(input.common.cwd);
    let project = registration.project;
    let request = Request {
        id: registration.id,
        digest: Digest::of(&ask.input),
        suggested: suggested(&ask),
        tool: ask.tool,
        input: ask.input,
        origin: Origin {
            machine: parts.machine.name.clone(),
            user: parts.machine.user.clone(),
            branch: nod.branch.or(branch),
            cwd: cwd.unwrap_or_else(|| project.clone()),
            project,
            session: input.common.session,
            agent: nod.agent.or(input.common.agent_type),
            pid: nod.pid.or(peer.pid.and_then(|pid| u32::try_from(pid).ok())),
            hosted: false,
        },
        asked_at: now,
        deadline: now + millis(timeout),
    };
    let id = request.id.clone();
    let waiting = parts.desk.register(request).map_err(|why| {
        let word = match why {
            RegisterRefusal::Full => "full",
            RegisterRefusal::Taken => "duplicate",
        };
        refused(word, why.to_string())
    })?;
    let Some(request) = parts.desk.find(&id) else {
        return Err(refused("gone", "the request ended at once".to_owned()));
    };
    if let Some(token) = waiting.token() {
        journal::keep(&parts, &request, token.hash()).await;
    }
    info!(request = %id, tool = %request.tool, "a request waits");
    tokio::spawn(courier::send_card(parts, request));
    Ok(waiting)
}

/// Lets a dial that is under way finish; says at once when there is none.
async fn wait_for_connection(parts: &Parts) -> Result<(), String> {
    if parts.courier.webhook().is_some() {
        return Ok(());
    }
    let hopeful = match &parts.link.borrow().phase {
        Phase::Up { .. } => return Ok(()),
        Phase::Dialing { .. } => true,
        Phase::Waiting { until, .. } => {
            until.saturating_duration_since(std::time::Instant::now()) < SOON
        }
        Phase::Degraded { .. } => false,
    };
    if hopeful {
        let mut link = parts.link.clone();
        let up = link.wait_for(|view| matches!(view.phase, Phase::Up { .. }));
        if let Ok(Ok(_)) = tokio::time::timeout(CONNECTING, up).await {
            return Ok(());
        }
    }
    parts.reachable()
}

fn suggested(ask: &Ask) -> Vec<Rule> {
    ask.suggestions
        .local_rules()
        .unwrap_or_default()
        .into_iter()
        .map(|(tool, content)| Rule { tool, content })
        .collect()
}

/// A place whose answer is there already, with all that the ending carries.
fn ended(past: Past, asked_at: Millis, raw_input: &[u8]) -> Waiting {
    let extras = match HookInput::parse(raw_input).map(|input| input.event) {
        Ok(Event::PermissionRequest(ask)) => verdict::extras(&past.ending, &ask.tool, &ask.input),
        Ok(_) | Err(_) => verdict::extras(&past.ending, "", &Value::Null),
    };
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

fn refused(error: &'static str, message: String) -> Refused {
    Refused { error, message }
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}
