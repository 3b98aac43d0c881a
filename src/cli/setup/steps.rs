//! What the set-up does over the network: registers an app, asks who the bot
//! is, sends messages, and listens while it runs. The only file of the set-up
//! that knows Feishu's clients.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cards::row;
use crate::clock::Clock;
use crate::config::Config;
use crate::feishu::api::Api;
use crate::feishu::clock::TheirClock;
use crate::feishu::connection::{self, LinkView, Wiring};
use crate::feishu::domain::Domain;
use crate::feishu::endpoint::{DialLimits, Dialer};
use crate::feishu::error::ApiError;
use crate::feishu::event::{self, Push};
use crate::feishu::link::{Phase, PushAnswer, PushDelivery};
use crate::feishu::messages::{Bot, Contact, Content, Messages, Receiver, SentMessage};
use crate::feishu::outbound::{Outbound, OutboundError};
use crate::feishu::pace::PER_SECOND;
use crate::feishu::registration::AppRegistration;
use crate::feishu::secret::Secret;
use crate::ids::{MessageId, UserId};
use crate::text::Text;

/// One household's worth of pushes; more than the set-up can use.
const MAX_PUSHES: usize = 64;
const CONNECT_WITHIN: Duration = Duration::from_secs(20);

/// The app being set up.
#[derive(Debug, Clone)]
pub(super) struct SetupApp {
    pub(super) domain: Domain,
    pub(super) id: String,
    pub(super) secret: Secret,
}

impl SetupApp {
    /// The one that is set, if one is.
    pub(super) fn of(config: &Config) -> Option<Self> {
        Some(Self {
            domain: config.domain.clone(),
            id: config.app_id.clone()?,
            secret: config.app_secret.clone()?,
        })
    }
}

#[derive(Debug)]
pub(super) struct Network(Outbound);

impl Network {
    pub(super) fn new(config: &Config) -> Result<Self, OutboundError> {
        Outbound::new(&config.proxies, config.ca_file.as_deref()).map(Self)
    }

    pub(super) fn registration(&self, domain: &Domain) -> AppRegistration {
        AppRegistration::new(&self.0, domain)
    }

    pub(super) async fn bot(&self, app: &SetupApp) -> Result<Bot, ApiError> {
        self.messages(app)?.bot().await
    }

    pub(super) async fn contact(
        &self,
        app: &SetupApp,
        person: &UserId,
    ) -> Result<Contact, ApiError> {
        self.messages(app)?.contact(person).await
    }

    /// How many connections the app has open, where Feishu tells.
    pub(super) async fn connections(&self, app: &SetupApp) -> Option<u64> {
        let messages = self.messages(app).ok()?;
        messages.online_connections().await.ok()?
    }

    pub(super) async fn send(
        &self,
        app: &SetupApp,
        to: &UserId,
        content: &Content,
        once: &str,
    ) -> Result<SentMessage, ApiError> {
        let to = Receiver::User(to.clone());
        self.messages(app)?.send(&to, content, once).await
    }

    pub(super) async fn change(
        &self,
        app: &SetupApp,
        message: &MessageId,
        card: Value,
    ) -> Result<(), ApiError> {
        self.messages(app)?
            .patch(message, card.to_string().into())
            .await
    }

    /// Holds the app's long connection until the listener is dropped. `answer`
    /// is asked at once for each push.
    pub(super) fn listen(
        &self,
        app: &SetupApp,
        answer: impl Fn(&Push) -> PushAnswer + Send + Sync + 'static,
    ) -> Listener {
        let (sender, pushes) = mpsc::channel(MAX_PUSHES);
        let (hot_sender, hot) = watch::channel(true);
        let (view_sender, view) = watch::channel(connection::first_view());
        let stop = CancellationToken::new();
        let handler = move |delivery: PushDelivery| {
            let push = event::parse(&delivery.payload);
            let answer = answer(&push);
            // Full means that more people wrote than can be served.
            let _ = sender.try_send(push);
            std::future::ready(answer)
        };
        let dialer = Dialer {
            outbound: self.0.clone(),
            domain: app.domain.clone(),
            app_id: app.id.clone(),
            app_secret: app.secret.clone(),
            limits: DialLimits::default(),
            clock: TheirClock::new(Clock::start()),
        };
        let task = tokio::spawn(connection::run(
            dialer,
            Wiring {
                handler,
                hot,
                view: view_sender,
                overdue_answer: b"{}".to_vec(),
                failed_answer: b"{}".to_vec(),
                stop: stop.clone(),
            },
        ));
        Listener {
            pushes,
            view,
            _hot: hot_sender,
            stop: stop.drop_guard(),
            task,
        }
    }

    fn messages(&self, app: &SetupApp) -> Result<Messages, ApiError> {
        Api::new(&self.0, app.domain.base(), &app.id, app.secret.clone())
            .map(|api| Messages::new(api, PER_SECOND))
    }
}

/// The long connection while the set-up waits for somebody.
pub(super) struct Listener {
    pushes: mpsc::Receiver<Push>,
    view: watch::Receiver<LinkView>,
    _hot: watch::Sender<bool>,
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Listener {
    /// Waits for the connection, or says why there is none.
    pub(super) async fn connected(&mut self) -> Result<(), Text> {
        let settled =
            |view: &LinkView| matches!(view.phase, Phase::Up { .. } | Phase::Degraded { .. });
        // Whatever came of the wait stands in the view.
        let _ = tokio::time::timeout(CONNECT_WITHIN, self.view.wait_for(settled)).await;
        let phase = self.view.borrow().phase.clone();
        match phase {
            Phase::Up { .. } => Ok(()),
            Phase::Degraded { why, .. } | Phase::Waiting { why, .. } => Err(why),
            Phase::Dialing { why } => {
                Err(why.unwrap_or(Text::new("没有及时回应", "no answer in time")))
            }
        }
    }

    /// Says goodbye once every push is answered: whoever tapped must see it.
    pub(super) async fn close(self) {
        self.stop.disarm().cancel();
        if self.task.await.is_err() {
            tracing::debug!("the connection ended by itself");
        }
    }

    pub(super) async fn next(&mut self) -> Option<Push> {
        self.pushes.recv().await
    }
}

/// A card of one text, and one button that sends `value`, where an allow stands
/// on other cards.
pub(super) fn card(title: &str, text: &str, button: Option<(&str, Value)>) -> Value {
    let plain = |content: &str| json!({"tag": "plain_text", "content": content});
    let mut elements = vec![json!({"tag": "div", "text": plain(text)})];
    if let Some((label, value)) = button {
        let button = json!({
            "tag": "button",
            "type": "primary",
            "width": "fill",
            "text": plain(label),
            "behaviors": [{"type": "callback", "value": value}],
        });
        elements.push(row(Some(button), None));
    }
    json!({
        "schema": "2.0",
        "config": {
            "update_multi": true,
            "width_mode": "fill",
            "summary": {"content": title},
        },
        "header": {"title": plain(title), "template": "blue"},
        "body": {"elements": elements},
    })
}
