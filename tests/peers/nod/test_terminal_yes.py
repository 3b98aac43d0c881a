"""A "yes" in the terminal of the real CLI: what runs is shown, whatever is tapped meanwhile.

Scenes run side by side, each in a terminal and a home of its own, on one daemon.
"""

import json
import random
import re
import threading
import time

from scenario import Scenes

from harness import report
from harness.claude import DIALOG
from harness.model import bash, call
from harness.processes import Child
from harness.nod import binary
from harness.slow import SlowSite, add_mcp_server, allow_fetching
from harness.waiting import wait_until

# How long a slow tool takes, and how long after the yes somebody taps.
SLOW_SECONDS = 12
TAP_AFTER = 4
# A card has to be true this soon after the end of what it speaks of.
TRUE_WITHIN = 5

RUNS = "已在电脑上批准，运行中"
YES = "已在终端批准"
STOPPED = "已在电脑上批准，后被中断"
CHOICES = ("deny", "always", "interrupt", "allow")


class Terminals(Scenes):
    def audit(self, card):
        """The audit's lines about the request of this card."""
        request = next(iter(card.values().values()))["request_id"]
        child = Child([binary(), "audit", "--json", "--last", "1000"], self.daemon._environment, self.daemon._cwd)
        try:
            child.wait(20)
            lines = [json.loads(line) for line in child.stdout.splitlines()]
        finally:
            child.stop()
        return [line for line in lines if line["request"] == request]

    def slow(self, tool, box, name, site):
        """A step that takes long, the words its card is known by, and whether it has begun and come to its end."""
        began, done = box.project / f"{name}.began", box.project / f"{name}.done"
        if tool == "Bash":
            script = box.project / f"{name}.sh"
            script.write_text(f"#!/bin/sh\ntouch {name}.began\nsleep {SLOW_SECONDS}\ntouch {name}.done\n")
            script.chmod(0o755)
            return bash(f"./{script.name}"), script.name, began.exists, done.exists
        if tool == "MCP":
            add_mcp_server(box)
            step = call("mcp__slow__touch", path=str(done), seconds=SLOW_SECONDS)
            return step, f"{name}.done", began.exists, done.exists
        allow_fetching(box, site)
        step = call("WebFetch", url=f"{site.url}/{name}", prompt="what does it say")
        return step, f"/{name}", lambda: f"/{name}" in site.fetched, lambda: True

    def scene(self, tool, choice, site):
        name = f"{tool}-{choice}".lower()
        with self.new_box() as box:
            step, words, began, done = self.slow(tool, box, name, site)
            terminal = box.terminal(step)
            terminal.shows(DIALOG, 60)
            card = self.card_about(words)
            terminal.send("1")
            answered = time.monotonic()
            running = self.shows(card, RUNS, 10)
            self.assertEqual({"interrupt"}, set(running.values()), name)
            wait_until(f"{name} runs", began, 20)
            time.sleep(max(0, answered + TAP_AFTER - time.monotonic()))
            # The person still sees the card as it was.
            self.assertTrue(tool != "Bash" or choice in card.values(), f"{name}: {card.values().keys()}")
            if choice in card.values():
                toast = self.feishu.click_stale(card, choice).toast["content"]
                expected = "已中断运行" if choice == "interrupt" else YES
                self.assertTrue(toast.startswith(expected), f"{name}: {toast}")
            if choice == "interrupt":
                terminal.shows("Interrupted", 20)
                ended = self.shows(card, STOPPED, 10)
                self.assertEqual(["stop"], [line["decision"] for line in self.audit(card)], name)
                time.sleep(1)
                self.assertFalse(tool == "Bash" and done(), f"{name}: it was stopped")
            else:
                terminal.shows("DONE", SLOW_SECONDS + 40)
                ended = self.shows(card, r"运行了 \d+ 秒", TRUE_WITHIN)
                self.assertTrue(done(), name)
                self.assertEqual(["terminal"], [line["decision"] for line in self.audit(card)], name)
            self.assertFalse(ended.decides(), name)
            self.assertNotIn("已拒绝", ended.text, name)
            self.assertEqual({}, box.local_settings(), name)


