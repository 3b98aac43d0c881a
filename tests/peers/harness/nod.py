"""nod itself: a daemon with a state directory of its own, against the local Feishu."""

import json
import os
import shlex
import signal
import tempfile
from pathlib import Path

from .claude import ClaudeBox
from .processes import Child
from .simulator import APP_ID, APP_SECRET, OWNER
from .waiting import wait_until

HOOK_EVENTS = (
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SubagentStop",
    "UserPromptSubmit",
    "SessionEnd",
    "Notification",
)


def binary():
    return Path(os.environ["NOD_BIN"])


def hook_command(directory, settings):
    """The words that start a hook with these settings."""
    file = Path(directory) / "hook.env"
    file.write_text("".join(f'{name}="{value}"\n' for name, value in settings.items()))
    return [str(binary()), "hook", "--config", str(file)]


class Daemon:
    """`nod daemon` connected to a simulator. `settings` are extra environment variables; `nod` is another binary."""

    def __init__(self, simulator, nod=None, **settings):
        self.nod = nod or binary()
        self._directory = tempfile.TemporaryDirectory(prefix="nod-state-", ignore_cleanup_errors=True)
        root = Path(self._directory.name).resolve()
        self.socket = root / "hook.sock"
        self.state = root / "state"
        # The hook takes its settings from a file and none from its environment.
        shared = {
            "NOD_STATE_DIR": str(self.state),
            "PERMISSION_SOCKET_PATH": str(self.socket),
            **settings,
        }
        self.hook = hook_command(root, shared)
        self._environment = {
            "HOME": str(root),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "FEISHU_APP_ID": APP_ID,
            "FEISHU_APP_SECRET": APP_SECRET,
            "FEISHU_DOMAIN": simulator.domain,
            "FEISHU_OWNER_ID": OWNER,
            **shared,
        }
        self._cwd = root
        self._simulator = simulator
        self.child = None
        self.start()

    def start(self):
        """Starts it and waits until Feishu has its connection and hooks can reach it."""
        self.child = Child([self.nod, "daemon"], self._environment, self._cwd)

        def ready():
            if not self.child.running():
                raise AssertionError(f"daemon ended: {self.child.everything()}")
            return self._simulator.connections() and self.socket.exists()

        wait_until("daemon is connected", ready, 20, self.child.everything)

    def kill(self):
        """Ends it as a crash would, and waits until Feishu has noticed."""
        self.child.signal(signal.SIGKILL)
        self.child.wait(5)
        wait_until("connection is gone", lambda: not self._simulator.connections(), 10)

    def run(self, *arguments):
        """What a command of this nod printed; what it said besides follows."""
        child = Child([self.nod, *arguments], self._environment, self._cwd)
        try:
            child.wait(10)
            return child.stdout + child.stderr
        finally:
            child.stop()

    def status(self):
        return json.loads(self.run("status", "--json"))

    def asks(self, question, cwd):
        """A hook of this nod that asks, as Claude Code would start it."""
        command = self.hook if self.nod == binary() else [self.nod, "hook"]
        environment = {**self._environment, "CLAUDE_PROJECT_DIR": str(cwd)}
        return Child(command, environment, cwd, json.dumps(question).encode())

    def box(self, model, **options):
        """A Claude Code whose every hook is this nod."""
        return ClaudeBox(model, dict.fromkeys(HOOK_EVENTS, shlex.join(self.hook)), **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stop()
        self._directory.cleanup()
