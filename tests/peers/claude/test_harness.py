"""The real CLI against the scripted model and a stub hook, before nod comes in.

What nod's own scenarios rely on is shown here without nod: that a hook's answer
counts, that the model receives a denial's words, and what the terminal does to
a waiting hook.
"""

import json
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import report
from harness.claude import DIALOG, ClaudeBox
from harness.model import ScriptedModel, bash
from harness.waiting import wait_until

STUB = Path(__file__).parent / "stub_hook.sh"
ASKED = "touch asked-for"


def decision(**fields):
    return json.dumps({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": fields}})


class StubHook(unittest.TestCase):
    def setUp(self):
        self.model = self.enterContext(ScriptedModel())

    def box(self, **options):
        self.stub = Path(self.enterContext(TemporaryDirectory(prefix="nod-stub-")))
        return self.enterContext(ClaudeBox(self.model, {"PermissionRequest": f"{STUB} {self.stub}"}, **options))

    def answer(self, text):
        part = self.stub / "answer.part"
        part.write_text(text)
        part.rename(self.stub / "answer")

    def hook_waits(self, terminal=None):
        show = terminal.screen if terminal else None
        wait_until("stub hook waits", (self.stub / "pid").exists, 30, show)

    def happened(self, box):
        return (box.project / "asked-for").exists()


class PrintMode(StubHook):
    def test_allow_runs_the_tool(self):
        box = self.box()
        self.answer(decision(behavior="allow"))
        result = box.print(bash(ASKED))
        self.assertTrue(self.happened(box), result)
        self.assertEqual("DONE", result["result"])
        sent = json.loads((self.stub / "input").read_text())
        self.assertEqual("PermissionRequest", sent["hook_event_name"])
        self.assertEqual(ASKED, sent["tool_input"]["command"])

    def test_denial_reaches_the_model_word_for_word(self):
        box = self.box()
        self.answer(decision(behavior="deny", message="不要动它，先问我"))
        result = box.print(bash(ASKED))
        self.assertFalse(self.happened(box))
        self.assertEqual("DONE", result["result"])
        self.assertEqual([("不要动它，先问我", True)], self.model.results())

    def test_interrupt_ends_the_turn(self):
        box = self.box()
        self.answer(decision(behavior="deny", message="stop", interrupt=True))
        run = box.start_print(bash(ASKED))
        result = run.result()
        self.assertEqual(1, run.exit_code)
        self.assertEqual("aborted_tools", result["terminal_reason"])
        self.assertFalse(self.happened(box))

    def test_silence_is_no_permission(self):
        box = self.box()
        self.answer("")
        box.print(bash(ASKED))
        self.assertFalse(self.happened(box))
        self.assertTrue(self.model.results()[0][1])

    def test_hook_past_its_time_is_told_to_stop(self):
        box = self.box(hook_timeout=1)
        box.print(bash(ASKED))
        self.assertFalse(self.happened(box))
        wait_until("stub hook was terminated", (self.stub / "terminated").exists, 5)

    def test_two_steps_are_two_calls(self):
        box = self.box()
        self.answer(decision(behavior="allow"))
        box.print(bash("touch first"), bash("touch second"))
        self.assertTrue((box.project / "first").exists() and (box.project / "second").exists())
        self.assertEqual(2, len(self.model.results()))


class InTerminal(StubHook):
    def test_hook_allow_makes_the_dialog_vanish(self):
        box = self.box()
        terminal = box.terminal(bash(ASKED))
        terminal.shows(DIALOG)
        self.hook_waits(terminal)
        self.assertFalse(self.happened(box))
        self.answer(decision(behavior="allow"))
        terminal.shows("DONE")
        terminal.hides(DIALOG)
        self.assertTrue(self.happened(box))

    def test_terminal_yes_leaves_the_hook_waiting(self):
        box = self.box()
        terminal = box.terminal(bash(ASKED))
        terminal.shows(DIALOG)
        self.hook_waits(terminal)
        terminal.send("1")
        terminal.shows("DONE")
        self.assertTrue(self.happened(box))
        self.assertFalse((self.stub / "terminated").exists())
        self.answer("")

    def test_terminal_escape_terminates_the_hook(self):
        box = self.box()
        terminal = box.terminal(bash(ASKED))
        terminal.shows(DIALOG)
        self.hook_waits(terminal)
        terminal.send("\x1b")
        wait_until("stub hook was terminated", (self.stub / "terminated").exists, 10, terminal.screen)
        self.assertFalse(self.happened(box))


if __name__ == "__main__":
    report.main()
