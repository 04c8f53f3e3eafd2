"""Steps that wait: for a time, a date, a signal; signals that come before, during and twice; kill -9 meanwhile."""
import datetime

from harness import main, until
from probe import step
from test_phases import text
from test_semantics import Semantics

SCHEMA = {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer", "minimum": 1}}}


def date(seconds):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def waits(step_id, deps=(), **wait):
    return {"stepId": step_id, "wait": wait, "dependsOn": list(deps)}


class Waits(Semantics):
    def setUp(self):
        super().setUp()
        self.a = self.agent("a", execute=lambda r: text("done " + r["stepId"]))

    def view(self):
        return {s["stepId"]: s for s in self.d.ask("plan.get", planId=self.plan)["steps"]}

    def signal(self, name, data=None, key=None):
        fields = {"planId": self.plan, "name": name}
        if data is not None:
            fields["data"] = data
        if key is not None:
            fields["clientKey"] = key
        return self.d.ask("plan.signal", **fields)

    def sleeping(self, step_id):
        return until(lambda: self.view()[step_id].get("waiting", {}).get("kind") in ("signal", "timer") and self.view()[step_id]["waiting"],
                     30, step_id + " waits")


class Times(Waits):
    def test_a_time_and_a_date_need_no_agent(self):
        self.submit([waits("pause", forMs=300), waits("until", until=date(0.3)), waits("past", until="2020-01-01T00:00:00+01:00"),
                     waits("none", forMs=0), step("next", "a", dependsOn=["pause", "until", "past", "none"])])
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["outcome"]), ("completed", "success"))
        events = self.d.events(self.plan)
        began = {e["stepId"]: e for e in events if e["type"] == "wait_started"}
        self.assertEqual({k: e["kind"] for k, e in began.items()}, {"pause": "timer", "until": "until", "past": "until", "none": "timer"})
        self.assertEqual(began["pause"]["delayMs"], 300)
        self.assertEqual(began["past"]["until"], "2019-12-31T23:00:00.000Z")
        self.assertGreaterEqual(self.ends()["pause"]["durationMs"], 300)
        self.assertEqual([r["stepId"] for r in self.a.asked("execute")], ["next"])
        stored = self.d.ask("plan.get", planId=self.plan, document=True)["document"]["steps"]
        self.assertEqual(stored[2]["wait"], {"until": "2019-12-31T23:00:00.000Z"})

    def test_a_time_goes_on_while_the_daemon_is_dead(self):
        self.submit([waits("pause", forMs=1500), waits("until", until=date(1.5)), waits("long", forMs=3600000)])
        self.sleeping("pause")
        self.d.kill9()
        self.d.start()
        until(lambda: all(self.view()[s]["status"] == "completed" for s in ("pause", "until")), 30, "both are over")
        self.assertEqual(self.view()["long"]["status"], "in_progress")
        self.assertLess(self.ends()["pause"]["durationMs"], 15000)
        self.d.ask("plan.cancel", planId=self.plan)

    def test_what_a_step_waits_for_is_told(self):
        self.submit([waits("t", forMs=3600000), waits("s", signal="paid", timeoutMs=3600000)])
        self.sleeping("s")
        view = self.view()
        self.assertEqual((view["t"]["type"], view["t"]["status"], view["t"]["waiting"]["kind"]), ("wait", "in_progress", "timer"))
        self.assertRegex(view["t"]["waiting"]["text"], r"^waiting until 20\d\d-.*Z$")
        self.assertEqual((view["s"]["waiting"]["kind"], view["s"]["waiting"]["signal"]), ("signal", "paid"))
        self.assertRegex(view["s"]["waiting"]["text"], r"^waiting for the signal paid until 20.*: baton signal PLAN paid$")
        out = self.d.cli("status", self.plan)
        self.assertIn("waiting for the signal paid", out)
        self.d.ask("plan.cancel", planId=self.plan)


