//! Why the store can't be used, in both languages, for people. Pure.

use super::StoreError;
use crate::text::Text;

impl StoreError {
    pub fn text(&self) -> Text {
        match self {
            Self::AlreadySettled => Text::new("请求已有结果", "the request is already settled"),
            Self::AlreadyPending => Text::new(
                "同一编号的请求已在等待",
                "a request with this id is already waiting",
            ),
            Self::Full(_) => Text::new("磁盘已满", "the disk is full"),
            Self::Unwritable(_) => Text::new("磁盘无法写入", "the disk can't be written"),
            Self::Busy(_) => Text::new(
                "另一个进程占用着数据库",
                "another process holds the database",
            ),
            Self::Damaged(_) => Text::new("数据库已损坏", "the database is damaged"),
            Self::Newer { found, known } => Text::made(
                format!("数据库由更新的 nod 写入：格式 {found}，本程序只认识 {known}"),
                format!(
                    "the database was written by a newer nod: format {found}, this one knows {known}"
                ),
            ),
            Self::Place { path, problem } => Text::made(
                format!("`{}` 不可用", path.display()),
                format!("`{}` can't be used: {problem}", path.display()),
            ),
            Self::Slow(ms) => Text::made(
                format!("数据库 {ms} 毫秒内没有应答"),
                format!("the database did not answer within {ms} ms"),
            ),
            Self::Closed => Text::new("数据库已关闭", "the database is closed"),
            Self::Refused(_) => {
                Text::new("数据库拒绝了一条语句", "the database refused a statement")
            }
        }
    }
}
