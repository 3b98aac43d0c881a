//! Points a real Claude Code at the demo: a settings file of its own, beside
//! the demo's project, so that the person's settings stay as they are.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::Broken;
use super::stage::DemoStage;
use crate::text::Text;

pub(super) static HINT: Text = Text::new(
    "你装有 Claude Code。想让它向这个演示请求权限，在另一个终端运行：",
    "You have Claude Code. To let it ask here, run this in another terminal:",
);

pub(super) static THEN: Text = Text::new(
    "再让它做一件要请求权限的事，例如新建一个文件。你自己的设置不变；演示一结束，它就不再向这里请求。",
    "Then have it do something it must ask for, such as making a file. Your own settings stay as they are, and it stops asking here when the demo ends.",
);

/// Every event nod listens to.
const EVENTS: [&str; 8] = [
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SubagentStop",
    "UserPromptSubmit",
    "SessionEnd",
    "Notification",
];

/// Longer than the daemon lets a request wait, so that nod ends it and not
/// Claude Code.
const HOOK_SECONDS: u32 = 360;

/// Writes the settings and gives the command that uses them.
pub(super) fn point_here(stage: &DemoStage, program: &Path) -> Result<String, Broken> {
    let file = stage.beside("claude-settings.json");
    fs::write(
        &file,
        format!("{:#}\n", settings(&stage.nod, &stage.hook_file()?)),
    )?;
    Ok(format!("{} --settings {}", quoted(program), quoted(&file)))
}

fn settings(nod: &Path, config: &Path) -> Value {
    let entry = json!([{"hooks": [{
        "type": "command",
        "command": format!("{} hook --config {}", quoted(nod), quoted(config)),
        "timeout": HOOK_SECONDS,
    }]}]);
    let hooks: Map<String, Value> = EVENTS
        .iter()
        .map(|event| ((*event).to_owned(), entry.clone()))
        .collect();
    json!({
        // In the mode `auto` a classifier decides, and no hook is asked.
        "permissions": {"defaultMode": "default"},
        "hooks": hooks,
    })
}

/// A path as one word of a shell's command line.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if path.chars().all(plain) {
        path.into_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_one_word() {
        for (path, word) in [
            ("/opt/nod", "/opt/nod"),
            ("/home/li n/nod", "'/home/li n/nod'"),
            ("/it's", r"'/it'\''s'"),
        ] {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }

    #[test]
    fn every_event_reaches_this_nod_by_its_own_file() {
        let settings = settings(Path::new("/opt/nod"), Path::new("/tmp/a b"));
        assert_eq!(settings["permissions"]["defaultMode"], "default");
        for event in EVENTS {
            let hook = &settings["hooks"][event][0]["hooks"][0];
            assert_eq!(hook["command"], "/opt/nod hook --config '/tmp/a b'");
            assert_eq!(hook["timeout"], HOOK_SECONDS);
        }
    }
}
