"""Budgets: what may be spent is reserved before it is sent, what was spent is counted whatever came of it, and at the end of
the money the plan stops with what it has."""
import threading
import unittest

from harness import until
from probe import step
from test_phases import Phases, data, failed, in_turn, text


def spent(tokens_in, tokens_out=0, cost=0, **said):
    return {**(said or text("done")), "usage": {"inputTokens": tokens_in, "outputTokens": tokens_out, "costMicros": cost}}


class Budgets(Phases):
    def completed(self):
        return [e for e in self.d.events(self.plan) if e["type"] == "plan_completed"][0]

    def test_plan_stops_when_the_budget_is_spent_and_keeps_what_was_done(self):
        a = self.agent("a", execute=lambda r: spent(40, 20, **text("done " + r["stepId"])))
        view = self.run_plan([step(s, "a", estimate={"tokens": 50}) for s in "abcd"], policy={"budget": {"tokens": 150}})
        self.assertEqual((view["status"], view["outcome"]), ("failed", "failed"))
        self.assertEqual([s["status"] for s in view["steps"]], ["completed", "completed", "failed", "cancelled"])
        self.assertEqual(view["steps"][2]["errorClass"], "BUDGET_EXCEEDED")
        self.assertEqual(self.completed()["failureKind"], "budget_exceeded")
        self.assertEqual([r["stepId"] for r in a.asked("execute")], ["a", "b"], "what cannot be paid is not sent")
        self.assertEqual([r["budget"]["tokens"] for r in a.asked("execute")], [150, 90])
        result = self.d.ask("plan.result", planId=self.plan)
        self.assertEqual((result["success"], result["aggregatedResult"]), (False, "**do a**\ndone a\n\n---\n\n**do b**\ndone b"))
        self.assertEqual(view["failureReason"], self.completed()["failureReason"])
        for word in ("120", "50", "150"):
            self.assertIn(word, view["failureReason"], "it says how much there was, was spent and would be needed")

    def test_cost_is_a_budget_too(self):
        a = self.agent("a", execute=spent(1, 1, 700))
        view = self.run_plan([step("a", "a"), step("b", "a"), step("c", "a")], policy={"budget": {"costMicros": 1000}})
        self.assertEqual((view["status"], len(a.asked("execute"))), ("failed", 2), "nobody knew what it would cost; then it was too much")
        self.assertEqual(self.completed()["failureKind"], "budget_exceeded")
        self.assertEqual(view["usage"]["costMicros"], 1400)

    def test_steps_side_by_side_do_not_spend_the_same_money_twice(self):
        gate, lock, out = threading.Event(), threading.Lock(), {"now": 0, "most": 0}
        self.addCleanup(gate.set)

        def work(r):
            with lock:
                out["now"] += 1
                out["most"] = max(out["most"], out["now"])
            gate.wait(10)
            with lock:
                out["now"] -= 1
            return spent(10)
        first = self.agent("a", execute=work)
        second = self.agent("b", execute=work)
        self.plan = self.d.submit({"steps": [step("s", "a", dependsOn=[], estimate={"tokens": 60}), step("t", "b", dependsOn=[], estimate={"tokens": 60})],
                                   "policy": {"budget": {"tokens": 100}}})
        until(lambda: first.asked("execute") or second.asked("execute"), 10, "one is out")

        def waiting():
            return [s["waiting"]["kind"] for s in self.d.ask("plan.get", planId=self.plan)["steps"] if "waiting" in s]
        until(lambda: waiting() == ["budget"], 10, "the other waits for the budget, once its agent has a lane")
        gate.set()
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed", "it took less than was thought: there was enough for both")
        self.assertEqual(out["most"], 1)

    def test_every_attempt_and_question_counts_by_phase(self):
        self.agent("a", execute=in_turn(spent(5, **failed("once", retryable=True)), spent(7), spent(11, **failed("no", retryable=False)), spent(13)))
        self.agent("judge", ["verify", "gate"], verify=spent(100, **text("yes")), gate=spent(200, **text("yes")))
        self.agent("planner", ["plan"], replan=spent(1000, **data({"reuse": ["s"], "steps": [step("u", "a", dependsOn=["s"])]})))
        view = self.run_plan([step("s", "a", verifyWith="judge", backoff={"initialMs": 1}, dependsOn=[]), step("t", "a", dependsOn=["s"], gate="judge")],
                             policy={"onFailure": "replan", "replan": {"agent": "planner", "cooldownMs": 1}, "maxFallbacks": 0})
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual((view["usageReplanning"]["inputTokens"], view["usageExecution"]["inputTokens"], view["usage"]["inputTokens"]),
                         (1000, 5 + 7 + 100 + 200 + 11 + 13, 1336))
        self.assertEqual((self.completed()["usage"]["inputTokens"], self.completed()["usageReplanning"]["inputTokens"]), (1336, 1000))
        figures = {f["stepId"]: f["tokens"] for f in self.d.ask("plan.stats", planId=self.plan)["steps"]}
        self.assertEqual(figures, {"s": 112, "t": 211, "u": 13}, "each step with its attempts and questions")

    def test_what_was_spent_is_known_after_a_crash(self):
        a = self.agent("a", execute=lambda r: spent(60) if r["stepId"] == "s" else spent(1))
        self.plan = self.d.submit({"steps": [step("s", "a"), step("ask", "a", requiresApproval=True, estimate={"tokens": 50})],
                                   "policy": {"budget": {"tokens": 100}}})
        review = until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 10, "a review")[0]
        self.d.kill9()
        self.d.start(agents=False)
        a.epoch = a.register()["epoch"]
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["steps"][1]["errorClass"], len(a.asked("execute"))), ("failed", "BUDGET_EXCEEDED", 1))

    def test_estimates_are_compared_with_what_was_spent(self):
        self.agent("a", execute=spent(40, 2, 9))
        self.run_plan([step("s", "a", estimate={"tokens": 50, "costMicros": 10})])
        stats = self.d.ask("plan.stats", planId=self.plan)
        self.assertEqual((stats["estimatedTokens"], stats["steps"][0]["tokens"]), (50, 42))


