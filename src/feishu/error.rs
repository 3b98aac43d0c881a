//! What went wrong with a call to Feishu, by what the caller does next. Holds
//! Feishu's code, its words and its log id, never a token or what was sent.

use std::fmt;
use std::time::Duration;

use super::outbound::OutboundError;
use crate::text::one_line;

/// Feishu's words are cut here; the longest useful one lists missing scopes
/// and a console link.
const MAX_MESSAGE_CHARS: usize = 600;

/// The longest wait a server may ask for that is still believed.
pub const MAX_WAIT: Duration = Duration::from_secs(30);

/// A locked card is in the middle of somebody's click.
const CARD_LOCK: Duration = Duration::from_secs(1);

/// What Feishu said: its code, its words, and the id its support asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeishuAnswer {
    pub code: i64,
    pub msg: String,
    pub log_id: Option<String>,
}

impl FeishuAnswer {
    /// Makes the words fit for a log line: no control characters, bounded.
    pub fn new(code: i64, msg: &str, log_id: Option<&str>) -> Self {
        Self {
            code,
            msg: one_line(msg, MAX_MESSAGE_CHARS),
            log_id: log_id.map(|id| one_line(id, 80)),
        }
    }
}

impl fmt::Display for FeishuAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {} `{}`", self.code, self.msg)?;
        match &self.log_id {
            Some(id) => write!(f, ", log id {id}"),
            None => Ok(()),
        }
    }
}

/// What is wrong with a message's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentProblem {
    TooLong,
    Sensitive,
    DataLeak,
    /// The card's JSON; `detail` is the code inside Feishu's words.
    Card {
        detail: Option<i64>,
    },
    Parameter,
}

impl fmt::Display for ContentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("it is too long"),
            Self::Sensitive => f.write_str("it holds words the tenant forbids"),
            Self::DataLeak => f.write_str(
                "the tenant's data protection saw a phone number, an address or the like in it",
            ),
            Self::Card { detail: Some(code) } => write!(f, "the card is invalid, detail {code}"),
            Self::Card { detail: None } => f.write_str("the card is invalid"),
            Self::Parameter => f.write_str("a parameter is invalid"),
        }
    }
}

