//! What the people who may decide are called, for the record only. Asked once,
//! after the first connect, and kept; no decision rests on a name.

use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::daemon::cards::courier::Cards;
use crate::feishu::error::ApiError;
use crate::feishu::link::Phase;
use crate::ids::UserId;
use crate::text::escape::{Shape, visible};

/// More approvers than this have ids for names.
const MAX_PEOPLE: usize = 50;
const MAX_NAME: usize = 120;

pub(crate) async fn look(cards: Arc<Cards>, stop: CancellationToken) {
    let asked = async {
        let mut link = cards.link.clone();
        let up = link.wait_for(|view| matches!(view.phase, Phase::Up { .. }));
        if up.await.is_err() {
            return;
        }
        let config = &cards.config;
        for person in config
            .owner
            .iter()
            .chain(&config.approvers)
            .take(MAX_PEOPLE)
        {
            if !learn(&cards, person).await {
                return;
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = asked => {}
    }
}

/// Whether it makes sense to ask after the next one.
async fn learn(cards: &Cards, person: &UserId) -> bool {
    let Some(messages) = cards.courier.messages() else {
        return false;
    };
    match messages.name(person).await {
        Ok(Some(name)) => {
            let id = person.as_str().to_owned();
            let mut name = visible(name.trim(), Shape::Name);
            name.truncate(name.floor_char_boundary(MAX_NAME));
            let kept = cards
                .journal
                .store
                .run(move |db| db.set_name(&id, &name))
                .await;
            kept.is_ok()
        }
        Ok(None) => true,
        // One who can't be found hides no other; a missing scope hides all.
        Err(why) => {
            debug!("a person's name is not known: {why}");
            !matches!(why, ApiError::Setup { .. })
        }
    }
}
