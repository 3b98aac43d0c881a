//! A tap on a card: who tapped, whether the button is ours and on which
//! machine its request lives, and what the person sees.

use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use tracing::warn;

use super::courier::{self, Drawn};
use super::decision::{carry_out, claim, late};
use super::parts::Parts;
use super::{journal, peers, undo};
use crate::approvals::action::Action as Choice;
use crate::approvals::request::{Millis, Operator, Reach, Request};
use crate::cards::{self, Action, REASON_FIELD};
use crate::feishu::event::{Click, Head, Person};
use crate::feishu::messages::Content;
use crate::gateway::route::{Route, route};
use crate::ids::{EventId, RequestId};
use crate::rules;
use crate::sessions::questions::{self, Reply};
use crate::wording::toast::Tone;
use crate::wording::{Toast, reply_json};

/// The action of every button on a question's card.
pub(super) const ANSWER: &str = "answer";

/// The action of the button that stops a session's task.
pub(super) const STOP: &str = "stop";

/// What the person sees at once.
pub(super) enum Shown {
    Toast(Toast),
    /// A toast, and the card's true face.
    WithCard(Toast, Drawn),
    /// As the above, and it was this tap that made it so.
    Effect(Toast, Drawn),
    /// What was answered when this very event came before.
    Again(Vec<u8>),
}

impl From<Toast> for Shown {
    fn from(toast: Toast) -> Self {
        Self::Toast(toast)
    }
}

pub(super) async fn answer(parts: &Arc<Parts>, click: Click) -> Vec<u8> {
    if let Some(message) = &click.message {
        parts.courier.under_way.began(message);
    }
    let Some(event) = click.head.event_id.clone() else {
        return work_out(parts, &click).await;
    };
    let slot = parts.recent.slot(&event, parts.now());
    slot.get_or_init(|| work_out(parts, &click)).await.clone()
}

async fn work_out(parts: &Arc<Parts>, click: &Click) -> Vec<u8> {
    let since = Instant::now();
    let shown = judge(parts, click).await;
    parts.figures.reply.note(since.elapsed());
    rendered(parts, click, shown)
}

/// What was shown, as the JSON Feishu takes. What a click changed is kept, so
/// that the same event gets the same answer ever after.
fn rendered(parts: &Parts, click: &Click, shown: Shown) -> Vec<u8> {
    let lang = parts.config.lang;
    match shown {
        Shown::Toast(toast) => reply_json(&toast, None, lang),
        Shown::WithCard(toast, card) => reply_json(&toast, Some(&card), lang),
        Shown::Effect(toast, card) => {
            let answer = reply_json(&toast, Some(&card), lang);
            journal::answered(parts, click.head.event_id.as_ref(), &answer);
            answer
        }
        Shown::Again(answer) => answer,
    }
}

impl Shown {
    /// What was shown, for whoever shows it in our place. An answer given
    /// before is taken apart again.
    pub(super) fn into_parts(self) -> (Toast, Option<Value>) {
        match self {
            Self::Toast(toast) => (toast, None),
            Self::WithCard(toast, card) | Self::Effect(toast, card) => {
                (toast, serde_json::from_str(&card).ok())
            }
            Self::Again(answer) => {
                let mut said: Value = serde_json::from_slice(&answer).unwrap_or_default();
                let card = said.pointer_mut("/card/data").map(Value::take);
                let text = |at: &str| said.pointer(at).and_then(Value::as_str).unwrap_or_default();
                let toast = Toast::Relayed {
                    tone: Tone::parse(text("/toast/type")),
                    zh: text("/toast/i18n/zh_cn").to_owned(),
                    en: text("/toast/i18n/en_us").to_owned(),
                };
                (toast, card)
            }
        }
    }
}

/// What a button says.
struct Tap {
    request: RequestId,
    wanted: Wanted,
    sealed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Permission(Action),
    /// A question's button; a form's submit names none.
    Answer(Option<questions::Tap>),
    /// The task of this session is to stop.
    Stop(i64),
}

