"""Cards that end as the real CLI's own transcript says: Esc beside an allow, a daemon that was away, other hooks,
hooks of managed settings, a session that is cleared or resumed elsewhere.

Scenes run side by side, each in a terminal and a home of its own, on one daemon.
"""

import json
import os
import shutil
import signal
import subprocess
import threading
import time

from scenario import Scenes

from harness import report
from harness.claude import DIALOG, program
from harness.model import bash, call, prompt
from harness.terminal import Terminal
from harness.waiting import wait_until

TRUE_WITHIN = 5
ALLOWED, DENIED = "已批准", "已拒绝"
INTERRUPTED = "已批准，终端已中断"
NOT_RUN = "操作没有执行，或没有执行完"
YES, NO = "已在终端批准", "已在终端拒绝"
YES_ELSEWHERE, NO_ELSEWHERE = "已在别处批准", "已在别处拒绝"


class Truth(Scenes):
    def audit(self, card):
        request = next(iter(card.values().values()))["request_id"]
        lines = self.daemon.run("audit", "--json", "--last", "1000").splitlines()
        lines = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in lines if line["request"] == request]

    def opened(self, box, name, seconds=0):
        terminal = box.terminal(bash(f"touch {name}; sleep {seconds}"))
        terminal.shows(DIALOG, 60)
        return terminal, self.card_about(f"touch {name};")

    def state(self, card):
        """The words of the tag that says what became of it."""
        return self.feishu.card(card.id)._json["header"]["text_tag_list"][0]["text"]["content"]

    def becomes(self, card, state, limit=TRUE_WITHIN):
        wait_until(f"card says {state}", lambda: self.state(card) == state, limit, lambda: self.feishu.card(card.id).text)


class Esc(Truth):
    """At least 20 tries: Esc from just before to 0.12 s after the allow, 0 untrue cards 5 s later."""

    def scene(self, number):
        name, gap = f"esc-{number}", (number % 12) * 0.012 - 0.012
        with self.new_box() as box:
            terminal, card = self.opened(box, name, 30)
            tapping = threading.Timer(max(0.0, -gap), lambda: self.feishu.click_stale(card, "allow"))
            tapping.start()
            time.sleep(max(0.0, gap))
            terminal.send("\x1b")
            tapping.join()
            time.sleep(TRUE_WITHIN)
            ran, state = (box.project / name).exists(), self.state(card)
            text = self.feishu.card(card.id).text
            # What began was interrupted within a moment: the command sleeps long.
            goes_on = "Interrupted" not in terminal.screen()
            if goes_on:
                self.assertIn(state, (ALLOWED,), f"{name} {gap}: {text}")
                self.assertTrue(ran, name)
            elif state == INTERRUPTED:
                self.assertIn(NOT_RUN, text)
            else:
                self.assertFalse(ran, f"{name} {gap}: {text}")
                self.assertEqual(NO, state, f"{name} {gap}: {text}")
            return state

    def test_esc_within_a_tenth_of_a_second_of_an_allow(self):
        seen = []
        scenes = [(f"esc {n}", lambda n=n: seen.append(self.scene(n))) for n in range(24)]
        self.in_parallel(scenes)
        self.assertEqual(24, len(seen))
        self.assertIn(INTERRUPTED, seen, "the race was not met")
        print(f"states: {[(state, seen.count(state)) for state in sorted(set(seen))]}", flush=True)


class Away(Truth):
    def scene(self, name, number, key, state):
        """The daemon is away while the terminal answers and the turn ends."""
        with self.box as box:
            terminal, card = self.opened(box, name)
            os.kill(self.daemon.child.process.pid, number)
            self.daemon.child.wait(10)
            terminal.send(key)
            terminal.hides(DIALOG)
            terminal.shows("DONE" if state == YES else "Interrupted")
            self.daemon.start()
            time.sleep(0.5)
            self.feishu.click_stale(card, "deny")
            self.becomes(card, state)
            self.assertEqual(state == YES, (box.project / name).exists())

    def test_a_yes_while_a_killed_daemon_is_away(self):
        self.scene("killed-yes", signal.SIGKILL, "1", YES)

    def test_a_yes_while_a_stopped_daemon_is_away(self):
        self.scene("stopped-yes", signal.SIGTERM, "1", YES)

    def test_a_no_while_a_killed_daemon_is_away(self):
        self.scene("killed-no", signal.SIGKILL, "\x1b", NO)


def other_hook(box, decision, after):
    """A second hook in the user's settings that decides by itself."""
    answer = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    file = box.home / ".claude" / "settings.json"
    settings = json.loads(file.read_text())
    command = f"sleep {after}; printf '%s' '{json.dumps(answer)}'"
    hooks = settings["hooks"]["PermissionRequest"][0]["hooks"]
    hooks.append({"type": "command", "command": command, "timeout": 30})
    file.write_text(json.dumps(settings))


class OtherHooks(Truth):
    def scene(self, behavior, number):
        name = f"other-{behavior}-{number}"
        with self.new_box() as box:
            other_hook(box, {"behavior": behavior}, 4)
            terminal, card = self.opened(box, name, 2)
            terminal.shows("DONE", 40)
            self.becomes(card, YES_ELSEWHERE if behavior == "allow" else NO_ELSEWHERE)
            self.assertNotIn("在终端批准", self.feishu.card(card.id).text)
            self.assertEqual(behavior == "allow", (box.project / name).exists())
            kinds = [line["decision"] or line["kind"] for line in self.audit(card)]
            self.assertNotIn("terminal", kinds)

    def test_another_hooks_decision_is_not_called_the_terminals(self):
        scenes = [(behavior, n) for behavior in ("allow", "deny") for n in range(3)]
        self.in_parallel([(str(one), lambda one=one: self.scene(*one)) for one in scenes])


