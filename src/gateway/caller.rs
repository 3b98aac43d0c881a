//! Who calls. Whether a browser was tricked into knocking: by a name of
//! somebody else's that leads here (`Host`), or from a page of somebody else's
//! (`Origin`). And who stands behind a proxy on this machine, for which every
//! caller has this machine's own address.

use core::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use axum::http::uri::Authority;

use super::route::CallbackUrl;

/// Whether the caller named this machine: by an address, which nobody can
/// point elsewhere, as `localhost`, or by the name the owner gave it.
pub fn names_us(headers: &HeaderMap, own: Option<&CallbackUrl>) -> bool {
    let mut hosts = headers.get_all("host").iter();
    let Some(host) = hosts.next() else {
        // Every browser says a host.
        return true;
    };
    if hosts.next().is_some() {
        return false;
    }
    let Some(called) = host.to_str().ok().and_then(called) else {
        return false;
    };
    match called.name() {
        None => true,
        Some(name) => name == "localhost" || own.and_then(CallbackUrl::name) == Some(name),
    }
}

fn called(authority: &str) -> Option<CallbackUrl> {
    if authority.contains(['/', '?', '#']) {
        return None;
    }
    CallbackUrl::parse(&format!("http://{authority}")).ok()
}

/// Whether no page of another origin sent this. A form on a page that gives
/// away no referrer says `null`; `form` lets that pass, because its ticket
/// proves where it comes from.
pub fn comes_from_us(headers: &HeaderMap, own: Option<&CallbackUrl>, form: bool) -> bool {
    let site = headers.get("sec-fetch-site");
    let Some(origin) = headers.get("origin") else {
        return true;
    };
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    if origin == "null" {
        return form && site.is_none_or(|site| site == "same-origin");
    }
    let Ok(origin) = CallbackUrl::parse(origin) else {
        return false;
    };
    let host = headers.get("host").and_then(|host| host.to_str().ok());
    let same = host.is_some_and(|host| {
        let scheme = origin.as_str().split("://").next().unwrap_or_default();
        CallbackUrl::parse(&format!("{scheme}://{host}")).is_ok_and(|here| here == origin)
    });
    same || own == Some(&origin)
}

