"""What agents leave in the state of a plan, as plan.get has it."""
from harness import main, until
from probe import step
from test_semantics import Semantics


def state(patch):
    return {"outcome": "completed", "result": {"text": "done"}, "state": patch}


class State(Semantics):
    def test_plan_get_has_what_agents_left_also_after_kill_9_and_the_end(self):
        patches = {"a1": {"n": 1, "who": {"name": "Ada", "old": True}}, "a2": {"n": 2, "who": {"old": None}}}
        work = lambda r: state(patches[r["stepId"]])  # noqa: E731
        self.agent("a", execute=work)
        self.submit([step("a1", "a"), {"stepId": "hold", "type": "human_review", "task": "look at the state"}, step("a2", "a")])
        review = until(lambda: self.d.ask("plan.get", planId=self.plan)["steps"][1].get("waiting", {}).get("reviewId"), 30, "its review")
        self.assertEqual(self.d.ask("plan.get", planId=self.plan)["state"], patches["a1"])
        self.d.kill9()
        self.d.start()
        self.assertEqual(self.d.ask("plan.get", planId=self.plan)["state"], patches["a1"])
        self.agent("a", execute=work)
        self.d.ask("review.decide", reviewId=review, decision="approve")
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["state"]), ("completed", {"n": 2, "who": {"name": "Ada"}}))


if __name__ == "__main__":
    main()
