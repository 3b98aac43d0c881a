//! The settings of many kinds of people, with nod's hooks and without.

use super::*;
use serde_json::{Value, json};
use std::fs;

const TIMEOUT: Duration = Duration::from_secs(300);

const FILE: &str = "/home/li n/.config/nod/.env";

fn line<'a>(program: &'a str, file: &'a str, socket: Option<&'a str>) -> HookCommand<'a> {
    HookCommand {
        program: Path::new(program),
        file: Path::new(file),
        socket: socket.map(Path::new),
    }
}

fn hooks() -> Hooks {
    Hooks::new(&line("/opt/my tools/nod", FILE, None), TIMEOUT).unwrap()
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("settings.json");
    fs::write(&path, text).unwrap();
    (dir, path)
}

#[track_caller]
fn install(path: &Path) -> String {
    let mut draft = SettingsDraft::open(path).unwrap();
    draft.install(&hooks()).unwrap();
    draft.save().unwrap();
    fs::read_to_string(path).unwrap()
}

#[track_caller]
fn remove(path: &Path) -> String {
    let mut draft = SettingsDraft::open(path).unwrap();
    draft.remove().unwrap();
    draft.save().unwrap();
    fs::read_to_string(path).unwrap()
}

fn meaning(text: &str) -> Value {
    let text = text.trim_start_matches('\u{feff}');
    let root = jsonc_parser::cst::CstRootNode::parse(text, &jsonc_parser::ParseOptions::default());
    root.unwrap().to_serde_value().unwrap()
}

const COMMAND: &str = "\"/opt/my tools/nod\" hook --config \"/home/li n/.config/nod/.env\"";

fn handler(timeout: u64) -> Value {
    json!({"type": "command", "command": COMMAND, "timeout": timeout})
}

#[test]
fn a_new_file_holds_every_hook_with_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("settings.json");
    let text = install(&path);
    assert!(text.ends_with("}\n") && text.contains("\n  \"hooks\": {\n    \"Perm"));
    let matched = |timeout| json!([{"matcher": "", "hooks": [handler(timeout)]}]);
    let plain = json!([{"hooks": [handler(5)]}]);
    let expected = json!({"hooks": {
        "PermissionRequest": matched(360),
        "PostToolUse": matched(5),
        "PostToolUseFailure": matched(5),
        "Stop": plain,
        "SubagentStop": plain,
        "UserPromptSubmit": plain,
        "SessionEnd": plain,
        "Notification": matched(5),
    }});
    assert_eq!(meaning(&text), expected);
}

const FOREIGN: &str = r#"{
  // how I like it
  "model": "opus", /* the large one */
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "say done"}]}
    ],
    "PreToolUse": [{"matcher": "Bash", "hooks": []}]
  },
  "permissions": {"allow": ["Read"], "defaultMode": "plan"}
}
"#;

#[test]
fn what_others_wrote_stays_in_place() {
    let (_dir, path) = file(FOREIGN);
    let text = install(&path);
    let mut rest = text.as_str();
    for part in [
        "{\n  // how I like it\n  \"model\": \"opus\", /* the large one */\n  \"hooks\": {\n    \"Stop\": [\n",
        "      {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}",
        "    \"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": []}]",
        "  \"permissions\": {\"allow\": [\"Read\"], \"defaultMode\": \"plan\"}\n}\n",
    ] {
        let at = rest.find(part);
        rest = &rest[at.unwrap_or_else(|| panic!("{part} is not in {rest}"))..];
    }
    let after = meaning(&text);
    assert_eq!(after["hooks"]["Stop"][0]["hooks"][0]["command"], "say done");
    assert_eq!(after["hooks"]["Stop"][1]["hooks"], json!([handler(5)]));
    assert_eq!(after["permissions"], meaning(FOREIGN)["permissions"]);
    assert_eq!(meaning(&remove(&path)), meaning(FOREIGN));
}

#[test]
fn installing_twice_changes_nothing() {
    for text in ["{}", "", "{\"hooks\": {}}", FOREIGN, "\u{feff}{}\n"] {
        let (_dir, path) = file(text);
        let once = install(&path);
        assert_eq!(install(&path), once);
        let mut draft = SettingsDraft::open(&path).unwrap();
        draft.install(&hooks()).unwrap();
        assert!(!draft.is_changed());
        assert_eq!(draft.diff(), "");
    }
}

