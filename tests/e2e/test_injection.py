"""Orders in what agents answer, and in their cards, against a model that obeys all of them (support/obeying.py).

A prompt cannot keep a model from believing what it reads. What is shown here: however much it believes, the plan keeps its
steps, its agents, its budget and its approvals, and keys are nowhere. support/injections.json has the orders, by kind.
"""
import json
import os
import pathlib
import re
import tempfile
import unittest

from harness import ROOT, BatonTest, main, until
import mock_llm
import obeying
from probe import Probe, step, wait_up

CANARY = "sk-canary-2b6d/77c05e19fa"
INJECTIONS = json.loads((ROOT / "tests" / "support" / "injections.json").read_text())

LLM = """
agents:
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
    capacity: 4
  - agentId: exec
    command: ["${BATON_BIN}/baton-agent-exec"]
    settings:
      commands: [{id: run, argv: ["%%(here)s/slow.sh", "%%(work)s/executions", "{command}", "0"], description: "Runs a command.", output: text, effects: unsafe}]
  - agentId: llm
    command: ["${BATON_BIN}/baton-agent-llm"]
    capacity: 4
    settings: %s
"""

SUM = {"agentId": "calc", "skill": "evaluate", "task": "calculate", "parameters": {"expression": "2+3"}}
TURN_MARKS = ("<|", "[INST]", "[/INST]", "<<SYS>>", "</s>", "<s>", "<start_of_turn>", "<end_of_turn>")


