//! `nod doctor`: looks at every link of the chain from Claude Code to a tap
//! and says what to do about each one that is broken. Changes nothing; its
//! report holds no secret and may be pasted anywhere.

mod bus;
mod click;
mod codex;
mod feishu;
mod finding;
mod gather;
mod machine;
mod other_settings;
mod settings;

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

use self::finding::{Finding, Level};
use self::gather::Gathered;
use super::wording::Words;
use super::{CommandResult, Failure, output};
use crate::config::{self, SettingOrigin, ShownSetting, Sources};
use crate::text::Lang;

#[derive(clap::Args)]
pub(super) struct DoctorArguments {
    /// Send a test card, wait for your tap and measure it
    #[arg(long)]
    click: bool,
    /// How many seconds to wait for the tap, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "click",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    wait: u64,
    /// The report as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &DoctorArguments, sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    let gathered = Gathered::from(sources);
    let runtime = super::runtime(2)?;
    let remote = runtime.block_on(gathered.ask_feishu());
    let mut findings = machine::check(&gathered.machine);
    if let Some(member) = gathered.member() {
        findings.extend(bus::check(&member));
    }
    if let Some(remote) = &remote {
        findings.extend(feishu::check(remote));
    }
    let settings: Vec<ShownSetting> = config::shown(sources)
        .into_iter()
        .filter(|shown| shown.value.is_some())
        .collect();
    if !arguments.json {
        output::say(&heading(&settings, &gathered, words.0));
        for finding in &findings {
            output::say(&finding.page(words.0));
        }
    }
    if arguments.click {
        let limit = Duration::from_secs(arguments.wait);
        let sent = || {
            let text = words.card_sent(arguments.wait);
            if arguments.json {
                output::hint(words, &text);
            } else {
                output::say(&text);
            }
        };
        let tapped = runtime.block_on(click::prove(&gathered, &findings, words, limit, sent));
        if !arguments.json {
            output::say(&tapped.page(words.0));
        }
        findings.push(tapped);
    }
    runtime.shutdown_background();
    if arguments.json {
        output::json(&as_json(&settings, &gathered, &findings, words.0));
    }
    verdict(&findings, words.0, arguments.json)
}

fn verdict(findings: &[Finding], lang: Lang, quiet: bool) -> CommandResult {
    let count = |level| findings.iter().filter(|one| one.level == level).count();
    let (problems, warnings) = (count(Level::Problem), count(Level::Warning));
    if problems == 0 {
        if !quiet {
            output::say(&match (warnings, lang) {
                (0, Lang::Zh) => "一切正常".to_owned(),
                (0, Lang::En) => "everything is in order".to_owned(),
                (_, Lang::Zh) => format!("可以使用，有 {warnings} 个警告"),
                (_, Lang::En) => format!("it works; warnings: {warnings}"),
            });
        }
        return Ok(());
    }
    Err(Failure::new(match lang {
        Lang::Zh => format!("{problems} 个问题，{warnings} 个警告"),
        Lang::En => format!("problems: {problems}, warnings: {warnings}"),
    }))
}

fn heading(settings: &[ShownSetting], gathered: &Gathered, lang: Lang) -> String {
    let version = crate::version::BUILD;
    let mut out = format!(
        "nod {version}, {} {}\n",
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    let longest = settings.iter().map(|one| one.name.len()).max();
    for one in settings {
        let value = match (one.hidden, lang) {
            (None, _) => one.value.clone().unwrap_or_default(),
            (Some(length), Lang::Zh) => format!("{length} 个字符，不显示"),
            (Some(length), Lang::En) => format!("{length} characters, not shown"),
        };
        let room = " ".repeat(longest.unwrap_or_default() - one.name.len());
        let origin = origin(one, gathered, lang);
        let _ = writeln!(out, "  {}{room}  {value}  ({origin})", one.name);
    }
    out
}

fn origin(one: &ShownSetting, gathered: &Gathered, lang: Lang) -> String {
    match (&one.origin, lang) {
        (Some(SettingOrigin::File(path)), _) => gathered.shown(path),
        (_, Lang::Zh) => "环境变量".to_owned(),
        (_, Lang::En) => "environment".to_owned(),
    }
}

fn as_json(
    settings: &[ShownSetting],
    gathered: &Gathered,
    findings: &[Finding],
    lang: Lang,
) -> Value {
    let settings: Vec<Value> = settings
        .iter()
        .map(|one| {
            let origin = origin(one, gathered, Lang::En);
            json!({"name": one.name, "value": one.value, "origin": origin})
        })
        .collect();
    json!({
        "version": crate::version::BUILD,
        "ok": findings.iter().all(|one| one.level != Level::Problem),
        "settings": settings,
        "checks": findings.iter().map(|one| one.as_json(lang)).collect::<Vec<_>>(),
    })
}