class Signals(Waits):
    def test_before_during_and_twice(self):
        self.submit([waits("gate", signal="go"), waits("first", ["gate"], signal="paid", schema=SCHEMA),
                     waits("second", ["first"], signal="paid", schema=SCHEMA), step("ship", "a", dependsOn=["second"])])
        self.sleeping("gate")
        early = self.signal("paid", {"amount": 1}, "k1")
        self.assertEqual((early["signal"], early.get("stepId")), (1, None))
        self.assertEqual(self.d.ask("plan.get", planId=self.plan)["signalsKept"], 1)
        again = self.signal("paid", {"amount": 1}, "k1")
        self.assertEqual((again["signal"], again["repeated"]), (1, True))
        self.assertEqual(self.signal("go")["stepId"], "gate")
        self.sleeping("second")
        self.assertEqual(self.signal("paid", {"amount": 2}, "k2")["stepId"], "second")
        view = self.d.wait_plan(self.plan)
        self.assertEqual(view["status"], "completed")
        ends = self.ends()
        self.assertEqual((ends["first"]["signal"], ends["second"]["signal"]), (1, 3))
        self.assertEqual(self.d.ask("plan.result", planId=self.plan, stepId="first")["result"]["data"], {"amount": 1})
        self.assertIn("amount", self.a.asked("execute")[0]["context"]["text"])
        # The plan is over: the same signal has the same answer, another one is refused.
        again = self.signal("paid", {"amount": 2}, "k2")
        self.assertEqual((again["signal"], again.get("stepId")), (3, "second"))
        self.assertEqual(self.signal("paid", {"amount": 1}, "k1").get("stepId"), "first")
        with self.assertRaisesRegex(Exception, "has ended|is completed"):
            self.signal("paid", {"amount": 2}, "k3")

    def test_over_kill_9_before_during_and_after(self):
        self.submit([waits("gate", signal="go"), waits("paid", ["gate"], signal="paid"), waits("end", ["paid"], signal="stop")])
        self.sleeping("gate")
        self.signal("paid", {"n": 1}, "early")
        self.d.kill9()
        self.d.start()
        self.assertEqual(self.signal("paid", {"n": 1}, "early")["repeated"], True)
        self.signal("go", key="go")
        self.d.kill9()
        self.d.start()
        self.assertEqual(self.signal("go", key="go")["stepId"], "gate")
        until(lambda: self.view()["paid"]["status"] == "completed", 30, "the early one is taken")
        self.assertEqual(self.d.ask("plan.result", planId=self.plan, stepId="paid")["result"]["data"], {"n": 1})
        self.signal("stop", "that is all", "s")
        view = self.d.wait_plan(self.plan)
        self.assertEqual(view["status"], "completed")
        self.assertEqual([e["signal"] for e in self.d.events(self.plan) if e["type"] == "signal_received"], [1, 2, 3])
        self.assertEqual(self.d.ask("plan.result", planId=self.plan, stepId="end")["result"]["text"], "that is all")

    def test_what_does_not_fit_is_refused_with_its_place(self):
        self.submit([waits("paid", signal="paid", schema=SCHEMA)])
        self.sleeping("paid")
        for name, data, key, why in (("paid", {"amount": 0}, None, "data: does not fit wait.schema of the plan: #?/amount"),
                                     ("paid", None, None, "data: does not fit wait.schema"),
                                     ("payed", {"amount": 1}, None, "no step of the plan waits for the signal 'payed'; they wait for paid")):
            with self.assertRaisesRegex(Exception, why):
                self.signal(name, data, key)
        self.assertEqual(self.signal("paid", {"amount": 3}, "k")["signal"], 1)
        self.d.wait_plan(self.plan)
        with self.assertRaisesRegex(Exception, "clientKey: 'k' was used for another signal of this plan"):
            self.signal("paid", {"amount": 4}, "k")

    def test_64_are_kept_and_the_65th_is_refused(self):
        self.submit([waits("gate", signal="go"), waits("paid", ["gate"], signal="paid")])
        self.sleeping("gate")
        for i in range(64):
            self.signal("paid", {"n": i})
        with self.assertRaisesRegex(Exception, "64 signals are kept already"):
            self.signal("paid", {"n": 64})
        self.assertEqual(self.signal("go")["stepId"], "gate")
        self.d.wait_plan(self.plan)
        self.assertEqual(self.d.ask("plan.result", planId=self.plan, stepId="paid")["result"]["data"], {"n": 0})

    def test_a_timeout_fails_the_step_and_on_failure_decides(self):
        self.submit([waits("paid", signal="paid", timeoutMs=200), step("next", "a", dependsOn=["paid"])])
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "failed")
        end = self.ends()["paid"]
        self.assertEqual((end["status"], end["errorClass"], end["error"]), ("failed", "TIMEOUT", "No signal within 200ms"))
        self.submit([{**waits("paid", signal="paid", timeoutMs=200), "onFailure": "continue"},
                     step("remind", "a", dependsOn=["paid"], runIf="failure")])
        self.assertEqual(self.d.wait_plan(self.plan)["outcome"], "partial")
        self.assertEqual(self.ends()["remind"]["status"], "completed")

    def test_its_data_are_for_templates_and_conditions(self):
        self.submit([waits("answer", signal="answer"), {**step("yes", "a", when={"results.answer.ok": True}), "task": "say {{results.answer.word}}"},
                     step("no", "a", when={"results.answer.ok": False})])
        self.sleeping("answer")
        self.signal("answer", {"ok": True, "word": "hello"})
        view = self.d.wait_plan(self.plan)
        self.assertEqual({s["stepId"]: s["status"] for s in view["steps"]}, {"answer": "completed", "yes": "completed", "no": "skipped"})
        self.assertEqual(self.a.asked("execute")[0]["task"], "say hello")

    def test_the_command_line(self):
        self.submit([waits("paid", signal="paid"), waits("note", ["paid"], signal="note")])
        self.sleeping("paid")
        out = self.d.cli("signal", self.plan, "note", "--text", "hi", "--key", "n")
        self.assertIn("signal 1, kept until a step waits for it", out)
        self.assertIn("(it came before)", self.d.cli("signal", self.plan, "note", "--text", "hi", "--key", "n"))
        self.assertIn("signal 2 taken by paid", self.d.cli("signal", self.plan, "paid", "--data", '{"n": 1}'))
        self.d.wait_plan(self.plan)
        self.assertIn("signal 1 (it came before) taken by note", self.d.cli("signal", self.plan, "note", "--text", "hi", "--key", "n"))
        self.d.cli("signal", self.plan, "paid", "--data", "{", code=2)

    def test_a_signal_that_no_step_took_before_the_end_is_not_said_to_wait(self):
        self.submit([waits("gate", signal="go", timeoutMs=1500), waits("paid", ["gate"], signal="paid")])
        self.sleeping("gate")
        self.d.cli("signal", self.plan, "paid", "--key", "p")
        self.d.wait_plan(self.plan)
        self.assertIn("signal 1 (it came before), no step has taken it", self.d.cli("signal", self.plan, "paid", "--key", "p"))


