"""What waits for people and what they decide; plans done again; what can be read of a plan: waits, figures, history."""
import unittest
import uuid

from harness import main, until
from probe import step
from test_modify import Changing


class Reviewing(Changing):
    def review(self, plan, kind, seconds=10):
        def open_():
            found = self.d.ask("review.list", planId=plan)["reviews"]
            return found[0] if found else None
        found = until(open_, seconds, "a review is open\n" + self.d.log())
        self.assertEqual(found["kind"], kind, found)
        return found

    def decide(self, review, decision, **fields):
        self.d.ask("review.decide", reviewId=review["reviewId"], decision=decision, **fields)


class Deciding(Reviewing):
    def test_a_step_that_requires_approval_waits_and_edited_parameters_reach_the_agent(self):
        p = self.probe(work=self.work)
        plan = self.d.submit({"steps": [step("a"), step("b", requiresApproval=True, parameters={"to": "all"}, dependsOn=["a"])]})
        review = self.review(plan, "before_step")
        self.assertEqual((review["stepId"], review["stepIndex"], review["parameters"]), ("b", 1, {"to": "all"}))
        self.assertEqual((review["dependsOn"], review["upstreamResults"]), (["a"], [{"stepId": "a", "result": "done a", "agentId": "probe"}]))
        waiting = self.steps(plan)["b"]["waiting"]
        self.assertEqual((waiting["kind"], waiting["text"]), ("person", "waiting for approval (review %s)" % review["reviewId"]))
        self.assertEqual(self.view(plan)["status"], "waiting")
        wrong = self.refused("INVALID", "review.decide", reviewId=review["reviewId"], decision="approve", edit=["x"])
        self.assertIn("edit", wrong["message"])
        self.refused("INVALID", "review.decide", reviewId=review["reviewId"], decision="reject", edit={})
        self.refused("INVALID", "review.decide", reviewId=review["reviewId"], decision="perhaps")
        self.decide(review, "approve", edit={"to": "one"}, comment="not all of them")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        sent = p.of("step.execute")[-1]
        self.assertEqual((sent["parameters"], sent["feedback"]), ({"to": "one"}, "not all of them"))
        self.refused("CONFLICT", "review.decide", reviewId=review["reviewId"], decision="approve")

    def test_an_approval_survives_the_daemon(self):
        self.known("probe")
        plan = self.d.submit({"steps": [step("a", requiresApproval=True)]})
        review = self.review(plan, "before_step")
        self.d.kill9()
        self.d.start(agents=False)
        self.probe(work=self.work)
        self.assertEqual(self.review(plan, "before_step")["reviewId"], review["reviewId"])
        self.decide(review, "approve")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_a_persons_words_are_the_result_of_a_human_review(self):
        self.probe(work=self.work)
        for given, text, data in (({"comment": "looks good"}, "looks good", None),
                                  ({"edit": "fine"}, "fine", None),
                                  ({"edit": {"choice": 2}}, '{"choice":2}', {"choice": 2}),
                                  ({"edit": [1], "comment": "one"}, "one", [1])):
            plan = self.d.submit({"steps": [{"stepId": "r", "type": "human_review", "task": "Is this right?"}]})
            review = self.review(plan, "human_review")
            self.assertEqual(review["prompt"], "Is this right?")
            self.decide(review, "approve", **given)
            self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
            self.assertEqual(self.results(plan), text)
            self.assertEqual(self.d.ask("plan.result", planId=plan, stepId="r")["result"].get("data"), data)

    def test_a_review_is_skipped_or_rejected(self):
        self.probe(work=self.work)
        plan = self.d.submit({"steps": [step("a", requiresApproval=True), step("b")]})
        self.decide(self.review(plan, "before_step"), "skip", comment="not today")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual((self.steps(plan)["a"]["status"], self.steps(plan)["a"]["reason"]), ("skipped", "user_skip"))
        plan = self.d.submit({"steps": [step("a", requiresApproval=True)]})
        self.decide(self.review(plan, "before_step"), "reject", comment="never")
        self.assertEqual(self.d.wait_plan(plan)["failureReason"], "Step 1 failed: never")

    def test_what_an_agent_asks_for_is_given_to_its_next_attempt(self):
        p = self.probe(work=lambda r: {"outcome": "needs_input", "need": {"kind": "text", "prompt": "Which colour?", "schema": {"type": "string"}}}
                       if r["attempt"] == 1 else {"outcome": "completed", "result": {"text": "blue it is"}})
        plan = self.d.submit({"steps": [step("a")]})
        review = self.review(plan, "input")
        self.assertEqual((review["prompt"], review["agentId"], review["attempt"]), ("Which colour?", "probe", 1))
        self.assertEqual(review["schema"], {"type": "string"})
        self.assertEqual(review["askedAt"], [e["timestamp"] for e in self.d.events(plan) if e["type"] == "plan_step_waiting"][0])
        self.decide(review, "approve", edit="blue")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertIn("blue", str(p.of("step.execute")[1]))

    def test_a_plan_waits_for_its_sign_off(self):
        self.probe(work=self.work)
        body = {"goal": "clean up", "policy": {"signoff": True}, "steps": [step("a")]}
        plan = self.d.submit(body)
        review = self.review(plan, "plan")
        self.assertEqual((review["reviewId"], review["prompt"], "stepId" in review), (plan + "/r1", "clean up", False))
        view = self.view(plan)
        self.assertEqual((view["paused"], view["steps"][0]["waiting"]["reviewId"]), (["signoff"], plan + "/r1"))
        self.assertIn("sign-off", self.refused("CONFLICT", "plan.pause", planId=plan)["message"])
        self.refused("INVALID", "review.decide", reviewId=plan + "/r1", decision="skip")
        self.assertEqual(self.d.ask("supervisor.stats")["reviewsOpen"], 1)
        self.decide(review, "approve")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        plan = self.d.submit(body)
        self.decide(self.review(plan, "plan"), "reject", comment="too risky")
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")
        history = self.d.ask("plan.history", planId=plan)
        self.assertEqual([(r["reviewId"], r["kind"], r["decision"], r["comment"]) for r in history["reviews"]],
                         [(plan + "/r1", "plan", "reject", "too risky")])


