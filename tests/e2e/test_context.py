"""What goes with a task, so that an agent knows where it stands (M070, M071)."""
from harness import main
from probe import step
from test_modify import Changing


class TaskContext(Changing):
    def test_a_step_is_told_its_place_the_request_and_what_it_depends_on(self):
        p = self.probe(work=self.work)
        plan = self.d.submit({"goal": "three things", "steps": [
            step("a"), step("b", maxRetries=0, dependsOn=[]), step("c", dependsOn=["a", "b"])]})
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        context = {r["stepId"]: r["context"] for r in p.of("step.execute")}
        self.assertEqual((context["a"]["isPlanContext"], context["a"]["stepId"], context["a"]["text"]), (True, "a", "Task: do a"))
        self.assertEqual(context["c"]["task_context"], {
            "current_task": "do c", "task_id": "c", "original_request": "three things", "plan_position": "Step 3 of 3",
            "dependencies_completed": ["a", "b"]})
        self.assertNotIn("dependencies_completed", context["a"]["task_context"])
        self.assertEqual([(d["stepId"], d["agentId"], d["result"]["text"]) for d in context["c"]["dependencies"]],
                         [("a", "probe", "done a"), ("b", "probe", "done b")])

    def test_results_that_are_empty_or_of_failed_steps_are_no_context(self):
        def work(r):
            if r["stepId"] == "fails":
                return {"outcome": "failed", "failure": {"code": "INVALID", "class": "VALIDATION_ERROR", "message": "no"}}
            return {"outcome": "completed", "result": {"text": "" if r["stepId"] == "silent" else "done " + r["stepId"]}}
        p = self.probe(work=work)
        plan = self.d.submit({"steps": [step("a"), step("silent"), step("fails", onFailure="continue"), step("d")]})
        view = self.d.wait_plan(plan)
        self.assertEqual((view["status"], view["outcome"]), ("completed", "partial"))
        self.assertEqual(p.of("step.execute")[-1]["context"]["text"],
                         "Previous step results:\n- Step 1 (probe): done a\n\nCurrent task: do d")
        self.assertEqual(self.d.ask("plan.result", planId=plan)["aggregatedResult"], "**do a**\ndone a\n\n---\n\n**do d**\ndone d")


if __name__ == "__main__":
    main()
