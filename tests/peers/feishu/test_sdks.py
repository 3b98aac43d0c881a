"""The official SDKs as clients of our simulator: if they understand it, it is close enough to Feishu."""

import json
import os
import unittest
from pathlib import Path

from harness.simulator import APP_ID, APP_SECRET, OWNER, Simulator

from harness import report
from harness.processes import Child
from harness.waiting import wait_until

HERE = Path(__file__).parent


class Peer:
    """A running SDK client and what it told us."""

    def __init__(self, child):
        self.child = child

    def told(self, key, limit=30.0):
        """The first thing it told that has `key`."""

        def found():
            if not self.child.running():
                raise AssertionError(f"client ended: {self.child.everything()}")
            complete = self.child.stdout.rpartition("\n")[0].splitlines()
            lines = [json.loads(line.removeprefix("peer: ")) for line in complete if line.startswith("peer: ")]
            return next((line for line in lines if key in line), None)

        return wait_until(f"client tells {key!r}", found, limit, self.child.everything)


class Sdk:
    """The tests, once for each SDK."""

    # What the SDK is known to do that Feishu's protocol does not say.
    quirks = frozenset()

    def setUp(self):
        self.feishu = self.enterContext(Simulator())
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **self.environment()}
        child = Child([*self.command(), self.feishu.domain, APP_ID, APP_SECRET, OWNER], environment)
        self.peer = Peer(self.enterContext(child))
        self.card = self.feishu.card(self.peer.told("card")["card"])
        wait_until("client is connected", self.feishu.connections, 30, child.everything)
        # The Node SDK loses what comes right behind the handshake; its first ping shows that it listens.
        wait_until("client listens", lambda: self.feishu.history("ping_in"), 30, child.everything)

    def tearDown(self):
        strange = [found for found in self.feishu.violations() if found["rule"] not in self.quirks]
        self.assertEqual([], strange)

    def test_click_is_answered_with_a_toast_and_a_card(self):
        outcome = self.feishu.click(self.card, "allow")
        clicked = self.peer.told("clicked")
        self.assertEqual({"action": "allow", "request_id": "peer-1"}, clicked["clicked"])
        self.assertEqual(OWNER, clicked["by"])
        self.assertEqual(self.card.id, clicked["message"])
        self.assertEqual("success", outcome.toast["type"])
        self.assertEqual("已批准 peer-1", outcome.toast["content"])
        self.assertIn("decided", self.feishu.card(self.card.id).text)

    def test_message_is_heard(self):
        self.feishu.say("你好，nod")
        heard = self.peer.told("heard")
        self.assertEqual(("你好，nod", OWNER), (heard["heard"], heard["by"]))

    def test_clicks_after_each_other_are_each_answered(self):
        for _ in range(20):
            self.assertEqual("已批准 peer-1", self.feishu.click(self.card, "allow").toast["content"])

    def test_event_in_fragments_is_joined(self):
        self.feishu.fault({"fault": "fragments", "count": 3, "order": "reversed"})
        self.assertEqual("已批准 peer-1", self.feishu.click(self.card, "allow").toast["content"])


class PythonSdk(Sdk, unittest.TestCase):
    def environment(self):
        return {}

    def command(self):
        return [os.environ["NOD_PEERS_PYTHON"], HERE / "python_client.py"]


class NodeSdk(Sdk, unittest.TestCase):
    # Its handler time is start minus end: negative as soon as a handler takes a millisecond.
    quirks = frozenset({"bad_biz_rt"})

    def environment(self):
        return {"NODE_PATH": os.environ["NOD_PEERS_NODE_MODULES"]}

    def command(self):
        return ["node", HERE / "node_client.js"]


if __name__ == "__main__":
    report.main()
