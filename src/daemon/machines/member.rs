//! This machine as a member of a team: it holds no app's secret. Gateways bring
//! it taps and messages over the bus and make its calls to Feishu. What they
//! bring is signed and has an end; whatever comes later, as everything does that
//! waited while the machine slept, is dropped.

mod errands;
pub(crate) mod gateways;
pub(crate) mod leave;
mod tickets;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{info, warn};

use self::gateways::Gateways;
use self::tickets::MessageTickets;
use crate::bus::letter::Letter;
use crate::bus::line::{BusLine, BusLineState};
use crate::bus::membership::{Grant, Membership};
use crate::bus::nkey::{KeyKind, KeyPair, PublicKey};
use crate::bus::pass::Pass;
use crate::bus::subjects::MachinePlace;
use crate::bus::url::BusUrl;
use crate::config::Config;
use crate::daemon::known::machine;
use crate::feishu::api::Api;
use crate::feishu::clock::TheirClock;
use crate::files;
use crate::store::Store;

/// What everything of this role shares.
pub(crate) struct Member {
    pub(crate) url: BusUrl,
    pub(crate) app_id: String,
    /// Where the pass is kept.
    pub(crate) file: PathBuf,
    pub(crate) place: MachinePlace,
    /// What people call it.
    pub(crate) name: String,
    pub(crate) key: Arc<KeyPair>,
    pub(crate) pass: watch::Sender<String>,
    pub(crate) push: Vec<PublicKey>,
    pub(crate) line: BusLine,
    pub(crate) their_clock: TheirClock,
    /// Whether a gateway has told what time it is.
    pub(crate) knows_time: AtomicBool,
    pub(crate) tickets: MessageTickets,
    pub(crate) gateways: Gateways,
    /// What its owner is called, once that is known.
    owner_name: Mutex<Option<String>>,
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
            owner_name: Mutex::default(),
        })
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

    /// Learns what somebody is called, which counts if that is its owner.
    pub(crate) fn is_called(&self, who: &str, name: &str) {
        if who == self.place.owner.as_str() {
            *self.owner_name() = Some(name.to_owned());
        }
    }

    fn owner_name(&self) -> MutexGuard<'_, Option<String>> {
        let name = self.owner_name.lock();
        name.unwrap_or_else(PoisonError::into_inner)
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
            "owner_name": *self.owner_name(),
            "time": self.knows_time.load(Ordering::Relaxed).then(|| self.their_clock.now()),
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
        match written.await.unwrap_or_else(|why| Err(why.into())) {
            Ok(()) => info!("this machine's pass was renewed"),
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
    pub(crate) fn here(&self) -> Vec<u8> {
        let here = json!({"name": self.name, "version": crate::version::BUILD});
        here.to_string().into_bytes()
    }

    /// The body of a letter that a gateway signed about `about`.
    pub(crate) fn by_gateway<'a>(&self, letter: &Letter<'a>, about: &str) -> Option<&'a [u8]> {
        self.push.iter().find_map(|key| letter.open(key, about))
    }

    pub(crate) fn pass(&self) -> String {
        self.pass.borrow().clone()
    }
}

#[cfg(test)]
mod tests;
