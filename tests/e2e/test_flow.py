"""Plans that branch: conditions over what steps found out, references that add their edge, steps for failures, joins."""
from harness import main, until
from probe import step
from test_phases import data, failed, text
from test_semantics import Semantics


class Flow(Semantics):
    """One agent whose results are in the tasks: "say {json}" gives data, "fail" fails, anything else a text."""

    def setUp(self):
        super().setUp()
        self.a = self.agent("a", execute=self.work)

    def work(self, r):
        name = r["stepId"]
        if name in self.values:
            return data(self.values[name])
        return failed("broken", retryable=False) if name.startswith("bad") else text("done " + name)

    values = {"check": {"count": 7, "name": "Ada", "tags": ["x"], "none": None, "ok": True}}

    def statuses(self, view):
        return {s["stepId"]: s["status"] + (":" + s["reason"] if s.get("reason") else "") for s in view["steps"]}

    def refused(self, *steps):
        r = self.d.ask("plan.lint", plan={"steps": list(steps)})
        return [p["message"] for p in r["problems"] if p.get("severity", "error") == "error"]


class Conditions(Flow):
    def test_true_runs_false_skips_and_the_event_has_the_values(self):
        view = self.run_plan([
            step("check", "a", dependsOn=[]),
            step("many", "a", when={"results.check.count": {"gt": 3}}),
            step("few", "a", when={"results.check.count": {"lte": 3}}),
            step("join", "a", dependsOn=["many", "few"]),
            step("alone", "a", dependsOn=["few"]),
        ])
        self.assertEqual(self.statuses(view), {"check": "completed", "many": "completed", "few": "skipped:condition",
                                               "join": "completed", "alone": "skipped:condition"})
        self.assertEqual((view["status"], view["outcome"]), ("completed", "success"))
        ends = self.ends()
        self.assertEqual(ends["few"]["condition"], "results.check.count is 7")
        self.assertNotIn("error", ends["few"])
        self.assertEqual(ends["alone"]["condition"], "every step before it was skipped")
        self.assertNotIn("few", self.result()["aggregatedResult"])

    def test_every_test_over_real_results(self):
        yes = [
            {"results.check.count": 7}, {"results.check.count": {"eq": 7.0, "ne": 8, "gte": 7, "lt": 8}},
            {"results.check.name": {"in": ["Bob", "Ada"], "matches": "^A", "gt": "Aaa"}},
            {"results.check": {"schema": {"required": ["count"], "properties": {"count": {"type": "integer"}}}}},
            {"results.check.none": {"exists": False}}, {"results.check.gone": {"exists": False}}, {"results.check.tags.0": {"exists": True}},
            {"steps.check.status": "completed"}, {"not": {"results.check.ok": False}},
            {"any": [{"results.check.count": {"gt": 100}}, {"all": [{"results.check.ok": True}, {"results.check.name": {"ne": ""}}]}]},
            {"results.check.gone": {"exists": False}, "results.check.ok": True},
        ]
        no = [{"results.check.count": {"gt": 7}}, {"results.check.name": {"matches": "^b"}}, {"results.check.gone": {"exists": True}},
              {"steps.check.status": {"in": ["failed", "skipped"]}}, {"not": {"results.check.count": 7}},
              {"any": [{"results.check.count": 1}, {"results.check.count": 2}]}, {"results.check.count": 7, "results.check.ok": False}]
        view = self.run_plan([step("check", "a", dependsOn=[])] + [step(f"y{i}", "a", when=w) for i, w in enumerate(yes)] +
                             [step(f"n{i}", "a", when=w) for i, w in enumerate(no)])
        got = self.statuses(view)
        self.assertEqual({k: v for k, v in got.items() if k[0] == "y" and v != "completed"}, {})
        self.assertEqual({k: v for k, v in got.items() if k[0] == "n" and v != "skipped:condition"}, {})

    def test_what_cannot_be_tested_fails_its_step(self):
        for when, why in (({"results.check.gone": {"gt": 1}}, "results.check.gone: there is no such value"),
                          ({"results.check.name": {"gt": 1}}, 'results.check.name: gt needs a number, got "Ada"'),
                          ({"results.check.count": {"matches": "7"}}, "results.check.count: matches needs a text, got 7")):
            view = self.run_plan([step("check", "a"), step("b", "a", when=when)])
            self.assertEqual((view["status"], self.statuses(view)["b"]), ("failed", "failed"))
            end = self.ends()["b"]
            self.assertEqual(end["errorClass"], "VALIDATION_ERROR")
            self.assertIn(why, end["error"])

    def test_nothing_left_to_do_is_a_success(self):
        view = self.run_plan([step("check", "a", when={"state.mode": {"exists": True}}), step("b", "a", when={"results.check": {"exists": True}})])
        self.assertEqual((view["status"], view["outcome"]), ("completed", "success"))
        self.assertEqual(self.result()["aggregatedResult"], "Nothing had to be done: no condition of a step was true.")

    def test_a_step_for_failures(self):
        view = self.run_plan([step("bad", "a", dependsOn=[], onFailure="continue"), step("ok", "a", dependsOn=[]),
                              step("clean", "a", dependsOn=["bad", "ok"], runIf="failure"), step("idle", "a", dependsOn=["ok"], runIf="failure"),
                              step("look", "a", dependsOn=["bad"], runIf="always", when={"steps.bad.status": "failed"})])
        self.assertEqual(self.statuses(view), {"bad": "failed", "ok": "completed", "clean": "completed", "idle": "skipped:condition",
                                               "look": "completed"})

    def test_a_reference_adds_its_edge(self):
        view = self.run_plan([{**step("last", "a"), "task": "report {{results.mid}} and {{results.first}}"},
                              {**step("mid", "a"), "parameters": {"x": "{{results.first}}"}}, step("first", "a", dependsOn=[])])
        self.assertEqual(view["status"], "completed")
        self.assertEqual([r["stepId"] for r in self.a.asked("execute")], ["first", "mid", "last"])
        doc = self.d.ask("plan.get", planId=self.plan)
        self.assertEqual({s["stepId"]: s.get("dependsOn") for s in doc["steps"]}, {"last": ["mid", "first"], "mid": ["first"], "first": None})

    def test_it_survives_a_crash_between_the_check_and_the_branch(self):
        plan = self.d.submit({"steps": [step("check", "a", dependsOn=[]), {"stepId": "hold", "type": "human_review", "task": "look at it", "dependsOn": ["check"]},
                                        step("b", "a", dependsOn=["hold"], when={"results.check.count": {"gt": 3}}),
                                        step("c", "a", dependsOn=["hold"], when={"results.check.count": {"lt": 3}})]})
        review = until(lambda: self.d.ask("plan.get", planId=plan)["steps"][1].get("waiting", {}).get("reviewId"), 30, "its review")
        self.d.kill9()
        self.d.start()
        self.a = self.agent("a", execute=self.work)
        self.d.ask("review.decide", reviewId=review, decision="approve")
        view = self.d.wait_plan(plan)
        self.assertEqual(self.statuses(view), {"check": "completed", "hold": "completed", "b": "completed", "c": "skipped:condition"})


