"""A supervisor that says what a test tells it to: for what a real one says seldom, or must never say.

    s = Stage(self, {"plan.get": {"planId": ..., ...}, "plan.pause": lambda request: Refusal("CONFLICT", "it is, already")})
    s.events = [...]                         # what events.read gives, in order; with bus=True it says when there are more
    s.cli("status", PLAN)

`asked` is every request, in order. What has no answer is refused.
"""
import json
import os
import pty
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import uuid

from harness import BIN, of_a_verb, sp


class Refusal(Exception):
    def __init__(self, code, message, **more):
        super().__init__(message)
        self.error = {"code": code, "message": message, **more}


def unpack(data):
    """The value of msgpack bytes: what clients send."""
    return _unpack(data, 0)[0]


def _unpack(b, at):
    kind = b[at]
    at += 1
    if kind < 0x80:
        return kind, at
    if kind < 0x90:
        return _map(b, at, kind & 15)
    if kind < 0xa0:
        return _list(b, at, kind & 15)
    if kind < 0xc0:
        return b[at:at + (kind & 31)].decode(), at + (kind & 31)
    if kind in (0xc0, 0xc2, 0xc3):
        return {0xc0: None, 0xc2: False, 0xc3: True}[kind], at
    if kind >= 0xe0:
        return kind - 256, at
    numbers = {0xca: "f", 0xcb: "d", 0xcc: "B", 0xcd: "H", 0xce: "I", 0xcf: "Q", 0xd0: "b", 0xd1: "h", 0xd2: "i", 0xd3: "q"}
    if kind in numbers:
        size = struct.calcsize(">" + numbers[kind])
        return struct.unpack(">" + numbers[kind], b[at:at + size])[0], at + size
    sizes = {0xd9: "B", 0xda: "H", 0xdb: "I", 0xdc: "H", 0xdd: "I", 0xde: "H", 0xdf: "I"}
    size = struct.calcsize(">" + sizes[kind])
    n = struct.unpack(">" + sizes[kind], b[at:at + size])[0]
    at += size
    if kind <= 0xdb:
        return b[at:at + n].decode(), at + n
    return _list(b, at, n) if kind <= 0xdd else _map(b, at, n)


def _list(b, at, n):
    values = []
    for _ in range(n):
        value, at = _unpack(b, at)
        values.append(value)
    return values, at


def _map(b, at, n):
    values = {}
    for _ in range(n):
        key, at = _unpack(b, at)
        values[key], at = _unpack(b, at)
    return values, at


def pack_beat(n):
    """The body of a heartbeat: {"lastSeq": n, "tsMs": 0, "type": "heartbeat"}."""
    text = lambda t: bytes([0xa0 | len(t)]) + t.encode()  # noqa: E731
    return b"\x83" + text("lastSeq") + b"\xcf" + struct.pack(">Q", n) + text("tsMs") + b"\0" + text("type") + text("heartbeat")


