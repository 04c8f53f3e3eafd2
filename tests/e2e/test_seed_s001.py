#!/usr/bin/env python3
"""The examples of the seed S001 (plan executor): its PlanState, its five events in order, its texts."""
import unittest

from harness import main
from seed import Seed, failure

AGENTS = ("bc-agent", "rag-agent", "graph-agent")
STEPS = ("8D1F2C3A-0B4E-4F6A-9C7D-1E2F3A4B5C6D", "5A6B7C8D-9E0F-4A1B-8C2D-3E4F5A6B7C8D", "0F1E2D3C-4B5A-4968-8776-655443322110")
CONFIG = {"maxRetries": 2, "continueOnFailure": False, "stepTimeoutMs": 60000}


def plan_state(*tasks):
    """PlanState, as its supervisor hands it to the executor."""
    return {
        "planId": "11111111-2222-4333-8444-555555555555", "query": "What do we know about our customers?", "status": "pending", "currentStepIndex": 0,
        "steps": [{"stepId": STEPS[i], "stepIndex": i, "agentId": agent, "agentName": agent.upper(), "task": task, "status": "pending"}
                  for i, (agent, task) in enumerate(tasks)],
        "estimatedSteps": len(tasks)}


TASKS = (("bc-agent", "List the customers of this year"), ("rag-agent", "Find the documents about them"), ("graph-agent", "Draw how they are connected"))


class S001(Seed):
    vocabulary = "plan-executor"

    def agents(self, **more):
        answers = {"bc-agent": lambda r: "12 customers", "rag-agent": lambda r: "3 documents", "graph-agent": lambda r: "a graph", **more}
        return {a: self.agent(a, card={"name": a.upper()}, work=answers[a]) for a in AGENTS}

    def test_its_plan_runs_unchanged_with_its_events_in_order(self):
        self.agents()
        view = self.run_plan(plan_state(*TASKS), policy=CONFIG, sessionId="session-1")
        self.assertEqual(view["status"], "completed")
        told = self.told()
        self.assertEqual([e["type"] for e in told],
                         ["plan_generated"] + ["plan_step_started", "agent_handoff", "plan_step_completed"] * 3 + ["plan_completed"])
        self.assertEqual({e["sessionId"] for e in told}, {"session-1"})
        self.assertEqual((told[0]["query"], told[0]["estimatedSteps"]), ("What do we know about our customers?", 3))
        self.assertEqual([s["stepId"] for s in told[0]["steps"]], list(STEPS))
        self.assertEqual([s["agentName"] for s in told[0]["steps"]], ["BC-AGENT", "RAG-AGENT", "GRAPH-AGENT"])
        handoffs = [e for e in told if e["type"] == "agent_handoff"]
        self.assertEqual([(h["fromAgent"]["agentId"], h["toAgent"]["agentId"], h["reason"], h["explanation"]) for h in handoffs], [
            ("supervisor", "bc-agent", "plan_step", "Executing plan step: List the customers of this year"),
            ("bc-agent", "rag-agent", "plan_step", "Executing plan step: Find the documents about them"),
            ("rag-agent", "graph-agent", "plan_step", "Executing plan step: Draw how they are connected")])
        self.assertEqual([e["result"] for e in told if e["type"] == "plan_step_completed"], ["12 customers", "3 documents", "a graph"])

    def test_context_and_answer_have_its_form(self):
        agents = self.agents()
        self.run_plan(plan_state(*TASKS), policy=CONFIG)
        contexts = [agents[a].asked("work")[0]["context"]["text"] for a in AGENTS]
        self.assertEqual(contexts[0], "Task: List the customers of this year")
        self.assertEqual(contexts[2], "Previous step results:\n- Step 1 (bc-agent): 12 customers\n- Step 2 (rag-agent): 3 documents\n\n"
                                      "Current task: Draw how they are connected")
        self.assertEqual(self.result()["aggregatedResult"],
                         "**List the customers of this year**\n12 customers\n\n---\n\n**Find the documents about them**\n3 documents\n\n---\n\n"
                         "**Draw how they are connected**\na graph")

    def test_one_step_answers_for_itself(self):
        self.agents()
        self.run_plan(plan_state(TASKS[0]), policy=CONFIG)
        self.assertEqual(self.result()["aggregatedResult"], "12 customers")

    def test_a_failure_is_retried_then_aborts_the_plan(self):
        agents = self.agents(**{"rag-agent": lambda r: failure("no index", retryable=True)})
        view = self.run_plan(plan_state(*TASKS), policy={**CONFIG, "backoff": {"kind": "fixed", "initialMs": 1}})
        self.assertEqual((view["status"], len(agents["rag-agent"].asked("work")), len(agents["graph-agent"].asked("work"))), ("failed", 3, 0))
        (end,) = self.told("plan_completed")
        self.assertEqual((end["status"], end["failureReason"]), ("failed", "Step 2 failed: no index"))

    def test_a_plan_without_a_result_says_so_in_its_words(self):
        self.agents(**{"bc-agent": lambda r: failure("nothing")})
        self.run_plan(plan_state(TASKS[0]), policy={"maxRetries": 0})
        self.assertTrue(self.result()["aggregatedResult"].startswith("I wasn't able to complete the plan due to errors."))

    def test_a_step_timeout_is_told_in_its_words(self):
        self.agents(**{"bc-agent": lambda r: None})
        view = self.run_plan(plan_state(TASKS[0]), policy={"maxRetries": 0, "stepTimeoutMs": 200})
        self.assertEqual((view["status"], self.told("plan_completed")[0]["failureReason"]), ("failed", "Step 1 failed: Step execution timeout"))


if __name__ == "__main__":
    main()