class Mistakes(Waits):
    def test_each_names_its_place(self):
        for s, field, why in (({"wait": {}}, "wait.forMs", "is missing, and so are until and signal"),
                              ({"wait": {"forMs": 1, "signal": "x"}}, "wait.forMs", "exclude each other"),
                              ({"wait": {"forMs": 1, "timeoutMs": 5}}, "wait.timeoutMs", "goes with signal only"),
                              ({"wait": {"until": "tomorrow"}}, "wait.until", "expected a date with its offset"),
                              ({"wait": {"until": "2027-01-31T18:00:00"}}, "wait.until", "expected a date with its offset"),
                              ({"wait": {"until": "2027-02-29T18:00:00Z"}}, "wait.until", "expected a date with its offset"),
                              ({"wait": {"forMs": -1}}, "wait.forMs", "expected a whole number from 0 to 316224000000"),
                              ({"wait": {"signal": ""}}, "wait.signal", "is empty"),
                              ({"wait": {"signal": "x", "schema": {"type": "nothing"}}}, "wait.schema", "is no JSON Schema"),
                              ({"wait": {"signl": "x"}}, "wait.signl", "signal"),
                              ({"type": "wait", "task": "wait a little"}, "wait", "is missing"),
                              ({"type": "human_review", "task": "look at it", "wait": {"forMs": 1}}, "type", "but the step has wait")):
            problems = self.d.ask("plan.lint", plan={"steps": [{"stepId": "w", **s}]})["problems"]
            found = [p for p in problems if p.get("severity", "error") == "error" and p.get("field") == field and why in p["message"]]
            self.assertTrue(found, (s, problems))

    def test_one_signal_has_one_schema(self):
        problems = self.d.ask("plan.lint", plan={"steps": [waits("a", signal="x", schema=SCHEMA), waits("b", signal="x")]})["problems"]
        self.assertTrue([p for p in problems if p.get("field") == "wait.schema" and "waits for the same signal" in p["message"]], problems)


if __name__ == "__main__":
    main()
