//! What a reply to a question means, and whether the question was there to be
//! read.

use crate::approvals::choice::Choice;
use crate::approvals::outcome::Refusal;
use crate::approvals::request::Request;
use crate::cards;
use crate::cards::whole::WentOut;
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
    went_out: WentOut,
) -> Result<Choice, Refusal> {
    let refuses = matches!(choice, Choice::Deny { .. });
    if refuses || cards::question::may_answer(request, ask, went_out) {
        return Ok(choice);
    }
    Err(Refusal::NotOffered)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::approvals::outcome::sample;
    use crate::sessions::questions::ReplyProblem;

    fn asked(question: &str) -> Request {
        sample::request("nod_ask", json!({"question": question, "kind": "confirm"}))
    }

    fn ask(request: &Request) -> &questions::Ask {
        &request.question().expect("a question").ask
    }

    #[test]
    fn a_reply_is_an_answer_or_says_why_it_is_none() {
        let request = asked("Go?");
        let words = |text: &str| answer_by(ask(&request), &Reply::Text(text.to_owned()));
        assert_eq!(words("yes"), Ok(Choice::Answer(vec!["yes".to_owned()])));
        let why = Refusal::BadAnswer(ReplyProblem::YesOrNo);
        assert_eq!(words("perhaps"), Err(why));
    }

    #[test]
    fn a_question_that_was_not_sent_whole_takes_a_refusal_only() {
        let request = asked("Go?");
        let yes = || Choice::Answer(vec!["yes".to_owned()]);
        let no = || Choice::Deny {
            reason: None,
            interrupt: false,
        };
        let read = |choice, went_out| readable(&request, ask(&request), choice, went_out);
        assert_eq!(read(yes(), WentOut::NotWhole), Err(Refusal::NotOffered));
        assert_eq!(read(no(), WentOut::NotWhole), Ok(no()));
        for went_out in [WentOut::Unknown, WentOut::Whole] {
            assert_eq!(read(yes(), went_out), Ok(yes()));
        }
    }
}
