use super::*;
use crate::hook::paths::OLD_CLIENTS;

fn load(values: &[(&str, &str)]) -> Result<Config, Problems> {
    Config::load(&Sources::of(values))
}

#[test]
fn nothing_set_gives_the_defaults() {
    let config = load(&[]).unwrap();
    assert_eq!(config.domain, Domain::Feishu);
    assert_eq!(config.request_timeout, Duration::from_secs(300));
    assert_eq!(config.stop_notice_after, Some(Duration::from_secs(60)));
    assert_eq!(config.state_dir, PathBuf::from("/home/u/.local/state/nod"));
    assert_eq!(config.lang, Lang::Zh);
    let missing = config.app().unwrap_err();
    assert_eq!(missing.0.len(), 2);
    assert!(missing.to_string().contains("`FEISHU_APP_ID` is not set"));
}

#[test]
fn every_wrong_value_is_reported_at_once_and_no_secret_is_shown() {
    let wrong = [
        ("FEISHU_APP_ID", "canary-one"),
        ("FEISHU_APP_SECRET", "canary two"),
        ("FEISHU_DOMAIN", "http://me:canary@d.example"),
        ("FEISHU_OWNER_ID", "a blank"),
        ("FEISHU_APPROVERS", "ou_1, four\u{202e}"),
        ("FEISHU_CHAT_ID", "chat5"),
        ("FEISHU_SEND_MODE", "post"),
        ("FEISHU_WEBHOOK_URL", "https://canary.example/hook"),
        ("FEISHU_WEBHOOK_SECRET", "canary seven"),
        ("CALLBACK_LISTEN", "door:8080"),
        ("CALLBACK_SERVER_URL", "http://user@canary.example"),
        ("CALLBACK_PEERS", "http://10.0.0.1, http://peer/path"),
        ("CALLBACK_SECRET", "canary"),
        ("CALLBACK_ALLOW_UNSEALED", "so"),
        ("PERMISSION_SOCKET_PATH", "relative/six"),
        ("PERMISSION_REQUEST_TIMEOUT", "0"),
        ("PERMISSION_NOTIFY_DELAY", "-1"),
        ("NOD_NOTIFY_STOP_AFTER", "never"),
        ("NOD_PREVIEWS", "none"),
        ("NOD_CHAT_RATE", "fast"),
        ("NOD_STATE_DIR", "relative/state"),
        ("NOD_LANG", "fr"),
        ("NOD_LOG", "loud"),
        ("NOD_MACHINE_NAME", "a\tb"),
        ("NOD_PROJECTS", "shop=/no/such/directory"),
        ("NOD_CLAUDE", "bin/claude"),
        ("TOOL_APPROVAL_ENABLED", "maybe"),
        ("NOD_ALLOW_BYPASS", "yes"),
        ("NOD_TOOL_TIMEOUT", "0"),
        ("NOD_QUESTION_TIMEOUT", "x"),
        ("NOD_TASK_TIMEOUT", "90000"),
    ];
    let problems = load(&wrong).unwrap_err();
    let text = problems.to_string();
    assert_eq!(problems.0.len(), wrong.len(), "{text}");
    for (name, _) in wrong {
        assert!(text.contains(&format!("`{name}` is ")), "{name}: {text}");
        assert!(text.contains(setting(name).accepts), "{name}: {text}");
    }
    assert!(!text.contains("canary"), "{text}");
    for quoted in [
        "`FEISHU_OWNER_ID` is `a blank`: it holds a blank",
        "`FEISHU_APPROVERS` is `ou_1, four\\u{202e}`",
        "`PERMISSION_REQUEST_TIMEOUT` is `0`; accepted: seconds from 1 to 86400",
        "`FEISHU_APP_ID` is 10 characters, with punctuation; accepted: `cli_` and 8 to 64",
    ] {
        assert!(text.contains(quoted), "{quoted}: {text}");
    }
    let long = load(&[("NOD_LOG", &"x".repeat(25))]).unwrap_err();
    assert!(
        long.to_string().contains("`NOD_LOG` is 25 characters"),
        "{long}"
    );
}

