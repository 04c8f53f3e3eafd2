"""What asks the daemon while it is disturbed: clients that repeat until they are answered, a reviewer, a subscriber, strangers.

Each answer is held against the page at once: typed, of the right type, the same for the same clientKey.
"""
import json
import pathlib
import random
import re
import socket
import threading
import time
import uuid

import sp
from stage import unpack

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CODES = set(re.findall(r"^- `([A-Z_]+)`", (ROOT / "protocol/WIRE.md").read_text().split("<!-- generated: codes -->")[1].split("<!-- end -->")[0], re.M))
AGENTS = ("alpha", "beta", "gamma", "delta", "spawned")
ACTS = ("ok", "crash", "crash_after", "hang", "late", "drop", "garble", "nan", "latin", "foreign", "attempt", "epoch",
        "doubled", "others", "fail", "fatal")
ACTS_ONCE = ("ok", "ok", "crash", "crash_after", "hang", "late", "drop")  # of an unsafe step: no answer that permits a repetition
NO_ANSWER_MS = 30.0  # seconds without any disturbance: then the daemon owes an answer


class Refused(Exception):
    pass


def make_plan(chance):
    """A plan document, small, of steps whose agents misbehave a little."""
    steps = []
    for i in range(chance.randrange(1, 7)):
        name = chance.choice(("s%d", "step.%d", "a-rather-long-name-of-a-step_%d")) % i
        before = [s["stepId"] for s in steps]
        depends = chance.sample(before, min(len(before), chance.randrange(3)))
        if chance.random() < 0.04:
            steps.append({"stepId": name, "type": "human_review", "task": "Is it right?", "dependsOn": depends})
            continue
        unsafe = chance.random() < 0.25
        acts = [chance.choice(ACTS_ONCE if unsafe else ACTS) for _ in range(chance.choice((0, 0, 0, 1, 1, 2)))]
        params = {"nonce": "%016x" % chance.getrandbits(64), "acts": acts, "ms": chance.choice((0, 0, 5, 50, 300)), "unsafe": unsafe}
        if chance.random() < 0.05:
            params["pad"] = 90000
        step = {"stepId": name, "agentId": chance.choice(AGENTS), "skill": "once" if unsafe else "do", "task": "Do the thing called " + name,
                "parameters": params, "dependsOn": depends}
        if chance.random() < 0.05:
            step["requiresApproval"] = True
        steps.append(step)
    for s in steps:
        if "others" in (s.get("parameters") or {}).get("acts", ()):
            s["parameters"]["others"] = [o["stepId"] for o in steps if o.get("agentId") not in (None, s["agentId"])]
    policy = {"stepTimeoutMs": 2000, "maxRetries": 4, "backoff": {"kind": "fixed", "initialMs": 50}, "queueTimeoutMs": 30000,
              "maxConcurrency": chance.choice((1, 3, 10)), "onFailure": chance.choice(("abort", "continue", "skip", "ask"))}
    if chance.random() < 0.2:
        policy["planTimeoutMs"] = chance.choice((1000, 5000, 20000))
    return {"goal": "chaos", "steps": steps, "policy": policy}


class Plans:
    """What was acknowledged. `documents` has each plan's steps, also of retries and forks."""

    def __init__(self):
        self.lock = threading.Lock()
        self.documents = {}
        self.asked_to_end = set()

    def add(self, plan_id, document):
        with self.lock:
            self.documents[plan_id] = document

    def some(self, chance):
        with self.lock:
            names = list(self.documents)
        return chance.choice(names[-60:]) if names else None

    def total(self):
        with self.lock:
            return len(self.documents)


