"""The webhook mode's page in a real browser: approve, see the result, press back and approve again."""

import base64
import json
import os
import secrets
import shutil
import socket
import tempfile
import unittest
from pathlib import Path

from harness.processes import Child
from harness.simulator import Simulator
from harness.socket_v1 import V1Client

from harness import report
from harness.nod import binary
from harness.waiting import wait_until

WEBHOOK = "open-apis/bot/v2/hook/5b1d0c9e-simulated-custom-bot"
WEBHOOK_SECRET = "simulated-webhook-Xy72"
PRESS = Path(__file__).with_name("press.js")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def links(value):
    if isinstance(value, dict):
        if "default_url" in value:
            yield value["default_url"]
        value = list(value.values())
    for item in value if isinstance(value, list) else []:
        yield from links(item)


class Page(unittest.TestCase):
    def setUp(self):
        self.feishu = self.enterContext(Simulator())
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        address = f"127.0.0.1:{free_port()}"
        self.socket = self.root / "hook.sock"
        environment = {
            "HOME": str(self.root),
            "NOD_STATE_DIR": str(self.root / "state"),
            "PERMISSION_SOCKET_PATH": str(self.socket),
            "FEISHU_SEND_MODE": "webhook",
            "FEISHU_WEBHOOK_URL": f"{self.feishu.domain}/{WEBHOOK}",
            "FEISHU_WEBHOOK_SECRET": WEBHOOK_SECRET,
            "CALLBACK_LISTEN": address,
            "CALLBACK_SERVER_URL": f"http://{address}",
        }
        self.daemon = self.enterContext(Child([binary(), "daemon"], environment, self.root))
        wait_until("daemon is there", self.socket.exists, 20, self.daemon.everything)

    def ask(self, command):
        raw = {
            "session_id": "sess_123",
            "hook_event_name": "PermissionRequest",
            "cwd": str(self.root),
            "tool_name": "Bash",
            "tool_input": {"command": command},
        }
        client = V1Client(self.socket)
        self.addCleanup(client.socket.close)
        client.send(
            {
                "request_id": secrets.token_urlsafe(24),
                "project_dir": str(self.root),
                "raw_input_encoded": base64.b64encode(json.dumps(raw).encode()).decode(),
            }
        )
        self.assertTrue(client.ack()["success"])
        return client

    def card_links(self, cards=1):
        def spoken():
            said = self.feishu.history("webhook")
            return said if len(said) >= cards else None

        entry = wait_until("the custom bot spoke", spoken, 20)[-1]
        return {link.split("/")[3].split("?")[0]: link for link in links(entry["said"])}

    def press(self, link):
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "NODE_PATH": os.environ["NOD_PEERS_PLAYWRIGHT"],
        }
        chromium = shutil.which("chromium")
        child = self.enterContext(Child(["node", PRESS, chromium, link], environment, self.root))
        self.assertEqual(0, child.wait(90), child.everything())
        return json.loads(child.stdout)

    def test_approve_back_and_approve_again(self):
        client = self.ask("printf '<script>document.title=1</script>' && echo " + "very-long-" * 60)
        steps = self.press(self.card_links()["allow"])
        self.assertEqual(1, steps["opened"]["button"])
        self.assertIn("<script>document.title=1</script>", steps["text"])
        self.assertIn("已批准运行", steps["pressed"]["title"])
        self.assertEqual("allow", client.decision()["decision"]["behavior"])
        for step in ("back", "again", "second"):
            self.assertEqual(0, steps[step]["button"], steps)
            self.assertIn("该请求已被处理，请勿重复操作", steps[step]["title"])
        self.assertFalse(any(steps[step]["wide"] for step in ("opened", "pressed")), "it fits a phone")
        self.assertEqual([], steps["problems"])

    def test_the_button_for_a_short_command_is_on_the_screen(self):
        for cards, action in enumerate(("allow", "deny", "interrupt"), 1):
            client = self.ask("npm test")
            steps = self.press(self.card_links(cards)[action])
            self.assertEqual("npm test", steps["opened"]["title"])
            self.assertFalse(steps["opened"]["low"], action)
            client.decision()


if __name__ == "__main__":
    report.main()
