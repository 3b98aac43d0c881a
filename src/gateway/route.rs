//! Where a click belongs: here, on a machine that can be called, or on one that
//! cannot. Decides by what one of ours sealed and what the owner listed; an
//! address is judged after parsing and never dialled here.

use core::net::IpAddr;
use serde_json::Value;
use std::fmt;
use url::{Host, Url};

use super::seal::Sealed;
use crate::ids::MachineId;

/// Why a text is no address of a callback service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    #[error("it is no URL")]
    NoUrl,
    #[error("its scheme is neither http nor https")]
    Scheme,
    #[error("it has no host")]
    NoHost,
    #[error("it carries a user name or password")]
    UserInfo,
    #[error("it has a path, a query or a fragment")]
    NotAnOrigin,
}

/// The origin of a callback service: scheme, host and port, and nothing else.
/// Two spellings of one origin are equal.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CallbackUrl {
    origin: Box<str>,
    host: Host,
}

impl CallbackUrl {
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        // What a URL parser silently drops could hide another address.
        if text.bytes().any(|b| !b.is_ascii_graphic()) || text.contains('\\') {
            return Err(BadUrl::NoUrl);
        }
        let url = Url::parse(text).map_err(|_| BadUrl::NoUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadUrl::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() || text.contains('@') {
            return Err(BadUrl::UserInfo);
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(BadUrl::NotAnOrigin);
        }
        let host = url.host().ok_or(BadUrl::NoHost)?.to_owned();
        Ok(Self {
            origin: url.origin().ascii_serialization().into(),
            host,
        })
    }

    /// `scheme://host` and the port where it is not the scheme's own.
    pub fn as_str(&self) -> &str {
        &self.origin
    }

    /// The host's name, unless it is an address.
    pub fn name(&self) -> Option<&str> {
        match &self.host {
            Host::Domain(name) => Some(name),
            Host::Ipv4(_) | Host::Ipv6(_) => None,
        }
    }

    fn address(&self) -> Option<IpAddr> {
        match self.host {
            Host::Domain(_) => None,
            Host::Ipv4(ip) => Some(ip.into()),
            Host::Ipv6(ip) => Some(IpAddr::from(ip).to_canonical()),
        }
    }

    /// Whether it is plain HTTP on this port.
    pub(super) fn is_plain_at(&self, port: u16) -> bool {
        let url = Url::parse(&self.origin).ok();
        url.is_some_and(|url| url.scheme() == "http" && url.port_or_known_default() == Some(port))
    }

    pub(super) fn is_loopback(&self) -> bool {
        match self.address() {
            Some(ip) => ip.is_loopback(),
            None => self.name().is_some_and(names_this_machine),
        }
    }
}

impl fmt::Display for CallbackUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

impl fmt::Debug for CallbackUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

fn names_this_machine(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether nod may connect to this address at all. `listed`: the owner named
/// the service, which is what loopback needs.
pub fn may_dial(ip: IpAddr, listed: bool) -> bool {
    match ip.to_canonical() {
        ip if ip.is_loopback() => listed,
        IpAddr::V4(ip) => {
            let zero_net = ip.octets()[0] == 0;
            !(zero_net || ip.is_link_local() || ip.is_multicast() || ip.is_broadcast())
        }
        IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_multicast() || ip.is_unicast_link_local()),
    }
}

/// What this machine is called and whom it may call.
#[derive(Debug, Clone, Copy)]
pub struct ThisMachine<'a> {
    pub machine: &'a MachineId,
    pub url: Option<&'a CallbackUrl>,
    pub peers: &'a [CallbackUrl],
    pub allow_unsealed: bool,
}

impl ThisMachine<'_> {
    pub fn lists(&self, url: &CallbackUrl) -> bool {
        self.peers.contains(url)
    }
}

/// Where a click belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClickRoute {
    Ours,
    Forward {
        to: CallbackUrl,
        /// One of ours waits there, so both sides can prove it.
        proof: Option<Sealed>,
    },
    /// Sealed by a machine that can't be called from here.
    Elsewhere {
        machine: String,
    },
    Invalid,
}

