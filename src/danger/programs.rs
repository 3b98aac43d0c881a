//! Programs and what about their words deserves a second look.

use super::judge::ProgramCall;
use super::{Danger, arguments, services};
use crate::shell::Word;
use crate::text::lists;

/// They look at the machine itself, or change it.
const MACHINE: &str = "\
    mount umount losetup swapoff swapon insmod rmmod modprobe kextload iptables ip6tables nft \
    ufw firewall-cmd pfctl sysctl nvram bcdedit reg route ifconfig update-alternatives \
    dpkg-divert efibootmgr grub-install timedatectl hostnamectl auditctl netsh scutil \
    networksetup";

#[allow(
    clippy::too_many_lines,
    clippy::match_same_arms,
    reason = "a table reads better whole"
)]
pub(super) fn judge(call: &ProgramCall<'_>) -> Option<Danger> {
    let plain = call.plain();
    let first = plain.first().map_or("", |word| &*word.text);
    let second = plain.get(1).map_or("", |word| &*word.text);
    let any = |words: &[&str]| plain.iter().any(|word| words.contains(&&*word.text));
    match &*call.name {
        "rm" => removes(call, &plain),
        "rmdir" | "del" | "rd" | "erase" if call.flag(&['s', 'p']) || any(&["/s", "/S"]) => {
            Some(Danger::RemoveTree)
        }
        "unlink" if call.by_xargs => Some(Danger::RemoveTree),
        "shred" | "wipefs" | "srm" | "wipe" | "blkdiscard" | "sfill" | "trash" => {
            Some(Danger::RemoveTree)
        }
        "find" if call.has(&["-delete"]) => Some(Danger::RemoveTree),
        // A search for keys over the whole home or machine.
        "find" | "locate" | "mdfind" if is_everywhere(first) || call.name != "find" => {
            let keys = "\
                id_ .ssh .pem credential .aws .env *.key secret wallet .kdbx password .netrc";
            let mut words = call.arguments();
            words
                .any(|word| lists::within(keys, &word.text))
                .then_some(Danger::Keys)
        }
        "grep" | "egrep" | "rg" | "ag" | "ack"
            if plain.iter().skip(1).any(|word| is_everywhere(&word.text)) =>
        {
            (call.flag(&['r', 'R']) || !call.name.ends_with("grep")).then_some(Danger::Keys)
        }
        "mv" | "cp" if plain.last().is_some_and(|word| word.text == "/dev/null") => {
            Some(Danger::RemoveTree)
        }
        "mv" if first.contains('*') && second.starts_with("/tmp") => Some(Danger::RemoveTree),
        "cp" | "cat" | "yes"
            if first.starts_with("/dev/zero")
                || first.starts_with("/dev/urandom") && !call.command.pipes =>
        {
            Some(Danger::DiskWrite)
        }
        "truncate"
            if call
                .value(&["-s", "--size"])
                .is_some_and(|size| size == "0")
                || call.has(&["-s0"]) =>
        {
            Some(Danger::RemoveTree)
        }
        "rsync"
            if call
                .any(|text| text.starts_with("--del") || text.starts_with("--remove-source")) =>
        {
            Some(Danger::RemoveTree)
        }
        "sudo" | "doas" | "pkexec" | "gosu" | "visudo" | "runas" => Some(Danger::Root),
        "su" | "runuser" if call.text(1) != "--version" => Some(Danger::Root),
        "dd" if call.any(|text| text.starts_with("of=") && text != "of=/dev/null") => {
            Some(Danger::DiskWrite)
        }
        "fdisk" | "sfdisk" | "gdisk" | "sgdisk" | "parted" | "mkswap" | "cryptsetup"
        | "lvremove" | "vgremove" | "pvremove" | "zpool" | "hdparm" | "nvme" | "newfs"
        | "tune2fs" | "debugfs"
            if !call.has(&["-l", "--list", "list", "status"]) =>
        {
            Some(Danger::DiskWrite)
        }
        name if name.starts_with("mkfs") || name == "format" && first.contains(':') => {
            Some(Danger::DiskWrite)
        }
        "diskutil"
            if first.to_lowercase().starts_with("erase")
                || any(&["partitionDisk", "zeroDisk", "reformat", "apfs"]) =>
        {
            Some(Danger::DiskWrite)
        }
        "chmod" => opens(call),
        "chown" | "chgrp"
            if call.flag(&['R'])
                || call.has(&["--recursive"])
                || plain.iter().skip(1).any(|word| word.text.starts_with('/')) =>
        {
            Some(Danger::OpenMode)
        }
        "setcap" | "chattr" | "setfacl" | "icacls" | "takeown" | "setenforce" | "csrutil"
        | "spctl" | "tccutil" => Some(Danger::OpenMode),
        "xattr" if call.flag(&['d', 'c']) => Some(Danger::OpenMode),
        "umask" if matches!(first, "0" | "000" | "0000") => Some(Danger::OpenMode),
        // Where it writes stands in what it reads.
        "uudecode" => Some(Danger::Decode),
        "base64" | "base32"
            if writes(call) && (call.flag(&['d', 'D']) || call.has(&["--decode"])) =>
        {
            Some(Danger::Decode)
        }
        "xxd" if call.flag(&['r']) && !call.command.pipes => Some(Danger::Decode),
        "crontab" if !(call.has(&["-l"]) && plain.is_empty()) => Some(Danger::Schedule),
        "at" | "batch" | "atrm" if !call.has(&["-l"]) => Some(Danger::Schedule),
        "schtasks" | "update-rc.d" | "chkconfig" | "rc-update" | "systemd-run" | "launchctl" => {
            (!matches!(first, "list" | "print" | "query")).then_some(Danger::Schedule)
        }
        "systemctl" | "service" | "loginctl" | "initctl" | "rc-service" | "supervisorctl"
        | "sc" => {
            let verbs = "\
                enable start stop disable mask unmask restart link edit kill isolate \
                enable-linger reboot poweroff halt set-default daemon-reload create delete \
                set-environment import-environment";
            plain
                .iter()
                .any(|word| lists::has(verbs, &word.text))
                .then_some(Danger::Schedule)
        }
        "pm2" if matches!(first, "startup" | "save" | "kill") || any(&["all"]) => {
            Some(Danger::Schedule)
        }
        "brew" if first == "services" && matches!(second, "start" | "stop" | "restart" | "run") => {
            Some(Danger::Schedule)
        }
        "defaults" if first == "write" || first == "delete" => Some(Danger::Startup),
        "useradd" | "adduser" | "usermod" | "userdel" | "groupadd" | "gpasswd" | "passwd"
        | "chpasswd" | "chsh" | "dscl" | "sysadminctl" | "net" | "vipw" | "pwunconv"
        | "ssh-copy-id" => Some(Danger::Root),
        name if lists::has(MACHINE, name) => {
            let looks = plain.is_empty() && !call.flag(&['F', 'X', 'w'])
                || call.has(&[
                    "-l", "-L", "-n", "-a", "list", "status", "show", "print", "query", "--list",
                    "--dns",
                ]) && !call.has(&["-w", "-F"])
                || (call.name == "sysctl"
                    && !call.has(&["-w"])
                    && !plain.iter().any(|word| word.text.contains('=')))
                || (call.name == "ifconfig" && plain.len() < 2);
            (!looks).then_some(Danger::Root)
        }
        "shutdown" | "reboot" | "poweroff" | "halt" | "telinit" => Some(Danger::Destroy),
        "init" if matches!(first, "0" | "6") => Some(Danger::Destroy),
        "kill" | "pkill" | "killall" | "skill" | "killall5" => kills(call, &plain),
        "history" if call.flag(&['c', 'w', 'd']) => Some(Danger::Destroy),
        "unset" if any(&["HISTFILE", "HISTSIZE"]) => Some(Danger::Destroy),
        "set" | "shopt" if any(&["history"]) => Some(Danger::Destroy),
        "export" | "declare" | "typeset" | "readonly" | "local" | "setenv" => {
            call.arguments().find_map(|word| {
                let (name, value) = word.text.split_once('=')?;
                arguments::assigns(name, &word.after(word.text.len() - value.len()))
            })
        }
        "xdotool" | "screencapture" | "scrot" | "gcore" => Some(Danger::SendsOut),
        "trap" if any(&["DEBUG", "ERR", "RETURN"]) => Some(Danger::Startup),
        "complete" if call.has(&["-C"]) => Some(Danger::Startup),
        "enable" if call.has(&["-f"]) => Some(Danger::InlineCode),
        _ => services::destroys(call, &plain),
    }
}

