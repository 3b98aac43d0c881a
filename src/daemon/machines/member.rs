//! This machine as a member of a team: it holds no app's secret. Gateways bring
//! it taps and messages over the bus and make its calls to Feishu. What they
//! bring is signed and has an end; whatever comes later, as everything does that
//! waited while the machine slept, is dropped.

mod errands;
mod gateways;
mod leave;
mod tickets;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prost::bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use self::gateways::Gateways;
use self::tickets::MessageTickets;
use crate::bus::letter::{self, AnswerHead, Letter, PushHead};
use crate::bus::line::{self, BusHeard, BusLine, BusLineState};
use crate::bus::membership::{Grant, Membership};
use crate::bus::nkey::{KeyKind, KeyPair, PublicKey};
use crate::bus::pass::Pass;
use crate::bus::subjects::{BEACON, GATEWAY_INBOX, MachinePlace, ToMachine, of_owner};
use crate::bus::url::BusUrl;
use crate::clock::Millis;
use crate::config::Config;
use crate::daemon::known::machine;
use crate::daemon::parts::Parts;
use crate::daemon::talking::chat;
use crate::daemon::talking::chat::claim::{MessageClaim, claim};
use crate::daemon::talking::inbox;
use crate::daemon::tapping::dispatch;
use crate::feishu::api::Api;
use crate::feishu::clock::TheirClock;
use crate::feishu::connection::LinkView;
use crate::feishu::event::{self, Message, Push};
use crate::feishu::link::PushAnswer;
use crate::feishu::messages::Content;
use crate::feishu::outbound::Outbound;
use crate::files;
use crate::ids::MessageId;
use crate::store::Store;
use crate::wording::team as words;

/// Two gateways' clocks may differ by the second that Feishu's dates are exact
/// to. A tap that its gateway has just given up is still worth deciding: its
/// card tells.
const SLACK: Millis = 1_500;
const TELL_WITHIN: Duration = Duration::from_secs(20);

/// What the parts of this role share.
pub(crate) struct Member {
    url: BusUrl,
    app_id: String,
    /// Where the pass is kept.
    file: PathBuf,
    place: MachinePlace,
    /// What people call it.
    name: String,
    key: Arc<KeyPair>,
    pass: watch::Sender<String>,
    push: Vec<PublicKey>,
    line: BusLine,
    their_clock: TheirClock,
    /// Whether a gateway has told what time it is.
    knows_time: AtomicBool,
    tickets: MessageTickets,
    gateways: Gateways,
}

impl Member {
    pub(crate) fn new(
        member: Membership,
        config: &Config,
        their_clock: TheirClock,
        store: Store,
    ) -> Arc<Self> {
        let place = member.place().clone();
        Arc::new(Self {
            url: member.url,
            app_id: member.app_id,
            file: config.bus.pass.clone(),
            line: BusLine::new(&place.inbox()),
            place,
            name: machine::name(config),
            key: Arc::new(member.key),
            pass: watch::channel(member.pass_text).0,
            push: member.push,
            tickets: MessageTickets::new(store, their_clock.clone()),
            their_clock,
            knows_time: AtomicBool::new(false),
            gateways: Gateways::default(),
        })
    }

    pub(crate) fn place(&self) -> &MachinePlace {
        &self.place
    }

