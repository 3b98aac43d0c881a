//! One connection of the door: how long it may take, and when it has to go.

use core::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use axum::middleware::{self, Next};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::READ_WITHIN;
use crate::gateway::guests::{GuestAdmission, GuestPlace, Guests};

/// No caller needs one connection for longer.
const STAY_WITHIN: Duration = Duration::from_secs(60);
/// How soon a full house looks for a free place again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A place at the door, and the word that it is needed for another.
pub(super) struct HeldSeat {
    place: Arc<GuestPlace>,
    leave: CancellationToken,
}

/// A place for a newcomer; `None` if its address holds too many.
pub(super) async fn seat(
    guests: &Arc<Mutex<Guests>>,
    from: IpAddr,
    stop: &CancellationToken,
) -> Option<HeldSeat> {
    while !stop.is_cancelled() {
        let admission = {
            let mut guests = guests.lock().unwrap_or_else(PoisonError::into_inner);
            guests.admit(from, Instant::now())
        };
        match admission {
            GuestAdmission::Seated { number, leave } => {
                let guests = Arc::clone(guests);
                let place = Arc::new(GuestPlace { guests, number });
                return Some(HeldSeat { place, leave });
            }
            GuestAdmission::TooMany => return None,
            GuestAdmission::Later => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
    None
}

async fn occupied(
    State(place): State<Arc<GuestPlace>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let _occupied = place.occupied();
    next.run(request).await
}

/// Serves until the caller is done, is silent, or has to make room.
pub(super) async fn run(
    stream: TcpStream,
    router: Router,
    seat: HeldSeat,
    stop: CancellationToken,
) {
    let HeldSeat { place, leave } = seat;
    let router = router.layer(middleware::from_fn_with_state(place, occupied));
    let _ = stream.set_nodelay(true);
    // Only with one version known beforehand does the limit on a head count
    // from the connection on, and not from the first byte.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_WITHIN);
    let service = TowerToHyperService::new(router);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = leave.cancelled() => return,
        () = tokio::time::sleep(STAY_WITHIN) => {
            connection.as_mut().graceful_shutdown();
            let last = tokio::time::timeout(STAY_WITHIN, connection);
            last.await.unwrap_or(Ok(()))
        }
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(why) = served {
        debug!("a connection ended early: {why}");
    }
}
