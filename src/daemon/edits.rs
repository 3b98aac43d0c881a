//! Carries out the edits that make cards true, however long Feishu is away.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::courier::{Edit, Edits};
use super::parts::Parts;
use crate::feishu::error::ApiError;
use crate::store::Store;

const EDITS_AT_ONCE: usize = 8;
const MAX_WAITING_EDITS: usize = 2_048;
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(60);
/// Cards older than this can no longer be edited.
const MAX_TRIES: u32 = 10_000;

/// Carries out edits until stopped: several at once, each again and again
/// while Feishu is away.
pub(super) async fn run(parts: Arc<Parts>, mut queue: Edits, stop: CancellationToken) {
    let mut running = JoinSet::new();
    let slots = Arc::new(Semaphore::new(EDITS_AT_ONCE));
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = running.join_next(), if !running.is_empty() => {}
            edit = queue.0.recv(), if running.len() < MAX_WAITING_EDITS => {
                let Some(edit) = edit else { break };
                running.spawn(carry_out(Arc::clone(&parts), edit, Arc::clone(&slots)));
            }
        }
    }
}

async fn carry_out(parts: Arc<Parts>, mut edit: Edit, slots: Arc<Semaphore>) {
    loop {
        wait_for_turn(&parts, &edit).await;
        let Some(messages) = parts.courier.messages() else {
            break;
        };
        let patched = {
            let _slot = slots.acquire().await;
            messages.patch(&edit.message, edit.card.clone()).await
        };
        match patched {
            Ok(()) => break,
            Err(why) if may_pass(&why) && edit.tries < MAX_TRIES => {
                edit.tries += 1;
                let grown = RETRY_FIRST * 2_u32.saturating_pow(edit.tries.min(6));
                let wait = why.retry_after().unwrap_or(grown).min(RETRY_MOST);
                debug!("a card is corrected later: {why}");
                edit.not_before = tokio::time::Instant::now() + wait;
            }
            Err(why) => {
                warn!("a card could not be corrected: {why}");
                break;
            }
        }
    }
    done(&parts.store, edit).await;
}

/// Until it is time, or, for one that failed, until Feishu is back.
async fn wait_for_turn(parts: &Parts, edit: &Edit) {
    let mut link = parts.link.clone();
    let connects = link.borrow().counts.connects;
    let back = async {
        let up = link.wait_for(|view| view.counts.connects > connects);
        if edit.tries == 0 || up.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = tokio::time::sleep_until(edit.not_before) => {}
        () = back => {}
    }
}

/// A card must become true however long Feishu does not let us in.
fn may_pass(why: &ApiError) -> bool {
    let shut_out = matches!(
        why,
        ApiError::StaleToken(_) | ApiError::BadCredentials(_) | ApiError::Setup { .. }
    );
    shut_out || why.is_retryable()
}

async fn done(store: &Store, edit: Edit) {
    let Some(version) = edit.version else { return };
    let written = store
        .run(move |db| db.edit_done(&edit.message, version))
        .await;
    if let Err(why) = written {
        debug!("a finished edit was not struck off: {why}");
    }
}
