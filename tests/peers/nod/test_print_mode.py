"""Decisions made in Feishu for the real CLI in print mode."""

from harness.simulator import GROUP, STRANGER
from scenario import ASKED, Scenario

from harness import report
from harness.model import bash


class Decided(Scenario):
    def test_allow_runs_the_command(self):
        run = self.box.start_print(bash(ASKED))
        card = self.waiting_card()
        self.assertFalse(self.happened())
        self.assert_toast("已批准运行", self.feishu.click(card, "allow"))
        self.assertEqual("DONE", run.result()["result"])
        self.assertTrue(self.happened())
        self.ended_card(card)
        self.assertEqual({}, self.box.local_settings())

    def test_always_is_asked_once_and_saved_as_offered(self):
        script = self.box.project / "build.sh"
        script.write_text("#!/bin/sh\necho built >>log\n")
        script.chmod(0o755)
        command = "./build.sh --fast"
        run = self.box.start_print(bash(command), bash(command))
        card = self.waiting_card(command)
        outcome = self.feishu.click(card, "always")
        self.assert_toast("已始终允许，后续相同操作将自动批准", outcome)
        self.assertEqual("DONE", run.result()["result"])
        self.assertEqual("built\nbuilt\n", (self.box.project / "log").read_text())
        self.assertEqual(1, len(self.feishu.cards()), self.seen())
        self.assertEqual(["Bash(./build.sh --fast)"], self.box.local_settings()["permissions"]["allow"])

    def test_always_without_an_offer_is_the_exact_command(self):
        run = self.box.start_print(bash(ASKED), bash(ASKED))
        self.feishu.click(self.waiting_card(), "always")
        self.assertEqual("DONE", run.result()["result"])
        self.assertEqual(1, len(self.feishu.cards()), self.seen())
        self.assertEqual([f"Bash({ASKED})"], self.box.local_settings()["permissions"]["allow"])

    def test_deny_lets_the_model_go_on(self):
        run = self.box.start_print(bash(ASKED))
        card = self.waiting_card()
        self.assert_toast("已拒绝运行", self.feishu.click(card, "deny"))
        self.assertEqual("DONE", run.result()["result"])
        self.assertFalse(self.happened())
        self.ended_card(card)

    def test_reason_reaches_the_model(self):
        reason = "先跑测试，再动 main 分支"
        run = self.box.start_print(bash(ASKED))
        card = self.waiting_card()
        self.feishu.click(card, "deny_with", form={card.input_name(): reason})
        self.assertEqual("DONE", run.result()["result"])
        ((told, is_error),) = self.model.results()
        self.assertIn(reason, told)
        self.assertTrue(is_error)

    def test_text_reply_to_the_card_is_a_denial_with_that_text(self):
        reason = "不行，用只读账号"
        run = self.box.start_print(bash(ASKED))
        card = self.waiting_card()
        self.feishu.say(reason, reply_to=card)
        self.assertEqual("DONE", run.result()["result"])
        self.assertIn(reason, self.model.results()[0][0])
        self.ended_card(card)

    def test_interrupt_ends_the_turn(self):
        run = self.box.start_print(bash(ASKED), bash("touch second"))
        card = self.waiting_card()
        self.assert_toast("已拒绝并中断", self.feishu.click(card, "interrupt"))
        result = run.result()
        self.assertEqual("aborted_tools", result["terminal_reason"])
        self.assertFalse(self.happened() or self.happened("second"))
        self.ended_card(card)

    def test_second_click_is_refused(self):
        run = self.box.start_print(bash(ASKED))
        card = self.waiting_card()
        self.feishu.click(card, "deny")
        self.assert_toast("该请求已被处理，请勿重复操作", self.feishu.click_stale(card, "allow"))
        run.result()
        self.assertFalse(self.happened())


class InAGroup(Scenario):
    settings = {"FEISHU_CHAT_ID": GROUP}

    def test_stranger_decides_nothing(self):
        run = self.box.start_print(bash(ASKED))
        card = self.waiting_card()
        self.assertEqual("error", self.feishu.click(card, "allow", operator=STRANGER).toast["type"])
        self.assertFalse(self.happened())
        self.feishu.click(card, "deny")
        run.result()
        self.assertFalse(self.happened())


class TimedOut(Scenario):
    settings = {"PERMISSION_REQUEST_TIMEOUT": "3"}

    def test_nobody_answers(self):
        result = self.box.print(bash(ASKED))
        self.assertEqual("DONE", result["result"])
        self.assertFalse(self.happened())
        (told, is_error), *_ = self.model.results()
        self.assertTrue(is_error, told)
        (card,) = self.feishu.cards()
        self.ended_card(card)


if __name__ == "__main__":
    report.main()
