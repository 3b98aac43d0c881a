//! What a yes to Codex would leave. Codex names it itself; nod offers only what
//! a sentence can say whole and what stays narrow.

use serde_json::Value;
use std::path::Path;

use super::{
    Covers, Leaves, MAX_CONTENT, NoRule, Offer, Rule, RuleCall, path, presentable, wider, writable,
};

/// Codex's name for a rule of its own: the words of its prefix.
pub const PREFIX_RULE: &str = "prefix_rule";
/// Codex's leave for the same command until the session ends.
pub const SAME_AGAIN: &str = "codex_session";
/// Codex's leave for every later change of one file until the session ends.
pub const ANY_CHANGE: &str = "codex_change";
/// A permission that Codex's commands get: `write PATH`, `read PATH`, `network`.
pub const GRANTED: &str = "codex_grant";

/// As many files or places as the sentences on a card name.
pub const MAX_NAMED: usize = 8;

/// How long the permissions of a request hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantUntil {
    /// For the one command that is asked about.
    CallEnd,
    TurnEnd,
}

impl GrantUntil {
    const ALL: [(Self, &'static str); 2] = [(Self::CallEnd, "call"), (Self::TurnEnd, "turn")];

    pub fn word(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(until, _)| *until == self)
            .map_or("", |(_, word)| word)
    }
}

/// A place that commands may read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedPlace<'a> {
    pub path: &'a str,
    /// Where links lead from there, if elsewhere.
    pub real: Option<&'a str>,
    pub written: bool,
}

/// The permissions beyond its sandbox that a request asks for, as the field
/// `permissions` of its input holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedGrant<'a> {
    pub until: GrantUntil,
    pub places: Vec<GrantedPlace<'a>>,
    pub network: bool,
}

impl<'a> WantedGrant<'a> {
    /// Of this input; `None` where it asks for no permissions.
    pub fn of(input: &'a Value) -> Option<Self> {
        let held = input.get("permissions")?;
        let word = held["until"].as_str()?;
        let (until, _) = GrantUntil::ALL.into_iter().find(|(_, it)| *it == word)?;
        let mut places = Vec::new();
        for (key, written) in [("write", true), ("read", false)] {
            for place in held[key].as_array().into_iter().flatten() {
                places.push(GrantedPlace {
                    path: place["path"].as_str()?,
                    real: place["real_path"].as_str(),
                    written,
                });
            }
        }
        let network = held["network"] == true;
        (network || !places.is_empty()).then_some(Self {
            until,
            places,
            network,
        })
    }

    /// Each permission as a rule of its own.
    pub fn rules(&self) -> Vec<Rule> {
        let places = self.places.iter().map(|place| {
            let verb = if place.written { "write" } else { "read" };
            Rule::new(GRANTED, &format!("{verb} {}", place.path))
        });
        let network = self.network.then(|| Rule::new(GRANTED, "network"));
        places.chain(network).collect()
    }

    /// Whether it is narrow enough to hold for a whole session: files of the
    /// project, and none that decides what runs.
    fn narrow(&self, project: &Path) -> Result<(), NoRule> {
        if self.network {
            return Err(NoRule::Widens);
        }
        for place in &self.places {
            stays_inside(place.path, place.real, project)?;
        }
        Ok(())
    }
}

