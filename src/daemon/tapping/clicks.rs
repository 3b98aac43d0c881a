//! A tap on a card: who tapped, whether the button is ours and on which
//! machine its request lives, and what the person sees.

mod past;
mod steered;

use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use tracing::warn;

use self::past::{past, remembered};
use self::steered::steered;
use crate::approvals::choice::Choice;
use crate::approvals::outcome::{Outcome, Refusal};
use crate::approvals::request::{Operator, Posed, Reach, Request};
use crate::cards::whole::WentOut;
use crate::cards::{self, Action, REASON_FIELD, choice};
use crate::daemon::asking::flood;
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::cards::sure;
use crate::daemon::deciding::answers::{answered, readable};
use crate::daemon::deciding::decision::{Decider, Right, carry_out, claim};
use crate::daemon::deciding::ruling::Ruling;
use crate::daemon::deciding::undo;
use crate::daemon::known::answered::Recent;
use crate::daemon::known::buttons::{self, ANSWER, DENY_ALL, OPEN, PICK, STOP, WHOLE};
use crate::daemon::known::freshness::Freshness;
use crate::daemon::known::people::{self, People};
use crate::daemon::known::{journal, offers};
use crate::daemon::machines::gate::{self, Gate};
use crate::daemon::talking::chat::Chat;
use crate::feishu::event::Click;
use crate::feishu::messages::Content;
use crate::gateway::call::CallAnswer;
use crate::gateway::route::{ClickRoute, ThisMachine, route};
use crate::gateway::seal::Sealed;
use crate::ids::RequestId;
use crate::sessions::questions;

/// What a tap is judged by, and what it can set going.
pub(crate) struct Taps {
    pub(crate) cards: Arc<Cards>,
    pub(crate) people: Arc<People>,
    pub(crate) decider: Arc<Decider>,
    pub(crate) chat: Arc<Chat>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) recent: Recent,
    pub(crate) freshness: Freshness,
    pub(crate) app_id: String,
}

impl Taps {
    /// What this machine is to the others.
    fn here(&self) -> ThisMachine<'_> {
        let callback = &self.cards.config.callback;
        ThisMachine {
            machine: &self.cards.buttons.machine.id,
            url: callback.url.as_ref(),
            peers: &callback.peers,
            allow_unsealed: callback.allow_unsealed,
        }
    }
}

pub(crate) async fn answer(taps: &Arc<Taps>, click: Click) -> Vec<u8> {
    if let Some(message) = &click.message {
        taps.cards.courier.tapped(message);
    }
    let Some(event) = click.head.event_id.clone() else {
        return work_out(taps, &click).await;
    };
    let slot = taps.recent.slot(&event, taps.cards.now());
    slot.get_or_init(|| work_out(taps, &click)).await.clone()
}

async fn work_out(taps: &Arc<Taps>, click: &Click) -> Vec<u8> {
    let since = Instant::now();
    let ruling = judge(taps, click).await;
    taps.decider.figures.reply.note(since.elapsed());
    ruling.reply(&taps.cards, click)
}

/// What a button says.
struct ButtonTap {
    request: RequestId,
    wanted: TapMeaning,
    /// There where one of ours made the button.
    proof: Option<Sealed>,
    /// Its card came after the whole input, by its seal.
    whole: bool,
}

