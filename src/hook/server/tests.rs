//! Clients of every temper on a real socket: plain v1 ones byte for byte, slow
//! ones, rude ones, and many at once.

use super::*;
use crate::approvals::answer::Extras;
use crate::approvals::desk::Delivery;
use crate::approvals::request::Ending;
use crate::clock::Millis;
use crate::hook::test_office::{LIMIT, Office, id, private_dir, raw_input, within};
use crate::hook::wire::{Ack, Additions, HookMessage, MAX_REPLY, unframe};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::json;
use std::io::{IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

mod many;
mod vectors;

fn register(n: usize, nod: Option<Additions>) -> Vec<u8> {
    HookMessage::Register(Registration {
        id: id(n),
        project: "/p".into(),
        raw_input: raw_input(n),
        nod,
    })
    .encode()
}

/// The ack as an old client takes it: one read of whatever is there.
async fn one_read(stream: &mut UnixStream) -> String {
    let mut bytes = vec![0; 4096];
    let count = within(stream.read(&mut bytes)).await.unwrap();
    String::from_utf8(bytes[..count].to_vec()).unwrap()
}

async fn decision(stream: &mut UnixStream) -> Value {
    let mut length = [0; 4];
    within(stream.read_exact(&mut length)).await.unwrap();
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    within(stream.read_exact(&mut bytes)).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

async fn asked(path: &Path, n: usize) -> UnixStream {
    let mut stream = UnixStream::connect(path).await.unwrap();
    stream.write_all(&register(n, None)).await.unwrap();
    let ack = one_read(&mut stream).await;
    assert_eq!(
        ack,
        r#"{"success":true,"message":"Request registered","session_id":"sess_123"}"#
    );
    stream
}

const ALLOW: &str = r#"{"success":true,"session_id":"sess_123","decision":{"behavior":"allow"}}"#;

#[tokio::test]
async fn a_v1_client_is_answered_byte_for_byte() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let mut stream = asked(&office.path, 1).await;
    let delivery = office.allow(&id(1)).deliver(Extras::default());
    let mut bytes = Vec::new();
    within(stream.read_to_end(&mut bytes)).await.unwrap();
    let length = u32::try_from(ALLOW.len()).unwrap().to_be_bytes();
    assert_eq!(bytes, [&length[..], ALLOW.as_bytes()].concat());
    assert_eq!(within(delivery).await, Delivery::Written);
    office.close().await;
}

#[tokio::test]
async fn a_decision_made_at_once_never_rides_with_the_ack() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    for n in 0..10 {
        let mut stream = UnixStream::connect(&office.path).await.unwrap();
        stream.write_all(&register(n, None)).await.unwrap();
        office.registered(&id(n)).await;
        let _delivery = office.allow(&id(n)).deliver(Extras::default());
        assert!(one_read(&mut stream).await.ends_with(r#""sess_123"}"#));
        assert_eq!(decision(&mut stream).await["decision"]["behavior"], "allow");
    }
    office.close().await;
}

#[tokio::test]
async fn one_byte_at_a_time_and_with_blanks_around_is_the_same_request() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let mut stream = UnixStream::connect(&office.path).await.unwrap();
    let request = [b"\n ", &register(1, None)[..], b"\n"].concat();
    for byte in request {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert!(one_read(&mut stream).await.contains("Request registered"));
    let delivery = office.deny(&id(1)).deliver(Extras::default());
    assert_eq!(
        decision(&mut stream).await["decision"],
        json!({"behavior": "deny", "message": "用户通过飞书拒绝", "interrupt": false})
    );
    assert_eq!(within(delivery).await, Delivery::Written);
    office.close().await;
}

#[tokio::test]
async fn a_client_that_only_stops_writing_still_gets_its_answer() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let mut stream = UnixStream::connect(&office.path).await.unwrap();
    stream.write_all(&register(1, None)).await.unwrap();
    stream.shutdown().await.unwrap();
    assert!(one_read(&mut stream).await.contains("Request registered"));
    drop(asked(&office.path, 3).await);
    let settled = within(office.desk.next_settled()).await;
    assert_eq!(
        settled.request.id,
        id(3),
        "a half-closed client still waits"
    );
    let delivery = office.allow(&id(1)).deliver(Extras::default());
    assert_eq!(decision(&mut stream).await["success"], true);
    assert_eq!(within(delivery).await, Delivery::Written);

    let mut half = UnixStream::connect(&office.path).await.unwrap();
    half.write_all(&register(2, None)).await.unwrap();
    half.shutdown().await.unwrap();
    assert!(one_read(&mut half).await.contains("Request registered"));
    drop(half);
    let settled = within(office.desk.next_settled()).await;
    assert_eq!(settled.ending, Ending::HookGone);
    office.close().await;
}

#[tokio::test]
async fn a_client_that_goes_away_is_noticed_at_once() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let mut slowest = Duration::ZERO;
    for n in 0..20 {
        let stream = asked(&office.path, n).await;
        let gone = Instant::now();
        drop(stream);
        let settled = within(office.desk.next_settled()).await;
        slowest = slowest.max(gone.elapsed());
        assert_eq!(settled.ending, Ending::HookGone);
    }
    assert!(slowest < Duration::from_millis(100), "{slowest:?}");

    let mut stream = asked(&office.path, 99).await;
    stream
        .write_all(&HookMessage::Cancel.encode())
        .await
        .unwrap();
    let settled = within(office.desk.next_settled()).await;
    assert_eq!(settled.request.id, id(99));
    office.close().await;
}

