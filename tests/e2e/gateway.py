"""baton-gateway for tests: a process of its own beside a daemon, and HTTP as a client sends it."""
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import unittest

from harness import BIN, until

PLAN = {"steps": [{"stepId": "a", "agentId": "calc", "skill": "evaluate", "task": "Add one and two", "parameters": {"expression": "1+2"}}]}
CALC = """
agents:
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
    capacity: 4
"""


def need():
    """Skips all tests of a module where the gateway was not built."""
    if not (BIN / "baton-gateway").exists():
        raise unittest.SkipTest("SKIPPED: there is no baton-gateway: libmicrohttpd was not there when it was built")


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "%d %s %s" % (self.status, dict(self.headers), self.body[:600])


class Gateway:
    def __init__(self, test, daemon, *args, start=True, prefix=()):
        self.daemon, self.args, self.prefix, self.process = daemon, args, prefix, None
        test.addCleanup(self.clean)
        if start:
            self.start()

    def start(self):
        file = self.daemon.state / "gateway.json"
        log = open(self.daemon.work / "gateway.log", "ab")
        self.process = subprocess.Popen([*self.prefix, BIN / "baton-gateway", "--state", self.daemon.state, *map(str, self.args)],
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()

        def ours():
            if self.process.poll() is not None:
                raise AssertionError("baton-gateway did not start: " + self.log())
            return file.exists() and json.loads(file.read_text()).get("pid") == self.process.pid
        until(ours, 20, "gateway.json")
        self.url = json.loads(file.read_text())["url"]
        self.port = int(self.url.rsplit(":", 1)[1])
        return self

    def log(self):
        file = self.daemon.work / "gateway.log"
        return file.read_text(errors="replace")[-4000:] if file.exists() else ""

    def kill9(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def clean(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if "Sanitizer" in self.log() or "runtime error" in self.log():
            raise AssertionError(self.log())

    def connection(self, timeout=30):
        if self.url.startswith("https"):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def headers(self, bearer=None, **more):
        return {"Authorization": "Bearer " + (bearer or self.daemon.token()), **more}

    def ask(self, method, path, body=None, bearer=None, timeout=30, **headers):
        """headers: with _ for -; None leaves one out."""
        sent = self.headers(bearer)
        if body is not None:
            sent["Content-Type"] = "application/json"
        for name, value in headers.items():
            sent[name.replace("_", "-")] = value
        c = self.connection(timeout)
        try:
            c.request(method, path, json.dumps(body) if isinstance(body, (dict, list)) else body,
                      {k: v for k, v in sent.items() if v is not None})
            r = c.getresponse()
            return Answer(r.status, r.headers, r.read())
        finally:
            c.close()

    def raw(self, data, timeout=10):
        """Bytes as they are; all that comes until the end, or until nothing comes for a second after an answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as s:
            s.sendall(data)
            got = b""
            try:
                while True:
                    part = s.recv(65536)
                    if not part:
                        break
                    got += part
                    s.settimeout(1)
            except (TimeoutError, ConnectionResetError):
                pass
            return got

    def head(self, line, *more):
        """A request as bytes, with Host and Authorization."""
        return ("\r\n".join([line, "Host: 127.0.0.1:%d" % self.port, "Authorization: Bearer " + self.daemon.token(), *more]) + "\r\n\r\n").encode()


class Events:
    """A reader of a stream: `events` are (id, type, data); it ends when the stream does."""

    def __init__(self, gateway, path, timeout=30, bearer=None, body=None, **headers):
        """body: an object is sent by POST."""
        self.connection = gateway.connection(timeout)
        sent = {**gateway.headers(bearer), "Accept": "text/event-stream", **{k.replace("_", "-"): v for k, v in headers.items()}}
        if body is not None:
            sent["Content-Type"] = "application/json"
        self.connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), sent)
        self.answer = self.connection.getresponse()
        self.comments = 0

    def __iter__(self):
        id_, type_, data = None, None, None
        try:
            for line in self.answer:
                line = line.decode().rstrip("\n")
                if line.startswith(":"):
                    self.comments += 1
                elif line.startswith("id: "):
                    id_ = int(line[4:]) if line[4:].isdigit() else line[4:]  # of a fleet SEQ:EVENTID
                elif line.startswith("event: "):
                    type_ = line[7:]
                elif line.startswith("data: "):
                    data = json.loads(line[6:])
                elif line == "" and data is not None:
                    yield id_, type_, data
                    data = None
        except (OSError, http.client.HTTPException, ValueError):
            return

    def close(self):
        self.connection.close()
        os_close = getattr(self.answer, "close", None)
        if os_close:
            os_close()