/// What a rule of [`GRANTED`] permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted<'a> {
    Write(&'a str),
    Read(&'a str),
    Network,
}

impl<'a> Granted<'a> {
    pub(super) fn parse(content: &'a str) -> Option<Self> {
        match content.split_once(' ') {
            Some(("write", path)) => Some(Self::Write(path)),
            Some(("read", path)) => Some(Self::Read(path)),
            None if content == "network" => Some(Self::Network),
            _ => None,
        }
    }
}

/// Its rule is a prefix and holds in every project, so it is the wider choice,
/// and there only where the same beginning would be harmless for Claude Code.
pub(super) fn offer(call: RuleCall<'_>, leaves: &Leaves) -> Offer {
    let shown = presentable(call.input);
    let grant = WantedGrant::of(call.input);
    let widens = grant.is_some() || call.input.get("connects_to").is_some();
    let prefix = leaves.prefix.join(" ");
    let harmless = wider(call).ok().filter(|rule| {
        let Covers::Beginning(words) = rule.covers() else {
            return false;
        };
        let rest = prefix.strip_prefix(words);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    let plain = leaves.prefix.iter().all(|word| is_plain(word)) && prefix.len() <= MAX_CONTENT;
    let session = if leaves.session {
        shown.and_then(|()| session(call, grant.as_ref()))
    } else {
        shown.and(Err(NoRule::Agent))
    };
    Offer {
        always: Err(NoRule::Agent),
        session,
        wider: harmless
            .filter(|_| plain && shown.is_ok() && !widens)
            .map(|_| vec![Rule::new(PREFIX_RULE, &prefix)]),
        turn: grant
            .filter(|grant| grant.until == GrantUntil::TurnEnd)
            .map_or_else(Vec::new, |grant| grant.rules()),
    }
}

fn session(call: RuleCall<'_>, grant: Option<&WantedGrant<'_>>) -> Result<Vec<Rule>, NoRule> {
    match grant {
        Some(grant) if grant.until == GrantUntil::TurnEnd => {
            grant.narrow(call.project)?;
            Ok(grant.rules())
        }
        // Codex would remember the command together with its permissions.
        Some(_) => Err(NoRule::Widens),
        None if call.input.get("connects_to").is_some() => Err(NoRule::Widens),
        None => match call.input["changes"].as_array() {
            Some(changes) if call.tool == "Patch" => later_changes(call, changes),
            _ => Ok(vec![Rule::bare(SAME_AGAIN)]),
        },
    }
}

/// A rule for each file of a patch: Codex lets every later change of it pass.
fn later_changes(call: RuleCall<'_>, changes: &[Value]) -> Result<Vec<Rule>, NoRule> {
    let mut files = Vec::new();
    for change in changes {
        let named = change["path"].as_str().ok_or(NoRule::Input)?;
        let moved = change["kind"]["move_path"].as_str();
        let real = change["real_path"].as_str();
        for (name, real) in [(Some(named), real), (moved, None)] {
            let Some(name) = name else { continue };
            let file = path::resolve(call.cwd, name);
            let file = file.to_str().ok_or(NoRule::Unseen)?;
            stays_inside(file, real, call.project)?;
            files.push(Rule::new(ANY_CHANGE, file));
        }
    }
    files.dedup();
    if files.is_empty() || files.len() > MAX_NAMED {
        return Err(NoRule::TooLong);
    }
    Ok(files)
}

/// A place of the project, by its own path, that decides nothing about what
/// runs.
fn stays_inside(named: &str, real: Option<&str>, project: &Path) -> Result<(), NoRule> {
    writable(named)?;
    let place = Path::new(named);
    if real.is_some() || !path::is_inside(place, project) {
        return Err(NoRule::OutsideProject);
    }
    let below = place.strip_prefix(project).unwrap_or(place);
    if path::is_sensitive(below) || path::decides_what_runs(below) {
        return Err(NoRule::Sensitive);
    }
    Ok(())
}

/// A word that stands in a sentence as it stands in a command.
fn is_plain(word: &str) -> bool {
    let is_usual = |b: u8| b.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&b);
    !word.is_empty() && word.bytes().all(is_usual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn offered(tool: &str, input: &Value) -> Offer {
        let leaves = Leaves {
            session: true,
            prefix: vec!["git".to_owned(), "count-objects".to_owned()],
        };
        let call = RuleCall {
            tool,
            input,
            cwd: Path::new("/home/lin/shop"),
            project: Path::new("/home/lin/shop"),
            codex: Some(&leaves),
            takes_session_rules: true,
        };
        offer(call, &leaves)
    }

    #[test]
    fn a_file_change_is_offered_for_the_session_by_its_files_and_only_inside() {
        let change = |path: &str| json!({"path": path, "kind": {"type": "update"}, "diff": "x"});
        let session = |changes: Value| offered("Patch", &json!({"changes": changes})).session;
        let file = |path: &str| Rule::new(ANY_CHANGE, path);
        assert_eq!(
            session(json!([change("/home/lin/shop/a.txt"), change("src/b.rs")])),
            Ok(vec![
                file("/home/lin/shop/a.txt"),
                file("/home/lin/shop/src/b.rs")
            ])
        );
        let mut moved = change("a.txt");
        moved["kind"]["move_path"] = json!("/home/lin/other.txt");
        let mut linked = change("a.txt");
        linked["real_path"] = json!("/etc/a.txt");
        let many: Vec<_> = (0..9).map(|n| change(&format!("f{n}"))).collect();
        for (changes, why) in [
            (
                json!([change("/home/lin/outside.txt")]),
                NoRule::OutsideProject,
            ),
            (json!([change("a"), change("../b")]), NoRule::OutsideProject),
            (json!([moved]), NoRule::OutsideProject),
            (json!([linked]), NoRule::OutsideProject),
            (json!([change("Makefile")]), NoRule::Sensitive),
            (json!([change(".git/config")]), NoRule::Sensitive),
            (json!(many), NoRule::TooLong),
        ] {
            assert_eq!(session(changes.clone()), Err(why), "{changes}");
        }
    }

    #[test]
    fn a_permission_holds_for_a_session_only_where_it_is_narrow() {
        let wish = |until: &str, write: &[&str], network: bool| {
            let write: Vec<_> = write.iter().map(|path| json!({"path": path})).collect();
            json!({"permissions":
                {"until": until, "write": write, "read": [], "network": network}})
        };
        let narrow = wish("turn", &["/home/lin/shop/dist"], false);
        let rule = |content: &str| Rule::new(GRANTED, content);
        let dist = vec![rule("write /home/lin/shop/dist")];
        let offer = offered("CodexPermissions", &narrow);
        assert_eq!((offer.session, offer.turn), (Ok(dist.clone()), dist));
        for (input, why) in [
            (wish("turn", &["/"], true), NoRule::Widens),
            (wish("turn", &["/"], false), NoRule::OutsideProject),
            (
                wish("turn", &["/home/lin/shop"], false),
                NoRule::OutsideProject,
            ),
            (
                wish("turn", &["/home/lin/shop/.git"], false),
                NoRule::Sensitive,
            ),
        ] {
            let offer = offered("CodexPermissions", &input);
            assert_eq!(offer.session, Err(why), "{input}");
            assert_eq!(offer.always, Err(NoRule::Agent));
            assert!(!offer.turn.is_empty() && offer.wider.is_none());
        }
        let all = offered("CodexPermissions", &wish("turn", &["/"], true)).turn;
        assert_eq!(all, [rule("write /"), rule("network")]);
    }

    #[test]
    fn a_command_with_more_than_its_sandbox_leaves_nothing() {
        let run = "git count-objects -v";
        assert!(offered("Bash", &json!({"command": run})).wider.is_some());
        for more in [
            json!({"command": run, "connects_to": "a.example (https)"}),
            json!({"command": run, "permissions":
                {"until": "call", "write": [{"path": "/"}], "read": [], "network": false}}),
        ] {
            let offer = offered("Bash", &more);
            assert_eq!(offer.session, Err(NoRule::Widens), "{more}");
            assert!(offer.wider.is_none() && offer.turn.is_empty(), "{more}");
        }
    }
}
