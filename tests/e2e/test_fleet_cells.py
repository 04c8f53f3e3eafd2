"""The fault matrix of a fleet: a leader is killed, stopped or cut off from its host at each failpoint of its cycle, of a recovery and of
a take-over. BATON_CELLS: "all", so many of them at random (6), or those: "kept@20:cut,take@1:kill"; BATON_SEED."""
import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time
import unittest
import unittest.mock

import event_order
import hosts
import test_fleet
from harness import BIN, HERE, BatonTest, main, sanitized, until
from test_fleet import echo
from test_fleet_apart import SERVER, WHY_NOT

LEASE = 1.0
GRACE = 1 + 14  # a second on a quiet machine; with sanitizers, on a busy one, more
# In the order of a cycle. turn_half: half a turn is sent. kept: after the look at the lease. The last three are of a start.
CYCLE = ("arrive", "timer", "commit", "turn_half", "committed", "kept", "performed")
START = ("take", "taken", "recover")
FAULTS = ("kill", "stop", "cut")
COUNTS = {"take": (1, 2), "taken": (1, 2), "recover": (1, 3), "timer": (1, 6)}  # which hit of the point; of others 5 to 39


def setUpModule():
    test_fleet.setUpModule()
    if WHY_NOT:
        raise unittest.SkipTest("SKIPPED: " + WHY_NOT)
    if not sanitized():
        raise unittest.SkipTest("SKIPPED: this build has no failpoints (preset dev has)")