/// What takes long, or seldom happens, is made on the heap when it happens:
/// every tap carries the room for all it might have to wait for.
async fn judge(parts: &Arc<Parts>, click: &Click) -> Shown {
    if !is_ours(parts, click) {
        return Toast::Invalid.into();
    }
    let Some(tap) = read(parts, click) else {
        return Toast::Invalid.into();
    };
    match route(&click.value, tap.sealed, parts.here()) {
        Route::Ours => judge_here(parts, click, tap).await,
        Route::Forward { .. } if is_stale(parts, click) => Toast::Stale.into(),
        Route::Forward { to, sealed } => {
            Box::pin(peers::forward(parts, click, &tap.request, to, sealed)).await
        }
        Route::Elsewhere { machine } => Toast::OtherMachine { machine }.into(),
        Route::Invalid => Toast::Invalid.into(),
    }
}

/// A click another machine of ours received for a request of this one.
pub(super) async fn judge_forwarded(parts: &Parts, click: &Click) -> Shown {
    let Some(tap) = read(parts, click) else {
        return Toast::Invalid.into();
    };
    let shown = judge_here(parts, click, tap).await;
    if matches!(shown, Shown::Effect(..)) {
        return Shown::Again(rendered(parts, click, shown));
    }
    shown
}

fn is_stale(parts: &Parts, click: &Click) -> bool {
    let created = click.head.created_ms;
    created.is_some_and(|created| parts.freshness.is_stale(created, parts.now()))
}

async fn judge_here(parts: &Parts, click: &Click, tap: Tap) -> Shown {
    if let Wanted::Stop(session) = tap.wanted {
        let stopped = Box::pin(stop(parts, click, session, tap.sealed)).await;
        return stopped.into();
    }
    let operator = parts.approver(&click.by);
    let operator = operator.or_else(|| parts.addressee(&tap.request, &click.by));
    let Some(operator) = operator else {
        return Box::pin(stranger(parts, click, &tap)).await;
    };
    let now = parts.now();
    if is_stale(parts, click) {
        return Toast::Stale.into();
    }
    if tap.wanted == Wanted::Permission(Action::Undo) {
        return Box::pin(undo::undo(
            parts,
            &tap.request,
            tap.sealed,
            &operator,
            click.message.as_ref(),
        ))
        .await;
    }
    let Some(request) = parts.desk.find(&tap.request) else {
        return past(parts, click, &tap, now).await;
    };
    if !tap.sealed || !names_its_card(parts, click, &tap.request) {
        warn!(request = %tap.request, "refused a button that nod did not make");
        return Toast::Invalid.into();
    }
    let chosen = match (questions::of(&request.tool, &request.input), tap.wanted) {
        (Some((ask, _)), Wanted::Answer(button)) => answered(&ask, button, click),
        // A card without the question's words still takes a refusal.
        (_, Wanted::Permission(action @ (Action::Deny | Action::Interrupt)))
        | (None, Wanted::Permission(action)) => wanted(&request, action, click),
        (Some(_), Wanted::Permission(_)) | (None, Wanted::Answer(_)) | (_, Wanted::Stop(_)) => {
            Err(Toast::Invalid)
        }
    };
    let action = match chosen {
        Ok(action) => action,
        Err(toast) => return toast.into(),
    };
    Box::pin(decided(parts, click, &tap.request, action, operator)).await
}

async fn decided(
    parts: &Parts,
    click: &Click,
    id: &RequestId,
    action: Choice,
    by: Operator,
) -> Shown {
    match claim(parts, id, action, by).await {
        Ok(claim) => carry_out(parts, click, claim).await,
        Err(toast) => true_face(parts, click, id, toast),
    }
}

/// The stop button of a session's card, which is the owner's alone.
async fn stop(parts: &Parts, click: &Click, session: i64, sealed: bool) -> Toast {
    if parts.owner(&click.by).is_none() {
        let who = click.by.id().map(|id| id.to_string());
        let event = click.head.event_id.as_ref();
        journal::refused(parts, "not_the_owner", None, who.as_deref(), event).await;
        return Toast::NotTheOwner;
    }
    if !sealed {
        return Toast::Invalid;
    }
    if is_stale(parts, click) {
        return Toast::Stale;
    }
    match parts.sessions.find(session) {
        None => Toast::Expired,
        Some(_) if parts.sessions.stop_task(session) => Toast::Stopping,
        Some(_) => Toast::NothingRuns,
    }
}

