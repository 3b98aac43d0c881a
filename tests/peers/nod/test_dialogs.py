"""Dialogs of the real CLI that no hook asks about: told of while they are open, and no longer."""

import json

from scenario import Scenes

from harness import report
from harness.model import bash, call
from harness.slow import add_mcp_server
from harness.waiting import wait_until

WAITS = "请在终端回答"
OVER = "终端不再等待"


class Dialogs(Scenes):
    def notice(self, box, limit=60.0):
        """The card about this box's terminal."""

        def found():
            about = [card for card in self.feishu.cards() if str(box.project) in card.text]
            return next((card for card in about if WAITS in card.text), None)

        return wait_until("the terminal's dialog is told of", found, limit, self.seen)

    def elicitation(self):
        with self.new_box() as box:
            add_mcp_server(box)
            terminal = box.terminal(call("mcp__slow__ask"))
            self.feishu.click(self.card_about("mcp__slow__ask"), "allow")
            terminal.shows("Which colour?")
            card = self.notice(box)
            terminal.send("\x1b")
            self.shows(card, OVER)

    def plan(self):
        with self.new_box() as box:
            file = box.home / ".claude" / "settings.json"
            settings = json.loads(file.read_text())
            settings["permissions"]["defaultMode"] = "plan"
            file.write_text(json.dumps(settings))
            terminal = box.terminal(bash("touch in-plan-mode"))
            terminal.shows("Do you want to", 60)
            card = self.notice(box)
            terminal.send("\x1b")
            self.shows(card, OVER)

    def a_dialog_with_a_card(self):
        with self.new_box() as box:
            terminal = box.terminal(bash("touch with-a-card; sleep 8"), bash("touch with-a-card-too"))
            self.feishu.click(self.card_about("touch with-a-card;"), "allow")
            card = self.card_about("touch with-a-card-too", 60)
            terminal.shows("Do you want to")
            # Claude Code's own notification comes six seconds after the dialog.
            marks = box.root / "notified"
            wait_until("Claude Code has notified", marks.exists, 30)
            self.feishu.click(card, "allow")
            terminal.shows("DONE")
            about = [card.text for card in self.feishu.cards() if str(box.project) in card.text]
            self.assertFalse([text for text in about if WAITS in text or OVER in text])

    def new_box(self):
        box = super().new_box()
        file = box.home / ".claude" / "settings.json"
        settings = json.loads(file.read_text())
        hook = {"type": "command", "command": f"touch {box.root}/notified", "timeout": 10}
        settings["hooks"]["Notification"].append({"hooks": [hook]})
        file.write_text(json.dumps(settings))
        return box

    def test_what_waits_in_the_terminal_only_is_told_until_it_is_over(self):
        scenes = [self.elicitation, self.plan, self.a_dialog_with_a_card]
        self.in_parallel([(scene.__name__, scene) for scene in scenes])


if __name__ == "__main__":
    report.main()
