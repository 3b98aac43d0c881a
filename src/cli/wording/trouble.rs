//! What goes wrong with files, the terminal and nod itself, in both languages.
//! Pure.

use std::io;
use std::panic::Location;
use std::path::Path;

use super::Words;
use crate::config::BadLine;
use crate::text::{Text, system};

impl Words {
    pub(in crate::cli) fn no_input(self, why: &io::Error) -> String {
        let why = system::io(why);
        self.made(
            format!("无法读取标准输入：{}", why.zh),
            format!("stdin cannot be read: {}", why.en),
        )
    }

    pub(in crate::cli) fn not_written(self, file: &Path, why: &io::Error) -> String {
        let (file, why) = (file.display(), system::io(why));
        self.made(
            format!("无法写入 `{file}`：{}", why.zh),
            format!("`{file}` cannot be written: {}", why.en),
        )
    }

    pub(in crate::cli) fn not_restored(self, file: &Path, why: &io::Error) -> String {
        let (file, why) = (file.display(), system::io(why));
        self.made(
            format!("无法还原 `{file}`：{}", why.zh),
            format!("`{file}` cannot be restored: {}", why.en),
        )
    }

    pub(in crate::cli) fn not_utf8(self, file: &Path) -> String {
        let file = file.display();
        self.made(
            format!("`{file}` 不是 UTF-8 文字，未作改动"),
            format!("`{file}` is not UTF-8 text and was left as it is"),
        )
    }

    pub(in crate::cli) fn unfit_value(self, name: &str) -> String {
        self.made(
            format!("`{name}` 的值不能写进设置文件"),
            format!("the value of `{name}` cannot stand in a settings file"),
        )
    }

    pub(in crate::cli) fn no_record(self, why: &io::Error) -> String {
        let why = system::io(why);
        self.made(
            format!("无法读写上次设置的记录：{}", why.zh),
            format!("the record of the last set-up cannot be used: {}", why.en),
        )
    }

    pub(in crate::cli) fn not_taken_over(self, file: &Path, why: &Text) -> String {
        let file = file.display();
        self.made(
            format!("无法沿用 `{file}`：{}", why.zh),
            format!("`{file}` cannot be taken over: {}", why.en),
        )
    }

    /// `file` is where it was looked for, unless somebody typed it.
    pub(in crate::cli) fn no_secret(self, file: Option<&Path>, why: &Text) -> String {
        let file = file.map_or_else(String::new, |file| {
            let file = file.display();
            self.made(format!("（`{file}`）"), format!(" in `{file}`"))
        });
        self.made(
            format!("无法读取 App Secret{file}：{}", why.zh),
            format!("the app's secret{file} cannot be read: {}", why.en),
        )
    }

    pub(in crate::cli) fn wrong_secret_hint(self, sibling: &str) -> String {
        self.made(
            format!("请用 `nod setup --app-id … --app-secret-file …` 给出正确的 App ID 和 App Secret；若应用在另一平台，请加上 `--domain {sibling}`"),
            format!(
                "give the right app id and secret with `nod setup --app-id … --app-secret-file …`; if the app lives on the other platform, add `--domain {sibling}`"
            ),
        )
    }

    pub(in crate::cli) fn no_reading(self, why: &io::Error) -> String {
        let why = system::io(why);
        self.made(
            format!("无法从终端读取：{}", why.zh),
            format!("the terminal cannot be read: {}", why.en),
        )
    }

    pub(in crate::cli) fn nod_not_found(self, why: &io::Error) -> String {
        let why = system::io(why);
        self.made(
            format!("找不到 nod 自己的程序文件：{}", why.zh),
            format!("nod's own program cannot be found: {}", why.en),
        )
    }

    /// For a fault of ours: no word of the fault itself, which may hold what
    /// is nobody's business, but where it is and whom to tell.
    pub(in crate::cli) fn own_fault(self, at: Option<&Location<'_>>) -> String {
        let at = at.map_or_else(String::new, |at| {
            let file = at.file();
            let file = file.rsplit_once("src/").map_or(file, |(_, file)| file);
            format!("{file}:{}", at.line())
        });
        let version = crate::version::BUILD;
        self.made(
            format!("nod {version} 内部出错（{at}）：请把这一行和 `nod doctor` 的报告发给 nod 的维护者"),
            format!("a fault in nod {version} itself ({at}): please send this line and the report of `nod doctor` to nod's maintainers"),
        )
    }
}

pub(in crate::cli) static NO_SUCH_FILE: Text = Text::new("没有此文件", "there is no such file");
pub(in crate::cli) static NOT_TEXT: Text = Text::new("内容不是文字", "it is not text");
pub(in crate::cli) static NOT_A_SECRET: Text =
    Text::new("内容不像 App Secret", "it does not look like one");

pub(in crate::cli) fn bad_line(line: &BadLine) -> Text {
    Text::made(super::settings::bad_line_zh(line), line.to_string())
}
