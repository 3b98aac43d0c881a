"""Our client's bytes, read by other people's codecs: the `websockets` library and the official SDK's protobuf."""

import base64
import json
import os
import unittest
from pathlib import Path

from harness import report
from harness.nod import Daemon
from harness.processes import Child
from harness.waiting import wait_until

SERVER = Path(__file__).parent / "foreign_server.py"
SERVICE = 33554678
HEADERS = [
    ["timestamp", "1718000000123"],
    ["type", "event"],
    ["message_id", "5c1c9d1e-0001"],
    ["sum", "1"],
    ["seq", "0"],
    ["trace_id", "tr-1"],
    ["instance_id", "inst-AbC"],
]


class OurBytes(unittest.TestCase):
    def setUp(self):
        environment = {"PATH": os.environ["PATH"]}
        self.server = self.enterContext(Child([os.environ["NOD_PEERS_PYTHON"], SERVER], environment))
        self.domain = self.server.first_line()
        self.enterContext(Daemon(self))

    def connections(self):
        return self.frames()

    def frames(self, method=None):
        complete = self.server.stdout.rpartition("\n")[0].splitlines()[1:]
        frames = [json.loads(line) for line in complete]
        return [frame for frame in frames if method in (None, frame["method"])]

    def test_ping_and_reply_hold_every_field(self):
        (reply,) = wait_until("click is answered", lambda: self.frames(1), 10, self.server.everything)
        ping = self.frames(0)[0]
        self.assertEqual(
            {
                "SeqID": 0,
                "LogID": 0,
                "service": SERVICE,
                "method": 0,
                "headers": [["type", "ping"]],
                "payload": None,
                "missing": [],
                "same_bytes": True,
            },
            ping,
        )
        payload = json.loads(reply.pop("payload"))
        headers = reply.pop("headers")
        self.assertEqual(
            {
                "SeqID": 7,
                "LogID": 2**63 + 42,
                "service": SERVICE,
                "method": 1,
                "LogIDNew": "2026021713370042",
                "missing": [],
                "same_bytes": True,
            },
            reply,
        )
        self.assertEqual(HEADERS, headers[:-1])
        key, value = headers[-1]
        self.assertEqual("biz_rt", key)
        self.assertGreaterEqual(int(value), 0)
        self.assertEqual(200, payload["code"])
        toast = json.loads(base64.b64decode(payload["data"], validate=True))["toast"]
        self.assertEqual("error", toast["type"])


if __name__ == "__main__":
    report.main()
