//! The words around the command line's help, and what is said of a line that
//! cannot be carried out, in both languages. Pure.

use super::Words;
use super::settings::accepts_zh;
use crate::config::Setting;

impl Words {
    pub(in crate::cli) fn usage_heading(self) -> &'static str {
        self.pick("用法：", "Usage: ")
    }

    pub(in crate::cli) fn commands_heading(self) -> &'static str {
        self.pick("命令：", "Commands:")
    }

    pub(in crate::cli) fn arguments_heading(self) -> &'static str {
        self.pick("参数：", "Arguments:")
    }

    pub(in crate::cli) fn options_heading(self) -> &'static str {
        self.pick("选项：", "Options:")
    }

    pub(in crate::cli) fn examples_heading(self) -> &'static str {
        self.pick("例子：", "Examples:")
    }

    /// The commands that have no line of their own on the first page.
    pub(in crate::cli) fn other_commands(self, names: &[&str]) -> String {
        self.made(
            format!("其他命令：{}", names.join("、")),
            format!("Other commands: {}", names.join(", ")),
        )
    }

    pub(in crate::cli) fn options_of_all(self) -> &'static str {
        self.pick(
            "选项：--env-file <文件>、-h/--help、-V/--version；`nod help <命令>` 说明每个命令",
            "Options: --env-file <FILE>, -h/--help, -V/--version; see `nod help <COMMAND>`",
        )
    }

    pub(in crate::cli) fn first_example(self) -> &'static str {
        self.pick(
            "例子：nod ask confirm '现在部署？' && ./deploy    # 在手机上回答",
            "Example: nod ask confirm 'Deploy now?' && ./deploy    # answered on the phone",
        )
    }

    pub(in crate::cli) fn options_here(self) -> &'static str {
        self.pick(" [选项]", " [OPTIONS]")
    }

    pub(in crate::cli) fn command_here(self) -> &'static str {
        self.pick("命令", "COMMAND")
    }

    /// Added to an argument's help: the values it can have.
    pub(in crate::cli) fn one_of(self, values: &[&str]) -> String {
        let values = self.alternatives(values);
        self.made(format!("（{values}）"), format!(" ({values})"))
    }

    fn alternatives(self, values: &[&str]) -> String {
        let quoted = values.iter().map(|value| format!("`{value}`"));
        let quoted: Vec<String> = quoted.collect();
        let Some((last, others)) = quoted.split_last() else {
            return String::new();
        };
        if others.is_empty() {
            return last.clone();
        }
        self.made(
            format!("{} 或 {last}", others.join("、")),
            format!("{} or {last}", others.join(", ")),
        )
    }

    /// Added to an argument's help: what holds without it.
    pub(in crate::cli) fn unless_given(self, default: &str) -> String {
        self.made(
            format!("（默认 {default}）"),
            format!(" ({default} unless given)"),
        )
    }

    pub(in crate::cli) fn value_means(self, value: &str, means: &str) -> String {
        self.made(format!("`{value}`：{means}"), format!("`{value}`: {means}"))
    }

    pub(in crate::cli) fn unknown_command(self, name: &str) -> String {
        self.made(
            format!("没有 `{name}` 这个命令"),
            format!("no such command: `{name}`"),
        )
    }

    pub(in crate::cli) fn unknown_argument(self, name: &str) -> String {
        self.made(
            format!("没有 `{name}` 这个参数"),
            format!("no such argument: `{name}`"),
        )
    }

    pub(in crate::cli) fn value_missing(self, name: &str) -> String {
        self.made(
            format!("`{name}` 后面缺少值"),
            format!("`{name}` needs a value"),
        )
    }

    pub(in crate::cli) fn value_wrong(self, name: &str, value: &str) -> String {
        self.made(
            format!("`{name}` 不能是 `{value}`"),
            format!("`{name}` cannot be `{value}`"),
        )
    }

    pub(in crate::cli) fn value_too_many(self, name: &str, value: &str) -> String {
        self.made(
            format!("`{name}` 不能再带值 `{value}`"),
            format!("`{name}` does not take the value `{value}`"),
        )
    }

    pub(in crate::cli) fn values_too_few(self, name: &str) -> String {
        self.made(
            format!("`{name}` 的数量不够"),
            format!("`{name}` needs more values"),
        )
    }

    pub(in crate::cli) fn not_together(self, one: &str, other: &str) -> String {
        if other.is_empty() || one == other {
            return self.made(
                format!("`{one}` 只能写一次"),
                format!("`{one}` can be given only once"),
            );
        }
        self.made(
            format!("`{one}` 不能与 `{other}` 同时使用"),
            format!("`{one}` cannot be used together with `{other}`"),
        )
    }

    pub(in crate::cli) fn argument_missing(self, name: &str) -> String {
        self.made(format!("缺少 `{name}`"), format!("`{name}` is missing"))
    }

    pub(in crate::cli) fn command_missing(self) -> &'static str {
        self.pick("缺少命令", "a command is missing")
    }

    pub(in crate::cli) fn not_text(self) -> &'static str {
        self.pick("参数不是 UTF-8 文字", "an argument is not UTF-8 text")
    }

    pub(in crate::cli) fn not_understood(self) -> &'static str {
        self.pick("无法理解这行命令", "this command line cannot be understood")
    }

    /// What a slip of a few letters leads away from.
    pub(in crate::cli) fn did_you_mean(self, meant: &str) -> String {
        self.made(
            format!("是不是想写 `{meant}`？"),
            format!("did you mean `{meant}`?"),
        )
    }

    pub(in crate::cli) fn stop_hint(self) -> &'static str {
        self.pick(
            "`nod status` 显示守护进程的进程号，用 `kill` 结束它；后台服务用 `nod service uninstall`",
            "`nod status` shows the daemon's process: `kill` it; a service ends with `nod service uninstall`",
        )
    }

    pub(in crate::cli) fn used_so(self, usage: &str) -> String {
        self.made(format!("写法是 {usage}"), format!("usage: {usage}"))
    }

    pub(in crate::cli) fn and_help(self, usage: &str) -> String {
        self.made(
            format!("{usage}；加 `--help` 查看说明"),
            format!("{usage}; `--help` tells more"),
        )
    }

    pub(in crate::cli) fn help_hint(self) -> &'static str {
        self.pick("加 `--help` 查看说明", "`--help` tells more")
    }

    /// What an argument is for, where its value was wrong.
    pub(in crate::cli) fn takes(self, argument: &str, about: &str) -> String {
        self.made(
            format!("`{argument}`：{about}"),
            format!("`{argument}`: {about}"),
        )
    }

    /// The language itself is unknown, so both are used.
    pub(in crate::cli) fn unknown_language(self) -> &'static str {
        self.pick(
            "`NOD_LANG` 只能是 `zh` 或 `en`，暂用中文 · `NOD_LANG` can be `zh` or `en`; using Chinese",
            "`NOD_LANG` can be `zh` or `en`; using Chinese · `NOD_LANG` 只能是 `zh` 或 `en`，暂用中文",
        )
    }

    /// A title as a whole sentence.
    pub(in crate::cli) fn sentence(self, title: &str) -> String {
        self.made(format!("{title}。"), format!("{title}."))
    }

    /// What a setting does and takes.
    pub(in crate::cli) fn setting(self, setting: &Setting) -> String {
        self.made(
            format!("{}。可用：{}。", setting.about_zh, accepts_zh(setting.name)),
            format!("{}. Accepts {}.", setting.about, setting.accepts),
        )
    }

    pub(in crate::cli) fn man_kind(self) -> &'static str {
        self.pick("用户命令", "User Commands")
    }

    pub(in crate::cli) fn man_headings(self) -> [&'static str; 6] {
        [
            self.pick("名称", "NAME"),
            self.pick("概要", "SYNOPSIS"),
            self.pick("命令", "COMMANDS"),
            self.pick("环境变量", "ENVIRONMENT"),
            self.pick("文件", "FILES"),
            self.pick("退出码", "EXIT STATUS"),
        ]
    }

    pub(in crate::cli) fn man_command(self) -> &'static str {
        self.pick("命令", "command")
    }

    pub(in crate::cli) fn man_options(self) -> &'static str {
        self.pick("选项", "options")
    }

    pub(in crate::cli) fn man_settings(self) -> &'static str {
        self.pick(
            "每项设置也可以写在设置文件中，见“文件”。",
            "Every setting may also stand in a settings file, see FILES.",
        )
    }

    pub(in crate::cli) fn hint(self, text: &str) -> String {
        self.made(format!("提示：{text}"), format!("hint: {text}"))
    }
}
