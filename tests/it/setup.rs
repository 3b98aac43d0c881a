//! The real `nod setup` by flags, from a home with somebody's settings to a
//! proven tap, and all of it taken back.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nod::for_tests::simulator::{APP_ID, APP_SECRET, OWNER, Options, Press, Simulator};

use super::support::{Daemon, Home, LIMIT, settings};

const SETTINGS: &str = "{\n  // mine\n  \"model\": \"opus\"\n}";

fn nod(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nod"));
    command
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/nonexistent")
        .env("NOD_LANG", "en")
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn text(output: &Output) -> String {
    let parts = [&output.stdout, &output.stderr].map(|part| String::from_utf8_lossy(part));
    parts.concat()
}

/// Every file and directory under `dir`, with mode and content.
fn picture(dir: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let is = fs::symlink_metadata(&path).unwrap();
            let content = if is.is_file() {
                fs::read(&path).unwrap()
            } else {
                open.push(path.clone());
                Vec::new()
            };
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            found.insert(name, (is.permissions().mode() & 0o777, content));
        }
    }
    found
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".claude")).unwrap();
    fs::write(home.path().join(".claude/settings.json"), SETTINGS).unwrap();
    home
}

/// A set-up that is told everything.
fn given<'a>(feishu: &'a str, secret: &'a Path) -> [&'a str; 12] {
    [
        "setup",
        "--yes",
        "--no-test-card",
        "--no-service",
        "--domain",
        feishu.trim_end_matches('/'),
        "--app-id",
        APP_ID,
        "--app-secret-file",
        secret.to_str().expect("a test's path"),
        "--owner",
        OWNER,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_alone_lead_to_a_proven_tap_and_back() {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let home = home();
    let before = picture(home.path());
    let base = feishu.base_url();
    let flags = [
        "setup",
        "--yes",
        "--no-service",
        "--domain",
        base.trim_end_matches('/'),
        "--app-id",
        APP_ID,
        "--app-secret-stdin",
        "--owner",
        OWNER,
    ];
    let mut child = nod(home.path(), &flags)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{APP_SECRET}").unwrap();
    drop(stdin);
    let setup = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());

    let cards = feishu.wait_messages(1, LIMIT).await.unwrap();
    let press = Press::text(&cards[0].message_id, "Tap me");
    let clicked = feishu.click(press.by(OWNER)).await.unwrap();
    assert_eq!(clicked.toast.unwrap().content, "The tap arrived ✓");

    let output = tokio::time::timeout(LIMIT, setup).await.unwrap().unwrap();
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains(APP_SECRET), "{said}");
    assert!(said.contains("`nod setup --no-test-card`"), "{said}");
    assert!(said.contains("the old file is kept"), "{said}");
    let after = picture(home.path());
    let (mode, env) = &after[".config/nod/.env"];
    assert_eq!(*mode, 0o600);
    let env = std::str::from_utf8(env).unwrap();
    assert!(env.contains(APP_SECRET) && env.contains(OWNER), "{env}");
    // The daemon that a service starts shall speak it too.
    assert!(env.contains("NOD_LANG=en\n"), "{env}");
    let settings = &after[".claude/settings.json"].1;
    let settings = std::str::from_utf8(settings).unwrap();
    assert!(settings.contains("// mine") && settings.contains("PermissionRequest"));

    let again = ["setup", "--yes", "--no-test-card", "--no-service"];
    let again = nod(home.path(), &again).output().unwrap();
    assert!(again.status.success(), "{}", text(&again));
    assert_eq!(picture(home.path()), after, "a second time changes nothing");
    let file = home.path().join(".claude/settings.json");
    let hooks = format!("✓ 6/9 Claude Code's hooks are in {}\n", file.display());
    assert!(text(&again).contains(&hooks), "{}", text(&again));

    let undo = ["setup", "--uninstall", "--dry-run"];
    let would = text(&nod(home.path(), &undo).output().unwrap());
    let back = nod(home.path(), &undo[..2]).output().unwrap();
    assert!(back.status.success(), "{}", text(&back));
    for (file, would_be, was) in [
        (".config/nod/.env", "would remove", "removed"),
        (".claude/settings.json", "would restore", "restored"),
    ] {
        let file = home.path().join(file);
        let file = file.display();
        assert!(would.contains(&format!("{would_be} {file}\n")), "{would}");
        let back = text(&back);
        assert!(back.contains(&format!("{was} {file}\n")), "{back}");
    }
    assert_eq!(picture(home.path()), before);
    assert!(feishu.violations().is_empty());
    feishu.shutdown().await;
}

