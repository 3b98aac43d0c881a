//! One call to Feishu's REST API, carried through: token, time limit, and a
//! bounded number of tries where trying again can help. Every call made here
//! must be safe to repeat.

pub mod exchange;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use rand::RngExt as _;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use self::exchange::{ApiCall, ApiReply, Exchange};
use super::error::{ApiError, MAX_WAIT};
use super::outbound::Outbound;
use super::secret::Secret;
use super::token::Tokens;

/// How long one try may take.
const TRY_WITHIN: Duration = Duration::from_secs(10);

/// The first try has less: it may go out on a connection that died unseen.
const FIRST_TRY_WITHIN: Duration = Duration::from_secs(4);

/// How long one try of a download may take.
const DOWNLOAD_WITHIN: Duration = Duration::from_mins(1);

const MAX_TRIES: u32 = 5;

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// Added at random to waits the server asked for, so that callers held back
/// together do not come back together.
const SPREAD: Duration = Duration::from_millis(250);

/// Has somebody else make one try of a call: the time it has, and the largest
/// answer that is wanted.
pub type Errands = Arc<
    dyn Fn(ApiCall, Duration, u64) -> BoxFuture<'static, Result<ApiReply, ApiError>> + Send + Sync,
>;

/// Who makes the calls.
#[derive(Clone)]
enum Carrier {
    /// This process, which holds the app's secret.
    Https { exchange: Exchange, tokens: Tokens },
    /// Somebody who does.
    Errand(Errands),
}

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Https { .. } => "Https",
            Self::Errand(_) => "Errand",
        })
    }
}

/// Feishu's REST API as one app; cheap to clone.
#[derive(Debug, Clone)]
pub struct Api {
    carrier: Carrier,
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
        let tokens = Tokens::new(exchange.clone(), app_id, app_secret);
        Ok(Self {
            carrier: Carrier::Https { exchange, tokens },
            app_id: app_id.to_owned(),
            budget: MAX_WAIT,
        })
    }

    /// The API of an app whose secret somebody else holds.
    pub fn by_errand(app_id: &str, errands: Errands) -> Self {
        Self {
            carrier: Carrier::Errand(errands),
            app_id: app_id.to_owned(),
            budget: MAX_WAIT,
        }
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
        match &self.carrier {
            Carrier::Https { tokens, .. } => tokens.current().await.map(drop),
            Carrier::Errand(_) => {
                let call = ApiCall::get(&["open-apis", "bot", "v3", "info"]);
                self.call(&call).await.map(drop)
            }
        }
    }

    /// Makes a call and gives the whole envelope. One with a file has the time
    /// that takes.
    pub async fn call(&self, call: &ApiCall) -> Result<Value, ApiError> {
        let (budget, limits) = match call.upload {
            None => (self.budget, (FIRST_TRY_WITHIN, TRY_WITHIN)),
            Some(_) => (DOWNLOAD_WITHIN, (DOWNLOAD_WITHIN, DOWNLOAD_WITHIN)),
        };
        self.persist(budget, limits, |token, limit| async move {
            let reply = self.carrier.reply(call, &token, limit, 0).await?;
            reply.envelope_without(&token)
        })
        .await
    }

    /// Downloads a file of at most `max_bytes`.
    pub async fn download(&self, call: &ApiCall, max_bytes: u64) -> Result<Vec<u8>, ApiError> {
        let budget = self.budget.max(DOWNLOAD_WITHIN);
        let limits = (DOWNLOAD_WITHIN, DOWNLOAD_WITHIN);
        self.persist(budget, limits, |token, limit| async move {
            let reply = self.carrier.reply(call, &token, limit, max_bytes).await?;
            reply.file(&token, max_bytes)
        })
        .await
    }

    /// Makes one try for somebody else, who judges what comes back and tries
    /// again; that a token was no longer good is not their concern.
    pub async fn reply(
        &self,
        call: &ApiCall,
        limit: Duration,
        max_bytes: u64,
    ) -> Result<ApiReply, ApiError> {
        let deadline = Instant::now() + limit;
        let mut replayed = false;
        loop {
            let token = self.token_by(deadline).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            let reply = self.carrier.reply(call, &token, left, max_bytes).await?;
            if replayed || reply.file || !reply.is_of_stale_token() {
                return Ok(reply.without(&token));
            }
            replayed = true;
            self.carrier.forget(&token);
        }
    }

    async fn persist<T, F>(
        &self,
        budget: Duration,
        (first_within, try_within): (Duration, Duration),
        once: impl Fn(Secret, Duration) -> F,
    ) -> Result<T, ApiError>
    where
        F: Future<Output = Result<T, ApiError>>,
    {
        let deadline = Instant::now() + budget;
        let mut replayed = false;
        let mut tries = 0;
        let mut in_doubt = None;
        loop {
            let error = match self.token_by(deadline).await {
                Err(error) => error,
                Ok(token) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    let within = if tries == 0 { first_within } else { try_within };
                    match once(token.clone(), within.min(left)).await {
                        Err(ApiError::StaleToken(answer)) if !replayed => {
                            tracing::debug!(
                                code = answer.code,
                                "access token refused; fetching another"
                            );
                            replayed = true;
                            self.carrier.forget(&token);
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
                // That this try never left says nothing of those before it.
                let earlier = in_doubt.filter(|_| error.code().is_none());
                return Err(earlier.unwrap_or(error));
            }
            tracing::debug!(%error, ?pause, tries, "call to Feishu failed; trying again");
            in_doubt = Some(error).filter(ApiError::is_in_doubt).or(in_doubt);
            tokio::time::sleep(pause).await;
        }
    }

    async fn token_by(&self, deadline: Instant) -> Result<Secret, ApiError> {
        let Carrier::Https { exchange, tokens } = &self.carrier else {
            return Ok(Secret::new(""));
        };
        match tokio::time::timeout_at(deadline, tokens.current()).await {
            Ok(token) => token,
            Err(_) => Err(exchange.timed_out()),
        }
    }
}

impl Carrier {
    async fn reply(
        &self,
        call: &ApiCall,
        token: &Secret,
        limit: Duration,
        max_bytes: u64,
    ) -> Result<ApiReply, ApiError> {
        match self {
            Self::Https { exchange, .. } => exchange.reply(call, token, limit, max_bytes).await,
            Self::Errand(errands) => errands(call.clone(), limit, max_bytes).await,
        }
    }

    fn forget(&self, token: &Secret) {
        if let Self::Https { tokens, .. } = self {
            tokens.forget(token);
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
