//! `nod settings`: every setting with where its value comes from, one of them
//! set in nod's own file, or the documents that are made from their table.

pub(super) mod env_file;

use clap::builder::PossibleValuesParser;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::setup::Terminal;
use super::wording::Words;
use super::wording::trouble::bad_line;
use super::{CommandResult, Failure, Quit, output, wording};
use crate::config::{
    self, Config, Paths, Problems, SETTINGS, Setting, SettingOrigin, SettingProblem, Sources,
};
use crate::feishu::outbound::Outbound;
use crate::files::{self, NotOwn};
use crate::text::columns;

/// Longer than any setting.
const MAX_VALUE: usize = 64 << 10;
/// How long another `nod settings set` may hold the file.
const TURN_WITHIN: Duration = Duration::from_secs(2);
/// What `nod setup` writes into the hooks.
const IN_HOOKS: [&str; 3] = [
    "NOD_STATE_DIR",
    "PERMISSION_REQUEST_TIMEOUT",
    "PERMISSION_SOCKET_PATH",
];
/// What only a connection checks.
const OUTBOUND: [&str; 2] = ["HTTPS_PROXY", "NOD_CA_FILE"];

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct SettingsArguments {
    /// The README's table: every setting, its default and what it accepts
    #[arg(long)]
    markdown: bool,
    /// The table in Chinese
    #[arg(long, requires = "markdown")]
    zh: bool,
    /// The text of `.env.example`
    #[arg(long, conflicts_with = "markdown")]
    env_example: bool,
    #[command(subcommand)]
    command: Option<SettingsCommand>,
}

#[derive(clap::Subcommand)]
enum SettingsCommand {
    /// Set a value in nod's own file; its other lines and comments stay
    Set {
        /// The setting, as `nod settings` shows it
        #[arg(value_parser = names(), hide_possible_values = true)]
        name: String,
        /// Its value; nothing between quotes takes it back, and without one it is asked for, unseen
        value: Option<String>,
    },
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(SETTINGS.iter().map(|setting| setting.name))
}

impl SettingsArguments {
    /// Whether it speaks of this machine's settings.
    pub(super) const fn is_for_nod(&self) -> bool {
        !self.markdown && !self.env_example
    }
}

pub(super) fn run(arguments: &SettingsArguments, sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    match &arguments.command {
        Some(SettingsCommand::Set { name, value }) => set(name, value.as_deref(), sources, words),
        None if arguments.env_example => {
            output::text(&config::env_example());
            Ok(())
        }
        None if arguments.markdown => {
            output::text(&if arguments.zh {
                config::readme_table_zh(wording::accepts_zh)
            } else {
                config::readme_table()
            });
            Ok(())
        }
        None => {
            output::say(&page(sources, words));
            Ok(())
        }
    }
}

/// Every setting in one line: its name, where its value comes from, and the
/// value where it may be seen.
fn page(sources: &Sources, words: Words) -> String {
    let (config, Problems(wrong)) = Config::read(sources);
    let needs_app = config.send_mode == config::SendMode::App;
    let own = sources.own_file();
    let shown = config::shown(sources);
    let rows: Vec<(&str, String, String)> = shown
        .iter()
        .zip(SETTINGS)
        .map(|(one, setting)| {
            let from = words.value_from(one.origin.as_ref(), setting, own.as_deref());
            let value = match (&one.value, one.hidden) {
                (Some(_), Some(_)) => words.set_not_shown().to_owned(),
                (Some(value), None) => value.clone(),
                (None, _) => words.default_of(setting).to_owned(),
            };
            (one.name, from.to_owned(), value)
        })
        .collect();
    let room = |width: &dyn Fn(&(&str, String, String)) -> usize| {
        rows.iter().map(width).max().unwrap_or_default()
    };
    let (names, froms) = (room(&|row| row.0.len()), room(&|row| columns(&row.1)));
    let mut out = String::new();
    for ((name, from, value), setting) in rows.iter().zip(SETTINGS) {
        let problem = wrong.iter().find(|one| one.setting() == Some(name));
        let lacks = needs_app && setting.is_needed() && sources.get(name).is_none();
        let mark = if problem.is_some() || lacks {
            "✗"
        } else {
            " "
        };
        let gaps = [names - name.len(), froms - columns(from)].map(|gap| " ".repeat(gap));
        let line = format!("{mark} {name}{}  {from}{}  {value}", gaps[0], gaps[1]);
        let _ = writeln!(out, "{}", line.trim_end());
        if let Some(problem) = problem {
            let _ = writeln!(out, "    → {}", words.problem(problem));
        }
    }
    for problem in wrong.iter().filter(|one| one.setting().is_none()) {
        let _ = writeln!(out, "✗ {}", words.problem(problem));
    }
    for unknown in config::unknown(sources) {
        let _ = writeln!(out, "✗ {}", words.unknown_setting(&unknown));
    }
    out.push_str(&words.settings_foot(own.as_deref()));
    out
}

