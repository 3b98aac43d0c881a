//! What the daemon says to settings it cannot run with: all of it at once, by
//! name, readable, without a secret, and with the exit code for it.

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
        err.contains("hint: run `nod setup`, or put them into `.env`"),
        "{err}"
    );
}

#[tokio::test]
async fn an_unreadable_line_of_a_settings_file_is_named_by_its_number() {
    for place in [".env", ".config/nod/.env"] {
        let home = Home::new();
        let file = home.path().join(place);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "NOD_LANG=en\nFEISHU_APP_SECRET canary\n").unwrap();
        let (code, _, err) = home.run(&["daemon"], &settings("feishu")).await;
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
