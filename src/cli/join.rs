//! `nod join`: makes this machine a member of a team. Its key is made here and
//! never leaves. The line is the bot's answer to `/join`, with which it asks and
//! its owner taps, or an administrator's, which holds the pass.

use std::io;
use std::path::Path;

use super::setup::Terminal;
use super::wording::Words;
use super::{CommandResult, Failure, Quit, output};
use crate::bus::membership::{BadMembership, Grant, Membership};
use crate::bus::nkey::{KeyKind, KeyPair};
use crate::bus::subjects::Owner;
use crate::bus::url::BusUrl;
use crate::config::{Config, Sources};
use crate::files;

#[derive(clap::Args)]
pub(super) struct JoinArguments {
    /// The bot's answer to `/join`, or an administrator's line; without it, this
    /// machine's key is shown
    #[arg(value_name = "LINE")]
    line: Option<String>,
    /// Agree to the owner and the bus that the line names
    #[arg(short, long, requires = "line")]
    yes: bool,
    /// With `--yes`: also replace the pass of another owner or bus
    #[arg(long, requires = "yes")]
    replace: bool,
}

/// Where the key waits for its pass.
const KEY: &str = "bus.key";

pub(super) fn run(arguments: &JoinArguments, sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    let (config, _) = Config::read(sources);
    if config.state_dir.as_os_str().is_empty() {
        let problems = Config::load(sources).err();
        let problems = problems.unwrap_or(crate::config::Problems(Vec::new()));
        return Err(Failure::settings(words, sources, &problems));
    }
    if config.app_secret.is_some() {
        return Err(Failure::quits(Quit::BadSettings, words.secret_here()));
    }
    let unwritten = |file: &Path, why: &io::Error| Failure::new(words.not_written(file, why));
    files::make_dirs(&config.state_dir, 0o700).map_err(|why| unwritten(&config.state_dir, &why))?;
    let key_file = config.state_dir.join(KEY);
    let pass_file = &config.bus.pass;
    let key = if let Some(key) = known(&key_file, pass_file) {
        key
    } else {
        let key = KeyPair::of(KeyKind::User, rand::random());
        let seed = format!("{}\n", key.seed().expose());
        files::replace_private(&key_file, seed.as_bytes())
            .map_err(|why| unwritten(&key_file, &why))?;
        key
    };
    let Some(line) = &arguments.line else {
        output::line(&key.public().to_string());
        output::hint(words, &words.ask_for_a_pass(&key.public().to_string()));
        return Ok(());
    };
    let before = files::read(pass_file).ok().flatten().unwrap_or_default();
    let before = Membership::parse(&String::from_utf8_lossy(&before)).ok();
    let mut consent = Consent {
        flags: (arguments.yes, arguments.replace),
        before: before
            .as_ref()
            .map(|before| (before.place().owner.clone(), before.url.clone())),
        given: None,
        words,
        answers: &at_terminal,
    };
    let grant = match Grant::of_line(line) {
        Ok(grant) => grant,
        Err(_) => asked(line, &key, &config, &mut consent)?,
    };
    let public = key.public().to_string();
    let member = Membership::of(&grant, key).map_err(|why| no_member(why, &public, words))?;
    consent.ask(&member.place().owner, &member.url)?;
    let again = before.as_ref().is_some_and(|before| {
        let same = before.key.public() == member.key.public() && before.push == member.push;
        same && before.place() == member.place() && before.url == member.url
    });
    files::replace_private(pass_file, member.text().expose().as_bytes())
        .map_err(|why| unwritten(pass_file, &why))?;
    // The key now stands beside its pass.
    files::remove(&key_file).map_err(|why| unwritten(&key_file, &why))?;
    output::say(&words.joined(member.place(), &member.url, again));
    Ok(())
}

/// Whose machine this becomes, and where its owner's word comes from.
type Hands = (Owner, BusUrl);

/// Whether whoever runs this wants this machine's agents to be in these hands:
/// the owner that a line names decides everything from then on.
struct Consent<'a> {
    /// `--yes` and `--replace`.
    flags: (bool, bool),
    /// In whose hands it is now.
    before: Option<Hands>,
    /// What was agreed to.
    given: Option<Hands>,
    words: Words,
    /// What a person says to a question; `None` where there is nobody to ask.
    answers: &'a dyn Fn(&str) -> Option<io::Result<bool>>,
}

impl Consent<'_> {
    fn ask(&mut self, owner: &Owner, url: &BusUrl) -> CommandResult {
        let asked = Some((owner.clone(), url.clone()));
        if self.given == asked {
            return Ok(());
        }
        let (words, (yes, replace)) = (self.words, self.flags);
        self.wants(&words.join_question(owner.as_str(), url), yes, "--yes")?;
        if let Some((before, at)) = self.before.as_ref().filter(|_| self.before != asked) {
            let question = words.replace_question(before.as_str(), at);
            self.wants(&question, replace, "--yes --replace")?;
        }
        self.given = asked;
        Ok(())
    }

    fn wants(&self, question: &str, agreed: bool, flags: &str) -> CommandResult {
        let words = self.words;
        if agreed {
            output::say(question);
            return Ok(());
        }
        match (self.answers)(question) {
            Some(Ok(true)) => Ok(()),
            Some(Ok(false)) => Err(Failure::quits(Quit::Declined, words.nothing_joined())),
            Some(Err(_)) => Err(Failure::quits(Quit::BrokenOff, words.nothing_joined())),
            None => {
                let why = format!("{question}\n{}", words.no_terminal());
                let why = Failure::quits(Quit::WrongLine, why);
                Err(why.hinted(words.agree_by_flags(flags)))
            }
        }
    }
}

