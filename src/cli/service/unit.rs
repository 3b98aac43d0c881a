//! The texts a service manager reads: a systemd user unit and a launchd agent.
//! Pure.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// How much the daemon may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Sandbox {
    /// Everything nod does: Claude Code, started from chat, keeps your rights
    #[default]
    Sessions,
    /// Relay approvals only: a session from chat could not work
    Approvals,
    /// The same with a read-only file system; needs user namespaces
    Strict,
}

/// What the daemon is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    /// An absolute path.
    pub(crate) program: PathBuf,
    pub(crate) state_dir: PathBuf,
    /// Where sockets are made besides the state and runtime directories.
    pub(crate) socket_dirs: Vec<PathBuf>,
    /// Variables the manager does not know by itself; never secrets.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) sandbox: Sandbox,
}

/// A path or value that can't stand in a unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` holds a character that can't stand in a service definition")]
pub(crate) struct UnfitForUnit(String);

pub(super) const UNIT: &str = "nod.service";
pub(super) const LABEL: &str = "nod.daemon";

pub(super) fn systemd(start: &Start) -> Result<String, UnfitForUnit> {
    let program = fit(&start.program)?.replace('$', "$$");
    let mut unit = format!(
        "[Unit]\n\
         Description=nod, approvals of a coding agent in Feishu\n\
         StartLimitIntervalSec=0\n\
         \n\
         [Service]\n\
         Type=notify\n\
         NotifyAccess=main\n\
         ExecStart={} daemon\n\
         Restart=always\n\
         RestartSec=2\n\
         RestartPreventExitStatus=78\n\
         WatchdogSec=60\n\
         TimeoutStartSec=60\n\
         TimeoutStopSec=15\n",
        quoted(&program)
    );
    for (name, value) in &start.environment {
        let pair = format!("{name}={value}");
        let line = quoted(&fit(Path::new(&pair))?);
        let _ = writeln!(unit, "Environment={line}");
    }
    unit += "LimitCORE=0\n\
             NoNewPrivileges=yes\n\
             RestrictRealtime=yes\n\
             RestrictSUIDSGID=yes\n\
             LockPersonality=yes\n\
             SystemCallArchitectures=native\n";
    if start.sandbox != Sandbox::Sessions {
        unit += "UMask=0077\n\
                 MemoryMax=512M\n\
                 TasksMax=128\n\
                 MemoryDenyWriteExecute=yes\n\
                 RestrictNamespaces=yes\n\
                 RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK\n\
                 SystemCallFilter=@system-service\n\
                 SystemCallErrorNumber=EPERM\n";
    }
    if start.sandbox == Sandbox::Strict {
        unit += "PrivateUsers=yes\n\
                 ProtectSystem=strict\n\
                 ProtectHome=read-only\n\
                 ProtectKernelTunables=yes\n\
                 ProtectKernelModules=yes\n\
                 ProtectControlGroups=yes\n";
        let _ = write!(unit, "ReadWritePaths={}", quoted(&fit(&start.state_dir)?));
        for dir in &start.socket_dirs {
            let _ = write!(unit, " {}", quoted(&fit(dir)?));
        }
        unit += " -%t\n";
    }
    unit += "\n[Install]\nWantedBy=default.target\n";
    Ok(unit)
}

pub(super) fn launchd(start: &Start) -> Result<String, UnfitForUnit> {
    let program = xml(&fit_plain(&start.program)?);
    let log = xml(&fit_plain(&log_file(&start.state_dir))?);
    let mut variables = String::new();
    for (name, value) in &start.environment {
        let value = fit_plain(Path::new(value))?;
        let _ = write!(
            variables,
            "    <key>{}</key>\n    <string>{}</string>\n",
            xml(name),
            xml(&value)
        );
    }
    let environment = if variables.is_empty() {
        String::new()
    } else {
        format!("  <key>EnvironmentVariables</key>\n  <dict>\n{variables}  </dict>\n")
    };
    // launchd knows no octal: 63 is 0077.
    let umask = match start.sandbox {
        Sandbox::Sessions => "",
        Sandbox::Approvals | Sandbox::Strict => "  <key>Umask</key>\n  <integer>63</integer>\n",
    };
    Ok(format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
    <string>{program}</string>
    <string>daemon</string>
  </array>
{environment}  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <true/>
  <key>ThrottleInterval</key>
  <integer>5</integer>
  <key>ProcessType</key>
  <string>Interactive</string>
{umask}  <key>HardResourceLimits</key>
  <dict>
    <key>Core</key>
    <integer>0</integer>
  </dict>
  <key>StandardOutPath</key>
  <string>{log}</string>
  <key>StandardErrorPath</key>
  <string>{log}</string>
</dict>
</plist>
"#
    ))
}

