"""Cards about the real Codex stay true: interrupted turns, typed input, MCP tools, a daemon that dies."""

import random
import time

from harness import report
from harness.beside import START, BesideCodex
from harness.codex import DIALOG
from harness.responses import function, shell
from harness.slow import add_mcp_server_to_codex


class Truth(BesideCodex):
    def test_an_interrupt_right_after_an_allow_corrects_the_card_twenty_times(self):
        corrected = 0
        for number in range(20):
            name = f"f{number}"
            terminal = self.dialog(shell(f"touch {name}; sleep 8"))
            terminal.shows(f"$ touch {name}", 30)
            card = self.card(f"touch {name}")
            # The dialog takes no key in its first moment.
            time.sleep(1)
            self.feishu.click(card, "allow")
            time.sleep(random.random() * 0.08)
            terminal.send("\x1b")
            time.sleep(5)
            newest = self.feishu.card(card.id)
            self.assertFalse(newest.decides())
            # The command sleeps, so it can't have ended: "allowed" alone would be untrue.
            stopped = "随后被中断" in newest.text or "已在终端" in newest.text
            runs = "Interrupted" not in terminal.screen() and "interrupted" not in terminal.screen()
            corrected += "随后被中断" in newest.text
            self.assertTrue(stopped or runs, f"{name}: {newest.text}\n{terminal.screen()}\n{self.seen()}")
            terminal.close()
        self.assertGreater(corrected, 0)
        print(f"corrected {corrected} of 20")

    def test_an_mcp_tool_is_named_and_deny_and_interrupt_ends_the_turn(self):
        add_mcp_server_to_codex(self.box)
        touched = str(self.box.project / "touched")
        step = {**function("touch", path=touched, seconds=0), "namespace": "mcp__slow"}
        terminal = self.box.terminal(step, shell("touch after"))
        card = self.card("slow · touch", limit=START)
        self.assertIn(touched, card.text)
        self.feishu.click(card, "interrupt")
        self.ended(card, "已拒绝并中断")
        self.assertIn("slow · touch", self.feishu.card(card.id).text)
        time.sleep(3)
        self.assertFalse(any("touch after" in card.said for card in self.feishu.cards()), self.seen())
        self.assertNotIn(DIALOG, terminal.screen())
        self.assertFalse(self.happened("touched"))

    def test_a_tap_while_codexs_daemon_is_dead_is_not_called_sent(self):
        self.dialog(shell("touch asked-for"))
        card = self.card("touch asked-for")
        self.box.kill_daemon()
        self.feishu.click(card, "allow")
        newest = self.ended(card, "请求已失效")
        self.assertNotIn("已批准", newest.text)
        self.assertFalse(self.happened("asked-for"))


if __name__ == "__main__":
    report.main()
