"""What people do with plans that run and plans that have ended: pause, resume, skip, cancel, insert, replace, decide,
retry, fork; and what can be read of it."""
import threading
import uuid

from harness import BatonTest, main, until
from probe import Probe, step, wait_up

NONE = ""


class Changing(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=NONE, agents=False)
        self.gates = {}

    def probe(self, agent_id="probe", **more):
        p = Probe(self.d, agent_id, **more)
        self.addCleanup(p.close)
        wait_up(self.d, agent_id)
        return p

    def known(self, *names):
        """Agents that have registered and are not there: plans for them are accepted and wait."""
        for name in names:
            self.d.ask("agent.register", card={"agentId": name, "skills": [{"id": "do"}]}, capacity=1, sessionKey="k" * 32,
                       instanceId=str(uuid.uuid4()), endpoint="tcp://127.0.0.1:9")

    def gate(self, step_id):
        """Steps of that name do not end before the gate is set."""
        g = self.gates.setdefault(step_id, threading.Event())
        self.addCleanup(g.set)
        return g

    def work(self, r):
        if r["stepId"] in self.gates:
            self.gates[r["stepId"]].wait(20)
        return {"outcome": "completed", "result": {"text": "done " + r["stepId"]}, "usage": {"inputTokens": 10, "outputTokens": 5}}

    def view(self, plan, **fields):
        return self.d.ask("plan.get", planId=plan, **fields)

    def steps(self, plan):
        return {s["stepId"]: s for s in self.view(plan)["steps"] if not s.get("superseded")}

    def status(self, plan, step_id):
        return self.steps(plan)[step_id]["status"]

    def wait_status(self, plan, step_id, status):
        until(lambda: self.status(plan, step_id) == status, 10, "%s is %s\n%s" % (step_id, status, self.d.log()))

    def types(self, plan):
        return [e["type"] for e in self.d.events(plan)]

    def refused(self, code, type_, **fields):
        answer = self.d.ask_raw(type_, **fields)
        self.assertFalse(answer["ok"], answer)
        self.assertEqual(answer["error"]["code"], code, answer["error"])
        return answer["error"]

    def results(self, plan):
        return self.d.ask("plan.result", planId=plan).get("aggregatedResult")


class Pausing(Changing):
    def test_nothing_new_starts_while_a_plan_is_paused_and_it_goes_on_where_it_was(self):
        self.probe(work=self.work)
        gate = self.gate("a")
        plan = self.d.submit({"steps": [step("a"), step("b")]})
        self.wait_status(plan, "a", "in_progress")
        self.assertEqual(self.d.ask("plan.pause", planId=plan, reason="lunch")["planId"], plan)
        gate.set()
        self.wait_status(plan, "a", "completed")
        view = self.view(plan)
        self.assertEqual((view["paused"], view["steps"][1]["status"]), (["requested"], "pending"))
        self.assertEqual(view["steps"][1]["waiting"], {"kind": "paused", "text": "the plan is paused"})
        self.assertIn("paused", self.refused("CONFLICT", "plan.pause", planId=plan)["message"])
        self.d.ask("plan.resume", planId=plan)
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertNotIn("paused", self.view(plan))
        types = self.types(plan)
        self.assertLess(types.index("plan_paused"), types.index("plan_resumed"))

    def test_a_pause_outlives_the_daemon(self):
        self.known("probe")
        plan = self.d.submit({"steps": [step("a")]})
        self.d.ask("plan.pause", planId=plan)
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual(self.view(plan)["paused"], ["requested"])
        self.probe()
        self.assertEqual(self.status(plan, "a"), "pending")
        self.d.ask("plan.resume", planId=plan)
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_what_cannot_be_paused_or_resumed_says_why(self):
        self.probe()
        plan = self.d.submit({"steps": [step("a")]})
        self.d.wait_plan(plan)
        nobody = str(uuid.uuid4()).upper()
        for verb in ("plan.pause", "plan.resume"):
            self.assertEqual(self.refused("CONFLICT", verb, planId=plan)["message"], "the plan has ended (completed)")
            self.assertEqual(self.refused("NOT_FOUND", verb, planId=nobody)["message"], "No state found for " + nobody)
        self.known("away")
        running = self.d.submit({"steps": [step("a", agent="away")]})
        self.assertEqual(self.refused("CONFLICT", "plan.resume", planId=running)["message"], "the plan is not paused")