fn at_terminal(question: &str) -> Option<io::Result<bool>> {
    let terminal = output::is_asked().then(Terminal::open);
    Some(terminal??.wants(question))
}

/// What is wrong with the line, and where a good one comes from.
fn no_member(why: BadMembership, key: &str, words: Words) -> Failure {
    Failure {
        hint: Some(words.ask_for_a_pass(key)),
        ..Failure::new(words.no_member(why))
    }
}

/// Asks with a line from the chat, and waits for its owner's tap.
#[cfg(feature = "team")]
fn asked(
    line: &str,
    key: &KeyPair,
    config: &Config,
    consent: &mut Consent<'_>,
) -> Result<Grant, Failure> {
    use crate::bus::knock::knock;
    use crate::bus::lobby::{Invited, fingerprint};
    use crate::feishu::outbound::Outbound;
    let words = consent.words;
    let invited =
        Invited::of_line(line).map_err(|why| no_member(why, &key.public().to_string(), words))?;
    consent.ask(&invited.lobby.owner, &invited.url)?;
    let outbound = Outbound::new(&config.proxies, config.ca_file.as_deref());
    let outbound = outbound.map_err(|why| Failure::new(why.text().get(words.0)))?;
    let fingerprint = fingerprint(&invited.lobby.ticket, &key.public());
    let (host, user) = (crate::daemon::machine_name(config), config.user.clone());
    let runtime = super::daemon::runtime()?;
    let granted = runtime.block_on(knock(invited, key, (&host, &user), outbound, || {
        output::say(&words.compare(&fingerprint));
    }));
    runtime.shutdown_background();
    granted.map_err(|why| Failure::new(words.not_joined(&why)))
}

#[cfg(not(feature = "team"))]
fn asked(
    line: &str,
    key: &KeyPair,
    _: &Config,
    consent: &mut Consent<'_>,
) -> Result<Grant, Failure> {
    use crate::bus::lobby::Invited;
    let words = consent.words;
    let invited =
        Invited::of_line(line).map_err(|why| no_member(why, &key.public().to_string(), words));
    Err(invited.err().unwrap_or(Failure::new(words.no_team())))
}

/// The key this machine has: beside its pass, or waiting for one.
fn known(key_file: &Path, pass_file: &Path) -> Option<KeyPair> {
    let read = |file: &Path| {
        let bytes = files::read(file).ok().flatten()?;
        String::from_utf8(bytes).ok()
    };
    let waiting = read(key_file).and_then(|seed| KeyPair::parse(seed.trim(), KeyKind::User).ok());
    waiting.or_else(|| Some(Membership::parse(&read(pass_file)?).ok()?.key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Lang;
    use std::cell::RefCell;

    const BUS: &str = "tls://bus.example:4222";

    fn hands(owner: &str, bus: &str) -> Hands {
        (Owner::parse(owner).unwrap(), BusUrl::parse(bus).unwrap())
    }

    /// How joining `ou_new` on the bus ends with these answers, and what was asked.
    fn asked(
        flags: (bool, bool),
        before: Option<Hands>,
        answers: Option<&[bool]>,
    ) -> (Result<(), Quit>, Vec<String>) {
        let questions = RefCell::new(Vec::new());
        let answer = |question: &str| {
            let answers = answers?;
            let mut questions = questions.borrow_mut();
            questions.push(question.to_owned());
            Some(Ok(answers[questions.len() - 1]))
        };
        let mut consent = Consent {
            flags,
            before,
            given: None,
            words: Words(Lang::En),
            answers: &answer,
        };
        let (owner, url) = hands("ou_new", BUS);
        let ended = consent.ask(&owner, &url).map_err(|failure| failure.quit);
        if ended.is_ok() {
            assert!(consent.ask(&owner, &url).is_ok(), "once is enough");
        }
        (ended, questions.into_inner())
    }

    #[test]
    fn joining_names_the_owner_and_the_bus_and_asks() {
        let (ended, questions) = asked((false, false), None, Some(&[true]));
        assert_eq!((ended, questions.len()), (Ok(()), 1));
        for named in ["ou_new", BUS] {
            assert!(questions[0].contains(named), "{questions:?}");
        }
        let (ended, _) = asked((false, false), None, Some(&[false]));
        assert_eq!(ended, Err(Quit::Declined));
        let (ended, _) = asked((false, false), None, None);
        assert_eq!(ended, Err(Quit::WrongLine), "nobody is there to ask");
        let (ended, _) = asked((true, false), None, None);
        assert_eq!(ended, Ok(()));
        let (ended, questions) = asked((false, false), Some(hands("ou_new", BUS)), Some(&[true]));
        assert_eq!((ended, questions.len()), (Ok(()), 1), "the same again");
    }

    #[test]
    fn a_pass_of_another_owner_or_bus_is_replaced_after_a_second_yes_only() {
        for before in [
            hands("ou_old", BUS),
            hands("ou_new", "tls://old.example:4222"),
        ] {
            let ended = |flags, answers| asked(flags, Some(before.clone()), answers);
            let (done, questions) = ended((false, false), Some(&[true, true]));
            assert_eq!((done, questions.len()), (Ok(()), 2));
            assert!(questions[1].contains(before.0.as_str()), "{questions:?}");
            assert!(
                questions[1].contains(&before.1.to_string()),
                "{questions:?}"
            );
            let (done, _) = ended((false, false), Some(&[true, false]));
            assert_eq!(done, Err(Quit::Declined));
            assert_eq!(ended((true, false), None).0, Err(Quit::WrongLine));
            assert_eq!(ended((true, true), None).0, Ok(()));
        }
    }
}
