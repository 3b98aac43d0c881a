//! A QR code for the terminal, two modules to a character. With colour it is
//! black on white on every terminal; without, it expects a dark one.

use qrcode::{Color, EcLevel, QrCode};
use std::fmt::Write as _;

/// Light modules around the code. The standard asks for four; two scan well
/// and keep a long link within 80 columns.
const QUIET: usize = 2;
/// What the standard asks for; a page has the room.
const STANDARD_QUIET: usize = 4;
const BLACK_ON_WHITE: &str = "\u{1b}[38;5;16;48;5;231m";
const RESET: &str = "\u{1b}[0m";

/// The lines of the code, or `None` for a text too long for one.
pub(in crate::cli) fn drawn(text: &str, colour: bool) -> Option<Vec<String>> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let width = code.width();
    let modules = code.to_colors();
    let side = width + 2 * QUIET;
    let is_dark = |x: usize, y: usize| {
        let inside = |n: usize| (QUIET..QUIET + width).contains(&n);
        inside(x) && inside(y) && modules[(y - QUIET) * width + x - QUIET] == Color::Dark
    };
    let row = |y: usize| {
        let drawn: String = (0..side)
            .map(|x| {
                // The ink is the dark part in colour and the light one without;
                // below an odd last row there is no ink in either.
                let ink = |y: usize| y < side && is_dark(x, y) == colour;
                match (ink(y), ink(y + 1)) {
                    (true, true) => '█',
                    (true, false) => '▀',
                    (false, true) => '▄',
                    (false, false) => ' ',
                }
            })
            .collect();
        if colour {
            format!("{BLACK_ON_WHITE}{drawn}{RESET}")
        } else {
            drawn
        }
    };
    Some((0..side).step_by(2).map(row).collect())
}

/// The code as a picture for a page.
pub(in crate::cli) fn svg(text: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let width = code.width();
    let side = width + 2 * STANDARD_QUIET;
    let mut path = String::new();
    for (at, _) in code
        .to_colors()
        .iter()
        .enumerate()
        .filter(|(_, module)| **module == Color::Dark)
    {
        let (x, y) = (at % width + STANDARD_QUIET, at / width + STANDARD_QUIET);
        let _ = write!(path, "M{x} {y}h1v1h-1z");
    }
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"QR\" \
         viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\"><path d=\"{path}\"/></svg>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ink(lines: &[String]) -> Vec<Vec<bool>> {
        let rows = lines.iter().flat_map(|line| {
            let line = line
                .trim_start_matches(BLACK_ON_WHITE)
                .trim_end_matches(RESET);
            let half = |upper: char| line.chars().map(|c| c == '█' || c == upper).collect();
            [half('▀'), half('▄')]
        });
        rows.collect()
    }

    #[test]
    fn both_drawings_show_the_same_code() {
        let text = "https://open.feishu.cn/page/launcher?user_code=ABCD-EFGH";
        let dark = ink(&drawn(text, true).unwrap());
        let light = ink(&drawn(text, false).unwrap());
        let code = QrCode::with_error_correction_level(text, EcLevel::L).unwrap();
        let width = code.width();
        for y in 0..width {
            for x in 0..width {
                let expected = code[(x, y)] == Color::Dark;
                assert_eq!(dark[y + QUIET][x + QUIET], expected);
                assert_eq!(light[y + QUIET][x + QUIET], !expected);
            }
        }
        assert!(dark.iter().all(|row| !row[0] && !row[1]), "a quiet zone");
    }

    #[test]
    fn a_page_shows_the_same_code_in_a_whole_quiet_zone() {
        let text = "https://open.feishu.cn/page/launcher?user_code=ABCD-EFGH";
        let code = QrCode::with_error_correction_level(text, EcLevel::L).unwrap();
        let drawn = svg(text).unwrap();
        let dark = code
            .to_colors()
            .iter()
            .filter(|one| **one == Color::Dark)
            .count();
        assert_eq!(drawn.matches("h1v1h-1z").count(), dark);
        let side = code.width() + 8;
        assert!(
            drawn.contains(&format!("viewBox=\"0 0 {side} {side}\"")),
            "{drawn}"
        );
        assert!(drawn.contains("M4 4h1"), "the first corner: {drawn}");
    }

    #[test]
    fn a_registration_link_fits_into_80_columns() {
        let lines = drawn(&"x".repeat(400), false).unwrap();
        let width = lines[0].chars().count();
        assert!(width <= 80, "{width}");
        assert!(drawn(&"x".repeat(4_000), false).is_none());
    }
}
