//! What people tell the gateway itself in private: which machines they have,
//! and that one is to go. Each does so for his own machines, by a card to tap.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::audit::TeamEvent;
use super::forget::{self, Forgotten};
use super::join::{self, Tapped};
use super::roster::{KnownMachine, goes_by, short};
use super::taps::{PushedTap, push};
use super::{Gateway, PROBE_WITHIN};
use crate::bus::accounts::NotRevoked;
use crate::bus::nkey::{KeyKind, PublicKey};
use crate::bus::subjects::{MachinePlace, Owner, ToMachine};
use crate::cards::team::{MAX_ROWS, Mood, Row, TeamButton, draw};
use crate::clock::Millis;
use crate::feishu::event::{Click, Message, MessageBody};
use crate::feishu::link::PushAnswer;
use crate::feishu::messages::Content;
use crate::sessions::command::slash;
use crate::text::escape::{Shape, visible};
use crate::text::{Text, Tone};
use crate::wording::{Toast, ago, reply_json, team as words};

/// How long the buttons of a card count.
const COUNTS_FOR: Millis = 3_600_000;

/// What somebody wants of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GatewayOrder {
    Machines,
    /// By name; without one it is the list.
    Forget(String),
    /// A line that lets a machine ask to be let in.
    Join,
}

impl GatewayOrder {
    /// The order in a message that was written in private.
    pub(super) fn of(message: &Message) -> Option<Self> {
        let MessageBody::Text(text) = &message.body else {
            return None;
        };
        if !message.in_private {
            return None;
        }
        Self::read(text)
    }

    fn read(text: &str) -> Option<Self> {
        let (verb, rest) = slash(text.trim())?;
        let rest = rest.split_whitespace().collect::<Vec<_>>().join(" ");
        match verb.as_str() {
            "machines" => Some(Self::Machines),
            "forget" if rest.is_empty() => Some(Self::Machines),
            "forget" => Some(Self::Forget(rest)),
            "join" => Some(Self::Join),
            _ => None,
        }
    }
}

/// Carries out an order and answers under the message.
pub(super) async fn obey(
    gateway: &Gateway,
    owner: &Owner,
    message: &Message,
    order: GatewayOrder,
) -> PushAnswer {
    let content = match order {
        GatewayOrder::Machines => Content::Card(machines(gateway, owner, None).await),
        GatewayOrder::Forget(name) => Content::Card(machines(gateway, owner, Some(&name)).await),
        GatewayOrder::Join => {
            let line = join::line(gateway, owner);
            let text = words::join_with(line.expose(), join::LINE_FOR / 60);
            Content::Text(text.get(gateway.lang).to_owned())
        }
    };
    say(gateway, message, &content).await
}

async fn say(gateway: &Gateway, message: &Message, content: &Content) -> PushAnswer {
    let Some(id) = &message.id else {
        return PushAnswer::Done;
    };
    // Feishu may repeat the message; it is answered once.
    let uuid = format!("gw-{id}");
    let sent = gateway.messages.reply(id, None, content, false, &uuid);
    if let Err(why) = sent.await {
        warn!("an order was not answered: {why}");
    }
    PushAnswer::Done
}

/// How a machine is at this moment.
enum Being {
    Online { version: String },
    Silent,
    Away,
    Unsure,
}

async fn being(gateway: &Gateway, place: &MachinePlace) -> Being {
    match push(gateway, place, ToMachine::There, None, b"{}", PROBE_WITHIN).await {
        PushedTap::Answered(body) => Being::Online {
            version: version(&body),
        },
        PushedTap::Nobody => Being::Away,
        PushedTap::Unknown => Being::Silent,
        PushedTap::NotSent => Being::Unsure,
    }
}

/// The version that a machine says it has. It writes no line onto the card.
fn version(answer: &[u8]) -> String {
    let said: Value = serde_json::from_slice(answer).unwrap_or_default();
    short(said["version"].as_str().unwrap_or_default())
}

