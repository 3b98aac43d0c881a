//! What one hook call costs: `nod hook` beside a process that does nothing and
//! beside clients of the first protocol, all against the same stand-in for the
//! daemon, which decides after a fixed wait.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use serde_json::json;

use crate::subject::{Home, memory};

/// How long the stand-in "thinks"; taken off every wall time.
const WAIT: Duration = Duration::from_millis(30);
const ROUNDS: usize = 40;

pub(crate) struct Cost {
    pub(crate) wall: Duration,
    /// While it waits; 0 where the waiting process is not the client itself.
    pub(crate) mib: f64,
}

/// The median cost of a call, or `None` when the client is not there.
pub(crate) fn cost(home: &Home, command: impl Fn(&Path) -> Command) -> Option<Cost> {
    let socket = home.path().join("stand-in.sock");
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).ok()?;
    let waiting = std::thread::spawn(move || {
        let mut sizes = Vec::new();
        while let Ok((stream, _)) = listener.accept() {
            match decide(stream) {
                Some(size) => sizes.push(size),
                None => break,
            }
        }
        sizes
    });
    let mut walls = Vec::new();
    let input = request(home).to_string();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let child = command(&socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = child else { break };
        let mut stdin = child.stdin.take()?;
        // A process that does nothing does not read either.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().ok()?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let asked = started.elapsed() >= WAIT;
        // On a busy machine an old client finds ack and decision in one read
        // and fails; such a round tells nothing about its cost.
        if asked && !printed.contains("allow") {
            continue;
        }
        let waited = if asked { WAIT } else { Duration::ZERO };
        walls.push(started.elapsed().saturating_sub(waited));
    }
    // An empty conversation ends the stand-in.
    drop(UnixStream::connect(&socket));
    let mut sizes = waiting.join().ok()?;
    walls.sort_unstable();
    sizes.sort_by(f64::total_cmp);
    let middle = walls.len() / 2;
    (walls.len() >= ROUNDS / 2).then(|| Cost {
        wall: walls[middle],
        mib: sizes.get(sizes.len() / 2).copied().unwrap_or(0.0),
    })
}

fn request(home: &Home) -> serde_json::Value {
    json!({
        "hook_event_name": "PermissionRequest",
        "session_id": "figures",
        "cwd": home.project(),
        "tool_name": "Bash",
        "tool_input": {"command": "cargo test --workspace"},
    })
}

/// Plays the daemon for one client; how large the client was while it waited.
fn decide(mut stream: UnixStream) -> Option<f64> {
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    while serde_json::from_slice::<serde_json::Value>(&request).is_err() {
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&chunk[..read]);
    }
    let asked: serde_json::Value = serde_json::from_slice(&request).ok()?;
    let ack = json!({"success": true, "session_id": "figures", "message": "ok"});
    stream.write_all(ack.to_string().as_bytes()).ok()?;
    let started = Instant::now();
    std::thread::sleep(WAIT / 2);
    let pid = socket_peercred(&stream).ok()?.pid.as_raw_nonzero();
    let mib = memory(u32::try_from(pid.get()).ok()?, "VmRSS:");
    std::thread::sleep(WAIT.saturating_sub(started.elapsed()));
    let mut told = json!({
        "success": true,
        "session_id": "figures",
        "decision": {"behavior": "allow"},
    });
    if let Some(digest) = asked.pointer("/nod/digest") {
        told["nod"] = json!({"version": 2, "digest": digest, "ack": true});
    }
    let told = told.to_string();
    let length = u32::try_from(told.len()).ok()?.to_be_bytes();
    stream
        .write_all(&[&length, told.as_bytes()].concat())
        .ok()?;
    Some(mib)
}
