//! The hook's end against a real server, and against everything that only
//! looks like one.

use super::*;
use crate::approvals::answer::Extras;
use crate::approvals::desk::Delivery;
use crate::approvals::request::Ending;
use crate::hook::server::ServerLimits;
use crate::hook::test_office::{LIMIT, Office, id, private_dir, raw_input, within};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use tokio::task::{JoinHandle, spawn_blocking};

fn question(n: usize) -> HookRequest {
    HookRequest {
        process: None,
        id: id(n),
        project: "/p".into(),
        raw_input: raw_input(n),
        digest: Digest::of(&json!({"command": format!("echo {n}")})),
        cwd: None,
        agent: None,
        pid: None,
        mailbox: None,
    }
}

fn patience() -> Patience {
    Patience::for_timeout(Duration::from_mins(5))
}

fn asking(socket: &Path, question: HookRequest) -> JoinHandle<Result<Decision, NoDecision>> {
    let socket = socket.to_owned();
    spawn_blocking(move || ask(&socket, &question, &patience(), None))
}

#[tokio::test]
async fn the_answer_arrives_and_is_confirmed() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let hook = asking(&office.path, question(1));
    office.registered(&id(1)).await;
    let extras = Extras {
        updated_permissions: Some(json!([{"type": "addRules"}])),
        updated_input: None,
    };
    let delivery = office.allow(&id(1)).deliver(extras.clone());
    assert_eq!(within(delivery).await, Delivery::Confirmed);
    assert_eq!(
        within(hook).await.unwrap().unwrap(),
        Decision::Allow(extras)
    );

    let hook = asking(&office.path, question(2));
    office.registered(&id(2)).await;
    let delivery = office.deny(&id(2)).deliver(Extras::default());
    assert_eq!(within(delivery).await, Delivery::Confirmed);
    assert!(matches!(
        within(hook).await.unwrap(),
        Ok(Decision::Deny {
            interrupt: false,
            ..
        })
    ));
    office.close().await;
}

#[tokio::test]
async fn an_allow_for_another_input_is_not_taken_and_not_confirmed() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let mut other = question(1);
    other.digest = Digest::of(&json!({"command": "rm -rf /"}));
    let hook = asking(&office.path, other);
    office.registered(&id(1)).await;
    let delivery = office.allow(&id(1)).deliver(Extras::default());
    assert_eq!(within(delivery).await, Delivery::Lost);
    assert!(matches!(
        within(hook).await.unwrap(),
        Ok(Decision::Terminal { error, .. }) if error == ErrorWord::DigestMismatch
    ));
    office.close().await;
}

#[tokio::test]
async fn a_hook_outlives_its_daemon_and_takes_its_place_again() {
    let dir = private_dir();
    let first = Office::open(dir.path(), ServerLimits::default());
    let hook = asking(&first.path, question(1));
    first.registered(&id(1)).await;
    let kept = first.desk.all_pending();
    let hashes: Vec<_> = kept.iter().map(|r| first.desk.token_of(&r.id)).collect();
    first.close().await;

    let second = Office::open(dir.path(), ServerLimits::default());
    let pending = kept.into_iter().zip(hashes.into_iter().flatten());
    second.desk.restore(pending, [], Duration::from_secs(30));
    assert!(second.desk.wait_attached(&id(1), LIMIT).await);
    let delivery = second.allow(&id(1)).deliver(Extras::default());
    assert_eq!(within(delivery).await, Delivery::Confirmed);
    assert!(matches!(
        within(hook).await.unwrap(),
        Ok(Decision::Allow(_))
    ));
    second.close().await;
}

#[tokio::test]
async fn an_answer_lost_with_the_daemon_is_given_after_its_restart() {
    let dir = private_dir();
    let first = Office::open(dir.path(), ServerLimits::default());
    let hook = asking(&first.path, question(1));
    first.registered(&id(1)).await;
    let claim = first.allow(&id(1));
    let past = first.desk.past(&id(1)).unwrap();
    drop(claim);
    first.close().await;

    let second = Office::open(dir.path(), ServerLimits::default());
    second
        .desk
        .restore([], [(id(1), past)], Duration::from_secs(30));
    assert!(matches!(
        within(hook).await.unwrap(),
        Ok(Decision::Allow(_))
    ));
    second.close().await;
}

#[tokio::test]
async fn a_daemon_that_forgot_the_request_sends_the_hook_to_the_terminal() {
    let dir = private_dir();
    let first = Office::open(dir.path(), ServerLimits::default());
    let hook = asking(&first.path, question(1));
    first.registered(&id(1)).await;
    first.close().await;
    let second = Office::open(dir.path(), ServerLimits::default());
    assert!(matches!(
        within(hook).await.unwrap(),
        Err(NoDecision::Refused { .. })
    ));
    second.close().await;
}