class Again(Changing):
    def failing(self, *ids):
        self.fails = set(ids)
        return self.probe(capacity=4, work=lambda r: {"outcome": "failed", "failure": {
            "code": "INVALID", "class": "PERMISSION_DENIED", "message": "no"}} if r["stepId"] in self.fails else self.work(r))

    def run_ids(self, p, plan):
        return sorted(r["stepId"] for r in p.of("step.execute") if r["planId"] == plan)

    def test_retry_reuses_what_has_completed(self):
        p = self.failing("b")
        plan = self.d.submit({"goal": "g", "sessionId": "S", "steps": [step("a"), step("b"), step("c")]})
        self.assertEqual(self.d.wait_plan(plan)["status"], "failed")
        self.fails.clear()
        answer = self.d.ask("plan.retry", planId=plan, clientKey="k")
        self.assertEqual((answer["parentPlanId"], answer["reused"]), (plan, 1))
        again = answer["planId"]
        view = self.d.wait_plan(again)
        self.assertEqual((view["status"], view["parentPlanId"], view["sessionId"], view["query"]), ("completed", plan, "S", "g"))
        self.assertEqual(self.run_ids(p, again), ["b", "c"])
        self.assertEqual([(s["status"], s.get("reason")) for s in view["steps"]],
                         [("completed", "already_completed"), ("completed", None), ("completed", None)])
        self.assertIn("done a", self.results(again))
        self.assertIn("done a", str(p.of("step.execute")[-1]["context"]), "a reused result is context, too")
        self.assertEqual(self.view(plan)["status"], "failed", "the old plan stays as it is")
        self.assertEqual(self.d.ask("plan.retry", planId=plan, clientKey="k")["planId"], again)
        self.refused("CONFLICT", "plan.retry", planId=plan, clientKey="k", fromStep="a")
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual(self.view(again)["parentPlanId"], plan)

    def test_retry_needs_neither_the_agent_nor_the_templates_of_what_it_reuses(self):
        p = self.failing("b")
        other = self.probe("other")
        plan = self.d.submit({"steps": [dict(step("z")), dict(step("a", agent="other"), task="with {{results.z}} in it"), step("b")]})
        self.assertEqual(self.d.wait_plan(plan)["status"], "failed")
        other.close()
        self.d.kill9()
        self.d.start(agents=False)  # knows nothing of the other agent
        self.fails.clear()
        p = self.failing()
        again = self.d.ask("plan.retry", planId=plan)
        self.assertEqual(again["reused"], 2)
        self.assertEqual(self.d.wait_plan(again["planId"])["status"], "completed")
        self.assertEqual(self.run_ids(p, again["planId"]), ["b"])

    def test_fork_runs_a_step_and_what_depends_on_it_again(self):
        p = self.failing()
        plan = self.d.submit({"steps": [step("a"), step("b", dependsOn=["a"]), step("c", dependsOn=["a"]), step("d", dependsOn=["b"])]})
        self.d.wait_plan(plan)
        fork = self.d.ask("plan.fork", planId=plan, fromStep="b", policy={"maxRetries": 5})
        self.assertEqual(fork["reused"], 2)
        self.assertEqual(self.d.wait_plan(fork["planId"])["status"], "completed")
        self.assertEqual(self.run_ids(p, fork["planId"]), ["b", "d"])
        chain = self.d.submit({"steps": [step(s) for s in "abc"]})
        self.d.wait_plan(chain)
        fork = self.d.ask("plan.fork", planId=chain, fromStep="b")["planId"]
        self.d.wait_plan(fork)
        self.assertEqual(self.run_ids(p, fork), ["b", "c"], "in a chain all that comes after it")

    def test_a_plan_is_forked_without_the_steps_that_a_revision_did_without(self):
        p = self.failing()
        self.known("away")
        plan = self.d.submit({"steps": [step("a", agent="away"), step("b")]})
        self.d.ask("plan.modify", planId=plan, kind="replace", stepId="a", steps=[step("a")])
        self.d.wait_plan(plan)
        fork = self.d.ask("plan.fork", planId=plan, fromStep="b")
        view = self.d.wait_plan(fork["planId"])
        self.assertEqual((view["status"], view["revision"]), ("completed", 1))
        self.assertEqual(sorted(s["stepId"] for s in view["steps"]), ["a", "b"])
        self.assertEqual(self.run_ids(p, fork["planId"]), ["b"])

    def test_what_cannot_be_done_again_says_why(self):
        self.failing()
        self.known("away")
        plan = self.d.submit({"steps": [step("a")]})
        self.d.wait_plan(plan)
        self.assertIn("every step has completed", self.refused("CONFLICT", "plan.retry", planId=plan)["message"])
        self.assertIn("'zz'", self.refused("NOT_FOUND", "plan.fork", planId=plan, fromStep="zz")["message"])
        open_ = self.d.submit({"steps": [step("a", agent="away")]})
        self.assertIn("has not ended", self.refused("CONFLICT", "plan.retry", planId=open_)["message"])
        nobody = str(uuid.uuid4()).upper()
        self.assertEqual(self.refused("NOT_FOUND", "plan.retry", planId=nobody)["message"], "No state found for " + nobody)


