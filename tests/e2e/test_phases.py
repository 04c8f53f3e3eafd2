"""What goes to agents about a step, and what their answers do: attempts, searches, gates, verifications, replans, handoffs."""
import re
import threading
import time

from harness import BatonTest, main, until
from probe import Probe, step, wait_up

NONE = ""


class Skilled(Probe):
    """A probe with the skills that the test gives it; `answers` has one function per purpose."""

    def __init__(self, daemon, agent_id, skills, **answers):
        self.skills = [s if isinstance(s, dict) else {"id": s, "description": "Does " + s + "."} for s in skills]
        self.answers = answers
        super().__init__(daemon, agent_id, work=self.by_purpose)

    def register(self):
        self.registration["card"]["skills"] = self.skills
        return super().register()

    def by_purpose(self, r):
        answer = self.answers.get(r.get("purpose", "execute"))
        if answer is None:
            return {"outcome": "completed", "result": {"text": "done " + r["stepId"]}}
        return answer(r) if callable(answer) else answer

    def asked(self, purpose):
        return [r for r in self.of("step.execute") if r.get("purpose", "execute") == purpose]


def data(value, **more):
    return {"outcome": "completed", "result": {"data": value}, **more}


def text(value):
    return {"outcome": "completed", "result": {"text": value}}


def failed(message, **more):
    return {"outcome": "failed", "failure": {"code": "INTERNAL", "message": message, **more}}


def in_turn(*answers):
    left = list(answers)
    return lambda r: left.pop(0) if len(left) > 1 else left[0]


class Phases(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=NONE, agents=False)

    def agent(self, agent_id, skills=("do",), **answers):
        p = Skilled(self.d, agent_id, skills, **answers)
        self.addCleanup(p.close)
        wait_up(self.d, agent_id)
        return p

    def run_plan(self, steps, **plan):
        self.plan = self.d.submit({"steps": steps, **plan})
        view = self.d.wait_plan(self.plan)
        return view

    def of_step(self, view, step_id):
        return [s for s in view["steps"] if s["stepId"] == step_id and not s.get("superseded")][0]

    def types(self):
        return [e["type"] for e in self.d.events(self.plan)]

    def event(self, type_):
        return [e for e in self.d.events(self.plan) if e["type"] == type_][-1]


