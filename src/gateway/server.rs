//! The HTTP door: decisions from other machines, the webhook mode's pages, and
//! whether nod is there. Proof first: without it nothing is looked up, and
//! every refusal looks the same.

mod connection;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Request, State};
use axum::http::{Method, Response, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse as _;
use axum::routing::{any, get, post};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::call::{self, CLOCK_WINDOW, CallAnswer, MAX_BODY, PeerCall, Proof, Stamp, UnreadCall};
use super::rate::{Nonces, Rate};
use super::route::CallbackUrl;
use super::seal::Sealer;
use super::{caller, pages};
use crate::approvals::outcome::{NotTaken, Refusal};
use crate::cards::Action;
use crate::cards::linked::LINKED;
use crate::clock::Millis;
use crate::ids::MachineId;

const READ_WITHIN: Duration = Duration::from_secs(2);
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    #[error(
        "`CALLBACK_LISTEN` is `{0}`, which others can reach, and there is no secret they could prove themselves by: set `CALLBACK_SECRET`, or listen on 127.0.0.1"
    )]
    NoSecret(SocketAddr),
    #[error("cannot listen on `{address}`: {why}")]
    Taken {
        address: SocketAddr,
        why: std::io::Error,
    },
}

/// What a call is taken to.
pub type Decide = Box<dyn Fn(PeerCall) -> BoxFuture<'static, CallAnswer> + Send + Sync>;

/// What is behind the door. Pages are there in webhook mode only.
pub struct Inside {
    /// A sealed call names the machine it is for.
    pub machine: MachineId,
    pub decide: Decide,
    /// The same for a call that nobody vouches for.
    pub decide_plain: Decide,
    pub pages: Option<Pages>,
    /// The figures a scraper on this machine reads.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    pub now: Box<dyn Fn() -> Millis + Send + Sync>,
}

pub struct Pages {
    /// Shows a request; changes nothing.
    pub show: Box<dyn Fn(Visit) -> BoxFuture<'static, WebPage> + Send + Sync>,
    /// A press on the page's button.
    pub press: Box<dyn Fn(PagePress) -> BoxFuture<'static, WebPage> + Send + Sync>,
}

/// A link somebody opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    pub action: Action,
    pub id: String,
    pub token: String,
}

/// A button somebody pressed on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePress {
    pub action: Action,
    pub id: String,
    pub token: String,
    pub ticket: String,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebPage {
    pub status: u16,
    pub html: String,
}

/// What this machine is called, and who may speak without a seal.
#[derive(Clone)]
pub struct DoorTerms {
    pub url: Option<CallbackUrl>,
    pub sealer: Option<Sealer>,
    pub allow_unsealed: bool,
}

/// Opens the door, or says why it must stay shut.
pub async fn bind(address: SocketAddr, terms: &DoorTerms) -> Result<TcpListener, DoorError> {
    if !address.ip().to_canonical().is_loopback() && terms.sealer.is_none() {
        return Err(DoorError::NoSecret(address));
    }
    TcpListener::bind(address)
        .await
        .map_err(|why| DoorError::Taken { address, why })
}

struct ServerDoor {
    inside: Inside,
    terms: DoorTerms,
    on_loopback: bool,
    /// Others come in by a proxy that may be on this machine.
    has_proxy: bool,
    rate: Mutex<Rate>,
    nonces: Mutex<Nonces>,
    /// The owner was told that somebody calls this machine by another name.
    told: AtomicBool,
}

/// Prometheus' text format.
pub const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The other end of the connection.
#[derive(Clone, Copy)]
struct PeerAddress(IpAddr);

/// Whether a program on this machine speaks for itself.
#[derive(Clone, Copy)]
struct IsHere(bool);

