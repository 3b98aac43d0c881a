"""The rules nod leaves besides exact commands, judged by the real CLI, and the two ways around the tap that there were."""

from judged import Judged

from harness import report
from harness.model import bash, call
from harness.waiting import wait_until

# Anything that begins like this, and what only looks as if it did.
WIDER = [
    (
        "git count-objects -v",
        ["git count-objects -H", "git count-objects"],
        [
            "git count-objects -v > out",
            "git count-objects -v | sh",
            "git count-objects $(./probe zz)",
            "git count-objects -v; ./probe zz",
            "git count-objects -v && ./probe zz",
            "git count-objects -v\n./probe zz",
            "git count-objectsx",
            "git count-objects-x",
            "git gc",
            "git -c a.b=c count-objects -v",
            "git --exec-path=. count-objects -v",
            "GIT_DIR=x git count-objects -v",
        ],
    ),
    ("git check-ref-format a/b", ["git check-ref-format c/d"], ["git check-ref-formatx", "git check-attr -a file"]),
]


class Rules(Judged):
    def test_a_wider_rule_lets_its_beginning_pass_and_nothing_beside_it(self):
        toasts = self.tap_each([bash(command) for command, _, _ in WIDER], "wider")
        for (command, _, _), toast in zip(WIDER, toasts, strict=True):
            beginning = " ".join(command.split(" ")[:2])
            self.assertEqual(f"已批准。今后 Claude 可直接在 project 中运行以 `{beginning}` 开头的任何命令", toast)
            self.assertIn(f"Bash({beginning} *)", self.left())
        passing = [bash(c) for command, more, _ in WIDER for c in (command, *more)]
        self.compare(passing, [bash(c) for _, _, others in WIDER for c in others])

    def test_a_file_a_host_a_search_and_a_tool(self):
        project = self.box.project
        names = ["file", "src/tool", "script.py", "Makefile"]

        def write(name, content):
            return call("Write", file_path=str(project / name), content=content)

        def read(name):
            return call("Read", file_path=str(project / name))

        def fetch(url):
            return call("WebFetch", url=url, prompt="what does it say")

        # A file must have been read before it is written; reading here asks nobody.
        for name in names[:3]:
            run = self.box.start_print(read(name), write(name, "new\n"))
            card = self.waiting_card(name)
            self.feishu.click(card, "always")
            self.assertEqual("DONE", run.result()["result"])
        self.assertEqual([f"Edit(/{project / name})" for name in names[:3]], self.left())
        wide = [fetch("https://docs.a.example/x"), call("mcp__desk__get_issue", x="1"), call("mcp__desk__list_things")]
        toasts = self.tap_each(wide, "wider")
        self.assertIn("docs.a.example 的任何网址", toasts[0])
        self.assertIn("该工具的任何参数均可", toasts[1])
        rules = ["WebFetch(domain:docs.a.example)", "mcp__desk__get_issue", "mcp__desk__list_things"]
        self.assertEqual(rules, self.left()[3:])
        passing = [read(name) for name in names]
        passing += [write(name, "newer\n") for name in names[:3]]
        passing += [fetch("https://docs.a.example/y?z"), call("mcp__desk__get_issue", x="2"), wide[2]]
        asking = [write("new", "x"), write("src/new", "x"), write("file2", "x")]
        asking += [call("Write", file_path=str(self.box.home / "new"), content="x"), call("mcp__desk__exec", x="1")]
        asking += [fetch(url) for url in ("https://a.example/", "https://b.docs.a.example/", "https://evil.example/")]
        self.compare(passing, asking)

    def test_an_always_for_one_setting_is_no_way_to_run_a_program(self):
        steps = [bash("git config user.name lin"), bash("git config core.fsmonitor ./probe"), bash("git status")]
        run = self.box.start_print(*steps)
        self.feishu.click(self.waiting_card("git config user.name lin"), "always")
        second = self.waiting_card("git config core.fsmonitor ./probe")
        self.feishu.click(second, "deny")
        self.assertEqual("DONE", run.result()["result"])
        self.assertEqual(["Bash(git config user.name lin)"], self.left())
        self.assertNotIn("fsmonitor", (self.box.project / ".git" / "config").read_text())

    def test_a_look_at_the_home_directory_does_not_open_the_keys_in_it(self):
        home = self.box.home
        steps = [
            call("Read", file_path=str(home)),
            call("Read", file_path=str(home / ".ssh" / "id_rsa")),
            call("Read", file_path=str(home / "notes")),
            call("Read", file_path=str(home / "notes")),
            call("Read", file_path=str(home / "other")),
        ]
        run = self.box.start_print(*steps)
        cards = []

        def fresh():
            return next((c for c in self.feishu.cards() if c.id not in cards and c.decides()), None)

        def next_card(about):
            card = wait_until(f"card asks about {about}", fresh, 30, self.seen)
            cards.append(card.id)
            return card

        first = next_card("the home directory")
        self.assertEqual({"allow", "deny", "deny_with", "interrupt"}, set(first.values()))
        self.feishu.click(first, "allow")
        second = next_card("the key")
        self.assertIn("id_rsa", second.text)
        self.assertNotIn("session", second.values())
        self.feishu.click(second, "deny")
        third = next_card("notes")
        self.feishu.click(third, "session")
        fourth = next_card("other")
        self.assertIn(str(home / "other"), fourth.text)
        self.feishu.click(fourth, "deny")
        self.assertEqual("DONE", run.result()["result"])
        self.assertEqual(4, len(cards))
        told = [text for text, _ in self.model.results()]
        self.assertNotIn("KEY", "".join(told))
        self.assertIn("notes", told[3])


if __name__ == "__main__":
    report.main()
