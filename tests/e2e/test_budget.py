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
        waiting = [s["waiting"]["kind"] for s in self.d.ask("plan.get", planId=self.plan)["steps"] if "waiting" in s]
        self.assertEqual(waiting, ["budget"])
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


del Phases
if __name__ == "__main__":
    unittest.main(verbosity=2)
