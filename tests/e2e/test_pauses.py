"""Pauses that agents ask for: a bounded one is shown with its end and its agent, a longer one fails the step at once.
And retryOn, which wins over the class's default and over the agent's word."""
import datetime
import time
import unittest

import acts
import harness
import probe

CONFIG = "policy: {heartbeatMs: 300}\nagents: []\n"


def refusal(pause_ms, cls="RATE_LIMITED"):
    return {"outcome": "failed", "failure": {"code": "429", "class": cls, "message": "too many", "retryAfterMs": pause_ms}}


def seconds_until(iso):
    return datetime.datetime.fromisoformat(iso.replace("Z", "+00:00")).timestamp() - time.time()


class Pauses(harness.BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CONFIG, agents=False)
        self.answers = []
        self.agent = probe.Probe(self.d, work=lambda r: self.answers.pop(0) if self.answers else
                                 {"outcome": "completed", "result": {"text": "done"}})
        self.addCleanup(self.agent.close)
        probe.wait_up(self.d)

    def events(self, type_):
        return [e for e in self.d.events(self.plan) if e["type"] == type_]

    def test_pause_over_the_bound_fails_the_step_with_both_numbers(self):
        for pause, retries in ((2 ** 63, 2), (10 ** 12, 0), (300001, 2)):
            with self.subTest(pause=pause, retries=retries):
                self.answers = [refusal(pause)]
                self.plan = self.d.submit({"steps": [probe.step(maxRetries=retries)]})
                view = self.d.wait_plan(self.plan, 10)
                self.assertEqual(view["status"], "failed")
                self.assertIn("asks for a pause of %d ms, at most 300000 ms (maxPauseMs): too many" % pause, view["failureReason"])
                self.assertEqual(view["steps"][0]["errorClass"], "RATE_LIMITED")

    def test_policy_sets_the_bound(self):
        self.answers = [refusal(51)]
        self.plan = self.d.submit({"steps": [probe.step()], "policy": {"maxPauseMs": 50}})
        self.assertIn("at most 50 ms", self.d.wait_plan(self.plan, 10)["failureReason"])
        self.answers = [refusal(50)]
        self.plan = self.d.submit({"steps": [probe.step(backoff={"kind": "fixed", "initialMs": 1})], "policy": {"maxPauseMs": 50}})
        self.assertEqual(self.d.wait_plan(self.plan, 10)["status"], "completed")

    def test_pause_within_the_bound_shows_its_end_and_who_asked(self):
        """In plan.get, in status and in the event, also with no retries, when the wait is a fallback."""
        for retries, type_ in ((2, "plan_step_retry"), (0, "fallback_used")):
            with self.subTest(retries=retries):
                self.answers = [refusal(299000)]
                self.plan = self.d.submit({"steps": [probe.step(maxRetries=retries)]})

                def waits():
                    return self.d.ask("plan.get", planId=self.plan)["steps"][0].get("waiting", {}).get("kind") == "backoff"
                harness.until(waits, 10, "the step waits\n" + self.d.log())
                waiting = self.d.ask("plan.get", planId=self.plan)["steps"][0]["waiting"]
                self.assertEqual(waiting["agentId"], "probe")
                self.assertTrue(280 < seconds_until(waiting["until"]) <= 299, waiting)
                self.assertIn("at " + waiting["until"], waiting["text"])
                self.assertIn("agent probe asked for the pause", waiting["text"])
                (event,) = self.events(type_)
                self.assertEqual((event["delayMs"], event["askedBy"]), (299000, "probe"))
                self.assertLess(abs(seconds_until(event["until"]) - seconds_until(waiting["until"])), 2)
                self.assertIn("agent probe asked for the pause", self.d.cli_any("status", self.plan).stdout)
                self.d.ask("plan.cancel", planId=self.plan)

    def test_own_backoff_has_an_end_and_nobody_who_asked(self):
        self.answers = [refusal(0)]
        self.plan = self.d.submit({"steps": [probe.step(backoff={"kind": "fixed", "initialMs": 60000, "maxMs": 60000})]})
        harness.until(lambda: self.events("plan_step_retry"), 10, "a retry\n" + self.d.log())
        (event,) = self.events("plan_step_retry")
        self.assertNotIn("askedBy", event)
        self.assertTrue(50 < seconds_until(event["until"]) <= 60, event)
        waiting = self.d.ask("plan.get", planId=self.plan)["steps"][0]["waiting"]
        self.assertEqual(waiting["text"], "waiting for the next attempt at " + waiting["until"])
        self.assertNotIn("agentId", waiting)

    def test_restart_keeps_the_end_and_who_asked(self):
        self.answers = [refusal(299000)]
        self.plan = self.d.submit({"steps": [probe.step()]})
        harness.until(lambda: self.events("plan_step_retry"), 10, "a retry\n" + self.d.log())
        self.d.kill9()
        self.d.start(agents=False)
        waiting = self.d.ask("plan.get", planId=self.plan)["steps"][0]["waiting"]
        self.assertEqual((waiting["kind"], waiting["agentId"]), ("backoff", "probe"))


class RetryOn(acts.Acts):
    def test_exit_code_of_a_program_is_retried_when_the_plan_says_so(self):
        """The exec agent calls an exit code final; retryOn wins."""
        for n, (more, status, asked) in enumerate((({"retryOn": ["UNKNOWN"]}, "completed", 3), ({"retryOn": ["TIMEOUT"]}, "failed", 1))):
            with self.subTest(more):
                name = "r%d" % n
                self.act(name, "exit 1", "exit 1", acts.say("done"))
                view = self.run_plan([acts.step(name, maxRetries=3, backoff={"kind": "fixed", "initialMs": 1}, **more)])
                self.assertEqual((view["status"], self.asked(name)), (status, asked), view)


if __name__ == "__main__":
    unittest.main(verbosity=2)
