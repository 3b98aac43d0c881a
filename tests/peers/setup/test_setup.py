"""`nod setup` as a person meets it: a terminal, an empty home, a phone; and everything taken back."""

import json
import os
import re
import signal
import tempfile
import unittest
import urllib.request
from pathlib import Path

from harness.simulator import APP_ID, APP_SECRET, OWNER, Simulator

from harness import report
from harness.claude import ClaudeBox, program
from harness.model import ScriptedModel, bash
from harness.nod import Daemon, binary
from harness.processes import Child
from harness.terminal import Terminal
from harness.waiting import wait_until

BACKGROUND = "Start the daemon in the background now"
NOT_ALL = "Not all done"
BLOCKS = "█▀▄"


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

    def run_setup(self, *arguments, **size):
        command = [binary(), "setup", "--domain", self.feishu.domain, *arguments]
        return self.enterContext(Terminal(command, self.environment, self.home, **size))

    def tap(self, number=1):
        """The owner taps the button of this test card, counted from one."""
        card = wait_until("a test card", lambda: next(iter(self.feishu.cards()[number - 1 :]), None))
        (action,) = card.values()
        self.assertEqual("The tap arrived ✓", self.feishu.click(card, action).toast["content"])

    def agree_to_hooks_and_mode(self, terminal):
        terminal.writes("the tap arrived and was answered within")
        terminal.shows("[Y/n/d]")
        self.assertNotIn('"PermissionRequest"', terminal.written())
        terminal.send("d\n")
        terminal.writes('+    "PermissionRequest": [')
        terminal.shows("[Y/n/d]")
        terminal.send("\n")
        terminal.shows("Set it to `default` (ask each time)? [Y/n]")
        terminal.send("y\n")
        terminal.shows(BACKGROUND)
        terminal.send("n\n")
        terminal.shows(NOT_ALL)
        self.assertIn("✗ 8/9 daemon: not done.", terminal.written())
        wait_until("the set-up ends", lambda: not terminal.running(), 10, terminal.screen)
        self.assertEqual(0, terminal.exit_code)

    def assert_set_up(self, *values):
        env = self.home / ".config/nod/.env"
        self.assertEqual(0o600, env.stat().st_mode & 0o777)
        for value in values:
            self.assertIn(value, env.read_text())
        settings = (self.home / ".claude/settings.json").read_text()
        self.assertIn(json.dumps(f'"{binary()}" hook --config "{env}"'), settings)
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
        self.ticks(terminal, "created the app", "the credentials work", f"the owner is {OWNER}", "the settings are in")
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
        terminal.shows("… waiting for your tap")
        self.assertEqual(1, len(self.feishu.cards()))
        self.break_off(terminal)
        saved = (self.home / ".config/nod/.env").read_text()
        self.assertIn(made, saved)

        # At the hooks, then at the mode: nobody is asked for the app again.
        terminal = self.run_setup()
        self.tap(2)
        terminal.shows("[Y/n/d]")
        self.assertNotIn("scanning a code", terminal.written())
        self.break_off(terminal)
        self.assertFalse((self.home / ".claude").exists())

        terminal = self.run_setup("--no-test-card")
        terminal.shows("[Y/n/d]")
        terminal.send("\n")
        terminal.shows("Set it to `default` (ask each time)? [Y/n]")
        self.break_off(terminal)
        self.assertNotIn("defaultMode", (self.home / ".claude/settings.json").read_text())

        terminal = self.run_setup("--no-test-card")
        terminal.shows("Set it to `default` (ask each time)? [Y/n]")
        self.assertNotIn("Write it?", terminal.written())
        terminal.send("\n")
        terminal.shows(BACKGROUND)
        terminal.send("n\n")
        terminal.shows(NOT_ALL)
        wait_until("the set-up ends", lambda: not terminal.running(), 10, terminal.screen)
        self.assert_set_up(made, OWNER)
        self.assertEqual(saved, (self.home / ".config/nod/.env").read_text())
        self.take_back()

    def screen(self, terminal, name):
        """What stands on the terminal, kept where somebody wants to read it."""
        shown = terminal.screen()
        if folder := os.environ.get("NOD_PEERS_SHOTS"):
            (Path(folder) / f"setup-{name}.txt").write_text(f"{shown}\n")
        for line in shown.splitlines():
            self.assertLessEqual(len(line), 80, shown)
        return shown

    def ticks(self, terminal, *said):
        """These steps are ticked first, and each, done or not, in its turn and once, without a gap."""
        told = re.findall(r"[✓✗-] (\d)/9", terminal.written())
        self.assertEqual([str(place) for place in range(1, len(told) + 1)], told)
        ticked = re.findall(r"✓ (\d)/9 (.*)", terminal.written())
        for place, ((number, line), part) in enumerate(zip(ticked, said, strict=False), 1):
            self.assertEqual(str(place), number)
            self.assertIn(part, line)
        self.assertGreaterEqual(len(ticked), len(said))

    def end_daemon(self):
        """Ends the daemon that a set-up started, by the number it wrote down."""
        pid = int((self.home / ".local/state/nod/nod.lock").read_text())
        os.kill(pid, signal.SIGTERM)
        wait_until("the daemon is gone", lambda: not Path(f"/proc/{pid}").exists(), 20)

    def test_80_by_24_from_a_wrong_secret_to_the_rest_in_a_second_run(self):
        size = {"rows": 24, "columns": 80}
        terminal = self.run_setup(**size)
        terminal.shows("Create the app by scanning a code?")
        self.screen(terminal, "1-first-question")
        terminal.send("\n")
        terminal.shows("… waiting for the scan, 9:5")
        shown = self.screen(terminal, "2-scan")
        # All of the code or none of it: here a page has it, at a short address.
        self.assertFalse(any(block in shown for block in BLOCKS), shown)
        address = re.search(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}", shown).group()
        with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310, loopback
            page = answer.read().decode()
        self.assertIn("<svg", page)
        self.assertIn("/page/launcher?user_code=", page)
        self.feishu.scan(approve=False)
        terminal.shows("App ID (cli_…):")
        self.screen(terminal, "3-console")
        with self.assertRaises(OSError):
            urllib.request.urlopen(address, timeout=10)  # noqa: S310, loopback
        terminal.send(f"{APP_ID}\n")
        terminal.shows("App Secret (not shown):")
        terminal.send("wrong-secret-0123456789\n")
        terminal.shows("are not accepted. Nothing was")
        self.screen(terminal, "4-wrong-secret")
        self.assertEqual(self.before, picture(self.home), "nothing is saved before it is checked")
        terminal.send(f"{APP_ID}\n")
        wait_until("asked again", lambda: terminal.written().count("App Secret (not shown):") == 2)
        terminal.send(f"{APP_SECRET}\n")
        terminal.shows("… waiting for your message, 9:5")
        self.screen(terminal, "5-pairing")
        self.feishu.say("hi")
        code = wait_until("a pairing code", self.feishu.pairing_code)
        terminal.shows("Type the digits")
        terminal.send(f"{code}\n")
        terminal.shows("… waiting for your tap, 2:5")
        shown = self.screen(terminal, "6-tap")
        self.assertNotIn("other connections", shown)
        self.tap()
        terminal.shows("[Y/n/d]")
        self.screen(terminal, "7-hooks")
        terminal.send("n\n")
        terminal.shows(BACKGROUND)
        terminal.send("n\n")
        terminal.shows(NOT_ALL)
        wait_until("the set-up ends", lambda: not terminal.running(), 10, terminal.screen)
        self.assertNotIn("leftSent", terminal.written())
        shown = self.screen(terminal, "8-declined")
        self.assertIn("✗ 6/9 Claude Code's hooks: not done.", shown)
        self.assertIn("`nod setup`", shown)
        self.assertIn("- 7/9 Claude Code's permission mode: skipped", shown)
        self.assertIn("✗ 8/9 daemon: not done.", shown)
        self.assertEqual(0, terminal.exit_code)
        self.assertNotIn("wrong-secret", terminal.written())

        terminal = self.run_setup("--no-test-card", **size)
        terminal.shows("[Y/n/d]")
        shown = self.screen(terminal, "9-second-run")
        self.ticks(terminal, f"the app is {APP_ID}", "the credentials work", f"the owner is {OWNER}", "the settings are in")
        terminal.send("\n")
        terminal.shows("Set it to `default` (ask each time)? [Y/n]")
        terminal.send("\n")
        terminal.shows(BACKGROUND)
        terminal.send("\n")
        terminal.shows("nod is set up, but no `claude`")
        wait_until("the set-up ends", lambda: not terminal.running(), 10, terminal.screen)
        shown = self.screen(terminal, "10-done")
        self.assertIn("the daemon runs in the background (process ", shown)
        self.assertIn("daemon.log", shown.replace("\n", ""))
        self.assert_set_up(APP_ID, APP_SECRET, OWNER)
        self.assertEqual(0o600, (self.home / ".local/state/nod/daemon.log").stat().st_mode & 0o777)
        wait_until("the daemon is connected", self.feishu.connections)
        self.end_daemon()

    def test_80_by_24_in_chinese(self):
        self.environment["NOD_LANG"] = "zh"
        size = {"rows": 24, "columns": 80}
        terminal = self.run_setup(**size)
        terminal.shows("扫码自动创建应用？")
        shown = self.screen(terminal, "zh-1-first-question")
        self.assertIn("给你发卡片的机器人", shown)
        terminal.send("\n")
        terminal.shows("… 等待扫码，还剩 9:5")
        self.screen(terminal, "zh-2-scan")
        made = self.feishu.scan()
        terminal.writes(f"应用已创建：{made}")
        terminal.shows("… 等待你的点击，还剩 2:5")
        card = wait_until("a test card", lambda: next(iter(self.feishu.cards()), None))
        (action,) = card.values()
        self.assertEqual("点击已到达 ✓", self.feishu.click(card, action).toast["content"])
        terminal.shows("[Y/n/d]")
        self.screen(terminal, "zh-3-hooks")
        terminal.send("n\n")
        terminal.shows("现在就在后台启动守护进程")
        terminal.send("n\n")
        terminal.shows("还没有全部完成")
        wait_until("the set-up ends", lambda: not terminal.running(), 10, terminal.screen)
        shown = self.screen(terminal, "zh-4-declined")
        self.assertIn("✗ 6/9 Claude Code 的 hook：未完成。", shown)
        self.assertIn("✗ 8/9 守护进程：未完成。", shown)
        self.ticks(terminal, "应用已创建", "凭证有效", OWNER, "设置在 ", "点击已到达")

    def test_a_large_terminal_shows_the_whole_code(self):
        terminal = self.run_setup()
        terminal.shows("Create the app by scanning a code?")
        terminal.send("\n")
        terminal.shows("… waiting for the scan")
        shown = terminal.screen()
        drawn = [line for line in shown.splitlines() if any(block in line for block in BLOCKS)]
        self.assertEqual(drawn, [line.rstrip() for line in terminal.written().splitlines() if any(b in line for b in BLOCKS)])
        self.assertGreater(len(drawn), 20)
        self.assertNotIn("http://127.0.0.1", shown.replace(self.feishu.domain, ""))
        self.break_off(terminal)

    def test_a_page_is_shown_where_it_is_asked_for(self):
        terminal = self.run_setup("--browser")
        terminal.shows("Create the app by scanning a code?")
        terminal.send("\n")
        terminal.shows("The code to scan is on a page of this machine, good for 10 minutes:")
        made = self.feishu.scan()
        terminal.writes(f"created the app {made}")
        self.break_off(terminal)

    def test_another_connection_is_named_before_a_tap_is_asked_for(self):
        with Daemon(self.feishu):
            command = ("--app-id", APP_ID, "--owner", OWNER)
            terminal = self.run_setup(*command)
            terminal.shows("App Secret (not shown):")
            terminal.send(f"{APP_SECRET}\n")
            terminal.shows("tap its button")
            said = terminal.written()
            self.assertLess(said.index("this app has other connections open (1)"), said.index("tap its button"))
            self.break_off(terminal)


