//! Words that only requests of Codex's need.

use crate::text::Text;

/// The title of a card that asks for permissions.
pub fn wants_permissions(which: &str) -> Text {
    Text::made(
        format!("放宽权限：{which}"),
        format!("Wider permissions: {which}"),
    )
}

/// What a command connects to, where Codex asks before it may.
pub fn connects_to(place: &str) -> Text {
    Text::made(
        format!("要求连接 {place}"),
        format!("It wants to connect to {place}"),
    )
}

/// Of what is typed into a program that Codex started before.
pub fn typed_into(session: &str) -> Text {
    Text::made(
        format!("会输入到已在运行的终端 {session} 中；它现在的目录和状态 nod 不知道"),
        format!(
            "Typed into terminal {session}, which already runs; nod does not know its directory or state"
        ),
    )
}
