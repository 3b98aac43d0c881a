//! What the daemon says to settings it cannot run with: all of it at once, by
//! name, readable, without a secret, and with the exit code for it. And `nod
//! settings`, which shows them and sets one.

use std::os::unix::fs::PermissionsExt as _;

use super::support::{Home, settings};

const BAD_SETTINGS: Option<i32> = Some(78);

#[tokio::test]
async fn all_wrong_settings_are_named_at_once_and_no_secret_is_shown() {
    let home = Home::new();
    let wrong = [
        ("FEISHU_APP_ID", "canary-one"),
        ("FEISHU_APP_SECRET", "canary two"),
        ("FEISHU_DOMAIN", "https://me:canary@elsewhere.example"),
        ("FEISHU_CHAT_ID", "canary-three-on-the-wrong-line"),
        ("PERMISSION_REQUEST_TIMEOUT", "soon"),
        ("NOD_STATE_DIR", "some/where"),
        ("NOD_LOG", "loud"),
    ];
    let (code, out, err) = home.run(&["daemon"], &wrong).await;
    assert_eq!(code, BAD_SETTINGS, "{err}");
    assert_eq!(out, "");
    let lines: Vec<_> = err.lines().collect();
    for (name, _) in wrong {
        let line = lines
            .iter()
            .find(|l| l.starts_with(&format!("nod: `{name}` is ")));
        assert!(
            line.is_some_and(
                |l| l.contains("; accepted: ") && l.ends_with(" (set in the environment)")
            ),
            "{name}: {err}"
        );
    }
    assert_eq!(lines.len(), wrong.len() + 1, "{err}");
    assert!(lines[wrong.len()].starts_with("hint: "), "{err}");
    assert!(!err.contains("canary"), "{err}");
    assert!(
        err.contains("`PERMISSION_REQUEST_TIMEOUT` is `soon`"),
        "{err}"
    );
}

#[cfg(feature = "team")]
#[tokio::test]
async fn whoever_begins_with_a_team_is_told_the_first_step() {
    const KEY: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    let home = Home::new();
    let pass = ["gateway", "pass", "--owner", "ou_0123456789", "--key", KEY];
    for command in [&["gateway"][..], &["gateway", "forget", "desk"], &pass] {
        let (code, _, err) = home.run(command, &[]).await;
        assert_eq!(code, BAD_SETTINGS, "{err}");
        let hint = err.lines().last().unwrap_or_default();
        assert!(hint.starts_with("hint: first `nod gateway init"), "{err}");
    }
    let (code, _, err) = home.run(&["join", "nonsense"], &[]).await;
    assert_eq!(code, Some(1), "{err}");
    let hint = err.lines().last().unwrap_or_default();
    assert!(hint.starts_with("hint: write `/join` to the bot"), "{err}");
}

#[tokio::test]
async fn missing_credentials_are_asked_for_by_name() {
    let home = Home::new();
    let (code, _, err) = home.run(&["daemon"], &[]).await;
    assert_eq!(code, BAD_SETTINGS, "{err}");
    for name in ["FEISHU_APP_ID", "FEISHU_APP_SECRET"] {
        assert!(
            err.contains(&format!("nod: `{name}` is not set; accepted: ")),
            "{err}"
        );
    }
    assert!(
        err.contains("hint: run `nod setup`, or put them into `~/.config/nod/.env`"),
        "{err}"
    );
}

#[tokio::test]
async fn an_unreadable_line_of_a_settings_file_is_named_by_its_number() {
    let named = ["--env-file", "other.env", "daemon"];
    for (place, arguments) in [("other.env", &named[..]), (".config/nod/.env", &["daemon"])] {
        let home = Home::new();
        let file = home.path().join(place);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "NOD_LANG=en\nFEISHU_APP_SECRET canary\n").unwrap();
        let (code, _, err) = home.run(arguments, &settings("feishu")).await;
        assert_eq!(code, BAD_SETTINGS, "{err}");
        assert!(err.contains("line 2: expected `NAME=value`"), "{err}");
        assert!(err.contains(place), "{err}");
        assert!(!err.contains("canary"), "{err}");
    }
}

