//! Where a team meets: the NATS server on the PATH, or nod's own bus, with its
//! keys and the passes of its machines. It can die and come back.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nod::for_tests::bus::conf;
use nod::for_tests::bus::keys::Keys;
use nod::for_tests::bus::membership::{Grant, Membership};
use nod::for_tests::bus::nkey::{KeyKind, KeyPair};
use nod::for_tests::bus::pass::{self, Span};
use nod::for_tests::bus::subjects::Owner;
use nod::for_tests::bus::url::BusUrl;
use nod::for_tests::clock;
use nod::for_tests::simulator::bus::Bus;
use nod::for_tests::simulator::{APP_ID, OWNER};

const DAY: i64 = 24 * 3_600;
const LISTENS_WITHIN: Duration = Duration::from_secs(60);

pub(crate) struct Meeting {
    keys: Keys,
    at: SocketAddr,
    program: Option<PathBuf>,
    real: Option<Child>,
    small: Option<Bus>,
    dir: tempfile::TempDir,
}

impl Meeting {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let mut dirs: Vec<PathBuf> = std::env::split_paths(&paths).collect();
        // Where Debian puts it.
        dirs.push("/usr/sbin".into());
        let mut files = dirs.into_iter().map(|dir| dir.join("nats-server"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        Ok(Self {
            keys: Keys::make(rand::random),
            at: listener.local_addr()?,
            program: files.find(|file| file.is_file()),
            real: None,
            small: None,
            dir: tempfile::tempdir()?,
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.program {
            Some(_) => "nats-server",
            None => "nod's own bus, no nats-server here",
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.at)
    }

    /// What a gateway keeps in its file of keys.
    pub(crate) fn keys(&self) -> String {
        self.keys.text().expose().to_owned()
    }

    /// What a new machine of the owner's keeps in its file, and its key.
    pub(crate) fn member(&self) -> anyhow::Result<(String, String)> {
        let key = KeyPair::of(KeyKind::User, rand::random());
        let public = key.public();
        let now = clock::wall_ms() / 1_000;
        let span = Span {
            made: now - 1,
            until: now + DAY,
        };
        let owner = Owner::parse(OWNER).context("an owner")?;
        let keys = &self.keys;
        let grant = Grant {
            url: self.url(),
            pass: pass::machine(&keys.machines, &keys.account, &owner, &public, span),
            push: vec![keys.push.public().to_string()],
            app_id: APP_ID.to_owned(),
        };
        let member = Membership::of(&grant, key).map_err(|why| anyhow::anyhow!("{why:?}"))?;
        Ok((member.text().expose().to_owned(), public.to_string()))
    }

    pub(crate) async fn start(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        let now = clock::wall_ms() / 1_000;
        if let Some(program) = &self.program {
            let url = BusUrl::parse(&self.url()).map_err(|why| anyhow::anyhow!("{why:?}"))?;
            let file = self.dir.path().join("nats.conf");
            let words = self.dir.path().join("accounts");
            let text = conf::text(&self.keys, &url, None, &words, now);
            std::fs::write(&file, text.context("a configuration")?)?;
            let mut server = Command::new(program);
            server.arg("-c").arg(&file).stdin(Stdio::null());
            server.stdout(Stdio::null()).stderr(Stdio::null());
            self.real = Some(server.spawn()?);
        } else {
            let own = self.keys.own.as_ref().context("an operator")?;
            let [operator, system] =
                [&own.operator, &own.system].map(|pair| pair.public().to_string());
            let account = self.keys.account_word(&[], now).context("an account")?;
            // Connections of before may still hold the address.
            while self.small.is_none() {
                let bus = Bus::start(self.at, &operator, &system, &account).await;
                self.small = bus.ok();
                in_time(started)?;
            }
        }
        while tokio::net::TcpStream::connect(self.at).await.is_err() {
            in_time(started)?;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// It dies as a power cut ends it.
    pub(crate) fn stop(&mut self) {
        self.small = None;
        if let Some(mut child) = self.real.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        self.stop();
    }
}

fn in_time(started: Instant) -> anyhow::Result<()> {
    if started.elapsed() > LISTENS_WITHIN {
        bail!("the bus does not listen");
    }
    Ok(())
}

/// What only some who measure look at.
#[allow(dead_code, reason = "the faults count nothing of this")]
impl Meeting {
    /// The process of a server that is one.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.real.as_ref().map(Child::id)
    }

    /// How many are connected, as the system counts them.
    pub(crate) fn connections(&self) -> usize {
        let tcp = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        let port = format!(":{:04X}", self.at.port());
        let is_ours = |line: &&str| {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().is_some_and(|local| local.ends_with(&port));
            // The third is the state; 01 is established.
            local && words.nth(1) == Some("01")
        };
        tcp.lines().filter(is_ours).count()
    }
}
