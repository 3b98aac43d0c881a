//! Finds the end of a bare JSON object in a stream without parsing it, each
//! byte looked at once. Pure. Leaves judging the JSON to the parser.

use super::WireError;

/// Bytes that arrived so far, up to the end of one object.
#[derive(Debug)]
pub struct Scanner {
    bytes: Vec<u8>,
    seen: usize,
    start: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    cap: usize,
}

impl Scanner {
    pub fn new(cap: usize) -> Self {
        Self {
            bytes: Vec::new(),
            seen: 0,
            start: 0,
            depth: 0,
            in_string: false,
            escaped: false,
            cap,
        }
    }

    /// Where to read into; call [`Scanner::next_object`] after every read.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How much more a peer may send before it is cut off.
    pub fn room(&self) -> usize {
        (self.cap + 1).saturating_sub(self.bytes.len())
    }

    /// Cuts out the first complete object, or says `None` while it is
    /// incomplete. What follows it stays for the next call.
    pub fn next_object(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        while let Some(&byte) = self.bytes.get(self.seen) {
            self.seen += 1;
            if self.depth == 0 {
                match byte {
                    b' ' | b'\t' | b'\r' | b'\n' => self.start = self.seen,
                    b'{' => self.depth = 1,
                    _ => {
                        self.start = self.seen;
                        return Err(WireError::NotAnObject);
                    }
                }
            } else if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth -= 1,
                    _ => {}
                }
                if self.depth == 0 {
                    return self.cut().map(Some);
                }
            }
        }
        if self.bytes.len() > self.cap {
            return Err(WireError::TooLarge(self.cap));
        }
        Ok(None)
    }

    /// What came after the last object cut out.
    pub fn into_rest(self) -> Vec<u8> {
        self.bytes
    }

    fn cut(&mut self) -> Result<Vec<u8>, WireError> {
        let rest = self.bytes.split_off(self.seen);
        let mut object = std::mem::replace(&mut self.bytes, rest);
        object.drain(..self.start);
        self.seen = 0;
        self.start = 0;
        if object.len() > self.cap {
            return Err(WireError::TooLarge(self.cap));
        }
        Ok(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(bytes: &[u8]) -> (Result<Option<Vec<u8>>, WireError>, Vec<u8>) {
        let mut scanner = Scanner::new(1000);
        scanner.buffer().extend_from_slice(bytes);
        let found = scanner.next_object();
        (found, scanner.into_rest())
    }

    #[test]
    fn an_object_ends_where_its_brace_closes() {
        let table: [(&str, &str, &str); 5] = [
            (r#"{"a":1}"#, r#"{"a":1}"#, ""),
            (" \n{}\n", "{}", "\n"),
            (r#"{"a":"}\"}"}{"b""#, r#"{"a":"}\"}"}"#, r#"{"b""#),
            (r#"{"a":[{"b":"\\"}]}x"#, r#"{"a":[{"b":"\\"}]}"#, "x"),
            ("{\"a\":\"é}\"}\0\0\0\u{2}", "{\"a\":\"é}\"}", "\0\0\0\u{2}"),
        ];
        for (input, object, rest) in table {
            let (found, left) = scan(input.as_bytes());
            assert_eq!(found, Ok(Some(object.as_bytes().to_vec())), "{input:?}");
            assert_eq!(left, rest.as_bytes(), "{input:?}");
        }
        for bad in ["x", "[1]", "\"{}\"", "\0\0\0\u{2}{}", "\u{feff}{}"] {
            assert_eq!(scan(bad.as_bytes()).0, Err(WireError::NotAnObject));
        }
    }

    #[test]
    fn one_byte_at_a_time_gives_the_same_objects() {
        let stream = br#"{"a":"x}\\"} {"b":{"c":[1,"]"]}}"#;
        let mut scanner = Scanner::new(100);
        let mut found = Vec::new();
        for byte in stream {
            scanner.buffer().push(*byte);
            found.extend(scanner.next_object().unwrap());
        }
        assert_eq!(found, [&stream[..12], &stream[13..]]);
    }

    #[test]
    fn what_exceeds_the_cap_is_refused_complete_or_not() {
        for bytes in [
            &b"{\"aaaaaaaaaaaa\":1}"[..],
            b"{\"aaaaaaaaaaaa",
            b"                ",
        ] {
            let mut scanner = Scanner::new(10);
            scanner.buffer().extend_from_slice(bytes);
            assert_eq!(scanner.next_object(), Err(WireError::TooLarge(10)));
        }
    }

    proptest! {
        #[test]
        fn every_proper_prefix_is_incomplete_and_every_object_is_found_whole(
            text in "\\PC{0,20}", key in "\\PC{0,10}"
        ) {
            let object = serde_json::json!({ key: [text] }).to_string().into_bytes();
            for end in 0..object.len() {
                prop_assert_eq!(scan(&object[..end]).0, Ok(None));
            }
            prop_assert_eq!(scan(&object).0, Ok(Some(object.clone())));
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut scanner = Scanner::new(200);
            scanner.buffer().extend_from_slice(&bytes);
            while let Ok(Some(object)) = scanner.next_object() {
                prop_assert!(object.len() <= 200);
            }
        }
    }
}
