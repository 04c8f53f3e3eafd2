"""An agent process of the random test: it crashes, hangs, lies, garbles, repeats and answers late, as its steps say.

`parameters.acts[n]` of a step is what attempt n + 1 does; later attempts are honest. Before it begins any work it appends
one line to its log and calls fsync: what the log does not have was never done. Knows nothing but protocol/WIRE.md.
"""
import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import random
import signal
import socket
import struct
import sys
import threading
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import sp  # noqa: E402  (the path is set just above)

LIE = "LIE"  # in every result that must never count


def value_of(nonce, deps):
    """What an honest result says: a function of the step and of what it was given."""
    return hashlib.sha256(json.dumps([nonce, sorted(deps.items())]).encode()).hexdigest()[:24]


def given(context):
    """stepId -> the value in the context that the step was given."""
    found = {}
    for d in (context or {}).get("dependencies") or []:
        result = d.get("result") or {}
        found[d["stepId"]] = (result.get("data") or {}).get("v") or "text:" + str(result.get("text"))
    return found


class Asked:
    """What became of one key: the attempt that was begun last, and its answer."""

    def __init__(self, attempt):
        self.attempt = attempt
        self.answer = None  # the members of step.result, once there is one
        self.over = threading.Event()
        self.cancelled = threading.Event()


def unpack(frame):
    """[(tag, body)] of a bundle."""
    mark, version, count = struct.unpack(">BBH", frame[:4])
    at, items = 4, []
    for _ in range(count):
        length, tag = struct.unpack(">IQ", frame[at:at + 12])
        items.append((tag, frame[at + 12:at + 12 + length]))
        at += 12 + length
    if (mark, version, at) != (0xC1, 1, len(frame)):
        raise ValueError("no bundle")
    return items


def pack(items):
    return struct.pack(">BBH", 0xC1, 1, len(items)) + b"".join(struct.pack(">IQ", len(body), tag) + body for tag, body in items)


class Trunk:
    """The work connections of an agent with bundles: requests that are kept, and results that have no request yet."""

    def __init__(self):
        self.lock = threading.Lock()
        self.kept = []  # (pipe, header), the oldest first
        self.results = []  # (tag, body)
        self.pipes = 0  # 0: work lanes

    def keep(self, pipe, header):
        with self.lock:
            self.kept.append((pipe, header))
            self.flush()

    def add(self, tag, body):
        with self.lock:
            self.results.append((tag, body))
            self.flush()

    def forget(self, pipe):
        """The connection has ended."""
        with self.lock:
            self.kept = [k for k in self.kept if k[0] is not pipe]

    def give_back(self):
        """After agent.register: what is kept from before."""
        with self.lock:
            for pipe, header in self.kept:
                self.send(pipe, header, [])
            self.kept = []

    def flush(self):
        while self.kept and self.results:
            items, rest, size = [], [], 0
            for tag, body in self.results:
                size += len(body)
                (items if not rest and len(items) < 16 and (not items or size < 200000) else rest).append((tag, body))
            if self.send(*self.kept.pop(0), items):
                self.results = rest
        while len(self.kept) >= self.pipes > 0:
            self.send(*self.kept.pop(0), [])

    @staticmethod
    def send(pipe, header, items):
        try:
            pipe.send(header + pack(items))
            return True
        except OSError:  # it has ended: its thread sees it
            return False


