//! Where the bus is. Unencrypted only on this machine: passes and cards travel
//! over it. Pure.

use std::fmt;

use url::{Host, Url};

/// The address of a NATS server.
#[derive(Clone, PartialEq, Eq)]
pub struct BusUrl {
    url: Url,
    pub kind: BusScheme,
}

/// How a NATS server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusScheme {
    Plain,
    /// Encrypted after the server's first line.
    Tls,
    WebSocket,
}

/// Why a text is no address of a bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBusUrl {
    #[error("it is no URL")]
    NoUrl,
    #[error("its scheme is none of `wss`, `tls`, `nats`")]
    Scheme,
    #[error("it carries a user name or password: a pass is what lets a machine in")]
    UserInfo,
    #[error("it has a query or a fragment")]
    Surplus,
    #[error("it would be spoken to unencrypted: use `wss://` or `tls://`")]
    PlainText,
}

impl BusUrl {
    pub fn parse(text: &str) -> Result<Self, BadBusUrl> {
        if text.bytes().any(|b| !b.is_ascii_graphic()) {
            return Err(BadBusUrl::NoUrl);
        }
        let url = Url::parse(text).map_err(|_| BadBusUrl::NoUrl)?;
        let kind = match url.scheme() {
            "nats" => BusScheme::Plain,
            "tls" => BusScheme::Tls,
            "ws" | "wss" => BusScheme::WebSocket,
            _ => return Err(BadBusUrl::Scheme),
        };
        if url.host_str().is_none_or(str::is_empty) {
            return Err(BadBusUrl::NoUrl);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadBusUrl::UserInfo);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BadBusUrl::Surplus);
        }
        let this = Self { url, kind };
        let plain = kind == BusScheme::Plain || this.url.scheme() == "ws";
        if plain && !this.is_loopback() {
            return Err(BadBusUrl::PlainText);
        }
        Ok(this)
    }

    /// Hosts of a scheme that is not the web's are never parsed as addresses.
    fn is_loopback(&self) -> bool {
        match self.url.host() {
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            Some(Host::Domain(name)) => {
                let ip = name.parse::<core::net::Ipv4Addr>();
                name == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
            }
            None => false,
        }
    }

    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    fn port(&self) -> u16 {
        self.url.port().unwrap_or(match self.url.scheme() {
            "wss" => 443,
            "ws" => 80,
            _ => 4_222,
        })
    }

    /// `host:port`.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host(), self.port())
    }

    /// The address as the web writes it, for the one way out of nod.
    pub fn web(&self) -> Option<Url> {
        let (scheme, path) = match (self.kind, self.url.scheme()) {
            (BusScheme::Plain, _) => ("ws", "/"),
            (BusScheme::Tls, _) => ("wss", "/"),
            (BusScheme::WebSocket, scheme) => (scheme, self.url.path()),
        };
        Url::parse(&format!("{scheme}://{}{path}", self.authority())).ok()
    }
}

impl fmt::Display for BusUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str())
    }
}

impl fmt::Debug for BusUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_off_this_machine_is_encrypted_or_refused() {
        for (text, kind, web) in [
            (
                "wss://bus.example",
                BusScheme::WebSocket,
                "wss://bus.example/",
            ),
            (
                "wss://bus.example/nats",
                BusScheme::WebSocket,
                "wss://bus.example/nats",
            ),
            (
                "tls://bus.example",
                BusScheme::Tls,
                "wss://bus.example:4222/",
            ),
            (
                "nats://127.0.0.1:4333",
                BusScheme::Plain,
                "ws://127.0.0.1:4333/",
            ),
            ("nats://localhost", BusScheme::Plain, "ws://localhost:4222/"),
            ("nats://[::1]:1", BusScheme::Plain, "ws://[::1]:1/"),
            ("ws://127.0.0.1:80", BusScheme::WebSocket, "ws://127.0.0.1/"),
        ] {
            let url = BusUrl::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(url.kind, kind, "{text}");
            assert_eq!(url.web().unwrap().as_str(), web);
        }
        for text in [
            "nats://bus.example",
            "nats://10.0.0.1",
            "nats://127.0.0.1.example",
            "nats://localhost.example",
            "ws://bus.example",
            "nats://[::2]",
            "nats://128.0.0.1",
        ] {
            assert_eq!(BusUrl::parse(text), Err(BadBusUrl::PlainText), "{text}");
        }
        for (text, why) in [
            ("bus.example:4222", BadBusUrl::Scheme),
            ("https://bus.example", BadBusUrl::Scheme),
            ("wss://u:p@bus.example", BadBusUrl::UserInfo),
            ("wss://bus.example?x", BadBusUrl::Surplus),
            ("nats://", BadBusUrl::NoUrl),
            ("wss://a b", BadBusUrl::NoUrl),
            ("", BadBusUrl::NoUrl),
        ] {
            assert_eq!(BusUrl::parse(text), Err(why), "{text}");
        }
    }
}