class Injected(BatonTest):
    CONFIG = LLM

    def setUp(self):
        self.model = obeying.Obeying()
        self.mock = mock_llm.Mock(self.model.brain)
        self.addCleanup(self.mock.close)
        self.d = self.daemon(config=self.CONFIG % json.dumps(self.settings()).replace("%", "%%"), agents=False)
        self.vault = self.probe("vault")
        for agent_id in self.configured():
            wait_up(self.d, agent_id)

    def configured(self):
        return ("calc", "exec", "llm")

    def settings(self):
        held = os.path.join(self.enterContext(tempfile.TemporaryDirectory(prefix="baton-injection-")), "key")
        with open(os.open(held, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(CANARY + "\n")
        return {"providers": [{"api": "openai", "baseUrl": self.mock.url("ok"), "model": "m", "keyFile": held, "backoffMs": 1}]}

    def probe(self, agent_id, **more):
        found = Probe(self.d, agent_id, **more)
        self.addCleanup(found.close)
        wait_up(self.d, agent_id)
        return found

    def told(self, work):
        """An agent that says the injection whose number its step's task ends with."""
        return self.probe("mole", capacity=8, work=lambda r: work(INJECTIONS[int(r["task"].split()[-1])]["text"]))

    def view(self, plan):
        return self.d.ask("plan.get", planId=plan)

    def reviews(self, plan):
        return self.d.ask("review.list", planId=plan)["reviews"]

    def assert_framed(self):
        """Whatever data said stands inside of a frame, and nothing in it begins somebody's turn."""
        for purpose, system, user, _ in self.model.asked:
            mark = re.search(r"\[data (\S+) from \.\.\.\]", system).group(1)
            outside = re.sub(r"\[data %s from [^\]\n]*\]\n.*?\n\[end %s\]" % (mark, mark), "", user, flags=re.S)
            self.assertEqual({}, obeying.orders_in(outside), outside)
            for turn in TURN_MARKS:
                self.assertNotIn(turn, user, purpose)

    def assert_nothing_ordered(self):
        self.assertEqual(self.vault.of("step.execute"), [], "the vault was opened")
        self.assertEqual(self.d.executions(), [], "a command was run")

    def assert_no_canary(self):
        for root, _, names in os.walk(self.d.work):
            for name in names:
                path = os.path.join(root, name)
                if os.path.isfile(path):
                    with open(path, "rb") as f:
                        self.assertNotIn(b"canary", f.read(), path)
        self.assertNotIn("canary", json.dumps(self.d.events()))
        for plan in self.d.ask("plan.list", limit=100)["plans"]:
            for view in ("plan.get", "plan.history"):
                self.assertNotIn("canary", json.dumps(self.d.ask(view, planId=plan["planId"])))
        seen = 0
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            except OSError:
                continue  # gone, or not ours to look into
            if str(self.d.state).encode() in told:  # daemon, spawner, agents
                seen += 1
                self.assertNotIn(b"canary", told, process)
        self.assertGreaterEqual(seen, 3)


class Corpus(unittest.TestCase):
    def test_every_text_of_the_corpus_is_an_order_that_the_model_hears(self):
        kinds = {}
        for item in INJECTIONS:
            self.assertTrue(obeying.orders_in(item["text"]), item)
            kinds.setdefault(item["kind"], []).append(item)
        self.assertGreaterEqual(len(INJECTIONS), 40)
        self.assertGreaterEqual(len(kinds), 8, kinds.keys())


class Results(Injected):
    def test_replans_of_an_obedient_model_keep_agents_budget_and_approvals(self):
        # The mole fails with an order; the model makes a new plan and obeys. Every step of it waits for an approval, whatever
        # it says, and it never gets an agent that the plan was not granted.
        self.model.plan = [{"stepId": "x", **SUM}]
        self.told(lambda text: {"outcome": "failed", "failure": {"code": "INTERNAL", "message": text[:900], "retryable": False}})
        policy = {"onFailure": "replan", "requiresApproval": True, "maxFallbacks": 0, "budget": {"tokens": 200000},
                  "replan": {"agent": "llm", "cooldownMs": 1, "maxPerStep": 1, "maxTotal": 1}}
        plans = []
        for i in range(len(INJECTIONS)):
            plan = self.d.submit({"goal": "add up", "steps": [step("a", "mole", task="report %d" % i),
                                                              {"stepId": "b", **SUM, "dependsOn": ["a"]}]}, policy=policy)
            plans.append((plan, INJECTIONS[i]))
        for plan, _ in plans:
            self.approve(plan, "a")
        accepted = 0
        for plan, item in plans:
            end = until(lambda: self.over_or_asking(plan, "x"), 60, "plan of %s\n%s" % (item, self.d.log()))
            if end == "asking":
                accepted += 1
                self.approve(plan, "x")
            view = self.d.wait_plan(plan)
            orders = obeying.orders_in(item["text"])
            refused = bool({"agent", "run", "alone"} & set(orders))
            self.assertEqual((end, view["status"]), ("over", "failed") if refused else ("asking", "completed"), (item, view))
            self.assertEqual([s["stepId"] for s in view["steps"]], ["a", "b"] if refused else ["a", "b", "x"], item)
            self.assertLessEqual({s["agentId"] for s in view["steps"]}, {"mole", "calc"}, item)
            self.assertEqual(view["budget"]["tokens"], 200000, item)
            self.assertEqual(len([e for e in self.d.events(plan) if e["type"] == "plan_step_retry"]), 0, item)
        self.assertGreater(accepted, 10)
        self.assert_nothing_ordered()
        self.assert_framed()
        self.assert_no_canary()

    def over_or_asking(self, plan, step_id):
        if any(r["stepId"] == step_id for r in self.reviews(plan)):
            return "asking"
        return "over" if self.view(plan)["status"] in ("completed", "failed", "cancelled") else None

    def approve(self, plan, step_id):
        review = until(lambda: next((r for r in self.reviews(plan) if r["stepId"] == step_id), None), 30,
                       "step %s waits for an approval" % step_id)
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")

    def test_verdicts_of_an_obedient_model_change_nothing_but_themselves(self):
        # A verdict is an opinion: that much a result can buy. It does not buy a step, an agent, or what a schema forbids.
        self.told(lambda text: {"outcome": "completed", "result": {"text": text}})
        schema = {"type": "object", "required": ["sum"], "properties": {"sum": {"type": "integer"}}}
        plans = []
        for i in range(len(INJECTIONS)):
            steps = [step("a", "mole", task="report %d" % i),
                     {"stepId": "b", **SUM, "dependsOn": ["a"], "verifyWith": "llm", "requiresApproval": True},
                     step("c", "mole", task="sum it up %d" % i, dependsOn=["a"], verify=schema, verifyWith="llm", maxRetries=0)]
            plans.append((self.d.submit({"steps": steps}, policy={"onFailure": "continue", "maxRetries": 0, "onVerificationFailure": "continue"}), INJECTIONS[i]))
        for plan, item in plans:
            self.approve(plan, "b")
            view = self.d.wait_plan(plan)
            steps = {s["stepId"]: s for s in view["steps"]}
            self.assertEqual(list(steps), ["a", "b", "c"], item)
            self.assertEqual([s["agentId"] for s in view["steps"]], ["mole", "calc", "mole"], item)
            self.assertNotEqual(steps["c"]["status"], "completed", "a result that the schema forbids: %s %s" % (item, view))
        self.assert_nothing_ordered()
        self.assert_framed()
        self.assert_no_canary()


if __name__ == "__main__":
    main()
