#!/usr/bin/env python3
"""An agent that breaks one rule of the protocol, and no other: for tests of baton-agent-check.

usage: broken.py FLAW      FLAW is the rule that it breaks, or `none`
"""
import os
import pathlib
import secrets
import struct
import sys
import threading

sys.path.insert(0, os.environ.get("BATON_SDK") or str(pathlib.Path(__file__).resolve().parent.parent.parent / "agents" / "python"))
import baton  # noqa: E402  (the path is set just above)

flaw = sys.argv.pop(1)


class Broken(baton.Agent):
    second = set()  # connections that are lane 1

    def _answer(self, lane, header, r, id_, form):
        type_ = r.get("type")
        if r.get("lane") == 1:
            self.second.add(lane.pipe)
        if flaw == "hello" and type_ == "lane.hello":
            answer = super()._answer(lane, header, r, id_, form)
            answer.pop("processId", None)
            return answer
        if flaw == "session-key":
            r["sessionKey"] = self.session_key
        ours = r.get("sessionKey") == self.session_key
        if flaw == "process" and ours and type_ == "lane.hello":
            return {"type": "ok", "processId": r.get("processId")}
        if flaw == "cancel" and ours and type_ == "step.cancel":
            return self._state_of(r["key"], r["attempt"])
        if flaw == "unknown-type" and type_ == "step.juggle":
            return {"type": "ok"}
        if flaw == "unknown-field" and "newField" in r:
            raise baton.Error("INVALID", "newField: there is no such field")
        if flaw == "deadline":
            r.pop("deadlineMs", None)
        if flaw == "query" and type_ == "step.query":
            answer = super()._answer(lane, header, r, id_, form)
            if answer["state"] == "done":
                answer.pop("result")
            return answer
        return super()._answer(lane, header, r, id_, form)

    def _execute(self, lane, header, r, id_, form, key, n):
        known = self._attempts.get((key, n))
        if flaw == "full" and known is None and self._running >= self.capacity:
            raise baton.Error("UNAVAILABLE", "all places are taken")
        if flaw == "unknown-skill" and r["skill"] not in self.skills:
            r = {**r, "skill": "greet"}
        if flaw == "repeat-once" and known is not None and known.answer is not None and r["skill"] == "wait":
            del self._attempts[key, n]
        if flaw == "repeat-done" and known is not None and known.answer is not None:
            known.answer = {"outcome": "completed", "result": {"text": "another answer"}}
        if flaw == "repeat-running" and known is not None and known.answer is None:
            raise baton.Error("BUSY", "it runs already")
        if flaw == "next-attempt" and n > 1 and (key, 1) in self._attempts:
            self._send_result(self._attempts[key, 1], (lane, header, id_, form))
            return None
        return super()._execute(lane, header, r, id_, form, key, n)

    def deliver(self, pipe, header, body, form):
        if flaw == "execute" and pipe in self.second and "Hello" in str(body.get("result")):
            body = {**body, "attempt": body["attempt"] + 1}
        super().deliver(pipe, header, body, form)

    def _cancel(self, key, attempt):
        super()._cancel(key, 0 if flaw == "cancel-other" else attempt)

    def _on_request(self, lane, header, data):
        if flaw == "body-garbage" and data in (b"{", b""):
            return
        super()._on_request(lane, header, data)

    def _serve_lane(self, make):
        try:
            super()._serve_lane(make)
        finally:
            if flaw == "lane-lost":
                self.stop_steps()

    def stop_steps(self):
        for attempt in list(self._attempts.values()):
            attempt.step._stop()

    def new_names(self):
        self.session_key = secrets.token_hex(16)


class Items:
    """In the place of a pipe: what is sent is the body under a tag of a bundle."""
    closed = False

    def __init__(self, bundles, lane, tag):
        self.bundles, self.lane, self.tag = bundles, lane, tag

    def send(self, body):
        self.bundles.put(self.lane, self.tag ^ (flaw == "bundle"), body)


