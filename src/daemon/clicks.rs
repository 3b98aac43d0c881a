//! A tap on a card: who tapped, whether the button is ours, what became of it.
//! Claim first; then the record; then the hook; then the toast.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tracing::{info, warn};

use super::courier::{self, AFTER_REPLY};
use super::dispatch::bare;
use super::journal::{self, CardEdit};
use super::parts::Parts;
use super::{undo, verdict};
use crate::approvals::action::Action as Choice;
use crate::approvals::desk::{Claim, Delivery};
use crate::approvals::request::{Ending, Millis, Operator, Reach, Request};
use crate::approvals::{Refusal, Settled, record};
use crate::cards::{self, Action, REASON_FIELD};
use crate::feishu::event::Click;
use crate::feishu::messages::Content;
use crate::ids::RequestId;
use crate::rules;
use crate::sessions::questions::{self, Reply};
use crate::wording::{Toast, toast_json};

/// The action of every button on a question's card.
pub(super) const ANSWER: &str = "answer";

/// A hook that lost the daemon is back within this, or the tap is refused.
const COMEBACK: Duration = Duration::from_millis(1_800);

/// What the person sees at once.
pub(super) enum Shown {
    Toast(Toast),
    /// A toast, and the card's true face.
    WithCard(Toast, Value),
    /// As the above, and it was this tap that made it so.
    Effect(Toast, Value),
    /// What was answered when this very event came before.
    Again(Vec<u8>),
}

impl From<Toast> for Shown {
    fn from(toast: Toast) -> Self {
        Self::Toast(toast)
    }
}

pub(super) async fn answer(parts: &Parts, click: Click) -> Vec<u8> {
    let Some(event) = click.head.event_id.clone() else {
        return work_out(parts, &click).await;
    };
    let slot = parts.recent.slot(&event, parts.now());
    slot.get_or_init(|| work_out(parts, &click)).await.clone()
}

