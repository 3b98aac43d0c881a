//! A text that must never be seen: the app secret, an access token. It prints
//! as a placeholder and gives its content only to who asks for it by name.

use std::fmt;

/// A secret text; `Debug` never shows it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with every occurrence of this secret made unreadable.
    pub fn scrub(&self, text: &str) -> String {
        if self.0.is_empty() {
            text.to_owned()
        } else {
            text.replace(&*self.0, "(secret)")
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_a_placeholder() {
        assert_eq!(
            format!("{:?}", Some(Secret::new("canary"))),
            "Some((secret))"
        );
    }

    #[test]
    fn scrubbing_hides_every_occurrence_and_an_empty_secret_changes_nothing() {
        assert_eq!(Secret::new("ab").scrub("ab-x-ab"), "(secret)-x-(secret)");
        assert_eq!(Secret::new("").scrub("text"), "text");
    }
}
