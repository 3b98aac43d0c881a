"""A test of nod beside the real Codex in a terminal: what every such test sets up and looks at."""

import time
import unittest

from .codex import DIALOG, CodexBox
from .nod import Daemon
from .responses import ResponsesModel
from .simulator import Simulator
from .waiting import wait_until

# The daemon's first start copies the program.
START = 120.0


class BesideCodex(unittest.TestCase):
    # More lines of Codex's settings.
    config = ""

    def setUp(self):
        self.model = self.enterContext(ResponsesModel())
        self.box = self.enterContext(CodexBox(self.model))
        with (self.box.home / "config.toml").open("a") as settings:
            settings.write(self.config)
        self.feishu = self.enterContext(Simulator())
        self.daemon = self.enterContext(
            Daemon(self.feishu, NOD_CODEX=str(self.box.home), NOD_NOTIFY_STOP_AFTER="0")
        )

    def tearDown(self):
        self.assertEqual([], self.feishu.violations())

    def seen(self):
        cards = [card.text for card in self.feishu.cards()]
        return f"cards: {cards}\nmodel was told: {self.model.told()[-2000:]}\ndaemon: {self.daemon.child.everything()}"

    def card(self, words, decides=True, limit=30):
        def found():
            cards = reversed(self.feishu.cards())
            return next((card for card in cards if words in card.said and card.decides() == decides), None)

        return wait_until(f"card says {words!r}", found, limit, self.seen)

    def ended(self, card, words):
        def found():
            newest = self.feishu.card(card.id)
            return newest if words in newest.text and not newest.decides() else None

        return wait_until(f"card ends with {words!r}", found, 15, self.seen)

    def dialog(self, *steps):
        terminal = self.box.terminal(*steps)
        terminal.shows(DIALOG, START)
        return terminal

    def plans(self, terminal):
        """Changes to plan mode, which takes no key while a turn ends."""

        def changed():
            if "Plan mode" not in terminal.screen():
                terminal.send("\x1b[Z")
                time.sleep(1)
            return "Plan mode" in terminal.screen()

        wait_until("plan mode", changed, 20, terminal.screen)

    def presses(self, terminal, key, command):
        """Answers the dialog about `command`, which takes no key in its first moment."""

        def gone():
            if f"$ {command}\n" in terminal.screen():
                terminal.send(key)
                time.sleep(1)
            return f"$ {command}\n" not in terminal.screen()

        wait_until(f"dialog about {command!r} is gone", gone, 20, terminal.screen)

    def happened(self, name="asked-for"):
        return (self.box.project / name).exists()
