//! Whose words are these: an answer to a question, more for a session, or
//! something new. A plain text is an answer only if one question waits there.

use crate::ids::{ChatId, MessageId, RequestId};

/// A chat, or one thread of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChatPlace {
    pub chat: ChatId,
    pub thread: Option<String>,
}

/// Where a message was written, and what it replies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub place: ChatPlace,
    pub parent: Option<MessageId>,
    pub root: Option<MessageId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingAsk {
    pub ask: RequestId,
    pub place: ChatPlace,
    /// The card's message, once it was sent.
    pub card: Option<MessageId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession<S> {
    pub session: S,
    pub place: ChatPlace,
    /// The messages that belong to it: the card it shows, the text it began with.
    pub messages: Vec<MessageId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageRoute<S> {
    Answer(RequestId),
    /// Several things wait there; the person is asked which one they mean.
    Which(Vec<RequestId>),
    Session(S),
    /// Nothing waits and nothing runs there.
    Fresh,
}

/// Decides where a plain text goes. The newest session of a place stands last.
pub fn route<S: Clone>(
    message: &Written,
    waiting: &[WaitingAsk],
    open: &[OpenSession<S>],
) -> MessageRoute<S> {
    let replied = [&message.parent, &message.root];
    let is_reply_to = |id: &MessageId| replied.iter().any(|r| r.as_ref() == Some(id));
    let answered = waiting
        .iter()
        .find(|w| w.card.is_some() && w.card == message.parent);
    if let Some(question) = answered {
        return MessageRoute::Answer(question.ask.clone());
    }
    let here: Vec<_> = waiting
        .iter()
        .filter(|w| w.place == message.place)
        .collect();
    match here.as_slice() {
        [] => {}
        [question] => return MessageRoute::Answer(question.ask.clone()),
        several => {
            return MessageRoute::Which(several.iter().map(|w| w.ask.clone()).collect());
        }
    }
    open.iter()
        .rev()
        .find(|session| session.messages.iter().any(is_reply_to))
        .or_else(|| open.iter().rev().find(|s| s.place == message.place))
        .map_or(MessageRoute::Fresh, |found| {
            MessageRoute::Session(found.session.clone())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(chat: &str, thread: Option<&str>) -> ChatPlace {
        ChatPlace {
            chat: ChatId::parse(chat).expect("a chat"),
            thread: thread.map(str::to_owned),
        }
    }

    fn message(id: &str) -> MessageId {
        MessageId::parse(id).expect("a message")
    }

    fn ask(id: &str) -> RequestId {
        RequestId::parse(id).expect("an ask")
    }

    fn waiting(id: &str, place: ChatPlace, card: &str) -> WaitingAsk {
        WaitingAsk {
            ask: ask(id),
            place,
            card: Some(message(card)),
        }
    }

    fn text(place: ChatPlace, parent: Option<&str>) -> Written {
        Written {
            place,
            parent: parent.map(message),
            root: None,
        }
    }

    #[test]
    fn a_plain_text_answers_only_the_one_question_of_its_place() {
        let chat = || place("oc_1", None);
        let one = [
            waiting("q1", chat(), "om_1"),
            waiting("q2", place("oc_2", None), "om_2"),
            waiting("q3", place("oc_1", Some("t")), "om_3"),
        ];
        let none: [OpenSession<u8>; 0] = [];
        assert_eq!(
            route(&text(chat(), None), &one, &none),
            MessageRoute::Answer(ask("q1"))
        );
        let two = [waiting("q1", chat(), "om_1"), waiting("q2", chat(), "om_2")];
        assert_eq!(
            route(&text(chat(), None), &two, &none),
            MessageRoute::Which(vec![ask("q1"), ask("q2")])
        );
        assert_eq!(
            route(&text(chat(), Some("om_2")), &two, &none),
            MessageRoute::Answer(ask("q2")),
            "a reply names its card"
        );
    }

    #[test]
    fn other_words_go_to_the_session_replied_to_or_the_newest_there() {
        let chat = || place("oc_1", None);
        let open = |session, id| OpenSession {
            session,
            place: chat(),
            messages: vec![message(id)],
        };
        let sessions = [open(1, "om_a"), open(2, "om_b")];
        assert_eq!(
            route(&text(chat(), None), &[], &sessions),
            MessageRoute::Session(2)
        );
        assert_eq!(
            route(&text(chat(), Some("om_a")), &[], &sessions),
            MessageRoute::Session(1)
        );
        assert_eq!(
            route(&text(place("oc_9", None), None), &[], &sessions),
            MessageRoute::Fresh
        );
    }

    #[test]
    fn two_threads_of_a_chat_do_not_mix() {
        let thread = |name| place("oc_1", Some(name));
        let sessions = ["a", "b"].map(|name| OpenSession {
            session: name,
            place: thread(name),
            messages: Vec::new(),
        });
        for name in ["a", "b"] {
            assert_eq!(
                route(&text(thread(name), None), &[], &sessions),
                MessageRoute::Session(name)
            );
        }
        assert_eq!(
            route(&text(place("oc_1", None), None), &[], &sessions),
            MessageRoute::Fresh
        );
    }

    #[test]
    fn a_question_whose_card_is_not_out_yet_is_not_replied_to_by_accident() {
        let mut question = waiting("q1", place("oc_2", None), "om_1");
        question.card = None;
        let none: [OpenSession<u8>; 0] = [];
        assert_eq!(
            route(&text(place("oc_1", None), None), &[question], &none),
            MessageRoute::Fresh
        );
    }
}