/// A failed call, named by what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// Try again, after this long if Feishu said how long.
    #[error("Feishu is busy: {answer}")]
    Retry {
        after: Option<Duration>,
        answer: FeishuAnswer,
    },
    /// Get a new token and repeat the call once.
    #[error("Feishu did not accept a fresh access token: {0}")]
    StaleToken(FeishuAnswer),
    /// Stop until the credentials change.
    #[error(
        "Feishu does not accept the app id and secret, check `FEISHU_APP_ID`, `FEISHU_APP_SECRET` and `FEISHU_DOMAIN`: {0}"
    )]
    BadCredentials(FeishuAnswer),
    /// Stop until somebody changes the app in the developer console.
    #[error("the Feishu app is not set up for this, {fix}: {answer}")]
    Setup {
        answer: FeishuAnswer,
        fix: &'static str,
    },
    /// Send it elsewhere or not at all.
    #[error("Feishu cannot deliver to this receiver, {why}: {answer}")]
    Recipient {
        answer: FeishuAnswer,
        why: &'static str,
    },
    /// Send something shorter or plainer.
    #[error("Feishu refused the content, {problem}: {answer}")]
    Content {
        answer: FeishuAnswer,
        problem: ContentProblem,
    },
    /// Forget the message.
    #[error("the message is gone or can no longer be changed: {0}")]
    Gone(FeishuAnswer),
    /// Stop everything that is not essential until the month is over.
    #[error("the tenant has used up its monthly quota of Feishu calls: {0}")]
    Quota(FeishuAnswer),
    /// Report it; repeating cannot help.
    #[error("Feishu refused the call: {0}")]
    Rejected(FeishuAnswer),
    /// The call did not get through.
    #[error(transparent)]
    Network(#[from] OutboundError),
    /// Somebody answered, but not Feishu's API.
    #[error("{what} with HTTP status {status}")]
    Malformed { status: u16, what: &'static str },
    /// A download is larger than the caller takes.
    #[error("the file is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    /// Too many calls are waiting for the same receiver or message.
    #[error("too many messages are waiting to be sent")]
    Crowded { after: Duration },
}

impl ApiError {
    /// How long to wait before trying again, where the answer tells.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Retry { after, .. } => *after,
            Self::Crowded { after } => Some(*after),
            _ => None,
        }
    }

    /// Whether the same call may succeed later with nobody doing anything.
    pub fn is_retryable(&self) -> bool {
        self.prospects().0
    }

    /// Whether the call, or an earlier try of it, may have been carried out
    /// all the same.
    pub fn is_in_doubt(&self) -> bool {
        self.prospects().1
    }

    /// Both of the above, for each kind at one place.
    fn prospects(&self) -> (bool, bool) {
        let is_lost = |error: &OutboundError| {
            matches!(
                error,
                OutboundError::Lost { .. } | OutboundError::TimedOut { .. }
            )
        };
        match self {
            Self::Retry { .. } => (true, true),
            Self::Crowded { .. } => (true, false),
            Self::StaleToken(_) => (false, true),
            Self::Network(error) => (error.is_passing(), is_lost(error)),
            Self::Malformed { status, .. } => (*status == 429 || *status >= 500, true),
            Self::BadCredentials(_)
            | Self::Setup { .. }
            | Self::Recipient { .. }
            | Self::Content { .. }
            | Self::Gone(_)
            | Self::Quota(_)
            | Self::Rejected(_)
            | Self::TooLarge { .. } => (false, false),
        }
    }

    /// Feishu's own code, where Feishu answered.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Retry { answer, .. }
            | Self::Setup { answer, .. }
            | Self::Recipient { answer, .. }
            | Self::Content { answer, .. }
            | Self::StaleToken(answer)
            | Self::BadCredentials(answer)
            | Self::Gone(answer)
            | Self::Quota(answer)
            | Self::Rejected(answer) => Some(answer.code),
            Self::Network(_)
            | Self::Malformed { .. }
            | Self::TooLarge { .. }
            | Self::Crowded { .. } => None,
        }
    }
}

/// Sorts a refusal by its code. `status` only decides for codes nobody has
/// documented; `after` is what the headers asked for.
pub fn classify(status: u16, after: Option<Duration>, answer: FeishuAnswer) -> ApiError {
    let after = after.map(|wait| wait.min(MAX_WAIT));
    let retry = |wait: Option<Duration>, answer| ApiError::Retry {
        after: after.or(wait),
        answer,
    };
    match answer.code {
        99_991_400 | 11_232 | 11_233 => retry(Some(Duration::from_secs(1)), answer),
        230_020 | 230_049 => retry(Some(Duration::from_millis(500)), answer),
        1 | 1500 | 2200 | 5000 | 10_101 | 10_500 | 300_000 => retry(None, answer),
        230_099 if is_locked(&answer.msg) => retry(Some(CARD_LOCK), answer),

        99_991_663 | 99_991_664 | 99_991_665 | 99_991_671 => ApiError::StaleToken(answer),
        10_003 | 10_012 | 10_013 | 10_014 | 10_015 | 99_991_543 => ApiError::BadCredentials(answer),
        99_991_403 => ApiError::Quota(answer),
        230_011 | 230_031 | 230_050 | 230_110 | 230_111 | 231_003 | 99_992_354 => {
            ApiError::Gone(answer)
        }
        _ => match (fix(answer.code), why(answer.code), problem(&answer)) {
            (Some(fix), _, _) => ApiError::Setup { answer, fix },
            (_, Some(why), _) => ApiError::Recipient { answer, why },
            (_, _, Some(problem)) => ApiError::Content { answer, problem },
            _ if status == 429 || status >= 500 => retry(None, answer),
            _ => ApiError::Rejected(answer),
        },
    }
}