class Attempts(Phases):
    def test_request_says_its_purpose_time_budget_and_trace(self):
        p = self.agent("a")
        view = self.run_plan([step("a", "a", timeoutMs=7000, idleTimeoutMs=900)],
                             policy={"budget": {"tokens": 500, "costMicros": 9}, "timeoutMs": 5000})
        self.assertEqual(view["status"], "completed", view)
        r = p.asked("execute")[0]
        self.assertLessEqual(r["deadlineMs"], 5000, "the plan ends before the attempt would")
        self.assertGreater(r["deadlineMs"], 1000)
        self.assertEqual((r["idleMs"], r["budget"]), (900, {"tokens": 500, "costMicros": 9}))
        self.assertEqual(r["key"], "%s/1/a" % self.plan)
        found = re.fullmatch("00-([0-9a-f]{32})-([0-9a-f]{16})-01", r["traceparent"])
        self.assertEqual(found.group(1), self.plan.replace("-", "").lower())

    def test_result_that_does_not_fit_the_skills_output_schema_is_tried_again_with_the_diagnosis(self):
        schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
        p = self.agent("a", [{"id": "do", "outputSchema": schema}], execute=in_turn(data({"n": "x"}), data({"n": 1})))
        view = self.run_plan([step("a", "a", backoff={"initialMs": 1})])
        self.assertEqual((view["status"], view["steps"][0]["attempts"]), ("completed", 2), view)
        feedback = p.asked("execute")[1]["feedback"]
        self.assertIn("/n expected an integer", feedback)
        self.assertIn("plan_step_verification_failed", self.types())
        self.assertNotIn("feedback", p.asked("execute")[0])

    def test_verify_schema_fails_the_attempt_with_the_validators_words(self):
        p = self.agent("a", execute=in_turn(data(3), data(30)))
        view = self.run_plan([step("a", "a", verify={"minimum": 10}, backoff={"initialMs": 1})])
        self.assertEqual((view["status"], view["steps"][0]["attempts"]), ("completed", 2), view)
        self.assertIn("verify: the result", p.asked("execute")[1]["feedback"])
        view = self.run_plan([step("a", "a", verify={"minimum": 100}, maxRetries=0)])
        self.assertEqual((view["status"], view["steps"][0]["errorClass"]), ("failed", "VERIFICATION_FAILED"), view)

    def test_failure_without_a_class_gets_one_from_its_words(self):
        for message, cls in (("could not generate it", "UNKNOWN"), ("Permission denied", "PERMISSION_DENIED"),
                             ("HTTP 404", "RESOURCE_NOT_FOUND"), ("Invalid date", "VALIDATION_ERROR")):
            p = self.agent("a", execute=failed(message))
            view = self.run_plan([step("a", "a", maxRetries=0)], policy={"maxFallbacks": 0})
            self.assertEqual(view["steps"][0]["errorClass"], cls, message)
            p.close()

    def test_agent_says_how_long_to_wait_before_the_next_attempt(self):
        p = self.agent("a", execute=in_turn(failed("slow down", **{"class": "RATE_LIMITED", "retryAfterMs": 700}), text("ok")))
        view = self.run_plan([step("a", "a", backoff={"initialMs": 1})])
        self.assertEqual(view["status"], "completed", view)
        self.assertGreaterEqual(self.event("plan_step_retry")["delayMs"], 700)
        self.assertEqual(len(p.asked("execute")), 2)

    def test_results_in_other_forms_are_taken_for_what_they_mean(self):
        for said, expected in (("plain", "plain"), ({"rows": 3}, '{"rows":3}'), ([1, 2], "[1,2]"),
                               ({"command": "resume", "value": "go"}, "go")):
            p = self.agent("a", execute={"outcome": "completed", "result": said})
            self.run_plan([step("a", "a")])
            self.assertEqual(self.d.ask("plan.result", planId=self.plan)["aggregatedResult"], expected)
            p.close()

    def test_late_result_of_a_timed_out_attempt_counts_when_nothing_newer_has_finished(self):
        def slow(r):
            if r["attempt"] == 1:
                time.sleep(1.2)
                return text("late")
            return failed("never", retryable=False)
        p = self.agent("a", execute=slow)
        view = self.run_plan([step("a", "a", timeoutMs=500, backoff={"initialMs": 60000})])
        self.assertEqual((view["status"], view["steps"][0]["result"]), ("completed", "late"), view)
        self.assertEqual(len(p.asked("execute")), 1)


class Limits(BatonTest):
    def test_session_has_no_more_out_than_it_may_and_others_are_not_held_up(self):
        d = self.daemon(config="limits: {inFlightPerSession: 1}\n", agents=False)
        out, most, lock = {}, {}, threading.Lock()

        def work(r):
            with lock:
                out[r["sessionId"]] = out.get(r["sessionId"], 0) + 1
                most[r["sessionId"]] = max(most.get(r["sessionId"], 0), out[r["sessionId"]])
                most["all"] = max(most.get("all", 0), sum(out.values()))
            threading.Event().wait(0.2)
            with lock:
                out[r["sessionId"]] -= 1
            return text("done")
        probes = [Skilled(d, "a", ["do"], execute=work) for _ in range(4)]
        for p in probes:
            self.addCleanup(p.close)
        until(lambda: len(d.ask("agents.list")["agents"][0].get("instances", [])) == 4, 10, "four instances")
        plans = [d.submit({"steps": [step("a%d" % i, "a", dependsOn=[]) for i in range(n)], "sessionId": s}) for s, n in (("s", 3), ("t", 2))]
        for plan in plans:
            self.assertEqual(d.wait_plan(plan)["status"], "completed")
        self.assertEqual((most["s"], most["t"], most["all"]), (1, 1, 2))