#[tokio::test]
async fn the_hook_leaves_when_nobody_reads_its_answer() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let (claude, stdout) = UnixStream::pair().unwrap();
    let socket = office.path.clone();
    let hook =
        spawn_blocking(move || ask(&socket, &question(1), &patience(), Some(stdout.as_fd())));
    office.registered(&id(1)).await;
    drop(claude);
    assert!(matches!(
        within(hook).await.unwrap(),
        Err(NoDecision::ListenerGone)
    ));
    let settled = within(office.desk.next_settled()).await;
    assert_eq!(settled.ending, Ending::HookGone);

    let (reader, writer) = std::io::pipe().unwrap();
    let socket = office.path.clone();
    let hook =
        spawn_blocking(move || ask(&socket, &question(2), &patience(), Some(writer.as_fd())));
    office.registered(&id(2)).await;
    drop(reader);
    assert!(matches!(
        within(hook).await.unwrap(),
        Err(NoDecision::ListenerGone)
    ));
    office.close().await;
}

#[test]
fn without_a_daemon_the_dialog_has_it_at_once() {
    let dir = private_dir();
    let stale = dir.path().join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [
        dir.path().join("none.sock"),
        dir.path().join("no/such/dir.sock"),
        stale,
        file,
    ] {
        let begun = Instant::now();
        let result = ask(&path, &question(1), &patience(), None);
        assert!(
            matches!(result, Err(NoDecision::Unreachable(Unreachable::NoDaemon))),
            "{path:?}: {result:?}"
        );
        assert!(begun.elapsed() < Duration::from_millis(20), "{path:?}");
    }
}

#[test]
fn a_foreign_server_gets_not_a_byte() {
    let dir = private_dir();
    let path = dir.path().join("nod.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let not_us = connect::own_uid().wrapping_add(1);
    assert!(matches!(
        connect::dial_as(&path, not_us),
        Err(Unreachable::Foreign(_))
    ));
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(
        ask(&path, &question(1), &patience(), None),
        Err(NoDecision::Unreachable(Unreachable::Foreign(_)))
    ));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "it was not even connected to");
}

#[test]
fn a_hung_daemon_is_not_waited_for() {
    let dir = private_dir();
    let path = dir.path().join("nod.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let patience = Patience {
        ack: Duration::from_millis(100),
        ..patience()
    };
    assert!(matches!(
        ask(&path, &question(1), &patience, None),
        Err(NoDecision::Hung)
    ));
    let begun = Instant::now();
    let told = notify(&path, notice(b"{}"), Duration::from_millis(100));
    assert!(told.is_ok(), "{told:?}");
    let large = notice(&vec![b' '; 4 << 20]);
    let told = notify(&path, large, Duration::from_millis(100));
    assert!(matches!(told, Err(NoDecision::OutOfTime)), "{told:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

fn notice(raw_input: &[u8]) -> HookNotice {
    HookNotice {
        process: None,
        project: "/p".into(),
        raw_input: raw_input.to_owned(),
        mailbox: None,
    }
}

/// A server that says exactly these bytes, in these pieces.
fn scripted(pieces: Vec<Vec<u8>>) -> Result<Decision, NoDecision> {
    let dir = private_dir();
    let path = dir.path().join("nod.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 64 * 1024];
        let _ = stream.read(&mut request).unwrap();
        for piece in pieces {
            // The hook may have left already; that is for it to say.
            let _ = stream.write_all(&piece);
        }
        drop(listener);
    });
    let patience = Patience {
        comeback: Duration::ZERO,
        ..patience()
    };
    let result = ask(&path, &question(1), &patience, None);
    server.join().unwrap();
    result
}

fn ack() -> Vec<u8> {
    Ack::Registered {
        session: "s".into(),
        nod: None,
    }
    .encode()
}

fn allow() -> Vec<u8> {
    let digest = question(1).digest.hex();
    wire::frame(&json!({
        "success": true, "session_id": "s",
        "decision": {"behavior": "allow"}, "nod": {"digest": digest}
    }))
    .unwrap()
}

#[test]
fn ack_and_decision_are_told_apart_however_they_arrive() {
    let whole = [ack(), allow()].concat();
    let bytes = whole.iter().map(|byte| vec![*byte]).collect();
    for pieces in [vec![whole], bytes] {
        assert!(matches!(scripted(pieces), Ok(Decision::Allow(_))));
    }
}

#[test]
fn no_cut_and_no_garble_of_an_answer_is_an_allow() {
    let whole = [ack(), allow()].concat();
    for end in 0..whole.len() {
        let result = scripted(vec![whole[..end].to_vec()]);
        assert!(!matches!(result, Ok(Decision::Allow(_))), "cut at {end}");
    }
    for garbage in [
        b"\0\0\0\x02{}".to_vec(),
        b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        [ack(), b"\xff\xff\xff\xff".to_vec()].concat(),
        [ack(), b"\0\0\0\x04null".to_vec()].concat(),
        [ack(), ack()].concat(),
        allow(),
    ] {
        let result = scripted(vec![garbage]);
        assert!(!matches!(result, Ok(Decision::Allow(_))), "{result:?}");
    }
}

#[tokio::test]
async fn notices_and_status_are_quick() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let socket = office.path.clone();
    let told = spawn_blocking(move || {
        let told = notify(&socket, notice(b"{}"), LIMIT);
        (told, order(&socket, DaemonOrder::Status, LIMIT))
    });
    let (told, status) = within(told).await.unwrap();
    told.unwrap();
    assert_eq!(status.unwrap()["success"], true);
    let taken = async {
        while office.notices.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(taken).await;
    office.close().await;
}

#[test]
fn a_request_too_large_for_the_daemon_is_not_sent() {
    let mut huge = question(1);
    huge.raw_input = vec![b'x'; MAX_REQUEST];
    let dir = private_dir();
    let result = ask(&dir.path().join("none"), &huge, &patience(), None);
    assert!(matches!(result, Err(NoDecision::TooLarge)));
}

/// Elsewhere a full queue looks like a socket that nobody serves.
#[cfg(target_os = "linux")]
#[test]
fn a_full_queue_is_tried_again() {
    let dir = private_dir();
    let path = dir.path().join("nod.sock");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let first = connect::dial(&path).unwrap();
    assert!(matches!(connect::dial(&path), Err(Unreachable::Busy)));
    let server = thread::spawn(move || {
        let waiting = listener.accept().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 64 * 1024];
        let _ = stream.read(&mut request).unwrap();
        stream.write_all(&[ack(), allow()].concat()).unwrap();
        drop(waiting);
        stream
    });
    let answer = ask(&path, &question(1), &patience(), None);
    assert!(matches!(answer, Ok(Decision::Allow(_))), "{answer:?}");
    drop((first, server.join().unwrap()));
}