/// Where launchd, or a daemon in the background, puts what the daemon says.
pub(in crate::cli) fn log_file(state_dir: &Path) -> PathBuf {
    state_dir.join(crate::daemon::instance::LOG)
}

fn fit_plain(path: &Path) -> Result<String, UnfitForUnit> {
    match path.to_str() {
        Some(text) if !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => Err(UnfitForUnit(
            path.to_string_lossy().escape_debug().to_string(),
        )),
    }
}

/// Text in which systemd sees no specifier.
fn fit(path: &Path) -> Result<String, UnfitForUnit> {
    Ok(fit_plain(path)?.replace('%', "%%"))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(sandbox: Sandbox) -> Start {
        Start {
            program: "/opt/my \"100%\" $tools\\x/nod".into(),
            state_dir: "/home/u/.local/state/nod".into(),
            socket_dirs: vec!["/tmp".into()],
            environment: vec![("NOD_STATE_DIR".to_owned(), "/a b/<50%>&".to_owned())],
            sandbox,
        }
    }

    fn line<'a>(unit: &'a str, name: &str) -> Option<&'a str> {
        unit.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }

    #[test]
    fn every_path_reaches_systemd_whole() {
        let unit = systemd(&start(Sandbox::Strict)).unwrap();
        assert_eq!(
            line(&unit, "ExecStart"),
            Some(r#""/opt/my \"100%%\" $$tools\\x/nod" daemon"#)
        );
        assert_eq!(
            line(&unit, "Environment"),
            Some(r#""NOD_STATE_DIR=/a b/<50%%>&""#)
        );
        assert_eq!(
            line(&unit, "ReadWritePaths"),
            Some(r#""/home/u/.local/state/nod" "/tmp" -%t"#)
        );
    }

    #[test]
    fn the_unit_reports_readiness_comes_back_and_keeps_to_itself() {
        for sandbox in [Sandbox::Approvals, Sandbox::Strict] {
            let unit = systemd(&start(sandbox)).unwrap();
            for (name, value) in [
                ("Type", "notify"),
                ("NotifyAccess", "main"),
                ("WatchdogSec", "60"),
                ("Restart", "always"),
                // Wrong settings do not mend themselves.
                ("RestartPreventExitStatus", "78"),
                ("StartLimitIntervalSec", "0"),
                ("UMask", "0077"),
                ("LimitCORE", "0"),
                ("NoNewPrivileges", "yes"),
                ("MemoryDenyWriteExecute", "yes"),
                ("SystemCallFilter", "@system-service"),
                ("WantedBy", "default.target"),
            ] {
                assert_eq!(line(&unit, name), Some(value), "{name}");
            }
            let strict = sandbox == Sandbox::Strict;
            assert_eq!(line(&unit, "ProtectHome").is_some(), strict);
            // Old clients look for their socket in the shared /tmp.
            assert_eq!(line(&unit, "PrivateTmp"), None);
        }
    }

    #[test]
    fn a_daemon_that_starts_claude_code_does_not_bind_its_hands() {
        let unit = systemd(&start(Sandbox::Sessions)).unwrap();
        for name in [
            "MemoryDenyWriteExecute",
            "UMask",
            "SystemCallFilter",
            "MemoryMax",
        ] {
            assert_eq!(line(&unit, name), None, "{name}");
        }
        assert_eq!(line(&unit, "NoNewPrivileges"), Some("yes"));
    }

    #[test]
    fn every_path_reaches_launchd_whole() {
        let agent = launchd(&start(Sandbox::Approvals)).unwrap();
        for part in [
            "<string>/opt/my \"100%\" $tools\\x/nod</string>\n    <string>daemon</string>",
            "<key>NOD_STATE_DIR</key>\n    <string>/a b/&lt;50%&gt;&amp;</string>",
            "<string>/home/u/.local/state/nod/daemon.log</string>",
            "<key>Umask</key>\n  <integer>63</integer>",
        ] {
            assert!(agent.contains(part), "{part}\n{agent}");
        }
        let plain = Start {
            environment: Vec::new(),
            ..start(Sandbox::Sessions)
        };
        let agent = launchd(&plain).unwrap();
        assert!(!agent.contains("EnvironmentVariables") && !agent.contains("Umask"));
    }

    #[test]
    fn a_line_break_never_becomes_a_directive() {
        let bad = Start {
            program: "/a\nExecStart=/bin/evil/nod".into(),
            ..start(Sandbox::Approvals)
        };
        let why = systemd(&bad).unwrap_err();
        assert!(!why.to_string().contains('\n'), "{why}");
        assert!(launchd(&bad).is_err());
        let bad = Start {
            environment: vec![("A".to_owned(), "1\nExecStart=/bin/evil".to_owned())],
            ..start(Sandbox::Approvals)
        };
        assert!(systemd(&bad).is_err() && launchd(&bad).is_err());
    }
}