class Client(threading.Thread):
    def __init__(self, world, plans, n, through_proxy=False):
        super().__init__(daemon=True)
        self.world, self.plans = world, plans
        self.chance = random.Random("client-%d-%d" % (world.seed, n))
        self.through_proxy = through_proxy
        self.stopping = threading.Event()
        self.broken = None

    def run(self):
        try:
            while not self.stopping.is_set():
                try:
                    self.once()
                except (OSError, EOFError, ValueError, Refused):
                    self.stopping.wait(0.1)
                self.stopping.wait(self.chance.uniform(0.02, 0.25))
        except Exception as e:  # a defect of the test itself
            self.broken = e
            raise

    # ---- one request ----

    def ask(self, type_, timeout=NO_ANSWER_MS, **fields):
        """The answer, refused or not. OSError, EOFError, ValueError when none came."""
        url = self.world.control.url if self.through_proxy else self.world.endpoints()["control"]
        began = time.monotonic()
        body = {"v": 1, "type": type_, "id": uuid.uuid4().hex, "token": (self.world.state / "token").read_text().strip(), **fields}
        try:
            with sp.Req(url, timeout) as req:
                answer = json.loads(req.ask(json.dumps(body).encode()))
        except TimeoutError:
            if not self.through_proxy and self.world.disturbed < began:
                self.world.found("no answer", "%s was not answered within %g s" % (type_, timeout))
            raise
        self.world.count("requests")
        self.typed(type_, body, answer)
        return answer

    def typed(self, type_, body, answer):
        wrong = None
        if answer.get("id") != body["id"] or answer.get("v") != 1 or not isinstance(answer.get("ok"), bool):
            wrong = "no envelope"
        elif not answer["ok"]:
            e = answer.get("error") or {}
            self.world.count("refusals")
            if answer.get("type") != "error" or e.get("code") not in CODES or not e.get("message") or not isinstance(e.get("retryable"), bool):
                wrong = "no typed refusal"
            elif e["code"] in ("INTERNAL", "PROTOCOL", "UNAUTHORIZED"):
                wrong = "not a refusal of this request"
        if wrong:
            self.world.found("refusal", "%s: %s -> %s: %s" % (wrong, json.dumps(body)[:500], type_, json.dumps(answer)[:700]))

    def insist(self, type_, **fields):
        """The same request until there is an answer that says more than "later". None when the client is to stop."""
        while not self.stopping.is_set():
            try:
                answer = self.ask(type_, **fields)
                if answer["ok"] or not answer["error"]["retryable"]:
                    return answer
            except (OSError, EOFError, ValueError):
                pass
            self.stopping.wait(0.15)
        return None

    # ---- what clients do ----

    def once(self):
        what = self.chance.choices((self.submit, self.look, self.change, self.again, self.wrong), (10, 8, 2, 1, 2))[0]
        if what == self.submit and self.open_plans() > 30:
            what = self.look
        what()

    def open_plans(self):
        answer = self.ask("plan.list", status="running", limit=100)
        return len(answer["plans"]) if answer["ok"] else 99

    def submit(self):
        document = make_plan(self.chance)
        key = "%032x" % self.chance.getrandbits(128)
        answer = self.insist("plan.submit", plan=document, clientKey=key)
        if answer is None:
            return
        if not answer["ok"]:
            code = answer["error"]["code"]
            if code not in ("INVALID", "LIMIT"):  # INVALID: an agent that never came is unknown
                self.world.found("refusal", "plan.submit: %s" % answer["error"])
            elif "unknown" not in answer["error"]["message"] and "known" not in answer["error"]["message"]:
                self.world.found("refusal", "plan.submit: %s" % answer["error"])
            return
        plan = answer["planId"]
        self.plans.add(plan, document)
        self.world.count("plans")
        if self.chance.random() < 0.3:
            same = self.insist("plan.submit", plan=document, clientKey=key)
            if same is not None and (not same["ok"] or same["planId"] != plan or not same.get("existing")):
                self.world.found("client key", "the same request: %s, then %s" % (plan, same), plan)
        if self.chance.random() < 0.1:
            other = self.insist("plan.submit", plan={**document, "goal": "another"}, clientKey=key)
            if other is not None and (other["ok"] or other["error"]["code"] != "CONFLICT"):
                self.world.found("client key", "another body under the same key: %s" % other, plan)

    def look(self):
        plan = self.plans.some(self.chance)
        if plan is None:
            return
        what = self.chance.randrange(6)
        if what == 0:
            self.known(plan, self.ask("plan.get", planId=plan))
        elif what == 1:
            self.known(plan, self.ask("plan.result", planId=plan), "CONFLICT")
        elif what == 2:
            self.ask("events.read", fromSeq=1, limit=100, planId=plan)
        elif what == 3:
            self.known(plan, self.ask("plan.history", planId=plan))
        elif what == 4:
            self.ask(self.chance.choice(("agents.list", "supervisor.info", "supervisor.stats", "review.list")))
        else:
            self.ask("plan.list", limit=50)

    def known(self, plan, answer, *also):
        """An acknowledged plan is there, whatever happened."""
        if not answer["ok"] and answer["error"]["code"] not in ("UNAVAILABLE", "BUSY", "LIMIT", *also):
            self.world.found("lost", "%s" % answer["error"], plan)

    def change(self):
        plan = self.plans.some(self.chance)
        if plan is None:
            return
        what = self.chance.randrange(4)
        if what == 0 and self.chance.random() < 0.4:
            self.ask("plan.cancel", planId=plan, reason="chaos")
        elif what == 1:
            self.ask("plan.pause", planId=plan)
            self.stopping.wait(self.chance.uniform(0, 1))
            while True:  # a plan that stays paused would never end
                answer = self.insist("plan.resume", planId=plan)
                if answer is None or answer["ok"] or not answer["error"]["retryable"]:
                    break
        elif what == 2:
            self.ask("plan.modify", planId=plan, kind="skip_steps", stepsToSkip=[self.chance.randrange(1, 4)], reasoning="chaos")

    def again(self):
        plan = self.plans.some(self.chance)
        if plan is None:
            return
        document = self.plans.documents[plan]
        key = "%032x" % self.chance.getrandbits(128)
        answer = self.insist("plan.retry", planId=plan, clientKey=key)
        if answer is not None and answer["ok"]:
            self.plans.add(answer["planId"], document)
            self.world.count("plans")

    def wrong(self):
        """Bytes that are no request, or one that must be refused."""
        what = self.chance.randrange(4)
        if what == 0:
            self.strange(bytes(self.chance.randrange(256) for _ in range(self.chance.randrange(1, 300))))
        elif what == 1:
            body = bytearray(json.dumps({"v": 1, "type": "plan.list", "id": "x", "token": (self.world.state / "token").read_text().strip()}).encode())
            for _ in range(self.chance.randrange(1, 4)):
                body[self.chance.randrange(len(body))] = self.chance.randrange(256)
            self.strange(bytes(body))
        elif what == 2:
            answer = self.ask("plan.get", planId=str(uuid.uuid4()))
            if answer["ok"] or answer["error"]["code"] not in ("NOT_FOUND", "UNAVAILABLE", "BUSY"):
                self.world.found("refusal", "an unknown plan: %s" % answer)
        else:  # a connection that ends in the middle of a frame
            host, port = self.world.endpoints()["control"][6:].split(":")
            with socket.create_connection((host, int(port)), 5) as s:
                s.sendall(b"\0SP\0\0\x30\0\0" + (1 << self.chance.randrange(20)).to_bytes(8, "big") + b"\x80abc")

    def strange(self, body):
        """Strangers are refused with a type, or hung up on; with luck the bytes are still a request."""
        with sp.Req(self.world.endpoints()["control"], 10) as req:
            try:
                said = req.ask(body)
            except (OSError, EOFError):
                return
        answer = json.loads(said) if said[:1] == b"{" else unpack(said)
        if not answer.get("ok") and (answer.get("error") or {}).get("code") not in CODES:
            self.world.found("refusal", "%r -> %r" % (body[:200], said[:300]))


