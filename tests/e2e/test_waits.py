"""What waits outlives the daemon, whether it is killed or stopped: people, pauses, sign-offs, backoffs, questions to agents;
nothing is done twice and nothing is forgotten."""
import threading
import unittest

from acts import Acts, say, step
from harness import until
from probe import Probe, wait_up

BROKEN = "echo 'not now' >&2; exit 75"


class Waits(Acts):
    def review(self, plan, kind):
        found = until(lambda: self.d.ask("review.list", planId=plan)["reviews"], 15, "a review\n" + self.d.log())[0]
        self.assertEqual(found["kind"], kind)
        return found

    def both_ways(self, body):
        for how in ("kill", "stop"):
            with self.subTest(how):
                body(how, lambda name: name + "-" + how)

    def completed(self, plan):
        view = self.d.wait_plan(plan)
        self.assertEqual(view["status"], "completed", "%s\n%s" % (view, self.d.log()))
        return view


class People(Waits):
    def test_everything_that_waits_for_people_can_be_decided_by_the_next_daemon(self):
        def body(how, name):
            before, edited, signed = name("before"), name("edited"), name("signed")
            self.acts(before, edited, signed)
            approval = self.d.submit({"steps": [step(before), step("b", requiresApproval=True, dependsOn=[before],
                                                              parameters={"name": "nothing"})]})
            review = self.d.submit({"steps": [{"stepId": "r", "type": "human_review", "task": "Which one?"}]})
            signoff = self.d.submit({"goal": "sign me", "policy": {"signoff": True}, "steps": [step(signed)]})
            asked = [self.review(approval, "before_step"), self.review(review, "human_review"), self.review(signoff, "plan")]
            self.restart(how)
            for plan, old in zip((approval, review, signoff), asked):
                new = self.review(plan, old["kind"])
                self.assertEqual({k: new.get(k) for k in ("reviewId", "prompt", "stepId", "parameters", "since")},
                                 {k: old.get(k) for k in ("reviewId", "prompt", "stepId", "parameters", "since")})
                self.assertIn(self.d.ask("plan.get", planId=plan)["status"], ("waiting", "pending"))
            self.d.ask("review.decide", reviewId=asked[0]["reviewId"], decision="approve", edit={"name": edited}, comment="that one")
            self.d.ask("review.decide", reviewId=asked[1]["reviewId"], decision="approve", edit={"choice": 2})
            self.d.ask("review.decide", reviewId=asked[2]["reviewId"], decision="approve")
            self.completed(approval)
            heard = self.heard(edited)
            self.assertEqual((heard["parameters"], heard["feedback"]), ({"name": edited}, "that one"))
            self.completed(review)
            self.assertEqual(self.d.ask("plan.result", planId=review, stepId="r")["result"]["data"], {"choice": 2})
            self.completed(signoff)
            self.assertEqual([self.asked(x) for x in (before, edited, signed)], [1, 1, 1])
        self.both_ways(body)

    def test_who_waits_for_people_is_not_blamed_for_the_daemons_deaths(self):
        self.acts("a", "b")
        signed = self.d.submit({"steps": [step("a")]}, policy={"signoff": True})
        approved = self.d.submit({"steps": [step("b", requiresApproval=True)]})
        until(lambda: len(self.d.ask("review.list")["reviews"]) == 2, 10, "both wait")
        for _ in range(6):
            self.restart("kill")
        for review in self.d.ask("review.list")["reviews"]:
            self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")
        for plan in (signed, approved):
            self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_what_an_agent_asks_for_reaches_it_after_the_restart(self):
        def body(how, name):
            needs = {"outcome": "needs_input", "need": {"kind": "input", "prompt": "Which colour?"}}
            may_i = {"outcome": "needs_approval", "need": {"kind": "approval", "prompt": "Delete it?"}}
            given = []

            def work(r):
                given.append((r["parameters"], r.get("feedback")))
                return needs if r["attempt"] == 1 else may_i if r["attempt"] == 2 else {"outcome": "completed", "result": {"text": "so be it"}}
            agent = name("asker")
            p = Probe(self.d, agent, work=work)
            self.addCleanup(p.close)
            wait_up(self.d, agent)
            plan = self.d.submit({"steps": [{"stepId": "s", "agentId": agent, "skill": "do", "task": "paint", "parameters": {"wall": 1}}]})
            for kind, prompt, decide in (("input", "Which colour?", {"edit": {"colour": "blue"}}), ("approval", "Delete it?", {"comment": "do"})):
                first = self.review(plan, kind)
                if how == "kill":
                    self.d.kill9()
                else:
                    self.d.stop()
                self.d.start(agents=False)
                p.epoch = p.register()["epoch"]
                again = self.review(plan, kind)
                self.assertEqual((again["reviewId"], again["prompt"]), (first["reviewId"], prompt))
                self.d.ask("review.decide", reviewId=again["reviewId"], decision="approve", **decide)
                until(lambda: not [r for r in self.d.ask("review.list", planId=plan)["reviews"] if r["reviewId"] == first["reviewId"]], 10, "decided")
            self.completed(plan)
            self.assertEqual(given, [({"wall": 1}, None), ({"wall": 1, "colour": "blue"}, None), ({"wall": 1, "colour": "blue"}, "do")])
            p.close()
        self.both_ways(body)

    def test_nobody_answers_in_time_and_the_clock_goes_on_while_the_daemon_is_away(self):
        def body(how, name):
            self.acts(name("t"))
            plan = self.d.submit({"steps": [step("s", requiresApproval=True, approvalTimeoutMs=300, onFailure="continue"), step(name("t"))]})
            asked = self.review(plan, "before_step")
            self.restart(how)
            view = self.completed(plan)
            self.assertEqual((view["steps"][0]["status"], view["outcome"]), ("failed", "partial"))
            self.assertEqual(view["steps"][0]["error"], "No decision within 300ms: denied")
            decided = [e for e in self.d.events(plan) if e["type"] == "review_decided"]
            self.assertEqual([(e["reviewId"], e["decision"], e["comment"]) for e in decided],
                             [(asked["reviewId"], "reject", "No decision within 300ms: denied")])
        self.both_ways(body)


