"""One review has one id: a decision is about that review, however often and however late it arrives."""
import json
import pathlib
import signal
import threading

from harness import main, sp, until
from probe import step
from test_people import Reviewing

REFUSED = {"outcome": "failed", "failure": {"code": "INVALID", "class": "PERMISSION_DENIED", "message": "no key"}}


class Ids(Reviewing):
    def open(self, plan, kind):
        return until(lambda: [r for r in self.d.ask("review.list", planId=plan)["reviews"] if r["kind"] == kind], 10,
                     "a review of kind %s\n%s" % (kind, self.d.log()))[0]

    def again(self, review, decision="approve", **fields):
        return self.d.ask_raw("review.decide", reviewId=review["reviewId"], decision=decision, **fields)

    def decided(self, plan):
        return [(e["reviewId"], e["decision"]) for e in self.d.events(plan) if e["type"] == "review_decided"]

    def test_an_approve_sent_again_does_not_decide_the_next_review_of_the_step(self):
        p = self.probe(work=lambda r: REFUSED)
        plan = self.d.submit({"steps": [step("a", requiresApproval=True, onFailure="ask")]})
        first = self.review(plan, "before_step")
        self.decide(first, "approve", comment="go")
        second = self.open(plan, "failure")
        self.assertNotEqual(first["reviewId"], second["reviewId"])
        for _ in range(3):
            self.assertTrue(self.again(first, comment="go")["ok"], "the same decision has the same answer")
        self.assertEqual(self.open(plan, "failure")["reviewId"], second["reviewId"])
        self.assertEqual((len(p.of("step.execute")), self.decided(plan)), (1, [(first["reviewId"], "approve")]))
        for fields in ({"comment": "stop"}, {}, {"comment": "go", "edit": {"n": 1}}, {"decision": "reject", "comment": "go"}):
            error = self.again(first, **fields)["error"]
            self.assertEqual(error["code"], "CONFLICT", (fields, error))
            self.assertIn("; open: " + second["reviewId"], error["message"])
        self.decide(second, "reject")
        self.assertEqual(self.d.wait_plan(plan)["status"], "failed")
        self.assertTrue(self.again(first, comment="go")["ok"], "also when the plan has ended")
        self.assertTrue(self.again(second, "reject")["ok"])
        self.assertEqual(self.again(second, "approve")["error"]["code"], "CONFLICT")
        self.assertEqual(len(self.decided(plan)), 2)

    def test_planning_once_more_is_no_sign_off_of_the_plan_that_comes(self):
        answers = [{"text": "a poem"}, {"text": "another poem"}, {"text": json.dumps({"steps": [step("a")]})}]
        p = self.probe(work=lambda r: {"outcome": "completed", "result": answers.pop(0)} if r["purpose"] == "plan" else self.work(r),
                       skills=("plan",))
        plan = self.d.ask("plan.submit", goal="do it", planner="agent:probe",
                          policy={"onInvalidPlan": "interrupt", "signoff": True})["planId"]
        planning = self.open(plan, "planning")
        self.decide(planning, "approve")
        signoff = self.open(plan, "plan")
        self.assertTrue(self.again(planning)["ok"])
        self.assertEqual((self.view(plan)["status"], self.open(plan, "plan")["reviewId"]), ("pending", signoff["reviewId"]))
        self.assertEqual([r for r in p.of("step.execute") if r["purpose"] != "plan"], [], "a plan that no person has seen")
        self.decide(signoff, "approve")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual(self.decided(plan), [(planning["reviewId"], "approve"), (signoff["reviewId"], "approve")])

    def test_two_equal_decisions_of_one_moment_are_one(self):
        """Both are read in one cycle, before the first one is in the journal."""
        self.probe(work=lambda r: REFUSED)
        for decision, other in (("approve", "approve"), ("reject", "reject"), ("approve", "reject")):
            plan = self.d.submit({"steps": [step("a", requiresApproval=True, onFailure="ask")]})
            review = self.review(plan, "before_step")
            body = {"v": 1, "type": "review.decide", "id": "t", "token": self.d.token(), "reviewId": review["reviewId"]}
            with sp.Req(self.d.endpoints()["control"]) as one, sp.Req(self.d.endpoints()["control"]) as two:
                answers = []
                self.d.process.send_signal(signal.SIGSTOP)
                until(self.stopped, 10, "no thread of the daemon reads any more")
                asking = [threading.Thread(target=lambda r=r, d=d: answers.append(json.loads(r.ask(json.dumps({**body, "decision": d}).encode()))))
                          for r, d in ((one, decision), (two, other))]
                for t in asking:
                    t.start()
                until(lambda: self.waiting_bytes() >= 2, 10, "both requests are in the daemon's sockets")
                self.d.process.send_signal(signal.SIGCONT)
                for t in asking:
                    t.join()
            self.assertEqual(sorted(a["ok"] for a in answers), [decision == other, True], answers)
            self.assertEqual(len(self.decided(plan)), 1)
            if decision != other:
                self.assertEqual([a["error"]["code"] for a in answers if not a["ok"]], ["CONFLICT"])

    def stopped(self):
        states = [(t / "stat").read_text().rsplit(")", 1)[1].split()[0] for t in pathlib.Path("/proc/%d/task" % self.d.process.pid).iterdir()]
        return set(states) == {"T"}

    def waiting_bytes(self):
        """Connections to the control port with bytes that the daemon has not read."""
        port = "%04X" % int(self.d.endpoints()["control"].rsplit(":", 1)[1])
        with open("/proc/net/tcp") as f:
            rows = [line.split() for line in f.readlines()[1:]]
        return sum(1 for r in rows if r[1].endswith(":" + port) and r[3] == "01" and int(r[4].split(":")[1], 16) > 100)

    def test_an_id_of_another_form_is_refused_with_the_name_of_what_is_open(self):
        self.known("probe")
        plan = self.d.submit({"steps": [step("a", requiresApproval=True)]})
        review = self.review(plan, "before_step")
        self.assertEqual(review["reviewId"], plan + "/a/r1")
        for old in (plan + "/a/0", plan + "/a", plan, plan + "/r1", plan + "/a/r2", plan + "/b/r1", plan + "/a/r01x"):
            error = self.refused("NOT_FOUND", "review.decide", reviewId=old, decision="approve")
            if old != plan + "/a" and old != plan + "/a/r01x":
                self.assertIn("open: " + review["reviewId"], error["message"], old)
        self.assertEqual(self.decided(plan), [])
        plan = self.d.submit({"policy": {"signoff": True}, "steps": [step("a")]})
        signoff = self.review(plan, "plan")
        self.assertEqual(signoff["revision"], 1)
        self.assertEqual((signoff["reviewId"], self.steps(plan)["a"]["waiting"]["reviewId"]), (plan + "/r1",) * 2)
        self.assertIn(plan + "/r1", self.refused("NOT_FOUND", "review.decide", reviewId=plan, decision="approve")["message"])

    def test_a_decision_counts_whoever_sends_it_again_and_another_one_learns_who_was_first(self):
        """Also after a crash, from another client, in words or in a data form."""
        self.probe(work=self.work)
        plan = self.d.submit({"steps": [step("a", requiresApproval=True), step("b", requiresApproval=True)]})
        first = self.review(plan, "before_step")
        self.decide(first, "approve", comment="go", by={"user": "anna", "host": "desk", "via": "cli"})
        self.review(plan, "before_step")
        (event,) = [e for e in self.d.events(plan) if e["type"] == "review_decided"]
        for _ in range(2):
            self.assertTrue(self.again(first, comment="go", by={"user": "ben", "via": "web"})["ok"])
            error = self.again(first, "reject", comment="go", by={"user": "ben"})["error"]
            self.assertEqual(error["code"], "CONFLICT")
            for words in ("(approve)", "by anna@desk", "at " + event["timestamp"]):
                self.assertIn(words, error["message"])
            self.d.cli("approve", first["reviewId"], "--comment", "go")
            self.assertIn("anna@desk", self.d.cli_any("reject", first["reviewId"]).stderr)
            self.d.kill9()
            self.d.start(agents=False)
        self.assertEqual(self.decided(plan), [(first["reviewId"], "approve")])

    def test_serials_go_on_and_decisions_are_known_after_a_crash(self):
        self.probe(work=lambda r: {"outcome": "needs_approval", "need": {"kind": "approval", "prompt": "sure?"}} if r["attempt"] < 3 else self.work(r))
        plan = self.d.submit({"steps": [step("a"), step("b")]})
        first = self.review(plan, "approval")
        self.decide(first, "approve")
        second = until(lambda: [r for r in self.d.ask("review.list", planId=plan)["reviews"] if r["attempt"] == 2], 10, "the second")[0]
        self.d.kill9()
        self.d.start(agents=False)
        self.assertTrue(self.again(first)["ok"])
        self.assertEqual(self.open(plan, "approval")["reviewId"], second["reviewId"])
        self.assertEqual((first["reviewId"], second["reviewId"]), (plan + "/a/r1", plan + "/a/r2"))
        self.assertTrue(self.again(second)["ok"])

    def test_the_command_line_takes_a_short_name_of_the_only_review(self):
        self.probe(work=self.work)
        plan = self.d.submit({"policy": {"maxConcurrency": 2}, "steps": [step("r1", requiresApproval=True, dependsOn=[]),
                                                                         step("b", requiresApproval=True, dependsOn=[])]})
        until(lambda: len(self.d.ask("review.list", planId=plan)["reviews"]) == 2, 10, "both wait")
        done = self.d.cli_any("approve", plan)
        self.assertEqual(done.returncode, 2, done)
        for r in self.d.ask("review.list", planId=plan)["reviews"]:
            self.assertIn(r["reviewId"], done.stderr)
        self.d.cli("approve", plan + "/r1", code=7)  # the whole id of a review of the plan, not the step r1
        self.assertEqual(self.decided(plan), [])
        self.d.cli("decide", plan + "/b", "skip")
        self.d.cli("approve", plan, "r1")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.d.cli("approve", plan, code=7)
        self.assertEqual(sorted(d for _, d in self.decided(plan)), ["approve", "skip"])

    def test_a_name_in_other_letters_is_the_same_plan(self):
        self.probe(work=self.work)
        plan = self.d.submit({"steps": [step("a", requiresApproval=True)]})
        review = self.review(plan, "before_step")
        lower = {"reviewId": review["reviewId"].replace(plan, plan.lower())}
        self.decide(lower, "approve")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertTrue(self.again(lower)["ok"])


if __name__ == "__main__":
    main()