class Handoffs(Phases):
    def test_agent_hands_over_and_the_next_one_hears_why(self):
        a = self.agent("a", execute={"outcome": "handoff", "handoff": {"toAgentId": "b", "reason": "not mine"}})
        b = self.agent("b", ["other"])
        view = self.run_plan([step("a", "a")], policy={"handoffTo": ["b"]})
        self.assertEqual(view["status"], "completed", view)
        r = b.asked("execute")[0]
        self.assertEqual((r["feedback"], r["attempt"], r["skill"]), ("not mine", 2, "other"),
                         "the skill is its own: it does not have the plan's")
        self.assertEqual([h["reason"] for h in self.d.ask("plan.result", planId=self.plan)["handoffs"]],
                         ["plan_step", "agent_request"])
        self.assertEqual(len(a.asked("execute")), 1)

    def test_stranger_and_one_who_had_it_are_refused(self):
        for to in ("nobody", "a"):
            p = self.agent("a", execute={"outcome": "handoff", "handoff": {"toAgentId": to}})
            view = self.run_plan([step("a", "a", maxRetries=0)])
            self.assertEqual((view["status"], view["steps"][0]["errorClass"]), ("failed", "VALIDATION_ERROR"), view)
            p.close()


class Searches(Phases):
    def test_nothing_is_searched_for_unless_the_plan_asks_for_it(self):
        self.agent("a", execute=failed("page not found"))
        s = self.agent("finder", ["search"], search=text("found it"))
        view = self.run_plan([step("a", "a", parameters={"page": "x"})])
        self.assertEqual((view["status"], view["failureReason"], s.asked("search")), ("failed", "Step 1 failed: page not found", []))

    def test_search_that_fails_leaves_the_steps_own_error(self):
        """A refusal and an error; also of an error that is longer than what a run keeps of it."""
        a, s = self.agent("a"), self.agent("finder", ["search"])
        for own in ("page not found", "page not found: " + "nobody has seen it " * 20):
            for said in (failed("not for you", **{"class": "PERMISSION_DENIED"}), failed("broken", retryable=False)):
                with self.subTest(own=len(own), said=said):
                    a.answers, s.answers = {"execute": failed(own)}, {"search": said}
                    view = self.run_plan([step("a", "a")], policy={"searchAgent": "finder"})
                    self.assertEqual((view["status"], view["failureReason"]), ("failed", "Step 1 failed: " + own))
                    self.assertEqual((view["steps"][0]["error"], view["steps"][0]["errorClass"]), (own, "RESOURCE_NOT_FOUND"))
                    self.assertEqual(self.event("plan_step_completed")["error"], own)
        self.assertEqual(len(s.asked("search")), 4)

    def test_lint_names_what_is_sent_to_whom(self):
        self.agent("a")
        self.agent("finder", ["search"])
        plan = {"steps": [step("a", "a", parameters={"page": "x", "user": "y"}), step("b", "a")]}
        self.assertNotIn("finder", str(self.d.ask("plan.lint", plan=plan)["problems"]))
        found = self.d.ask("plan.lint", plan={**plan, "policy": {"searchAgent": "finder"}})["problems"]
        (said,) = [p["message"] for p in found if p.get("field") == "policy.searchAgent"]
        self.assertIn('to agent "finder": a (page, user), b (its task)', said)

    def test_what_is_not_found_is_searched_for_with_the_steps_parameters(self):
        self.agent("a", execute=failed("page not found"))
        s = self.agent("finder", ["search"], search=text("found it"))
        view = self.run_plan([step("a", "a", parameters={"page": "x"}), step("b", "finder", skill="search", dependsOn=["a"])],
                             policy={"searchAgent": True})
        self.assertEqual(view["steps"][0]["result"], "found it", view)
        r = s.asked("search")[0]
        self.assertEqual((r["skill"], r["parameters"], r["key"]), ("search", {"query": '{"page":"x"}'}, self.plan + "/1/a/search"))
        self.assertEqual(self.event("fallback_used")["action"], "search")
        self.assertIn("Step 1 (finder): found it", s.asked("execute")[0]["context"]["text"])

    def test_search_that_wants_text_gets_text_and_a_step_without_parameters_its_task(self):
        self.agent("a", execute=failed("page not found"))
        schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        s = self.agent("finder", [{"id": "search", "inputSchema": schema}], search=text("found"))
        self.run_plan([step("a", "a", parameters={"page": "x"}), step("b", "a", task="find the page", dependsOn=["a"])],
                      policy={"searchAgent": "finder"})
        self.assertEqual([r["parameters"]["query"] for r in s.asked("search")], ['{"page":"x"}', "find the page"])