/// What a proxy adds to the requests it passes on.
const FORWARDED: [&str; 7] = [
    "cf-connecting-ip",
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// The address that counts: behind a proxy on this machine the one it names
/// last, which it has seen itself. Others could name anybody.
pub fn address(headers: &HeaderMap, peer: IpAddr) -> IpAddr {
    if !peer.is_loopback() {
        return peer;
    }
    let named = |name: &str| {
        let last = headers.get_all(name).iter().next_back()?;
        let last = last.to_str().ok()?.rsplit(',').next()?.trim();
        last.parse::<IpAddr>()
            .or_else(|_| last.parse::<SocketAddr>().map(|it| it.ip()))
            .ok()
    };
    let named = named("x-forwarded-for").or_else(|| named("x-real-ip"));
    named.map_or(peer, |named| named.to_canonical())
}

/// Whether a program on this machine speaks for itself: from here, by a name of
/// this machine's own, and for nobody else.
pub fn is_here(headers: &HeaderMap, peer: IpAddr) -> bool {
    let local = |host: &str| {
        let host = host.parse::<Authority>().ok();
        host.is_some_and(|host| {
            let name = host.host().trim_matches(['[', ']']);
            let ip = name.parse::<IpAddr>();
            name.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
        })
    };
    let named = headers
        .get("host")
        .map(|host| host.to_str().is_ok_and(local));
    peer.is_loopback()
        && named.unwrap_or(true)
        && !FORWARDED.iter().any(|name| headers.contains_key(*name))
}

/// Whether others come in by a proxy, as far as the settings tell: by an
/// address that is not the one this machine listens on.
pub fn has_proxy(own: Option<&CallbackUrl>, listens: SocketAddr) -> bool {
    own.is_some_and(|own| {
        let hidden = listens.ip().to_canonical().is_loopback() && !own.is_loopback();
        hidden || !own.is_plain_at(listens.port())
    })
}

/// A page elsewhere can make a browser post a form or plain text, and not JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        headers
    }

    fn own() -> CallbackUrl {
        CallbackUrl::parse("https://desk.example").unwrap()
    }

    #[test]
    fn a_name_that_was_pointed_here_is_not_ours() {
        let own = own();
        for (host, good) in [
            ("127.0.0.1:8080", true),
            ("[::1]:8080", true),
            ("10.0.0.2", true),
            ("localhost:8080", true),
            ("LOCALHOST", true),
            ("desk.example", true),
            ("Desk.Example:8443", true),
            ("evil.example", false),
            ("desk.example.evil.example", false),
            ("127.0.0.1.evil.example:8080", false),
            ("evil.localhost", false),
            ("x", false),
            ("", false),
            ("user@127.0.0.1", false),
            ("127.0.0.1/..", false),
        ] {
            assert_eq!(
                names_us(&headers(&[("host", host)]), Some(&own)),
                good,
                "{host}"
            );
        }
        assert!(names_us(&HeaderMap::new(), Some(&own)));
        assert!(!names_us(&headers(&[("host", "desk.example")]), None));
        let twice = headers(&[("host", "127.0.0.1"), ("host", "evil.example")]);
        assert!(!names_us(&twice, None));
    }

    #[test]
    fn a_page_elsewhere_is_not_us() {
        let own = own();
        let judged = |pairs: &[(&'static str, &'static str)], form| {
            comes_from_us(&headers(pairs), Some(&own), form)
        };
        assert!(judged(&[], false));
        for (origin, good) in [
            ("http://127.0.0.1:8080", true),
            ("https://desk.example", true),
            ("http://127.0.0.1:9", false),
            ("http://desk.example", false),
            ("https://evil.example", false),
            ("nonsense", false),
        ] {
            let pairs = [("host", "127.0.0.1:8080"), ("origin", origin)];
            assert_eq!(judged(&pairs, false), good, "{origin}");
            assert_eq!(judged(&pairs, true), good, "{origin}");
        }
        let null = [("host", "127.0.0.1"), ("origin", "null")];
        assert!(!judged(&null, false) && judged(&null, true));
        let from_afar = [null[0], null[1], ("sec-fetch-site", "cross-site")];
        assert!(!judged(&from_afar, true));
        let own_form = [null[0], null[1], ("sec-fetch-site", "same-origin")];
        assert!(judged(&own_form, true));
    }

    #[test]
    fn behind_a_proxy_here_the_caller_is_whom_it_names_last() {
        let here = IpAddr::from([127, 0, 0, 1]);
        let far = IpAddr::from([203, 0, 113, 9]);
        let named = |pairs: &[(&'static str, &'static str)]| address(&headers(pairs), here);
        assert_eq!(named(&[]), here);
        assert_eq!(named(&[("x-forwarded-for", "203.0.113.9")]), far);
        assert_eq!(
            named(&[("x-forwarded-for", "10.0.0.1, 203.0.113.9:80")]),
            far
        );
        let twice = [
            ("x-forwarded-for", "10.0.0.1"),
            ("x-forwarded-for", "203.0.113.9"),
        ];
        assert_eq!(named(&twice), far);
        assert_eq!(named(&[("x-real-ip", "::ffff:203.0.113.9")]), far);
        assert_eq!(named(&[("x-forwarded-for", "unknown")]), here);
        let forged = headers(&[("x-forwarded-for", "127.0.0.1")]);
        assert_eq!(address(&forged, far), far, "only a proxy here is believed");
    }

    #[test]
    fn who_is_passed_on_by_a_proxy_is_not_here() {
        let here = IpAddr::from([127, 0, 0, 1]);
        let far = IpAddr::from([203, 0, 113, 9]);
        let local = |pairs: &[(&'static str, &'static str)]| is_here(&headers(pairs), here);
        assert!(local(&[]) && !is_here(&headers(&[]), far));
        for host in ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"] {
            assert!(local(&[("host", host)]), "{host}");
        }
        for host in ["desk.example", "10.0.0.2:8080", "localhost.evil.example"] {
            assert!(!local(&[("host", host)]), "{host}");
        }
        for name in FORWARDED {
            let own = ("host", "127.0.0.1:8080");
            assert!(!local(&[own, (name, "127.0.0.1")]), "{name}");
        }
    }

    #[test]
    fn an_address_that_is_not_listened_on_is_a_proxys() {
        let at = |text: &str| text.parse().unwrap();
        for (own, listens, proxied) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", false),
            ("http://10.0.0.2:8080", "0.0.0.0:8080", false),
            ("http://10.0.0.2:8080", "10.0.0.2:8080", false),
            ("http://desk.example:8080", "[::]:8080", false),
            ("http://desk.example:8080", "127.0.0.1:8080", true),
            ("https://desk.example", "0.0.0.0:443", true),
            ("https://desk.example", "127.0.0.1:8080", true),
            ("http://desk.example", "0.0.0.0:8080", true),
        ] {
            let url = CallbackUrl::parse(own).unwrap();
            assert_eq!(
                has_proxy(Some(&url), at(listens)),
                proxied,
                "{own} {listens}"
            );
        }
        assert!(!has_proxy(None, at("127.0.0.1:8080")));
    }

    #[test]
    fn json_says_that_it_is_json() {
        for (kind, good) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/jsonp", false),
            ("text/plain; application/json", false),
            ("application/x-www-form-urlencoded", false),
        ] {
            assert_eq!(is_json(&headers(&[("content-type", kind)])), good, "{kind}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
