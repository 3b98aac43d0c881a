//! Named ways in which this Feishu misbehaves, and the list of those that are
//! armed. Arming is all that happens here; the servers ask and obey.

use serde::{Deserialize, Serialize};
use serde_json::Value;

const MAX_ARMED: usize = 256;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// The TCP connection ends (FIN), without a close frame.
    Drop,
    /// The TCP connection is reset (RST).
    Reset,
    /// A close frame with this code, then the end.
    Close {
        code: u16,
        #[serde(default)]
        reason: String,
    },
    /// TCP stays open and nothing is ever answered again. With `ghost` the
    /// connection stays registered even after the client has gone.
    HalfOpen {
        #[serde(default)]
        ghost: bool,
    },
    /// Neither application nor WebSocket pings are answered.
    SwallowPongs,
    /// Data frames are counted as sent, and never written.
    SwallowEvents,
    /// Application pongs carry this text instead of the configuration.
    Pong { payload: String },

    /// A binary message that is no frame: these bytes, as hex.
    Garbage { hex: String },
    /// A text message.
    TextMessage { text: String },
    /// A data frame with a payload of this many bytes.
    OversizedFrame { bytes: usize },
    /// A control frame of this type, e.g. `ping`.
    ControlFrame { r#type: String },
    /// An empty frame with this method, e.g. 2.
    Method { method: i32 },

    /// The upgrade is answered with these instead of 101.
    RefuseHandshake {
        http: u16,
        #[serde(default)]
        status: Option<i64>,
        #[serde(default)]
        autherrcode: Option<i64>,
        #[serde(default)]
        msg: String,
    },
    /// The upgrade is never answered.
    HandshakeHang,
    /// The upgrade is answered with 302.
    Redirect { location: String },
    /// An event is written in the same segment as the 101: this payload, or
    /// a chat message.
    EventBehindHandshake {
        #[serde(default)]
        payload: Option<Value>,
    },

    /// Discovery answers HTTP 200 with this code.
    DiscoveryError {
        code: i64,
        #[serde(default)]
        msg: String,
        #[serde(default)]
        with_data: bool,
    },
    /// Discovery answers this status with an HTML body.
    DiscoveryHttp {
        status: u16,
        #[serde(default)]
        body: String,
    },
    /// Discovery is never answered.
    DiscoveryHang,
    /// Discovery hands out this text as URL.
    DiscoveryBadUrl { url: String },
    /// Discovery hands out these as `ClientConfig`; null leaves it out.
    DiscoveryConfig { config: Value },
    /// The URL carries exactly these query parameters, in this order.
    DiscoveryQuery { order: Vec<String> },

    /// The same event is pushed a second time under a new frame.
    Duplicate,
    /// The next event is cut into parts.
    Fragments(Fragments),
    /// The `type` header of the next event, e.g. `card` or `foo`.
    TypeHeader { value: String },
    /// Headers left out of the next event.
    MissingHeaders { names: Vec<String> },

    /// A REST call is answered this much later. For this and every fault with
    /// a `path`: it must occur in `METHOD /path`; empty is every call.
    SlowRest {
        ms: u64,
        #[serde(default)]
        path: String,
    },
    /// A REST call is never answered.
    RestHang {
        #[serde(default)]
        path: String,
    },
    /// A REST call is refused with this code; nothing is done.
    RestError {
        #[serde(default)]
        path: String,
        code: i64,
        #[serde(default = "bad_request")]
        http: u16,
        #[serde(default)]
        msg: String,
    },
    /// A REST call is answered with this status and an HTML body.
    RestHttp {
        #[serde(default)]
        path: String,
        status: u16,
        #[serde(default)]
        body: String,
    },
    /// A REST call finds its token expired, whatever it is.
    ExpiredToken,
    /// The gateway's limit: HTTP 429, code 99991400, reset header.
    RateLimit {
        #[serde(default)]
        path: String,
        #[serde(default = "one_second")]
        reset: u64,
    },
    /// The message is created and the connection is cut before the answer.
    SendCreatedButReplyLost,
    /// A card that holds this component is refused (230099).
    LayoutRefused { component: String },

    /// A form's submit comes without the value of its button.
    SubmitWithoutValue,
    /// The keys of a button's value that are null do not come back.
    NullsDropped,
    /// A button's value comes back as JSON text.
    ValueAsText,
    /// A choice of several comes back as JSON text.
    ChoicesAsText,
    /// The ids of whoever tapped stand in an object, `operator.user_id`.
    OperatorNested,
    /// The tap is made on the copy that is pinned on top of the chat.
    Pinned,
    /// The card in the answer to a tap is refused (200673): only the person
    /// sees that.
    CallbackCardRefused,
}