/// Sorts a refusal of the credentials themselves: whatever is not Feishu's
/// own trouble means that they are wrong.
pub fn classify_login(status: u16, after: Option<Duration>, answer: FeishuAnswer) -> ApiError {
    match classify(status, after, answer) {
        ApiError::StaleToken(answer)
        | ApiError::Recipient { answer, .. }
        | ApiError::Content { answer, .. }
        | ApiError::Gone(answer)
        | ApiError::Rejected(answer) => ApiError::BadCredentials(answer),
        other => other,
    }
}

fn fix(code: i64) -> Option<&'static str> {
    Some(match code {
        99_991_401 => "switch its IP allow list off or add this machine's address",
        99_991_662 | 99_991_673 => "enable the app for this tenant",
        99_991_672 | 230_027 => "add the missing permission and publish a new version",
        99_992_361 => "use ids seen by this app: an open id is valid for one app only",
        230_006 => "enable its bot ability and publish a version",
        _ => return None,
    })
}

fn why(code: i64) -> Option<&'static str> {
    Some(match code {
        230_002 => "the bot is not in the group",
        230_013 => "the user is outside the app's availability range",
        230_018 => "the group forbids it",
        230_029 => "the user has left the company",
        230_034 | 99_992_351 | 99_992_352 | 99_992_353 => "the id does not exist",
        230_035 => "the bot has no permission to write there",
        230_038 => "it belongs to another tenant",
        230_053 => "the user has stopped the bot",
        230_054 => "this kind of message is not allowed there",
        230_071 | 230_072 => "it does not support replies in a topic",
        230_075 => "it is a secret chat",
        232_009 => "the group is dissolved",
        _ => return None,
    })
}

fn problem(answer: &FeishuAnswer) -> Option<ContentProblem> {
    Some(match answer.code {
        230_001 => ContentProblem::Parameter,
        230_022 => ContentProblem::Sensitive,
        230_025 => ContentProblem::TooLong,
        230_028 => ContentProblem::DataLeak,
        230_099 => ContentProblem::Card {
            detail: detail(&answer.msg),
        },
        200_830 | 200_861 | 200_621 => ContentProblem::Card {
            detail: Some(answer.code),
        },
        _ => return None,
    })
}