fn set(name: &str, value: Option<&str>, all: &Sources, words: Words) -> CommandResult {
    let setting = SETTINGS.iter().find(|setting| setting.name == name);
    let setting = setting.expect("the command line takes no other name");
    // What was named for this run is not for keeps.
    let sources = all.lasting();
    let file = sources.own_file();
    let file = file
        .ok_or_else(|| Failure::quits(Quit::BadSettings, words.problem(&SettingProblem::NoHome)))?;
    let typed = value.is_some();
    let value = match value {
        Some(value) => value.trim().to_owned(),
        None => asked(setting, words)?,
    };
    judged(name, &value, &sources, words)?;
    let was = sources.get(name).map(|(value, _)| value.to_owned());
    write(&file, name, &value, words)?;
    output::say(&words.setting_saved(name, value.is_empty(), &file));
    tell_after(setting, &value, was.as_deref(), &sources, words);
    if typed && setting.secret && !value.is_empty() {
        output::hint(words, &words.typed_secret(name));
    }
    Ok(())
}

/// Asked at the terminal, or read from what is piped in. Nothing is echoed: what
/// is not worth hiding is typed with the command.
fn asked(setting: &Setting, words: Words) -> Result<String, Failure> {
    let text = if output::is_asked() {
        let mut terminal =
            Terminal::open().ok_or_else(|| Failure::quits(Quit::WrongLine, words.no_terminal()))?;
        terminal
            .ask_secret(&words.ask_value(setting.name))
            .map_err(|why| Failure::new(words.no_reading(&why)))?
    } else {
        let bytes =
            output::read_stdin(MAX_VALUE).map_err(|why| Failure::new(words.no_input(&why)))?;
        String::from_utf8(bytes).map_err(|_| Failure::quits(Quit::WrongLine, words.not_text()))?
    };
    let text = text.trim();
    if text.is_empty() {
        // Only a person who types two quotes takes a value back: a pipe that
        // brings nothing is a mishap.
        return Err(
            Failure::quits(Quit::WrongLine, words.no_value(setting.name))
                .hinted(words.no_value_hint(setting.name)),
        );
    }
    Ok(text.to_owned())
}

/// Nothing is written that nod could not run with.
fn judged(name: &str, value: &str, sources: &Sources, words: Words) -> CommandResult {
    let refused =
        |why: &str| Failure::quits(Quit::BadSettings, why).hinted(words.nothing_changed());
    let config =
        config::tried(sources, name, value).map_err(|why| refused(&words.problem(&why)))?;
    let (now, _) = Config::read(sources);
    let is_member = matches!(now.membership(), Ok(Some(_)));
    if is_member && (config.app_secret.is_some() || config.webhook.is_some()) {
        let both = SettingProblem::SecretBesidePass(now.bus.pass);
        return Err(refused(&words.problem(&both)));
    }
    if OUTBOUND.contains(&name) && !value.is_empty() {
        Outbound::new(&config.proxies, config.ca_file.as_deref())
            .map_err(|why| refused(why.text().get(words.0)))?;
    }
    Ok(())
}

