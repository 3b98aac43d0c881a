//! A text that must not be seen: it prints as dots wherever it is printed.

use std::fmt;

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that must send or hash it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("•••")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::new("canary");
        assert!(!format!("{secret:?} {:#?}", Some(&secret)).contains("canary"));
        assert_eq!(secret.expose(), "canary");
    }
}
