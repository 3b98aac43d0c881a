"""A Feishu made of other people's codecs: the `websockets` library and the official SDK's protobuf module.

usage: foreign_server.py    under the Python that has the SDK
First line on stdout: the base URL. Then one JSON line for each frame a client
sent. Each ping is answered; the first is followed by one click on a card that
never was.
"""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import websockets
from lark_oapi.ws.pb.pbbp2_pb2 import Frame

SERVICE = 33554678
OPTIONAL = ("payload_encoding", "payload_type", "LogIDNew")

CLICK = {
    "schema": "2.0",
    "header": {
        "event_id": "f7984f25108f8137722bb63cee927e66",
        "token": "",
        "create_time": "1718000000000000",
        "event_type": "card.action.trigger",
        "tenant_key": "t1",
        "app_id": "cli_a1b2c3d4e5f60718",
    },
    "event": {
        "operator": {"tenant_key": "t1", "open_id": "ou_1"},
        "token": "c-1",
        "action": {"value": {"action": "allow", "request_id": "0" * 32}, "tag": "button"},
        "host": "im_message",
        "context": {"open_message_id": "om_1", "open_chat_id": "oc_1"},
    },
}


def frame(method, headers, payload=None, **fields):
    made = Frame()
    made.SeqID = fields.get("seq", 0)
    made.LogID = fields.get("log", 0)
    made.service = SERVICE
    made.method = method
    for key, value in headers:
        header = made.headers.add()
        header.key, header.value = key, value
    if payload is not None:
        made.payload = json.dumps(payload).encode()
    if "log_new" in fields:
        made.LogIDNew = fields["log_new"]
    return made


PUSH = frame(
    1,
    [
        ("timestamp", "1718000000123"),
        ("type", "event"),
        ("message_id", "5c1c9d1e-0001"),
        ("sum", "1"),
        ("seq", "0"),
        ("trace_id", "tr-1"),
        ("instance_id", "inst-AbC"),
    ],
    CLICK,
    seq=7,
    log=2**63 + 42,
    log_new="2026021713370042",
)


def described(read, raw):
    return {
        "SeqID": read.SeqID,
        "LogID": read.LogID,
        "service": read.service,
        "method": read.method,
        "headers": [[header.key, header.value] for header in read.headers],
        "payload": read.payload.decode() if read.HasField("payload") else None,
        "missing": read.FindInitializationErrors(),
        # protobuf writes fields in their order: equal bytes mean that nothing unknown was in there.
        "same_bytes": read.SerializePartialToString() == raw,
        **{name: getattr(read, name) for name in OPTIONAL if read.HasField(name)},
    }


def tell(what):
    print(json.dumps(what), flush=True)


async def serve(connection):
    pushed = False
    async for raw in connection:
        read = Frame()
        # The SDK's own parser refuses a frame without its required fields.
        read.ParseFromString(raw)
        tell(described(read, raw))
        if read.method == 0:
            await connection.send(frame(0, [("type", "pong")]).SerializeToString())
            if not pushed:
                pushed = True
                await connection.send(PUSH.SerializeToString())


def rest(socket_port):
    config = {"ReconnectCount": -1, "ReconnectInterval": 120, "ReconnectNonce": 30, "PingInterval": 120}
    url = f"ws://127.0.0.1:{socket_port}/ws/v2?device_id=7&service_id={SERVICE}&ticket=t"
    answers = {
        "/callback/ws/endpoint": {"data": {"URL": url, "ClientConfig": config}},
        "/open-apis/auth/v3/tenant_access_token/internal": {"tenant_access_token": "t-foreign", "expire": 7200},
        "/open-apis/event/v1/connection": {"data": {"online_instance_cnt": 1}},
    }

    class Rest(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.do_GET()

        def do_GET(self):
            answer = answers.get(self.path.partition("?")[0], {"data": {"message_id": "om_foreign"}})
            body = json.dumps({"code": 0, "msg": "ok", **answer}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PATCH = do_PUT = do_POST

    return ThreadingHTTPServer(("127.0.0.1", 0), Rest)


async def main():
    async with websockets.serve(serve, "127.0.0.1", 0) as sockets:
        server = rest(sockets.sockets[0].getsockname()[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        await asyncio.Future()


asyncio.run(main())
