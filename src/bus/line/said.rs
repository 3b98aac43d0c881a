//! Where a line to the bus stands, and why there is none, in both languages.

use std::time::Instant;

use async_nats::ConnectErrorKind;

use crate::feishu::outbound::OutboundError;
use crate::text::Text;

/// Where the line stands.
#[derive(Debug, Clone, PartialEq)]
pub enum BusLineState {
    Dialing,
    Up {
        since: Instant,
        /// How many connections there were, this one included.
        connects: u64,
        server: String,
    },
    Waiting {
        until: Instant,
        why: Text,
        /// Only a person can change it.
        refused: bool,
    },
}

/// Why there is no connection.
pub(super) struct LineFailure {
    pub(super) why: Text,
    pub(super) refused: bool,
}

pub(super) const LOST: Text = Text::new("与总线的连接断开", "the connection to the bus was lost");
pub(super) const SILENT: Text = Text::new("总线没有回应", "the bus fell silent");
pub(super) const SLEPT_WELL: Text = Text::new("本机曾休眠", "this machine slept");

const NO_PASS: Text = Text::new(
    "总线不接受本机的通行证：可能已过期或被移除，请重新加入",
    "the bus does not accept this pass: it may be over or taken back, join again",
);

impl BusLineState {
    /// Whether the server does not take this pass, or no longer.
    pub fn refuses_pass(&self) -> bool {
        matches!(self, Self::Waiting { why, .. } if *why == NO_PASS)
    }
}

pub(super) fn unreached(why: &OutboundError) -> LineFailure {
    LineFailure {
        why: why.text(),
        refused: why.is_setting(),
    }
}

pub(super) fn not_let_in(why: &async_nats::ConnectError) -> LineFailure {
    let refused = matches!(
        why.kind(),
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication
    );
    let text = if refused {
        NO_PASS
    } else {
        Text::made(
            format!("总线未接受连接：{why}"),
            format!("the bus did not take the connection: {why}"),
        )
    };
    LineFailure { why: text, refused }
}

pub(super) fn complaint(why: &str) -> Text {
    Text::made(format!("总线：{why}"), format!("the bus says: {why}"))
}
