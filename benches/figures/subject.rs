//! A client under measure: its process, what it has used so far, its end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nod::for_tests::simulator::{APP_ID, APP_SECRET, OWNER, Simulator};

use crate::LIMIT;

/// A process that ends with its handle.
#[derive(Debug)]
pub(crate) struct Subject(Child);

impl Subject {
    pub(crate) fn start(command: &mut Command) -> std::io::Result<Self> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self(child))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Processor time all its threads used so far, user and system.
    pub(crate) fn cpu(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid()));
        let threads = threads.into_iter().flatten().flatten();
        let nanos = threads.filter_map(|thread| {
            let used = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            used.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    pub(crate) fn mib(&self) -> f64 {
        memory(self.pid(), "VmRSS:")
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A connected daemon with nobody waiting.
pub(crate) async fn daemon(sim: &Simulator, home: &Home) -> anyhow::Result<Subject> {
    let subject = Subject::start(&mut home.nod("daemon", &sim.base_url()))?;
    anyhow::ensure!(sim.wait_connections(1, LIMIT).await, "nod did not connect");
    Ok(subject)
}

/// A line of `/proc/<pid>/status` in MiB.
pub(crate) fn memory(pid: u32, line: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let found = status.lines().find(|text| text.starts_with(line));
    let kib: Option<u32> = found.and_then(|text| text.split_whitespace().nth(1)?.parse().ok());
    f64::from(kib.unwrap_or(0)) / 1024.0
}

/// Directories of one daemon's own.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> std::io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("nod-figures").tempdir()?;
        std::fs::create_dir(dir.path().join("project"))?;
        Ok(Self(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path().join("project")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path().join("state/run/nod.sock")
    }

    pub(crate) fn nod(&self, argument: &str, feishu: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nod"));
        command
            .arg(argument)
            .env_clear()
            .env("HOME", self.path())
            .env("USER", "tester")
            .env("NOD_STATE_DIR", self.path().join("state"))
            .env("NOD_CHAT_RATE", "1000")
            .env("PERMISSION_REQUEST_TIMEOUT", "3600")
            .env("FEISHU_DOMAIN", feishu)
            .env("FEISHU_APP_ID", APP_ID)
            .env("FEISHU_APP_SECRET", APP_SECRET)
            .env("FEISHU_OWNER_ID", OWNER)
            .current_dir(self.path());
        command
    }
}
