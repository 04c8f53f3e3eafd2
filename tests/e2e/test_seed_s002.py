#!/usr/bin/env python3
"""The example of the seed S002 (plan-execute orchestrator): its two-step plan, its events in order, its answer."""
import json
import unittest

from harness import main
from seed import Seed, failure

# "Example event sequence (two-step plan)"
STEPS = [{"tool": "get_current_time", "args": {}}, {"tool": "calculator", "args": {"expression": "10+5"}}]
TIME, ANSWER = "2025-02-15T12:00:00Z", "The time is 12:00 and 10+5 = 15."


class S002(Seed):
    vocabulary = "agent-turn"

    def setUp(self):
        super().setUp()
        self.tools = self.agent("tools", get_current_time=lambda r: TIME, calculator=lambda r: 15)

    def model(self, plan):
        return self.agent("model", plan=lambda r: plan, synthesize=lambda r: ANSWER)

    def turn(self, plan, **policy):
        self.model(plan)
        self.plan = self.d.ask("plan.submit", goal="What time is it, and what is 10+5?", planner="agent:model",
                               policy={"synthesis": "agent:model", **policy})["planId"]
        return self.d.wait_plan(self.plan)

    def test_one_turn_has_its_events_in_the_fixed_order(self):
        view = self.turn(json.dumps({"steps": STEPS}))  # "Complete(planning prompt, no tools)": JSON plan text
        self.assertEqual(view["status"], "completed")
        said = [(e["type"], e["payload"]) for e in self.told()]
        self.assertEqual([t for t, _ in said], ["turn_start", "plan_created"] + ["plan_step_start", "tool_call", "tool_result", "plan_step_end"] * 2
                         + ["text_delta", "turn_end"])
        at = dict(zip(range(len(said)), (p for _, p in said)))
        self.assertEqual(at[1], {"stepCount": 2, "steps": STEPS})
        self.assertEqual(at[2], {"index": 0, "stepCount": 2, **STEPS[0]})
        self.assertEqual((at[3]["toolName"], at[3]["args"], at[4]["result"]), ("get_current_time", {}, TIME))
        self.assertEqual((at[5]["index"], at[5]["tool"], at[5]["result"]), (0, "get_current_time", TIME))
        self.assertEqual(at[6], {"index": 1, "stepCount": 2, **STEPS[1]})
        self.assertEqual((at[7]["toolName"], at[7]["args"], at[8]["result"]), ("calculator", {"expression": "10+5"}, 15))
        self.assertEqual((at[9]["index"], at[9]["tool"], at[9]["result"]), (1, "calculator", 15))
        self.assertEqual((at[10]["text"], at[11]["message"]), (ANSWER, ANSWER))
        self.assertEqual(self.result()["aggregatedResult"], ANSWER)

    def test_its_plan_runs_unchanged_when_it_is_given(self):
        self.submit({"steps": STEPS})
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.assertEqual([r["parameters"] for r in self.tools.asked("calculator")], [{"expression": "10+5"}])

    def test_an_invalid_plan_falls_back_to_synthesis_only(self):
        view = self.turn("no JSON at all", onInvalidPlan="synthesize")
        self.assertEqual((view["status"], self.result()["aggregatedResult"]), ("completed", ANSWER + (
            "\n\n---\n\n**Not done**\n- No plan was made: the answer is no plan: expected one JSON object {\"steps\": [...]}")))
        said = [e["type"] for e in self.told()]
        self.assertEqual((said[0], said[-2:], self.tools.asked("calculator")), ("turn_start", ["text_delta", "turn_end"], []))

    def test_a_failed_tool_is_in_its_result_and_the_answer_still_comes(self):
        self.tools.skills["calculator"] = lambda r: failure("division by zero")
        self.turn(json.dumps({"steps": STEPS}), onFailure="continue", maxRetries=0)
        results = [e["payload"] for e in self.told("tool_result")]
        self.assertEqual((results[1]["toolName"], results[1]["error"]), ("calculator", "division by zero"))
        self.assertEqual(self.told("turn_end")[0]["payload"]["message"],
                         ANSWER + '\n\n---\n\n**Not done**\n- Step 2 "calculator" failed: division by zero')


if __name__ == "__main__":
    main()
