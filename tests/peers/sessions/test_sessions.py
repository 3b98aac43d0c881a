"""Whole sessions from chat with the real CLI: started, asked, answered, stopped and taken up again."""

import unittest
from pathlib import Path

from harness import report
from harness.claude import ClaudeBox, program
from harness.model import ScriptedModel, bash, call, prompt, say
from harness.nod import HOOK_EVENTS, Daemon, binary
from harness.simulator import Simulator
from harness.waiting import wait_until

STORES = [{"label": "Redis", "description": "shared"}, {"label": "SQLite", "description": "a file"}]


def question(text, multi=False):
    asked = {"question": text, "header": "Store", "options": STORES, "multiSelect": multi}
    return call("AskUserQuestion", questions=[asked])


class Session(unittest.TestCase):
    settings = {}

    def setUp(self):
        self.model = self.enterContext(ScriptedModel())
        self.feishu = self.enterContext(Simulator())
        # The hooks are installed, as they are for people, and must stay silent here.
        hooks = dict.fromkeys(HOOK_EVENTS, f"{binary()} hook")
        self.box = self.enterContext(ClaudeBox(self.model, hooks))
        self.other = self.box.root / "other"
        self.other.mkdir()
        settings = {
            **self.box.environment,
            "NOD_CLAUDE": str(program()),
            "NOD_PROJECTS": f"shop={self.box.project},blog={self.other}",
            **self.settings,
        }
        self.daemon = self.enterContext(Daemon(self.feishu, **settings))
        self.used = set()

    def tearDown(self):
        self.assertEqual([], self.feishu.violations())

    def card(self, *parts, limit=60.0):
        """The next card that says all of `parts`."""

        def found():
            cards = (card for card in self.feishu.cards() if card.id not in self.used)
            return next((card for card in cards if all(part in card.said for part in parts)), None)

        card = wait_until(f"card says {parts}", found, limit, self.seen)
        self.used.add(card.id)
        return card

    def shows(self, card, text, limit=60.0):
        wait_until(f"card shows {text!r}", lambda: text in self.feishu.card(card.id).text, limit, self.seen)

    def told(self, text, limit=60.0):
        wait_until(
            f"nod says {text!r}", lambda: any(text in said for said in self.feishu.texts()), limit, self.seen
        )

    def seen(self):
        cards = [card.text for card in self.feishu.cards()]
        told = f"cards: {cards}\ntexts: {self.feishu.texts()}\nmodel was told: {self.model.results()}"
        return f"{told}\ndaemon: {self.daemon.child.everything()}"

    def new(self, *steps, project="shop"):
        self.feishu.say(f"/new {project} {prompt(*steps)}")
        return self.card("任务")

    def allow(self, command):
        card = self.card("等待批准", command)
        self.assertEqual("已批准运行", self.feishu.click(card, "allow").toast["content"])
        return card

    def happened(self, name, project=None):
        path = (project or self.box.project) / name
        wait_until(f"{name} is there", path.exists, 30, self.seen)


class Files(Session):
    def test_a_file_that_was_sent_is_read_without_asking_though_it_is_outside_the_project(self):
        path = self.daemon.state / "files" / "1" / "1-notes.txt"
        self.feishu.send_file("notes.txt", b"the word is plum\n")
        self.told("已收到文件")
        self.new(call("Read", file_path=str(path)), say("I have read it"))
        self.card("I have read it")
        self.assertTrue(any("plum" in str(result) for result in self.model.results()), self.model.results())
        self.assertFalse([card.text for card in self.feishu.cards() if "等待批准" in card.text])


