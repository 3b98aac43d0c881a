use super::*;
use crate::claude::permission::Common;
use crate::daemon::terminals::watching::bench::{own_pid, writes};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _};
use std::os::unix::net::UnixListener;
use std::path::Path;

/// A terminal's session `s1` whose process is this test: its home, and its
/// mailbox.
struct Terminal {
    home: tempfile::TempDir,
    mailboxes: Mailboxes,
    listener: UnixListener,
}

fn session() -> SessionId {
    SessionId::parse("s1").unwrap()
}

impl Terminal {
    /// It does this, and has a transcript.
    fn does(status: &str) -> Self {
        let terminal = Self::without_transcript(status);
        std::fs::write(terminal.transcript(), "").unwrap();
        terminal
    }

    fn without_transcript(status: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join("projects/-p")).unwrap();
        let listener = UnixListener::bind(home.path().join("s")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let terminal = Self {
            home,
            mailboxes: Mailboxes::default(),
            listener,
        };
        terminal.status(own_pid(), status, "cli", &terminal.socket());
        let socket = terminal.socket();
        let mailbox = Mailbox::new(socket.to_str().unwrap(), "token").unwrap();
        terminal.told(&terminal.transcript(), Some(&mailbox));
        terminal
    }

    fn socket(&self) -> PathBuf {
        self.home.path().join("s")
    }

    fn transcript(&self) -> PathBuf {
        self.home.path().join("projects/-p/s1.jsonl")
    }

    fn status(&self, pid: u32, status: &str, entrypoint: &str, socket: &Path) {
        let status = json!({"pid": pid, "sessionId": "s1", "entrypoint": entrypoint,
            "status": status, "messagingSocketPath": socket});
        writes(&self.home.path().join("sessions"), &status);
    }

    /// A hook tells of it.
    fn told(&self, transcript: &Path, mailbox: Option<&Mailbox>) {
        let common = Common {
            session: Some(session()),
            transcript: Some(transcript.to_owned()),
            ..Common::default()
        };
        self.mailboxes
            .told("/src/shop".as_ref(), &common, mailbox, 0);
    }

    fn writes_down(&self, line: &Value) {
        let mut file = OpenOptions::new()
            .append(true)
            .open(self.transcript())
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }

    async fn hears(&self, words: &str) -> WordsFate {
        to(&self.mailboxes, &session(), words, 1).await
    }

    /// The letter in its mailbox; `None` where nobody wrote.
    fn letter(&self) -> Option<String> {
        match self.listener.accept() {
            Ok((mut stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                let mut letter = String::new();
                stream.read_to_string(&mut letter).unwrap();
                Some(letter)
            }
            Err(why) => {
                assert_eq!(why.kind(), ErrorKind::WouldBlock);
                None
            }
        }
    }

    /// Whether a prompt of these words is taken for a person's at the terminal.
    fn takes_for_its_own(&self, words: &str) -> bool {
        !self.mailboxes.reads(&session(), words, 2)
    }
}

fn queued(words: &str) -> Value {
    json!({"type": "queue-operation", "operation": "enqueue", "content": words})
}

fn held() -> Value {
    json!({"type": "system", "subtype": "informational",
        "content": "Held peer message — from an unidentified session"})
}

/// What happens a moment after the words were handed over.
#[test]
fn control_characters_in_words_do_not_reach_a_terminal() {
    for (words, left) in [
        ("go on\n\tnow", "go on\n\tnow"),
        ("a\r\nb\rc", "a\nbc"),
        ("\u{1b}[2Jgo\u{7}\u{9b}31m \u{0}on\u{8}", "[2Jgo31m on"),
        ("继续 👍", "继续 👍"),
    ] {
        assert_eq!(without_controls(words), left);
    }
}

async fn soon(happens: impl FnOnce()) {
    tokio::time::sleep(2 * LOOK_EVERY).await;
    happens();
}

#[tokio::test(start_paused = true)]
async fn words_go_with_the_token_to_the_session_which_reads_them() {
    let terminal = Terminal::does("idle");
    let reads = soon(|| assert!(!terminal.takes_for_its_own("run the tests")));
    let (fate, ()) = tokio::join!(terminal.hears("run the tests"), reads);
    assert_eq!(fate, WordsFate::Read);
    let letter = terminal.letter().unwrap();
    let lines: Vec<Value> = letter
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["token"], "token");
    assert_eq!(lines[1]["message"]["content"], "run the tests");
}

