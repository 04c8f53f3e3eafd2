"""What a model makes of a message comes late: meanwhile the plan, or what waits in it, may be another one (C25, M064)."""
import threading

from harness import main, until
from probe import step
from test_sessions import Sessions as Base

CHAIN = {"goal": "three things", "steps": [step("a"), step("b", requiresApproval=True), step("c")]}


class Late(Base):
    def setUp(self):
        super().setUp()
        self.p = self.probe()
        self.go = threading.Event()
        self.addCleanup(self.go.set)
        self.wish = None
        self.model = self.probe("talker", work=self.think, skills=("converse",))

    def think(self, r):
        self.go.wait(20)
        return {"outcome": "completed", "result": {"data": self.wish}}

    def think_of(self, text, wish, session="s"):
        """The turn, when the model has it in hand."""
        asked = len(self.model.of("step.execute"))
        self.wish = wish
        self.go.clear()
        turn = self.say(text, session)["turnId"]
        until(lambda: len(self.model.of("step.execute")) > asked, 15, "the model is asked")
        return turn

    def told(self, turn):
        self.go.set()
        return self.wait_turn(turn)

    def test_what_was_wanted_of_one_plan_is_not_done_to_the_next(self):
        for wish in ({"action": "skip_steps", "stepsToSkip": [3]}, {"action": "stop"}, {"action": "pause"},
                     {"action": "skip_to_step", "targetStepNumber": 3}):
            first = self.plan(CHAIN)
            self.wait_statuses(first, "completed", "waiting", "pending")
            turn = self.think_of("do without the last bit", wish)
            self.d.ask("plan.cancel", planId=first)
            self.d.wait_plan(first)
            second = self.plan(CHAIN)
            self.wait_statuses(second, "completed", "waiting", "pending")
            end = self.told(turn)
            self.assertEqual(end["action"], "conversation_only", end)
            self.assertIn("another plan", end["message"])
            self.assertEqual(self.statuses(second), ["completed", "waiting", "pending"])
            self.d.ask("plan.cancel", planId=second)
            self.d.wait_plan(second)

    def test_a_plan_that_began_meanwhile_is_not_what_was_meant(self):
        self.d.wait_plan(self.plan({"goal": "g", "steps": [step("a")]}))
        turn = self.think_of("I have had enough", {"action": "stop"})
        plan = self.plan(CHAIN)
        self.wait_statuses(plan, "completed", "waiting", "pending")
        self.assertEqual(self.told(turn)["action"], "conversation_only")
        self.assertEqual(self.statuses(plan), ["completed", "waiting", "pending"])

    def test_a_late_yes_is_not_given_to_what_waits_by_then(self):
        plan = self.plan({"goal": "g", "steps": [step("a", requiresApproval=True), step("b", requiresApproval=True)]})
        self.wait_statuses(plan, "waiting", "pending")
        for wish in ("approve", "resume"):
            turn = self.think_of("fine by me I suppose", {"action": wish})
            if wish == "approve":
                self.assertEqual(self.say("yes")["action"], "approve")
                self.wait_statuses(plan, "completed", "waiting")
            end = self.told(turn)
            self.assertEqual(end["action"], "conversation_only", end)
            self.assertEqual(self.statuses(plan), ["completed", "waiting"])
        self.assertEqual(self.told(self.think_of("fine by me I suppose", {"action": "approve"}))["action"], "approve")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_an_answer_is_for_the_review_that_was_shown(self):
        plan = self.plan({"goal": "g", "steps": [step("a", requiresApproval=True), step("b", requiresApproval=True)]})
        self.wait_statuses(plan, "waiting", "pending")
        shown = self.review(plan)
        self.assertEqual(self.say("yes", reviewId=shown)["action"], "approve")
        self.wait_statuses(plan, "completed", "waiting")
        for text in ("yes", "no", "approve"):
            said = self.say(text, reviewId=shown)
            self.assertEqual(said["action"], "conversation_only", text)
            self.assertIn("something else waits", said["reply"])
            self.assertIn("step 2", said["reply"].lower())
        self.wish = {"action": "approve"}
        self.go.set()
        end = self.wait_turn(self.say("fine by me I suppose", reviewId=shown)["turnId"])
        self.assertEqual(end["action"], "conversation_only", end)
        self.assertEqual(self.say("approve", reviewId=plan + "/r1")["action"], "conversation_only", "that is its sign-off")
        self.assertEqual(self.statuses(plan), ["completed", "waiting"])
        self.assertEqual(self.say("yes", reviewId=self.review(plan))["action"], "approve")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.refused("INVALID", "reviewId", sessionId="s", text="yes", reviewId="a/1")

    def review(self, plan):
        return self.d.ask("review.list", planId=plan)["reviews"][0]["reviewId"]

    def test_steps_of_another_revision_are_not_touched(self):
        plan = self.plan(CHAIN)
        self.wait_statuses(plan, "completed", "waiting", "pending")
        turn = self.think_of("do without the last bit", {"action": "skip_steps", "stepsToSkip": [3]})
        self.d.ask("plan.modify", planId=plan, kind="insert", afterStepId="b", steps=[step("x")])
        end = self.told(turn)
        self.assertEqual(end["action"], "conversation_only", end)
        self.assertNotIn("skipped", self.statuses(plan))


class Down(Base):
    def setUp(self):
        self.d = self.daemon(config="policy: {maxRetries: 0, breaker: {failures: 1, cooldownMs: 30000}}\n", agents=False)
        self.hold, self.said = set(), {}

    def test_who_talks_does_not_wait_for_a_model_whose_breaker_is_open(self):
        self.probe()
        down = {"outcome": "failed", "failure": {"code": "X", "class": "SERVICE_UNAVAILABLE", "message": "no model today"}}
        model = self.probe("talker", work=lambda r: down, skills=("converse",))
        self.d.wait_plan(self.plan({"goal": "g", "steps": [step("a")]}))
        said = self.say("what did you find?")
        while "reply" not in said:  # until the breaker is open
            self.assertIn("no model today", self.wait_turn(said["turnId"])["message"])
            said = self.say("what did you find?")
        asked = len(model.of("step.execute"))
        self.assertIn('say "new plan: ..."', said["reply"])
        plan = self.plan(CHAIN)
        self.wait_statuses(plan, "completed", "waiting", "pending")
        self.assertIn("You can say", self.say("fine by me I suppose")["reply"])
        self.assertEqual(self.say("yes")["action"], "approve")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual(len(model.of("step.execute")), asked)


if __name__ == "__main__":
    main()
