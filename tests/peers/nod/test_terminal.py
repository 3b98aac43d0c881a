"""Feishu and the terminal side by side: whoever answers first decides, and the other side shows it."""

from scenario import ASKED, Scenario

from harness import report
from harness.claude import DIALOG
from harness.model import bash

# The card has to tell the truth this soon after the hook event that made it stale.
WITHDRAWN_SECONDS = 2


class SideBySide(Scenario):
    def open_dialog(self):
        terminal = self.box.terminal(bash(ASKED))
        terminal.shows(DIALOG)
        return terminal, self.waiting_card()

    def test_click_makes_the_dialog_vanish(self):
        terminal, card = self.open_dialog()
        self.feishu.click(card, "allow")
        terminal.shows("DONE")
        terminal.hides(DIALOG)
        self.assertTrue(self.happened())

    def test_denying_click_makes_the_dialog_vanish(self):
        terminal, card = self.open_dialog()
        self.feishu.click(card, "deny")
        terminal.shows("DONE")
        terminal.hides(DIALOG)
        self.assertFalse(self.happened())

    def test_terminal_yes_withdraws_the_card(self):
        terminal, card = self.open_dialog()
        terminal.send("1")
        terminal.shows("DONE")
        self.ended_card(card, WITHDRAWN_SECONDS)
        self.assertTrue(self.happened())

    def test_terminal_no_withdraws_the_card(self):
        terminal, card = self.open_dialog()
        terminal.send("\x1b")
        terminal.hides(DIALOG)
        self.ended_card(card, WITHDRAWN_SECONDS)
        self.assertFalse(self.happened())

    def test_late_interrupt_does_not_abort_the_turn(self):
        terminal = self.box.terminal(bash(ASKED), bash("touch second"))
        terminal.shows(DIALOG)
        stale = self.waiting_card()
        terminal.send("1")
        self.ended_card(stale)
        second = self.waiting_card("touch second")
        self.feishu.click_stale(stale, "interrupt")
        self.feishu.click(second, "allow")
        terminal.shows("DONE")
        self.assertTrue(self.happened("second"))


if __name__ == "__main__":
    report.main()