/// The machines of one person, or those that go by a name, each with a button
/// that forgets it.
async fn machines(gateway: &Gateway, owner: &Owner, name: Option<&str>) -> Value {
    let mut all = gateway.roster().of(owner);
    if let Some(name) = name {
        all.retain(|(place, known)| goes_by(name, place, known));
    }
    all.truncate(MAX_ROWS);
    let beings = join_all(all.iter().map(|(place, _)| being(gateway, place))).await;
    let rows = all.iter().zip(beings);
    let rows: Vec<Row> = rows
        .map(|((place, known), being)| row(gateway, place, known, &being, name.is_none()))
        .collect();
    let title = match name {
        None => &words::MACHINES,
        Some(_) => &words::FORGET_TITLE,
    };
    if rows.is_empty() {
        let text = match name {
            None => words::NO_MACHINES.clone(),
            Some(name) => words::no_such_machine(&visible(name, Shape::Name)),
        };
        return said(gateway, title, Mood::Over, text);
    }
    draw(title, Mood::Asks, &rows, gateway.lang)
}

/// A card that says one thing and asks for nothing.
fn said(gateway: &Gateway, title: &Text, mood: Mood, text: Text) -> Value {
    draw(title, mood, &[Row { text, button: None }], gateway.lang)
}

fn row(
    gateway: &Gateway,
    place: &MachinePlace,
    known: &KnownMachine,
    being: &Being,
    sure: bool,
) -> Row {
    let (state, version) = match being {
        Being::Online { version } => (words::ONLINE.clone(), version.as_str()),
        Being::Silent => (words::SILENT.clone(), known.version.as_str()),
        Being::Unsure => (words::UNSURE.clone(), known.version.as_str()),
        Being::Away => {
            let since = (gateway.seconds() - known.seen).max(0) * 1_000;
            (words::offline(&ago(since)), known.version.as_str())
        }
    };
    let mut text = words::machine(&known.name, &state, place.machine.as_str(), version);
    let what = words::forget_what(&known.name);
    if !sure {
        // The whole card is the question.
        text = Text::lines(&[text, what.clone()]);
    }
    let value = gateway.buttons.seal(json!({
        "team": "forget",
        "owner": place.owner.as_str(),
        "key": known.key,
        "name": known.name,
        "until": gateway.their_clock.now() + COUNTS_FOR,
    }));
    Row {
        text,
        button: Some(TeamButton {
            label: words::FORGET.clone(),
            value,
            takes: true,
            sure: sure.then(|| (words::FORGET_SURE.clone(), what)),
        }),
    }
}

/// Whether a button is one of the gateway's own.
pub(super) fn is_own(click: &Click) -> bool {
    click.value.get("team").is_some()
}

/// A tap on one of the gateway's own cards.
pub(super) async fn tapped(gateway: &Arc<Gateway>, click: &Click) -> Vec<u8> {
    let (toast, card) = match judge(gateway, click) {
        Err(toast) => (toast, None),
        Ok(tap) => match tap.what {
            OrderKind::Forget => forgotten(gateway, &tap).await,
            OrderKind::Join => joined(gateway, &tap, true).await,
            OrderKind::Refuse => joined(gateway, &tap, false).await,
        },
    };
    let card = card.map(|card| card.to_string());
    reply_json(&toast, card.as_deref(), gateway.lang)
}

/// A tap that counts.
struct OrderTap {
    what: OrderKind,
    place: MachinePlace,
    key: PublicKey,
    name: String,
    ticket: String,
    until: Millis,
}

enum OrderKind {
    Forget,
    Join,
    Refuse,
}

/// What a tap is for: on one of our cards, still young, and by the machine's
/// own owner.
fn judge(gateway: &Gateway, click: &Click) -> Result<OrderTap, Toast> {
    if !gateway.buttons.holds(&click.value) {
        warn!("refused a button that no gateway of this team made");
        let by = click.by.id().as_ref().and_then(Owner::of);
        let why = "a tap on a button that no gateway of this team made";
        gateway.note(TeamEvent::Refused, by.as_ref(), None, Some(why));
        return Err(Toast::INVALID);
    }
    let text = |field: &str| click.value[field].as_str().unwrap_or_default();
    let owner = Owner::parse(text("owner")).ok_or(Toast::INVALID)?;
    let by = click.by.id().as_ref().and_then(Owner::of);
    if by.as_ref() != Some(&owner) {
        warn!(%owner, "refused a tap of somebody else on the owner's own card");
        let why = "somebody else tapped the owner's own card";
        gateway.note(TeamEvent::Refused, Some(&owner), None, Some(why));
        return Err(Toast::said(Tone::Error, words::NOT_YOURS.clone()));
    }
    let until = click.value["until"].as_i64().unwrap_or_default();
    if until < gateway.their_clock.now() {
        return Err(Toast::said(Tone::Warning, words::ASK_ANEW.clone()));
    }
    let key = PublicKey::parse(text("key"), KeyKind::User).map_err(|_| Toast::INVALID)?;
    Ok(OrderTap {
        what: match text("team") {
            "forget" => OrderKind::Forget,
            "join" => OrderKind::Join,
            "refuse" => OrderKind::Refuse,
            _ => return Err(Toast::INVALID),
        },
        place: MachinePlace::of(owner, &key),
        key,
        name: visible(text("name"), Shape::Name),
        ticket: text("ticket").to_owned(),
        until,
    })
}