fn is_everywhere(path: &str) -> bool {
    matches!(
        path,
        "/" | "~" | "~/" | "/home" | "/Users" | "/root" | "~/."
    )
}

fn writes(call: &ProgramCall<'_>) -> bool {
    use crate::shell::Flow;
    call.has(&["-o", "--output"])
        || call.command.redirects.iter().any(|redirect| {
            matches!(redirect.flow, Flow::Write | Flow::Append)
                && redirect.target.text != "/dev/null"
        })
}

fn removes(call: &ProgramCall<'_>, plain: &[&Word]) -> Option<Danger> {
    let recursive = call.flag(&['r', 'R']) || call.has(&["--recursive", "--no-preserve-root"]);
    let wide = plain.iter().any(|word| {
        let text = &*word.text;
        let last = text.rsplit('/').next().unwrap_or(text);
        let outside =
            (text.starts_with('/') && !text.starts_with("/tmp/") && !text.starts_with("/var/tmp/"))
                || text.starts_with('~');
        let open = text.contains("…}") || matches!(text, "$@" | "$*");
        matches!(last, "*" | ".*" | "*.*" | "$()") || open || outside || text.starts_with("../..")
    });
    (recursive || wide || call.by_xargs).then_some(Danger::RemoveTree)
}

fn opens(call: &ProgramCall<'_>) -> Option<Danger> {
    let loose = call.any(|text| {
        let digits = text.len() >= 3 && text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit());
        let octal = digits
            && (matches!(text.as_bytes()[text.len() - 1], b'2' | b'3' | b'6' | b'7')
                || (text.len() >= 4 && !text.starts_with('0')));
        let symbolic = text.contains(['+', '=']) && !text.contains('/') && {
            let (who, what) = text.split_once(['+', '=']).unwrap_or((text, ""));
            what.contains('s') && !who.contains(|c: char| !"ugoa,".contains(c))
                || (what.contains('w') && (who.contains(['o', 'a'])))
        };
        octal || symbolic
    });
    let recursive = call.flag(&['R'])
        && call
            .plain()
            .iter()
            .any(|word| word.text.starts_with(['/', '~']) || word.text == ".");
    (loose || recursive).then_some(Danger::OpenMode)
}

fn kills(call: &ProgramCall<'_>, plain: &[&Word]) -> Option<Danger> {
    let everything = call.arguments().skip(1).any(|word| word.text == "-1")
        || plain
            .iter()
            .any(|word| word.text == "1" && call.name == "kill")
        || matches!(
            call.plain().last().map(|word| &*word.text),
            Some("." | ".*")
        )
        || (call.name != "kill" && call.has(&["-u", "-U", "--user"]))
        || call.name == "killall5";
    let system = "systemd init sshd Finder loginwindow dockerd";
    let named = plain.iter().any(|word| lists::has(system, &word.text));
    (everything || named).then_some(Danger::Destroy)
}
