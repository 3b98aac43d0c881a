//! What waits where somebody writes, and which of it plain words are for.

use std::sync::PoisonError;

use super::Chat;
use crate::approvals::request::Request;
use crate::ids::RequestId;
use crate::sessions::naming::{self, ListedAsk};
use crate::sessions::route::{self, MessageRoute, Written};
use crate::text::Text;
use crate::text::escape::{Shape, visible};
use crate::wording::card::Work;
use crate::wording::question;

const MAX_SHOWN: usize = 60;

/// Whom plain words are for.
pub(super) enum Meant {
    /// This request, with the words that are left for it.
    One(RequestId, String),
    /// One of several; the person is told how to say which.
    Which(Text),
    /// Nothing that waits.
    Session,
}

pub(super) fn meant(chat: &Chat, written: &Written, text: &str) -> Meant {
    let mut written = written.clone();
    if let Some(place) = chat.sessions.topic_of(&written) {
        written.place = place;
    }
    let now = chat.cards.now();
    let waiting = waiting(chat, &written);
    let mut told = chat.told.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(list) = told.at(&written.place, now)
        && let Some((request, rest)) = naming::named(text, list)
    {
        return Meant::One(request, rest.to_owned());
    }
    match route::route::<i64>(&written, &waiting, &[]) {
        MessageRoute::Answer(request) => Meant::One(request, text.to_owned()),
        MessageRoute::Which(asks) => {
            let (list, lines): (Vec<_>, Vec<_>) = asks
                .iter()
                .filter_map(|ask| chat.cards.desk.find(ask))
                .map(|request| listed(&request))
                .unzip();
            if let Some((request, rest)) = naming::named(text, &list) {
                return Meant::One(request, rest.to_owned());
            }
            told.note(written.place, list, now);
            Meant::Which(question::which(&lines))
        }
        MessageRoute::Session(_) | MessageRoute::Fresh => Meant::Session,
    }
}

/// Whether anything waits here that plain words could answer.
pub(super) fn any(chat: &Chat, written: &Written) -> bool {
    let mut waiting = waiting(chat, written).into_iter();
    waiting.any(|one| one.place == written.place)
}

/// What plain words here could answer, the oldest first. Outside of topics
/// those are the questions of the whole chat; a session's request for
/// permission is answered only in its own place.
fn waiting(chat: &Chat, written: &Written) -> Vec<route::WaitingAsk> {
    let here = &written.place;
    let pending = chat.cards.desk.all_pending();
    let stands = |request: &Request| {
        let mut place = chat.cards.courier.place_of(&request.id)?;
        let asks = request.question().is_some();
        if asks && here.thread.is_none() {
            place.thread = None;
        }
        (asks || request.origin.hosted).then_some(place)
    };
    let waiting = pending.iter().filter_map(|request| {
        Some(route::WaitingAsk {
            card: chat.cards.courier.message_of(&request.id),
            ask: request.id.clone(),
            place: stands(request)?,
        })
    });
    waiting.collect()
}

/// How a waiting thing is called, and its line in a list.
fn listed(request: &Request) -> (ListedAsk, Text) {
    let asked = request.question().and_then(|it| it.ask.questions.first());
    let (label, line) = match asked {
        Some(question) => {
            let text = shown(&question.text);
            let label = question.header.as_ref().map(|header| shown(header));
            let line = match &label {
                Some(label) => format!("{label}: {text}"),
                None => text,
            };
            (label.unwrap_or_default(), Text::made(line.clone(), line))
        }
        None => (String::new(), Work::of(&request.tool).name()),
    };
    let ask = request.id.clone();
    (ListedAsk { ask, label }, line)
}

/// An agent's words inside a message of ours: one short line.
fn shown(text: &str) -> String {
    let line = visible(text, Shape::Line);
    line.chars().take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests;
