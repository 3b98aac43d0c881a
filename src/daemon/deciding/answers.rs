//! What a reply to a question means, and whether the question was there to be
//! read.

use crate::approvals::choice::Choice;
use crate::approvals::outcome::Refusal;
use crate::approvals::request::Request;
use crate::cards;
use crate::feishu::event::Click;
use crate::sessions::questions::{self, Reply};

/// The answer a tap or a form gives, or what is wrong with it.
pub(crate) fn answered(
    ask: &questions::Ask,
    button: Option<questions::QuestionTap>,
    click: &Click,
) -> Result<Choice, Refusal> {
    let reply = match button {
        Some(tap) if click.form.is_empty() => Reply::Tap(tap),
        button => Reply::Form {
            button,
            fields: questions::Fields::from_json(&click.form),
        },
    };
    answer_by(ask, &reply)
}

/// The same for any reply, also one typed into the chat.
pub(crate) fn answer_by(ask: &questions::Ask, reply: &Reply) -> Result<Choice, Refusal> {
    let outcome = ask.read(reply).map_err(Refusal::BadAnswer)?;
    Ok(match ask.decided(&outcome) {
        questions::KeptDecision::Answers(words) => Choice::Answer(words),
        questions::KeptDecision::Refused(reason) => Choice::Deny {
            reason,
            interrupt: false,
        },
    })
}

/// An answer to a question that was there to be read, or a refusal of any.
pub(crate) fn readable(
    request: &Request,
    ask: &questions::Ask,
    choice: Choice,
    whole: Option<bool>,
) -> Result<Choice, Refusal> {
    let refuses = matches!(choice, Choice::Deny { .. });
    let read = || cards::question::may_answer(request, ask, whole == Some(true));
    if refuses || (whole != Some(false) && read()) {
        return Ok(choice);
    }
    Err(Refusal::NotOffered)
}
