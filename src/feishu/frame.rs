//! Feishu's frame on the long connection, as `proto/pbbp2.proto` writes it
//! down: proto2, so the required fields are on the wire even when zero.

use prost::Message as _;

pub const CONTROL: i32 = 0;
pub const DATA: i32 = 1;

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Header {
    #[prost(string, required, tag = "1")]
    pub key: String,
    #[prost(string, required, tag = "2")]
    pub value: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Frame {
    #[prost(uint64, required, tag = "1")]
    pub seq_id: u64,
    #[prost(uint64, required, tag = "2")]
    pub log_id: u64,
    #[prost(int32, required, tag = "3")]
    pub service: i32,
    #[prost(int32, required, tag = "4")]
    pub method: i32,
    #[prost(message, repeated, tag = "5")]
    pub headers: Vec<Header>,
    #[prost(string, optional, tag = "6")]
    pub payload_encoding: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub payload_type: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "8")]
    pub payload: Option<prost::bytes::Bytes>,
    #[prost(string, optional, tag = "9")]
    pub log_id_new: Option<String>,
}

/// A binary message that is no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    #[error("not a protobuf frame: {0}")]
    Malformed(String),
    #[error("the required field `{0}` is missing")]
    Missing(&'static str),
}

impl Frame {
    /// The application ping of a connection whose URL named `service`.
    pub fn ping(service: i32) -> Self {
        Self {
            service,
            method: CONTROL,
            headers: vec![Header::new("type", "ping")],
            ..Self::default()
        }
    }

    /// Decodes one binary message. prost takes a missing required field for
    /// zero; the official decoders refuse it, and so does this one.
    pub fn parse(bytes: prost::bytes::Bytes) -> Result<Self, BadFrame> {
        if let Some(missing) = missing_required(&bytes) {
            return Err(BadFrame::Missing(missing));
        }
        Self::decode(bytes).map_err(|e| BadFrame::Malformed(e.to_string()))
    }

    pub fn to_bytes(&self) -> prost::bytes::Bytes {
        self.encode_to_vec().into()
    }

    /// The first header of this name, as the Go, Python and Java clients read it.
    pub fn header(&self, key: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|h| h.key == key)
            .map(|h| h.value.as_str())
    }
}

impl Header {
    pub fn new(key: &str, value: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            value: value.into(),
        }
    }
}

/// Walks the top-level fields; a malformed walk is left to the decoder.
fn missing_required(bytes: &[u8]) -> Option<&'static str> {
    const REQUIRED: [&str; 4] = ["SeqID", "LogID", "service", "method"];
    let mut seen = [false; 4];
    let mut rest = bytes;
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        match tag {
            0x08 | 0x10 | 0x18 | 0x20 => {
                varint(&mut rest)?;
                seen[usize::try_from(tag / 8 - 1).unwrap_or(0)] = true;
            }
            _ => match tag & 7 {
                0 => {
                    varint(&mut rest)?;
                }
                1 => rest = rest.get(8..)?,
                2 => {
                    let length = usize::try_from(varint(&mut rest)?).ok()?;
                    rest = rest.get(length..)?;
                }
                5 => rest = rest.get(4..)?,
                _ => return None,
            },
        }
    }
    REQUIRED
        .into_iter()
        .zip(seen)
        .find_map(|(name, seen)| (!seen).then_some(name))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for (i, &byte) in rest.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            *rest = &rest[i + 1..];
            return Some(value);
        }
    }
    None
}
