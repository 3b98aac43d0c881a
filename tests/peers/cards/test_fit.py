"""Cards for thumbs: what a phone of 390 points shows of them, measured in a real browser in both languages."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness.simulator import Simulator

from harness import report
from harness.nod import Daemon, binary
from harness.processes import marked
from harness.waiting import wait_until

MEASURE = Path(__file__).resolve().parent / "measure.js"

OLD = "".join(f"const price{i} = {i};\n" for i in range(4))
NEW = OLD.replace("price1 = 1", "price1 = 100").replace("price2 = 2", "price2 = 200")
LONG_OLD = "".join(f"    let total_{i} = price_{i} * count_{i};\n" for i in range(90))
FIELDS = {
    "owner": "example",
    "repo": "shop",
    "title": "Prices are rounded twice",
    "body": "Steps to reproduce: open the basket, add two articles, look at the sum.",
    "labels": ["bug", "prices"],
    "assignee": "lin",
}
QUESTION = {
    "questions": [
        {
            "question": "Which database should the shop use?",
            "header": "Database",
            "multiSelect": False,
            "options": [{"label": name, "description": ""} for name in ("SQLite", "Postgres", "MySQL", "None yet")],
        }
    ]
}

# What is asked, the card's height at most, and where the last of its four buttons ends at most.
CARDS = (
    ("Bash", {"command": "npm test"}, 340, 260),
    ("Bash", {"command": "git push --force origin main", "description": "Publish the rewritten history"}, 460, 380),
    ("Edit", {"file_path": "src/price.ts", "old_string": OLD, "new_string": NEW}, 560, 480),
    ("mcp__github__create_issue", FIELDS, 560, 480),
    ("AskUserQuestion", QUESTION, 420, 380),
    ("Edit", {"file_path": "src/total.ts", "old_string": LONG_OLD, "new_string": LONG_OLD.replace("let", "const")}, 760, 680),
    ("Bash", {"command": "\n".join(f"echo building part {i} of the shop" for i in range(60))}, 760, 680),
)
ENDED = 200
LONG = "Which of the two ways to round a price of half a cent should the shop take from now on?"


def choice(question, *labels):
    options = [{"label": label, "description": "as the invoice does"} for label in labels]
    return {"question": question, "header": "Rounding", "multiSelect": False, "options": options}


PLAN = {"plan": "# Charge prices in whole cents, everywhere and from now on\n\n1. measure\n2. cut"}
# What is asked, the words on the button that ends it in both languages, and what is filled in before.
ENDINGS = (
    ("Bash", {"command": "cargo test --workspace --all-features --locked -- --nocapture"}, ("批准运行", "Allow once"), {}),
    ("Bash", {"command": "npm test"}, ("始终允许", "Always allow"), {}),
    ("Bash", {"command": "git push --force origin main"}, ("按此理由拒绝", "Deny with this reason"), {"reason": "not today"}),
    ("AskUserQuestion", {"questions": [choice(LONG, "Half up", "Half even")]}, ("Half up", "Half up"), {}),
    ("AskUserQuestion", {"questions": [choice(LONG, LONG[:78], "None")]}, (LONG[:78], LONG[:78]), {}),
    ("AskUserQuestion", {"questions": [choice(LONG, "a", "b"), choice("And taxes?", "c", "d")]}, ("提交", "Submit"), {"q0": "o0", "q1": "o1"}),
    ("ExitPlanMode", PLAN, ("批准计划", "Approve the plan"), {}),
    ("ExitPlanMode", PLAN, ("继续完善", "Keep planning"), {}),
)
# What the chat answers with buttons, each on one screen of a phone.
MENUS = ("/help", "/new", "/sessions", "/projects")
MENU = 760
# A task of the demo's stand-in for Claude Code, which asks a question and waits.
TASK = "Charge prices in cents"
TASK_HEIGHT = 340
SAID = "All 42 tests pass.\n\nThe prices are whole cents now:\n\n- rounded half up\n- stored as integers"
# Requests of one session beyond the one that has a card of its own.
GATHERED = 4


class Fit(unittest.TestCase):
    def setUp(self):
        chosen = os.environ.get("NOD_PEERS_SHOTS")
        self.shots = Path(chosen or tempfile.mkdtemp(prefix="nod-shots-"))
        self.shots.mkdir(parents=True, exist_ok=True)
        if not chosen:
            self.addCleanup(shutil.rmtree, self.shots, ignore_errors=True)

    def measured(self, feishu, name):
        count = len(feishu.cards())
        command = ["node", str(MEASURE), feishu.page, str(count), str(self.shots / name)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=marked(dict(os.environ)))
        self.assertEqual(0, run.returncode, run.stderr)
        return json.loads(run.stdout)

    def ask(self, daemon, project, number, tool, given):
        asked = {"permission_mode": "default", "tool_name": tool, "tool_input": given, "permission_suggestions": []}
        return self.event(daemon, project, number, "PermissionRequest", **asked)

    def event(self, daemon, project, number, name, **more):
        session = f"8dc2e48c-c040-4f3e-8b87-dd918621{number:04}"
        said = {"session_id": session, "cwd": str(project), "hook_event_name": name, **more}
        hook = subprocess.Popen(daemon.hook, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=marked({}), cwd=project)
        self.addCleanup(hook.wait, 10)
        self.addCleanup(hook.kill)
        hook.stdin.write(json.dumps(said).encode())
        hook.stdin.close()
        return hook

    @staticmethod
    def corrected(feishu):
        return sum(entry.get("why") == "patched" for entry in feishu.history("card"))

    @staticmethod
    def waiting(feishu):
        """Not what goes out before a card that can't hold it all."""
        return [card for card in feishu.cards() if card.values()]

    def fits(self, lang):
        with Simulator() as feishu, Daemon(feishu, NOD_LANG=lang) as daemon, tempfile.TemporaryDirectory() as root:
            project = Path(root) / "shop"
            (project / ".git").mkdir(parents=True)
            (project / ".git/HEAD").write_text("ref: refs/heads/checkout\n")
            for number, (tool, given, _, _) in enumerate(CARDS):
                self.ask(daemon, project, number, tool, given)
                wait_until("card is there", lambda: len(self.waiting(feishu)) == number + 1, 30, daemon.child.everything)
            seen = [card for card in self.measured(feishu, f"waiting-{lang}") if card["places"]]
            for card, (tool, _, height, end) in zip(seen, CARDS, strict=True):
                last = max(place["end"] for place in card["places"].values())
                print(f"{lang} {tool} {card['title']!r}: {card['height']} px, buttons end at {last}", flush=True)
                self.assertLessEqual(card["height"], height, card)
                self.assertLessEqual(last, end, card)
            self.stay(seen)
            for card in self.waiting(feishu):
                if "deny" in card.values():
                    feishu.click(card, "deny")
            # An edit that comes while a card is looked at would draw it anew.
            wait_until("cards are corrected", lambda: self.corrected(feishu) >= len(CARDS) - 1, 30)
            ended = [card for card in self.measured(feishu, f"ended-{lang}") if card["title"].startswith("✗")]
            self.assertEqual(len(CARDS) - 1, len(ended))
            for card in ended:
                self.assertLessEqual(card["height"], ENDED, card)
            print(f"{lang} ended: at most {max(card['height'] for card in ended)} px", flush=True)

    def endings_fit(self, lang):
        """However a request ended, little of the screen is left to it."""
        place = ("zh", "en").index(lang)
        with Simulator() as feishu, Daemon(feishu, NOD_LANG=lang) as daemon, tempfile.TemporaryDirectory() as root:
            project = Path(root) / "shop"
            (project / ".git").mkdir(parents=True)
            (project / ".git/HEAD").write_text("ref: refs/heads/checkout\n")
            for number, (tool, given, button, form) in enumerate(ENDINGS):
                hook = self.ask(daemon, project, number, tool, given)
                wait_until("card is there", lambda: len(feishu.cards()) == number + 1, 30, daemon.child.everything)
                if tool == "ExitPlanMode":
                    (*_, plan) = self.measured(feishu, f"plan-{number}-{lang}")
                    self.assertLessEqual(plan["height"], MENU, plan)
                feishu.press(feishu.cards()[-1], button[place], form)
                hook.wait(30)
            wait_until("cards are corrected", lambda: self.corrected(feishu) >= len(ENDINGS), 60)
            for card in self.measured(feishu, f"endings-{lang}"):
                print(f"{lang} ended {card['title']!r}: {card['height']} px", flush=True)
                with self.subTest(card["title"]):
                    self.assertLessEqual(card["height"], ENDED, card)

    def test_endings_in_chinese(self):
        self.endings_fit("zh")

    def test_endings_in_english(self):
        self.endings_fit("en")

    def menus_fit(self, lang):
        """What is written in the chat is answered with cards for thumbs too, and so is a flood."""
        with tempfile.TemporaryDirectory() as root:
            projects = [Path(root) / name for name in ("shop", "blog", "api")]
            for project in projects:
                (project / ".git").mkdir(parents=True)
            named = ",".join(f"{project.name}={project}" for project in projects)
            settings = {"NOD_LANG": lang, "NOD_PROJECTS": named, "NOD_CARDS_AT_ONCE": "1", "NOD_CHAT_RATE": "100"}
            with Simulator() as feishu, Daemon(feishu, **settings) as daemon:
                for number, command in enumerate(MENUS):
                    feishu.say(command)
                    wait_until(command, lambda: len(feishu.cards()) == number + 1, 30, daemon.child.everything)
                count = len(MENUS) + 1
                self.ask(daemon, projects[0], 0, "Bash", {"command": "npm run step-0"})
                wait_until("the first has a card", lambda: len(feishu.cards()) == count, 30, daemon.child.everything)
                for number in range(1, 1 + GATHERED):
                    self.ask(daemon, projects[0], 0, "Bash", {"command": f"npm run step-{number}"})
                count += 1
                wait_until("they are gathered", lambda: self.lists(feishu, count), 30, daemon.child.everything)
                seen = self.measured(feishu, f"menus-{lang}")
            for name, card in zip([*MENUS, "one request", "gathered"], seen, strict=True):
                ends = [place["end"] for place in card["places"].values()]
                print(f"{lang} {name} {card['title']!r}: {card['height']} px, buttons end at {max(ends, default=0)}", flush=True)
                self.assertLessEqual(card["height"], MENU, card)
                self.assertLessEqual(max(ends, default=0), MENU, card)

    def tasks_fit(self, lang):
        """A task from the chat while it runs and when it is stopped, the modes of its session, and a notice."""
        with tempfile.TemporaryDirectory() as root:
            project, stand_in = Path(root) / "shop", Path(root) / "nod-stand-in"
            (project / ".git").mkdir(parents=True)
            stand_in.symlink_to(binary())
            settings = {"NOD_LANG": lang, "NOD_PROJECTS": f"shop={project}", "NOD_CLAUDE": str(stand_in)}
            with Simulator() as feishu, Daemon(feishu, NOD_NOTIFY_STOP_AFTER="0", **settings) as daemon:
                seen = daemon.child.everything
                feishu.say(f"/new {TASK}")
                asked = wait_until("it asks", lambda: next(iter(feishu.cards()[1:]), None), 30, seen)
                task = feishu.cards()[0]
                feishu.say_in_thread(task, "/mode")
                wait_until("the modes", lambda: len(feishu.cards()) == 3, 30, seen)
                self.event(daemon, project, 0, "UserPromptSubmit", prompt="go").wait(30)
                self.event(daemon, project, 0, "Stop", last_assistant_message=SAID).wait(30)
                wait_until("the notice", lambda: len(feishu.cards()) == 4, 30, seen)
                waits = "等待你的回答" if lang == "zh" else "Waits for your answer"
                wait_until("it says that it waits", lambda: waits in feishu.card(task.id).text, 60, seen)
                running, _, modes, notice = self.measured(feishu, f"task-{lang}")
                feishu.click(task, "stop")
                wait_until("it is stopped", lambda: feishu.card(task.id).values() == {}, 30, seen)
                wait_until("its question is over", lambda: feishu.card(asked.id).values() == {}, 30, seen)
                stopped = self.measured(feishu, f"stopped-{lang}")[0]
        for name, card, most in (
            ("task", running, TASK_HEIGHT),
            ("modes", modes, MENU),
            ("notice", notice, TASK_HEIGHT),
            ("stopped", stopped, ENDED),
        ):
            print(f"{lang} {name} {card['title']!r}: {card['height']} px", flush=True)
            self.assertLessEqual(card["height"], most, card)
        self.assertEqual(TASK, running["title"])
        self.assertEqual(f"– {TASK}", stopped["title"])
        self.assertEqual("✓ All 42 tests pass.", notice["title"])
        self.assertGreater(running["places"]["stop"]["left"], 390 / 2, "where other cards deny")

    def test_a_task_its_modes_and_a_notice_in_chinese(self):
        self.tasks_fit("zh")

    def test_a_task_its_modes_and_a_notice_in_english(self):
        self.tasks_fit("en")

    @staticmethod
    def lists(feishu, count):
        """Whether the last card of so many lists every gathered command."""
        cards = feishu.cards()
        return len(cards) == count and all(f"npm run step-{n}" in cards[-1].text for n in range(1, 1 + GATHERED))

    def stay(self, seen):
        """To deny and to interrupt stand in the same column of each card, one row apart."""
        places = [card["places"] for card in seen if "interrupt" in card["places"]]
        self.assertEqual(1, len({place["deny"]["left"] for place in places}))
        self.assertEqual(1, len({place["interrupt"]["left"] for place in places}))
        self.assertEqual(1, len({place["interrupt"]["end"] - place["deny"]["end"] for place in places}))

    def test_menus_and_a_flood_in_chinese(self):
        self.menus_fit("zh")

    def test_menus_and_a_flood_in_english(self):
        self.menus_fit("en")

    def test_chinese(self):
        self.fits("zh")

    def test_english(self):
        self.fits("en")


if __name__ == "__main__":
    report.main()
