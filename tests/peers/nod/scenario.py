"""What every scenario with the real CLI stands on: a local Feishu, a daemon, a model, a box."""

import unittest

from harness.simulator import Simulator

from harness.model import ScriptedModel
from harness.nod import Daemon
from harness.waiting import wait_until

ASKED = "touch asked-for"


class Scenario(unittest.TestCase):
    settings = {}

    def setUp(self):
        self.model = self.enterContext(ScriptedModel())
        self.feishu = self.enterContext(Simulator())
        self.daemon = self.enterContext(Daemon(self.feishu, **self.settings))
        self.box = self.enterContext(self.daemon.box(self.model))

    def tearDown(self):
        self.assertEqual([], self.feishu.violations())

    def waiting_card(self, command=ASKED, limit=30.0):
        """The card on which a person can decide about `command`."""

        def found():
            return next((card for card in self.feishu.cards() if command in card.text and card.decides()), None)

        return wait_until(f"card asks about {command!r}", found, limit, self.seen)

    def ended_card(self, card, limit=10.0):
        """The same card once nobody can decide on it any more."""

        def found():
            newest = self.feishu.card(card.id)
            return None if newest.decides() else newest

        return wait_until("card shows its ending", found, limit, self.seen)

    def seen(self):
        cards = [card.text for card in self.feishu.cards()]
        return f"cards: {cards}\nmodel was told: {self.model.results()}\ndaemon: {self.daemon.child.everything()}"

    def assert_toast(self, content, outcome):
        self.assertEqual(content, outcome.toast["content"], outcome)

    def happened(self, name="asked-for"):
        return (self.box.project / name).exists()
