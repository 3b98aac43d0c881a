//! The documented names of sizes and colours.

use super::schema::{Names, among};

const SIZES: Names = "heading-0 heading-1 heading-2 heading-3 heading-4 heading normal notation \
    x-large large medium small x-small";

const COLOURS: Names = "default bg-white white grey blue wathet turquoise green lime yellow \
    sunflower orange red carmine violet purple indigo";

/// Also one that the card itself defines, which is named `cus-` and a number.
pub(super) fn is_text_size(text: &str) -> bool {
    among(SIZES, text) || text.starts_with("cus-")
}

/// `red`, `red-100` or `rgba(…)`.
pub(super) fn is_colour(text: &str) -> bool {
    let (name, shade) = text.rsplit_once('-').unwrap_or((text, ""));
    let shaded = shade.len() >= 2 && shade.bytes().all(|byte| byte.is_ascii_digit());
    among(COLOURS, text)
        || (shaded && among(COLOURS, name))
        || (text.starts_with("rgba(") && text.ends_with(')'))
}

/// Whole pixels, as many as a card may be wide.
pub(super) fn is_length(text: &str) -> bool {
    let pixels = text.strip_suffix("px").and_then(|n| n.parse::<u32>().ok());
    pixels.is_some_and(|pixels| (16..=999).contains(&pixels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_as_documented_and_nothing_else() {
        assert!(is_text_size("notation") && is_text_size("cus-0"));
        assert!(!is_text_size("tiny") && !is_text_size("12px"));
        for colour in ["grey", "red-100", "bg-white", "rgba(0,0,0,1)"] {
            assert!(is_colour(colour), "{colour}");
        }
        for colour in ["gray", "red-", "#fff", "mauve-100", "red-1x0"] {
            assert!(!is_colour(colour), "{colour}");
        }
        assert!(is_length("16px") && !is_length("15px") && !is_length("1000px"));
        assert!(!is_length("50%") && !is_length("auto"));
    }
}