#[tokio::test]
async fn places_and_files_it_cannot_use_are_named() {
    let home = Home::new();
    std::fs::create_dir(home.state()).unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.state(), open).unwrap();
    let with = |name, value| {
        let mut all = settings("feishu");
        all.push((name, value));
        all
    };
    let elsewhere = home.path().join("other");
    let elsewhere = elsewhere.to_str().unwrap();
    let own = |name, value| {
        let mut all = with("NOD_STATE_DIR", elsewhere);
        all.push((name, value));
        all
    };
    for (settings, words) in [
        (settings("feishu"), "it must be yours, mode 0700"),
        (
            own("NOD_CA_FILE", "/no/such.pem"),
            "the extra CA file `/no/such.pem` cannot be used",
        ),
        (own("HTTPS_PROXY", "ftp://h:1"), "`HTTPS_PROXY` is "),
    ] {
        let (code, _, err) = home.run(&["daemon"], &settings).await;
        assert_eq!(code, BAD_SETTINGS, "{words}: {err}");
        assert!(err.contains(words), "{words}: {err}");
    }
}

const OWN: &str = ".config/nod/.env";
const WRITTEN: &str = "# mine\nexport NOD_LANG=en # for me\n\nNOD_LOG=warn\n";

fn own_file(home: &Home, text: &str) -> std::path::PathBuf {
    let file = home.path().join(OWN);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&file, private).unwrap();
    file
}

#[tokio::test]
async fn each_setting_is_shown_with_where_its_value_comes_from_and_no_secret() {
    let home = Home::new();
    own_file(&home, "FEISHU_APP_SECRET=canaryinthefile\nNOD_LOG=warn\n");
    std::fs::write(home.path().join("named.env"), "NOD_CHAT_RATE=7\n").unwrap();
    let given = [
        ("CALLBACK_SECRET", "canary-in-the-shell"),
        ("NOD_LOG", "debug"),
    ];
    let arguments = ["--env-file", "named.env", "settings"];
    let (code, out, _) = home.run(&arguments, &given).await;
    assert_eq!(code, Some(0), "{out}");
    assert!(!out.contains("canary"), "{out}");
    for (name, from, value) in [
        ("FEISHU_APP_ID", "not set", "needed"),
        ("FEISHU_APP_SECRET", "nod's file", "set, not shown"),
        ("CALLBACK_SECRET", "environment", "set, not shown"),
        ("NOD_LOG", "environment", "debug"),
        ("NOD_CHAT_RATE", "--env-file", "7"),
        ("FEISHU_DOMAIN", "default", "feishu"),
    ] {
        let mut lines = out.lines();
        let line = lines.find(|line| line.split_whitespace().any(|word| word == name));
        let line = line.unwrap_or_else(|| panic!("{name}: {out}"));
        assert!(line.contains(from) && line.ends_with(value), "{line}");
    }
}

#[tokio::test]
async fn a_value_is_set_where_it_counts_and_every_other_line_stays() {
    let home = Home::new();
    let file = home.path().join(OWN);
    let set = async |name: &str, value: &str| {
        let (code, out, err) = home.run(&["settings", "set", name, value], &[]).await;
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains(&format!("`{name}`")), "{out}");
    };
    set("NOD_CHAT_RATE", "5").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "NOD_CHAT_RATE=5\n");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);

    own_file(&home, WRITTEN);
    set("NOD_LANG", "zh").await;
    set("NOD_LOG", "").await;
    set("NOD_CLAUDE", "/opt/my tools/claude").await;
    let expected =
        "# mine\nexport NOD_LANG=zh # for me\n\nNOD_LOG=\nNOD_CLAUDE=\"/opt/my tools/claude\"\n";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    assert_eq!(mode(&file), 0o600);
}

