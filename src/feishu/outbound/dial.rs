//! From a host name to an open TCP socket that notices a dead peer. Never
//! looks `localhost` up: it is this machine, whatever a resolver says.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpStream;

use super::error::{self, OutboundError};

pub(super) const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
pub(super) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
pub(super) const KEEPALIVE_PROBES: u32 = 3;

/// How long unacknowledged bytes may wait before the socket counts as dead.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_FOR: Duration = Duration::from_secs(20);

/// Head start of each address over the next, so that a family without a route
/// costs a moment and not the whole time limit.
const HEAD_START: Duration = Duration::from_millis(250);

/// Names with more addresses than this are tried in part.
const MAX_ADDRESSES: usize = 8;

/// Marks a failed name lookup inside a chain of errors.
#[derive(Debug, thiserror::Error)]
#[error("name lookup failed")]
pub(super) struct LookupFailed {
    pub(super) name: String,
}

/// Connects to the first address of `host` that answers. `peer` names the
/// other side in errors.
pub(super) async fn connect(host: &str, port: u16, peer: &str) -> Result<TcpStream, OutboundError> {
    let addresses = lookup(host, port)
        .await
        .map_err(|failed| OutboundError::Unknown { host: failed.name })?;
    let mut attempts: FuturesUnordered<_> = addresses
        .into_iter()
        .zip(0u32..)
        .map(|(address, place)| async move {
            tokio::time::sleep(HEAD_START * place).await;
            TcpStream::connect(address).await
        })
        .collect();
    let mut last = None;
    while let Some(attempt) = attempts.next().await {
        match attempt {
            Ok(stream) => {
                tune(&stream);
                return Ok(stream);
            }
            Err(error) => last = Some(error),
        }
    }
    let last = last.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into());
    Err(error::from_io(host, peer, &last))
}

/// The addresses of `host`, at least one.
pub(super) async fn lookup(host: &str, port: u16) -> Result<Vec<SocketAddr>, LookupFailed> {
    let failed = || LookupFailed {
        name: host.to_owned(),
    };
    if host.eq_ignore_ascii_case("localhost") {
        let own = [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ];
        return Ok(own.map(|ip| SocketAddr::new(ip, port)).into());
    }
    let found: Vec<_> = tokio::net::lookup_host((host, port))
        .await
        .map_err(|_| failed())?
        .take(MAX_ADDRESSES)
        .collect();
    if found.is_empty() {
        return Err(failed());
    }
    Ok(found)
}

/// A socket works without any of these options, only slower to notice loss.
fn tune(stream: &TcpStream) {
    use rustix::net::sockopt;

    let tuned = stream.set_nodelay(true).and_then(|()| {
        sockopt::set_socket_keepalive(stream, true)?;
        sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
        sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
        #[cfg(target_os = "linux")]
        sockopt::set_tcp_user_timeout(
            stream,
            u32::try_from(UNACKNOWLEDGED_FOR.as_millis()).unwrap_or(u32::MAX),
        )?;
        Ok(())
    });
    if let Err(error) = tuned {
        tracing::debug!(%error, "socket options were not accepted");
    }
}

/// The same lookup for an HTTP client. It keeps only the addresses its judge
/// takes.
pub(super) struct Judged {
    admit: Arc<AddressJudge>,
}

type AddressJudge = dyn Fn(&str, IpAddr) -> bool + Send + Sync;

impl Judged {
    pub(super) fn new(admit: impl Fn(&str, IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self {
            admit: Arc::new(admit),
        }
    }
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let admit = Arc::clone(&self.admit);
        Box::pin(async move {
            let mut found = lookup(name.as_str(), 0).await?;
            found.retain(|address| admit(name.as_str(), address.ip()));
            if found.is_empty() {
                let name = name.as_str().to_owned();
                return Err(Box::new(LookupFailed { name }) as _);
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
