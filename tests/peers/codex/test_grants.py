"""What a yes to the real Codex covers is what its card says, and no more."""

from harness import report
from harness.beside import START, BesideCodex
from harness.responses import function
from harness.waiting import wait_until


def wish(**permissions):
    """A step: permissions for every later command."""
    return function("request_permissions", permissions=permissions, reason="a test")


def plain(command):
    """A step: a command that stays in Codex's sandbox, as far as that reaches."""
    return function("exec_command", cmd=command)


def change(path, text):
    return plain(f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch\nEOF")


class Grants(BesideCodex):
    config = "[features]\nrequest_permissions_tool = true\n"

    def test_permissions_for_a_turn_say_so_and_end_with_it(self):
        outside = self.box.root / "outside"
        outside.mkdir()
        wanted = wish(file_system={"write": [str(outside)]}, network={"enabled": True})
        terminal = self.box.terminal(wanted, plain(f"touch {outside}/one"))
        card = self.card("放宽权限", limit=START)
        sentence = f"本轮剩余时间内，所有命令都可以写入 {outside} 之下的文件、使用网络"
        self.assertIn(sentence, card.text)
        self.assertIn("本轮内允许", card.text)
        self.assertNotIn("批准运行", card.text)
        self.assertNotIn("session", card.values())
        toast = self.feishu.click(card, "allow").toast["content"]
        self.assertIn("到本轮结束为止", toast)
        terminal.shows("DONE")
        # The first command needed no card of its own.
        self.assertTrue((outside / "one").exists())
        self.ended(card, "本轮已允许")
        audit = self.daemon.run("audit")
        self.assertIn("allowed for turn", audit)
        self.assertIn("“write /", audit)

    def test_a_refused_wish_grants_nothing(self):
        outside = self.box.root / "outside"
        outside.mkdir()
        wanted = wish(file_system={"write": [str(outside)]})
        terminal = self.box.terminal(wanted, plain(f"touch {outside}/one"))
        card = self.card("放宽权限", limit=START)
        self.feishu.click(card, "deny")
        terminal.shows("DONE", 60)
        self.assertFalse((outside / "one").exists())

    def test_a_file_outside_the_project_is_allowed_one_change_at_a_time(self):
        outside = self.box.root / "outside.txt"
        self.box.terminal(change(outside, "one"))
        card = self.card("outside.txt", limit=START)
        self.assertNotIn("session", card.values())
        self.feishu.click(card, "allow")
        wait_until("it was written", outside.exists, 20, self.seen)


if __name__ == "__main__":
    report.main()
