#!/usr/bin/env python3
"""What a plan says and nobody reads is an error, at every door; leniency does not reach what people rely on."""
import json
import subprocess
import unittest

import harness
from harness import BatonTest, main
from seed import Seed, failure

READ = {"stepId": "load", "agentId": "files", "skill": "read", "task": "Read the log of the day"}


def plan(**step):
    return {"steps": [{"stepId": "look", "agentId": "files", "skill": "list", "task": "Look at what there is", "parameters": {"path": "."}},
                      {**READ, "parameters": {"path": "a"}, **step}]}


class Offline(unittest.TestCase):
    def check(self, text, *options):
        done = subprocess.run([harness.BIN / "baton", "plan", "check", "-", "--state", "/nonexistent", *options], input=json.dumps(text),
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    def test_the_place_and_the_guess_are_on_one_line(self):
        code, said = self.check(plan(timout=5))
        self.assertEqual(code, 2, said)
        self.assertIn("  error: step 2 (load): unknown field `timout`; did you mean `timeoutMs`? [unknown_field]\n", said)
        code, said = self.check(plan(backoff={"intialMs": 5}))
        self.assertIn("  error: step 2 (load): backoff: unknown field `intialMs`; did you mean `initialMs`? [unknown_field]\n", said)

    def test_control_flow_is_refused_by_name_however_lenient(self):
        for options in ((), ("--lenient",)):
            code, said = self.check(plan(**{"if": "results > 3"}), *options)
            self.assertEqual(code, 2, said)
            self.assertIn("step 2 (load): when: expected a condition such as", said)

    def test_leniency_is_for_what_nobody_relies_on(self):
        code, said = self.check(plan(colour="red"), "--lenient")
        self.assertEqual(code, 0, said)
        self.assertIn("  warning: step 2 (load): unknown field `colour` is ignored [unknown_field]\n", said)
        for member in ({"requireApproval": True}, {"bugdet": {"tokens": 1}}, {"gate": {"agent_idd": "x"}}, {"verify": {"requierd": ["a"]}}):
            code, said = self.check(plan(**member), "--lenient")
            self.assertEqual(code, 2, said)

    def test_the_policy_option_is_as_strict(self):
        code, said = self.check(plan(), "--policy", '{"signof": true}')
        self.assertEqual(code, 2, said)
        self.assertIn("error: policy: unknown field `signof`; did you mean `signoff`?", said)


class Doors(BatonTest):
    @classmethod
    def setUpClass(cls):
        cls.d = harness.Daemon(cls).start()

    @classmethod
    def tearDownClass(cls):
        cls.d.clean()

    def test_a_wrong_plan_does_not_run(self):
        before = self.d.ask("plan.list")["plans"]
        path = self.write_plan(self.d, "wrong.json", plan(timout=5))
        for verb in (("run", "--plan"), ("lint",), ("plan", "check")):
            done = self.d.cli_any(*verb, path)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("step 2 (load): unknown field `timout`; did you mean `timeoutMs`?", done.stderr)
        done = self.d.cli_any("run", "--plan", self.write_plan(self.d, "right.json", plan()), "--policy", '{"max_retrys": 1}')
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("policy: unknown field `max_retrys`; did you mean `maxRetries`?", done.stderr)
        self.assertEqual(self.d.ask("plan.list")["plans"], before)

    def test_an_unknown_parameter_is_named_with_a_guess(self):
        refused = self.d.ask_raw("plan.submit", plan=plan(parameters={"path": "a", "pathh": "b"}))["error"]
        problems = refused["details"]["problems"]
        self.assertEqual([p["stepIndex"] for p in problems], [1])
        self.assertIn("path", problems[0]["message"])

    def test_lenient_is_a_field_of_the_requests_too(self):
        for type_ in ("plan.lint", "plan.submit"):
            answer = self.d.ask(type_, plan=plan(colour="red"), lenient=True, **({"dryRun": True} if type_ == "plan.submit" else {}))
            self.assertIn("unknown_field", [p["category"] for p in answer["problems"]])
            self.assertFalse(self.d.ask_raw("plan.submit", plan=plan(requireApproval=True), lenient=True)["ok"])

    def test_a_change_is_as_strict(self):
        plan_id = self.d.submit({"policy": {"signoff": True}, **plan()})
        refused = self.d.ask_raw("plan.modify", planId=plan_id, kind="insert", afterStepId="load", reasoning="r",
                                 steps=[{**READ, "stepId": "new", "unless": "x"}])
        self.assertFalse(refused["ok"])
        self.assertIn("`unless` is not supported", json.dumps(refused))
        path = self.write_plan(self.d, "more.json", {"policy": {"requiresApproval": True}, "steps": [{**READ, "stepId": "new", "parameters": {"path": "a"}}]})
        done = self.d.cli_any("modify", plan_id, "--insert", path, "--after", "load", "--reasoning", "r")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("policy: has no effect: the plan keeps its policy", done.stderr)
        self.d.ask("plan.cancel", planId=plan_id)
        self.d.wait_plan(plan_id)


class Permitted(Seed):
    """policy.agents: whom planner, steps, fallbacks and replans may use."""

    def run_goal(self, goal, **fields):
        self.plan = self.d.ask("plan.submit", goal=goal, **fields)["planId"]
        return self.d.wait_plan(self.plan)

    def test_a_planner_is_offered_only_these_and_may_use_no_other(self):
        work = {name: self.agent(name, do=lambda r: "done") for name in ("alpha", "alpine", "beta")}
        answers = [{"steps": [{"agentId": "beta", "skill": "do", "task": "Do what is to be done"}]},
                   {"steps": [{"agentId": "alpine", "skill": "do", "task": "Do what is to be done"}]}]
        planner = self.agent("planner", plan=lambda r: answers.pop(0))
        view = self.run_goal("get it done", planner="agent:planner", policy={"agents": ["alp*"]})
        self.assertEqual(view["status"], "completed", view)
        first, second = [r for r in planner.requests if r.get("purpose") == "plan"]
        self.assertEqual([a["agentId"] for a in first["parameters"]["agents"]], ["alpha", "alpine"])
        self.assertIn('agent "beta" is not one of those that policy.agents permits', second["parameters"]["problems"])
        self.assertEqual((work["beta"].asked("do"), len(work["alpine"].asked("do"))), ([], 1))

    def test_the_keyword_planner_and_fallbacks_use_no_other(self):
        down = {"outcome": "failed", "failure": {"code": "U", "class": "AGENT_UNAVAILABLE", "message": "gone", "retryable": False}}
        self.agent("alpha", water_flowers=lambda r: down)
        beta = self.agent("beta", water_flowers=lambda r: "watered")
        view = self.run_goal("water the flowers", planner="keyword", policy={"agents": "alpha", "maxRetries": 0})
        self.assertEqual((view["status"], beta.asked("water_flowers")), ("failed", []))
        refused = self.d.ask_raw("plan.submit", goal="water the flowers", planner="keyword", policy={"agents": "gamma"})
        self.assertFalse(refused["ok"])

    def test_a_replan_and_a_change_use_no_other(self):
        self.agent("alpha", do=lambda r: failure("no"))
        beta = self.agent("beta", do=lambda r: "done")
        self.agent("replanner", plan=lambda r: {"steps": [{"agentId": "beta", "skill": "do", "task": "Do it in another way"}]})
        steps = [{"stepId": "a", "agentId": "alpha", "skill": "do", "task": "Do what is to be done", "maxRetries": 0, "onFailure": "replan"}]
        policy = {"agents": ["alpha", "replanner"], "replan": {"agentId": "replanner", "maxTotal": 1, "cooldownMs": 0}}
        self.plan = self.d.submit({"steps": steps, "policy": policy})
        self.assertEqual((self.d.wait_plan(self.plan)["status"], beta.asked("do")), ("failed", []))
        held = self.d.submit({"steps": steps, "policy": {**policy, "signoff": True}})
        refused = self.d.ask_raw("plan.modify", planId=held, kind="insert", afterStepId="a", reasoning="r",
                                 steps=[{"stepId": "b", "agentId": "beta", "skill": "do", "task": "Do it in another way"}])
        self.assertIn("policy.agents permits", json.dumps(refused))
        self.d.ask("plan.cancel", planId=held)
        self.d.wait_plan(held)


del Seed
if __name__ == "__main__":
    main()
