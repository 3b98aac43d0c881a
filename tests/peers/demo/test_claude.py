"""The real Claude Code, pointed at a demo by exactly the command that the demo shows."""

import json
import os
import re
import shlex
import unittest
import urllib.request

from harness import report
from harness.claude import DIALOG, ClaudeBox, program
from harness.model import ScriptedModel, bash, prompt
from harness.nod import binary
from harness.processes import Child
from harness.simulator import Card
from harness.terminal import Terminal
from harness.waiting import wait_until

ASKED = "touch asked-for"


class PointedHere(unittest.TestCase):
    def setUp(self):
        self.model = self.enterContext(ScriptedModel())
        self.box = self.enterContext(ClaudeBox(self.model, {}))
        # A newcomer's own settings say nothing of hooks or modes.
        (self.box.home / ".claude" / "settings.json").write_text("{}")
        path = f"{program().parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.box.root), "LANG": "C.UTF-8"}
        self.demo = Child([binary(), "demo", "--no-browser", "--lang", "en"], environment, self.box.root)
        self.addCleanup(self.demo.stop)
        shown = wait_until("a command is shown", self.shown, 30, self.demo.everything)
        self.page, self.token, self.command = shown

    def shown(self):
        page = re.search(r"(http://[^/]+)/\S*#(\S+)", self.demo.stdout)
        command = re.search(r"^ {4}(\S*claude .*)$", self.demo.stdout, re.MULTILINE)
        return page and command and (*page.groups(), command.group(1))

    def control(self, path, body=None):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(f"{self.page}/control/{path}", data, headers)
        with opener.open(request, timeout=20) as response:
            return json.load(response)

    def waiting_card(self):
        messages = self.control("messages")["messages"]
        cards = [Card(message) for message in messages if message["card"]]
        return next((card for card in cards if ASKED in card.text and card.decides()), None)

    def test_its_request_is_allowed_on_the_page(self):
        notes = self.control("history?kind=note")["entries"]
        shown = [note["command"] for note in notes if note.get("note") == "claude"]
        self.assertEqual([self.command], shown, "the page shows what the terminal shows")
        typed = f"{self.command} {shlex.quote(prompt(bash(ASKED)))}"
        # What a person's own settings name must not win over the demo.
        environment = {**self.box.environment, "PERMISSION_SOCKET_PATH": str(self.box.root / "elsewhere.sock")}
        terminal = Terminal(["/bin/sh", "-c", typed], environment, self.box.project)
        self.addCleanup(terminal.close)
        terminal.shows(DIALOG)
        card = wait_until("a card asks", self.waiting_card, 30, self.demo.everything)
        press = {"message_id": card.id, "value": {"action": "allow"}}
        self.assertEqual("success", self.control("click", press)["toast"]["type"])
        terminal.shows("DONE")
        terminal.hides(DIALOG)
        self.assertTrue((self.box.project / "asked-for").exists())
        self.assertEqual("{}", (self.box.home / ".claude" / "settings.json").read_text())


if __name__ == "__main__":
    report.main()
