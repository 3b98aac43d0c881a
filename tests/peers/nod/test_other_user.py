"""Another user of the same machine can neither ask nor answer, nor stand in for the daemon."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness.simulator import Simulator

from harness import report
from harness.nod import Daemon, hook_command
from harness.processes import Child, marked
from harness.waiting import wait_until

NOBODY = 65534
# The one that runs this may lie in a home that nobody else can enter.
PYTHON = "/usr/bin/python3"

# Says whether it could connect, and what it was told on sending a request.
CONNECT = """
import json, socket, sys
client = socket.socket(socket.AF_UNIX)
client.settimeout(5)
try:
    client.connect(sys.argv[1])
    client.sendall(json.dumps({"request_id": "a" * 32, "project_dir": "/", "raw_input_encoded": "e30="}).encode())
    print("told", client.recv(4096))
except OSError as error:
    print("refused", error)
"""

# A daemon's double: takes any request and allows it.
DOUBLE = """
import json, os, socket, struct, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
server.listen()
print("listening", flush=True)
while True:
    client, _ = server.accept()
    print("heard", client.recv(65536), flush=True)
    client.sendall(json.dumps({"success": True, "message": "Request registered", "session_id": "s"}).encode())
    decision = json.dumps({"success": True, "session_id": "s", "decision": {"behavior": "allow"}}).encode()
    client.sendall(struct.pack(">I", len(decision)) + decision)
    client.close()
"""

ASKS = json.dumps(
    {
        "session_id": "8dc2e48c-c040-4f3e-8b87-dd9186211ce1",
        "cwd": "/",
        "hook_event_name": "PermissionRequest",
        "tool_name": "Bash",
        "tool_input": {"command": "curl secret-host"},
    }
).encode()


@unittest.skipUnless(os.geteuid() == 0 and os.path.exists(PYTHON), "needs root, and a Python for everybody")
class OtherUser(unittest.TestCase):
    def as_nobody(self, *command):
        return subprocess.run(
            [str(part) for part in command],
            env=marked({"PATH": os.environ["PATH"]}),
            cwd="/",
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=20,
        )

    def test_socket_refuses_it(self):
        feishu = self.enterContext(Simulator())
        daemon = self.enterContext(Daemon(feishu))
        # Everybody may enter the directory, so only the socket itself stands in the way.
        daemon.socket.parent.chmod(0o755)
        for mode in (None, 0o777):
            if mode:
                daemon.socket.chmod(mode)
            with self.subTest(mode=mode):
                done = self.as_nobody(PYTHON, "-c", CONNECT, daemon.socket)
                self.assertNotIn('"success": true', done.stdout.replace('":true', '": true'))
        self.assertEqual([], feishu.cards())

    def test_hook_does_not_believe_a_double(self):
        root = Path(self.enterContext(tempfile.TemporaryDirectory()))
        root.chmod(0o777)
        path = root / "hook.sock"
        double = self.enterContext(
            Child(
                ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", PYTHON, "-uc", DOUBLE, path],
                {"PATH": os.environ["PATH"]},
                "/",
            )
        )
        wait_until("double listens", path.exists, 10, double.everything)
        double.first_line()
        done = subprocess.run(
            hook_command(root, {"PERMISSION_SOCKET_PATH": str(path), "NOD_STATE_DIR": str(root / "state")}),
            input=ASKS,
            env=marked({"HOME": str(root)}),
            cwd=root,
            capture_output=True,
            timeout=20,
        )
        self.assertEqual((0, b""), (done.returncode, done.stdout))
        self.assertNotIn("secret-host", double.stdout)
        self.assertNotIn("heard b'{", double.stdout)


if __name__ == "__main__":
    report.main()