class WithClaude(unittest.TestCase):
    """The last step: the real Claude Code asks, and a tap lets it run."""

    def test_it_ends_with_an_approval_that_was_agreed_to(self):
        model = self.enterContext(ScriptedModel(bash("touch nod-was-here")))
        feishu = self.enterContext(Simulator())
        box = self.enterContext(ClaudeBox(model, {}))
        environment = {
            **box.environment,
            "PATH": "/usr/bin:/bin",
            "NOD_CLAUDE": str(program()),
            "NOD_LANG": "en",
        }
        secret = box.root / "secret"
        secret.write_text(APP_SECRET)
        command = [binary(), "setup", "--domain", feishu.domain, "--no-test-card", "--app-id", APP_ID]
        command += ["--app-secret-file", secret, "--owner", OWNER]
        terminal = self.enterContext(Terminal(command, environment, box.home, rows=24, columns=80))
        terminal.shows("[Y/n/d]")
        terminal.send("\n")
        terminal.shows(BACKGROUND)
        terminal.send("\n")
        try:
            terminal.shows("Have Claude Code really ask once, now?")
            terminal.shows("[y/N]")
            self.assertEqual([], model.requests, "nothing is spent before somebody agrees")
            terminal.send("y\n")
            card = wait_until(
                "Claude Code asks",
                lambda: next((card for card in feishu.cards() if card.decides()), None),
                60,
                terminal.screen,
            )
            self.assertIn("touch nod-was-here", card.text)
            feishu.click(card, "allow")
            terminal.shows("✓ 9/9 your tap let Claude Code run `touch nod-was-here`", 60)
            terminal.shows("Done. The next permission request")
            wait_until("the set-up ends", lambda: not terminal.running(), 10, terminal.screen)
            if folder := os.environ.get("NOD_PEERS_SHOTS"):
                (Path(folder) / "setup-11-claude.txt").write_text(f"{terminal.screen()}\n")
        finally:
            os.kill(int((box.home / ".local/state/nod/nod.lock").read_text()), signal.SIGTERM)


if __name__ == "__main__":
    report.main()
