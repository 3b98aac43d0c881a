//! What a program said, for a message that is no card: nothing hidden, no
//! secret, and not too much of it.

use crate::text::escape::{Budget, Shape, fit};
use crate::text::secrets;

const BUDGET: Budget = Budget::new(1_500, 20);

/// The words as they may be quoted: their head and their tail if they are long.
pub fn quote(words: &str) -> String {
    fit(words, Shape::Code, &secrets::find(words), BUDGET).joined("\n…\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_short_and_seen() {
        assert_eq!(quote("boom: no such file"), "boom: no such file");
        let token = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
        let said = quote(&format!("a\u{202e}b\u{1b}[2K {token}"));
        assert!(
            !said.contains(token) && !said.contains('\u{202e}'),
            "{said}"
        );
        assert!(!said.contains('\u{1b}'), "{said}");
        let long = quote(&"line\n".repeat(10_000));
        assert!(long.len() < 2_000 && long.lines().count() < 30, "{long}");
    }
}
