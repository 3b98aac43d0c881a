//! What leaves the machine, and doors that are opened to others.

use super::Danger;
use super::judge::ProgramCall;
use crate::shell::Word;
use crate::text::lists;

/// An address on this machine, or one whose host the text does not say.
pub(super) fn is_local(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(
        name,
        "localhost" | "0.0.0.0" | "[::1]" | "::1" | "host.docker.internal" | ""
    ) || name.starts_with("127.")
        || name.ends_with(".localhost")
        || name.starts_with("localhost")
}

/// The value holds something that the shell reads from here first.
fn carries(word: &Word) -> bool {
    if word.marks.substitution {
        let dull = [
            "date ",
            "uuidgen ",
            "git rev-parse",
            "node -p",
            "jq ",
            "seq ",
            "gh auth",
            "git describe",
            "printf ",
        ];
        return !word
            .inner
            .iter()
            .all(|ran| dull.iter().any(|known| ran.starts_with(known)));
    }
    word.marks.variable && names_secret(&word.text)
}

fn names_secret(text: &str) -> bool {
    let upper = text.to_uppercase();
    let mut variables = upper.split('$').skip(1);
    variables.any(|part| lists::within("SECRET TOKEN PASS CRED _KEY APIKEY PRIVATE", part))
}

fn is_remote_path(text: &str) -> bool {
    let host = text.split('/').next().unwrap_or_default();
    text.contains("://") && !text.starts_with("file:")
        || (host.contains(':') && host.find(':') != Some(1))
}

#[allow(
    clippy::too_many_lines,
    clippy::match_same_arms,
    reason = "a table reads better whole"
)]
pub(super) fn judge(call: &ProgramCall<'_>) -> Option<Danger> {
    let plain = call.plain();
    let last = plain.last().map_or("", |word| &*word.text);
    match &*call.name {
        "curl" | "http" | "https" | "xh" | "curlie" => curl(call),
        "wget" => wget(call),
        "nc" | "ncat" | "netcat" | "socat" | "telnet" | "nc.traditional" | "nc.openbsd"
        | "openssl" | "cryptcat" => socket(call),
        "sftp" if call.fed || call.has(&["-b"]) => Some(Danger::SendsOut),
        "scp" | "sftp" | "rcp" => is_remote_path(last).then_some(Danger::SendsOut),
        "rsync" => {
            let shell = call.value(&["-e", "--rsh", "--rsync-path"]);
            let odd =
                shell.is_some_and(|shell| shell.contains("sh -c") || shell.starts_with("sh "));
            (odd || is_remote_path(last)).then_some(if odd {
                Danger::InlineCode
            } else {
                Danger::SendsOut
            })
        }
        "ssh" | "autossh" | "sshpass" | "mosh" => {
            let runs = call.any(|text| {
                let lower = text.to_lowercase();
                lists::within("proxycommand localcommand knownhostscommand", &lower)
            });
            if runs {
                return Some(Danger::InlineCode);
            }
            if call.has(&["-R", "-D"])
                || call.name == "autossh"
                || call.any(|text| lists::begins("-R -fNR -NR", text))
            {
                return Some(Danger::RemoteShell);
            }
            call.fed.then_some(Danger::SendsOut)
        }
        "aws" | "gsutil" | "gcloud" | "az" | "rclone" | "s3cmd" | "mc" | "b2" | "azcopy"
        | "oss" | "ossutil" | "coscli" => uploads(call),
        "ftp" | "lftp" | "tftp" | "ncftpput" | "sendmail" | "mutt" | "swaks" | "msmtp" => {
            Some(Danger::SendsOut)
        }
        "mail" | "mailx" | "s-nail" => {
            (call.fed || call.has(&["-a", "-A"])).then_some(Danger::SendsOut)
        }
        "dig" | "nslookup" | "host" | "ping" | "ping6" | "drill" | "traceroute" => call
            .arguments()
            .any(|word| {
                word.marks.substitution || word.marks.variable && call.by_xargs || carries(word)
            })
            .then_some(Danger::SendsOut),
        "ngrok" | "cloudflared" | "localtunnel" | "lt" | "bore" | "frpc" | "chisel" | "gost"
        | "tailscale" | "zerotier-cli" | "teleport" | "tmate" | "sshuttle" => {
            (!matches!(call.text(1), "status" | "version" | "--version" | "ip"))
                .then_some(Danger::RemoteShell)
        }
        "croc" | "wormhole" | "magic-wormhole" | "ffsend" | "transfer" | "pastebinit"
        | "termbin" | "0x0" | "ipfs" | "gist" | "wgetpaste" | "onionshare" => {
            Some(Danger::SendsOut)
        }
        "tcpdump" | "tshark" | "ettercap" | "mitmproxy" | "nmap" | "masscan" | "hydra"
        | "sqlmap" | "msfconsole" | "msfvenom" => Some(Danger::SendsOut),
        _ => None,
    }
}

