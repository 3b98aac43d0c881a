"""A scripted model on loopback that speaks enough of the Responses API for Codex.

As `model.py`: the prompt carries the script, and how often the model has spoken
since says which step is next.
"""

import contextlib
import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .model import SCRIPT, say


def shell(command, justification="a test"):
    """A step: a command that leaves the sandbox, so that Codex must ask."""
    arguments = {"cmd": command, "sandbox_permissions": "require_escalated", "justification": justification}
    return {"function": "exec_command", "arguments": arguments}


def patch(text):
    """A step: a change of files, in Codex's own patch format."""
    return {"custom": "apply_patch", "input": text}


def function(name, **arguments):
    """A step: any function the model was offered."""
    return {"function": name, "arguments": arguments}


def next_step(items):
    """What the newest scripted message says to do now."""
    steps, done = [], 0
    for item in items:
        kind, role = item.get("type"), item.get("role")
        if kind == "message" and role == "user":
            text = "".join(part.get("text", "") for part in item["content"])
            if found := SCRIPT.findall(text):
                steps, done = json.loads(found[-1]), 0
        elif kind in ("function_call", "custom_tool_call") or (kind == "message" and role == "assistant"):
            done += 1
    return steps[done] if done < len(steps) else say("DONE")


class ResponsesModel:
    """The server; `with` starts and stops it."""

    def __init__(self):
        self.requests = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def told(self):
        """Everything the model was ever told, as text: Codex asks for a title at any time."""
        return json.dumps([request["input"] for request in self.requests], ensure_ascii=False)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def _handler(model):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self._json({"models": []})

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if not self.path.startswith("/v1/responses"):
                return self._json({})
            request = json.loads(body)
            model.requests.append(request)
            return self._stream(_item(next_step(request["input"])))

        def _json(self, value):
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, item):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            # Codex that was stopped reads no more.
            with contextlib.suppress(BrokenPipeError):
                for event in _events(item):
                    self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.close_connection = True

    return Handler


def _item(step):
    fresh = uuid.uuid4().hex[:24]
    if "text" in step:
        content = [{"type": "output_text", "text": step["text"], "annotations": []}]
        return {"type": "message", "role": "assistant", "id": f"msg_{fresh}", "content": content}
    call = {"id": f"fc_{fresh}", "call_id": f"call_{fresh}"}
    if "custom" in step:
        return {"type": "custom_tool_call", "name": step["custom"], "input": step["input"], **call}
    named = {key: step[key] for key in ("namespace",) if key in step}
    return {"type": "function_call", "name": step["function"], "arguments": json.dumps(step["arguments"]), **named, **call}


def _events(item):
    answer = f"resp_{uuid.uuid4().hex[:24]}"
    usage = {
        "input_tokens": 10,
        "input_tokens_details": None,
        "output_tokens": 10,
        "output_tokens_details": None,
        "total_tokens": 20,
    }
    yield {"type": "response.created", "response": {"id": answer}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": answer, "usage": usage}}