class Switches(Flow):
    def branches(self, *more):
        """more: steps of the branch of 3 to 9."""
        return {"switch": [{"when": {"results.check.count": {"gt": 9}}, "steps": [step("many", "a")]},
                           {"when": {"results.check.count": {"gt": 3}}, "steps": [step("some", "a"), *more]},
                           {"else": True, "steps": [step("few", "a")]}]}

    def test_the_first_branch_that_holds_runs_and_a_step_after_it_joins(self):
        for count, runs in ((20, "many"), (7, "some"), (1, "few")):
            for chain in (False, True):
                self.values = {"check": {"count": count}}
                first = step("check", "a") if chain else step("check", "a", dependsOn=[])
                join = step("join", "a") if chain else step("join", "a", dependsOn=["many", "some", "few"])
                view = self.run_plan([first, self.branches(), join])
                wanted = {name: "completed" if name == runs else "skipped:condition" for name in ("many", "some", "few")}
                self.assertEqual(self.statuses(view), {"check": "completed", **wanted, "join": "completed"}, (count, chain))

    def test_a_switch_in_a_branch(self):
        self.values = {"check": {"count": 5, "name": "Ada"}}
        inner = {"switch": [{"when": {"results.check.name": "Bob"}, "steps": [step("bob", "a")]},
                            {"else": True, "steps": [step("other", "a", when={"results.check.count": {"lt": 6}})]}]}
        view = self.run_plan([step("check", "a", dependsOn=[]), self.branches(inner)])
        self.assertEqual(self.statuses(view), {"check": "completed", "many": "skipped:condition", "some": "completed", "few": "skipped:condition",
                                               "bob": "skipped:condition", "other": "completed"})

    def test_a_test_that_does_not_fit_fails_its_branch_and_those_behind(self):
        self.values = {"check": {"count": "a word"}}
        view = self.run_plan([step("check", "a", dependsOn=[], onFailure="continue"), self.branches()])
        self.assertEqual((view["status"], self.statuses(view)["many"]), ("failed", "failed"))

    def test_what_is_wrong_is_told_before_the_plan_begins(self):
        self.assertEqual(self.refused(step("check", "a"), {"switch": [{"else": True, "steps": [step("b", "a")]}, {"steps": []}]}),
                         ["branch 1: `else` is the last branch", "branch 2: has either `when` or `else: true`"])


if __name__ == "__main__":
    main()
