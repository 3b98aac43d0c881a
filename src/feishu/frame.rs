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
    // What stands in a group is not the frame's own.
    let mut groups = 0_usize;
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        match tag {
            0x08 | 0x10 | 0x18 | 0x20 if groups == 0 => {
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
                3 => groups += 1,
                4 => groups = groups.checked_sub(1)?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use prost::bytes::Bytes;
    use std::collections::HashMap;

    // Frames as the official clients write and read them.
    const PING: &str = "0800100018f681801020002a0c0a0474797065120470696e67";
    const PONG_EMPTY: &str = "0800100018f681801020002a0c0a04747970651204706f6e67";
    const PONG_CFG: &str = "0800100018f681801020002a0c0a04747970651204706f6e6742547b225265636f6e6e656374436f756e74223a2d312c225265636f6e6e656374496e74657276616c223a3132302c225265636f6e6e6563744e6f6e6365223a33302c2250696e67496e74657276616c223a3132307d";
    const CLICK: &str = "0807102a18f681801020012a1a0a0974696d657374616d70120d313731383030303030303132332a0d0a047479706512056576656e742a1b0a0a6d6573736167655f6964120d35633163396431652d303030312a080a0373756d1201312a080a037365711201302a100a0874726163655f6964120474722d312a170a0b696e7374616e63655f69641208696e73742d416243429a037b22736368656d61223a22322e30222c22686561646572223a7b226576656e745f6964223a226637393834663235313038663831333737323262623633636565393237653636222c22746f6b656e223a2276746f6b222c226372656174655f74696d65223a2231373138303030303030303030303030222c226576656e745f74797065223a22636172642e616374696f6e2e74726967676572222c2274656e616e745f6b6579223a227431222c226170705f6964223a22636c695f61316232633364346535663630373138227d2c226576656e74223a7b226f70657261746f72223a7b226f70656e5f6964223a226f755f31227d2c22746f6b656e223a22632d31222c22616374696f6e223a7b2276616c7565223a7b22616374696f6e223a22616c6c6f77222c22726571756573745f6964223a227231227d2c22746167223a22627574746f6e227d2c22686f7374223a22696d5f6d657373616765222c22636f6e74657874223a7b226f70656e5f6d6573736167655f6964223a226f6d5f31222c226f70656e5f636861745f6964223a226f635f31227d7d7d4a0e32303234303631304c4f474e4557";
    const RESP: &str = "0807102a18f681801020012a1a0a0974696d657374616d70120d313731383030303030303132332a0d0a047479706512056576656e742a1b0a0a6d6573736167655f6964120d35633163396431652d303030312a080a0373756d1201312a080a037365711201302a100a0874726163655f6964120474722d312a170a0b696e7374616e63655f69641208696e73742d4162432a0c0a0662697a5f72741202313242627b22636f6465223a3230302c2264617461223a2265794a306232467a6443493665794a306558426c496a6f696333566a5932567a63794973496d4e76626e526c626e51694f694c6c74374c6d69626e6c6834626f7635446f6f5977696658303d227d4a0e32303234303631304c4f474e4557";
    const RESP_ACK: &str = "0807102a18f681801020012a1a0a0974696d657374616d70120d313731383030303030303132332a0d0a047479706512056576656e742a1b0a0a6d6573736167655f6964120d35633163396431652d303030312a080a0373756d1201312a080a037365711201302a100a0874726163655f6964120474722d312a170a0b696e7374616e63655f69641208696e73742d4162432a0b0a0662697a5f7274120130420c7b22636f6465223a3230307d4a0e32303234303631304c4f474e4557";
    const RESP_ERR: &str = "0807102a18f681801020012a1a0a0974696d657374616d70120d313731383030303030303132332a0d0a047479706512056576656e742a1b0a0a6d6573736167655f6964120d35633163396431652d303030312a080a0373756d1201312a080a037365711201302a100a0874726163655f6964120474722d312a170a0b696e7374616e63655f69641208696e73742d4162432a0b0a0662697a5f7274120133420c7b22636f6465223a3530307d4a0e32303234303631304c4f474e4557";
    const DATA_MIN: &str = "0801100218f681801020012a0d0a047479706512056576656e742a100a0a6d6573736167655f696412026d312a080a0373756d1201312a080a037365711201302a0e0a0874726163655f69641202743142107b22736368656d61223a22322e30227d";
    const RESP_MIN: &str = "0801100218f681801020012a0d0a047479706512056576656e742a100a0a6d6573736167655f696412026d312a080a0373756d1201312a080a037365711201302a0e0a0874726163655f6964120274312a0b0a0662697a5f7274120135424e7b22636f6465223a3230302c2264617461223a2265794a306232467a6443493665794a306558426c496a6f696157356d62794973496d4e76626e526c626e51694f694a7661794a3966513d3d227d";
    const CHUNK0: &str = "0801100218f681801020012a0d0a047479706512056576656e742a100a0a6d6573736167655f696412026d322a080a0373756d1201322a080a037365711201302a0e0a0874726163655f69641202743242167b22736368656d61223a22322e30222c226b223a22e4";
    const CHUNK1: &str = "0801100218f681801020012a0d0a047479706512056576656e742a100a0a6d6573736167655f696412026d322a080a0373756d1201322a080a037365711201312a0e0a0874726163655f6964120274324204b8ad227d";
    const NEG: &str = "0800100018ffffffffffffffffff0120002a0c0a0474797065120470696e67";
    const BIG: &str =
        "08ffffffffffffffffff0110ffffffffffffffffff0118f681801020012a0d0a047479706512056576656e74";
    /// A ping as the Go client writes it: empty optional fields and all.
    const PING_GO: &str = "0800100018f681801020002a0c0a0474797065120470696e6732003a004a00";
    /// A ping as a proto3 writer would have it, without the zero fields.
    const PING_BAD: &str = "18f68180102a0c0a0474797065120470696e67";

    fn bytes(hex: &str) -> Bytes {
        (0..hex.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
            .collect()
    }

    fn parse(hex: &str) -> Frame {
        Frame::parse(bytes(hex)).unwrap()
    }

    #[test]
    fn our_ping_is_byte_for_byte_the_official_one() {
        assert_eq!(Frame::ping(33_554_678).to_bytes(), bytes(PING));
    }

    #[test]
    fn golden_frames_survive_a_round_trip_unchanged() {
        for golden in [
            PING, PONG_EMPTY, PONG_CFG, CLICK, RESP, RESP_ACK, RESP_ERR, DATA_MIN, RESP_MIN,
            CHUNK0, CHUNK1, NEG, BIG,
        ] {
            assert_eq!(parse(golden).to_bytes(), bytes(golden), "{golden}");
        }
    }

    #[test]
    fn golden_frames_mean_what_the_fact_sheet_says() {
        let click = parse(CLICK);
        assert_eq!((click.seq_id, click.log_id), (7, 42));
        assert_eq!(click.header("instance_id"), Some("inst-AbC"));
        assert_eq!(click.log_id_new.as_deref(), Some("20240610LOGNEW"));
        assert_eq!(parse(NEG).service, -1);
        assert_eq!(parse(BIG).seq_id, u64::MAX);
        assert_eq!(parse(RESP_MIN).header("biz_rt"), Some("5"));
        let go = parse(PING_GO);
        assert_eq!(go.header("type"), Some("ping"));
        assert!(go.payload_type().is_empty());
    }

    #[test]
    fn a_frame_without_its_required_fields_is_refused() {
        assert_eq!(
            Frame::parse(bytes(PING_BAD)),
            Err(BadFrame::Missing("SeqID"))
        );
        assert_eq!(Frame::parse(Bytes::new()), Err(BadFrame::Missing("SeqID")));
        assert_eq!(
            Frame::parse(bytes("080010001801")),
            Err(BadFrame::Missing("method"))
        );
        for group in ["7b7c", "7b08001000180020007c"] {
            assert_eq!(
                Frame::parse(bytes(group)),
                Err(BadFrame::Missing("SeqID")),
                "{group}"
            );
        }
    }

    #[test]
    fn unknown_fields_and_any_order_are_read() {
        let mut extended = bytes(PING).to_vec();
        extended.extend([0x7a, 0x01, 0x00]);
        assert_eq!(Frame::parse(extended.into()).unwrap(), parse(PING));
        let reversed = "2a0c0a0474797065120470696e67200018f681801010000800";
        assert_eq!(parse(reversed), parse(PING));
    }

    #[test]
    fn the_first_of_two_headers_counts_and_values_are_untouched() {
        let mut frame = Frame::ping(1);
        frame.headers.insert(0, Header::new("type", " Pong "));
        let frame = Frame::parse(frame.to_bytes()).unwrap();
        assert_eq!(frame.header("type"), Some(" Pong "));
        assert_eq!(frame.header("TYPE"), None);
    }

    #[test]
    fn every_proper_prefix_is_refused_without_a_panic() {
        let whole = bytes(CLICK);
        let last_required = 11;
        for n in 0..whole.len() {
            let result = Frame::parse(whole.slice(..n));
            if n < last_required {
                assert!(result.is_err(), "{n}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_frame_survives_a_round_trip(
            seq_id in any::<u64>(), log_id in any::<u64>(), service in any::<i32>(),
            method in any::<i32>(), headers in prop::collection::vec((".{0,9}", ".{0,9}"), 0..5),
            payload in prop::option::of(prop::collection::vec(any::<u8>(), 0..99)),
            log_id_new in prop::option::of(".{0,9}"),
        ) {
            let frame = Frame {
                seq_id, log_id, service, method,
                headers: headers.into_iter().map(|(k, v)| Header::new(&k, v)).collect(),
                payload: payload.map(Bytes::from),
                log_id_new,
                ..Frame::default()
            };
            prop_assert_eq!(Frame::parse(frame.to_bytes()).unwrap(), frame);
        }

        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Frame::parse(bytes.into());
        }
    }

    /// One field as `proto/pbbp2.proto` declares it.
    #[derive(Debug)]
    struct Declared {
        label: String,
        kind: String,
        name: String,
    }

    /// Reads the messages of the .proto file: name → field number → field.
    fn schema() -> HashMap<String, HashMap<u64, Declared>> {
        let mut messages = HashMap::new();
        let mut current = String::new();
        for line in include_str!("../../proto/pbbp2.proto").lines() {
            let words: Vec<_> = line
                .split([' ', ';', '='])
                .filter(|w| !w.is_empty())
                .collect();
            match words[..] {
                ["message", name, "{"] => {
                    current = name.to_owned();
                    messages.insert(current.clone(), HashMap::new());
                }
                [
                    label @ ("required" | "optional" | "repeated"),
                    kind,
                    name,
                    number,
                ] => {
                    let field = Declared {
                        label: label.to_owned(),
                        kind: kind.to_owned(),
                        name: name.to_owned(),
                    };
                    let fields = messages.get_mut(&current).expect("a field in a message");
                    fields.insert(number.parse().expect("a field number"), field);
                }
                _ => {}
            }
        }
        messages
    }

    /// Decodes by the .proto file alone; panics where the bytes break it.
    fn decode(
        schema: &HashMap<String, HashMap<u64, Declared>>,
        message: &str,
        mut rest: &[u8],
    ) -> Vec<(String, String)> {
        let fields = &schema[message];
        let mut seen = Vec::new();
        while !rest.is_empty() {
            let tag = varint(&mut rest).expect("a tag");
            let field = fields.get(&(tag >> 3)).expect("a declared field");
            let value = match (tag & 7, field.kind.as_str()) {
                (0, "uint64") => varint(&mut rest).expect("a number").to_string(),
                (0, "int32") => {
                    let number = varint(&mut rest).expect("a number");
                    i64::from_le_bytes(number.to_le_bytes()).to_string()
                }
                (2, kind) => {
                    let length = varint(&mut rest).expect("a length");
                    let (value, tail) = rest.split_at(usize::try_from(length).unwrap());
                    rest = tail;
                    match kind {
                        "string" => String::from_utf8(value.to_vec()).expect("UTF-8"),
                        "bytes" => format!("{value:?}"),
                        nested => format!("{:?}", decode(schema, nested, value)),
                    }
                }
                (wire, kind) => panic!("wire type {wire} for {kind}"),
            };
            let again = seen.iter().any(|(name, _)| *name == field.name);
            assert!(!again || field.label == "repeated", "{} twice", field.name);
            seen.push((field.name.clone(), value));
        }
        for field in fields.values().filter(|f| f.label == "required") {
            assert!(
                seen.iter().any(|(name, _)| *name == field.name),
                "{} is required and missing",
                field.name
            );
        }
        seen
    }

    #[test]
    fn our_bytes_decode_by_the_written_contract() {
        let schema = schema();
        assert_eq!(schema["Frame"].len(), 9);
        let ping = decode(&schema, "Frame", &Frame::ping(5).to_bytes());
        let named = |name: &str| ping.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        assert_eq!(named("SeqID").as_deref(), Some("0"));
        assert_eq!(named("service").as_deref(), Some("5"));
        assert_eq!(
            named("headers").as_deref(),
            Some(r#"[("key", "type"), ("value", "ping")]"#)
        );
        let full = Frame {
            seq_id: u64::MAX,
            service: -1,
            method: DATA,
            headers: vec![Header::default()],
            payload_encoding: Some(String::new()),
            payload_type: Some("t".to_owned()),
            payload: Some(Bytes::from_static(b"p")),
            log_id_new: Some("n".to_owned()),
            ..Frame::default()
        };
        assert_eq!(decode(&schema, "Frame", &full.to_bytes()).len(), 9);
    }
}
