"""A stand-alone Baton agent in plain Python, written from protocol/WIRE.md: no library, JSON bodies, one lane.

usage: agent.py STATE_DIR [--dial-in]      registers as "shout", serves until its standard input closes
"""
import json
import os
import selectors
import socket
import struct
import sys
import time
import uuid

PROTOCOL = {"req": 0x30, "rep": 0x31}


def read(sock, n):
    data = b""
    while len(data) < n:
        part = sock.recv(n - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def handshake(sock, kind):
    sock.settimeout(10)
    sock.sendall(b"\0SP\0" + struct.pack(">HH", PROTOCOL[kind], 0))
    read(sock, 8)
    return sock


def receive(sock):
    return read(sock, struct.unpack(">Q", read(sock, 8))[0])


def send(sock, body):
    sock.sendall(struct.pack(">Q", len(body)) + body)


def dial(url, kind):
    host, port = url[len("tcp://"):].rsplit(":", 1)
    return handshake(socket.create_connection((host, int(port)), 10), kind)


class Supervisor:
    """One outstanding request at a time."""

    def __init__(self, state):
        with open(os.path.join(state, "endpoints.json")) as f:
            self.sock = dial(json.load(f)["control"], "req")
        with open(os.path.join(state, "token")) as f:
            self.token = f.read().strip()

    def ask(self, type_, **fields):
        ident = struct.pack(">I", 0x80000000 | int.from_bytes(os.urandom(3), "big"))
        send(self.sock, ident + json.dumps({"v": 1, "type": type_, "id": "a", "token": self.token, **fields}).encode())
        answer = json.loads(receive(self.sock)[4:])
        if not answer["ok"]:
            raise SystemExit("%s: %s" % (type_, answer["error"]["message"]))
        return answer


def execute(request):
    text = request.get("parameters", {}).get("text", request.get("task", ""))
    return {"key": request["key"], "attempt": request["attempt"], "epoch": request["epoch"], "outcome": "completed",
            "result": {"text": text.upper(), "data": {"length": len(text), "context": request["context"]["text"],
                                "dependencies": [d["stepId"] for d in request["context"].get("dependencies", [])]}}}


def answer(request, session_key):
    types = {"step.execute": "step.result", "step.query": "step.state", "step.cancel": "step.state"}
    head = {"v": 1, "type": types.get(request["type"], "ok"), "id": request.get("id", ""), "ok": True}
    if request.get("sessionKey") != session_key:
        return {**head, "type": "error", "ok": False, "error": {"code": "UNAUTHORIZED", "message": "wrong session key"}}
    if request["type"] == "step.execute":
        return {**head, **execute(request)}
    if request["type"] in ("step.query", "step.cancel"):
        return {**head, "key": request["key"], "state": "unknown"}
    return head  # lane.hello, agent.ping


def main():
    state, dial_in = sys.argv[1], "--dial-in" in sys.argv
    supervisor = Supervisor(state)
    me = {"instanceId": str(uuid.uuid4()).upper(), "sessionKey": os.urandom(16).hex()}
    server = socket.create_server(("127.0.0.1", 0))
    where = {"dialIn": True} if dial_in else {"endpoint": "tcp://127.0.0.1:%d" % server.getsockname()[1]}
    card = {"agentId": "shout", "name": "Shout", "version": "1.0.0", "description": "Says a text in capitals.",
            "skills": [{"id": "shout", "description": "Turns a text into capitals.", "tags": ["upper", "capitals"]}]}
    ok = supervisor.ask("agent.register", card=card, capacity=1, pid=os.getpid(), protocol=[1], **me, **where)
    print("registered", ok["epoch"], flush=True)
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ, "stdin")
    selector.register(server, selectors.EVENT_READ, "server")
    for url in ok.get("lanes", []):
        selector.register(dial(url, "rep"), selectors.EVENT_READ, "lane")
    beat = 0.0
    while True:
        for key, _ in selector.select(0.2):
            if key.data == "stdin":
                supervisor.ask("agent.deregister", instanceId=me["instanceId"], epoch=ok["epoch"])
                return
            if key.data == "server":
                selector.register(handshake(server.accept()[0], "rep"), selectors.EVENT_READ, "lane")
                continue
            try:
                message = receive(key.fileobj)
            except (EOFError, OSError):
                selector.unregister(key.fileobj)
                continue
            end = 4
            while not message[end - 4] & 0x80:
                end += 4
            request = json.loads(message[end:])  # registered in JSON, so spoken to in JSON
            send(key.fileobj, message[:end] + json.dumps(answer(request, me["sessionKey"])).encode())
        if time.monotonic() - beat > ok["heartbeatMs"] / 1000:
            beat = time.monotonic()
            supervisor.ask("agent.heartbeat", instanceId=me["instanceId"], epoch=ok["epoch"])


if __name__ == "__main__":
    main()
