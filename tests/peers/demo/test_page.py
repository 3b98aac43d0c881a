"""The demo's page in a real browser: the whole tour, at desktop and phone width, light and dark, zh and en."""

import os
import re
import shutil
import tempfile
import unittest
from functools import partial
from pathlib import Path

from harness import report
from harness.nod import binary
from harness.processes import Child
from harness.waiting import wait_until

HERE = Path(__file__).resolve().parent
TOUR_SECONDS = 240
# What the tour prints when all that is left to see is the end of the demo.
READY = "ready to end"


class Page(unittest.TestCase):
    def setUp(self):
        chosen = os.environ.get("NOD_PEERS_SHOTS")
        self.shots = Path(chosen or tempfile.mkdtemp(prefix="nod-shots-"))
        self.shots.mkdir(parents=True, exist_ok=True)
        if not chosen:
            self.addCleanup(shutil.rmtree, self.shots, ignore_errors=True)

    def tour(self, size, scheme, lang, *more):
        self.walk("tour.js", [], size, scheme, lang, *more)

    def team(self, size, scheme, lang):
        self.walk("team.js", ["--team"], size, scheme, lang)

    def walk(self, script, flags, size, scheme, lang, *more):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.shots), "LANG": "C.UTF-8"}
        demo = Child([binary(), "demo", *flags, "--no-browser", "--lang", lang], environment, self.shots)
        try:
            found = wait_until("address is printed", lambda: self.address(demo), 30, demo.everything)
            tour = Child(["node", str(HERE / script), found, size, scheme, lang, str(self.shots), *more], dict(os.environ))
            try:
                seen = partial(self.seen, tour, demo)
                wait_until("tour is over", lambda: READY in tour.stdout or not tour.running(), TOUR_SECONDS, seen)
                demo.stop()
                self.assertEqual(0, tour.wait(), seen())
            finally:
                tour.stop()
        finally:
            demo.stop()

    @staticmethod
    def seen(*children):
        return "\n".join(child.everything() for child in children)

    @staticmethod
    def address(demo):
        found = re.search(r"http://\S+", demo.everything())
        return found and found.group()

    def test_desktop_light_english(self):
        self.tour("1280x800", "light", "en")

    def test_by_keyboard_alone(self):
        self.tour("1280x800", "light", "en", "keys")

    def test_desktop_dark_chinese(self):
        self.tour("1280x800", "dark", "zh")

    def test_phone_light_chinese(self):
        self.tour("390x844", "light", "zh")

    def test_phone_dark_english(self):
        self.tour("390x844", "dark", "en")

    def test_team_on_a_desktop_in_english(self):
        self.team("1280x800", "light", "en")

    def test_team_on_a_phone_in_chinese(self):
        self.team("390x844", "dark", "zh")


if __name__ == "__main__":
    report.main()
