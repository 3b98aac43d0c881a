//! What a child inherits of nod's own environment: names alone decide. Feishu's
//! secrets are not among them. Pure.

use std::ffi::OsString;

/// What any child may inherit. A name that begins or ends with `*` stands for
/// all that end or begin so.
const ANY: &str = "\
    HOME PATH USER LOGNAME SHELL LANG LANGUAGE LC_* TERM TMPDIR TZ SSH_AUTH_SOCK XDG_* \
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy \
    SSL_CERT_FILE SSL_CERT_DIR";

/// The variables of `from` that any child may inherit, and those that `besides`
/// names.
pub fn inherited(
    from: impl IntoIterator<Item = (OsString, OsString)>,
    besides: &str,
) -> Vec<(OsString, OsString)> {
    let is_named = |name: &str| {
        let mut all = ANY
            .split_ascii_whitespace()
            .chain(besides.split_ascii_whitespace());
        all.any(|pattern| {
            if let Some(prefix) = pattern.strip_suffix('*') {
                name.starts_with(prefix)
            } else if let Some(suffix) = pattern.strip_prefix('*') {
                name.ends_with(suffix)
            } else {
                pattern == name
            }
        })
    };
    from.into_iter()
        .filter(|(name, _)| name.to_str().is_some_and(is_named))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_variables_are_inherited() {
        let all = [
            "PATH",
            "LC_ALL",
            "ANTHROPIC_API_KEY",
            "FEISHU_APP_SECRET",
            "CLAUDECODE",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            "PATHX",
        ];
        let from = all.map(|name| (OsString::from(name), OsString::from("x")));
        let names = |besides: &str| {
            let all = inherited(from.clone(), besides).into_iter();
            all.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(""), ["PATH", "LC_ALL"]);
        assert_eq!(names("*_API_KEY"), ["PATH", "LC_ALL", "ANTHROPIC_API_KEY"]);
    }
}