fn curl(call: &ProgramCall<'_>) -> Option<Danger> {
    let mut urls: Vec<&Word> = Vec::new();
    let mut data: Vec<&Word> = Vec::new();
    let mut file = false;
    let mut method = String::new();
    let mut at = 1;
    while let Some(word) = call.words.get(at) {
        let text = &*word.text;
        let (name, joined) = match text.split_once('=') {
            Some((name, _)) if name.starts_with("--") => (name, true),
            _ => (text, false),
        };
        let value = if joined {
            Some(word)
        } else {
            call.words.get(at + 1)
        };
        match name {
            "-d" | "--data" | "--data-binary" | "--data-raw" | "--data-ascii"
            | "--data-urlencode" | "--json" | "-F" | "--form" | "--form-string" | "--url-query" => {
                data.extend(value);
                at += usize::from(!joined);
            }
            "-T" | "--upload-file" => {
                file = true;
                at += usize::from(!joined);
            }
            "-X" | "--request" => {
                method = value.map_or(String::new(), |word| word.text.to_uppercase());
                at += usize::from(!joined);
            }
            "-H" | "--header" | "-A" | "--user-agent" | "-e" | "--referer" | "-b" | "--cookie" => {
                // A header is a way out as well.
                if let Some(value) = value
                    && (value.text.starts_with('@') || value.marks.substitution)
                    && carries(value)
                {
                    data.push(value);
                }
                at += usize::from(!joined);
            }
            "-o" | "--output" | "-u" | "--user" | "-x" | "--proxy" | "-m" | "--max-time" | "-w"
            | "--write-out" | "--retry" | "--connect-timeout" | "-c" | "--cookie-jar"
            | "--cacert" | "--cert" | "--key" | "--resolve" | "-D" | "--dump-header" => {
                at += usize::from(!joined);
            }
            "--url" => {
                urls.extend(value);
                at += usize::from(!joined);
            }
            "--unix-socket" => {
                return call
                    .value(&["--unix-socket"])
                    .is_some_and(|path| path.contains("docker"))
                    .then_some(Danger::Root);
            }
            "-K" | "--config" => return Some(Danger::HardToRead),
            _ if text.starts_with("-d@")
                || text.starts_with("-F") && text.contains('@')
                || text.starts_with("-T") =>
            {
                file = true;
            }
            _ if text.starts_with("-X") => text[2..].clone_into(&mut method),
            _ if text.starts_with('-') => {}
            _ if matches!(&*call.name, "http" | "xh" | "https")
                && (text.contains("=@") || text.contains('@') && !text.contains("://")) =>
            {
                file = true;
            }
            _ => urls.push(word),
        }
        at += 1;
    }
    let local = !urls.is_empty() && urls.iter().all(|word| is_local(&word.text));
    if local {
        return None;
    }
    let lifts = data.iter().any(|word| {
        let text = &*word.text;
        text.starts_with('@')
            || text.contains("=@")
            || text.contains("=<")
            || carries(word)
            || text.contains(";filename")
    });
    let address = urls
        .iter()
        .any(|word| carries(word) && !word.text.starts_with('$'));
    if file || lifts || address || (call.by_xargs && !data.is_empty()) {
        return Some(Danger::SendsOut);
    }
    matches!(&*method, "DELETE").then_some(Danger::Destroy)
}

