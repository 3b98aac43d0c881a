"""The least MCP server over stdio: its tools say what they were called with."""

import json
import sys

TOOLS = ["get_issue", "list_things", "exec"]

for line in sys.stdin:
    call = json.loads(line)
    method, params = call.get("method"), call.get("params", {})
    if method == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "desk", "version": "1"},
        }
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"x": {"type": "string"}}}
        result = {"tools": [{"name": name, "description": name, "inputSchema": schema} for name in TOOLS]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": f"called with {json.dumps(params)}"}]}
    else:
        result = {}
    if "id" in call:
        print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