/// A refusal with the card as it should be, where that is known: the edit that
/// should have made it so may have failed, or came while this tap was under
/// way, and Feishu takes such an edit back.
fn true_face(parts: &Parts, click: &Click, id: &RequestId, toast: Toast) -> Shown {
    let edited = || parts.courier.face(click.message.as_ref()?);
    match courier::decided_card(parts, id).or_else(edited) {
        Some(card) => Shown::WithCard(toast, card),
        None => Shown::Toast(toast),
    }
}

/// Only a card in a chat of this app counts, not a preview or a copy.
fn is_ours(parts: &Parts, click: &Click) -> bool {
    let same_app = click
        .head
        .app_id
        .as_ref()
        .is_none_or(|app| *app == parts.app_id);
    let in_chat = click.host.as_ref().is_none_or(|host| host == "im_message");
    same_app && in_chat && click.delivery_type.is_none()
}

/// Reads the button's value, or finds it by the card and the button's name for
/// clients that drop the value of a form's button.
fn read(parts: &Parts, click: &Click) -> Option<Tap> {
    let text = |field: &str| click.value.get(field)?.as_str();
    if let (Some(action), Some(request)) = (text("action"), text("request_id")) {
        let wanted = if action == ANSWER {
            Wanted::Answer(text("tap").and_then(questions::Tap::parse))
        } else if action == STOP {
            Wanted::Stop(click.value.get("session")?.as_i64()?)
        } else {
            Wanted::Permission(Action::parse(action)?)
        };
        return Some(Tap {
            request: RequestId::parse(request).ok()?,
            wanted,
            sealed: parts.sealer.holds(&click.value),
        });
    }
    let name = click.name.as_deref()?;
    let is_empty = click.value.is_null()
        || click
            .value
            .as_object()
            .is_some_and(serde_json::Map::is_empty);
    let action = Action::ALL.into_iter().find(|a| a.button() == name)?;
    let request = parts.courier.request_of(click.message.as_ref()?)?;
    is_empty.then_some(Tap {
        request,
        wanted: Wanted::Permission(action),
        sealed: true,
    })
}

async fn stranger(parts: &Parts, click: &Click, tap: &Tap) -> Shown {
    let id = click.by.id().map(|id| id.to_string());
    let who = id.as_deref().unwrap_or("unknown");
    warn!(request = %tap.request, "refused a tap of somebody who is not an approver");
    journal::refused(
        parts,
        "not_an_approver",
        Some(&tap.request),
        id.as_deref(),
        click.head.event_id.as_ref(),
    )
    .await;
    if parts.strangers.refused(who, parts.now()) {
        let text = crate::wording::repeated_stranger(who);
        let content = Content::Text(text.get(parts.config.lang).to_owned());
        let uuid = format!("stranger-{}", parts.now());
        courier::tell(parts, content, &uuid).await;
    }
    Toast::NotAnApprover.into()
}

/// A sealed value lifted onto another card must not decide: the click has to
/// come from the message this request's card is.
fn names_its_card(parts: &Parts, click: &Click, id: &RequestId) -> bool {
    let Some(message) = &click.message else {
        return false;
    };
    if let Some(known) = parts.courier.message_of(id) {
        return known == *message;
    }
    parts.courier.adopt(id, message);
    true
}