class Questions(Phases):
    def test_verifier_sends_the_step_back_with_its_diagnosis(self):
        a = self.agent("a", execute=lambda r: text("try %d" % r["attempt"]))
        v = self.agent("judge", ["verify"], verify=in_turn(data({"passed": False, "diagnosis": "too short"}), text("Yes, fine")))
        view = self.run_plan([step("a", "a", verifyWith="judge", backoff={"initialMs": 1})])
        self.assertEqual((view["status"], view["steps"][0]["result"]), ("completed", "try 2"), view)
        self.assertEqual(a.asked("execute")[1]["feedback"], "too short")
        first, second = v.asked("verify")
        self.assertEqual((first["skill"], first["result"], first["key"]), ("verify", {"text": "try 1"}, self.plan + "/1/a/verify"))
        self.assertEqual((first["attempt"], second["attempt"]), (1, 2), "each question has its number")
        self.assertIn("do a", first["task"])
        self.assertLessEqual(first["deadlineMs"], 30000)
        self.assertEqual(self.event("plan_step_verification_failed")["diagnosis"], "too short")

    def test_skill_that_the_plan_names_answers_the_question(self):
        self.agent("a")
        v = self.agent("judge", ["review"], verify=text("ok"))
        view = self.run_plan([step("a", "a", verifyWith={"skill": "review"})])
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual([r["skill"] for r in v.asked("verify")], ["review"])

    def test_gate_says_what_is_missing(self):
        a = self.agent("a")
        g = self.agent("gate", ["gate"], gate=data({"sufficient": False, "missing": ["the total"], "reason": "no total"}))
        view = self.run_plan([step("a", "a"), step("b", "a", dependsOn=["a"], gate="gate")])
        self.assertEqual((view["status"], self.of_step(view, "b")["status"]), ("failed", "failed"), view)
        self.assertEqual(self.event("quality_gate_failed")["missing"], ["the total"])
        r = g.asked("gate")[0]
        self.assertEqual(r["key"], self.plan + "/1/b/gate")
        self.assertIn("Step 1 (a): done a", r["context"]["text"])
        self.assertEqual(r["parameters"]["task"], "do b")
        self.assertEqual([r["stepId"] for r in a.asked("execute")], ["a"])

    def test_agent_without_the_skill_is_never_asked(self):
        a = self.agent("a")
        view = self.run_plan([step("a", "a"), step("b", "a", dependsOn=["a"], gate="a")])
        self.assertEqual(view["status"], "completed", "a gate that cannot answer is open\n%s" % view)
        self.assertIn("no skill 'gate'", self.event("quality_gate_error")["error"])
        self.assertEqual([r["stepId"] for r in a.of("step.execute")], ["a", "b"], "nothing but the steps was asked")
        view = self.run_plan([step("a", "a", verifyWith="a", maxRetries=0)])
        self.assertEqual((view["status"], view["steps"][0]["errorClass"]), ("failed", "VERIFICATION_FAILED"), view)

    def test_answer_that_is_no_verdict_is_an_error_and_not_a_no(self):
        self.agent("a")
        self.agent("gate", ["gate"], gate=data({"score": 3}))
        view = self.run_plan([step("a", "a"), step("b", "a", dependsOn=["a"], gate="gate")])
        self.assertEqual(view["status"], "completed", view)
        self.assertIn("no verdict", self.event("quality_gate_error")["error"])