fn bad_request() -> u16 {
    400
}

fn one_second() -> u64 {
    1
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fragments {
    pub count: usize,
    #[serde(default)]
    pub order: FragmentOrder,
    #[serde(default)]
    pub flaw: Option<Flaw>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FragmentOrder {
    #[default]
    InOrder,
    Reversed,
    Shuffled,
}

/// What is wrong with a set of fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// The last part in order is never sent.
    Missing,
    /// The first part comes twice in a row.
    DuplicateBefore,
    /// The first part comes again after the last.
    DuplicateAfter,
    /// An empty part stands between the others.
    EmptyPart,
    /// Every part says that there are 10^9.
    HugeSum,
    /// The first part says it is number `sum`.
    SeqBeyondSum,
    /// The first part's `sum` and `seq` are words.
    NotNumeric,
    /// The second part says that there is one more.
    ChangingSum,
}

/// When a fault that cuts a connection strikes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// At once on every live connection, then on each new one.
    #[default]
    Now,
    /// Right after the next event was written.
    Event,
    /// When the next reply arrives, which is thrown away.
    Reply,
}

/// A fault, how often, where and when.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Armed {
    #[serde(flatten)]
    pub fault: Fault,
    /// `None` is until cleared.
    pub times: Option<u32>,
    /// `None` is every connection.
    pub connection: Option<u64>,
    pub at: At,
}

impl Armed {
    pub fn once(fault: Fault) -> Self {
        Self::times(fault, 1)
    }

    pub fn times(fault: Fault, times: u32) -> Self {
        Self {
            times: Some(times),
            ..Self::always(fault)
        }
    }

    pub fn always(fault: Fault) -> Self {
        Self {
            fault,
            times: None,
            connection: None,
            at: At::Now,
        }
    }

    #[must_use]
    pub fn on(self, connection: u64) -> Self {
        Self {
            connection: Some(connection),
            ..self
        }
    }

    #[must_use]
    pub fn at(self, at: At) -> Self {
        Self { at, ..self }
    }

    /// Reads `{"fault": "...", "times": 1 | "always", "connection": n, "at": "event", ...}`.
    pub(in crate::simulator) fn from_json(mut value: Value) -> Result<Self, String> {
        let map = value.as_object_mut().ok_or("a fault is an object")?;
        let times = match map.remove("times") {
            None => Some(1),
            Some(Value::String(word)) if word == "always" => None,
            Some(number) => Some(
                number
                    .as_u64()
                    .and_then(|n| u32::try_from(n).ok())
                    .ok_or("`times` is a number or \"always\"")?,
            ),
        };
        let connection = match map.remove("connection") {
            None | Some(Value::Null) => None,
            Some(number) => Some(number.as_u64().ok_or("`connection` is a number")?),
        };
        let at = match map.remove("at") {
            None => At::Now,
            Some(word) => serde_json::from_value(word).map_err(|e| e.to_string())?,
        };
        let fault = serde_json::from_value(value).map_err(|e| e.to_string())?;
        Ok(Self {
            fault,
            times,
            connection,
            at,
        })
    }
}

impl Fault {
    /// Ends or freezes a connection.
    pub(in crate::simulator) fn cuts(&self) -> bool {
        matches!(
            self,
            Self::Drop | Self::Reset | Self::Close { .. } | Self::HalfOpen { .. }
        )
    }

    /// Is written into a connection at once and leaves nothing armed there.
    pub(in crate::simulator) fn injects(&self) -> bool {
        matches!(
            self,
            Self::Garbage { .. }
                | Self::TextMessage { .. }
                | Self::OversizedFrame { .. }
                | Self::ControlFrame { .. }
                | Self::Method { .. }
        )
    }

    pub(in crate::simulator) fn refuses_handshake(&self) -> bool {
        matches!(
            self,
            Self::RefuseHandshake { .. } | Self::HandshakeHang | Self::Redirect { .. }
        )
    }

    pub(in crate::simulator) fn meets_discovery(&self) -> bool {
        matches!(
            self,
            Self::DiscoveryError { .. }
                | Self::DiscoveryHttp { .. }
                | Self::DiscoveryHang
                | Self::DiscoveryBadUrl { .. }
                | Self::DiscoveryConfig { .. }
                | Self::DiscoveryQuery { .. }
        )
    }

