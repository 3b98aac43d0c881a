"""Subagents of the real CLI: no card is withdrawn by anything but its own end.

Scenes run side by side: in print mode, in a terminal and in a chat session, one to three subagents, asked to run in
the foreground and in the background, tapped out of order, before and after the end of the main agent's turn.
"""

import json

from scenario import Scenes

from harness import report
from harness.claude import DIALOG, ClaudeBox, program
from harness.model import bash, call, prompt
from harness.nod import Daemon
from harness.waiting import wait_until


def subagent(number, *steps, background=True):
    return call(
        "Agent",
        description=f"part {number}",
        subagent_type="general-purpose",
        prompt=prompt(*steps),
        run_in_background=background,
    )


def together(*calls):
    return {"together": list(calls)} if len(calls) > 1 else calls[0]


class Scene:
    """One agent with `count` subagents that ask for two commands each: in the foreground, or in the background, tapped
    early, while the main agent waits for a command of its own, or late, after the end of its turn."""

    def __init__(self, name, count, kind):
        self.name, self.count, self.kind = name, count, kind
        asks = [(bash(self.command("first", n)), bash(self.command("second", n))) for n in range(count)]
        background = kind != "fore"
        self.steps = [together(*[subagent(n, *steps, background=background) for n, steps in enumerate(asks)])]
        if kind == "early":
            self.steps.append(bash(self.command("main", 0)))

    def file(self, part, number):
        return f"{self.name}-{part}-{number}"

    def command(self, part, number):
        return f"touch {self.file(part, number)}"


def scenes():
    """Every number of subagents, in the foreground and, early and late, in the background."""
    for count in (1, 2, 3):
        for kind in ("fore", "early", "late"):
            yield lambda where, count=count, kind=kind: Scene(f"{where}-{count}-{kind}", count, kind)


class Subagents(Scenes):
    def still_open(self, cards):
        for card in cards:
            self.assertTrue(self.feishu.card(card.id).decides(), self.feishu.card(card.id).text)

    def allow(self, card):
        self.assert_toast("已批准运行", self.feishu.click(card, "allow"))

    def made(self, box, name):
        wait_until(f"{name} is there", (box.project / name).exists, 40, self.seen)

    def play(self, scene, box, main_turn_ended, answer_main):
        """Taps everything; each card waits until it is tapped."""
        parts = range(scene.count)
        cards = [self.card_about(scene.command("first", n)) for n in parts]
        main = [self.card_about(scene.command("main", 0))] if scene.kind == "early" else []
        if scene.kind == "late":
            main_turn_ended()
        self.still_open(cards + main)
        for number in reversed(parts):
            self.allow(cards[number])
            self.made(box, scene.file("first", number))
            self.still_open(cards[:number] + main)
        second = [self.card_about(scene.command("second", n)) for n in parts]
        if scene.kind == "early":
            answer_main(main[0])
            self.made(box, scene.file("main", 0))
            main_turn_ended()
        for number, card in enumerate(second):
            self.still_open(second[number:])
            self.allow(card)
            self.made(box, scene.file("second", number))
        for card in cards + second:
            self.shows(card, "已批准", 10)

    def main_turns(self, box):
        """Marks each end of the main turn with a hook of its own; waits for the first."""
        file, marks = box.home / ".claude" / "settings.json", box.root / "stops"
        settings = json.loads(file.read_text())
        hook = {"type": "command", "command": f"printf x >>{marks}", "timeout": 10}
        settings["hooks"].setdefault("Stop", []).append({"hooks": [hook]})
        file.write_text(json.dumps(settings))
        return lambda: wait_until("main turn ended", marks.exists, 60, self.seen)

    def in_print_mode(self, make):
        scene = make("print")
        with self.new_box() as box:
            ended = self.main_turns(box)
            run = box.start_print(*scene.steps)
            self.play(scene, box, ended, self.allow)
            self.assertEqual("DONE", run.result()["result"])

    def in_a_terminal(self, make):
        scene = make("terminal")
        with self.new_box() as box:
            ended = self.main_turns(box)
            terminal = box.terminal(*scene.steps)

            def answer(card):
                terminal.shows(DIALOG)
                terminal.send("1")
                self.shows(card, "已在终端批准", 10)

            self.play(scene, box, ended, answer)
            terminal.shows("DONE")


class Hooks(Subagents):
    def test_each_is_answered_by_its_own_tap_in_print_mode_and_in_a_terminal(self):
        plays = [self.in_print_mode, self.in_a_terminal]
        self.in_parallel([(make(p.__name__).name, lambda p=p, make=make: p(make)) for make in scenes() for p in plays])

    def test_a_denied_one_runs_nothing_and_ends_no_other(self):
        terminal = self.box.terminal(together(subagent(0, bash("touch denied")), subagent(1, bash("touch allowed"))))
        denied, allowed = self.card_about("touch denied"), self.card_about("touch allowed")
        self.assert_toast("已拒绝运行", self.feishu.click(denied, "deny"))
        self.ended_card(denied)
        self.still_open([allowed])
        self.allow(allowed)
        self.made(self.box, "allowed")
        terminal.shows("DONE")
        self.assertFalse(self.happened("denied"))


class Chat(Subagents):
    def setUp(self):
        super().setUp()
        self.chat_box = self.enterContext(ClaudeBox(self.model, {}))
        settings = {
            **self.chat_box.environment,
            "NOD_CLAUDE": str(program()),
            "NOD_PROJECTS": f"shop={self.chat_box.project}",
        }
        self.daemon.child.stop()
        self.daemon = self.enterContext(Daemon(self.feishu, **settings))

    def chat(self, make):
        scene = make("chat")
        self.feishu.say(f"/new shop {prompt(*scene.steps)}")

        def task_ended():
            thread = next(card.thread for card in self.feishu.cards() if scene.command("first", 0) in card.text)
            return any("任务已完成" in card.text for card in self.feishu.cards() if card.thread == thread)

        ended = lambda: wait_until("main turn ended", task_ended, 60, self.seen)  # noqa: E731
        self.play(scene, self.chat_box, ended, self.allow)

    def test_each_is_answered_by_its_own_tap_in_a_chat_session(self):
        self.in_parallel([(make("chat").name, lambda make=make: self.chat(make)) for make in scenes()])


if __name__ == "__main__":
    report.main()