class People(Phases):
    def wait_review(self):
        until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 10, "a review\n" + self.d.log())
        return self.d.ask("review.list", planId=self.plan)["reviews"][0]

    def test_data_that_was_asked_for_goes_beside_the_parameters_also_after_a_restart(self):
        need = {"outcome": "needs_input", "need": {"kind": "input", "prompt": "Which?", "schema": {"type": "object"}}}
        anything = {"outcome": "needs_input", "need": {"kind": "input", "prompt": "And?"}}
        p = self.agent("a", execute=in_turn(need, anything, text("thanks")))
        self.plan = self.d.submit({"steps": [step("a", "a", parameters={"x": 1, "y": "{{literal"})]})
        self.assertEqual(self.wait_review()["prompt"], "Which?")
        self.d.ask("review.decide", reviewId=self.wait_review()["reviewId"], decision="approve", edit={"colour": "{{results.a}}"})
        until(lambda: len(p.asked("execute")) == 2, 10, "attempt 2")
        self.assertEqual(p.asked("execute")[1]["parameters"], {"x": 1, "y": "{{literal", "colour": "{{results.a}}"})
        again = self.wait_review()
        self.d.kill9()
        self.d.start(agents=False)
        p.epoch = p.register()["epoch"]
        self.d.ask("review.decide", reviewId=again["reviewId"], decision="approve", comment="the big one", edit=7)
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        r = p.asked("execute")[2]
        self.assertEqual(r["parameters"], {"x": 1, "y": "{{literal", "colour": "{{results.a}}", "input": 7})
        self.assertEqual(r["feedback"], "the big one")

    def test_edited_parameters_replace_the_plans(self):
        p = self.agent("a")
        self.plan = self.d.submit({"steps": [step("z", "a"), step("a", "a", parameters={"x": 1}, requiresApproval=True,
                                                                  dependsOn=["z"])]})
        review = self.wait_review()
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve", edit={"w": "{{results.z}}"})
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.assertEqual(p.asked("execute")[1]["parameters"], {"w": "done z"})