#[test]
fn layouts_survive_a_round_trip() {
    for text in [
        "{}",
        "{ }\n",
        "{\"a\":1}",
        "{\r\n  \"a\": 1\r\n}\r\n",
        "{\n\t\"a\": [\n\t\t1\n\t]\n}\n",
        "{\n    \"a\": 1, // one\n}\n",
        "\u{feff}{\n  \"a\": 1\n}",
        "// head\n{\n  \"a\": 1\n}\n// tail\n",
    ] {
        let (_dir, path) = file(text);
        let with = install(&path);
        assert_eq!(with.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
        for comment in ["// one", "// head", "// tail"] {
            assert_eq!(with.contains(comment), text.contains(comment), "{with}");
        }
        if text.contains('\r') {
            assert!(!with.replace("\r\n", "").contains('\n'), "{with:?}");
        }
        if text.contains('\t') {
            assert!(with.contains("\n\t\"hooks\": {\n\t\t\"Perm"), "{with}");
        }
        assert_eq!(meaning(&remove(&path)), meaning(text), "{text:?}");
    }
}

#[test]
fn an_entry_of_another_nod_is_brought_up_to_date() {
    let old = json!({"hooks": {
        "PermissionRequest": [
            {"matcher": "", "hooks": [{"type": "command", "command": "/old/nod hook", "timeout": 90}]},
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}, {"type": "command", "command": "nod hook"}]},
        ],
        "PreToolUse": [{"hooks": [{"type": "command", "command": "\"/old/nod\" hook"}]}],
    }});
    let (_dir, path) = file(&old.to_string());
    let after = meaning(&install(&path));
    assert_eq!(
        after["hooks"]["PermissionRequest"],
        json!([
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]},
            {"matcher": "", "hooks": [handler(360)]},
        ])
    );
    assert_eq!(after["hooks"].get("PreToolUse"), None);
}

#[test]
fn a_shell_reads_the_paths_back_as_they_are() {
    let odd = "/x/a$b`c\"d\\e 'f' %s !g";
    let command = text::command("/bin/echo", odd, Some(odd));
    let command = command.replacen("hook", "", 1);
    let run = std::process::Command::new("/bin/sh")
        .args(["-c", &command.replace("\"/bin/echo\"", "printf '%s\\n'")])
        .output();
    let said = String::from_utf8(run.unwrap().stdout).unwrap();
    assert_eq!(said, format!("--config\n{odd}\n--socket\n{odd}\n"));
}