def is_stopped(process):
    try:
        with open("/proc/%d/stat" % process.pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return False


class Load(threading.Thread):
    """A client that repeats: each plan until it is accepted, by whoever leads. `accepted`: key -> id and document."""

    def __init__(self, cells, name):
        super().__init__(daemon=True)
        self.cells, self.prefix, self.accepted, self.wrong, self.ends = cells, name, {}, [], threading.Event()
        self.start()

    def plan(self, key, n):
        if n % 4 == 2:  # the only timer that is sure to come while everything goes well
            return {"steps": [{"stepId": "later", "wait": {"forMs": 500}}]}
        if n % 4 != 0:
            return echo(key)
        return {"steps": [{"id": "once", "agentId": "exec", "skill": "wait", "task": "Wait, and only once",
                           "parameters": {"name": key, "seconds": "1"}},
                          {"id": "then", "agentId": "exec", "skill": "echo", "task": "Say it", "dependsOn": ["once"], "parameters": {"text": key}}]}

    def run(self):
        n = 0
        while not self.ends.is_set():
            key = "%s.%d" % (self.prefix, n)
            plan = self.plan(key, n)
            try:
                answer = self.cells.ask(self.cells.leader, "plan.submit", 2, plan=plan, clientKey=key)
            except (OSError, EOFError, ValueError, KeyError):
                time.sleep(0.02)
                continue
            if answer["ok"]:
                self.accepted[key] = (answer["planId"], plan)
                n += 1
                self.read()
                time.sleep(0.1)  # what is accepted has to be run, and is asked for at the end
            elif answer["error"]["code"] in ("UNAVAILABLE", "BUSY") or "Unknown agent" in answer["error"]["message"]:  # not there yet
                time.sleep(0.02)
            else:
                self.wrong.append(answer)
                return

    def read(self):
        """What is published has its number for ever."""
        known = self.cells.known
        with contextlib.suppress(OSError, EOFError, ValueError, KeyError):
            answer = self.cells.ask(self.cells.leader, "events.read", 2, fromSeq=len(known) + 1, limit=1000)
            for e in answer.get("events", ()):
                known[e["seq"]] = e["eventId"]

    def end(self):
        self.ends.set()
        self.join(70)


class Cells(test_fleet.Elsewhere, BatonTest):
    """The first node is on the other host, the second one, the server, the agent and this test are on this one."""

    def setUp(self):
        self.other = hosts.Other()
        self.addCleanup(self.other.end)
        self.other.line("up")
        subprocess.run(["ip", "addr", "add", SERVER + "/32", "dev", "lo"], capture_output=True)
        self.other.run("ip", "route", "add", SERVER, "via", hosts.HERE)
        self.known, self.accepted, self.took = {}, {}, []

    def begin(self):
        """The second node leads, and the first one is down."""
        def config(method):
            def configured(d, *args, **kwargs):
                d.config.write_text(d.config.read_text().replace("fleet: {", "fleet: {leaseMs: %d, " % (LEASE * 1000)).replace(
                    "listen: {", "policy: {heartbeatMs: 300, leaseMs: 3000}\nlisten: {", 1))
                return method(d, *args, **kwargs)
            return configured
        with unittest.mock.patch.object(test_fleet.Node, "start", config(test_fleet.Node.start)), \
                unittest.mock.patch.object(test_fleet.Node, "wait_beside", config(test_fleet.Node.wait_beside)):
            self.server, self.one, self.two = self.elsewhere((hosts.THERE, hosts.HERE), (self.other.inside(), ()), SERVER)
        self.leader = self.two
        self.one.kill9()
        self.two.wait_to_lead()
        commands = [{"id": "wait", "argv": [str(HERE / "slow.sh"), str(self.one.work / "executions"), "{name}", "{seconds}"],
                     "description": "Takes a while.", "output": "text", "effects": "unsafe"},
                    {"id": "echo", "argv": ["echo", "{text}"], "description": "Says a text.", "output": "text", "effects": "idempotent"}]
        self.agent(self.one, [BIN / "baton-agent-exec", "--capacity", "8"], "exec", {"commands": commands})
        self.open = [self.must(self.two, "plan.submit", plan={"steps": [{"stepId": "h", "type": "human_review", "task": "Is it right?"}]})["planId"]
                     for _ in range(2)]  # there is always something to recover

    def ask(self, d, type_, timeout=15.0, **fields):
        with self.other.sockets() if d is self.one else contextlib.nullcontext():
            return d.ask_raw(type_, timeout, **fields)

    def must(self, d, type_, **fields):
        """What a leader that is not disturbed answers, in the end."""
        found = []

        def answered():
            with contextlib.suppress(OSError, EOFError, ValueError):
                answer = self.ask(d, type_, **fields)
                if answer["ok"]:
                    found.append(answer)
                elif answer["error"]["code"] != "UNAVAILABLE":
                    raise AssertionError("%s %s: %s" % (type_, fields, answer["error"]))
            return found
        until(answered, 20, "an answer to %s\n%s" % (type_, d.log()))
        return found[0]

    def logs(self):
        return "\n".join("%s:\n%s" % (name, text[-4000:]) for name, text in (
            ("one", self.one.log()), ("two", self.two.log()), ("the agent", (self.one.work / "exec.log").read_text())))

    @staticmethod
    def stood_by(d):
        return (d.work / "batond.log").read_text().count("supervisor.standby")  # log() is the end of it

    def beside(self, d, point=""):
        """Starts it as a standby, which stops at the point. A machine that stands still for a lease makes it lead instead: then once more."""
        other = self.two if d is self.one else self.one
        for _ in range(5):
            d.env["BATON_FAILPOINT"] = point
            before = self.stood_by(d)
            with open(d.work / "batond.log", "ab") as log:
                d.process = d.popen(log)
            until(lambda before=before: self.stood_by(d) > before or d.leads() or is_stopped(d.process), 20, lambda: "it waits\n" + self.logs())
            if self.stood_by(d) > before:
                return
            d.kill9()
            until(lambda: other.leads() or other.process.poll() is not None, 20, lambda: "the other one leads, or has ended\n" + self.logs())
            if other.process.poll() is not None:
                self.assertEqual(other.process.returncode, 75, self.logs())
                with open(other.work / "batond.log", "ab") as log:
                    other.process = other.popen(log)
                other.wait_to_lead()
        self.fail("the other one loses its lease again and again\n" + self.logs())

    def cell(self, point, count, fault):
        """The first node takes over from the second one, comes to the point there or as it leads, and is lost; the second one waits beside it,
        and leads again."""
        what, one, two = "%s@%d:%s" % (point, count, fault), self.one, self.two
        self.beside(one, "%s@%d:%s" % (point, count, "error" if point == "turn_half" else "stop"))
        load = Load(self, "%s.%d" % (what, len(self.took)))
        until(lambda: len(load.accepted) > 2 or load.wrong, 30, lambda: "plans are accepted before %s\n%s" % (what, self.logs()))
        two.kill9()
        self.leader = one
        if point not in START:
            until(lambda: one.leads() or is_stopped(one.process), 20, lambda: "the first one leads\n" + self.logs())
            self.beside(two)
        until(lambda: is_stopped(one.process) or load.wrong, 40, lambda: "it comes to %s\n%s" % (what, self.logs()))
        self.assertEqual(load.wrong, [])
        if point in START:
            with open(two.work / "batond.log", "ab") as log:  # it may lead at once
                two.process = two.popen(log)
        lost, had = time.monotonic(), len(load.accepted)
        self.lose(fault)
        until(two.leads, 30, lambda: "the second one leads\n" + self.logs())
        took = time.monotonic() - lost
        self.took.append((what, took))
        if point not in START:  # there it had to be started
            self.assertLess(took, LEASE + GRACE, what)
        self.leader = two
        self.come_back(what, point, fault)
        until(lambda: len(load.accepted) > had + 2 or load.wrong, 30, lambda: "plans are accepted after %s\n%s" % (what, self.logs()))
        load.end()
        self.assertEqual(load.wrong, [])
        self.accepted.update(load.accepted)

    def lose(self, fault):
        if fault == "kill":
            self.one.process.kill()
        elif fault == "cut":
            self.other.line("down")
            self.one.process.send_signal(signal.SIGCONT)

    def come_back(self, what, point, fault):
        """It was killed, or it ends with 75: nothing else. Who had not begun to lead has nothing to lose, and waits on."""
        if fault == "stop":
            self.one.process.send_signal(signal.SIGCONT)
        elif fault == "cut":
            self.other.line("up")
        if point in ("take", "taken") and fault != "kill":
            time.sleep(LEASE)
            self.assertFalse(self.one.leads(), self.one.log())
            self.one.kill9()
            return
        until(lambda: self.one.process.poll() is not None, 15, lambda: "it ends after %s\n%s" % (what, self.logs()))
        self.assertEqual(self.one.process.returncode, -signal.SIGKILL if fault == "kill" else 75, "%s\n%s" % (what, self.one.log()))

    def check(self, d):
        """The oracle."""
        for key, (plan, document) in self.accepted.items():  # acknowledged: stored, once, and it goes on
            self.assertEqual(self.must(d, "plan.submit", plan=document, clientKey=key)["planId"], plan)
        attempts = {}
        for key, (plan, _) in self.accepted.items():
            view = until(lambda plan=plan: self.ended(d, plan), 60, "plan %s of %s ends\n%s" % (plan, key, d.log()))
            self.assertEqual(view["status"], "completed", (key, view))
            for s in view["steps"]:
                if s["stepId"] == "once":
                    attempts[key] = s["attempts"]
        ran = self.one.executions()
        for key, n in attempts.items():
            self.assertTrue(1 <= ran.count(key) <= n, "%s ran %d times in %d attempts" % (key, ran.count(key), n))
            self.assertEqual(ran.count(key), 1, "an unsafe step whose agent lives")
        self.history(d)

    def ended(self, d, plan):
        view = self.must(d, "plan.get", planId=plan)
        if view["status"] in ("completed", "failed", "cancelled", "quarantined"):
            return view
        for review in self.must(d, "review.list")["reviews"]:
            if review["planId"] not in self.open:
                told = self.must(d, "events.read", planId=review["planId"], fromSeq=1, limit=100)["events"]
                self.fail("an unsafe step asks for a decision although its agent lives: %s\n%s\n%s" % (
                    review, "\n".join(map(json.dumps, told)), self.logs()))
        return None

    def history(self, d):
        """No gap in seq, none in a plan's, and no number that once was another event's."""
        found, seq = [], 1
        while True:
            page = self.must(d, "events.read", fromSeq=seq, limit=1000)
            found += page["events"]
            if page["nextSeq"] > page["lastSeq"]:
                break
            seq = page["nextSeq"]
        self.assertEqual([e["seq"] for e in found], list(range(1, len(found) + 1)))
        for e in found:
            self.assertEqual(self.known.setdefault(e["seq"], e["eventId"]), e["eventId"])
        plans = {}
        for e in found:
            if e.get("planId"):
                plans.setdefault(e["planId"], []).append(e)
        for events in plans.values():
            event_order.check(events, None)

    def test_a_leader_that_is_lost_at_any_failpoint(self):
        chosen, seed = os.environ.get("BATON_CELLS", "6"), os.environ.get("BATON_SEED") or str(random.randrange(1 << 32))
        rng = random.Random(seed)
        if "@" in chosen:
            cells = [(c.split("@")[0], int(c.split("@")[1].split(":")[0]), c.split(":")[1]) for c in chosen.split(",")]
        else:
            cells = [(p, rng.randrange(*COUNTS.get(p, (5, 40))), f) for p in CYCLE + START for f in FAULTS]
            rng.shuffle(cells)
            cells = cells[:None if chosen == "all" else int(chosen)]
        print("seed %s, cells: %s" % (seed, ",".join("%s@%d:%s" % c for c in cells)), flush=True)
        self.begin()
        for cell in cells:
            self.cell(*cell)
        self.check(self.two)
        print("%d plans accepted; seconds until the other one leads, with a lease of %g s: %s" % (
            len(self.accepted), LEASE, ", ".join("%s %.2f" % t for t in self.took)), flush=True)


if __name__ == "__main__":
    main()
