//! The line and the server's rights: what is told when nobody listens or the
//! server is gone, and that nobody speaks or listens for anybody else.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nod::for_tests::bus::line::{BusAnswer, BusLineState};
use nod::for_tests::bus::lobby::ticket;
use nod::for_tests::bus::nkey::{KeyKind, KeyPair};
use nod::for_tests::bus::pass::{self, Span};
use nod::for_tests::bus::subjects::{FromMachine, MachinePlace, Owner, ToMachine};
use nod::for_tests::bus::url::BusUrl;
use nod::for_tests::simulator::{OWNER, STRANGER};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::rig::{HOUR, Meeting, SOON, seconds, straight};
use crate::gateway::rig::{LIMIT, within};
use crate::support::until;

/// A client by hand, for what nod's own would never say.
struct Raw {
    stream: BufReader<TcpStream>,
}

impl Raw {
    /// The client, or what the server said instead.
    async fn connect(meeting: &Meeting, pass: &str, key: &KeyPair) -> Result<Self, String> {
        let stream = TcpStream::connect(meeting.at).await.unwrap();
        let mut raw = Self {
            stream: BufReader::new(stream),
        };
        let info = raw.line().await.unwrap();
        let info: Value = serde_json::from_str(info.strip_prefix("INFO ").unwrap()).unwrap();
        let nonce = info["nonce"].as_str().unwrap();
        let signature = URL_SAFE_NO_PAD.encode(key.sign(nonce.as_bytes()));
        let connect = json!({
            "jwt": pass, "sig": signature, "verbose": false, "pedantic": false,
            "headers": true, "no_responders": true, "protocol": 1, "lang": "test", "version": "1",
        });
        raw.say(&format!("CONNECT {connect}\r\nPING\r\n")).await;
        match raw.line().await {
            Some(line) if line == "PONG" => Ok(raw),
            Some(line) => Err(line),
            None => Err("closed".to_owned()),
        }
    }