async fn work_out(parts: &Parts, click: &Click) -> Vec<u8> {
    let lang = parts.config.lang;
    let with_card = |toast: &Toast, card: Value| {
        json!({
            "toast": toast_json(toast, lang),
            "card": {"type": "raw", "data": card},
        })
        .to_string()
        .into_bytes()
    };
    let since = Instant::now();
    let shown = judge(parts, click, since).await;
    parts.figures.reply.note(since.elapsed());
    match shown {
        Shown::Toast(toast) => bare(&toast, lang),
        Shown::WithCard(toast, card) => with_card(&toast, card),
        Shown::Effect(toast, card) => {
            let answer = with_card(&toast, card);
            journal::answered(parts, click.head.event_id.as_ref(), &answer).await;
            answer
        }
        Shown::Again(answer) => answer,
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
}

async fn judge(parts: &Parts, click: &Click, since: Instant) -> Shown {
    if !is_ours(parts, click) {
        return Toast::Invalid.into();
    }
    let Some(tap) = read(parts, click) else {
        return Toast::Invalid.into();
    };
    let operator = parts.approver(&click.by);
    let operator = operator.or_else(|| parts.addressee(&tap.request, &click.by));
    let Some(operator) = operator else {
        return stranger(parts, click, &tap).await;
    };
    if let Some(machine) = other_machine(parts, &click.value) {
        return Toast::OtherMachine { machine }.into();
    }
    let now = parts.now();
    if let Some(created) = click.head.created_ms
        && parts.freshness.is_stale(created, now)
    {
        return Toast::Stale.into();
    }
    if tap.wanted == Wanted::Permission(Action::Undo) {
        return undo::undo(parts, &tap.request, tap.sealed, &operator).await;
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
        (Some(_), Wanted::Permission(_)) | (None, Wanted::Answer(_)) => Err(Toast::Invalid),
    };
    let action = match chosen {
        Ok(action) => action,
        Err(toast) => return toast.into(),
    };
    match claim(parts, &tap.request, action, operator).await {
        Ok(claim) => carry_out(parts, click, claim, since).await,
        Err(toast) => true_face(parts, click, &tap.request, toast),
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

fn other_machine(parts: &Parts, value: &Value) -> Option<String> {
    let machine = value.get("machine")?.as_str()?;
    if machine == parts.machine.id.as_str() || !parts.sealer.holds(value) {
        return None;
    }
    let name = value.get("machine_name").and_then(Value::as_str);
    Some(name.unwrap_or(machine).to_owned())
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

/// One compare-and-set decides who wins. The one door for taps and replies, so
/// the lock is here: an answer to a question or a plan lets work go on as much
/// as an allow does, and only a refusal passes.
pub(super) async fn claim(
    parts: &Parts,
    id: &RequestId,
    action: Choice,
    operator: Operator,
) -> Result<Claim, Toast> {
    if parts.lock.is_closed() && !matches!(action, Choice::Deny { .. }) {
        return Err(Toast::Locked);
    }
    let first = parts.desk.claim(id, action.clone(), operator.clone());
    let refusal = match first {
        Ok(claim) => return Ok(claim),
        Err(Refusal::Reconnecting) => {
            if !parts.desk.wait_attached(id, COMEBACK).await {
                return Err(Toast::Reconnecting);
            }
            match parts.desk.claim(id, action, operator) {
                Ok(claim) => return Ok(claim),
                Err(refusal) => refusal,
            }
        }
        Err(refusal) => refusal,
    };
    Err(match refusal {
        Refusal::Unknown => Toast::Unknown,
        Refusal::Reconnecting => Toast::Reconnecting,
        Refusal::Settled { ending, at, .. } => late(&ending, parts.now() - at),
    })
}

/// The claim is ours: write it down, tell the hook, leave the rule.
async fn carry_out(parts: &Parts, click: &Click, claim: Claim, since: Instant) -> Shown {
    let settled = claim.settled().clone();
    let (delivery, card) = settle(parts, claim, click.head.event_id.clone(), AFTER_REPLY).await;
    if delivery == Delivery::Confirmed {
        parts.figures.hook.note(since.elapsed());
    }
    let toast = match delivery {
        Delivery::Lost => Toast::HookGone,
        Delivery::Unconfirmed => Toast::StillChecking,
        Delivery::Confirmed | Delivery::Written => after_delivery(parts, &settled, delivery).await,
    };
    Shown::Effect(toast, card)
}

/// Records a won claim, hands the answer over and queues the card's edit.
pub(super) async fn settle(
    parts: &Parts,
    claim: Claim,
    event: Option<crate::ids::EventId>,
    wait: Duration,
) -> (Delivery, Value) {
    let settled = claim.settled().clone();
    let card = courier::ended_card(parts, &settled, Delivery::Confirmed);
    let message = courier::take_down(parts, &settled, &card);
    let edit = message.map(|message| CardEdit {
        message,
        card: card.clone(),
    });
    let version = match journal::settle(parts, &settled, event, edit.as_ref()).await {
        Ok(version) => version,
        Err(why) => {
            warn!("a decision was recorded before: {why}");
            None
        }
    };
    let request = &settled.request;
    let extras = verdict::extras(&settled.ending, &request.tool, &request.input);
    let delivery = claim.deliver(extras).await;
    info!(
        request = %settled.request.id,
        decision = record::kind(&settled.ending),
        ?delivery,
        "decided"
    );
    let card = match delivery {
        Delivery::Confirmed | Delivery::Written => card,
        Delivery::Unconfirmed | Delivery::Lost => {
            parts.courier.decide(settled.clone(), delivery);
            courier::ended_card(parts, &settled, delivery)
        }
    };
    if let Some(edit) = edit {
        parts
            .courier
            .edit(edit.message, card.clone(), version, wait);
    }
    (delivery, card)
}

async fn after_delivery(parts: &Parts, settled: &Settled, delivery: Delivery) -> Toast {
    match &settled.ending {
        Ending::Allowed { by, reach } => match reach {
            Reach::Once => Toast::Allowed,
            Reach::Session(_) => Toast::AllowedForSession,
            Reach::Always { rules, .. } => {
                let left = verdict::leave_rules(parts, &settled.request, by, rules, delivery).await;
                match left {
                    Ok(()) => Toast::AllowedAlways,
                    Err(why) => Toast::RuleNotSaved { why },
                }
            }
        },
        Ending::Answered { .. } => Toast::Answered,
        Ending::Denied {
            interrupt: true, ..
        } => Toast::Interrupted,
        Ending::Denied { .. } => {
            let request = &settled.request;
            match questions::of(&request.tool, &request.input) {
                Some(_) => Toast::AnswerRefused,
                None => Toast::Denied,
            }
        }
        Ending::Terminal { .. }
        | Ending::TimedOut
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Undeliverable
        | Ending::Dropped { .. } => Toast::HookGone,
    }
}

/// A tap on a card whose request is over. A button nod did not make learns
/// nothing; one that nod made learns the truth, also after a restart.
async fn past(parts: &Parts, click: &Click, tap: &Tap, now: Millis) -> Shown {
    if !tap.sealed {
        return match parts.desk.past(&tap.request) {
            Some(past) => late(&past.ending, now - past.at).into(),
            None => Toast::Unknown.into(),
        };
    }
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

fn late(ending: &Ending, ago: Millis) -> Toast {
    match ending {
        Ending::Allowed { .. } | Ending::Denied { .. } | Ending::Answered { .. } => {
            Toast::AlreadyHandled
        }
        Ending::Terminal { allowed } => Toast::SettledInTerminal {
            allowed: *allowed,
            ago,
        },
        Ending::TimedOut => Toast::TimedOut { ago },
        Ending::Dropped { .. } => Toast::Expired,
        Ending::HookGone | Ending::Orphaned | Ending::Undeliverable => Toast::HookGone,
    }
}
