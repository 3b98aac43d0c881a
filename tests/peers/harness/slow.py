"""Tools that take their time: an MCP server over stdio, and a web server with a certificate of its own."""

import json
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# WebFetch turns every address into an https one and wants a name or number with a dot.
HOST = "127.0.0.1"


class SlowSite:
    """Answers every GET after `seconds`; says which paths were fetched."""

    def __init__(self, directory, seconds):
        self.certificate = Path(directory) / "site.pem"
        key = Path(directory) / "site.key"
        request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        subject = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=IP:{HOST}"]
        files = ["-keyout", str(key), "-out", str(self.certificate)]
        subprocess.run([*request, *subject, *files], check=True, capture_output=True)
        self.fetched = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                site.fetched.append(self.path)
                time.sleep(seconds)
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", "text/plain")
                    self.end_headers()
                    self.wfile.write(b"slow words")
                except OSError:
                    pass  # Whoever asked was stopped.

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self):
        return f"https://{HOST}:{self._server.server_address[1]}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def add_mcp_server(box):
    """Gives the box an MCP server: `mcp__slow__touch` waits and then makes a file, `mcp__slow__ask` asks a person."""
    file = box.home / ".claude.json"
    settings = json.loads(file.read_text())
    settings["mcpServers"] = {"slow": {"type": "stdio", "command": sys.executable, "args": [str(Path(__file__))]}}
    file.write_text(json.dumps(settings))


def add_mcp_server_to_codex(box):
    """As `add_mcp_server`, for Codex."""
    file = box.home / "config.toml"
    entry = f'[mcp_servers.slow]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(Path(__file__)))}]\n'
    file.write_text(file.read_text() + entry)


def allow_fetching(box, site):
    """Lets the box fetch from `site` without asking the vendor whether the domain is safe."""
    file = box.home / ".claude" / "settings.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "skipWebFetchPreflight": True}))
    box.environment["NODE_EXTRA_CA_CERTS"] = str(site.certificate)


def _serve_mcp():
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "seconds": {"type": "number"}}}
    touch = {"name": "touch", "description": "Makes a file, slowly", "inputSchema": schema}
    ask = {"name": "ask", "description": "Asks the person", "inputSchema": {"type": "object", "properties": {}}}
    for line in sys.stdin:
        message = json.loads(line)
        method, answer = message.get("method"), {}
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "slow", "version": "1"}
            answer = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        elif method == "tools/list":
            answer = {"tools": [touch, ask]}
        elif method == "tools/call" and message["params"]["name"] == "ask":
            wanted = {"type": "object", "properties": {"colour": {"type": "string"}}}
            asks = {"message": "Which colour?", "requestedSchema": wanted}
            print(json.dumps({"jsonrpc": "2.0", "id": "e", "method": "elicitation/create", "params": asks}), flush=True)
            answer = {"content": [{"type": "text", "text": sys.stdin.readline()}]}
        elif method == "tools/call":
            given = message["params"]["arguments"]
            Path(given["path"]).with_suffix(".began").touch()
            time.sleep(given["seconds"])
            Path(given["path"]).touch()
            answer = {"content": [{"type": "text", "text": "made"}]}
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)


if __name__ == "__main__":
    _serve_mcp()
