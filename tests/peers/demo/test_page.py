"""The demo's page in a real browser: the whole tour, at desktop and phone width, light and dark, zh and en."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import report
from harness.nod import binary
from harness.processes import Child
from harness.waiting import wait_until

TOUR = Path(__file__).resolve().parent / "tour.js"
TOUR_SECONDS = 120


class Page(unittest.TestCase):
    def setUp(self):
        chosen = os.environ.get("NOD_PEERS_SHOTS")
        self.shots = Path(chosen or tempfile.mkdtemp(prefix="nod-shots-"))
        self.shots.mkdir(parents=True, exist_ok=True)
        if not chosen:
            self.addCleanup(shutil.rmtree, self.shots, ignore_errors=True)

    def tour(self, size, scheme, lang):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.shots), "LANG": "C.UTF-8"}
        demo = Child([binary(), "demo", "--no-browser", "--lang", lang], environment, self.shots)
        try:
            found = wait_until("address is printed", lambda: self.address(demo), 30, demo.everything)
            done = subprocess.run(
                ["node", str(TOUR), found, size, scheme, lang, str(self.shots)],
                capture_output=True,
                text=True,
                timeout=TOUR_SECONDS,
                check=False,
            )
            self.assertEqual(0, done.returncode, f"{done.stdout}{done.stderr}\n{demo.everything()}")
        finally:
            demo.stop()

    @staticmethod
    def address(demo):
        found = re.search(r"http://\S+", demo.everything())
        return found and found.group()

    def test_desktop_light_english(self):
        self.tour("1280x800", "light", "en")

    def test_desktop_dark_chinese(self):
        self.tour("1280x800", "dark", "zh")

    def test_phone_light_chinese(self):
        self.tour("375x812", "light", "zh")

    def test_phone_dark_english(self):
        self.tour("375x812", "dark", "en")


if __name__ == "__main__":
    report.main()
