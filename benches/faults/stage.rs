//! A home of its own for the daemon under test, and the daemon itself: started,
//! killed, started again. What it writes goes to a file beside it.

use std::fs::File;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::Context as _;
use nod::for_tests::hook::client;
use nod::for_tests::hook::wire::DaemonOrder;
use nod::for_tests::simulator::{APP_ID, APP_SECRET, OWNER};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};

/// Old clients' rules are spread over so many projects.
pub(crate) const PROJECTS: u64 = 32;
/// How long a request waits for a tap.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(25);

pub(crate) struct Home {
    dir: tempfile::TempDir,
    settings: Vec<(&'static str, String)>,
    /// What its `nod` is.
    role: &'static str,
}

impl Home {
    /// A daemon at that Feishu, whose requests wait so long for a tap.
    pub(crate) fn new(feishu: &str, patience: Duration) -> anyhow::Result<Self> {
        let mut settings = app(feishu);
        settings.push(("FEISHU_OWNER_ID", OWNER.to_owned()));
        Self::with("daemon", &settings, patience)
    }

    /// A daemon of a team, which knows no app, with what it keeps of its pass.
    pub(crate) fn machine(member: &str, patience: Duration) -> anyhow::Result<Self> {
        let home = Self::with("daemon", &[], patience)?;
        nod::for_tests::files::replace_private(&home.state().join("bus.pass"), member.as_bytes())?;
        Ok(home)
    }

    /// A gateway at that Feishu and that bus.
    pub(crate) fn gateway(feishu: &str, bus: &str, keys: &str) -> anyhow::Result<Self> {
        let mut settings = app(feishu);
        settings.push(("NOD_BUS_URL", bus.to_owned()));
        settings.push(("NOD_APP_RATE", "1000000".to_owned()));
        let mut home = Self::with("gateway", &settings, REQUEST_TIMEOUT)?;
        let file = home.dir.path().join("bus.keys");
        nod::for_tests::files::replace_private(&file, keys.as_bytes())?;
        home.settings
            .push(("NOD_BUS_KEYS", file.display().to_string()));
        Ok(home)
    }

    fn with(
        role: &'static str,
        more: &[(&'static str, String)],
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("nod-faults").tempdir()?;
        let mut private = std::fs::DirBuilder::new();
        private.mode(0o700).create(dir.path().join("state"))?;
        std::fs::create_dir(dir.path().join("home"))?;
        for n in 0..PROJECTS {
            std::fs::create_dir(dir.path().join(format!("project-{n}")))?;
        }
        let place = |name: &str| dir.path().join(name).display().to_string();
        let mut settings = vec![
            ("HOME", place("home")),
            ("USER", "tester".to_owned()),
            ("NOD_STATE_DIR", place("state")),
            ("NOD_LOG", "info".to_owned()),
            ("NOD_CHAT_RATE", "1000".to_owned()),
            ("NOD_NOTIFY_STOP_AFTER", "off".to_owned()),
            ("PERMISSION_REQUEST_TIMEOUT", patience.as_secs().to_string()),
            ("LD_PRELOAD", place("clock.so")),
            ("FAULTS_CLOCK", place("clock")),
        ];
        settings.extend_from_slice(more);
        let home = Self {
            dir,
            settings,
            role,
        };
        let shared = home.settings.iter();
        let lines = shared.map(|(name, value)| format!("{name}=\"{value}\"\n"));
        std::fs::write(home.hook_file(), lines.collect::<String>())?;
        home.set_clock(0)?;
        home.build_clock()?;
        Ok(home)
    }

    /// Moves nod's wall clock to so far from the true one, at once.
    pub(crate) fn set_clock(&self, ms: i64) -> std::io::Result<()> {
        let mut file = File::options();
        let file = file.create(true).truncate(false).write(true);
        let file = file.open(self.dir.path().join("clock"))?;
        file.write_all_at(&ms.to_ne_bytes(), 0)
    }

    fn build_clock(&self) -> anyhow::Result<()> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/faults/clock.c");
        let built = std::process::Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .arg(self.dir.path().join("clock.so"))
            .args([source, "-ldl"])
            .status()
            .context("the movable clock needs `cc`")?;
        anyhow::ensure!(built.success(), "the movable clock cannot be built");
        Ok(())
    }

    /// KiB in all files of the state directory.
    pub(crate) fn disk_kib(&self) -> u64 {
        let files = std::fs::read_dir(self.state()).into_iter().flatten();
        let sizes = files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len()));
        sizes.sum::<u64>() >> 10
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.state().join("run/nod.sock")
    }

    pub(crate) fn project(&self, number: u64) -> PathBuf {
        self.dir
            .path()
            .join(format!("project-{}", number % PROJECTS))
    }

    /// The settings of hooks, which take none from their environment.
    fn hook_file(&self) -> PathBuf {
        self.dir.path().join("hook.env")
    }

    /// `nod` with these arguments and nothing of this process' environment.
    pub(crate) fn nod(&self, argument: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nod"));
        command.arg(argument);
        if argument == "hook" {
            command.arg("--config").arg(self.hook_file());
        }
        command
            .env_clear()
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.path().join("daemon.log")
    }

    /// Keeps the directory for whoever looks into a failure.
    pub(crate) fn keep(self) -> PathBuf {
        self.dir.keep()
    }
}

fn app(feishu: &str) -> Vec<(&'static str, String)> {
    vec![
        ("FEISHU_DOMAIN", feishu.to_owned()),
        ("FEISHU_APP_ID", APP_ID.to_owned()),
        ("FEISHU_APP_SECRET", APP_SECRET.to_owned()),
    ]
}

/// The daemon or gateway of the moment.
pub(crate) struct Daemon(Mutex<Option<Child>>);

impl Daemon {
    pub(crate) fn none() -> Self {
        Self(Mutex::new(None))
    }

    pub(crate) fn start(&self, home: &Home) -> anyhow::Result<()> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(home.log())
            .context("the daemon's log")?;
        let child = home.nod(home.role).stderr(log).spawn()?;
        *self.lock() = Some(child);
        Ok(())
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.lock().as_ref()?.id()
    }

    /// Ends it, by force or by asking, and waits until it has ended.
    pub(crate) async fn end(&self, signal: Signal) {
        let child = self.lock().take();
        let Some(mut child) = child else { return };
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // One that has ended by itself is gone already.
            let _ = kill_process(pid, signal);
        }
        let _ = child.wait().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

pub(crate) fn status(socket: &Path) -> Option<Value> {
    client::order(socket, DaemonOrder::Status, Duration::from_secs(2)).ok()
}

/// What a process holds at this moment: KiB of memory and open files.
pub(crate) fn footprint(pid: u32) -> Option<(u64, usize)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib = line.split_whitespace().nth(1)?.parse().ok()?;
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    Some((kib, files))
}