class Reviewer(Client):
    """Decides what waits for a person; sometimes twice."""

    def once(self):
        answer = self.ask("review.list", limit=50)
        for review in answer.get("reviews") or []:
            decision = self.chance.choices(("approve", "skip", "reject"), (6, 1, 1))[0]
            fields = {"reviewId": review["reviewId"], "decision": decision}
            if review["kind"] == "human_review" and decision == "approve":
                fields.update(comment="yes", edit={"v": "human"})
            said = self.insist("review.decide", **fields)
            if said is None:
                return
            if said["ok"]:
                self.world.count("decisions")
            elif said["error"]["code"] not in ("NOT_FOUND", "CONFLICT"):
                self.world.found("refusal", "review.decide %s: %s" % (fields, said["error"]), review["planId"])
            if said["ok"] and self.chance.random() < 0.2:
                same = self.insist("review.decide", **fields)
                if same is not None and not same["ok"]:
                    self.world.found("review", "the same decision again: %s" % same["error"], review["planId"])
        self.stopping.wait(0.3)


class Subscriber(Client):
    """Keeps what was published, to be compared with what is stored."""

    def __init__(self, world, plans, n):
        super().__init__(world, plans, n)
        self.seen = {}

    def once(self):
        with sp.Sub(self.world.endpoints()["events"], timeout=3) as sub:
            while not self.stopping.is_set():
                _, body = sub.next()
                event = unpack(body)
                if "seq" not in event:
                    continue
                seq, mine = event["seq"], (event["eventId"], event["type"])
                if self.seen.setdefault(seq, mine) != mine:
                    self.world.found("events", "event %d was published as %s and as %s" % (seq, self.seen[seq], mine))
