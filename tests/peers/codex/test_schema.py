"""The shapes nod relies on, compared with those that the installed Codex says it speaks."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import report
from harness.codex import program

# What nod reads or writes of each message.
FIELDS = {
    "CommandExecutionRequestApprovalParams": {"threadId", "turnId", "itemId", "startedAtMs", "command", "cwd", "reason",
                                              "proposedExecpolicyAmendment", "kind", "environmentId"},
    "FileChangeRequestApprovalParams": {"threadId", "turnId", "itemId", "reason", "grantRoot"},
    "PermissionsRequestApprovalParams": {"threadId", "turnId", "itemId", "cwd", "permissions", "reason"},
    "PermissionsRequestApprovalResponse": {"permissions", "scope"},
    "ToolRequestUserInputParams": {"threadId", "turnId", "itemId", "questions"},
    "ToolRequestUserInputResponse": {"answers"},
    "McpServerElicitationRequestParams": {"threadId", "turnId", "serverName"},
    "McpServerElicitationRequestResponse": {"action", "content"},
    "v2/ThreadStatusChangedNotification": {"threadId", "status"},
    "v2/ServerRequestResolvedNotification": {"threadId", "requestId"},
    "v2/ThreadResumeParams": {"threadId", "excludeTurns", "cwd", "approvalPolicy", "approvalsReviewer", "sandbox"},
    "v2/ThreadLoadedListResponse": {"data"},
    "v2/ConfigReadResponse": {"config"},
    "v2/ThreadReadResponse": {"thread"},
    "v2/ThreadTurnsListParams": {"threadId", "limit"},
    "v2/ThreadItemsListParams": {"threadId", "turnId", "limit", "sortDirection"},
    "v2/ThreadItemsListResponse": {"data"},
    "v2/TurnStartParams": {"threadId", "input"},
    "v2/TurnSteerParams": {"threadId", "expectedTurnId", "input"},
    "v2/ThreadStartParams": {"cwd", "approvalPolicy", "approvalsReviewer", "sandbox"},
    "v2/ThreadStartResponse": {"thread", "model", "reasoningEffort"},
    "v2/ThreadSettingsUpdateParams": {"threadId", "approvalPolicy", "approvalsReviewer", "sandboxPolicy", "collaborationMode"},
    "v2/TurnInterruptParams": {"threadId", "turnId"},
    "v2/TurnCompletedNotification": {"threadId", "turn"},
    "v2/TurnPlanUpdatedNotification": {"threadId", "plan"},
    "v2/ErrorNotification": {"threadId", "error", "willRetry"},
}
METHODS = {
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
    "item/permissions/requestApproval",
    "item/tool/requestUserInput",
    "mcpServer/elicitation/request",
}
# Requests that are for a program and not for a person.
NOT_FOR_A_PERSON = {
    "item/tool/call",
    "account/chatgptAuthTokens/refresh",
    "attestation/generate",
    "applyPatchApproval",
    "execCommandApproval",
}


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        home = cls.directory.name
        generate = [program(), "app-server", "generate-json-schema", "--out"]
        for out, flags in (("all", ["--experimental"]), ("stable", [])):
            subprocess.run([*generate, f"{home}/{out}", *flags], check=True, env={"HOME": home}, timeout=60)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def read(self, name, out="stable"):
        return json.loads((Path(self.directory.name) / out / f"{name}.json").read_text())

    def test_every_field_nod_uses_is_there(self):
        for name, fields in FIELDS.items():
            with self.subTest(name):
                self.assertLessEqual(fields, self.read(name, "all")["properties"].keys())

    def test_who_is_asked_stands_in_its_settings(self):
        definitions = self.read("v2/ConfigReadResponse")["definitions"]
        self.assertLessEqual({"approvals_reviewer", "approval_policy"}, definitions["Config"]["properties"].keys())
        self.assertIn("user", definitions["ApprovalsReviewer"]["enum"])

    def test_a_thread_says_where_it_is_and_what_it_does(self):
        definitions = self.read("v2/ThreadReadResponse")["definitions"]
        fields = {"id", "cwd", "status", "ephemeral", "threadSource", "turns"}
        self.assertLessEqual(fields, definitions["Thread"]["properties"].keys())
        self.assertLessEqual({"status", "items", "error", "durationMs"}, definitions["Turn"]["properties"].keys())

    def test_a_plan_is_an_item_with_its_text(self):
        items = self.read("v2/ThreadItemsListResponse")["definitions"]["ThreadItem"]["oneOf"]
        kinds = {item["properties"]["type"]["enum"][0]: item["properties"].keys() for item in items}
        self.assertIn("text", kinds["plan"])

    def test_the_decisions_are_codexs(self):
        text = json.dumps(self.read("CommandExecutionRequestApprovalResponse"))
        for word in ("accept", "acceptForSession", "acceptWithExecpolicyAmendment", "decline", "cancel"):
            self.assertIn(f'"{word}"', text)

    def test_codex_asks_nothing_that_nod_has_not_heard_of(self):
        requests = self.read("ServerRequest")["oneOf"]
        methods = {request["properties"]["method"]["enum"][0] for request in requests}
        self.assertEqual(METHODS | NOT_FOR_A_PERSON, methods)


if __name__ == "__main__":
    report.main()
