//! The tenant access token: fetched once for all who wait, renewed while the
//! old one still works, forgotten when Feishu refuses it. Never on disk and
//! never in a log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::api::exchange::{ApiCall, Exchange};
use super::error::ApiError;
use super::secret::Secret;

/// Feishu hands out a new token only in the last 30 minutes of the old one.
const RENEW_BEFORE: Duration = Duration::from_mins(25);

/// A token this close to its end may expire on the way.
const MARGIN: Duration = Duration::from_mins(3);

/// Feishu's own upper bound, and what is assumed when it names no lifetime.
const LONGEST_LIFE: Duration = Duration::from_hours(2);
const ASSUMED_LIFE: Duration = Duration::from_mins(30);

/// How long refused credentials are taken as refused, and how long a failed
/// renewal rests.
const REST: Duration = Duration::from_secs(30);

const FETCH_WITHIN: Duration = Duration::from_secs(10);

/// A header line longer than this is refused by servers anyway.
const MAX_TOKEN_BYTES: usize = 4096;

/// Gives out the current token; cheap to clone.
#[derive(Debug, Clone)]
pub struct Tokens {
    shared: Arc<SharedToken>,
}

#[derive(Debug)]
struct SharedToken {
    exchange: Exchange,
    app_id: String,
    app_secret: Secret,
    /// Held while a fetch is under way, so that there is at most one.
    flight: tokio::sync::Mutex<()>,
    known: Mutex<TokenState>,
}

#[derive(Debug, Default)]
struct TokenState {
    held: Option<Held>,
    failed: Option<TokenFailure>,
    renewal: Option<Renewal>,
}

#[derive(Debug)]
struct Held {
    token: Secret,
    usable_until: Instant,
    renew_from: Instant,
}

#[derive(Debug)]
struct TokenFailure {
    error: ApiError,
    at: Instant,
}

#[derive(Debug)]
struct Renewal {
    started: Instant,
    _task: AbortOnDropHandle<()>,
}

impl Tokens {
    pub fn new(exchange: Exchange, app_id: &str, app_secret: Secret) -> Self {
        Self {
            shared: Arc::new(SharedToken {
                exchange,
                app_id: app_id.to_owned(),
                app_secret,
                flight: tokio::sync::Mutex::new(()),
                known: Mutex::default(),
            }),
        }
    }

    /// A token that is good for at least a few minutes.
    pub async fn current(&self) -> Result<Secret, ApiError> {
        let asked = Instant::now();
        if let Some(token) = self.usable(asked) {
            return Ok(token);
        }
        let _flight = self.shared.flight.lock().await;
        if let Some(token) = self.usable(Instant::now()) {
            return Ok(token);
        }
        if let Some(error) = self.shared.recent_failure(asked) {
            return Err(error);
        }
        self.shared.fetch().await
    }

    /// Drops `token` if it is still the current one.
    pub fn forget(&self, token: &Secret) {
        let mut known = self.shared.known();
        if known.held.as_ref().is_some_and(|held| held.token == *token) {
            known.held = None;
        }
    }

    fn usable(&self, now: Instant) -> Option<Secret> {
        let mut known = self.shared.known();
        let held = known.held.as_ref()?;
        if now >= held.usable_until {
            return None;
        }
        let token = held.token.clone();
        if now >= held.renew_from {
            self.renew(&mut known, now);
        }
        Some(token)
    }

    fn renew(&self, known: &mut TokenState, now: Instant) {
        let resting = |renewal: &Renewal| now < renewal.started + REST;
        if known.renewal.as_ref().is_some_and(resting) {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let task = tokio::spawn(async move {
            let Ok(_flight) = shared.flight.try_lock() else {
                return;
            };
            if let Err(error) = shared.fetch().await {
                tracing::warn!(%error, "the access token could not be renewed; the old one still works");
            }
        });
        known.renewal = Some(Renewal {
            started: now,
            _task: AbortOnDropHandle::new(task),
        });
    }
}

impl SharedToken {
    fn known(&self) -> MutexGuard<'_, TokenState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why asking again is useless: the credentials were refused a moment
    /// ago, or the fetch this caller waited for has just failed.
    fn recent_failure(&self, asked: Instant) -> Option<ApiError> {
        let known = self.known();
        let failed = known.failed.as_ref()?;
        let shared_fate = failed.at >= asked;
        let refused =
            matches!(failed.error, ApiError::BadCredentials(_)) && failed.at.elapsed() < REST;
        (shared_fate || refused).then(|| failed.error.clone())
    }

    async fn fetch(&self) -> Result<Secret, ApiError> {
        let asked = Instant::now();
        let fetched = self.ask().await;
        let mut known = self.known();
        match fetched {
            Ok((token, life)) => {
                known.failed = None;
                known.held = Some(Held {
                    token: token.clone(),
                    usable_until: asked + life - MARGIN.min(life / 2),
                    renew_from: asked + life - RENEW_BEFORE.min(life / 2),
                });
                Ok(token)
            }
            Err(error) => {
                known.failed = Some(TokenFailure {
                    error: error.clone(),
                    at: Instant::now(),
                });
                Err(error)
            }
        }
    }

