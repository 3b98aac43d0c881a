//! What is said to a proxy before the connection is ours: HTTP CONNECT, and
//! SOCKS5 with or without a password. Reads not one byte past the greeting.

use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::dial;
use super::error::{self, OutboundError};

/// A proxy's answer to CONNECT longer than this is not one.
const MAX_ANSWER: usize = 8 * 1024;

/// Asks an HTTP proxy for a tunnel. `shown` names the proxy in errors; `auth`
/// is the ready value of `Proxy-Authorization`.
pub(super) async fn connect<S>(
    stream: &mut S,
    shown: &str,
    auth: Option<&[u8]>,
    host: &str,
    port: u16,
) -> Result<(), OutboundError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let authority = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let mut ask = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n").into_bytes();
    if let Some(auth) = auth {
        ask.extend_from_slice(b"Proxy-Authorization: ");
        ask.extend_from_slice(auth);
        ask.extend_from_slice(b"\r\n");
    }
    ask.extend_from_slice(b"\r\n");
    let answer = converse(stream, &ask)
        .await
        .map_err(|error| error::from_io(host, &format!("the proxy `{shown}`"), &error))?;
    match status(&answer) {
        Some(200..=299) => Ok(()),
        Some(407) => Err(OutboundError::ProxyWantsLogin {
            proxy: shown.to_owned(),
        }),
        Some(status) => Err(refused(shown, host, format!("it answered {status}"))),
        None => Err(refused(shown, host, "it is not an HTTP proxy")),
    }
}

async fn converse<S>(stream: &mut S, ask: &[u8]) -> std::io::Result<Vec<u8>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(ask).await?;
    stream.flush().await?;
    let mut answer = Vec::with_capacity(256);
    while !answer.ends_with(b"\r\n\r\n") && answer.len() < MAX_ANSWER {
        answer.push(stream.read_u8().await?);
    }
    Ok(answer)
}

fn status(answer: &[u8]) -> Option<u16> {
    let rest = answer.strip_prefix(b"HTTP/1.")?;
    let code = rest.get(2..5)?;
    std::str::from_utf8(code).ok()?.parse().ok()
}

/// Asks a SOCKS5 proxy for a connection. With `resolve_here` the name is
/// looked up on this machine, else by the proxy.
pub(super) async fn socks5<S>(
    stream: &mut S,
    shown: &str,
    auth: Option<(&str, &str)>,
    host: &str,
    port: u16,
    resolve_here: bool,
) -> Result<(), OutboundError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut ask = vec![5, 1, 0];
    push_address(&mut ask, shown, host, port, resolve_here).await?;
    let lost = |error| error::from_io(host, &format!("the proxy `{shown}`"), &error);
    let login =
        match auth {
            None => None,
            Some((user, password)) => Some(login_message(user, password).ok_or_else(|| {
                refused(shown, host, "its user name or password is over 255 bytes")
            })?),
        };

    let offer: &[u8] = if login.is_some() {
        &[5, 2, 0, 2]
    } else {
        &[5, 1, 0]
    };
    let [version, method] = exchange(stream, offer).await.map_err(lost)?;
    match (version, method, login) {
        (5, 0, _) => {}
        (5, 2, Some(login)) => {
            let [_, verdict] = exchange(stream, &login).await.map_err(lost)?;
            if verdict != 0 {
                return Err(refused(shown, host, "it refused the user name or password"));
            }
        }
        (5, _, _) => {
            return Err(OutboundError::ProxyWantsLogin {
                proxy: shown.to_owned(),
            });
        }
        _ => return Err(refused(shown, host, "it is not a SOCKS5 proxy")),
    }

    let [version, verdict, _, kind] = exchange(stream, &ask).await.map_err(lost)?;
    if version != 5 {
        return Err(refused(shown, host, "it is not a SOCKS5 proxy"));
    }
    if verdict != 0 {
        return Err(refused(shown, host, socks_verdict(verdict)));
    }
    let bound = match kind {
        1 => 4,
        4 => 16,
        _ => usize::from(stream.read_u8().await.map_err(lost)?),
    };
    let mut rest = [0; 255 + 2];
    if let Some(rest) = rest.get_mut(..bound + 2) {
        stream.read_exact(rest).await.map_err(lost)?;
    }
    Ok(())
}

async fn push_address(
    ask: &mut Vec<u8>,
    shown: &str,
    host: &str,
    port: u16,
    resolve_here: bool,
) -> Result<(), OutboundError> {
    let ip = match host.parse::<IpAddr>() {
        Ok(ip) => Some(ip),
        Err(_) if resolve_here => {
            let found = dial::lookup(host, port)
                .await
                .map_err(|failed| OutboundError::Unknown { host: failed.name })?;
            found.first().map(std::net::SocketAddr::ip)
        }
        Err(_) => None,
    };
    match ip {
        Some(IpAddr::V4(ip)) => {
            ask.push(1);
            ask.extend_from_slice(&ip.octets());
        }
        Some(IpAddr::V6(ip)) => {
            ask.push(4);
            ask.extend_from_slice(&ip.octets());
        }
        None => {
            let length = u8::try_from(host.len())
                .map_err(|_| refused(shown, host, "the host name is over 255 bytes"))?;
            ask.extend_from_slice(&[3, length]);
            ask.extend_from_slice(host.as_bytes());
        }
    }
    ask.extend_from_slice(&port.to_be_bytes());
    Ok(())
}

fn login_message(user: &str, password: &str) -> Option<Vec<u8>> {
    let mut login = vec![1, u8::try_from(user.len()).ok()?];
    login.extend_from_slice(user.as_bytes());
    login.push(u8::try_from(password.len()).ok()?);
    login.extend_from_slice(password.as_bytes());
    Some(login)
}

async fn exchange<S, const N: usize>(stream: &mut S, ask: &[u8]) -> std::io::Result<[u8; N]>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(ask).await?;
    stream.flush().await?;
    let mut answer = [0; N];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

fn socks_verdict(code: u8) -> &'static str {
    match code {
        2 => "its rules forbid it",
        3 | 4 => "it cannot reach that host",
        5 => "that host refused the connection",
        6 => "it waited too long",
        7 | 8 => "it does not support this kind of connection",
        _ => "it failed without saying why",
    }
}

fn refused(shown: &str, host: &str, reason: impl Into<String>) -> OutboundError {
    OutboundError::ProxyRefused {
        proxy: shown.to_owned(),
        host: host.to_owned(),
        reason: reason.into(),
    }
}