/// Routes a button's value.
pub fn route(value: &Value, proof: Option<Sealed>, here: ThisMachine<'_>) -> ClickRoute {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let url = text("callback_url").map(CallbackUrl::parse);
    let is_own = matches!((&url, here.url), (Some(Ok(url)), Some(own)) if url == own);
    if proof.is_none() {
        return match url {
            _ if is_own => ClickRoute::Ours,
            Some(Ok(to)) if here.allow_unsealed && here.lists(&to) && is_reachable(&to, true) => {
                ClickRoute::Forward { to, proof }
            }
            Some(Ok(_)) => ClickRoute::Invalid,
            // Nothing to call: what it claims is checked like any of our own.
            Some(Err(_)) | None => ClickRoute::Ours,
        };
    }
    let machine = text("machine");
    if is_own || machine.is_none_or(|id| id == here.machine.as_str()) {
        return ClickRoute::Ours;
    }
    match url {
        Some(Ok(to)) if is_reachable(&to, here.lists(&to)) => ClickRoute::Forward { to, proof },
        _ => {
            let machine = text("machine_name").or(machine).unwrap_or_default();
            ClickRoute::Elsewhere {
                machine: machine.to_owned(),
            }
        }
    }
}

fn is_reachable(url: &CallbackUrl, listed: bool) -> bool {
    if url.is_loopback() {
        return listed;
    }
    url.address().is_none_or(|ip| may_dial(ip, listed))
}

#[cfg(test)]
mod tests {
    use super::super::seal::{SealPurpose, Sealer};
    use super::*;
    use crate::feishu::secret::Secret;
    use serde_json::json;

