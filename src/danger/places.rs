//! Places that decide what runs, who one is, or what the machine does: by
//! their names alone, whatever the case, since some file systems don't tell.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::Danger;
use crate::text::lists;

/// What is done with a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
    /// Reading is enough, whatever it is called.
    Secret,
}

/// Whole components that lead to the place, and the file's own name or what it
/// begins or ends with (`*`).
const WRITTEN: &[(&str, Danger)] = &[
    (".claude/agents/*", Danger::AgentSettings),
    (".claude/commands/*", Danger::AgentSettings),
    (".claude/hooks/*", Danger::AgentSettings),
    (".claude/plugins/*", Danger::AgentSettings),
    (".claude/skills/*", Danger::AgentSettings),
    (".claude/settings*", Danger::AgentSettings),
    (".claude/*", Danger::AgentSettings),
    (".claude.json", Danger::AgentSettings),
    (".mcp.json", Danger::AgentSettings),
    (".codex/*", Danger::AgentSettings),
    (".cursor/*", Danger::AgentSettings),
    (".cursorrules", Danger::AgentSettings),
    (".gemini/*", Danger::AgentSettings),
    (".config/nod/*", Danger::AgentSettings),
    (".local/state/nod/*", Danger::AgentSettings),
    (".github/copilot-instructions.md", Danger::AgentSettings),
    ("claude.md", Danger::AgentSettings),
    ("claude.local.md", Danger::AgentSettings),
    ("agents.md", Danger::AgentSettings),
    ("gemini.md", Danger::AgentSettings),
    (".git/hooks/*", Danger::GitHooks),
    (".git/config*", Danger::GitHooks),
    (".git/info/attributes", Danger::GitHooks),
    (".git/modules/*", Danger::GitHooks),
    (".gitattributes", Danger::GitHooks),
    (".gitconfig", Danger::GitHooks),
    (".gitmodules", Danger::GitHooks),
    (".config/git/*", Danger::GitHooks),
    (".githooks/*", Danger::GitHooks),
    (".husky/*", Danger::GitHooks),
    (".lefthook/*", Danger::GitHooks),
    ("lefthook.yml", Danger::GitHooks),
    (".pre-commit-config.yaml", Danger::GitHooks),
    (".pre-commit-hooks.yaml", Danger::GitHooks),
    (".envrc", Danger::Startup),
    (".direnv/*", Danger::Startup),
    (".bash*", Danger::Startup),
    (".profile", Danger::Startup),
    (".zsh*", Danger::Startup),
    (".zlogin", Danger::Startup),
    (".zlogout", Danger::Startup),
    (".zprofile", Danger::Startup),
    (".kshrc", Danger::Startup),
    (".cshrc", Danger::Startup),
    (".tcshrc", Danger::Startup),
    (".login", Danger::Startup),
    (".inputrc", Danger::Startup),
    (".xinitrc", Danger::Startup),
    (".xprofile", Danger::Startup),
    (".xsession*", Danger::Startup),
    (".vimrc", Danger::Startup),
    (".vim/*", Danger::Startup),
    (".emacs*", Danger::Startup),
    (".tmux.conf", Danger::Startup),
    (".screenrc", Danger::Startup),
    (".hushlogin", Danger::Startup),
    (".config/fish/*", Danger::Startup),
    (".config/nvim/*", Danger::Startup),
    (".config/autostart/*", Danger::Schedule),
    (".config/systemd/*", Danger::Schedule),
    (".config/environment.d/*", Danger::Startup),
    (".local/share/systemd/*", Danger::Schedule),
    (".local/share/applications/*", Danger::Schedule),
    (".local/bin/*", Danger::Startup),
    ("library/launchagents/*", Danger::Schedule),
    ("library/launchdaemons/*", Danger::Schedule),
    ("library/startupitems/*", Danger::Schedule),
    ("library/application scripts/*", Danger::Schedule),
    ("systemd/system/*", Danger::Schedule),
    ("systemd/user/*", Danger::Schedule),
    ("*.service", Danger::Schedule),
    ("*.timer", Danger::Schedule),
    ("var/spool/cron/*", Danger::Schedule),
    (".ssh/*", Danger::Keys),
    ("authorized_keys*", Danger::Keys),
    (".gnupg/*", Danger::Keys),
    (".aws/*", Danger::Keys),
    (".kube/*", Danger::Keys),
    (".docker/config.json", Danger::Keys),
    (".netrc", Danger::Keys),
    (".npmrc", Danger::Supply),
    (".yarnrc*", Danger::Supply),
    (".pnpmfile.cjs", Danger::Supply),
    (".pypirc", Danger::Supply),
    ("pip.conf", Danger::Supply),
    (".pip/*", Danger::Supply),
    (".condarc", Danger::Supply),
    (".gemrc", Danger::Supply),
    (".cargo/*", Danger::Supply),
    (".m2/settings.xml", Danger::Supply),
    (".gradle/*", Danger::Supply),
    (".bazelrc", Danger::BuildFiles),
    ("makefile", Danger::BuildFiles),
    ("gnumakefile", Danger::BuildFiles),
    ("justfile", Danger::BuildFiles),
    ("taskfile.y*ml", Danger::BuildFiles),
    ("rakefile", Danger::BuildFiles),
    ("gruntfile.*", Danger::BuildFiles),
    ("gulpfile.*", Danger::BuildFiles),
    ("build.rs", Danger::BuildFiles),
    ("build.gradle*", Danger::BuildFiles),
    ("settings.gradle*", Danger::BuildFiles),
    ("init.gradle*", Danger::BuildFiles),
    ("gradle-wrapper.properties", Danger::BuildFiles),
    ("setup.py", Danger::BuildFiles),
    ("conftest.py", Danger::BuildFiles),
    ("noxfile.py", Danger::BuildFiles),
    ("tox.ini", Danger::BuildFiles),
    ("sitecustomize.py", Danger::BuildFiles),
    ("usercustomize.py", Danger::BuildFiles),
    ("*.pth", Danger::BuildFiles),
    ("binding.gyp", Danger::BuildFiles),
    (".pythonrc*", Danger::Startup),
    (".irbrc", Danger::Startup),
    (".rprofile", Danger::Startup),
    (".github/workflows/*", Danger::BuildFiles),
    (".github/actions/*", Danger::BuildFiles),
    (".gitlab-ci.yml", Danger::BuildFiles),
    (".gitlab/ci/*", Danger::BuildFiles),
    (".circleci/*", Danger::BuildFiles),
    (".travis.yml", Danger::BuildFiles),
    (".drone.yml", Danger::BuildFiles),
    (".buildkite/*", Danger::BuildFiles),
    (".woodpecker*", Danger::BuildFiles),
    ("azure-pipelines.yml", Danger::BuildFiles),
    ("bitbucket-pipelines.yml", Danger::BuildFiles),
    ("jenkinsfile", Danger::BuildFiles),
    (".devcontainer/*", Danger::BuildFiles),
    (".devcontainer.json", Danger::BuildFiles),
    (".vscode/tasks.json", Danger::BuildFiles),
    (".vscode/settings.json", Danger::BuildFiles),
    (".vscode/launch.json", Danger::BuildFiles),
    (".idea/runconfigurations/*", Danger::BuildFiles),
    (".idea/workspace.xml", Danger::BuildFiles),
    (".idea/externaltools/*", Danger::BuildFiles),
    (".run/*", Danger::BuildFiles),
    ("node_modules/*", Danger::Supply),
    ("site-packages/*", Danger::Supply),
];

