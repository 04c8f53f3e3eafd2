"""Bundles: an agent written from the page alone, connections that end beneath it, and deaths with many steps out."""
import collections
import json
import os
import signal
import struct
import unittest

from harness import BatonTest, until
from probe import HANG_UP, Probe, step, wait_up

PIPES = 4


def unpack(frame):
    """[(tag, body)] of a bundle (WIRE.md)."""
    mark, version, count = struct.unpack(">BBH", frame[:4])
    assert (mark, version) == (0xC1, 1)
    at, items = 4, []
    for _ in range(count):
        length, tag = struct.unpack(">IQ", frame[at:at + 12])
        items.append((tag, json.loads(frame[at + 12:at + 12 + length])))
        at += 12 + length
    assert at == len(frame)
    return items


def pack(items):
    return struct.pack(">BBH", 0xC1, 1, len(items)) + b"".join(struct.pack(">IQ", len(body), tag) + body for tag, body in items)


class Bundler(Probe):
    """Keeps what it is asked until the test says `finish`."""

    def __init__(self, daemon, **more):
        self.kept, self.out, self.ready, self.results, self.sizes = [], {}, [], [], []
        super().__init__(daemon, query=self.tell, **more)

    def register(self):
        self.registration["bundle"] = 256
        ok = super().register()
        assert ok["pipes"] == PIPES, ok
        return ok

    def tell(self, request):
        """step.query: what it works on runs; what is done, is told with its result."""
        for _, step_request in self.out.values():
            if step_request["key"] == request["key"]:
                return {"key": request["key"], "state": "running"}
        return {"key": request["key"], "state": "unknown"}

    def serve(self):
        while not self.stopping.is_set():
            try:
                body, reply = self.rep.next()
            except TimeoutError:
                self.flush()
                continue
            if body[:1] == b"\xc1":
                items = unpack(body)
                self.sizes.append(len(items))
                self.kept.append((self.rep.last, reply))
                for tag, request in items:
                    self.requests.append(request)
                    self.out[request["stepId"]] = (tag, request)
            else:
                request = json.loads(body)
                self.requests.append(request)
                answer = self.answer(request)
                if answer is not None and answer is not HANG_UP:
                    reply(answer if isinstance(answer, bytes) else json.dumps(answer).encode())
            self.flush()

    def flush(self):
        ready, self.ready = self.ready, []
        for name in ready:
            tag, r = self.out.pop(name)
            said = {"v": 1, "id": r["id"], "ok": True, "type": "step.result", "key": r["key"], "attempt": r["attempt"],
                    "epoch": r["epoch"], "outcome": "completed", "result": {"text": "done " + name}}
            self.results.append((tag, json.dumps(said).encode()))
        while self.kept and self.results:
            _, reply = self.kept.pop(0)
            items, self.results = self.results, []
            try:
                reply(pack(items))
            except OSError:
                self.results = items  # that connection has ended
        while len(self.kept) >= PIPES:
            self.kept.pop(0)[1](pack([]))

    def finish(self, *names):
        self.ready += names


class OfThePage(BatonTest):
    def setUp(self):
        self.d = self.daemon(agents=False, config="agents: []\n")
        self.p = Bundler(self.d, capacity=8)
        self.addCleanup(self.p.close)
        wait_up(self.d)

    def submit(self, names, **more):
        return self.d.submit({"steps": [step(n, dependsOn=[], **more) for n in names], "policy": {"maxConcurrency": 64, "maxRetries": 0}})

    def test_steps_come_together_and_results_go_in_any_order_over_any_connection(self):
        plan = self.submit("abcdefgh")
        until(lambda: len(self.p.out) == 8, 10, "all steps are out")
        self.assertGreaterEqual(max(self.p.sizes), 2, "several came in one message: %s" % self.p.sizes)
        for names in ("h", "ce", "a", "bdfg"):
            self.p.finish(*names)
            until(lambda n=names: all(n[0] not in self.p.out for n in n), 10, "answered")
        view = self.d.wait_plan(plan)
        self.assertEqual([s["result"] for s in view["steps"]], ["done " + n for n in "abcdefgh"])
        self.assertEqual(collections.Counter(r["stepId"] for r in self.p.of("step.execute")), collections.Counter("abcdefgh"))

    def test_connection_that_ends_alone_repeats_no_step_and_loses_no_result(self):
        plan = self.submit("abcdefgh")
        until(lambda: len(self.p.out) == 8, 10, "all steps are out")
        self.p.finish("a")
        until(lambda: "a" not in self.p.out, 10, "one is answered")
        until(lambda: self.p.kept, 10, "a request is kept again")
        pipe = self.p.kept[0][0]
        self.p.rep.selector.unregister(pipe.sock)
        pipe.close()
        until(lambda: len(self.p.of("step.query")) >= 7, 10, "the supervisor asks for what is out")
        self.p.finish(*"bcdefgh")
        view = self.d.wait_plan(plan)
        self.assertEqual(view["status"], "completed", self.d.log())
        self.assertEqual(collections.Counter(r["stepId"] for r in self.p.of("step.execute")), collections.Counter("abcdefgh"))


class Deaths(BatonTest):
    STEPS = ["s%d" % i for i in range(60)]

    def start(self, skill="wait"):
        d = self.daemon(config="""
agents:
  - agentId: exec
    command: ["${BATON_BIN}/baton-agent-exec"]
    capacity: 16
    settings:
      commands:
        - {id: wait, argv: ["%(here)s/slow.sh", "%(work)s/executions", "{name}", "0.2"], description: Waits., output: text, effects: idempotent}
        - {id: wait-unsafe, argv: ["%(here)s/slow.sh", "%(work)s/executions", "{name}", "0.2"], description: Waits., output: text, effects: unsafe}
""")
        plan = d.submit({"steps": [{"stepId": n, "agentId": "exec", "skill": skill, "task": "wait", "parameters": {"name": n}, "dependsOn": []}
                                   for n in self.STEPS],
                         "policy": {"maxConcurrency": 64, "maxRetries": 20, "backoff": {"initialMs": 10}}})
        until(lambda: len(d.executions()) >= 16, 10, "as many as it has places")
        return d, plan

    def test_agent_killed_with_many_steps_out_three_times_and_each_ends_once(self):
        d, plan = self.start()
        killed = set()
        for _ in range(3):
            before = len(d.executions())
            new = until(lambda: set(d.agent_pids().get("exec", [])) - killed, 10, "a process is there")
            os.kill(min(new), signal.SIGKILL)
            killed |= new
            until(lambda b=before: len(d.executions()) >= b + 4, 10, "it goes on")
        view = d.wait_plan(plan)
        self.assertEqual(view["status"], "completed", d.log())
        self.assertEqual([s["result"].strip() for s in view["steps"]], ["done " + n for n in self.STEPS])
        ends = collections.Counter(e["stepId"] for e in d.events(plan) if e["type"] == "plan_step_completed")
        self.assertEqual(set(ends.values()), {1})

    def test_daemon_killed_with_many_steps_out_repeats_none_of_them(self):
        d, plan = self.start("wait-unsafe")
        for _ in range(2):
            d.kill9()
            d.start()
        view = d.wait_plan(plan)
        self.assertEqual(view["status"], "completed", d.log())
        self.assertEqual(collections.Counter(d.executions()), collections.Counter(self.STEPS), "each ran once")


if __name__ == "__main__":
    unittest.main()
