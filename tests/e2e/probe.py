"""An agent that does what a test tells it to, in a thread of the test: honest, lying, mute or talking garbage."""
import json
import struct
import threading
import uuid

import harness
from harness import sp


def pack(value):
    """msgpack of what JSON can say, for requests in the other form."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xcf" + struct.pack(">Q", value) if value >= 0 else b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        raw = value.encode()
        return b"\xdb" + struct.pack(">I", len(raw)) + raw
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    return b"\xdf" + struct.pack(">I", len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())


def card(agent_id, **more):
    return {"agentId": agent_id, "name": agent_id.capitalize(), "version": "1",
            "skills": [{"id": "do", "description": "Does a thing."}], **more}


HANG_UP = object()


class Probe:
    """`work(request)` gives the fields of step.result, bytes to be sent as they are, or HANG_UP to end the connection. `requests` is everything that
    came. `hello`, `query`, `cancel`: what to say to lane.hello, step.query and step.cancel instead of the right thing.
    `ping(request)`: whether to answer agent.ping. `skills`: more than "do". `process`: names its process. `names` and `port`
    of a Probe before it. `inflight()`: what a heartbeat lists."""

    def __init__(self, daemon, agent_id="probe", work=None, hello=None, query=None, capacity=1, beat=True,
                 ping=None, skills=(), process=None, names=None, port=0, cancel=None, inflight=None, register=True):
        self.daemon = daemon
        self.process, self.cancel, self.inflight = process, cancel, inflight
        self.work = work or (lambda r: {"outcome": "completed", "result": {"text": "done " + r["stepId"]}})
        self.hello, self.query, self.ping = hello, query, ping
        self.requests = []
        self.order = {}  # the last answer to a heartbeat
        self.broken = None
        self.rep = sp.RepListener(port=port, timeout=0.1)
        self.me = names or {"instanceId": str(uuid.uuid4()), "sessionKey": uuid.uuid4().hex}
        more = {"skills": card("")["skills"] + [{"id": s, "description": "Does %s." % s} for s in skills]}
        self.registration = {"card": card(agent_id, **more), "capacity": capacity, "endpoint": self.rep.url, "protocol": [1], **self.me,
                             **({"processId": process} if process else {})}
        self.stopping = threading.Event()
        self.epoch = self.register()["epoch"] if register else 0
        self.threads = [threading.Thread(target=self.serve)] + ([threading.Thread(target=self.beats)] if beat else [])
        for t in self.threads:
            t.start()

    def register(self):
        return self.daemon.ask("agent.register", **self.registration)

    def beats(self):
        while not self.stopping.wait(0.3):
            try:
                listed = {"inflight": self.inflight()} if self.inflight else {}
                self.order = self.daemon.ask_raw("agent.heartbeat", instanceId=self.me["instanceId"], epoch=self.epoch, **listed)
            except (OSError, EOFError, ValueError):
                pass  # the daemon is away

    def serve(self):
        while not self.stopping.is_set():
            try:
                body, reply = self.rep.next()
            except TimeoutError:
                continue
            request = json.loads(body)
            self.requests.append(request)
            try:
                answer = self.answer(request)
                if answer is HANG_UP:
                    self.rep.hang_up()
                elif answer is not None:
                    reply(answer if isinstance(answer, bytes) else json.dumps(answer).encode())
            except OSError:
                pass
            except Exception as e:  # told by close()
                self.broken = e
                raise

    def answer(self, r):
        head = {"v": 1, "id": r.get("id", ""), "ok": True}
        if r["type"] == "lane.hello":
            named = {"processId": self.process} if self.process else {}
            return self.hello if self.hello is not None else {**head, "type": "ok", **named}
        if r["type"] in ("step.query", "step.cancel"):
            tell = self.query if r["type"] == "step.query" else self.cancel
            if tell is not None:
                said = tell(r)
                return said if isinstance(said, bytes) else {**head, "type": "step.state", **said}
            return {**head, "type": "step.state", "key": r["key"], "state": "unknown"}
        if r["type"] == "agent.ping":
            return {**head, "type": "ok"} if self.ping is None or self.ping(r) else None
        said = self.work(r)
        if said is None or said is HANG_UP or isinstance(said, bytes):
            return said
        return {**head, "type": "step.result", "key": r["key"], "attempt": r["attempt"], "epoch": r["epoch"], **said}

    def of(self, type_):
        return [r for r in list(self.requests) if r["type"] == type_]

    def close(self):
        self.stopping.set()
        for t in self.threads:
            t.join(10)
        if self.rep is not None:
            self.rep.close()
        self.rep = None
        if self.broken is not None:
            raise self.broken


def step(step_id="a", agent="probe", **more):
    return {"stepId": step_id, "agentId": agent, "skill": "do", "task": "do " + step_id, **more}


def wait_up(daemon, agent_id="probe", seconds=10):
    harness.until(lambda: any(a["card"]["agentId"] == agent_id and a["state"] == "up" and
                              any(i["health"] == "healthy" for i in a.get("instances", []))
                              for a in daemon.ask("agents.list")["agents"]), seconds, agent_id + " is up\n" + daemon.log())
