"""`nod hook` by itself: quick without a daemon, and it touches nothing it has no business with."""

import json
import re
import statistics
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from harness.simulator import Simulator

from harness import report
from harness.nod import Daemon, hook_command
from harness.processes import Child, marked
from harness.waiting import wait_until

ASKS = json.dumps(
    {
        "session_id": "8dc2e48c-c040-4f3e-8b87-dd9186211ce1",
        "cwd": "/",
        "hook_event_name": "PermissionRequest",
        "permission_mode": "default",
        "tool_name": "Bash",
        "tool_input": {"command": "make release"},
        "permission_suggestions": [],
    }
).encode()

# What the loader and the standard library open for any program.
LOADER = re.compile(r"^(/etc/ld\.so|/lib|/usr/lib|/proc/self/|/proc/\d+/|/sys/fs/cgroup|/dev/null)|\.so(\.\d+)*$")


class WithoutDaemon(unittest.TestCase):
    def setUp(self):
        self.home = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.environment = marked({"HOME": str(self.home)})
        self.command = hook_command(
            self.home,
            {"NOD_STATE_DIR": str(self.home / "state"), "PERMISSION_SOCKET_PATH": str(self.home / "no.sock")},
        )

    def hook(self):
        return subprocess.run(
            self.command, input=ASKS, env=self.environment, cwd=self.home, capture_output=True, timeout=20
        )

    def test_nothing_is_printed_and_one_line_says_why(self):
        done = self.hook()
        self.assertEqual((0, b""), (done.returncode, done.stdout))
        self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)

    def test_it_returns_in_20_ms(self):
        took = []
        for _ in range(20):
            started = time.monotonic()
            self.hook()
            took.append((time.monotonic() - started) * 1000)
        print(f"nod hook without a daemon: median {statistics.median(took):.1f} ms")
        self.assertLess(statistics.median(took), 20)

    def test_socket_nobody_listens_on_is_no_daemon(self):
        path = self.home / "no.sock"
        with Child(["socat", f"UNIX-LISTEN:{path}", "-"], self.environment) as listener:
            wait_until("socket is there", path.exists, 5, listener.everything)
            listener.process.kill()
            listener.wait(5)
            done = self.hook()
        self.assertEqual((0, b""), (done.returncode, done.stdout))


class Traced(unittest.TestCase):
    def test_it_opens_no_network_and_no_foreign_file(self):
        feishu = self.enterContext(Simulator())
        daemon = self.enterContext(Daemon(feishu))
        trace = daemon.socket.parent / "trace"
        command = ["strace", "-f", "-qq", "-e", "trace=network,open,openat,openat2", "-o", trace, *daemon.hook]
        environment = {"HOME": str(daemon.socket.parent), "PATH": "/usr/bin:/bin"}
        hook = self.enterContext(Child(command, environment, daemon.socket.parent, stdin=ASKS))

        def waiting():
            return next((card for card in feishu.cards() if card.decides()), None)

        feishu.click(wait_until("card", waiting, 20, hook.everything), "allow")
        self.assertEqual(0, hook.wait(20), hook.everything())
        self.assertEqual("allow", json.loads(hook.stdout)["hookSpecificOutput"]["decision"]["behavior"])

        calls = trace.read_text()
        families = set(re.findall(r"\bsocket\((\w+)", calls))
        self.assertEqual({"AF_UNIX"}, families, calls)
        opened = set(re.findall(r'open(?:at2?)?\((?:AT_FDCWD, )?"([^"]+)"', calls))
        foreign = {path for path in opened if not LOADER.search(path) and not path.endswith(".env")}
        self.assertEqual(set(), foreign)


if __name__ == "__main__":
    report.main()
