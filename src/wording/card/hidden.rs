//! What stands in place of something that is in the fold, elsewhere or nowhere.

use crate::text::{Text, grouped, plural};

/// In place of what stands in the fold below.
pub fn folded(bytes: usize, lines: usize) -> Text {
    let (bytes, lines_text) = (grouped(bytes), grouped(lines));
    if lines == 0 {
        Text::made(
            format!("⟦… 另有 {bytes} 字节，展开下方可见 …⟧"),
            format!("⟦… {bytes} more bytes, unfold below …⟧"),
        )
    } else {
        Text::made(
            format!("⟦… 另有 {lines_text} 行，展开下方可见 …⟧"),
            format!(
                "⟦… {lines_text} more {}, unfold below …⟧",
                plural(lines, "line")
            ),
        )
    }
}

/// Changed lines of an edit that stand in the fold below.
pub fn more_changes(count: &str) -> Text {
    Text::made(
        format!("⟦… 另有 {count}，展开下方可见 …⟧"),
        format!("⟦… {count} more, unfold below …⟧"),
    )
}

pub fn omitted(bytes: usize, lines: usize) -> Text {
    let (bytes, lines_text) = (grouped(bytes), grouped(lines));
    if lines == 0 {
        Text::made(
            format!("⟦… 此处省略 {bytes} 字节 …⟧"),
            format!("⟦… {bytes} bytes not shown …⟧"),
        )
    } else {
        Text::made(
            format!("⟦… 此处省略 {lines_text} 行，{bytes} 字节 …⟧"),
            format!(
                "⟦… {lines_text} {}, {bytes} bytes not shown …⟧",
                plural(lines, "line")
            ),
        )
    }
}

pub fn omitted_fields(fields: usize, bytes: usize) -> Text {
    let (count, bytes) = (grouped(fields), grouped(bytes));
    let field = plural(fields, "field");
    Text::made(
        format!("⟦… 此处省略 {count} 个参数，{bytes} 字节 …⟧"),
        format!("⟦… {count} {field}, {bytes} bytes not shown …⟧"),
    )
}

/// Fields of a call that stand in the fold below.
pub fn folded_fields(fields: usize) -> Text {
    let (count, field) = (grouped(fields), plural(fields, "field"));
    Text::made(
        format!("⟦… 另有 {count} 个参数，展开下方可见 …⟧"),
        format!("⟦… {count} more {field}, unfold below …⟧"),
    )
}

pub fn more_hits(count: usize) -> Text {
    let count = grouped(count);
    Text::made(format!("……另有 {count} 处"), format!("… and {count} more"))
}
