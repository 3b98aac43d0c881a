"""The real Codex in a terminal and nod beside it: whoever answers first decides, and the other side shows it."""

import json
import random
import time

from harness import report
from harness.beside import START, BesideCodex
from harness.codex import DIALOG
from harness.model import prompt, say
from harness.responses import function, shell
from harness.waiting import wait_until

ASKED = "touch asked-for"
PLAN = "<proposed_plan>\n# The plan\n- touch planned\n</proposed_plan>"
CHOICE = "Implement this plan?"


class SideBySide(BesideCodex):
    def test_tap_makes_the_dialog_vanish_and_the_command_run(self):
        terminal = self.dialog(shell(ASKED))
        card = self.card(ASKED)
        self.assertIn("Codex", card.text)
        self.feishu.click(card, "allow")
        terminal.shows("DONE")
        terminal.hides(DIALOG)
        self.assertTrue(self.happened())

    def test_the_terminal_first_withdraws_the_card_and_a_late_tap_hears_it(self):
        terminal = self.dialog(shell(ASKED), shell("touch second"))
        card = self.card(ASKED)
        self.presses(terminal, "y", ASKED)
        self.ended(card, "已在终端")
        late = self.feishu.click_stale(card, "interrupt")
        self.assertIn("终端", late.toast["content"])
        wait_until("it ran", self.happened, 10, self.seen)
        second = self.card("touch second")
        terminal.shows("$ touch second")
        self.presses(terminal, "\x1b", "touch second")
        self.ended(second, "已在终端")
        self.assertFalse(self.happened("second"))

    def test_both_at_once_twenty_times_one_outcome_and_a_true_card(self):
        # One session may ask ten times a minute.
        for first in (0, 10):
            names = [f"f{number}" for number in range(first, first + 10)]
            terminal = self.dialog(*[shell(f"touch {name}") for name in names])
            for name in names:
                self.race(terminal, name)
            terminal.shows("DONE")
            terminal.close()

    def race(self, terminal, name):
        terminal.shows(f"$ touch {name}\n", 30)
        card = self.card(f"touch {name}")
        time.sleep(random.random() * 0.01)
        terminal.send("y")
        time.sleep(random.random() * 0.01)
        self.feishu.click_stale(card, "deny")

        # What the terminal allowed a moment before ran, and the card is put right.
        def true():
            newest = self.feishu.card(card.id)
            here = "已在终端" not in newest.text
            return not newest.decides() and here != self.happened(name)

        wait_until(f"card of {name} is true", true, 15, self.seen)

    def test_a_reason_reaches_the_model(self):
        terminal = self.dialog(shell(ASKED))
        card = self.card(ASKED)
        self.feishu.say("test it first", reply_to=card)
        terminal.shows("DONE")
        self.assertFalse(self.happened())
        wait_until("the model was told", lambda: "test it first" in self.model.told(), 10, self.seen)

    def test_a_rule_is_the_prefix_shown_and_covers_one_more_argument(self):
        terminal = self.dialog(shell("git count-objects"), shell("git count-objects -v"))
        card = self.card("git count-objects")
        self.assertNotIn("always", card.values())
        self.assertIn("wider", card.values())
        self.feishu.click(card, "wider")
        # The same beginning with one more argument is what the card's sentence said.
        terminal.shows("DONE")
        asked = [card for card in self.feishu.cards() if "count-objects" in card.text]
        self.assertEqual(1, len(asked), self.seen())
        rules = "".join(file.read_text() for file in self.box.home.rglob("*.rules"))
        self.assertIn('prefix_rule(pattern=["git", "count-objects"], decision="allow")', rules)

    def test_two_terminals_at_once_are_not_mixed(self):
        first = self.dialog(shell("touch one"), say("first ends"))
        second = self.dialog(shell("touch two"), say("second ends"))
        one, two = self.card("touch one"), self.card("touch two")
        self.feishu.click(two, "allow")
        second.shows("second ends")
        self.assertTrue(self.happened("two"))
        self.assertFalse(self.happened("one"))
        first.shows(DIALOG)
        self.feishu.say("not that one", reply_to=one)
        first.shows("first ends")
        self.assertFalse(self.happened("one"))
        second.hides("not that one")

    def test_an_automatic_reviewer_is_known(self):
        config = self.box.home / "config.toml"
        config.write_text('approvals_reviewer = "auto_review"\n' + config.read_text())
        self.box.terminal(say("hello")).shows("hello", START)

        def reviewer():
            homes = self.daemon.status()["codex"]
            return homes and homes[0].get("reviewer") == "auto_review"

        wait_until("the reviewer is known", reviewer, 20, self.seen)

    def test_questions_are_answered_by_a_reply_and_by_a_tap(self):
        def step(name, *labels):
            options = [{"label": label, "description": "as said"} for label in labels]
            question = {"id": name, "header": name, "question": f"Which {name}?", "options": options}
            return function("request_user_input", questions=[question])

        def asked(name):
            found = lambda: next((card for card in self.feishu.cards() if f"Which {name}?" in card.said), None)
            return wait_until(f"a card asks for the {name}", found, 30, self.seen)

        def told(name, label):
            answered = json.dumps({"answers": {name: {"answers": [label]}}}, separators=(",", ":"))
            wait_until(f"the model was told {label}", lambda: json.dumps(answered) in self.model.told(), 20, self.seen)

        terminal = self.box.terminal(say("hello"))
        terminal.shows("hello", START)
        self.plans(terminal)
        terminal.send(prompt(step("color", "Red (Recommended)", "Blue"), step("size", "Small (Recommended)", "Large")))
        terminal.shows("request_user_input")
        # What follows at once counts as part of what was pasted.
        time.sleep(1)
        terminal.send("\r")
        self.feishu.say("Blue", reply_to=asked("color"))
        told("color", "Blue")
        self.feishu.press(asked("size"), "Large")
        told("size", "Large")
        terminal.shows("DONE")

    def test_a_plan_is_a_notice_and_the_choice_is_the_terminals(self):
        terminal = self.box.terminal(say("hello"))
        terminal.shows("hello", START)
        # A turn that ended before nod came is nobody's news.
        wait_until("nod follows", lambda: "Codex is followed" in self.daemon.child.everything(), 20, self.seen)
        self.plans(terminal)
        terminal.send(prompt(say(PLAN)))
        terminal.shows("touch planned")
        # What follows at once counts as part of what was pasted.
        time.sleep(1)
        terminal.send("\r")
        terminal.shows(CHOICE, 30)
        told = self.card("touch planned", decides=False)
        self.assertIn("只在终端询问", told.text)
        self.feishu.say("measure first " + prompt(say("heard you")), reply_to=told)
        terminal.shows("measure first")
        wait_until("the model was told", lambda: "measure first" in self.model.told(), 20, lambda: "not yet")
        terminal.shows("• heard you")
        # As the card says: the choice is still there.
        terminal.shows(CHOICE)

    def test_words_from_chat_appear_in_the_terminal(self):
        terminal = self.box.terminal(say("first"))
        terminal.shows("first", START)
        # A turn that ended before nod came is nobody's news.
        wait_until("nod follows", lambda: "Codex is followed" in self.daemon.child.everything(), 20, self.seen)
        terminal.send(prompt(say("second")))
        # What follows at once counts as part of what was pasted.
        time.sleep(1)
        terminal.send("\r")
        told = wait_until(
            "notice of the end",
            lambda: next((card for card in self.feishu.cards() if "second" in card.said), None),
            20,
            self.seen,
        )
        self.feishu.say("words from the phone " + prompt(say("heard you")), reply_to=told)
        terminal.shows("words from the phone")
        terminal.shows("heard you")

    def test_nod_killed_while_a_request_waits(self):
        terminal = self.dialog(shell(ASKED))
        card = self.card(ASKED)
        self.daemon.kill()
        self.daemon.start()
        self.feishu.click(card, "allow")
        terminal.shows("DONE")
        self.assertTrue(self.happened())

    def test_codexs_daemon_killed(self):
        self.dialog(shell(ASKED))
        card = self.card(ASKED)
        self.box.kill_daemon()
        self.ended(card, "终端")
        self.assertFalse(self.happened())


if __name__ == "__main__":
    report.main()
