"""The daemon dies at each of its points of failure in turn, and everything still ends right.

usage: sweep.py [--points all|N] [--pairs N] [--seed N] [--bundle N]

A reference workload (parallel steps, a retry, reviews, an artifact, an unsafe step, a session) is run once to count the hits
of FAILPOINT. Then, for each hit or N of them: run it, die there, start again, and hold the logs of the agents against the
events (checks.py). A pair dies once more while the next daemon recovers. Needs a build with BATON_FAILPOINTS.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "e2e")]

import checks  # noqa: E402  (the path is set just above)
import harness  # noqa: E402
import sp  # noqa: E402

CONFIG = """
listen: {control: 'tcp://127.0.0.1:0', events: 'tcp://127.0.0.1:0'}
durability: process
policy: {heartbeatMs: 300, leaseMs: 2000, agentWaitMs: 20000}
agents:
  - {agentId: calc, command: ['%(bin)s/baton-agent-calc']}
"""
BACKOFF = {"backoff": {"kind": "fixed", "initialMs": 20}, "stepTimeoutMs": 20000}


def step(name, depends=(), agent="w", **more):
    params = {"nonce": name, **more.pop("params", {})}
    return {"stepId": name, "agentId": agent, "skill": "once" if params.get("unsafe") else "do", "task": "Do the thing called " + name,
            "dependsOn": list(depends), "parameters": params, **more}


PLANS = {
    "parallel": {"steps": [step("a"), step("b", params={"ms": 30}), step("c", ["a", "b"])], "policy": BACKOFF},
    # Two failures, and the attempts that two deaths may cost.
    "retry": {"steps": [step("r", params={"acts": ["fail", "fail"]}), step("s", ["r"])], "policy": {**BACKOFF, "maxRetries": 4}},
    "review": {"steps": [step("p", requiresApproval=True), {"stepId": "h", "type": "human_review", "task": "Is it right?", "dependsOn": ["p"]}],
               "policy": BACKOFF},
    "unsafe": {"steps": [step("u", params={"unsafe": True}), step("v", ["u"], params={"unsafe": True})], "policy": BACKOFF},
    "artifact": {"steps": [step("x", params={"artifact": 4096}), step("y", ["x"])], "policy": BACKOFF},
}


class Sweep:
    """One run of the workload. `first`, `second`: what BATON_FAILPOINT is for the first and the second daemon; `bundle`: so many
    steps at once the agent takes in a message; 0: work lanes."""

    def __init__(self, first="", second="", bundle=0):
        self.points, self.bundle = [first, second], bundle
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="baton-sweep-"))
        self.state = self.work / "state"
        self.config = self.work / "baton.yaml"
        self.config.write_text(CONFIG % {"bin": harness.BIN})
        self.findings, self.counts, self.documents = [], {}, {}
        self.starts = self.ends = 0
        self.process = self.worker = None

    def found(self, kind, text, plan=None):
        self.findings.append({"kind": kind, "text": text, "plan": plan})

    # ---- the daemon ----

    def start(self):
        for _ in range(6):
            point = self.points[self.starts] if self.starts < len(self.points) else ""
            env = {**os.environ, "BATON_FAILPOINT": point, "BATON_FAILPOINT_LOG": str(self.work / ("hits.%d" % self.starts))}
            self.starts += 1
            ready, says = os.pipe()
            with open(self.work / "batond.log", "ab") as log:
                self.process = subprocess.Popen([harness.BIN / "batond", "--state", self.state, "--config", self.config, "--ready-fd", str(says)],
                                                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(says,), env=env)
            os.close(says)
            said = os.read(ready, 6)
            os.close(ready)
            if said == b"ready\n":
                return
            self.ended(self.process.wait())
        raise AssertionError("the daemon does not start:\n" + self.tail())

    def ended(self, code):
        """Only what was ordered: SIGKILL, or 75 after a commit that failed."""
        self.ends += 1
        if code not in (-signal.SIGKILL, 75) or not any(self.points):
            self.found("end", "the daemon ended with %d\n%s" % (code, self.tail()))

    def tail(self):
        return (self.work / "batond.log").read_text(errors="replace")[-3000:]

    def watch(self):
        if self.process.poll() is not None:
            self.ended(self.process.returncode)
            self.start()

    def hits(self, start):
        path = self.work / ("hits.%d" % start)
        return path.read_text().split() if path.exists() else []

    # ---- a client that repeats ----

    def try_ask(self, type_, fields):
        token = (self.state / "token").read_text().strip()
        with sp.Req(json.loads((self.state / "endpoints.json").read_text())["control"], 3) as req:
            return json.loads(req.ask(json.dumps({"v": 1, "type": type_, "id": "s", "token": token, **fields}).encode()))

    def ask(self, type_, **fields):
        """Repeats the request until it is answered; AssertionError on a refusal."""
        deadline = time.monotonic() + 60
        while True:
            self.watch()
            try:
                if type_ in ("plan.submit", "session.say"):  # a daemon that was just started knows no agents yet
                    self.wait(self.agents_are_up, "the agents are up")
                answer = self.try_ask(type_, fields)
                if answer["ok"]:
                    return answer
                if not answer["error"]["retryable"]:
                    raise AssertionError("%s %s: %s\n%s" % (type_, fields, answer["error"], self.tail()))
            except (OSError, EOFError, ValueError):
                pass
            if time.monotonic() > deadline:
                raise AssertionError("%s was not answered within a minute\n%s" % (type_, self.tail()))
            time.sleep(0.02)

    def wait(self, check, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not check():
            if time.monotonic() > deadline:
                raise AssertionError("%s\n%s" % (what, self.tail()))
            time.sleep(0.03)

    # ---- the workload ----

    def agents_are_up(self):
        return {"w", "calc"} <= {a["card"]["agentId"] for a in self.ask("agents.list")["agents"] if a["state"] == "up"}

    def decide(self):
        for review in self.ask("review.list")["reviews"]:
            more = {"comment": "yes", "edit": {"v": "human"}} if review["kind"] == "human_review" else {}
            self.ask("review.decide", reviewId=review["reviewId"], decision="approve", **more)

    def over(self):
        self.decide()
        return all(self.ask("plan.get", planId=p, steps=False)["status"] in checks.ENDED for p in self.documents) and self.turn_is_over()

    def turn_is_over(self):
        messages = self.ask("session.get", sessionId="S")["messages"]
        return messages[-1]["role"] == "assistant"

    def run(self):
        self.start()
        with open(self.work / "err.w", "ab") as err:
            self.worker = subprocess.Popen([sys.executable, "-B", HERE / "worker.py", "--state", self.state, "--agent", "w", "--capacity", "4",
                                            "--bundle", str(self.bundle), "--log", self.work / "log.w"], stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        self.wait(self.agents_are_up, "the agents are up")
        for name, plan in PLANS.items():
            plan_id = self.ask("plan.submit", plan=plan, clientKey="key-" + name)["planId"]
            self.documents[plan_id] = plan
        said = self.ask("session.say", sessionId="S", text="6*7", clientKey="say-1")
        self.wait(self.over, "everything ends")
        for plan_id, plan in self.documents.items():
            view = self.ask("plan.get", planId=plan_id)
            if view["status"] != "completed" or view.get("outcome") != "success":
                self.found("status", "%s %s: %s" % (view["status"], view.get("outcome"), [(s["stepId"], s["status"], s.get("error")) for s in view["steps"]]), plan_id)
        self.session(said)
        checks.Check(self, self, self.ask).run({})
        self.farewell()
        log = (self.work / "batond.log").read_text(errors="replace")
        for mark in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
            if mark in log:
                self.found("log", log[log.index(mark):][:2000])

    def farewell(self):
        """SIGTERM ends it with 0; where the ordered death comes on the way, the next one ends so."""
        while True:
            self.process.terminate()
            code = self.process.wait(60)
            if code == 0:
                return
            if self.starts > len(self.points):
                self.found("sigterm", "it ends with %d\n%s" % (code, self.tail()))
                return
            self.ended(code)
            self.start()

    def session(self, said):
        """The message is there once, and so is its answer."""
        messages = [(m["role"], m["text"]) for m in self.ask("session.get", sessionId="S")["messages"]]
        if [m for m in messages if m[0] == "user"] != [("user", "6*7")] or len(messages) != 2 or "42" not in messages[1][1]:
            self.found("session", "%s" % messages)
        if self.ask("session.say", sessionId="S", text="6*7", clientKey="say-1")["turnId"] != said["turnId"]:
            self.found("session", "the same key gives another turn")

    def close(self):
        for p in (self.worker, self.process):
            if p is not None and p.poll() is None:
                p.kill()
                p.wait()
        at = os.stat(self.state)
        mine = [b"BATON_STATE=%s\0" % os.fsencode(self.state), b"BATON_SPAWNED=%x.%x\0" % (at.st_dev, at.st_ino)]
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                told = (entry / "environ").read_bytes() + b"\0"
                if any(m in told for m in mine):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                pass
        if not self.findings:
            shutil.rmtree(self.work, ignore_errors=True)


def once(first="", second="", bundle=0):
    """One run; the sweep, whose findings tell. What broke the run off is a finding, too."""
    sweep = Sweep(first, second, bundle)
    try:
        sweep.run()
        sweep.seen = [sweep.hits(n) for n in range(sweep.starts)]
    except Exception as e:
        sweep.found("broke off", "%s: %s" % (type(e).__name__, e))
        sweep.seen = []
    finally:
        sweep.close()
    for f in sweep.findings:
        print("FINDING at %r, %r: %s: %s\n  kept: %s" % (first, second, f["kind"], f["text"][:1500], sweep.work), flush=True)
    return sweep


def choose(hits, points, chance):
    """All numbers of hits, or some: of each name at least one, the first and last ones of a name rather."""
    if points == "all":
        return list(range(1, len(hits) + 1))
    by_name = {}
    for n, name in enumerate(hits, 1):
        by_name.setdefault(name, []).append(n)
    chosen = [chance.choice(numbers) for numbers in by_name.values()]
    rest = [n for n in range(1, len(hits) + 1) if n not in chosen]
    return sorted(chosen + chance.sample(rest, max(0, min(len(rest), int(points) - len(chosen)))))


def sweep(points, pairs, seed, bundle=0):
    chance = random.Random(seed)
    plain = once(bundle=bundle)
    hits = plain.seen[0] if plain.seen else []
    names = {n: hits.count(n) for n in sorted(set(hits))}
    print("sweep: seed %d, %d hits: %s" % (seed, len(hits), names), flush=True)
    if not hits:
        return plain.findings + [{"kind": "no hits", "text": "the build has no failpoints"}]
    findings = list(plain.findings)
    died = pairs_died = 0
    recovering = []
    for n in choose(hits, points, chance):
        ran = once("%d:kill" % n, bundle=bundle)
        findings += ran.findings
        died += ran.ends
        if len(ran.seen) > 1:
            recovering.append((n, len(ran.seen[1])))
    for _ in range(pairs if recovering else 0):
        n, most = chance.choice(recovering)
        second = chance.randrange(1, min(most, 40) + 1)  # while it recovers, and soon after
        ran = once("%d:kill" % n, "%d:kill" % second, bundle)
        findings += ran.findings
        pairs_died += ran.ends == 2
    print("sweep: %d deaths, %d double deaths, %d findings" % (died, pairs_died, len(findings)), flush=True)
    return findings


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--points", default="all")
    p.add_argument("--pairs", type=int, default=100)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    p.add_argument("--bundle", type=int, default=0)
    args = p.parse_args()
    return 1 if sweep(args.points, args.pairs, args.seed, args.bundle) else 0


if __name__ == "__main__":
    sys.exit(main())