class Modifying(Changing):
    def test_skip_to_step_skips_what_is_before_it_and_counts_from_1(self):
        self.probe(work=self.work)
        gate = self.gate("a")
        plan = self.d.submit({"steps": [step(s) for s in "abcd"]})
        self.wait_status(plan, "a", "in_progress")
        answer = self.d.ask("plan.modify", planId=plan, kind="skip_to_step", targetStepNumber=4, reasoning="in a hurry",
                            expectRevision=1)
        self.assertEqual((answer["revision"], answer["changed"]), (2, 3))
        gate.set()
        self.d.wait_plan(plan)
        steps = self.steps(plan)
        self.assertEqual([steps[s]["status"] for s in "abcd"], ["skipped"] * 3 + ["completed"])
        self.assertEqual(steps["b"]["reason"], "user_skip")
        said = [e for e in self.d.events(plan) if e["type"] == "plan_modified"]
        self.assertEqual([(e["kind"], e["revision"], e["reasoning"]) for e in said], [("skip_to_step", 2, "in a hurry")])

    def test_skipped_steps_satisfy_those_that_depend_on_them(self):
        self.known("away")
        self.probe(work=self.work)
        plan = self.d.submit({"steps": [step("a", agent="away"), step("b", agent="away"), step("c", dependsOn=["a", "b"])]})
        answer = self.d.ask("plan.modify", planId=plan, kind="skip_steps", stepsToSkip=[1, 2.0])
        self.assertEqual(answer["changed"], 2)
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual(self.results(plan), "done c")

    def test_conversation_only_changes_the_revision_and_nothing_else(self):
        self.known("away")
        plan = self.d.submit({"steps": [step("a", agent="away")]})
        answer = self.d.ask("plan.modify", planId=plan, kind="conversation_only", reasoning="the user only asked")
        self.assertEqual((answer["revision"], answer["changed"]), (2, 0))
        self.assertEqual(self.status(plan, "a"), "pending")

    def test_cancelling_a_step_ends_it_alone(self):
        p = self.probe("slow", work=self.work)
        self.probe(work=self.work)
        gate = self.gate("a")
        plan = self.d.submit({"policy": {"onFailure": "continue"}, "steps": [
            step("a", agent="slow", dependsOn=[]), step("b"), step("c", dependsOn=["b"])]})
        self.wait_status(plan, "a", "in_progress")
        self.d.ask("plan.modify", planId=plan, kind="cancel_step", stepId="a", reasoning="not needed")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        a = self.steps(plan)["a"]
        self.assertEqual((a["status"], a["reason"]), ("cancelled", "user_cancel"))
        gate.set()  # it does one thing at a time
        until(lambda: p.of("step.cancel"), 10, "the agent is told")

    def test_a_revision_that_moved_on_is_a_conflict_that_says_where_it_is(self):
        self.known("away")
        plan = self.d.submit({"steps": [step("a", agent="away"), step("b", agent="away")]})
        self.d.ask("plan.modify", planId=plan, kind="conversation_only", expectRevision=1)
        # also when the step that is named does not exist: it is about the other revision
        for fields in ({"kind": "conversation_only"}, {"kind": "skip_to_step", "targetStepNumber": 99}, {"kind": "cancel_step", "stepId": "zz"},
                       {"kind": "insert", "steps": [step("n", agent="away")]}):
            error = self.refused("CONFLICT", "plan.modify", planId=plan, expectRevision=1, **fields)
            self.assertIn("revision 2", error["message"])
            self.assertEqual(error["details"], {"revision": 2})
        self.d.ask("plan.modify", planId=plan, kind="conversation_only", expectRevision=2)

    def test_wrong_modifications_say_what_would_be_right(self):
        self.known("away")
        plan = self.d.submit({"steps": [step("a", agent="away"), step("b", agent="away")]})
        for code, fields, word in (
                ("INVALID", {"kind": "jump"}, "skip_to_step"),
                ("INVALID", {"kind": "skip_to_step"}, "targetStepNumber"),
                ("INVALID", {"kind": "skip_to_step", "targetStepNumber": 0}, "1 to 2"),
                ("INVALID", {"kind": "skip_to_step", "targetStepNumber": 3}, "1 to 2"),
                ("INVALID", {"kind": "skip_steps"}, "stepsToSkip"),
                ("INVALID", {"kind": "skip_steps", "stepsToSkip": []}, "stepsToSkip"),
                ("INVALID", {"kind": "skip_steps", "stepsToSkip": ["a"]}, "stepsToSkip[0]"),
                ("INVALID", {"kind": "skip_steps", "stepsToSkip": [0]}, "1 to 2"),
                ("INVALID", {"kind": "skip_steps", "stepsToSkip": 1}, "stepsToSkip"),
                ("NOT_FOUND", {"kind": "cancel_step", "stepId": "zz"}, "zz"),
                ("INVALID", {"kind": "insert"}, "steps"),
                ("INVALID", {"kind": "replace", "steps": [step("n", agent="away")]}, "stepId")):
            error = self.refused(code, "plan.modify", planId=plan, **fields)
            self.assertIn(word, error["message"], fields)
        self.assertEqual(self.view(plan)["revision"], 1)
        self.d.ask("plan.modify", planId=plan, kind="cancel_step", stepId="a")
        self.refused("CONFLICT", "plan.modify", planId=plan, kind="cancel_step", stepId="a")

    def test_inserted_steps_run_where_they_were_put(self):
        p = self.probe(work=self.work)
        gate = self.gate("a")
        plan = self.d.submit({"steps": [step("a"), step("b")]})
        self.wait_status(plan, "a", "in_progress")
        answer = self.d.ask("plan.modify", planId=plan, kind="insert", afterStepId="a", steps=[step("x"), step("y")], reasoning="two more")
        self.assertEqual((answer["revision"], answer["changed"]), (2, 2))
        gate.set()
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual([r["stepId"] for r in p.of("step.execute")], ["a", "x", "y", "b"])
        view = self.view(plan)
        self.assertEqual([s["stepId"] for s in view["steps"]], ["a", "b", "x", "y"], "rows keep their places")
        self.assertEqual([s.get("revision") for s in view["steps"]], [1, 1, 2, 2])
        self.assertEqual([r["key"].split("/")[1] for r in p.of("step.execute")], ["1", "2", "2", "1"])

    def test_a_replaced_step_gives_way_to_the_new_ones(self):
        self.known("away")
        self.probe(work=self.work)
        plan = self.d.submit({"steps": [step("a", agent="away"), step("b")]})
        answer = self.d.ask("plan.modify", planId=plan, kind="replace", stepId="a", steps=[step("a")])
        self.assertEqual((answer["revision"], answer["changed"]), (2, 2))
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        view = self.view(plan)
        self.assertEqual([(s["stepId"], s.get("superseded", False), s["status"]) for s in view["steps"]],
                         [("a", True, "skipped"), ("b", False, "completed"), ("a", False, "completed")])
        self.assertEqual((view["counts"]["total"], view["counts"]["superseded"]), (2, 1))
        self.assertEqual(self.results(plan), "**do b**\ndone b\n\n---\n\n**do a**\ndone a")

    def test_a_revised_plan_survives_a_crash(self):
        self.known("away", "probe")
        plan = self.d.submit({"steps": [step("a", agent="away"), step("b")]})
        self.d.ask("plan.modify", planId=plan, kind="replace", stepId="a", steps=[step("x"), step("y")])
        before = self.view(plan)["steps"]
        self.d.kill9()
        self.d.start(agents=False)
        after = self.view(plan)
        self.assertEqual([s["stepId"] for s in after["steps"]], [s["stepId"] for s in before])
        self.assertEqual(after["revision"], 2)
        p = self.probe(work=self.work)
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual([r["stepId"] for r in p.of("step.execute")], ["x", "y", "b"])

    def test_a_step_that_has_begun_is_not_changed_under_its_feet(self):
        self.probe(work=self.work)
        self.gate("a")
        plan = self.d.submit({"steps": [step("a"), step("b")]})
        self.wait_status(plan, "a", "in_progress")
        error = self.d.ask_raw("plan.modify", planId=plan, kind="insert", beforeStepId="a", steps=[step("x")])["error"]
        self.assertIn(error["code"], ("INVALID", "CONFLICT"))
        self.assertEqual(self.view(plan)["revision"], 1)
        bad = self.d.ask_raw("plan.modify", planId=plan, kind="insert", afterStepId="a", steps=[step("x", agent="nobody")])["error"]
        self.assertEqual(bad["code"], "INVALID")
        self.assertIn("Unknown agent: nobody", bad["message"])
        self.assertTrue(bad["details"]["problems"])


class Cancelling(Changing):
    def test_a_plan_with_attempts_out_is_cancelling_until_they_answer(self):
        self.probe(work=self.work)
        gate = self.gate("a")
        plan = self.d.submit({"steps": [step("a"), step("b")]})
        self.wait_status(plan, "a", "in_progress")
        self.assertEqual(self.d.ask("plan.cancel", planId=plan)["status"], "cancelling")
        self.assertEqual(self.d.ask("plan.cancel", planId=plan)["status"], "cancelling", "twice is once")
        self.assertTrue(self.view(plan)["cancelling"])
        self.refused("CONFLICT", "plan.modify", planId=plan, kind="conversation_only")
        gate.set()
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")
        self.assertEqual(self.d.ask("plan.cancel", planId=plan)["status"], "cancelled")
        self.assertEqual(self.types(plan).count("plan_cancelling"), 1)
        self.assertEqual(self.steps(plan)["a"].get("stop"), "acknowledged")


if __name__ == "__main__":
    main()