impl ButtonTap {
    /// Whose value is lost: the card it stands on is ours.
    fn by_our_card(request: RequestId, wanted: TapMeaning) -> Self {
        Self {
            proof: Some(Sealed::by_our_card(&request)),
            request,
            wanted,
            whole: false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TapMeaning {
    Permission(Action),
    /// A question's button; a form's submit names none.
    Answer(Option<questions::QuestionTap>),
    /// The task of this session is to stop.
    Stop(i64),
    /// What the words of the message that the request names are for.
    Pick(usize),
    /// A list of gathered requests, or one on it.
    Gathered(flood::FloodTap),
}

/// What takes long, or seldom happens, is made on the heap when it happens:
/// every tap carries the room for all it might have to wait for.
async fn judge(taps: &Arc<Taps>, click: &Click) -> Ruling {
    if !is_ours(taps, click) {
        return Refusal::Invalid.into();
    }
    let Some(tap) = read(taps, click).await else {
        return Refusal::Invalid.into();
    };
    match route(&click.value, tap.proof, taps.here()) {
        ClickRoute::Ours => judge_here(taps, click, tap).await,
        ClickRoute::Forward { .. } if is_stale(taps, click) => Refusal::Stale.into(),
        ClickRoute::Forward { to, proof } => {
            if proof.is_none()
                && let Some(refused) = Box::pin(refused_unsealed(taps, click, &tap)).await
            {
                return refused;
            }
            Box::pin(gate::forward(&taps.gate, click, &tap.request, to, proof)).await
        }
        ClickRoute::Elsewhere { machine } => Outcome::Elsewhere { machine }.into(),
        ClickRoute::Invalid => Refusal::Invalid.into(),
    }
}

/// A service that is not nod hears neither who tapped nor of a lock here, so
/// both are judged before it is called.
async fn refused_unsealed(taps: &Taps, click: &Click, tap: &ButtonTap) -> Option<Ruling> {
    if taps.people.approver(&click.by).is_none() {
        return Some(stranger(taps, click, tap).await);
    }
    let refuses = matches!(
        tap.wanted,
        TapMeaning::Permission(Action::Deny | Action::DenyWith | Action::Interrupt)
    );
    let locked = taps.cards.lock.refusal().filter(|_| !refuses)?;
    Some(locked.into())
}

/// A click another machine of ours received for a request of this one.
pub(crate) async fn judge_forwarded(taps: &Arc<Taps>, click: &Click) -> CallAnswer {
    let ruling = match read(taps, click).await {
        Some(tap) => judge_here(taps, click, tap).await,
        None => Refusal::Invalid.into(),
    };
    ruling.answer(&taps.cards, click)
}

fn is_stale(taps: &Taps, click: &Click) -> bool {
    let ahead = taps.gate.their_clock.ahead();
    let is_stale = |created| taps.freshness.is_stale(created, taps.cards.now(), ahead);
    click.head.created_ms.is_some_and(is_stale)
}

async fn judge_here(taps: &Arc<Taps>, click: &Click, tap: ButtonTap) -> Ruling {
    if let (Some(named), Some(_)) = (&click.message, tap.proof) {
        taps.cards.courier.tapped_on(&tap.request, named);
    }
    if matches!(tap.wanted, TapMeaning::Stop(_) | TapMeaning::Pick(_)) {
        return Box::pin(steered(taps, click, &tap)).await;
    }
    let operator = taps.people.approver(&click.by);
    let operator =
        operator.or_else(|| people::addressee(&*taps.cards.desk.find(&tap.request)?, &click.by));
    let Some(operator) = operator else {
        return Box::pin(stranger(taps, click, &tap)).await;
    };
    if is_stale(taps, click) {
        return Refusal::Stale.into();
    }
    match (tap.wanted, tap.proof) {
        (TapMeaning::Gathered(wanted), Some(proof)) => {
            return flood::tapped(&taps.decider, click, &tap.request, wanted, operator, proof);
        }
        (TapMeaning::Permission(Action::Undo), Some(proof)) => {
            let (id, message) = (&tap.request, click.message.as_ref());
            return Box::pin(undo::undo(&taps.cards, id, proof, &operator, message)).await;
        }
        (TapMeaning::Gathered(_) | TapMeaning::Permission(Action::Undo), None) => {
            return Refusal::Invalid.into();
        }
        _ => {}
    }
    let Some(request) = taps.cards.desk.find(&tap.request) else {
        return past(taps, click, &tap).await;
    };
    let Some(proof) = tap.proof else {
        log_refused(
            &taps.cards.journal,
            &tap.request,
            "refused a button that nod did not make",
        );
        return Refusal::Invalid.into();
    };
    if buttons::is_sure(&click.value) && !asked_here(taps, click, &tap.request).await {
        return Refusal::AskAnew.into();
    }
    match names_its_card(taps, click, &tap.request).await {
        Some(true) => {}
        Some(false) => {
            log_refused(
                &taps.cards.journal,
                &tap.request,
                "refused a button on a card it was not made for",
            );
            return Refusal::Invalid.into();
        }
        None => {
            log_refused(
                &taps.cards.journal,
                &tap.request,
                "refused a button while its card has no name",
            );
            return Refusal::Nameless.into();
        }
    }
    let right = Right::Sealed(proof);
    let went_out = if tap.whole {
        WentOut::Whole
    } else {
        taps.cards.courier.went_out(&tap.request)
    };
    let chosen = match (request.question(), tap.wanted) {
        (Some(Posed { ask, .. }), TapMeaning::Answer(button)) => answered(ask, button, click)
            .and_then(|choice| readable(&request, ask, choice, went_out)),
        // A card without the question's words still takes a refusal.
        (
            _,
            TapMeaning::Permission(action @ (Action::Deny | Action::DenyWith | Action::Interrupt)),
        )
        | (None, TapMeaning::Permission(action)) => {
            Box::pin(wanted(&request, action, click, went_out)).await
        }
        (Some(_), TapMeaning::Permission(_))
        | (None, TapMeaning::Answer(_))
        | (_, TapMeaning::Stop(_) | TapMeaning::Pick(_) | TapMeaning::Gathered(_)) => {
            Err(Refusal::Invalid)
        }
    };
    let action = match chosen {
        Ok(action) => action,
        Err(why) => return why.into(),
    };
    if buttons::asks(&click.value) {
        return sure::ask(&taps.cards, click, request, went_out).into();
    }
    Box::pin(decided(taps, click, &tap.request, action, operator, right)).await
}

async fn decided(
    taps: &Taps,
    click: &Click,
    id: &RequestId,
    action: Choice,
    by: Operator,
    right: Right,
) -> Ruling {
    match claim(&taps.decider, id, action, by, right).await {
        Ok(claim) => carry_out(&taps.decider, click, claim).await,
        Err(why) => true_face(taps, click, id, why),
    }
}

/// A refusal with the card as it should be, where that is known: the edit that
/// should have made it so may have failed, or came while this tap was under
/// way, and Feishu takes such an edit back.
fn true_face(taps: &Taps, click: &Click, id: &RequestId, why: Refusal) -> Ruling {
    let edited = || taps.cards.courier.face(click.message.as_ref()?);
    let card = courier::decided_card(&taps.cards, id).or_else(edited);
    Ruling::with(why.into(), card.map(Into::into))
}

/// Only a card in a chat of this app counts, also pinned on top of it; not a
/// preview or a copy.
fn is_ours(taps: &Taps, click: &Click) -> bool {
    let hosts = ["im_message", "im_top_notice"];
    let host = click.host.as_deref();
    let in_chat = host.is_none_or(|host| hosts.contains(&host));
    click.head.is_of(&taps.app_id) && in_chat && click.delivery_type.is_none()
}

/// Reads the button's value, or finds it by the card and the button's name for
/// clients that drop the value of a form's button.
async fn read(taps: &Taps, click: &Click) -> Option<ButtonTap> {
    let text = |field: &str| click.value.get(field)?.as_str();
    if let (Some(action), Some(request)) = (text("action"), text("request_id")) {
        let wanted = match action {
            ANSWER => TapMeaning::Answer(text("tap").and_then(questions::QuestionTap::parse)),
            STOP => TapMeaning::Stop(click.value.get("session")?.as_i64()?),
            PICK => {
                let number = click.value.get("pick")?.as_u64()?;
                TapMeaning::Pick(usize::try_from(number).ok()?)
            }
            OPEN => TapMeaning::Gathered(flood::FloodTap::Open),
            DENY_ALL => TapMeaning::Gathered(flood::FloodTap::DenyAll),
            other => TapMeaning::Permission(Action::parse(other)?),
        };
        let proof = taps.cards.buttons.proof(&click.value);
        return Some(ButtonTap {
            request: RequestId::parse(request).ok()?,
            wanted,
            proof,
            whole: proof.is_some() && click.value.get(WHOLE) == Some(&Value::Bool(true)),
        });
    }
    let name = click.name.as_deref()?;
    let fields = click.value.as_object();
    let is_empty = click.value.is_null() || fields.is_some_and(serde_json::Map::is_empty);
    if let (true, Some(number), Some(message)) =
        (is_empty, choice::number_of(name), click.message.as_ref())
    {
        let request = taps.chat.drafts.shown_by(message)?;
        return Some(ButtonTap::by_our_card(request, TapMeaning::Pick(number)));
    }
    let permission = Action::ALL.into_iter().find(|a| a.button() == name);
    let wanted = match permission {
        Some(action) => TapMeaning::Permission(action),
        None if name == questions::SUBMIT => TapMeaning::Answer(None),
        None => TapMeaning::Answer(Some(questions::submitted_by(name)?)),
    };
    if !is_empty {
        return None;
    }
    let soon = taps.cards.courier.request_soon(click.message.as_ref()?);
    let request = Box::pin(soon).await?;
    Some(ButtonTap::by_our_card(request, wanted))
}

/// One line of the log for a refused tap, and not for each of very many.
fn log_refused(journal: &journal::Journal, request: &RequestId, why: &str) {
    if let Some(left_out) = journal.refused.may_log(journal.now()) {
        warn!(%request, left_out, "{why}");
    }
}

async fn stranger(taps: &Taps, click: &Click, tap: &ButtonTap) -> Ruling {
    let id = click.by.id().map(|id| id.to_string());
    let who = id.as_deref().unwrap_or("unknown");
    log_refused(
        &taps.cards.journal,
        &tap.request,
        "refused a tap of somebody who is not an approver",
    );
    let ruling = turned_away(taps, click, Some(&tap.request), Refusal::NotAnApprover).await;
    if taps.cards.journal.refused.refused(who, taps.cards.now()) {
        let text = crate::wording::repeated_stranger(who);
        let content = Content::Text(text.get(taps.cards.config.lang).to_owned());
        let uuid = format!("stranger-{}", taps.cards.now());
        courier::tell(&taps.cards, content, &uuid).await;
    }
    ruling
}

/// Writes down that somebody tried what is not theirs to do.
async fn turned_away(
    taps: &Taps,
    click: &Click,
    request: Option<&RequestId>,
    why: Refusal,
) -> Ruling {
    let (who, event) = (click.by.id(), click.head.event_id.as_ref());
    journal::turned_away(&taps.cards.journal, &why, request, who.as_ref(), event).await;
    why.into()
}

/// A sealed value lifted onto another card must not decide: the click has to
/// come from the message this request's card is. `None` in a team while nobody
/// but the click says which that is: a bus may keep Feishu's answer back, and
/// other machines send cards too.
async fn names_its_card(taps: &Taps, click: &Click, id: &RequestId) -> Option<bool> {
    let (Some(message), courier) = (&click.message, &taps.cards.courier) else {
        return Some(false);
    };
    if taps.chat.in_team {
        return Box::pin(courier.is_card_of(id, message)).await;
    }
    Some(match courier.message_of(id) {
        Some(known) => known == *message || Box::pin(courier.asks_about(id, message)).await,
        None => courier.adopt(id, message),
    })
}

/// Whether the card that was tapped is one that asked in this run.
async fn asked_here(taps: &Taps, click: &Click, id: &RequestId) -> bool {
    match &click.message {
        Some(message) => Box::pin(taps.cards.courier.asks_about(id, message)).await,
        None => false,
    }
}

/// The choice as the desk takes it, if it may still be offered: what the card
/// said of a file is looked at again.
async fn wanted(
    request: &Request,
    action: Action,
    click: &Click,
    went_out: WentOut,
) -> Result<Choice, Refusal> {
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
        Action::Deny | Action::DenyWith => return Ok(deny(false)),
        Action::Interrupt => return Ok(deny(true)),
        Action::Undo => return Err(Refusal::Invalid),
        Action::Allow | Action::Always | Action::Session | Action::Wider => {}
    }
    let offer = offers::of(request).await;
    let offered = cards::permission::choices(request, &offer, went_out).contains(&action);
    let always = |rules| Reach::Always {
        rules,
        undone: false,
    };
    let reach = match action {
        _ if !offered => None,
        Action::Allow if !offer.turn.is_empty() => Some(Reach::Turn(offer.turn)),
        Action::Allow => Some(Reach::Once),
        Action::Session => offer.session.ok().map(Reach::Session),
        Action::Always => offer.always.ok().map(always),
        Action::Wider => offer.wider.map(always),
        Action::Deny | Action::DenyWith | Action::Interrupt | Action::Undo => None,
    };
    reach.map(Choice::Allow).ok_or(match action {
        Action::Always | Action::Wider | Action::Session => Refusal::NoSafeRule,
        _ => Refusal::NotOffered,
    })
}

/// Where a choice without a card's button comes in.
pub(crate) enum Door {
    /// A page of this machine, by its own link; it shows the request whole. A
    /// denial may come with a reason.
    Page(Sealed, Option<String>),
    /// A service on this machine that knows only ids, where the owner let it.
    Service,
}

/// Decides without a card's button, in the same way as a click.
pub(crate) async fn decide(
    taps: &Taps,
    id: &RequestId,
    action: Action,
    by: Operator,
    door: Door,
) -> Ruling {
    let mut click = Click::default();
    let Some(request) = taps.cards.desk.find(id) else {
        return Box::pin(remembered(taps, &click, id)).await;
    };
    if request.question().is_some() {
        return Refusal::NotOffered.into();
    }
    let (right, went_out) = match door {
        Door::Page(proof, reason) => {
            let reason = reason.map(|text| (REASON_FIELD.to_owned(), Value::String(text)));
            click.form.extend(reason);
            (Right::Sealed(proof), WentOut::Whole)
        }
        Door::Service => (Right::Service, taps.cards.courier.went_out(id)),
    };
    match wanted(&request, action, &click, went_out).await {
        Ok(choice) => decided(taps, &click, id, choice, by, right).await,
        Err(why) => why.into(),
    }
}

/// What became of a request; changes nothing. `None` while it waits.
pub(crate) async fn became(taps: &Taps, id: &RequestId) -> Option<Ruling> {
    if taps.cards.desk.find(id).is_some() {
        return None;
    }
    Some(Box::pin(remembered(taps, &Click::default(), id)).await)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::approvals::outcome::sample;

    async fn chosen(command: &str, action: Action, went_out: WentOut) -> Result<Choice, Refusal> {
        let request = sample::request("Bash", json!({"command": command}));
        let form = json!({REASON_FIELD: "  not now "});
        let click = Click {
            form: form.as_object().cloned().unwrap_or_default(),
            ..Click::default()
        };
        wanted(&request, action, &click, went_out).await
    }

    #[tokio::test]
    async fn only_what_stands_on_the_card_may_be_chosen() {
        let rule = |command| vec![crate::rules::Rule::new("Bash", command)];
        for (command, action, led_to) in [
            ("npm test", Action::Allow, Ok(Reach::Once)),
            (
                "npm test",
                Action::Session,
                Ok(Reach::Session(rule("npm test"))),
            ),
            (
                "npm test",
                Action::Always,
                Ok(Reach::Always {
                    rules: rule("npm test"),
                    undone: false,
                }),
            ),
            (
                "npm test && rm -rf /",
                Action::Always,
                Err(Refusal::NoSafeRule),
            ),
            ("npm test", Action::Undo, Err(Refusal::Invalid)),
        ] {
            let chosen = chosen(command, action, WentOut::Unknown).await;
            assert_eq!(chosen, led_to.map(Choice::Allow), "{command}");
        }
    }

    #[tokio::test]
    async fn what_was_not_sent_whole_may_be_denied_and_nothing_else() {
        for action in [Action::Allow, Action::Always, Action::Session] {
            assert!(chosen("npm test", action, WentOut::NotWhole).await.is_err());
        }
        for (action, interrupt) in [
            (Action::Deny, false),
            (Action::DenyWith, false),
            (Action::Interrupt, true),
        ] {
            let denied = Choice::Deny {
                reason: Some("not now".to_owned()),
                interrupt,
            };
            assert_eq!(
                chosen("npm test", action, WentOut::NotWhole).await,
                Ok(denied)
            );
        }
    }
}
