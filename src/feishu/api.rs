//! One call to Feishu's REST API, carried through: token, time limit, and a
//! bounded number of tries where trying again can help. Every call made here
//! must be safe to repeat.

pub mod exchange;

use std::time::Duration;

use rand::RngExt as _;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use self::exchange::{Call, Exchange};
use super::error::{ApiError, MAX_WAIT};
use super::outbound::Outbound;
use super::secret::Secret;
use super::token::Tokens;

/// How long one try may take.
const TRY_WITHIN: Duration = Duration::from_secs(10);

/// How long one try of a download may take.
const DOWNLOAD_WITHIN: Duration = Duration::from_mins(1);

const MAX_TRIES: u32 = 5;

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// Added at random to waits the server asked for, so that callers held back
/// together do not come back together.
const SPREAD: Duration = Duration::from_millis(250);

/// Feishu's REST API as one app; cheap to clone.
#[derive(Debug, Clone)]
pub struct Api {
    exchange: Exchange,
    tokens: Tokens,
    app_id: String,
    budget: Duration,
}

impl Api {
    /// Speaks to `base`, such as `https://open.feishu.cn`, as `app_id`.
    pub fn new(
        outbound: &Outbound,
        base: Url,
        app_id: &str,
        app_secret: Secret,
    ) -> Result<Self, ApiError> {
        let exchange = Exchange::new(outbound, base)?;
        Ok(Self {
            tokens: Tokens::new(exchange.clone(), app_id, app_secret),
            exchange,
            app_id: app_id.to_owned(),
            budget: MAX_WAIT,
        })
    }

    /// The same API, with `budget` for a call and all its tries together.
    #[must_use]
    pub fn within(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    pub fn app_id(&self) -> &str {
        &self.app_id
    }

    /// Proves the credentials: gets a token, or says why there is none.
    pub async fn login(&self) -> Result<(), ApiError> {
        self.tokens.current().await.map(drop)
    }

    /// Makes a call and gives the whole envelope.
    pub async fn call(&self, call: &Call) -> Result<Value, ApiError> {
        self.persist(self.budget, TRY_WITHIN, |token, limit| async move {
            self.exchange.envelope(call, &token, limit).await
        })
        .await
    }

    /// Downloads a file of at most `max_bytes`.
    pub async fn download(&self, call: &Call, max_bytes: u64) -> Result<Vec<u8>, ApiError> {
        let budget = self.budget.max(DOWNLOAD_WITHIN);
        self.persist(budget, DOWNLOAD_WITHIN, |token, limit| async move {
            self.exchange.file(call, &token, limit, max_bytes).await
        })
        .await
    }

    async fn persist<T, F>(
        &self,
        budget: Duration,
        try_within: Duration,
        once: impl Fn(Secret, Duration) -> F,
    ) -> Result<T, ApiError>
    where
        F: Future<Output = Result<T, ApiError>>,
    {
        let deadline = Instant::now() + budget;
        let mut replayed = false;
        let mut tries = 0;
        loop {
            let error = match self.token_by(deadline).await {
                Err(error) => error,
                Ok(token) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    match once(token.clone(), try_within.min(left)).await {
                        Err(ApiError::StaleToken(answer)) if !replayed => {
                            tracing::debug!(
                                code = answer.code,
                                "access token refused; fetching another"
                            );
                            replayed = true;
                            self.tokens.forget(&token);
                            continue;
                        }
                        Err(error) => error,
                        Ok(done) => return Ok(done),
                    }
                }
            };
            tries += 1;
            let pause = pause(tries, error.retry_after(), rand::rng().random());
            if !error.is_retryable() || tries == MAX_TRIES || Instant::now() + pause >= deadline {
                return Err(error);
            }
            tracing::debug!(%error, ?pause, tries, "call to Feishu failed; trying again");
            tokio::time::sleep(pause).await;
        }
    }

    async fn token_by(&self, deadline: Instant) -> Result<Secret, ApiError> {
        match tokio::time::timeout_at(deadline, self.tokens.current()).await {
            Ok(token) => token,
            Err(_) => Err(self.exchange.timed_out()),
        }
    }
}

/// How long to wait after the given number of failed tries. `chance` is
/// between 0 and 1.
fn pause(tries: u32, asked: Option<Duration>, chance: f32) -> Duration {
    if let Some(asked) = asked {
        return asked.min(MAX_WAIT) + SPREAD.mul_f32(chance);
    }
    let doubled = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(10));
    doubled.min(LONGEST_PAUSE).mul_f32(0.5 + chance / 2.0)
}

#[cfg(test)]
mod tests;
