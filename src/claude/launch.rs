//! What a Claude Code child is started with: its arguments, its directory and
//! every variable of its environment. Nothing comes from a chat but the words.

use crate::talk::{Mode, Opening};

/// What a child may inherit besides what any may; another session's own
/// variables are not among them.
pub const INHERITED: &str = "\
    ANTHROPIC_* CLAUDE_CONFIG_DIR CLAUDE_CODE_OAUTH_TOKEN CLAUDE_CODE_USE_* CLAUDE_CODE_MAX_* \
    CLAUDE_CODE_DISABLE_* DISABLE_* AWS_* GOOGLE_* CLOUD_ML_REGION VERTEX_* \
    NODE_EXTRA_CA_CERTS";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permissions {
    /// Every tool that is not allowed yet asks us.
    Ask(Mode),
    /// Nothing asks. Only by two settings of the daemon's owner.
    Bypass,
}

/// The session and how it asks are all that differs from child to child.
pub fn arguments(opening: &Opening, permissions: &Permissions) -> Vec<String> {
    let mut args = [
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
    ]
    .map(str::to_owned)
    .to_vec();
    match permissions {
        Permissions::Ask(mode) => args.extend(
            [
                "--permission-prompt-tool",
                "stdio",
                "--permission-mode",
                mode.as_str(),
            ]
            .map(str::to_owned),
        ),
        Permissions::Bypass => {
            args.extend(["--permission-mode", "bypassPermissions"].map(str::to_owned));
        }
    }
    let (flag, id) = match opening {
        Opening::Fresh(id) => ("--session-id", id),
        Opening::Resume(id) => ("--resume", id),
    };
    args.extend([flag.to_owned(), id.to_string()]);
    args
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::child::environment::inherited;
    use crate::ids::SessionId;

    #[test]
    fn the_arguments_are_fixed_but_for_session_and_mode() {
        let id = || SessionId::parse("6b5f").expect("an id");
        let stream = "-p --input-format stream-json --output-format stream-json --verbose";
        for (opening, permissions, rest) in [
            (
                Opening::Fresh(id()),
                Permissions::Ask(Mode::Default),
                "--permission-prompt-tool stdio --permission-mode default --session-id 6b5f",
            ),
            (
                Opening::Resume(id()),
                Permissions::Ask(Mode::Plan),
                "--permission-prompt-tool stdio --permission-mode plan --resume 6b5f",
            ),
            (
                Opening::Resume(id()),
                Permissions::Bypass,
                "--permission-mode bypassPermissions --resume 6b5f",
            ),
        ] {
            let args = arguments(&opening, &permissions).join(" ");
            assert_eq!(args, format!("{stream} {rest}"));
        }
    }

    #[test]
    fn another_sessions_own_variables_are_not_inherited() {
        let all = [
            "ANTHROPIC_API_KEY",
            "CLAUDECODE",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
        ];
        let from = all.map(|name| (OsString::from(name), OsString::from("x")));
        let kept = inherited(from, INHERITED).into_iter();
        let kept: Vec<_> = kept.map(|(name, _)| name).collect();
        assert_eq!(kept, ["ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK"]);
    }
}
