//! What other settings files of Claude Code's than the user's do to nod's
//! hooks: the project's, its local ones and the managed ones; and what in the
//! user's own costs the whole file.

use std::path::{Path, PathBuf};

use super::finding::{Finding, Probe};
use crate::claude::hooks_file::{AskMode, Obstacles, SettingsDraft};
use crate::claude::settings_file;

/// Whose settings a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsScope {
    User,
    Project,
    Managed,
}

/// One file, as it may be shown, and what was found in it.
pub(super) struct FoundSettings {
    pub(super) scope: SettingsScope,
    pub(super) file: String,
    pub(super) obstacles: Obstacles,
}

/// `own`: the user's settings start nod's hook by these commands.
pub(super) fn check(all: &[FoundSettings], own: &[String]) -> Vec<Finding> {
    all.iter().flat_map(|found| check_one(found, own)).collect()
}

fn check_one(found: &FoundSettings, own: &[String]) -> Vec<Finding> {
    let (file, is) = (&found.file, &found.obstacles);
    let mut findings = Vec::new();
    if !is.broken.is_empty() {
        let entries = is.broken.join("; ");
        findings.push(
            Probe("hook-entry")
                .problem(
                    format!("`{file}` 里有 Claude Code 不接受的 hook 条目（{entries}）：它会不声不响地忽略整个文件，nod 的 hook 也不会被调用"),
                    format!("`{file}` has a hook entry that Claude Code does not accept ({entries}): it silently ignores the whole file, nod's hooks included"),
                )
                .fix(
                    "把 `timeout` 改为大于 0 的数字，或改正 `type`",
                    "set `timeout` to a number above 0, or correct `type`",
                ),
        );
    }
    if found.scope == SettingsScope::User {
        return findings;
    }
    if is.hooks_off {
        findings.push(Probe("hooks-off").problem(
            format!("`{file}` 打开了 `disableAllHooks`：这里的 Claude Code 不会调用任何 hook，也不会有卡片"),
            format!("`{file}` sets `disableAllHooks`: Claude Code calls no hook here, and no card will come"),
        ));
    }
    if found.scope == SettingsScope::Managed && is.managed_only {
        findings.push(Probe("hooks-off").problem(
            format!("`{file}` 打开了 `allowManagedHooksOnly`：只有管理员的 hook 会被调用，不会有卡片"),
            format!("`{file}` sets `allowManagedHooksOnly`: only the administrator's hooks are called, and no card will come"),
        ));
    }
    if let AskMode::Mode(mode) = &is.mode {
        findings.push(Probe("project-mode").warning(
            format!("`{file}` 把模式设为 `{mode}`：这里的权限请求不会到达 nod"),
            format!(
                "`{file}` sets the mode to `{mode}`: permission requests here will not reach nod"
            ),
        ));
    }
    if is.own.iter().any(|command| !own.contains(command)) {
        findings.push(
            Probe("second-hook")
                .warning(
                    format!("`{file}` 也有 nod 的 hook，写法与你的用户设置不同：每个请求会启动两个 hook"),
                    format!("`{file}` has hooks of nod's too, spelled otherwise than in your user settings: every request starts two of them"),
                )
                .fix(
                    "从这个文件里删除 nod 的 hook",
                    "remove nod's hooks from that file",
                ),
        );
    }
    findings
}

/// Managed settings, where administrators put them.
const MANAGED: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode/managed-settings.json"
} else {
    "/etc/claude-code/managed-settings.json"
};

/// Every settings file that Claude Code would read here and that nod can read.
pub(super) fn found_settings(
    user: Option<&Path>,
    here: &Path,
    shown: &impl Fn(&Path) -> String,
) -> Vec<FoundSettings> {
    let at_root = settings_file::rules_file(here).ok();
    let at_root = at_root.and_then(|file| Some(file.parent()?.to_owned()));
    let own = here.join(".claude");
    let at_root = at_root.filter(|dir| *dir != own);
    let projects = [own].into_iter().chain(at_root).flat_map(|dir| {
        let names = ["settings.json", "settings.local.json"].map(|name| dir.join(name));
        names.map(|file| (SettingsScope::Project, file))
    });
    let user_file = user.map(|file| (SettingsScope::User, file.to_owned()));
    let managed = [(SettingsScope::Managed, PathBuf::from(MANAGED))];
    let all = user_file.into_iter().chain(projects).chain(managed);
    all.filter(|(scope, file)| *scope == SettingsScope::User || Some(file.as_path()) != user)
        .filter_map(|(scope, file)| {
            let obstacles = SettingsDraft::open(&file).ok()?.obstacles().ok()?;
            let file = shown(&file);
            Some(FoundSettings {
                scope,
                file,
                obstacles,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn found(scope: SettingsScope, text: &str) -> Vec<(&'static str, Level)> {
        let draft = SettingsDraft::of("/f".as_ref(), text.as_bytes());
        let found = FoundSettings {
            scope,
            file: "f".to_owned(),
            obstacles: draft.obstacles().unwrap(),
        };
        let findings = check(&[found], &["nod hook".to_owned()]);
        findings.iter().map(|one| (one.check, one.level)).collect()
    }

    #[test]
    fn managed_settings_that_shut_every_hook_out_are_a_problem() {
        let managed = |text| found(SettingsScope::Managed, text);
        let off = [("hooks-off", Level::Problem)];
        assert_eq!(managed(r#"{"disableAllHooks": true}"#), off);
        assert_eq!(managed(r#"{"allowManagedHooksOnly": true}"#), off);
        assert_eq!(managed(r#"{"disableAllHooks": false}"#), []);
        let project = |text| found(SettingsScope::Project, text);
        assert_eq!(project(r#"{"allowManagedHooksOnly": true}"#), []);
    }
}