async fn joined(gateway: &Arc<Gateway>, tap: &OrderTap, yes: bool) -> (Toast, Option<Value>) {
    let ticket = (tap.ticket.as_str(), tap.until);
    let tapped = join::tapped(gateway, &tap.place, tap.key, ticket, yes).await;
    let (title, text) = match tapped {
        Tapped::Joined => (&words::JOINED_TITLE, words::joined(&tap.name)),
        Tapped::Refused => (&words::KEPT_OUT_TITLE, words::kept_out(&tap.name)),
        Tapped::Used => (&words::JOIN_TITLE, words::LINE_USED.clone()),
    };
    let (tone, mood) = match tapped {
        Tapped::Joined => (Tone::Success, Mood::Done),
        Tapped::Refused => (Tone::Success, Mood::Over),
        Tapped::Used => (Tone::Warning, Mood::Over),
    };
    let card = said(gateway, title, mood, text.clone());
    (Toast::said(tone, text), Some(card))
}

async fn forgotten(gateway: &Arc<Gateway>, tap: &OrderTap) -> (Toast, Option<Value>) {
    let (place, name) = (&tap.place, &tap.name);
    let text = match forget::forget(gateway, place, tap.key).await {
        Ok(Forgotten { cards, cut_off }) => {
            let (gateway, place) = (Arc::clone(gateway), place.clone());
            tokio::spawn(async move { forget::close_cards(&gateway, &place, cards).await });
            if cut_off {
                words::forgotten(name)
            } else {
                words::forgotten_here(name)
            }
        }
        Err(why @ (NotRevoked::Unreached | NotRevoked::Silent)) => {
            info!(%place, "a tap forgot no machine: {why}");
            return (Toast::said(Tone::Error, words::not_forgotten(name)), None);
        }
        Err(why) => {
            warn!(%place, "a tap forgot no machine: {why}");
            return (Toast::said(Tone::Error, words::not_forgotten(name)), None);
        }
    };
    let title = &words::FORGOTTEN_TITLE;
    let card = said(gateway, title, Mood::Done, text.clone());
    (Toast::said(Tone::Success, text), Some(card))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machines_version_is_one_short_line_of_the_card() {
        let said = |text: &str| version(json!({"version": text}).to_string().as_bytes());
        assert_eq!(said("1.2.3"), "1.2.3");
        assert_eq!(
            said("1\r\ndesk: online\u{85}nod 2"),
            "1  desk: online nod 2"
        );
        assert!(said(&"x".repeat(10_000)).len() <= 64);
        assert_eq!(version(b"nonsense"), "");
    }

    #[test]
    fn only_the_gateways_own_words_are_orders() {
        let read = |text| GatewayOrder::read(text);
        assert_eq!(read(" /machines "), Some(GatewayOrder::Machines));
        assert_eq!(read("/forget"), Some(GatewayOrder::Machines));
        assert_eq!(read("/join"), Some(GatewayOrder::Join));
        // As a Chinese keyboard types them.
        assert_eq!(read("／ｊｏｉｎ"), Some(GatewayOrder::Join));
        assert_eq!(read("、machines"), Some(GatewayOrder::Machines));
        let desk = GatewayOrder::Forget("my desk".to_owned());
        assert_eq!(read("/forget my  desk"), Some(desk));
        for other in [
            "",
            "machines",
            "/machine",
            "/lock",
            "forget desk",
            "//machines",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
