"""kill -9 of the daemon, the llm agent and the agents of the tools in the middle of a loop: a log of side effects that each tool
fsyncs has every call once, or as often as its step had attempts; an unsafe call whose outcome nobody knows asks a person."""
import collections
import json
import os
import random
import signal

from harness import main, until
from probe import step
from test_llm import Llm
from test_work import answer, call

MARK = """#!/usr/bin/env python3
import json, os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(fd, (json.dumps([time.time_ns(), os.environ["BATON_KEY"], int(os.environ["BATON_ATTEMPT"]), sys.argv[2]]) + "\\n").encode())
os.fsync(fd)
time.sleep(float(sys.argv[3]))
print("marked", sys.argv[2])
"""
CONFIG = """
policy: {heartbeatMs: 300}
agents:
  - agentId: llm
    command: ["${BATON_BIN}/baton-agent-llm"]
    capacity: 4
    settings: %s
  - agentId: one
    command: ["${BATON_BIN}/baton-agent-exec"]
    capacity: 4
    settings: %s
  - agentId: two
    command: ["${BATON_BIN}/baton-agent-exec"]
    capacity: 4
    settings: %s
"""
TURNS = 6


class Kills(Llm):
    def setUp(self):
        folder = self.directory()
        self.log = os.path.join(folder, "effects")
        script = os.path.join(folder, "mark.py")
        with open(os.open(script, os.O_CREAT | os.O_WRONLY, 0o700), "w") as f:
            f.write(MARK)
        commands = [{"id": id_, "argv": [script, self.log, "{n}", "{seconds}"], "description": "Leaves a mark.", "output": "text", "effects": effects}
                    for id_, effects in (("mark", "idempotent"), ("pay", "unsafe"))]
        self.tools = json.dumps({"commands": commands})

    def up(self, answers):
        settings = json.dumps({"providers": [self.model(chat=answers)]})
        self.d = self.daemon(config=CONFIG % (settings, self.tools, self.tools))

    def submit(self):
        self.plan = self.d.submit({"steps": [step("a", "llm", skill="work", task="leave the marks", maxRetries=9)], "grants": ["one", "two"],
                                   "policy": {"maxRetries": 9}})
        return self.plan

    def effects(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def scripted(self, asked):
        self.said = "\n".join(m["content"] for m in asked["messages"])
        n = self.said.count('"results":[{')
        if n == TURNS:
            return answer("all marks are there")
        return call(("one/mark", {"n": "%d-one" % n, "seconds": "0.2"}), ("two/mark", {"n": "%d-two" % n, "seconds": "0.05"}))

    def kill(self, what):
        if what == "daemon":
            self.d.kill9()
            self.d.start(agents=False)
            return
        for pid in self.d.agent_pids()[what]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def attempts(self, plans):
        """{(planId, stepId): attempts} of the calls' steps."""
        return {(plan, s["stepId"]): s["attempts"] for plan in plans for s in self.d.ask("plan.get", planId=plan)["steps"]}

    def test_no_call_is_repeated_whatever_is_killed(self):
        seed = int(os.environ.get("BATON_SEED", "7"))
        rng = random.Random(seed)
        self.up(self.scripted)
        self.submit()
        victims = ["daemon", "llm", "one", "two"] * 2
        rng.shuffle(victims)
        told = "seed %d, killed %s" % (seed, victims)
        for i, what in enumerate(victims):
            marks = 1 + i * (2 * TURNS - 2) // len(victims)
            until(lambda: len(self.effects()) >= marks or self.ended(), 30, "%d marks; %s\n%s" % (marks, told, self.d.log()))
            self.kill(what)
            if what != "daemon":
                until(lambda: self.d.agent_pids().get(what), 20, what + " is back")
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], self.d.ask("plan.result", planId=self.plan)["aggregatedResult"]), ("completed", "all marks are there"), told)
        done = self.effects()
        # Every call was made, each under a key of its own, and never again once its answer was known.
        self.assertEqual({n for _, _, _, n in done}, {"%d-%s" % (t, w) for t in range(TURNS) for w in ("one", "two")}, (told, self.said[-4000:]))
        keys = collections.defaultdict(set)
        for _, key, _, n in done:
            keys[n].add(key)
        self.assertTrue(all(len(k) == 1 for k in keys.values()), (told, keys))
        attempts = self.attempts({key.split("/")[0] for _, key, _, _ in done})
        for (key, attempt), times in collections.Counter((key, attempt) for _, key, attempt, _ in done).items():
            self.assertEqual(times, 1, "%s: attempt %d of %s ran %d times" % (told, attempt, key, times))
        for key, times in collections.Counter(key for _, key, _, _ in done).items():
            plan, _, step_id = key.split("/")
            self.assertLessEqual(times, attempts[plan, step_id], (told, key))
        again = sum(n - 1 for n in attempts.values())
        self.assertLessEqual(again, victims.count("one") + victims.count("two"), "only a call whose own agent died may have a second attempt: " + told)
        self.assertEqual([e["calls"] for e in self.event("calls_started")], [2] * TURNS)

    def ended(self):
        return self.d.ask("plan.get", planId=self.plan)["status"] not in ("pending", "running", "waiting")

    def pays(self, asked):
        said = "\n".join(m["content"] for m in asked["messages"])
        self.said = said
        return answer("over") if '"results":[{' in said else call(("one/pay", {"n": "pay", "seconds": "0.7"}))

    def test_an_unsafe_call_goes_on_over_a_kill_of_the_daemon(self):
        self.up(self.pays)
        self.submit()
        until(self.effects, 20, "the payment")
        self.kill("daemon")
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.assertEqual(len(self.effects()), 1)
        self.assertIn('"status":"completed"', self.said)

    def test_an_unsafe_call_whose_agent_is_killed_asks_a_person_and_the_model_gets_the_decision(self):
        for decision, marks, status in (("skip", 1, '"status":"skipped"'), ("approve", 2, '"status":"completed"')):
            with self.subTest(decision):
                if decision == "skip":
                    self.up(self.pays)
                if os.path.exists(self.log):
                    os.unlink(self.log)
                self.submit()
                until(self.effects, 20, "the payment")
                self.kill("one")
                review = until(lambda: self.d.ask("review.list")["reviews"], 20, "a person is asked")[0]
                self.assertEqual((review["kind"], len(self.effects())), ("unknown_outcome", 1))
                self.kill("daemon")  # the question survives
                self.assertEqual([r["reviewId"] for r in self.d.ask("review.list")["reviews"]], [review["reviewId"]])
                self.d.wait_agents()
                self.d.ask("review.decide", reviewId=review["reviewId"], decision=decision, comment="it is in the ledger")
                self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
                self.assertEqual(len(self.effects()), marks)
                self.assertIn(status, self.said)


if __name__ == "__main__":
    main()