    /// Meets a REST call described as `METHOD /path`.
    pub(in crate::simulator) fn meets_call(&self, call: &str) -> bool {
        match self {
            Self::SlowRest { path, .. }
            | Self::RestHang { path }
            | Self::RestError { path, .. }
            | Self::RestHttp { path, .. }
            | Self::RateLimit { path, .. } => call.contains(path.as_str()),
            Self::ExpiredToken => !call.contains("/tenant_access_token/"),
            _ => false,
        }
    }
}

/// The armed faults, in the order they were armed.
#[derive(Debug, Default)]
pub(in crate::simulator) struct Faults(pub(in crate::simulator) Vec<Armed>);

impl Faults {
    pub(in crate::simulator) fn arm(&mut self, armed: Armed) -> Result<(), String> {
        if armed.times == Some(0) {
            return Ok(());
        }
        if self.0.len() >= MAX_ARMED {
            return Err(format!("{MAX_ARMED} faults are armed already"));
        }
        self.0.push(armed);
        Ok(())
    }

    /// Uses up one of the first armed fault that `fits`.
    pub(in crate::simulator) fn take(
        &mut self,
        connection: Option<u64>,
        at: At,
        fits: impl Fn(&Fault) -> bool,
    ) -> Option<Fault> {
        let index = self.0.iter().position(|armed| {
            armed.at == at
                && (armed.connection.is_none() || armed.connection == connection)
                && fits(&armed.fault)
        })?;
        let armed = &mut self.0[index];
        let fault = armed.fault.clone();
        if let Some(times) = &mut armed.times {
            *times -= 1;
            if *times == 0 {
                self.0.remove(index);
            }
        }
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fault_is_used_up_as_often_as_it_was_armed() {
        let mut faults = Faults::default();
        faults.arm(Armed::times(Fault::SwallowPongs, 2)).unwrap();
        faults.arm(Armed::always(Fault::SwallowEvents)).unwrap();
        let pongs = |f: &Fault| matches!(f, Fault::SwallowPongs);
        assert!(faults.take(None, At::Now, pongs).is_some());
        assert!(faults.take(Some(3), At::Now, pongs).is_some());
        assert!(faults.take(None, At::Now, pongs).is_none());
        for _ in 0..10 {
            assert!(
                faults
                    .take(None, At::Now, |f| *f == Fault::SwallowEvents)
                    .is_some()
            );
        }
        faults.0.clear();
        assert!(faults.0.is_empty());
    }

    #[test]
    fn a_fault_strikes_only_its_connection_and_moment() {
        let mut faults = Faults::default();
        faults
            .arm(Armed::once(Fault::Drop).on(2).at(At::Event))
            .unwrap();
        assert!(faults.take(Some(1), At::Event, Fault::cuts).is_none());
        assert!(faults.take(Some(2), At::Now, Fault::cuts).is_none());
        assert_eq!(
            faults.take(Some(2), At::Event, Fault::cuts),
            Some(Fault::Drop)
        );
    }

    #[test]
    fn faults_are_read_from_json() {
        let armed = Armed::from_json(json!({
            "fault": "fragments", "count": 3, "order": "reversed", "flaw": "empty_part", "times": "always"
        }));
        let expected = Fault::Fragments(Fragments {
            count: 3,
            order: FragmentOrder::Reversed,
            flaw: Some(Flaw::EmptyPart),
        });
        assert_eq!(armed, Ok(Armed::always(expected)));
        assert_eq!(
            Armed::from_json(json!({"fault": "drop", "connection": 4, "at": "reply"})),
            Ok(Armed::once(Fault::Drop).on(4).at(At::Reply))
        );
        for bad in [
            json!({"fault": "nonsense"}),
            json!({"fault": "slow_rest"}),
            json!({"fault": "slow_rest", "ms": 5, "colour": 1}),
            json!({"fault": "drop", "times": -1}),
            json!([]),
        ] {
            assert!(Armed::from_json(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_list_of_faults_is_bounded() {
        let mut faults = Faults::default();
        for _ in 0..MAX_ARMED {
            faults.arm(Armed::always(Fault::Drop)).unwrap();
        }
        assert!(faults.arm(Armed::always(Fault::Drop)).is_err());
    }

    #[test]
    fn an_expired_token_never_meets_the_token_call_itself() {
        assert!(Fault::ExpiredToken.meets_call("POST /open-apis/im/v1/messages"));
        let token = "POST /open-apis/auth/v3/tenant_access_token/internal";
        assert!(!Fault::ExpiredToken.meets_call(token));
    }
}
