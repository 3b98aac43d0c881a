"""The real Codex in a box: a home, a project and a model of our own.

It never sees a real credential and talks to loopback only.
"""

import os
import signal
import tempfile
from pathlib import Path

from .model import prompt
from .processes import MARK, marked_pids
from .terminal import Terminal
from .waiting import wait_until

DIALOG = "Would you like to"


def program():
    """Where the suite unpacked the CLI."""
    return Path(os.environ["NOD_PEERS_CODEX"])


class CodexBox:
    """One user with one project."""

    def __init__(self, model):
        # Codex keeps no socket for a home beneath the temporary directory.
        self._directory = tempfile.TemporaryDirectory(prefix="nod-codex-", dir="/var/tmp", ignore_cleanup_errors=True)
        self.root = Path(self._directory.name).resolve()
        self.home = self.root / ".codex"
        self.project = self.root / "shop"
        self.socket = self.home / "app-server-control" / "app-server-control.sock"
        self.home.mkdir()
        self.project.mkdir()
        # The daemon's copy of the program is large, and one is enough for all boxes.
        package = program().parents[3]
        packages = package.with_name(f"{package.name}-daemon")
        packages.mkdir(exist_ok=True)
        (self.home / "packages").symlink_to(packages)
        (self.home / "config.toml").write_text(
            f"""model = "gpt-5"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{model.url}"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
[projects."{self.project}"]
trust_level = "trusted"
"""
        )
        self.environment = {
            "HOME": str(self.root),
            "CODEX_HOME": str(self.home),
            "SCRIPTED_API_KEY": "dummy",
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
        }
        self._terminals = []

    def terminal(self, *steps):
        """Starts Codex on a script."""
        terminal = Terminal([program(), prompt(*steps)], self.environment, self.project)
        self._terminals.append(terminal)
        return terminal

    def daemons(self):
        """The processes of the daemon that plain `codex` starts."""
        found = []
        for pid in marked_pids(os.environ.get(MARK, "none")):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                theirs = str(self.home).encode() in Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            if b"app-server" in line and theirs:
                found.append(pid)
        return found

    def kill_daemon(self):
        def gone():
            for pid in self.daemons():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            return not self.daemons()

        wait_until("Codex's daemon is gone", gone)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for terminal in self._terminals:
            if terminal.running():
                terminal.close()
        self.kill_daemon()
        self._directory.cleanup()