class Managed(Truth):
    """Hooks of managed settings, in a mount namespace of its own."""

    def terminal(self, box, *steps):
        etc = box.root / "etc"
        subprocess.run(["cp", "-a", "/etc", str(etc)], check=True)
        (etc / "claude-code").mkdir(exist_ok=True)
        user = box.home / ".claude" / "settings.json"
        shutil.move(user, etc / "claude-code" / "managed-settings.json")
        script = f'mount --bind {etc} /etc && exec {program()} "$0"'
        command = [shutil.which("unshare"), "-m", "/bin/sh", "-c", script, prompt(*steps)]
        return self.enterContext(Terminal(command, box.environment, box.project))

    def test_a_denied_call_is_not_corrected_by_an_event_of_managed_hooks(self):
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
            self.skipTest("no mount namespace can be made here")
        for number in range(3):
            name = f"managed-{number}"
            with self.new_box() as box:
                terminal = self.terminal(box, bash(f"touch {name}; sleep 0"))
                terminal.shows(DIALOG, 60)
                card = self.card_about(f"touch {name};")
                self.feishu.click(card, "deny")
                terminal.shows("DONE")
                time.sleep(2)
                self.assertEqual(DENIED, self.state(card), self.feishu.card(card.id).text)
                self.assertEqual(["deny"], [line["decision"] for line in self.audit(card)])
                self.assertFalse((box.project / name).exists())


class Identical(Truth):
    def test_an_identical_call_that_nobody_asked_about_corrects_no_denial(self):
        """A rule that comes while the first waits lets the second pass."""
        with self.new_box() as box:
            command = "touch again; sleep 0"
            terminal = box.terminal(bash(command), bash(command))
            terminal.shows(DIALOG, 60)
            card = self.card_about("touch again;")
            rules = box.project / ".claude"
            rules.mkdir()
            allowed = {"permissions": {"allow": [f"Bash({part})" for part in ("touch again", "sleep 0", command)]}}
            (rules / "settings.local.json").write_text(json.dumps(allowed))
            time.sleep(2)
            self.feishu.click(card, "deny")
            terminal.shows("DONE")
            time.sleep(2)
            self.assertTrue((box.project / "again").exists(), "the second was not asked about")
            self.assertEqual(DENIED, self.state(card), self.feishu.card(card.id).text)
            self.assertEqual(["deny"], [line["decision"] for line in self.audit(card)])


class Open(Truth):
    """The dialog, or the subagent's request, is still open: so is the card."""

    def test_clear_with_a_subagents_card_waiting(self):
        with self.new_box() as box:
            inner = prompt(bash("touch cleared; sleep 1"))
            step = call("Agent", description="part", subagent_type="general-purpose", prompt=inner, run_in_background=True)
            terminal = box.terminal(step)
            card = self.card_about("touch cleared;")
            terminal.shows("DONE")
            terminal.send("/clear")
            time.sleep(1)
            terminal.send("\r")
            terminal.hides("Follow these")
            time.sleep(2)
            self.assertTrue(self.feishu.card(card.id).decides(), self.feishu.card(card.id).text)
            self.assert_toast("已批准运行", self.feishu.click(card, "allow"))
            wait_until("it ran", (box.project / "cleared").exists, 20, self.seen)
            self.becomes(card, ALLOWED)

    def test_a_session_resumed_in_a_second_process(self):
        with self.new_box() as box:
            terminal, card = self.opened(box, "resumed")
            (status,) = (box.home / ".claude" / "sessions").glob("*.json")
            session = json.loads(status.read_text())["sessionId"]
            command = [program(), "--resume", session, prompt(bash("ls"))]
            with Terminal(command, box.environment, box.project) as second:
                second.shows("DONE", 40)
                time.sleep(2)
                self.assertTrue(self.feishu.card(card.id).decides(), self.feishu.card(card.id).text)
            time.sleep(1)
            self.assertTrue(self.feishu.card(card.id).decides(), "the second process has ended")
            self.assert_toast("已批准运行", self.feishu.click(card, "allow"))
            terminal.shows("DONE")
            self.becomes(card, ALLOWED)
            self.assertTrue((box.project / "resumed").exists())


class TimeOut(Truth):
    settings = {"PERMISSION_REQUEST_TIMEOUT": "5"}

    def test_a_yes_after_a_time_out_does_not_say_that_it_came_first(self):
        with self.new_box() as box:
            terminal, card = self.opened(box, "late", 1)
            self.becomes(card, "已超时", 15)
            time.sleep(1)
            terminal.send("1")
            terminal.shows("DONE")
            self.becomes(card, YES)
            text = self.feishu.card(card.id).text
            self.assertNotIn("先批准", text)
            self.assertIn("曾显示「已超时」", text)
            kinds = [(line["kind"], line["decision"]) for line in self.audit(card)]
            self.assertEqual(("settled", "timeout"), kinds[0])
            # The transcript may tell before the event, which adds how long it ran.
            self.assertEqual({("completed", None)}, set(kinds[1:]))


if __name__ == "__main__":
    report.main()
