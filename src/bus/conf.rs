//! The configuration of a NATS server for one team. Pure.

use std::fmt::Write as _;
use std::path::Path;

use super::keys::Keys;
use super::pass::{self, Seconds};
use super::url::{BusScheme, BusUrl};

/// How the server shows itself to machines.
#[derive(Debug, Clone, Copy)]
pub struct Encryption<'a> {
    pub certificate: &'a Path,
    pub key: &'a Path,
}

/// The text of `nats.conf`. Without a certificate of its own, a server that
/// others reach listens on this machine only, behind something that encrypts.
/// `None` where the keys hold no operator.
pub fn text(
    keys: &Keys,
    url: &BusUrl,
    encryption: Option<Encryption<'_>>,
    words: &Path,
    made: Seconds,
) -> Option<String> {
    let own = keys.own.as_ref()?;
    let system = own.system.public();
    let operator = pass::operator(&own.operator, &system, made);
    let system_word = pass::system_account(&own.operator, &system, made);
    let account_word = keys.account_word(&[], made)?;
    let account = keys.account;
    let mut out = String::from(
        "# A NATS server for nod's team. Nothing in this file is secret.\n\
         # Leave the ports for monitoring, leaf nodes and MQTT closed.\n",
    );
    let port = url.authority();
    let (_, port) = port.rsplit_once(':').unwrap_or(("", "4222"));
    let tls = encryption.map(|files| {
        let (certificate, key) = (quoted(files.certificate), quoted(files.key));
        format!("tls {{ cert_file: {certificate}, key_file: {key} }}")
    });
    match (url.kind, tls) {
        (BusScheme::Plain, _) => {
            let _ = writeln!(out, "listen: \"{}\"", url.authority());
        }
        (BusScheme::Tls, None) => {
            let _ = writeln!(
                out,
                "# Give it a certificate, or nobody off this machine can use it.\n\
                 listen: \"127.0.0.1:{port}\""
            );
        }
        (BusScheme::Tls, Some(tls)) => {
            let _ = writeln!(out, "listen: \"0.0.0.0:{port}\"\n{tls}");
        }
        (BusScheme::WebSocket, tls) => {
            out.push_str("listen: \"127.0.0.1:4222\"\nwebsocket {\n");
            match tls {
                Some(tls) => {
                    let _ = writeln!(out, "  listen: \"0.0.0.0:{port}\"\n  {tls}");
                }
                None => out.push_str(
                    "  # Something before it encrypts; it must pass WebSockets on to here.\n\
                     \x20 listen: \"127.0.0.1:8080\"\n  no_tls: true\n",
                ),
            }
            out.push_str("  handshake_timeout: \"5s\"\n}\n");
        }
    }
    let _ = write!(
        out,
        "max_payload: 1MB\n\
         max_connections: 4096\n\
         max_subscriptions: 64\n\
         max_control_line: 4KB\n\
         ping_interval: \"10s\"\n\
         ping_max: 2\n\
         write_deadline: \"5s\"\n\
         operator: {operator}\n\
         system_account: {system}\n\
         resolver {{\n  type: full\n  dir: {dir}\n  allow_delete: false\n  interval: \"2m\"\n}}\n\
         resolver_preload {{\n  {account}: {account_word}\n  {system}: {system_word}\n}}\n",
        dir = quoted(words),
    );
    Some(out)
}

/// A path as the server reads it, whatever is in it.
fn quoted(path: &Path) -> String {
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

/// Whether a server of this version can be crashed by somebody who has not
/// signed in.
pub fn has_holes(version: &str) -> bool {
    let numbers = version.split(['.', '-']).map(str::parse::<u32>);
    let numbers: Vec<u32> = numbers.map_while(Result::ok).collect();
    match numbers.as_slice() {
        [2, 11, patch, ..] => *patch < 15,
        [2, 12, patch, ..] => *patch < 6,
        [2, minor, ..] => *minor < 11,
        [major, ..] => *major < 2,
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn text_of(url: &str, encrypted: bool) -> String {
        let mut n = 0;
        let keys = Keys::make(|| {
            n += 1;
            [n; 32]
        });
        let file = PathBuf::from("/c.pem");
        let files = Encryption {
            certificate: &file,
            key: &file,
        };
        let url = BusUrl::parse(url).unwrap();
        let text = text(&keys, &url, encrypted.then_some(files), Path::new("/w"), 1).unwrap();
        let own = keys.own.unwrap();
        for seed in [&keys.machines, &keys.push, &own.operator, &own.system] {
            assert!(!text.contains(seed.seed().expose()), "a seed in {text}");
        }
        text
    }

    #[test]
    fn a_server_without_a_certificate_is_not_open_to_others() {
        for url in [
            "wss://bus.example",
            "tls://bus.example",
            "nats://127.0.0.1:4333",
        ] {
            let text = text_of(url, false);
            assert!(!text.contains("0.0.0.0"), "{text}");
        }
        let text = text_of("nats://127.0.0.1:4333", false);
        assert!(text.contains("listen: \"127.0.0.1:4333\""), "{text}");
        assert!(!text.contains("websocket"), "{text}");
    }

    #[test]
    fn a_certificate_opens_the_one_listener_that_machines_use() {
        for url in ["wss://bus.example", "tls://bus.example"] {
            let text = text_of(url, true);
            assert_eq!(text.matches("0.0.0.0").count(), 1, "{text}");
            assert_eq!(text.matches("cert_file: \"/c.pem\"").count(), 1, "{text}");
            assert!(!text.contains("no_tls"), "{text}");
        }
    }

    #[test]
    fn servers_with_known_holes_are_named() {
        for (version, holes) in [
            ("2.9.10", true),
            ("2.11.14", true),
            ("2.11.15", false),
            ("2.12.5", true),
            ("2.12.6", false),
            ("2.15.1", false),
            ("2.12.6-RC.1", false),
            ("1.4.1", true),
            ("3.0.0", false),
            ("strange", false),
        ] {
            assert_eq!(has_holes(version), holes, "{version}");
        }
    }
}