/// The choice as the desk takes it, if the card offered it.
fn wanted(request: &Request, action: Action, click: &Click) -> Result<Choice, Toast> {
    let offer = rules::offer(request);
    let offered = cards::permission::choices(request, &offer).contains(&action);
    let not_offered = if action == Action::Always {
        Toast::AlwaysNotOffered
    } else {
        Toast::NotOffered
    };
    let reason = || {
        let text = click.form.get(REASON_FIELD).and_then(Value::as_str);
        text.map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let deny = |interrupt| Choice::Deny {
        reason: reason(),
        interrupt,
    };
    match action {
        Action::Deny => Ok(deny(false)),
        Action::Interrupt => Ok(deny(true)),
        _ if !offered => Err(not_offered),
        Action::Allow => Ok(Choice::Allow(Reach::Once)),
        Action::Session => offer
            .session
            .map(|rules| Choice::Allow(Reach::Session(rules)))
            .map_err(|_| Toast::NotOffered),
        Action::Always => offer
            .always
            .map(|rules| {
                Choice::Allow(Reach::Always {
                    rules,
                    undone: false,
                })
            })
            .map_err(|_| Toast::AlwaysNotOffered),
        Action::Undo => Err(Toast::Invalid),
    }
}

/// The answer a tap or a form gives, or what is wrong with it.
fn answered(
    ask: &questions::Ask,
    button: Option<questions::Tap>,
    click: &Click,
) -> Result<Choice, Toast> {
    let reply = match button {
        Some(tap) if click.form.is_empty() => Reply::Tap(tap),
        button => Reply::Form {
            button,
            fields: questions::Fields::from_json(&click.form),
        },
    };
    answer_by(ask, &reply)
}

/// The same for any reply, also one typed into the chat.
pub(super) fn answer_by(ask: &questions::Ask, reply: &Reply) -> Result<Choice, Toast> {
    let outcome = ask.read(reply).map_err(Toast::BadAnswer)?;
    Ok(match ask.decided(&outcome) {
        questions::Decided::Answers(words) => Choice::Answer(words),
        questions::Decided::Refused(reason) => Choice::Deny {
            reason,
            interrupt: false,
        },
    })
}

/// Decides without a card's button: by a page of this machine, or for a
/// callback service that knows only ids. Takes the same way as a click.
pub(super) async fn decide(
    parts: &Parts,
    id: &RequestId,
    action: Action,
    by: Operator,
    reason: Option<String>,
    event: Option<EventId>,
) -> Shown {
    let reason = reason.map(|text| (REASON_FIELD.to_owned(), Value::String(text)));
    let click = Click {
        head: Head {
            event_id: event,
            ..Head::default()
        },
        form: reason.into_iter().collect(),
        ..no_click()
    };
    let Some(request) = parts.desk.find(id) else {
        return past(parts, &click, &known(id, action), parts.now()).await;
    };
    if questions::of(&request.tool, &request.input).is_some() {
        return Toast::NotOffered.into();
    }
    let choice = match wanted(&request, action, &click) {
        Ok(choice) => choice,
        Err(toast) => return toast.into(),
    };
    decided(parts, &click, id, choice, by).await
}

/// What became of a request; changes nothing. `None` while it waits.
pub(super) async fn became(parts: &Parts, id: &RequestId) -> Option<Shown> {
    if parts.desk.find(id).is_some() {
        return None;
    }
    let tap = known(id, Action::Deny);
    Some(past(parts, &no_click(), &tap, parts.now()).await)
}

fn known(id: &RequestId, action: Action) -> Tap {
    Tap {
        request: id.clone(),
        wanted: Wanted::Permission(action),
        sealed: true,
    }
}

fn no_click() -> Click {
    Click {
        head: Head::default(),
        by: Person::default(),
        value: Value::Null,
        name: None,
        form: serde_json::Map::new(),
        message: None,
        chat: None,
        host: None,
        delivery_type: None,
    }
}

/// A tap on a card whose request is over. One that nod made learns the truth,
/// also after a restart, and gets the true card; a button nod did not make
/// learns only how it ended, while the desk still knows.
async fn past(parts: &Parts, click: &Click, tap: &Tap, now: Millis) -> Shown {
    if !tap.sealed {
        return match parts.desk.past(&tap.request) {
            Some(past) => late(&past.ending, now - past.at).into(),
            None => Toast::Unknown.into(),
        };
    }
    Box::pin(remembered(parts, click, tap, now)).await
}

async fn remembered(parts: &Parts, click: &Click, tap: &Tap, now: Millis) -> Shown {
    if let Some(answer) = journal::answer(parts, click.head.event_id.as_ref()).await {
        return Shown::Again(answer);
    }
    if let Some(past) = parts.desk.past(&tap.request) {
        let toast = late(&past.ending, now - past.at);
        return true_face(parts, click, &tap.request, toast);
    }
    match journal::remembered(parts, &tap.request).await {
        Some(it) => {
            let toast = late(&it.ending, now - it.at);
            true_face(parts, click, &tap.request, toast)
        }
        None => Toast::Unknown.into(),
    }
}
