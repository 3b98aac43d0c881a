"""Child processes that never outlive their test.

Claude Code starts its hooks in sessions of their own, so a process group is
not enough to find what a test left behind. Every child inherits one unique
environment variable and is found by it.
"""

import os
import signal
import subprocess
import threading
import uuid
from pathlib import Path

from .waiting import wait_until

MARK = "NOD_PEERS_RUN"


def marked(environment):
    """The environment with the mark of this run, inherited or new."""
    os.environ.setdefault(MARK, uuid.uuid4().hex)
    return {**environment, MARK: os.environ[MARK]}


def marked_pids(mark):
    """Processes that carry `mark`, without the caller and its ancestors."""
    needle = f"{MARK}={mark}".encode()
    own = _ancestors()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in own:
            continue
        try:
            if needle in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _ancestors():
    pid, chain = os.getpid(), set()
    while pid > 0:
        chain.add(pid)
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            break
        pid = int(stat.rpartition(")")[2].split()[1])
    return chain


def sweep(mark):
    """Kills what still carries `mark`; returns the names of what had to be killed."""
    names = []
    for pid in marked_pids(mark):
        try:
            names.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120])
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    return names


class Child:
    """A process with its output collected; stopped at the end of a `with` block."""

    def __init__(self, command, environment, cwd=None, stdin=None):
        self.process = subprocess.Popen(
            [str(part) for part in command],
            env=marked(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._parts = {"stdout": bytearray(), "stderr": bytearray()}
        self._readers = [threading.Thread(target=self._read, args=(name,), daemon=True) for name in self._parts]
        for reader in self._readers:
            reader.start()
        if stdin is not None:
            self.process.stdin.write(stdin)
            self.process.stdin.close()

    def _read(self, name):
        stream = getattr(self.process, name)
        while chunk := stream.read1(65536):
            self._parts[name] += chunk

    @property
    def pid(self):
        return self.process.pid

    @property
    def stdout(self):
        return self._parts["stdout"].decode(errors="replace")

    @property
    def stderr(self):
        return self._parts["stderr"].decode(errors="replace")

    def everything(self):
        return f"exit {self.process.poll()}\nstdout: {self.stdout}\nstderr: {self.stderr}"

    def running(self):
        return self.process.poll() is None

    def first_line(self, limit=20.0):
        """The first complete line on stdout."""

        def line():
            if "\n" in self.stdout:
                return True
            if not self.running():
                raise AssertionError(f"ended before its first line: {self.everything()}")
            return False

        wait_until("first line on stdout", line, limit, self.everything)
        return self.stdout.split("\n", 1)[0]

    def wait(self, limit=60.0):
        """Its exit code, with all output read."""
        wait_until("process end", lambda: not self.running(), limit, self.everything)
        for reader in self._readers:
            reader.join(5)
        return self.process.returncode

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, limit=10.0):
        """SIGTERM, then SIGKILL; returns the exit code."""
        if self.running():
            self.process.terminate()
            try:
                self.process.wait(limit)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for reader in self._readers:
            reader.join(5)
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
