"""nod and a callback service that knows only the seeds' JSON, in both directions, and only when asked for."""

import base64
import json
import secrets
import socket
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from foreign_service import Service, forward
from harness.simulator import APP_ID, APP_SECRET, OWNER, Simulator
from harness.socket_v1 import V1Client

from harness import report
from harness.nod import Daemon
from harness.waiting import wait_until

UNREACHABLE = "回调服务不可达，请检查服务状态"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def open_api(feishu, path, body, token=None):
    headers = {"Content-Type": "application/json; charset=utf-8"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(f"{feishu.domain}/open-apis/{path}", json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as response:
        return json.load(response)


def send_card(feishu, callback_url, request_id):
    """A card as the seeds' own sender makes it: three fields on each button and no seal."""
    token = open_api(feishu, "auth/v3/tenant_access_token/internal", {"app_id": APP_ID, "app_secret": APP_SECRET})
    buttons = [
        {
            "tag": "button",
            "text": {"tag": "plain_text", "content": action},
            "behaviors": [
                {
                    "type": "callback",
                    "value": {"action": action, "request_id": request_id, "callback_url": callback_url},
                }
            ],
        }
        for action in ("allow", "deny")
    ]
    card = {"schema": "2.0", "body": {"elements": buttons}}
    message = {"receive_id": OWNER, "msg_type": "interactive", "content": json.dumps(card), "uuid": request_id}
    path = "im/v1/messages?receive_id_type=open_id"
    sent = open_api(feishu, path, message, token["tenant_access_token"])
    return feishu.card(sent["data"]["message_id"])


class AsGateway(unittest.TestCase):
    """Feishu pushes the click to nod; the request lives with the foreign service."""

    def setUp(self):
        self.feishu = self.enterContext(Simulator())
        self.service = self.enterContext(Service())

    def test_a_listed_service_gets_the_reference_protocols_three_fields_and_its_words_are_shown(self):
        self.enterContext(Daemon(self.feishu, CALLBACK_PEERS=self.service.url, CALLBACK_ALLOW_UNSEALED="true"))
        self.service.pending.add("1234567890-abcd1234")
        card = send_card(self.feishu, self.service.url, "1234567890-abcd1234")
        first = self.feishu.click(card, "allow")
        self.assertEqual(("success", "已批准运行"), (first.toast["type"], first.toast["content"]))
        again = self.feishu.click(card, "deny")
        self.assertEqual(("error", "请求不存在或已过期"), (again.toast["type"], again.toast["content"]))
        self.assertEqual(
            [{"action": a, "request_id": "1234567890-abcd1234", "project_dir": ""} for a in ("allow", "deny")],
            self.service.calls,
        )
        self.service.stop()
        gone = self.feishu.click(card, "allow")
        self.assertEqual(("error", UNREACHABLE), (gone.toast["type"], gone.toast["content"]))

    def test_without_the_opt_in_or_the_list_it_is_not_called(self):
        for settings in ({"CALLBACK_PEERS": self.service.url}, {"CALLBACK_ALLOW_UNSEALED": "true"}):
            with Daemon(self.feishu, **settings) as daemon:
                card = send_card(self.feishu, self.service.url, secrets.token_hex(8))
                self.assertEqual("无效的回调请求", self.feishu.click(card, "allow").toast["content"])
                daemon.kill()
        self.assertEqual([], self.service.calls)


class AsCallbackService(unittest.TestCase):
    """The foreign gateway was clicked; the request lives with nod."""

    def setUp(self):
        self.feishu = self.enterContext(Simulator())
        self.project = self.enterContext(tempfile.TemporaryDirectory())
        self.address = f"127.0.0.1:{free_port()}"

    def waiting(self, daemon):
        request_id = secrets.token_hex(16)
        raw = {
            "session_id": "sess_123",
            "hook_event_name": "PermissionRequest",
            "cwd": self.project,
            "tool_name": "Bash",
            "tool_input": {"command": "make check"},
        }
        client = V1Client(daemon.socket)
        self.addCleanup(client.socket.close)
        client.send(
            {
                "request_id": request_id,
                "project_dir": self.project,
                "raw_input_encoded": base64.b64encode(json.dumps(raw).encode()).decode(),
            }
        )
        self.assertTrue(client.ack()["success"])
        return request_id, client

    def test_each_decision_is_answered_to_the_letter(self):
        daemon = self.enterContext(Daemon(self.feishu, CALLBACK_LISTEN=self.address, CALLBACK_ALLOW_UNSEALED="true"))
        url = f"http://{self.address}"
        for action, decision, message in (
            ("allow", "allow", "已批准运行"),
            ("always", "allow", "已始终允许，后续相同操作将自动批准"),
            ("deny", "deny", "已拒绝运行"),
            ("interrupt", "deny", "已拒绝并中断"),
        ):
            with self.subTest(action):
                request_id, client = self.waiting(daemon)
                answer = forward(url, action, request_id, "/somewhere/else")
                self.assertEqual((200, {"success": True, "decision": decision, "message": message}), answer)
                self.assertEqual(decision, client.decision()["decision"]["behavior"])
                again = {"success": False, "decision": None, "message": "该请求已被处理，请勿重复操作"}
                self.assertEqual((200, again), forward(url, action, request_id))
        unknown = {"success": False, "decision": None, "message": "请求不存在或已过期"}
        self.assertEqual((200, unknown), forward(url, "allow", "nobody-asked"))
        rules = Path(self.project) / ".claude" / "settings.local.json"
        wait_until("the rule is in the project", lambda: "make check" in rules.read_text(), 5)
        self.assertFalse(Path("/somewhere/else").exists())

    def test_without_the_opt_in_nothing_is_decided(self):
        daemon = self.enterContext(Daemon(self.feishu, CALLBACK_LISTEN=self.address))
        request_id, _client = self.waiting(daemon)
        for known in (request_id, "nobody-asked"):
            refused = {"success": False, "decision": None, "message": "unauthorized"}
            self.assertEqual((401, refused), forward(f"http://{self.address}", "allow", known))
        self.assertEqual(1, daemon.status()["pending"])


if __name__ == "__main__":
    report.main()
