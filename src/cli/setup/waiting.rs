//! A line that says what is waited for and how long still, while something
//! else goes on.

use std::pin::pin;
use std::time::{Duration, Instant};

use super::super::output;

/// Does the work, with the line above the cursor of a terminal; elsewhere it is
/// said once.
pub(super) async fn watched<T>(
    work: impl Future<Output = T>,
    limit: Duration,
    line: impl Fn(Duration) -> String,
) -> T {
    if !output::is_terminal() {
        output::say(&line(limit));
        return work.await;
    }
    let mut work = pin!(work);
    let begun = Instant::now();
    let mut turn = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            done = &mut work => {
                output::wipe_line();
                return done;
            }
            _ = turn.tick() => {
                output::same_line(&line(limit.saturating_sub(begun.elapsed())));
            }
        }
    }
}
