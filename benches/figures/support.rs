//! What the recorded Codex of `tests/it` expects around it.

use std::future::Future;
use std::time::Duration;

use crate::LIMIT;

/// Looks again and again until there is something.
pub(crate) async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let done = tokio::time::timeout(LIMIT, looking).await;
    done.unwrap_or_else(|_| panic!("{what}: not in {LIMIT:?}"))
}
