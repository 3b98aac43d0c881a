"""The real Claude Code in a box: a home, a project and a model of our own.

It never sees a real credential and talks to loopback only.
"""

import json
import os
import tempfile
from pathlib import Path

from .model import prompt
from .processes import Child
from .terminal import Terminal

KEY = "sk-ant-api03-not-a-real-key-for-offline-tests"

DIALOG = "Do you want to"


def program():
    """Where the suite unpacked the CLI."""
    return Path(os.environ["NOD_PEERS_CLAUDE"])


class Run:
    """A print-mode run."""

    def __init__(self, child):
        self.child = child

    def result(self, limit=60.0):
        """The run's one result object, after its end."""
        self.child.wait(limit)
        try:
            return json.loads(self.child.stdout)
        except ValueError:
            raise AssertionError(f"no result object: {self.child.everything()}") from None

    @property
    def exit_code(self):
        return self.child.process.returncode


class ClaudeBox:
    """One user with one project. `hooks` maps an event's name to a hook command."""

    def __init__(self, model, hooks, hook_timeout=60, environment=None):
        self._directory = tempfile.TemporaryDirectory(prefix="nod-box-", ignore_cleanup_errors=True)
        self.root = Path(self._directory.name).resolve()
        self.home = self.root / "home"
        self.project = self.root / "project"
        self.project.mkdir()
        (self.home / ".claude").mkdir(parents=True)
        (self.home / ".claude.json").write_text(
            json.dumps(
                {
                    "hasCompletedOnboarding": True,
                    "lastOnboardingVersion": "99.0.0",
                    "theme": "dark",
                    # Its offer of auto mode would stand before every dialog.
                    "hasSeenAutoDefaultNudge": True,
                    "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
                    "projects": {str(self.project): {"hasTrustDialogAccepted": True, "allowedTools": []}},
                }
            )
        )
        entries = {
            event: [{"hooks": [{"type": "command", "command": str(command), "timeout": hook_timeout}]}]
            for event, command in hooks.items()
        }
        (self.home / ".claude" / "settings.json").write_text(
            json.dumps({"hooks": entries, "permissions": {"defaultMode": "default"}})
        )
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            **(environment or {}),
        }
        self._open = []

    def start_print(self, *steps):
        """Starts `claude -p` on a script."""
        command = [program(), "-p", prompt(*steps), "--output-format", "json"]
        run = Run(Child(command, self.environment, self.project))
        self._open.append(run.child.stop)
        return run

    def print(self, *steps, limit=60.0):
        """Runs `claude -p` on a script to its end; the result object."""
        return self.start_print(*steps).result(limit)

    def terminal(self, *steps):
        """Starts the interactive CLI on a script."""
        terminal = Terminal([program(), prompt(*steps)], self.environment, self.project)
        self._open.append(terminal.close)
        return terminal

    def local_settings(self):
        """What Claude Code wrote to the project's local settings, or nothing."""
        file = self.project / ".claude" / "settings.local.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while self._open:
            self._open.pop()()
        self._directory.cleanup()
