"""A client of socket protocol v1, written from its specification alone."""

import base64
import json
import secrets
import socket
import struct


def request(tool_name, tool_input, project, session="sess_123"):
    """A v1 request with a fresh id."""
    raw = {"session_id": session, "tool_name": tool_name, "tool_input": tool_input}
    return {
        "request_id": secrets.token_hex(16),
        "project_dir": str(project),
        "raw_input_encoded": base64.b64encode(json.dumps(raw).encode()).decode(),
    }


class V1Client:
    def __init__(self, path, limit=30.0):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(limit)
        self.socket.connect(str(path))

    def send(self, message, piece=None):
        """Sends the request at once, or in pieces of `piece` bytes, each a write of its own."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        if piece is None:
            self.socket.sendall(data)
            return
        for start in range(0, len(data), piece):
            self.socket.sendall(data[start : start + piece])

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def ack(self):
        """The ack as existing clients read it: one read is the whole ack and nothing else."""
        return json.loads(self.socket.recv(4096))

    def decision(self):
        (length,) = struct.unpack(">I", self._exactly(4))
        return json.loads(self._exactly(length))

    def one_byte_at_a_time(self):
        """Ack and decision, read byte by byte; a 0x00 ends the ack, which JSON never contains."""
        ack = b""
        while (byte := self._exactly(1)) != b"\0":
            ack += byte
        (length,) = struct.unpack(">I", byte + self._exactly(3))
        return json.loads(ack), json.loads(b"".join(self._exactly(1) for _ in range(length)))

    def at_end(self):
        """Whether the server has closed the connection and sent nothing more."""
        return self.socket.recv(1) == b""

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise AssertionError(f"connection closed after {len(data)} of {count} bytes")
            data += part
        return data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
