"""A client of socket protocol v1 in Python, as old hook scripts are.

usage: v1.py SOCKET PROJECT_DIR <permission-request.json
"""

import base64
import json
import socket
import sys

path, project = sys.argv[1:]
request = {
    "request_id": "v1-python",
    "project_dir": project,
    "raw_input_encoded": base64.b64encode(sys.stdin.buffer.read()).decode(),
}
with socket.socket(socket.AF_UNIX) as line:
    line.connect(path)
    line.sendall(json.dumps(request).encode())
    json.loads(line.recv(4096))
    length = int.from_bytes(line.recv(4, socket.MSG_WAITALL), "big")
    print(json.loads(line.recv(length, socket.MSG_WAITALL))["decision"])
