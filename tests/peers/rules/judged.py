"""What every rule is judged by: a project of the real CLI's, taps on the cards it makes nod send, and a hook that
denies whatever a later session of the CLI still asks about.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from nod.scenario import Scenario

from harness.waiting import wait_until

HERE = Path(__file__).resolve().parent

# A session that asks more often within a minute is left to the terminal.
AT_ONCE = 10


class Judged(Scenario):
    settings = {"PERMISSION_REQUEST_TIMEOUT": "60"}

    def setUp(self):
        super().setUp()
        project = self.box.project
        for place in ("src", "sub"):
            (project / place).mkdir()
        for name in ("probe", "src/tool", "sub/probe"):
            (project / name).write_text("#!/bin/sh\necho ran\n")
            (project / name).chmod(0o755)
        (project / "file").write_text("text\n")
        (project / "script.py").write_text("print('ran')\n")
        (project / "Makefile").write_text("all check:\n\t@echo ran\n")
        (self.box.home / "notes").write_text("notes\n")
        (self.box.home / "other").write_text("other\n")
        (self.box.home / ".ssh").mkdir()
        (self.box.home / ".ssh" / "id_rsa").write_text("KEY\n")
        quiet = {"cwd": project, "check": True, "capture_output": True}
        who = ["-c", "user.name=a", "-c", "user.email=a@a.example"]
        subprocess.run(["git", "init", "-q"], **quiet)
        subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", "x"], **quiet)
        shutil.copy(HERE / "mcp_server.py", project / "server.py")
        server = {"command": sys.executable, "args": [str(project / "server.py")]}
        (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"desk": server}}))
        # Nothing of this goes to any network.
        self.box.environment |= {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
        self.box.environment |= {"NO_PROXY": "127.0.0.1", "GIT_CONFIG_NOSYSTEM": "1"}
        self.change_settings(enableAllProjectMcpServers=True)

    def change_settings(self, **more):
        file = self.box.home / ".claude" / "settings.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | more))

    def tap_each(self, steps, action):
        """Runs the steps in sessions of the CLI and taps `action` on every card that comes; what it said."""
        toasts, seen = [], {card.id for card in self.feishu.cards()}
        for first in range(0, len(steps), AT_ONCE):
            some = steps[first : first + AT_ONCE]
            run = self.box.start_print(*some)
            for step in some:

                def fresh():
                    return next((c for c in self.feishu.cards() if c.id not in seen and c.decides()), None)

                card = wait_until(f"card asks about {step}", fresh, 30, self.seen)
                seen.add(card.id)
                self.assertIn(action, card.values(), f"{step}: {card.text}")
                toasts.append(self.feishu.click(card, action).toast["content"])
            self.assertEqual("DONE", run.result()["result"], self.seen())
        return toasts

    def asks(self, steps):
        """Which of the steps a new session of the CLI still asks about; all of them are denied."""
        log = self.box.root / "asked"
        log.unlink(missing_ok=True)
        self.box.environment["ASKED"] = str(log)
        hook = {"type": "command", "command": f"{sys.executable} {HERE / 'deny_all.py'}", "timeout": 20}
        file = self.box.home / ".claude" / "settings.json"
        before = file.read_text()
        self.change_settings(hooks={"PermissionRequest": [{"hooks": [hook]}]})
        self.box.print(*steps, limit=200)
        file.write_text(before)
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        asked = [json.loads(line) for line in lines]
        return [[step["tool"], step["input"]] in asked for step in steps]

    def left(self):
        return self.box.local_settings()["permissions"]["allow"]

    def compare(self, passing, asking):
        """What passes must pass, what asks must ask; every difference at once."""
        # Denied calls have no effect, so that they go first.
        asked = self.asks([*asking, *passing])
        wrong = [("passed", step["input"]) for step, did in zip(asking, asked, strict=False) if not did]
        wrong += [("asked", s["input"]) for s, did in zip(passing, asked[len(asking) :], strict=True) if did]
        self.assertEqual([], wrong)
