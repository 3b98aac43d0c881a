//! Reading a settings file so that it means one thing to every reader, and
//! saying where it does not. Pure.

use std::collections::HashSet;

use jsonc_parser::ParseOptions;
use jsonc_parser::ast::{self, Value as Node};

/// Why a file's text must stay as it is, and where the reason stands in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} column {column}: {problem}")]
pub struct Untouchable {
    pub line: usize,
    pub column: usize,
    pub problem: String,
}

/// Exactly JSON.
pub(super) const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// JSON with comments and trailing commas.
pub(super) const COMMENTED: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    ..STRICT
};

/// A key that stands twice is two settings to two readers.
pub(super) fn check_keys(text: &str, node: &Node<'_>) -> Result<(), Untouchable> {
    match node {
        Node::Object(object) => {
            let mut names = HashSet::new();
            for ast::ObjectProp {
                name, value, range, ..
            } in &object.properties
            {
                if !names.insert(name.as_str()) {
                    return Err(at(text, range.start, "a key stands there twice"));
                }
                check_keys(text, value)?;
            }
            Ok(())
        }
        Node::Array(array) => array
            .elements
            .iter()
            .try_for_each(|element| check_keys(text, element)),
        Node::StringLit(_) | Node::NumberLit(_) | Node::BooleanLit(_) | Node::NullKeyword(_) => {
            Ok(())
        }
    }
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Untouchable> {
    std::str::from_utf8(bytes).map_err(|error| {
        let good = &bytes[..error.valid_up_to()];
        let good = std::str::from_utf8(good).unwrap_or_default();
        at(good, good.len(), "it is not UTF-8")
    })
}

/// A problem at a byte of the text.
pub(super) fn at(text: &str, byte: usize, problem: &str) -> Untouchable {
    let before = text.get(..byte).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Untouchable {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        problem: problem.to_owned(),
    }
}