#[test]
fn only_nods_own_commands_are_ours() {
    for (command, ours) in [
        (COMMAND, true),
        ("nod hook", true),
        ("/usr/bin/nod hook", true),
        ("  \"/a b/nod\" hook ", true),
        ("/usr/bin/nod hooks", false),
        ("/usr/bin/nod hook --x", false),
        ("/usr/bin/nod hook --config", false),
        ("/usr/bin/nod hook --config /a --x /b", false),
        ("nod hook --config ~/.config/nod/.env", true),
        ("\"/a b/nod\" hook --config \"/c d\" --socket \"/s\"", true),
        ("nod hook --config /a; rm x", false),
        ("nod hook --config \"/a\"; rm", false),
        ("nod hook --config \"/a\"&", false),
        ("/usr/bin/anod hook", false),
        ("echo nod hook", false),
        ("nod", false),
        ("\"/a/nod hook", false),
        ("", false),
    ] {
        assert_eq!(text::is_ours(command), ours, "{command}");
    }
    let odd = "/a$b`c\"d\\e/nod";
    let odd = Hooks::new(&line(odd, "/it's $x", Some("/s")), TIMEOUT).unwrap();
    assert_eq!(
        odd.command(),
        r#""/a\$b\`c\"d\\e/nod" hook --config "/it's \$x" --socket "/s""#
    );
    assert!(text::is_ours(odd.command()));
    assert!(odd.starts_as(r#""/a\$b\`c\"d\\e/nod" hook"#));
    assert!(!odd.starts_as("/a/nod hook"));
    for bad in [
        line("nod", FILE, None),
        line("/a/nodd", FILE, None),
        line("/a\nb/nod", FILE, None),
        line("/", FILE, None),
        line("/nod", "x", None),
        line("/nod", "/a\nb", None),
        line("/nod", FILE, Some("s")),
    ] {
        assert!(Hooks::new(&bad, TIMEOUT).is_err(), "{bad:?}");
    }
}

#[test]
fn what_is_not_understood_is_refused_by_line_and_column() {
    for (text, line, column) in [
        ("{\n  \"a\": 1,\n  oops\n}", 3, 3),
        ("{\n  \"a\": 1,\n  \"a\": 2\n}", 3, 3),
        ("{\"hooks\": {\"Stop\": [{\"x\": 1, \"x\": 2}]}}", 1, 30),
        ("[]", 1, 1),
        ("{\n\"hooks\": []}", 2, 1),
        ("{\n \"hooks\": {\"Stop\": {}}}", 2, 2),
        ("{\"permissions\": 1}", 1, 2),
        ("{'a': 1}", 1, 2),
        ("{\"a\": 1 \"b\": 2}", 1, 8),
    ] {
        let (_dir, path) = file(text);
        let mut draft = SettingsDraft::open(&path).unwrap();
        let why = draft.install(&hooks()).unwrap_err();
        let HooksError::Untouchable { why: at, .. } = &why else {
            panic!("{why}");
        };
        assert_eq!((at.line, at.column), (line, column), "{text}: {why}");
        assert!(!draft.is_changed());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("settings.json");
    fs::write(&path, b"{\"a\": \"\xff\"}").unwrap();
    let why = SettingsDraft::open(&path)
        .unwrap()
        .install(&hooks())
        .unwrap_err();
    assert!(why.to_string().contains("UTF-8"), "{why}");
}

#[test]
fn a_file_changed_meanwhile_is_not_overwritten() {
    let (_dir, path) = file("{}");
    let mut draft = SettingsDraft::open(&path).unwrap();
    draft.install(&hooks()).unwrap();
    fs::write(&path, "{\"a\": 1}").unwrap();
    assert!(matches!(draft.save(), Err(HooksError::Changed { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\": 1}");
    fs::remove_file(&path).unwrap();
    assert!(matches!(draft.save(), Err(HooksError::Changed { .. })));
}

#[test]
fn removal_after_a_users_edit_takes_only_nods_entries() {
    let (_dir, path) = file(FOREIGN);
    let with = install(&path);
    let edited = with
        .replace("\"opus\"", "\"haiku\"")
        .replace("say done", "say so");
    fs::write(&path, &edited).unwrap();
    let after = remove(&path);
    assert!(after.contains("\"haiku\", /* the large one */"));
    assert!(after.contains("// how I like it"));
    let expected = FOREIGN
        .replace("\"opus\"", "\"haiku\"")
        .replace("say done", "say so");
    assert_eq!(meaning(&after), meaning(&expected));
    assert_eq!(remove(&path), after, "nothing is left to take");
}

#[test]
fn the_diff_shows_exactly_the_lines_that_change() {
    let (_dir, path) = file("{\n  \"model\": \"opus\"\n}\n");
    let mut draft = SettingsDraft::open(&path).unwrap();
    draft.set_mode(Some("default")).unwrap();
    let diff = draft.diff();
    let changed: Vec<&str> = diff
        .lines()
        .filter(|line| line.starts_with(['+', '-']))
        .skip(2)
        .collect();
    assert_eq!(
        changed,
        [
            "-  \"model\": \"opus\"",
            "+  \"model\": \"opus\",",
            "+  \"permissions\": {",
            "+    \"defaultMode\": \"default\"",
            "+  }",
        ]
    );
}

#[test]
fn modes_that_keep_permissions_from_the_hook_are_known() {
    for (text, expected) in [
        ("{}", AskMode::Unset),
        (
            r#"{"permissions": {"defaultMode": "default"}}"#,
            AskMode::Asks,
        ),
        (r#"{"permissions": {"defaultMode": "plan"}}"#, AskMode::Asks),
        (
            r#"{"permissions": {"defaultMode": "auto"}}"#,
            AskMode::Mode("auto".to_owned()),
        ),
        (
            r#"{"permissions": {"defaultMode": "dontAsk"}}"#,
            AskMode::Mode("dontAsk".to_owned()),
        ),
        (
            r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#,
            AskMode::Mode("bypassPermissions".to_owned()),
        ),
        (r#"{"disableAllHooks": true}"#, AskMode::HooksOff),
    ] {
        let (_dir, path) = file(text);
        assert_eq!(
            SettingsDraft::open(&path).unwrap().asking().unwrap(),
            expected
        );
    }
}

#[test]
fn the_mode_is_set_and_taken_back() {
    for text in [
        "{}",
        "{\n  \"permissions\": {\n    \"allow\": []\n  }\n}\n",
        "{\n  \"permissions\": {\"defaultMode\": \"auto\", \"allow\": []}\n}\n",
    ] {
        let (_dir, path) = file(text);
        let before = meaning(text)["permissions"]["defaultMode"].clone();
        let mut draft = SettingsDraft::open(&path).unwrap();
        draft.set_mode(Some("default")).unwrap();
        assert_eq!(draft.asking().unwrap(), AskMode::Asks);
        draft.set_mode(before.as_str()).unwrap();
        draft.save().unwrap();
        assert_eq!(meaning(&fs::read_to_string(&path).unwrap()), meaning(text));
    }
}

#[test]
fn a_linked_dotfile_is_written_where_it_lies() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (
        dir.path().join("dot.json"),
        dir.path().join("settings.json"),
    );
    fs::write(&real, "{}").unwrap();
    std::os::unix::fs::symlink("dot.json", &link).unwrap();
    let text = install(&link);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), text);
}

#[test]
fn other_programs_hooks_are_listed() {
    let (_dir, path) = file(FOREIGN);
    install(&path);
    let draft = SettingsDraft::open(&path).unwrap();
    assert_eq!(draft.foreign_commands().unwrap(), ["say done"]);
}