/// Runs a perl one-liner as `nobody`; `None`, loudly, where that can't be.
fn as_nobody(script: &str, dir: &Path) -> Option<std::process::Child> {
    const NOBODY: u32 = 65534;
    let spawned = Command::new("perl")
        .args(["-MIO::Socket::UNIX", "-e", script])
        .current_dir(dir)
        .uid(NOBODY)
        .gid(NOBODY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    match spawned {
        Ok(child) if connect::own_uid() == 0 => Some(child),
        _ => {
            let notice = "SKIPPED: a test of another user needs root and perl\n";
            std::io::stderr().write_all(notice.as_bytes()).unwrap();
            None
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_user_can_not_speak_to_the_daemon_even_through_open_doors() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(dir.path(), 0o711);
    open(&office.path, 0o666);
    let script = r#"
        my $s = IO::Socket::UNIX->new(Peer => "nod.sock") or die "connect: $!";
        local $SIG{PIPE} = "IGNORE";
        print $s '{"nod":{"version":2,"verb":"status"}}'; $s->flush;
        my $n = sysread($s, my $b, 100);
        print "got ", length($b // ""), " bytes\n";"#;
    let Some(child) = as_nobody(script, dir.path()) else {
        return office.close().await;
    };
    let output = within(spawn_blocking(|| child.wait_with_output())).await;
    let output = output.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "got 0 bytes\n");
    office.close().await;
}

#[test]
fn another_users_server_in_a_shared_directory_is_not_believed() {
    let dir = private_dir();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let path = dir.path().join("squat.sock");
    let script = r#"
        my $s = IO::Socket::UNIX->new(Local => "squat.sock", Listen => 5) or die "bind: $!";
        chmod 0777, "squat.sock"; $| = 1; print "ready\n"; <STDIN>;"#;
    let Some(mut squatter) = as_nobody(script, dir.path()) else {
        return;
    };
    let mut ready = [0; 6];
    let stdout = squatter.stdout.as_mut().unwrap();
    stdout.read_exact(&mut ready).unwrap();
    let result = ask(&path, &question(1), &patience(), None);
    drop(squatter.stdin.take());
    squatter.wait().unwrap();
    assert!(
        matches!(
            result,
            Err(NoDecision::Unreachable(Unreachable::Foreign(_)))
        ),
        "{result:?}"
    );
}
