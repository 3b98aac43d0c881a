"""Foreign clients of socket protocol v1 against the daemon, in every awkward way a client may read and write."""

import json
import socket
import unittest
from pathlib import Path

from harness.simulator import Simulator

from harness import report
from harness.nod import Daemon
from harness.processes import Child
from harness.socket_v1 import V1Client, request
from harness.waiting import wait_until

SHELL = Path(__file__).parent / "v1_client.sh"
COMMAND = "make release"


class Foreign(unittest.TestCase):
    settings = {}

    def setUp(self):
        self.feishu = self.enterContext(Simulator())
        self.daemon = self.enterContext(Daemon(self.feishu, **self.settings))
        self.project = self.daemon.socket.parent / "project"
        self.project.mkdir()

    def client(self):
        return self.enterContext(V1Client(self.daemon.socket))

    def request(self, command=COMMAND):
        return request("Bash", {"command": command}, self.project)

    def card(self, command=COMMAND):
        def found():
            return next((card for card in self.feishu.cards() if command in card.text and card.decides()), None)

        return wait_until(f"card asks about {command!r}", found, 20, self.daemon.child.everything)

    def assert_ack(self, ack):
        self.assertEqual({"success": True, "message": "Request registered", "session_id": "sess_123"}, ack)

    def assert_allowed(self, decision):
        self.assertEqual({"success": True, "session_id": "sess_123", "decision": {"behavior": "allow"}}, decision)


class PythonClient(Foreign):
    def test_each_button_is_told_as_the_protocol_says(self):
        told = {
            "allow": {"behavior": "allow"},
            "always": {"behavior": "allow"},
            "deny": {"behavior": "deny", "message": "用户通过飞书拒绝", "interrupt": False},
        }
        for action, expected in told.items():
            with self.subTest(action), V1Client(self.daemon.socket) as client:
                command = f"make {action}"
                client.send(self.request(command))
                self.assert_ack(client.ack())
                self.feishu.click(self.card(command), action)
                decision = client.decision()
                self.assertEqual(expected, decision["decision"])
                self.assertTrue(client.at_end())

    def test_interrupt_is_a_denial_with_interrupt(self):
        client = self.client()
        client.send(self.request())
        client.ack()
        self.feishu.click(self.card(), "interrupt")
        decision = client.decision()["decision"]
        self.assertEqual(("deny", True), (decision["behavior"], decision["interrupt"]))

    def test_always_is_written_to_the_project_for_a_client_that_cannot(self):
        client = self.client()
        client.send(self.request())
        client.ack()
        self.feishu.click(self.card(), "always")
        self.assert_allowed(client.decision())
        file = self.project / ".claude" / "settings.local.json"
        wait_until("rule is on disk", file.exists, 5)
        self.assertEqual([f"Bash({COMMAND})"], json.loads(file.read_text())["permissions"]["allow"])

    def test_request_in_pieces(self):
        for piece in (1, 7, 100):
            with self.subTest(piece=piece), V1Client(self.daemon.socket) as client:
                command = f"make piece{piece}x"
                client.send(self.request(command), piece)
                self.assert_ack(client.ack())
                self.feishu.click(self.card(command), "allow")
                self.assert_allowed(client.decision())

    def test_request_with_space_around_it(self):
        client = self.client()
        client.send(b"\n " + json.dumps(self.request(), indent=2).encode() + b"\r\n")
        self.assert_ack(client.ack())
        self.feishu.click(self.card(), "allow")
        self.assert_allowed(client.decision())

    def test_half_closed_client_is_still_answered(self):
        client = self.client()
        client.send(self.request())
        client.half_close()
        self.assert_ack(client.ack())
        self.feishu.click(self.card(), "allow")
        self.assert_allowed(client.decision())

    def test_reader_that_comes_late_finds_both_messages_in_one_read(self):
        client = self.client()
        client.send(self.request())
        self.feishu.click(self.card(), "allow")
        wait_until("both messages are there", lambda: b"\0" in client.socket.recv(65536, socket.MSG_PEEK), 10)
        ack, decision = client.one_byte_at_a_time()
        self.assert_ack(ack)
        self.assert_allowed(decision)

    def test_reader_of_one_byte_at_a_time(self):
        client = self.client()
        client.send(self.request())
        card = self.card()
        self.feishu.click(card, "allow")
        ack, decision = client.one_byte_at_a_time()
        self.assert_ack(ack)
        self.assert_allowed(decision)

    def test_client_that_left_cannot_be_answered(self):
        client = self.client()
        client.send(self.request())
        client.ack()
        card = self.card()
        client.socket.close()
        wait_until("card shows its ending", lambda: not self.feishu.card(card.id).decides(), 10)
        self.assertEqual("请求已失效，请返回终端查看状态", self.feishu.click_stale(card, "allow").toast["content"])

    def test_malformed_request_is_refused_and_the_next_one_served(self):
        for bad in (b"hello", b"[]", b"{}", b'{"request_id":1}', b'{"request_id":"', b"\0\0\0\2{}"):
            with self.subTest(bad), V1Client(self.daemon.socket) as client:
                client.send(bad)
                client.half_close()
                answer = b"".join(iter(lambda: client.socket.recv(4096), b""))
                self.assertFalse(json.loads(answer)["success"] if answer else False)
        self.test_half_closed_client_is_still_answered()

    def test_slow_client_holds_up_nobody(self):
        slow = self.client()
        data = json.dumps(self.request("make slow")).encode()
        slow.send(data[:20])
        other = self.client()
        other.send(self.request())
        self.assert_ack(other.ack())
        self.feishu.click(self.card(), "allow")
        self.assert_allowed(other.decision())
        slow.send(data[20:])
        self.assert_ack(slow.ack())
        self.feishu.click(self.card("make slow"), "allow")
        self.assert_allowed(slow.decision())


class Unanswered(Foreign):
    settings = {"PERMISSION_REQUEST_TIMEOUT": "2"}

    def test_timeout_falls_back_to_the_terminal(self):
        client = self.client()
        client.send(self.request())
        client.ack()
        decision = client.decision()
        self.assertEqual(
            {
                "success": False,
                "fallback_to_terminal": True,
                "error": "server_timeout",
                "session_id": "sess_123",
                "message": "服务器超时（2秒），请在终端操作",
            },
            decision,
        )


class ShellClient(Foreign):
    def run_shell(self, action):
        raw = {"session_id": "sess_123", "tool_name": "Bash", "tool_input": {"command": COMMAND}}
        message = self.request()
        child = self.enterContext(
            Child(
                [SHELL, self.daemon.socket, self.project, message["request_id"]],
                {"PATH": "/usr/bin:/bin"},
                stdin=json.dumps(raw).encode(),
            )
        )
        self.feishu.click(self.card(), action)
        self.assertEqual(0, child.wait(20), child.everything())
        ack, decision = child.stdout.splitlines()
        self.assert_ack(json.loads(ack))
        return json.loads(decision)

    def test_allow(self):
        self.assert_allowed(self.run_shell("allow"))

    def test_deny(self):
        self.assertEqual("deny", self.run_shell("deny")["decision"]["behavior"])


if __name__ == "__main__":
    report.main()