    fn url(text: &str) -> CallbackUrl {
        CallbackUrl::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    fn routed(
        value: &Value,
        proof: Option<Sealed>,
        peers: &[&str],
        allow_unsealed: bool,
    ) -> ClickRoute {
        let peers: Vec<_> = peers.iter().map(|text| url(text)).collect();
        let own = url("http://10.0.0.1:8080");
        let here = ThisMachine {
            machine: &MachineId::parse("m1").unwrap(),
            url: Some(&own),
            peers: &peers,
            allow_unsealed,
        };
        route(value, proof, here)
    }

    fn sealed() -> Option<Sealed> {
        let sealer = Sealer::new(&Secret::new("s"), SealPurpose::Button);
        sealer.proof(&sealer.seal(json!({})))
    }

    fn foreign(callback_url: &str) -> Value {
        json!({"machine": "m2", "machine_name": "desk", "callback_url": callback_url})
    }

    #[test]
    fn only_a_bare_origin_is_an_address() {
        for (text, problem) in [
            ("", BadUrl::NoUrl),
            ("callback-server:8080", BadUrl::Scheme),
            ("ftp://peer", BadUrl::Scheme),
            ("nod://m2", BadUrl::Scheme),
            ("http://", BadUrl::NoUrl),
            ("http://peer@evil/", BadUrl::UserInfo),
            ("http://@evil/", BadUrl::UserInfo),
            ("http://peer:1@evil/", BadUrl::UserInfo),
            ("http://peer/x", BadUrl::NotAnOrigin),
            ("http://peer/?q", BadUrl::NotAnOrigin),
            ("http://peer/#f", BadUrl::NotAnOrigin),
            ("http://peer\\.evil/", BadUrl::NoUrl),
            ("http://pe\ter/", BadUrl::NoUrl),
            (" http://peer/", BadUrl::NoUrl),
            ("http://peer:99999", BadUrl::NoUrl),
        ] {
            assert_eq!(CallbackUrl::parse(text), Err(problem), "{text:?}");
        }
    }

    #[test]
    fn spellings_of_one_origin_are_equal() {
        for (text, canonical) in [
            ("http://callback-server:8080", "http://callback-server:8080"),
            ("HTTP://Peer:80/", "http://peer"),
            ("https://peer:443", "https://peer"),
            ("http://0x7f.1/", "http://127.0.0.1"),
            ("http://2130706433:22", "http://127.0.0.1:22"),
            ("http://[::1]:8080/", "http://[::1]:8080"),
        ] {
            assert_eq!(url(text).as_str(), canonical);
            assert_eq!(url(text), url(canonical));
        }
    }

    #[test]
    fn what_one_of_ours_sealed_is_ours_or_theirs() {
        for (value, expected) in [
            (
                json!({"machine": "m1", "callback_url": "nod://m1"}),
                ClickRoute::Ours,
            ),
            (json!({"request_id": "r"}), ClickRoute::Ours),
            (foreign("http://10.0.0.1:8080/"), ClickRoute::Ours),
            (
                foreign("http://10.0.0.2:8080"),
                ClickRoute::Forward {
                    to: url("http://10.0.0.2:8080"),
                    proof: sealed(),
                },
            ),
            (
                foreign("https://desk.example"),
                ClickRoute::Forward {
                    to: url("https://desk.example"),
                    proof: sealed(),
                },
            ),
            (
                foreign("nod://m2"),
                ClickRoute::Elsewhere {
                    machine: "desk".to_owned(),
                },
            ),
            (
                json!({"machine": "m2"}),
                ClickRoute::Elsewhere {
                    machine: "m2".to_owned(),
                },
            ),
        ] {
            assert_eq!(routed(&value, sealed(), &[], false), expected, "{value}");
        }
    }

    #[test]
    fn no_spelling_of_a_forbidden_address_is_dialled_even_when_sealed() {
        for bad in [
            "http://169.254.169.254/",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "http://[::ffff:169.254.169.254]/",
            "http://[fe80::1]/",
            "http://0.0.0.0:80/",
            "http://0/",
            "http://0.1.2.3/",
            "http://[::]/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "http://[ff02::1]/",
            "http://127.0.0.1:22",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://127.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://localhost:22/",
            "http://x.localhost/",
            "http://LOCALHOST./",
            "http://peer@evil/",
            "http://169.254.169.254#@peer/",
        ] {
            for proof in [sealed(), None] {
                let route = routed(&foreign(bad), proof, &["http://10.0.0.9"], true);
                let dials = matches!(route, ClickRoute::Forward { .. });
                assert!(!dials, "{bad} {proof:?}: {route:?}");
            }
        }
        // Listing one does not open what may never be dialled.
        for bad in [
            "http://169.254.169.254",
            "http://0.0.0.0:80",
            "http://[fe80::1]",
        ] {
            for proof in [sealed(), None] {
                let route = routed(&foreign(bad), proof, &[bad], true);
                assert!(
                    !matches!(route, ClickRoute::Forward { .. }),
                    "{bad}: {route:?}"
                );
            }
        }
    }

    #[test]
    fn loopback_is_for_listed_services_only() {
        let here = foreign("http://127.0.0.2:9000");
        let peer = "http://127.0.0.2:9000";
        assert!(matches!(
            routed(&here, sealed(), &[peer], false),
            ClickRoute::Forward { .. }
        ));
        let other_port = routed(&here, sealed(), &["http://127.0.0.2:9001"], false);
        assert!(matches!(other_port, ClickRoute::Elsewhere { .. }));
    }

    #[test]
    fn an_unsealed_address_needs_the_list_and_the_opt_in() {
        let peer = "http://10.0.0.9:1";
        let value = json!({"action": "allow", "request_id": "r", "callback_url": peer});
        let forward = ClickRoute::Forward {
            to: url(peer),
            proof: None,
        };
        assert_eq!(routed(&value, None, &[peer], true), forward);
        assert_eq!(routed(&value, None, &[peer], false), ClickRoute::Invalid);
        assert_eq!(routed(&value, None, &[], true), ClickRoute::Invalid);
        let own = json!({"callback_url": "http://10.0.0.1:8080"});
        assert_eq!(routed(&own, None, &[], false), ClickRoute::Ours);
        assert_eq!(routed(&json!({}), None, &[], false), ClickRoute::Ours);
    }

    #[test]
    fn resolved_addresses_are_judged_like_written_ones() {
        for (ip, dials) in [
            ("10.1.2.3", true),
            ("192.168.1.1", true),
            ("2001:db8::1", true),
            ("::ffff:10.0.0.1", true),
            ("::ffff:169.254.1.1", false),
            ("169.254.169.254", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(may_dial(ip.parse().unwrap(), false), dials, "{ip}");
        }
        assert!(may_dial("127.0.0.1".parse().unwrap(), true));
        assert!(!may_dial("169.254.169.254".parse().unwrap(), true));
    }
}
