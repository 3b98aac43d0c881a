//! What the set-up says it does for each agent. Holds words only.

use super::Words;

impl Words {
    pub(in crate::cli) fn for_claude(self, found: bool) -> &'static str {
        if found {
            self.pick(
                "Claude Code：安装 hook，让它询问 nod",
                "Claude Code: its hooks are set up to ask nod",
            )
        } else {
            self.pick(
                "Claude Code：没有找到；仍会写入 hook，供日后安装时使用",
                "Claude Code: not found; its hooks are set up all the same, for when it comes",
            )
        }
    }

    pub(in crate::cli) fn for_codex(self, is_off: bool) -> &'static str {
        if is_off {
            self.pick(
                "Codex：已按 `NOD_CODEX=off` 关闭，不跟随",
                "Codex: not followed, as `NOD_CODEX=off` says",
            )
        } else {
            self.pick(
                "Codex：无需写入任何文件；直接运行 `codex`（0.166 起），nod 会自动跟随",
                "Codex: nothing to write; nod follows plain `codex` (0.166 or newer) by itself",
            )
        }
    }
}