class Replans(Phases):
    def replanner(self, *answers):
        return self.agent("planner", ["plan"], replan=in_turn(*answers))

    def policy(self, **more):
        return {"onFailure": "replan", "replan": {"agent": "planner", "cooldownMs": 1, **more}, "maxFallbacks": 0}

    def test_failed_step_is_replanned_and_completed_work_is_kept(self):
        a = self.agent("a", execute=lambda r: failed("it broke", retryable=False) if r["stepId"] == "b" else text("done " + r["stepId"]))
        planner = self.replanner(data({"reuse": ["a"], "reasoning": "another way", "steps": [
            {"stepId": "b", "agentId": "a", "skill": "do", "task": "do b differently", "dependsOn": ["a"],
             "parameters": {"from": "{{results.a}}"}} | {"stepId": "b2"},
            step("c", "a", dependsOn=["b2"])]}))
        view = self.run_plan([step("a", "a"), step("b", "a", dependsOn=["a"])], goal="the goal", policy=self.policy())
        self.assertEqual((view["status"], view["revision"]), ("completed", 2), view)
        self.assertEqual([(s["stepId"], s["status"], s.get("superseded", False)) for s in view["steps"]],
                         [("a", "completed", False), ("b", "failed", True), ("b2", "completed", False), ("c", "completed", False)])
        r = planner.asked("replan")[0]
        self.assertEqual((r["skill"], r["key"]), ("plan", self.plan + "/1/b/replan"))
        q = r["parameters"]
        self.assertEqual([c["text"] for c in q["completed"]], ["✓ do a: done a"])
        self.assertEqual([c["text"] for c in q["failed"]], ["✗ do b: it broke"])
        self.assertEqual((q["goal"], q["error"], q["history"]), ("the goal", "it broke", []))
        self.assertEqual({g["agentId"]: [s["id"] for s in g["skills"]] for g in q["agents"]}, {"a": ["do"], "planner": ["plan"]})
        self.assertIn("the goal", r["task"])
        self.assertNotIn("it broke", r["task"], "what agents said is data, never instructions")
        again = [x for x in a.asked("execute") if x["stepId"] == "b2"][0]
        self.assertEqual((again["key"], again["parameters"]), (self.plan + "/2/b2", {"from": "done a"}))
        finished = self.event("replan_finished")
        self.assertEqual((finished["ok"], finished["newSteps"], finished["reason"]), (True, 2, "another way"))

    def test_second_replan_hears_of_the_first(self):
        self.agent("a", execute=failed("it broke", retryable=False))
        planner = self.replanner(data({"steps": [step("x", "a")]}), data({"steps": [step("y", "a")]}), text("I give up"))
        view = self.run_plan([step("a", "a")], policy=self.policy())
        self.assertEqual(view["status"], "failed", view)
        first, second, third = planner.asked("replan")[:3]
        self.assertEqual([h["diagnosis"] for h in second["parameters"]["history"]], ["it broke"])
        self.assertEqual([(h["ok"], h["newTaskCount"], h["stepId"]) for h in third["parameters"]["history"]], [(True, 1, "a"), (True, 1, "x")])
        self.assertEqual([f["text"] for f in third["parameters"]["failed"]], ["✗ do a: it broke", "✗ do x: it broke", "✗ do y: it broke"])
        self.assertIn("the answer is no plan", view["failureReason"])

    def test_plan_with_problems_is_refused_with_all_of_them(self):
        self.agent("a", execute=failed("it broke", retryable=False))
        self.agent("stranger")
        self.replanner(data({"steps": [step("x", "stranger"), step("y", "a", dependsOn=["nowhere"])]}))
        view = self.run_plan([step("a", "a")], policy=self.policy())
        self.assertEqual(view["status"], "failed", view)
        self.assertIn("stranger", view["failureReason"])
        self.assertIn("nowhere", view["failureReason"])
        self.assertEqual(len(view["steps"]), 1)

    def test_revised_plan_goes_on_after_the_daemon_was_killed(self):
        hold = {"on": True}

        def work(r):
            if r["stepId"] == "b":
                return failed("it broke", retryable=False)
            if r["stepId"] == "x" and hold["on"]:
                return {"outcome": "needs_approval", "need": {"kind": "approval", "prompt": "May I?"}}
            return text("done " + r["stepId"])
        a = self.agent("a", execute=work)
        planner = self.replanner(data({"reuse": ["a"], "steps": [step("x", "a", dependsOn=["a"]), step("y", "a", dependsOn=["x"])]}))
        self.plan = self.d.submit({"steps": [step("a", "a"), step("b", "a", dependsOn=["a"])], "policy": self.policy()})
        until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 10, "x waits\n" + self.d.log())
        review = self.d.ask("review.list", planId=self.plan)["reviews"][0]
        for _ in range(2):  # also a recovery of what was recovered
            self.d.kill9()
            self.d.start(agents=False)
        a.epoch, planner.epoch = a.register()["epoch"], planner.register()["epoch"]
        hold["on"] = False
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["revision"]), ("completed", 2), view)
        self.assertEqual([s["stepId"] for s in view["steps"] if s["status"] == "completed"], ["a", "x", "y"])
        self.assertEqual([r["stepId"] for r in a.asked("execute")].count("a"), 1, "what is completed is not done again")

    def test_replanner_without_the_skill_is_never_asked(self):
        a = self.agent("a", execute=failed("it broke", retryable=False))
        view = self.run_plan([step("a", "a")], policy={**self.policy(), "replan": {"agent": "a", "cooldownMs": 1}})
        self.assertEqual(view["status"], "failed", view)
        self.assertEqual(len(a.of("step.execute")), 1)
        self.assertIn("no skill 'plan'", view["failureReason"])


if __name__ == "__main__":
    main()
