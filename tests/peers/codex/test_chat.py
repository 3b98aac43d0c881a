"""Sessions of a chat with the real Codex: started, asked, answered, stopped, and beside terminals."""

import unittest

from harness import report
from harness.codex import DIALOG, CodexBox, program
from harness.model import prompt, say
from harness.nod import Daemon
from harness.responses import ResponsesModel, function, shell
from harness.simulator import Simulator
from harness.slow import add_mcp_server_to_codex
from harness.waiting import wait_until

# The daemon's first start copies the program.
START = 120.0
OPTIONS = [{"label": "Red (Recommended)", "description": "warm"}, {"label": "Blue", "description": "cold"}]
QUESTION = {"id": "q1", "header": "Color", "question": "Which color?", "options": OPTIONS}
PLAN = "<proposed_plan>\n# The plan\n- touch planned\n</proposed_plan>"


def plain(command):
    """A step: a command that stays in Codex's sandbox."""
    return function("exec_command", cmd=command)


class Chat(unittest.TestCase):
    settings = {}

    def setUp(self):
        self.model = self.enterContext(ResponsesModel())
        self.box = self.enterContext(CodexBox(self.model))
        self.feishu = self.enterContext(Simulator())
        settings = {
            "NOD_CODEX": str(self.box.home),
            "NOD_CODEX_PROGRAM": str(program()),
            "NOD_PROJECTS": f"shop@codex={self.box.project}",
            "SCRIPTED_API_KEY": "dummy",
            "NOD_NOTIFY_STOP_AFTER": "0",
        }
        self.daemon = self.enterContext(Daemon(self.feishu, **settings, **self.settings))
        self.used = set()

    def tearDown(self):
        self.assertEqual([], self.feishu.violations())

    def seen(self):
        cards = [card.text for card in self.feishu.cards()]
        told = f"cards: {cards}\ntexts: {self.feishu.texts()}\nmodel was told: {self.model.told()[-2000:]}"
        return f"{told}\ndaemon: {self.daemon.child.everything()}"

    def next(self, what, fits):
        """The next card that fits."""

        def found():
            cards = (card for card in self.feishu.cards() if card.id not in self.used)
            return next((card for card in cards if fits(card)), None)

        card = wait_until(what, found, 60.0, self.seen)
        self.used.add(card.id)
        return card

    def card(self, *parts):
        """The next card that says all of `parts`."""
        return self.next(f"card says {parts}", lambda card: all(part in card.said for part in parts))

    def request(self, command):
        """The next card that asks for this command."""
        return self.next(f"a card asks for {command!r}", lambda card: card.decides() and command in card.said)

    def shows(self, card, text, limit=60.0):
        wait_until(f"card shows {text!r}", lambda: text in self.feishu.card(card.id).text, limit, self.seen)

    def told(self, text, limit=60.0):
        said = lambda: any(text in one for one in self.feishu.texts())
        wait_until(f"nod says {text!r}", said, limit, self.seen)

    def new(self, *steps, words="/new shop"):
        self.feishu.say(f"{words} {prompt(*steps)}")
        return self.next("a task's card", lambda card: "任务" in card.text)

    def happened(self, name):
        return (self.box.project / name).exists()

    def test_a_task_asks_is_approved_and_refused_and_answers(self):
        task = self.new(plain("ls"), shell("touch asked-for"), shell("touch refused"), say("All **done**"))
        self.assertIn("Codex", task.text)
        asked = self.request("touch asked-for")
        self.assertEqual(task.thread, asked.thread)
        self.assertEqual("已批准运行", self.feishu.click(asked, "allow").toast["content"])
        refused = self.request("touch refused")
        self.assertTrue(self.happened("asked-for"))
        self.feishu.say("test it first", reply_to=refused)
        self.card("All **done**")
        self.shows(task, "任务已完成")
        self.assertFalse(self.happened("refused"))
        self.assertIn("test it first", self.model.told())
        self.assertEqual(["codex"], [one["agent"] for one in self.daemon.status()["sessions"]])
        # What it reads it does not ask for.
        self.assertEqual(2, len([card for card in self.feishu.cards() if "校验码" in card.text]), self.seen())

    def test_a_question_and_a_plan_are_put_to_a_person(self):
        task = self.new(say("hello"))
        self.card("hello")
        self.feishu.say_in_thread(task, "/mode plan")
        self.told("plan")
        steps = (function("request_user_input", questions=[QUESTION]), say(PLAN), plain("touch planned"), say("carried out"))
        self.feishu.say_in_thread(task, prompt(*steps))
        asked = self.card("Which color?")
        self.feishu.press(asked, "Blue")
        wait_until("the model was told", lambda: '\\"answers\\":[\\"Blue\\"]' in self.model.told().replace("\\\\", "\\"), 30, self.seen)
        planned = self.card("touch planned")
        self.assertFalse(self.happened("planned"))
        self.feishu.press(planned, "批准并自动接受编辑")
        self.card("carried out")
        self.assertTrue(self.happened("planned"))
        self.assertIn("Implement the plan.", self.model.told())

    def test_an_mcp_servers_form_is_filled_in_by_words(self):
        add_mcp_server_to_codex(self.box)
        task = self.new({**function("ask"), "namespace": "mcp__slow"}, say("filled in"))
        asked = self.card("Allow the slow MCP server")
        self.feishu.click(asked, "allow")
        self.card("Which colour?")
        self.feishu.say_in_thread(task, "plum")
        self.card("filled in")
        self.assertIn("plum", self.model.told())

    def test_stop_interrupts_the_turn_and_words_go_on_with_the_thread(self):
        task = self.new(shell("sleep 600"), say("never"))
        self.feishu.click(self.request("sleep 600"), "allow")
        self.shows(task, "sleep 600")
        self.feishu.say_in_thread(task, "/stop")
        self.told("已停止")
        self.shows(task, "任务已停止")
        wait_until("Codex ended", lambda: not self.box.daemons(), 20, self.seen)
        self.feishu.say_in_thread(task, "the word is plum " + prompt(say("went on")))
        self.card("went on")
        last = self.model.requests[-1]["input"]
        self.assertIn("sleep 600", str(last), "it knows what was before")

    def test_nod_killed_in_the_middle_leaves_no_codex_and_words_go_on(self):
        task = self.new(shell("touch asked-for"), say("never"))
        asked = self.request("touch asked-for")
        self.daemon.kill()
        wait_until("Codex ended", lambda: not self.box.daemons(), 20, self.seen)
        self.daemon.start()
        self.told("nod 重启")
        self.feishu.say_in_thread(task, prompt(say("went on")))
        self.card("went on")
        self.assertFalse(self.happened("asked-for"))
        self.assertFalse(self.feishu.card(asked.id).decides())

    def test_two_terminals_and_a_session_of_the_chat_are_not_mixed(self):
        first = self.box.terminal(shell("touch one"), say("first ends"))
        first.shows(DIALOG, START)
        second = self.box.terminal(shell("touch two"), say("second ends"))
        second.shows(DIALOG, START)
        task = self.new(shell("touch three"), say("third ends"))
        one, two, three = (self.request(f"touch {name}") for name in ("one", "two", "three"))
        self.assertEqual(task.thread, three.thread)
        self.assertNotEqual(task.thread, one.thread)
        self.feishu.click(three, "allow")
        self.card("third ends")
        self.assertTrue(self.happened("three"))
        self.assertFalse(self.happened("one") or self.happened("two"))
        self.feishu.click(two, "allow")
        second.shows("second ends")
        self.assertTrue(self.happened("two"))
        first.shows(DIALOG)
        self.feishu.say("not that one", reply_to=one)
        first.shows("first ends")
        self.assertFalse(self.happened("one"))
        second.hides("not that one")
        self.feishu.say_in_thread(task, prompt(say("fourth ends")))
        self.card("fourth ends")
        for terminal in (first, second):
            terminal.hides("fourth ends")

    def test_a_terminals_session_is_taken_over_and_both_show_it(self):
        terminal = self.box.terminal(say("hello"))
        terminal.shows("hello", START)
        # Words into a turn that is about to end would be part of it.
        terminal.shows("Worked for")

        def taken():
            """Asks once more only when the last was answered with a no."""
            before = len(self.feishu.texts())
            self.feishu.say("/resume T1")
            wait_until("an answer", lambda: len(self.feishu.texts()) > before, 20, self.seen)
            return any("已接续会话 #1" in text for text in self.feishu.texts())

        wait_until("it is taken over", taken, 20, self.seen)
        self.feishu.say("/sessions")
        self.card("#1 shop · Codex")
        self.feishu.say("words from the phone " + prompt(shell("touch asked-for"), say("heard you")))
        terminal.shows("words from the phone")
        terminal.shows(DIALOG)
        asked = self.request("touch asked-for")
        self.feishu.click(asked, "allow")
        terminal.shows("heard you")
        terminal.hides(DIALOG)
        self.card("heard you")
        self.assertTrue(self.happened("asked-for"))
        cards = [card for card in self.feishu.cards() if "校验码" in card.text]
        self.assertEqual(1, len(cards), self.seen())


if __name__ == "__main__":
    report.main()