#[test]
fn good_values_are_taken() {
    let config = load(&[
        ("FEISHU_APP_ID", "cli_a1b2c3d4e5f60718"),
        ("FEISHU_APP_SECRET", "s3cretS3cretS3cret"),
        ("FEISHU_APPROVERS", "ou_1, on_2 ,e33"),
        ("FEISHU_CHAT_ID", "oc_9"),
        ("NOD_NOTIFY_STOP_AFTER", "off"),
        ("NOD_LOG", "off"),
        ("NOD_LANG", "en"),
        ("NOD_MACHINE_NAME", "书桌 1"),
        ("https_proxy", "http://127.0.0.1:1"),
    ])
    .unwrap();
    assert_eq!(config.approvers.len(), 3);
    assert_eq!(config.stop_notice_after, None);
    assert_eq!(config.log, None);
    assert!(config.app().is_ok());
    assert_eq!(config.machine_name.as_deref(), Some("书桌 1"));
    assert_eq!(config.proxies.https.as_deref(), Some("http://127.0.0.1:1"));
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn the_socket_follows_the_settings() {
    let mut plain = Sources::of(&[]);
    plain.runtime_dir = Some("/run/user/1".into());
    let sockets = Config::load(&plain).unwrap().sockets;
    assert_eq!(sockets.own, PathBuf::from("/run/user/1/nod/nod.sock"));
    assert_eq!(sockets.old_clients, Some(OLD_CLIENTS.into()));
    let mut own_state = Sources::of(&[("NOD_STATE_DIR", "/s")]);
    own_state.runtime_dir = Some("/run/user/1".into());
    let sockets = Config::load(&own_state).unwrap().sockets;
    assert_eq!(sockets.own, PathBuf::from("/s/run/nod.sock"));
    assert_eq!(sockets.old_clients, None);
    let sockets = load(&[("PERMISSION_SOCKET_PATH", "/p/x.sock")])
        .unwrap()
        .sockets;
    assert_eq!(sockets.own, PathBuf::from("/p/x.sock"));
    assert_eq!(sockets.old_clients, None);
    assert!(load(&[("PERMISSION_SOCKET_PATH", &format!("/{}", "x".repeat(107)))]).is_err());
}

#[test]
fn the_hook_is_not_kept_by_settings_it_does_not_use() {
    let sources = Sources::of(&[
        ("FEISHU_APP_ID", "wrong"),
        ("PERMISSION_REQUEST_TIMEOUT", "7"),
    ]);
    let hook = HookConfig::load(&sources, None).unwrap();
    assert_eq!(hook.request_timeout, Duration::from_secs(7));
}

#[test]
fn what_is_shown_hides_secrets() {
    let sources = Sources::of(&[
        ("FEISHU_APP_SECRET", "canary1234"),
        ("HTTPS_PROXY", "http://u:canary@h:1"),
        ("NOD_CA_FILE", "//u:canary@h/ca.pem"),
        ("FEISHU_DOMAIN", "me:canary@d.example"),
        ("FEISHU_CHAT_ID", "canary7890abcdefghijklmnopqrstuv"),
        ("FEISHU_OWNER_ID", "ou_7d8a6e6df7621556ce0d21922b676706ccs"),
        ("NOD_STATE_DIR", "/Users/a.b@corp.example/nod"),
        ("NOD_LANG", "en"),
    ]);
    let lines = shown(&sources);
    assert_eq!(lines.len(), SETTINGS.len());
    assert!(!format!("{lines:?}").contains("canary"));
    for (name, value) in [
        ("NOD_LANG", "en"),
        ("FEISHU_OWNER_ID", "ou_7d8a6e6df7621556ce0d21922b676706ccs"),
        ("NOD_STATE_DIR", "/Users/a.b@corp.example/nod"),
    ] {
        let line = lines.iter().find(|line| line.name == name).unwrap();
        assert_eq!(line.value.as_deref(), Some(value));
    }
}

#[test]
fn the_written_tables_equal_the_one_in_the_code() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let example = std::fs::read_to_string(root.join(".env.example")).unwrap();
    assert_eq!(
        example,
        env_example(),
        "`nod settings --env-example` prints it"
    );
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    assert!(
        readme.contains(&readme_table()),
        "`nod settings --markdown` prints it"
    );
}

#[test]
fn approvals_are_switched_off_by_two_settings_only() {
    assert!(!load(&[]).unwrap().sessions.bypass);
    let off = ("TOOL_APPROVAL_ENABLED", "false");
    let alone = load(&[off]).unwrap_err().to_string();
    assert!(alone.contains("`NOD_ALLOW_BYPASS` is not"), "{alone}");
    let allowed = ("NOD_ALLOW_BYPASS", "true");
    assert!(!load(&[allowed]).unwrap().sessions.bypass);
    assert!(load(&[off, allowed]).unwrap().sessions.bypass);
}

#[test]
fn projects_are_directories_that_exist() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("shop={}", dir.path().display());
    let config = load(&[("NOD_PROJECTS", &text)]).unwrap();
    let found = config.sessions.projects.find("Shop").unwrap();
    assert_eq!(found.path, dir.path());
    assert_eq!(config.sessions.claude, PathBuf::from("claude"));
}

#[test]
fn webhook_mode_needs_an_address_to_post_to_and_one_to_be_reached_at() {
    let problems = load(&[("FEISHU_SEND_MODE", "webhook")]).unwrap_err();
    let text = problems.to_string();
    for name in [
        "FEISHU_WEBHOOK_URL",
        "CALLBACK_LISTEN",
        "CALLBACK_SERVER_URL",
    ] {
        assert!(text.contains(&format!("`{name}` is not set")), "{text}");
    }
    let hook = "https://open.feishu.cn/open-apis/bot/v2/hook/abc";
    let config = load(&[
        ("FEISHU_SEND_MODE", "webhook"),
        ("FEISHU_WEBHOOK_URL", hook),
        ("CALLBACK_LISTEN", "127.0.0.1:8080"),
        ("CALLBACK_SERVER_URL", "http://10.0.0.1:8080/"),
        (
            "CALLBACK_PEERS",
            "http://10.0.0.2:8080, https://desk.example",
        ),
    ])
    .unwrap();
    assert_eq!(config.send_mode, SendMode::Webhook);
    assert_eq!(config.webhook.unwrap().url.expose(), hook);
    assert_eq!(config.callback.peers.len(), 2);
    let url = config.callback.url.unwrap();
    assert_eq!(url.as_str(), "http://10.0.0.1:8080");
    assert!(!config.callback.allow_unsealed);
    let app = load(&[("FEISHU_WEBHOOK_URL", hook)]).unwrap();
    assert!(app.webhook.is_none());
}