class Task(Session):
    def test_runs_after_a_tap_and_is_answered_by_tap_form_and_text(self):
        task = self.new(
            bash("touch asked-for"),
            question("Which store?"),
            question("Which ones?", multi=True),
            question("And for tests?"),
            say("All **done**"),
        )
        self.assertIsNotNone(task.thread)
        asked = self.allow("touch asked-for")
        self.assertEqual(task.thread, asked.thread)
        self.happened("asked-for")
        by_tap = self.card("Which store?")
        self.assertEqual("已收到你的回复，继续执行...", self.feishu.press(by_tap, "SQLite").toast["content"])
        by_form = self.card("Which ones?")
        self.feishu.press(by_form, "提交", form={"q0": ["o0", "o1"]})
        by_text = self.card("And for tests?")
        self.feishu.say("a plain file", reply_to=by_text)
        self.told("已收到你的回复，继续执行...")
        self.card("All **done**")
        self.shows(task, "任务已完成")
        answers = " ".join(told for told, _ in self.model.results())
        for answer in ("SQLite", "Redis, SQLite", "a plain file"):
            self.assertIn(answer, answers)
        self.assertEqual(["idle"], [one["state"] for one in self.daemon.status()["sessions"]])

    def test_always_is_asked_once_and_left_in_the_project(self):
        self.new(bash("touch asked-for"), bash("touch asked-for"))
        card = self.card("等待批准", "touch asked-for")
        self.feishu.click(card, "always")
        self.card("DONE")
        self.assertEqual(["Bash(touch asked-for)"], self.box.local_settings()["permissions"]["allow"])
        asked = [card for card in self.feishu.cards() if "touch asked-for" in card.text and "工具：Bash" in card.text]
        self.assertEqual(1, len(asked), self.seen())

    def test_reason_of_a_refusal_reaches_the_model(self):
        self.new(bash("touch asked-for"))
        card = self.card("等待批准", "touch asked-for")
        self.feishu.say("先跑测试", reply_to=card)
        self.card("DONE")
        ((told, is_error),) = self.model.results()
        self.assertIn("先跑测试", told)
        self.assertTrue(is_error)
        self.assertFalse((self.box.project / "asked-for").exists())

    def test_subagents_are_answered_after_the_main_turn_has_ended(self):
        def part(number):
            script = prompt(bash(f"touch part-{number}"))
            return call("Agent", description=f"part {number}", subagent_type="general-purpose", prompt=script)

        task = self.new({"together": [part(number) for number in range(3)]})
        cards = [self.card("等待批准", f"touch part-{number}") for number in range(3)]
        self.shows(task, "任务已完成")
        for number in (2, 0):
            self.assertEqual("已批准运行", self.feishu.click(cards[number], "allow").toast["content"])
            self.happened(f"part-{number}")
        self.assertEqual("已拒绝运行", self.feishu.click(cards[1], "deny").toast["content"])
        self.shows(cards[1], "已拒绝")
        self.assertFalse((self.box.project / "part-1").exists())

    def test_plan_is_shown_and_approved(self):
        task = self.new(say("ready"))
        self.card("ready")
        self.feishu.say_in_thread(task, "/mode plan")
        self.told("权限模式：plan")
        self.feishu.say_in_thread(task, prompt(call("ExitPlanMode", plan="1. measure"), bash("touch built")))
        plan = self.card("计划待批准")
        self.feishu.press(plan, "批准计划")
        self.shows(plan, "已回答")
        self.allow("touch built")
        self.happened("built")

    def test_two_sessions_run_side_by_side(self):
        first = self.new(bash("touch one"), question("Store for one?"), say("one is done"))
        second = self.new(bash("touch two"), question("Store for two?"), say("two is done"), project="blog")
        self.assertNotEqual(first.thread, second.thread)
        self.assertEqual(second.thread, self.allow("touch two").thread)
        self.assertEqual(first.thread, self.allow("touch one").thread)
        self.happened("one")
        self.happened("two", self.other)
        self.card("Store for one?")
        self.card("Store for two?")
        self.feishu.say_in_thread(second, "SQLite")
        self.assertEqual(second.thread, self.card("two is done").thread)
        self.feishu.say_in_thread(first, "Redis")
        self.assertEqual(first.thread, self.card("one is done").thread)
        self.assertFalse((self.box.project / "two").exists() or (self.other / "one").exists())


class Ended(Session):
    def test_stop_by_command_and_by_button(self):
        task = self.new(bash("touch began && sleep 600"))
        self.allow("sleep 600")
        self.happened("began")
        self.feishu.say_in_thread(task, "/stop")
        self.shows(task, "任务已停止")
        self.told("已停止")
        self.feishu.say_in_thread(task, prompt(bash("touch again && sleep 600")))
        again = self.card("任务")
        self.assertEqual(task.thread, again.thread)
        self.allow("touch again")
        self.happened("again")
        self.assertEqual("正在停止", self.feishu.click(again, "stop").toast["content"])
        self.shows(again, "任务已停止")

    def test_killed_daemon_leaves_a_session_that_goes_on(self):
        task = self.new(bash("touch never"))
        waiting = self.card("等待批准", "touch never")
        self.daemon.kill()
        self.daemon.start()
        self.shows(task, "nod 重启，任务中断")
        self.shows(waiting, "已取消")
        self.feishu.say("/resume 1")
        self.told("已接续会话 #1")
        self.feishu.say(prompt(bash("touch after")))
        self.allow("touch after")
        self.happened("after")
        self.card("DONE")
        self.assertFalse((self.box.project / "never").exists())
        spoken = [message for message in self.model.requests[-1]["messages"] if message["role"] == "user"]
        self.assertIn("touch never", str(spoken), "the conversation went on")


class TimedOut(Session):
    settings = {"NOD_TOOL_TIMEOUT": "2", "NOD_QUESTION_TIMEOUT": "2"}

    def test_nobody_answers(self):
        task = self.new(bash("touch never"), question("Which store?"))
        tool = self.card("touch never")
        self.shows(tool, "已超时")
        self.told("等待批准超时")
        asked = self.card("Which store?")
        self.shows(asked, "已超时")
        self.told("等待回答超时")
        self.shows(task, "任务已中断")
        self.assertIn("within 2 seconds", self.model.results()[0][0])
        self.assertFalse((self.box.project / "never").exists())


if __name__ == "__main__":
    report.main()
