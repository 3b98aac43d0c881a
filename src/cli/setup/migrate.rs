//! What can be taken over from claude-notify: where its settings lie, and
//! which of them mean the same to nod. Pure.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Settings of the same name and meaning.
const SAME: [&str; 7] = [
    "FEISHU_APP_ID",
    "FEISHU_APP_SECRET",
    "FEISHU_OWNER_ID",
    "FEISHU_CHAT_ID",
    "PERMISSION_REQUEST_TIMEOUT",
    "PERMISSION_NOTIFY_DELAY",
    "PERMISSION_SOCKET_PATH",
];
/// Its own default, which nod serves for old clients anyway.
const OLD_SOCKET: &str = "/tmp/claude-permission.sock";
const NAMES: [&str; 2] = ["claude-notify", "claude-anywhere"];

/// What was found in its settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TakenSettings {
    /// In nod's names.
    pub(super) values: Vec<(&'static str, String)>,
    /// Names that have no counterpart.
    pub(super) left: Vec<String>,
}

pub(super) fn taken(settings: &HashMap<String, String>) -> TakenSettings {
    let mut taken = TakenSettings::default();
    for name in SAME {
        let found = settings.get(name).map(|value| value.trim());
        if let Some(value) = found.filter(|value| is_meant(value) && *value != OLD_SOCKET) {
            taken.values.push((name, value.to_owned()));
        }
    }
    taken.left = [
        "FEISHU_WEBHOOK_URL",
        "FEISHU_GATEWAY_URL",
        "CALLBACK_SERVER_URL",
    ]
    .into_iter()
    .filter(|name| settings.get(*name).is_some_and(|value| is_meant(value)))
    .map(str::to_owned)
    .collect();
    taken
}

/// Whether somebody set it: a sample file ships with `your_…` and rows of `x`.
fn is_meant(value: &str) -> bool {
    let lower = value.trim().to_lowercase();
    let bare = lower.strip_prefix("cli_").unwrap_or(&lower);
    let sample = bare.starts_with("your") || bare.bytes().all(|b| b == b'x');
    !lower.is_empty() && !sample
}

/// Where its settings may lie: beside the hooks that start it, or in the home
/// directory under one of its names.
pub(super) fn places(commands: &[String], home: &Path) -> Vec<PathBuf> {
    let by_hook = commands.iter().filter_map(|command| root_of(command));
    let by_name = NAMES.iter().map(|name| home.join(name));
    let mut places: Vec<PathBuf> = by_hook
        .chain(by_name)
        .map(|root| root.join(".env"))
        .collect();
    places.dedup();
    places
}

/// Whether a hook's command starts claude-notify.
pub(super) fn is_its_hook(command: &str) -> bool {
    root_of(command).is_some()
}

fn root_of(command: &str) -> Option<PathBuf> {
    let (before, _) = command.split_once("/src/hook-router.sh")?;
    let start = before.find('/')?;
    // A path in quotes may hold blanks; one without ends the words before it.
    let path = match before.find(['"', '\'']) {
        Some(quote) => before.get(quote + 1..)?,
        None => before[start..].rsplit(char::is_whitespace).next()?,
    };
    let path = Path::new(path);
    path.is_absolute().then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn what_means_the_same_is_taken_over() {
        let taken = taken(&settings(&[
            ("FEISHU_APP_ID", "cli_a1b2c3d4e5"),
            ("FEISHU_APP_SECRET", " s3cret-value "),
            ("FEISHU_OWNER_ID", "e33gg"),
            ("FEISHU_CHAT_ID", ""),
            ("FEISHU_WEBHOOK_URL", "https://h/hook"),
            ("FEISHU_GATEWAY_URL", "your_gateway"),
            ("PERMISSION_SOCKET_PATH", OLD_SOCKET),
            ("PERMISSION_REQUEST_TIMEOUT", "600"),
            ("TELEMETRY_ENABLED", "true"),
        ]));
        let expected = [
            ("FEISHU_APP_ID", "cli_a1b2c3d4e5"),
            ("FEISHU_APP_SECRET", "s3cret-value"),
            ("FEISHU_OWNER_ID", "e33gg"),
            ("PERMISSION_REQUEST_TIMEOUT", "600"),
        ]
        .map(|(name, value)| (name, value.to_owned()));
        assert_eq!(taken.values, expected);
        assert_eq!(taken.left, ["FEISHU_WEBHOOK_URL"]);
    }

    #[test]
    fn a_sample_file_gives_nothing() {
        let row = "x".repeat(16);
        let sample = settings(&[
            ("FEISHU_APP_ID", &format!("cli_{row}")),
            ("FEISHU_APP_SECRET", "your_app_secret"),
            ("FEISHU_OWNER_ID", &row),
        ]);
        assert_eq!(taken(&sample), TakenSettings::default());
    }

    #[test]
    fn its_settings_are_found_beside_its_hook() {
        for (command, root) in [
            ("/opt/cn/src/hook-router.sh", Some("/opt/cn")),
            ("bash /opt/cn/src/hook-router.sh Stop", Some("/opt/cn")),
            ("\"/opt/my cn/src/hook-router.sh\"", Some("/opt/my cn")),
            ("bash '/opt/my cn/src/hook-router.sh'", Some("/opt/my cn")),
            ("cn/src/hook-router.sh", None),
            ("say done", None),
        ] {
            assert_eq!(root_of(command), root.map(PathBuf::from), "{command}");
        }
        let places = places(
            &["/opt/cn/src/hook-router.sh".to_owned()],
            Path::new("/home/u"),
        );
        let expected = [
            "/opt/cn/.env",
            "/home/u/claude-notify/.env",
            "/home/u/claude-anywhere/.env",
        ];
        assert_eq!(places, expected.map(PathBuf::from));
    }
}
