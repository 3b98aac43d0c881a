"""Every terminal the documents show, typed as it stands; what is printed must be what they show."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

from harness import report
from harness.nod import binary
from harness.processes import marked
from harness.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "proto").glob("*.md"))]
# The ports the documents choose.
PORT = re.compile(r"\b77\d\d\b")


def blocks(text):
    """The console blocks of a document: lists of `(typed, printed)`."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        pairs = []
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            last = next(at for at, line in enumerate(lines) if not line.endswith("\\"))
            pairs.append(("\n".join(lines[: last + 1]), lines[last + 1 :]))
        yield pairs


def pattern(lines):
    """What fits the lines as shown; `…` stands for anything."""
    return re.compile(r"\s*" + r"\s+".join(re.escape(line).replace("…", ".*") for line in lines) + r"\s*\Z")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


class Shell:
    """A shell that is typed to, and what it printed since the last line typed."""

    def __init__(self, environment, cwd):
        self._process = subprocess.Popen(
            ["bash", "--norc"],
            env=marked(environment),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._printed = bytearray()
        self._ends = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while chunk := self._process.stdout.read1(65536):
            self._printed += chunk

    def types(self, line):
        """Types one line; the mark it returns is printed when that has ended."""
        self._ends += 1
        self._printed.clear()
        mark = f"-- end {self._ends} --"
        self._process.stdin.write(f"{line}\necho; echo '{mark}'\n".encode())
        self._process.stdin.flush()
        return mark

    def printed(self):
        return self._printed.decode(errors="replace")

    def close(self):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(5)
        self._process.stdin.close()
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Console(unittest.TestCase):
    def run_blocks(self, document, all_blocks):
        """Each block in a terminal of its own; what does not end goes on beside the next."""
        ports = {}
        home = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="nod-docs-")))
        tools = home / "bin"
        tools.mkdir()
        (tools / "nod").symlink_to(binary())
        environment = {"HOME": str(home), "PATH": f"{tools}:/usr/bin:/bin", "NOD_LANG": "en", "TMPDIR": str(home)}

        def ours(text):
            return PORT.sub(lambda found: ports.setdefault(found[0], free_port()), text)

        for pairs in all_blocks:
            shell = self.enterContext(Shell(environment, home))
            for at, (typed, shown) in enumerate(pairs):
                mark = shell.types(ours(typed))
                expected = pattern([ours(line) for line in shown])
                is_last = at + 1 == len(pairs)

                def fits(shell=shell, mark=mark, expected=expected, is_last=is_last):
                    printed, ended, _ = shell.printed().partition(mark)
                    return (ended or is_last) and expected.match(printed)

                wait_until(f"{document.name}: `{typed}`", fits, 30, shell.printed)

    def test_every_terminal_shown_is_true(self):
        seen = 0
        for document in DOCUMENTS:
            found = list(blocks(document.read_text()))
            seen += sum(map(len, found))
            with self.subTest(document.name):
                self.run_blocks(document, found)
        self.assertGreater(seen, 8)


if __name__ == "__main__":
    report.main()