#[tokio::test]
async fn nobody_answering_in_time_sends_the_client_to_the_terminal() {
    let dir = private_dir();
    let office = Office::open_with(dir.path(), ServerLimits::default(), Duration::from_secs(1));
    let mut stream = asked(&office.path, 1).await;
    assert_eq!(
        decision(&mut stream).await,
        json!({
            "success": false, "fallback_to_terminal": true, "error": "server_timeout",
            "session_id": "sess_123", "message": "服务器超时（1秒），请在终端操作"
        })
    );
    office.close().await;
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_and_harm_nobody() {
    let dir = private_dir();
    let limits = ServerLimits {
        request: 4000,
        complete_within: Duration::from_millis(300),
        ..ServerLimits::default()
    };
    let office = Office::open(dir.path(), limits);
    let mut honest = asked(&office.path, 1).await;
    let huge = format!(r#"{{"request_id":"{}"#, "x".repeat(9000));
    let table: [(&[u8], &str); 7] = [
        (b"GET / HTTP/1.1\r\n\r\n", "invalid_request"),
        (b"\0\0\0\x02{}", "invalid_request"),
        (b"{}", "invalid_request"),
        (b"{\"nod\":{\"verb\":\"allow\"}}", "invalid_request"),
        (b"{\"nod\":{\"verb\":\"received\"}}", "invalid_request"),
        (huge.as_bytes(), "invalid_request"),
        (b"{\"request_id\":", "slow_request"),
    ];
    for (bytes, error) in table {
        let mut stream = UnixStream::connect(&office.path).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut reply = Vec::new();
        // A server that closes with our bytes unread resets the connection
        // after its reply.
        let _ = within(stream.read_to_end(&mut reply)).await;
        match Ack::decode(&reply) {
            Ok(Ack::Refused { error: told, .. }) => assert_eq!(json!(told), error),
            other => panic!("{:?}: {other:?}", String::from_utf8_lossy(bytes)),
        }
    }
    let _delivery = office.allow(&id(1)).deliver(Extras::default());
    assert_eq!(decision(&mut honest).await["success"], true);
    office.close().await;
}

#[tokio::test]
async fn a_second_client_with_the_same_id_needs_the_token() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let mut first = UnixStream::connect(&office.path).await.unwrap();
    let nod = Additions::default();
    first
        .write_all(&register(1, Some(nod.clone())))
        .await
        .unwrap();
    let ack = Ack::decode(one_read(&mut first).await.as_bytes()).unwrap();
    let Ack::Registered {
        nod: Some(told), ..
    } = ack
    else {
        panic!("{ack:?}");
    };
    assert!(told.deadline > 1_700_000_000_000 as Millis);

    for presented in [
        None,
        Some(crate::approvals::token::Token::from_bytes([1; 32])),
    ] {
        let mut thief = UnixStream::connect(&office.path).await.unwrap();
        let nod = Additions {
            resume: presented,
            ..nod.clone()
        };
        thief.write_all(&register(1, Some(nod))).await.unwrap();
        let ack = Ack::decode(one_read(&mut thief).await.as_bytes()).unwrap();
        assert!(matches!(ack, Ack::Refused { .. }), "{ack:?}");
    }
    let mut back = UnixStream::connect(&office.path).await.unwrap();
    let nod = Additions {
        resume: told.resume_token,
        ..nod
    };
    back.write_all(&register(1, Some(nod))).await.unwrap();
    let ack = Ack::decode(one_read(&mut back).await.as_bytes()).unwrap();
    assert!(matches!(ack, Ack::Registered { .. }), "{ack:?}");
    let mut rest = Vec::new();
    within(first.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty(), "the displaced connection got an answer");

    let delivery = office.allow(&id(1)).deliver(Extras::default());
    assert_eq!(decision(&mut back).await["nod"]["ack"], true);
    back.write_all(&HookMessage::Received.encode())
        .await
        .unwrap();
    assert_eq!(within(delivery).await, Delivery::Confirmed);
    office.close().await;
}

#[tokio::test]
async fn nods_own_client_is_believed_only_when_it_confirms() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    for (n, leaves, expected) in [(1, true, Delivery::Lost), (2, false, Delivery::Unconfirmed)] {
        let mut stream = UnixStream::connect(&office.path).await.unwrap();
        let nod = Some(Additions::default());
        stream.write_all(&register(n, nod)).await.unwrap();
        one_read(&mut stream).await;
        let delivery = office.allow(&id(n)).deliver(Extras::default());
        decision(&mut stream).await;
        let kept = (!leaves).then_some(stream);
        assert_eq!(within(delivery).await, expected);
        drop(kept);
    }
    office.close().await;
}

