"""The unit `nod service` writes, as systemd itself reads it."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import report
from harness.nod import binary

ANALYZE = shutil.which("systemd-analyze")


@unittest.skipUnless(ANALYZE, "no systemd-analyze here, so systemd was not asked")
class Unit(unittest.TestCase):
    def setUp(self):
        self.home = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="nod-unit-")))
        self.environment = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(self.home)}

    def verify(self, text):
        """What systemd says of the unit; it does not fail for a line it ignores."""
        unit = self.home / "nod.service"
        unit.write_text(text)
        return subprocess.run(
            [ANALYZE, "--user", "verify", str(unit)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def unit(self, sandbox):
        command = [binary(), "service", "install", "--print", "--sandbox", sandbox]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=20, check=True).stdout

    def test_systemd_knows_every_line(self):
        for sandbox in ("sessions", "approvals", "strict"):
            with self.subTest(sandbox):
                verified = self.verify(self.unit(sandbox))
                self.assertEqual((0, ""), (verified.returncode, verified.stdout + verified.stderr))

    def test_a_line_it_does_not_know_is_noticed(self):
        wrong = self.unit("sessions").replace("NoNewPrivileges", "NoNewPrivilege")
        self.assertIn("NoNewPrivilege", self.verify(wrong).stderr)


if __name__ == "__main__":
    report.main()
