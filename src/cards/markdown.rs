//! An agent's final answer as Feishu markdown: cut to the size a card can
//! carry without breaking a code block or a table, and without any tag of
//! Feishu's own, so that an answer can't call people or pretend to be a card.

use crate::text::lists;

/// What one card carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkdownLimits {
    /// Of the text as it stands in the request: JSON inside JSON.
    pub bytes: usize,
    pub tables: usize,
    /// More cards than this flood a chat; the rest is left out and told.
    pub pieces: usize,
}

impl Default for MarkdownLimits {
    fn default() -> Self {
        Self {
            bytes: 20 << 10,
            // The documents allow four; Feishu has refused the fourth.
            tables: 3,
            pieces: 8,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerPieces {
    pub pieces: Vec<String>,
    /// Characters of the text that did not fit.
    pub left_out: usize,
}

/// Feishu's markdown tags that act even inside inline code of some clients.
const TAGS: &str = "at person link font text_tag number_tag local_datetime raw br hr a";
/// Those of them that call people.
const CALLS: &str = "at person";
/// A longer info string is not a language.
const MAX_INFO: usize = 40;

pub fn answer(text: &str, limits: MarkdownLimits) -> AnswerPieces {
    let mut packer = Packer {
        limits,
        pieces: Vec::new(),
        open: Piece::default(),
    };
    for block in blocks(text) {
        packer.place(&block);
    }
    packer.flush();
    let mut pieces = packer.pieces;
    let cut = pieces.split_off(pieces.len().min(limits.pieces));
    AnswerPieces {
        left_out: cut.iter().map(|piece| piece.chars().count()).sum(),
        pieces,
    }
}

/// Lines that belong together, with what must stand around them in each piece.
#[derive(Debug, Default)]
struct Block {
    before: Vec<String>,
    lines: Vec<String>,
    after: Vec<String>,
    is_table: bool,
}

impl Block {
    fn whole(&self) -> impl Iterator<Item = &String> {
        self.before.iter().chain(&self.lines).chain(&self.after)
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let text: String = text
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect();
    let mut blocks = Vec::new();
    let mut prose = Block::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_table = line.contains('|') && lines.peek().is_some_and(|next| is_rule(next));
        if let Some(fence) = Fence::open(line) {
            blocks.push(std::mem::take(&mut prose));
            let mut block = Block {
                before: vec![fence.first_line()],
                after: vec![fence.last_line()],
                ..Block::default()
            };
            for line in lines.by_ref() {
                if fence.is_closed_by(line) {
                    break;
                }
                block.lines.push(tame_code(line));
            }
            blocks.push(block);
        } else if is_table {
            blocks.push(std::mem::take(&mut prose));
            let mut block = Block {
                before: vec![tame(line)],
                is_table: true,
                ..Block::default()
            };
            block.before.extend(lines.next().map(tame));
            while let Some(row) = lines.next_if(|row| row.contains('|')) {
                block.lines.push(tame(row));
            }
            blocks.push(block);
        } else {
            prose.lines.push(tame(line));
            if line.trim().is_empty() {
                blocks.push(std::mem::take(&mut prose));
            }
        }
    }
    blocks.push(prose);
    blocks.retain(|block| block.whole().next().is_some());
    blocks
}

struct Fence<'a> {
    indent: &'a str,
    mark: char,
    length: usize,
    info: &'a str,
}

impl<'a> Fence<'a> {
    fn open(line: &'a str) -> Option<Self> {
        let bare = line.trim_start();
        let indent = &line[..line.len() - bare.len()];
        let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = bare.chars().take_while(|c| *c == mark).count();
        let info = bare[length..].trim();
        (length >= 3 && !info.contains('`')).then_some(Self {
            indent,
            mark,
            length,
            info,
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let bare = line.trim();
        bare.chars().all(|c| c == self.mark) && bare.chars().count() >= self.length
    }

    fn first_line(&self) -> String {
        let info: String = self
            .info
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_' | '.'))
            .take(MAX_INFO)
            .collect();
        self.last_line() + &info
    }

    fn last_line(&self) -> String {
        let marks = std::iter::repeat_n(self.mark, self.length);
        self.indent.chars().chain(marks).collect()
    }
}

fn is_rule(line: &str) -> bool {
    line.contains('|')
        && line.contains("--")
        && line
            .chars()
            .all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

/// Takes Feishu's own tags and images out of one line of prose. A picture
/// needs a key of Feishu's; any other address makes it refuse the whole card.
fn tame(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for (i, part) in line.split('`').enumerate() {
        if i > 0 {
            out.push('`');
        }
        let is_code = i % 2 == 1 && line.matches('`').count() > i;
        let mut rest = part;
        while let Some(at) = rest.find(['<', '!']) {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if rest[at..].starts_with('<') {
                let escape = !is_code || names_one_of(TAGS, after);
                out.push_str(if escape { "&#60;" } else { "<" });
            } else if is_code || !after.starts_with('[') {
                out.push('!');
            }
            rest = after;
        }
        out.push_str(rest);
    }
    out
}

/// Code stays as it is, except that it calls nobody: readers differ on where a
/// block begins, in a list or behind much indentation.
fn tame_code(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let calls = names_one_of(CALLS, after);
        out.push_str(if calls { "&#60;" } else { "<" });
        rest = after;
    }
    out + rest
}

fn names_one_of(tags: &str, after: &str) -> bool {
    let after = after.strip_prefix('/').unwrap_or(after);
    let end = after
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(after.len());
    lists::has(tags, &after[..end].to_ascii_lowercase())
}

#[derive(Default)]
struct Piece {
    text: String,
    cost: usize,
    tables: usize,
}

impl Piece {
    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.cost += cost(line);
    }
}

struct Packer {
    limits: MarkdownLimits,
    pieces: Vec<String>,
    open: Piece,
}

impl Packer {
    fn place(&mut self, block: &Block) {
        let whole = total(block.whole());
        let table_fits = !block.is_table || self.open.tables < self.limits.tables;
        if self.open.cost + whole > self.limits.bytes || !table_fits {
            // A block that fits a card of its own is not cut to fill the last.
            self.flush();
        }
        if whole <= self.limits.bytes {
            self.open.tables += usize::from(block.is_table);
            block.whole().for_each(|line| self.open.push(line));
        } else {
            self.cut(block);
        }
    }

    fn cut(&mut self, block: &Block) {
        let around = total(&block.before) + total(&block.after);
        let room = self.limits.bytes.saturating_sub(around);
        // What repeats must leave room for what does not, and a row must fit.
        let breaks = block.is_table && block.lines.iter().any(|line| cost(line) > room);
        if room < self.limits.bytes / 2 || breaks {
            let plain = Block {
                lines: block.whole().cloned().collect(),
                ..Block::default()
            };
            return self.cut_lines(&plain, self.limits.bytes);
        }
        self.cut_lines(block, room);
    }

    fn cut_lines(&mut self, block: &Block, room: usize) {
        let parts = block.lines.iter().flat_map(|line| shorter(line, room));
        let mut used = 0;
        let mut begun = false;
        for part in parts {
            if begun && used + cost(part) > room {
                block.after.iter().for_each(|line| self.open.push(line));
                self.flush();
                begun = false;
                used = 0;
            }
            if !begun {
                self.open.tables += usize::from(block.is_table);
                block.before.iter().for_each(|line| self.open.push(line));
                begun = true;
            }
            used += cost(part);
            self.open.push(part);
        }
        if begun {
            block.after.iter().for_each(|line| self.open.push(line));
        }
    }

    fn flush(&mut self) {
        let piece = std::mem::take(&mut self.open);
        let text = piece.text.trim_matches('\n');
        if !text.trim().is_empty() {
            self.pieces.push(text.to_owned());
        }
    }
}

/// One line in parts that each fit, broken after a blank where there is one.
fn shorter(line: &str, room: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while cost(rest) > room {
        let mut used = 2;
        let mut end = 0;
        let mut blank = None;
        for (at, c) in rest.char_indices() {
            used += char_cost(c);
            if used > room && end > 0 {
                break;
            }
            end = at + c.len_utf8();
            if c == ' ' {
                blank = Some(end);
            }
        }
        let end = blank.filter(|at| *at > end / 2).unwrap_or(end);
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

fn total<'a>(lines: impl IntoIterator<Item = &'a String>) -> usize {
    lines.into_iter().map(|line| cost(line)).sum()
}

/// What a line break costs: its escape, and the backslash of that once more.
const BREAK: usize = 3;

/// Bytes of a line and its newline inside a JSON string inside another.
fn cost(line: &str) -> usize {
    line.chars().map(char_cost).sum::<usize>() + BREAK
}

fn char_cost(c: char) -> usize {
    match c {
        '"' | '\\' => 4,
        '\n' | '\t' | '\r' => BREAK,
        c if c.is_control() => 7,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits(bytes: usize) -> MarkdownLimits {
        MarkdownLimits {
            bytes,
            tables: 5,
            pieces: 10_000,
        }
    }

    fn pieces(text: &str, bytes: usize) -> Vec<String> {
        answer(text, limits(bytes)).pieces
    }

    #[test]
    fn a_short_answer_is_one_piece_as_it_is() {
        let text = "# Done\n\n- one\n- two\n\n```rust\nlet x = Vec::<a>::new();\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |";
        assert_eq!(pieces(text, 20 << 10), [text]);
        assert!(pieces("  \n\n", 100).is_empty());
    }

    #[test]
    fn a_long_code_block_is_closed_and_opened_again() {
        let code: Vec<_> = (0..40).map(|i| format!("line {i:02}")).collect();
        let text = format!("Before\n\n```rust\n{}\n```\n\nAfter", code.join("\n"));
        let pieces = pieces(&text, 120);
        assert!(pieces.len() > 3);
        let mut seen = Vec::new();
        for piece in &pieces {
            let fences: Vec<_> = piece.lines().filter(|l| l.starts_with("```")).collect();
            assert!(fences.is_empty() || fences == ["```rust", "```"], "{piece}");
            seen.extend(piece.lines().filter(|l| l.starts_with("line")));
        }
        assert_eq!(seen, code);
    }

    #[test]
    fn a_long_table_repeats_its_head() {
        let rows: Vec<_> = (0..30).map(|i| format!("| {i} | x |")).collect();
        let text = format!("| n | v |\n|---|:-:|\n{}", rows.join("\n"));
        let pieces = pieces(&text, 120);
        assert!(pieces.len() > 2);
        for piece in &pieces {
            assert!(piece.starts_with("| n | v |\n|---|:-:|\n| "), "{piece}");
        }
        let found: usize = pieces.iter().map(|p| p.lines().count() - 2).sum();
        assert_eq!(found, 30);
    }

    #[test]
    fn a_block_that_fits_a_card_is_not_cut_to_fill_the_last() {
        let code = "```\naaaaaaaaaa\nbbbbbbbbbb\n```";
        let text = format!("{}\n\n{code}", "word ".repeat(14));
        assert_eq!(pieces(&text, 90).last().map(String::as_str), Some(code));
    }

    #[test]
    fn tables_over_the_number_a_card_shows_go_to_the_next() {
        let table = "| a |\n|--|\n| 1 |\n\n";
        let tables = |piece: &str| piece.matches("|--|").count();
        let counts: Vec<_> = pieces(&table.repeat(12), 20 << 10)
            .iter()
            .map(|piece| tables(piece))
            .collect();
        assert_eq!(counts, [5, 5, 2]);
    }

    #[test]
    fn tags_and_pictures_lose_their_power_outside_code() {
        for (line, expected) in [
            ("hi <at id=all></at>", "hi &#60;at id=all>&#60;/at>"),
            ("a `Vec<T>` and <T>", "a `Vec<T>` and &#60;T>"),
            ("`<at id=all></at>`", "`&#60;at id=all>&#60;/at>`"),
            ("open ` <at id=all>", "open ` &#60;at id=all>"),
            ("![x](http://e/x.png) wow!", "[x](http://e/x.png) wow!"),
            ("`![x]`", "`![x]`"),
        ] {
            assert_eq!(tame(line), expected);
        }
    }

    #[test]
    fn code_calls_nobody_whoever_takes_it_for_prose() {
        for text in [
            "```\n<at id=all></at>\n```",
            "- ```\n  code\n  ```\n<AT id=all></at>",
            "text\n        ```\n<person id='x'></person>",
        ] {
            let pieces = pieces(text, 1_000).concat().to_ascii_lowercase();
            assert!(!pieces.contains("<at"), "{pieces}");
            assert!(!pieces.contains("<person"), "{pieces}");
        }
        let code = "```html\n<a href='x'><br></a> <attr>\n```";
        assert_eq!(pieces(code, 1_000), [code]);
    }

    #[test]
    fn a_code_block_left_open_is_closed_and_longer_fences_hold_shorter() {
        assert_eq!(pieces("```sh\nls", 1_000), ["```sh\nls\n```"]);
        let nested = "````md\n```rust\nx\n```\n````";
        assert_eq!(pieces(nested, 1_000), [nested]);
    }

    #[test]
    fn a_flood_is_cut_and_counted() {
        let text = "word ".repeat(1_000);
        let cut = answer(
            &text,
            MarkdownLimits {
                bytes: 100,
                tables: 5,
                pieces: 3,
            },
        );
        assert_eq!(cut.pieces.len(), 3);
        let kept: usize = cut.pieces.iter().map(|p| p.chars().count()).sum();
        assert!(kept + cut.left_out >= 4_900 && cut.left_out > 4_000);
    }

    #[test]
    fn one_endless_line_is_broken_between_words() {
        let text = "词语 ".repeat(200);
        let pieces = pieces(&text, 100);
        assert!(
            pieces
                .iter()
                .all(|p| cost(p) <= 100 + BREAK && p.ends_with([' ', '语']))
        );
        assert_eq!(pieces.concat().matches("词语").count(), 200);
    }

    fn ends_inside_code(piece: &str) -> bool {
        piece.lines().fold(false, |inside, line| {
            if inside {
                line != "```"
            } else {
                line.starts_with("```")
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn every_piece_fits_and_no_word_of_it_is_lost(
            lines in prop::collection::vec(
                prop_oneof![
                    4 => "w[0-9]{1,6}( w[0-9]{1,6}){0,8}",
                    1 => Just("```rust".to_owned()),
                    1 => Just("```".to_owned()),
                    1 => Just("| a | b |".to_owned()),
                    1 => Just("|---|---|".to_owned()),
                    1 => Just("| 1 | 2 |".to_owned()),
                    1 => Just(String::new()),
                ],
                0..60,
            ),
            bytes in 80_usize..400,
        ) {
            let text = lines.join("\n");
            let words = |text: &str| {
                text.split_whitespace().filter(|w| w.starts_with('w')).map(str::to_owned).collect::<Vec<_>>()
            };
            let pieces = pieces(&text, bytes);
            for piece in &pieces {
                prop_assert!(piece.lines().map(cost).sum::<usize>() <= bytes + BREAK, "{piece}");
                prop_assert!(!ends_inside_code(piece), "{piece}");
            }
            let together: Vec<_> = pieces.iter().flat_map(|p| words(p)).collect();
            prop_assert_eq!(together, words(&text));
        }
    }
}