#[tokio::test]
async fn a_client_that_never_reads_costs_nobody_else() {
    let dir = private_dir();
    let limits = ServerLimits {
        write_within: Duration::from_millis(200),
        confirm_within: Duration::from_millis(200),
        ..ServerLimits::default()
    };
    let office = Office::open(dir.path(), limits);
    let mut deaf = UnixStream::connect(&office.path).await.unwrap();
    let nod = Some(Additions::default());
    deaf.write_all(&register(1, nod)).await.unwrap();
    office.registered(&id(1)).await;
    let extras = Extras {
        updated_input: Some("x".repeat(MAX_REPLY - 1000).into()),
        ..Extras::default()
    };
    let to_deaf = office.allow(&id(1)).deliver(extras);
    let mut other = asked(&office.path, 2).await;
    let to_other = office.allow(&id(2)).deliver(Extras::default());
    assert_eq!(decision(&mut other).await["success"], true);
    assert_eq!(within(to_other).await, Delivery::Written);
    assert_eq!(within(to_deaf).await, Delivery::Unconfirmed);
    office.close().await;
}

#[tokio::test]
async fn an_answer_too_large_for_the_socket_becomes_the_terminals() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let mut stream = UnixStream::connect(&office.path).await.unwrap();
    let nod = Some(Additions::default());
    stream.write_all(&register(1, nod)).await.unwrap();
    one_read(&mut stream).await;
    let extras = Extras {
        updated_input: Some("x".repeat(MAX_REPLY).into()),
        ..Extras::default()
    };
    let delivery = office.allow(&id(1)).deliver(extras);
    let told = decision(&mut stream).await;
    assert_eq!(told["fallback_to_terminal"], true);
    assert_eq!(told.get("decision"), None);
    assert_eq!(within(delivery).await, Delivery::Lost);
    office.close().await;
}

