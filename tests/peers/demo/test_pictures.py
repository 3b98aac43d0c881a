"""The pictures at the top of the READMEs, taken from the real page.

`NOD_PEERS_PICTURES=docs tests/peers/run pictures` takes them anew.
"""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import report
from harness.nod import binary
from harness.processes import Child, marked
from harness.waiting import wait_until

FILM = Path(__file__).resolve().parent / "film.js"
FILM_SECONDS = 120
MOST_BYTES = 2_000_000
# What the file of each language ends with.
NAMES = {"en": "", "zh": ".zh"}


class Pictures(unittest.TestCase):
    def take(self, lang):
        with tempfile.TemporaryDirectory(prefix="nod-pictures-") as own:
            place = Path(os.environ.get("NOD_PEERS_PICTURES") or own)
            film, card = place / f"demo{NAMES[lang]}.gif", place / f"card{NAMES[lang]}.png"
            environment = {"PATH": os.environ["PATH"], "HOME": own, "LANG": "C.UTF-8"}
            demo = Child([binary(), "demo", "--no-browser", "--lang", lang], environment, Path(own))
            try:
                found = wait_until("address is printed", lambda: re.search(r"http://\S+", demo.everything()), 30, demo.everything)
                command = ["node", str(FILM), found.group(), lang, str(film), str(card)]
                run = subprocess.run(command, capture_output=True, text=True, timeout=FILM_SECONDS, env=marked(dict(os.environ)))
                self.assertEqual(0, run.returncode, run.stderr + demo.everything())
                print(run.stdout, end="", flush=True)
            finally:
                demo.stop()
            self.assertEqual(b"GIF89a", film.read_bytes()[:6])
            self.assertLess(film.stat().st_size, MOST_BYTES)
            self.assertEqual(b"\x89PNG", card.read_bytes()[:4])

    def test_english(self):
        self.take("en")

    def test_chinese(self):
        self.take("zh")


if __name__ == "__main__":
    report.main()
