//! Bytes as lower-case hexadecimal digits, and back.

pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

/// Exactly `N` bytes, in digits of either case.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_nothing_else_is_read() {
        assert_eq!(encode(&[0, 15, 160, 255]), "000fa0ff");
        assert_eq!(decode("000Fa0ff"), Some([0, 15, 160, 255]));
        for text in [
            "",
            "0",
            "000fa0f",
            "000fa0ff0",
            "+00fa0ff",
            "é00fa0f",
            "g00fa0ff",
        ] {
            assert_eq!(decode::<4>(text), None, "{text}");
        }
    }
}