#[tokio::test(start_paused = true)]
async fn a_busy_session_queues_them_and_reads_them_later() {
    let terminal = Terminal::does("busy");
    let queue = soon(|| terminal.writes_down(&queued("go on")));
    let (fate, ()) = tokio::join!(terminal.hears("go on"), queue);
    assert_eq!(fate, WordsFate::Queued);
    assert!(!terminal.takes_for_its_own("go on"), "known again");
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_that_took_them_has_a_moment_to_read_them() {
    let terminal = Terminal::does("idle");
    let reads = async {
        soon(|| terminal.writes_down(&queued("go on"))).await;
        tokio::time::sleep(TOLD_WITHIN / 2).await;
        assert!(!terminal.takes_for_its_own("go on"));
    };
    let (fate, ()) = tokio::join!(terminal.hears("go on"), reads);
    assert_eq!(fate, WordsFate::Read);
    let queue = soon(|| terminal.writes_down(&queued("and now")));
    let (fate, ()) = tokio::join!(terminal.hears("and now"), queue);
    assert_eq!(fate, WordsFate::Queued, "and no hook told of it");
}

#[tokio::test(start_paused = true)]
async fn words_that_wait_for_the_person_there_are_told_to() {
    let terminal = Terminal::does("busy");
    terminal.writes_down(&queued("go on"));
    let hold = soon(|| terminal.writes_down(&held()));
    let (fate, ()) = tokio::join!(terminal.hears("go on"), hold);
    assert_eq!(fate, WordsFate::Held, "what stood there before is older");
}

#[tokio::test(start_paused = true)]
async fn words_that_nothing_came_of_are_refused_and_forgotten() {
    for status in ["idle", "busy"] {
        let terminal = Terminal::does(status);
        let since = Instant::now();
        assert_eq!(terminal.hears("go on").await, WordsFate::Refused);
        assert!(since.elapsed() >= TOLD_WITHIN && since.elapsed() < 2 * TOLD_WITHIN);
        assert!(terminal.takes_for_its_own("go on"), "typed by a person");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_session_whose_transcript_cannot_be_read_counts_as_queueing() {
    let busy = Terminal::without_transcript("busy");
    assert_eq!(busy.hears("go on").await, WordsFate::Queued);
    assert!(!busy.takes_for_its_own("go on"));
    let linked = Terminal::without_transcript("busy");
    let elsewhere = linked.home.path().join("elsewhere");
    std::fs::write(&elsewhere, "").unwrap();
    std::os::unix::fs::symlink(&elsewhere, linked.transcript()).unwrap();
    let holds = soon(|| std::fs::write(&elsewhere, format!("{}\n", held())).unwrap());
    let (fate, ()) = tokio::join!(linked.hears("go on"), holds);
    assert_eq!(fate, WordsFate::Queued, "a link says nothing");
    let idle = Terminal::without_transcript("idle");
    assert_eq!(idle.hears("go on").await, WordsFate::Refused);
}

#[tokio::test(start_paused = true)]
async fn words_go_nowhere_but_into_an_open_session_that_told_of_its_mailbox() {
    let terminal = Terminal::does("idle");
    let long = "x".repeat(MAX_WORDS + 1);
    assert_eq!(terminal.hears(&long).await, WordsFate::TooLong);
    let stranger = SessionId::parse("s2").unwrap();
    let fate = to(&terminal.mailboxes, &stranger, "go on", 1).await;
    assert_eq!(fate, WordsFate::Unknown);
    let elsewhere = terminal.home.path().join("other");
    terminal.status(own_pid(), "idle", "cli", &elsewhere);
    let fate = terminal.hears("go on").await;
    assert_eq!(fate, WordsFate::NoMailbox, "its own file names another");
    terminal.status(own_pid(), "idle", "sdk-cli", &terminal.socket());
    let fate = terminal.hears("go on").await;
    assert_eq!(fate, WordsFate::Gone, "nobody sits before it");
    terminal.status(own_pid(), "idle", "cli", &terminal.socket());
    terminal.told(Path::new("/elsewhere/s1.jsonl"), None);
    let fate = terminal.hears("go on").await;
    assert_eq!(
        fate,
        WordsFate::NoMailbox,
        "nobody knows whether it is open"
    );
    terminal.told(&terminal.transcript(), None);
    terminal.mailboxes.ended(&session());
    assert_eq!(terminal.hears("go on").await, WordsFate::Gone);
    assert_eq!(terminal.letter(), None, "nothing was written anywhere");
    assert!(terminal.takes_for_its_own("go on"));
}

#[tokio::test(start_paused = true)]
async fn a_mailbox_that_nobody_or_somebody_else_serves_gets_no_word() {
    let terminal = Terminal::does("idle");
    if cfg!(target_os = "linux") {
        let dir = terminal.home.path().join("sessions");
        std::fs::remove_file(dir.join(format!("{}.json", own_pid()))).unwrap();
        // Alive, and not the one that listens.
        let other = std::os::unix::process::parent_id();
        terminal.status(other, "idle", "cli", &terminal.socket());
        assert_eq!(terminal.hears("go on").await, WordsFate::NoMailbox);
        assert_eq!(terminal.letter().as_deref(), Some(""), "not a byte");
        std::fs::remove_file(dir.join(format!("{other}.json"))).unwrap();
        terminal.status(own_pid(), "idle", "cli", &terminal.socket());
    }
    std::fs::remove_file(terminal.socket()).unwrap();
    assert_eq!(terminal.hears("go on").await, WordsFate::NoMailbox);
    assert!(terminal.takes_for_its_own("go on"), "it was never there");
}

#[tokio::test]
async fn a_transcript_is_read_by_whole_lines_and_each_once() {
    let terminal = Terminal::does("idle");
    let mut tail = Signs::of(Some(terminal.transcript())).await;
    assert_eq!(tail.read("go on"), None, "nothing is new");
    let line = queued("go on").to_string();
    std::fs::write(terminal.transcript(), &line).unwrap();
    assert_eq!(tail.read("go on"), None, "half a line");
    std::fs::write(terminal.transcript(), format!("{line}\n")).unwrap();
    assert_eq!(tail.read("go on"), Some(Sign::Taken));
    assert_eq!(tail.read("go on"), None, "it was seen");
    std::fs::write(terminal.transcript(), "").unwrap();
    assert_eq!(tail.read("go on"), None, "it began anew");
}

#[test]
fn a_session_is_called_by_its_directory() {
    let named = |project| super::super::place_name(Path::new(project)).into_owned();
    assert_eq!(named("/src/shop"), "shop");
    assert_eq!(named("/"), "/");
}
