"""What every scenario with the real CLI stands on: a local Feishu, a daemon, a model, a box."""

import re
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness.simulator import Simulator

from harness.model import ScriptedModel
from harness.nod import Daemon
from harness.waiting import wait_until

ASKED = "touch asked-for"
AT_ONCE = 4


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


class Scenes(Scenario):
    """Scenes side by side on one daemon, each in a home of its own."""

    def in_parallel(self, scenes):
        """Runs the scenes a few at a time; each is `(name, work)`. Fails with all that failed."""
        failed, lock = [], threading.Lock()

        def one(scene):
            name, work = scene
            try:
                work()
            except Exception as problem:  # noqa: BLE001, every scene is told
                with lock:
                    failed.append(f"{name}: {problem}")

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, scenes))
        if failed:
            self.fail("\n\n".join(failed) + f"\n\ndaemon: {self.daemon.child.everything()[-6000:]}")

    def new_box(self):
        return self.daemon.box(self.model)

    def card_about(self, words, limit=60.0):
        def found():
            return next((card for card in self.feishu.cards() if words in card.text and card.decides()), None)

        return wait_until(f"card asks about {words!r}", found, limit, lambda: str([c.text for c in self.feishu.cards()]))

    def shows(self, card, words, limit=20.0):
        pattern = re.compile(words)
        newest = lambda: self.feishu.card(card.id)  # noqa: E731
        return wait_until(
            f"card shows {words!r}",
            lambda: newest() if pattern.search(newest().text) else None,
            limit,
            lambda: newest().text,
        )
