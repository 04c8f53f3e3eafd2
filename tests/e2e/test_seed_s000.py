#!/usr/bin/env python3
"""The examples of the seed S000 (plan-and-execute patterns): its plan, its stream of objects, its fallbacks and replans."""
import unittest

from harness import main
from seed import Seed, failure

# StepSchema and PlanSchema of the seed; its usage: "Create a blog post about AI trends with relevant images".
GOAL = "Create a blog post about AI trends with relevant images"
CONFIG = {"maxReplans": 3, "maxFallbacks": 5, "timeoutMs": 60000}
PLAN = {
    "goal": GOAL,
    "steps": [
        {"id": 1, "action": "Search for posts about AI trends", "tool": "searchContent", "parameters": {"query": "AI trends", "type": "post"},
         "dependsOn": []},
        {"id": 2, "action": "Search for relevant images", "tool": "searchContent", "parameters": {"query": "AI", "type": "image"}, "dependsOn": []},
        {"id": 3, "action": "Create the blog post", "tool": "createPost", "parameters": {"title": "AI trends"}, "dependsOn": [1, 2]},
    ],
    "estimatedTokens": 1200,
    "reasoning": "Search first, then write.",
}


class S000(Seed):
    vocabulary = "ai-sdk"

    def tools(self, **more):
        return self.agent("tools", **{"searchContent": lambda r: {"results": []}, "createPost": lambda r: {"postId": 7}, **more})

    def test_its_plan_runs_unchanged_and_streams_its_progress(self):
        self.tools()
        view = self.run_plan(PLAN, policy=CONFIG)
        self.assertEqual((view["status"], [s["stepId"] for s in view["steps"]]), ("completed", ["1", "2", "3"]))
        self.assertEqual(self.told(), [
            {"type": "progress", "completed": 1, "total": 3, "lastStep": self.told()[0]["lastStep"]},
            {"type": "progress", "completed": 2, "total": 3, "lastStep": self.told()[1]["lastStep"]},
            {"type": "progress", "completed": 3, "total": 3, "lastStep": "Create the blog post"},
            {"type": "complete", "results": {"1": {"results": []}, "2": {"results": []}, "3": {"postId": 7}}}])
        self.assertEqual({e["lastStep"] for e in self.told()[:2]}, {"Search for posts about AI trends", "Search for relevant images"})

    def test_a_replan_is_an_object_with_reason_and_new_steps(self):
        tools = self.tools(createPost=lambda r: failure("404 page not found", "RESOURCE_NOT_FOUND"), createPage=lambda r: {"pageId": 8},
                           plan=lambda r: {"steps": [{"id": 3, "action": "Create a page instead", "tool": "createPage", "parameters": {},
                                                      "dependsOn": [1, 2]}], "reuse": ["1", "2"], "goal": GOAL, "estimatedTokens": 10,
                                           "reasoning": "posts are gone"})
        view = self.run_plan(PLAN, policy={**CONFIG, "onFailure": "replan"})
        self.assertEqual(view["status"], "completed")
        (replan,) = self.told("replan")
        self.assertEqual(replan["newSteps"], 1)
        self.assertIn("404 page not found", replan["reason"])
        self.assertEqual(self.told("complete")[0]["results"]["3"], {"pageId": 8})
        self.assertEqual(len(tools.asked("searchContent")), 2)  # what was completed is not done again

    def test_the_end_of_its_replans_is_an_error_with_the_last_error(self):
        self.tools(createPost=lambda r: failure("permission denied (403)", "PERMISSION_DENIED"),
                   plan=lambda r: {"steps": [{**PLAN["steps"][2], "id": "again"}], "reuse": ["1", "2"]})
        view = self.run_plan(PLAN, policy={"maxReplans": 1, "onFailure": "replan", "replan_cooldown_ms": 0})
        self.assertEqual(view["status"], "failed")
        self.assertRegex(self.told("error")[0]["message"], r"Max replans \(1\) exceeded")

    def test_a_timeout_of_the_whole_run_is_told_in_its_words(self):
        self.tools(searchContent=lambda r: None)  # no answer
        view = self.run_plan(PLAN, policy={"timeoutMs": 300})
        self.assertEqual(view["status"], "failed")
        self.assertIn("Execution timeout after 300ms", self.told("error")[0]["message"])

    def test_its_dry_run_names_what_is_wrong_with_each_step(self):
        self.tools()
        wrong = {**PLAN, "steps": [{**PLAN["steps"][0], "tool": "searchContents"}, {**PLAN["steps"][1], "dependsOn": [9]}]}
        problems = self.d.ask("plan.lint", plan=wrong)["problems"]
        self.assertEqual([(p["stepId"], p["category"]) for p in problems if p["severity"] == "error"],
                         [("2", "missing_dependency"), ("1", "missing_skill")])
        self.assertIn("searchContents", [p["message"] for p in problems if p["category"] == "missing_skill"][0])


if __name__ == "__main__":
    main()