class Machines(Waits):
    def test_pause_lasts_until_somebody_resumes(self):
        def body(how, name):
            self.acts(name("a"), name("b"))
            plan = self.d.submit({"steps": [step(name("a"), requiresApproval=True), step(name("b"))]})
            review = self.review(plan, "before_step")
            self.d.ask("plan.pause", planId=plan, reason="lunch")
            self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")
            self.restart(how)
            view = self.d.ask("plan.get", planId=plan)
            self.assertIn("requested", view["paused"])
            self.assertEqual((view["steps"][0]["waiting"]["kind"], self.asked(name("a"))), ("paused", 0))
            self.d.ask("plan.resume", planId=plan)
            self.assertNotIn("paused", self.completed(plan))
        self.both_ways(body)

    def test_attempts_are_not_counted_anew(self):
        def body(how, name):
            self.act(name("s"), BROKEN, BROKEN, say("third time lucky"))
            plan = self.d.submit({"steps": [step(name("s"), maxRetries=2, backoff={"kind": "fixed", "initialMs": 600})]})
            for n in (1, 2):
                until(lambda: [e["type"] for e in self.d.events(plan)].count("plan_step_retry") == n, 15, "attempt %d failed" % n)
                self.restart(how)
            view = self.completed(plan)
            self.assertEqual((view["steps"][0]["attempts"], view["steps"][0]["result"]), (3, "third time lucky"))
            self.assertEqual([self.heard(name("s"), n)["attempt"] for n in (1, 2, 3)], [1, 2, 3])
        self.both_ways(body)

    def test_verifier_is_asked_again_and_the_result_is_not_made_again(self):
        def body(how, name):
            self.acts(name("s"))
            n = self.asked("verify")
            self.act("verify", *["until [ -e %s ]; do sleep 0.02; done; echo yes" % name("go")] * (n + 1))
            plan = self.d.submit({"steps": [step(name("s"), verifyWith="judge")]})
            self.wait_asked("verify", n + 1)
            if how == "kill":
                self.d.kill9()
            else:
                self.d.process.terminate()
                self.d.process.wait(20)
            (self.d.work / name("go")).write_text("")
            self.d.start()
            view = self.completed(plan)
            self.assertEqual((view["steps"][0]["result"], self.asked(name("s"))), ("done " + name("s"), 1))
        self.both_ways(body)

    def test_gate_that_was_asked_is_asked_again(self):
        self.acts("a", "b")
        self.act("gate", "until [ -e go ]; do sleep 0.02; done; echo yes")
        self.plan = self.d.submit({"steps": [step("a", dependsOn=[]), step("b", dependsOn=["a"], gate="judge")]})
        self.wait_asked("gate")
        self.restart("kill")
        (self.d.work / "go").write_text("")
        self.completed(self.plan)
        self.assertEqual([len(self.events(t)) for t in ("quality_gate_started", "quality_gate_passed")], [1, 1])
        self.assertEqual((self.asked("a"), self.asked("b")), (1, 1))

    def test_waiting_costs_no_thread(self):
        def threads():
            with open("/proc/%d/status" % self.d.process.pid) as f:
                return int([line for line in f if line.startswith("Threads")][0].split()[1])
        before = threads()
        plans = [self.d.submit({"steps": [{"stepId": "r", "type": "human_review", "task": "ok?"}]}) for _ in range(300)]
        self.assertEqual(threads(), before)
        self.restart("kill")
        self.assertEqual(self.d.ask("supervisor.stats")["reviewsOpen"], len(plans))
        self.assertLessEqual(threads(), before)


del Acts, Waits, threading
if __name__ == "__main__":
    unittest.main(verbosity=2)