/// Serves until stopped; requests under way are answered first.
pub async fn serve(
    listener: TcpListener,
    terms: DoorTerms,
    inside: Inside,
    stop: CancellationToken,
) {
    let listens = listener.local_addr().ok();
    let on_loopback = listens.is_some_and(|at| at.ip().to_canonical().is_loopback());
    let has_proxy = listens.is_none_or(|at| caller::has_proxy(terms.url.as_ref(), at));
    let router = router(Arc::new(ServerDoor {
        inside,
        terms,
        on_loopback,
        has_proxy,
        rate: Mutex::default(),
        nonces: Mutex::default(),
        told: AtomicBool::new(false),
    }));
    let guests = Arc::default();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => {
                let from = peer.ip().to_canonical();
                if let Some(seat) = connection::seat(&guests, from, &stop).await {
                    let router = router.clone().layer(Extension(PeerAddress(from)));
                    connections.spawn(connection::run(stream, router, seat, stop.clone()));
                }
            }
            Err(why) => {
                warn!("a connection could not be taken: {why}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(CLOSE_WITHIN, all).await.is_err() {
        connections.abort_all();
    }
}

fn router(door: Arc<ServerDoor>) -> Router {
    let pages = LINKED.into_iter().fold(Router::new(), |pages, action| {
        pages.route(&format!("/{}", action.as_str()), any(page))
    });
    pages
        .route(call::PATH, post(decision))
        .route(call::SHORT_PATH, post(decision))
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .fallback(|| async { nothing() })
        .layer(middleware::from_fn_with_state(Arc::clone(&door), received))
        .with_state(door)
}

/// What every caller has to pass: not too often, and by no trick played on a
/// browser.
async fn received(
    State(door): State<Arc<ServerDoor>>,
    Extension(peer): Extension<PeerAddress>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    if !door.admits(caller::address(request.headers(), peer.0)) {
        return too_many();
    }
    let is_here = caller::is_here(request.headers(), peer.0);
    request.extensions_mut().insert(IsHere(is_here));
    let (headers, own) = (request.headers(), door.terms.url.as_ref());
    if !caller::names_us(headers, own) {
        if !door.told.swap(true, Ordering::Relaxed) {
            warn!(
                "refused a call by a name that is not this machine's: set `CALLBACK_SERVER_URL` to the name others use"
            );
        }
        return answer(StatusCode::FORBIDDEN, &refusal("not this machine's name"));
    }
    let path = request.uri().path().trim_start_matches('/');
    if !caller::comes_from_us(headers, own, Action::parse(path).is_some()) {
        return answer(StatusCode::FORBIDDEN, &refusal("not from another site"));
    }
    next.run(request).await
}

impl ServerDoor {
    fn now(&self) -> Millis {
        (self.inside.now)()
    }

    fn admits(&self, from: IpAddr) -> bool {
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        rate.admits(from, self.now())
    }

    /// The seal's time, its receiver, and its nonce once.
    fn accepts(&self, call: &PeerCall, stamp: &Stamp) -> Result<(), NotTaken> {
        let now = self.now();
        if now.abs_diff(stamp.sent_at) > CLOCK_WINDOW.unsigned_abs() {
            return Err(NotTaken::Clock);
        }
        match &call.to {
            Some(machine) if *machine == self.inside.machine => {}
            None if call.action == call::WHOSE => {}
            None => return Err(NotTaken::Version),
            Some(_) => return Err(NotTaken::Secret),
        }
        let mut nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        if nonces.first(&stamp.nonce, now) {
            Ok(())
        } else {
            Err(NotTaken::Secret)
        }
    }

    fn trusts_unsealed(&self, is_here: IsHere) -> bool {
        self.terms.allow_unsealed && self.on_loopback && is_here.0
    }
}

async fn decision(
    State(door): State<Arc<ServerDoor>>,
    Extension(is_here): Extension<IsHere>,
    request: Request,
) -> Response<Body> {
    if !caller::is_json(request.headers()) {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return answer(status, &refusal("not application/json"));
    }
    let body = match read(request).await {
        Ok(body) => body,
        Err(status) => return answer(status, &refusal("the body is too large or too slow")),
    };
    let read = PeerCall::read(&body, door.terms.sealer.as_ref());
    let refused = match &read {
        Ok((call, Proof::Sealed(stamp))) => door.accepts(call, stamp).err(),
        Ok((_, Proof::None)) | Err(UnreadCall::Unproven) => {
            (!door.trusts_unsealed(is_here)).then_some(NotTaken::Secret)
        }
        Err(UnreadCall::Malformed) => None,
    };
    if let Some(why) = refused {
        if why == NotTaken::Version {
            warn!("refused a call of a machine that runs an older nod: update it there");
        }
        return answer(StatusCode::UNAUTHORIZED, &call::refusal(why));
    }
    match read {
        Ok((call, Proof::Sealed(stamp))) => {
            let decided = (door.inside.decide)(call).await;
            let sealer = door.terms.sealer.as_ref();
            let seal = sealer.map(|sealer| (sealer, &stamp));
            answer(StatusCode::OK, &decided.to_json(seal))
        }
        Ok((call, Proof::None)) => {
            let decided = (door.inside.decide_plain)(call).await;
            answer(StatusCode::OK, &decided.to_json(None))
        }
        Err(_) => {
            let invalid = CallAnswer::of(&Refusal::Invalid.into(), None);
            answer(StatusCode::BAD_REQUEST, &invalid.to_json(None))
        }
    }
}

async fn status() -> Response<Body> {
    answer(StatusCode::OK, &json!({"status": "ok", "service": "nod"}))
}

/// Figures tell what somebody is working on, so they stay on this machine. A
/// proxy may pass a request on without a word of it, so where there is one
/// nobody gets them here.
async fn metrics(
    State(door): State<Arc<ServerDoor>>,
    Extension(is_here): Extension<IsHere>,
) -> Response<Body> {
    if door.has_proxy || !is_here.0 {
        return nothing();
    }
    let kind = [(header::CONTENT_TYPE, METRICS_TYPE)];
    (kind, (door.inside.metrics)()).into_response()
}

async fn page(State(door): State<Arc<ServerDoor>>, request: Request) -> Response<Body> {
    let Some(pages) = &door.inside.pages else {
        return nothing();
    };
    let Some(action) = Action::parse(request.uri().path().trim_start_matches('/')) else {
        return nothing();
    };
    let query = request.uri().query().unwrap_or_default();
    let visit = Visit {
        action,
        id: field(query.as_bytes(), "id"),
        token: field(query.as_bytes(), "t"),
    };
    let method = request.method().clone();
    if matches!(method, Method::GET | Method::HEAD) {
        return html((pages.show)(visit).await);
    }
    if method != Method::POST {
        return nothing();
    }
    let body = match read(request).await {
        Ok(body) => body,
        Err(status) => return answer(status, &refusal("the body is too large or too slow")),
    };
    let press = PagePress {
        action,
        id: field(&body, "id"),
        token: field(&body, "t"),
        ticket: field(&body, "ticket"),
        reason: Some(field(&body, "reason").trim().to_owned()).filter(|text| !text.is_empty()),
    };
    html((pages.press)(press).await)
}

fn field(form: &[u8], name: &str) -> String {
    url::form_urlencoded::parse(form)
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

async fn read(request: Request) -> Result<Vec<u8>, StatusCode> {
    let body = to_bytes(request.into_body(), MAX_BODY);
    match tokio::time::timeout(READ_WITHIN, body).await {
        Ok(Ok(bytes)) => Ok(bytes.to_vec()),
        Ok(Err(_)) => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

fn refusal(message: &str) -> Value {
    json!({"success": false, "decision": null, "message": message})
}

fn too_many() -> Response<Body> {
    let refused = answer(StatusCode::TOO_MANY_REQUESTS, &refusal("too many requests"));
    ([(header::RETRY_AFTER, "1")], refused).into_response()
}

fn nothing() -> Response<Body> {
    answer(StatusCode::NOT_FOUND, &json!({"status": "not found"}))
}

fn answer(status: StatusCode, body: &Value) -> Response<Body> {
    let headers = [
        (header::CONTENT_TYPE, "application/json; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, body.to_string()).into_response()
}

fn html(page: WebPage) -> Response<Body> {
    let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::OK);
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CONTENT_SECURITY_POLICY, pages::policy()),
    ];
    (status, headers, page.html).into_response()
}

#[cfg(test)]
mod tests;
