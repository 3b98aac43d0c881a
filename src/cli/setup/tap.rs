//! Proves a tap: sends a card to the owner and waits until the button's click
//! has come back over the long connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::wording::Words;
use super::steps::{Network, SetupApp, card};
use crate::feishu::error::ApiError;
use crate::feishu::event::{Click, Push};
use crate::feishu::link::PushAnswer;
use crate::feishu::messages::Content;
use crate::ids::UserId;
use crate::text::Text;

impl TapError {
    pub(in crate::cli) fn text(&self) -> Text {
        match self {
            Self::Connection(why) => {
                Text::made(format!("没有长连接：{}", why.zh), self.to_string())
            }
            Self::Api(error) => error.text(),
            Self::Silence => Text::made("没有及时收到点击".to_owned(), self.to_string()),
        }
    }
}

pub(super) const TAP_WITHIN: Duration = Duration::from_mins(3);
const ACTION: &str = "setup-test";

#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum TapError {
    #[error("no long connection: {}", .0.en)]
    Connection(Text),
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The card went out and nobody tapped, or the tap did not get here.
    #[error("no tap arrived in time")]
    Silence,
}

/// Sends the card, calls `sent`, and waits for the owner's tap. Gives the time
/// between the click's arrival and our answer.
pub(super) async fn prove(
    network: &Network,
    app: &SetupApp,
    owner: &UserId,
    words: Words,
    limit: Duration,
    sent: impl FnOnce(),
) -> Result<Duration, TapError> {
    let nonce = format!("{:016x}", rand::random::<u64>());
    let test = Arc::new(Test {
        nonce: nonce.clone(),
        owner: owner.clone(),
        words,
        tapped: AtomicBool::new(false),
    });
    let took = Arc::new(std::sync::OnceLock::new());
    let (answering, noting) = (Arc::clone(&test), Arc::clone(&took));
    let mut listener = network.listen(app, move |push| {
        let start = Instant::now();
        let answer = answering.answer(push);
        if answering.is_tapped() {
            let _ = noting.set(start.elapsed());
        }
        answer
    });
    listener.connected().await.map_err(TapError::Connection)?;
    let value = json!({"action": ACTION, "nonce": nonce});
    let waiting = card(
        words.card_title(),
        words.card_text(),
        Some((words.card_button(), value)),
    );
    let message = network
        .send(
            app,
            owner,
            &Content::Card(waiting),
            &format!("nod-setup-{}", test.nonce),
        )
        .await?
        .message_id;
    sent();
    let tap = async {
        while !test.is_tapped() {
            if listener.next().await.is_none() {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(limit, tap).await;
    listener.close().await;
    if let Some(took) = took.get() {
        return Ok(*took);
    }
    let void = card(words.card_title(), words.card_void(), None);
    if let Err(error) = network.change(app, &message, void).await {
        tracing::debug!(%error, "the test card stays as it is");
    }
    Err(TapError::Silence)
}

/// What a click on the test card has to be.
struct Test {
    nonce: String,
    owner: UserId,
    words: Words,
    tapped: AtomicBool,
}

impl Test {
    fn is_tapped(&self) -> bool {
        self.tapped.load(Ordering::Acquire)
    }

    fn answer(&self, push: &Push) -> PushAnswer {
        match push {
            Push::Click(click) if click.value["action"] == ACTION => {
                PushAnswer::Show(self.shown(click).to_string().into_bytes())
            }
            _ => PushAnswer::Done,
        }
    }

    fn shown(&self, click: &Click) -> Value {
        let toast = |kind: &str, text: &str| json!({"type": kind, "content": text});
        let showing = |toast: Value, text: &str| {
            let plain = card(self.words.card_title(), text, None);
            json!({"toast": toast, "card": {"type": "raw", "data": plain}})
        };
        if click.value["nonce"] != self.nonce.as_str() {
            // A card of a test that was broken off, which nobody corrected.
            let void = self.words.card_void();
            return showing(toast("info", void), void);
        }
        if !click.by.is(&self.owner) {
            return json!({"toast": toast("error", self.words.not_you())});
        }
        self.tapped.store(true, Ordering::Release);
        let done = self.words.card_done();
        showing(toast("success", done), done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feishu::event;
    use crate::text::Lang;

    fn click(by: &str, action: &str, nonce: &str) -> Push {
        let body = json!({
            "schema": "2.0",
            "header": {"event_id": "e1", "event_type": "card.action.trigger"},
            "event": {
                "operator": {"open_id": by},
                "action": {"tag": "button", "value": {"action": action, "nonce": nonce}},
                "context": {"open_message_id": "om_1", "open_chat_id": "oc_1"},
            },
        });
        event::parse(body.to_string().as_bytes())
    }

    fn test() -> Test {
        Test {
            nonce: "n1".to_owned(),
            owner: UserId::parse("ou_me").unwrap(),
            words: Words(Lang::En),
            tapped: AtomicBool::new(false),
        }
    }

    #[test]
    fn only_the_owners_click_on_this_card_proves_anything() {
        for (push, proves, shown) in [
            (click("ou_me", ACTION, "n1"), true, "arrived"),
            (click("ou_you", ACTION, "n1"), false, "owner"),
            (click("ou_me", ACTION, "old"), false, "over"),
            (click("ou_me", "allow", "n1"), false, ""),
        ] {
            let test = test();
            let answer = test.answer(&push);
            assert_eq!(test.is_tapped(), proves);
            match answer {
                PushAnswer::Show(bytes) => {
                    let reply = String::from_utf8(bytes).unwrap();
                    assert!(!shown.is_empty() && reply.contains(shown), "{reply}");
                    let reply: Value = serde_json::from_str(&reply).unwrap();
                    let drawn = &reply["card"]["data"];
                    // Whoever is not the owner changes nothing on the card.
                    assert_eq!(drawn.is_null(), shown == "owner", "{reply}");
                    let drawn = drawn.to_string();
                    assert!(!drawn.contains("\"button\""), "{reply}");
                    assert!(drawn == "null" || drawn.contains(shown), "{reply}");
                }
                PushAnswer::Done => assert_eq!(shown, ""),
                PushAnswer::Again => panic!("a click is answered"),
            }
        }
    }
}