#[tokio::test]
async fn slow_clients_give_way_and_honest_ones_are_served() {
    let dir = private_dir();
    let limits = ServerLimits {
        unfinished: 16,
        after_ack: Duration::from_millis(1),
        complete_within: LIMIT,
        ..ServerLimits::default()
    };
    let office = Office::open(dir.path(), limits);
    let mut slow = Vec::new();
    for _ in 0..16 {
        let mut stream = UnixStream::connect(&office.path).await.unwrap();
        stream.write_all(b"{").await.unwrap();
        slow.push(stream);
    }
    for n in 0..40 {
        let mut stream = asked(&office.path, n).await;
        let _delivery = office.allow(&id(n)).deliver(Extras::default());
        assert_eq!(decision(&mut stream).await["success"], true);
    }
    let told = one_read(&mut slow[0]).await;
    assert!(told.contains("slow_request"), "{told}");
    office.close().await;
}

#[test]
fn accepting_pauses_longer_and_longer_but_never_long() {
    let mut pause = Pause::default();
    assert!(pause.is_first());
    let pauses: Vec<_> = (0..40).map(|_| pause.next().as_millis()).collect();
    assert_eq!(pauses[..6], [50, 100, 200, 400, 800, 800]);
    assert_eq!(pauses[39], 800);
}

#[tokio::test]
async fn a_peer_of_another_uid_is_closed_before_a_byte_is_read() {
    let dir = private_dir();
    let limits = ServerLimits {
        uid: connect::own_uid().wrapping_add(1),
        ..ServerLimits::default()
    };
    let office = Office::open(dir.path(), limits);
    let mut stream = UnixStream::connect(&office.path).await.unwrap();
    // The write may already meet the closed end; either way nothing comes back.
    let _ = stream.write_all(&register(1, None)).await;
    let mut reply = Vec::new();
    let _ = within(stream.read_to_end(&mut reply)).await;
    assert!(reply.is_empty());
    assert_eq!(office.desk.pending(), 0);
    office.close().await;
}

#[tokio::test]
async fn passed_file_descriptors_are_closed_and_the_request_is_served() {
    const PASSED: usize = 100;
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let stream = std::os::unix::net::UnixStream::connect(&office.path).unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let ends = [writer.as_fd(); PASSED];
    assert!(rights.push(SendAncillaryMessage::ScmRights(&ends)));
    let bytes = register(1, None);
    let sent = sendmsg(
        &stream,
        &[IoSlice::new(&bytes)],
        &mut rights,
        SendFlags::empty(),
    );
    assert_eq!(sent.unwrap(), bytes.len());
    drop(writer);
    // The pipe ends once nobody holds its other end any more.
    let ended = tokio::task::spawn_blocking(move || reader.read(&mut [0]));
    assert_eq!(within(ended).await.unwrap().unwrap(), 0);
    stream.set_nonblocking(true).unwrap();
    let mut stream = UnixStream::from_std(stream).unwrap();
    assert!(one_read(&mut stream).await.ends_with(r#""sess_123"}"#));
    office.close().await;
}

#[tokio::test]
async fn status_and_notices_are_answered() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let mut stream = UnixStream::connect(&office.path).await.unwrap();
    let status = HookMessage::Order(DaemonOrder::Status);
    stream.write_all(&status.encode()).await.unwrap();
    let mut bytes = Vec::new();
    within(stream.read_to_end(&mut bytes)).await.unwrap();
    let (value, length) = unframe(&bytes).unwrap().unwrap();
    assert_eq!((&value["success"], length), (&json!(true), bytes.len()));

    let notice = HookNotice {
        process: None,
        project: "/p".into(),
        raw_input: b"{}".to_vec(),
        mailbox: None,
    };
    let mut stream = UnixStream::connect(&office.path).await.unwrap();
    stream
        .write_all(&HookMessage::Notify(notice.clone()).encode())
        .await
        .unwrap();
    assert_eq!(one_read(&mut stream).await, r#"{"success":true}"#);
    assert_eq!(*office.notices.lock().unwrap(), [notice]);
    office.close().await;
}
