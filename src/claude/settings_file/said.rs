//! Why Claude Code's settings were not written, in both languages. The English
//! is what the errors say themselves. Pure.

use super::{SettingsError, Untouchable};
use crate::text::{Text, system};

impl SettingsError {
    pub fn text(&self) -> Text {
        let zh = match self {
            Self::Untouchable {
                file,
                why: Untouchable { line, column, .. },
            } => format!(
                "`{}` 第 {line} 行第 {column} 列有误，未作改动",
                file.display()
            ),
            Self::Unsafe { path, .. } => format!("`{}` 不能安全写入", path.display()),
            Self::BadRule(_) => "这条规则不能写入设置文件".to_owned(),
            Self::Busy { file } => format!("别的程序正在写 `{}`", file.display()),
            Self::Io {
                path,
                doing,
                source,
            } => {
                let (path, why) = (path.display(), system::io(source));
                return Text::made(
                    format!("`{path}` 无法读写：{}", why.zh),
                    format!("`{path}` could not be {doing}: {}", why.en),
                );
            }
        };
        Text::made(zh, self.to_string())
    }
}