/// Roots of the system; what is below is nobody's project.
const SYSTEM: &str = "\
    applications bin boot c:/windows etc lib lib64 library opt private/etc proc/sys root sbin \
    sys system usr var/lib var/www";

/// Files that hold a secret: reading them is enough.
const SECRET: &[&str] = &[
    ".ssh/*",
    ".gnupg/*",
    ".aws/credentials",
    ".aws/*",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".kube/config",
    ".docker/config.json",
    ".git-credentials",
    ".config/gh/hosts.yml",
    ".config/gcloud/*",
    ".azure/*",
    ".config/nod/*",
    ".local/state/nod/*",
    "nod.sock",
    "claude-permission.sock",
    ".config/op/*",
    ".password-store/*",
    ".vault-token",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
    ".node_repl_history",
    "etc/shadow",
    "etc/gshadow",
    "etc/sudoers",
    "etc/passwd",
    "etc/ssl/private/*",
    "login data",
    "cookies.sqlite",
    "logins.json",
    "key4.db",
    "library/keychains/*",
    "keychain-db",
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "id_dsa",
    "environ",
    ".terraform.d/credentials*",
    ".cargo/credentials*",
    ".electrum/*",
    "wallet.dat",
    "application_default_credentials.json",
    "serviceaccount/token",
];