#[tokio::test]
async fn a_value_nod_could_not_run_with_is_refused_and_nothing_is_lost() {
    let home = Home::new();
    let file = own_file(&home, WRITTEN);
    for (name, value, says) in [
        (
            "NOD_LANG",
            "fr",
            "`NOD_LANG` is `fr`; accepted: `zh` or `en`",
        ),
        ("NOD_CHAT_RATE", "1001", "`NOD_CHAT_RATE` is `1001`"),
        ("FEISHU_APP_SECRET", "canary two", "`FEISHU_APP_SECRET` is "),
        (
            "TOOL_APPROVAL_ENABLED",
            "false",
            "`NOD_ALLOW_BYPASS` is not `true`",
        ),
        ("HTTPS_PROXY", "ftp://me:canary@h:1", "HTTPS_PROXY"),
        ("NOD_CA_FILE", "/no/such.pem", "/no/such.pem"),
        (
            "NOD_CLAUDE",
            "/x\nFEISHU_OWNER_ID=ou_me",
            "cannot stand in a settings file",
        ),
        ("NOD_LNAG", "en", "cannot be `NOD_LNAG`"),
    ] {
        let (code, out, err) = home.run(&["settings", "set", name, value], &[]).await;
        assert_ne!(code, Some(0), "{name}: {out}");
        assert!(err.contains(says), "{name}: {err}");
        assert!(!err.contains("canary"), "{err}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), WRITTEN, "{name}");
    }
    let broken = "NOD_LANG=en\nFEISHU_APP_SECRET canary\n";
    own_file(&home, broken);
    let (code, _, err) = home.run(&["settings", "set", "NOD_LOG", "info"], &[]).await;
    assert_eq!(code, BAD_SETTINGS, "{err}");
    assert!(err.contains("line 2: expected `NAME=value`"), "{err}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
}

#[tokio::test]
async fn a_file_that_leads_elsewhere_is_not_written_through() {
    let home = Home::new();
    let set = ["settings", "set", "NOD_LOG", "info"];
    let file = own_file(&home, "");
    std::fs::remove_file(&file).unwrap();
    let target = home.path().join("somebody-elses");
    std::fs::write(&target, "theirs").unwrap();
    for to in [target.as_path(), std::path::Path::new("/nowhere/at/all")] {
        std::os::unix::fs::symlink(to, &file).unwrap();
        let (code, _, err) = home.run(&set, &[]).await;
        assert_eq!(code, BAD_SETTINGS, "{err}");
        assert!(err.contains("is a link and was left as it is"), "{err}");
        assert!(std::fs::symlink_metadata(&file).unwrap().is_symlink());
        std::fs::remove_file(&file).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "theirs");
    // Nor through a directory that leads elsewhere.
    let (dir, there) = (file.parent().unwrap(), home.path().join("shared"));
    std::fs::rename(dir, &there).unwrap();
    std::os::unix::fs::symlink(&there, dir).unwrap();
    let (code, _, err) = home.run(&set, &[]).await;
    assert_eq!(code, BAD_SETTINGS, "{err}");
    assert!(err.contains("is a link and was left as it is"), "{err}");
    assert_eq!(std::fs::read_dir(&there).unwrap().count(), 0);
    std::fs::remove_file(dir).unwrap();
    std::fs::rename(&there, dir).unwrap();
    std::fs::create_dir(&file).unwrap();
    let (code, _, err) = home.run(&set, &[]).await;
    assert_eq!(code, BAD_SETTINGS, "{err}");
}

/// Who else could choose the value: a repository's `.env`, one that was named
/// for this run, the shell. The first two write nothing, the last is named.
#[tokio::test]
async fn nobody_but_the_command_chooses_what_is_saved() {
    let home = Home::new();
    let file = own_file(&home, WRITTEN);
    let hostile = "FEISHU_OWNER_ID=ou_canary\nNOD_LOG=canary\n";
    std::fs::write(home.path().join(".env"), hostile).unwrap();
    std::fs::write(home.path().join("named.env"), hostile).unwrap();
    let (_, shown, _) = home.run(&["settings"], &[]).await;
    assert!(!shown.contains("canary"), "{shown}");
    let arguments = [
        "--env-file",
        "named.env",
        "settings",
        "set",
        "NOD_LOG",
        "info",
    ];
    let given = [("NOD_LOG", "error"), ("FEISHU_OWNER_ID", "ou_canary")];
    let (code, _, err) = home.run(&arguments, &given).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(
        err.contains("take `NOD_LOG` out of the environment"),
        "{err}"
    );
    let saved = std::fs::read_to_string(&file).unwrap();
    assert_eq!(saved, WRITTEN.replace("warn", "info"));
    assert_eq!(
        std::fs::read_to_string(home.path().join(".env")).unwrap(),
        hostile
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn values_set_at_the_same_time_are_all_kept() {
    let home = Home::new();
    let file = own_file(&home, WRITTEN);
    let values = [
        ("NOD_CHAT_RATE", "5"),
        ("NOD_CARDS_AT_ONCE", "6"),
        ("PERMISSION_NOTIFY_DELAY", "7"),
        ("NOD_TOOL_TIMEOUT", "8"),
        ("NOD_QUESTION_TIMEOUT", "9"),
        ("NOD_TASK_TIMEOUT", "10"),
    ];
    let mut children = Vec::new();
    for (name, value) in values {
        let mut nod = home.nod(&["settings", "set", name, value], &[]);
        children.push(nod.stdout(std::process::Stdio::null()).spawn().unwrap());
    }
    for mut child in children {
        assert!(child.wait().await.unwrap().success());
    }
    let saved = std::fs::read_to_string(&file).unwrap();
    assert!(saved.starts_with(WRITTEN), "{saved}");
    for (name, value) in values {
        assert!(saved.contains(&format!("\n{name}={value}\n")), "{saved}");
    }
}

#[tokio::test]
async fn a_secret_is_taken_from_a_pipe_and_one_that_was_typed_is_warned_of() {
    let home = Home::new();
    let file = home.path().join(OWN);
    let mut nod = home.nod(&["settings", "set", "FEISHU_APP_SECRET"], &[]);
    let nod = nod.stdin(std::process::Stdio::piped());
    let mut child = nod.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stdin, b"0123456789abcdef\n")
        .await
        .unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success());
    assert!(!String::from_utf8_lossy(&output.stderr).contains("history"));
    let saved = "FEISHU_APP_SECRET=0123456789abcdef\n";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), saved);
    let typed = ["settings", "set", "FEISHU_APP_SECRET", "fedcba9876543210"];
    let (code, out, err) = home.run(&typed, &[]).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(
        err.contains("your shell's history may hold the value"),
        "{err}"
    );
    assert!(
        !out.contains("fedcba") && !err.contains("fedcba"),
        "{out}{err}"
    );
}

