//! Cuts a child's output into lines and never keeps more than one line's cap:
//! what is longer is dropped up to its newline and told.

/// A screenshot read by the agent makes a line of several MiB; more than this
/// is nothing a session needs.
pub const MAX_LINE: usize = 16 << 20;
const HEAD: usize = 256;

#[derive(Debug, PartialEq, Eq)]
pub enum Cut {
    Line(Vec<u8>),
    TooLong {
        bytes: usize,
        /// How it began: enough to tell what kind of line it was.
        head: Vec<u8>,
    },
}

#[derive(Debug)]
pub struct Lines {
    max: usize,
    held: Vec<u8>,
    /// How far `held` was searched for a newline.
    seen: usize,
    /// Bytes of a line over the cap that were dropped so far.
    dropped: usize,
    head: Vec<u8>,
}

impl Lines {
    pub fn new(max: usize) -> Self {
        Self {
            max,
            held: Vec::new(),
            seen: 0,
            dropped: 0,
            head: Vec::new(),
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next whole line, without its newline. Call until `None` after
    /// every push.
    pub fn next_cut(&mut self) -> Option<Cut> {
        let Some(at) = self.held[self.seen..].iter().position(|b| *b == b'\n') else {
            self.seen = self.held.len();
            if self.held.len() > self.max || self.dropped > 0 {
                self.drop_held();
            }
            return None;
        };
        let end = self.seen + at;
        let rest = self.held.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.held, rest);
        self.seen = 0;
        line.truncate(end);
        if self.dropped == 0 && line.len() <= self.max {
            return Some(Cut::Line(line));
        }
        let rest = std::mem::replace(&mut self.held, line);
        self.drop_held();
        self.held = rest;
        Some(Cut::TooLong {
            bytes: std::mem::take(&mut self.dropped),
            head: std::mem::take(&mut self.head),
        })
    }

    fn drop_held(&mut self) {
        let room = HEAD.saturating_sub(self.head.len());
        self.head.extend(self.held.iter().take(room));
        self.dropped += self.held.len();
        self.held = Vec::new();
        self.seen = 0;
    }

    /// The last line, when the child ended without a newline.
    pub fn finish(&mut self) -> Option<Cut> {
        if self.held.is_empty() && self.dropped == 0 {
            return None;
        }
        self.push(b"\n");
        self.next_cut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(max: usize, parts: &[&[u8]]) -> Vec<Cut> {
        let mut lines = Lines::new(max);
        let mut out = Vec::new();
        for part in parts {
            lines.push(part);
            out.extend(std::iter::from_fn(|| lines.next_cut()));
        }
        out.extend(lines.finish());
        out
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_arrive() {
        let text = b"{\"a\":1}\n\n{\"b\":\"x\"}\nlast";
        let whole = cuts(100, &[text]);
        assert_eq!(whole.len(), 4);
        for size in 1..text.len() {
            let parts: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(cuts(100, &parts), whole, "in parts of {size}");
        }
    }

    #[test]
    fn a_line_over_the_cap_is_told_and_the_next_one_still_read() {
        let mut lines = Lines::new(8);
        for _ in 0..1_000 {
            lines.push(b"0123456789");
            assert_eq!(lines.next_cut(), None);
            assert!(lines.held.capacity() <= 64, "nothing is hoarded");
        }
        lines.push(b"\nnext\n");
        let head = b"0123456789".repeat(26)[..HEAD].to_vec();
        assert_eq!(
            lines.next_cut(),
            Some(Cut::TooLong {
                bytes: 10_000,
                head
            })
        );
        assert_eq!(lines.next_cut(), Some(Cut::Line(b"next".to_vec())));
    }

    #[test]
    fn a_line_at_the_cap_is_whole_and_one_byte_more_is_not() {
        assert_eq!(cuts(4, &[b"1234\n"]), [Cut::Line(b"1234".to_vec())]);
        assert_eq!(
            cuts(4, &[b"12345\n"]),
            [Cut::TooLong {
                bytes: 5,
                head: b"12345".to_vec()
            }]
        );
    }
}
