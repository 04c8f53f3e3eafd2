"""A server of NATS (Debian's nats-server) beside a daemon, baton-bridge-nats, and the few words of NATS that the tests say to the server themselves."""
import base64
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import unittest

from harness import BIN, until

SERVER = shutil.which("nats-server") or "/usr/sbin/nats-server"
CALC = """
agents:
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
    capacity: 4
"""
STEP = {"agentId": "calc", "skill": "evaluate", "task": "Add one and two", "parameters": {"expression": "1+2"}}


def need():
    """Skips all tests of a module where the bridge was not built, or there is no server."""
    if not (BIN / "baton-bridge-nats").exists():
        raise unittest.SkipTest("SKIPPED: there is no baton-bridge-nats: libnats was not there when it was built")
    if not os.path.exists(SERVER):
        raise unittest.SkipTest("SKIPPED: there is no nats-server (Debian: nats-server)")


def free_port():
    """Free now, and none that an outgoing connection gets: those keep a port from whoever is to listen there, for 60 s after their
    end, and a test makes thousands."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        lowest = int(f.read().split()[0])
    while True:
        port = random.randrange(min(10240, lowest // 2), lowest - 64)  # others may be taken beside it
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


class Server:
    """config: more lines of its configuration, as authorization or tls."""

    def __init__(self, test, work, config="jetstream {}", start=True):
        self.work, self.port, self.process = work, free_port(), None
        self.url = "nats://127.0.0.1:%d" % self.port
        self.say(config)
        test.addCleanup(self.kill9)
        if start:
            self.start()

    def say(self, config):
        text = config.replace("jetstream {", 'jetstream { store_dir: "%s"; ' % (self.work / "nats"))
        (self.work / "nats.conf").write_text('listen: "127.0.0.1:%d"\n%s\n' % (self.port, text))

    def start(self):
        with open(self.work / "nats.log", "ab") as log:
            self.process = subprocess.Popen([SERVER, "-c", self.work / "nats.conf"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self._listens, 20, "nats-server listens")
        return self

    def _listens(self):
        if self.process.poll() is not None:
            raise AssertionError("nats-server ended: " + (self.work / "nats.log").read_text()[-2000:])
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def kill9(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.process = None

    def client(self, **connect):
        return Client(self.port, **connect)


class Client:
    """Requests to a server, one after the other or many at once. connect: members of its CONNECT, as user and pass."""

    def __init__(self, port, timeout=20, **connect):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.file = self.socket.makefile("rb")
        self.file.readline()  # INFO
        self.n, self.inbox = 0, "_INBOX.%d.%d" % (os.getpid(), id(self))
        self._send(b"CONNECT %s\r\nSUB %s.* 1\r\n" % (json.dumps({"verbose": False, "headers": True, "no_responders": True, **connect}).encode(),
                                                      self.inbox.encode()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def _send(self, data):
        self.socket.sendall(data)

    def publish(self, subject, body=b"", reply="", headers=None):
        if headers is None:
            self._send(b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), reply.encode(), len(body), body))
            return
        head = b"NATS/1.0\r\n" + b"".join(b"%s: %s\r\n" % (k.encode(), v.encode()) for k, v in headers.items()) + b"\r\n"
        self._send(b"HPUB %s %s %d %d\r\n%s%s\r\n" % (subject.encode(), reply.encode(), len(head), len(head) + len(body), head, body))

    def _next(self):
        """The number of the request that is answered, and the answer; None: the server has no one to answer."""
        while True:
            line = self.file.readline().split()
            if not line:
                raise EOFError("the server has closed the connection")
            if line[0] == b"PING":
                self._send(b"PONG\r\n")
            elif line[0] == b"-ERR":
                raise AssertionError(b" ".join(line).decode())
            elif line[0] in (b"MSG", b"HMSG"):
                body = self.file.read(int(line[-1]) + 2)[:-2]
                head = int(line[-2]) if line[0] == b"HMSG" else 0
                return int(line[1].rsplit(b".", 1)[1]), None if body[:head].startswith(b"NATS/1.0 503") else body[head:]

    def ask_all(self, requests, at_once=500):
        """[(subject, body)] -> the answers, in that order."""
        found = []
        for start in range(0, len(requests), at_once):
            first, part = self.n, requests[start:start + at_once]
            for subject, body in part:
                self.publish(subject, body, "%s.%d" % (self.inbox, self.n))
                self.n += 1
            answers = dict(self._next() for _ in part)
            found += [answers[first + i] for i in range(len(part))]
        return found

    def ask(self, subject, body=b""):
        return self.ask_all([(subject, body)])[0]

    def api(self, what, **fields):
        """A request to JetStream; raises on an error."""
        answer = json.loads(self.ask("$JS.API." + what, json.dumps(fields).encode() if fields else b"") or b'{"error":"nobody answers"}')
        if "error" in answer:
            raise AssertionError("%s: %s" % (what, answer["error"]))
        return answer

    def state(self, stream):
        return self.api("STREAM.INFO." + stream)["state"]

    def messages(self, stream):
        """All of a stream: [(sequence, {header: value}, body)]."""
        state = self.state(stream)
        answers = self.ask_all([("$JS.API.STREAM.MSG.GET." + stream, b'{"seq":%d}' % i) for i in range(max(1, state["first_seq"]), state["last_seq"] + 1)])
        found = []
        for answer in map(json.loads, answers):
            if "message" in answer:
                m = answer["message"]
                lines = base64.b64decode(m.get("hdrs", "")).decode().split("\r\n")[1:]
                found.append((m["seq"], dict(line.split(": ", 1) for line in lines if line), base64.b64decode(m.get("data", ""))))
        return found


class Bridge:
    def __init__(self, test, daemon, server, *args, start=True, env=None):
        self.daemon, self.process, self.env = daemon, None, env or {}
        self.args = ["--state", daemon.state, "--server", server if isinstance(server, str) else server.url, *args]
        test.addCleanup(self.clean)
        if start:
            self.start()

    def start(self):
        with open(self.daemon.work / "bridge.log", "ab") as log:
            self.process = subprocess.Popen([BIN / "baton-bridge-nats", *map(str, self.args)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, **self.env})
        return self

    def run(self, *more, timeout=60):
        """To its end: (exit code, what it printed, what it said)."""
        done = subprocess.run([BIN / "baton-bridge-nats", *map(str, self.args), *map(str, more)], capture_output=True, text=True, timeout=timeout,
                              env={**os.environ, **self.env})
        if "Sanitizer" in done.stderr or "runtime error" in done.stderr:
            raise AssertionError(done.stderr)
        return done.returncode, done.stdout, done.stderr

    def log(self):
        file = self.daemon.work / "bridge.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def kill9(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=20):
        self.process.terminate()
        return self.process.wait(seconds)

    def clean(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if "Sanitizer" in self.log() or "runtime error" in self.log():
            raise AssertionError(self.log()[-4000:])


def lines_of(daemon):
    """The daemon's events, as `baton events --json` prints them."""
    return daemon.cli("events", "--json").splitlines()


def wait_for(server, daemon, stream="BATON_main", seconds=30, log=lambda: ""):
    """Until the stream's last event is the daemon's last."""
    def there():
        last = daemon.ask("supervisor.info")["lastSeq"]
        try:
            with server.client() as c:
                # nats-server 2.9.10 ends (a nil pointer) when a message is asked for while the stream is being made
                info = json.loads(c.ask("$JS.API.STREAM.INFO." + stream, b"") or b"{}")
                if not info.get("state", {}).get("messages"):
                    return False
                found = json.loads(c.ask("$JS.API.STREAM.MSG.GET." + stream, b'{"last_by_subj":"baton.%s.0"}' % stream[6:].encode()) or b"{}")
        except (OSError, EOFError):
            return False
        return "message" in found and json.loads(base64.b64decode(found["message"]["data"]))["seq"] == last
    start = time.monotonic()
    try:
        until(there, seconds, "the stream has the daemon's last event")
    except AssertionError as e:
        raise AssertionError("%s\n%s" % (e, log()[-3000:]))
    return time.monotonic() - start