class Yes(Terminals):
    def test_slow_tools_answered_in_the_terminal(self):
        with SlowSite(self.box.root, SLOW_SECONDS) as site:
            tools = ("Bash", "MCP", "WebFetch")
            scenes = [(tool, choice) for tool in tools for choice in CHOICES]
            self.in_parallel([(str(one), lambda one=one: self.scene(*one, site)) for one in scenes])

    def quick_scene(self, tool, choice, wait):
        name = f"{tool}-{choice}-{wait}".lower()
        with self.new_box() as box:
            file = box.project / f"{name}.txt"
            if tool == "Edit":
                file.write_text("one\n")
                steps = [
                    call("Read", file_path=str(file)),
                    call("Edit", file_path=str(file), old_string="one", new_string="two"),
                ]
            else:
                steps = [call("Write", file_path=str(file), content="two\n")]
            terminal = box.terminal(*steps)
            terminal.shows(DIALOG, 60)
            card = self.card_about(file.name)
            terminal.send("1")
            time.sleep(wait / 1000)
            toast = self.feishu.click_stale(card, choice).toast["content"]
            terminal.shows(re.compile("DONE|Interrupted|[Rr]ejected"), 40)
            self.true_in_the_end(card, name, toast, file.exists() and file.read_text() == "two\n")
            if choice == "always":
                self.rule_as_told(card, box, name)

    def rule_as_told(self, card, box, name):
        """The card says "always" where a rule stands in the file, and nowhere else; the audit's last word agrees."""

        def agrees():
            is_left = bool(box.local_settings().get("permissions", {}).get("allow", []))
            is_told = "已始终允许" in self.feishu.card(card.id).text
            return is_left == is_told == (self.audit(card)[-1]["decision"] == "always")

        wait_until(f"{name}: the rule is as told", agrees, TRUE_WITHIN, lambda: f"{self.audit(card)}")

    def true_in_the_end(self, card, name, toast, ran):
        """Card and audit agree with what ran, `TRUE_WITHIN` seconds after the end at the latest."""

        def agrees():
            newest = self.feishu.card(card.id)
            if newest.decides():
                return False
            last = self.audit(card)[-1]
            allowed = last["decision"] in ("allow", "session", "always", "terminal", "stop") or last["kind"] != "settled"
            # After an interrupt nothing tells whether the tool had run, and the card says just that.
            says_so = last["decision"] == "interrupt" and "可能已经执行" in newest.text
            lies = ran and ("**已拒绝**" in newest.text or "**已拒绝并中断**" in newest.text)
            return ((not lies and (allowed or not ran)) or says_so) and newest

        wait_until(
            f"{name} ({toast}, ran: {ran}) is true",
            agrees,
            TRUE_WITHIN,
            lambda: f"{self.feishu.card(card.id).text}\n{self.audit(card)}",
        )

    def test_quick_tools_with_a_tap_right_after_the_yes(self):
        # A file that is not there yet is no file that a rule could name.
        offered = {"Write": ("deny", "interrupt", "allow"), "Edit": CHOICES}
        scenes = [(tool, choice, wait) for tool in offered for choice in offered[tool] for wait in (0, 150, 500)]
        self.in_parallel([(str(one), lambda one=one: self.quick_scene(*one)) for one in scenes])

    def race(self, rounds, seed):
        chance = random.Random(seed)
        names = [f"race-{seed}-{number}" for number in range(rounds)]
        with self.new_box() as box:
            terminal = box.terminal(*[bash(f"touch {name}; sleep 1") for name in names])
            for name in names:
                card = self.card_about(f"touch {name};")
                terminal.shows(f"touch {name};")
                terminal.shows(DIALOG)
                choice, lead = chance.choice(("deny", "allow")), chance.uniform(-0.1, 0.1)
                tapped = {}

                def tap(card=card, choice=choice, tapped=tapped):
                    tapped["toast"] = self.feishu.click_stale(card, choice).toast["content"]

                tapping = threading.Timer(max(0.0, lead), tap)
                tapping.start()
                time.sleep(max(0.0, -lead))
                terminal.send("1")
                tapping.join()
                # A denied one ends at once; one that runs is through when the next asks.
                time.sleep(2.5)
                ran = (box.project / name).exists()
                self.true_in_the_end(card, f"{name} {choice} {lead:+.3f}", tapped["toast"], ran)

    def test_terminal_and_tap_at_the_same_time(self):
        self.in_parallel([(f"race {seed}", lambda seed=seed: self.race(10, seed)) for seed in range(4)])


class Short(Terminals):
    settings = {"PERMISSION_REQUEST_TIMEOUT": "5"}

    def test_command_that_outlasts_the_time_limit(self):
        with self.new_box() as box:
            step, words, _, done = self.slow("Bash", box, "long", None)
            terminal = box.terminal(step)
            terminal.shows(DIALOG, 60)
            card = self.card_about(words)
            terminal.send("1")
            self.shows(card, RUNS, 10)
            passed = self.shows(card, "已在终端批准：✓", 15)
            self.assertFalse(passed.values())
            self.assertNotIn("已超时", passed.text)
            terminal.shows("DONE", SLOW_SECONDS + 30)
            self.assertTrue(done())
            self.shows(card, r"运行了 \d+ 秒", TRUE_WITHIN)


if __name__ == "__main__":
    report.main()
