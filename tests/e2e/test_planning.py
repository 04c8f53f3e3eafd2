"""Plans that an agent makes, and answers that one writes: events, repair, what no plan leads to, people, money, restarts."""
import unittest

from acts import Acts, CONFIG, say, step
from harness import until

ANSWERER = """
  - agentId: answerer
    command: ["${BATON_BIN}/baton-agent-exec"]
    settings:
      commands:
        - {id: synthesize, argv: ["%(here)s/act.sh", "%(work)s", "synthesize"], description: "Answers.", effects: none, inputSchema: {type: object}}
"""


class Planned(Acts):
    config = CONFIG + ANSWERER

    def ask_for(self, goal="save the day", **fields):
        self.plan = self.d.ask("plan.submit", goal=goal, planner="agent", **fields)["planId"]
        return self.plan

    def planned(self, goal="save the day", **fields):
        return self.d.wait_plan(self.ask_for(goal, **fields))

    def types(self):
        return [e["type"] for e in self.d.events(self.plan)]


class Planning(Planned):
    def test_a_goal_becomes_a_plan_and_the_plan_is_run(self):
        self.acts("a", "b")
        self.act("plan", say({"steps": [step("a"), step("b", dependsOn=["a"])], "description": "two things", "successCriteria": ["both done"],
                              "estimatedTokens": 70, "reasoning": "one needs the other"}))
        view = self.planned(constraints=["be quick"])
        self.assertEqual((view["status"], view["outcome"], view["revision"]), ("completed", "success", 1), view)
        self.assertEqual(self.statuses(view), [("a", "completed"), ("b", "completed")])
        self.assertEqual(self.types()[:3], ["planning_started", "plan_generated", "plan_started"])
        (started,), (generated,) = self.events("planning_started"), self.events("plan_generated")
        self.assertEqual((started["goal"], started["planner"], started["agentId"], started["attempt"], started["timeoutMs"]),
                         ("save the day", "agent", "planner", 1, 30000))
        self.assertEqual((generated["query"], generated["estimatedSteps"], generated["description"], generated["successCriteria"], generated["estimatedTokens"]),
                         ("save the day", 2, "two things", "both done", 70))
        told = self.heard("plan")["parameters"]
        self.assertEqual((told["goal"], told["constraints"], told["limits"]), ("save the day", ["be quick"], {"maxSteps": 1000}))
        self.assertEqual(sorted(a["agentId"] for a in told["agents"]), ["judge", "worker"], "who only answers questions does no steps")
        about = view["about"]
        self.assertEqual((about["description"], about["reasoning"], about["constraints"], about["planner"]),
                         ("two things", "one needs the other", ["be quick"], "agent"))
        document = self.d.ask("plan.get", planId=self.plan, document=True)["document"]
        self.assertEqual([s["stepId"] for s in document["steps"]], ["a", "b"])
        self.assertEqual([p["phase"] for p in self.d.ask("plan.history", planId=self.plan)["phases"]], ["planning", "execution"])
        self.assertEqual([p["planId"] for p in self.d.ask("plan.list")["plans"]], [self.plan], "an errand is no plan of its own")

    def test_what_is_wrong_is_told_once_and_repaired(self):
        self.acts("a")
        self.act("plan", say({"steps": [step("a", dependsOn=["nowhere"])]}), say({"steps": [step("a")]}))
        view = self.planned()
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual(self.types()[:4], ["planning_started", "planning_retry", "plan_generated", "plan_started"])
        (retry,) = self.events("planning_retry")
        self.assertEqual((retry["attempt"], retry["validationErrors"]), (1, 1))
        self.assertIn("nowhere", retry["text"])
        told = self.heard("plan", 2)["parameters"]
        self.assertIn("nowhere", told["problems"])
        self.assertIn("nowhere", str(told["previous"]))

    def test_how_a_lenient_answer_was_read_is_said(self):
        self.acts("a")
        self.act("plan", say({"tasks": [{"id": "a", "agent": "worker", "skill": "act", "input": "do a", "params": {"name": "a"}, "mood": "good"}]}))
        self.assertEqual(self.planned()["status"], "completed")
        said = self.events("plan_generated")[0]["normalised"]
        for word in ("input", "params", "mood"):
            self.assertIn(word, said)

    def test_a_goal_that_no_plan_can_reach_ends_with_the_reason_and_without_a_repair(self):
        self.act("plan", say({"steps": [], "impossible": "nobody here can fly"}))
        view = self.planned()
        self.assertEqual((view["status"], view["failureReason"], self.asked("plan")), ("failed", "Mission impossible: nobody here can fly", 1))
        self.assertEqual(self.events("plan_completed")[0]["failureKind"], "planning_failed")

    def test_a_second_invalid_plan_fails(self):
        self.act("plan", say({"steps": [step("a", agentId="nobody")]}))
        view = self.planned()
        self.assertEqual((view["status"], self.asked("plan")), ("failed", 2))
        self.assertEqual(self.types(), ["planning_started", "planning_retry", "planning_failed", "plan_completed"])
        self.assertEqual([e["failureKind"] for e in self.events("planning_failed") + self.events("plan_completed")], ["invalid_plan"] * 2)
        self.assertIn("nobody", view["failureReason"])

    def test_a_planner_that_fails_or_does_not_speak_json_gives_no_plan(self):
        for answer, kind, words in (("echo out of ideas >&2; exit 1", "planning_failed", "out of ideas"), (say("I would rather not"), "invalid_plan", "no plan")):
            with self.subTest(answer):
                self.act("plan", answer)
                (self.d.work / "plan.asked").unlink(missing_ok=True)
                view = self.planned(policy={"maxRetries": 0})
                self.assertEqual((view["status"], self.events("plan_completed")[0]["failureKind"]), ("failed", kind), view)
                self.assertIn(words, view["failureReason"])

    def test_a_person_decides_when_no_plan_could_be_made(self):
        self.acts("a")
        self.act("plan", say("no"), say("no"), say({"steps": [step("a")]}))
        self.ask_for(policy={"onInvalidPlan": "interrupt"})
        review = until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "it waits")[0]
        self.assertEqual((review["kind"], review["reviewId"]), ("planning", self.plan + "/r1"))
        self.d.ask("review.decide", reviewId=self.plan + "/r1", decision="approve", comment="try again")
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.assertEqual([e["type"] for e in self.d.events(self.plan)][:6],
                         ["planning_started", "planning_retry", "planning_failed", "plan_paused", "review_decided", "planning_started"])

    def test_a_person_gives_the_plan_or_says_no(self):
        self.acts("a")
        self.act("plan", say("no"))
        self.ask_for(policy={"onInvalidPlan": "interrupt"})
        until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "it waits")
        wrong = self.d.ask_raw("review.decide", reviewId=self.plan + "/r1", decision="approve", edit={"steps": [step("a", dependsOn=["x"])]})
        self.assertEqual((wrong["ok"], wrong["error"]["code"]), (False, "INVALID"), wrong)
        self.d.ask("review.decide", reviewId=self.plan + "/r1", decision="approve", edit={"steps": [step("a")]})
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.ask_for(policy={"onInvalidPlan": "interrupt"})
        until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "it waits")
        self.d.ask("review.decide", reviewId=self.plan + "/r1", decision="reject", comment="never mind")
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["failureReason"]), ("cancelled", "never mind"))

    def test_dry_run_makes_the_plan_and_runs_nothing(self):
        self.acts("a")
        self.act("plan", say({"steps": [step("a")]}))
        view = self.planned(dryRun=True)
        self.assertEqual((view["status"], view["outcome"], self.asked("a")), ("planned", "success", 0))
        self.assertEqual(self.events("plan_completed")[0]["summary"], "Nothing was run: it was a dry run.")
        document = self.d.ask("plan.get", planId=self.plan, document=True)["document"]
        again = self.d.wait_plan(self.d.submit({"steps": document["steps"], "goal": document["goal"]}))
        self.assertEqual((again["status"], self.asked("a")), ("completed", 1))

    def test_cancelling_while_it_is_planned_stops_the_planner(self):
        self.act("plan", "exec sleep 60")
        self.ask_for()
        self.wait_asked("plan")
        self.assertEqual(self.d.ask("plan.cancel", planId=self.plan)["status"], "cancelled")
        self.assertEqual(self.types(), ["planning_started", "plan_cancelling", "plan_completed"])
        until(lambda: self.d.ask("supervisor.stats").get("inFlight", 0) == 0, 20, "the planner is stopped")

    def test_planning_has_its_time(self):
        self.act("plan", "exec sleep 60")
        view = self.planned(policy={"plannerTimeoutMs": 700})
        self.assertEqual((view["status"], self.events("plan_completed")[0]["failureKind"]), ("failed", "planning_failed"), view)
        self.assertIn("timeout", view["failureReason"])

    def test_it_goes_on_over_a_crash_and_a_restart(self):
        for how in ("kill", "stop"):
            with self.subTest(how):
                self.acts("a")
                go = self.d.work / ("go." + how)
                self.act("plan", "while [ ! -e %s ]; do sleep 0.05; done; %s" % (go, say({"steps": [step("a")]})))
                (self.d.work / "plan.asked").unlink(missing_ok=True)
                self.ask_for()
                self.wait_asked("plan")
                self.restart(how)
                self.assertEqual(self.d.ask("plan.get", planId=self.plan)["phase"], "planning")
                go.write_text("")
                self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
                self.assertEqual(self.types()[:3], ["planning_started", "plan_generated", "plan_started"])
                self.restart(how)
                self.assertEqual(self.d.ask("plan.get", planId=self.plan)["status"], "completed")

    def test_a_task_that_says_too_little_or_too_much_is_a_warning(self):
        for task, warned in (("x" * 14, True), ("do what is to be done", False), ("x" * 201, True)):
            with self.subTest(len(task)):
                found = self.d.ask("plan.lint", plan={"steps": [step("a", task=task)]})
                self.assertTrue(found["valid"])
                self.assertEqual(any("15 to 200" in p["message"] and p["severity"] == "warning" for p in found.get("problems", [])), warned)

    def test_planners_that_are_not_there_are_refused_in_words(self):
        for planner, words in (("llm", "orchestrator"), ("agent:nobody", "nobody"), ("magic", "keyword")):
            with self.subTest(planner):
                answer = self.d.ask_raw("plan.submit", goal="x", planner=planner)
                self.assertFalse(answer["ok"])
                self.assertIn(words, answer["error"]["message"])
        lint = self.d.ask_raw("plan.lint", goal="x", planner="agent")
        self.assertIn("dryRun", lint["error"]["message"])

    def test_a_planner_cannot_take_away_what_the_plan_demands(self):
        self.acts("a")
        self.act("plan", say({"steps": [step("a", requiresApproval=False)], "policy": {"requiresApproval": False, "budget": {"tokens": 10 ** 9}}}))
        self.ask_for(policy={"requiresApproval": True, "budget": {"tokens": 500}})
        until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "it waits for approval")
        self.assertEqual(self.d.ask("plan.get", planId=self.plan)["budget"], {"tokens": 500})
        self.d.ask("plan.cancel", planId=self.plan)