    /// Feishu's API, by way of the gateways.
    pub(crate) fn api(self: &Arc<Self>) -> Api {
        let member = Arc::clone(self);
        let carry = move |call, limit, most| -> futures::future::BoxFuture<'static, _> {
            let member = Arc::clone(&member);
            Box::pin(async move { errands::carry(&member, call, limit, most).await })
        };
        Api::by_errand(&self.app_id, Arc::new(carry))
    }

    /// How the bus stands, for `status`.
    pub(crate) fn report(&self) -> Value {
        let pass = Pass::read(&self.pass());
        let (server, refused) = match &*self.line.state().borrow() {
            BusLineState::Up { server, .. } => (Some(server.clone()), false),
            state => (None, state.refuses_pass()),
        };
        let (gateways, up) = self.gateways.count(self.their_clock.now());
        json!({
            "url": self.url.to_string(),
            "gateways": gateways,
            "gateways_up": up,
            "owner": self.place.owner.as_str(),
            "pass_until": pass.ok().map(|pass| pass.until),
            "pass_refused": refused,
            "server": server,
            "answers_us": self.gateways.answered_in().map(|took| took.as_micros()),
        })
    }

    /// Takes a newer pass for the same key and owner, and keeps it.
    async fn renew(&self, text: String) {
        let Ok(pass) = Pass::read(&text) else {
            return;
        };
        let older = Pass::read(&self.pass()).map_or(0, |pass| pass.until);
        if pass.key != self.key.public() || pass.place != self.place || pass.until <= older {
            warn!("refused a pass that is not this machine's, or no newer one");
            return;
        }
        let grant = Grant {
            url: self.url.to_string(),
            pass: text.clone(),
            push: self.push.iter().map(ToString::to_string).collect(),
            app_id: self.app_id.clone(),
        };
        let key = KeyPair::parse(self.key.seed().expose(), KeyKind::User);
        let kept = key.ok().and_then(|key| Membership::of(&grant, key).ok());
        self.pass.send_replace(text);
        let (Some(kept), file) = (kept, self.file.clone()) else {
            return;
        };
        let written = tokio::task::spawn_blocking(move || {
            files::replace_private(&file, kept.text().expose().as_bytes())
        });
        match written.await {
            Ok(Ok(())) => info!("this machine's pass was renewed"),
            Ok(Err(why)) => warn!("the renewed pass was not kept: {why}"),
            Err(why) => warn!("the renewed pass was not kept: {why}"),
        }
    }

    /// Takes the pass that `nod join` has left since, if it is for the same
    /// team; another team's is for the next start.
    async fn reread(&self) {
        let file = self.file.clone();
        let read = tokio::task::spawn_blocking(move || files::read(&file));
        let text = read.await.ok().and_then(Result::ok).flatten();
        let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
        let Ok(kept) = Membership::parse(&text) else {
            return;
        };
        let same = *kept.place() == self.place && kept.push == self.push;
        if same && kept.url == self.url && kept.pass_text != self.pass() {
            info!("this machine has a new pass");
            self.pass.send_replace(kept.pass_text);
        }
    }

    /// What this machine says of itself to its gateways.
    fn here(&self) -> Vec<u8> {
        let here = json!({"name": self.name, "version": crate::version::BUILD});
        here.to_string().into_bytes()
    }

    /// The body of a letter that a gateway signed about `about`.
    fn by_gateway<'a>(&self, letter: &Letter<'a>, about: &str) -> Option<&'a [u8]> {
        self.push.iter().find_map(|key| letter.open(key, about))
    }

    fn pass(&self) -> String {
        self.pass.borrow().clone()
    }
}

/// Holds the line until `stop`.
pub(crate) async fn run(
    parts: Arc<Parts>,
    member: Arc<Member>,
    outbound: Outbound,
    view: watch::Sender<LinkView>,
    stop: CancellationToken,
) {
    let place = &member.place;
    let alone = |subject: String| (subject, None);
    let membership = line::BusUser {
        url: member.url.clone(),
        key: Arc::clone(&member.key),
        pass: member.pass.subscribe(),
        inbox: place.inbox(),
        hears: vec![
            alone(place.hears(ToMachine::Tap)),
            alone(place.hears(ToMachine::Take)),
            alone(place.hears(ToMachine::There)),
            alone(place.hears(ToMachine::Leave)),
            alone(of_owner(&place.owner)),
            alone(BEACON.to_owned()),
        ],
    };
    let (heard, clock) = (Arc::clone(&member), parts.clock);
    let hearing = line::run(
        member.line.clone(),
        membership,
        outbound,
        clock,
        move |message| hear(Arc::clone(&parts), Arc::clone(&heard), message),
        stop.clone(),
    );
    let watching = gateways::watch(&member, &view, &stop);
    tokio::join!(hearing, watching);
}

