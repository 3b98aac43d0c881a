//! Names that look like settings and are none: a misspelt one is otherwise
//! silently ignored. Holds names only, never a value. Pure.

use super::{SETTINGS, SettingOrigin, Sources};

/// Names that are read besides the settings.
const ALSO_READ: &[&str] = &[
    "ALL_PROXY",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PROJECT_DIR",
    "HTTP_PROXY",
    "NOD_SESSION",
    "NOTIFY_SOCKET",
    "NO_PROXY",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "XDG_CONFIG_HOME",
];
/// How the names begin that nod's own tests and benches read.
const OF_TESTS: &[&str] = &["NOD_PEERS_", "NOD_SIMULATION_", "NOD_TEST_", "NOD_UPDATE_"];
const MAX_NAME: usize = 64;
/// More are told by the first ones.
const MAX_TOLD: usize = 16;
/// How many letters a slip may change.
const MAX_SLIP: usize = 2;

/// A name that nod does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    pub name: String,
    /// What was probably meant.
    pub nearest: Option<&'static str>,
    pub origin: SettingOrigin,
}

/// What is set and counts for nothing. In nod's own file every name is meant
/// for nod; elsewhere `NOD_…` is, and in a file what is nearly a setting.
pub fn unknown(sources: &Sources) -> Vec<UnknownName> {
    let own = sources.own_file();
    let mut found: Vec<UnknownName> = sources
        .names()
        .filter(|(name, _)| !is_known(name))
        .filter_map(|(name, origin)| {
            let small = in_small_letters(name);
            if small.is_none() && !is_a_settings_name(name) {
                return None;
            }
            let is_own = matches!(origin, SettingOrigin::File(path) if Some(path) == own.as_ref());
            let settings = SETTINGS.iter().map(|setting| setting.name);
            let nearest = small
                .or_else(|| nearest(name))
                .or_else(|| halved(name, settings).filter(|_| is_own));
            let is_ours = match origin {
                SettingOrigin::Environment => small.is_some(),
                SettingOrigin::File(_) => is_own || nearest.is_some(),
            };
            (is_ours || name.starts_with("NOD_")).then(|| UnknownName {
                name: name.to_owned(),
                nearest,
                origin: origin.clone(),
            })
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found.truncate(MAX_TOLD);
    found
}

/// A secret that ends in `=` on a line of its own would read as a name; what is
/// told is written as settings are.
fn is_a_settings_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    name.len() <= MAX_NAME && name.contains('_') && name.bytes().all(fits)
}

/// The setting that is meant, where only its letters' size is wrong. Proxies
/// are read in both.
fn in_small_letters(name: &str) -> Option<&'static str> {
    let mut settings = SETTINGS.iter().map(|setting| setting.name);
    let meant = settings.find(|setting| setting.eq_ignore_ascii_case(name))?;
    (!meant.ends_with("_PROXY")).then_some(meant)
}

fn is_known(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.name == name)
        || ALSO_READ.contains(&name)
        || OF_TESTS.iter().any(|start| name.starts_with(start))
}

/// The setting a slip of a few letters leads away from; the first word may be
/// that of another setting.
fn nearest(name: &str) -> Option<&'static str> {
    let rest = |name: &'static str| name.split_once('_').map_or(name, |(_, rest)| rest);
    let own_rest = name.split_once('_').map_or(name, |(_, rest)| rest);
    SETTINGS
        .iter()
        .map(|setting| {
            let whole = slips(name, setting.name);
            let moved = slips(own_rest, rest(setting.name)) + 1;
            (whole.min(moved), setting.name)
        })
        .filter(|(slips, _)| *slips <= MAX_SLIP)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, name)| name)
}

/// The one of these that a slip of a few letters leads away from, or that is
/// written by halves; of a short name at most half may be wrong.
pub(crate) fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_NAME {
        return None;
    }
    let most = MAX_SLIP.min(name.len() / 2);
    let known: Vec<&str> = known.collect();
    let near = known
        .iter()
        .map(|known| (slips(name, known), *known))
        .filter(|(slips, _)| *slips <= most)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, known)| known);
    near.or_else(|| halved(name, known.into_iter()))
}

/// The only one that begins with this but for a slip, or has it behind its first
/// word: `FEISHU_OWNR` and `OWNER_ID` are both for `FEISHU_OWNER_ID`.
fn halved<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let begins = |known: &str| {
        let ends = known.match_indices('_').map(|(at, _)| at);
        ends.skip(1).any(|end| slips(name, &known[..end]) <= 1)
    };
    let ends = |known: &str| known.split_once('_').is_some_and(|(_, rest)| rest == name);
    let mut fits = known.filter(|known| begins(known) || ends(known));
    fits.next().filter(|_| fits.next().is_none())
}

/// How many letters have to be added, left out or changed.
fn slips(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(sources: &Sources) -> Vec<(String, Option<&'static str>)> {
        let found = unknown(sources).into_iter();
        found.map(|one| (one.name, one.nearest)).collect()
    }

    #[test]
    fn a_slip_is_named_with_what_was_meant() {
        for (name, meant) in [
            ("NOD_APPROVER", Some("FEISHU_APPROVERS")),
            ("NOD_LANGUAGE", None),
            ("NOD_STATEDIR", Some("NOD_STATE_DIR")),
            ("NOD_CHAT_ID", Some("FEISHU_CHAT_ID")),
            ("NOD_FROBNICATE", None),
            ("nod_lang", Some("NOD_LANG")),
            ("Feishu_App_Id", Some("FEISHU_APP_ID")),
        ] {
            let sources = Sources::of(&[(name, "canary")]);
            assert_eq!(told(&sources), [(name.to_owned(), meant)], "{name}");
        }
    }

    #[test]
    fn what_nod_reads_and_what_is_not_its_own_is_left_alone() {
        let mut known: Vec<(&str, &str)> =
            SETTINGS.iter().map(|setting| (setting.name, "x")).collect();
        known.extend(ALSO_READ.iter().map(|name| (*name, "x")));
        known.extend([
            ("NOD_SIMULATION_SEEDS", "1"),
            ("NOD_APPROVER", ""),
            ("FEISHU_OWNER", "x"),
            ("PATH", "x"),
            ("https_proxy", "x"),
        ]);
        assert_eq!(told(&Sources::of(&known)), []);
    }

    #[test]
    fn nods_own_file_is_read_more_strictly_than_one_that_was_named() {
        let dir = tempfile::tempdir().unwrap();
        let text = "DATABASE_URL=x\nFEISHU_OWNERID=x\nFEISHU_OWNR=x\nOWNER_ID=x\nc2VjcmV0X2NhbmFyeQ==\nSECRETCANARY==\n";
        let mut sources = Sources::of(&[]);
        sources.home = Some(dir.path().to_owned());
        let named = dir.path().join("other.env");
        std::fs::write(&named, text).unwrap();
        let sources = sources.with_file(&named).unwrap();
        let slip = ("FEISHU_OWNERID".to_owned(), Some("FEISHU_OWNER_ID"));
        assert_eq!(told(&sources), std::slice::from_ref(&slip));

        let own = sources.own_file().unwrap();
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(&own, text).unwrap();
        let mut sources = Sources::of(&[]);
        sources.home = Some(dir.path().to_owned());
        sources.add_file(&own);
        let [begun, ended] =
            ["FEISHU_OWNR", "OWNER_ID"].map(|name| (name.to_owned(), Some("FEISHU_OWNER_ID")));
        assert_eq!(
            told(&sources),
            [("DATABASE_URL".to_owned(), None), slip, begun, ended]
        );
    }
}
