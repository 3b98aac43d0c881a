"""A hook that denies every call and writes down what was asked about."""

import json
import os
import sys

asked = json.load(sys.stdin)
with open(os.environ["ASKED"], "a", encoding="utf-8") as file:
    file.write(json.dumps([asked["tool_name"], asked["tool_input"]]) + "\n")
decision = {"behavior": "deny", "message": "asked"}
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}))
