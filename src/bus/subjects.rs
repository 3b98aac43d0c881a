//! The names on the bus: owners, machines, and the subjects they speak and
//! listen on, with the rights a NATS server holds them to. Pure. A server fills
//! names into rights as they are, a `*` too, so nothing but small letters,
//! digits and underscores is ever a name.

use std::fmt;
use std::sync::Arc;

use super::lobby::is_ticket;
use super::nkey::PublicKey;
use crate::ids::{MachineId, UserId};

/// What every gateway sends each few seconds.
pub const BEACON: &str = "nod1.b";
/// The group in which gateways share the machines' calls.
pub const GROUP: &str = "g";
/// Where gateways are answered.
pub const GATEWAY_INBOX: &str = "_IN.gw";
/// Where whoever speaks to the server itself is answered.
pub const SYSTEM_INBOX: &str = "_IN.sys";

/// Letters of a machine's name: as many bits of its key as nobody finds twice.
const NAME: usize = 24;

/// The person whose machine it is, by an open id that can stand in a subject.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(Arc<str>);

impl Owner {
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("ou_")?;
        let fits = (1..=64).contains(&rest.len()) && is_plain(rest);
        fits.then(|| Self(text.into()))
    }

    pub fn of(id: &UserId) -> Option<Self> {
        match id {
            UserId::Open(id) => Self::parse(id),
            UserId::Union(_) | UserId::Tenant(_) => None,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn id(&self) -> UserId {
        UserId::Open(Arc::clone(&self.0))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_plain(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    text.bytes().all(plain)
}

/// What the machine that holds this key is called.
pub fn machine_of(key: &PublicKey) -> MachineId {
    let text = key.to_string().to_ascii_lowercase();
    MachineId::parse(&text[1..=NAME]).expect("letters and digits")
}

/// One machine of one owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MachinePlace {
    pub owner: Owner,
    pub machine: MachineId,
}

impl MachinePlace {
    /// The machine that holds this key; its name is the key's own, so that
    /// nobody else can have it.
    pub fn of(owner: Owner, key: &PublicKey) -> Self {
        Self {
            owner,
            machine: machine_of(key),
        }
    }

    pub fn parse(owner: &str, machine: &str) -> Option<Self> {
        let fits = machine.len() == NAME && is_plain(machine);
        Some(Self {
            owner: Owner::parse(owner)?,
            machine: fits.then(|| MachineId::parse(machine).ok())??,
        })
    }

    /// The address that this machine's buttons carry.
    pub fn url(&self) -> String {
        format!("nod://{}/{}", self.owner, self.machine)
    }

    pub fn of_url(url: &str) -> Option<Self> {
        let (owner, machine) = url.strip_prefix("nod://")?.split_once('/')?;
        Self::parse(owner, machine)
    }

    /// Where this machine hears `what`.
    pub fn hears(&self, what: ToMachine) -> String {
        format!("nod1.m.{}.{}.{}", self.owner, self.machine, what.word())
    }

    /// Where this machine says `what`.
    pub fn says(&self, what: FromMachine) -> String {
        format!("nod1.g.{}.{}.{}", self.owner, self.machine, what.word())
    }

    /// Where this machine is answered.
    pub fn inbox(&self) -> String {
        format!("_IN.{}.{}", self.owner, self.machine)
    }

    /// Whether a reply there comes to this machine and to nobody else: a
    /// gateway may write anywhere, and must not be made to.
    pub fn is_answered_at(&self, reply: &str) -> bool {
        let token = reply
            .strip_prefix(&self.inbox())
            .and_then(|rest| rest.strip_prefix('.'));
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'.';
        token.is_some_and(|token| {
            (1..=64).contains(&token.len())
                && token.bytes().all(plain)
                && token.split('.').all(|part| !part.is_empty())
        })
    }
}

impl fmt::Display for MachinePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.machine)
    }
}

/// What a gateway tells one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToMachine {
    /// Somebody tapped one of its cards.
    Tap,
    /// A chat message is for it.
    Take,
    /// Is it there, and which nod does it run?
    There,
    /// Its pass is about to be taken back: which cards wait?
    Leave,
}

impl ToMachine {
    pub const ALL: [Self; 4] = [Self::Tap, Self::Take, Self::There, Self::Leave];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Tap => "tap",
            Self::Take => "take",
            Self::There => "there",
            Self::Leave => "leave",
        }
    }
}

/// What a machine tells the gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FromMachine {
    /// Make this call to Feishu for me.
    Call,
    /// What time is it, and who are you?
    Hello,
    /// I am connected.
    Here,
}

impl FromMachine {
    pub const ALL: [Self; 3] = [Self::Call, Self::Hello, Self::Here];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Hello => "hello",
            Self::Here => "here",
        }
    }

    /// Where gateways hear this from every machine.
    pub fn everywhere(self) -> String {
        format!("nod1.g.*.*.{}", self.word())
    }
}

/// Who says what, by the subject it came on.
pub fn speaker(subject: &str) -> Option<(MachinePlace, FromMachine)> {
    let mut parts = subject.strip_prefix("nod1.g.")?.split('.');
    let place = MachinePlace::parse(parts.next()?, parts.next()?)?;
    let word = parts.next()?;
    let what = FromMachine::ALL
        .into_iter()
        .find(|what| what.word() == word)?;
    parts.next().is_none().then_some((place, what))
}

/// Where all machines of one owner are asked.
pub fn of_owner(owner: &Owner) -> String {
    format!("nod1.o.{owner}")
}

