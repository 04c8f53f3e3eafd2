#!/usr/bin/env python3
"""The examples of the seed S004 (orchestrator graph): incidents to tickets, its log, its context, its interrupts."""
import unittest

from harness import main, until
from seed import Seed, failure

REQUEST = "Handle critical incidents end-to-end"
FOUND = "Found 3 critical incidents: INC001, INC002, INC003"
PLAN = {  # ExecutionPlanStructured
    "description": "Find critical incidents and create tickets",
    "tasks": [
        {"task_id": "task_1", "description": "Find all critical incidents in ServiceNow", "agent": "servicenow", "depends_on": [], "status": "pending"},
        {"task_id": "task_2", "description": "Create Jira tickets for critical incidents", "agent": "jira", "depends_on": ["task_1"],
         "status": "pending"},
        {"task_id": "task_3", "description": "Update the account with the tickets", "agent": "salesforce", "depends_on": ["task_2"],
         "status": "pending"}],
    "success_criteria": "Every critical incident has a ticket",
    "estimated_total_time": "2 minutes",
}


class S004(Seed):
    vocabulary = "orchestrator-log"

    def agents(self, **more):
        answers = {"servicenow": lambda r: FOUND, "jira": lambda r: "Created INFRA-456, INFRA-457, INFRA-458", "salesforce": lambda r: "Updated", **more}
        return {a: self.agent(a, work=work) for a, work in answers.items()}

    def test_its_plan_runs_unchanged_and_its_log_has_every_task(self):
        self.agents()
        view = self.run_plan(PLAN, goal=REQUEST)
        self.assertEqual((view["status"], view["about"]["description"], view["about"]["estimatedTotalTime"]),
                         ("completed", "Find critical incidents and create tickets", "2 minutes"))
        self.assertEqual([(e["event"], e["task_id"]) for e in self.told()], [
            (event, "task_%d" % n) for n in (1, 2, 3) for event in ("task_started", "task_completed")])
        first = self.told()[0]
        self.assertEqual((first["description"], first["agent"]), ("Find all critical incidents in ServiceNow", "servicenow"))
        self.assertEqual(self.told()[1]["result"], FOUND)

    def test_each_agent_gets_its_task_context(self):
        agents = self.agents()
        self.run_plan(PLAN, goal=REQUEST)
        context = agents["jira"].asked("work")[0]["context"]["task_context"]
        self.assertEqual({k: context[k] for k in ("current_task", "task_id", "original_request", "plan_position")}, {
            "current_task": "Create Jira tickets for critical incidents", "task_id": "task_2", "original_request": REQUEST,
            "plan_position": "Step 2 of 3"})
        self.assertEqual(len(context["dependencies_completed"]), 1)

    def test_a_single_task_is_its_own_summary(self):
        self.agents()
        self.run_plan({**PLAN, "tasks": PLAN["tasks"][:1]}, goal=REQUEST)
        self.assertEqual(self.result()["aggregatedResult"], FOUND)

    def test_a_failed_task_does_not_break_the_plan(self):
        self.agents(jira=lambda r: failure("Network error"))
        tasks = [PLAN["tasks"][0], PLAN["tasks"][1], {**PLAN["tasks"][2], "depends_on": ["task_1"]}]
        view = self.run_plan({**PLAN, "tasks": tasks}, goal=REQUEST, policy={"onFailure": "continue", "maxRetries": 0})
        self.assertEqual((view["status"], view["outcome"]), ("completed", "partial"))
        log = {(e["event"], e["task_id"]): e for e in self.told()}
        self.assertEqual(log[("task_failed", "task_2")]["error"], "Network error")
        self.assertIn(("task_completed", "task_3"), log)

    def test_skipping_a_step_leaves_its_dependents_satisfied(self):
        self.agents()
        self.submit({**PLAN, "policy": {"signoff": True}}, goal=REQUEST)
        review = until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "the plan waits")[0]
        self.assertEqual(self.told(), [{"type": "APPROVAL_REQUIRED", "context": {"node": "planner"},
                                        "metadata": {"kind": "plan", "review_id": review["reviewId"]}}])
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")
        self.d.wait_plan(self.plan)

    def test_a_high_risk_task_is_interrupted_and_resumed_with_approved(self):
        asked = []

        def risky(request):
            asked.append(request)
            return "deleted" if len(asked) > 1 else {
                "outcome": "needs_approval", "need": {"kind": "approval", "prompt": "Approve deletion of 100 records?"}}
        self.agents(salesforce=risky)
        self.submit({"tasks": [{"task_id": "task_1", "agent": "salesforce", "description": "Delete the old records of the account"}]}, goal=REQUEST)
        review = until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "a person is asked")[0]
        (interrupt,) = [e for e in self.told() if "event" not in e]
        self.assertEqual(interrupt["type"], "APPROVAL_REQUIRED")
        self.assertEqual((interrupt["context"]["task_id"], interrupt["context"]["prompt"], interrupt["metadata"]["review_id"]),
                         ("task_1", "Approve deletion of 100 records?", review["reviewId"]))
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve", comment="approved")
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.assertEqual(self.told()[-1]["event"], "task_completed")

    def test_a_planner_that_fails_is_an_error_recovery(self):
        self.agents()
        self.agent("planner", plan=lambda r: "no plan")
        self.plan = self.d.ask("plan.submit", goal=REQUEST, planner="agent:planner", policy={"onInvalidPlan": "interrupt"})["planId"]
        until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "a person is asked")
        (interrupt,) = self.told()
        self.assertEqual((interrupt["type"], interrupt["context"]["node"], interrupt["metadata"]), ("ERROR_RECOVERY", "planner", {"recoverable": True}))
        self.d.ask("plan.cancel", planId=self.plan)
        self.d.wait_plan(self.plan)


if __name__ == "__main__":
    main()
