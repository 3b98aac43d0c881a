//! What a session's transcript grows by, line by line.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::watching::open_own;

/// As much is read at once; a longer line than this says nothing to us.
const MAX_READ: u64 = 16 << 20;

/// How far a file was read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tail {
    at: u64,
}

impl Tail {
    /// From `back` bytes before the end of the file on; `None` if it can't be
    /// read.
    pub(super) fn from_end(file: &Path, back: u64) -> Option<Self> {
        let (_, length) = open_own(file)?;
        Some(Self {
            at: length.saturating_sub(back),
        })
    }

    /// Hands over every line that was written whole since the last call. The
    /// first may have lost its beginning.
    pub(super) fn lines(&mut self, file: &Path, take: impl FnMut(&[u8])) {
        let Some((mut opened, length)) = open_own(file).filter(|(_, length)| *length > self.at)
        else {
            return;
        };
        let mut bytes = Vec::new();
        let sought = opened.seek(SeekFrom::Start(self.at));
        if sought.is_err() || opened.take(MAX_READ).read_to_end(&mut bytes).is_err() {
            return;
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let Some(whole) = whole else {
            if bytes.len() as u64 >= MAX_READ {
                self.at = length;
            }
            return;
        };
        self.at += whole as u64 + 1;
        bytes[..whole].split(|byte| *byte == b'\n').for_each(take);
    }
}
