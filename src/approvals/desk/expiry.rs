//! The task that ends requests by the clock.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Desk;

/// tokio's clock stands still while a laptop sleeps, so a long sleep is cut up
/// and the deadline is compared with the desk's own clock on waking.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// Ends what is due, when it is due: sleeps until the next deadline and is
/// woken when an earlier one is registered.
pub async fn run_expiry(desk: Arc<Desk>, cancel: CancellationToken) {
    loop {
        let next = desk.arm();
        let sleep = async {
            match next {
                Some(next) => {
                    let left = next.saturating_sub((desk.clock)()).max(0);
                    let left = Duration::from_millis(left.unsigned_abs());
                    tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = cancel.cancelled() => return,
            () = desk.earlier.notified() => {}
            () = sleep => {}
        }
        desk.sweep();
    }
}
