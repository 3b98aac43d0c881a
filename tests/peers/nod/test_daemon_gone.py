"""A daemon that is absent, or dies while Claude Code waits."""

import time

from scenario import ASKED, Scenario

from harness import report
from harness.claude import DIALOG
from harness.model import bash


class DaemonGone(Scenario):
    def test_killed_and_restarted_daemon_still_delivers_the_click(self):
        run = self.box.start_print(bash(ASKED))
        card = self.waiting_card()
        self.daemon.kill()
        self.assertTrue(run.child.running())
        self.daemon.start()
        self.assert_toast("已批准运行", self.feishu.click(card, "allow"))
        self.assertEqual("DONE", run.result()["result"])
        self.assertTrue(self.happened())
        self.assertEqual(1, len(self.feishu.cards()), self.seen())
        self.ended_card(card)

    def test_without_a_daemon_the_dialog_stands_at_once(self):
        self.daemon.kill()
        terminal = self.box.terminal(bash(ASKED))
        terminal.shows(DIALOG)
        terminal.send("1")
        terminal.shows("DONE")
        self.assertTrue(self.happened())

    def test_without_a_daemon_print_mode_is_refused_without_waiting(self):
        self.daemon.kill()
        started = time.monotonic()
        self.box.print(bash(ASKED))
        self.assertLess(time.monotonic() - started, 20)
        self.assertFalse(self.happened())


if __name__ == "__main__":
    report.main()