    async fn say(&mut self, text: &str) {
        // A server that has hung up says so when it is read.
        let _ = self.stream.get_mut().write_all(text.as_bytes()).await;
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = within(self.stream.read_line(&mut line)).await.ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// What the server objects to, if anything.
    async fn attempt(&mut self, text: &str) -> Option<String> {
        self.say(&format!("{text}\r\nPING\r\n")).await;
        let mut objection = None;
        while let Some(line) = self.line().await {
            if line == "PONG" {
                return objection;
            }
            if line.starts_with("-ERR") {
                objection = Some(line);
            }
        }
        Some(objection.unwrap_or_else(|| "closed".to_owned()))
    }
}

#[tokio::test]
async fn a_question_is_answered_and_nobody_is_told_at_once() {
    let meeting = Meeting::start().await;
    let (gateway, mut machine) = (meeting.gateway(), meeting.member(OWNER));
    gateway.up().await;
    machine.up().await;
    let subject = machine.place().hears(ToMachine::Tap);
    let answering = tokio::spawn(async move {
        let heard = machine.heard.recv().await.unwrap();
        assert_eq!(&heard.body[..], b"tap");
        let reply = heard.reply.unwrap();
        assert!(machine.line.tell(&reply, b"toast".to_vec()).await);
        machine
    });
    // The server may take the gateway's question before the machine's wish to hear.
    let answer = until("the machine is there", || async {
        let answer = gateway.line.ask(&subject, b"tap".to_vec(), LIMIT).await;
        (answer != BusAnswer::Nobody).then_some(answer)
    });
    assert_eq!(answer.await, BusAnswer::Answer(b"toast"[..].into()));
    drop(answering.await.unwrap());
    let told = until("the machine is missed", || async {
        let since = Instant::now();
        let answer = gateway.line.ask(&subject, b"tap".to_vec(), SOON).await;
        (answer == BusAnswer::Nobody).then_some(since.elapsed())
    });
    assert!(told.await < SOON);
}

#[tokio::test]
async fn while_the_server_is_gone_nothing_is_written_and_nothing_leaves_late() {
    let mut meeting = Meeting::start().await;
    let (gateway, mut machine) = (meeting.gateway(), meeting.member(OWNER));
    gateway.up().await;
    machine.up().await;
    let subject = machine.place().hears(ToMachine::Tap);
    meeting.gone();
    let mut state = gateway.line.state();
    let down = state.wait_for(|state| !matches!(state, BusLineState::Up { .. }));
    within(down).await.unwrap();
    for _ in 0..20 {
        let answer = gateway.line.ask(&subject, b"late".to_vec(), LIMIT).await;
        assert_eq!(answer, BusAnswer::Down);
    }
    meeting.again().await;
    machine.up().await;
    gateway.up().await;
    let fresh = until("the line works again", || async {
        let asked = gateway.line.ask(&subject, b"fresh".to_vec(), SOON).await;
        (asked == BusAnswer::Unknown).then_some(())
    });
    fresh.await;
    let heard = within(machine.heard.recv()).await.unwrap();
    assert_eq!(
        &heard.body[..],
        b"fresh",
        "nothing of the outage comes through"
    );
}

#[tokio::test]
async fn nobody_speaks_or_listens_for_anybody_else() {
    let meeting = Meeting::start().await;
    let key = KeyPair::of(KeyKind::User, rand::random());
    let pass = meeting.pass(&meeting.keys.machines, STRANGER, &key, seconds() + HOUR);
    let mut raw = Raw::connect(&meeting, &pass, &key).await.unwrap();
    let own = MachinePlace::of(Owner::parse(STRANGER).unwrap(), &key.public());
    let theirs = KeyPair::of(KeyKind::User, rand::random()).public();
    let theirs = MachinePlace::of(Owner::parse(OWNER).unwrap(), &theirs);
    let sibling = KeyPair::of(KeyKind::User, rand::random()).public();
    let sibling = MachinePlace::of(own.owner.clone(), &sibling);
    let (o, m) = (&theirs.owner, &theirs.machine);
    for attempt in [
        format!("PUB nod1.g.{o}.{m}.call 0\r\n"),
        format!(
            "PUB nod1.g.{}.{}.call 0\r\n",
            sibling.owner, sibling.machine
        ),
        format!("PUB nod1.m.{o}.{m}.tap 0\r\n"),
        format!("PUB nod1.o.{o} 0\r\n"),
        "PUB nod1.b 0\r\n".to_owned(),
        format!("PUB {}.x 0\r\n", theirs.inbox()),
        format!("SUB nod1.m.{o}.{m}.tap 1"),
        format!("SUB nod1.m.{}.{}.tap 2", sibling.owner, sibling.machine),
        format!("SUB nod1.o.{o} 3"),
        "SUB > 4".to_owned(),
        "SUB nod1.> 5".to_owned(),
        "SUB nod1.g.*.*.call 6".to_owned(),
        "SUB nod1.m.*.*.* 7".to_owned(),
        format!("SUB {}.> 8", theirs.inbox()),
        "SUB _IN.> 9".to_owned(),
        "SUB _IN.gw.> 10".to_owned(),
        "SUB $SYS.> 11".to_owned(),
    ] {
        let told = raw.attempt(&attempt).await;
        assert!(
            told.as_ref()
                .is_some_and(|told| told.contains("Permissions Violation")),
            "{attempt}: {told:?}"
        );
    }
    for attempt in [
        format!("PUB {} 0\r\n", own.says(FromMachine::Here)),
        format!("SUB {} 20", own.hears(ToMachine::Tap)),
        format!("SUB nod1.o.{} 21", own.owner),
        "SUB nod1.b 22".to_owned(),
        format!("SUB {}.* 23", own.inbox()),
    ] {
        assert_eq!(raw.attempt(&attempt).await, None, "{attempt}");
    }
}

#[tokio::test]
async fn whoever_asks_to_join_speaks_in_one_lobby_and_hears_nothing_else() {
    let meeting = Meeting::start().await;
    let key = KeyPair::of(KeyKind::User, rand::random());
    let owner = Owner::parse(STRANGER).unwrap();
    let (own, other) = (ticket([1; 16]), ticket([2; 16]));
    let span = Span {
        made: seconds() - 1,
        until: seconds() + HOUR,
    };
    let keys = &meeting.keys;
    let pass = pass::lobby(
        &keys.lobby,
        &keys.account,
        &owner,
        &own,
        &key.public(),
        span,
    );
    let mut raw = Raw::connect(&meeting, &pass, &key).await.unwrap();
    let machine = MachinePlace::of(owner.clone(), &key.public());
    for attempt in [
        format!("PUB nod1.j.{owner}.{other} 0\r\n"),
        format!("PUB nod1.j.{OWNER}.{own} 0\r\n"),
        format!("PUB nod1.l.{owner}.{own} 0\r\n"),
        format!("PUB {} 0\r\n", machine.says(FromMachine::Call)),
        "PUB nod1.b 0\r\n".to_owned(),
        format!("SUB nod1.l.{owner}.{other} 1"),
        format!("SUB nod1.l.{owner}.* 2"),
        format!("SUB nod1.o.{owner} 3"),
        "SUB nod1.b 4".to_owned(),
        "SUB > 5".to_owned(),
    ] {
        let told = raw.attempt(&attempt).await.unwrap_or_default();
        assert!(told.contains("Permissions Violation"), "{attempt}: {told}");
    }
    for attempt in [
        format!("PUB nod1.j.{owner}.{own} 0\r\n"),
        format!("SUB nod1.l.{owner}.{own} 20"),
        format!("SUB _IN.l.{own}.* 21"),
    ] {
        assert_eq!(raw.attempt(&attempt).await, None, "{attempt}");
    }
}

#[tokio::test]
async fn a_pass_that_is_forged_over_or_anothers_lets_nobody_in() {
    let meeting = Meeting::start().await;
    let key = KeyPair::of(KeyKind::User, rand::random());
    let (later, keys) = (seconds() + HOUR, &meeting.keys);
    let stranger = KeyPair::of(KeyKind::Account, rand::random());
    let other = KeyPair::of(KeyKind::User, rand::random());
    let good = meeting.pass(&keys.machines, OWNER, &key, later);
    assert!(Raw::connect(&meeting, &good, &key).await.is_ok());
    for (pass, key, what) in [
        (
            meeting.pass(&stranger, OWNER, &key, later),
            &key,
            "a foreign signer",
        ),
        (
            meeting.pass(&keys.machines, OWNER, &key, seconds() - 1),
            &key,
            "over",
        ),
        (good.clone(), &other, "somebody else's"),
        (String::new(), &key, "none"),
    ] {
        let refused = Raw::connect(&meeting, &pass, key).await;
        assert!(refused.is_err(), "{what}");
    }
    // A pass that the machines' key makes is a machine's, whatever it says.
    let span = Span {
        made: seconds() - 1,
        until: later,
    };
    let gateway = pass::gateway(&keys.machines, &keys.account, &other.public(), span);
    let refused = match Raw::connect(&meeting, &gateway, &other).await {
        Err(_) => true,
        Ok(mut raw) => raw.attempt("PUB nod1.b 0\r\n").await.is_some(),
    };
    assert!(refused, "a machines' key makes no gateway");
}

#[tokio::test]
async fn a_line_whose_pass_is_refused_rests_until_there_is_another() {
    let mut meeting = Meeting::start().await;
    let member = meeting.member(OWNER);
    member.up().await;
    let stranger = KeyPair::of(KeyKind::Account, rand::random());
    let later = seconds() + HOUR;
    let foreign = meeting.pass(&stranger, OWNER, &member.key, later);
    // It had a new one while it was up, as by a renewal.
    member.passes.send_replace(foreign);
    meeting.gone();
    meeting.again().await;
    let mut state = member.line.state();
    let refused = state.wait_for(BusLineState::refuses_pass);
    tokio::time::timeout(LIMIT, refused)
        .await
        .expect("refused")
        .unwrap();
    let again = tokio::time::timeout(Duration::from_secs(3), state.changed());
    assert!(again.await.is_err(), "it dials with the same pass");
    let good = meeting.pass(&meeting.keys.machines, OWNER, &member.key, later);
    member.passes.send_replace(good);
    member.up().await;
}

#[tokio::test]
async fn a_pass_that_runs_out_cuts_a_live_connection() {
    let meeting = Meeting::start().await;
    let key = KeyPair::of(KeyKind::User, rand::random());
    let pass = meeting.pass(&meeting.keys.machines, OWNER, &key, seconds() + 3);
    let mut raw = Raw::connect(&meeting, &pass, &key).await.unwrap();
    let ended = async {
        while let Some(line) = raw.line().await {
            if line == "PING" {
                raw.say("PONG\r\n").await;
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), ended);
    assert!(ended.await.is_ok(), "it is cut off");
    // A server may count the last second to its end.
    until("it lets nobody in any more", || async {
        Raw::connect(&meeting, &pass, &key).await.err().map(drop)
    })
    .await;
}

/// Whatever a machine says, it signs with the key it signs in with: a server
/// that may choose what it signs could speak for it.
#[tokio::test]
async fn a_server_that_has_a_machine_sign_a_letter_as_a_nonce_gets_no_signature() {
    let meeting = Meeting::start().await;
    let digest = "0123456789abcdef0123456789abcdef";
    for (nonce, signs) in [
        ("PbG4Kkq-_w5uMzQvSx2y0A", true),
        (&*format!("nod1\n{digest}"), false),
        ("nod1\nnod1.g.ou_a.m.call\n{}\n{}", false),
        ("nod join\nticket\nkey", false),
    ] {
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = door.local_addr().unwrap();
        let url = BusUrl::parse(&format!("nats://{at}")).unwrap();
        let _machine = meeting.member_by(OWNER, url, straight());
        let (mut stream, _) = door.accept().await.unwrap();
        let info = json!({
            "server_id": "x", "version": "2.12.6", "max_payload": 1_048_576,
            "headers": true, "auth_required": true, "nonce": nonce,
        });
        let info = format!("INFO {info}\r\n");
        stream.write_all(info.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        let mut piece = [0; 4_096];
        // It signs in, or goes away.
        while !said.ends_with(b"\r\n") {
            let read = tokio::time::timeout(LIMIT, stream.read(&mut piece)).await;
            match read.expect("it does something").unwrap_or(0) {
                0 => break,
                read => said.extend_from_slice(&piece[..read]),
            }
        }
        let said = String::from_utf8(said).unwrap();
        assert_eq!(said.contains("\"sig\""), signs, "{nonce}: {said}");
    }
}
