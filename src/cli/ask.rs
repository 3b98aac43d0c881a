//! `nod ask`: a question card for any script or agent. Blocks, prints the
//! answer, and the exit code tells how it ended.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

use super::wording::Words;
use super::{CommandResult, Failure, Quit, hook, output, status};
use crate::approvals::request::Digest;
use crate::config::{HookConfig, Paths, Sources};
use crate::hook::client::{self, NoDecision, Patience};
use crate::hook::wire::answer::Decision;
use crate::hook::wire::error_word::ErrorWord;
use crate::sessions::questions::script::{self, Addressee, MAX_TIMEOUT, ScriptWishes};
use crate::sessions::questions::{Format, Question, QuestionKind, QuestionOption, QuestionTap};

#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 answered (or confirmed), 1 declined (or not confirmed), \
                        3 nobody answered in time, 4 nobody can be asked."
)]
pub(super) struct AskArguments {
    /// How many seconds to wait, 1 to 604800; `PERMISSION_REQUEST_TIMEOUT` unless given
    #[arg(long, global = true, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=MAX_TIMEOUT))]
    timeout: Option<u64>,
    /// What to print when there is no answer; the exit code stays
    #[arg(long, global = true, value_name = "TEXT")]
    default: Option<String>,
    /// Ask this chat (`oc_…`) or person (`ou_…`) instead of the owner
    #[arg(long, global = true, value_name = "ID")]
    to: Option<String>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    kind: ScriptAsk,
}

#[derive(clap::Subcommand)]
enum ScriptAsk {
    /// Yes or no
    Confirm {
        /// What to ask
        question: String,
    },
    /// One of several, or any of them
    Choice {
        /// What to ask
        question: String,
        /// What can be chosen, 2 to 50
        #[arg(required = true, num_args = 2..=50, value_name = "OPTION")]
        options: Vec<String>,
        /// Any number of them
        #[arg(long)]
        multi: bool,
        /// Words of one's own are an answer too
        #[arg(long)]
        other: bool,
    },
    /// Words
    Text {
        /// What to ask
        question: String,
    },
}

pub(super) fn run(arguments: &AskArguments, sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    let config =
        HookConfig::load(sources, None).map_err(|why| Failure::settings(words, sources, &why))?;
    let paths = Paths::load(sources).map_err(|why| Failure::settings(words, sources, &why))?;
    let to = arguments.to.as_deref().map(Addressee::parse).transpose();
    let wishes = ScriptWishes {
        timeout: arguments.timeout.map(Duration::from_secs),
        to: to.map_err(|why| Failure::quits(Quit::WrongLine, words.bad_flag("--to", &why)))?,
    };
    let question = question(&arguments.kind);
    let mut input = script::input(&question);
    wishes.write(&mut input);
    if script::parse(&input).is_none() {
        return Err(Failure::quits(Quit::WrongLine, words.bad_question()));
    }
    let timeout = wishes.timeout.unwrap_or(config.request_timeout);
    let question = request(sources.here(), &input);
    let decision = client::ask(
        &paths.sockets.own,
        &question,
        &Patience::for_timeout(timeout),
        None,
    );
    let hint = |why: &NoDecision| status::hint(why, sources, words);
    report(arguments, decision, hint, words)
}

/// A question of a script's, as a hook would ask it.
pub(super) fn request(project: PathBuf, input: &Value) -> client::HookRequest {
    let raw = json!({
        "hook_event_name": "PermissionRequest",
        "tool_name": script::TOOL,
        "tool_input": input,
    });
    client::HookRequest {
        id: hook::fresh_id(),
        project,
        raw_input: raw.to_string().into_bytes(),
        digest: Digest::of(input),
        cwd: None,
        agent: None,
        pid: Some(std::process::id()),
        process: None,
        mailbox: None,
    }
}

fn question(asked: &ScriptAsk) -> Question {
    let (text, kind) = match asked {
        ScriptAsk::Confirm { question } => (question, QuestionKind::Confirm),
        ScriptAsk::Text { question } => (
            question,
            QuestionKind::Text {
                format: Format::Any,
                optional: false,
            },
        ),
        ScriptAsk::Choice {
            question,
            options,
            multi,
            other,
        } => {
            let options = options.iter().map(|label| QuestionOption {
                label: label.clone(),
                description: None,
                preview: None,
            });
            (
                question,
                QuestionKind::Choice {
                    options: options.collect(),
                    multi: *multi,
                    other: *other,
                    optional: false,
                },
            )
        }
    };
    Question {
        header: None,
        text: text.clone(),
        kind,
    }
}

fn report(
    arguments: &AskArguments,
    decision: Result<Decision, NoDecision>,
    hint: impl FnOnce(&NoDecision) -> Option<String>,
    words: Words,
) -> CommandResult {
    let ended = match decision {
        Ok(Decision::Allow(extras)) => {
            let answers = extras.updated_input.unwrap_or_default();
            return answered(arguments, &answers["answers"]);
        }
        Ok(Decision::Deny { .. }) => Failure::quits(Quit::Declined, words.declined()),
        Err(why @ NoDecision::OutOfTime) => Failure::quits(Quit::TimedOut, words.unanswered(&why)),
        Ok(Decision::Terminal {
            error,
            message,
            why,
        }) => {
            let quit = match error {
                ErrorWord::ServerTimeout => Quit::TimedOut,
                _ => Quit::Unaskable,
            };
            Failure::quits(quit, words.terminal(error, &message, why.as_deref()))
        }
        Err(why) => Failure {
            hint: hint(&why),
            ..Failure::quits(Quit::Unaskable, words.unanswered(&why))
        },
    };
    if arguments.json {
        let status = match ended.quit {
            Quit::Declined => "declined",
            Quit::TimedOut => "timed_out",
            _ => "unavailable",
        };
        output::line(&json!({"status": status, "answer": arguments.default}).to_string());
    } else if let Some(default) = &arguments.default {
        output::line(default);
    }
    Err(ended)
}

fn answered(arguments: &AskArguments, answers: &Value) -> CommandResult {
    let answer = answers[0].as_str().unwrap_or_default();
    let no =
        matches!(arguments.kind, ScriptAsk::Confirm { .. }) && answer == QuestionTap::No.as_name();
    if arguments.json {
        let status = if no { "declined" } else { "answered" };
        output::line(&json!({"status": status, "answer": answer}).to_string());
    } else {
        output::line(answer);
    }
    if no {
        return Err(Failure::quits(Quit::Declined, ""));
    }
    Ok(())
}
