//! RFC 6455 frames as a server reads and writes them. Written out here, not
//! taken from the client's library: the simulator must be able to hold back
//! a pong, and to disagree with that library. Does no I/O.

use prost::bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// Larger messages from a client are refused; Feishu's replies are far smaller.
const MAX_MESSAGE: usize = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::simulator) enum WsMessage {
    Text(Bytes),
    Binary(Bytes),
    Ping(Bytes),
    Pong(Bytes),
    Close { code: Option<u16>, reason: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::simulator) enum Opcode {
    Text = 1,
    Binary = 2,
    Close = 8,
    Pong = 10,
}

/// What a client may not send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::simulator) enum Malformed {
    #[error("a client frame must be masked")]
    Unmasked,
    #[error("a reserved bit is set without an extension")]
    ReservedBit,
    #[error("opcode {0} does not exist")]
    Opcode(u8),
    #[error("a control frame is fragmented or longer than 125 bytes")]
    Control,
    #[error("a continuation without a beginning, or a beginning inside a message")]
    Continuation,
    #[error("the message is too long")]
    TooLong,
}

/// Collects bytes until they are a message.
#[derive(Debug, Default)]
pub(in crate::simulator) struct Decoder {
    pub(in crate::simulator) inbox: BytesMut,
    partial: Option<(u8, BytesMut)>,
}

impl Decoder {
    /// The next whole message, or `None` until more bytes have come.
    pub(in crate::simulator) fn next(&mut self) -> Result<Option<WsMessage>, Malformed> {
        loop {
            let Some((fin, opcode, payload)) = self.frame()? else {
                return Ok(None);
            };
            match (opcode, self.partial.take()) {
                (8..=10, partial) => {
                    self.partial = partial;
                    return Ok(Some(control(opcode, payload)));
                }
                (0, Some((kind, mut whole))) => {
                    if whole.len() + payload.len() > MAX_MESSAGE {
                        return Err(Malformed::TooLong);
                    }
                    whole.extend_from_slice(&payload);
                    if fin {
                        return Ok(Some(data(kind, whole.freeze())));
                    }
                    self.partial = Some((kind, whole));
                }
                (1 | 2, None) if fin => return Ok(Some(data(opcode, payload))),
                (1 | 2, None) => self.partial = Some((opcode, BytesMut::from(&payload[..]))),
                _ => return Err(Malformed::Continuation),
            }
        }
    }

    fn frame(&mut self) -> Result<Option<(bool, u8, Bytes)>, Malformed> {
        let [first, second, rest @ ..] = &self.inbox[..] else {
            return Ok(None);
        };
        let (fin, opcode) = (first & 0x80 != 0, first & 0x0f);
        if first & 0x70 != 0 {
            return Err(Malformed::ReservedBit);
        }
        if !matches!(opcode, 0..=2 | 8..=10) {
            return Err(Malformed::Opcode(opcode));
        }
        if second & 0x80 == 0 {
            return Err(Malformed::Unmasked);
        }
        let short = second & 0x7f;
        if opcode >= 8 && (!fin || short > 125) {
            return Err(Malformed::Control);
        }
        let (extra, length) = match short {
            126 => match rest {
                [a, b, ..] => (2, u64::from(u16::from_be_bytes([*a, *b]))),
                _ => return Ok(None),
            },
            127 => match rest.first_chunk::<8>() {
                Some(bytes) => (8, u64::from_be_bytes(*bytes)),
                None => return Ok(None),
            },
            _ => (0, u64::from(short)),
        };
        let length = usize::try_from(length)
            .ok()
            .filter(|&l| l <= MAX_MESSAGE)
            .ok_or(Malformed::TooLong)?;
        let Some(mask) = rest.get(extra..).and_then(<[u8]>::first_chunk::<4>) else {
            return Ok(None);
        };
        let mask = *mask;
        let header = 2 + extra + 4;
        if self.inbox.len() < header + length {
            return Ok(None);
        }
        self.inbox.advance(header);
        let mut payload = self.inbox.split_to(length);
        for chunk in payload.chunks_mut(4) {
            for (byte, key) in chunk.iter_mut().zip(mask) {
                *byte ^= key;
            }
        }
        Ok(Some((fin, opcode, payload.freeze())))
    }
}

fn data(opcode: u8, payload: Bytes) -> WsMessage {
    if opcode == 1 {
        WsMessage::Text(payload)
    } else {
        WsMessage::Binary(payload)
    }
}

