"""`nod setup` as a person meets it: a terminal, an empty home, a phone; and everything taken back."""

import json
import re
import tempfile
import unittest
from pathlib import Path

from harness.simulator import APP_ID, APP_SECRET, OWNER, Simulator

from harness import report
from harness.nod import binary
from harness.processes import Child
from harness.terminal import Terminal
from harness.waiting import wait_until

DONE = "Done. One step is left: start the daemon with `nod daemon` and keep it running"


def picture(root):
    """Every file and directory below `root`: mode and content."""
    return {
        str(path.relative_to(root)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else None)
        for path in sorted(root.rglob("*"))
    }


class Setup(unittest.TestCase):
    def setUp(self):
        self.feishu = self.enterContext(Simulator())
        self.home = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="nod-home-"))).resolve()
        self.environment = {"HOME": str(self.home), "PATH": "/nonexistent", "NOD_LANG": "en", "LANG": "C.UTF-8"}
        self.before = picture(self.home)

    def tearDown(self):
        self.assertEqual([], self.feishu.violations())

    def run_setup(self, *arguments):
        command = [binary(), "setup", "--domain", self.feishu.domain, *arguments]
        return self.enterContext(Terminal(command, self.environment, self.home))

    def tap(self, number=1):
        """The owner taps the button of this test card, counted from one."""
        card = wait_until("a test card", lambda: next(iter(self.feishu.cards()[number - 1 :]), None))
        (action,) = card.values()
        self.assertEqual("The tap arrived ✓", self.feishu.click(card, action).toast["content"])

    def agree_to_hooks_and_mode(self, terminal):
        terminal.writes("the tap arrived and was answered within")
        terminal.writes('+    "PermissionRequest": [')
        terminal.shows("Write it? [Y/n]")
        terminal.send("\n")
        terminal.shows("Set it to `default` (ask each time)? [Y/n]")
        terminal.send("y\n")
        terminal.shows(DONE)
        wait_until("the set-up ends", lambda: not terminal.running(), 10, terminal.screen)
        self.assertEqual(0, terminal.exit_code)

    def assert_set_up(self, *values):
        env = self.home / ".config/nod/.env"
        self.assertEqual(0o600, env.stat().st_mode & 0o777)
        for value in values:
            self.assertIn(value, env.read_text())
        settings = (self.home / ".claude/settings.json").read_text()
        self.assertIn(json.dumps(f'"{binary()}" hook'), settings)
        self.assertIn('"defaultMode": "default"', settings)

    def take_back(self):
        with Child([binary(), "setup", "--uninstall"], self.environment, self.home) as child:
            self.assertEqual(0, child.wait(20), child.everything())
        self.assertEqual(self.before, picture(self.home))

    def test_one_scan_leads_from_an_empty_home_to_a_tap_and_back(self):
        terminal = self.run_setup()
        terminal.shows("Create the app by scanning a code?")
        terminal.send("\n")
        terminal.shows(re.compile(r"/page/launcher\?user_code="))
        made = self.feishu.scan()
        terminal.writes(f"created the app {made}")
        self.tap()
        self.agree_to_hooks_and_mode(terminal)
        self.assert_set_up(made, OWNER)
        self.take_back()

    def test_a_declined_scan_leads_on_by_hand_with_a_code_from_the_chat(self):
        terminal = self.run_setup()
        terminal.shows("Create the app by scanning a code?")
        terminal.send("\n")
        terminal.shows(re.compile(r"/page/launcher\?user_code="))
        self.feishu.scan(approve=False)
        terminal.shows("the person who scanned the code declined")
        terminal.shows("App ID (cli_…):")
        terminal.send("nonsense\n")
        terminal.shows("`App ID` does not look right")
        terminal.send(f"{APP_ID}\n")
        terminal.shows("App Secret (not shown):")
        terminal.send(f"{APP_SECRET}\n")
        terminal.shows("send it any message")
        self.feishu.say("hi")
        code = wait_until("a pairing code", self.feishu.pairing_code)
        terminal.shows("Type the digits")
        terminal.send("000000\n" if code != "000000" else "111111\n")
        terminal.shows("those are not the digits")
        terminal.send(f"{code}\n")
        terminal.writes(f"the owner is {OWNER}")
        self.tap()
        self.agree_to_hooks_and_mode(terminal)
        self.assertNotIn(APP_SECRET, terminal.written())
        self.assert_set_up(APP_ID, APP_SECRET, OWNER)
        self.take_back()

    def test_breaking_off_at_the_secret_leaves_nothing_behind(self):
        terminal = self.run_setup()
        terminal.shows("Create the app by scanning a code?")
        terminal.send("n\n")
        terminal.shows("App ID (cli_…):")
        terminal.send(f"{APP_ID}\n")
        terminal.shows("App Secret (not shown):")
        terminal.send("half\x03")
        terminal.shows("stopped; `nod setup` goes on from here")
        wait_until("the set-up ends", lambda: not terminal.running(), 10, terminal.screen)
        self.assertEqual(130, terminal.exit_code)
        self.assertEqual(self.before, picture(self.home))

    def break_off(self, terminal):
        """Ctrl-C, as anywhere."""
        terminal.send("\x03")
        wait_until("the set-up ends", lambda: not terminal.running(), 10, terminal.screen)
        self.assertNotEqual(0, terminal.exit_code)

    def test_broken_off_at_every_step_it_goes_on_there(self):
        # At the first question and while the code waits to be scanned: nothing is written yet.
        for answers in ([], ["\n"]):
            terminal = self.run_setup()
            terminal.shows("Create the app by scanning a code?")
            for answer in answers:
                terminal.send(answer)
                terminal.shows(re.compile(r"/page/launcher\?user_code="))
            self.break_off(terminal)
            self.assertEqual(self.before, picture(self.home))

        # While the test card waits: the app that a scan made is kept.
        terminal = self.run_setup()
        terminal.shows("Create the app by scanning a code?")
        terminal.send("\n")
        terminal.shows(re.compile(r"/page/launcher\?user_code="))
        made = self.feishu.scan()
        terminal.writes("tap its button in Feishu")
        self.break_off(terminal)
        saved = (self.home / ".config/nod/.env").read_text()
        self.assertIn(made, saved)

        # At the hooks, then at the mode: nobody is asked for the app again.
        terminal = self.run_setup()
        self.tap(2)
        terminal.shows("Write it? [Y/n]")
        self.assertNotIn("scanning a code", terminal.written())
        self.break_off(terminal)
        self.assertFalse((self.home / ".claude").exists())

        terminal = self.run_setup("--no-test-card")
        terminal.shows("Write it? [Y/n]")
        terminal.send("\n")
        terminal.shows("Set it to `default` (ask each time)? [Y/n]")
        self.break_off(terminal)
        self.assertNotIn("defaultMode", (self.home / ".claude/settings.json").read_text())

        terminal = self.run_setup("--no-test-card")
        terminal.shows("Set it to `default` (ask each time)? [Y/n]")
        self.assertNotIn("Write it?", terminal.written())
        terminal.send("\n")
        terminal.shows(DONE)
        wait_until("the set-up ends", lambda: not terminal.running(), 10, terminal.screen)
        self.assert_set_up(made, OWNER)
        self.assertEqual(saved, (self.home / ".config/nod/.env").read_text())
        self.take_back()


if __name__ == "__main__":
    report.main()