    async fn ask(&self) -> Result<(Secret, Duration), ApiError> {
        let call = ApiCall::post(
            &["open-apis", "auth", "v3", "tenant_access_token", "internal"],
            json!({"app_id": self.app_id, "app_secret": self.app_secret.expose()}),
        );
        let answer = self
            .exchange
            .login(&call, &self.app_secret, FETCH_WITHIN)
            .await?;
        let token = answer
            .get("tenant_access_token")
            .and_then(Value::as_str)
            .filter(|token| !token.is_empty() && token.len() <= MAX_TOKEN_BYTES)
            .filter(|token| token.bytes().all(|b| b.is_ascii_graphic()))
            .ok_or(ApiError::Malformed {
                status: 200,
                what: "an answer without a usable access token came",
            })?;
        let life = answer
            .get("expire")
            .and_then(Value::as_u64)
            .map_or(ASSUMED_LIFE, Duration::from_secs)
            .clamp(Duration::from_secs(1), LONGEST_LIFE);
        Ok((Secret::new(token), life))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;
    use tokio::sync::Notify;

    use super::*;
    use crate::feishu::fake::{Fake, Reply, direct};

    fn tokens(fake: &Fake) -> Tokens {
        let exchange = Exchange::new(&direct(), fake.base("127.0.0.1")).expect("an address");
        Tokens::new(exchange, "cli_1", Secret::new("s"))
    }

    async fn numbering() -> Fake {
        Fake::start(|_, before| Reply::token(&format!("t-{before}"))).await
    }

    fn reschedule(tokens: &Tokens, usable_for: Duration, renew_in: Duration) {
        let now = Instant::now();
        let mut known = tokens.shared.known();
        let held = known.held.as_mut().expect("a token");
        held.usable_until = now + usable_for;
        held.renew_from = now + renew_in;
    }

    #[tokio::test]
    async fn an_old_token_is_used_while_the_next_is_fetched() {
        let fetched = Arc::new(Notify::new());
        let told = Arc::clone(&fetched);
        let fake = Fake::start(move |_, before| {
            told.notify_one();
            Reply::token(&format!("t-{before}"))
        })
        .await;
        let tokens = tokens(&fake);
        assert_eq!(tokens.current().await, Ok(Secret::new("t-0")));
        fetched.notified().await;
        reschedule(&tokens, RENEW_BEFORE, Duration::ZERO);
        for _ in 0..20 {
            assert!(tokens.current().await.is_ok());
        }
        fetched.notified().await;
        let renewed = async {
            while tokens.current().await != Ok(Secret::new("t-1")) {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), renewed).await;
        assert!(waited.is_ok(), "the new token never came into use");
        assert_eq!(fake.seen().len(), 2);
    }

    #[tokio::test]
    async fn a_token_near_its_end_is_not_used() {
        let fake = numbering().await;
        let tokens = tokens(&fake);
        assert_eq!(tokens.current().await, Ok(Secret::new("t-0")));
        reschedule(&tokens, Duration::ZERO, Duration::ZERO);
        assert_eq!(tokens.current().await, Ok(Secret::new("t-1")));
    }

    #[tokio::test]
    async fn lifetimes_leave_the_margins_feishu_needs() {
        let cases = [
            (json!(7200), 7200 - 180, 7200 - 25 * 60),
            (json!(4567), 4567 - 180, 4567 - 25 * 60),
            (json!(10), 5, 5),
            (json!(999_999), 7200 - 180, 7200 - 25 * 60),
            (json!("soon"), 1800 - 180, 900),
        ];
        for (expire, usable, renew) in cases {
            let answered = expire.clone();
            let fake = Fake::start(move |_, _| {
                let body = json!({"code": 0, "tenant_access_token": "t-1", "expire": answered});
                Reply::json(200, &body)
            })
            .await;
            let tokens = tokens(&fake);
            let before = Instant::now();
            tokens.current().await.expect("a token");
            let after = Instant::now();
            let known = tokens.shared.known();
            let held = known.held.as_ref().expect("a token");
            for (until, secs) in [(held.usable_until, usable), (held.renew_from, renew)] {
                let span = Duration::from_secs(secs);
                assert!(
                    (before + span..=after + span).contains(&until),
                    "{expire}: {secs}"
                );
            }
        }
    }

    #[tokio::test]
    async fn forgetting_an_older_token_keeps_the_current_one() {
        let fake = numbering().await;
        let tokens = tokens(&fake);
        let current = tokens.current().await.expect("a token");
        tokens.forget(&Secret::new("t-older"));
        assert_eq!(tokens.current().await, Ok(current.clone()));
        tokens.forget(&current);
        assert_eq!(tokens.current().await, Ok(Secret::new("t-1")));
    }

    #[tokio::test]
    async fn trouble_at_feishus_end_is_not_remembered_as_wrong_credentials() {
        let tries = AtomicUsize::new(0);
        let fake = Fake::start(move |_, _| match tries.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::refusal(200, 2200),
            _ => Reply::token("t-1"),
        })
        .await;
        let tokens = tokens(&fake);
        assert!(matches!(
            tokens.current().await,
            Err(ApiError::Retry { .. })
        ));
        assert_eq!(tokens.current().await, Ok(Secret::new("t-1")));
    }

    #[tokio::test]
    async fn a_token_that_could_not_stand_in_a_header_is_refused() {
        for bad in ["", "t-\r\nX: y", "t-é"] {
            let fake = Fake::start(move |_, _| Reply::token(bad)).await;
            let answer = tokens(&fake).current().await;
            assert!(
                matches!(answer, Err(ApiError::Malformed { .. })),
                "{bad:?}: {answer:?}"
            );
        }
    }
}