async fn hear(parts: Arc<Parts>, member: Arc<Member>, message: BusHeard) {
    let Some(letter) = Letter::read(&message.body) else {
        return;
    };
    let Some(body) = member.by_gateway(&letter, &message.subject) else {
        warn!("refused what no gateway of this team signed");
        return;
    };
    let Some(head) = letter.claims::<PushHead>() else {
        return;
    };
    if message.subject == BEACON {
        let now = member.their_clock.now();
        member.gateways.beacon(&head, body, now);
        return;
    }
    let body = message.body.slice_ref(body);
    if is_late(&member, &head) {
        warn!("dropped what came after its time");
        tell_of_late(parts, &member, &message.subject, body, head.ticket).await;
        return;
    }
    if let Some(ticket) = &head.ticket {
        keep(&member, &body, ticket);
    }
    let hears = |what| message.subject == member.place.hears(what);
    let answer = if hears(ToMachine::Tap) {
        tapped(&parts, body).await
    } else if hears(ToMachine::Take) {
        taken(&parts, &body).await
    } else if hears(ToMachine::There) {
        Some(member.here())
    } else if hears(ToMachine::Leave) {
        Some(leave::open_cards(&parts, &member).await)
    } else {
        whose(&parts, &body).await
    };
    let Some(answer) = answer else {
        return;
    };
    let Some(reply) = message.reply.filter(|to| to.starts_with(GATEWAY_INBOX)) else {
        return;
    };
    let head = AnswerHead {
        re: head.once,
        pass: Some(member.pass()),
    };
    let letter = letter::sign(&member.key, &message.subject, &head, &answer);
    if !member.line.tell(&reply, letter).await {
        debug!("an answer did not go out");
    }
}

/// Whether it counts for nothing any more; before anybody has told the time,
/// nobody can say that it does.
fn is_late(member: &Member, head: &PushHead) -> bool {
    !member.knows_time.load(Ordering::Relaxed) || member.their_clock.now() > head.until + SLACK
}

/// The right to touch the message that a push tells of.
fn keep(member: &Member, push: &[u8], ticket: &str) {
    if let Some(message) = message_of(push) {
        member.tickets.keep(&message, ticket);
    }
}

fn message_of(push: &[u8]) -> Option<MessageId> {
    match event::parse(push) {
        Push::Click(click) => click.message,
        Push::Message(message) => message.id,
        Push::Other { .. } | Push::Unreadable { .. } => None,
    }
}

async fn tapped(parts: &Arc<Parts>, push: Bytes) -> Option<Vec<u8>> {
    if !matches!(event::parse(&push), Push::Click(_)) {
        return None;
    }
    match dispatch::answer(Arc::clone(parts), push).await {
        PushAnswer::Show(shown) => Some(shown),
        PushAnswer::Done | PushAnswer::Again => None,
    }
}

async fn taken(parts: &Arc<Parts>, push: &[u8]) -> Option<Vec<u8>> {
    let message = message(parts, push)?;
    inbox::receive_from_peer(parts, message, push).await;
    Some(b"{}".to_vec())
}

async fn whose(parts: &Arc<Parts>, push: &[u8]) -> Option<Vec<u8>> {
    let message = message(parts, push)?;
    let claim = if chat::asks_to_lock(&message) {
        MessageClaim::Every
    } else {
        claim(parts, &message).await
    };
    Some(json!({"claim": claim.as_str()}).to_string().into_bytes())
}

fn message(parts: &Parts, push: &[u8]) -> Option<Message> {
    match event::parse(push) {
        Push::Message(message) if parts.is_of_our_app(&message.head) => Some(*message),
        Push::Message(_) | Push::Click(_) | Push::Other { .. } | Push::Unreadable { .. } => None,
    }
}

/// Whoever tapped was told that it is being checked: the card must not keep
/// them waiting.
async fn tell_of_late(
    parts: Arc<Parts>,
    member: &Member,
    subject: &str,
    push: Bytes,
    ticket: Option<String>,
) {
    let known = member.knows_time.load(Ordering::Relaxed);
    let Push::Click(click) = event::parse(&push) else {
        return;
    };
    let (Some(message), true) = (click.message, known) else {
        return;
    };
    if subject != member.place.hears(ToMachine::Tap) {
        return;
    }
    if let Some(ticket) = ticket {
        member.tickets.keep(&message, &ticket);
    }
    let Some(messages) = parts.courier.messages() else {
        return;
    };
    let content = Content::Text(words::TAPPED_TOO_LATE.get(parts.config.lang).to_owned());
    let uuid = format!("late-{message}");
    let told = messages.reply(&message, None, &content, false, &uuid);
    match tokio::time::timeout(TELL_WITHIN, told).await {
        Ok(Ok(_)) => info!("a person was told that a tap came too late"),
        Ok(Err(why)) => warn!("a person was not told that a tap came too late: {why}"),
        Err(_) => warn!("a person was not told that a tap came too late: no answer in time"),
    }
}
