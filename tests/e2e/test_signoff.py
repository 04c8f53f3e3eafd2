"""An approval is of what was shown: a plan that was signed off and changes is signed off again before the change runs."""
from acts import Acts, say, step
from harness import main, until


class Signing(Acts):
    def submit(self, steps, **policy):
        self.plan = self.d.submit({"steps": steps, "policy": {"signoff": True, "maxRetries": 0, **policy}})
        return self.open()

    def open(self, serial=None):
        """The open sign-off, or the one of that number."""
        def found():
            reviews = self.d.ask("review.list", planId=self.plan)["reviews"]
            return [r for r in reviews if r["kind"] == "plan" and serial in (None, r["reviewId"].rpartition("/r")[2])]
        return until(found, 15, "a sign-off is open\n" + self.d.log())[0]

    def decide(self, review, decision="approve", **fields):
        self.d.ask("review.decide", reviewId=review["reviewId"], decision=decision, **fields)

    def view(self):
        return self.d.ask("plan.get", planId=self.plan)

    def replanned(self):
        """A plan of a and b whose b failed, and that a replan has changed to a and c."""
        self.acts("a", "c")
        self.act("b", "exit 1")
        self.act("plan", say({"steps": [step("c", dependsOn=["a"], task="another way")]}))
        self.decide(self.submit([step("a"), step("b", dependsOn=["a"])], onFailure="replan", replan={"agent": "planner", "cooldownMs": 1}))
        return self.open("2")


class Changed(Signing):
    def test_a_replan_is_signed_off_before_its_steps_run(self):
        review = self.replanned()
        self.assertEqual((review["revision"], review["signedOffRevision"], review["stepCount"]), (2, 1, 2))
        self.assertEqual((self.view()["status"], self.view()["paused"], self.asked("c")), ("waiting", ["signoff"], 0))
        waiting = {s["stepId"]: s.get("waiting") for s in self.view()["steps"] if not s.get("superseded")}
        self.assertEqual((waiting["a"], waiting["c"]["kind"], waiting["c"]["reviewId"]), (None, "person", review["reviewId"]))
        shown = self.d.cli("review", "show", review["reviewId"])
        for words in ("revision 1, which was signed off", "1. a (completed)", "2. c after a", "another way"):
            self.assertIn(words, shown)
        diff = self.d.cli("review", "show", review["reviewId"], "--as", "diff")
        for words in ("- step b", "+ step c (worker.act): another way"):
            self.assertIn(words, diff)
        self.d.kill9()
        self.d.start()
        self.decide(self.open("2"))
        self.assertEqual((self.d.wait_plan(self.plan)["status"], self.asked("a"), self.asked("c")), ("completed", 1, 1))
        paused = self.events("plan_paused")
        self.assertEqual([(e["reason"], e["revision"]) for e in paused], [("signoff", 1), ("signoff", 2)])
        self.assertEqual([e["revision"] for e in self.events("review_decided")], [1, 2])

    def test_a_replan_that_is_rejected_ends_the_plan(self):
        self.decide(self.replanned(), "reject", comment="not that way")
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["outcome"], self.asked("c")), ("cancelled", "failed", 0))
        self.assertIn("not that way", view["failureReason"])

    def test_every_modification_but_a_note_is_signed_off(self):
        self.acts("a", "b", "c", "n")
        self.act("a", "while [ ! -e %s/go ]; do sleep 0.05; done; echo done a" % self.d.work)
        self.decide(self.submit([step("a"), step("b", dependsOn=["a"]), step("c", dependsOn=["b"])]))
        self.wait_asked("a")
        self.d.ask("plan.modify", planId=self.plan, kind="conversation_only", reasoning="just a thought")
        self.assertEqual(self.d.ask("review.list", planId=self.plan)["reviews"], [])
        self.d.ask("plan.modify", planId=self.plan, kind="insert", afterStepId="b", steps=[step("n")])
        first = self.open("2")
        self.d.ask("plan.modify", planId=self.plan, kind="skip_steps", stepsToSkip=[2])
        second = self.open("3")
        late = self.d.ask_raw("review.decide", reviewId=first["reviewId"], decision="approve")
        self.assertEqual(late["error"]["code"], "CONFLICT", late)
        (void,) = self.events("review_voided")
        for words in ("is void", void["timestamp"], "; open: " + second["reviewId"]):
            self.assertIn(words, late["error"]["message"])
        shown = self.d.ask("review.get", reviewId=first["reviewId"])["review"]
        self.assertEqual((shown["decision"], shown["decidedAt"], shown["revision"]), ("void", void["timestamp"], 3))
        self.assertIn("void", self.d.cli("review", "show", first["reviewId"]))
        self.assertIn(first["reviewId"] + "  plan  void", self.d.cli("reviews", "--all", self.plan))
        self.assertEqual((second["revision"], second["signedOffRevision"]), (4, 2))
        self.assertIn("b (skipped)", self.d.cli("review", "show", second["reviewId"]))
        self.assertEqual((self.asked("n"), self.asked("c")), (0, 0))
        self.decide(second)
        until(lambda: self.asked("n") == 1 or self.view()["steps"][0]["status"] == "in_progress", 15, "it goes on")
        (self.d.work / "go").touch()
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.assertEqual([self.asked(x) for x in "abcn"], [1, 0, 1, 1])
        void = self.events("review_voided")
        self.assertEqual([(e["reviewId"], e["revision"]) for e in void], [(first["reviewId"], 3)])
        self.d.kill9()
        self.d.start()
        reviews = self.d.ask("plan.history", planId=self.plan)["reviews"]
        self.assertEqual([(r["reviewId"].rpartition("/")[2], r["decision"]) for r in reviews],
                         [("r1", "approve"), ("r2", "void"), ("r3", "approve")])
        self.assertEqual(reviews[1]["decidedAt"], void[0]["timestamp"])

    def test_a_plan_without_a_sign_off_asks_nothing(self):
        self.acts("a", "c")
        self.act("b", "exit 1")
        self.act("plan", say({"steps": [step("c")]}))
        view = self.run_plan([step("a"), step("b", maxRetries=0)], policy={"onFailure": "replan", "replan": {"agent": "planner", "cooldownMs": 1}})
        self.assertEqual((view["status"], self.events("plan_paused")), ("completed", []))