/// Names that a dangerous path must hold one of: most paths hold none, and are
/// done with at once.
static NAMES: LazyLock<(HashSet<&str>, Vec<&str>)> = LazyLock::new(|| {
    let places = WRITTEN.iter().map(|(place, _)| *place);
    let first = places
        .chain(SECRET.iter().copied())
        .filter_map(|place| place.split('/').next());
    let (starred, names): (Vec<&str>, Vec<&str>) = first.partition(|name| name.contains('*'));
    (names.into_iter().collect(), starred)
});

fn is_known(parts: &[&str]) -> bool {
    let (names, starred) = &*NAMES;
    parts
        .iter()
        .any(|part| names.contains(part) || starred.iter().any(|name| fits(part, name)))
}

fn fits(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((before, after)) => {
            name.len() > before.len() + after.len()
                && name.starts_with(before)
                && name.ends_with(after)
                || (!before.is_empty() && name == before && after.is_empty())
        }
    }
}

/// Whether the pattern's components stand in the path one after the other.
fn leads(parts: &[&str], pattern: &str) -> bool {
    let wanted: Vec<&str> = pattern.split('/').collect();
    let below = wanted.last() == Some(&"*");
    let fixed = if below {
        &wanted[..wanted.len() - 1]
    } else {
        &wanted[..]
    };
    parts.windows(fixed.len()).enumerate().any(|(at, window)| {
        let last = at + fixed.len() == parts.len();
        window
            .iter()
            .zip(fixed)
            .all(|(part, want)| fits(part, want))
            && (below || last)
    })
}

fn parts(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if part == ".." && parts.last().is_some_and(|last| *last != "..") {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    // A path longer than any is judged by its end.
    let from = parts.len().saturating_sub(64);
    parts.split_off(from)
}

/// What is dangerous about using this path so.
#[allow(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "the text is in lower case, or its case counts"
)]
pub(super) fn of(path: &str, used: Use) -> Option<Danger> {
    if path.len() > 16 * 1024 {
        return None;
    }
    let lower = path.to_lowercase().replace('\\', "/");
    if lower == "/dev/null" || lower.is_empty() {
        return None;
    }
    if lower.starts_with("/dev/tcp/") || lower.starts_with("/dev/udp/") {
        return Some(Danger::RemoteShell);
    }
    let parts = parts(&lower);
    match used {
        Use::Secret => Some(Danger::Keys),
        Use::Read => {
            let process = lower.starts_with("/proc/");
            let secret = is_known(&parts) && SECRET.iter().any(|place| leads(&parts, place));
            let harmless = lower.ends_with(".pub")
                || lower.ends_with("known_hosts")
                || (lower.ends_with("environ") && !process);
            let memory = process && lower.ends_with("/mem") || lower == "/dev/mem";
            (memory || secret && !harmless).then_some(Danger::Keys)
        }
        Use::Write => {
            let device = "\
                /dev/sd /dev/nvme /dev/disk /dev/hd /dev/vd /dev/mmcblk /dev/mapper /dev/rdisk \
                /dev/mem /dev/xvd";
            if lists::begins(device, &lower) {
                return Some(Danger::DiskWrite);
            }
            if is_known(&parts)
                && let Some((_, danger)) = WRITTEN.iter().find(|(place, _)| leads(&parts, place))
            {
                return Some(*danger);
            }
            let spool = "cron sudoers ld.so.preload rc.local profile.d";
            let absolute = format!("{}/", parts.join("/"));
            if (lower.starts_with('/') || lower.starts_with("c:/"))
                && SYSTEM.split_ascii_whitespace().any(|root| {
                    let below = absolute.strip_prefix(root);
                    below.is_some_and(|rest| rest.starts_with('/'))
                })
            {
                let scheduled = parts.iter().any(|part| lists::begins(spool, part));
                return Some(if scheduled {
                    Danger::Schedule
                } else {
                    Danger::SystemFiles
                });
            }
            // Hidden files at home are settings of some program.
            let hidden = lower.strip_prefix("~/.").or_else(|| home_dot(&lower));
            let kept = "cache/ local/share/ local/state/ npm/ cargo/registry tmp";
            hidden
                .is_some_and(|rest| !lists::begins(kept, rest))
                .then_some(Danger::Startup)
        }
    }
}

/// What follows `/home/name/.` or `/Users/name/.`.
fn home_dot(path: &str) -> Option<&str> {
    let rest = path
        .strip_prefix("/home/")
        .or_else(|| path.strip_prefix("/users/"))?;
    let (_, rest) = rest.split_once('/')?;
    rest.strip_prefix('.')
}