#[tokio::test]
async fn the_end_of_input_takes_no_stored_secret_back() {
    let home = Home::new();
    let file = home.path().join(OWN);
    let kept = "FEISHU_APP_SECRET=0123456789abcdef\n";
    let stored = ["settings", "set", "FEISHU_APP_SECRET", "0123456789abcdef"];
    let (code, _, err) = home.run(&stored, &[]).await;
    assert_eq!(code, Some(0), "{err}");
    for input in ["", "\n", "  \n\n"] {
        let mut nod = home.nod(&["settings", "set", "FEISHU_APP_SECRET"], &[]);
        let mut child = nod.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stdin, input.as_bytes())
            .await
            .unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        let [out, err] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(output.status.code(), Some(2), "{input:?}: {out}{err}");
        assert!(err.contains("nothing was changed"), "{input:?}: {err}");
        assert!(!out.contains("took back"), "{input:?}: {out}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), kept, "{input:?}");
    }
    // Two quotes do.
    let (code, out, _) = home
        .run(&["settings", "set", "FEISHU_APP_SECRET", ""], &[])
        .await;
    assert_eq!(code, Some(0));
    assert!(out.contains("took back"), "{out}");
}

/// Whoever gets a tap for `nod --env-file x daemon` would get every later one.
#[tokio::test]
async fn a_named_file_makes_the_daemon_obey_nobody_else_unless_a_flag_says_so() {
    let home = Home::new();
    own_file(
        &home,
        "FEISHU_APP_ID=cli_0123456789abcdef\nFEISHU_OWNER_ID=ou_me\n",
    );
    let named = home.path().join("ci.env");
    for (line, setting) in [
        ("FEISHU_OWNER_ID=ou_thief", Some("FEISHU_OWNER_ID")),
        ("FEISHU_APP_ID=cli_fedcba9876543210", Some("FEISHU_APP_ID")),
        ("FEISHU_DOMAIN=http://127.0.0.1:1", Some("FEISHU_DOMAIN")),
        ("FEISHU_APPROVERS=ou_thief", Some("FEISHU_APPROVERS")),
        ("FEISHU_OWNER_ID=ou_me", None),
        ("NOD_LOG=debug", None),
    ] {
        // No secret is set, so no daemon ever starts here.
        std::fs::write(&named, format!("{line}\n")).unwrap();
        let start = ["--env-file", "ci.env", "daemon"];
        let (code, _, err) = home.run(&start, &[]).await;
        assert_eq!(code, BAD_SETTINGS, "{err}");
        assert_eq!(
            err.contains("`--other-owner`"),
            setting.is_some(),
            "{line}: {err}"
        );
        assert!(
            setting.is_none_or(|setting| err.contains(setting)),
            "{line}: {err}"
        );
        assert!(!err.contains("ou_thief"), "{err}");
        let (_, _, err) = home
            .run(&[&start[..], &["--other-owner"]].concat(), &[])
            .await;
        assert!(!err.contains("`--other-owner`"), "{line}: {err}");
    }
}
