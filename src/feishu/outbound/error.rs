//! Why a connection could not be opened or was lost, one sentence each with
//! what to do. Holds host names and proxies without credentials, never an
//! address's path or query, nor anything that was sent.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use rustls::CertificateError;

use super::dial::LookupFailed;

/// A failure to reach the other side, by what a person has to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    #[error("refused to send anything unencrypted to `{host}`: use an https address")]
    PlainText { host: String },
    #[error("not an address that can be called: {problem}")]
    BadAddress { problem: &'static str },
    #[error(
        "`{name}` is not a usable proxy: write it as `http://host:port`, `https://host:port`, `socks5://host:port` or `socks5h://host:port`"
    )]
    BadProxy { name: &'static str },
    #[error("the extra CA file `{}` cannot be used: {reason}", file.display())]
    BadCaFile { file: PathBuf, reason: String },
    #[error("encryption could not be set up: {reason}")]
    NoTls { reason: String },
    #[error(
        "no address found for `{host}`: check the network and DNS, or set `HTTPS_PROXY` if this network needs a proxy"
    )]
    Unknown { host: String },
    #[error("{peer} refused the connection: check the address, the port and the firewall")]
    Refused { peer: String },
    #[error("no route to {peer}: check that this machine is online")]
    Unreachable { peer: String },
    #[error(
        "{peer} did not answer in time: check the network, or set `HTTPS_PROXY` if this network needs a proxy"
    )]
    TimedOut { peer: String },
    #[error("no trusted encrypted connection to `{host}`: {reason}")]
    Tls { host: String, reason: &'static str },
    #[error(
        "the proxy `{proxy}` wants a user name and password: put them in the proxy setting as `http://user:password@host:port`"
    )]
    ProxyWantsLogin { proxy: String },
    #[error(
        "the proxy `{proxy}` did not connect to `{host}`: {reason}; ask whoever runs it to allow this host"
    )]
    ProxyRefused {
        proxy: String,
        host: String,
        reason: String,
    },
    #[error("the connection to {peer} broke: {reason}")]
    Lost { peer: String, reason: String },
}

impl OutboundError {
    /// Whether only a changed setting can help, so that trying again on a
    /// timer is pointless.
    pub fn is_setting(&self) -> bool {
        match self {
            Self::PlainText { .. }
            | Self::BadAddress { .. }
            | Self::BadProxy { .. }
            | Self::BadCaFile { .. }
            | Self::NoTls { .. } => true,
            Self::Unknown { .. }
            | Self::Refused { .. }
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Tls { .. }
            | Self::ProxyWantsLogin { .. }
            | Self::ProxyRefused { .. }
            | Self::Lost { .. } => false,
        }
    }

    /// Whether the same call may succeed a moment later with nobody doing
    /// anything.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. }
                | Self::Refused { .. }
                | Self::Unreachable { .. }
                | Self::TimedOut { .. }
                | Self::Lost { .. }
        )
    }
}

/// Classifies a socket's error; `peer` is the other end of the socket, `host`
/// the side whose certificate was judged.
pub(super) fn from_io(host: &str, peer: &str, error: &io::Error) -> OutboundError {
    if let Some(inner) = error.get_ref() {
        if let Some(wrapped) = inner.downcast_ref::<io::Error>() {
            return from_io(host, peer, wrapped);
        }
        if let Some(tls) = inner.downcast_ref() {
            return OutboundError::Tls {
                host: host.to_owned(),
                reason: tls_reason(tls),
            };
        }
    }
    let peer = peer.to_owned();
    match error.kind() {
        io::ErrorKind::ConnectionRefused => OutboundError::Refused { peer },
        io::ErrorKind::TimedOut => OutboundError::TimedOut { peer },
        io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkDown => OutboundError::Unreachable { peer },
        kind => OutboundError::Lost {
            peer,
            reason: kind.to_string(),
        },
    }
}

/// Classifies an HTTP client's error by what lies at the bottom of its chain.
pub(super) fn from_reqwest(
    host: &str,
    proxy: Option<&str>,
    error: &reqwest::Error,
) -> OutboundError {
    let peer = match proxy {
        Some(proxy) if error.is_connect() => format!("the proxy `{proxy}`"),
        _ => format!("`{host}`"),
    };
    if error.is_timeout() {
        return OutboundError::TimedOut { peer };
    }
    let mut cause = error.source();
    while let Some(link) = cause {
        if let Some(failed) = link.downcast_ref::<LookupFailed>() {
            return OutboundError::Unknown {
                host: failed.name.clone(),
            };
        }
        if let Some(io) = link.downcast_ref::<io::Error>() {
            return from_io(host, &peer, io);
        }
        if let Some(proxy) = proxy
            && let Some(answer) = proxy_answer(host, proxy, &link.to_string())
        {
            return answer;
        }
        cause = link.source();
    }
    OutboundError::Lost {
        peer,
        reason: "the exchange was cut short".to_owned(),
    }
}

/// The HTTP client does not export its proxy errors as types; their texts are
/// all there is to go by.
fn proxy_answer(host: &str, proxy: &str, text: &str) -> Option<OutboundError> {
    if text.contains("proxy authorization required") {
        return Some(OutboundError::ProxyWantsLogin {
            proxy: proxy.to_owned(),
        });
    }
    let reason = if text.starts_with("tunnel error: unsuccessful") {
        "it refused the tunnel"
    } else if text.contains("credentials not accepted") {
        "it refused the user name or password"
    } else if text.starts_with("SOCKS error: ") && !text.contains("io error") {
        "its SOCKS answer was a refusal"
    } else {
        return None;
    };
    Some(OutboundError::ProxyRefused {
        proxy: proxy.to_owned(),
        host: host.to_owned(),
        reason: reason.to_owned(),
    })
}

fn tls_reason(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired; check this machine's clock"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet; check this machine's clock"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another host; a captive portal or proxy may be answering in its place"
            }
            CertificateError::UnknownIssuer => {
                "its certificate is not signed by a CA this machine trusts; if a company proxy inspects traffic, add its CA"
            }
            CertificateError::Revoked => "its certificate was revoked",
            _ => {
                "its certificate is not acceptable; a captive portal or proxy may be answering in its place"
            }
        },
        rustls::Error::InvalidMessage(_) => {
            "it does not speak TLS; a captive portal or proxy may be answering in its place"
        }
        _ => "the handshake failed; a firewall or proxy may be interfering",
    }
}
