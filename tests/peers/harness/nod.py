"""nod itself: a daemon with a state directory of its own, against the local Feishu."""

import json
import os
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
    "UserPromptSubmit",
    "SessionEnd",
    "Notification",
)


def binary():
    return Path(os.environ["NOD_BIN"])


class Daemon:
    """`nod daemon` connected to a simulator. `settings` are extra environment variables."""

    def __init__(self, simulator, **settings):
        self._directory = tempfile.TemporaryDirectory(prefix="nod-state-", ignore_cleanup_errors=True)
        root = Path(self._directory.name).resolve()
        self.socket = root / "hook.sock"
        # The hook sees these through Claude Code: they say where the daemon is, and nothing secret.
        self.hook_settings = {
            "NOD_STATE_DIR": str(root / "state"),
            "PERMISSION_SOCKET_PATH": str(self.socket),
            **settings,
        }
        self._environment = {
            "HOME": str(root),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "FEISHU_APP_ID": APP_ID,
            "FEISHU_APP_SECRET": APP_SECRET,
            "FEISHU_DOMAIN": simulator.domain,
            "FEISHU_OWNER_ID": OWNER,
            **self.hook_settings,
        }
        self._cwd = root
        self._simulator = simulator
        self.child = None
        self.start()

    def start(self):
        """Starts it and waits until Feishu has its connection and hooks can reach it."""
        self.child = Child([binary(), "daemon"], self._environment, self._cwd)

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

    def status(self):
        child = Child([binary(), "status", "--json"], self._environment, self._cwd)
        try:
            child.wait(10)
            return json.loads(child.stdout)
        finally:
            child.stop()

    def box(self, model, **options):
        """A Claude Code whose every hook is this nod."""
        hook = f"{binary()} hook"
        return ClaudeBox(model, dict.fromkeys(HOOK_EVENTS, hook), environment=self.hook_settings, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stop()
        self._directory.cleanup()