class Bundling(Broken):
    """Asks for bundles, and keeps the rules about them but one."""
    pipes = 4

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.kept, self.results, self.guard, self.greeted = [], [], threading.RLock(), set()

    def _answer(self, lane, header, r, id_, form):
        answer = super()._answer(lane, header, r, id_, form)
        if r.get("type") == "lane.hello":
            self.greeted.add(lane)
        return answer

    def _on_request(self, lane, header, data):
        if data[:1] != b"\xc1":
            return super()._on_request(lane, header, data)
        if lane not in self.greeted and flaw != "bundle-greeted":
            return lane.pipe.send(header)
        with self.guard:
            self.kept.append((lane, header))
        at = 4
        for _ in range(struct.unpack(">H", data[2:4])[0]):
            length, tag = struct.unpack(">IQ", data[at:at + 12])
            item = type(lane)(Items(self, lane, tag))
            item.proved = True
            super()._on_request(item, b"", data[at + 12:at + 12 + length])
            at += 12 + length
        self.flush()

    def put(self, lane, tag, body):
        with self.guard:
            if flaw != "bundle-lost" or not lane.pipe.closed:
                self.results.append(struct.pack(">IQ", len(body), tag) + body)
        self.flush()

    def flush(self):
        with self.guard:
            self.kept = [k for k in self.kept if not k[0].pipe.closed]
            while self.kept and (self.results or (len(self.kept) >= self.pipes and flaw != "bundle-full")):
                lane, header = self.kept.pop(0)
                items, self.results = self.results, []
                lane.pipe.send(header + struct.pack(">BBH", 0xC1, 1, len(items)) + b"".join(items))


class Control(baton.Control):
    """The control connection: what broken agents send and overhear there."""

    url = None

    def connect(self, timeout=5.0):
        url = self.endpoints()["control"]
        again, self.url = self.url is not None, self.url or url
        busy = any(a.answer is None for a in agent._attempts.values())
        if flaw == "reconnect" and again and url == self.url or flaw == "restart" and url != self.url and not busy:
            agent.new_names()
        if flaw == "restart-running" and url != self.url:
            agent.stop_steps()
        self.url = url
        super().connect(timeout)

    @staticmethod
    def _is_of(sent, answer):
        return flaw == "other-answer" or baton_control._is_of(sent, answer)

    def request(self, type_, fields, timeout=15.0):
        fields = dict(fields)
        if type_ == "agent.register" and flaw.startswith("bundle"):
            fields["bundle"] = 256
        if type_ == "agent.heartbeat":
            if flaw == "query-running":
                fields.pop("inflight")
            if flaw == "heartbeat":
                fields["instanceId"] = fields["instanceId"].lower()
        if flaw == "sigterm" and type_ == "agent.drain":
            return {"ok": True}
        try:
            answer = super().request(type_, fields, timeout)
        except baton.Error as e:
            if flaw == "fenced" and e.code == "NOT_FOUND":
                agent.new_names()
            raise
        if flaw == "cancel-order":
            answer.pop("cancel", None)
        if flaw == "drain" and answer.get("drain"):
            agent.stop_steps()
        return answer


class Pipe(baton.Pipe):
    def __init__(self, sock, role, peer, timeout=10.0):
        try:
            super().__init__(sock, role, peer, timeout)
        except ConnectionError:
            if flaw == "malformed":
                os._exit(5)
            raise

    def recv(self, most=baton.ANSWER_BYTES):
        return super().recv(1 << 62 if flaw == "oversize" else most)


baton_control = baton.Control
baton.Control, baton.Pipe = Control, Pipe
if flaw == "large":
    baton.BODY_BYTES = 1 << 20
agent = Bundling("broken", capacity=4) if flaw.startswith("bundle") else Broken("broken", capacity=2)
if flaw == "register":
    agent.session_key = secrets.token_hex(4)
if flaw == "new-process":
    agent.instance_id = "0190F3C2-7A1B-7C3D-9E4F-0123456789AB"


@agent.skill(effects="none")
def greet(name: str = "world") -> str:
    """Greets somebody by name."""
    if flaw == "calls":
        raise baton.Calls([{"id": "c1", "agentId": "calc", "skill": "evaluate"}])
    return "Hello, %s!" % name


@agent.skill(effects="idempotent")
def wait(step: baton.Step, seconds: float = 1.0) -> str:
    """Waits so long."""
    if step.wait(seconds):
        step.check()
    return "waited"


@agent.skill(effects="none", calls=True)
def look(step: baton.Step, ids: str = "c1"):
    """Calls others."""
    raise baton.Calls([{"id": i, "agentId": "calc", "skill": "evaluate", "parameters": {}} for i in ids.split()])


agent.run()