/// Ends the daemon that a set-up said it started.
fn stop_in_background(home: &Path, told: &str) {
    let pid = told.split_once("the daemon runs in the background (process ");
    let pid = pid.unwrap().1.split_once(')').unwrap().0;
    let status = nod(home, &["status", "--json"]).output().unwrap();
    assert!(text(&status).contains(pid), "{}", text(&status));
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_agrees_to_everything_has_a_daemon_also_where_no_manager_is() {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let home = home();
    let secret = home.path().join("secret");
    fs::write(&secret, APP_SECRET).unwrap();
    let base = feishu.base_url();
    let flags = given(&base, &secret);
    let flags: Vec<_> = flags.into_iter().filter(|&f| f != "--no-service").collect();
    let done = nod(home.path(), &flags).output().unwrap();
    let told = text(&done);
    assert!(done.status.success(), "{told}");
    assert!(!told.contains('✗'), "{told}");
    stop_in_background(home.path(), &told);
    feishu.shutdown().await;
}

#[test]
fn each_agent_that_is_there_is_named_with_what_is_done_for_it() {
    let home = home();
    let preview = |settings: &[(&str, &str)]| {
        let mut preview = nod(home.path(), &["setup", "--yes", "--dry-run"]);
        text(&preview.envs(settings.iter().copied()).output().unwrap())
    };
    let alone = preview(&[]);
    assert!(!alone.contains("Codex"), "{alone}");
    fs::create_dir(home.path().join(".codex")).unwrap();
    let both = preview(&[]);
    assert!(both.contains("Claude Code: not found;"), "{both}");
    assert!(both.contains("Codex: nothing to write;"), "{both}");
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for program in ["claude", "codex"] {
        fs::write(bin.join(program), "").unwrap();
    }
    let off = preview(&[("PATH", bin.to_str().unwrap()), ("NOD_CODEX", "off")]);
    assert!(off.contains("Claude Code: its hooks are set up"), "{off}");
    assert!(off.contains("Codex: not followed"), "{off}");
}

#[test]
fn a_preview_changes_nothing() {
    let home = home();
    let before = picture(home.path());
    let preview = nod(home.path(), &["setup", "--yes", "--dry-run"])
        .output()
        .unwrap();
    assert!(preview.status.success(), "{}", text(&preview));
    assert!(text(&preview).contains("+  \"hooks\": {"));
    for words in [
        "✓ done   · to do",
        "nod/.env: FEISHU_APP_ID, FEISHU_APP_SECRET, FEISHU_DOMAIN, FEISHU_OWNER_ID, NOD_LANG\n",
        "would send the owner a test card",
        "  · daemon\n",
        "would start the daemon in the background",
    ] {
        let said = text(&preview);
        assert!(said.contains(words), "`{words}` is not in {said}");
    }
    assert_eq!(picture(home.path()), before);
    let managed = Managed::new();
    let preview = ["setup", "--yes", "--no-test-card", "--dry-run"];
    let (_, said) = managed.run(&preview, &[]);
    assert!(
        said.contains("would install and start the service"),
        "{said}"
    );
    assert!(!said.contains("test card"), "{said}");
}

#[tokio::test]
async fn a_daemon_that_outlives_the_set_up_is_told_of() {
    let daemon = Daemon::start(&settings("http://127.0.0.1:1"));
    let status = daemon.status_where("running", |_| true).await;
    let home = &daemon.home;
    let stays = format!(
        "a daemon is still running (process {0}): press Ctrl-C where it was started, or `kill {0}`",
        status["pid"]
    );
    let undo = ["setup", "--uninstall"];
    let (code, out, _) = home.run(&undo, &[]).await;
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains(&stays), "{out}");
    let claude = home.path().join(".claude/settings.json");
    fs::create_dir_all(claude.parent().unwrap()).unwrap();
    let hook = r#"{"type": "command", "command": "/opt/nod hook"}"#;
    let hooks = format!(r#"{{"hooks": {{"PermissionRequest": [{{"hooks": [{hook}]}}]}}}}"#);
    fs::write(&claude, hooks).unwrap();
    for arguments in [&[&undo[..], &["--dry-run"]].concat()[..], &undo] {
        let (code, out, err) = home.run(arguments, &[]).await;
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(out.contains(&stays), "{arguments:?}: {out}");
    }

    // A definition that lies there runs nothing, nor does another process.
    let unit = home.path().join(".config/systemd/user/nod.service");
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    fs::write(&unit, "").unwrap();
    let bin = with_manager(home.path());
    let pid = status["pid"].as_u64().unwrap();
    let by_service = "`nod service uninstall` stops it";
    for (main, words) in [(0, &*stays), (pid + 1, &stays), (pid, by_service)] {
        let answer =
            format!("ActiveState=active\nMainPID={main}\n\tstate = running\n\tpid = {main}\n");
        fs::write(home.path().join("answer"), answer).unwrap();
        let managed = [("PATH", bin.to_str().unwrap())];
        let (_, out, _) = home.run(&undo, &managed).await;
        assert!(out.contains(words), "{main}: {out}");
    }
    drop(daemon);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_in_the_background_is_stopped_when_the_set_up_is_taken_back() {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let home = Home::new();
    let base = feishu.base_url();
    let given = settings(&base);
    let (code, out, err) = home.run(&["daemon", "--background"], &given).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let pid = out.split_once("(process ").unwrap().1;
    let pid = pid.split_once(')').unwrap().0.to_owned();
    // Where the set-up wrote nothing, nothing is taken back.
    let undo = ["setup", "--uninstall"];
    let (_, out, _) = home.run(&undo, &[]).await;
    assert!(out.contains(&format!("`kill {pid}` stops it")), "{out}");
    assert!(!out.contains("Ctrl-C"), "{out}");
    let claude = home.path().join(".claude/settings.json");
    fs::create_dir_all(claude.parent().unwrap()).unwrap();
    let hook = r#"{"type": "command", "command": "/opt/nod hook"}"#;
    let hooks = format!(r#"{{"hooks": {{"PermissionRequest": [{{"hooks": [{hook}]}}]}}}}"#);
    fs::write(&claude, hooks).unwrap();
    let (_, out, _) = home.run(&["setup", "--uninstall", "--dry-run"], &[]).await;
    if cfg!(target_os = "linux") {
        let would = format!("would stop the daemon in the background (process {pid})");
        assert!(out.contains(&would), "{out}");
        let (code, out, err) = home.run(&undo, &[]).await;
        assert_eq!(code, Some(0), "{out}{err}");
        let stopped = format!("stopped the daemon in the background (process {pid})");
        assert!(out.contains(&stopped), "{out}");
        assert!(!out.contains("still running"), "{out}");
        let socket = home.socket();
        assert!(std::os::unix::net::UnixStream::connect(socket).is_err());
    } else {
        let (_, out, _) = home.run(&undo, &[]).await;
        assert!(out.contains(&format!("`kill {pid}` stops it")), "{out}");
        let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }
    feishu.shutdown().await;
}

#[test]
fn without_a_setting_the_terminals_locale_chooses_its_language() {
    let home = home();
    for (locale, marks) in [
        ("en_US.UTF-8", "✓ done   · to do"),
        ("zh_CN.UTF-8", "✓ 已完成"),
    ] {
        let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        for (arguments, words) in [
            (&["setup", "--yes", "--dry-run"][..], marks),
            (&["setup", "--yes", "--domain", "nowhere"], "`--domain`"),
            (&["setup", "--yes"], "`--app-id`"),
        ] {
            let mut nod = nod(home.path(), arguments);
            let said = nod.env_remove("NOD_LANG").env("LANG", locale).output();
            let said = text(&said.unwrap());
            assert!(said.contains(words), "{arguments:?}: {said}");
            let is_chinese = said.contains(is_han);
            assert_eq!(is_chinese, locale.starts_with("zh"), "{said}");
        }
    }
}

#[test]
fn unreadable_claude_settings_are_named_by_line_and_left_alone() {
    let home = home();
    let file = home.path().join(".claude/settings.json");
    fs::write(&file, "{\n  oops\n}").unwrap();
    let preview = nod(home.path(), &["setup", "--yes", "--dry-run"])
        .output()
        .unwrap();
    assert_eq!(preview.status.code(), Some(1));
    assert!(
        text(&preview).contains("line 2 column 3"),
        "{}",
        text(&preview)
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\n  oops\n}");
}

#[test]
fn commands_that_find_nothing_say_so_and_leave_nothing() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, code, words) in [
        (&["setup", "--uninstall"][..], 0, "nothing was changed"),
        (
            &["setup", "--uninstall", "--dry-run"],
            0,
            "nothing was changed",
        ),
        (&["rules"], 0, "no rules have been left"),
        (&["rules", "undo", "1"], 1, "no rule has the number 1"),
        (&["audit"], 0, "nothing is recorded"),
        (&["doctor"], 1, "nod is not set up yet"),
    ] {
        let run = nod(home.path(), arguments).output().unwrap();
        let said = text(&run);
        assert_eq!(run.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(picture(home.path()).is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_wrong_setting_keeps_nobody_from_looking_or_cleaning_up() {
    let home = home();
    let own = home.path().join(".config/nod/.env");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    // Which codes the commands have where there is nothing to find.
    let commands: [(&[&str], i32); 10] = [
        (&["setup", "--uninstall", "--dry-run"], 0),
        (&["setup", "--uninstall"], 0),
        (&["service", "status"], 3),
        (&["service", "uninstall"], 0),
        (&["service", "logs"], 1),
        (&["service", "install", "--print"], 0),
        (&["rules"], 0),
        (&["audit"], 0),
        (&["status"], 1),
        (&["lock"], 1),
    ];
    for content in [
        "FEISHU_APP_ID=cli_bad\nNOD_CA_FILE=/no/such.pem\nHTTPS_PROXY=ftp://h:1\n",
        "PERMISSION_REQUEST_TIMEOUT=soon\n",
        "garbage\n",
    ] {
        fs::write(&own, content).unwrap();
        for (arguments, code) in commands {
            let run = nod(home.path(), arguments).output().unwrap();
            let said = text(&run);
            assert_eq!(run.status.code(), Some(code), "{arguments:?}: {said}");
            assert!(
                !said.contains("cli_bad") && !said.contains("line 1"),
                "{said}"
            );
        }
        let stops = nod(home.path(), &["daemon"]).output().unwrap();
        assert_eq!(stops.status.code(), Some(78), "{}", text(&stops));
    }
    assert_eq!(fs::read(&own).unwrap(), b"garbage\n");
    // A preview asks nobody, so it does not matter how it would.
    fs::write(&own, "NOD_CA_FILE=/no/such.pem\n").unwrap();
    let preview = ["setup", "--yes", "--dry-run"];
    let preview = nod(home.path(), &preview).output().unwrap();
    assert_eq!(preview.status.code(), Some(0), "{}", text(&preview));
    let stops = nod(home.path(), &["setup", "--yes"]).output().unwrap();
    assert_eq!(stops.status.code(), Some(1), "{}", text(&stops));
    assert!(text(&stops).contains("CA file"), "{}", text(&stops));
    // What it cannot bring itself is named, with its line.
    fs::write(&own, "garbage\n").unwrap();
    let stops = nod(home.path(), &["setup", "--dry-run"]).output().unwrap();
    assert!(text(&stops).contains("line 1"), "{}", text(&stops));
}

#[test]
fn a_daemon_is_not_looked_for_where_a_broken_file_may_say_otherwise() {
    let home = home();
    let own = home.path().join(".config/nod/.env");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "NOD_STATE_DIR=\"/s\n").unwrap();
    let commands: [(&[&str], i32); 5] = [
        (&["status"], 1),
        (&["status", "--json"], 1),
        (&["lock"], 1),
        (&["unlock"], 1),
        (&["ask", "confirm", "Really?"], 4),
    ];
    for (arguments, code) in commands {
        let hidden = nod(home.path(), arguments).output().unwrap();
        let said = text(&hidden);
        assert_eq!(hidden.status.code(), Some(78), "{arguments:?}: {said}");
        assert!(said.contains("line 1: a quote is not closed"), "{said}");
        assert!(!said.contains("no daemon"), "{arguments:?}: {said}");
        // The environment counts more than any file.
        let mut known = nod(home.path(), arguments);
        let known = known.env("NOD_STATE_DIR", "/e").output().unwrap();
        let said = text(&known);
        assert_eq!(known.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains("no daemon is running"), "{said}");
    }
}

#[test]
fn a_preview_tells_what_becomes_of_a_mode_somebody_chose() {
    let home = home();
    let chosen = "{\"permissions\": {\"defaultMode\": \"bypassPermissions\"}}";
    fs::write(home.path().join(".claude/settings.json"), chosen).unwrap();
    for (flag, words) in [
        (None, "would ask whether to set it to `default`"),
        (Some("--yes"), "would leave it (`--set-mode` changes it)"),
        (Some("--set-mode"), "\"default\""),
    ] {
        let mut arguments = vec!["setup", "--dry-run"];
        arguments.extend(flag);
        let run = nod(home.path(), &arguments).output().unwrap();
        let said = text(&run);
        assert!(said.contains(words), "{flag:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_app_id_is_named_and_set_anew() {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let home = home();
    let own = home.path().join(".config/nod/.env");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "# mine\nFEISHU_APP_ID=cli_bad\nNOD_CHAT_RATE=2\n").unwrap();
    let preview = nod(home.path(), &["setup", "--dry-run"]).output().unwrap();
    let said = text(&preview);
    assert!(preview.status.success(), "{said}");
    assert!(said.contains("`FEISHU_APP_ID` is `cli_bad`"), "{said}");
    assert!(said.contains("`FEISHU_APP_ID` is set anew"), "{said}");

    let secret = home.path().join("secret");
    fs::write(&secret, APP_SECRET).unwrap();
    let base = feishu.base_url();
    let flags = given(&base, &secret);
    let mut setup = nod(home.path(), &flags);
    let setup = setup.env("FEISHU_OWNER_ID", "no body").output().unwrap();
    let said = text(&setup);
    assert!(setup.status.success(), "{said}");
    let wins = "take `FEISHU_OWNER_ID` out of the environment";
    assert_eq!(said.matches(wins).count(), 1, "{said}");
    let env = fs::read_to_string(&own).unwrap();
    let first = format!("# mine\nFEISHU_APP_ID={APP_ID}\nNOD_CHAT_RATE=2\n");
    assert!(env.starts_with(&first), "{env}");
    feishu.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_overrules_the_saved_settings_is_named_once() {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let home = home();
    let secret = home.path().join("secret");
    fs::write(&secret, APP_SECRET).unwrap();
    let base = feishu.base_url();
    let flags = given(&base, &secret);
    let hints = [
        "take `FEISHU_APP_ID` out of the environment, or it still wins",
        "take `FEISHU_APP_SECRET` out of the environment",
    ];
    // The second time there is nothing to save.
    for saves in [true, false] {
        let mut setup = nod(home.path(), &flags);
        setup.env("FEISHU_APP_ID", "cli_0000000000000000");
        setup.env("FEISHU_APP_SECRET", "0000000000000000");
        setup.env("FEISHU_DOMAIN", format!("{}/", base.trim_end_matches('/')));
        setup.env("FEISHU_OWNER_ID", OWNER);
        let setup = setup.output().unwrap();
        let said = text(&setup);
        assert!(setup.status.success(), "{said}");
        assert_eq!(said.contains("wrote the settings"), saves, "{said}");
        for hint in hints {
            assert_eq!(said.matches(hint).count(), 1, "{hint}: {said}");
        }
        assert_eq!(said.matches("still wins").count(), hints.len(), "{said}");
    }
    feishu.shutdown().await;
}

/// What claude-notify leaves: its settings, and hooks that start it.
fn with_claude_notify(home: &Path, base: &str) {
    let root = home.join("tools/claude-notify");
    fs::create_dir_all(&root).unwrap();
    fs::write(
        root.join(".env"),
        format!(
            "# claude-notify\nFEISHU_APP_ID={APP_ID}\nFEISHU_APP_SECRET=\"{APP_SECRET}\"\n\
             FEISHU_OWNER_ID={OWNER}\nPERMISSION_REQUEST_TIMEOUT=120\n\
             PERMISSION_SOCKET_PATH=/tmp/claude-permission.sock\nCALLBACK_SERVER_URL={base}\n\
             PERMISSION_NOTIFY_DELAY=soon\n"
        ),
    )
    .unwrap();
    let hook = root.join("src/hook-router.sh");
    let settings = format!(
        "{{\n  \"permissions\": {{\"defaultMode\": \"dontAsk\"}},\n  \"hooks\": {{\n    \
         \"PermissionRequest\": [{{\"hooks\": [{{\"type\": \"command\", \"command\": \"{}\"}}]}}]\n  }}\n}}\n",
        hook.display()
    );
    fs::write(home.join(".claude/settings.json"), settings).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_notify_is_taken_over_and_its_hooks_stay() {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let base = feishu.base_url();
    let home = home();
    with_claude_notify(home.path(), &base);
    let before = picture(home.path());
    let mut flags = vec!["setup", "--yes", "--no-test-card", "--no-service"];
    flags.extend(["--domain", &base]);
    let run = |more: &[&str]| {
        let mut all = flags.clone();
        all.extend(more);
        let output = nod(home.path(), &all).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    };
    let said = run(&[]);
    for words in [
        "found claude-notify's settings",
        "not taken over: CALLBACK_SERVER_URL",
        "their values can't be used: PERMISSION_NOTIFY_DELAY",
        "each request makes two cards",
        "Claude Code's mode is `dontAsk`",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let after = picture(home.path());
    let env = String::from_utf8(after[".config/nod/.env"].1.clone()).unwrap();
    for line in [
        format!("FEISHU_APP_SECRET={APP_SECRET}\n"),
        format!("FEISHU_OWNER_ID={OWNER}\n"),
        "PERMISSION_REQUEST_TIMEOUT=120\n".to_owned(),
    ] {
        assert!(env.contains(&line), "{line}: {env}");
    }
    assert!(!env.contains("SOCKET") && !env.contains("soon"), "{env}");
    let settings = || fs::read_to_string(home.path().join(".claude/settings.json")).unwrap();
    assert!(settings().contains("hook-router.sh"), "{}", settings());
    // nod's own limit stays below Claude Code's.
    assert!(settings().contains("\"timeout\": 180"), "{}", settings());
    assert!(settings().contains("dontAsk"), "a chosen mode stays");
    run(&["--set-mode"]);
    assert!(!settings().contains("dontAsk"), "{}", settings());

    let back = nod(home.path(), &["setup", "--uninstall"])
        .output()
        .unwrap();
    assert!(back.status.success(), "{}", text(&back));
    assert_eq!(picture(home.path()), before);
    feishu.shutdown().await;
}

/// A directory of commands in this home: a service manager that writes down
/// what it is told, and answers what stands in `answer`.
fn with_manager(home: &Path) -> PathBuf {
    let bin = home.join("bin");
    fs::create_dir(&bin).unwrap();
    for name in ["systemctl", "launchctl", "journalctl", "tail"] {
        let script = "#!/bin/sh\necho \"${0##*/} $*\" >> \"$HOME/told\"\n\
                      case \"$*\" in *show*|*print*) /bin/cat \"$HOME/answer\" 2>/dev/null;; esac\n\
                      exit 0\n";
        fs::write(bin.join(name), script).unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(bin.join(name), open).unwrap();
    }
    bin
}

/// A home where a service manager answers.
struct Managed(tempfile::TempDir);

impl Managed {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        with_manager(home.path());
        Self(home)
    }

    fn run(&self, arguments: &[&str], given: &[(&str, &str)]) -> (Option<i32>, String) {
        let output = nod(self.0.path(), arguments)
            .env("PATH", self.0.path().join("bin"))
            .envs(given.iter().copied())
            .output()
            .unwrap();
        (output.status.code(), text(&output))
    }

    fn told(&self) -> String {
        fs::read_to_string(self.0.path().join("told")).unwrap_or_default()
    }
}

#[test]
fn a_service_is_installed_watched_and_removed() {
    let home = Managed::new();
    for verb in ["status", "logs", "restart"] {
        let (code, said) = home.run(&["service", verb], &[]);
        assert_eq!(code, Some(if verb == "status" { 3 } else { 1 }), "{said}");
        assert!(said.contains("no service was installed"), "{said}");
        assert!(said.contains("hint: `nod service install`"), "{said}");
    }
    let (code, said) = home.run(&["service", "install"], &[]);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("`FEISHU_APP_ID` is not set"), "{said}");
    let by_shell = [("FEISHU_APP_ID", APP_ID), ("FEISHU_APP_SECRET", APP_SECRET)];
    let (code, said) = home.run(&["service", "install"], &by_shell);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("would not see FEISHU_APP_ID"), "{said}");

    let own = home.0.path().join(".config/nod/.env");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    let [id, secret] = by_shell.map(|(name, value)| format!("{name}={value}\n"));
    fs::write(&own, id + &secret).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o600)).unwrap();
    let proxied = [("HTTPS_PROXY", "http://127.0.0.1:1")];
    let (code, said) = home.run(&["service", "install"], &proxied);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("would not see HTTPS_PROXY"), "{said}");
    if cfg!(target_os = "macos") {
        assert!(home.told().contains("bootstrap"), "{}", home.told());
        return;
    }
    assert!(
        home.told().contains("enable nod.service"),
        "{}",
        home.told()
    );
    let unit = home.0.path().join(".config/systemd/user/nod.service");
    let unit = fs::read_to_string(unit).unwrap();
    // Sessions from chat need what the person has.
    for line in ["Environment=\"PATH=", "Environment=\"NOD_LANG=en\""] {
        assert!(unit.contains(line), "{unit}");
    }
    assert!(!unit.contains("SystemCallFilter"), "{unit}");

    let (code, said) = home.run(&["service", "status"], &[]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("is installed and does not run"), "{said}");
    let running = "ActiveState=active\nSubState=running\nMainPID=7\nStatusText=connected\n";
    fs::write(home.0.path().join("answer"), running).unwrap();
    let (code, said) = home.run(&["service", "status"], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said, "the service is running (process 7): connected\n");
    let (code, said) = home.run(&["service", "logs", "-n", "5"], &[]);
    assert_eq!(code, Some(0), "{said}");
    let shown = "journalctl --user --unit nod.service --lines 5";
    assert!(home.told().contains(shown), "{}", home.told());
    let restarts = || home.told().matches("restart nod.service").count();
    let before = restarts();
    let (code, said) = home.run(&["service", "restart"], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said, "the service is started anew\n");
    assert_eq!(restarts(), before + 1, "{}", home.told());
    let (code, said) = home.run(&["service", "uninstall"], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("stopped and removed"), "{said}");
}

#[test]
fn a_machine_without_a_service_manager_is_told_what_to_do() {
    let home = home();
    let install = nod(home.path(), &["service", "install"]).output().unwrap();
    assert_eq!(install.status.code(), Some(1));
    assert!(text(&install).contains("nod daemon"), "{}", text(&install));
    let print = nod(home.path(), &["service", "install", "--print"])
        .output()
        .unwrap();
    assert!(print.status.success());
    assert!(text(&print).contains("daemon"), "{}", text(&print));
    let says = |verb: &str, code: i32, words: &str| {
        let ran = nod(home.path(), &["service", verb]).output().unwrap();
        assert_eq!(ran.status.code(), Some(code), "{verb}: {}", text(&ran));
        assert!(text(&ran).contains(words), "{verb}: {}", text(&ran));
        assert!(!text(&ran).contains("nohup"), "{verb}: {}", text(&ran));
    };
    says("status", 3, "hint: `nod status` asks the daemon itself");
    says("logs", 1, "to its standard error");
    says("uninstall", 0, "no service was installed");
    let unit = ".config/systemd/user/nod.service";
    if cfg!(target_os = "linux") {
        let unit = home.path().join(unit);
        fs::create_dir_all(unit.parent().unwrap()).unwrap();
        fs::write(&unit, "").unwrap();
        says("logs", 1, "the service's definition is there");
        says("uninstall", 1, "the service's definition is there");
        assert!(unit.exists());
    }
}

/// The file of `gateway init` still lacks the app.
fn tells_a_gateway_what_to_fill_in(home: &Path, env: &Path) {
    let env = env.to_str().unwrap();
    let unset = nod(home, &["gateway"]).output().unwrap();
    let told = text(&unset);
    assert_eq!(unset.status.code(), Some(78), "{told}");
    assert!(
        told.contains("hint: first `nod gateway init --bus"),
        "{told}"
    );
    let unset = nod(home, &["--env-file", env, "gateway"]).output().unwrap();
    let told = text(&unset);
    assert_eq!(unset.status.code(), Some(78), "{told}");
    assert!(
        told.contains(&format!("hint: put it into `{env}`")),
        "{told}"
    );
    let doctor = nod(home, &["--env-file", env, "doctor"]).output().unwrap();
    let told = text(&doctor);
    assert!(told.contains("`nod gateway status` tells"), "{told}");
    for of_a_laptop in ["no daemon is running", "nobody is set", "nod setup"] {
        assert!(!told.contains(of_a_laptop), "{of_a_laptop}: {told}");
    }
}

/// A machine whose team's gateways have the app.
#[test]
fn a_teams_machine_gets_its_hooks_and_is_asked_for_no_app() {
    let home = home();
    let ran = |arguments: &[&str]| {
        let done = nod(home.path(), arguments).output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", text(&done));
        String::from_utf8(done.stdout).unwrap()
    };
    let keys = tempfile::tempdir().unwrap();
    let made = |arguments: &[&str]| {
        let mut command = nod(keys.path(), arguments);
        let done = command.current_dir(keys.path()).output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", text(&done));
        String::from_utf8(done.stdout).unwrap()
    };
    made(&["gateway", "init", "--bus", "nats://127.0.0.1:1"]);
    let env = keys.path().join("nod-bus/gateway.env");
    tells_a_gateway_what_to_fill_in(keys.path(), &env);
    let named = fs::read_to_string(&env).unwrap();
    let named = named.replace("FEISHU_APP_ID=", &format!("FEISHU_APP_ID={APP_ID}"));
    let named = named.replace(
        "FEISHU_APP_SECRET=",
        &format!("FEISHU_APP_SECRET={APP_SECRET}"),
    );
    nod::for_tests::files::replace_private(&env, named.as_bytes()).unwrap();
    let key = ran(&["join"]);
    let env = env.to_str().unwrap();
    let pass = [
        "--env-file",
        env,
        "gateway",
        "pass",
        "--owner",
        OWNER,
        "--key",
    ];
    let line = made(&[&pass[..], &[key.trim()]].concat());
    let refused = nod(home.path(), &["join", line.trim()]).output().unwrap();
    let told = text(&refused);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    for named in [OWNER, "nats://127.0.0.1:1", "`--yes`"] {
        assert!(told.contains(named), "{named} in {told}");
    }
    assert!(!home.path().join(".local/state/nod/bus.pass").exists());
    ran(&["join", line.trim(), "--yes"]);

    let preview = ran(&["setup", "--dry-run"]);
    assert!(!preview.contains("FEISHU_APP_ID"), "{preview}");
    let done = nod(home.path(), &["setup", "--yes"]).output().unwrap();
    let told = text(&done);
    assert!(done.status.success(), "{told}");
    let runs = "✓ 3/4 the daemon runs in the background (process ";
    for said in ["member of a team", "✓ 1/4 ", "✓ 2/4 ", runs] {
        assert!(told.contains(said), "{said} in {told}");
    }
    stop_in_background(home.path(), &told);
    assert!(
        !home.path().join(".config/nod/.env").exists(),
        "no app is saved"
    );
    let hooks = fs::read_to_string(home.path().join(".claude/settings.json")).unwrap();
    assert!(hooks.contains("PermissionRequest"), "{hooks}");
    // The app's secret never comes beside the pass.
    let secret = home.path().join("secret");
    fs::write(&secret, APP_SECRET).unwrap();
    let mut given = nod(home.path(), &given("http://127.0.0.1:1", &secret));
    let done = given.output().unwrap();
    assert!(
        !done.status.success() && text(&done).contains("bus.pass"),
        "{}",
        text(&done)
    );
    let set = ["settings", "set", "FEISHU_APP_SECRET", APP_SECRET];
    let done = nod(home.path(), &set).output().unwrap();
    assert_eq!(done.status.code(), Some(78), "{}", text(&done));
    assert!(text(&done).contains("bus.pass"), "{}", text(&done));
    assert!(!home.path().join(".config/nod/.env").exists());
    // To leave the team is another thing.
    for (arguments, does) in [
        (&["setup", "--uninstall", "--dry-run"][..], "would restore "),
        (&["setup", "--uninstall"], "restored "),
    ] {
        let told = ran(arguments);
        assert!(told.contains(does), "{told}");
        assert!(told.contains("bus.pass: write `/forget "), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_given_as_a_user_id_is_saved_as_an_open_id() {
    const SCOPE: &str = "contact:user.employee_id:readonly";
    for knows_people in [true, false] {
        let mut options = Options::default();
        let scopes = &mut options.apps[0].scopes;
        scopes.retain(|scope| scope != SCOPE);
        if knows_people {
            scopes.push("contact:contact.base:readonly".to_owned());
        }
        let user_id = options.users[0].user_id.clone();
        let feishu = Simulator::start(options).await.unwrap();
        let (home, base) = (home(), feishu.base_url());
        let secret = home.path().join("secret");
        fs::write(&secret, APP_SECRET).unwrap();
        let mut flags = given(&base, &secret);
        flags[11] = &user_id;
        let done = nod(home.path(), &flags).output().unwrap();
        let said = text(&done);
        assert!(done.status.success(), "{said}");
        let env = fs::read_to_string(home.path().join(".config/nod/.env")).unwrap();
        let saved = |id: &str| env.contains(&format!("FEISHU_OWNER_ID={id}\n"));
        if knows_people {
            assert!(saved(OWNER) && !said.contains(SCOPE), "{said}\n{env}");
        } else {
            assert!(saved(&user_id) && said.contains(SCOPE), "{said}\n{env}");
        }
        feishu.shutdown().await;
    }
}