fn write(file: &Path, name: &str, value: &str, words: Words) -> CommandResult {
    let fail = |why: NotOwn| Failure::quits(Quit::BadSettings, words.not_own_file(file, &why));
    let dir = file.parent().unwrap_or(Path::new("/"));
    files::make_dirs(dir, 0o700).map_err(|why| fail(why.into()))?;
    // Two at once must not lose one another's line.
    let _turn = files::turn(dir, TURN_WITHIN).map_err(|why| fail(why.into()))?;
    let before = files::read_own(file).map_err(fail)?;
    let text = String::from_utf8(before.unwrap_or_default())
        .map_err(|_| Failure::quits(Quit::BadSettings, words.not_utf8(file)))?;
    config::parse_env(&text).map_err(|why| {
        let why = bad_line(&why);
        Failure::quits(Quit::BadSettings, words.file_not_changed(file, &why))
    })?;
    let after = env_file::with(&text, &[(name, value)])
        .map_err(|unfit| Failure::quits(Quit::BadSettings, words.unfit_value(&unfit.0)))?;
    if after == text {
        return Ok(());
    }
    files::replace_here(file, after.as_bytes()).map_err(|why| fail(why.into()))
}

/// What keeps the value from counting, or from counting at once.
fn tell_after(setting: &Setting, value: &str, was: Option<&str>, sources: &Sources, words: Words) {
    let name = setting.name;
    if let Some((theirs, origin @ SettingOrigin::Environment)) = sources.get(name)
        && theirs != value
    {
        output::hint(words, &words.wins(name, origin));
        return;
    }
    if was.unwrap_or_default() == value {
        return;
    }
    let (_, problems) = Config::read(&Sources::for_person());
    if problems.0.iter().any(|one| one.setting().is_some()) {
        let names = problems.0.iter().filter_map(SettingProblem::setting);
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        output::hint(words, &words.still_wrong(&names));
    }
    if IN_HOOKS.contains(&name) {
        output::hint(words, words.hooks_need_setup());
    }
    let socket = Paths::load(sources).ok().map(|paths| paths.sockets.own);
    let runs = socket.is_some_and(|socket| std::os::unix::net::UnixStream::connect(socket).is_ok());
    if runs {
        output::hint(words, words.daemon_reads_later());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Lang;

    #[test]
    fn a_row_says_where_a_value_comes_from_and_no_secret() {
        let sources = Sources::of(&[
            ("FEISHU_APP_SECRET", "canary-secret"),
            ("HTTPS_PROXY", "http://me:canary@h:1"),
            ("NOD_LOG", "loud"),
            ("NOD_LNAG", "canary"),
        ]);
        let page = page(&sources, Words(Lang::En));
        assert!(!page.contains("canary"), "{page}");
        let line = |name: &str| {
            let is_it = |line: &&str| line.split_whitespace().any(|word| word == name);
            let found = page.lines().find(is_it);
            found.unwrap_or_else(|| panic!("{name}: {page}"))
        };
        for (name, says) in [
            ("FEISHU_APP_ID", "✗ FEISHU_APP_ID "),
            ("FEISHU_APP_SECRET", "environment  set, not shown"),
            ("HTTPS_PROXY", "environment  set, not shown"),
            ("FEISHU_DOMAIN", "default      feishu"),
            ("FEISHU_CHAT_ID", "not set"),
            ("NOD_LOG", "environment  loud"),
        ] {
            assert!(line(name).contains(says), "{name}: {page}");
        }
        assert!(
            page.contains("    → `NOD_LOG` is `loud`; accepted: "),
            "{page}"
        );
        assert!(page.contains("✗ nod has no setting `NOD_LNAG`"), "{page}");
        assert_eq!(page.matches('\n').count(), SETTINGS.len() + 2, "{page}");
    }
}
