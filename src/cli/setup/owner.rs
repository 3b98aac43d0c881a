//! Learns who the owner is when no scan told: the bot shows a code to whoever
//! writes to it, and the person at the terminal types theirs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::super::wording::Words;
use super::super::{Failure, output};
use super::app::tell_console;
use super::pairing::{CodeRefusal, Pairing};
use super::steps::{Listener, Network, SetupApp};
use super::terminal::Terminal;
use super::waiting::watched;
use crate::feishu::event::Push;
use crate::feishu::link::PushAnswer;
use crate::feishu::messages::Content;
use crate::ids::UserId;

const WRITE_WITHIN: Duration = Duration::from_mins(10);

type SharedPairing = Arc<Mutex<Pairing>>;

/// Pairs the person at the terminal with somebody who writes to `bot`.
pub(super) async fn pair(
    network: &Network,
    app: &SetupApp,
    bot: &str,
    words: Words,
) -> Result<UserId, Failure> {
    let mut listener = network.listen(app, |_| PushAnswer::Done);
    listener
        .connected()
        .await
        .map_err(|why| Failure::new(why.get(words.0)))?;
    output::say(&words.pair_write(bot));
    let pairing = SharedPairing::default();
    let first = first_code(network, app, words, &mut listener, &pairing);
    let first = tokio::time::timeout(WRITE_WITHIN, first);
    let left = |left| words.waiting_for_message(left);
    let Ok(shown) = watched(first, WRITE_WITHIN, left).await else {
        tell_console(words, &app.domain);
        return Err(Failure::new(words.pair_silent()).hinted(words.prove_hint()));
    };
    shown?;
    let typed = typed(words, Arc::clone(&pairing));
    tokio::pin!(typed);
    loop {
        tokio::select! {
            owner = &mut typed => {
                // The next step looks whether anybody else is connected.
                listener.close().await;
                return owner;
            }
            push = listener.next() => match push {
                Some(push) => show_code(network, app, words, &push, &pairing).await,
                None => return typed.await,
            },
        }
    }
}

/// Waits until somebody has been shown a code.
async fn first_code(
    network: &Network,
    app: &SetupApp,
    words: Words,
    listener: &mut Listener,
    pairing: &SharedPairing,
) -> Result<(), Failure> {
    while let Some(push) = listener.next().await {
        let Some((who, code)) = code_for(&push, pairing) else {
            continue;
        };
        return send_code(network, app, words, &who, &code)
            .await
            .map_err(|error| Failure::new(error.text().get(words.0)));
    }
    Err(Failure::new(words.pair_silent()))
}

async fn show_code(
    network: &Network,
    app: &SetupApp,
    words: Words,
    push: &Push,
    pairing: &SharedPairing,
) {
    if let Some((who, code)) = code_for(push, pairing)
        && let Err(error) = send_code(network, app, words, &who, &code).await
    {
        tracing::debug!(%error, "a code could not be shown");
    }
}

async fn send_code(
    network: &Network,
    app: &SetupApp,
    words: Words,
    who: &UserId,
    code: &str,
) -> Result<(), crate::feishu::error::ApiError> {
    let text = Content::Text(words.pair_code(code));
    let once = format!("nod-pair-{:016x}", rand::random::<u64>());
    network.send(app, who, &text, &once).await.map(drop)
}

/// Groups are left out: everybody there would read the code.
fn code_for(push: &Push, pairing: &SharedPairing) -> Option<(UserId, String)> {
    let Push::Message(message) = push else {
        return None;
    };
    if !message.from_user || !message.in_private {
        return None;
    }
    let who = message.by.id()?;
    let code = lock(pairing).code_for(&who, rand::random(), Instant::now())?;
    Some((who, code))
}

/// Asks on a thread of its own: the connection has to stay alive meanwhile.
async fn typed(words: Words, pairing: SharedPairing) -> Result<UserId, Failure> {
    let asked = tokio::task::spawn_blocking(move || {
        let Some(mut terminal) = Terminal::open() else {
            return Err(Failure::new(words.no_terminal()));
        };
        loop {
            let text = terminal
                .ask(words.pair_type())
                .map_err(|error| super::asking::broken_off(words, &error))?;
            match lock(&pairing).typed(&text, Instant::now()) {
                Ok(owner) => return Ok(owner),
                Err(CodeRefusal::Wrong) => output::say(words.pair_wrong()),
                Err(CodeRefusal::TooMany) => output::say(words.pair_too_many()),
            }
        }
    });
    asked.await.map_err(|_| Failure::new(words.no_terminal()))?
}

fn lock(pairing: &SharedPairing) -> std::sync::MutexGuard<'_, Pairing> {
    pairing.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feishu::event;
    use serde_json::json;

    fn message(by: &str, sender: &str, chat: &str) -> Push {
        let body = json!({
            "schema": "2.0",
            "header": {"event_id": "e1", "event_type": "im.message.receive_v1"},
            "event": {
                "sender": {"sender_id": {"open_id": by}, "sender_type": sender},
                "message": {"message_id": "om_1", "chat_id": "oc_1", "chat_type": chat, "message_type": "text", "content": "{\"text\":\"hi\"}"},
            },
        });
        event::parse(body.to_string().as_bytes())
    }

    #[test]
    fn only_a_person_in_a_private_chat_is_shown_a_code() {
        let pairing = SharedPairing::default();
        let shown = |push: &Push| code_for(push, &pairing).map(|(who, _)| who.to_string());
        assert_eq!(
            shown(&message("ou_1", "user", "p2p")).as_deref(),
            Some("ou_1")
        );
        assert_eq!(shown(&message("ou_1", "user", "group")), None);
        assert_eq!(shown(&message("ou_1", "app", "p2p")), None);
        assert_eq!(shown(&event::parse(b"{}")), None);
    }
}
