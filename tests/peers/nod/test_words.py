"""The phone speaks into a session of the real CLI in its terminal: a reply to one of its cards is read there.

Its words stand on the session's own screen, the person is told what became of them, and the turn's end comes back.
"""

import json
import os
import signal

from scenario import Scenes

from harness import report
from harness.claude import DIALOG
from harness.model import bash, prompt, say
from harness.simulator import STRANGER, Card
from harness.waiting import wait_until

FINISHED = "任务已完成"
IDLE = "正在等你"
READ = "已送达终端会话（project），它开始处理"
QUEUED = "已送达终端会话（project）。它正忙"
HELD = "消息留在终端（project）"
REFUSED = "终端会话（project）没有接收"
GONE = "没有送达：该会话（project）已在终端结束"


def words(name, *steps):
    """What a person writes: words to be known by, and what the model is to do."""
    return f"words for {name}: {prompt(*steps)}"


class Words(Scenes):
    settings = {"NOD_NOTIFY_STOP_AFTER": "0"}

    def notice(self, *parts, limit=60.0):
        """The card that tells of a turn's end with all of `parts`."""

        def found():
            return next((card for card in self.feishu.cards() if all(part in card.said for part in parts)), None)

        return wait_until(f"notice says {parts}", found, limit, self.seen)

    def replied(self, message, limit=20.0):
        """What nod answered to this message of a person."""

        def found():
            sent = self.feishu._call("messages")["messages"]
            sent = [one for one in sent if one.get("parent_id") == message["message_id"]]
            sent = [one for one in sent if one["sender_type"] == "app"]
            return [Card(one).text if one["card"] else json.loads(one["content"])["text"] for one in sent]

        return wait_until("nod says what became of it", found, limit, self.seen)[0]

    def spoken(self, text):
        """What the audit says became of these words."""
        lines = map(json.loads, self.daemon.run("audit", "--json", "--last", "1000").splitlines())
        return [line["decision"] for line in lines if line["kind"] == "spoken" and text in str(line["detail"])]

    def model_read(self, text):
        """Whether a conversation that reached the model holds these words."""
        return any(text in json.dumps(request["messages"]) for request in self.model.requests)

    def idle_session(self, box, name):
        """A session in a terminal whose first turn has ended, and the card that said so."""
        terminal = box.terminal(say(f"{name} is ready"))
        terminal.shows(f"{name} is ready", 60)
        card = self.notice(FINISHED, f"{name} is ready")
        self.says(box, "idle")
        return terminal, card

    def says(self, box, status):
        """Waits until the session of this box says so about itself: its file lags behind its screen."""

        def said():
            files = (box.home / ".claude" / "sessions").glob("*.json")
            return any(f'"status":"{status}"' in file.read_text().replace(" ", "") for file in files)

        wait_until(f"the session says that it is {status}", said, 10)

    def reply(self, card, text):
        return self.replied(self.feishu.say(text, reply_to=card))

    def settle(self, box, inbound):
        file = box.home / ".claude" / "settings.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "crossSessionInbound": inbound}))

    def idle(self):
        with self.new_box() as box:
            terminal, card = self.idle_session(box, "idle")
            told = self.reply(card, words("idle", bash("touch by-phone"), say("idle heard it")))
            self.assertTrue(told.startswith(READ), told)
            terminal.shows("words for idle")
            # What the words ask for is asked like anything else.
            self.feishu.click(self.card_about("touch by-phone"), "allow")
            self.notice(FINISHED, "idle heard it")
            self.assertTrue((box.project / "by-phone").exists())
            self.assertEqual(["read"], self.spoken("words for idle"))

    def busy(self):
        with self.new_box() as box:
            terminal = box.terminal(bash("touch began; sleep 8"), say("not reached"))
            card = self.card_about("touch began; sleep 8")
            self.feishu.click(card, "allow")
            wait_until("it is busy", (box.project / "began").exists, 20)
            told = self.reply(card, words("busy", say("busy heard it")))
            self.assertIn(QUEUED, told)
            terminal.shows("words for busy", 30)
            self.notice(FINISHED, "busy heard it")
            self.assertEqual(["queued"], self.spoken("words for busy"))

    def waits_for_the_person(self):
        with self.new_box() as box:
            file = box.home / ".claude.json"
            file.write_text(json.dumps({**json.loads(file.read_text()), "messageIdleNotifThresholdMs": 1000}))
            # Where its end was not told, Claude Code's own notification is the first to tell.
            settings = box.home / ".claude" / "settings.json"
            told = json.loads(settings.read_text())
            del told["hooks"]["Stop"]
            settings.write_text(json.dumps(told))
            terminal = box.terminal(bash("touch before-waiting"))
            self.feishu.click(self.card_about("touch before-waiting"), "allow")
            terminal.shows("DONE")
            card = self.notice(IDLE, limit=90)
            self.says(box, "idle")
            told = self.reply(card, words("waiting", say("waiting heard it")))
            self.assertTrue(told.startswith(READ), told)
            terminal.shows("words for waiting")
            terminal.shows("waiting heard it")

    def held(self):
        with self.new_box() as box:
            self.settle(box, "hold")
            terminal, card = self.idle_session(box, "hold")
            told = self.reply(card, words("hold", say("hold heard it")))
            self.assertTrue(told.startswith(HELD), told)
            self.assertEqual(["held"], self.spoken("words for hold"))
            terminal.shows("Held peer message")
            self.assertFalse(self.model_read("words for hold"))

    def refused(self):
        with self.new_box() as box:
            self.settle(box, "refuse")
            terminal, card = self.idle_session(box, "refuse")
            told = self.reply(card, words("refuse", say("refuse heard it")))
            self.assertTrue(told.startswith(REFUSED), told)
            self.assertEqual(["refused"], self.spoken("words for refuse"))
            self.assertNotIn("words for refuse", terminal.written())
            self.assertFalse(self.model_read("words for refuse"))

    def stranger(self):
        with self.new_box() as box:
            terminal, card = self.idle_session(box, "stranger")
            message = self.feishu.say(words("stranger", say("stranger was heard")), reply_to=card, user=STRANGER)
            self.reply(card, words("owner", say("only the owner was heard")))
            terminal.shows("words for owner")
            terminal.shows("only the owner was heard")
            self.assertNotIn("words for stranger", terminal.written())
            self.assertEqual([], self.spoken("words for stranger"))
            sent = self.feishu._call("messages")["messages"]
            self.assertEqual([], [one for one in sent if one.get("parent_id") == message["message_id"]])

    def ended(self, how):
        with self.new_box() as box:
            terminal, card = self.idle_session(box, f"ended {how}")
            how_to_end = {"exit": lambda: terminal.send("/exit\r"), "kill": lambda: os.kill(terminal.pid, signal.SIGKILL)}
            how_to_end[how]()
            wait_until("it has ended", lambda: not terminal.running(), 20, terminal.screen)
            told = self.reply(card, words(f"ended {how}", say("nobody")))
            self.assertTrue(told.startswith(GONE), told)
            self.assertIn("claude --resume", told)
            self.assertEqual(["ended"], self.spoken(f"words for ended {how}"))

    def test_a_reply_reaches_the_session_whose_card_it_answers(self):
        scenes = [self.idle, self.busy, self.waits_for_the_person, self.held, self.refused, self.stranger]
        scenes = [(scene.__name__, scene) for scene in scenes]
        scenes += [(f"ended by {how}", lambda how=how: self.ended(how)) for how in ("exit", "kill")]
        self.in_parallel(scenes)

    def test_the_terminals_are_listed_and_spoken_to_by_their_number(self):
        terminal, _ = self.idle_session(self.box, "listed")
        with self.new_box() as other:
            busy = other.terminal(bash("touch listed-too; sleep 5"))
            card = self.card_about("touch listed-too")
            busy.shows(DIALOG)
            self.says(other, "waiting")
            listed = self.replied(self.feishu.say("/sessions"))
            self.assertIn("T1 project · 空闲", listed)
            self.assertIn("T2 project · 等你在终端回答", listed)
            self.feishu.click(card, "allow")
            wait_until("it runs", (other.project / "listed-too").exists, 20)
            self.says(other, "busy")
            self.assertIn("T2 project · 执行中", self.replied(self.feishu.say("/sessions")))
            told = self.replied(self.feishu.say(f"/say 1 {words('T1', say('T1 heard it'))}"))
            self.assertTrue(told.startswith(READ), told)
            terminal.shows("words for T1")
            self.notice(FINISHED, "T1 heard it")
            self.assertNotIn("words for T1", busy.written())
        self.assertIn("没有这个编号的终端会话", self.replied(self.feishu.say("/say 9 hello")))


if __name__ == "__main__":
    report.main()
