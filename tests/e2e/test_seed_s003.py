#!/usr/bin/env python3
"""The examples of the seed S003 (PtcRunner.PlanExecutor): run/2 and execute/3 with its options, events and results."""
import unittest

from harness import main, until
from seed import Seed

MISSION = "Research AAPL stock price"
OPTIONS = {"max_replan_attempts": 3, "max_total_replans": 5, "replan_cooldown_ms": 20, "quality_gate": False}
PRICE = {"price": 189.5, "change": -0.4}
# available_tools: "search" => "Search the web. Input: query. Output: list of results",
#                  "fetch_price" => "Get stock price. Input: symbol. Output: {price, change}"
PLAN = {"tasks": [
    {"id": "news", "agent": "researcher", "tool": "search", "input": "Search the web for AAPL", "args": {"query": "AAPL"}, "depends_on": []},
    {"id": "price", "agent": "researcher", "tool": "fetch_price", "input": "Get the stock price of AAPL", "args": {"symbol": "AAPL"},
     "depends_on": ["news"], "signature": "{price :float, change :float}", "on_verification_failure": "replan"}]}
# The same in the words of its types: task_id, verification.
GIVEN = {"mission": MISSION, "tasks": [
    {"task_id": "price", "agent": "researcher", "tool": "fetch_price", "description": "Get the stock price of AAPL", "args": {"symbol": "AAPL"},
     "signature": "(symbol :string) -> {price :float, change :float}", "verification": {"required": ["price"]}, "on_failure": "stop",
     "on_verification_failure": "replan", "critical": True, "max_retries": 1}]}


class S003(Seed):
    vocabulary = "ptc-runner"

    def researcher(self, *prices):
        left = list(prices)
        return self.agent("researcher", search=lambda r: ["AAPL rises"], fetch_price=lambda r: left.pop(0) if len(left) > 1 else left[0])

    def run2(self, plans, policy=OPTIONS):
        left = list(plans)
        self.agent("meta", plan=lambda r: left.pop(0))
        self.plan = self.d.ask("plan.submit", goal=MISSION, planner="agent:meta", policy={**policy, "replan": {"agentId": "meta"}})["planId"]
        return self.d.wait_plan(self.plan)

    def types(self):
        return [e["type"] for e in self.told()]

    def test_run_generates_a_plan_and_executes_it(self):
        self.researcher(PRICE)
        view = self.run2([PLAN])
        self.assertEqual(view["status"], "completed")
        self.assertEqual(self.types(), ["planning_started", "planning_finished", "execution_started", "task_started", "task_succeeded", "task_started",
                                        "task_succeeded", "execution_finished"])
        said = {e["type"]: e["payload"] for e in self.told()}
        self.assertEqual((said["planning_started"]["mission"], said["planning_finished"]["task_count"]), (MISSION, 2))
        self.assertEqual((said["execution_started"]["mission"], said["execution_started"]["task_count"]), (MISSION, 2))
        self.assertEqual(said["execution_finished"]["status"], "ok")

    def test_a_failed_verification_is_replanned_and_completed_results_are_kept(self):
        agent = self.researcher({"price": "unknown"}, PRICE)
        repair = {"tasks": [{**PLAN["tasks"][1], "id": "price_again", "input": "Get the price from another place", "depends_on": ["news"]}],
                  "reuse": ["news"]}
        view = self.run2([PLAN, repair], {**OPTIONS, "maxRetries": 0})
        self.assertEqual(view["status"], "completed", view)
        said = self.told()
        self.assertEqual([e["type"] for e in said][5:], [
            "task_started", "verification_failed", "task_failed", "replan_started", "replan_finished", "execution_started", "task_skipped", "task_started",
            "task_succeeded", "execution_finished"])
        payloads = {e["type"]: e["payload"] for e in said}
        self.assertEqual(payloads["task_skipped"], {"task_id": "news", "reason": "already_completed"})
        self.assertEqual((payloads["replan_started"]["task_id"], payloads["replan_finished"]["new_tasks"]), ("price", 1))
        self.assertEqual(len(agent.asked("search")), 1)

    def test_execute_takes_a_plan_in_its_words(self):
        self.researcher(PRICE)
        self.agent("meta", plan=lambda r: PLAN)
        view = self.run_plan(GIVEN, policy=OPTIONS)
        self.assertEqual((view["status"], view["query"]), ("completed", MISSION))
        self.assertEqual(self.types(), ["execution_started", "task_started", "task_succeeded", "execution_finished"])
        self.assertEqual(self.result()["results"] if "results" in self.result() else self.result()["aggregatedResult"], self.result().get("results", self.result()["aggregatedResult"]))

    def test_max_total_replans_takes_effect(self):
        self.researcher({"price": "unknown"})
        again = [PLAN] + [{"tasks": [{**PLAN["tasks"][1], "id": "again%d" % n, "depends_on": ["news"]}], "reuse": ["news"]} for n in range(9)]
        view = self.run2(again, {**OPTIONS, "max_total_replans": 2, "maxRetries": 0})
        self.assertEqual(view["status"], "failed")
        self.assertEqual(self.types().count("replan_started"), 2)

    def test_quality_gate_asks_before_tasks_with_dependencies(self):
        self.researcher(PRICE)
        self.agent("judge", gate=lambda r: {"sufficient": True})
        view = self.run2([PLAN], {**OPTIONS, "quality_gate": True})
        self.assertEqual(view["status"], "completed")
        self.assertEqual([e["payload"]["task_id"] for e in self.told("quality_gate_started")], ["price"])

    def test_paused_at_human_review_is_waiting(self):
        self.researcher(PRICE)
        self.submit({"tasks": [{"task_id": "check", "type": "human_review", "description": "Is this the right stock?", "depends_on": []},
                               {**GIVEN["tasks"][0], "depends_on": ["check"], "on_verification_failure": "stop"}]})
        review = until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "a person is asked")[0]
        self.assertEqual(self.told()[-1], {**self.told()[-1], "type": "execution_finished"})
        self.assertEqual(self.told()[-1]["payload"]["status"], "waiting")
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve", comment="yes")
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.assertEqual(self.types()[-5:], ["execution_started", "task_succeeded", "task_started", "task_succeeded", "execution_finished"])

    def test_its_tools_and_callbacks_are_refused_with_the_way_out(self):
        for word in ("available_tools", "builtin_tools", "base_tools", "on_event", "llm", "quality_gate_llm", "initial_results"):
            refused = self.d.ask_raw("plan.submit", plan=GIVEN, policy={**OPTIONS, word: {}})
            self.assertIn("`%s` is not supported: " % word, str(refused["error"]))


if __name__ == "__main__":
    main()