/// Where somebody who wants to join asks, and is answered.
pub fn lobby(owner: &Owner, ticket: &str) -> (String, String) {
    (
        format!("nod1.j.{owner}.{ticket}"),
        format!("nod1.l.{owner}.{ticket}"),
    )
}

/// Where gateways hear whoever wants to join, and how each such subject begins.
pub const LOBBIES: &str = "nod1.j.*.*";
pub const LOBBY_START: &str = "nod1.j.";

/// Who asks in the lobby, by the subject it came on.
pub fn asker(subject: &str) -> Option<(Owner, String)> {
    let (owner, ticket) = subject.strip_prefix(LOBBY_START)?.split_once('.')?;
    let owner = Owner::parse(owner)?;
    is_ticket(ticket).then(|| (owner, ticket.to_owned()))
}

/// Where whoever wants to join is answered.
pub fn lobby_inbox(ticket: &str) -> String {
    format!("_IN.l.{ticket}")
}

/// A role's rights as a NATS server fills them in and enforces them.
#[derive(Debug, Clone, Copy)]
pub struct Rights {
    pub role: &'static str,
    pub publish: &'static [&'static str],
    pub subscribe: &'static [&'static str],
    /// Whether it may answer where it was asked to.
    pub answers: bool,
}

pub const MACHINE: Rights = Rights {
    role: "machine",
    publish: &["nod1.g.{{tag(owner)}}.{{name()}}.*"],
    subscribe: &[
        "nod1.m.{{tag(owner)}}.{{name()}}.*",
        "nod1.o.{{tag(owner)}}",
        "nod1.b",
        "_IN.{{tag(owner)}}.{{name()}}.>",
    ],
    answers: true,
};

pub const GATEWAY: Rights = Rights {
    role: "gateway",
    publish: &["nod1.m.>", "nod1.o.*", "nod1.l.>", "nod1.b", "_IN.>"],
    subscribe: &["nod1.g.>", "nod1.j.>", "nod1.b", "_IN.gw.>"],
    answers: false,
};

pub const LOBBY: Rights = Rights {
    role: "lobby",
    publish: &["nod1.j.{{tag(owner)}}.{{name()}}"],
    subscribe: &["nod1.l.{{tag(owner)}}.{{name()}}", "_IN.l.{{name()}}.>"],
    answers: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::nkey::{KeyKind, KeyPair};

    fn place() -> MachinePlace {
        let key = KeyPair::of(KeyKind::User, [3; 32]).public();
        MachinePlace::of(Owner::parse("ou_a1").unwrap(), &key)
    }

    #[test]
    fn nothing_that_a_subject_gives_a_meaning_is_a_name() {
        for bad in [
            "",
            "ou_",
            "ou_*",
            "ou_>",
            "ou_a.b",
            "ou_A",
            "ou_a b",
            "ou_é",
            "on_a",
            "*",
            "ou_{{",
            "ou_a\n",
            &format!("ou_{}", "x".repeat(65)),
        ] {
            assert_eq!(Owner::parse(bad), None, "{bad:?}");
        }
        let known = place();
        let name = known.machine.as_str();
        for bad in ["", "*", ">", "a", &name[1..], &format!("{name}a")] {
            assert_eq!(MachinePlace::parse("ou_a1", bad), None, "{bad:?}");
        }
        let starred = format!("*{}", &name[1..]);
        assert_eq!(MachinePlace::parse("ou_a1", &starred), None);
    }

    #[test]
    fn a_machine_is_named_by_its_key_and_its_address_reads_back() {
        let place = place();
        assert_eq!(MachinePlace::of_url(&place.url()), Some(place.clone()));
        for bad in [
            "nod://m2",
            "nod://ou_a1/",
            "http://ou_a1/x",
            "nod://ou_a1/a/b",
            "",
        ] {
            assert_eq!(MachinePlace::of_url(bad), None, "{bad}");
        }
        let other = KeyPair::of(KeyKind::User, [4; 32]).public();
        let other = MachinePlace::of(place.owner.clone(), &other);
        assert_ne!(other.machine, place.machine);
    }

    #[test]
    fn who_speaks_stands_in_the_subject() {
        let place = place();
        for what in FromMachine::ALL {
            let subject = place.says(what);
            assert_eq!(speaker(&subject), Some((place.clone(), what)));
            assert_eq!(speaker(&format!("{subject}.x")), None);
        }
        let inside = place.hears(ToMachine::Tap);
        for bad in ["nod1.g", "nod1.g.ou_a.b.call", &inside, "nod1.g.*.*.call"] {
            assert_eq!(speaker(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_gateway_answers_a_machine_nowhere_but_at_home() {
        let place = place();
        let home = place.inbox();
        for good in ["x1", "Ab.9"] {
            assert!(place.is_answered_at(&format!("{home}.{good}")));
        }
        let other = "_IN.ou_b.aaaaaaaaaaaaaaaaaaaaaaaa.x";
        for bad in [
            "",
            &home,
            &format!("{home}."),
            &format!("{home}.>"),
            &format!("{home}.*"),
            &format!("{home}x.y"),
            &format!("{home}..x"),
            other,
            "_IN.gw.x",
            "nod1.b",
            &place.hears(ToMachine::Tap),
            &format!("{home}.{}", "x".repeat(65)),
        ] {
            assert!(!place.is_answered_at(bad), "{bad}");
        }
    }
}