class Stage:
    def __init__(self, test, answers, bus=False):
        self.answers = answers
        self.events = []
        self.asked = []
        self.broken = None
        self.work = tempfile.mkdtemp(prefix="baton-stage-")
        test.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.state = os.path.join(self.work, "state")
        os.mkdir(self.state, 0o700)
        self.rep = sp.RepListener(timeout=0.05)
        self.write("token", "0" * 64 + "\n")
        self.nobody = socket.socket()  # bound and deaf: nobody publishes, so whoever watches reads
        self.nobody.bind(("127.0.0.1", 0))
        if bus:
            self.nobody.listen()
            self.nobody.settimeout(0.02)
        self.write("endpoints.json", json.dumps({"control": self.rep.url, "events": "tcp://127.0.0.1:%d" % self.nobody.getsockname()[1],
                                                 "version": "0", "instance": str(uuid.uuid4()).upper(), "pid": os.getpid()}))
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.serve)] + ([threading.Thread(target=self.beat)] if bus else [])
        for t in self.threads:
            t.start()
        test.addCleanup(self.close)

    def write(self, name, text):
        path = os.path.join(self.state, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o600)

    def beat(self):
        """Says all the time how many events there are; the events themselves are read."""
        pipes = []
        while not self.stopping.is_set():
            try:
                pipes.append(sp.Pipe(self.nobody.accept()[0], sp.PUB, sp.SUB))
            except (OSError, EOFError):
                pass
            for pipe in list(pipes):
                try:
                    pipe.send(b"system/heartbeat\0" + pack_beat(len(self.events)))
                except OSError:
                    pipe.close()
                    pipes.remove(pipe)
        for pipe in pipes:
            pipe.close()

    def serve(self):
        while not self.stopping.is_set():
            try:
                body, reply = self.rep.next()
            except TimeoutError:
                continue
            request = json.loads(body) if body[:1] == b"{" else unpack(body)
            self.asked.append(request)
            try:
                reply(json.dumps(self.answer(request)).encode())
            except OSError:
                pass
            except Exception as e:  # told by close()
                self.broken = e
                raise

    def answer(self, request):
        head = {"v": 1, "id": request.get("id", "")}
        type_ = request["type"]
        try:
            found = self.answers.get(type_)
            if callable(found):
                found = found(request)
            if isinstance(found, Refusal):
                raise found
            if found is None and type_ == "events.read":
                found = self.read(request)
            if found is None and type_ == "supervisor.info":
                found = {"version": "0", "protocol": [1], "pid": os.getpid(), "durability": "power", "lastSeq": len(self.events)}
            if found is None:
                raise Refusal("NOT_FOUND", "the stage has no answer to " + type_)
        except Refusal as refusal:
            return {**head, "type": "error", "ok": False, "error": refusal.error}
        return {**head, "type": type_ + ".ok", "ok": True, **found}

    def read(self, request):
        found = [{"seq": i + 1, "planSeq": i + 1, "eventId": str(uuid.uuid4()), "timestamp": "2026-11-21T07:00:%02d.000Z" % i,
                  "tsMs": i, "planId": request.get("planId", ""), **e} for i, e in enumerate(self.events)]
        found = [e for e in found if e["seq"] >= request["fromSeq"]]
        return {"events": found, "nextSeq": len(self.events) + 1, "lastSeq": len(self.events)}

    def of(self, type_):
        """The fields of every request of that type, without those that every request has, and who decides."""
        return [{k: v for k, v in r.items() if k not in ("v", "id", "token", "type", "by")} for r in self.asked if r["type"] == type_]

    def cli(self, *args, code=0, stdin=None, env=None):
        """-> (stdout, stderr); fails when the exit code is another one."""
        done = subprocess.run([BIN / "baton", *map(str, args), "--state", self.state], capture_output=True, text=True, timeout=60,
                              input=stdin, env=of_a_verb(env))
        if done.returncode != code:
            raise AssertionError("baton %s: exit %d, expected %d\n%s\n%s" % (" ".join(map(str, args)), done.returncode, code,
                                                                            done.stdout, done.stderr))
        return done.stdout, done.stderr

    def terminal(self, *args, code=0, env=None):
        """The same on a terminal: everything that it shows."""
        master, slave = pty.openpty()
        p = subprocess.Popen([BIN / "baton", *map(str, args), "--state", self.state], stdin=slave, stdout=slave, stderr=slave,
                             env={**os.environ, "TERM": "xterm", **(env or {})})
        os.close(slave)
        out = b""
        try:
            while part := os.read(master, 65536):
                out += part
        except OSError:
            pass  # it has ended
        os.close(master)
        if p.wait(20) != code:
            raise AssertionError("exit %d, expected %d\n%s" % (p.returncode, code, out.decode(errors="replace")))
        return out.decode(errors="replace").replace("\r\n", "\n")

    def file(self, name, value):
        path = os.path.join(self.work, name)
        with open(path, "w") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))
        return path

    def close(self):
        self.stopping.set()
        for t in self.threads:
            t.join(10)
        self.rep.close()
        self.nobody.close()
        if self.broken is not None:
            raise self.broken