class Answering(Planned):
    def run_answered(self, steps, **plan):
        policy = {"synthesis": "agent", **plan.pop("policy", {})}
        return self.run_plan(steps, goal="tell me", policy=policy, **plan)

    def aggregate(self):
        return self.d.ask("plan.result", planId=self.plan)

    def test_the_answer_is_the_agents(self):
        self.acts("a", "b")
        self.act("synthesize", say("# All is well"))
        view = self.run_answered([step("a"), step("b")])
        self.assertEqual((view["status"], view["outcome"], self.aggregate()["aggregatedResult"]), ("completed", "success", "# All is well"), view)
        self.assertEqual(self.types()[-3:], ["synthesis_started", "synthesis_finished", "plan_completed"])
        self.assertEqual((self.events("plan_completed")[0]["summary"], self.events("plan_completed")[0]["synthesis"]), ("# All is well", "agent"))
        told = self.heard("synthesize")["parameters"]
        self.assertEqual((told["goal"], told["status"], told["mayRetry"]), ("tell me", "completed", 0))
        self.assertEqual([(s["number"], s["stepId"], s["status"], s["result"]) for s in told["steps"]], [(1, "a", "completed", "done a"), (2, "b", "completed", "done b")])
        self.assertEqual([p["phase"] for p in self.d.ask("plan.history", planId=self.plan)["phases"]], ["planning", "execution", "synthesis"])

    def test_synthesis_that_is_asked_for_is_made_for_one_step_too(self):
        self.acts("a")
        self.act("synthesize", say("all of it"))
        self.run_answered([step("a")])
        self.assertEqual((self.aggregate()["aggregatedResult"], self.asked("synthesize")), ("all of it", 1))

    def test_a_synthesizer_that_fails_leaves_the_results_and_says_so(self):
        self.acts("a", "b")
        self.act("synthesize", "echo no words >&2; exit 1")
        view = self.run_answered([step("a"), step("b")], policy={"maxRetries": 0})
        self.assertEqual((view["status"], self.aggregate()["aggregatedResult"]), ("completed", "**do a**\ndone a\n\n---\n\n**do b**\ndone b"))
        (finished,) = self.events("synthesis_finished")
        self.assertEqual((finished["ok"], "no words" in finished["reason"]), (False, True))

    def test_a_failed_plan_is_answered_for_and_stays_failed(self):
        self.acts("a")
        self.act("b", "echo broken >&2; exit 1")
        self.act("synthesize", say("b did not work"))
        view = self.run_answered([step("a"), step("b", maxRetries=0), step("c")])
        self.assertEqual((view["status"], view["failureReason"], self.aggregate()["aggregatedResult"]),
                         ("failed", "Step 2 failed: act: exit code 1: broken", "b did not work"), view)
        told = self.heard("synthesize")["parameters"]
        self.assertEqual((told["status"], told["failureReason"], told["mayRetry"]), ("failed", view["failureReason"], 1))
        self.assertEqual([(s["stepId"], s["status"], s.get("error")) for s in told["steps"]],
                         [("a", "completed", None), ("b", "failed", "act: exit code 1: broken"), ("c", "cancelled", "")])

    def test_failed_steps_are_tried_again_when_the_synthesizer_asks(self):
        self.acts("a", "c")
        self.act("b", "echo broken >&2; exit 1", say("better"))
        self.act("synthesize", say({"retry": [{"stepId": "b", "reason": "it was a hiccup"}]}), say("now it is fine"))
        view = self.run_answered([step("a"), step("b", maxRetries=0), step("c")])
        self.assertEqual((view["status"], view["outcome"], view["revision"], self.aggregate()["aggregatedResult"]), ("completed", "success", 2, "now it is fine"), view)
        self.assertEqual(self.statuses(view), [("a", "completed"), ("b", "completed"), ("c", "completed")])
        self.assertEqual([self.asked(x) for x in "abc"], [1, 2, 1])
        (retry,) = self.events("synthesis_retry")
        self.assertEqual((retry["newSteps"], [s["stepId"] for s in retry["steps"]], retry["revision"]), (2, ["b", "c"], 2))

    def test_there_is_an_end_to_trying_again(self):
        self.acts("a")
        self.act("b", "echo broken >&2; exit 1")
        self.act("synthesize", say({"retry": [{"stepId": "b"}]}))
        view = self.run_answered([step("a"), step("b", maxRetries=0)])
        self.assertEqual((view["status"], self.asked("b"), self.asked("synthesize")), ("failed", 2, 2))
        self.assertEqual((self.events("synthesis_finished")[0]["ok"], self.aggregate()["aggregatedResult"]), (False, "done a"))

    def test_synthesis_only_when_there_is_no_plan(self):
        self.act("plan", say("no"))
        self.act("synthesize", say("I can only say this"))
        view = self.planned(policy={"onInvalidPlan": "synthesize", "synthesis": "agent"})
        answer, not_done = self.aggregate()["aggregatedResult"].split("\n\n---\n\n**Not done**\n- No plan was made: ")
        self.assertEqual((view["status"], view["outcome"], answer), ("completed", "partial", "I can only say this"), view)
        self.assertEqual(not_done, self.events("planning_failed")[0]["reason"])
        self.assertEqual(self.types(), ["planning_started", "planning_retry", "planning_failed", "plan_started", "synthesis_started", "synthesis_finished", "plan_completed"])

    def test_an_answer_is_written_over_a_crash(self):
        self.acts("a", "b")
        go = self.d.work / "go"
        self.act("synthesize", "while [ ! -e %s ]; do sleep 0.05; done; %s" % (go, say("late but whole")))
        self.plan = self.d.submit({"steps": [step("a"), step("b")], "policy": {"synthesis": "agent"}})
        self.wait_asked("synthesize")
        self.restart("kill")
        self.assertEqual(self.d.ask("plan.get", planId=self.plan)["phase"], "synthesis")
        refused = self.d.ask_raw("plan.modify", planId=self.plan, kind="skip_steps", stepsToSkip=[1])
        self.assertIn("answer", refused["error"]["message"])
        go.write_text("")
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.assertEqual(self.aggregate()["aggregatedResult"], "late but whole")

    def test_nobody_who_could_answer_is_refused(self):
        answer = self.d.ask_raw("plan.submit", plan={"steps": [step("a")], "policy": {"synthesis": "llm"}})
        self.assertIn("orchestrator", str(answer["error"]))


del Acts, Planned
if __name__ == "__main__":
    unittest.main(verbosity=2)
