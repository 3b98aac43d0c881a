//! What a bus' server may send: lines that end, and messages no larger than
//! nod's own. The NATS client keeps whatever a server announces until it is
//! whole, so the bytes are counted before they reach it. Pure.

/// The longest line: a server's first, which names it and its cluster.
pub(super) const MAX_LINE: usize = 32 * 1024;
/// The largest message: what the bus' own configuration lets through.
pub(super) const MAX_PAYLOAD: usize = 1 << 20;
/// The end of a line, and of a message behind its bytes.
const END: &[u8] = b"\r\n";

/// Why a connection is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadServerFrame {
    #[error("its server sent a line longer than {MAX_LINE} bytes")]
    Line,
    #[error("its server announced a message larger than {MAX_PAYLOAD} bytes")]
    Payload,
}

/// Follows one connection.
#[derive(Debug, Default)]
pub(super) struct FrameGuard {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// What is still to come of a message, with its end.
    left: usize,
}

impl FrameGuard {
    /// Looks at the next bytes, cut anyhow.
    pub(super) fn check(&mut self, mut bytes: &[u8]) -> Result<(), BadServerFrame> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let skipped = self.left.min(bytes.len());
                self.left -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let next = bytes.iter().position(|b| *b == b'\n');
            let (piece, rest) = bytes.split_at(next.map_or(bytes.len(), |at| at + 1));
            if self.line.len() + piece.len() > MAX_LINE {
                return Err(BadServerFrame::Line);
            }
            self.line.extend_from_slice(piece);
            // A bare line feed ends nothing for the client either.
            if let Some(line) = self.line.strip_suffix(END) {
                self.left = announced(line)?;
                self.line.clear();
            }
            bytes = rest;
        }
        Ok(())
    }
}

/// How many bytes follow this line. What can't be read is the client's to
/// refuse: it reads no further then.
fn announced(line: &[u8]) -> Result<usize, BadServerFrame> {
    if !line.starts_with(b"MSG ") && !line.starts_with(b"HMSG ") {
        return Ok(0);
    }
    let line = String::from_utf8_lossy(line);
    let size = line.split_whitespace().next_back().unwrap_or_default();
    match size.parse::<usize>() {
        Ok(size) if size <= MAX_PAYLOAD => Ok(size + END.len()),
        Ok(_) | Err(_) => Err(BadServerFrame::Payload),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same bytes at once, and one by one.
    fn checked(bytes: &[u8]) -> Result<(), BadServerFrame> {
        let at_once = FrameGuard::default().check(bytes);
        let mut guard = FrameGuard::default();
        let one_by_one = bytes.iter().try_for_each(|byte| guard.check(&[*byte]));
        assert_eq!(at_once, one_by_one);
        at_once
    }

    #[test]
    fn what_a_server_says_in_order_passes() {
        let message = format!("MSG a.b 1 {MAX_PAYLOAD}\r\n{}\r\n", "x".repeat(MAX_PAYLOAD));
        for good in [
            "INFO {}\r\nPING\r\n+OK\r\n-ERR 'x'\r\n",
            "MSG a 1 0\r\n\r\nPONG\r\n",
            // What looks like a line inside of a message is none.
            "MSG a 1 r 21\r\nMSG a 1 1500000000\r\n.\r\nPING\r\n",
            "HMSG a 1 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\nPING\r\n",
            &message,
        ] {
            assert_eq!(checked(good.as_bytes()), Ok(()), "{good:.60}");
        }
    }

    #[test]
    fn nothing_larger_than_nod_ever_sends_is_waited_for() {
        for bad in [
            "MSG a 1 1500000000\r\n".to_owned(),
            "HMSG a 1 12 1500000000\r\n".to_owned(),
            format!("MSG a 1 {}\r\n", MAX_PAYLOAD + 1),
            format!("MSG a 1 {}\r\n", u128::MAX),
            "MSG a 1 2\r\nhi\r\nMSG a 1 1500000000\r\n".to_owned(),
            "MSG a 1\t1500000000\r\n".to_owned(),
            "MSG \r\n".to_owned(),
        ] {
            assert_eq!(
                checked(bad.as_bytes()),
                Err(BadServerFrame::Payload),
                "{bad}"
            );
        }
        for endless in ["x", "INFO {", "MSG a 1 5", "\n", "x\n", "\r"] {
            let bad = endless.repeat(MAX_LINE / endless.len() + 1);
            assert_eq!(
                checked(bad.as_bytes()),
                Err(BadServerFrame::Line),
                "{endless:?}"
            );
        }
        let line = format!("{}\r\n", "x".repeat(MAX_LINE - 2));
        assert_eq!(checked(line.repeat(3).as_bytes()), Ok(()));
    }
}
