//! What one hook call costs: `nod hook` beside a process that does nothing and
//! beside clients of the first protocol, all against the same stand-in for the
//! daemon, which decides after a fixed wait; and what Claude Code pays for each
//! tool that asks nobody, with a daemon and without.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nod::for_tests::hook::connect::peer_pid;
use serde_json::json;

use crate::subject::{self, Home, memory};
use crate::table::Figure;
use crate::{ms, part, quiet_feishu};

/// How long the stand-in "thinks"; taken off every wall time.
const WAIT: Duration = Duration::from_millis(30);
const ROUNDS: usize = 60;
/// Calls of a tool that asks nobody.
const READS: usize = 400;

struct Cost {
    wall: Duration,
    /// Of the process and all it started, user and system.
    cpu: Duration,
    /// While it waits.
    mib: f64,
    peak_mib: f64,
    /// Of what it holds while it waits, the part no other process shares.
    own_mib: f64,
}

pub(crate) fn figures(share: usize) -> anyhow::Result<Vec<Figure>> {
    let home = Home::new()?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rounds = ROUNDS.div_ceil(share);
    let nothing = cost(&home, rounds, |_| Command::new("true"));
    let nothing = nothing.context("`true` did not run")?;
    let nod = cost(&home, rounds, |socket| {
        let file = home.path().join("hook.env");
        let text = format!(
            "PERMISSION_SOCKET_PATH={}\nPERMISSION_REQUEST_TIMEOUT=3600\n",
            socket.display()
        );
        std::fs::write(&file, text).expect("a settings file");
        let mut command = home.nod("hook", "http://127.0.0.1:1");
        command.arg("--config").arg(file);
        command
    });
    let nod = nod.context("`nod hook` did not answer")?;
    let mut figures = vec![
        Figure::new("hook.bar", "nod hook: own wall time", "ms", ms(nod.wall)).at_most(5.0, 2.0),
        Figure::new(
            "hook.mib.bar",
            "nod hook: RSS while it waits",
            "MiB",
            nod.mib,
        )
        .at_most(4.0, 2.0),
        Figure::new("hook.peak", "nod hook: peak RSS", "MiB", nod.peak_mib),
        Figure::new(
            "hook.own",
            "nod hook: of it not shared with other processes",
            "MiB",
            nod.own_mib,
        ),
        Figure::new(
            "hook.nothing",
            "a process that does nothing",
            "ms",
            ms(nothing.wall),
        ),
    ];
    let python = cost(&home, rounds, |socket| {
        let mut command = Command::new("python3");
        let script = here.join("benches/figures/peers/v1.py");
        command.arg(script).arg(socket).arg(home.project());
        command
    });
    let bash = cost(&home, rounds, |socket| {
        let mut command = Command::new("bash");
        let script = here.join("tests/peers/socket/v1_client.sh");
        command
            .arg(script)
            .arg(socket)
            .arg(home.project())
            .arg("v1-bash");
        command
    });
    for (key, name, cost) in [
        ("nod", "nod hook", Some(nod)),
        ("python", "Python hook client", python),
        ("bash", "bash + socat hook client", bash),
    ] {
        let Some(cost) = cost else {
            println!("SKIPPED: the {name} does not run here");
            continue;
        };
        let figure = |id: &str, what: &str, unit, value| {
            Figure::new(
                &format!("{id}.{key}"),
                &format!("{name}: {what}"),
                unit,
                value,
            )
        };
        figures.push(figure("hook", "wall time", "ms", ms(cost.wall)));
        figures.push(figure("hook.cpu", "CPU time", "ms", ms(cost.cpu)));
        if key != "bash" {
            figures.push(figure("hook.mib", "RSS while it waits", "MiB", cost.mib));
        }
    }
    Ok(figures)
}

/// Claude Code starts a hook after each tool, also where nobody was asked: what
/// that costs with a daemon, beside one that finds none.
pub(crate) async fn reads(share: usize) -> anyhow::Result<Vec<Figure>> {
    let (sim, home) = (quiet_feishu().await?, Home::new()?);
    let _daemon = subject::daemon(&sim, &home).await?;
    let input = read(&home).to_string();
    let call = |socket: &Path, file: &str| -> anyhow::Result<f64> {
        let file = home.path().join(file);
        std::fs::write(
            &file,
            format!("PERMISSION_SOCKET_PATH={}\n", socket.display()),
        )?;
        let mut command = home.nod("hook", "http://127.0.0.1:1");
        command.arg("--config").arg(file);
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut stdin = child.stdin.take().context("a hook has an input")?;
        stdin.write_all(input.as_bytes())?;
        drop(stdin);
        child.wait()?;
        Ok(ms(started.elapsed()))
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    // One after the other, so that a busy moment of the machine meets both.
    for _ in 0..READS.div_ceil(share) {
        with.push(call(&home.socket(), "with.env")?);
        without.push(call(&home.path().join("nobody.sock"), "without.env")?);
    }
    let (with, without) = (part(&mut with, 0.5), part(&mut without, 0.5));
    Ok(vec![
        Figure::new("read.with", "a tool that asks nobody: its hook", "ms", with),
        Figure::new("read.without", "the same, no daemon", "ms", without),
        Figure::new(
            "read",
            "a daemon makes it so many times as long",
            "×",
            with / without,
        )
        .at_most(1.1, 1.05),
    ])
}

/// The median cost of a call, or `None` when the client is not there.
fn cost(home: &Home, rounds: usize, command: impl Fn(&Path) -> Command) -> Option<Cost> {
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
    let before = children();
    for _ in 0..rounds {
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
        let took = started.elapsed();
        let printed = String::from_utf8_lossy(&output.stdout);
        let asked = took >= WAIT;
        // On a busy machine an old client finds ack and decision in one read
        // and fails; such a round tells nothing about its cost.
        if asked && !printed.contains("allow") {
            continue;
        }
        let waited = if asked { WAIT } else { Duration::ZERO };
        walls.push(took.saturating_sub(waited));
    }
    let cpu = children().saturating_sub(before) / u32::try_from(rounds).ok()?;
    // An empty conversation ends the stand-in.
    drop(UnixStream::connect(&socket));
    let sizes = waiting.join().ok()?;
    walls.sort_unstable();
    let middle = |at: usize| {
        let mut sizes: Vec<f64> = sizes.iter().map(|of| of[at]).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.get(sizes.len() / 2).copied().unwrap_or(0.0)
    };
    (walls.len() >= rounds.div_ceil(2)).then(|| Cost {
        wall: walls[walls.len() / 2],
        cpu,
        mib: middle(0),
        peak_mib: middle(1),
        own_mib: middle(2),
    })
}

/// Processor time of all children waited for so far, in ticks of ten
/// milliseconds: exact enough over many of them.
fn children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name may hold anything; what follows its bracket may not.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = rest.split_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
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

fn read(home: &Home) -> serde_json::Value {
    let file = home.project().join("notes.md");
    json!({
        "hook_event_name": "PostToolUse",
        "session_id": "figures",
        "cwd": home.project(),
        "tool_name": "Read",
        "tool_input": {"file_path": file},
        "tool_response": {"type": "text", "file": {
            "filePath": file,
            "content": "one line of a file\n".repeat(200),
            "numLines": 200,
        }},
    })
}

/// Plays the daemon for one client; how large the client was while it waited,
/// at most, and by itself.
fn decide(mut stream: UnixStream) -> Option<[f64; 3]> {
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
    let pid = peer_pid(&stream)?;
    let sizes = ["VmRSS:", "VmHWM:", "RssAnon:"].map(|line| memory(pid, line));
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
    Some(sizes)
}