/// The code inside the words of a refused card, `… ErrCode: 200621; …`.
fn detail(msg: &str) -> Option<i64> {
    let (_, rest) = msg.split_once("ErrCode:")?;
    let digits = rest.trim_start();
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

/// One detail code stands for a locked card and for too many elements; only
/// the words tell which.
fn is_locked(msg: &str) -> bool {
    detail(msg) == Some(11_310) && msg.contains("lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(error: &ApiError) -> &'static str {
        match error {
            ApiError::Retry { .. } => "retry",
            ApiError::StaleToken(_) => "stale token",
            ApiError::BadCredentials(_) => "bad credentials",
            ApiError::Setup { .. } => "setup",
            ApiError::Recipient { .. } => "recipient",
            ApiError::Content { .. } => "content",
            ApiError::Gone(_) => "gone",
            ApiError::Quota(_) => "quota",
            ApiError::Rejected(_) => "rejected",
            ApiError::Network(_)
            | ApiError::Malformed { .. }
            | ApiError::TooLarge { .. }
            | ApiError::Crowded { .. } => "not an answer",
        }
    }

    fn classified(status: u16, code: i64, msg: &str) -> ApiError {
        classify(status, None, FeishuAnswer::new(code, msg, None))
    }

    #[test]
    fn every_documented_code_has_its_next_step() {
        let table: [(&str, &[i64]); 9] = [
            (
                "retry",
                &[
                    99_991_400, 230_020, 230_049, 2200, 1500, 5000, 300_000, 11_232, 11_233,
                    10_101, 10_500,
                ],
            ),
            (
                "stale token",
                &[99_991_663, 99_991_664, 99_991_665, 99_991_671],
            ),
            (
                "bad credentials",
                &[10_003, 10_012, 10_013, 10_014, 10_015, 99_991_543],
            ),
            (
                "setup",
                &[
                    99_991_401, 99_991_662, 99_991_673, 99_991_672, 230_006, 230_027, 99_992_361,
                ],
            ),
            (
                "recipient",
                &[
                    230_002, 230_013, 230_018, 230_029, 230_034, 230_035, 230_038, 230_053,
                    230_054, 230_075, 232_009, 230_071, 230_072, 99_992_351, 99_992_352,
                    99_992_353,
                ],
            ),
            (
                "content",
                &[230_001, 230_022, 230_025, 230_028, 230_099, 200_830],
            ),
            (
                "gone",
                &[
                    230_011, 230_110, 230_031, 231_003, 230_050, 230_111, 99_992_354,
                ],
            ),
            ("quota", &[99_991_403]),
            ("rejected", &[99_991_661, 99_992_402, 9499, 777]),
        ];
        for (expected, codes) in table {
            for &code in codes {
                let error = classified(400, code, "words");
                assert_eq!(kind(&error), expected, "code {code}");
                assert_eq!(error.code(), Some(code));
                assert_eq!(error.is_retryable(), expected == "retry", "code {code}");
                let in_doubt = ["retry", "stale token"].contains(&expected);
                assert_eq!(error.is_in_doubt(), in_doubt, "code {code}");
            }
        }
    }

    #[test]
    fn status_decides_only_for_unknown_codes() {
        assert_eq!(kind(&classified(503, 777, "")), "retry");
        assert_eq!(kind(&classified(429, 777, "")), "retry");
        assert_eq!(kind(&classified(503, 230_013, "")), "recipient");
        assert_eq!(kind(&classified(200, 99_991_400, "")), "retry");
    }

    #[test]
    fn refused_cards_are_told_apart_by_the_code_in_the_words() {
        let cases = [
            (
                "Failed to create card content, ext=ErrCode: 200621; ErrMsg: parse card json err",
                Some(200_621),
            ),
            (
                "ErrCode: 11310; ErrMsg: element exceeds the limit",
                Some(11_310),
            ),
            ("no detail at all", None),
            ("ErrCode: ", None),
            ("ErrCode: 99999999999999999999", None),
        ];
        for (msg, detail) in cases {
            let ApiError::Content { problem, .. } = classified(400, 230_099, msg) else {
                panic!("{msg} is about content");
            };
            assert_eq!(problem, ContentProblem::Card { detail }, "{msg}");
        }
    }

    #[test]
    fn a_locked_card_is_tried_again_after_a_second() {
        let error = classified(400, 230_099, "ErrCode: 11310; ErrMsg: card action is lock");
        assert!(error.is_retryable());
        assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn the_header_beats_our_guess_and_is_capped() {
        let answer = || FeishuAnswer::new(99_991_400, "limit", None);
        let after = |wait| classify(429, wait, answer()).retry_after();
        assert_eq!(after(None), Some(Duration::from_secs(1)));
        assert_eq!(
            after(Some(Duration::from_secs(7))),
            Some(Duration::from_secs(7))
        );
        assert_eq!(after(Some(Duration::from_hours(24))), Some(MAX_WAIT));
    }

    #[test]
    fn an_unknown_code_at_login_means_wrong_credentials_but_trouble_does_not() {
        let login = |code| classify_login(200, None, FeishuAnswer::new(code, "", None));
        assert_eq!(kind(&login(777)), "bad credentials");
        assert_eq!(kind(&login(230_001)), "bad credentials");
        assert_eq!(kind(&login(2200)), "retry");
        assert_eq!(kind(&login(99_991_400)), "retry");
        assert_eq!(kind(&login(99_991_401)), "setup");
    }

    #[test]
    fn words_of_feishu_cannot_break_a_log_line() {
        let answer = FeishuAnswer::new(
            1,
            &format!("a\nb\u{1b}[31m{}", "x".repeat(5000)),
            Some("l\ri"),
        );
        assert!(!answer.to_string().chars().any(char::is_control));
        assert_eq!(answer.msg.chars().count(), MAX_MESSAGE_CHARS);
    }
}