class WorkThatDoesNotCount(Phases):
    """Its result is of no use any more; it was paid for all the same, once."""

    def tokens(self):
        return self.d.ask("plan.get", planId=self.plan).get("usage", {}).get("inputTokens", 0)

    def cost(self):
        return self.d.ask("plan.cost", planId=self.plan)["total"]["total"].get("inputTokens", 0)

    def waits(self, tokens):
        """An agent whose first answer comes when the test says so."""
        gate = threading.Event()
        self.addCleanup(gate.set)

        def work(r):
            if not gate.is_set():
                gate.wait(60)
                return spent(tokens, **failed("too late", retryable=False))
            return spent(5)
        return gate, work

    def test_an_answer_after_its_time_is_paid_for_once(self):
        gate, work = self.waits(300)
        a = self.agent("a", execute=work)
        self.plan = self.d.submit({"steps": [step("s", "a", timeoutMs=200, maxRetries=3, backoff={"initialMs": 1}), step("t", "a")],
                                   "policy": {"budget": {"tokens": 10000}}})
        until(lambda: "plan_step_retry" in self.types(), 20, "its time is over")
        self.assertEqual(self.tokens(), 0)
        asked = a.asked("execute")[0]
        gate.set()
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed", self.d.log())
        self.assertEqual(self.tokens(), 300 + 5 + 5)
        again = self.d.ask("step.result", instanceId=a.me["instanceId"], epoch=a.epoch, key=asked["key"], attempt=1,
                           **spent(300, **failed("once more")))
        self.assertEqual((again.get("accepted", False), self.tokens(), self.cost()), (False, 310, 310))

    def test_what_goes_on_when_the_plan_has_ended_is_paid_for_too(self):
        gate, work = self.waits(77)
        self.agent("a", execute=work)
        self.agent("b", execute=spent(3, **failed("no", retryable=False)))
        view = self.run_plan([step("s", "a", dependsOn=[]), step("t", "b", dependsOn=[])], policy={"onFailure": "abort", "maxFallbacks": 0})
        self.assertEqual((view["status"], self.tokens(), self.cost()), ("failed", 3, 3))
        gate.set()
        until(lambda: self.tokens() == 80, 20, "what the step used that was called off")
        self.assertEqual(self.cost(), 80)
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual((self.tokens(), self.cost()), (80, 80))

    def test_a_job_that_is_called_off_is_paid_for_too(self):
        gate, work = self.waits(40)
        planner = self.agent("a", ["plan"], plan=work)
        self.plan = self.d.ask("plan.submit", goal="Do it.", planner="agent:a")["planId"]
        until(lambda: planner.asked("plan"), 20, "the planner is asked")
        self.d.ask("plan.cancel", planId=self.plan)
        self.d.wait_plan(self.plan)
        self.assertEqual(self.cost(), 0)
        gate.set()
        until(lambda: self.cost() == 40, 20, "what the planner used")

    def test_a_result_that_does_not_pass_is_paid_for(self):
        schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
        self.agent("a", [{"id": "do", "outputSchema": schema}],
                   execute=in_turn(spent(10, **data({"n": "x"})), spent(20, **data({"n": 1})), spent(40, **data({"n": 3}))))
        self.run_plan([step("s", "a", verify={"properties": {"n": {"minimum": 2}}}, backoff={"initialMs": 1}, maxRetries=3)])
        self.assertEqual((self.tokens(), self.cost()), (70, 70))


del Phases
if __name__ == "__main__":
    unittest.main(verbosity=2)
