"""The last release and this one take turns while hooks wait: nothing that was asked, decided or kept is lost."""

import json
import os
import signal
import unittest
from itertools import pairwise
from pathlib import Path

from harness import report
from harness.claude import ClaudeBox, program
from harness.model import ScriptedModel, prompt, say
from harness.nod import Daemon, binary
from harness.simulator import Simulator
from harness.waiting import wait_until

BEFORE = Path(os.environ["NOD_PEERS_BEFORE"])


class Upgrade(unittest.TestCase):
    def setUp(self):
        self.model = self.enterContext(ScriptedModel())
        self.feishu = self.enterContext(Simulator())
        self.box = self.enterContext(ClaudeBox(self.model, {}))

    def started(self, nod):
        settings = {"NOD_CLAUDE": str(program()), "NOD_PROJECTS": f"shop={self.box.project}"}
        settings |= self.box.environment
        self.daemon = self.enterContext(Daemon(self.feishu, nod=nod, **settings))

    def seen(self):
        cards = [card.text for card in self.feishu.cards()]
        return f"cards: {cards}\ntexts: {self.feishu.texts()}\ndaemon: {self.daemon.child.everything()}"

    def card(self, text):
        def found():
            return next((card for card in self.feishu.cards() if text in card.said), None)

        return wait_until(f"card says {text!r}", found, 40, self.seen)

    def ask(self, command):
        """A hook that waits, and its card."""
        question = {
            "session_id": "s1",
            "cwd": str(self.box.project),
            "hook_event_name": "PermissionRequest",
            "tool_name": "Bash",
            "tool_input": {"command": command, "description": "a test"},
        }
        hook = self.daemon.asks(question, self.box.project)
        self.addCleanup(hook.stop)
        return hook, self.card(command)

    def decide(self, asked, action, behavior):
        """Taps until the hook is back and has its answer, which must be this one; the card shows an ending."""
        hook, card = asked

        def answered():
            if not hook.running():
                return True
            self.feishu.click(card, action)
            return not hook.running()

        wait_until(f"hook hears {action}", answered, 30, lambda: f"{hook.everything()}\n{self.seen()}")
        hook.wait(5)
        told = json.loads(hook.stdout)["hookSpecificOutput"]["decision"]
        self.assertEqual(behavior, told["behavior"], self.seen())
        wait_until("card shows its ending", lambda: not self.feishu.card(card.id).decides(), 20, self.seen)

    def replaced(self, after, how):
        """Another nod in this one's place; nothing was set aside and nobody is locked out."""
        self.daemon.child.signal(how)
        self.daemon.child.wait(10)
        wait_until("connection is gone", lambda: not self.feishu.connections(), 10)
        self.daemon.nod = after
        self.daemon.start()
        names = [path.name for path in self.daemon.state.iterdir()]
        self.assertFalse([name for name in names if "newer" in name or "damaged" in name], names)
        status = self.daemon.status()
        self.assertFalse(status["locked"], status)
        self.assertTrue(status["store"]["ok"], status)
        self.assertEqual(1, len(status["sessions"]), status)

    def audited(self):
        self.daemon.run("audit", "verify")
        return [json.loads(line) for line in self.daemon.run("audit", "--json", "--last", "1000").splitlines()]

    def take_turns(self, *nods):
        self.started(nods[0])
        self.feishu.say(f"/new shop {prompt(say('the first word'))}")
        self.card("the first word")
        kept = self.ask("npm run kept")
        self.decide(kept, "always", "allow")
        endings = 1
        through = self.ask("npm run through-all")
        for turn, (_, after) in enumerate(pairwise(nods)):
            allowed, denied = self.ask(f"npm run allowed-{turn}"), self.ask(f"npm run denied-{turn}")
            self.replaced(after, (signal.SIGTERM, signal.SIGKILL)[turn % 2])
            self.assertEqual(3, self.daemon.status()["pending"])
            fresh = self.ask(f"npm run fresh-{turn}")
            self.decide(allowed, "allow", "allow")
            self.decide(denied, "deny", "deny")
            self.decide(fresh, "allow", "allow")
            if after == binary():
                self.assertEqual("", fresh[0].stderr)
            endings += 3
            settled = [line for line in self.audited() if line["kind"] == "settled"]
            self.assertEqual(endings, len(settled), settled)
            self.assertIn("npm run kept", self.daemon.run("rules"))
        self.decide(through, "allow", "allow")
        self.assertEqual("success", self.feishu.click(kept[1], "undo").toast["type"])
        # The last release speaks Chinese, this one the language of the terminal.
        self.assertRegex(self.daemon.run("rules"), "已撤销|undone")
        self.feishu.say("/resume 1")
        told = "已接续会话 #1"
        wait_until(told, lambda: any(told in text for text in self.feishu.texts()), 30, self.seen)
        self.feishu.say(prompt(say("the last word")))
        self.card("the last word")
        self.assertEqual([], self.feishu.violations())

    def test_a_hook_of_this_nod_says_that_the_daemon_is_of_the_last_release(self):
        self.started(BEFORE)
        self.daemon.nod = binary()
        asked = self.ask("npm run new-hook")
        self.decide(asked, "allow", "allow")
        self.assertIn("nod service restart", asked[0].stderr)
        self.assertIn("nod service restart", self.daemon.run("status"))

    def test_the_last_release_is_replaced_and_comes_back(self):
        self.take_turns(BEFORE, binary(), BEFORE)

    def test_this_one_is_replaced_and_comes_back(self):
        self.take_turns(binary(), BEFORE, binary())


if __name__ == "__main__":
    report.main()