fn control(opcode: u8, payload: Bytes) -> WsMessage {
    match opcode {
        9 => WsMessage::Ping(payload),
        10 => WsMessage::Pong(payload),
        _ => WsMessage::Close {
            code: payload
                .first_chunk::<2>()
                .map(|bytes| u16::from_be_bytes(*bytes)),
            reason: String::from_utf8_lossy(payload.get(2..).unwrap_or_default()).into_owned(),
        },
    }
}

/// Appends one unfragmented frame; a server never masks.
pub(in crate::simulator) fn encode(opcode: Opcode, payload: &[u8], out: &mut BytesMut) {
    out.reserve(payload.len() + 10);
    out.put_u8(0x80 | opcode as u8);
    match payload.len() {
        length @ 0..=125 => out.put_u8(u8::try_from(length).unwrap_or(0)),
        length @ 126..=0xffff => {
            out.put_u8(126);
            out.put_u16(u16::try_from(length).unwrap_or(0));
        }
        length => {
            out.put_u8(127);
            out.put_u64(u64::try_from(length).unwrap_or(0));
        }
    }
    out.extend_from_slice(payload);
}

pub(super) fn encode_close(code: u16, reason: &str, out: &mut BytesMut) {
    let mut payload = code.to_be_bytes().to_vec();
    let mut end = reason.len().min(123);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    payload.extend_from_slice(&reason.as_bytes()[..end]);
    encode(Opcode::Close, &payload, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [0x11, 0x22, 0x33, 0x44];
        let mut out = vec![first];
        match payload.len() {
            n @ 0..=125 => out.push(0x80 | u8::try_from(n).unwrap()),
            n @ 126..=0xffff => {
                out.push(0xfe);
                out.extend(u16::try_from(n).unwrap().to_be_bytes());
            }
            n => {
                out.push(0xff);
                out.extend(u64::try_from(n).unwrap().to_be_bytes());
            }
        }
        out.extend(mask);
        out.extend(payload.iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m));
        out
    }

    fn decode(bytes: &[u8]) -> Result<Vec<WsMessage>, Malformed> {
        let mut decoder = Decoder::default();
        let mut messages = Vec::new();
        for byte in bytes {
            decoder.inbox.put_u8(*byte);
            while let Some(message) = decoder.next()? {
                messages.push(message);
            }
        }
        Ok(messages)
    }

    #[test]
    fn messages_of_every_length_form_come_back() {
        for length in [0, 1, 125, 126, 0xffff, 0x1_0000] {
            let payload = vec![7_u8; length];
            let expected = vec![WsMessage::Binary(payload.clone().into())];
            assert_eq!(decode(&masked(0x82, &payload)), Ok(expected), "{length}");
        }
    }

    #[test]
    fn a_control_frame_may_stand_between_fragments() {
        let mut bytes = masked(0x01, b"he");
        bytes.extend(masked(0x89, b"p"));
        bytes.extend(masked(0x80, b"llo"));
        let expected = vec![
            WsMessage::Ping(Bytes::from_static(b"p")),
            WsMessage::Text(Bytes::from_static(b"hello")),
        ];
        assert_eq!(decode(&bytes), Ok(expected));
    }

    #[test]
    fn what_the_rfc_forbids_is_refused() {
        let long_ping = masked(0x89, &[0; 126]);
        let cases: [(&[u8], Malformed); 7] = [
            (&[0x82, 0x01, 0x00], Malformed::Unmasked),
            (&[0xc2, 0x80], Malformed::ReservedBit),
            (&[0x83, 0x80], Malformed::Opcode(3)),
            (&[0x09, 0x80], Malformed::Control),
            (&long_ping, Malformed::Control),
            (&[0x80, 0x80, 0, 0, 0, 0], Malformed::Continuation),
            (&[0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0], Malformed::TooLong),
        ];
        for (bytes, expected) in cases {
            assert_eq!(decode(bytes), Err(expected), "{bytes:x?}");
        }
    }

    #[test]
    fn a_close_carries_its_code_and_reason() {
        let mut payload = 1001_u16.to_be_bytes().to_vec();
        payload.extend(b"bye");
        let expected = vec![WsMessage::Close {
            code: Some(1001),
            reason: "bye".to_owned(),
        }];
        assert_eq!(decode(&masked(0x88, &payload)), Ok(expected));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn every_prefix_of_a_message_is_no_message(payload in proptest::collection::vec(any::<u8>(), 0..300)) {
            let bytes = masked(0x82, &payload);
            for end in 0..bytes.len() {
                prop_assert_eq!(decode(&bytes[..end]), Ok(Vec::new()));
            }
        }
    }
}