class Limits(Changing):
    def test_over_the_limit_of_open_plans_every_way_to_make_one_says_when_to_come_again(self):
        self.known("away")
        self.probe(work=self.work)
        done = self.d.submit({"steps": [step("a")]})
        self.d.wait_plan(done)
        self.assertEqual(self.d.stop(), 0)
        with open(self.d.config, "a", encoding="utf-8") as f:
            f.write("limits: {maxOpenPlans: 1}\n")
        self.d.start(agents=False)
        self.known("away", "probe")
        self.d.submit({"steps": [step("a", agent="away")]})
        for type_, fields in (("plan.submit", {"plan": {"steps": [step("a")]}}), ("plan.retry", {"planId": done, "fromStep": "a"}),
                              ("plan.fork", {"planId": done, "fromStep": "a"})):
            error = self.refused("BUSY", type_, **fields)
            self.assertEqual((error["retryable"], error["retryAfterMs"]), (True, 500))
        self.assertEqual(self.d.ask("supervisor.stats")["refusedBusy"], 3)


class Reading(Changing):
    def test_every_step_says_why_it_waits(self):
        self.known("away")
        self.probe(work=self.work)
        self.gate("x")
        plan = self.d.submit({"policy": {"maxConcurrency": 2}, "steps": [
            step("x", dependsOn=[]), step("lane"), step("place"), step("dep", dependsOn=["x"])]})
        away = self.d.submit({"steps": [step("a", agent="away"), step("b")]})
        self.wait_status(plan, "x", "in_progress")
        steps = self.steps(plan)
        self.assertNotIn("waiting", steps["x"])
        self.assertEqual(steps["x"]["phase"], "execute")
        self.assertEqual(steps["lane"]["waiting"]["text"], "waiting for a lane of probe: 1 of 1 busy")
        self.assertEqual(steps["place"]["waiting"]["kind"], "concurrency")
        self.assertEqual((steps["dep"]["waiting"]["text"], steps["dep"]["waiting"]["stepId"]), ("waiting for step x", "x"))
        self.assertEqual(self.steps(away)["b"]["waiting"]["text"], "waiting for step a")

        def why(step_id, text):
            until(lambda: self.steps(away)[step_id]["waiting"]["text"] == text, 15, text)
        why("a", "waiting for agent away: 0 of 1 instances can be reached")
        self.d.ask("agents.drain", agentId="away")
        why("a", "waiting for agent away: it was taken out of service")
        self.d.ask("agents.enable", agentId="away")
        why("a", "waiting for agent away: 0 instances; there are: probe")  # its lease is over

    def test_position_path_and_usage_by_phase_also_of_ended_plans(self):
        self.probe(work=self.work)
        gate = self.gate("b")
        plan = self.d.submit({"policy": {"budget": {"tokens": 1000}}, "steps": [step(s) for s in "abc"]})
        self.wait_status(plan, "b", "in_progress")
        view = self.view(plan)
        self.assertEqual((view["position"], view["criticalPath"], view["budget"]), ("Step 2 of 3", ["a", "b", "c"], {"tokens": 1000}))
        self.assertEqual(view["usage"]["inputTokens"], 10)
        gate.set()
        view = self.d.wait_plan(plan)
        self.assertEqual((view["position"], view["usage"]["inputTokens"], view["usageExecution"]["outputTokens"]), ("Step 3 of 3", 30, 15))
        self.assertEqual(view["traceId"], plan.replace("-", "").lower())
        self.assertGreater(view["durationMs"], 0)
        self.d.kill9()
        self.d.start(agents=False)
        again = self.view(plan)
        for s in view["steps"] + again["steps"]:
            del s["agentName"]  # nobody has registered yet
        self.assertEqual(again, view, "the same from the rows alone")

    def test_history_tells_revisions_phases_and_handoffs(self):
        self.probe(work=self.work)
        self.known("away")
        plan = self.d.submit({"goal": "g", "steps": [step("a", agent="away"), step("b")]})
        self.d.ask("plan.modify", planId=plan, kind="replace", stepId="a", steps=[step("n")], reasoning="away is away")
        self.d.wait_plan(plan)
        h = self.d.ask("plan.history", planId=plan)
        self.assertEqual([(r["revision"], r["kind"], r.get("reasoning"), r["steps"]) for r in h["revisions"]],
                         [(1, "submitted", None, 2), (2, "replace", "away is away", 1)])
        self.assertGreater(self.d.ask("blob.get", blobId=h["revisions"][1]["planRef"])["len"], 100)
        self.assertEqual([(p["phase"], p["success"]) for p in h["phases"]], [("planning", True), ("execution", True)])
        self.assertEqual(h["phases"][1]["tokens"], 30)
        self.assertEqual([(x["fromAgentId"], x["toAgentId"], x["planStepId"]) for x in h["handoffs"]], [("supervisor", "probe", "n")])
        self.assertEqual((h["task"], h["status"], h["totalTokens"], h["executionAttempts"]), ("g", "completed", 30, 1))
        self.assertNotIn("truncated", h)

    def test_figures_of_a_plan_and_of_the_supervisor(self):
        seen = []

        def work(r):
            seen.append(r["attempt"])
            if r["stepId"] == "b" and r["attempt"] == 1:
                return {"outcome": "failed", "failure": {"code": "IO", "class": "UNKNOWN", "message": "once"}, "usage": {"inputTokens": 7}}
            return self.work(r)
        self.probe(work=work, capacity=2)
        plan = self.d.submit({"policy": {"backoff": {"kind": "fixed", "initialMs": 1}}, "steps": [
            step("a", dependsOn=[]), step("b", dependsOn=["a"], estimate={"tokens": 50}), step("c", dependsOn=["a"])]})
        self.d.wait_plan(plan)
        s = self.d.ask("plan.stats", planId=plan)
        self.assertEqual((s["status"], s["dependencies"], s["depth"], s["estimatedTokens"]), ("completed", 2, 2, 50))
        self.assertEqual([(x["stepId"], x["attempts"], x["tokens"]) for x in s["steps"]], [("a", 1, 15), ("b", 2, 22), ("c", 1, 15)])
        agent = s["agents"][0]
        self.assertEqual((agent["agentId"], agent["steps"], agent["errors"], agent["tokens"], agent["errorRate"]), ("probe", 3, 1, 52, 0.25))
        all_ = self.d.ask("supervisor.stats")
        self.assertEqual((all_["plansDone"], all_["stepsRetried"]), (1, 1))
        self.assertEqual([(a["agentId"], a["state"], a["steps"], a["errors"], a["tokens"], a["capacity"]) for a in all_["agents"]],
                         [("probe", "up", 3, 1, 52, 2)])


del Changing  # its tests, if it had any, are those of the other file
unittest.TestCase.maxDiff = 4000

if __name__ == "__main__":
    main()
