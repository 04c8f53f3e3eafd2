"""The built-in agent of a daemon with models: it plans, answers in pieces, and every token of it is counted by phase."""
import json
import os
import threading
import unittest.mock

from harness import BatonTest, main, until
import mock_llm

CANARY = "sk-canary-4411/aa0b"

CONFIG = """
policy: {heartbeatMs: 300}
prices: [{agentId: "*", input: 3, output: 15}]
llm:
  providers: [{api: openai, baseUrl: "%s", model: m, keyEnv: BATON_TEST_KEY, allowHttp: true, backoffMs: 20, price: {input: 3, output: 15}}]
  capacity: 2
agents:
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
    capacity: 4
"""

TWO = {"description": "two sums", "estimatedTokens": 40, "steps": [
    {"stepId": "one", "agentId": "calc", "skill": "evaluate", "task": "add one and one", "parameters": {"expression": "1+1"}, "dependsOn": []},
    {"stepId": "two", "agentId": "calc", "skill": "evaluate", "task": "add two and two", "parameters": {"expression": "2+2"}, "dependsOn": ["one"]}]}
SUMMARY = "# Plan Execution Summary\n\n## Key Accomplishments\n- One and one are 2.\n- Two and two are 4.\n\n## Important Findings\n- None.\n\n## Recommended Next Steps\n1. None.\n"


class Orchestrator(BatonTest):
    def model(self, plans, answer=SUMMARY):
        """plans: what it says when it is asked for a plan, one after the other; the last one from then on."""
        plans, self.asked, lock = list(plans), [], threading.Lock()

        def brain(asked):
            with lock:
                self.asked.append(asked)
                if "stepId" in str(asked["body"].get("response_format", "")) or '"steps"' in asked["messages"][0]["content"][:4000]:
                    said = plans.pop(0) if len(plans) > 1 else plans[0]
                    return said if isinstance(said, str) else json.dumps(said)
                return answer
        mock = mock_llm.Mock(brain=brain)
        self.addCleanup(mock.close)
        with unittest.mock.patch.dict(os.environ, {"BATON_TEST_KEY": CANARY}):
            self.d = self.daemon(config=CONFIG.replace("%s", mock.url("ok")))

    def plan(self, **fields):
        plan_id = self.d.ask("plan.submit", goal="what are the sums?", planner="llm", **fields)["planId"]
        view = self.d.wait_plan(plan_id)
        self.assertEqual(view["status"], "completed", (view, self.d.log()))
        return plan_id, view, self.d.events(plan_id)

    def test_a_goal_is_planned_run_and_answered_by_the_model(self):
        self.model([TWO])
        plan_id, view, events = self.plan(policy={"synthesis": "llm"})
        types = [e["type"] for e in events]
        self.assertEqual(types[:3] + types[-2:], ["planning_started", "plan_generated", "plan_started", "synthesis_finished", "plan_completed"])
        self.assertEqual([s["result"] for s in view["steps"]], ["2", "4"])
        result = self.d.ask("plan.result", planId=plan_id)["aggregatedResult"]
        self.assertTrue(result.startswith("# Plan Execution Summary\n\n## Key Accomplishments\n- One and one are 2."), result)
        self.assertRegex(result, r"\*Plan completed in [0-9.]+ seconds across Calculator\.\*\n$")
        pieces = [e for e in events if e["type"] == "text_delta"]
        self.assertEqual("".join(e["text"] for e in pieces), result, "what was streamed is the whole answer")

    def test_every_token_is_counted_by_phase(self):
        self.model([TWO])
        plan_id, view, _ = self.plan(policy={"synthesis": "llm"})
        self.assertEqual([view.get("usage" + p, {}).get("inputTokens", 0) for p in ("Planning", "Execution", "Replanning", "Synthesis")], [12, 0, 0, 12])
        cost = self.d.ask("plan.cost", planId=plan_id)
        (one,) = cost["plans"]
        self.assertEqual((one["planningTokens"], one["synthesisTokens"], one["estimatedTokens"]), (17, 17, 40))
        micros = one["total"]["costMicros"]
        self.assertEqual((micros, round(one["totalCost"] * 1e6)), (view["usage"]["costMicros"], micros))
        self.assertGreater(micros, 2 * 5 * 15, "M111: what was said costs, too")
        self.assertEqual(cost["total"]["total"], one["total"])
        self.assertEqual(self.d.ask("plan.cost", sinceMs=1)["total"]["total"], one["total"], "errands are counted once, with their plan")
        self.assertEqual(self.d.ask("plan.cost", sessionId="other").get("plans", []), [])

    def test_a_budget_holds_for_planning(self):
        self.model([TWO])
        plan_id = self.d.ask("plan.submit", goal="what are the sums?", planner="llm", policy={"budget": {"tokens": 17}})["planId"]
        view = self.d.wait_plan(plan_id)
        self.assertEqual((view["status"], self.asked), ("failed", []), "no question that the budget cannot pay for")
        self.assertIn("does not pay", view["failureReason"])

    def test_a_cyclic_plan_is_sent_back_once(self):
        cyclic = {**TWO, "steps": [{**TWO["steps"][0], "dependsOn": ["two"]}, TWO["steps"][1]]}
        self.model(["Here it is:\n```json\n%s\n```\nEnjoy." % json.dumps(cyclic), TWO])
        _, _, events = self.plan()
        self.assertEqual([e["type"] for e in events][:3], ["planning_started", "planning_retry", "plan_generated"])
        self.assertIn("one -> two -> one", events[1]["text"])

    def test_the_key_is_nowhere_but_in_the_header(self):
        self.model([TWO])
        self.plan(policy={"synthesis": "llm"})
        for path in self.d.work.rglob("*"):
            if path.is_file():
                self.assertNotIn(CANARY.encode(), path.read_bytes(), path)
        for pid in [p for pids in self.d.agent_pids().values() for p in pids]:
            with open("/proc/%d/environ" % pid, "rb") as f:
                self.assertNotIn(CANARY.encode(), f.read(), "the agent wiped it, the others never had it")

    def test_the_command_line_plans_runs_and_prints_the_answer_once(self):
        self.model([TWO])
        out = self.d.cli("run", "what are the sums?", "--planner", "llm", "--synthesis", "llm")
        self.assertEqual(out.count("# Plan Execution Summary"), 1, out)
        document = json.loads(self.d.cli("plan", "what are the sums?", "--planner", "llm"))
        self.assertEqual([s["stepId"] for s in document["steps"]], ["one", "two"])
        (self.d.work / "plan.json").write_text(json.dumps(document))
        self.assertIn("add two and two", self.d.cli("run", "--plan", self.d.work / "plan.json"))


main()