class Decided(Signing):
    """A review that was decided is shown as it was, with the decision, as long as the plan is kept."""

    def show(self, review, *args):
        return self.d.cli("review", "show", review["reviewId"], *args)

    def waiting(self):
        return until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "a review is open")[0]

    def test_what_was_shown_who_decided_and_what_was_given(self):
        self.act("a", say({"sum": 1801}))
        self.acts("b", "c")
        self.plan = self.d.submit({"steps": [step("a"), step("b", dependsOn=["a"], task="pay {{results.a.sum}}", requiresApproval=True)]})
        review = self.waiting()
        before = self.d.ask("review.get", reviewId=review["reviewId"])["review"]
        self.assertEqual(before["task"], "pay 1801")
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve", comment="half of it", edit={"name": "c"},
                   by={"user": "anna", "host": "desk", "via": "cli"})
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.d.kill9()
        self.d.start()
        after = self.d.ask("review.get", reviewId=review["reviewId"])["review"]
        for member in ("reviewId", "planId", "stepId", "kind", "task", "parameters", "agentId", "effects", "askedAt", "upstreamResults"):
            self.assertEqual(after[member], before[member], member)
        self.assertEqual((after["decision"], after["comment"], after["edit"]), ("approve", "half of it", {"name": "c"}))
        self.assertEqual((after["by"]["user"], after["by"]["host"], after["by"]["via"]), ("anna", "desk", "cli"))
        shown = self.show(review)
        for words in ("pay 1801", '"name":\t"c"', "decided    approve by anna@desk via cli", "half of it", after["decidedAt"]):
            self.assertIn(words, shown)
        self.assertNotIn("denied at", shown)

    def test_a_sign_off_and_its_difference_stay(self):
        review = self.replanned()
        self.decide(review, "reject")
        self.d.wait_plan(self.plan)
        shown = self.show(review)
        for words in ("another way", "revision   2", "reject"):
            self.assertIn(words, shown)
        self.assertIn("+ step c", self.show(review, "--as", "diff"))

    def test_a_denial_by_the_clock_says_so(self):
        self.acts("a")
        self.plan = self.d.submit({"steps": [step("a", requiresApproval=True, approvalTimeoutMs=300)]})
        review = self.waiting()
        self.d.wait_plan(self.plan)
        shown = self.show(review)
        for words in ("not kept", "reject", "via supervisor", "No decision within 300ms"):
            self.assertIn(words, shown)

    def test_no_review_of_that_id(self):
        review = self.submit([step("a")])
        for wrong in ("/r7", "/a/r1", "/r0"):
            error = self.d.ask_raw("review.get", reviewId=self.plan + wrong)["error"]
            self.assertEqual(error["code"], "NOT_FOUND", error)
        self.decide(review, "reject")


if __name__ == "__main__":
    main()
