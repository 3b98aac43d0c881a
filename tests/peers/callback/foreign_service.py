"""A callback service and a gateway that know the seeds' JSON and nothing of nod."""

import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DECISIONS = {
    "allow": ("allow", "已批准运行"),
    "always": ("allow", "已始终允许，后续相同操作将自动批准"),
    "deny": ("deny", "已拒绝运行"),
    "interrupt": ("deny", "已拒绝并中断"),
}


class Service:
    """Listens on loopback; `pending` are the requests it waits for, `calls` every body it was sent."""

    def __init__(self):
        self.pending = set()
        self.calls = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers["Content-Length"])
                status, answer = service._answer(self.path, json.loads(self.rfile.read(length)))
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _answer(self, path, call):
        if path != "/callback/decision":
            return 404, {}
        self.calls.append(call)
        if call["request_id"] not in self.pending:
            return 200, {"success": False, "decision": None, "message": "请求不存在或已过期"}
        self.pending.remove(call["request_id"])
        decision, message = DECISIONS[call["action"]]
        return 200, {"success": True, "decision": decision, "message": message}

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def forward(callback_url, action, request_id, project_dir=""):
    """What a gateway of the seeds posts; `(status, answer)`."""
    body = json.dumps({"action": action, "request_id": request_id, "project_dir": project_dir}).encode()
    request = urllib.request.Request(
        f"{callback_url}/callback/decision", body, {"Content-Type": "application/json"}, method="POST"
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