fn wget(call: &ProgramCall<'_>) -> Option<Danger> {
    let plain = call.plain();
    if !plain.is_empty() && plain.iter().all(|word| is_local(&word.text)) {
        return None;
    }
    let post = call.has(&["--post-file", "--body-file"])
        || call.words.windows(2).any(|two| {
            two[0].text.starts_with("--post-data")
                && (carries(&two[0]) || two[0].text == "--post-data" && carries(&two[1]))
        })
        || call
            .words
            .last()
            .is_some_and(|word| word.text.starts_with("--post-data") && carries(word));
    let address = plain.iter().any(|word| carries(word));
    let runs = call.has(&["--use-askpass", "-e", "--execute"]);
    if runs {
        return Some(Danger::InlineCode);
    }
    (post || address).then_some(Danger::SendsOut)
}

fn socket(call: &ProgramCall<'_>) -> Option<Danger> {
    if call.name == "openssl" {
        let connects = call.text(1) == "s_client"
            && (call.fed || call.command.pipes)
            && !call.text(2).is_empty();
        let decodes = call.text(1) == "enc" && call.has(&["-d"]) && !call.command.pipes;
        let checks = call.any(|text| matches!(text, "-servername" | "-showcerts"));
        return (connects && !checks)
            .then_some(Danger::SendsOut)
            .or(decodes.then_some(Danger::Decode));
    }
    let runs = call.any(|text| {
        let lower = text.to_lowercase();
        lower.starts_with("exec:")
            || lower.starts_with("system:")
            || lower.contains(",exec")
            || lower == "--sh-exec"
            || lower == "--exec"
    }) || (call.name != "socat" && call.flag(&['e', 'c']));
    if runs {
        return Some(Danger::RemoteShell);
    }
    let plain = call.plain();
    let local = plain.iter().any(|word| {
        is_local(&word.text) && !word.text.is_empty()
            || word.text.to_lowercase().contains("localhost")
            || word.text.contains("127.0.0.1")
    });
    if call.flag(&['z']) {
        return None;
    }
    if call.flag(&['l'])
        || call.name == "socat"
            && plain
                .iter()
                .any(|word| word.text.to_lowercase().contains("listen"))
    {
        return Some(Danger::RemoteShell);
    }
    if call.flag(&['U']) {
        return None;
    }
    (!local && !plain.is_empty()).then_some(Danger::SendsOut)
}

fn uploads(call: &ProgramCall<'_>) -> Option<Danger> {
    let plain = call.plain();
    let moving = "cp sync copy mv move put rsync mirror copyto";
    let mut words = plain.iter();
    let verb = words.position(|word| lists::has(moving, &word.text));
    // From here to there: the second place after the verb.
    let last = verb
        .and_then(|at| plain.get(at + 2))
        .or(plain.last())
        .map_or("", |word| &*word.text);
    let verbs: Vec<&str> = call
        .plain()
        .iter()
        .take(4)
        .map(|word| &*word.text)
        .collect();
    let copying = "\
        cp sync copy mv move put upload upload-file rsync mirror put-object upload-batch copyto";
    let copies = verbs.iter().any(|verb| lists::has(copying, verb));
    let away = last.contains("://")
        || (call.name == "rclone" || call.name == "mc")
            && last.contains([':', '/'])
            && !last.starts_with(['.', '/'])
        || matches!(verbs.last(), Some(&"upload" | &"put-object"))
        || verbs.contains(&"put-object")
        || verbs.contains(&"upload");
    (copies && away).then_some(Danger::SendsOut)
}
