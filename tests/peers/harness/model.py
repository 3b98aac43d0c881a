"""A scripted model on loopback that speaks enough of the Messages API for Claude Code.

It keeps no state of its own: the prompt carries the script, and the number of
assistant turns since that prompt says which step is next. What it was asked is
recorded, so that a test can see what the model was told.
"""

import json
import re
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCRIPT = re.compile(r"<steps>(.*?)</steps>", re.DOTALL)


# What quotes a prompt says this.
QUOTES = "Follow these:"


def prompt(*steps):
    """A prompt that makes the model do `steps`, then say DONE."""
    # No bracket stands in the JSON, so that a step's own prompt can carry a script in turn.
    script = json.dumps(steps, separators=(",", ":")).replace("<", "\\u003c")
    return f"{QUOTES} <steps>{script}</steps>"


def call(tool, **tool_input):
    """A step: one tool call."""
    return {"tool": tool, "input": tool_input}


def say(text):
    """A step: text only, which ends the turn."""
    return {"text": text}


def bash(command, description="a test"):
    return call("Bash", command=command, description=description)


def _blocks(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _result_text(block):
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def tool_results(messages):
    """The tool results in a conversation, oldest first, as `(text, is_error)`."""
    return [
        (_result_text(block), bool(block.get("is_error")))
        for message in messages
        if message["role"] == "user"
        for block in _blocks(message)
        if block.get("type") == "tool_result"
    ]


def next_step(messages, unscripted=()):
    """What the script in the conversation's newest scripted prompt says to do now; `unscripted` is that of any other."""
    steps, done = list(unscripted), 0
    for message in messages:
        texts = [block["text"] for block in _blocks(message) if block.get("type") == "text"]
        found = [match for text in texts for match in SCRIPT.findall(text)]
        if message["role"] == "assistant":
            done += 1
        elif found:
            steps, done = json.loads(found[-1]), 0
    return steps[done] if done < len(steps) else say("DONE")


class ScriptedModel:
    """The server; `with` starts and stops it."""

    def __init__(self, *unscripted):
        self.unscripted = unscripted
        self.requests = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def results(self):
        """Every tool result the newest request carried."""
        return tool_results(self.requests[-1]["messages"]) if self.requests else []

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

        def do_HEAD(self):
            self._json({})

        def do_GET(self):
            self._json({"data": [], "has_more": False} if self.path.startswith("/v1/models") else {})

        def do_POST(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            path = self.path.partition("?")[0]
            if path == "/v1/messages/count_tokens":
                self._json({"input_tokens": 10})
            elif path == "/v1/messages":
                self._answer(json.loads(body))
            else:
                self._json({})

        def _answer(self, request):
            # Requests without tools are the CLI's side errands (titles and the like).
            if request.get("tools"):
                model.requests.append(request)
                step = next_step(request["messages"], model.unscripted)
            else:
                step = say("ok")
            blocks, stop = _content(step)
            message = {
                "id": f"msg_{uuid.uuid4().hex[:24]}",
                "type": "message",
                "role": "assistant",
                "model": request.get("model", "scripted"),
                "content": blocks,
                "stop_reason": stop,
                "stop_sequence": None,
                "usage": {"input_tokens": 10, "output_tokens": 10},
            }
            if request.get("stream"):
                self._stream(message)
            else:
                self._json(message)

        def _json(self, value):
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _stream(self, message):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for event in _events(message):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.close_connection = True

    return Handler


def _content(step):
    if "text" in step:
        return [{"type": "text", "text": step["text"]}], "end_turn"
    calls = step.get("together", [step])
    blocks = [
        {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:24]}", "name": one["tool"], "input": one["input"]}
        for one in calls
    ]
    return blocks, "tool_use"


def _events(message):
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": {"output_tokens": 10},
    }
    yield {"type": "message_stop"}