class Worker:
    def __init__(self, args):
        self.args = args
        self.state = pathlib.Path(args.state)
        self.chance = random.Random("%s-%s-%d" % (args.seed, args.agent, os.getpid()))
        self.log = os.open(args.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.lock = threading.Lock()
        self.asked = {}
        self.server = socket.create_server(("127.0.0.1", 0))
        port = self.server.getsockname()[1]
        if args.port_file:
            whole = pathlib.Path(args.port_file + ".new")
            whole.write_text(str(port))
            whole.replace(args.port_file)
        self.endpoint = args.advertise or "tcp://127.0.0.1:%d" % port
        self.me = self.identity()
        self.process = str(uuid.uuid4())  # of this process: never another's
        self.epoch = 0
        self.leaving = threading.Event()
        self.trunk = Trunk()

    def identity(self):
        """New ids; or, of an agent that does not keep to the page, those of the process before it."""
        kept = pathlib.Path(self.args.identity) if self.args.identity else None
        if kept and kept.exists():
            me = json.loads(kept.read_text())
            kept.unlink()  # once: when they are refused, the next process has new ones
            return me
        me = {"instanceId": str(uuid.uuid4()), "sessionKey": uuid.uuid4().hex}
        if kept:
            kept.write_text(json.dumps(me))
        return me

    def note(self, **fields):
        line = json.dumps({"t": time.time(), "pid": os.getpid(), "agent": self.args.agent, **self.me, **fields}) + "\n"
        os.write(self.log, line.encode())
        os.fsync(self.log)

    # ---- the control socket ----

    def ask(self, type_, timeout=4.0, **fields):
        url = self.args.control or json.loads((self.state / "endpoints.json").read_text())["control"]
        token = (self.state / "token").read_text().strip()
        with sp.Req(url, timeout) as req:
            return json.loads(req.ask(json.dumps({"v": 1, "type": type_, "id": uuid.uuid4().hex, "token": token, **fields}).encode()))

    def register(self):
        card = {"agentId": self.args.agent, "name": self.args.agent, "version": "1", "skills": [
            {"id": "do", "description": "Does a thing.", "effects": "idempotent"},
            {"id": "once", "description": "Does a thing that must not be done twice.", "effects": "unsafe"}]}
        answer = self.ask("agent.register", card=card, capacity=self.args.capacity, endpoint=self.endpoint, protocol=[1],
                          pid=os.getpid(), processId=self.process, **({"bundle": self.args.bundle} if self.args.bundle else {}), **self.me)
        if answer["ok"]:
            self.epoch = answer["epoch"]
            self.trunk.pipes = answer.get("pipes", 0)
            self.trunk.give_back()
        elif answer["error"]["code"] in ("CONFLICT", "UNAUTHORIZED", "GONE", "INVALID"):
            self.me = {"instanceId": str(uuid.uuid4()), "sessionKey": uuid.uuid4().hex}
        return answer["ok"]

    def beat(self):
        there = False
        while not self.leaving.wait(0.4):
            try:
                if not there:
                    there = self.register()
                    continue
                with self.lock:
                    running = [{"key": k, "attempt": a.attempt} for k, a in self.asked.items() if not a.over.is_set()]
                answer = self.ask("agent.heartbeat", instanceId=self.me["instanceId"], epoch=self.epoch, inflight=running[:64])
                if not answer["ok"]:
                    there = answer["error"]["code"] not in ("NOT_FOUND", "CONFLICT", "GONE")
                    continue
                for order in answer.get("cancel") or []:
                    self.cancel(order["key"], order.get("attempt"))
            except (OSError, EOFError, ValueError, KeyError):
                pass  # the supervisor is away, or its files are being written

    def send_result(self, body):
        """The same body on the control socket, until somebody has answered it."""
        for _ in range(40):
            try:
                answer = self.ask("step.result", instanceId=self.me["instanceId"], **body)
                if answer["ok"] or not answer["error"].get("retryable"):
                    return answer
            except (OSError, EOFError, ValueError):
                pass
            if self.leaving.wait(0.25):
                return None
        return None

    # ---- lanes ----

    def serve(self):
        while not self.leaving.is_set():
            sock, _ = self.server.accept()
            threading.Thread(target=self.lane, args=(sock,), daemon=True).start()

    def lane(self, sock):
        pipe = None
        try:
            pipe = sp.Pipe(sock, sp.REP, sp.REQ, 10)
            sock.settimeout(None)
            while True:
                header, body = sp.split_request(pipe.recv())
                if body[:1] == b"\xc1":
                    for tag, item in unpack(body):
                        threading.Thread(target=self.bundled, args=(sock, tag, json.loads(item)), daemon=True).start()
                    self.trunk.keep(pipe, header)
                    continue
                answer = self.one(json.loads(body))
                if answer is None:
                    continue  # mute
                if answer == b"":
                    break  # hang up
                pipe.send(header + (answer if isinstance(answer, bytes) else json.dumps(answer).encode()))
        except (OSError, EOFError, ValueError):
            pass
        if pipe:
            self.trunk.forget(pipe)
        sock.close()

    def bundled(self, sock, tag, r):
        """A step of a bundle, which came over that connection."""
        answer = self.one(r)
        if answer == b"":
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        elif answer is not None:
            self.trunk.add(tag, answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    def one(self, r):
        head = {"v": 1, "id": r.get("id", ""), "ok": True}
        if r["type"] != "lane.hello" and r.get("sessionKey") != self.me["sessionKey"]:
            return {**head, "ok": False, "type": "error", "error": {"code": "UNAUTHORIZED", "message": "not my key", "retryable": False}}
        if r["type"] in ("lane.hello", "agent.ping"):
            return {**head, "type": "ok", "processId": self.process}
        if r["type"] in ("step.query", "step.cancel"):
            if r["type"] == "step.cancel":
                self.cancel(r["key"], r.get("attempt"))
            return {**head, "type": "step.state", **self.state_of(r)}
        if r["type"] == "step.execute":
            said = self.execute(r)
            return {**head, "type": "step.result", **said} if isinstance(said, dict) else said
        return {**head, "ok": False, "type": "error", "error": {"code": "INVALID", "message": "unknown", "retryable": False}}

    def state_of(self, r):
        with self.lock:
            a = self.asked.get(r["key"])
            if a is None or r.get("attempt", a.attempt) > a.attempt:
                return {"key": r["key"], "state": "unknown"}
            if r.get("attempt", a.attempt) < a.attempt:
                return {"key": r["key"], "state": "forgotten"}
            if not a.over.is_set():
                return {"key": r["key"], "state": "running"}
            return {"key": r["key"], "state": "done", "result": {"key": r["key"], "attempt": a.attempt, "epoch": self.epoch, **a.answer}}

    def cancel(self, key, attempt=None):
        with self.lock:
            a = self.asked.get(key)
            if a is not None and (attempt is None or attempt == a.attempt):
                a.cancelled.set()

    # ---- work ----

    def execute(self, r):
        head = {k: r[k] for k in ("key", "attempt", "epoch")}
        with self.lock:
            a = self.asked.get(r["key"])
            again = a is not None and a.attempt >= r["attempt"]
            if not again:
                a = self.asked[r["key"]] = Asked(r["attempt"])
        if again:  # the same attempt: what was done is the answer
            a.over.wait()
            return {**head, **a.answer}
        params = r.get("parameters") or {}
        acts = params.get("acts") or []
        act = acts[r["attempt"] - 1] if r["attempt"] <= len(acts) else "ok"
        deps = given(r.get("context"))
        self.note(e="exec", plan=r["planId"], step=r["stepId"], revision=r["revision"], key=r["key"], attempt=r["attempt"],
                  epoch=r["epoch"], act=act, unsafe=bool(params.get("unsafe")), deps=deps)
        if act == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        a.cancelled.wait((params.get("ms", 0) if act != "hang" else 6000) / 1000)
        self.settle(a, r, act, deps, params)
        if act == "crash_after":
            os.kill(os.getpid(), signal.SIGKILL)
        return self.answer({**head, **a.answer}, act, params)

    def settle(self, a, r, act, deps, params):
        """The answer of an attempt, from now on the same whoever asks."""
        if act in ("fail", "fatal"):
            a.answer = {"outcome": "failed", "failure": {"code": "INTERNAL", "class": "SERVICE_UNAVAILABLE" if act == "fail" else "VALIDATION_ERROR",
                                                        "message": "as told", "retryable": act == "fail"}}
        elif a.cancelled.is_set() and act == "hang":
            a.answer = {"outcome": "failed", "failure": {"code": "CANCELLED", "class": "CANCELLED", "message": "stopped", "retryable": False}}
        else:
            result = {"text": "done " + r["stepId"] + "." * params.get("pad", 0), "data": {"v": value_of(params.get("nonce"), deps)}}
            if params.get("artifact"):
                result["artifacts"] = [self.artifact(r, params["artifact"])]
            a.answer = {"outcome": "completed", "result": result}
        self.note(e="done", key=r["key"], attempt=r["attempt"], outcome=a.answer["outcome"])
        a.over.set()

    @staticmethod
    def artifact(r, size):
        """A file in the plan's directory, as the page wants it."""
        folder = pathlib.Path(r["artifactDir"])
        folder.mkdir(mode=0o700, exist_ok=True)
        data = (r["key"].encode() * size)[:size]
        hidden = folder / (".%s.%d" % (uuid.uuid4().hex, r["attempt"]))
        with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        path = folder / ("%s@%d.%d@bytes.bin" % (r["stepId"], r["revision"], r["attempt"]))
        hidden.rename(path)
        at = os.open(folder, os.O_RDONLY)
        os.fsync(at)
        os.close(at)
        return {"name": "bytes.bin", "uri": "file://" + str(path), "bytes": size, "sha256": hashlib.sha256(data).hexdigest()}

    def answer(self, body, act, params):
        """How the answer travels."""
        lie = {**body, "outcome": "completed", "result": {"text": LIE, "data": {"v": LIE}}}
        if act == "late":  # over control after the attempt's time, and then on the lane
            time.sleep(3)
            self.send_result(body)
        if act == "drop":
            threading.Thread(target=self.send_result, args=(body,), daemon=True).start()
            return b""
        if act == "garble":
            return bytes(self.chance.randrange(256) for _ in range(self.chance.randrange(1, 400)))
        if act == "nan":
            return b'{"v":1,"ok":true,"type":"step.result","score":NaN}'
        if act == "latin":
            return json.dumps({"v": 1, "ok": True, "type": "step.result", **lie}).replace(LIE, "LIE \xe9").encode("latin-1")
        if act == "foreign":
            return {**lie, "key": "00000000-0000-7000-8000-000000000000/1/x"}
        if act == "attempt":
            return {**lie, "attempt": body["attempt"] + 7}
        if act == "epoch":
            return {**body, "epoch": body["epoch"] + 100}
        if act == "doubled":
            threading.Thread(target=self.lie_after_the_end, args=(lie,), daemon=True).start()
        if act == "others":  # steps that others have
            plan = body["key"].split("/")[0]
            for step in params.get("others") or []:
                other = {**lie, "key": "%s/1/%s" % (plan, step), "attempt": 1}
                threading.Timer(0.05, self.send_result, [other]).start()
        return body

    def lie_after_the_end(self, lie):
        """Another result for an attempt whose own result has counted."""
        plan, _, step = lie["key"].split("/", 2)
        for _ in range(60):
            try:
                view = self.ask("plan.get", planId=plan)
                if any(s["stepId"] == step and s["status"] == "completed" for s in view.get("steps") or []):
                    self.send_result(lie)
                    return
            except (OSError, EOFError, ValueError):
                pass
            self.leaving.wait(0.25)

    def run(self):
        self.note(e="start")
        signal.signal(signal.SIGTERM, lambda *_: self.leave())
        threading.Thread(target=self.serve, daemon=True).start()
        self.beat()

    def leave(self):
        self.leaving.set()
        try:
            self.ask("agent.drain", 1.0, instanceId=self.me["instanceId"], epoch=self.epoch)
            self.ask("agent.deregister", 1.0, instanceId=self.me["instanceId"], epoch=self.epoch)
        except (OSError, EOFError, ValueError):
            pass
        os._exit(0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--state", default=os.environ.get("BATON_STATE"))
    for name in ("agent", "log"):
        p.add_argument("--" + name, required=True)
    for name in ("control", "advertise", "port-file", "identity"):
        p.add_argument("--" + name, default="")
    p.add_argument("--capacity", type=int, default=2)
    p.add_argument("--bundle", type=int, default=0)
    p.add_argument("--seed", default="0")
    Worker(p.parse_args()).run()


if __name__ == "__main__":
    main()
