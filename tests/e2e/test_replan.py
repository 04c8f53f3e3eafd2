"""A plan that fails is planned anew by an agent process: what it is told, what is kept, what it may not do, when it ends."""
import unittest

from acts import Acts, say, step
from harness import until

BROKEN = "echo 'the disk is full' >&2; exit 1"
WHY = "act: exit code 1: the disk is full"


def policy(**replan):
    return {"onFailure": "replan", "replan": {"agent": "planner", "cooldownMs": 1, **replan}}


class Replanning(Acts):
    def test_planner_gets_the_story_and_its_plan_is_run_with_what_was_done_before(self):
        self.acts("a", "c")
        self.act("b", BROKEN)
        self.act("plan", say({"reuse": ["a"], "reasoning": "write elsewhere", "steps": [step("c", dependsOn=["a"])]}))
        view = self.run_plan([step("a"), step("b", maxRetries=0)], goal="save it", policy=policy())
        self.assertEqual((view["status"], view["outcome"], view["revision"]), ("completed", "success", 2), view)
        self.assertEqual(self.statuses(view), [("a", "completed"), ("c", "completed")])
        told = self.heard("plan")["parameters"]
        self.assertEqual((told["goal"], told["stepId"], told["error"]), ("save it", "b", WHY))
        self.assertEqual([x["text"] for x in told["completed"] + told["failed"]], ["✓ do a: done a", "✗ do b: " + WHY])
        self.assertEqual(sorted(a["agentId"] for a in told["agents"]), ["planner", "worker"])
        self.assertEqual([self.asked(x) for x in "abc"], [1, 1, 1], "what was done is not done again")
        (started,), (finished,) = self.events("replan_started"), self.events("replan_finished")
        self.assertEqual((started["stepId"], started["diagnosis"], started["totalReplans"], started["delayMs"]), ("b", WHY, 1, 1))
        self.assertEqual((finished["ok"], finished["newSteps"], finished["revision"], finished["reason"]), (True, 1, 2, "write elsewhere"))
        history = self.d.ask("plan.history", planId=self.plan)
        self.assertEqual([(r["stepId"], r["diagnosis"], r["newTaskCount"]) for r in history["replans"]], [("b", WHY, 1)])
        self.assertEqual(history["replanCount"], 1)
        self.assertEqual([p["phase"] for p in history["phases"]], ["planning", "execution", "replanning", "execution"])

    def test_completed_results_stay_without_being_named(self):
        """In the context of new steps and in the answer; the dropped step keeps its own error, in the event too."""
        self.acts("a", "c")
        self.act("b", BROKEN)
        self.act("plan", say({"steps": [step("c", dependsOn=["a"])]}))
        view = self.run_plan([step("a"), step("b", maxRetries=0)], policy=policy())
        self.assertEqual((view["status"], view["outcome"], self.statuses(view)), ("completed", "success", [("a", "completed"), ("c", "completed")]))
        self.assertIn("done a", self.heard("c")["context"]["text"])
        answer = self.d.ask("plan.result", planId=self.plan)["aggregatedResult"]
        self.assertIn("done a", answer)
        self.assertIn("done c", answer)
        (end,) = [e for e in self.events("plan_step_completed") if e["stepId"] == "b"]
        self.assertEqual((end["status"], end["reason"], end["error"]), ("failed", "superseded", WHY))
        self.assertEqual([s["error"] for s in view["steps"] if s["stepId"] == "b"], [WHY])

    def test_step_that_equals_a_completed_one_is_not_run_again(self):
        """C32: the same id, agent, skill, task and parameters; in any order of the keys."""
        self.acts("a", "c")
        self.act("b", BROKEN)
        self.act("plan", say({"steps": [dict(reversed(step("a").items())), step("c", dependsOn=["a"])]}))
        view = self.run_plan([step("a"), step("b", maxRetries=0)], policy=policy())
        self.assertEqual((view["status"], self.statuses(view)), ("completed", [("a", "completed"), ("c", "completed")]), view)
        self.assertEqual([self.asked(x) for x in "abc"], [1, 1, 1])

    def test_plan_of_completed_steps_alone_needs_no_more_work(self):
        self.acts("a")
        self.act("b", BROKEN)
        self.act("plan", say({"steps": [step("a")]}))
        view = self.run_plan([step("a"), step("b", maxRetries=0)], policy=policy())
        self.assertEqual((view["status"], self.statuses(view), self.asked("a")), ("completed", [("a", "completed")], 1), view)

    def test_other_content_under_the_same_name_is_new_work(self):
        self.acts("a")
        self.act("b", BROKEN)
        self.act("plan", say({"steps": [step("a", task="do a in another way")]}))
        view = self.run_plan([step("a"), step("b", maxRetries=0)], policy=policy())
        self.assertEqual((view["status"], self.asked("a")), ("completed", 2), "C32: another revision, another key")
        self.assertNotEqual(self.heard("a", 1)["key"], self.heard("a", 2)["key"])

    def test_completed_unsafe_step_is_not_repeated_without_a_person(self):
        """Not under its id, not under another one, not when the replanner calls it harmless."""
        for n, new in enumerate((step("a", task="pay in other words"), step("n", parameters={"name": "a"}),
                                 step("n", parameters={"name": "a"}, effects="none", requiresApproval=False)), 1):
            for decision, asked in (("reject", 1), ("approve", 2)):
                with self.subTest(new=new, decision=decision):
                    (self.d.work / "a.asked").unlink(missing_ok=True)
                    self.acts("a")
                    self.act("b", *[BROKEN] * 9)
                    self.act("plan", *[say({"steps": [new]})] * 9)
                    self.plan = self.d.submit({"steps": [step("a", effects="unsafe"), step("b", maxRetries=0)], "policy": policy(maxTotal=1)})
                    found = until(lambda: [r for r in self.d.ask("review.list").get("reviews", []) if r["planId"] == self.plan], 15, self.d.log())
                    self.assertEqual((found[0]["kind"], found[0]["stepId"], self.asked("a")), ("before_step", new["stepId"], 1))
                    self.d.ask("review.decide", reviewId=found[0]["reviewId"], decision=decision)
                    self.d.wait_plan(self.plan)
                    self.assertEqual(self.asked("a"), asked)

    def test_too_many_replans_of_the_plan(self):
        self.act("s", BROKEN)
        self.act("plan", *[say({"steps": [step("s", maxRetries=0)]}) for _ in range(3)])
        view = self.run_plan([step("s", maxRetries=0)], policy=policy(maxTotal=2, maxPerStep=9))
        self.assertEqual(view["failureReason"], "Max replans (2) exceeded. Last error: " + WHY)
        self.assertEqual((self.events("plan_completed")[0]["failureKind"], self.asked("plan"), self.asked("s")), ("max_replans_exceeded", 2, 3))
        self.assertEqual([len(self.heard("plan", n)["parameters"]["history"]) for n in (1, 2)], [0, 1])

    def test_a_mission_that_has_become_impossible_ends_with_the_reason(self):
        self.act("s", BROKEN)
        self.act("plan", say({"steps": [], "impossible": "the disk will not get larger"}))
        view = self.run_plan([step("s", maxRetries=0)], policy=policy())
        self.assertEqual((view["status"], self.asked("plan")), ("failed", 1))
        self.assertEqual(view["failureReason"], "Mission impossible: the disk will not get larger")
        self.assertEqual(self.events("plan_completed")[0]["failureKind"], "replan_generation_failed")

    def test_answers_that_are_no_plan_end_it_with_what_was_wrong(self):
        self.act("s", BROKEN)
        for n, (answer, kind, words) in enumerate((
                (say({"steps": []}), "repair_plan_invalid", ("steps",)),
                (say({"steps": [step("x", agentId="judge", skill="gate"), step("y", dependsOn=["nowhere"])]}), "repair_plan_invalid", ("judge", "nowhere")),
                (say({"steps": [step("x")], "reuse": ["s"]}), "repair_plan_invalid", ("s",)),
                (say("I would rather not"), "repair_plan_invalid", ("no plan",)),
                ("echo out of ideas >&2; exit 1", "replan_generation_failed", ("out of ideas",))), 1):
            with self.subTest(answer):
                self.act("plan", *["exit 1"] * (n - 1), answer)
                view = self.run_plan([step("s", maxRetries=0)], policy=policy())
                self.assertEqual((view["status"], view["revision"]), ("failed", 1), view)
                self.assertEqual(self.events("plan_completed")[0]["failureKind"], kind, view["failureReason"])
                for word in words:
                    self.assertIn(word, view["failureReason"])
                self.assertEqual([e["ok"] for e in self.events("replan_finished")], [False])
                self.assertEqual([s["stepId"] for s in view["steps"]], ["s"])

    def test_daemon_that_dies_while_the_planner_thinks(self):
        for n, how in enumerate(("kill", "stop")):
            with self.subTest(how):
                a, b, c = (x + how for x in "abc")
                self.acts(a, c)
                self.act(b, BROKEN)
                plan = "until [ -e go-%s ]; do sleep 0.02; done; " % how + say({"reuse": [a], "steps": [step(c, dependsOn=[a])]})
                self.act("plan", *[plan] * (self.asked("plan") + 1))
                self.plan = self.d.submit({"steps": [step(a), step(b, maxRetries=0)], "policy": policy(timeoutMs=20000)})
                before = self.asked("plan")
                self.wait_asked("plan", before + 1)
                if how == "stop":  # it is waited for, and then no more
                    self.d.process.terminate()
                    self.assertEqual(self.d.process.wait(20), 0)
                    self.d.start(agents=False)
                else:
                    self.d.kill9()
                    self.d.start(agents=False)
                (self.d.work / ("go-" + how)).write_text("")
                view = self.d.wait_plan(self.plan)
                self.assertEqual((view["status"], view["revision"], self.statuses(view)), ("completed", 2, [(a, "completed"), (c, "completed")]),
                                 self.d.log())
                self.assertEqual((self.asked(a), self.asked(c), len(self.events("replan_started"))), (1, 1, 1))

    def test_cancel_while_the_planner_thinks(self):
        self.act("s", BROKEN)
        self.act("plan", "sleep 60")
        self.plan = self.d.submit({"steps": [step("s", maxRetries=0)], "policy": policy()})
        self.wait_asked("plan")
        self.d.ask("plan.cancel", planId=self.plan)
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "cancelled")

    def test_verification_that_fails_leads_to_a_new_plan(self):
        self.acts("s", "t")
        self.act("verify", say({"passed": False, "diagnosis": "not what was asked"}), say("yes"))
        self.act("plan", say({"steps": [step("t", verifyWith="judge")]}))
        view = self.run_plan([step("s", verifyWith="judge", onVerificationFailure="replan")], policy=policy())
        self.assertEqual((view["status"], self.statuses(view)), ("completed", [("t", "completed")]), view)
        self.assertEqual(self.events("replan_started")[0]["diagnosis"], "not what was asked")
        old = [s for s in view["steps"] if s["stepId"] == "s"][0]
        self.assertEqual((old["superseded"], old["status"], old["reason"], old["error"]), (True, "failed", "superseded", "not what was asked"))


class PerStep(Acts):
    def test_too_many_replans_of_one_step(self):
        """Its name goes on over the revisions, and so does the count."""
        self.act("s", BROKEN)
        self.act("plan", say({"steps": [step("s", maxRetries=0)]}))
        view = self.run_plan([step("s", maxRetries=0)], policy=policy(maxTotal=9, maxPerStep=1))
        self.assertEqual(view["failureReason"], "Max replans (1) exceeded. Last error: " + WHY, view)
        self.assertEqual((self.events("plan_completed")[0]["failureKind"], self.asked("plan"), self.asked("s")), ("max_replans_exceeded_per_task", 1, 2))


del Acts
if __name__ == "__main__":
    unittest.main(verbosity=2)
